//! Broadcast over messages (MPI 4.1, 7.4).

pub mod binomial;

//! Allgather over a region (MPI 4.1, 7.7).

pub mod exchange;
pub mod groups;

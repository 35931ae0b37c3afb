//! Broadcast over a region (MPI 4.1, 7.4).

pub mod groups;
pub mod posted;
pub mod queue;

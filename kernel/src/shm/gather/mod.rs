//! Gather over a region (MPI 4.1, 7.5).

pub mod exchange;
pub mod groups;
pub mod posted;

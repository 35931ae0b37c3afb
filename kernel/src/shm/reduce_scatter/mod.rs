//! Reduce_scatter over a region (MPI 4.1, 7.10).

pub mod exchange;
pub mod groups;

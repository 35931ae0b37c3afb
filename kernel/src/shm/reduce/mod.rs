//! Reduce over a region (MPI 4.1, 7.9).

pub mod exchange;
pub mod groups;
pub mod posted;
pub mod slices;
pub mod tree;

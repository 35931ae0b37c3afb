//! Allreduce over a region (MPI 4.1, 7.9.6).

pub mod doubling;
pub mod groups;
pub mod long_doubling;
pub mod slices;

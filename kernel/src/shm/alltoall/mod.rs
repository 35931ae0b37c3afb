//! Alltoall over a region (MPI 4.1, 7.8).

pub mod groups;
pub mod pairwise;

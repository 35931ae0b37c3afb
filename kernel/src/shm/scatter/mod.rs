//! Scatter over a region (MPI 4.1, 7.6).

pub mod pairwise;

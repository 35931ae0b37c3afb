//! Machines over a region. One folder per collective, one file per algorithm.

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
pub mod engine;
pub mod gather;
pub mod papers;
pub mod reduce;
pub mod reduce_scatter;
pub mod scan;
pub mod scatter;

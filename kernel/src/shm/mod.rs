//! Collectives in shared memory: machines over a region. One folder per collective, one file per algorithm.
//! `papers` has the algorithms of papers P1 and P2, `engine` what the other machines are made of.

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

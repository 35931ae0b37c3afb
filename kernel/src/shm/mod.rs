//! Machines over a region. One folder per collective, one file per algorithm.

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod bcast;
pub(crate) mod copy;
pub mod exchange;
pub(crate) mod fold;
pub mod gather;
pub(crate) mod line;
pub(crate) mod pairs;
pub mod pieces;
pub mod reduce;
pub mod reduce_scatter;
pub mod scatter;
mod set;

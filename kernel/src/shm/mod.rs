//! Machines over a region. One folder per collective, one file per algorithm.

pub mod allreduce;
pub mod bcast;
mod line;

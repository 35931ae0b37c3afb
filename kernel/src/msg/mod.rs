//! Machines over point-to-point messages. One folder per collective, one file per algorithm.

pub mod bcast;

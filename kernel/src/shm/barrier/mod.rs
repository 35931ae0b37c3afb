//! Barriers over a region (MPI 4.1, 7.3; paper P4).
//!
//! They promise more than MPI's: all that any process did before it entered happens before all that
//! any process does after it has left (docs/explanation/memory-model.md, R13).

pub mod central;
pub mod combining;
pub mod dissemination;
pub mod doubling;
pub mod posted;

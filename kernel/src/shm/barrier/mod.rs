//! Barriers over a region (MPI 4.1, 7.3; paper P4).
//!
//! What they promise, beyond MPI: all that any process did before entering happens before all that
//! any process does after leaving (R13).

pub mod central;
pub mod combining;
pub mod dissemination;
pub mod posted;

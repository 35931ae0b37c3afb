//! Reduce over a region (MPI 4.1, 7.9); scans are reductions of fewer ranks (7.11).

pub mod exchange;

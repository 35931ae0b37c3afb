//! Scan and exscan over a region (MPI 4.1, 7.11).

pub mod doubling;
pub mod exchange;
pub mod groups;

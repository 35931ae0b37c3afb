//! Verification of the machines.
pub mod cases;
pub mod chaos;
pub mod explore;
pub mod loom;
pub mod network;
pub mod oracle;
pub mod shadow;

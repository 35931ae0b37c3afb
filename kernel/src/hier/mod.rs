//! Compositions over levels: shared memory inside a node, messages between nodes.

pub mod bcast;

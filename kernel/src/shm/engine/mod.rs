//! What most machines over a region are made of.
//!
//! | file | what |
//! |---|---|
//! | `steps` | an operation as a row of steps: when a process posts, and when it takes |
//! | `exchange` | a message to all: one engine, whose plans are collectives |
//! | `pairwise`, `pairs` | a block for each pair of processes: the other engine, and where blocks travel |
//! | `pieces` | how messages become fragments |
//! | `line` | posted lines: a head and up to 112 bytes |
//! | `copy`, `fold` | between user memory and the segment |

pub(crate) mod copy;
pub mod exchange;
pub(crate) mod fold;
pub(crate) mod line;
pub(crate) mod pairs;
pub mod pairwise;
pub mod pieces;
pub mod steps;

#[cfg(test)]
mod tests;

//! What most machines over a region are made of.
//!
//! | file | what |
//! |---|---|
//! | `steps` | the loop of both engines: in which step a process posts a fragment, and in which it takes others |
//! | `exchange` | the engine for messages to all ranks; each collective is a plan for it |
//! | `pairwise`, `pairs` | the engine for a block of each pair of ranks, and the places through which blocks travel |
//! | `cut` | how messages are cut into fragments, and where these lie |
//! | `pieces` | the parts of a fragment for several readers |
//! | `line` | posted lines: a head and up to 112 bytes |
//! | `line_blocks` | blocks for all other ranks side by side in a line |
//! | `laps` | how a writer passes through its queue |
//! | `loans` | memory that a process lends to others, who copy from where it lies |
//! | `columns` | ranks in groups, and a vector in columns and shares for them |
//! | `copy`, `fold` | copies and reductions between user memory and the segment |

pub(crate) mod columns;
pub(crate) mod copy;
pub mod cut;
pub mod exchange;
pub(crate) mod fold;
pub mod laps;
pub(crate) mod line;
pub mod line_blocks;
pub mod loans;
pub(crate) mod pairs;
pub mod pairwise;
pub mod pieces;
pub mod steps;

#[cfg(test)]
mod tests;

//! The algorithms of papers P1 and P2 (docs/explanation/papers.md): fragments go through queues of slots. A queue's
//! slots are grouped into sets; one rank opens a set, and the set is used again when all ranks have left it.
//!
//! | file | what |
//! |---|---|
//! | `bcast` | P1's broadcast |
//! | `scatter`, `gather`, `allgather` | P2's scatterv, gatherv and allgatherv, for blocks of any lengths |
//! | `sets` | how an operation of P2 goes through the sets |

pub mod allgather;
pub mod bcast;
pub mod gather;
pub mod scatter;
mod sets;

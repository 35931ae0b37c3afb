//! The machines of papers P1 and P2, through queues of slots whose sets are opened and left by all.
//!
//! | file | what |
//! |---|---|
//! | `bcast` | P1's broadcast |
//! | `scatter`, `gather`, `allgather` | P2's, in blocks of any lengths |
//! | `sets` | how an operation of P2 goes through the sets |

pub mod allgather;
pub mod bcast;
pub mod gather;
pub mod scatter;
mod sets;

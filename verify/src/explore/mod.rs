//! An explicit-state explorer of the real machines.
//!
//! All sequentially consistent interleavings of the code that ships: [`Machine::poll`] of the kernel's
//! broadcasts, barriers, allreduce and collectives on blocks, on a segment so small that everything in it is reused within
//! a few operations. Memory orderings are checked by loom; here memory is sequentially consistent.
//!
//! | file | what |
//! |---|---|
//! | `operation`, `blocks`, `exchanges`, `mail` | the processes' operations, and the oracle of their data |
//! | `program`, `series` | operations one after the other, with their data and machines; the processes that run them |
//! | `access`, `payload`, `names` | shared accesses, byte strings by number, names for reports |
//! | `tape` | the region that replays a poll up to its next access; what members lend each other |
//! | `process` | a process as an automaton over accesses |
//! | `world` | the segment, with fingerprint and undo; mutations |
//! | `search` | depth first over all states, or random walks; and the checks |
//! | `order` | all interleavings from one, where everything in it is forced |
//! | `mixes` | families of models, run on several threads within a budget |
//! | `text`, `drawn` | texts of drawn programs as models, and a search through many of them |
//!
//! [`Machine::poll`]: unisono_kernel::machine::Machine::poll

mod access;
mod blocks;
mod drawn;
mod exchanges;
mod hash;
mod mail;
mod mixes;
mod names;
mod operation;
mod order;
mod payload;
mod process;
mod program;
mod search;
mod series;
mod tape;
mod text;
mod world;

pub(crate) use access::Span;
pub use access::{Class, Word};
pub use blocks::Spread;
pub use drawn::{Drawn, TextCheck, drawn};
pub use exchanges::{Collective, Exchange};
pub use mail::{Letter, Mail};
pub use mixes::{Check, Family, Report, alphabet, exchanges, papers, run};
pub(crate) use names::Names;
pub use operation::{Operation, Sharing};
pub use order::order;
pub(crate) use payload::forever;
pub use program::{Lending, Program};
pub(crate) use program::{fold, ordered};
pub use search::{Limits, Outcome, explore, walk};
pub use text::{explore_text, order_text};
pub use world::{Mutation, Words};

//! Shadow state: a region that records which process may touch which bytes, and fails where another one does, whatever
//! their values.
//!
//! | rule | | where a break is found |
//! |---|---|---|
//! | S1 | of two accesses to the same bytes, one of them a write, one happens before the other: release stores and acquiring loads of words order them | at the later access |
//! | S2 | a line is written when every other process's `done`, a slot when every other's `acked`, has passed what it holds; what another process put into a queue is for the queue's owner alone; a set of the papers' queues is opened, and a fragment of it written, when everyone has left the last use; a mailword is put when it was taken | at the write |
//! | | what a rank lends is written by that rank alone; its operation ends when every other rank that has read there has published `acked` past it | at the write, at `done` |
//! | S3 | what is read of a line or slot is published, and the reader has not released it: its own `done` or `acked` has not passed it; what is read of a set was told to the reader, which has not left it; what is taken from a mailword is there | at the read |
//! | | what is read of a loan is lent, the lender's line has announced it, and the reader has not released it, nor the lender ended its operation | at the read, at the lender's `done` |
//!
//! S1 finds accesses without an order in the interleaving that happened, even if their results were right; it holds for
//! all bytes of the segment, and for those that ranks lend. S2 and S3 rely on `done`, `acked` and the processes that
//! leave a set: a process that has released a fragment must not touch it again, even if no process writes there now.
//!
//! A [`Shadowed`] region wraps any other; the machines are generic over regions and have no code for it. The explorer
//! keeps the same records itself (`explore/world.rs`, `explore/order`).

pub(crate) mod bytes;
mod loans;
mod papers;
pub(crate) mod promises;
mod region;

pub use region::{Shadow, Shadowed, Watched};

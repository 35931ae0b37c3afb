//! Collectives over point-to-point messages: one folder per collective, one file per algorithm.
//!
//! An algorithm is a [`schedule`]: a pure function that says, round by round, which messages a process sends and
//! receives, and which copies and folds it does. Each collective's `plan` makes the schedule of one process.
//! [`rounds::Rounds`] is the machine that runs it.
//!
//! ```text
//! let plan = allreduce::plan(seat, bytes, op, in_place, algorithm)?;
//! let scratch = plan.bytes().scratch;            // bytes of working memory that the caller must give
//! let machine = Rounds::of(plan, memory, operation)?;
//! ```
//!
//! Data is contiguous: a caller whose datatype has holes packs first. If the arguments of two processes differ, a
//! message has another length than its receive, which the point-to-point layer reports.

mod algorithm;
pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
mod combine;
pub mod gather;
pub mod halving;
pub mod levels;
mod named;
pub mod parts;
pub mod reduce;
pub mod reduce_scatter;
pub mod ring;
mod rooted;
pub mod rounds;
pub mod scan;
pub mod scatter;
pub mod schedule;

pub use algorithm::Algorithm;
pub use named::{Label, Named, Needs, PlanError};
pub use parts::Parts;
pub use rounds::{Memory, Rounds};
pub use schedule::Schedule;

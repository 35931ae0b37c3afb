//! Collectives over point-to-point messages: one folder per collective, one file per algorithm.
//!
//! An algorithm is a [`schedule`]: a pure function that says what is sent to whom, received from whom and done, round
//! by round. Each collective's `plan` makes the schedule of one process; [`rounds::Rounds`] is the machine that runs
//! it.
//!
//! ```text
//! let plan = allreduce::plan(seat, bytes, op, in_place, algorithm)?;
//! let scratch = plan.bytes().scratch;            // the caller brings so much
//! let machine = Rounds::of(plan, memory, operation)?;
//! ```
//!
//! Data is contiguous: whoever has holes packs first. Two processes whose arguments differ find messages of another
//! length than they expect, which the layer reports.

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

//! `unisono check --large-counts`: each collective with counts above 2³¹, displacements above 2³² bytes, and
//! datatypes whose blocks lie as far apart. Every byte is compared.

mod far;
mod image;
mod moves;
mod reductions;

use super::Tally;
use crate::error::Failure;
use crate::progress::progress;
use crate::team::Team;
use image::Content;
use indicatif::ProgressBar;
use unisono_kernel::comm::Communicator;
use unisono_kernel::region::Params;
use unisono_posix::{Limit, Posix, space};

/// A count of bytes: more than 31 bits, and not a multiple of an element or a fragment.
const LARGE: u64 = (1 << 31) + 11;
/// Bytes from block to block in the vector forms: more than 32 bits.
const FAR: u64 = (1 << 32) + 13;

/// One call.
#[derive(Clone, Copy, Debug)]
struct Case {
    number: usize,
    me: usize,
    size: usize,
}

impl Case {
    /// The data that one rank sends to another.
    const fn sent(self, from: usize, to: usize) -> Content {
        Content::Sent { case: self.number, from, to }
    }
}

/// The calls, one after the other.
#[derive(Debug)]
struct Cases<'a> {
    comm: &'a mut Communicator<Posix>,
    tally: &'a mut Tally,
    bar: &'a ProgressBar,
}

impl Cases<'_> {
    fn run<E: Into<Failure>>(
        &mut self,
        name: String,
        call: impl FnOnce(&mut Communicator<Posix>, Case) -> Result<bool, E>,
    ) -> Result<(), Failure> {
        let (me, size) = (self.comm.rank() as usize, self.comm.size() as usize);
        self.bar.set_message(name.clone());
        let right = call(self.comm, Case { number: self.tally.cases.len(), me, size }).map_err(Into::into)?;
        self.tally.case(name, right);
        Ok(())
    }
}

pub(super) fn check(team: &mut Team, tally: &mut Tally) -> Result<(), Failure> {
    room(team)?;
    let bar = progress(team.rank() == 0, 2);
    let mut joined = team.join(Params::new(team.size()).with_cico())?;
    let mut cases = Cases { comm: &mut joined.communicator, tally, bar: &bar };
    moves::check(&mut cases)?;
    bar.inc(1);
    reductions::check(&mut cases)?;
    bar.finish_and_clear();
    Ok(())
}

/// Refuses to run where memory does not suffice, on all ranks alike, and before any of them takes memory.
fn room(team: &mut Team) -> Result<(), Failure> {
    // A rank has a block for each of them and one more at most: allgather, reduce_scatter_block.
    const SPARE: u64 = 1 << 30;
    let ranks = u64::from(team.size());
    let needed = ranks * (ranks + 1) * LARGE + SPARE;
    let (available, limit) = space::available();
    let least = team.gather(&available)?.into_iter().min().unwrap_or(0);
    if needed <= least {
        return Ok(());
    }
    if team.rank() != 0 {
        return Err(Failure::Silent(1));
    }
    let limit = if limit == Limit::Cgroup { "the control group's memory limit" } else { "the machine's memory" };
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let (needed, least) = (gib(needed), gib(least));
    let ranks = team.size();
    Err(Failure::Words(format!(
        "check --large-counts of {ranks} processes needs {needed:.1} GiB, {least:.1} GiB are available ({limit})"
    )))
}

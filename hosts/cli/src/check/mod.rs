//! `unisono check`: every collective × algorithm × root × in place or not × datatype × size on real processes,
//! against what a sequential program computes; then bad input, which must end in errors on every rank.

mod alltoallw;
mod barrier;
mod bcast;
mod communicators;
mod elements;
mod large;
mod moves;
mod operands;
mod reductions;
mod refused;
mod side;

use crate::args::Check;
use crate::bench::progress;
use crate::error::Failure;
use crate::job::Team;
use serde::{Deserialize, Serialize};
use unisono_kernel::region::Params;
use unisono_kernel::region::layout::Cico;

const FRAGMENT: u64 = 1024;
const SLOTS: u32 = 8;
const QUEUE_SLOTS: u32 = 4;

/// Small queues: a few kilobytes fill them several times.
fn params(ranks: u32) -> Params {
    let cico = Some(Cico { slots: SLOTS, fragment: FRAGMENT, sets: 2 });
    Params { lines: 4, queue_slots: QUEUE_SLOTS, queue_fragment: FRAGMENT, cico, ..Params::new(ranks) }
}

/// What a rank saw.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Tally {
    cases: Vec<(String, bool)>,
}

impl Tally {
    fn case(&mut self, name: String, right: bool) {
        self.cases.push((name, right));
    }
}

pub(crate) fn work(team: &mut Team, args: &Check) -> Result<(), Failure> {
    let mut tally = Tally::default();
    if args.large_counts {
        large::check(team, &mut tally)?;
    } else {
        check(team, &mut tally)?;
    }
    report(team, args, &tally)
}

fn check(team: &mut Team, tally: &mut Tally) -> Result<(), Failure> {
    let bar = progress(team.rank() == 0, 6);
    let mut joined = team.join(params(team.size()))?;
    let comm = &mut joined.communicator;
    let step = |what| {
        bar.inc(1);
        bar.set_message(what);
    };
    bar.set_message("broadcasts");
    bcast::check(comm, tally)?;
    step("moves");
    moves::check(comm, tally)?;
    alltoallw::check(comm, tally)?;
    step("reductions");
    reductions::check(comm, tally)?;
    elements::check(comm, tally)?;
    step("barriers");
    barrier::check(team, comm, tally)?;
    step("communicators");
    communicators::check(comm, tally)?;
    step("bad input");
    refused::check(team, tally)?;
    bar.finish_and_clear();
    Ok(())
}

/// A case passes when it passed on every rank.
fn report(team: &mut Team, args: &Check, tally: &Tally) -> Result<(), Failure> {
    let all = team.gather(&tally.cases.iter().map(|case| case.1).collect::<Vec<_>>())?;
    let mut failed = 0;
    for (index, (name, _)) in tally.cases.iter().enumerate() {
        let wrong: Vec<_> = (0..all.len()).filter(|&r| all[r].get(index) != Some(&true)).collect();
        failed += usize::from(!wrong.is_empty());
        if team.rank() == 0 && (args.verbose || !wrong.is_empty()) {
            println!(
                "{} {name}{}",
                if wrong.is_empty() { "ok    " } else { "FAILED" },
                if wrong.is_empty() { String::new() } else { format!(" on ranks {wrong:?}") }
            );
        }
    }
    if team.rank() == 0 {
        println!("{} passed, {failed} failed", tally.cases.len() - failed);
    }
    if failed == 0 { Ok(()) } else { Err(Failure::Silent(1)) }
}

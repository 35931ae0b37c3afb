//! `unisono check`: every collective × algorithm × root (of many: some) × in place or not × datatype × size on real processes,
//! against what a sequential program computes; then bad input, which must end in errors on every rank.

mod alltoallw;
mod barrier;
mod bcast;
mod communicators;
mod elements;
mod large;
mod messages;
mod moves;
mod operands;
pub(crate) mod random;
mod reductions;
mod refused;
mod side;

use crate::args::Check;
use crate::error::Failure;
use crate::form::Form;
use crate::job::Job;
use crate::out::outln;
use crate::progress::progress;
use crate::team::{self, Team};
use serde::{Deserialize, Serialize};
use unisono_kernel::Rank;
use unisono_kernel::call::Call;
use unisono_kernel::comm::Communicator;
use unisono_kernel::error::Error;
use unisono_kernel::region::{Cico, Mailboxes, Params};
use unisono_posix::Posix;

const FRAGMENT: u64 = 1024;
const SLOTS: u32 = 8;
const QUEUE_SLOTS: u32 = 4;

/// Small queues: a few kilobytes fill them several times.
fn params(ranks: u32) -> Params {
    let cico = Some(Cico { slots: SLOTS, fragment: FRAGMENT, sets: 2 });
    let mailboxes = Some(Mailboxes { messages: 4, slots: 2, fragment: FRAGMENT - 24 });
    Params { lines: 4, queue_slots: QUEUE_SLOTS, queue_fragment: FRAGMENT, cico, mailboxes, ..Params::new(ranks) }
}

/// From which ranks rooted collectives are checked: from all of up to 16, else from the ends, beside them and in the middle. Each
/// root is thousands of calls, of which many processes on few cores take their time.
fn roots(size: u32) -> Vec<Rank> {
    let some = [0, 1, size / 2, size.saturating_sub(2), size.saturating_sub(1)];
    if size <= 16 { (0..size).collect() } else { some.into() }
}

/// What a rank found.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Tally {
    /// The form of the calls in the cases to come.
    form: Form,
    cases: Vec<(String, bool)>,
}

impl Tally {
    fn case(&mut self, name: String, right: bool) {
        let name = if self.form == Form::Blocking { name } else { format!("{} {name}", self.form.name()) };
        self.cases.push((name, right));
    }
}

/// A communicator on which all calls are made in one form.
#[derive(Debug)]
struct Caller<'c> {
    comm: &'c mut Communicator<Posix>,
    form: Form,
}

impl Caller<'_> {
    const fn rank(&self) -> u32 {
        self.comm.rank()
    }

    const fn size(&self) -> u32 {
        self.comm.size()
    }

    fn run(&mut self, call: Call<'_>) -> Result<(), Error> {
        self.form.run(self.comm, call)
    }
}

pub(crate) fn run(args: Check) -> Result<(), Failure> {
    if args.random.is_some() || args.program.is_some() {
        return random::run(&args);
    }
    team::launch(args.ranks, args.bind, args.memory.variables(), &Job::Check(args))
}

pub(crate) fn work(team: &mut Team, args: &Check) -> Result<(), Failure> {
    let mut tally = Tally::default();
    if args.large_counts {
        large::check(team, &mut tally)?;
    } else {
        check(team, args, &mut tally)?;
    }
    report(team, args, &tally)
}

fn check(team: &mut Team, args: &Check, tally: &mut Tally) -> Result<(), Failure> {
    let forms: Vec<_> = Form::ALL.into_iter().filter(|form| args.form.iter().any(|forms| forms.has(*form))).collect();
    let bar = progress(team.rank() == 0, 4 * forms.len() as u64 + 3);
    let mut joined = team.join(params(team.size()))?;
    let step = |form: Form, what| {
        bar.set_message(format!("{}: {what}", form.name()));
        bar.inc(1);
    };
    for form in forms {
        tally.form = form;
        let comm = &mut Caller { comm: &mut joined.communicator, form };
        step(form, "broadcasts");
        bcast::check(comm, tally)?;
        step(form, "moves");
        moves::check(comm, tally)?;
        alltoallw::check(comm, tally)?;
        step(form, "reductions");
        reductions::check(comm, tally)?;
        elements::check(comm, tally)?;
        step(form, "barriers");
        barrier::check(team, comm, tally)?;
    }
    tally.form = Form::Blocking;
    step(tally.form, "messages");
    messages::check(team, &mut joined, tally)?;
    step(tally.form, "communicators");
    communicators::check(&mut joined.communicator, tally)?;
    step(tally.form, "bad input");
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
            outln!(
                "{} {name}{}",
                if wrong.is_empty() { "ok    " } else { "FAILED" },
                if wrong.is_empty() { String::new() } else { format!(" on ranks {wrong:?}") }
            )?;
        }
    }
    if team.rank() == 0 {
        outln!("{} passed, {failed} failed", tally.cases.len() - failed)?;
    }
    if failed == 0 { Ok(()) } else { Err(Failure::Silent(1)) }
}

#[cfg(test)]
mod tests {
    use super::roots;

    #[test]
    fn few_ranks_are_all_roots_and_of_many_some() {
        assert_eq!(roots(1), [0]);
        assert_eq!(roots(16), (0..16).collect::<Vec<_>>());
        assert_eq!(roots(17), [0, 1, 8, 15, 16]);
        assert_eq!(roots(64), [0, 1, 32, 62, 63]);
    }
}

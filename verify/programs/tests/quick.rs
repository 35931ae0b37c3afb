//! Small drawn programs, the same in every run, which `make mutants` runs first on a changed line (`.ci/mutants`).

use std::time::Duration;
use unisono_kernel::region::Base;
use unisono_local::Segment;
use unisono_programs::draw::Budget;
use unisono_programs::judge::judge;
use unisono_programs::lending::{Ledger, Lending};
use unisono_programs::{Program, threads};

/// The time for a step, which takes microseconds.
const LIMIT: Duration = Duration::from_secs(4);

fn run(seeds: std::ops::Range<u64>, budget: impl Fn(u64) -> Budget, turns: bool) {
    for seed in seeds {
        let program = Program::draw(seed, &budget(seed));
        let reports = if turns { threads::run_in_turns(&program, LIMIT, seed) } else { threads::run(&program, LIMIT) };
        judge(&program, &reports.unwrap()).unwrap_or_else(|words| panic!("seed {seed}:\n{words}\n{program}"));
    }
}

#[test]
fn small_programs_pass_in_turns() {
    run(1000..1016, |seed| Budget { calls: 8, bytes: 3000, pause: 0, ..Budget::new(2 + (seed % 4) as u32) }, true);
}

#[test]
fn small_programs_pass() {
    run(2000..2016, |seed| Budget { bytes: 3000, pause: 0, ..Budget::new(2 + (seed % 5) as u32) }, false);
}

#[test]
fn larger_programs_pass() {
    run(3000..3006, |seed| Budget { calls: 12, bytes: 40_000, pause: 0, ..Budget::new(2 + (seed % 5) as u32) }, false);
}

#[test]
fn programs_with_deaths_are_told() {
    run(
        4000..4012,
        |seed| Budget { calls: 8, bytes: 3000, pause: 0, kills: true, ..Budget::new(2 + (seed % 3) as u32) },
        false,
    );
}

/// Ranks lend what a seed says, and others can read it, or not, as that says too.
fn lent(seeds: std::ops::Range<u64>, bytes: u64, kills: bool) {
    for seed in seeds {
        let program = Program::draw(seed, &Budget { bytes, pause: 0, kills, ..Budget::new(2 + (seed % 5) as u32) });
        let ledger = Ledger::default();
        let view = |(comm, segment, _): (usize, &Segment, Base), rank| {
            Lending::new(segment.clone(), segment.layout(), &ledger, (comm, rank), Some(seed))
        };
        let free = threads::run_on(&program, LIMIT, &view).unwrap();
        judge(&program, &free).unwrap_or_else(|words| panic!("seed {seed}:\n{words}\n{program}"));
        if kills {
            continue;
        }
        let in_turns = threads::run_in_turns_on(&program, LIMIT, seed, &view).unwrap();
        judge(&program, &in_turns).unwrap_or_else(|words| panic!("in turns, seed {seed}:\n{words}\n{program}"));
    }
}

#[test]
fn programs_whose_ranks_lend_pass() {
    let seeds = std::env::var("LENT_PROGRAMS").map_or(24, |number| number.parse().unwrap());
    lent(5000..5000 + seeds, 6000, false);
}

#[test]
fn programs_whose_ranks_lend_and_die_are_told() {
    lent(6000..6024, 6000, true);
}

/// An allreduce by groups lends to the ranks of the group alone. Of those of its column, from which a rank takes later, it waits for
/// the line: once it waited for the fragment, which nobody posted whose group had read it where it lay.
#[test]
fn allreduces_by_groups_lend_in_the_group() {
    let text =
        "ranks RANKS\nseed SEED\nsegment 2 4 64 0 0 0 0 0 0 0\ncall 0 0 allreduce groups 0 0 sum8 1 0 COUNT\n* run 0\n";
    let cases = [4, 6].into_iter().flat_map(|ranks| [1, 3, 90].map(|count| (ranks, count)));
    for (seed, (ranks, count)) in (0..200).flat_map(|seed| cases.clone().map(move |case| (seed, case))) {
        let numbers = [("RANKS", ranks), ("SEED", seed), ("COUNT", count)];
        let text = numbers.iter().fold(text.to_owned(), |text, (word, number)| text.replace(word, &number.to_string()));
        let program = Program::parse(&text).unwrap();
        let ledger = Ledger::default();
        let view = |(comm, segment, _): (usize, &Segment, Base), rank| {
            Lending::new(segment.clone(), segment.layout(), &ledger, (comm, rank), Some(seed))
        };
        let reports = threads::run_on(&program, LIMIT, &view).unwrap();
        judge(&program, &reports).unwrap_or_else(|words| panic!("{words}\n{program}"));
    }
}

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

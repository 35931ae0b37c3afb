//! Texts of programs in the explorer: one with all forms, and small drawn ones.

use std::time::{Duration, Instant};
use unisono_programs::Program;
use unisono_programs::draw::Budget;
use unisono_verify::explore::{Drawn, Limits, Mutation, drawn, explore_text, order_text};

/// States of one program.
const STATES: u64 = 200_000;

fn limits(seconds: u64) -> Limits {
    Limits { states: STATES, until: Some(Instant::now() + Duration::from_secs(seconds)) }
}

/// Programs for the seconds that `draw` takes, and `more`, until one is complete: other work may slow the first ones.
fn until_complete(draw: impl Fn(u64) -> Drawn) -> Drawn {
    let first = draw(0);
    if first.complete == 0 && first.failure.is_none() { draw(60) } else { first }
}

#[test]
fn drawn_programs_pass_in_all_interleavings() {
    for (ranks, seed, seconds) in [(2, 0, 3), (3, 1 << 32, 2)] {
        let all = until_complete(|more| drawn(explore_text, |_| Budget::tiny(ranks), seed, limits(seconds + more), 1));
        println!("{ranks} ranks: {all}");
        assert_eq!(all.failure, None);
        assert!(all.complete > 0);
    }
}

#[test]
fn drawn_programs_of_blocking_calls_pass_by_order() {
    let budget = |seed| Budget { requests: false, ..Budget::tiny(2 + (seed % 4) as u32) };
    // A long program leaves time for others.
    let limits = |more| Limits { states: STATES / 10, ..limits(2 + more) };
    let all = until_complete(|more| drawn(order_text, budget, 0, limits(more), 1));
    println!("{all}");
    assert_eq!(all.failure, None);
    assert!(all.complete > 0);
}

/// Requests of two communicators that are waited for in different orders, a test, a persistent one, a blocking call beside
/// requests.
const FORMS: &str = "ranks 2
seed 7
segment 2 2 64 0 0 0 0 0 0 0
call 0 0 dup auto 0 0 none 1 0 1
call 1 0 bcast auto 1 0 none 1 0 140
call 2 1 alltoallv auto 0 0 none 1 0 0 150 3 0
call 3 1 barrier auto 0 0 none 1 0
call 4 0 allreduce auto 0 0 sum64 8 0 2
* run 0
* start 1
* init 2
1 wait 1
* start 2
* test 2
* run 3
* poll 2
0 wait 1
* free 2
* run 4
";

#[test]
fn all_forms_pass_in_all_interleavings() {
    let outcome = explore_text(&Program::parse(FORMS).unwrap(), Mutation::None, Limits::default()).unwrap();
    println!("{} states", outcome.states);
    assert_eq!((outcome.failure, outcome.complete), (None, true));
}

/// One block, in a slot: a rank that finds the writer's line at once takes it in the short loop, and one that waits for the line in the
/// long one.
const SLOT: &str = "ranks 5
seed 3621290370
segment 4 1 192 0 0 0 0 0 0 0
call 0 0 alltoallv auto 0 0 none 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0
* run 0
";

#[test]
fn a_rank_that_has_waited_reads_as_one_that_has_not() {
    let outcome = order_text(&Program::parse(SLOT).unwrap(), Mutation::None, Limits::default()).unwrap();
    assert_eq!((outcome.failure, outcome.complete), (None, true));
}

#[test]
fn faults_are_found() {
    let lost = |words| Mutation::Lose(words, None);
    let faults: [(&str, Mutation); 5] = [
        ("deadlock", lost(|layout, word| (0..2).any(|rank| layout.ready(rank).offset() == word.offset))),
        ("deadlock", lost(|layout, word| (0..2).any(|rank| layout.round(rank, 0).offset() == word.offset))),
        ("S2", Mutation::Forge(|layout, word| (0..2).any(|rank| layout.acked(rank).offset() == word.offset), u64::MAX)),
        ("barrier 4", Mutation::Forge(|layout, word| layout.round(0, 0).offset() == word.offset, u64::MAX)),
        ("lost wake-up", Mutation::Deafen(|layout, word| layout.ready(1).offset() == word.offset)),
    ];
    // Its signals are words that nothing else writes.
    let program = Program::parse(&FORMS.replace("barrier auto", "barrier dissemination")).unwrap();
    for (wanted, mutation) in faults {
        let outcome = explore_text(&program, mutation, Limits::default()).unwrap();
        let failure = outcome.failure.unwrap_or_default();
        assert!(failure.lines().next().is_some_and(|fault| fault.contains(wanted)), "{wanted}: {failure}");
    }
}

//! Drawn programs between threads, a quarter of them in turns, on segments with a shadow: they keep its rules. In half
//! of them ranks lend.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use unisono_kernel::region::Base;
use unisono_local::Segment;
use unisono_programs::draw::Budget;
use unisono_programs::judge::judge;
use unisono_programs::lending::{Ledger, Lending};
use unisono_programs::{Program, threads};
use unisono_verify::shadow::{Shadow, Shadowed};

/// Time for a program, which takes milliseconds on a machine that does nothing else.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs the program of a seed; the error is the broken rule, the wrong data, or the rank that did not end in time.
fn run(ranks: u32, seed: u64) -> Result<(), String> {
    let program = Program::draw(seed, &Budget::new(ranks));
    let (ledger, lends) = (Ledger::default(), ((seed + u64::from(ranks)) % 2 == 1).then_some(seed));
    let shadows = Mutex::new(BTreeMap::<usize, Shadow>::new());
    let view = |(comm, segment, base): (usize, &Segment, Base), rank| {
        let layout = segment.layout();
        let shadow = shadows.lock().unwrap().entry(comm).or_insert_with(|| Shadow::new(*layout, base)).clone();
        let lending = Lending::new(segment.clone(), layout, &ledger, (comm, rank), lends);
        Shadowed::new(lending, &shadow, layout, rank)
    };
    let reports = match seed % 4 {
        3 => threads::run_in_turns_on(&program, LIMIT, seed, &view),
        _ => threads::run_on(&program, LIMIT, &view),
    };
    judge(&program, &reports.unwrap()).map_err(|words| format!("{ranks} ranks, seed {seed}: {words}"))
}

/// As many programs as fit in five seconds, or in `UNISONO_SHADOW_SECONDS`.
#[test]
fn drawn_programs_keep_the_rules() {
    let seconds = std::env::var("UNISONO_SHADOW_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(5);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut programs = 0;
    while programs == 0 || Instant::now() < until {
        assert_eq!(run(2 + (programs % 5) as u32, programs / 5), Ok(()));
        programs += 1;
    }
    println!("{programs} programs kept the rules");
}

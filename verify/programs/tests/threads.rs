//! Programs between threads: those that once failed, and some hundreds of drawn ones.

use std::path::Path;
use std::time::Duration;
use unisono_programs::draw::Budget;
use unisono_programs::judge::judge;
use unisono_programs::{Program, threads};

/// For a step that takes microseconds, on a machine that does much else.
const LIMIT: Duration = Duration::from_secs(20);

fn run(program: &Program) -> Result<(), String> {
    let reports = threads::run(program, LIMIT).map_err(|refusal| refusal.to_string())?;
    judge(program, &reports)
}

/// Each once failed: the comment in its first line says how.
#[test]
fn what_was_found_passes_now() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("found");
    let mut files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let program = Program::parse(&text).unwrap_or_else(|wrong| panic!("{}: {wrong}", file.display()));
        for _ in 0..3 {
            run(&program).unwrap_or_else(|words| panic!("{}:\n{words}", file.display()));
        }
    }
}

/// Drawn programs of two to six ranks; which fails is said by its seed.
#[test]
fn drawn_programs_pass() {
    for seed in 0..150 {
        let ranks = 2 + (seed % 5) as u32;
        let kills = seed % 4 == 0;
        let program = Program::draw(seed, &Budget { kills, pause: 100, ..Budget::new(ranks) });
        run(&program).unwrap_or_else(|words| panic!("seed {seed}, {ranks} ranks:\n{words}\n{program}"));
    }
}

/// The same interleavings each time, down to single accesses to a segment; short, as most of it is handing over.
#[test]
fn drawn_programs_pass_in_turns() {
    for seed in 0..150 {
        let ranks = 2 + (seed % 4) as u32;
        let budget = Budget { calls: 8, bytes: 6000, pause: 20, ..Budget::new(ranks) };
        let program = Program::draw(seed, &budget);
        let turns = |seed| threads::run_in_turns(&program, LIMIT, seed).map_err(|refusal| refusal.to_string());
        let reports = turns(seed).unwrap();
        judge(&program, &reports).unwrap_or_else(|words| panic!("seed {seed}, {ranks} ranks:\n{words}\n{program}"));
    }
}

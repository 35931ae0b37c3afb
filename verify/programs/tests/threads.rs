//! Programs between threads: those that once failed, and some hundreds of drawn ones.

use std::path::Path;
use std::time::Duration;
use unisono_programs::draw::Budget;
use unisono_programs::judge::judge;
use unisono_programs::{Program, threads};

/// For a program that takes milliseconds, on a machine that does much else.
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
    assert!(files.len() >= 3);
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
    for seed in 0..300 {
        let ranks = 2 + (seed % 5) as u32;
        let kills = seed % 4 == 0;
        // The kernel's blocking calls move no requests of other communicators.
        let program = Program::draw(seed, &Budget { kills, moving: false, pause: 100, ..Budget::new(ranks) });
        run(&program).unwrap_or_else(|words| panic!("seed {seed}, {ranks} ranks:\n{words}\n{program}"));
    }
}

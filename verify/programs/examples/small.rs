//! Draws small programs and runs them between threads: for checkers that take a thousand times as long.
//!
//! `small SEED COUNT SECONDS`: so many programs from a seed on, of two or three ranks; each may take so long.

use std::time::Duration;
use unisono_programs::draw::Budget;
use unisono_programs::judge::judge;
use unisono_programs::{Program, threads};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<Vec<u64>, _>>()?;
    let [first, count, seconds] = numbers[..] else { return Err("small SEED COUNT SECONDS".into()) };
    for seed in first..first + count {
        let budget = Budget { calls: 3, bytes: 300, pause: 0, segments: false, ..Budget::new(2 + (seed % 2) as u32) };
        let program = Program::draw(seed, &budget);
        let reports = threads::run(&program, Duration::from_secs(seconds)).map_err(|refusal| refusal.to_string())?;
        judge(&program, &reports).map_err(|words| format!("seed {seed}: {words}\n{program}"))?;
    }
    Ok(())
}

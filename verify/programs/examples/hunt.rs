//! Draws programs and runs them between threads until one fails; prints its seed, and the program shrunk.
//!
//! `hunt RANKS SEED SECONDS [turns] [kills] [unmoved] [lent] [NOT...]`: with `turns`, one rank moves at a time; with `kills`, a rank of some is killed; with `unmoved`, none needs
//! blocking calls that move requests of other communicators; with `lent`, ranks lend what a seed says; failures whose words hold a NOT are passed over.

use std::time::{Duration, Instant};
use unisono_kernel::region::Base;
use unisono_local::Segment;
use unisono_programs::draw::Budget;
use unisono_programs::judge::judge;
use unisono_programs::lending::{Ledger, Lending};
use unisono_programs::shrink::shrink_by_running;
use unisono_programs::{Program, threads};

/// Milliseconds for a step, on a machine that does much else.
const LIMIT: u64 = 5000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut number = || {
        args.next()
            .ok_or("hunt RANKS SEED SECONDS [turns] [kills] [unmoved] [lent] [NOT...]")?
            .parse::<u64>()
            .map_err(Box::from)
    };
    let (ranks, first, seconds): (u64, u64, u64) = match (number(), number(), number()) {
        (Ok(ranks), Ok(seed), Ok(seconds)) => (ranks, seed, seconds),
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => return Err(error),
    };
    let mut not: Vec<String> = args.collect();
    let mut given = |word: &str| not.iter().position(|not| not == word).map(|at| not.remove(at)).is_some();
    let (turns, kills, moving) = (given("turns"), given("kills"), !given("unmoved"));
    let lent = given("lent");
    let run = |program: &Program, limit: u64| {
        let limit = Duration::from_millis(limit);
        let (seed, ledger) = (program.seed.into(), Ledger::default());
        let view = |(comm, segment, _): (usize, &Segment, Base), rank| {
            Lending::new(segment.clone(), segment.layout(), &ledger, (comm, rank), lent.then_some(seed))
        };
        let reports = if turns {
            threads::run_in_turns_on(program, limit, seed, &view)
        } else {
            threads::run_on(program, limit, &view)
        };
        let reports = reports.map_err(|refusal| refusal.to_string())?;
        judge(program, &reports)
    };
    let begin = Instant::now();
    for seed in first.. {
        if begin.elapsed().as_secs() >= seconds {
            println!("{} programs, none failed", seed - first);
            break;
        }
        let mut budget = Budget { kills, moving, ..Budget::new(ranks as u32) };
        if turns {
            (budget.calls, budget.bytes, budget.pause) = (8, 20_000, 20);
        }
        if lent {
            (budget.bytes, budget.pause) = (6000, 0);
        }
        let program = Program::draw(seed, &budget);
        let Err(words) = run(&program, 10_000) else { continue };
        if not.iter().any(|not| words.contains(not)) {
            continue;
        }
        println!("seed {seed}, after {:.1} s and {} programs:\n{words}", begin.elapsed().as_secs_f64(), seed - first);
        let until = Instant::now() + Duration::from_secs(60);
        let (short, words) = shrink_by_running(program, words, (8, until), |program| run(program, LIMIT / 5));
        println!("shrunk:\n{words}\n{short}");
        break;
    }
    Ok(())
}

//! `unisono bench comm`: the time to make a communicator and to free it.
//!
//! | subject | what one rank does |
//! |---|---|
//! | `dup` | dup, free |
//! | `split` | split into two halves, free |
//! | `create_group` | create a group of all ranks, free |
//!
//! Wall time ÷ iterations of the slowest rank: communicators are made one after the other, with nothing between.

use super::clock::{Clock, now};
use super::methods::{Sample, agree, summary};
use crate::args::Bench;
use crate::error::Failure;
use crate::out::outln;
use crate::team::Team;
use serde_json::json;
use unisono_kernel::op::Op;
use unisono_kernel::region::Params;
use unisono_posix::{Intracomm, PosixError};

const SUBJECTS: [&str; 3] = ["dup", "split", "create_group"];
const REPETITIONS: u64 = 11;
/// Nanoseconds that a subject's measurement takes, roughly.
const BUDGET: f64 = 5e8;

fn make(world: &mut Intracomm, subject: &str, everyone: &[u32]) -> Result<Intracomm, PosixError> {
    match subject {
        "dup" => world.dup(),
        // All ranks have a color, so each gets a communicator.
        "split" => match world.split(Some(world.rank() % 2), 0)? {
            Some(part) => Ok(part),
            None => world.dup(),
        },
        _ => world.create_group(everyone, 0),
    }
}

/// Makes a communicator, and checks its members and an allreduce.
fn verify(world: &mut Intracomm, subject: &str, everyone: &[u32]) -> Result<u64, Failure> {
    let mut comm = make(world, subject, everyone)?;
    let halves = subject == "split";
    let members: Vec<u32> = everyone.iter().copied().filter(|r| !halves || r % 2 == world.rank() % 2).collect();
    let mut sum = u64::from(world.rank()).to_ne_bytes();
    comm.allreduce_in_place(&mut sum, Op::SUM_U64)?;
    let wanted: u64 = members.iter().map(|&rank| u64::from(rank)).sum();
    if comm.place().members() == members && u64::from_ne_bytes(sum) == wanted {
        Ok(comm.place().bytes())
    } else {
        Err(Failure::Words(format!("{subject}: wrong members")))
    }
}

/// A rank of `unisono bench comm`.
pub(crate) fn work(team: &mut Team, args: &Bench) -> Result<(), Failure> {
    let world = &mut team.join(Params::new(args.ranks))?.communicator;
    let everyone: Vec<u32> = (0..world.size()).collect();
    let speaker = team.rank() == 0;
    if speaker && !args.json {
        outln!(
            "{:<14} {:>5} {:>11} {:>11} {:>11} {:>14}",
            "subject",
            "ranks",
            "p50 µs",
            "p99 µs",
            "max µs",
            "KiB each"
        )?;
    }
    for subject in SUBJECTS {
        let bytes = verify(world, subject, &everyone)?;
        let sample = measure(team, world, subject, &everyone, args.iterations)?;
        verify(world, subject, &everyone)?;
        if !speaker {
            continue;
        }
        let Sample { iterations, p50, p99, max } = sample;
        if args.json {
            let (host, ranks) = ("posix", args.ranks);
            let row = json!({"collective": subject, "host": host, "method": "rate", "ranks": ranks, "bytes_each": bytes,
                "iterations": iterations, "p50_ns": p50, "p99_ns": p99, "max_ns": max});
            outln!("{row}")?;
        } else {
            let [p50, p99, max] = [p50, p99, max].map(|ns| ns / 1e3);
            let kib = bytes as f64 / 1024.0;
            outln!("{subject:<14} {:>5} {p50:>11.3} {p99:>11.3} {max:>11.3} {kib:>14.0}", args.ranks)?;
        }
    }
    world.barrier()?;
    let leased = team.gather(&world.place().usage().leased)?;
    if leased.iter().any(|&leased| leased != 0) {
        return Err(Failure::Words(format!("bytes leased at the end, by rank: {leased:?}, must be 0")));
    }
    Ok(())
}

fn measure(
    team: &mut Team,
    world: &mut Intracomm,
    subject: &str,
    everyone: &[u32],
    iterations: Option<u64>,
) -> Result<Sample, Failure> {
    const TRIES: u64 = 50;
    let clock = Clock::calibrate();
    let run = |world: &mut Intracomm, times: u64| -> Result<f64, Failure> {
        world.barrier()?;
        let begin = now();
        for _ in 0..times {
            make(world, subject, everyone)?.free();
        }
        Ok(clock.ns(begin, now()) / times as f64)
    };
    let estimate = run(world, TRIES)?;
    let fitting = (BUDGET / REPETITIONS as f64 / estimate) as u64;
    let iterations = agree(world, iterations.unwrap_or(fitting).clamp(1, 1_000_000))?;
    let mine = (0..REPETITIONS).map(|_| run(world, iterations)).collect::<Result<Vec<_>, _>>()?;
    let all = team.gather(&mine)?;
    let slowest = |i: usize| all.iter().filter_map(|rank| rank.get(i)).copied().fold(0.0, f64::max);
    Ok(summary((0..mine.len()).map(slowest).collect(), iterations * REPETITIONS))
}

//! `unisono check`: every collective × algorithm × root × size × datatype on real processes,
//! against what a sequential program computes; then bad input, which must end in errors on every rank.

use crate::args::Check;
use crate::bench::{clock, progress};
use crate::error::Failure;
use crate::job::Team;
use serde::{Deserialize, Serialize};
use std::ffi::c_void;
use unisono_kernel::Rank;
use unisono_kernel::datatype::{Data, Datatype};
use unisono_kernel::driver::Communicator;
use unisono_kernel::error::{Argument, Cause, Error, PollError};
use unisono_kernel::op::{Op, User};
use unisono_kernel::region::Params;
use unisono_kernel::region::layout::Cico;
use unisono_kernel::select::{BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::shm::bcast::posted;
use unisono_posix::Posix;

const FRAGMENT: u64 = 1024;
const SLOTS: u32 = 8;
const BCASTS: [&str; 9] = [
    "auto",
    "posted",
    "queue",
    "cico-flat",
    "cico-chain",
    "cico-binary",
    "cico-binomial",
    "cico-kary-3",
    "cico-knomial-3",
];
const BARRIERS: [&str; 4] = ["dissemination", "central", "combining", "combining-2"];

/// Small queues: a few kilobytes fill them several times.
fn params(ranks: u32) -> Params {
    let cico = Some(Cico { slots: SLOTS, fragment: FRAGMENT, sets: 2 });
    Params { lines: 4, queue_slots: 4, queue_fragment: FRAGMENT, cico, ..Params::new(ranks) }
}

/// What a rank saw.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Tally {
    cases: Vec<(String, bool)>,
}

impl Tally {
    fn case(&mut self, name: String, right: bool) {
        self.cases.push((name, right));
    }
}

pub(crate) fn work(team: &mut Team, args: &Check) -> Result<(), Failure> {
    let speaker = team.rank() == 0;
    let mut tally = Tally::default();
    let bar = progress(speaker, 4);
    let mut joined = team.join(params(team.size()))?;
    bar.set_message("broadcasts");
    bcasts(&mut joined.communicator, &mut tally)?;
    bar.inc(1);
    bar.set_message("allreduces");
    allreduces(&mut joined.communicator, &mut tally)?;
    bar.inc(1);
    bar.set_message("barriers");
    barriers(team, &mut joined.communicator, &mut tally)?;
    bar.inc(1);
    bar.set_message("bad input");
    bad_input(team, &mut tally)?;
    bar.finish_and_clear();
    report(team, args, &tally)
}

/// A case passes when it passed on every rank.
fn report(team: &mut Team, args: &Check, tally: &Tally) -> Result<(), Failure> {
    let all = team.gather(tally)?;
    let mut failed = 0;
    for (index, (name, _)) in tally.cases.iter().enumerate() {
        let wrong: Vec<_> = (0..all.len()).filter(|&r| !all[r].cases.get(index).is_some_and(|case| case.1)).collect();
        failed += usize::from(!wrong.is_empty());
        if team.rank() == 0 && (args.verbose || !wrong.is_empty()) {
            println!(
                "{} {name}{}",
                if wrong.is_empty() { "ok    " } else { "FAILED" },
                if wrong.is_empty() { String::new() } else { format!(" on ranks {wrong:?}") }
            );
        }
    }
    if team.rank() == 0 {
        println!("{} passed, {failed} failed", tally.cases.len() - failed);
    }
    if failed == 0 { Ok(()) } else { Err(Failure::Silent(1)) }
}

/// Byte `at` of the message of case `case`.
fn pattern(case: usize, at: usize) -> u8 {
    (case.wrapping_mul(31) ^ at.wrapping_mul(7) ^ (at >> 8)) as u8
}

fn bcasts(comm: &mut Communicator<Posix>, tally: &mut Tally) -> Result<(), Failure> {
    let b = FRAGMENT * u64::from(SLOTS);
    let f = FRAGMENT;
    let sizes = [0, 1, 8, posted::MOST, posted::MOST + 1, f - 1, f, f + 1, b - 1, b, b + 1, 3 * b + 5];
    for name in BCASTS {
        let algorithm =
            BcastAlgorithm::from_name(name).ok_or_else(|| Failure::Words(format!("no algorithm {name}")))?;
        for root in 0..comm.size() {
            for bytes in sizes {
                if algorithm == BcastAlgorithm::Posted && bytes > posted::MOST {
                    continue;
                }
                for typed in [false, true] {
                    let right = bcast(comm, algorithm, root, bytes, typed, tally.cases.len())?;
                    let types = if typed { "vector to indexed" } else { "bytes" };
                    tally.case(format!("bcast {name} root {root} {bytes} B {types}"), right);
                }
            }
        }
    }
    Ok(())
}

/// One broadcast; typed: every third byte at the root, pairs of bytes backwards elsewhere.
fn bcast(
    comm: &mut Communicator<Posix>,
    algorithm: BcastAlgorithm,
    root: Rank,
    bytes: u64,
    typed: bool,
    case: usize,
) -> Result<bool, Failure> {
    const HOLE: u8 = 0xa5;
    let n = bytes as usize;
    let at_root = comm.rank() == root;
    let displacements: Vec<u64> = (0..bytes).rev().map(|i| 2 * i).collect();
    let (room, datatype) = match (typed, at_root) {
        (false, _) => (n, Datatype::BYTE),
        (true, true) => (3 * n, Datatype::Vector { blocks: bytes, block: 1, stride: 3 }),
        (true, false) => (2 * n, Datatype::Indexed { block: 1, displacements: &displacements }),
    };
    let place = |i: usize| match (typed, at_root) {
        (false, _) => i,
        (true, true) => 3 * i,
        (true, false) => displacements[i] as usize,
    };
    let mut memory = vec![HOLE; room];
    if at_root {
        (0..n).for_each(|i| memory[place(i)] = pattern(case, i));
    }
    let mut wanted = vec![HOLE; room];
    (0..n).for_each(|i| wanted[place(i)] = pattern(case, i));
    let count = if typed { 1 } else { bytes };
    comm.bcast_with(Data::typed(&mut memory, count, datatype)?, root, algorithm)?;
    Ok(memory == wanted)
}

/// Composition of affine maps `x ↦ a·x + b`, modulo 2⁶⁴: associative, not commutative.
unsafe extern "C" fn compose(left: *const c_void, right: *mut c_void, count: u64, _: *mut c_void) {
    let (left, right) = (left.cast::<[u64; 2]>(), right.cast::<[u64; 2]>());
    for i in 0..count as usize {
        // SAFETY: the kernel passes `count` elements of two aligned words.
        let l = unsafe { left.wrapping_add(i).read() };
        // SAFETY: as above, and nobody else's during the call.
        let r = unsafe { &mut *right.wrapping_add(i) };
        *r = affine(l, *r);
    }
}

fn affine(l: [u64; 2], r: [u64; 2]) -> [u64; 2] {
    [l[0].wrapping_mul(r[0]), l[0].wrapping_mul(r[1]).wrapping_add(l[1])]
}

fn allreduces(comm: &mut Communicator<Posix>, tally: &mut Tally) -> Result<(), Failure> {
    let (rank, size) = (comm.rank(), comm.size());
    // SAFETY: `compose` reads and writes `count` elements of 16 bytes and nothing else.
    let user = Op::User(unsafe { User::new(compose, std::ptr::null_mut(), 16, false) });
    for words in 0..=6usize {
        let word = |r: Rank, i: usize| u64::from(r + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i as u64);
        let float = |r: Rank, i: usize| 0.1 * f64::from(r + 1) + i as f64 * 1e-3;
        let fold = |mut sum: Vec<u64>, next: &dyn Fn(Rank) -> Vec<u64>, op: &dyn Fn(&mut Vec<u64>, Vec<u64>)| {
            (1..size).for_each(|r| op(&mut sum, next(r)));
            sum
        };
        let integers = |r: Rank| (0..words).map(|i| word(r, i)).collect::<Vec<_>>();
        let floats = |r: Rank| (0..words).map(|i| float(r, i).to_bits()).collect::<Vec<_>>();
        let add_i = |a: &mut Vec<u64>, b: Vec<u64>| a.iter_mut().zip(b).for_each(|(a, b)| *a = a.wrapping_add(b));
        let add_f = |a: &mut Vec<u64>, b: Vec<u64>| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a = (f64::from_bits(*a) + f64::from_bits(b)).to_bits());
        };
        let maps = |a: &mut Vec<u64>, b: Vec<u64>| {
            a.as_chunks_mut().0.iter_mut().zip(b.as_chunks().0).for_each(|(a, b)| *a = affine(*a, *b));
        };
        let mut cases = vec![
            ("sum of i64", Op::SumI64, integers(rank), fold(integers(0), &integers, &add_i)),
            ("sum of f64", Op::SumF64, floats(rank), fold(floats(0), &floats, &add_f)),
        ];
        if words % 2 == 0 {
            cases.push(("user's, not commutative", user, integers(rank), fold(integers(0), &integers, &maps)));
        }
        for (name, op, mine, wanted) in cases {
            let to_bytes = |words: &[u64]| words.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<_>>();
            let (mine, wanted) = (to_bytes(&mine), to_bytes(&wanted));
            let mut receive = vec![0; mine.len()];
            comm.allreduce(&mine, &mut receive, op)?;
            tally.case(format!("allreduce {name} {} B", mine.len()), receive == wanted);
            let mut both = mine;
            comm.allreduce_in_place(&mut both, op)?;
            tally.case(format!("allreduce {name} {} B in place", both.len()), both == wanted);
        }
    }
    Ok(())
}

/// Nobody leaves a barrier before everyone has entered it, by the common clock.
fn barriers(team: &mut Team, comm: &mut Communicator<Posix>, tally: &mut Tally) -> Result<(), Failure> {
    const ROUNDS: usize = 200;
    for name in BARRIERS {
        let algorithm =
            BarrierAlgorithm::from_name(name).ok_or_else(|| Failure::Words(format!("no algorithm {name}")))?;
        let mut times = Vec::new();
        for round in 0..ROUNDS {
            if round % comm.size() as usize == comm.rank() as usize {
                std::thread::yield_now();
            }
            let enter = clock::now();
            comm.barrier_with(algorithm)?;
            times.push((enter, clock::now()));
        }
        let all = team.gather(&times)?;
        let right = (0..ROUNDS).all(|i| {
            let last_in = all.iter().map(|rank| rank[i].0).max();
            let first_out = all.iter().map(|rank| rank[i].1).min();
            last_in <= first_out
        });
        tally.case(format!("barrier {name}, {ROUNDS} times"), right);
    }
    Ok(())
}

/// One rank's mistake: every rank gets an error that names it, at this or the next operation.
fn bad_input(team: &mut Team, tally: &mut Tally) -> Result<(), Failure> {
    if team.size() < 2 {
        return Ok(());
    }
    let (rank, size) = (team.rank(), team.size());
    let culprit = size - 1;
    for name in ["auto", "queue", "cico-binary"] {
        let algorithm =
            BcastAlgorithm::from_name(name).ok_or_else(|| Failure::Words(format!("no algorithm {name}")))?;
        for argument in [Argument::Root, Argument::Bytes] {
            let mut comm = team.join(params(size))?.communicator;
            let mut buffer = vec![0; if argument == Argument::Bytes && rank == culprit { 4000 } else { 5000 }];
            let root = if argument == Argument::Root && rank == culprit { size } else { 0 };
            let first = comm.bcast_with(Data::bytes_mut(&mut buffer), root, algorithm);
            let answer = first.and_then(|()| comm.barrier());
            let named = match answer {
                Ok(()) => None,
                Err(Error::Refused(refusal) | Error::Poll(PollError::Mismatch { refusal, .. })) => {
                    Some((rank, refusal))
                }
                Err(Error::Poisoned(poison)) => match poison.cause {
                    Cause::Refused(refusal) => Some((poison.rank, refusal)),
                    _ => None,
                },
                Err(_) => None,
            };
            // A reader that is given another length may be any of them: whoever compared.
            let right = named.is_some_and(|(who, refusal)| refusal.argument == argument && who == culprit);
            tally.case(format!("bcast {name}: {} of rank {culprit} is wrong", argument.name()), right);
        }
    }
    Ok(())
}

//! The two definitions of time: latency (`window`), and throughput (`rate`).

use super::buffers::Buffers;
use super::clock::{Clock, now};
use super::contender::Contender;
use crate::error::Failure;
use crate::team::Team;
use unisono_kernel::comm::Communicator;
use unisono_posix::{Joined, Posix};

/// How a row is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) iterations: Option<u64>,
    pub(crate) warm: bool,
    /// Do the buffers lie in memory that all processes have mapped?
    pub(crate) lent: bool,
    /// How [`rate`] repeats calls.
    pub(crate) calls: Calls,
    /// Nanoseconds that a row may take, roughly.
    pub(crate) budget: f64,
}

/// How the calls of a repetition follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// One after the other, each rank being the root in turn.
    InTurn,
    /// Each after a barrier, which is not timed, rank 0 being the root, and the mean over the ranks counts: OSU's definition.
    Apart,
}

/// A row's summary of its samples, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) iterations: u64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

/// Median, 99th percentile and largest of times.
pub(crate) fn summary(mut samples: Vec<f64>, iterations: u64) -> Sample {
    samples.sort_by(f64::total_cmp);
    let at = |q: f64| samples.get(((samples.len() - 1) as f64 * q) as usize).copied().unwrap_or(f64::NAN);
    if samples.is_empty() {
        return Sample { iterations, p50: f64::NAN, p99: f64::NAN, max: f64::NAN };
    }
    Sample { iterations, p50: at(0.5), p99: at(0.99), max: at(1.0) }
}

/// Wall nanoseconds of one operation, back to back; the number of iterations follows from it.
fn estimate(
    joined: &mut Joined,
    contender: &mut Contender,
    buffers: &mut Buffers,
    clock: Clock,
) -> Result<f64, Failure> {
    const TRIES: usize = 20;
    joined.communicator.barrier()?;
    let begin = now();
    for i in 0..TRIES {
        contender.call(&mut joined.communicator, buffers.get(i), 0)?;
        joined.communicator.barrier()?;
    }
    Ok(clock.ns(begin, now()) / TRIES as f64)
}

/// All ranks get rank 0's number.
pub(super) fn agree(comm: &mut Communicator<Posix>, value: u64) -> Result<u64, Failure> {
    let mut bytes = value.to_ne_bytes();
    comm.bcast(&mut bytes, 0)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Spins until the deadline; with more ranks than cores, yields.
#[inline]
fn until(deadline: u64, crowded: bool) {
    while now() < deadline {
        if crowded {
            std::thread::yield_now();
        }
    }
}

/// `window`: per operation, from the first start (rooted: the root's) to the last end. Ranks are
/// released by a deadline on the common clock; operations for which a rank came late are left out.
pub(crate) fn window(
    team: &mut Team,
    joined: &mut Joined,
    contender: &mut Contender,
    plan: Plan,
) -> Result<Sample, Failure> {
    const MOST: u64 = 2000;
    /// Nanoseconds that a rank may miss the deadline by.
    const LATE: f64 = 300.0;
    let clock = Clock::calibrate();
    let crowded = joined.waiting.yields;
    let (bytes, rooted) = (contender.subject.room(), contender.subject.rooted());
    let mut buffers = Buffers::of(bytes, plan.warm, plan.lent.then_some(&joined.communicator))?;
    let estimate = estimate(joined, contender, &mut buffers, clock)?;
    // Between two deadlines: the operation, the dirtying of a buffer, and slack.
    let gap = 4.0 * estimate + bytes as f64 * 0.5 + if crowded { 50_000.0 } else { 4_000.0 };
    let iterations = plan.iterations.unwrap_or((plan.budget / gap) as u64).clamp(1, MOST);
    let comm = &mut joined.communicator;
    let iterations = agree(comm, iterations)?;
    let gap = agree(comm, clock.ticks(gap))?;
    let begin = agree(comm, now() + clock.ticks(1e6) + gap)?;

    let mut times = Vec::with_capacity(iterations as usize);
    for i in 0..iterations {
        let deadline = begin + i * gap;
        let buffer = buffers.get(i as usize);
        dirty(buffer, i);
        until(deadline, crowded);
        let start = now();
        contender.call(comm, buffer, 0)?;
        let end = now();
        times.push((start, end, start.saturating_sub(deadline)));
    }

    let all = team.gather(&times)?;
    let of = |i: usize| all.iter().filter_map(move |rank| rank.get(i));
    let duration = |i: usize| {
        let first = if rooted { all[0][i].0 } else { of(i).map(|t| t.0).min().unwrap_or(0) };
        clock.ns(first, of(i).map(|t| t.1).max().unwrap_or(0))
    };
    let in_time = |&i: &usize| of(i).all(|(_, _, late)| *late <= clock.ticks(LATE));
    let mut samples: Vec<f64> = (0..times.len()).filter(in_time).map(duration).collect();
    // Crowded or on a busy machine, lateness is part of the figure.
    if crowded || samples.len() < times.len() / 10 + 1 {
        samples = (0..times.len()).map(duration).collect();
    }
    let kept = samples.len() as u64;
    Ok(summary(samples, kept))
}

/// Changes a byte of every line, so that each is dirty here.
fn dirty(buffer: &mut [u8], i: u64) {
    buffer.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(i as u8 | 1));
}

/// `rate`: wall time ÷ iterations of the slowest rank, root rotating; data verified after each
/// repetition. Contenders take turns, repetition by repetition, so that disturbances hit all of them alike.
pub(crate) fn rate(
    team: &mut Team,
    joined: &mut Joined,
    contenders: &mut [Contender],
    plan: Plan,
) -> Result<Vec<Sample>, Failure> {
    let all = rate_times(team, joined, contenders, plan)?;
    Ok(all.into_iter().map(|times| summary(times.ns, times.operations)).collect())
}

/// Repetitions of [`rate`].
const REPETITIONS: u64 = 11;

/// What [`rate`] measured of one contender.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    /// By repetition: nanoseconds per operation, on the slowest rank; [apart](Calls::Apart) in the mean over the ranks.
    pub(crate) ns: Vec<f64>,
    /// Operations of all repetitions together.
    operations: u64,
}

/// The repetitions of [`rate`], for each contender.
pub(crate) fn rate_times(
    team: &mut Team,
    joined: &mut Joined,
    contenders: &mut [Contender],
    plan: Plan,
) -> Result<Vec<Times>, Failure> {
    let clock = Clock::calibrate();
    let Some(bytes) = contenders.first().map(|contender| contender.subject.room()) else { return Ok(Vec::new()) };
    let mut buffers = Buffers::of(bytes, plan.warm, plan.lent.then_some(&joined.communicator))?;
    let mut iterations = Vec::new();
    for contender in &mut *contenders {
        let estimate = estimate(joined, contender, &mut buffers, clock)?;
        let fitting = (plan.budget / REPETITIONS as f64 / estimate) as u64;
        let wanted = plan.iterations.unwrap_or(fitting).clamp(1, 1_000_000);
        iterations.push(agree(&mut joined.communicator, wanted)?);
    }
    let mut mine = vec![Vec::new(); contenders.len()];
    for repetition in 0..REPETITIONS {
        for ((contender, times), &iterations) in contenders.iter_mut().zip(&mut mine).zip(&iterations) {
            let seed = repetition * buffers.count() as u64;
            times.push(repeat(
                team,
                joined,
                contender,
                &mut buffers,
                Repetition { seed, iterations, calls: plan.calls },
                clock,
            )?);
        }
    }
    let all = team.gather(&mine)?;
    let of_all = |contender: usize, i: usize| {
        let times = all.iter().map(|rank| rank[contender][i]);
        if plan.calls == Calls::Apart { times.sum::<f64>() / all.len() as f64 } else { times.fold(0.0, f64::max) }
    };
    let samples = (0..).zip(iterations).map(|(contender, iterations)| {
        let ns = (0..REPETITIONS as usize).map(|i| of_all(contender, i)).collect();
        Times { ns, operations: iterations * REPETITIONS }
    });
    Ok(samples.collect())
}

/// What distinguishes one repetition of [`rate`] from another.
#[derive(Clone, Copy, Debug)]
struct Repetition {
    /// Seed of the pattern that a broadcast carries.
    seed: u64,
    /// Operations, one after the other.
    iterations: u64,
    calls: Calls,
}

/// One repetition of [`rate`]: nanoseconds per operation on this rank.
fn repeat(
    team: &Team,
    joined: &mut Joined,
    contender: &mut Contender,
    buffers: &mut Buffers,
    repetition: Repetition,
    clock: Clock,
) -> Result<f64, Failure> {
    let (rank, size) = (team.rank(), team.size());
    let Repetition { seed, iterations, calls } = repetition;
    buffers.fill(if rank == 0 { seed } else { seed + 1_000_003 });
    let comm = &mut joined.communicator;
    let carries_pattern = contender.subject.carries_pattern();
    if carries_pattern {
        // The root rotates: all ranks hold the pattern from here on, and keep it.
        for i in 0..buffers.count().min(iterations as usize) {
            contender.call(comm, buffers.get(i), 0)?;
        }
    } else {
        buffers.get(0).fill(0);
    }
    comm.barrier()?;
    let begin = now();
    let (mut root, mut timed) = (0, 0.0);
    for i in 0..iterations {
        if calls == Calls::Apart {
            comm.barrier()?;
            let start = now();
            contender.call(comm, buffers.get(i as usize), root)?;
            timed += clock.ns(start, now());
            continue;
        }
        contender.call(comm, buffers.get(i as usize), root)?;
        root = if root + 1 == size { 0 } else { root + 1 };
    }
    let time = (if calls == Calls::Apart { timed } else { clock.ns(begin, now()) }) / iterations as f64;
    if carries_pattern && !buffers.hold(seed, iterations as usize) {
        return Err(Failure::Words(format!("{}: wrong data", contender.subject)));
    }
    Ok(time)
}

//! The machine's floors, measured in the run whose rows they stand beside (docs/reference/measures.md).
//!
//! | ranks | message | floor |
//! |---|---|---|
//! | ≤ cores | none, or in a line | `rounds · L`; bcast: `L` |
//! | ≤ cores | `m` bytes | `L + max(in(m) + out(φ), in(φ) + out(m))`, φ = min(m, 4 KiB): copies that must follow one another |
//! | > cores | none, or in a line | `Y`: each rank on one core yields once |
//! | > cores | `m` bytes | `Y + k·out(m)`: k ranks copy on one core |
//! | 2 ≤ cores | blocks of `m` bytes | as a bcast: a block crosses to the other rank |
//!
//! For other cells no formula is known (docs/reference/measures.md).
//!
//! L: one way of a cache line between ranks 0 and 1. in(m): rank 0 copies rotated, dirty buffers into
//! a queue that rank 1 has just read. out(m): rank 1 copies them out to rotated buffers. The other
//! ranks sleep meanwhile.

use super::buffers::Buffers;
use super::clock::{Clock, now};
use super::subject::{Bound, Subject};
use crate::error::Failure;
use crate::team::Team;
use std::collections::BTreeMap;
use std::fmt;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::region::{Flag, FlagId, Region};
use unisono_kernel::shm::bcast::posted;
use unisono_posix::Joined;

/// First or last fragment of a pipeline.
const FRAGMENT: u64 = 4096;

/// The least times that this machine allows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Floors {
    crowded: bool,
    /// Ranks on one core, where crowded.
    sharing: f64,
    line: f64,
    ring: f64,
    copy_in: BTreeMap<u64, f64>,
    copy_out: BTreeMap<u64, f64>,
}

impl Floors {
    /// Measures; every rank returns the same. `sizes`: the message bytes for which floors will be asked.
    pub(crate) fn measure(team: &mut Team, joined: &Joined, sizes: &[u64], warm: bool) -> Result<Self, Failure> {
        let mut floors = Self { crowded: joined.waiting.yields, ..Self::default() };
        if team.size() < 2 {
            return Ok(floors);
        }
        // A segment of its own, on which no collective runs: its flags and slots are free for use.
        let scratch = team.join(*joined.communicator.comm().member().layout().params())?;
        let clock = Clock::calibrate();
        if floors.crowded {
            let ring = ring(team, &scratch, clock)?;
            (floors.ring, floors.sharing) = (ring.0, ring.1 as f64);
        } else {
            floors.line = share(team, |rank| line(&scratch, rank, clock))?;
        }
        let mut turn = 0;
        for &bytes in sizes.iter().filter(|&&bytes| bytes > posted::MOST) {
            let (copy_in, copy_out) = copies(team, &scratch, bytes, warm, clock, &mut turn)?;
            floors.copy_in.insert(bytes, copy_in);
            floors.copy_out.insert(bytes, copy_out);
        }
        Ok(floors)
    }

    /// One way of a cache line; with more ranks than cores, a turn of those of a core.
    pub(crate) const fn notice(&self) -> f64 {
        if self.crowded { self.ring } else { self.line }
    }

    /// Nanoseconds that one rank of a crowded core takes for its turn.
    pub(crate) fn turn(&self) -> Option<f64> {
        (self.crowded && self.sharing > 0.0).then_some(self.ring / self.sharing)
    }

    /// Nanoseconds of copying so many bytes in and out; nothing for a size that was not measured.
    pub(crate) fn copies(&self, bytes: u64) -> Option<(f64, f64)> {
        self.copy_in.get(&bytes).copied().zip(self.copy_out.get(&bytes).copied())
    }

    /// The floor of a cell, in nanoseconds, where a formula is known.
    pub(crate) fn of(&self, subject: &Subject, ranks: u32) -> Option<f64> {
        let bound = subject.bound();
        if bound == Bound::Unknown || bound == Bound::Block && ranks >= 2 && (ranks != 2 || self.crowded) {
            return None;
        }
        let bytes = subject.bytes;
        let (copy_in, copy_out) = (self.copy_in.get(&bytes).copied(), self.copy_out.get(&bytes).copied());
        let small = match (self.crowded, bound) {
            _ if ranks < 2 => 0.0,
            (true, _) => self.ring,
            (false, Bound::Message | Bound::Block) => self.line,
            (false, _) => self.line * f64::from(ranks.next_power_of_two().trailing_zeros()),
        };
        Some(match (copy_in, copy_out) {
            (Some(copy_in), Some(copy_out)) => {
                let first = FRAGMENT.min(bytes) as f64 / bytes as f64;
                let copies = (copy_in + first * copy_out).max(first * copy_in + copy_out);
                small + if self.crowded { self.sharing * copy_out } else { copies }
            }
            _ => small,
        })
    }
}

impl fmt::Display for Floors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.crowded {
            write!(f, "floors: {} ranks on a core yield once each in {:.2} µs", self.sharing, self.ring / 1e3)?;
        } else {
            write!(f, "floors: cache line one way {:.0} ns", self.line)?;
        }
        for (bytes, copy_in) in &self.copy_in {
            let copy_out = self.copy_out.get(bytes).copied().unwrap_or(f64::NAN);
            write!(f, "; {} in {:.2} out {:.2} µs", unisono_plot::bytes(*bytes), copy_in / 1e3, copy_out / 1e3)?;
        }
        Ok(())
    }
}

/// Runs `body` on ranks 0 and 1 while the others sleep in the bootstrap; returns rank 0's number.
fn share(team: &mut Team, body: impl FnOnce(u32) -> f64) -> Result<f64, Failure> {
    let rank = team.rank();
    team.gather(&())?;
    let mine = if rank < 2 { body(rank) } else { 0.0 };
    Ok(team.gather(&mine)?[0])
}

/// Publishes this rank's progress, and waits for a peer's.
fn publish(scratch: &Joined, flag: FlagId, value: u64) {
    scratch.communicator.comm().region().flag(flag).store_release(value);
}

fn reached(scratch: &Joined, flag: FlagId, value: u64) -> bool {
    scratch.communicator.comm().region().flag(flag).load_acquire().at_least(value)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

/// One way of a cache line: half a round trip of a flag.
fn line(scratch: &Joined, rank: u32, clock: Clock) -> f64 {
    const ROUNDS: u64 = 2000;
    const REPETITIONS: u64 = 101;
    let layout = scratch.communicator.comm().member().layout();
    let flags = [layout.ready(0), layout.ready(1)];
    let mut samples = Vec::new();
    let mut turn = 0;
    for _ in 0..REPETITIONS {
        let begin = now();
        for _ in 0..ROUNDS {
            turn += 1;
            if rank == 0 {
                publish(scratch, flags[0], turn);
                while !reached(scratch, flags[1], turn) {}
            } else {
                while !reached(scratch, flags[0], turn) {}
                publish(scratch, flags[1], turn);
            }
        }
        samples.push(clock.ns(begin, now()) / (2 * ROUNDS) as f64);
    }
    median(samples)
}

/// The ranks of rank 0's core yield to each other: nanoseconds of a round, and ranks on the core.
fn ring(team: &mut Team, scratch: &Joined, clock: Clock) -> Result<(f64, usize), Failure> {
    const ROUNDS: u64 = 500;
    const REPETITIONS: u64 = 31;
    team.gather(&())?;
    let peers = &scratch.peers;
    let on_core: Vec<u32> =
        (0..).zip(peers).filter(|(_, peer)| peer.pus == peers[0].pus).map(|(rank, _)| rank).collect();
    let mut mine = 0.0;
    if on_core.contains(&team.rank()) {
        let layout = scratch.communicator.comm().member().layout();
        let mut samples = Vec::new();
        for turn in 1..=REPETITIONS {
            publish(scratch, layout.ready(team.rank()), turn);
            while !on_core.iter().all(|&peer| reached(scratch, layout.ready(peer), turn)) {
                std::thread::yield_now();
            }
            let begin = now();
            (0..ROUNDS).for_each(|_| std::thread::yield_now());
            samples.push(clock.ns(begin, now()) / ROUNDS as f64);
        }
        mine = median(samples);
    }
    Ok((team.gather(&mine)?[0], on_core.len()))
}

/// Copy-in at rank 0 and copy-out at rank 1 of `bytes` through the queue, alternating.
fn copies(
    team: &mut Team,
    scratch: &Joined,
    bytes: u64,
    warm: bool,
    clock: Clock,
    turn: &mut u64,
) -> Result<(f64, f64), Failure> {
    let rank = team.rank();
    team.gather(&())?;
    let mut mine = 0.0;
    if rank < 2 {
        let layout = *scratch.communicator.comm().member().layout();
        let region = scratch.communicator.comm().region();
        // `arrive`, not `ready`: the line and ring measurements have used those.
        let (written, read) = (layout.arrive(0), layout.arrive(1));
        let params = layout.params();
        let room = params.queue_fragment * u64::from(params.queue_slots);
        let mut buffers = Buffers::new(bytes, warm);
        let repetitions = (200_000_000 / bytes.max(1)).clamp(5, 301);
        let mut samples = Vec::new();
        for repetition in 0..repetitions {
            let buffer = buffers.get(repetition as usize);
            // As before each operation of `window`.
            buffer.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
            let mut sum = 0.0;
            for part in buffer.chunks_mut(room as usize) {
                *turn += 1;
                // Rank 0 writes once the part before has been read; rank 1 reads what rank 0 has written.
                let (wait, value) = if rank == 0 { (read, *turn - 1) } else { (written, *turn) };
                while !reached(scratch, wait, value) {
                    if scratch.waiting.yields {
                        std::thread::yield_now();
                    }
                }
                let begin = now();
                for (slot, fragment) in (0..).zip(part.chunks_mut(params.queue_fragment as usize)) {
                    let at = layout.slot(0, slot).part(0, fragment.len() as u64);
                    let fragment = Buf::of_mut(fragment);
                    if rank == 0 {
                        // SAFETY: rank 1 has read the part before (R10); the fragment is ours.
                        unsafe { region.write(at, fragment) };
                    } else {
                        // SAFETY: rank 0 has published the part and waits for us; the fragment is ours.
                        unsafe { region.read(at, fragment) };
                    }
                }
                sum += clock.ns(begin, now());
                publish(scratch, if rank == 0 { written } else { read }, *turn);
            }
            samples.push(sum);
        }
        mine = median(samples);
    }
    let all = team.gather(&mine)?;
    Ok((all[0], all[1]))
}

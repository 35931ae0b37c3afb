//! `bench overlap`: how much of a nonblocking allreduce is hidden by a computation.
//!
//! The computation is a chain of multiplications, calibrated to take as long as the allreduce alone, cut into pieces between
//! which the operation is tested. Each row is the median over its rounds, of the slowest rank.

use super::clock::{Clock, now};
use super::params;
use crate::args::Bench;
use crate::error::Failure;
use crate::out::outln;
use crate::team::Team;
use serde::Serialize;
use std::hint::black_box;
use unisono_kernel::algorithm::AllreduceAlgorithm;
use unisono_kernel::call::Call;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::op::Op;
use unisono_posix::Posix;

/// Tests of the operation during a computation.
const PIECES: u64 = 64;
/// Rounds of each of the three, without --iterations.
const ROUNDS: u64 = 200;

/// One row of the report.
#[derive(Debug, Serialize)]
struct Row {
    collective: &'static str,
    form: &'static str,
    host: &'static str,
    ranks: u32,
    bytes: u64,
    iterations: u64,
    /// The allreduce, started and waited for.
    alone_ns: f64,
    /// The computation.
    compute_ns: f64,
    /// The allreduce started, the computation with tests in between, the wait.
    both_ns: f64,
    /// The share of the allreduce that the computation hid: 1 is all of it; 0 or less, nothing.
    hidden: f64,
}

/// A chain of `steps` dependent multiplications.
fn compute(steps: u64) {
    let mut x = black_box(1u64);
    for _ in 0..steps {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    }
    black_box(x);
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

/// One rank's rounds of one size.
#[derive(Debug)]
struct Rounds<'r> {
    comm: &'r mut Communicator<Posix>,
    clock: Clock,
    buffer: Vec<u8>,
    rounds: u64,
}

impl Rounds<'_> {
    /// The median over rounds of the slowest rank's time for `round`, which is given the scope of the operation.
    fn measure(
        &mut self,
        team: &mut Team,
        mut round: impl FnMut(&mut Communicator<Posix>, Call<'_>) -> Result<(), Failure>,
    ) -> Result<f64, Failure> {
        let mut mine = Vec::new();
        for _ in 0..self.rounds {
            self.comm.barrier()?;
            let data = Data::bytes_mut(&mut self.buffer);
            let call =
                Call::Allreduce { send: data, receive: data, op: Op::SUM_F64, algorithm: AllreduceAlgorithm::Auto };
            let begin = now();
            round(self.comm, call)?;
            mine.push(self.clock.ns(begin, now()));
        }
        let all = team.gather(&mine)?;
        let slowest = |at: usize| all.iter().filter_map(|rank| rank.get(at)).fold(0.0, |most: f64, ns| most.max(*ns));
        Ok(median((0..mine.len()).map(slowest).collect()))
    }

    fn row(&mut self, team: &mut Team) -> Result<Row, Failure> {
        let alone = self.measure(team, |comm, call| {
            Ok(comm.scope(|scope| {
                let request = scope.start(call)?;
                scope.wait(request)
            })?)
        })?;
        let begin = now();
        compute(1 << 16);
        let step = self.clock.ns(begin, now()) / f64::from(1 << 16);
        let piece = ((alone / step) as u64 / PIECES).max(1);
        let computing = self.measure(team, |_, _| {
            (0..PIECES).for_each(|_| compute(piece));
            Ok(())
        })?;
        let both = self.measure(team, |comm, call| {
            Ok(comm.scope(|scope| {
                let request = scope.start(call)?;
                for _ in 0..PIECES {
                    compute(piece);
                    scope.test(request)?;
                }
                scope.wait(request)
            })?)
        })?;
        // The operands are zeros, and so is the sum: data is checked elsewhere; here, that it was not disturbed.
        if self.buffer.iter().any(|byte| *byte != 0) {
            return Err(Failure::Words("overlap: wrong data".into()));
        }
        Ok(Row {
            collective: "overlap",
            form: "nonblocking",
            host: "posix",
            ranks: team.size(),
            bytes: self.buffer.len() as u64,
            iterations: self.rounds,
            alone_ns: alone,
            compute_ns: computing,
            both_ns: both,
            hidden: (alone + computing - both) / alone,
        })
    }
}

pub(super) fn work(team: &mut Team, args: &Bench) -> Result<(), Failure> {
    if let Some(bytes) = args.bytes.iter().find(|bytes| !bytes.is_multiple_of(8)) {
        return Err(Failure::Words(format!("bytes is {bytes}: a reduction of f64 takes multiples of 8")));
    }
    let mut joined = team.join(params(args))?;
    let speaker = team.rank() == 0;
    if speaker && !args.json {
        outln!("{} ranks, waiting: {}", team.size(), joined.waiting)?;
        outln!("{:>8} {:>14} {:>14} {:>14} {:>8}", "bytes", "allreduce µs", "computing µs", "both µs", "hidden")?;
    }
    let clock = Clock::calibrate();
    for &bytes in &args.bytes {
        let (buffer, rounds) = (vec![0; bytes as usize], args.iterations.unwrap_or(ROUNDS).max(1));
        let row = Rounds { comm: &mut joined.communicator, clock, buffer, rounds }.row(team)?;
        match (speaker, args.json) {
            (true, true) => outln!("{}", serde_json::to_string(&row)?)?,
            (true, false) => outln!(
                "{:>8} {:>14.3} {:>14.3} {:>14.3} {:>7.0}%",
                unisono_plot::bytes(row.bytes),
                row.alone_ns / 1e3,
                row.compute_ns / 1e3,
                row.both_ns / 1e3,
                100.0 * row.hidden
            )?,
            (false, _) => {}
        }
    }
    Ok(())
}

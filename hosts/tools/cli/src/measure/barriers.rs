//! `unisono measure barriers`: every barrier over messages, in the simulator or over an MPI, beside its formula with LogGP's
//! parameters as measured there; and AdaptiveBarrierLogP's choice against fixed ones. Barriers that the model does not tell apart are
//! measured before one is chosen, with other seeds than those of the final comparison.

use super::args::{Barriers, Place};
use super::logp::{BARRIERS, keep, name};
use super::mpi;
use crate::args::Collective;
use crate::error::Failure;
use crate::model::table::show;
use crate::progress::progress;
use crate::sim;
use crate::tune::costs::Cell;
use serde_json::{Value, json};
use std::time::Duration;
use unisono_kernel::msg::Algorithm;
use unisono_kernel::table::Over;
use unisono_measure::Simulated;
use unisono_measure::logp::{Plan, measure};
use unisono_model::adaptive::{Adaptive, Choice};
use unisono_model::barrier::{Barrier, Logs};
use unisono_model::chi2::{ChiSquare, pearson, weighted};
use unisono_model::logp::LogP;
use unisono_sim::Schedule;

/// Where latencies vary, formulas that are within this part of the least one do not tell which barrier is faster.
const NEAR: f64 = 0.05;

/// Standard errors to either side of a mean within which it lies with 95 % confidence.
const NORMAL: f64 = 1.96;

/// A mean time in nanoseconds, and its standard error.
#[derive(Clone, Copy, Debug)]
struct Mean {
    mean: f64,
    error: f64,
}

/// The means by size.
type Times = Vec<Mean>;

/// What a barrier is measured for: to compare it, or before one is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Final,
    Trial,
}

/// Times of a barrier among so many ranks.
type Timing<'a> = dyn FnMut(Barrier, u32, Purpose) -> Result<Mean, Failure> + 'a;

pub(super) fn run(args: &Barriers) -> Result<(), Failure> {
    match args.over {
        Place::Sim => {
            let (network, schedule) = args.simulator.parts()?;
            let logp = measure(&mut Simulated::new(network, schedule.clone()), &Plan::default())?.logp()?;
            let seeds = |from: u64| -> Vec<_> {
                let seeds = (from..from + args.repetitions).map(|i| schedule.seed.wrapping_add(i));
                seeds.map(|seed| Schedule { seed, ..schedule.clone() }).collect()
            };
            let schedules = [seeds(0), seeds(args.repetitions)];
            let mut time = |barrier, ranks, purpose| {
                let schedules = &schedules[usize::from(purpose == Purpose::Trial)];
                let found = sim::times(Collective::Barrier, &name(barrier), ranks, 0, network, schedules)?;
                Ok(mean(&found.unwrap_or_default()))
            };
            compare(args, logp, args.most_ranks, !args.json, &mut time)?.show(args)
        }
        Place::Mpi => {
            let (repetitions, pause) = (args.repetitions as usize, Duration::from_micros(args.pause_us));
            let compared = mpi::on(&args.libraries, |job| {
                let logp = measure(job, &Plan::default())?.logp()?;
                let most = job.size().min(args.most_ranks);
                let mut time = |barrier, ranks, _| {
                    let Some(Algorithm::Barrier(by)) = Algorithm::from_name(&format!("barrier/{}", name(barrier)))
                    else {
                        return Err(Failure::Words(format!("no barrier {barrier} over messages")));
                    };
                    Ok(mean(&job.barriers(by, ranks, repetitions, pause)?))
                };
                compare(args, logp, most, false, &mut time)
            })?;
            compared.map_or(Ok(()), |compared| compared.show(args))
        }
    }
}

/// What is printed.
struct Compared {
    rows: Vec<Vec<Value>>,
    /// A row for each size.
    sizes: Vec<Vec<Value>>,
    remark: String,
    /// For a file: the network's parameters, the greatest size, and all means.
    logp: LogP,
    most: u32,
    cells: Vec<Cell>,
}

impl Compared {
    fn show(&self, args: &Barriers) -> Result<(), Failure> {
        if args.sizes {
            let names = BARRIERS.iter().flat_map(|barrier| [barrier.to_string(), "formula".into()]);
            let columns: Vec<_> = ["P".into()].into_iter().chain(names).chain(["chosen".into()]).collect();
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            show(&columns, &self.sizes, "\nMeans and formulas in ns.\n\n", args.json)?;
        }
        let columns = [
            "barrier",
            "mean ns",
            "model off by at most %",
            "χ² by errors: probability",
            "χ² of the paper, in µs",
            "slower than adaptive %",
            "sizes where adaptive is slower",
        ];
        show(&columns, &self.rows, &self.remark, args.json)?;
        let Some(path) = &args.output else { return Ok(()) };
        keep(path, self.logp, self.most, self.cells.clone(), args.json)
    }
}

/// Compares all barriers among 2 to `most` processes.
fn compare(args: &Barriers, logp: LogP, most: u32, shows: bool, time: &mut Timing<'_>) -> Result<Compared, Failure> {
    let sizes = || 2..=most;
    let bar = progress(shows, BARRIERS.len() as u64 * u64::from(most.saturating_sub(1)));
    let mut all: Vec<(Barrier, Times)> = Vec::new();
    for barrier in BARRIERS {
        bar.set_message(barrier.to_string());
        let mut found = Times::new();
        for ranks in sizes() {
            found.push(time(barrier, ranks, Purpose::Final)?);
            bar.inc(1);
        }
        all.push((barrier, found));
    }
    bar.finish_and_clear();

    let adaptive = Adaptive::new(logp, &BARRIERS, Logs::Rounds)?;
    let (mut choices, mut chosen, mut tried) = (Vec::new(), Times::new(), 0);
    for (at, ranks) in sizes().enumerate() {
        let near = adaptive.near(ranks, NEAR)?;
        let mut choice = near.first().map(|choice| choice.barrier);
        if let [_, _, ..] = near[..] {
            tried += 1;
            let trial = |near: &Choice| Ok((near.barrier, time(near.barrier, ranks, Purpose::Trial)?.mean));
            let trials = near.iter().map(trial).collect::<Result<Vec<_>, Failure>>()?;
            choice = trials.iter().min_by(|one, other| one.1.total_cmp(&other.1)).map(|(barrier, _)| *barrier);
        }
        let times = all.iter().find(|(barrier, _)| Some(*barrier) == choice).and_then(|(_, times)| times.get(at));
        chosen.push(times.copied().unwrap_or(Mean { mean: f64::NAN, error: f64::NAN }));
        choices.extend(choice);
    }
    let mut by_size = Vec::new();
    for (at, (ranks, choice)) in sizes().zip(&choices).enumerate() {
        let mut row = vec![json!(ranks)];
        for (barrier, times) in &all {
            let measured = times.get(at).map_or(f64::NAN, |time| time.mean);
            row.extend([json!(measured.round()), json!(barrier.time(&logp, ranks, Logs::Rounds)?.round())]);
        }
        row.push(json!(choice.to_string()));
        by_size.push(row);
    }
    let sum = |times: &Times| times.iter().map(|time| time.mean).sum::<f64>();
    let mut rows = Vec::new();
    for (barrier, times) in &all {
        let model = sizes().map(|ranks| barrier.time(&logp, ranks, Logs::Rounds)).collect::<Result<Vec<_>, _>>()?;
        let (means, errors): (Vec<f64>, Vec<f64>) = times.iter().map(|time| (time.mean, time.error)).unzip();
        // Without a delay there is no error to divide by: only the paper's statistic is computed.
        let test = if errors.contains(&0.0) { None } else { Some(weighted(&means, &errors, &model, 0)?) };
        let paper = pearson(&in_us(&means), &in_us(&model), 0)?;
        let off = means.iter().zip(&model).map(|(mean, model)| (model / mean - 1.0).abs()).fold(0.0, f64::max);
        let worse = times.iter().zip(&chosen).filter(|(fixed, mine)| beyond(**mine, **fixed)).count();
        let probability = |test: Option<ChiSquare>| test.map_or(Value::Null, |test| json!(round(test.probability)));
        rows.push(vec![
            json!(barrier.to_string()),
            json!(round(sum(times) / times.len() as f64)),
            json!(round(100.0 * off)),
            probability(test),
            probability(Some(paper)),
            json!(round(100.0 * (sum(times) / sum(&chosen) - 1.0))),
            json!(worse),
        ]);
    }
    let mut misses = String::new();
    for (at, ((ranks, mine), choice)) in sizes().zip(&chosen).zip(&choices).enumerate() {
        let of = |(barrier, times): &(Barrier, Times)| times.get(at).map(|time| (*barrier, *time));
        let best = all.iter().filter_map(of).min_by(|(_, one), (_, other)| one.mean.total_cmp(&other.mean));
        if let Some((barrier, best)) = best.filter(|(_, best)| beyond(*mine, *best)) {
            let more = 100.0 * (mine.mean / best.mean - 1.0);
            misses += &format!(
                "\nmiss: P = {ranks}: {choice} takes {:.0} ns, {barrier} {:.0} ns: {more:.1} % more",
                mine.mean, best.mean
            );
        }
    }
    let remark = format!(
        "\nP = 2 to {}, {} barriers each; L = {:.1}, o_s = {:.1}, o_r = {:.1}, g = {:.1} ns as measured. Adaptive: mean {:.1} ns, at {tried} sizes\n\
         by measuring those barriers whose formulas are within {} %; slower where it is so by more than two standard errors. The paper's χ² has the unit of its times: it is given for microseconds.",
        most,
        args.repetitions,
        logp.latency(),
        logp.send(),
        logp.receive(),
        logp.gap(),
        sum(&chosen) / chosen.len() as f64,
        100.0 * NEAR,
    ) + &misses;
    let cell = |barrier, ranks, Mean { mean, error }: Mean| Cell {
        over: Over::Messages.name().into(),
        collective: "barrier".into(),
        algorithm: name(barrier),
        ranks,
        bytes: 0,
        p50_ns: mean,
        low_ns: (mean - NORMAL * error).max(0.0),
        high_ns: mean + NORMAL * error,
        samples: args.repetitions,
    };
    let of = |(barrier, times): &(Barrier, Times)| -> Vec<_> {
        sizes().zip(times).map(|(ranks, time)| cell(*barrier, ranks, *time)).collect()
    };
    let cells = all.iter().flat_map(of).collect();
    Ok(Compared { rows, sizes: by_size, remark, logp, most, cells })
}

fn in_us(ns: &[f64]) -> Vec<f64> {
    ns.iter().map(|ns| ns / 1e3).collect()
}

fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// The mean of samples, and its standard error.
fn mean(samples: &[f64]) -> Mean {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let variance = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Mean { mean, error: (variance / n).sqrt() }
}

/// Is the first above the second by more than two standard errors of their difference?
fn beyond(first: Mean, second: Mean) -> bool {
    first.mean - second.mean > 2.0 * first.error.hypot(second.error) + 1e-6 * second.mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_by_hand() {
        // 1, 2, 3: mean 2, variance 1, error √(1/3).
        let Mean { mean, error } = mean(&[1.0, 2.0, 3.0]);
        assert_eq!(mean, 2.0);
        assert!((error - 3f64.sqrt().recip()).abs() < 1e-12);
        let of = |mean| Mean { mean, error: 0.5 };
        assert!(beyond(of(4.0), of(2.0)) && !beyond(of(3.0), of(2.0)));
    }
}

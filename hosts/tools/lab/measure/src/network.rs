//! Paper P5's measurements: Hockney's t_s and t_w by least squares over lengths, and one pair's bandwidth against all
//! pairs'.

use crate::script::Act;
use crate::{LEVEL, MeasureError, Stage};
use unisono_kernel::Rank;
use unisono_model::ModelError;
use unisono_model::hockney::{Fit, Verdict, Weight, all_bandwidth, pair_bandwidth, tell};

/// t_s and t_w per byte between ranks 0 and 1, from half round trips of each length, `repetitions` of each.
///
/// # Errors
/// Fewer than three lengths, or all alike; the stage fails.
pub fn hockney(stage: &mut impl Stage, lengths: &[usize], repetitions: usize) -> Result<Fit, MeasureError> {
    ModelError::at_least("repetitions", repetitions as u64, 1)?;
    let mut samples = Vec::new();
    for &length in lengths {
        let (mut client, mut server) = (Vec::new(), Vec::new());
        // The first one warms up.
        for _ in 0..=repetitions {
            client.extend([Act::Note, Act::Send(1, length), Act::Receive(1, length), Act::Note, Act::Flush]);
            server.extend([Act::Receive(0, length), Act::Send(0, length), Act::Flush]);
        }
        let notes = stage.run(vec![client, server])?;
        let (pairs, _) = notes.first().map_or(&[][..], Vec::as_slice).as_chunks();
        // One point for each length, the median, so that a stall does not count.
        let halves: Vec<f64> = pairs.iter().skip(1).map(|[begin, end]| (end - begin) / 2.0).collect();
        samples.push((length as f64, middle(halves)));
    }
    Ok(Fit::new(&samples, Weight::Relative, LEVEL)?)
}

/// The median of one time or more.
fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Star or crossbar: compares the bandwidth, in bytes per nanosecond, of one pair that exchanges with that of all ranks
/// that exchange with each other; `bytes` bytes each, `exchanges` in a row, `repetitions` times.
///
/// # Errors
/// Fewer than four ranks, fewer than two repetitions; the stage fails.
pub fn switch(
    stage: &mut impl Stage,
    ranks: u32,
    bytes: usize,
    exchanges: u64,
    repetitions: usize,
) -> Result<Verdict, MeasureError> {
    ModelError::at_least("ranks (p)", ranks.into(), 4)?;
    ModelError::at_least("repetitions", repetitions as u64, 2)?;
    ModelError::at_least("exchanges (K)", exchanges, 1)?;
    let (mut one, mut all) = (Vec::new(), Vec::new());
    for _ in 0..repetitions {
        one.push(pair_bandwidth(bytes as u64, exchanges, exchange(stage, ranks, 2, bytes, exchanges)?)?);
        all.push(all_bandwidth(ranks, bytes as u64, exchanges, exchange(stage, ranks, ranks, bytes, exchanges)?)?);
    }
    Ok(tell(ranks, &one, &all, LEVEL)?)
}

/// The time in which the first `busy` of `ranks` ranks exchange with each other, each with the next ones in turn: from
/// the first rank's start to the last one's end.
fn exchange(stage: &mut impl Stage, ranks: u32, busy: u32, bytes: usize, exchanges: u64) -> Result<f64, MeasureError> {
    let script = |rank: Rank| {
        let mut acts = vec![Act::Note];
        for step in (0..exchanges).flat_map(|_| 1..busy) {
            acts.push(Act::Send((rank + step) % busy, bytes));
            acts.push(Act::Receive((rank + busy - step) % busy, bytes));
        }
        acts.extend([Act::Flush, Act::Note]);
        acts
    };
    let scripts = (0..ranks).map(|rank| if rank < busy { script(rank) } else { Vec::new() }).collect();
    let notes = stage.run(scripts)?;
    let begin = notes.iter().filter_map(|notes| notes.first()).copied().fold(f64::INFINITY, f64::min);
    let end = notes.iter().filter_map(|notes| notes.last()).copied().fold(0.0, f64::max);
    Ok(end - begin)
}

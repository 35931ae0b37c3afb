//! How far apart in time ranks go on: after a barrier, and at a deadline that they agreed before. (Paper P5 used a
//! trigger outside the cluster: 60 µs apart, and 200 µs after MPI_Barrier.)

use crate::clocks::Aligned;
use crate::script::Act;
use crate::{LEVEL, MeasureError, Stage};
use std::time::Duration;
use unisono_kernel::Rank;
use unisono_model::ModelError;
use unisono_model::stats::Median;

/// The time between the first and the last rank, in nanoseconds of rank 0's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skew {
    /// After a barrier by dissemination.
    pub barrier: Median,
    /// After a deadline.
    pub deadline: Median,
    /// The greatest error of the clocks: a smaller difference is not known.
    pub bound: f64,
}

/// Measures `repetitions` barriers and as many deadlines, which are `apart` from each other.
///
/// # Errors
/// Fewer than six repetitions; the stage fails.
pub fn measure<S: Stage>(stage: &mut Aligned<S>, repetitions: usize, apart: Duration) -> Result<Skew, MeasureError> {
    ModelError::at_least("repetitions", repetitions as u64, LEAST as u64)?;
    ModelError::at_least("nanoseconds between two deadlines", apart.as_nanos() as u64, 1)?;
    let ranks = stage.ranks();
    let barriers = (0..ranks).map(|rank| barriers(rank, ranks, repetitions)).collect();
    let barrier = spread(&stage.run(barriers)?, repetitions)?;
    let mut bound = stage.bound();
    // The first ones pass while the scripts start, and do not count.
    let begin = stage.last();
    let deadlines = (1..=repetitions + LEAST)
        .flat_map(|number| [Act::Until(begin + number as f64 * apart.as_nanos() as f64), Act::Note]);
    let deadlines: Vec<Act> = deadlines.collect();
    let notes = stage.run(vec![deadlines; ranks as usize])?;
    let notes: Vec<Vec<f64>> = notes.into_iter().map(|notes| notes.into_iter().skip(LEAST).collect()).collect();
    bound = bound.max(stage.bound());
    Ok(Skew { barrier, deadline: spread(&notes, repetitions)?, bound })
}

/// Repetitions that an interval needs.
const LEAST: usize = 6;

/// Barriers by dissemination; the end of each is noted.
fn barriers(rank: Rank, ranks: u32, repetitions: usize) -> Vec<Act> {
    let mut acts = Vec::new();
    for _ in 0..repetitions {
        let mut far = 1;
        while far < ranks {
            acts.extend([Act::Send((rank + far) % ranks, 1), Act::Receive((rank + ranks - far) % ranks, 1)]);
            far *= 2;
        }
        acts.extend([Act::Note, Act::Flush]);
    }
    acts
}

/// The time between the first and the last rank, in each repetition.
fn spread(notes: &[Vec<f64>], repetitions: usize) -> Result<Median, MeasureError> {
    let of = |at: usize| notes.iter().filter_map(move |notes| notes.get(at)).copied();
    let spreads: Vec<f64> =
        (0..repetitions).map(|at| of(at).fold(f64::MIN, f64::max) - of(at).fold(f64::MAX, f64::min)).collect();
    Ok(Median::new(&spreads, LEVEL)?)
}

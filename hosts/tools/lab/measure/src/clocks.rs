//! Clocks of processes that share no clock: their readings are translated into rank 0's time.
//!
//! ```text
//! rank 0   t₀ ───►              t₁        of many round trips the shortest one: rank r's t lies between t₀ and t₁,
//! rank r         ───► t ───►              most likely in their middle, and never further off than half the trip
//! ```
//! Round trips before and after the measurement give each clock's offset at two moments. Between them the offset is
//! taken from a straight line, which corrects a clock that is too fast. This is Cristian's method (Probabilistic clock
//! synchronization, 1989) with a line through two readings.

use crate::script::Act;
use crate::{MeasureError, Stage};
use unisono_kernel::Rank;
use unisono_model::ModelError;

/// A clock, compared with rank 0's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// The clock's reading.
    pub at: f64,
    /// Rank 0's time is the reading plus this.
    pub offset: f64,
    /// The offset's greatest error, either way: half the shortest round trip.
    pub bound: f64,
}

impl Reading {
    /// From a round trip: rank 0 sent at `begin` and received at `end`; the other clock read `at` in between.
    fn new(begin: f64, end: f64, at: f64) -> Self {
        Self { at, offset: f64::midpoint(begin, end) - at, bound: (end - begin) / 2.0 }
    }
}

/// One clock between two readings.
#[derive(Clone, Copy, Debug)]
struct OneWay(Reading, Reading);

impl OneWay {
    /// `moment` of this clock in rank 0's time.
    fn common(self, moment: f64) -> f64 {
        let Self(first, second) = self;
        let span = second.at - first.at;
        let drift = if span > 0.0 { (second.offset - first.offset) / span } else { 0.0 };
        moment + first.offset + (moment - first.at) * drift
    }
}

/// A stage whose times are rank 0's, both those that ranks note and those for which they wait ([`Act::Until`]).
#[derive(Debug)]
pub struct Aligned<S> {
    stage: S,
    trips: usize,
    readings: Vec<Reading>,
}

impl<S: Stage> Aligned<S> {
    /// Compares `ranks` clocks of `stage` by `trips` round trips each.
    ///
    /// # Errors
    /// No round trips; the stage fails.
    pub fn new(stage: S, ranks: u32, trips: usize) -> Result<Self, MeasureError> {
        ModelError::at_least("round trips", trips as u64, 1)?;
        let mut aligned = Self { stage, trips, readings: vec![Reading::default(); ranks as usize] };
        aligned.readings = aligned.read()?;
        Ok(aligned)
    }

    /// Number of clocks.
    pub const fn ranks(&self) -> u32 {
        self.readings.len() as u32
    }

    /// The clocks as they were read last.
    pub fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// The greatest error of the time between events on two ranks.
    pub fn bound(&self) -> f64 {
        2.0 * self.readings.iter().map(|reading| reading.bound).fold(0.0, f64::max)
    }

    /// Rank 0's time when the clocks were read last.
    pub fn last(&self) -> f64 {
        self.readings.iter().map(|reading| reading.at + reading.offset).fold(0.0, f64::max)
    }

    /// Reads all clocks, one after the other.
    fn read(&mut self) -> Result<Vec<Reading>, MeasureError> {
        let trips = self.trips;
        let mut scripts = vec![Vec::new(); self.readings.len()];
        let Some((first, others)) = scripts.split_first_mut() else { return Ok(Vec::new()) };
        for (rank, other) in (1 as Rank..).zip(others) {
            for _ in 0..trips {
                first.extend([Act::Note, Act::Send(rank, 1), Act::Receive(rank, 1), Act::Note, Act::Flush]);
                other.extend([Act::Receive(0, 1), Act::Note, Act::Send(0, 1), Act::Flush]);
            }
        }
        let notes = self.stage.run(scripts)?;
        let (first, others) =
            notes.split_first().map_or((&[][..], &[][..]), |(first, others)| (first.as_slice(), others));
        let (pairs, _) = first.as_chunks();
        let mut readings = vec![Reading { at: first.last().copied().unwrap_or(0.0), ..Reading::default() }];
        for (pairs, moments) in pairs.chunks(trips).zip(others) {
            let trips = pairs.iter().zip(moments).map(|([begin, end], at)| Reading::new(*begin, *end, *at));
            readings.extend(trips.min_by(|one, other| one.bound.total_cmp(&other.bound)));
        }
        Ok(readings)
    }
}

impl<S: Stage> Stage for Aligned<S> {
    fn run(&mut self, mut scripts: Vec<Vec<Act>>) -> Result<Vec<Vec<f64>>, MeasureError> {
        for (script, reading) in scripts.iter_mut().zip(&self.readings) {
            for act in script {
                if let Act::Until(moment) = act {
                    *moment -= reading.offset;
                }
            }
        }
        let notes = self.stage.run(scripts)?;
        let after = self.read()?;
        let before = std::mem::replace(&mut self.readings, after);
        let translate = |((notes, first), second): ((Vec<f64>, &Reading), &Reading)| {
            let way = OneWay(*first, *second);
            notes.into_iter().map(|moment| way.common(moment)).collect()
        };
        Ok(notes.into_iter().zip(&before).zip(&self.readings).map(translate).collect())
    }
}

//! Where the cores of ranks are, by the time of Unisono's barrier: a machine's host may move them while `tune --preload` measures, and
//! times at one distance say little about another (unisono_model::groups).

use crate::error::Failure;
use std::thread::sleep;
use std::time::Duration;
use unisono_model::groups::Group;
use unisono_mpi::compare::{By, Comparison, Method};

/// Calls of a reading; readings of the survey; the nap between readings, in which the host may move the cores.
const CALLS: u32 = 100;
const READINGS: usize = 150;
const NAP: Duration = Duration::from_millis(2);
/// Naps of a wait at most. After so many waits in vain there are none, but for one in so many.
const NAPS: usize = 50;
const VAIN: usize = 3;
const ONE_IN: usize = 32;

/// The cores' place in which cells are measured. All ranks have the same readings, and so do the same.
pub(super) struct Place {
    comparison: Comparison,
    chosen: Option<Group>,
    /// Waits in a row that were in vain.
    vain: usize,
}

impl Place {
    /// Surveys where the cores are, and chooses the near ones. Where ranks outnumber the cores, any place is right.
    pub(super) fn survey(comparison: Comparison, crowded: bool) -> Result<Self, Failure> {
        let mut place = Self { comparison, chosen: None, vain: 0 };
        let mut readings = Vec::new();
        for _ in 0..if crowded { 0 } else { READINGS } {
            sleep(NAP);
            readings.push(place.reading()?);
        }
        place.chosen = Group::near(&Group::of(readings));
        Ok(place)
    }

    /// Are the cores there now? Else waits a while until they are, where that has not been in vain.
    pub(super) fn reached(&mut self) -> Result<bool, Failure> {
        let naps = if self.vain < VAIN || self.vain.is_multiple_of(ONE_IN) { NAPS } else { 0 };
        for nap in 0..=naps {
            if nap > 0 {
                sleep(NAP);
            }
            if self.is_there()? {
                self.vain = 0;
                return Ok(true);
            }
        }
        self.vain += 1;
        Ok(false)
    }

    /// Are they there now?
    pub(super) fn is_there(&self) -> Result<bool, Failure> {
        let Some(chosen) = self.chosen else { return Ok(true) };
        Ok(chosen.has(self.reading()?))
    }

    fn reading(&self) -> Result<f64, Failure> {
        let timed = self.comparison.time(c"barrier", 0, Method::Imb, By::Unisono, CALLS);
        timed.map_err(|error| Failure::Words(format!("barrier: {error}")))
    }
}

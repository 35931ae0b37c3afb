//! Where the cores of ranks are: a machine's host may move them while a command measures, and times at one distance say little about
//! another (unisono_model::groups). A reading is the time of Unisono's barrier, the same on all ranks; so all ranks do the same.

use crate::error::Failure;
use std::thread::sleep;
use std::time::Duration;
use unisono_model::groups::Group;

/// Calls of a reading.
pub(crate) const CALLS: u32 = 100;
/// Readings of the survey; the nap before each, in which the host may move the cores.
const READINGS: usize = 150;
const NAP: Duration = Duration::from_millis(2);
/// Naps of a wait at most. After so many waits in vain there are none, but for one in so many.
const NAPS: usize = 50;
const VAIN: usize = 3;
const ONE_IN: usize = 32;
/// Nanoseconds of barriers from which on a survey, or a wait, ends: on a busy machine one takes milliseconds.
const SURVEYED: f64 = 2e9;
const WAITED: f64 = 2e8;

/// What a barrier took at least, and all of them that were timed, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) least: f64,
    pub(crate) all: f64,
}

/// Takes a reading.
pub(crate) type Read<'r> = &'r mut dyn FnMut() -> Result<Reading, Failure>;

/// Where the cores are while something is measured.
#[derive(Debug)]
pub(crate) struct Place {
    /// `None`: any place is right.
    chosen: Option<Group>,
    /// Waits in a row that were in vain.
    vain: usize,
}

impl Place {
    /// Surveys where the cores are, and chooses the near ones. Where ranks outnumber the cores, any place is right.
    pub(crate) fn survey(crowded: bool, read: Read<'_>) -> Result<Self, Failure> {
        let (mut readings, mut spent) = (Vec::new(), 0.0);
        while !crowded && readings.len() < READINGS && spent < SURVEYED {
            sleep(NAP);
            let reading = read()?;
            readings.push(reading.least);
            spent += reading.all;
        }
        Ok(Self { chosen: Group::near(&Group::of(readings)), vain: 0 })
    }

    /// Are the cores there now? Else waits a while until they are, where that has not been in vain.
    pub(crate) fn reached(&mut self, read: Read<'_>) -> Result<bool, Failure> {
        let naps = if self.vain < VAIN || self.vain.is_multiple_of(ONE_IN) { NAPS } else { 0 };
        let mut spent = 0.0;
        for nap in 0..=naps {
            if nap > 0 {
                sleep(NAP);
            }
            let mut counted = || read().inspect(|reading| spent += reading.all);
            if self.is_there(&mut counted)? {
                self.vain = 0;
                return Ok(true);
            }
            if spent > WAITED {
                break;
            }
        }
        self.vain += 1;
        Ok(false)
    }

    /// Are they there now?
    pub(crate) fn is_there(&self, read: Read<'_>) -> Result<bool, Failure> {
        Ok(match self.chosen {
            Some(chosen) => chosen.has(read()?.least),
            None => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(least: f64) -> Result<Reading, Failure> {
        Ok(Reading { least, all: least * f64::from(CALLS) })
    }

    #[test]
    fn waits_until_the_cores_are_near_and_less_where_that_is_in_vain() {
        let mut at = 0;
        let mut surveyed = || {
            at += 1;
            reading(if at % 3 == 0 { 620.0 } else { 195.0 })
        };
        let mut place = Place::survey(false, &mut surveyed).unwrap();
        let mut left = 3;
        let mut moves = || {
            left -= 1;
            reading(if left > 0 { 620.0 } else { 200.0 })
        };
        assert!(place.reached(&mut moves).unwrap());
        let mut looks = 0;
        let mut far = || {
            looks += 1;
            reading(620.0)
        };
        let waits = VAIN + 5;
        assert!((0..waits).all(|_| !place.reached(&mut far).unwrap()));
        assert!(Place::survey(true, &mut far).unwrap().is_there(&mut far).unwrap(), "crowded ranks are anywhere");
        assert_eq!(looks, VAIN * (NAPS + 1) + 5);
    }

    #[test]
    fn a_busy_machine_is_surveyed_for_seconds_and_waited_for_less() {
        // A hundred barriers take 400 ms.
        let busy = |least, looks: &mut u32| {
            *looks += 1;
            Ok(Reading { least, all: 4e8 })
        };
        let mut looks = [0, 0];
        let mut place = Place::survey(false, &mut || busy(195.0, &mut looks[0])).unwrap();
        assert!(!place.reached(&mut || busy(620.0, &mut looks[1])).unwrap());
        assert_eq!(looks, [5, 1]);
    }
}

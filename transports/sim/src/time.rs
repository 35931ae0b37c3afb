//! Virtual time in whole picoseconds, so that sums don't depend on rounding and the order of events is unique.

use std::fmt;
use std::ops::Add;

/// A moment of virtual time, or a time between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of a run; no time.
    pub const ZERO: Self = Self(0);

    /// After all others.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// `ns` nanoseconds, rounded to the nearest picosecond; 0 if `ns` is negative or not a number.
    pub fn from_ns(ns: f64) -> Self {
        // A cast of a float saturates, and makes NaN 0.
        Self((ns * 1e3).round() as u64)
    }

    /// In nanoseconds.
    pub fn ns(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// In picoseconds.
    pub(crate) const fn ps(self) -> u64 {
        self.0
    }

    /// `ps` picoseconds.
    pub(crate) const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }
}

impl Add for Time {
    type Output = Self;
    /// Saturates: 2⁶⁴ ps are 213 days.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.ns())
    }
}

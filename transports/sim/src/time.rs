//! Virtual time: whole picoseconds, so that equal sums are equal and events have one order.

use std::fmt;
use std::ops::Add;

/// A moment, or a span, of virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The beginning.
    pub const ZERO: Self = Self(0);

    /// `ns` nanoseconds, to the nearest picosecond; below zero, or no number: none.
    pub fn from_ns(ns: f64) -> Self {
        // A cast of a float saturates.
        Self((ns * 1e3).round() as u64)
    }

    /// In nanoseconds.
    pub fn ns(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The picoseconds.
    pub(crate) const fn ps(self) -> u64 {
        self.0
    }

    /// So many picoseconds.
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

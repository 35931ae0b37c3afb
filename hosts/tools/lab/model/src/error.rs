//! Errors name argument, value and bound.

use std::fmt;

/// How a value missed its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The value must be at least this.
    AtLeast(f64),
    /// The value must be above this.
    Above(f64),
    /// The value must be at most this.
    AtMost(f64),
    /// The value must equal this.
    Equals(f64),
    /// The value must divide this.
    Divides(f64),
}

/// A refused argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelError {
    /// Its name.
    pub argument: &'static str,
    /// Its value; counts are exact below 2⁵³.
    pub value: f64,
    /// The bound that it broke.
    pub bound: Bound,
}

/// Times, rates and their coefficients above this are absurd in any unit.
const LARGEST: f64 = 1e15;

impl ModelError {
    /// Is `value` within `bound`? A NaN never is.
    pub(crate) fn check(argument: &'static str, value: f64, bound: Bound) -> Result<f64, Self> {
        let ok = match bound {
            Bound::AtLeast(b) => value >= b,
            Bound::Above(b) => value > b,
            Bound::AtMost(b) => value <= b,
            Bound::Equals(b) => value == b,
            Bound::Divides(b) => value != 0.0 && b % value == 0.0,
        };
        if ok { Ok(value) } else { Err(Self { argument, value, bound }) }
    }

    /// A time that may be 0.
    pub(crate) fn time(argument: &'static str, value: f64) -> Result<f64, Self> {
        Self::check(argument, value, Bound::AtLeast(0.0))?;
        Self::check(argument, value, Bound::AtMost(LARGEST))
    }

    /// A time that is used as a divisor: it must be above 0.
    pub(crate) fn positive(argument: &'static str, value: f64) -> Result<f64, Self> {
        Self::check(argument, value, Bound::Above(0.0))?;
        Self::check(argument, value, Bound::AtMost(LARGEST))
    }

    /// A number that must be at least `least`, for the measurements from which models are made.
    ///
    /// # Errors
    /// There are fewer.
    pub fn at_least(argument: &'static str, value: u64, least: u64) -> Result<(), Self> {
        Self::count(argument, value, least).map(|_| ())
    }

    /// A count that must be at least `least`.
    pub(crate) fn count(argument: &'static str, value: u64, least: u64) -> Result<u64, Self> {
        Self::check(argument, value as f64, Bound::AtLeast(least as f64)).map(|_| value)
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { argument, value, bound } = self;
        match bound {
            Bound::AtLeast(b) => write!(f, "{argument} is {value}, must be at least {b}"),
            Bound::Above(b) => write!(f, "{argument} is {value}, must be above {b}"),
            Bound::AtMost(b) => write!(f, "{argument} is {value}, must be at most {b}"),
            Bound::Equals(b) => write!(f, "{argument} is {value}, must be {b}"),
            Bound::Divides(b) => write!(f, "{argument} is {value}, must divide {b}"),
        }
    }
}

impl std::error::Error for ModelError {}

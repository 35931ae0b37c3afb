//! A bound of time on each wait, as the environment sets it.

use crate::error::PosixError;
use crate::sys;
use std::time::Duration;

/// Environment variable: the bound, in seconds. Without it there is no bound, and a rank may compute as long as it
/// needs.
pub const TIMEOUT: &str = "UNISONO_TIMEOUT";

/// The bound that the environment sets.
///
/// # Errors
/// The variable is not a number above 0.
pub fn from_env() -> Result<Option<Duration>, PosixError> {
    sys::setting(TIMEOUT, "seconds, above 0", seconds)
}

/// A number of seconds above 0.
pub fn seconds(text: &str) -> Option<Duration> {
    let bound = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
    (!bound.is_zero()).then_some(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_a_number_of_seconds() {
        for (text, bound) in
            [("2", Some(2000)), ("0.25", Some(250)), ("0", None), ("-1", None), ("2s", None), ("inf", None)]
        {
            assert_eq!(seconds(text), bound.map(Duration::from_millis), "{text}");
        }
    }
}

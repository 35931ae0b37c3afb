//! Distributions, from the crate statrs, for tests and intervals.

use crate::{Bound, ModelError};
use statrs::distribution::{Binomial, ChiSquared, ContinuousCDF, DiscreteCDF, StudentsT};

/// Probability of `statistic` or more in a χ² distribution of `degrees` degrees of freedom, at least one.
pub(crate) fn chi_square_above(statistic: f64, degrees: u32) -> f64 {
    ChiSquared::new(f64::from(degrees)).map_or(f64::NAN, |distribution| distribution.sf(statistic))
}

/// The t for which a variable of Student's distribution lies between −t and t with probability `level`.
pub(crate) fn student_two_sided(level: f64, degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees)
        .map_or(f64::NAN, |distribution| distribution.inverse_cdf(f64::midpoint(1.0, level)))
}

/// A median, and its interval of confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// The median of the samples.
    pub value: f64,
    /// The interval's lower end: a sample.
    pub low: f64,
    /// Its upper end: a sample.
    pub high: f64,
}

impl Median {
    /// The median of samples with an interval of confidence `level` by the order of the samples alone, for any
    /// distribution (Conover, Practical Nonparametric Statistics, 3.2): the k-th and the k-th last, k the greatest for
    /// which fewer than k of n fair coins fall with probability (1 − level)/2 at most.
    ///
    /// # Errors
    /// Too few samples for the level (six for 95 %), a level that is not between 0 and 1, a sample that is not a time.
    pub fn new(samples: &[f64], level: f64) -> Result<Self, ModelError> {
        ModelError::check("confidence level", level, Bound::AtLeast(0.5))?;
        ModelError::check("confidence level", level, Bound::AtMost(0.9999))?;
        for sample in samples {
            ModelError::time("measured time", *sample)?;
        }
        let tail = (1.0 - level) / 2.0;
        // All of n coins on one side: 2⁻ⁿ.
        let least = (-tail.log2()).ceil();
        ModelError::check("samples", samples.len() as f64, Bound::AtLeast(least))?;
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let coins = Binomial::new(0.5, n as u64).ok();
        let below = |k: usize| coins.map_or(f64::NAN, |coins| coins.cdf(k as u64));
        let cut = (0..n / 2).take_while(|&k| below(k) <= tail).count().saturating_sub(1);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        let value = f64::midpoint(at((n - 1) / 2), at(n / 2));
        Ok(Self { value, low: at(cut), high: at(n - 1 - cut) })
    }

    /// Half the interval's width over the median: 0.05 is ± 5 %.
    pub fn spread(&self) -> f64 {
        if self.value > 0.0 { (self.high - self.low) / (2.0 * self.value) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, by: f64) {
        assert!((a - b).abs() < by, "{a} instead of {b}");
    }

    #[test]
    fn tables() {
        // Tables of χ²: 3.841 and 18.307 at 0.05, 15.086 at 0.01.
        close(chi_square_above(3.841, 1), 0.05, 1e-4);
        close(chi_square_above(18.307, 10), 0.05, 1e-4);
        close(chi_square_above(15.086, 5), 0.01, 1e-4);
        // Tables of t: 12.706, 4.303, 2.228 at 95 %, 1.960 in the limit.
        close(student_two_sided(0.95, 1.0), 12.706, 1e-3);
        close(student_two_sided(0.95, 2.0), 4.303, 1e-3);
        close(student_two_sided(0.95, 10.0), 2.228, 1e-3);
        close(student_two_sided(0.95, 1e6), 1.960, 1e-3);
    }

    /// Six coins on one side: 1/64 = 1.6 % at most 2.5 %, so the first and the last. Nine: 10/512 = 2.0 % have at most
    /// one on a side: the second and the second last. Eight: 9/256 = 3.5 %: the first and the last.
    #[test]
    fn medians_by_hand() {
        let of = |n: usize| Median::new(&(1..=n).rev().map(|x| x as f64).collect::<Vec<_>>(), 0.95).unwrap();
        assert_eq!(of(6), Median { value: 3.5, low: 1.0, high: 6.0 });
        assert_eq!(of(8), Median { value: 4.5, low: 1.0, high: 8.0 });
        assert_eq!(of(9), Median { value: 5.0, low: 2.0, high: 8.0 });
        close(of(9).spread(), 0.6, 1e-12);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let of = |samples: &[f64], level| Median::new(samples, level).unwrap_err().to_string();
        assert_eq!(of(&[1.0; 5], 0.95), "samples is 5, must be at least 6");
        assert_eq!(of(&[], 0.95), "samples is 0, must be at least 6");
        assert_eq!(of(&[-1.0; 6], 0.95), "measured time is -1, must be at least 0");
        assert_eq!(of(&[1.0; 6], 1.0), "confidence level is 1, must be at most 0.9999");
    }
}

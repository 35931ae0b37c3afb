//! Does a model agree with a measurement? Paper P4 asks Pearson's chi-square test, at α = 0.05.
//!
//! Pearson's Σ (O − E)² / E is made for counts. Of times it depends on their unit: the same data in
//! nanoseconds give a thousand times the statistic that they give in microseconds. The paper's probabilities
//! (0.995, 0.999992, 0.297) can't be judged without its unit, which it does not say. [`weighted`] divides by the
//! measured standard errors instead and has no unit: ours.

use crate::stats::chi_square_above;
use crate::{Bound, ModelError};

/// Outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChiSquare {
    /// χ².
    pub statistic: f64,
    /// Degrees of freedom: points less parameters estimated from them.
    pub degrees: u32,
    /// Probability of so large a statistic, or a larger one, if the model holds.
    pub probability: f64,
}

impl ChiSquare {
    /// Does the model pass at significance `alpha`, that is, is it not refuted?
    pub fn agrees(&self, alpha: f64) -> bool {
        self.probability >= alpha
    }

    fn new(terms: impl Iterator<Item = f64>, points: usize, estimated: u32) -> Result<Self, ModelError> {
        ModelError::count("samples", points as u64, u64::from(estimated) + 1)?;
        ModelError::check("samples", points as f64, Bound::AtMost(f64::from(u32::MAX)))?;
        let (statistic, degrees) = (terms.sum(), points as u32 - estimated);
        Ok(Self { statistic, degrees, probability: chi_square_above(statistic, degrees) })
    }
}

fn same_length(argument: &'static str, length: usize, other: usize) -> Result<(), ModelError> {
    ModelError::check(argument, length as f64, Bound::Equals(other as f64)).map(|_| ())
}

/// Pearson's test, Σ (O − E)² / E, of `measured` against `model` with `estimated` parameters of the model taken
/// from these very measurements (paper P4: 0).
///
/// # Errors
/// The slices differ in length, there are not more samples than estimated parameters, a measured value is
/// negative, a value of the model is not positive.
pub fn pearson(measured: &[f64], model: &[f64], estimated: u32) -> Result<ChiSquare, ModelError> {
    same_length("values of the model", model.len(), measured.len())?;
    for (o, e) in measured.iter().zip(model) {
        ModelError::time("measured value", *o)?;
        ModelError::positive("value of the model", *e)?;
    }
    let terms = measured.iter().zip(model).map(|(o, e)| (o - e) * (o - e) / e);
    ChiSquare::new(terms, measured.len(), estimated)
}

/// The test whose statistic does not depend on the unit, Σ ((O − E) / σ)², σ each measured value's standard error.
///
/// # Errors
/// As [`pearson`]; a standard error is not positive.
pub fn weighted(measured: &[f64], errors: &[f64], model: &[f64], estimated: u32) -> Result<ChiSquare, ModelError> {
    same_length("values of the model", model.len(), measured.len())?;
    same_length("standard errors", errors.len(), measured.len())?;
    for ((o, s), e) in measured.iter().zip(errors).zip(model) {
        ModelError::time("measured value", *o)?;
        ModelError::positive("standard error", *s)?;
        ModelError::time("value of the model", *e)?;
    }
    let terms = measured.iter().zip(errors).zip(model).map(|((o, s), e)| ((o - e) / s).powi(2));
    ChiSquare::new(terms, measured.len(), estimated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_die() {
        // 60 throws: 5, 8, 9, 8, 10, 20 against 10 each: (25 + 4 + 1 + 4 + 0 + 100) / 10 = 13.4, 5 degrees.
        // The table: 12.833 at 0.025, 15.086 at 0.01; 13.4 at 0.0199.
        let test = pearson(&[5.0, 8.0, 9.0, 8.0, 10.0, 20.0], &[10.0; 6], 1).unwrap();
        assert!((test.statistic - 13.4).abs() < 1e-12);
        assert_eq!(test.degrees, 5);
        assert!((test.probability - 0.0199).abs() < 1e-4);
        assert!(test.agrees(0.01) && !test.agrees(0.05));
    }

    #[test]
    fn standard_errors() {
        // ((11 - 10)/1)² + ((18 - 20)/2)² + ((33 - 30)/3)² = 3, 3 degrees: probability 0.3916.
        let test = weighted(&[11.0, 18.0, 33.0], &[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0], 0).unwrap();
        assert!((test.statistic - 3.0).abs() < 1e-12);
        assert!((test.probability - 0.3916).abs() < 1e-4);
    }

    #[test]
    fn the_papers_test_depends_on_the_unit() {
        let (measured, model) = ([11.0, 18.0], [10.0, 20.0]);
        let of = |scale: f64| pearson(&measured.map(|x| x * scale), &model.map(|x| x * scale), 0).unwrap();
        assert!((of(1000.0).statistic / of(1.0).statistic - 1000.0).abs() < 1e-9);
        assert!(of(1.0).agrees(0.05) && !of(1000.0).agrees(0.05));
        let same = |scale: f64| {
            let times = |x: [f64; 2]| x.map(|x| x * scale);
            weighted(&times(measured), &times([1.0, 1.0]), &times(model), 0).unwrap().statistic
        };
        assert!((same(1000.0) - same(1.0)).abs() < 1e-9);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let of = |measured: &[f64], model: &[f64], estimated| pearson(measured, model, estimated).unwrap_err();
        assert_eq!(of(&[1.0, 2.0], &[1.0, 2.0], 2).to_string(), "samples is 2, must be at least 3");
        assert_eq!(of(&[], &[], 0).to_string(), "samples is 0, must be at least 1");
        assert_eq!(of(&[1.0], &[1.0, 2.0], 0).to_string(), "values of the model is 2, must be 1");
        assert_eq!(of(&[-1.0], &[1.0], 0).to_string(), "measured value is -1, must be at least 0");
        assert_eq!(of(&[1.0], &[0.0], 0).to_string(), "value of the model is 0, must be above 0");
        assert_eq!(of(&[f64::NAN], &[1.0], 0).to_string(), "measured value is NaN, must be at least 0");
        let error = weighted(&[1.0], &[0.0], &[1.0], 0).unwrap_err();
        assert_eq!(error.to_string(), "standard error is 0, must be above 0");
    }
}

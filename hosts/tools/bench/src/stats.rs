//! Medians, spreads, ratios, geometric means.

use std::collections::BTreeMap;

/// The median; for an even number of values, the mean of the two in the middle. `None` without values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len().is_multiple_of(2) { (values[middle - 1] + upper) / 2.0 } else { upper })
}

/// (largest - smallest) ÷ median.
pub(crate) fn spread(values: &[f64]) -> Option<f64> {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    Some((most - least) / median(values.iter().copied())?)
}

/// The quotients of the rounds that both have.
pub(crate) fn pairwise(ours: &BTreeMap<u32, f64>, theirs: &BTreeMap<u32, f64>) -> Vec<f64> {
    ours.iter().filter_map(|(round, a)| Some(a / theirs.get(round)?)).collect()
}

/// The geometric mean. `None` without values.
pub(crate) fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.into_iter().fold((0.0, 0), |(sum, count), value| (sum + value.ln(), count + 1));
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median([7.0]), Some(7.0));
        assert_eq!(median([]), None);
    }

    #[test]
    fn spreads_are_relative_to_the_median() {
        assert_eq!(spread(&[1.0, 2.0, 4.0]), Some(1.5));
        assert_eq!(spread(&[5.0]), Some(0.0));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn ratios_pair_rounds() {
        let ours = BTreeMap::from([(0, 1.0), (1, 8.0), (3, 5.0)]);
        let theirs = BTreeMap::from([(0, 2.0), (1, 4.0), (2, 9.0)]);
        assert_eq!(pairwise(&ours, &theirs), [0.5, 2.0]);
        assert!(pairwise(&ours, &BTreeMap::new()).is_empty());
    }

    #[test]
    fn geometric_means() {
        assert!((geometric_mean([0.5, 2.0]).unwrap() - 1.0).abs() < 1e-12);
        assert!((geometric_mean([1.0, 10.0, 100.0]).unwrap() - 10.0).abs() < 1e-12);
        assert_eq!(geometric_mean([]), None);
    }
}

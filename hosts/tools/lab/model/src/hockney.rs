//! Paper P5's network: Hockney's T(L) = t_s + L·t_w, and whether its switch blocks.
//!
//! L counts elements of 4 bytes in the paper; here it has the unit of the samples.

use crate::stats::student_two_sided;
use crate::{Bound, ModelError};

/// Start-up time and time per element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hockney {
    startup: f64,
    element: f64,
}

impl Hockney {
    /// Paper P5's Fast Ethernet, in microseconds and elements of 4 bytes, by our reading of its damaged text: t_s ≈ 65.8, t_w ≈
    /// 0.437. Another reading has 66.1 and 0.085 (docs/explanation/papers.md).
    pub const PAPER: Self = Self { startup: 65.8, element: 0.437 };

    /// t_s and t_w.
    ///
    /// # Errors
    /// One of them is negative, absurd or not a number, or t_w is 0.
    pub fn new(startup: f64, element: f64) -> Result<Self, ModelError> {
        ModelError::time("start-up (t_s)", startup)?;
        ModelError::positive("time per element (t_w)", element)?;
        Ok(Self { startup, element })
    }

    /// The parameters from the times of two lengths, as in the paper.
    ///
    /// # Errors
    /// The second length is not above the first, or the times give no sound parameters.
    pub fn from_two((short, fast): (f64, f64), (long, slow): (f64, f64)) -> Result<Self, ModelError> {
        ModelError::time("shorter length", short)?;
        ModelError::check("longer length", long, Bound::Above(short))?;
        let element = (slow - fast) / (long - short);
        Self::new(fast - short * element, element)
    }

    /// t_s.
    pub fn startup(&self) -> f64 {
        self.startup
    }

    /// t_w.
    pub fn element(&self) -> f64 {
        self.element
    }

    /// T(L).
    pub fn time(&self, elements: f64) -> f64 {
        self.startup + elements * self.element
    }
}

/// An interval of confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The weight of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Weight {
    /// All weights are equal: errors have one size at every length.
    Equal,
    /// 1/T²: errors are a share of the time. Over sizes of several decades t_s needs this.
    #[default]
    Relative,
}

/// A straight line through samples. Estimates may be unsound (a negative t_s): see [`Fit::hockney`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Estimate of t_s.
    pub startup: f64,
    /// The interval of t_s, at the level asked for.
    pub startup_interval: Interval,
    /// Estimate of t_w.
    pub element: f64,
    /// The interval of t_w.
    pub element_interval: Interval,
    /// Standard deviation of the samples about the line: a time, or with relative weights a share of the time.
    pub deviation: f64,
}

impl Fit {
    /// Least squares through (elements, time), with intervals of confidence `level` by Student's distribution.
    ///
    /// # Errors
    /// Fewer than three samples, all of one length, a length or time that is negative, absurd or not a number (with
    /// relative weights, a time of 0), a level not between 0 and 1.
    pub fn new(samples: &[(f64, f64)], weight: Weight, level: f64) -> Result<Self, ModelError> {
        ModelError::count("samples", samples.len() as u64, 3)?;
        confidence(level)?;
        let mut points = Vec::with_capacity(samples.len());
        for &(x, y) in samples {
            ModelError::time("elements", x)?;
            let w = match weight {
                Weight::Equal => ModelError::time("measured time", y).map(|_| 1.0),
                Weight::Relative => ModelError::positive("measured time", y).map(|y| (y * y).recip()),
            }?;
            points.push((x, y, w));
        }
        let sum = |of: &dyn Fn((f64, f64, f64)) -> f64| points.iter().map(|point| of(*point)).sum::<f64>();
        let all = sum(&|(_, _, w)| w);
        let (x_mean, y_mean) = (sum(&|(x, _, w)| w * x) / all, sum(&|(_, y, w)| w * y) / all);
        let spread = sum(&|(x, _, w)| w * (x - x_mean).powi(2));
        let lengths = samples.iter().filter(|(x, _)| *x != samples[0].0).count().min(1) as u64 + 1;
        ModelError::count("different lengths", lengths, 2)?;
        let element = sum(&|(x, y, w)| w * (x - x_mean) * (y - y_mean)) / spread;
        let startup = y_mean - element * x_mean;
        let free = (samples.len() - 2) as f64;
        let variance = sum(&|(x, y, w)| w * (y - startup - element * x).powi(2)) / free;
        let t = student_two_sided(level, free);
        let around = |value: f64, variance: f64| {
            let half = t * variance.sqrt();
            Interval { low: value - half, high: value + half }
        };
        Ok(Self {
            startup,
            startup_interval: around(startup, variance * (all.recip() + x_mean * x_mean / spread)),
            element,
            element_interval: around(element, variance / spread),
            deviation: variance.sqrt(),
        })
    }

    /// The estimates as parameters.
    ///
    /// # Errors
    /// They are not sound: t_s is negative or t_w not positive (noise, or no line).
    pub fn hockney(&self) -> Result<Hockney, ModelError> {
        Hockney::new(self.startup, self.element)
    }
}

fn confidence(level: f64) -> Result<(), ModelError> {
    ModelError::check("confidence level", level, Bound::AtLeast(0.5))?;
    ModelError::check("confidence level", level, Bound::AtMost(0.9999)).map(|_| ())
}

/// One pair's bandwidth (P5's formula 4): `exchanges` exchanges of `bytes` bytes in `time`: 2NK/T.
///
/// # Errors
/// The time is not positive.
pub fn pair_bandwidth(bytes: u64, exchanges: u64, time: f64) -> Result<f64, ModelError> {
    let time = ModelError::positive("time (T)", time)?;
    Ok(2.0 * bytes as f64 * exchanges as f64 / time)
}

/// All to all, as printed (formula 5): 2(p − 1)NK/T. It counts the bytes that one process sends and receives. The
/// whole traffic is p/2 times that: [`all_bandwidth`].
///
/// # Errors
/// The time is not positive, or there are fewer than two processes.
pub fn all_bandwidth_printed(ranks: u32, bytes: u64, exchanges: u64, time: f64) -> Result<f64, ModelError> {
    ModelError::count("ranks (p)", ranks.into(), 2)?;
    Ok(f64::from(ranks - 1) * pair_bandwidth(bytes, exchanges, time)?)
}

/// All to all, every byte that crosses the switch: p(p − 1)NK/T.
///
/// # Errors
/// The time is not positive, or there are fewer than two processes.
pub fn all_bandwidth(ranks: u32, bytes: u64, exchanges: u64, time: f64) -> Result<f64, ModelError> {
    Ok(f64::from(ranks) / 2.0 * all_bandwidth_printed(ranks, bytes, exchanges, time)?)
}

/// Kinds of network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// Blocking: one transfer at a time.
    Star,
    /// Transfers of disjoint pairs do not disturb each other.
    Crossbar,
}

/// The kind of network that measurements show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// `None`: the interval contains the limit between both; more measurements are needed.
    pub network: Option<Network>,
    /// Bandwidth of all pairs ÷ of one pair: about 1 on a star, up to ⌊p/2⌋ on a crossbar.
    pub ratio: f64,
    /// The ratio's interval, at the level asked for.
    pub interval: Interval,
    /// √⌊p/2⌋: below it is a star. The paper knows "equal" only; "else a crossbar" is our inference.
    pub limit: f64,
}

/// Mean and squared standard error of the logarithms.
fn logs(argument: &'static str, values: &[f64]) -> Result<(f64, f64), ModelError> {
    ModelError::count(argument, values.len() as u64, 2)?;
    let mut logs = Vec::with_capacity(values.len());
    for value in values {
        logs.push(ModelError::positive(argument, *value)?.ln());
    }
    let n = values.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Ok((mean, variance / n))
}

/// Star or crossbar, from repeated bandwidths of one pair and of all pairs ([`all_bandwidth`]); the interval of their
/// ratio is Welch's, of logarithms.
///
/// # Errors
/// Fewer than four processes (two disjoint pairs), fewer than two samples of a kind, a sample that is not positive, a
/// level that is not between 0 and 1.
pub fn tell(ranks: u32, one: &[f64], all: &[f64], level: f64) -> Result<Verdict, ModelError> {
    ModelError::count("ranks (p)", ranks.into(), 4)?;
    confidence(level)?;
    let (one_mean, one_error) = logs("bandwidths of one pair", one)?;
    let (all_mean, all_error) = logs("bandwidths of all pairs", all)?;
    let error = one_error + all_error;
    let half = if error > 0.0 {
        let parts = one_error.powi(2) / (one.len() - 1) as f64 + all_error.powi(2) / (all.len() - 1) as f64;
        student_two_sided(level, error.powi(2) / parts) * error.sqrt()
    } else {
        0.0
    };
    let log = all_mean - one_mean;
    let interval = Interval { low: (log - half).exp(), high: (log + half).exp() };
    let limit = f64::from(ranks / 2).sqrt();
    let network = match interval {
        Interval { high, .. } if high < limit => Some(Network::Star),
        Interval { low, .. } if low > limit => Some(Network::Crossbar),
        _ => None,
    };
    Ok(Verdict { network, ratio: log.exp(), interval, limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64, by: f64) {
        assert!((a - b).abs() <= by * b.abs(), "{a} instead of {b}");
    }

    /// The paper's equations, in seconds, as the damaged text has them: t_s + t_w = 66.2196·10⁻⁶ and
    /// t_s + 2048·t_w = 0.1920935114307/(2·100) = 960.4676·10⁻⁶. Subtracted: 2047·t_w = 894.2480·10⁻⁶.
    #[test]
    fn the_papers_two_equations() {
        let found = Hockney::from_two((1.0, 66.2196), (2048.0, 960.467_557)).unwrap();
        close(found.element(), 0.436_858, 1e-5);
        close(found.startup(), 65.782_74, 1e-5);
        close(found.startup(), Hockney::PAPER.startup(), 1e-3);
        close(found.element(), Hockney::PAPER.element(), 1e-3);
        close(Hockney::PAPER.time(100.0), 109.5, 1e-12); // 65.8 + 43.7
    }

    /// (1, 2), (2, 3), (3, 5), (4, 6): means 2.5 and 4; Sxx = 5, Sxy = 3 + 0.5 + 0.5 + 3 = 7; slope 1.4, intercept 0.5;
    /// residuals 0.1, −0.3, 0.3, −0.1: s² = 0.2/2; errors √(0.1/5) and √(0.1·(1/4 + 6.25/5)); t(0.95, 2) = 4.302653.
    #[test]
    fn least_squares_by_hand() {
        let fit = Fit::new(&[(1.0, 2.0), (2.0, 3.0), (3.0, 5.0), (4.0, 6.0)], Weight::Equal, 0.95).unwrap();
        close(fit.element, 1.4, 1e-12);
        close(fit.startup, 0.5, 1e-12);
        close(fit.deviation, 0.1f64.sqrt(), 1e-12);
        close(fit.element_interval.high, 1.4 + 4.302_653 * 0.141_421_36, 1e-6);
        close(fit.startup_interval.low, 0.5 - 4.302_653 * 0.387_298_33, 1e-6);
        assert_eq!(fit.hockney(), Hockney::new(fit.startup, fit.element));
    }

    #[test]
    fn a_fit_that_makes_no_sense_is_refused_only_as_parameters() {
        let fit = Fit::new(&[(1.0, 1.0), (2.0, 3.0), (3.0, 5.0)], Weight::Equal, 0.95).unwrap();
        close(fit.startup, -1.0, 1e-9);
        assert_eq!(fit.hockney().unwrap_err().argument, "start-up (t_s)");
        let fit = Fit::new(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)], Weight::Equal, 0.95).unwrap();
        assert_eq!(fit.hockney().unwrap_err().argument, "time per element (t_w)");
    }

    #[test]
    fn bandwidths_by_hand() {
        assert_eq!(pair_bandwidth(1000, 100, 0.5), Ok(400_000.0)); // 2 · 1000 · 100 / 0.5
        assert_eq!(all_bandwidth_printed(5, 1000, 100, 0.5), Ok(1_600_000.0)); // · 4
        assert_eq!(all_bandwidth(5, 1000, 100, 0.5), Ok(4_000_000.0)); // 5 · 4 · 1000 · 100 / 0.5
        assert_eq!(pair_bandwidth(1, 1, 0.0).unwrap_err().to_string(), "time (T) is 0, must be above 0");
        assert_eq!(all_bandwidth(1, 1, 1, 1.0).unwrap_err().to_string(), "ranks (p) is 1, must be at least 2");
    }

    #[test]
    fn stars_and_crossbars() {
        let one = [100.0, 102.0, 98.0, 101.0];
        let star = tell(8, &one, &[97.0, 103.0, 99.0], 0.95).unwrap();
        assert_eq!(star.network, Some(Network::Star));
        assert!(star.interval.low < 1.0 && star.interval.high > 1.0 && star.limit == 2.0);
        let crossbar = tell(8, &one, &[390.0, 410.0, 380.0], 0.95).unwrap();
        assert_eq!(crossbar.network, Some(Network::Crossbar));
        close(crossbar.ratio, 3.925, 0.01);
        // Noise about the limit widens the interval over it.
        assert_eq!(tell(8, &one, &[100.0, 400.0], 0.95).unwrap().network, None);
        // Without noise the interval is a point.
        let exact = tell(4, &[1.0, 1.0], &[2.0, 2.0], 0.95).unwrap();
        assert_eq!((exact.network, exact.interval.low), (Some(Network::Crossbar), exact.interval.high));
    }

    /// Welch by hand: ln of (1, e) and (e², e⁴): means 0.5 and 3, squared errors 0.5/2 and 2/2; 1.25² / (0.25² + 1²) =
    /// 1.470588 degrees of freedom; √1.25 = 1.118034.
    #[test]
    fn intervals_of_ratios_by_hand() {
        let e = std::f64::consts::E;
        let verdict = tell(4, &[1.0, e], &[e * e, e.powi(4)], 0.9).unwrap();
        close(verdict.ratio, 2.5f64.exp(), 1e-9);
        close((verdict.interval.high / verdict.ratio).ln(), student_two_sided(0.9, 1.470_588_235) * 1.118_034, 1e-6);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let of = |samples: &[(f64, f64)], weight| Fit::new(samples, weight, 0.95).unwrap_err().to_string();
        assert_eq!(of(&[(1.0, 1.0), (2.0, 2.0)], Weight::Equal), "samples is 2, must be at least 3");
        assert_eq!(of(&[(1.0, 1.0); 9], Weight::Equal), "different lengths is 1, must be at least 2");
        assert_eq!(of(&[(1.0, 0.0); 3], Weight::Relative), "measured time is 0, must be above 0");
        assert_eq!(of(&[(-1.0, 1.0); 3], Weight::Equal), "elements is -1, must be at least 0");
        let level = Fit::new(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)], Weight::Equal, 95.0).unwrap_err();
        assert_eq!(level.to_string(), "confidence level is 95, must be at most 0.9999");
        assert_eq!(Hockney::new(-1.0, 1.0).unwrap_err().to_string(), "start-up (t_s) is -1, must be at least 0");
        assert_eq!(Hockney::new(1.0, 0.0).unwrap_err().to_string(), "time per element (t_w) is 0, must be above 0");
        let same = Hockney::from_two((5.0, 1.0), (5.0, 2.0)).unwrap_err();
        assert_eq!(same.to_string(), "longer length is 5, must be above 5");
        let few = tell(8, &[1.0], &[1.0, 2.0], 0.95).unwrap_err();
        assert_eq!(few.to_string(), "bandwidths of one pair is 1, must be at least 2");
        assert_eq!(tell(3, &[1.0; 2], &[1.0; 2], 0.95).unwrap_err().to_string(), "ranks (p) is 3, must be at least 4");
    }

    proptest! {
        /// Samples on a line give the line back, with either weight.
        #[test]
        fn lines_are_found(startup in 0.1..100.0, element in 0.001..10.0, step in 1.0..1000.0) {
            let line = Hockney::new(startup, element).unwrap();
            let samples: Vec<_> = (0..7).map(|i| f64::from(i) * step).map(|x| (x, line.time(x))).collect();
            for weight in [Weight::Equal, Weight::Relative] {
                let fit = Fit::new(&samples, weight, 0.95).unwrap();
                let tolerance = 1e-6 * line.time(6.0 * step);
                prop_assert!((fit.startup - startup).abs() < tolerance);
                prop_assert!((fit.element / element - 1.0).abs() < 1e-6);
                prop_assert!(fit.startup_interval.low <= fit.startup && fit.startup <= fit.startup_interval.high);
            }
        }
    }

    /// About 95 of 100 intervals hold what they should: of 1000 fits of a noisy line 950 ± 7, with noise from a fixed
    /// sequence.
    #[test]
    fn intervals_cover() {
        let mut state = 1u64;
        let mut noise = || {
            // Sum of twelve uniform numbers less six: nearly normal, deviation 1.
            let uniform = |_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as f64 / f64::from(1u32 << 31)
            };
            (0..12).map(uniform).sum::<f64>() - 6.0
        };
        let held = (0..1000).filter(|_| {
            let samples: Vec<_> = (1..=10).map(f64::from).map(|x| (x, 20.0 + 3.0 * x + 0.5 * noise())).collect();
            let fit = Fit::new(&samples, Weight::Equal, 0.95).unwrap();
            fit.startup_interval.low <= 20.0 && 20.0 <= fit.startup_interval.high
        });
        let held = held.count();
        assert!((925..975).contains(&held), "{held}");
    }
}

//! The papers' figures that follow from formulas alone, as series of points.

use crate::adaptive::Adaptive;
use crate::bagds::Algorithm;
use crate::barrier::{Barrier, Logs};
use crate::hockney::{Hockney, Network};
use crate::logp::LogP;
use crate::queue::{Queue, Times};
use crate::{Bound, ModelError};

/// One line of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Does it use the axis on the right, in the same unit?
    pub right: bool,
    /// x against y.
    pub points: Vec<(f64, f64)>,
}

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The title, with the figure's parameters.
    pub title: String,
    /// Name of the horizontal axis.
    pub x: &'static str,
    /// Name of the vertical axis.
    pub y: &'static str,
    /// Its lines.
    pub series: Vec<Series>,
}

impl Series {
    fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), right: false, points: points.into_iter().collect() }
    }

    /// The total and its terms, which are small beside it.
    fn of_terms<const N: usize>(names: [&str; N]) -> [Self; N] {
        let mut first = true;
        names.map(|name| Self { right: !std::mem::take(&mut first), ..Self::new(name, []) })
    }
}

/// The step between two fragments of figures 4 and 8, in bytes.
const STEP: u64 = 512;

fn milliseconds(nanoseconds: f64) -> f64 {
    nanoseconds * 1e-6
}

/// P1, figure 4: t(m, s) over f for a queue of b bytes, and the two terms that depend on f. `times` in nanoseconds.
///
/// # Errors
/// The queue has no bytes.
pub fn p1_4(times: &Times, message: u64, queue: u64) -> Result<Figure, ModelError> {
    let mut series = Series::of_terms(["t(m, s)", "⌈m/b⌉·t_C", "⌈m/f⌉·t_W"]);
    for fragment in (STEP..=64 << 10).step_by(STEP as usize) {
        let terms = times.bytes(message, fragment, queue)?;
        for (series, time) in series.iter_mut().zip([terms.total(), terms.wait, terms.notices]) {
            series.points.push((fragment as f64, milliseconds(time)));
        }
    }
    let title = format!("P1, figure 4: m = {message}, b = {queue}");
    Ok(Figure { title, x: "bytes of a slot, f", y: "ms", series: series.into() })
}

/// P1, figure 6: t(m, s) over s, 1 to 128. `times` in nanoseconds.
///
/// # Errors
/// The fragment has no bytes.
pub fn p1_6(times: &Times, message: u64, fragment: u64) -> Result<Figure, ModelError> {
    let of = |slots| {
        let terms = times.slots(Queue { message, fragment, slots, sets: 1 })?;
        Ok((slots as f64, milliseconds(terms.total())))
    };
    let points = (1..=128).map(of).collect::<Result<Vec<_>, _>>()?;
    let title = format!("P1, figure 6: m = {message}, f = {fragment}");
    Ok(Figure { title, x: "slots, s", y: "ms", series: vec![Series::new("t(m, s)", points)] })
}

/// P1, figure 8: the sawtooth of t(m, s) over f where s is fixed. `times` in nanoseconds.
///
/// # Errors
/// There are no slots.
pub fn p1_8(times: &Times, message: u64, slots: u64) -> Result<Figure, ModelError> {
    let mut series = Series::of_terms(["t(m, s)", "⌈m/(f·s)⌉·t_C"]);
    for fragment in (8 << 10..=256 << 10).step_by(STEP as usize) {
        let terms = times.slots(Queue { message, fragment, slots, sets: 1 })?;
        for (series, time) in series.iter_mut().zip([terms.total(), terms.wait]) {
            series.points.push((fragment as f64, milliseconds(time)));
        }
    }
    let title = format!("P1, figure 8: m = {message}, s = {slots}");
    Ok(Figure { title, x: "bytes of a slot, f", y: "ms", series: series.into() })
}

/// P4, figure 6: times of `barriers` for 2 to `most` processes, in the parameters' unit.
///
/// # Errors
/// Fewer than two processes, no barrier, or an absurd arity.
pub fn p4_6(logp: &LogP, barriers: &[Barrier], most: u32, logs: Logs) -> Result<Figure, ModelError> {
    ranks(most)?;
    let mut series = Vec::new();
    for barrier in barriers {
        let of = |ranks| Ok((f64::from(ranks), barrier.time(logp, ranks, logs)?));
        series.push(Series::new(barrier.to_string(), (2..=most).map(of).collect::<Result<Vec<_>, _>>()?));
    }
    let mut adaptive = Adaptive::new(*logp, barriers, logs)?;
    let mut of = |ranks| Ok((f64::from(ranks), adaptive.choose(ranks)?.time));
    series.push(Series::new("adaptive", (2..=most).map(&mut of).collect::<Result<Vec<_>, _>>()?));
    Ok(Figure { title: "P4, figure 6: barriers in LogP".into(), x: "processes, P", y: "time", series })
}

/// P5, figures 5 (star) and 6 (crossbar): allgathers over N elements in all, 1 to `most`, in the parameters' unit.
///
/// # Errors
/// Fewer than two processes, more than 4096, or no elements.
pub fn p5(network: Network, hockney: &Hockney, p: u32, most: u32) -> Result<Figure, ModelError> {
    ranks(p)?;
    ModelError::count("elements (N)", most.into(), 1)?;
    let mut series = Vec::new();
    for algorithm in Algorithm::ALL {
        let cost = algorithm.cost(network, p)?;
        let points = (0..=100).map(|i| (f64::from(most) * f64::from(i) / 100.0).max(1.0));
        series.push(Series::new(algorithm.name(), points.map(|n| (n, cost.time(hockney, n)))));
    }
    let (number, name) = match network {
        Network::Star => (5, "star"),
        Network::Crossbar => (6, "crossbar"),
    };
    Ok(Figure { title: format!("P5, figure {number}: {name}, p = {p}"), x: "elements in all, N", y: "time", series })
}

fn ranks(most: u32) -> Result<(), ModelError> {
    ModelError::count("ranks (p)", most.into(), 2)?;
    ModelError::check("ranks (p)", most.into(), Bound::AtMost(4096.0)).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn at(series: &Series, x: f64) -> f64 {
        series.points.iter().find(|point| point.0 == x).expect("a point").1
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs(), "{a} instead of {b}");
    }

    /// m = 16 MiB, b = 4 MiB: at f = 8192: 4 · (100 + 10 + 8192) + 2048 · 50 + 2²⁴ ns = 16 912 824 ns; its terms 4 ·
    /// 8192 ns and 2048 · 50 ns. The least lies at f* = 14481 B but for the steps of ⌈m/f⌉.
    #[test]
    fn figure_p1_4() {
        let figure = p1_4(&Times::PAPER, 16 * MIB, 4 * MIB).unwrap();
        close(at(&figure.series[0], 8192.0), 16.912_824);
        close(at(&figure.series[1], 8192.0), 0.032_768);
        close(at(&figure.series[2], 8192.0), 0.102_4);
        let least = figure.series[0].points.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        assert!((14_000.0..15_000.0).contains(&least.0), "{least:?}");
        // The rising and the falling term are equal about there.
        let (wait, notices) = (at(&figure.series[1], 14_336.0), at(&figure.series[2], 14_336.0));
        assert!((wait / notices - 1.0).abs() < 0.05);
    }

    /// f = 8192, 2048 fragments. s = 1: 2048 · (110 + 8192) + 2048 · 50 + 2²⁴ = 33 882 112 ns; s = 64, 32 uses: 32 ·
    /// 8302 + 102400 + 2²⁴.
    #[test]
    fn figure_p1_6() {
        let figure = p1_6(&Times::PAPER, 16 * MIB, 8192).unwrap();
        close(at(&figure.series[0], 1.0), 33.882_112);
        close(at(&figure.series[0], 64.0), 17.145_28);
        assert!(figure.series[0].points.windows(2).all(|pair| pair[1].1 <= pair[0].1));
    }

    /// s = 32: teeth end where m/(32·f) is whole, f = 512 KiB/k. There the wait is m·t/32 = 524 288 ns, 512 bytes
    /// before it k + 1 fragments (for k = 32 the teeth are narrower than that).
    #[test]
    fn figure_p1_8() {
        let figure = p1_8(&Times::PAPER, 16 * MIB, 32).unwrap();
        let wait = &figure.series[1];
        for k in [2u32, 4, 8, 16, 32] {
            let tooth = f64::from((512 << 10) / k);
            close(at(wait, tooth), 0.524_288);
            if k < 32 {
                close(at(wait, tooth - 512.0), (f64::from(k) + 1.0) * (tooth - 512.0) * 1e-6);
            }
        }
        let falls = figure.series[0].points.windows(2).filter(|pair| pair[1].1 < pair[0].1 - 0.01).count();
        assert!(falls >= 15, "{falls}");
    }

    /// The barriers' own tests have the formulas; here their order, as figure 6 has it: the central counter far behind,
    /// dissemination below the combining tree for every P.
    #[test]
    fn figure_p4_6() {
        let figure = p4_6(&LogP::PAPER, &Barrier::PAPER, 100, Logs::Printed).unwrap();
        let [central, combining, dissemination, adaptive] = &figure.series[..] else { panic!("four lines") };
        assert_eq!(central.points.len(), 99);
        assert!(combining.points.iter().zip(&dissemination.points).all(|(a, b)| a.1 > b.1));
        assert!(at(central, 100.0) / at(combining, 100.0) > 3.0);
        assert_eq!(adaptive.points, dissemination.points);
    }

    #[test]
    fn figures_p5() {
        for network in [Network::Star, Network::Crossbar] {
            let figure = p5(network, &Hockney::PAPER, 8, 400).unwrap();
            assert_eq!(figure.series.len(), 6);
            close(at(&figure.series[0], 100.0), 3_491.862_5); // (49 · 65.8 + 6.125 · 100 · 0.437)
            assert!(figure.series.iter().all(|line| line.points.len() == 101));
        }
        // The printed bound crosses the printed direct exchange between 147 and 148.
        let star = p5(Network::Star, &Hockney::PAPER, 8, 400).unwrap();
        let faster = |x| at(&star.series[2], x) < at(&star.series[0], x);
        assert!(faster(144.0) && !faster(148.0));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(p1_4(&Times::PAPER, 1, 0).unwrap_err().to_string(), "queue (b) is 0, must be at least 1");
        assert_eq!(p1_6(&Times::PAPER, 1, 0).unwrap_err().to_string(), "fragment (f) is 0, must be at least 1");
        assert_eq!(p1_8(&Times::PAPER, 1, 0).unwrap_err().to_string(), "slots (s) is 0, must be at least 1");
        let few = p4_6(&LogP::PAPER, &Barrier::PAPER, 1, Logs::Rounds).unwrap_err();
        assert_eq!(few.to_string(), "ranks (p) is 1, must be at least 2");
        let none = p5(Network::Star, &Hockney::PAPER, 8, 0).unwrap_err();
        assert_eq!(none.to_string(), "elements (N) is 0, must be at least 1");
    }
}

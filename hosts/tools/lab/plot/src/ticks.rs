//! The grid lines of a logarithmic axis, and which of them have a label.

/// The lines of an axis, ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ticks {
    /// With a label.
    pub(crate) labelled: Vec<f64>,
    /// Without one, fainter.
    pub(crate) faint: Vec<f64>,
}

/// Lines of an axis of bytes: powers of 8 with labels, powers of 2 between them. Where that makes more than `room`
/// labels, powers of 64 have them, and so on. Where the axis has fewer than two powers of 8, powers of 2 have labels.
pub(crate) fn bytes(span: (f64, f64), room: usize) -> Ticks {
    let powers = |step: usize| -> Vec<f64> {
        (0..u64::BITS).step_by(step).map(|power| (1_u64 << power) as f64).filter(within(span)).collect()
    };
    let all = powers(1);
    if powers(3).len() < 2 && all.len() <= room {
        return Ticks { labelled: all, faint: Vec::new() };
    }
    let (mut step, mut faint) = (3, 1);
    while powers(step).len() > room.max(1) && step < u64::BITS as usize {
        (step, faint) = (step + 3, 3);
    }
    Ticks { labelled: powers(step), faint: powers(faint) }
}

/// Lines of an axis of any values above 0: powers of 10 with labels, and 2 and 5 times them if there are at most `room`
/// labels then; lines at all digits. On a shorter axis, whole multiples of 1, 2 or 5 times a power of 10.
pub(crate) fn decimals(span: (f64, f64), room: usize) -> Ticks {
    let (Some(low), Some(high)) = (decade(span.0), decade(span.1)) else { return Ticks::default() };
    let digits = |digits: &[f64], step: usize| -> Vec<f64> {
        // A multiple of the step, so that the labels do not depend on where the axis begins.
        let first = low.div_euclid(step as i32) * step as i32;
        let powers = (first..=high).step_by(step).map(power);
        powers.flat_map(|power| digits.iter().map(move |digit| digit * power)).filter(within(span)).collect()
    };
    let all = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
    let thirds = digits(&[1.0, 2.0, 5.0], 1);
    if thirds.len() < 3 {
        return linear(span, room.clamp(3, 8));
    }
    if thirds.len() <= room {
        return Ticks { labelled: thirds, faint: digits(&all, 1) };
    }
    let mut step = 1;
    while digits(&[1.0], step).len() > room.max(1) {
        step += 1;
    }
    let faint = if step == 1 { digits(&all, 1) } else { digits(&[1.0], 1) };
    Ticks { labelled: digits(&[1.0], step), faint }
}

/// Whole multiples of the shortest step of 1, 2 or 5 times a power of 10 that has at most `room` of them.
fn linear(span: (f64, f64), room: usize) -> Ticks {
    let Some(finest) = decade((span.1 - span.0) / room as f64) else { return Ticks::default() };
    let steps = (finest..finest + 3).flat_map(|exponent| [1, 2, 5].map(|digit| (digit, exponent)));
    let multiples = |(digit, exponent): (i32, i32)| -> Vec<f64> {
        let step = f64::from(digit) * power(exponent);
        let (first, last) = ((span.0 / step).ceil() as i64, (span.1 / step).floor() as i64);
        // The digit times a power is exact where the power is a whole number's inverse: 0.9, not 0.9000000000000001.
        let one = |multiple: i64| {
            let digits = (multiple * i64::from(digit)) as f64;
            if exponent < 0 { digits / power(-exponent) } else { digits * power(exponent) }
        };
        (first..=last).map(one).collect()
    };
    let fitting = steps.map(multiples).find(|multiples| multiples.len() <= room);
    Ticks { labelled: fitting.unwrap_or_default(), faint: Vec::new() }
}

/// Is a value on the axis?
fn within((least, most): (f64, f64)) -> impl Fn(&f64) -> bool {
    move |value| *value >= least && *value <= most
}

/// The exponent of the power of 10 at or below a value; nothing where it has none.
fn decade(value: f64) -> Option<i32> {
    (value > 0.0 && value.is_finite()).then(|| value.log10().floor() as i32)
}

fn power(exponent: i32) -> f64 {
    10_f64.powi(exponent)
}

/// A time in nanoseconds as people write it: 500 ns, 2 µs, 1.5 ms, 10 s.
pub(crate) fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{} {unit}", crate::short(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_powers_of_eight() {
        let ticks = bytes((6.0, 5e6), 8);
        let labels: Vec<_> = ticks.labelled.iter().map(|value| crate::bytes(*value as u64)).collect();
        assert_eq!(labels, ["8 B", "64 B", "512 B", "4 KiB", "32 KiB", "256 KiB", "2 MiB"]);
        assert_eq!((ticks.faint.len(), ticks.faint[0], ticks.faint[19]), (20, 8.0, 4194304.0));
        // Less room: each second one, and these alone between.
        let ticks = bytes((6.0, 5e6), 6);
        assert_eq!(ticks.labelled, [64.0, 4096.0, 262144.0]);
        assert_eq!(ticks.faint, [8.0, 64.0, 512.0, 4096.0, 32768.0, 262144.0, 2097152.0]);
        // A single length, and all that there are.
        assert_eq!(bytes((800.0, 1400.0), 8).labelled, [1024.0]);
        assert_eq!(bytes((700.0, 5000.0), 8).labelled, [1024.0, 2048.0, 4096.0]);
        let all = bytes((1.0, 2e19), 8);
        assert!((3..=8).contains(&all.labelled.len()) && all.labelled[0] == 1.0, "{all:?}");
    }

    #[test]
    fn decimals_have_powers_of_ten_and_more_where_there_is_room() {
        let ticks = decimals((80.0, 12_000.0), 14);
        assert_eq!(ticks.labelled, [100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4]);
        let labels: Vec<_> = ticks.labelled.iter().map(|value| time(*value)).collect();
        assert_eq!(labels, ["100 ns", "200 ns", "500 ns", "1 µs", "2 µs", "5 µs", "10 µs"]);
        assert_eq!(ticks.faint[..3], [80.0, 90.0, 100.0]);
        let ticks = decimals((30.0, 3e8), 14);
        assert_eq!(ticks.labelled, [1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8]);
        assert_eq!(decimals((1e-6, 1e6), 5).labelled, [1e-6, 1e-3, 1.0, 1e3, 1e6]);
        assert_eq!(decimals((0.3, 3.0), 14).labelled, [0.5, 1.0, 2.0]);
    }

    #[test]
    fn a_short_axis_has_labels_too() {
        assert_eq!(decimals((0.86, 1.21), 8).labelled, [0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2]);
        assert_eq!(decimals((310.0, 480.0), 8).labelled, [350.0, 400.0, 450.0]);
    }

    /// On any axis labels ascend, lie on the axis, and there are at least two and at most as many as there is room for.
    #[test]
    fn every_axis_has_some_labels_and_not_too_many() {
        for least in [1e-4, 0.37, 1.0, 7.3, 64.0, 999.0, 3.1e7] {
            for width in [1.2, 1.5, 2.0, 3.0, 7.0, 10.0, 90.0, 1e4, 1e9] {
                for room in [4, 7, 14] {
                    let span = (least, least * width);
                    let ticks = decimals(span, room);
                    assert!((2..=room.max(3)).contains(&ticks.labelled.len()), "{span:?} {room}: {ticks:?}");
                    for values in [&ticks.labelled, &ticks.faint] {
                        assert!(values.iter().all(within(span)) && values.is_sorted(), "{span:?} {room}: {ticks:?}");
                    }
                }
            }
        }
        for span in [(0.0, 1.0), (f64::NAN, 1.0), (-1.0, f64::INFINITY)] {
            assert_eq!(decimals(span, 8), Ticks::default(), "{span:?}");
        }
    }

    #[test]
    fn times_have_units() {
        assert_eq!(
            [0.5, 250.0, 1e3, 1.5e6, 2e9, 1e12].map(time),
            ["0.5 ns", "250 ns", "1 µs", "1.5 ms", "2 s", "1000 s"]
        );
    }
}

//! The two distributions that the tests and intervals need, from the incomplete gamma and beta functions
//! (DLMF 8.7, 8.9, 8.17). Relative accuracy about 1e-12. Two functions do not earn a statistics crate.

use std::f64::consts::PI;

/// Terms after which a series or fraction is given up: it has converged long before.
const TERMS: u32 = 10_000;
const TINY: f64 = 1e-300;

/// ln Γ(x), x > 0, by Lanczos's approximation (g = 7, nine terms).
fn ln_gamma(x: f64) -> f64 {
    const FIRST: f64 = 0.999_999_999_999_809_9;
    const C: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        return (PI / (PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let (sum, _) = C.iter().fold((FIRST, x + 1.0), |(sum, at), c| (sum + c / at, at + 1.0));
    let t = x + 7.5;
    0.5 * (2.0 * PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// A continued fraction b₀ + a₁/(b₁ + a₂/(b₂ + …)) by Lentz's method; `next(i)` gives (aᵢ, bᵢ) from i = 1.
fn fraction(first: f64, next: impl Fn(f64) -> (f64, f64)) -> f64 {
    let away = |x: f64| if x.abs() < TINY { TINY } else { x };
    let mut value = away(first);
    let (mut c, mut d) = (value, 0.0);
    for i in 1..TERMS {
        let (a, b) = next(f64::from(i));
        d = 1.0 / away(b + a * d);
        c = away(b + a / c);
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// Q(a, x) = Γ(a, x) / Γ(a), a > 0, x ≥ 0.
fn upper_gamma(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let scale = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum) = (1.0 / a, 1.0 / a);
        for n in 1..TERMS {
            term *= x / (a + f64::from(n));
            sum += term;
            if term < sum * 1e-16 {
                break;
            }
        }
        return 1.0 - scale * sum;
    }
    scale / fraction(x + 1.0 - a, |n| (-n * (n - a), x + 2.0 * n + 1.0 - a))
}

/// The probability that χ² with `degrees` degrees of freedom is `x` or more.
pub(crate) fn chi_square_above(x: f64, degrees: u32) -> f64 {
    upper_gamma(f64::from(degrees) / 2.0, x / 2.0)
}

/// I_x(a, b), the regularised incomplete beta function.
fn beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta(1.0 - x, b, a);
    }
    let scale = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    let coefficient = |i: f64| {
        let m = (i / 2.0).floor();
        if i % 2.0 == 0.0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        }
    };
    scale / fraction(1.0, |i| (coefficient(i), 1.0))
}

/// The t with P(|T| ≤ t) = `level` for Student's distribution with `degrees` (not always whole) degrees of freedom.
pub(crate) fn student_two_sided(level: f64, degrees: f64) -> f64 {
    let inside = |t: f64| 1.0 - beta(degrees / (degrees + t * t), degrees / 2.0, 0.5);
    let mut high = 1.0;
    while inside(high) < level && high < 1e12 {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if inside(middle) < level { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gammas_of_whole_and_half_numbers() {
        // Γ(5) = 24, Γ(1/2) = √π, Γ(1/4) = 3.625609908…
        assert!((ln_gamma(5.0) - 24f64.ln()).abs() < 1e-12);
        assert!((ln_gamma(0.5) - PI.sqrt().ln()).abs() < 1e-12);
        assert!((ln_gamma(0.25) - 3.625_609_908_221_908f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn the_table_of_chi_square() {
        // Critical values of the usual table (Abramowitz and Stegun 26.8): (degrees, probability above, value).
        for (degrees, above, value) in [
            (1, 0.05, 3.841_459),
            (1, 0.995, 3.927e-5),
            (2, 0.05, 5.991_465),
            (5, 0.01, 15.086_27),
            (10, 0.95, 3.940_299),
            (10, 0.05, 18.307_04),
            (30, 0.05, 43.772_97),
            (98, 0.05, 122.107_7),
            (100, 0.95, 77.929_5),
        ] {
            let found = chi_square_above(value, degrees);
            assert!((found - above).abs() < 2e-5 * above.max(0.05), "{degrees} {value}: {found}");
        }
        // Two degrees: e^(-x/2) exactly, far out too.
        assert!((chi_square_above(200.0, 2) / (-100f64).exp() - 1.0).abs() < 1e-10);
        assert_eq!(chi_square_above(0.0, 7), 1.0);
    }

    #[test]
    fn the_table_of_student() {
        for (level, degrees, t) in [
            (0.95, 1.0, 12.706_20),
            (0.95, 2.0, 4.302_653),
            (0.95, 10.0, 2.228_139),
            (0.99, 5.0, 4.032_143),
            (0.90, 30.0, 1.697_261),
            (0.95, 120.0, 1.979_930),
        ] {
            assert!((student_two_sided(level, degrees) / t - 1.0).abs() < 1e-6, "{level} {degrees}");
        }
    }
}

//! Paper P5's measures of a parallel program (section 1): the time of n floating-point operations, speed-up and efficiency.

use crate::ModelError;

/// T_F(n) = n / FLOPS, in seconds: the time of `operations` floating-point operations on a processor that does `rate` of
/// them in a second (formula 1).
///
/// # Errors
/// A number that is negative, absurd or not a number; a rate of 0.
pub fn floating(operations: f64, rate: f64) -> Result<f64, ModelError> {
    Ok(ModelError::time("operations (n)", operations)? / ModelError::positive("FLOPS", rate)?)
}

/// The times of a program, in one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Program {
    sequential: f64,
    parallel: f64,
    ranks: u32,
}

impl Program {
    /// T_1 of the sequential program; T_p,comp of the computation of `ranks` processes, and T_p,comm of their messages, which
    /// do not overlap in the paper.
    ///
    /// # Errors
    /// A time that is negative, absurd or not a number; parallel times that are both 0; no process.
    pub fn new(sequential: f64, computing: f64, communicating: f64, ranks: u32) -> Result<Self, ModelError> {
        ModelError::count("ranks (p)", ranks.into(), 1)?;
        let sequential = ModelError::time("sequential time (T_1)", sequential)?;
        let computing = ModelError::time("time of the computation (T_p,comp)", computing)?;
        let communicating = ModelError::time("time of the messages (T_p,comm)", communicating)?;
        let parallel = ModelError::positive("time of p processes", computing + communicating)?;
        Ok(Self { sequential, parallel, ranks })
    }

    /// S = T_1 / (T_p,comp + T_p,comm).
    pub fn speedup(&self) -> f64 {
        self.sequential / self.parallel
    }

    /// E = S / p.
    pub fn efficiency(&self) -> f64 {
        self.speedup() / f64::from(self.ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bagds::Algorithm;
    use crate::hockney::{Hockney, Network};

    /// A vector of N numbers that 8 processes compute, each its part, and give to all: 1000 operations a number at 1
    /// GFLOPS, the paper's Fast Ethernet as a star.
    #[test]
    fn speed_up_and_efficiency_of_a_program_that_gathers_its_result() {
        let times = |elements: f64, algorithm: Algorithm| {
            let sequential = floating(1000.0 * elements, 1e9).unwrap() * 1e6;
            let messages = algorithm.cost(Network::Star, 8).unwrap().time(&Hockney::PAPER, elements);
            Program::new(sequential, sequential / 8.0, messages, 8).unwrap()
        };
        assert_eq!(floating(2e9, 1e9), Ok(2.0));
        let [direct, bagds] = [Algorithm::Direct, Algorithm::Bagds].map(|algorithm| times(1e5, algorithm));
        // 100 ms alone; 12.5 ms each and 56 start-ups of 65.8 µs, and 56/8 of 1e5 elements at 0.437 µs.
        let by_hand = 1e5 / (12_500.0 + 56.0 * 65.8 + 7.0 * 1e5 * 0.437);
        assert!((direct.speedup() - by_hand).abs() < 1e-9, "{} {by_hand}", direct.speedup());
        assert!(bagds.speedup() > direct.speedup());
        for program in [direct, bagds] {
            assert!((program.efficiency() * 8.0 - program.speedup()).abs() < 1e-12);
            assert!(program.efficiency() < 1.0);
        }
        // Without messages all processes count.
        assert_eq!(Program::new(8.0, 1.0, 0.0, 8).map(|program| program.efficiency()), Ok(1.0));
    }

    #[test]
    fn absurd_numbers_are_refused_by_name() {
        let words = |error: ModelError| error.to_string();
        assert_eq!(words(floating(1.0, 0.0).unwrap_err()), "FLOPS is 0, must be above 0");
        assert_eq!(words(floating(-1.0, 1.0).unwrap_err()), "operations (n) is -1, must be at least 0");
        assert_eq!(words(Program::new(1.0, 0.0, 0.0, 1).unwrap_err()), "time of p processes is 0, must be above 0");
        assert_eq!(words(Program::new(1.0, 1.0, 0.0, 0).unwrap_err()), "ranks (p) is 0, must be at least 1");
        assert!(Program::new(f64::NAN, 1.0, 0.0, 1).is_err());
    }
}

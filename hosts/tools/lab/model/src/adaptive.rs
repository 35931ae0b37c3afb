//! AdaptiveBarrierLogP (paper P4, figure 1): evaluate every barrier's model, take the least.

use crate::barrier::{Barrier, Logs};
use crate::logp::LogP;
use crate::{Bound, ModelError};
use std::collections::HashMap;

/// Times of formulas are equal if their relative difference is below this.
const EQUAL: f64 = 1e-9;

/// The choice for a number of processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// The barrier with the least time; of several, the one registered first.
    pub barrier: Barrier,
    /// Its time, in the parameters' unit.
    pub time: f64,
}

/// How often a barrier was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The barrier.
    pub barrier: Barrier,
    /// The number of sizes for which it was chosen.
    pub sizes: u32,
    /// The part of all sizes, 0 to 1.
    pub share: f64,
    /// The least and the greatest such size.
    pub span: Option<(u32, u32)>,
}

/// The registered barriers, and the choices so far.
#[derive(Clone, Debug)]
pub struct Adaptive {
    logp: LogP,
    logs: Logs,
    first: Barrier,
    others: Vec<Barrier>,
    chosen: HashMap<u32, Choice>,
}

impl Adaptive {
    /// Chooses among `barriers` by measured parameters.
    ///
    /// # Errors
    /// There are no barriers, or one has an absurd arity.
    pub fn new(logp: LogP, barriers: &[Barrier], logs: Logs) -> Result<Self, ModelError> {
        let Some((first, others)) = barriers.split_first() else {
            return Err(ModelError { argument: "registered barriers", value: 0.0, bound: Bound::AtLeast(1.0) });
        };
        let others = others.iter().map(|barrier| barrier.check()).collect::<Result<_, _>>()?;
        Ok(Self { logp, logs, first: first.check()?, others, chosen: HashMap::new() })
    }

    /// The registered barriers, in their order.
    pub fn barriers(&self) -> impl Iterator<Item = Barrier> {
        [self.first].into_iter().chain(self.others.iter().copied())
    }

    /// The barrier for a communicator of `ranks` processes; computed once for each size.
    ///
    /// # Errors
    /// `ranks` is 0.
    pub fn choose(&mut self, ranks: u32) -> Result<Choice, ModelError> {
        if let Some(choice) = self.chosen.get(&ranks) {
            return Ok(*choice);
        }
        let of = |barrier: Barrier| Ok(Choice { barrier, time: barrier.time(&self.logp, ranks, self.logs)? });
        let mut best = of(self.first)?;
        for &barrier in &self.others {
            let choice = of(barrier)?;
            // Formulas that are equal on paper may differ in the last bits.
            if choice.time < best.time * (1.0 - EQUAL) {
                best = choice;
            }
        }
        self.chosen.insert(ranks, best);
        Ok(best)
    }

    /// The barriers whose times exceed the least one by at most the part `tolerance` of it, in the order of their
    /// times. LogP leaves out that latencies vary, so it does not tell which of these is the fastest; a measurement
    /// does.
    ///
    /// # Errors
    /// `ranks` is 0; `tolerance` is negative.
    pub fn near(&self, ranks: u32, tolerance: f64) -> Result<Vec<Choice>, ModelError> {
        ModelError::check("tolerance", tolerance, Bound::AtLeast(0.0))?;
        let of = |barrier: Barrier| Ok(Choice { barrier, time: barrier.time(&self.logp, ranks, self.logs)? });
        let mut choices = self.barriers().map(of).collect::<Result<Vec<_>, ModelError>>()?;
        choices.sort_by(|one, other| one.time.total_cmp(&other.time));
        let most = choices.first().map_or(0.0, |least| least.time * (1.0 + tolerance));
        choices.retain(|choice| choice.time <= most);
        Ok(choices)
    }

    /// How often each barrier is chosen for `first` to `last` processes, in the order of registration.
    ///
    /// # Errors
    /// `first` is 0 or above `last`, which is above 2²⁰.
    pub fn shares(&mut self, first: u32, last: u32) -> Result<Vec<Share>, ModelError> {
        ModelError::count("first ranks (P)", first.into(), 1)?;
        ModelError::count("last ranks (P)", last.into(), first.into())?;
        ModelError::check("last ranks (P)", last.into(), Bound::AtMost(f64::from(1 << 20)))?;
        let mut shares: Vec<Share> =
            self.barriers().map(|barrier| Share { barrier, sizes: 0, share: 0.0, span: None }).collect();
        for ranks in first..=last {
            let choice = self.choose(ranks)?;
            if let Some(share) = shares.iter_mut().find(|share| share.barrier == choice.barrier) {
                share.sizes += 1;
                share.span = Some((share.span.map_or(ranks, |span| span.0), ranks));
            }
        }
        for share in &mut shares {
            share.share = f64::from(share.sizes) / (f64::from(last - first) + 1.0);
        }
        Ok(shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn paper(logs: Logs, members: u32) -> Vec<Share> {
        let barriers = [Barrier::Central, Barrier::CombiningGroups { members }, Barrier::Dissemination];
        Adaptive::new(LogP::PAPER, &barriers, logs).unwrap().shares(2, 100).unwrap()
    }

    /// The paper claims 96 % dissemination, 3 % combining tree, 1 % central counter, and below 20 processes mostly the
    /// combining tree. Its formulas with its parameters give dissemination for every size, whatever n is:
    /// M·log2 P is the combining tree's release alone, and the central counter has 2M at least for P = 2.
    #[test]
    fn the_papers_shares_do_not_follow_from_its_formulas() {
        for logs in [Logs::Rounds, Logs::Printed] {
            for members in 2..=32 {
                let shares = paper(logs, members);
                assert_eq!(shares[2].barrier, Barrier::Dissemination);
                assert_eq!((shares[2].sizes, shares[2].share, shares[2].span), (99, 1.0, Some((2, 100))));
                assert!(shares[..2].iter().all(|share| share.sizes == 0 && share.span.is_none()));
            }
        }
    }

    /// L = 20, o = g = 1: the central counter wins for P = 5…37 with the logarithms printed.
    /// P = 37: 2 · 22 + 35 · 2 = 114 < 22 · log2 37 = 114.6; P = 38: 116 > 115.5; P = 4: 48 > 44; P = 5: 50 < 51.1.
    /// With whole rounds up to P = 46: 44 + 44 · 2 = 132 = 22 · 6, a tie, and the central counter is registered first.
    #[test]
    fn a_long_latency_favours_the_central_counter() {
        let far = LogP::new(20.0, 1.0, 1.0, 1.0).unwrap();
        for (logs, last) in [(Logs::Printed, 37), (Logs::Rounds, 46)] {
            let shares = Adaptive::new(far, &Barrier::PAPER, logs).unwrap().shares(2, 100).unwrap();
            assert_eq!((shares[0].span, shares[0].sizes), (Some((5, last)), last - 4));
            assert_eq!(shares[1].sizes, 0);
        }
    }

    #[test]
    fn the_first_registered_wins_a_tie() {
        let mut adaptive = Adaptive::new(LogP::PAPER, &Barrier::ALL, Logs::Rounds).unwrap();
        assert_eq!(adaptive.choose(64).unwrap().barrier, Barrier::Dissemination);
        let turned: Vec<Barrier> = Barrier::ALL.into_iter().rev().collect();
        let mut adaptive = Adaptive::new(LogP::PAPER, &turned, Logs::Rounds).unwrap();
        assert_eq!(adaptive.choose(64).unwrap().barrier, Barrier::Butterfly);
        assert_eq!(adaptive.choose(65).unwrap().barrier, Barrier::Bruck { radix: 2 });
    }

    /// L = 20, o = g = 1, so M = 22: P = 9 takes 2M + 7 · 2 = 58 by a counter and 4M = 88 by dissemination; P = 33 takes
    /// 44 + 62 = 106 and 6M = 132, a quarter more.
    #[test]
    fn what_lies_near_the_least_is_told() {
        let far = LogP::new(20.0, 1.0, 1.0, 1.0).unwrap();
        let adaptive = Adaptive::new(far, &[Barrier::Dissemination, Barrier::Central], Logs::Rounds).unwrap();
        let near =
            |ranks, tolerance| adaptive.near(ranks, tolerance).unwrap().iter().map(|c| c.barrier).collect::<Vec<_>>();
        assert_eq!(near(9, 0.1), [Barrier::Central]);
        assert_eq!(near(33, 0.24), [Barrier::Central]);
        assert_eq!(near(33, 0.25), [Barrier::Central, Barrier::Dissemination]);
        assert_eq!(near(2, 0.0), [Barrier::Dissemination]);
    }

    #[test]
    fn choices_are_kept() {
        let mut adaptive = Adaptive::new(LogP::PAPER, &Barrier::PAPER, Logs::Rounds).unwrap();
        let choice = adaptive.choose(7).unwrap();
        assert_eq!(adaptive.chosen.len(), 1);
        assert_eq!(adaptive.choose(7).unwrap(), choice);
        assert_eq!(adaptive.chosen.len(), 1);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let of = |barriers: &[Barrier]| Adaptive::new(LogP::PAPER, barriers, Logs::Rounds);
        assert_eq!(of(&[]).unwrap_err().to_string(), "registered barriers is 0, must be at least 1");
        let bad = [Barrier::Central, Barrier::Bruck { radix: 0 }];
        assert_eq!(of(&bad).unwrap_err().to_string(), "radix (r) is 0, must be at least 2");
        let below = of(&Barrier::PAPER).unwrap().near(8, -0.1).unwrap_err();
        assert_eq!(below.to_string(), "tolerance is -0.1, must be at least 0");
        let mut adaptive = of(&Barrier::PAPER).unwrap();
        assert_eq!(adaptive.choose(0).unwrap_err().to_string(), "ranks (P) is 0, must be at least 1");
        assert_eq!(adaptive.shares(5, 4).unwrap_err().to_string(), "last ranks (P) is 4, must be at least 5");
        let many = adaptive.shares(1, u32::MAX).unwrap_err();
        assert_eq!(many.to_string(), "last ranks (P) is 4294967295, must be at most 1048576");
    }

    proptest! {
        #[test]
        fn the_argmin_is_the_argmin(
            l in 0.0..10.0, s in 0.001..10.0, r in 0.0..10.0, g in 0.0..10.0, ranks in 1u32..3000, arity in 2u32..40,
        ) {
            let logp = LogP::new(l, s, r, g).unwrap();
            let more = [
                Barrier::Combining { children: arity },
                Barrier::CombiningGroups { members: arity },
                Barrier::Bruck { radix: arity },
            ];
            let barriers = [&Barrier::ALL[..], &more].concat();
            let choice = Adaptive::new(logp, &barriers, Logs::Rounds).unwrap().choose(ranks).unwrap();
            let times: Vec<f64> = barriers.iter().map(|b| b.time(&logp, ranks, Logs::Rounds).unwrap()).collect();
            prop_assert!(times.iter().all(|time| *time >= choice.time * (1.0 - EQUAL)));
            let first = barriers.iter().zip(&times).find(|(_, time)| **time == choice.time);
            prop_assert_eq!(first.map(|(barrier, _)| *barrier), Some(choice.barrier));
        }
    }
}

//! Paper P5's BAGDS, an allgather, beside the direct exchange and other allgathers, on a star and on a crossbar.
//!
//! N elements in all, N/p per process. Every time here is startups·t_s + volume·N·t_w ([`Cost`]): on a star all
//! transfers follow one another, on a crossbar those of a round run at once and its longest counts.
//!
//! | algorithm | star | crossbar |
//! |---|---|---|
//! | direct, printed | (p−1)² transfers of N/p | the same |
//! | direct | p(p−1) transfers of N/p | p−1 rounds |
//! | BAGDS, printed bound | p levels of p/2 transfers of min(N, 2^(ℓ−1)·N/p) | p levels |
//! | BAGDS | the schedule's transfers, of what the partner lacks | its stages |
//! | ring | p(p−1) transfers of N/p | p−1 rounds |
//! | Bruck | p⌈log2 p⌉ transfers, (p−1)N in all | ⌈log2 p⌉ rounds, (p−1)N/p in all |
//!
//! The paper's formulas for BAGDS are lost from its text; the bound is what its words give ("at most 2(p/2)²
//! transfers", volumes that double by level, level ⌈i/(p/2)⌉), with the cap that no process sends more than N. Its (p −
//! 1)² for the direct exchange is less than the p(p − 1) blocks that have to arrive, and on a crossbar it lets
//! transfers wait that need not. The paper sets an allgather beside MPI_Alltoall, which is personalised: here all are
//! allgathers.

use crate::barrier::rounds;
use crate::hockney::{Hockney, Network};
use crate::{Bound, ModelError};
use unisono_kernel::error::Refusal;
use unisono_kernel::pattern::bagds::{Masks, work_words};

/// The largest number of processes for which a schedule is computed.
const MOST: u32 = 4096;

/// Two partners of a stage: each sends what the other lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exchange {
    /// The partners.
    pub partners: (u32, u32),
    /// Blocks that each of them sends; 0: nothing is sent.
    pub blocks: (u32, u32),
}

/// Stages, each of exchanges between disjoint pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Number of processes.
    pub ranks: u32,
    /// Stage by stage.
    pub stages: Vec<Vec<Exchange>>,
}

impl Schedule {
    /// BAGDS's schedule, which takes the first partner found; a stage ends where a scan finds no further pair.
    ///
    /// # Errors
    /// No process, or more than 4096.
    pub fn new(ranks: u32) -> Result<Self, ModelError> {
        ModelError::count("ranks (p)", ranks.into(), 1)?;
        ModelError::check("ranks (p)", ranks.into(), Bound::AtMost(MOST.into()))?;
        let (mut work, mut stages) = (vec![0; work_words(ranks)], Vec::new());
        let room = Bound::AtLeast(8.0 * work.len() as f64);
        let short = |r: Refusal| ModelError { argument: "bytes of masks", value: r.value as f64, bound: room };
        let mut masks = Masks::new(ranks, &mut work).map_err(short)?;
        loop {
            let mut stage = Vec::new();
            let paired = masks.stage(|(i, mine), (j, theirs)| {
                let blocks = (mine.beyond(theirs), theirs.beyond(mine));
                stage.push(Exchange { partners: (i, j), blocks });
            });
            if !paired {
                break;
            }
            stages.push(stage);
        }
        Ok(Self { ranks, stages })
    }

    /// The number of transfers that are not empty.
    pub fn transfers(&self) -> u64 {
        let directions = self.stages.iter().flatten().flat_map(|exchange| [exchange.blocks.0, exchange.blocks.1]);
        directions.filter(|&blocks| blocks > 0).count() as u64
    }
}

/// An algorithm that has a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// The paper's direct exchange.
    DirectPrinted,
    /// The direct exchange, every block counted.
    Direct,
    /// The paper's bound for BAGDS.
    BagdsPrinted,
    /// BAGDS by its schedule.
    Bagds,
    /// Ring.
    Ring,
    /// Bruck; recursive doubling where p is a power of two.
    Bruck,
}

impl Algorithm {
    /// All.
    pub const ALL: [Self; 6] =
        [Self::DirectPrinted, Self::Direct, Self::BagdsPrinted, Self::Bagds, Self::Ring, Self::Bruck];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DirectPrinted => "direct, printed",
            Self::Direct => "direct",
            Self::BagdsPrinted => "BAGDS, printed bound",
            Self::Bagds => "BAGDS",
            Self::Ring => "ring",
            Self::Bruck => "Bruck",
        }
    }

    /// Its time among `ranks` processes on `network`.
    ///
    /// # Errors
    /// No process, or more than 4096.
    pub fn cost(self, network: Network, ranks: u32) -> Result<Cost, ModelError> {
        ModelError::count("ranks (p)", ranks.into(), 1)?;
        ModelError::check("ranks (p)", ranks.into(), Bound::AtMost(MOST.into()))?;
        let p = f64::from(ranks);
        // So many transfers, all of N/p.
        let blocks = |transfers: f64| Cost { startups: transfers, volume: transfers / p };
        let log = f64::from(rounds(ranks, 2));
        Ok(match (self, network) {
            (Self::DirectPrinted, _) => blocks((p - 1.0) * (p - 1.0)),
            (Self::Direct | Self::Ring, Network::Star) => blocks(p * (p - 1.0)),
            (Self::Direct | Self::Ring, Network::Crossbar) => blocks(p - 1.0),
            (Self::BagdsPrinted, Network::Star) => bound(ranks, p / 2.0),
            (Self::BagdsPrinted, Network::Crossbar) => bound(ranks, 1.0),
            (Self::Bagds, _) => scheduled(&Schedule::new(ranks)?, network),
            (Self::Bruck, Network::Star) => Cost { startups: p * log, volume: p - 1.0 },
            (Self::Bruck, Network::Crossbar) => Cost { startups: log, volume: (p - 1.0) / p },
        })
    }
}

/// p levels, of `each` transfers that follow one another.
fn bound(ranks: u32, each: f64) -> Cost {
    let shares = (0..ranks).map(|level| (2f64.powi(level.min(64) as i32) / f64::from(ranks)).min(1.0));
    Cost { startups: each * f64::from(ranks), volume: each * shares.sum::<f64>() }
}

fn scheduled(schedule: &Schedule, network: Network) -> Cost {
    let p = f64::from(schedule.ranks);
    match network {
        // Each block arrives once at each process that lacks it.
        Network::Star => Cost { startups: schedule.transfers() as f64, volume: p - 1.0 },
        Network::Crossbar => {
            let longest = |stage: &Vec<Exchange>| stage.iter().map(|e| e.blocks.0.max(e.blocks.1)).max().unwrap_or(0);
            let blocks: u32 = schedule.stages.iter().map(longest).sum();
            Cost { startups: schedule.stages.len() as f64, volume: f64::from(blocks) / p }
        }
    }
}

/// startups·t_s + volume·N·t_w.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The number of start-ups that follow one another.
    pub startups: f64,
    /// Elements that follow one another, divided by N.
    pub volume: f64,
}

impl Cost {
    /// The time for N = `elements` elements in all, in `hockney`'s unit.
    pub fn time(&self, hockney: &Hockney, elements: f64) -> f64 {
        self.startups * hockney.startup() + self.volume * elements * hockney.element()
    }

    /// The N above 0 where both take the same time; below it, the one with fewer start-ups is faster. `None`: one of
    /// them is never slower.
    pub fn crossing(&self, other: &Self, hockney: &Hockney) -> Option<f64> {
        let elements =
            (self.startups - other.startups) * hockney.startup() / ((other.volume - self.volume) * hockney.element());
        (elements.is_finite() && elements > 0.0).then_some(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cost(algorithm: Algorithm, network: Network, ranks: u32) -> Cost {
        algorithm.cost(network, ranks).unwrap()
    }

    /// Stage counts as paper P5 gives them; powers of two take log2 p.
    #[test]
    fn stages() {
        for (ranks, stages) in
            [(3, 3), (5, 5), (6, 4), (7, 4), (9, 7), (12, 5), (15, 5), (17, 9), (33, 11), (100, 10), (1, 0)]
        {
            assert_eq!(Schedule::new(ranks).unwrap().stages.len(), stages, "{ranks}");
        }
        for power in 0..10 {
            assert_eq!(Schedule::new(1 << power).unwrap().stages.len(), power);
        }
    }

    /// "If at most one is left unpaired": true of all stages only where p or p + 1 is a power of two; elsewhere the
    /// printed rule waits for pairs that no two processes can make.
    #[test]
    fn the_printed_end_of_a_stage_is_seldom_reached() {
        for ranks in 1..=130u32 {
            let paired = |stage: &Vec<Exchange>| ranks as usize - 2 * stage.len() <= 1;
            let ends = Schedule::new(ranks).unwrap().stages.iter().all(paired);
            assert_eq!(ends, ranks.is_power_of_two() || (ranks + 1).is_power_of_two(), "{ranks}");
        }
    }

    /// p = 3: 0-1 exchange a block each; 2 is left over. 0 takes 2's block and gives two; 1 takes 2's from 0.
    #[test]
    fn three_processes_by_hand() {
        let stage = |partners, blocks| vec![Exchange { partners, blocks }];
        let stages = vec![stage((0, 1), (1, 1)), stage((0, 2), (2, 1)), stage((1, 0), (0, 1))];
        assert_eq!(Schedule::new(3).unwrap(), Schedule { ranks: 3, stages });
        // Five transfers; 3 · 2 blocks of N/3. On a crossbar 1 + 2 + 1 blocks.
        assert_eq!(cost(Algorithm::Bagds, Network::Star, 3), Cost { startups: 5.0, volume: 2.0 });
        assert_eq!(cost(Algorithm::Bagds, Network::Crossbar, 3), Cost { startups: 3.0, volume: 4.0 / 3.0 });
    }

    /// p = 8. Direct: 49 transfers of N/8, or 56. Bound: 8 levels of 4 transfers, N/8 · (1 + 2 + 4 + 8·5) = 47/8 N per
    /// transfer of all levels; 4 · 47/8 = 23.5. BAGDS: 3 stages of 8 transfers, 7 blocks received by each.
    #[test]
    fn eight_processes_by_hand() {
        use Network::{Crossbar, Star};
        assert_eq!(cost(Algorithm::DirectPrinted, Star, 8), Cost { startups: 49.0, volume: 6.125 });
        assert_eq!(cost(Algorithm::DirectPrinted, Crossbar, 8), Cost { startups: 49.0, volume: 6.125 });
        assert_eq!(cost(Algorithm::Direct, Star, 8), Cost { startups: 56.0, volume: 7.0 });
        assert_eq!(cost(Algorithm::Direct, Crossbar, 8), Cost { startups: 7.0, volume: 0.875 });
        assert_eq!(cost(Algorithm::BagdsPrinted, Star, 8), Cost { startups: 32.0, volume: 23.5 });
        assert_eq!(cost(Algorithm::BagdsPrinted, Crossbar, 8), Cost { startups: 8.0, volume: 5.875 });
        assert_eq!(cost(Algorithm::Bagds, Star, 8), Cost { startups: 24.0, volume: 7.0 });
        assert_eq!(cost(Algorithm::Bagds, Crossbar, 8), Cost { startups: 3.0, volume: 0.875 });
        assert_eq!(cost(Algorithm::Ring, Star, 8), cost(Algorithm::Direct, Star, 8));
        assert_eq!(cost(Algorithm::Bruck, Star, 8), cost(Algorithm::Bagds, Star, 8));
        assert_eq!(cost(Algorithm::Bruck, Crossbar, 8), cost(Algorithm::Bagds, Crossbar, 8));
        // 49 · 65.8 + 6.125 · 100 · 0.437.
        let time = cost(Algorithm::DirectPrinted, Star, 8).time(&Hockney::PAPER, 100.0);
        assert!((time - 3_491.862_5).abs() < 1e-9);
    }

    /// "On a star BAGDS wins below about a hundred elements": with its bound, p = 8, (49 − 32)·65.8 / ((23.5 −
    /// 6.125)·0.437) = 147.3; p = 4, 65.8 / ((5.5 − 2.25)·0.437) = 46.3; p = 16, 163. By its schedule it wins up to
    /// 4302 for p = 8, and against a direct exchange that moves every block always.
    #[test]
    fn crossings_on_a_star() {
        let of = |a: Algorithm, b: Algorithm, ranks| {
            cost(a, Network::Star, ranks).crossing(&cost(b, Network::Star, ranks), &Hockney::PAPER)
        };
        let near = |found: Option<f64>, value: f64| assert!((found.unwrap() / value - 1.0).abs() < 1e-3, "{found:?}");
        near(of(Algorithm::BagdsPrinted, Algorithm::DirectPrinted, 8), 147.33);
        near(of(Algorithm::BagdsPrinted, Algorithm::DirectPrinted, 4), 46.33);
        near(of(Algorithm::BagdsPrinted, Algorithm::DirectPrinted, 16), 163.30);
        near(of(Algorithm::Bagds, Algorithm::DirectPrinted, 8), 4_302.06);
        assert_eq!(of(Algorithm::Bagds, Algorithm::Direct, 8), None);
        assert_eq!(of(Algorithm::Bagds, Algorithm::Bruck, 8), None);
    }

    /// "On a crossbar tens of times faster": 225/4 = 56 times for short, 14.06/0.9375 = 15 for long blocks at p = 16,
    /// but against a direct exchange that uses the crossbar 15/4 = 3.75 times for short ones, and for long ones not at
    /// all.
    #[test]
    fn ratios_on_a_crossbar() {
        let of = |algorithm, elements| cost(algorithm, Network::Crossbar, 16).time(&Hockney::PAPER, elements);
        let ratio = |direct, elements| of(direct, elements) / of(Algorithm::Bagds, elements);
        assert!((ratio(Algorithm::DirectPrinted, 0.0) - 56.25).abs() < 1e-9);
        assert!((ratio(Algorithm::DirectPrinted, 1e12) - 15.0).abs() < 1e-3);
        assert!((ratio(Algorithm::Direct, 0.0) - 3.75).abs() < 1e-9);
        assert!((ratio(Algorithm::Direct, 1e12) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(Schedule::new(0).unwrap_err().to_string(), "ranks (p) is 0, must be at least 1");
        let many = Algorithm::Ring.cost(Network::Star, 4097).unwrap_err();
        assert_eq!(many.to_string(), "ranks (p) is 4097, must be at most 4096");
    }

    proptest! {
        /// Pairs of a stage are disjoint, no process sends a block that it does not have, all end with all blocks; the
        /// printed bound on transfers holds.
        #[test]
        fn schedules_complete(ranks in 1u32..130) {
            let schedule = Schedule::new(ranks).unwrap();
            let mut have: Vec<Vec<bool>> = (0..ranks).map(|i| (0..ranks).map(|j| i == j).collect()).collect();
            let mut arrived = 0;
            for stage in &schedule.stages {
                let mut busy = vec![false; ranks as usize];
                prop_assert!(!stage.is_empty());
                for Exchange { partners: (a, b), blocks } in stage {
                    let (a, b) = (*a as usize, *b as usize);
                    prop_assert!(a != b && !busy[a] && !busy[b]);
                    (busy[a], busy[b]) = (true, true);
                    let lacks = |from: usize, to: usize, k: usize| have[from][k] && !have[to][k];
                    let lack = |from, to| (0..ranks as usize).filter(|&k| lacks(from, to, k)).count();
                    prop_assert_eq!((lack(a, b), lack(b, a)), (blocks.0 as usize, blocks.1 as usize));
                    let both: Vec<bool> = have[a].iter().zip(&have[b]).map(|(a, b)| *a || *b).collect();
                    (have[a], have[b]) = (both.clone(), both);
                    arrived += blocks.0 + blocks.1;
                }
            }
            prop_assert!(have.iter().flatten().all(|has| *has));
            prop_assert_eq!(arrived, ranks * (ranks - 1));
            // p²/2, which three and five processes miss by half a transfer.
            prop_assert!(schedule.transfers() <= u64::from((ranks * ranks).div_ceil(2)));
        }

        #[test]
        fn crossings_are_where_times_are_equal(ranks in 2u32..40, a in 0usize..6, b in 0usize..6) {
            for network in [Network::Star, Network::Crossbar] {
                let (a, b) = (cost(Algorithm::ALL[a], network, ranks), cost(Algorithm::ALL[b], network, ranks));
                if let Some(elements) = a.crossing(&b, &Hockney::PAPER) {
                    let (a, b) = (a.time(&Hockney::PAPER, elements), b.time(&Hockney::PAPER, elements));
                    prop_assert!((a / b - 1.0).abs() < 1e-9);
                }
            }
        }
    }
}

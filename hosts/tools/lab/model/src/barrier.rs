//! How long barriers take in LogP: paper P4's three, and others derived in the same way.
//!
//! One message takes M = o_s + L + o_r, a step of a chain t_s = max{g, M}, and R = ⌈log2 P⌉.
//!
//! | barrier | time | from |
//! |---|---|---|
//! | central counter | 2M + (P−2)(f_r + f_s) | P4 |
//! | combining, groups of n | (M + f_r(n−2))·log_n P + D | P4 |
//! | combining, c children | (M + f_r(c−1))·depth + D | derived |
//! | dissemination | max{f_r, f_s, M}·R | P4 |
//! | tournament | 2D | derived |
//! | Bruck, radix r | Σ over rounds of X(messages of the round) | derived |
//! | Brooks' butterfly | R·X(1), or R·X(2) if P is not a power of two | derived |
//!
//! D = o_s + (log2 P − 1)·t_s + L + o_r is the release down a binomial tree.
//!
//! **The arity of the combining tree.** The paper calls n the children per vertex, but f_r·(n − 2) are the waits
//! between n − 1 messages, and log_n P rounds reduce P processes to one if a group of n becomes one: n counts the
//! parent too. That is [`Barrier::CombiningGroups`], verbatim. The machine `barrier::combining` of the kernel has a
//! tree with c children per vertex, each vertex a process: [`Barrier::Combining`]. Both lay down the same release.
//!
//! **Derived.** *Tournament* (Hensgen, Finkel, Manber 1988): in round k the loser, which has won k − 1 rounds, sends
//! to the winner; that is a binomial tree upwards, and the champion wakes the others down the same tree.
//! *X(k)*, an exchange in which every process sends k messages and then receives k: o_s + o_r +
//! max{L + (k−1)·max{f_s, f_r}, (k−1)(f_s + f_r)}: messages queue up in whichever of sending and receiving is
//! slower, and a process that still sends does not receive; at least k·max{f_s, f_r} lie between two rounds.
//! *Bruck* (1997): in round i, every process sends to those j·r^i ahead, j = 1…r−1, as far as below P; radix 2 is
//! dissemination mirrored. *Brooks* (1986): partners i xor 2^k; if P is not a power of two, processes stand in for the
//! missing ones and send and receive up to two messages in a round, which is taken as two in every round: an upper
//! bound.

use crate::ModelError;
use crate::logp::LogP;
use std::fmt;

/// A barrier that has a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Barrier {
    /// Central counter: all to rank 0, then rank 0 to all.
    Central,
    /// Combining tree as paper P4's formula has it.
    CombiningGroups {
        /// n: members of a group, the parent one of them.
        members: u32,
    },
    /// Combining tree of the kernel's machine.
    Combining {
        /// Children per vertex.
        children: u32,
    },
    /// Dissemination.
    Dissemination,
    /// Tournament with wake-up down its tree.
    Tournament,
    /// Bruck's algorithm.
    Bruck {
        /// Each round multiplies the number of processes of which a process knows by this.
        radix: u32,
    },
    /// Brooks' butterfly.
    Butterfly,
}

/// Logarithms of paper P4's formulas; the derived ones always count rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Logs {
    /// Whole rounds, ⌈log P⌉: what algorithms do.
    #[default]
    Rounds,
    /// Real logarithms: what the paper prints.
    Printed,
}

/// ⌈log_base ranks⌉ by whole numbers.
pub(crate) fn rounds(ranks: u32, base: u32) -> u32 {
    let (mut rounds, mut reached) = (0, 1u64);
    while reached < u64::from(ranks) {
        reached *= u64::from(base);
        rounds += 1;
    }
    rounds
}

/// Levels below the root of a complete tree with so many children per vertex.
pub(crate) fn depth(ranks: u32, children: u32) -> u32 {
    let (mut depth, mut vertices, mut level) = (0, 1u64, 1u64);
    while vertices < u64::from(ranks) {
        level *= u64::from(children);
        vertices += level;
        depth += 1;
    }
    depth
}

impl Logs {
    fn log(self, ranks: u32, base: u32) -> f64 {
        match self {
            Self::Rounds => rounds(ranks, base).into(),
            Self::Printed => f64::from(ranks).ln() / f64::from(base).ln(),
        }
    }
}

impl Barrier {
    /// The three of paper P4, with groups of four.
    pub const PAPER: [Self; 3] = [Self::Central, Self::CombiningGroups { members: 4 }, Self::Dissemination];

    /// One of each kind.
    pub const ALL: [Self; 7] = [
        Self::Central,
        Self::CombiningGroups { members: 4 },
        Self::Combining { children: 4 },
        Self::Dissemination,
        Self::Tournament,
        Self::Bruck { radix: 2 },
        Self::Butterfly,
    ];

    /// Checks the barrier's arity.
    ///
    /// # Errors
    /// Groups of fewer than two, no children, radix below two.
    pub fn check(self) -> Result<Self, ModelError> {
        let (argument, value, least) = match self {
            Self::CombiningGroups { members } => ("members of a group (n)", members, 2),
            Self::Combining { children } => ("children (c)", children, 1),
            Self::Bruck { radix } => ("radix (r)", radix, 2),
            Self::Central | Self::Dissemination | Self::Tournament | Self::Butterfly => return Ok(self),
        };
        ModelError::count(argument, value.into(), least).map(|_| self)
    }

    /// The time from the moment when all processes enter to the moment when the last one leaves, in `logp`'s unit.
    ///
    /// # Errors
    /// [`Self::check`] refuses, or `ranks` is 0.
    pub fn time(self, logp: &LogP, ranks: u32, logs: Logs) -> Result<f64, ModelError> {
        self.check()?;
        ModelError::count("ranks (P)", ranks.into(), 1)?;
        if ranks == 1 {
            return Ok(0.0);
        }
        let (message, between) = (logp.message(), logp.receive_interval());
        let others = f64::from(ranks - 2);
        Ok(match self {
            Self::Central => 2.0 * message + others * (between + logp.send_interval()),
            Self::CombiningGroups { members } => {
                // A group has at most as many members as there are processes; the paper does not say so.
                let n = if logs == Logs::Rounds { members.min(ranks) } else { members };
                (message + between * f64::from(n - 2)) * logs.log(ranks, n) + down(logp, logs.log(ranks, 2))
            }
            Self::Combining { children } => {
                let c = children.min(ranks - 1);
                let up = (message + between * f64::from(c - 1)) * f64::from(depth(ranks, c));
                up + down(logp, rounds(ranks, 2).into())
            }
            Self::Dissemination => exchange(logp, 1) * logs.log(ranks, 2),
            Self::Tournament => 2.0 * down(logp, rounds(ranks, 2).into()),
            Self::Bruck { radix } => bruck(logp, ranks, radix),
            Self::Butterfly => {
                let messages = if ranks.is_power_of_two() { 1 } else { 2 };
                exchange(logp, messages) * f64::from(rounds(ranks, 2))
            }
        })
    }
}

impl fmt::Display for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Central => f.write_str("central"),
            Self::CombiningGroups { members } => write!(f, "combining-groups-{members}"),
            Self::Combining { children } => write!(f, "combining-{children}"),
            Self::Dissemination => f.write_str("dissemination"),
            Self::Tournament => f.write_str("tournament"),
            Self::Bruck { radix } => write!(f, "bruck-{radix}"),
            Self::Butterfly => f.write_str("butterfly"),
        }
    }
}

/// The time at which a rank leaves the central counter's barrier, by paper P4: rank 0 at 2o_s + o_r + L + (P−2)(f_r +
/// f_s), rank i at 2M + (P−2)·f_r + (i−1)·f_s.
///
/// # Errors
/// There are fewer than two processes, or `rank` is not one of them.
pub fn central_end(logp: &LogP, ranks: u32, rank: u32) -> Result<f64, ModelError> {
    ModelError::count("ranks (P)", ranks.into(), 2)?;
    ModelError::check("rank (i)", rank.into(), crate::Bound::AtMost(f64::from(ranks - 1)))?;
    let gathered = logp.message() + f64::from(ranks - 2) * logp.receive_interval();
    Ok(gathered
        + match rank {
            0 => logp.send() + f64::from(ranks - 2) * logp.send_interval(),
            i => logp.message() + f64::from(i - 1) * logp.send_interval(),
        })
}

/// Down (or up) a binomial tree of `levels` levels: o_s + (levels − 1)·t_s + L + o_r.
fn down(logp: &LogP, levels: f64) -> f64 {
    logp.message() + (levels - 1.0) * logp.step()
}

/// X(k) of the module's text, and no less than the processes' own pace; k ≥ 1.
fn exchange(logp: &LogP, messages: u32) -> f64 {
    let (send, receive) = (logp.send_interval(), logp.receive_interval());
    let more = f64::from(messages - 1);
    let through = (logp.latency() + more * send.max(receive)).max(more * (send + receive));
    (logp.send() + logp.receive() + through).max(f64::from(messages) * send.max(receive))
}

fn bruck(logp: &LogP, ranks: u32, radix: u32) -> f64 {
    let (mut full, mut reach) = (0, 1u64);
    while reach * u64::from(radix) <= u64::from(ranks) {
        reach *= u64::from(radix);
        full += 1;
    }
    // What is left for a last round: j·reach < ranks.
    let last = u64::from(ranks).div_ceil(reach) - 1;
    let ends = if last == 0 { 0.0 } else { exchange(logp, last as u32) };
    let full = if full == 0 { 0.0 } else { exchange(logp, radix - 1) * f64::from(full) };
    full + ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(barrier: Barrier, ranks: u32, logs: Logs) -> f64 {
        barrier.time(&LogP::PAPER, ranks, logs).unwrap()
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} instead of {b}");
    }

    #[test]
    fn central_counter_by_hand() {
        close(of(Barrier::Central, 2, Logs::Rounds), 499.66); // 2 · 249.83
        close(of(Barrier::Central, 10, Logs::Rounds), 1_493.5); // 499.66 + 8 · (123.8 + 0.43)
        close(of(Barrier::Central, 100, Logs::Printed), 12_674.2); // 499.66 + 98 · 124.23
    }

    #[test]
    fn central_counter_rank_by_rank() {
        let end = |rank| central_end(&LogP::PAPER, 10, rank).unwrap();
        // 2 · 0.43 + 123.8 + 125.6 + 8 · (123.8 + 0.43)
        close(end(0), 250.26 + 993.84);
        close(end(1), 499.66 + 990.4); // 2 · 249.83 + 8 · 123.8
        close(end(9), of(Barrier::Central, 10, Logs::Rounds)); // the last one's end is the barrier's
        let refused = central_end(&LogP::PAPER, 10, 10).unwrap_err();
        assert_eq!(refused.to_string(), "rank (i) is 10, must be at most 9");
    }

    #[test]
    fn combining_tree_by_hand() {
        let groups = |members, ranks, logs| of(Barrier::CombiningGroups { members }, ranks, logs);
        // Up: (249.83 + 123.8 · 2) · log4 16 = 497.43 · 2; down: 0.43 + (4 − 1) · 249.83 + 125.6 + 123.8 = 999.32.
        close(groups(4, 16, Logs::Rounds), 994.86 + 999.32);
        close(groups(4, 16, Logs::Printed), 994.86 + 999.32);
        // 100 ranks: ⌈log4 100⌉ = 4, ⌈log2 100⌉ = 7: 4 · 497.43 + 7 · 249.83.
        close(groups(4, 100, Logs::Rounds), 1_989.72 + 1_748.81);
        // log2 100 = 6.643856…, log4 100 is half of it.
        close(groups(4, 100, Logs::Printed), 497.43 * 6.643_856_189_774_724 / 2.0 + 249.83 * 6.643_856_189_774_724);
        // Two ranks: a group of two, one message up, one down.
        close(groups(4, 2, Logs::Rounds), 499.66);
        // The kernel's tree, 4 children, 100 ranks: 1 + 4 + 16 + 64 < 100, so four levels below the root:
        // (249.83 + 123.8 · 3) · 4 + 7 · 249.83.
        close(of(Barrier::Combining { children: 4 }, 100, Logs::Rounds), 2_484.92 + 1_748.81);
        // A chain: one child each.
        close(of(Barrier::Combining { children: 1 }, 5, Logs::Rounds), 4.0 * 249.83 + 3.0 * 249.83);
    }

    #[test]
    fn dissemination_by_hand() {
        close(of(Barrier::Dissemination, 100, Logs::Rounds), 1_748.81); // 249.83 · 7
        close(of(Barrier::Dissemination, 100, Logs::Printed), 249.83 * 6.643_856_189_774_724);
        close(of(Barrier::Dissemination, 64, Logs::Printed), 1_498.98); // 249.83 · 6
        // g above a message: every round waits for it. L 2, o 1, g 10: 10 · 3.
        let slow = LogP::new(2.0, 1.0, 1.0, 10.0).unwrap();
        close(Barrier::Dissemination.time(&slow, 8, Logs::Rounds).unwrap(), 30.0);
    }

    #[test]
    fn derived_ones_by_hand() {
        close(of(Barrier::Tournament, 100, Logs::Rounds), 2.0 * 1_748.81);
        close(of(Barrier::Bruck { radix: 2 }, 100, Logs::Rounds), 1_748.81);
        // Radix 4, 5 ranks: 3 messages, then (⌈5/4⌉ − 1) = 1.
        // X(3) = 0.43 + 123.8 + max{125.6 + 2 · 123.8, 2 · 124.23} = 497.43; X(1) = 249.83.
        close(of(Barrier::Bruck { radix: 4 }, 5, Logs::Rounds), 747.26);
        close(of(Barrier::Butterfly, 64, Logs::Rounds), 1_498.98);
        // 3 ranks: 2 · X(2), X(2) = 124.23 + max{125.6 + 123.8, 124.23} = 373.63.
        close(of(Barrier::Butterfly, 3, Logs::Rounds), 747.26);
        // Without latency a process that sends does not receive: L 0, o_s 1, o_r 1, g 0: X(3) = 2 + max{2, 4} = 6.
        let near = LogP::new(0.0, 1.0, 1.0, 0.0).unwrap();
        close(Barrier::Bruck { radix: 4 }.time(&near, 4, Logs::Rounds).unwrap(), 6.0);
    }

    #[test]
    fn one_process_waits_for_nobody_and_absurd_arities_are_named() {
        for barrier in Barrier::ALL {
            assert_eq!(of(barrier, 1, Logs::Printed), 0.0);
            let refused = barrier.time(&LogP::PAPER, 0, Logs::Rounds).unwrap_err();
            assert_eq!(refused.to_string(), "ranks (P) is 0, must be at least 1");
        }
        let refused = |barrier: Barrier| barrier.check().unwrap_err().to_string();
        assert_eq!(refused(Barrier::CombiningGroups { members: 1 }), "members of a group (n) is 1, must be at least 2");
        assert_eq!(refused(Barrier::Combining { children: 0 }), "children (c) is 0, must be at least 1");
        assert_eq!(refused(Barrier::Bruck { radix: 1 }), "radix (r) is 1, must be at least 2");
    }

    #[test]
    fn depths() {
        assert_eq!([1, 2, 4, 5, 16, 17].map(|ranks| rounds(ranks, 4)), [0, 1, 1, 2, 2, 3]);
        assert_eq!([1, 2, 5, 6, 21, 22].map(|ranks| depth(ranks, 4)), [0, 1, 1, 2, 2, 3]);
        assert_eq!(rounds(u32::MAX, 2), 32);
        assert_eq!(depth(u32::MAX, 2), 31);
    }

    prop_compose! {
        fn any_logp()(l in 0.0..1e3, s in 0.01..1e2, r in 0.0..1e2, g in 0.0..1e3) -> LogP {
            LogP::new(l, s, r, g).unwrap()
        }
    }

    proptest! {
        #[test]
        fn more_processes_never_take_less(logp in any_logp(), ranks in 1u32..2000) {
            use Barrier::{Bruck, Central, Dissemination, Tournament};
            for barrier in [Central, Dissemination, Tournament, Bruck { radix: 3 }] {
                let of = |ranks| barrier.time(&logp, ranks, Logs::Rounds).unwrap();
                prop_assert!(of(ranks) <= of(ranks + 1) * (1.0 + 1e-12), "{barrier}");
            }
        }

        #[test]
        fn relatives_agree(logp in any_logp(), power in 1u32..12, ranks in 2u32..2000) {
            let of = |barrier: Barrier, ranks| barrier.time(&logp, ranks, Logs::Rounds).unwrap();
            // Binary groups on the way up, the tournament's tree: alike unless g is above a message.
            if logp.step() == logp.message() {
                let groups = of(Barrier::CombiningGroups { members: 2 }, ranks);
                prop_assert!((groups / of(Barrier::Tournament, ranks) - 1.0).abs() < 1e-9);
            }
            let (bruck, dissemination) = (of(Barrier::Bruck { radix: 2 }, ranks), of(Barrier::Dissemination, ranks));
            prop_assert!((bruck / dissemination - 1.0).abs() < 1e-9);
            let even = 1 << power;
            prop_assert_eq!(of(Barrier::Butterfly, even), of(Barrier::Dissemination, even));
            // Real logarithms never exceed rounds.
            let printed = Barrier::Dissemination.time(&logp, ranks, Logs::Printed).unwrap();
            prop_assert!(printed <= of(Barrier::Dissemination, ranks) * (1.0 + 1e-12));
        }
    }
}

//! Spin or yield: chosen from the number of ranks on this machine, the PUs on which they may run, and the processor
//! time that the control group allows.
//!
//! Spinning is right while every rank has a PU for itself. With more ranks than PUs a rank that waits may occupy the PU
//! of the rank that it waits for, and must yield at once.

use crate::binding::PuSet;
use crate::error::PosixError;
use crate::{cgroup, sys};
use core::fmt;

/// Environment variable: `spin` or `yield`, which overrides the choice.
pub const WAIT: &str = "UNISONO_WAIT";

/// What the caller asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// Choose by [`choose`].
    #[default]
    Auto,
    /// Spin.
    Spin,
    /// Yield.
    Yield,
}

/// How to wait, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// True: yield at once. False: spin.
    pub yields: bool,
    /// Why.
    pub reason: Reason,
}

/// Why a rank spins or yields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// So many ranks may run on these PUs only: of all such sets the one with the fewest PUs per rank.
    Pus {
        /// Ranks.
        ranks: u32,
        /// PUs for them.
        pus: PuSet,
    },
    /// The control group's share of time is less than one processor per rank.
    Quota {
        /// Ranks.
        ranks: u32,
        /// Processors' worth of time, in thousandths.
        thousandths: u64,
    },
    /// The caller's options say so.
    Asked,
    /// The environment says so.
    Environment,
}

/// Chooses for the ranks of this machine: `affinities` has one set of PUs per rank; `quota` is the
/// control group's limit in thousandths of a processor.
pub fn choose(affinities: &[PuSet], quota: Option<u64>) -> Choice {
    let ranks = affinities.len() as u32;
    if let Some(thousandths) = quota
        && thousandths < u64::from(ranks) * 1000
    {
        return Choice { yields: true, reason: Reason::Quota { ranks, thousandths } };
    }
    // A set is crowded when more ranks are confined to it than it has PUs: the union of all sets,
    // and each rank's own.
    let union: PuSet = affinities.iter().flat_map(PuSet::iter).collect();
    let mut tightest = (ranks, union);
    for (rank, set) in affinities.iter().enumerate() {
        // Ranks with equal sets, such as all that are not bound, are looked at once.
        if affinities.iter().take(rank).any(|other| other == set) {
            continue;
        }
        let confined = affinities.iter().filter(|other| other.is_subset(set)).count();
        if confined * tightest.1.len() > tightest.0 as usize * set.len() {
            tightest = (confined as u32, set.clone());
        }
    }
    let (ranks, pus) = tightest;
    Choice { yields: ranks as usize > pus.len(), reason: Reason::Pus { ranks, pus } }
}

/// How many ranks this machine can run at the same time, as far as this process knows: its PUs that are online, and the control
/// group's limit.
pub fn cores() -> u32 {
    let online = sys::online();
    let quota = cgroup::processors().map_or(u64::MAX, |thousandths| thousandths / 1000);
    quota.min(online.into()) as u32
}

/// The environment's word, else the caller's, else `choice`.
///
/// # Errors
/// The environment's word is neither `spin` nor `yield`.
pub fn decide(asked: Waiting, choice: Choice) -> Result<Choice, PosixError> {
    let yields = |word: &str| match word {
        "spin" => Some(false),
        "yield" => Some(true),
        _ => None,
    };
    if let Some(yields) = sys::setting(WAIT, "spin or yield", yields)? {
        return Ok(Choice { yields, reason: Reason::Environment });
    }
    Ok(match asked {
        Waiting::Auto => choice,
        Waiting::Spin | Waiting::Yield => Choice { yields: asked == Waiting::Yield, reason: Reason::Asked },
    })
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.yields { "yield: " } else { "spin: " })?;
        match &self.reason {
            Reason::Pus { ranks, pus } => write!(f, "{ranks} ranks on {} PUs ({pus})", pus.len()),
            Reason::Quota { ranks, thousandths } => {
                let (whole, rest) = (thousandths / 1000, thousandths % 1000);
                write!(f, "{ranks} ranks in a control group that may use {whole}.{rest:03} processors")
            }
            Reason::Asked => f.write_str("asked for"),
            Reason::Environment => write!(f, "{WAIT} says so"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(lists: &[&str]) -> Vec<PuSet> {
        lists.iter().map(|list| PuSet::from_list(list).unwrap()).collect()
    }

    #[test]
    fn a_pu_per_rank_spins() {
        for lists in [&["0-1", "0-1"][..], &["0", "1"], &["0"], &["0-1", "1", "2"]] {
            let choice = choose(&sets(lists), None);
            assert!(!choice.yields, "{lists:?}: {choice}");
        }
    }

    #[test]
    fn crowds_yield_and_say_where() {
        for (lists, reason) in [
            (&["0-1", "0-1", "0-1"][..], "yield: 3 ranks on 2 PUs (0-1)"),
            (&["0", "0", "1-7"], "yield: 2 ranks on 1 PUs (0)"),
            (&["0-1", "0", "1", "2-9"], "yield: 3 ranks on 2 PUs (0-1)"),
        ] {
            assert_eq!(choose(&sets(lists), None).to_string(), reason);
        }
    }

    #[test]
    fn a_share_of_time_counts() {
        let two = sets(&["0-1", "0-1"]);
        assert!(!choose(&two, Some(2000)).yields);
        let text = choose(&two, Some(1500)).to_string();
        assert_eq!(text, "yield: 2 ranks in a control group that may use 1.500 processors");
    }
}

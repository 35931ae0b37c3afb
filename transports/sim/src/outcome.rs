//! The outcome of a simulated run: how each rank ended, and what was sent.

use crate::network::Class;
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use unisono_kernel::Rank;
use unisono_kernel::error::PollError;
use unisono_kernel::machine::poll::Await;

/// Numbers of messages, and of bytes in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of messages.
    pub messages: u64,
    /// Number of bytes in them.
    pub bytes: u64,
}

/// What was sent, per class of link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic([Count; Class::ALL.len()]);

impl Traffic {
    /// What was sent over links of this class.
    pub const fn of(&self, class: Class) -> Count {
        self.0[class as usize]
    }

    /// Counts a message.
    pub(crate) fn count(&mut self, class: Class, bytes: usize) {
        let count = &mut self.0[class as usize];
        count.messages += 1;
        count.bytes += bytes as u64;
    }
}

/// How a rank ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its machine was done at this moment.
    Done(Time),
    /// It has waited since this moment for an event that did not happen.
    Waits(Time),
    /// It could have continued at the deadline.
    Late,
    /// Its machine failed.
    Failed(PollError),
    /// The schedule stopped it.
    Dropped,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When each rank started, by rank.
    pub begin: Vec<Time>,
    /// How each rank ended, by rank.
    pub fates: Vec<Fate>,
    /// The ranks that wait at the end, each with the events of which it needs one. Peers are world ranks.
    pub waits: Vec<(Rank, Await)>,
    /// What was sent.
    pub traffic: Traffic,
    /// Number of polls of machines, of all ranks together.
    pub polls: u64,
}

impl Outcome {
    /// When the last rank was done.
    ///
    /// # Errors
    /// A rank was not done; the error says which ranks wait, for which others.
    pub fn last(&self) -> Result<Time, Stuck> {
        let mut last = Time::ZERO;
        for fate in &self.fates {
            match fate {
                Fate::Done(at) => last = last.max(*at),
                _ => return Err(Stuck::of(self)),
            }
        }
        Ok(last)
    }
}

/// Why not all ranks were done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The ranks that wait, each with the events of which it needs one.
    pub waits: Vec<(Rank, Await)>,
    /// The causes: ranks that stopped, failed or were late, and ranks that were done while others wait for them. If
    /// there are none: a circle of ranks that wait for each other.
    pub culprits: Vec<(Rank, Fate)>,
}

impl Stuck {
    fn of(Outcome { fates, waits, .. }: &Outcome) -> Self {
        let awaited: BTreeSet<Rank> = waits.iter().filter_map(|(_, on)| on.peer).collect();
        let guilty = |(rank, fate): &(Rank, Fate)| match fate {
            Fate::Waits(_) => false,
            Fate::Done(_) => awaited.contains(rank),
            Fate::Late | Fate::Failed(_) | Fate::Dropped => true,
        };
        let mut culprits: Vec<_> = (0..).zip(fates.iter().copied()).filter(guilty).collect();
        if culprits.is_empty() {
            let with_fate = |rank: Rank| Some((rank, *fates.get(rank as usize)?));
            culprits = circle(waits).into_iter().filter_map(with_fate).collect();
        }
        Self { waits: waits.clone(), culprits }
    }
}

/// Ranks that wait for each other: each for the next one, and the last for the first.
fn circle(waits: &[(Rank, Await)]) -> Vec<Rank> {
    let next: BTreeMap<Rank, Rank> = waits.iter().filter_map(|(rank, on)| Some((*rank, on.peer?))).collect();
    let mut walked = Vec::new();
    let mut at = next.keys().next().copied();
    while let Some(rank) = at {
        if let Some(again) = walked.iter().position(|&before| before == rank) {
            return walked.split_off(again);
        }
        walked.push(rank);
        at = next.get(&rank).copied();
    }
    Vec::new()
}

/// Most waits that a report names, and most causes.
const NAMED: usize = 8;

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { waits, culprits } = self;
        for (rank, on) in waits.iter().take(NAMED) {
            match on.peer {
                Some(peer) => write!(f, "rank {rank} waits for rank {peer} in operation {}; ", on.operation)?,
                None => write!(f, "rank {rank} waits for any rank in operation {}; ", on.operation)?,
            }
        }
        if waits.len() > NAMED {
            write!(f, "{} more wait; ", waits.len() - NAMED)?;
        }
        for (i, (rank, fate)) in culprits.iter().take(NAMED).enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            match fate {
                Fate::Dropped => write!(f, "rank {rank} has stopped")?,
                Fate::Late => write!(f, "rank {rank} is late")?,
                Fate::Failed(error) => write!(f, "rank {rank} failed: {error}")?,
                Fate::Done(at) => write!(f, "rank {rank} was done after {at}")?,
                Fate::Waits(_) => write!(f, "rank {rank} is in a circle of waits")?,
            }
        }
        if culprits.len() > NAMED {
            write!(f, ", {} more", culprits.len() - NAMED)?;
        }
        Ok(())
    }
}

impl std::error::Error for Stuck {}

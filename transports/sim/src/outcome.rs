//! What became of each rank, and of the network.

use crate::network::Class;
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use unisono_kernel::Rank;
use unisono_kernel::error::PollError;
use unisono_kernel::machine::poll::Await;

/// Messages, and bytes in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Messages.
    pub messages: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What was sent, per class of link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic([Count; Class::ALL.len()]);

impl Traffic {
    /// What went over links of this class.
    pub const fn of(&self, class: Class) -> Count {
        self.0[class as usize]
    }

    pub(crate) fn count(&mut self, class: Class, bytes: usize) {
        let count = &mut self.0[class as usize];
        count.messages += 1;
        count.bytes += bytes as u64;
    }
}

/// What became of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its machine was done at this moment.
    Done(Time),
    /// It waits, since this moment, for what never came.
    Waits(Time),
    /// It had something to do at the deadline.
    Late,
    /// Its machine failed.
    Failed(PollError),
    /// The schedule stopped it.
    Dropped,
}

/// A run's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When each rank began.
    pub begin: Vec<Time>,
    /// What became of each rank.
    pub fates: Vec<Fate>,
    /// Who waits in the end, and for what: of several events of one rank any would do. Peers are ranks of the world.
    pub waits: Vec<(Rank, Await)>,
    /// What was sent.
    pub traffic: Traffic,
    /// Polls of machines, of all ranks together.
    pub polls: u64,
}

impl Outcome {
    /// When the last rank was done.
    ///
    /// # Errors
    /// A rank was not: who waits for whom.
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

/// Why not every rank was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Who waits, and for what: any of a rank's events would do.
    pub waits: Vec<(Rank, Await)>,
    /// Whose fault it is: those that are waited for (or failed) and wait for nobody themselves; where there is none, a
    /// circle of ranks that wait for each other.
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

/// Ranks that wait for each other, each for the next one and the last for the first.
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

/// Waits that a report names.
const NAMED: usize = 8;

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { waits, culprits } = self;
        for (rank, on) in waits.iter().take(NAMED) {
            match on.peer {
                Some(peer) => write!(f, "rank {rank} waits for rank {peer} in operation {}; ", on.operation)?,
                None => write!(f, "rank {rank} waits for anyone in operation {}; ", on.operation)?,
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

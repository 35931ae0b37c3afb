//! What is asked for, and what can be answered: collectives, algorithms, where each applies.

use crate::algorithm::{AllreduceAlgorithm, BarrierAlgorithm, BcastAlgorithm, LINE_REDUCED, MoveAlgorithm};
use crate::collective::Collective;
use crate::msg::{Algorithm, Label, Needs, allreduce, alltoall, gather, reduce_scatter, scatter};
use crate::region::layout::LINE_PAYLOAD;
use core::fmt;

/// Over what a collective runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Over {
    /// A shared segment: `shm`.
    Segment,
    /// Messages: `msg`.
    Messages,
}

impl Over {
    /// The word for it in a table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Segment => "shm",
            Self::Messages => "msg",
        }
    }

    /// What a word stands for.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Segment, Self::Messages].into_iter().find(|over| over.name() == name)
    }
}

/// A call, as far as all ranks know it alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// Over what.
    pub over: Over,
    /// Which.
    pub collective: Collective,
    /// Of each rank, as [`Collective`] says; 0 where not all know them.
    pub bytes: u64,
    /// Does the operation commute? True where there is none.
    pub commutative: bool,
    /// Where.
    pub site: Site,
}

/// What is the same for all calls of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// Its processes.
    pub ranks: u32,
    /// Levels of groups that it is divided into; 1: none.
    pub levels: u32,
    /// Has the segment the papers' queues?
    pub papers: bool,
}

impl Site {
    /// One level, without the papers' queues.
    pub const fn flat(ranks: u32) -> Self {
        Self { ranks, levels: 1, papers: false }
    }
}

/// An answer: an algorithm of a collective. Never `Auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// A barrier on a segment.
    Barrier(BarrierAlgorithm),
    /// A broadcast through a segment.
    Bcast(BcastAlgorithm),
    /// A gather(v), scatter(v) or allgather through a segment.
    Move(MoveAlgorithm),
    /// An allreduce through a segment.
    Allreduce(AllreduceAlgorithm),
    /// The one machine for all other collectives through a segment.
    Exchange,
    /// Any collective over messages.
    Messages(Algorithm),
}

impl Choice {
    /// The algorithm of a name; none for unknown names, `auto`, and those of other collectives.
    pub fn from_name(over: Over, collective: Collective, name: &str) -> Option<Self> {
        if over == Over::Messages {
            return Algorithm::of(collective.family(), name).map(Self::Messages);
        }
        Some(match collective {
            _ if name == "auto" => return None,
            Collective::Barrier => Self::Barrier(BarrierAlgorithm::from_name(name)?),
            Collective::Bcast => Self::Bcast(BcastAlgorithm::from_name(name)?),
            Collective::Allreduce => Self::Allreduce(AllreduceAlgorithm::from_name(name)?),
            Collective::Gather
            | Collective::Gatherv
            | Collective::Scatter
            | Collective::Scatterv
            | Collective::Allgather => Self::Move(MoveAlgorithm::from_name(name)?),
            _ => (name == "exchange").then_some(Self::Exchange)?,
        })
    }

    /// Over what it runs.
    pub const fn over(self) -> Over {
        if matches!(self, Self::Messages(_)) { Over::Messages } else { Over::Segment }
    }

    /// Does it run through the papers' queues, which not every segment has?
    pub const fn in_papers_queues(self) -> bool {
        matches!(self, Self::Bcast(BcastAlgorithm::Cico(_)) | Self::Move(MoveAlgorithm::Cico))
    }

    /// Can it serve this call?
    ///
    /// # Errors
    /// Why not.
    pub fn applies(self, ask: &Ask) -> Result<(), Unfit> {
        let at_most = |most| if ask.bytes > most { Err(Unfit::Longer(most)) } else { Ok(()) };
        match self {
            Self::Bcast(BcastAlgorithm::Posted) => at_most(LINE_PAYLOAD),
            Self::Allreduce(AllreduceAlgorithm::Posted) => at_most(LINE_REDUCED),
            _ if self.in_papers_queues() && !ask.site.papers => Err(Unfit::NoQueues),
            Self::Messages(algorithm) => lacks(algorithm, ask).map_or(Ok(()), |needs| Err(Unfit::Needs(needs))),
            _ => Ok(()),
        }
    }
}

/// What an algorithm over messages needs that a call has not.
fn lacks(algorithm: Algorithm, ask: &Ask) -> Option<Needs> {
    use allreduce::Algorithm::{Ring, SegmentedRing};
    let equal = !matches!(ask.collective, Collective::Gatherv | Collective::Scatterv | Collective::Alltoallv);
    match algorithm {
        Algorithm::Allreduce(Ring | SegmentedRing(_)) | Algorithm::ReduceScatter(reduce_scatter::Algorithm::Ring) => {
            (!ask.commutative).then_some(Needs::Commutative)
        }
        Algorithm::Gather(gather::Algorithm::Binomial)
        | Algorithm::Scatter(scatter::Algorithm::Binomial)
        | Algorithm::Alltoall(alltoall::Algorithm::Bruck) => (!equal).then_some(Needs::EqualBlocks),
        // A table of stages is its caller's: BAGDS is called by name.
        Algorithm::Allgather(algorithm) => algorithm.applicable(ask.site.ranks, None).err(),
        _ => None,
    }
}

/// Why an algorithm does not serve a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unfit {
    /// It carries so many bytes at most.
    Longer(u64),
    /// The segment has no queues of the papers.
    NoQueues,
    /// It needs something of the call.
    Needs(Needs),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Longer(most) => write!(f, "carries {most} bytes at most"),
            Self::NoQueues => f.write_str("needs the papers' queues in the segment"),
            // Rules are for many numbers of ranks.
            Self::Needs(Needs::PowerOfTwo(_)) => f.write_str("needs a power of two of ranks"),
            Self::Needs(Needs::Table) => f.write_str("needs a table of stages, which its caller brings"),
            Self::Needs(needs) => write!(f, "needs {needs}"),
        }
    }
}

/// The name, as [`Choice::from_name`] reads it.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Barrier(algorithm) => algorithm.fmt(f),
            Self::Bcast(algorithm) => algorithm.fmt(f),
            Self::Move(algorithm) => algorithm.fmt(f),
            Self::Allreduce(algorithm) => algorithm.fmt(f),
            Self::Exchange => f.write_str("exchange"),
            Self::Messages(algorithm) => match algorithm.label() {
                Label { algorithm, number: None, .. } => f.write_str(algorithm),
                Label { algorithm, number: Some(number), .. } => write!(f, "{algorithm}-{number}"),
            },
        }
    }
}

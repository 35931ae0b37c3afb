//! What is asked for, and what can be answered: collectives, algorithms, where each applies.

use crate::msg::{Algorithm, Needs, allreduce, alltoall, gather, reduce_scatter, scatter};
use crate::pattern::tree::Tree;
use crate::select::{AllreduceAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm};
use crate::shm;
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

/// A collective, as tables name it. Where ranks don't know each other's lengths it has a name of its own, since
/// there is no choice by bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// MPI 4.1, 7.3.
    Barrier,
    /// MPI 4.1, 7.4.
    Bcast,
    /// MPI 4.1, 7.5; bytes of a block.
    Gather,
    /// MPI 4.1, 7.5.
    Gatherv,
    /// MPI 4.1, 7.6; bytes of a block.
    Scatter,
    /// MPI 4.1, 7.6.
    Scatterv,
    /// MPI 4.1, 7.7, with equal blocks or not; bytes of the longest block.
    Allgather,
    /// MPI 4.1, 7.8; bytes of a block.
    Alltoall,
    /// MPI 4.1, 7.8.
    Alltoallv,
    /// MPI 4.1, 7.9.1.
    Reduce,
    /// MPI 4.1, 7.9.6.
    Allreduce,
    /// MPI 4.1, 7.10; bytes of the whole vector.
    ReduceScatter,
    /// MPI 4.1, 7.11.1.
    Scan,
    /// MPI 4.1, 7.11.2.
    Exscan,
}

impl Collective {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Barrier,
        Self::Bcast,
        Self::Gather,
        Self::Gatherv,
        Self::Scatter,
        Self::Scatterv,
        Self::Allgather,
        Self::Alltoall,
        Self::Alltoallv,
        Self::Reduce,
        Self::Allreduce,
        Self::ReduceScatter,
        Self::Scan,
        Self::Exscan,
    ];

    /// MPI's name, without its prefix.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Bcast => "bcast",
            Self::Gather => "gather",
            Self::Gatherv => "gatherv",
            Self::Scatter => "scatter",
            Self::Scatterv => "scatterv",
            Self::Allgather => "allgather",
            Self::Alltoall => "alltoall",
            Self::Alltoallv => "alltoallv",
            Self::Reduce => "reduce",
            Self::Allreduce => "allreduce",
            Self::ReduceScatter => "reduce_scatter",
            Self::Scan => "scan",
            Self::Exscan => "exscan",
        }
    }

    /// What a name stands for.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|collective| collective.name() == name)
    }

    /// Do all ranks know the bytes? A barrier has none, and of unequal blocks each rank knows its own.
    pub const fn has_bytes(self) -> bool {
        !matches!(self, Self::Barrier | Self::Gatherv | Self::Scatterv | Self::Alltoallv)
    }

    /// Is there an operation, which may not commute?
    pub const fn folds(self) -> bool {
        matches!(self, Self::Reduce | Self::Allreduce | Self::ReduceScatter | Self::Scan | Self::Exscan)
    }

    /// Its name among the algorithms over messages.
    const fn family(self) -> &'static str {
        match self {
            Self::Gatherv => "gather",
            Self::Scatterv => "scatter",
            Self::Alltoallv => "alltoall",
            Self::Exscan => "scan",
            other => other.name(),
        }
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
pub enum Plan {
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

impl Plan {
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
            Self::Bcast(BcastAlgorithm::Posted) => at_most(shm::bcast::posted::MOST),
            Self::Allreduce(AllreduceAlgorithm::Posted) => at_most(shm::allreduce::posted::MOST),
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

/// The name, as [`Plan::from_name`] reads it.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Barrier(BarrierAlgorithm::Combining(arity)) => write!(f, "combining-{arity}"),
            Self::Bcast(BcastAlgorithm::Cico(tree)) => match tree {
                Tree::Flat => f.write_str("cico-flat"),
                Tree::Chain => f.write_str("cico-chain"),
                Tree::BINARY => f.write_str("cico-binary"),
                Tree::BINOMIAL => f.write_str("cico-binomial"),
                Tree::Kary(k) => write!(f, "cico-kary-{k}"),
                Tree::Knomial(k) => write!(f, "cico-knomial-{k}"),
            },
            Self::Messages(algorithm) => match algorithm.parts().1 {
                (name, None) => f.write_str(name),
                (name, Some(number)) => write!(f, "{name}-{number}"),
            },
            Self::Barrier(BarrierAlgorithm::Posted)
            | Self::Bcast(BcastAlgorithm::Posted)
            | Self::Allreduce(AllreduceAlgorithm::Posted) => f.write_str("posted"),
            Self::Barrier(BarrierAlgorithm::Dissemination) => f.write_str("dissemination"),
            Self::Barrier(BarrierAlgorithm::Central) => f.write_str("central"),
            Self::Bcast(BcastAlgorithm::Queue) => f.write_str("queue"),
            Self::Allreduce(AllreduceAlgorithm::Slices) => f.write_str("slices"),
            Self::Move(MoveAlgorithm::Cico) => f.write_str("cico"),
            Self::Allreduce(AllreduceAlgorithm::Exchange) | Self::Move(MoveAlgorithm::Exchange) | Self::Exchange => {
                f.write_str("exchange")
            }
            Self::Barrier(BarrierAlgorithm::Auto)
            | Self::Bcast(BcastAlgorithm::Auto)
            | Self::Allreduce(AllreduceAlgorithm::Auto)
            | Self::Move(MoveAlgorithm::Auto) => f.write_str("auto"),
        }
    }
}

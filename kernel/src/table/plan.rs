//! Calls and algorithms, as rules name them, and to which calls each algorithm applies.

use crate::algorithm::{
    AllreduceAlgorithm, AlltoallAlgorithm, BarrierAlgorithm, BcastAlgorithm, LINE_REDUCED, MoveAlgorithm,
    ReduceAlgorithm, ReduceScatterAlgorithm, ScanAlgorithm,
};
use crate::collective::Collective;
use crate::msg::{Algorithm, Label, Needs, allreduce, alltoall, gather, levels, reduce_scatter, scatter};
use crate::region::layout::{LINE_PAYLOAD, PARTIAL};
use core::fmt;

/// What a collective runs over: shared memory or messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Over {
    /// A segment: `shm`.
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

    /// The value of this word.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Segment, Self::Messages].into_iter().find(|over| over.name() == name)
    }
}

/// What is the same on all ranks of a call: the choice of an algorithm depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// What it runs over.
    pub over: Over,
    /// The collective.
    pub collective: Collective,
    /// Bytes of each rank, as [`Collective`] says; 0 if not all ranks know them.
    pub bytes: u64,
    /// Does the op commute? True for collectives without an op.
    pub commutative: bool,
    /// The communicator.
    pub site: Site,
}

/// What the choice of an algorithm needs to know of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// Number of its processes.
    pub ranks: u32,
    /// Number of levels of its hierarchy; 1: it has no hierarchy.
    pub levels: u32,
    /// Does the segment have the papers' queues?
    pub papers: bool,
    /// Are there tables of BAGDS's stages ([`crate::pattern::bagds::Table`])?
    pub stages: bool,
    /// Do the processes share cores?
    pub crowded: bool,
    /// Is there an MPI to which a call can be left?
    pub mpi: bool,
}

impl Site {
    /// A communicator of one level, without the papers' queues, BAGDS's stages and an MPI, of processes that have a core each.
    pub const fn flat(ranks: u32) -> Self {
        Self { ranks, levels: 1, papers: false, stages: false, crowded: false, mpi: false }
    }
}

/// An algorithm of a collective; never `Auto`.
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
    /// An alltoall through a segment.
    Alltoall(AlltoallAlgorithm),
    /// A reduce through a segment.
    Reduce(ReduceAlgorithm),
    /// A reduce_scatter through a segment.
    ReduceScatter(ReduceScatterAlgorithm),
    /// A scan or an exscan through a segment.
    Scan(ScanAlgorithm),
    /// The one machine for all other collectives through a segment.
    Exchange,
    /// None of ours: the host leaves the call to the MPI that it stands in front of.
    Mpi,
    /// Any collective over messages, among all ranks alike.
    Messages(Algorithm),
    /// A collective over messages, over the levels of the network: see [`Choice::OVER_LEVELS`].
    Levels(levels::Algorithm),
}

impl Choice {
    /// The algorithm of a name; `None` for unknown names, `auto`, and names of other collectives' algorithms.
    pub fn from_name(over: Over, collective: Collective, name: &str) -> Option<Self> {
        if over == Over::Messages {
            let flat = Algorithm::of(collective.family(), name).map(Self::Messages);
            let levels = || {
                let algorithm = levels::Algorithm::from_name(name)?;
                let fits = (algorithm.top.is_none() || collective == Collective::Allreduce)
                    && (!algorithm.through_0 || matches!(collective, Collective::Bcast | Collective::Reduce));
                (fits && Self::OVER_LEVELS.contains(&collective)).then_some(Self::Levels(algorithm))
            };
            return flat.or_else(levels);
        }
        Some(match collective {
            _ if name == "auto" => return None,
            _ if name == "mpi" => Self::Mpi,
            Collective::Barrier => Self::Barrier(BarrierAlgorithm::from_name(name)?),
            Collective::Bcast => Self::Bcast(BcastAlgorithm::from_name(name)?),
            Collective::Allreduce => Self::Allreduce(AllreduceAlgorithm::from_name(name)?),
            Collective::Alltoall => Self::Alltoall(AlltoallAlgorithm::from_name(name)?),
            Collective::Reduce => Self::Reduce(ReduceAlgorithm::from_name(name)?),
            Collective::ReduceScatter => Self::ReduceScatter(ReduceScatterAlgorithm::from_name(name)?),
            Collective::Scan | Collective::Exscan => Self::Scan(ScanAlgorithm::from_name(name)?),
            Collective::Gather | Collective::Allgather => Self::Move(MoveAlgorithm::from_name(name)?),
            Collective::Gatherv | Collective::Scatter | Collective::Scatterv => {
                Self::Move(MoveAlgorithm::from_name(name).filter(|algorithm| *algorithm != MoveAlgorithm::Groups)?)
            }
            _ => (name == "exchange").then_some(Self::Exchange)?,
        })
    }

    /// The collectives that a table can have run over levels. Of the others, or of their blocks, not all ranks know the lengths,
    /// or leaders have no algorithm of their own.
    pub const OVER_LEVELS: [Collective; 8] = [
        Collective::Barrier,
        Collective::Bcast,
        Collective::Reduce,
        Collective::Allreduce,
        Collective::Gather,
        Collective::Scatter,
        Collective::Allgather,
        Collective::Alltoall,
    ];

    /// What it runs over.
    pub const fn over(self) -> Over {
        if matches!(self, Self::Messages(_) | Self::Levels(_)) { Over::Messages } else { Over::Segment }
    }

    /// Does it run through the papers' queues, which not every segment has?
    pub const fn in_papers_queues(self) -> bool {
        matches!(self, Self::Bcast(BcastAlgorithm::Cico(_)) | Self::Move(MoveAlgorithm::Cico))
    }

    /// Checks that it can run this call.
    ///
    /// # Errors
    /// The reason why it can't.
    pub fn applies(self, ask: &Ask) -> Result<(), Unfit> {
        let at_most = |most| if ask.bytes > most { Err(Unfit::Longer(most)) } else { Ok(()) };
        match self {
            Self::Bcast(BcastAlgorithm::Posted | BcastAlgorithm::Groups) => at_most(LINE_PAYLOAD),
            Self::Allreduce(AllreduceAlgorithm::Doubling) => at_most(PARTIAL),
            Self::Allreduce(AllreduceAlgorithm::Posted)
            | Self::Reduce(ReduceAlgorithm::Tree)
            | Self::Scan(ScanAlgorithm::Doubling) => at_most(LINE_REDUCED),
            _ if self.in_papers_queues() && !ask.site.papers => Err(Unfit::NoQueues),
            Self::Mpi if !ask.site.mpi => Err(Unfit::NoMpi),
            Self::Messages(algorithm) => lacks(algorithm, ask).map_or(Ok(()), |needs| Err(Unfit::Needs(needs))),
            Self::Levels(_) if ask.site.levels < 2 => Err(Unfit::NoLevels),
            Self::Levels(_) if !ask.commutative => Err(Unfit::Needs(Needs::Commutative)),
            Self::Levels(algorithm) => {
                let barrier = ask.collective == Collective::Barrier;
                let needs_trees = barrier || algorithm.through_0 && ask.collective == Collective::Reduce;
                algorithm.fits(needs_trees).map_err(Unfit::Needs)
            }
            _ => Ok(()),
        }
    }
}

/// What an algorithm over messages needs and this call does not have.
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
        Algorithm::Allgather(algorithm) => algorithm.applicable(ask.site.ranks, ask.site.stages).err(),
        _ => None,
    }
}

/// Why an algorithm can't run a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unfit {
    /// It can carry so many bytes at most.
    Longer(u64),
    /// The segment has no queues of the papers.
    NoQueues,
    /// The network has one level.
    NoLevels,
    /// There is no MPI beneath.
    NoMpi,
    /// The call lacks something that it needs.
    Needs(Needs),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Longer(most) => write!(f, "carries {most} bytes at most"),
            Self::NoQueues => f.write_str("needs the papers' queues in the segment"),
            Self::NoLevels => f.write_str("needs a network of several levels"),
            Self::NoMpi => f.write_str("needs an MPI to which the preload can leave the call"),
            // A rule is for many numbers of ranks, so the text has no number.
            Self::Needs(Needs::PowerOfTwo(_)) => f.write_str("needs a power of two of ranks"),
            Self::Needs(Needs::Table) => f.write_str("needs a table of stages, which is made between nodes alone"),
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
            Self::Alltoall(algorithm) => algorithm.fmt(f),
            Self::Reduce(algorithm) => algorithm.fmt(f),
            Self::ReduceScatter(algorithm) => algorithm.fmt(f),
            Self::Scan(algorithm) => algorithm.fmt(f),
            Self::Exchange => f.write_str("exchange"),
            Self::Mpi => f.write_str("mpi"),
            Self::Levels(algorithm) => algorithm.fmt(f),
            Self::Messages(algorithm) => match algorithm.label() {
                Label { algorithm, number: None, .. } => f.write_str(algorithm),
                Label { algorithm, number: Some(number), .. } => write!(f, "{algorithm}-{number}"),
            },
        }
    }
}

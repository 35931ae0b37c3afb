//! The part of a table that one communicator needs: for each collective, the algorithm by the length of the call.

use super::{Ask, BUILT_IN, Choice, Collective, Over, Rule, Site, select};
use crate::algorithm::{
    AllreduceAlgorithm, AlltoallAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm, ReduceAlgorithm,
    ReduceScatterAlgorithm, ScanAlgorithm,
};
use core::fmt;
use heapless::Vec;

/// Most ranges of lengths of one collective, for one number of processes.
pub const STEPS: usize = 16;

/// Algorithms, each with the greatest length for which it runs, in rising order of lengths.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Steps<A>(Vec<(u64, A), STEPS>);

impl<A: Copy> Steps<A> {
    /// The algorithm for a length.
    pub(super) fn at(&self, bytes: u64) -> Option<A> {
        self.0.iter().find(|(most, _)| bytes <= *most).map(|(_, algorithm)| *algorithm)
    }

    /// All algorithms.
    pub(super) fn iter(&self) -> impl Iterator<Item = A> {
        self.0.iter().map(|(_, algorithm)| *algorithm)
    }
}

/// What `Auto` means on a communicator over a segment. It is made once, together with the communicator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Choices {
    barrier: Steps<BarrierAlgorithm>,
    bcast: Steps<BcastAlgorithm>,
    /// For ops that don't commute, and for ops that do.
    allreduce: [Steps<AllreduceAlgorithm>; 2],
    /// The same.
    reduce: [Steps<ReduceAlgorithm>; 2],
    /// Of scan and of exscan.
    scans: [[Steps<ScanAlgorithm>; 2]; 2],
    alltoall: Steps<AlltoallAlgorithm>,
    /// As of allreduce.
    reduce_scatter: [Steps<ReduceScatterAlgorithm>; 2],
    /// For the collectives of [`MOVES`], in that order.
    moves: [Steps<MoveAlgorithm>; MOVES.len()],
    /// Is a call left to the MPI? Of each collective as of allreduce.
    left: [[Steps<bool>; 2]; Collective::ALL.len()],
}

const MOVES: [Collective; 5] =
    [Collective::Gather, Collective::Gatherv, Collective::Scatter, Collective::Scatterv, Collective::Allgather];

/// A table divides a collective into more than [`STEPS`] ranges of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TooMany {
    /// The collective.
    pub collective: Collective,
    /// The number of processes.
    pub ranks: u32,
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collective, ranks } = self;
        write!(f, "{collective} of {ranks} ranks has more than {STEPS} ranges of bytes")
    }
}

impl core::error::Error for TooMany {}

impl Choices {
    /// The part of a table that a communicator at `site` needs.
    ///
    /// # Errors
    /// The table divides a collective into too many ranges.
    pub fn cut(table: &[Rule], site: Site) -> Result<Self, TooMany> {
        let of = |collective, commutative| Ask { over: Over::Segment, collective, bytes: 0, commutative, site };
        let barrier = |plan| if let Choice::Barrier(algorithm) = plan { Some(algorithm) } else { None };
        let bcast = |plan| if let Choice::Bcast(algorithm) = plan { Some(algorithm) } else { None };
        let allreduce = |plan| if let Choice::Allreduce(algorithm) = plan { Some(algorithm) } else { None };
        let reduce = |plan| if let Choice::Reduce(algorithm) = plan { Some(algorithm) } else { None };
        let scan = |plan| if let Choice::Scan(algorithm) = plan { Some(algorithm) } else { None };
        let scans = |one| Ok([steps(table, of(one, false), scan)?, steps(table, of(one, true), scan)?]);
        let alltoall = |plan| if let Choice::Alltoall(algorithm) = plan { Some(algorithm) } else { None };
        let parts = |plan| if let Choice::ReduceScatter(algorithm) = plan { Some(algorithm) } else { None };
        let moved = |plan| if let Choice::Move(algorithm) = plan { Some(algorithm) } else { None };
        let moves = |at: usize| MOVES.get(at).map_or(Ok(Steps(Vec::new())), |one| steps(table, of(*one, true), moved));
        let left = |one, commutative| {
            let beside_mpi = Ask { site: Site { mpi: true, ..site }, ..of(one, commutative) };
            steps(table, beside_mpi, |plan| Some(plan == Choice::Mpi))
        };
        let mut all_left = [const { [Steps(Vec::new()), Steps(Vec::new())] }; Collective::ALL.len()];
        for (steps, one) in all_left.iter_mut().zip(Collective::ALL) {
            *steps = [left(one, false)?, left(one, true)?];
        }
        Ok(Self {
            barrier: steps(table, of(Collective::Barrier, true), barrier)?,
            bcast: steps(table, of(Collective::Bcast, true), bcast)?,
            allreduce: [
                steps(table, of(Collective::Allreduce, false), allreduce)?,
                steps(table, of(Collective::Allreduce, true), allreduce)?,
            ],
            reduce: [
                steps(table, of(Collective::Reduce, false), reduce)?,
                steps(table, of(Collective::Reduce, true), reduce)?,
            ],
            alltoall: steps(table, of(Collective::Alltoall, true), alltoall)?,
            reduce_scatter: [
                steps(table, of(Collective::ReduceScatter, false), parts)?,
                steps(table, of(Collective::ReduceScatter, true), parts)?,
            ],
            scans: [scans(Collective::Scan)?, scans(Collective::Exscan)?],
            moves: [moves(0)?, moves(1)?, moves(2)?, moves(3)?, moves(4)?],
            left: all_left,
        })
    }

    /// Does the table leave a call to the MPI, where there is one? `bytes` as the [`Collective`] says; the op is `commutative`.
    pub fn leaves(&self, collective: Collective, bytes: u64, commutative: bool) -> bool {
        self.left_of(collective).and_then(|left| left.get(usize::from(commutative))?.at(bytes)).unwrap_or(false)
    }

    /// Does it leave any call of the collective?
    pub fn leaves_any(&self, collective: Collective) -> bool {
        self.left_of(collective).is_some_and(|left| left.iter().flat_map(Steps::iter).any(|left| left))
    }

    fn left_of(&self, collective: Collective) -> Option<&[Steps<bool>; 2]> {
        self.left.get(collective as usize)
    }
}

/// The algorithms of one collective by length: asks the table at every length at which a rule starts or ends.
pub(super) fn steps<A: Copy + PartialEq>(
    table: &[Rule],
    ask: Ask,
    of: fn(Choice) -> Option<A>,
) -> Result<Steps<A>, TooMany> {
    let mut steps: Vec<(u64, A), STEPS> = Vec::new();
    let mut bytes = 0;
    loop {
        let ends = table.iter().chain(BUILT_IN).filter(|rule| rule.collective == ask.collective);
        let next = ends.flat_map(|rule| [rule.bytes.least, rule.bytes.most.saturating_add(1)]);
        let next = next.filter(|end| *end > bytes).min();
        let most = next.filter(|end| *end < u64::MAX).map_or(u64::MAX, |end| end - 1);
        if let Some(algorithm) = select(table, &Ask { bytes, ..ask }).and_then(|chosen| of(chosen.plan)) {
            match steps.last_mut() {
                Some((until, last)) if *last == algorithm => *until = most,
                _ => steps
                    .push((most, algorithm))
                    .map_err(|_| TooMany { collective: ask.collective, ranks: ask.site.ranks })?,
            }
        }
        if most == u64::MAX {
            return Ok(Steps(steps));
        }
        bytes = most + 1;
    }
}

/// What `Auto` means on a communicator over a segment: the built-in rules of [`crate::algorithm`], unless it was made
/// with a table. Inlined: without a table it costs the load of one word.
#[derive(Clone, Copy, Debug)]
pub struct Chooser {
    /// The communicator's part of the table, if it was made with one.
    pub choices: Option<&'static Choices>,
    /// The number of its processes.
    pub ranks: u32,
    /// Do they share cores?
    pub crowded: bool,
}

impl Chooser {
    /// The algorithm of a barrier.
    #[inline(always)]
    #[must_use]
    pub fn barrier_by(self, algorithm: BarrierAlgorithm) -> BarrierAlgorithm {
        match (algorithm, self.choices) {
            (BarrierAlgorithm::Auto, Some(choices)) => choices.barrier.at(0).unwrap_or_default(),
            _ => algorithm,
        }
        .resolve(self.ranks, self.crowded)
    }

    /// The algorithm of a broadcast.
    #[inline(always)]
    #[must_use]
    pub fn bcast_by(self, algorithm: BcastAlgorithm, bytes: u64) -> BcastAlgorithm {
        match (algorithm, self.choices) {
            (BcastAlgorithm::Auto, Some(choices)) => choices.bcast.at(bytes).unwrap_or_default(),
            _ => algorithm,
        }
        .resolve(bytes, self.ranks, self.crowded)
    }

    /// The algorithm of an allreduce.
    #[inline(always)]
    #[must_use]
    pub fn allreduce_by(self, algorithm: AllreduceAlgorithm, bytes: u64, commutative: bool) -> AllreduceAlgorithm {
        match (algorithm, self.choices) {
            (AllreduceAlgorithm::Auto, Some(choices)) => {
                let [ordered, any] = &choices.allreduce;
                if commutative { any } else { ordered }.at(bytes).unwrap_or_default()
            }
            _ => algorithm,
        }
        .resolve(bytes, self.ranks, self.crowded)
    }

    /// The algorithm of a reduce.
    #[inline(always)]
    #[must_use]
    pub fn reduce_by(self, algorithm: ReduceAlgorithm, bytes: u64, commutative: bool) -> ReduceAlgorithm {
        match (algorithm, self.choices) {
            (ReduceAlgorithm::Auto, Some(choices)) => {
                let [ordered, any] = &choices.reduce;
                if commutative { any } else { ordered }.at(bytes).unwrap_or_default()
            }
            _ => algorithm,
        }
        .resolve(bytes, self.ranks, self.crowded)
    }

    /// The algorithm of an alltoall with blocks of `bytes`.
    #[inline(always)]
    #[must_use]
    pub fn alltoall_by(self, algorithm: AlltoallAlgorithm, bytes: u64) -> AlltoallAlgorithm {
        match (algorithm, self.choices) {
            (AlltoallAlgorithm::Auto, Some(choices)) => choices.alltoall.at(bytes).unwrap_or_default(),
            _ => algorithm,
        }
        .resolve(bytes, self.ranks, self.crowded)
    }

    /// The algorithm of a reduce_scatter. `bytes`, of all blocks together, is called only if the choice depends on it.
    #[inline(always)]
    #[must_use]
    pub fn reduce_scatter_by(
        self,
        algorithm: ReduceScatterAlgorithm,
        bytes: impl FnOnce() -> u64,
        commutative: bool,
    ) -> ReduceScatterAlgorithm {
        match (algorithm, self.choices) {
            (ReduceScatterAlgorithm::Auto, Some(choices)) => {
                let [ordered, any] = &choices.reduce_scatter;
                if commutative { any } else { ordered }.at(bytes()).unwrap_or(ReduceScatterAlgorithm::Exchange)
            }
            _ => algorithm.resolve(bytes, self.ranks, self.crowded),
        }
    }

    /// The algorithm of a scan or an exscan.
    #[inline(always)]
    #[must_use]
    pub fn scan_by(self, algorithm: ScanAlgorithm, exclusive: bool, bytes: u64, commutative: bool) -> ScanAlgorithm {
        match (algorithm, self.choices) {
            (ScanAlgorithm::Auto, Some(choices)) => {
                let [inclusive, below] = &choices.scans;
                let [ordered, any] = if exclusive { below } else { inclusive };
                if commutative { any } else { ordered }.at(bytes).unwrap_or_default()
            }
            _ => algorithm,
        }
        .resolve(bytes, self.ranks, self.crowded)
    }

    /// The algorithm of a gather(v), scatter(v) or allgather. `bytes` is called only if the choice depends on it.
    #[inline(always)]
    #[must_use]
    pub fn move_by(
        self,
        algorithm: MoveAlgorithm,
        collective: Collective,
        bytes: impl FnOnce() -> u64,
    ) -> MoveAlgorithm {
        match (algorithm, self.choices) {
            (MoveAlgorithm::Auto, Some(choices)) => {
                let steps = MOVES.iter().position(|one| *one == collective).and_then(|at| choices.moves.get(at));
                steps.and_then(|steps| steps.at(bytes())).unwrap_or(MoveAlgorithm::Exchange)
            }
            _ => algorithm.resolve(collective, bytes, self.ranks, self.crowded),
        }
    }
}

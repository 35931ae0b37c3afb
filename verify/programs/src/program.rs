//! A program as plain data.

use std::ops::Range;
use unisono_kernel::region::{Base, Cico, Params};

/// Names of an enum in the text, and back.
macro_rules! named {
    ($(#[$about:meta])* $type:ident { $($(#[$meta:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $type {
            $($(#[$meta])* $variant,)*
        }

        impl $type {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name in the text.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The one with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|each| each.name() == name)
            }
        }
    };
}

named! {
    /// The procedure of a call.
    Name {
        /// MPI_Barrier.
        Barrier = "barrier",
        /// MPI_Bcast.
        Bcast = "bcast",
        /// MPI_Gather.
        Gather = "gather",
        /// MPI_Gatherv.
        Gatherv = "gatherv",
        /// MPI_Scatter.
        Scatter = "scatter",
        /// MPI_Scatterv.
        Scatterv = "scatterv",
        /// MPI_Allgather.
        Allgather = "allgather",
        /// MPI_Allgatherv.
        Allgatherv = "allgatherv",
        /// MPI_Alltoall.
        Alltoall = "alltoall",
        /// MPI_Alltoallv.
        Alltoallv = "alltoallv",
        /// MPI_Alltoallw.
        Alltoallw = "alltoallw",
        /// MPI_Reduce.
        Reduce = "reduce",
        /// MPI_Allreduce.
        Allreduce = "allreduce",
        /// MPI_Reduce_scatter.
        ReduceScatter = "reduce_scatter",
        /// MPI_Reduce_scatter_block.
        ReduceScatterBlock = "reduce_scatter_block",
        /// MPI_Scan.
        Scan = "scan",
        /// MPI_Exscan.
        Exscan = "exscan",
        /// MPI_Comm_dup.
        Dup = "dup",
        /// MPI_Comm_split.
        Split = "split",
        /// MPI_Comm_free.
        Free = "free",
    }
}

impl Name {
    /// The seventeen collectives that move data, reduce or synchronise.
    pub const COLLECTIVES: &'static [Self] = Self::ALL.split_at(17).0;

    /// Does it have a root?
    pub const fn rooted(self) -> bool {
        use Name::*;
        matches!(self, Bcast | Gather | Gatherv | Scatter | Scatterv | Reduce)
    }

    /// Does it reduce?
    pub const fn folds(self) -> bool {
        use Name::*;
        matches!(self, Reduce | Allreduce | ReduceScatter | ReduceScatterBlock | Scan | Exscan)
    }

    /// Does it make or free communicators?
    pub const fn manages(self) -> bool {
        matches!(self, Self::Dup | Self::Split | Self::Free)
    }

    /// Does each rank, or each pair of ranks, have a count of its own?
    pub const fn varies(self) -> bool {
        use Name::*;
        matches!(self, Gatherv | Scatterv | Allgatherv | Alltoallv | Alltoallw | ReduceScatter)
    }

    /// The number of counts in its line on a communicator of `size`; `None`: its numbers are not counts.
    pub const fn counts(self, size: usize) -> Option<usize> {
        use Name::*;
        match self {
            Barrier | Free => Some(0),
            Gatherv | Scatterv | Allgatherv | ReduceScatter => Some(size),
            Alltoallv | Alltoallw => Some(size * size),
            Dup | Split => None,
            _ => Some(1),
        }
    }

    /// May it be in place?
    pub const fn may_be_in_place(self) -> bool {
        !matches!(self, Self::Barrier | Self::Bcast) && !self.manages()
    }
}

named! {
    /// A reduction's operation, on elements of at most `MOST` bytes.
    Op {
        /// No operation: the call does not reduce.
        None = "none",
        /// Sum of u8, wrapping (predefined).
        Sum8 = "sum8",
        /// Sum of u64, wrapping (predefined).
        Sum64 = "sum64",
        /// Bits of exactly one, of u64 (predefined).
        Xor64 = "xor64",
        /// Greater u64 (predefined).
        Max64 = "max64",
        /// Sum of all bytes of an element, each wrapping: the user's, commutes.
        Add = "add",
        /// Composition of affine maps of pairs of bytes: the user's, does not commute.
        Affine = "affine",
    }
}

/// The most bytes of an element.
pub const MOST: u64 = 4096;

impl Op {
    /// Bytes of an element, where the operation says so.
    pub const fn element(self) -> Option<u64> {
        match self {
            Self::Sum8 => Some(1),
            Self::Sum64 | Self::Xor64 | Self::Max64 => Some(8),
            _ => None,
        }
    }

    /// `left ∘ right` of one element, into `left`.
    pub fn fold(self, left: &mut [u8], right: &[u8]) {
        let words = |left: &mut [u8], fold: fn(u64, u64) -> u64| {
            let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            let folded = fold(word(left), word(right)).to_le_bytes();
            left.iter_mut().zip(folded).for_each(|(to, from)| *to = from);
        };
        match self {
            Self::None => {}
            Self::Sum64 => words(left, u64::wrapping_add),
            Self::Xor64 => words(left, |left, right| left ^ right),
            Self::Max64 => words(left, u64::max),
            Self::Sum8 | Self::Add => left.iter_mut().zip(right).for_each(|(l, r)| *l = l.wrapping_add(*r)),
            Self::Affine => {
                for (l, r) in left.chunks_mut(2).zip(right.chunks(2)) {
                    match (l, r) {
                        // x → l0·(r0·x + r1) + l1.
                        ([l0, l1], [r0, r1]) => {
                            *l1 = l0.wrapping_mul(*r1).wrapping_add(*l1);
                            *l0 = l0.wrapping_mul(*r0);
                        }
                        (l, r) => l.iter_mut().zip(r).for_each(|(l, r)| *l = l.wrapping_add(*r)),
                    }
                }
            }
        }
    }
}

/// The layout of one element's packed bytes in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shape {
    /// In a row.
    #[default]
    Dense,
    /// Blocks of `block` bytes with `gap` bytes between them.
    Vector {
        /// Bytes of a block.
        block: u64,
        /// Bytes between two.
        gap: u64,
    },
    /// The same blocks in reverse order: the first one lies last.
    Backwards {
        /// Bytes of a block.
        block: u64,
        /// Bytes between two.
        gap: u64,
    },
    /// The first `block` bytes after the others, `gap` bytes between and at the end.
    Struct {
        /// Bytes of the first field.
        block: u64,
        /// Bytes between the fields, and after the last one.
        gap: u64,
    },
}

impl Shape {
    /// The numbers of the text.
    pub const fn numbers(self) -> [u64; 3] {
        match self {
            Self::Dense => [0, 1, 0],
            Self::Vector { block, gap } => [1, block, gap],
            Self::Backwards { block, gap } => [2, block, gap],
            Self::Struct { block, gap } => [3, block, gap],
        }
    }

    /// From the numbers of the text.
    pub const fn from_numbers([kind, block, gap]: [u64; 3]) -> Option<Self> {
        Some(match kind {
            0 => Self::Dense,
            1 => Self::Vector { block, gap },
            2 => Self::Backwards { block, gap },
            3 => Self::Struct { block, gap },
            _ => return None,
        })
    }

    /// Bytes from one element of `element` packed bytes to the next one.
    pub const fn extent(self, element: u64) -> u64 {
        match self {
            Self::Dense => element,
            Self::Vector { block, gap } | Self::Backwards { block, gap } => {
                (element / block - 1) * (block + gap) + block
            }
            Self::Struct { gap, .. } => element + 2 * gap,
        }
    }

    /// The offset of packed byte `at` in an element.
    pub const fn place(self, element: u64, at: u64) -> u64 {
        match self {
            Self::Dense => at,
            Self::Vector { block, gap } => at / block * (block + gap) + at % block,
            Self::Backwards { block, gap } => (element / block - 1 - at / block) * (block + gap) + at % block,
            Self::Struct { block, gap } if at < block => element - block + gap + at,
            Self::Struct { block, .. } => at - block,
        }
    }
}

/// A buffer of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The send buffer; a broadcast's only buffer.
    Send,
    /// The receive buffer.
    Receive,
}

/// A collective call with the arguments of all ranks of its communicator. Ranks are those of the communicator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The communicator's number.
    pub comm: usize,
    /// The procedure.
    pub name: Name,
    /// The algorithm, by its name in the program `unisono`.
    pub algorithm: String,
    /// The root; 0 where there is none.
    pub root: u32,
    /// Is the send side in place: at the root of a rooted call, else on all ranks?
    pub in_place: bool,
    /// The reduction's operation.
    pub op: Op,
    /// Bytes of an element.
    pub element: u64,
    /// The order in memory of blocks with lengths of their own: see [`Call::reversed`].
    pub order: u64,
    /// Counts in elements: see the text's format; for `dup` and `split` the communicators that they make.
    pub numbers: Vec<i64>,
    /// The shapes that have holes or another order: rank, side, shape.
    pub shapes: Vec<(u32, Side, Shape)>,
}

impl Call {
    /// The layout of an element in memory, on this rank's side, in the block of `peer`.
    pub fn shape(&self, rank: u32, side: Side, peer: u32) -> Shape {
        if self.name == Name::Alltoallw && peer % 2 == 1 {
            return Shape::Dense;
        }
        let found = self.shapes.iter().find(|(r, s, _)| (*r, *s) == (rank, side));
        found.map_or(Shape::Dense, |found| found.2)
    }

    /// Do this rank's blocks, of which each has a length of its own, lie in reverse order, an element between them?
    pub const fn reversed(&self, rank: u32) -> bool {
        self.order == 1 || self.order == 2 && rank % 2 == 1
    }

    /// Elements that `from` sends to `to`, or folds for it, on a communicator of `size`.
    pub fn count(&self, size: u32, from: u32, to: u32) -> u64 {
        use Name::*;
        let at = match self.name {
            Gatherv | Allgatherv => from as usize,
            Scatterv | ReduceScatter => to as usize,
            Alltoallv | Alltoallw => from as usize * size as usize + to as usize,
            _ => 0,
        };
        self.numbers.get(at).map_or(0, |&count| count as u64)
    }

    /// The communicators that it makes.
    pub fn makes(&self) -> Vec<usize> {
        let mut made: Vec<usize> = match self.name {
            Name::Dup => self.numbers.iter().map(|&comm| comm as usize).collect(),
            Name::Split => self.numbers.chunks(2).filter(|pair| pair[0] >= 0).map(|pair| pair[0] as usize).collect(),
            _ => Vec::new(),
        };
        made.sort_unstable();
        made.dedup();
        made
    }
}

named! {
    /// A rank's action in a step.
    Verb {
        /// The blocking call.
        Run = "run",
        /// Starts the nonblocking call, or a persistent one again.
        Start = "start",
        /// Initialises the persistent call.
        Init = "init",
        /// Tests once whether the call is complete.
        Test = "test",
        /// Tests until it is.
        Poll = "poll",
        /// Waits for the call.
        Wait = "wait",
        /// Waits for all calls that are listed.
        WaitAll = "waitall",
        /// Gives back a persistent call.
        Free = "free",
        /// Sleeps for so many microseconds.
        Sleep = "sleep",
        /// Computes for so many microseconds.
        Spin = "spin",
        /// Is killed.
        Kill = "kill",
    }
}

impl Verb {
    /// Is its number that of a call?
    pub const fn calls(self) -> bool {
        !matches!(self, Self::Sleep | Self::Spin | Self::Kill)
    }
}

/// A step of one rank, or of all ranks that take part in the call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The rank of the whole program; `None`: all ranks of the call's communicator.
    pub who: Option<u32>,
    /// The action.
    pub verb: Verb,
    /// Numbers of calls, or microseconds.
    pub numbers: Vec<u64>,
}

/// Communicators are numbered below this.
pub const COMMUNICATORS: usize = 1024;

/// The parameters of a communicator's memory, where the runner can choose them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// Posted lines.
    pub lines: u32,
    /// Slots of a queue.
    pub slots: u32,
    /// Bytes of a slot.
    pub fragment: u64,
    /// The papers' queues, if any: slots, bytes of a slot, sets.
    pub papers: Option<(u32, u64, u32)>,
    /// The counts at the beginning: operations, the fragment clock, sets, central counter barriers.
    pub base: [u64; 4],
}

impl Default for Segment {
    fn default() -> Self {
        Self { lines: 64, slots: 16, fragment: 32 << 10, papers: None, base: [0; 4] }
    }
}

impl Segment {
    /// The segment's parameters, for so many ranks.
    pub const fn params(&self, ranks: u32) -> Params {
        let cico = match self.papers {
            Some((slots, fragment, sets)) => Some(Cico { slots, fragment, sets }),
            None => None,
        };
        let Self { lines, slots: queue_slots, fragment: queue_fragment, .. } = *self;
        Params { lines, queue_slots, queue_fragment, cico, ..Params::new(ranks) }
    }

    /// The counts at which its communicator begins.
    pub const fn begins(&self) -> Base {
        let [operation, clock, sets, centrals] = self.base;
        Base { operation, clock, sets, centrals }
    }
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Program {
    /// Number of ranks.
    pub ranks: u32,
    /// The seed of every byte that is sent.
    pub seed: u32,
    /// Segments of communicators, by number; the last one is also that of all further communicators.
    pub segments: Vec<Segment>,
    /// The calls, by number.
    pub calls: Vec<Call>,
    /// The steps, in order; each rank makes its own ones.
    pub steps: Vec<Step>,
}

impl Program {
    /// The ranks of the whole program in each communicator, by rank there; empty for numbers that no call makes.
    pub fn groups(&self) -> Vec<Vec<u32>> {
        let mut groups = vec![(0..self.ranks).collect::<Vec<u32>>()];
        for call in &self.calls {
            let parent = groups.get(call.comm).cloned().unwrap_or_default();
            for comm in call.makes() {
                groups.resize(groups.len().max(comm.min(COMMUNICATORS) + 1), Vec::new());
                let Some(group) = groups.get_mut(comm) else { continue };
                *group = parent.clone();
                if call.name == Name::Split {
                    let mut members: Vec<(i64, u32)> = call
                        .numbers
                        .chunks_exact(2)
                        .zip(&parent)
                        .filter(|(pair, _)| pair[0] == comm as i64)
                        .map(|(pair, &rank)| (pair[1], rank))
                        .collect();
                    members.sort_by_key(|member| member.0);
                    *group = members.into_iter().map(|member| member.1).collect();
                }
            }
        }
        groups
    }

    /// The segment of a communicator.
    pub fn segment(&self, comm: usize) -> Segment {
        self.segments.get(comm).or(self.segments.last()).copied().unwrap_or_default()
    }

    /// The steps of `rank`, by number.
    pub fn steps_of<'a>(&'a self, groups: &'a [Vec<u32>], rank: u32) -> impl Iterator<Item = (usize, &'a Step)> + 'a {
        self.steps.iter().enumerate().filter(move |(_, step)| self.is_for(groups, step, rank))
    }

    /// Does `rank` make this step?
    pub fn is_for(&self, groups: &[Vec<u32>], step: &Step, rank: u32) -> bool {
        match step.who {
            Some(who) => who == rank,
            None if !step.verb.calls() => true,
            None => {
                let call = step.numbers.first().and_then(|&call| self.calls.get(call as usize));
                call.and_then(|call| groups.get(call.comm)).is_some_and(|group| group.contains(&rank))
            }
        }
    }

    /// The calls of a step.
    pub fn calls_of<'a>(&'a self, step: &'a Step) -> impl Iterator<Item = usize> + 'a {
        let range: Range<usize> = if step.verb.calls() { 0..step.numbers.len() } else { 0..0 };
        step.numbers[range].iter().map(|&call| call as usize)
    }
}

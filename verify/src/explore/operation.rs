//! One operation: which collective, how long its data are, and its name in reports.

use unisono_kernel::Rank;
use unisono_kernel::algorithm::{BarrierAlgorithm, BcastAlgorithm, ScanAlgorithm};
use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::region::layout::LINE_PAYLOAD;

use super::blocks::Spread;
use super::exchanges::Exchange;
use super::mail::Mail;
use crate::oracle::blocks::Direction;

/// One collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A broadcast.
    Bcast {
        /// The algorithm.
        algorithm: BcastAlgorithm,
        /// The root.
        root: Rank,
        /// Bytes of the message.
        bytes: usize,
    },
    /// Paper P2's collectives.
    Spread(Spread),
    /// The collectives that exchange through lines and queues.
    Exchange(Exchange),
    /// An allreduce in place: sums of two `i64`.
    Sum,
    /// An allreduce with an operation that does not commute.
    Fold,
    /// The same by doubling.
    Doubling,
    /// The same by doubling, in place, of an operand that is longer than a line.
    LongDoubling,
    /// The same by groups, in place, of a column of so many pieces; among four ranks, of two groups of two.
    Groups(usize),
    /// The same of sums, between two buffers: where ranks lend, its operands are lent.
    SumByGroups(usize),
    /// A reduce up a tree, with an operation that does not commute.
    Tree(Rank),
    /// A scan, or an exscan, in place, with an operation that does not commute: of two words by doubling, else of so many pieces.
    Scan {
        /// The algorithm.
        algorithm: ScanAlgorithm,
        /// Is it an exscan?
        exclusive: bool,
        /// Pieces of the vector.
        pieces: usize,
    },
    /// A reduce in which the ranks share the folds.
    Shared {
        /// The root.
        root: Rank,
        /// Slots that the operand would fill: so many pieces, or some more.
        pieces: usize,
        /// How.
        by: Sharing,
    },
    /// Messages through mailboxes.
    Mail(Mail),
    /// A barrier.
    Barrier(BarrierAlgorithm),
}

/// How ranks share the folds of a reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// By slices, with an operation that does not commute.
    Slices,
    /// By slices, of sums, which the root receives in place.
    SlicesOfSums,
    /// The same by groups; among four ranks, of two groups of two.
    GroupsOfSums,
}

/// Bytes of a reduction's operand: two words.
pub(super) const OPERAND: usize = 16;
/// Bytes by which the operand of an allreduce by groups grows with each piece: in a slot, two columns of four ranks.
const GROUPS_PIECE: usize = 128;
/// Slots of the queue, unless a program has another number.
pub(super) const SLOTS: u32 = 2;
/// Bytes of a slot in the queue, and in P1's.
pub(super) const QUEUE_FRAGMENT: usize = 192;
pub(super) const CICO_FRAGMENT: usize = 8;

/// Bytes of a message of so many fragments, the last one being short.
const fn cut(fragments: usize, fragment: usize) -> usize {
    fragments * fragment - fragment / 2
}

impl Operation {
    /// A broadcast on posted lines.
    pub const fn posted(root: Rank) -> Self {
        Self::Bcast { algorithm: BcastAlgorithm::Posted, root, bytes: 12 }
    }

    /// A scan by groups, of so many pieces.
    pub const fn scan(pieces: usize) -> Self {
        Self::Scan { algorithm: ScanAlgorithm::Groups, exclusive: false, pieces }
    }

    /// An exscan by groups, of so many pieces.
    pub const fn exscan(pieces: usize) -> Self {
        Self::Scan { algorithm: ScanAlgorithm::Groups, exclusive: true, pieces }
    }

    /// A scan, or an exscan, by doubling.
    pub const fn short_scan(exclusive: bool) -> Self {
        Self::Scan { algorithm: ScanAlgorithm::Doubling, exclusive, pieces: 0 }
    }

    /// The same by groups: among four ranks, of two groups of two.
    pub const fn grouped(root: Rank) -> Self {
        Self::Bcast { algorithm: BcastAlgorithm::Groups, root, bytes: 12 }
    }

    /// A broadcast of so many fragments through the queue.
    pub const fn queue(root: Rank, fragments: usize) -> Self {
        Self::Bcast { algorithm: BcastAlgorithm::Queue, root, bytes: cut(fragments, QUEUE_FRAGMENT) }
    }

    /// Paper P1's broadcast of so many fragments.
    pub const fn cico(root: Rank, tree: Tree, fragments: usize) -> Self {
        Self::Bcast { algorithm: BcastAlgorithm::Cico(tree), root, bytes: cut(fragments, CICO_FRAGMENT) }
    }

    /// Paper P2's scatterv; the longest block that is sent has so many fragments.
    pub const fn scatterv(root: Rank, fragments: usize) -> Self {
        Self::Spread(Spread { direction: Direction::Scatter, root, bytes: cut(fragments, CICO_FRAGMENT) })
    }

    /// Paper P2's gatherv, likewise.
    pub const fn gatherv(root: Rank, fragments: usize) -> Self {
        Self::Spread(Spread { direction: Direction::Gather, root, bytes: cut(fragments, CICO_FRAGMENT) })
    }

    /// Paper P2's allgatherv, likewise.
    pub const fn allgatherv(fragments: usize) -> Self {
        Self::Spread(Spread { direction: Direction::Allgather, root: 0, bytes: cut(fragments, CICO_FRAGMENT) })
    }

    /// Algorithm, fragments where a message is cut, root: `posted:0`, `queue-3:1`, `cico-flat-2:0`, `scatterv-2:1`, `allgatherv-1`.
    pub fn name(&self) -> String {
        match *self {
            Self::Bcast { algorithm, root, bytes } => match algorithm {
                BcastAlgorithm::Auto => format!("auto:{root}"),
                BcastAlgorithm::Posted => format!("posted:{root}"),
                BcastAlgorithm::Groups => format!("groups:{root}"),
                BcastAlgorithm::Queue => format!("queue-{}:{root}", bytes.div_ceil(QUEUE_FRAGMENT)),
                BcastAlgorithm::Cico(tree) => {
                    format!("cico-{}-{}:{root}", tree_name(tree), bytes.div_ceil(CICO_FRAGMENT))
                }
            },
            Self::Exchange(exchange) => exchange.name(),
            Self::Spread(spread) => {
                let (name, fragments) = (spread.name(), spread.bytes.div_ceil(CICO_FRAGMENT));
                let root =
                    if spread.direction == Direction::Allgather { String::new() } else { format!(":{}", spread.root) };
                format!("{name}-{fragments}{root}")
            }
            Self::Mail(mail) => mail.name(),
            Self::Sum => "sum".into(),
            Self::Fold => "fold".into(),
            Self::Doubling => "doubling".into(),
            Self::LongDoubling => "long-doubling".into(),
            Self::Groups(pieces) => format!("groups-{pieces}"),
            Self::SumByGroups(pieces) => format!("sum-by-groups-{pieces}"),
            Self::Tree(root) => format!("tree:{root}"),
            Self::Scan { algorithm, exclusive, pieces } => {
                format!("{}scan-{algorithm}-{pieces}", if exclusive { "ex" } else { "" })
            }
            Self::Shared { root, pieces, by } => match by {
                Sharing::Slices => format!("slices-{pieces}:{root}"),
                Sharing::SlicesOfSums => format!("slices-of-sums-{pieces}:{root}"),
                Sharing::GroupsOfSums => format!("groups-of-sums-{pieces}:{root}"),
            },
            Self::Barrier(BarrierAlgorithm::Auto | BarrierAlgorithm::Posted) => "posted-barrier".into(),
            Self::Barrier(BarrierAlgorithm::Dissemination) => "dissemination".into(),
            Self::Barrier(BarrierAlgorithm::Doubling) => "doubling-barrier".into(),
            Self::Barrier(BarrierAlgorithm::Central) => "central".into(),
            Self::Barrier(BarrierAlgorithm::Combining(arity)) => format!("combining-{arity}"),
        }
    }

    /// Is the message cut into fragments?
    pub const fn is_cut(&self) -> bool {
        matches!(self, Self::Bcast { algorithm: BcastAlgorithm::Queue, .. }) || self.has_sets()
    }

    /// Is it a paper's algorithm, through sets of queues?
    pub const fn has_sets(&self) -> bool {
        matches!(self, Self::Bcast { algorithm: BcastAlgorithm::Cico(_), .. } | Self::Spread(_))
    }

    /// Bytes of user memory of one process for the operation.
    pub(super) fn memory(&self, ranks: u32) -> usize {
        match *self {
            Self::Spread(spread) => spread.memory(ranks),
            Self::Exchange(exchange) => exchange.memory(ranks, QUEUE_FRAGMENT),
            Self::Bcast { bytes, .. } => bytes,
            Self::Mail(mail) => mail.memory(),
            Self::Sum | Self::LongDoubling | Self::Groups(_) | Self::Scan { .. } => self.operand(),
            Self::Fold | Self::Doubling | Self::SumByGroups(_) | Self::Tree(_) | Self::Shared { .. } => {
                2 * self.operand()
            }
            Self::Barrier(_) => 0,
        }
    }

    /// Bytes of a reduction's operand.
    pub(super) const fn operand(&self) -> usize {
        match *self {
            Self::LongDoubling => LINE_PAYLOAD as usize + 8,
            Self::Groups(pieces) | Self::SumByGroups(pieces) => GROUPS_PIECE * pieces - 8,
            Self::Scan { algorithm: ScanAlgorithm::Groups, pieces, .. } => QUEUE_FRAGMENT * pieces - 8,
            Self::Shared { pieces, .. } => QUEUE_FRAGMENT * pieces - 8,
            _ => OPERAND,
        }
    }
}

fn tree_name(tree: Tree) -> String {
    match tree {
        Tree::Flat => "flat".into(),
        Tree::Chain => "chain".into(),
        Tree::BINARY => "binary".into(),
        Tree::BINOMIAL => "binomial".into(),
        Tree::Kary(k) => format!("kary-{k}"),
        Tree::Knomial(k) => format!("knomial-{k}"),
    }
}

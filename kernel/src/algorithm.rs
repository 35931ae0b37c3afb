//! The algorithms over a segment, by name, and the built-in rules that choose among them.
//!
//! The choice may use only what is the same on all ranks: bytes, number of ranks, the segment's parameters. `Auto` is
//! resolved by the communicator's decision table ([`crate::table`]), if it was made with one, else by the rules here.

use crate::collective::Collective;
use crate::pattern::tree::Tree;
use crate::region::layout::LINE_PAYLOAD;
use core::fmt;

/// Longest operand, in bytes, of an allreduce on posted lines: what fits the first 64 bytes of a line.
pub(crate) const LINE_REDUCED: u64 = 48;

/// Makes the algorithms of a collective, with `from_name` and `Display`, from one list of names. The last algorithm may
/// have a parameter: its text follows the name and a hyphen.
macro_rules! algorithms {
    ($(#[$about:meta])* $of:ident {
        $($(#[$doc:meta])* $algorithm:ident = $name:literal,)*
    } $(or {
        $(#[$with_doc:meta])* $with:ident($parameter:ty) = $prefix:literal, $read:expr
    })?) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum $of {
            $($(#[$doc])* $algorithm,)*
            $($(#[$with_doc])* $with($parameter),)?
        }

        impl $of {
            /// The algorithm of this name; `None` for unknown names.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$algorithm),)*
                    $(_ if name.starts_with($prefix) => {
                        let read: fn(&str) -> Option<$parameter> = $read;
                        read(&name[$prefix.len()..]).map(Self::$with)
                    })?
                    _ => None,
                }
            }
        }

        /// The name, as [`Self::from_name`] reads it.
        impl fmt::Display for $of {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$algorithm => f.write_str($name),)*
                    $(Self::$with(parameter) => write!(f, "{}-{parameter}", $prefix),)?
                }
            }
        }
    };
}

algorithms! {
    /// Algorithms of broadcast.
    BcastAlgorithm {
        /// Posted lines if the message fits one, by groups among thirty-two or more ranks that have a core each; else the queue.
        #[default]
        Auto = "auto",
        /// [`crate::shm::bcast::posted`].
        Posted = "posted",
        /// [`crate::shm::bcast::groups`]: on posted lines, which a rank of each group posts on.
        Groups = "groups",
        /// [`crate::shm::bcast::queue`].
        Queue = "queue",
    } or {
        /// [`crate::shm::papers::bcast`], paper P1's; ranks notify each other along this tree.
        Cico(Tree) = "cico", |text| Tree::from_name(text.strip_prefix('-')?)
    }
}

algorithms! {
    /// Algorithms of allreduce.
    AllreduceAlgorithm {
        /// Posted lines if the operand fits one; slices if it is long enough that sharing the folds pays, else exchange. Among
        /// sixteen ranks and more that have a core each doubling up to 1 KiB, among sixteen beyond a line; among more else groups.
        #[default]
        Auto = "auto",
        /// [`crate::shm::reduce::posted`].
        Posted = "posted",
        /// [`crate::shm::allreduce::doubling`], and [`long_doubling`](crate::shm::allreduce::long_doubling) beyond a line: with a
        /// partner in each round. Exchange or slices where the segment's lines have no room.
        Doubling = "doubling",
        /// [`crate::shm::reduce::exchange`]: each rank folds all operands; as `posted`, where they fit a line.
        Exchange = "exchange",
        /// [`crate::shm::allreduce::slices`]: each rank folds its share of every fragment.
        Slices = "slices",
        /// [`crate::shm::allreduce::groups`]: the same within groups of ranks, and then among groups. Exchange or slices where the
        /// ranks can't be cut into groups.
        Groups = "groups",
    }
}

algorithms! {
    /// Algorithms of reduce.
    ReduceAlgorithm {
        /// Exchange for short operands, for two ranks, and where ranks share cores; else slices. With a core each, the tree for operands
        /// that fit a line among more than eleven ranks, and groups for longer ones among more than sixteen.
        #[default]
        Auto = "auto",
        /// [`crate::shm::reduce::tree`].
        Tree = "tree",
        /// [`crate::shm::reduce::exchange`]: the root folds all operands. On posted lines, where they fit
        /// ([`crate::shm::reduce::posted`]).
        Exchange = "exchange",
        /// [`crate::shm::reduce::slices`]: each rank but the root folds its share of every fragment. Exchange where there is no other
        /// rank, or a slot has no room for an element of each share.
        Slices = "slices",
        /// [`crate::shm::reduce::groups`]: the same within groups of ranks, and then among groups. Exchange or slices where the ranks
        /// can't be cut into groups, a slot has no room, or the op does not commute.
        Groups = "groups",
    }
}

algorithms! {
    /// Algorithms of scan and exscan.
    ScanAlgorithm {
        /// Among ranks that have a core each: doubling for operands that fit a line among thirty-two or more, groups for longer ones
        /// among eight or more; else exchange.
        #[default]
        Auto = "auto",
        /// [`crate::shm::scan::doubling`]: on lines, with a partner in each round.
        Doubling = "doubling",
        /// [`crate::shm::scan::exchange`]: each rank folds the operands of all lower ones. On posted lines, where they fit
        /// ([`crate::shm::reduce::posted`]).
        Exchange = "exchange",
        /// [`crate::shm::scan::groups`]: of each group of ranks, higher ones read one fold.
        Groups = "groups",
    }
}

algorithms! {
    /// Algorithms of gather, scatter and allgather, with equal blocks or not.
    MoveAlgorithm {
        /// Of a gather or allgather among 32 or more ranks with a core each groups for blocks of 49 B to 1 KiB; else exchange.
        #[default]
        Auto = "auto",
        /// [`crate::shm::gather::exchange`], [`crate::shm::scatter`], [`crate::shm::allgather::exchange`].
        Exchange = "exchange",
        /// [`crate::shm::papers::gather`], [`crate::shm::papers::scatter`], [`crate::shm::papers::allgather`]: paper P2's.
        Cico = "cico",
        /// [`crate::shm::gather::groups`], [`crate::shm::allgather::groups`]: first within groups of ranks, then among groups. Exchange
        /// where blocks may differ in length, the ranks can't be cut into groups, or a slot has no room for a group's blocks; and of a
        /// scatter.
        Groups = "groups",
    }
}

algorithms! {
    /// Algorithms of alltoall.
    AlltoallAlgorithm {
        /// Among sixteen or more ranks with a core each groups for short blocks; else exchange.
        #[default]
        Auto = "auto",
        /// [`crate::shm::alltoall::pairwise`]: a block of each pair of ranks.
        Exchange = "exchange",
        /// [`crate::shm::alltoall::groups`]: first within groups of ranks, then among groups. Exchange where the ranks can't be cut
        /// into groups, or a slot has no room for a block of each rank.
        Groups = "groups",
    }
}

algorithms! {
    /// Algorithms of barrier.
    BarrierAlgorithm {
        /// Posted lines among three to sixteen ranks; among more that have a core each, doubling; else dissemination.
        #[default]
        Auto = "auto",
        /// [`crate::shm::barrier::posted`].
        Posted = "posted",
        /// [`crate::shm::barrier::dissemination`].
        Dissemination = "dissemination",
        /// [`crate::shm::barrier::doubling`]: with a partner in each round.
        Doubling = "doubling",
        /// [`crate::shm::barrier::central`].
        Central = "central",
    } or {
        /// [`crate::shm::barrier::combining`], with this many children per vertex; the name alone means four.
        Combining(u32) = "combining", |text| match text {
            "" => Some(4),
            _ => text.strip_prefix('-')?.parse().ok().filter(|&children| children > 0),
        }
    }
}

algorithms! {
    /// Algorithms of reduce_scatter, with equal blocks or not.
    ReduceScatterAlgorithm {
        /// Among more than sixteen ranks with a core each groups, if all blocks together are longer than a line; else exchange.
        #[default]
        Auto = "auto",
        /// [`crate::shm::reduce_scatter::exchange`]: each rank reads its block's operands from all others.
        Exchange = "exchange",
        /// [`crate::shm::reduce_scatter::groups`]: first within groups of ranks, then among groups. Exchange where the ranks can't be
        /// cut into groups, a slot has no room, or the op does not commute.
        Groups = "groups",
    }
}

impl BcastAlgorithm {
    /// The algorithm that runs for a message of `bytes` among `ranks` processes: never [`Self::Auto`]. `crowded`: they share cores.
    #[inline]
    #[must_use]
    pub const fn resolve(self, bytes: u64, ranks: u32, crowded: bool) -> Self {
        match self {
            Self::Auto if bytes <= LINE_PAYLOAD && ranks >= SPREAD && !crowded => Self::Groups,
            Self::Auto if bytes <= LINE_PAYLOAD => Self::Posted,
            Self::Auto => Self::Queue,
            other => other,
        }
    }
}

impl AllreduceAlgorithm {
    /// The algorithm that runs for operands of `bytes` of `ranks` processes: never [`Self::Auto`]. `crowded`: they share cores.
    #[inline]
    #[must_use]
    pub const fn resolve(self, bytes: u64, ranks: u32, crowded: bool) -> Self {
        match self {
            Self::Auto if bytes <= DOUBLED && ranks > LISTENED && !crowded => Self::Doubling,
            Self::Auto if bytes <= LINE_REDUCED => Self::Posted,
            Self::Auto if bytes <= DOUBLED && ranks >= RELAYED && !crowded => Self::Doubling,
            Self::Auto if ranks > LISTENED && !crowded => Self::Groups,
            Self::Auto => Self::ungrouped(bytes, ranks, crowded),
            other => other,
        }
    }

    /// The algorithm for operands that fit no line, where the ranks can't be cut into groups.
    pub(crate) const fn ungrouped(bytes: u64, ranks: u32, crowded: bool) -> Self {
        if bytes <= whole(ranks, crowded) { Self::Exchange } else { Self::Slices }
    }
}

impl ReduceAlgorithm {
    /// The algorithm that runs for operands of `bytes` of `ranks` processes: never [`Self::Auto`]. `crowded`: they share cores.
    #[inline]
    #[must_use]
    pub const fn resolve(self, bytes: u64, ranks: u32, crowded: bool) -> Self {
        match self {
            Self::Auto if crowded => Self::Exchange,
            Self::Auto if ranks > FEW && bytes <= LINE_REDUCED => Self::Tree,
            Self::Auto if ranks > LISTENED => Self::Groups,
            Self::Auto => Self::ungrouped(bytes, ranks),
            other => other,
        }
    }

    /// The algorithm among ranks that have a core each, where they can't be cut into groups.
    pub(crate) const fn ungrouped(bytes: u64, ranks: u32) -> Self {
        let alone = if ranks <= PAIR {
            u64::MAX
        } else if ranks <= FEW {
            ROOT_FOLDS[0]
        } else {
            ROOT_FOLDS[1]
        };
        if bytes <= alone { Self::Exchange } else { Self::Slices }
    }
}

impl ScanAlgorithm {
    /// The algorithm that runs for operands of `bytes` of `ranks` processes: never [`Self::Auto`]. `crowded`: they share cores.
    #[inline]
    #[must_use]
    pub const fn resolve(self, bytes: u64, ranks: u32, crowded: bool) -> Self {
        match self {
            Self::Auto if crowded => Self::Exchange,
            Self::Auto if bytes <= LINE_REDUCED && ranks >= SPREAD => Self::Doubling,
            Self::Auto if bytes > LINE_REDUCED && ranks > LISTENED => Self::Groups,
            Self::Auto if bytes > PREFIXED && ranks >= GROUPED => Self::Groups,
            Self::Auto => Self::Exchange,
            other => other,
        }
    }
}

impl AlltoallAlgorithm {
    /// The algorithm that runs for blocks of `bytes` of `ranks` processes: never [`Self::Auto`]. `crowded`: they share cores.
    #[inline]
    #[must_use]
    pub const fn resolve(self, bytes: u64, ranks: u32, crowded: bool) -> Self {
        match self {
            Self::Auto if ranks >= RELAYED && bytes <= PASSED_ON && !crowded => Self::Groups,
            Self::Auto => Self::Exchange,
            other => other,
        }
    }
}

impl ReduceScatterAlgorithm {
    /// The algorithm that runs for blocks of `bytes` together of `ranks` processes: never [`Self::Auto`]. `crowded`: they share cores.
    #[inline]
    #[must_use]
    pub fn resolve(self, bytes: impl FnOnce() -> u64, ranks: u32, crowded: bool) -> Self {
        match self {
            Self::Auto if ranks > LISTENED && !crowded && bytes() > LINE_PAYLOAD => Self::Groups,
            Self::Auto => Self::Exchange,
            other => other,
        }
    }
}

impl MoveAlgorithm {
    /// The algorithm that runs for blocks of up to `bytes` of `ranks` processes: never [`Self::Auto`]. `crowded`: they share cores.
    #[inline]
    #[must_use]
    pub fn resolve(self, collective: Collective, bytes: impl FnOnce() -> u64, ranks: u32, crowded: bool) -> Self {
        match self {
            Self::Auto | Self::Groups if !matches!(collective, Collective::Gather | Collective::Allgather) => {
                Self::Exchange
            }
            Self::Auto if ranks < COLLECTED || crowded => Self::Exchange,
            Self::Auto => match bytes() {
                bytes if bytes > LINE_REDUCED && bytes <= HANDED_ON => Self::Groups,
                _ => Self::Exchange,
            },
            other => other,
        }
    }
}

/// Fewest processes of a gather or an allgather by groups.
pub(crate) const COLLECTED: u32 = 32;
/// Up to so many bytes of a block these collectives among [`COLLECTED`] processes or more go by groups, if it is longer than
/// [`LINE_REDUCED`]: what fits the first 64 bytes of a line comes from many ranks at a time.
pub(crate) const HANDED_ON: u64 = 1 << 10;
/// Fewest processes of a short alltoall by groups, and of an allreduce by doubling whose operands fit no line.
pub(crate) const RELAYED: u32 = 16;
/// Up to so many bytes of a block an alltoall among [`RELAYED`] processes or more goes by groups.
pub(crate) const PASSED_ON: u64 = 32;
/// Up to so many bytes a scan among [`GROUPED`] to [`LISTENED`] processes folds whole operands.
pub(crate) const PREFIXED: u64 = 4 << 10;
/// Fewest processes of a long scan by groups.
pub(crate) const GROUPED: u32 = 8;
/// Fewest processes of a short scan by doubling, and of a short broadcast by groups.
pub(crate) const SPREAD: u32 = 32;
/// Up to so many bytes a reduce's root folds all operands, of few processes and of more. To share the folds the others must wait for
/// each other, who would leave early else: OSU's benchmark, which takes the mean over ranks, finds that slower at all lengths, the root
/// faster from shorter ones on (docs/results/cores.md).
pub(crate) const ROOT_FOLDS: [u64; 2] = [32 << 10, 4 << 10];

/// Up to so many bytes an allreduce folds whole operands: for a pair of ranks; for few that share cores; for few with a core each, and
/// many. Slices need one more step of all ranks, which is slow where processes share cores; without slices each rank folds p whole
/// operands, which is slow for long ones.
pub(crate) const WHOLE: [u64; 3] = [256 << 10, 16 << 10, 1 << 10];
/// Up to so many bytes an allreduce among [`RELAYED`] processes goes by doubling if it fits no line, among more in any case.
pub(crate) const DOUBLED: u64 = 1 << 10;
/// Largest numbers of processes that count as a pair and as few.
pub(crate) const PAIR: u32 = 2;
pub(crate) const FEW: u32 = 11;

#[inline]
const fn whole(ranks: u32, crowded: bool) -> u64 {
    let [pair, crowd, many] = WHOLE;
    if ranks <= PAIR {
        pair
    } else if ranks <= FEW && crowded {
        crowd
    } else {
        many
    }
}

/// Most processes of a barrier or a short reduction in which each one reads the lines of all others.
pub(crate) const LISTENED: u32 = 16;

impl BarrierAlgorithm {
    /// The algorithm that runs among `ranks` processes: never [`Self::Auto`]. `crowded`: they share cores.
    #[inline]
    pub const fn resolve(self, ranks: u32, crowded: bool) -> Self {
        match self {
            Self::Auto if ranks > 1 && ranks <= LISTENED => Self::Posted,
            Self::Auto if ranks > LISTENED && !crowded => Self::Doubling,
            Self::Auto => Self::Dissemination,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(BcastAlgorithm::from_name("cico-kary-3"), Some(BcastAlgorithm::Cico(Tree::Kary(3))));
        assert_eq!(BcastAlgorithm::from_name("cico-binary"), Some(BcastAlgorithm::Cico(Tree::BINARY)));
        for bad in ["", "cico", "cico-kary-0", "cico-knomial-1", "cico-kary-", "Posted"] {
            assert_eq!(BcastAlgorithm::from_name(bad), None, "{bad}");
        }
        assert_eq!(BarrierAlgorithm::from_name("combining-7"), Some(BarrierAlgorithm::Combining(7)));
        assert_eq!(BarrierAlgorithm::from_name("combining-0"), None);
        assert_eq!(MoveAlgorithm::from_name("cico"), Some(MoveAlgorithm::Cico));
        assert_eq!(MoveAlgorithm::from_name("auto"), Some(MoveAlgorithm::Auto));
        assert_eq!(MoveAlgorithm::from_name("posted"), None);
    }
}

//! Algorithms over a segment, by name, and the choice among them.
//!
//! The choice may use only what all ranks know alike: bytes, ranks, the segment's parameters. `Auto` is resolved by
//! the communicator's table ([`crate::table`]), if it was made with one, else here, in closed form.

use crate::collective::Collective;
use crate::pattern::tree::Tree;
use crate::region::layout::LINE_PAYLOAD;
use core::fmt;

/// Longest operand, in bytes, of an allreduce on posted lines: what fits the first 64 bytes of a line.
pub(crate) const LINE_REDUCED: u64 = 48;

/// The algorithms of a collective, each beside its name: `from_name` and `Display` are made of one list. The last one may have
/// a parameter, whose text follows the name and a hyphen.
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
            /// What a name stands for; `None` for unknown names.
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
    /// How to broadcast.
    BcastAlgorithm {
        /// Posted lines where the message fits one, else the monotone queue.
        #[default]
        Auto = "auto",
        /// [`crate::shm::bcast::posted`].
        Posted = "posted",
        /// [`crate::shm::bcast::queue`].
        Queue = "queue",
    } or {
        /// [`crate::shm::papers::bcast`], notified along this tree.
        Cico(Tree) = "cico", |text| Tree::from_name(text.strip_prefix('-')?)
    }
}

algorithms! {
    /// How to reduce to everyone.
    AllreduceAlgorithm {
        /// Posted lines where the operand fits one, slices where it is long and there are several to share
        /// the work, else exchange.
        #[default]
        Auto = "auto",
        /// [`crate::shm::allreduce::posted`].
        Posted = "posted",
        /// [`crate::shm::reduce::exchange`]: everyone folds everything.
        Exchange = "exchange",
        /// [`crate::shm::allreduce::slices`].
        Slices = "slices",
    }
}

algorithms! {
    /// How to gather, scatter or allgather, in equal blocks or not.
    MoveAlgorithm {
        /// Exchange; where the segment has the papers' queues, long scatters and allgathers go through them.
        #[default]
        Auto = "auto",
        /// [`crate::shm::gather::exchange`], [`crate::shm::scatter::pairwise`], [`crate::shm::allgather::exchange`].
        Exchange = "exchange",
        /// [`crate::shm::papers::gather`], [`crate::shm::papers::scatter`], [`crate::shm::papers::allgather`]: paper P2's.
        Cico = "cico",
    }
}

algorithms! {
    /// How to wait for all.
    BarrierAlgorithm {
        /// Posted lines among three to sixteen, else dissemination.
        #[default]
        Auto = "auto",
        /// [`crate::shm::barrier::posted`].
        Posted = "posted",
        /// [`crate::shm::barrier::dissemination`].
        Dissemination = "dissemination",
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

impl BcastAlgorithm {
    /// The algorithm that runs for a message of `bytes`: never [`Self::Auto`].
    #[inline]
    #[must_use]
    pub const fn resolve(self, bytes: u64) -> Self {
        match self {
            Self::Auto if bytes <= LINE_PAYLOAD => Self::Posted,
            Self::Auto => Self::Queue,
            other => other,
        }
    }
}

impl AllreduceAlgorithm {
    /// The algorithm that runs for operands of `bytes` of `ranks` processes: never [`Self::Auto`].
    #[inline]
    #[must_use]
    pub const fn resolve(self, bytes: u64, ranks: u32) -> Self {
        match self {
            Self::Auto if bytes <= LINE_REDUCED => Self::Posted,
            Self::Auto if bytes <= whole(ranks) => Self::Exchange,
            Self::Auto => Self::Slices,
            other => other,
        }
    }
}

/// Bytes of an operand that is not worth being cut into slices: its slices take one more turn of everybody, which is dear
/// where processes share cores; but of long operands everyone folds p whole ones.
pub(crate) const WHOLE: [u64; 3] = [5 << 10, 16 << 10, 1 << 10];
/// Numbers of processes up to which the first two of them hold.
pub(crate) const PAIR: u32 = 2;
pub(crate) const FEW: u32 = 11;

#[inline]
const fn whole(ranks: u32) -> u64 {
    let [pair, few, many] = WHOLE;
    if ranks <= PAIR {
        pair
    } else if ranks <= FEW {
        few
    } else {
        many
    }
}

impl MoveAlgorithm {
    /// What `Auto` means for blocks of `bytes` of `ranks` processes in a segment that has the papers' queues: never
    /// [`Self::Auto`]. In others it is exchange.
    #[must_use]
    pub const fn beside_papers(collective: Collective, bytes: u64, ranks: u32) -> Self {
        let (least, several) = match collective {
            Collective::Scatter => SCATTERED,
            Collective::Allgather => ALLGATHERED,
            _ => return Self::Exchange,
        };
        if bytes >= least && ranks >= several { Self::Cico } else { Self::Exchange }
    }
}

/// Bytes of a block and number of processes from which scatters and allgathers go through the papers' queues, where a segment has
/// them: where they are measured to be faster (docs/results/tuning.md).
pub(crate) const SCATTERED: (u64, u32) = (128 << 10, 3);
pub(crate) const ALLGATHERED: (u64, u32) = (32 << 10, 6);

/// Processes that each look at the lines of all others, at most.
pub(crate) const LISTENED: u32 = 16;

impl BarrierAlgorithm {
    /// What `Auto` means among so many processes.
    #[inline]
    pub const fn resolve(self, ranks: u32) -> Self {
        match self {
            Self::Auto if ranks > PAIR && ranks <= LISTENED => Self::Posted,
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

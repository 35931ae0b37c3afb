//! Algorithms over a segment, by name, and the choice among them.
//!
//! The choice may use only what all ranks know alike: bytes, ranks, the segment's parameters. `Auto` is resolved by
//! the communicator's table ([`crate::table`]), if it was made with one, else here, in closed form.

use crate::collective::Collective;
use crate::pattern::tree::Tree;
use crate::region::layout::LINE_PAYLOAD;

/// Longest operand, in bytes, of an allreduce on posted lines: what fits the first 64 bytes of a line.
pub(crate) const LINE_REDUCED: u64 = 48;

/// How to broadcast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BcastAlgorithm {
    /// Posted lines where the message fits one, else the monotone queue.
    #[default]
    Auto,
    /// [`crate::shm::bcast::posted`].
    Posted,
    /// [`crate::shm::bcast::queue`].
    Queue,
    /// [`crate::shm::bcast::cico`], notified along this tree.
    Cico(Tree),
}

/// How to reduce to everyone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AllreduceAlgorithm {
    /// Posted lines where the operand fits one, slices where it is long and there are several to share
    /// the work, else exchange.
    #[default]
    Auto,
    /// [`crate::shm::allreduce::posted`].
    Posted,
    /// [`crate::shm::reduce::exchange`]: everyone folds everything.
    Exchange,
    /// [`crate::shm::allreduce::slices`].
    Slices,
}

/// How to gather, scatter or allgather, in equal blocks or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MoveAlgorithm {
    /// Exchange; where the segment has the papers' queues, long scatters and allgathers go through them.
    #[default]
    Auto,
    /// [`crate::shm::gather::exchange`], [`crate::shm::scatter::exchange`], [`crate::shm::allgather::exchange`].
    Exchange,
    /// [`crate::shm::gather::cico`], [`crate::shm::scatter::cico`], [`crate::shm::allgather::cico`]: paper P2's.
    Cico,
}

/// How to wait for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BarrierAlgorithm {
    /// Posted lines among three to sixteen, else dissemination.
    #[default]
    Auto,
    /// [`crate::barrier::posted`].
    Posted,
    /// [`crate::barrier::dissemination`].
    Dissemination,
    /// [`crate::barrier::central`].
    Central,
    /// [`crate::barrier::combining`], with this many children per vertex.
    Combining(u32),
}

/// What a name stands for; `None` for unknown names.
impl BcastAlgorithm {
    /// Names: `auto`, `posted`, `queue`, `cico-flat`, `cico-chain`, `cico-binary`, `cico-binomial`, `cico-kary-K`, `cico-knomial-K`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "posted" => Self::Posted,
            "queue" => Self::Queue,
            _ => Self::Cico(tree(name.strip_prefix("cico-")?)?),
        })
    }

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
    /// Names: `auto`, `posted`, `exchange`, `slices`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "posted" => Self::Posted,
            "exchange" => Self::Exchange,
            "slices" => Self::Slices,
            _ => return None,
        })
    }

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
    /// Names: `auto`, `exchange`, `cico`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "exchange" => Self::Exchange,
            "cico" => Self::Cico,
            _ => return None,
        })
    }

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
/// them: where they are measured to be faster (docs/tuning.md).
pub(crate) const SCATTERED: (u64, u32) = (128 << 10, 3);
pub(crate) const ALLGATHERED: (u64, u32) = (32 << 10, 6);

impl BarrierAlgorithm {
    /// Names: `auto`, `posted`, `dissemination`, `central`, `combining` (4 children), `combining-N`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "posted" => Self::Posted,
            "dissemination" => Self::Dissemination,
            "central" => Self::Central,
            "combining" => Self::Combining(4),
            _ => Self::Combining(name.strip_prefix("combining-")?.parse().ok().filter(|&n| n > 0)?),
        })
    }

    /// What `Auto` means among so many processes.
    #[inline]
    pub const fn resolve(self, ranks: u32) -> Self {
        match self {
            Self::Auto if ranks > 2 && ranks <= 16 => Self::Posted,
            Self::Auto => Self::Dissemination,
            other => other,
        }
    }
}

fn tree(name: &str) -> Option<Tree> {
    let tree = match name {
        "flat" => Tree::Flat,
        "chain" => Tree::Chain,
        "binary" => Tree::BINARY,
        "binomial" => Tree::BINOMIAL,
        _ => match name.split_once('-')? {
            ("kary", k) => Tree::Kary(k.parse().ok()?),
            ("knomial", k) => Tree::Knomial(k.parse().ok()?),
            _ => return None,
        },
    };
    tree.check().ok()
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

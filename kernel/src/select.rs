//! Algorithms by name, the choice among them, and machines that are chosen at run time.
//!
//! The choice may use only what all ranks know alike: bytes, ranks, the segment's parameters. `Auto` is resolved by
//! the communicator's table ([`crate::table`]), if it was made with one, else here, in closed form.

use crate::Rank;
use crate::barrier;
use crate::barrier::central::Central;
use crate::barrier::combining::Combining;
use crate::barrier::dissemination::Dissemination;
use crate::comm::Member;
use crate::datatype::Data;
use crate::error::{PollError, Refusal};
use crate::machine::Machine;
use crate::op::Op;
use crate::pattern::tree::Tree;
use crate::shm::bcast::{cico::Cico, posted, posted::Posted, queue::Queue};
use crate::shm::exchange::Exchange;
use crate::shm::{allgather, allreduce, alltoall, gather, reduce, reduce_scatter, scatter};
use crate::step::Step;
use crate::table::Collective;
use crate::transport::Shared;

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
            Self::Auto if bytes <= posted::MOST => Self::Posted,
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
            Self::Auto if bytes <= allreduce::posted::MOST => Self::Posted,
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

/// One process's part of a broadcast by any algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Bcast<'a> {
    /// On posted lines.
    Posted(Posted<'a>),
    /// Through the monotone queue.
    Queue(Queue<'a>),
    /// Paper P1's.
    Cico(Cico<'a>),
}

impl<'a> Bcast<'a> {
    /// The next operation of `me`: `data` goes from `root` to everyone.
    ///
    /// # Errors
    /// `root` is no rank; the algorithm does not carry this length, or the segment has no queues for it.
    #[inline]
    pub fn new(me: &mut Member, data: Data<'a>, root: Rank, algorithm: BcastAlgorithm) -> Result<Self, Refusal> {
        Ok(match me.chooser().bcast_by(algorithm, data.len()) {
            BcastAlgorithm::Posted => Self::Posted(Posted::new(me, data, root)?),
            BcastAlgorithm::Queue | BcastAlgorithm::Auto => Self::Queue(Queue::new(me, data, root)?),
            BcastAlgorithm::Cico(tree) => Self::Cico(Cico::new(me, data, root, tree)?),
        })
    }
}

impl Bcast<'_> {
    /// The same again, as the next operation of `me`.
    #[inline]
    pub(crate) fn begin(&mut self, me: &mut Member) {
        match self {
            Self::Posted(machine) => machine.begin(me),
            Self::Queue(machine) => machine.begin(me),
            Self::Cico(machine) => machine.begin(me),
        }
    }
}

impl<X: Shared + ?Sized> Machine<X> for Bcast<'_> {
    #[inline]
    fn poll(&mut self, x: &mut X) -> Result<Step, PollError> {
        match self {
            Self::Posted(machine) => machine.poll(x),
            Self::Queue(machine) => machine.poll(x),
            Self::Cico(machine) => machine.poll(x),
        }
    }
}

/// One process's part of a barrier by any algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Barrier {
    /// On posted lines.
    Posted(barrier::posted::Posted),
    /// Dissemination.
    Dissemination(Dissemination),
    /// Central counter.
    Central(Central),
    /// Combining tree.
    Combining(Combining),
}

impl Barrier {
    /// The next operation of `me`.
    ///
    /// # Errors
    /// A combining tree of arity 0.
    #[inline]
    pub fn new(me: &mut Member, algorithm: BarrierAlgorithm) -> Result<Self, Refusal> {
        Ok(match me.chooser().barrier_by(algorithm) {
            BarrierAlgorithm::Posted => Self::Posted(barrier::posted::Posted::new(me)),
            BarrierAlgorithm::Auto | BarrierAlgorithm::Dissemination => Self::Dissemination(Dissemination::new(me)),
            BarrierAlgorithm::Central => Self::Central(Central::new(me)),
            BarrierAlgorithm::Combining(arity) => Self::Combining(Combining::new(me, arity)?),
        })
    }
}

impl Barrier {
    /// The same again, as the next operation of `me`.
    #[inline]
    pub(crate) fn begin(&mut self, me: &mut Member) {
        match self {
            Self::Posted(machine) => machine.begin(me),
            Self::Dissemination(machine) => machine.begin(me),
            Self::Central(machine) => machine.begin(me),
            Self::Combining(machine) => machine.begin(me),
        }
    }
}

impl<X: Shared + ?Sized> Machine<X> for Barrier {
    #[inline]
    fn poll(&mut self, x: &mut X) -> Result<Step, PollError> {
        match self {
            Self::Posted(machine) => machine.poll(x),
            Self::Dissemination(machine) => machine.poll(x),
            Self::Central(machine) => machine.poll(x),
            Self::Combining(machine) => machine.poll(x),
        }
    }
}

/// [`Any`], from its variants: what the machine is, its type.
macro_rules! any {
    ($($(#[$doc:meta])* $name:ident($machine:ty),)*) => {
        /// One process's part of any collective by any algorithm: for who keeps several of them.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Any<'a> {
            $($(#[$doc])* $name($machine),)*
        }

        impl<X: Shared + ?Sized> Machine<X> for Any<'_> {
            fn poll(&mut self, x: &mut X) -> Result<Step, PollError> {
                match self {
                    $(Self::$name(machine) => machine.poll(x),)*
                }
            }
        }

        impl Any<'_> {
            /// The same again, as the next operation of `me`: arguments are not checked again, nothing is moved.
            #[inline]
            pub fn begin(&mut self, me: &mut Member) {
                match self {
                    $(Self::$name(machine) => machine.begin(me),)*
                }
            }
        }

        $(impl<'a> From<$machine> for Any<'a> {
            fn from(machine: $machine) -> Self {
                Self::$name(machine)
            }
        })*
    };
}

any! {
    /// Broadcast.
    Bcast(Bcast<'a>),
    /// Barrier.
    Barrier(Barrier),
    /// Allreduce on posted lines.
    Posted(allreduce::posted::Posted<'a>),
    /// Allreduce by slices.
    Slices(Exchange<allreduce::slices::Slices<'a>>),
    /// Reduce, allreduce, scan and exscan by exchange.
    Reduce(Exchange<reduce::exchange::Reduce<'a>>),
    /// Reduce_scatter.
    ReduceScatter(Exchange<reduce_scatter::exchange::ReduceScatter<'a>>),
    /// Gather and allgather by exchange.
    Gather(Exchange<gather::exchange::Gather<'a>>),
    /// Paper P2's gather.
    GatherCico(gather::cico::Cico<'a>),
    /// Scatter by exchange.
    Scatter(Exchange<scatter::exchange::Scatter<'a>>),
    /// Paper P2's scatter.
    ScatterCico(scatter::cico::Cico<'a>),
    /// Paper P2's allgather.
    AllgatherCico(allgather::cico::Cico<'a>),
    /// Alltoall.
    Alltoall(Exchange<alltoall::exchange::Alltoall<'a>>),
}

impl<'a> Any<'a> {
    /// The next operation of `me`, an allreduce by any algorithm.
    ///
    /// # Errors
    /// Operands of two lengths, or no whole number of elements; the algorithm does not carry this length.
    pub fn allreduce(
        me: &mut Member,
        send: Data<'a>,
        receive: Data<'a>,
        op: Op,
        algorithm: AllreduceAlgorithm,
    ) -> Result<Self, Refusal> {
        Ok(match me.chooser().allreduce_by(algorithm, send.len(), op.commutative()) {
            AllreduceAlgorithm::Posted => allreduce::posted::Posted::new(me, send, receive, op)?.into(),
            AllreduceAlgorithm::Slices => allreduce::slices::Slices::new(me, send, receive, op)?.into(),
            _ => reduce::exchange::Reduce::to_all(me, send, receive, op)?.into(),
        })
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

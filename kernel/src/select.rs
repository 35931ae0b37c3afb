//! Machines that are chosen at run time, by an [algorithm](crate::algorithm) or by what its communicator's table says.

pub use crate::algorithm::{AllreduceAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm};

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
use crate::shm::bcast::{cico::Cico, posted::Posted, queue::Queue};
use crate::shm::exchange::Exchange;
use crate::shm::{allgather, allreduce, alltoall, gather, reduce, reduce_scatter, scatter};
use crate::step::Step;
use crate::transport::Shared;

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

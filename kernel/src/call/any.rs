//! One type for the machines of all calls, for code that keeps several of them or starts one many times.

use crate::comm::Member;
use crate::error::PollError;
use crate::machine::Operation;
use crate::machine::poll::Poll;
use crate::region::Region;
use crate::shm::alltoall::Alltoall;
use crate::shm::engine::exchange::Exchange;
use crate::shm::engine::pairwise::Pairwise;
use crate::shm::papers::allgather::P2Allgather;
use crate::shm::papers::bcast::P1Bcast;
use crate::shm::papers::gather::P2Gather;
use crate::shm::papers::scatter::P2Scatter;
use crate::shm::scatter::Scatter;
use crate::shm::{allgather, allreduce, alltoall, barrier, bcast, gather, reduce, reduce_scatter, scan};

/// Makes [`Any`] from a list of machines.
macro_rules! any {
    ($($(#[$doc:meta])* $name:ident($machine:ty),)*) => {
        /// A machine of any collective and any algorithm.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Any<'a> {
            $($(#[$doc])* $name($machine),)*
        }

        impl Operation for Any<'_> {
            #[inline]
            fn start(&mut self, me: &mut Member) {
                match self {
                    $(Self::$name(machine) => machine.start(me),)*
                }
            }

            fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
                match self {
                    $(Self::$name(machine) => machine.proceed(region, me),)*
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
    /// Barrier on posted lines.
    PostedBarrier(barrier::posted::Posted),
    /// Barrier by dissemination.
    Dissemination(barrier::dissemination::Dissemination),
    /// Barrier by recursive doubling.
    DoublingBarrier(barrier::doubling::Doubling),
    /// Barrier by a central counter.
    Central(barrier::central::Central),
    /// Barrier along a combining tree.
    Combining(barrier::combining::Combining),
    /// Broadcast on posted lines.
    PostedBcast(bcast::posted::Posted<'a>),
    /// Broadcast by groups on posted lines.
    GroupedBcast(bcast::groups::Grouped<'a>),
    /// Broadcast through the root's queue.
    QueueBcast(bcast::queue::Queue<'a>),
    /// Paper P1's broadcast.
    P1Bcast(P1Bcast<'a>),
    /// Allreduce, reduce, scan and exscan on posted lines.
    PostedReduce(reduce::posted::Posted<'a>),
    /// Allreduce, scan and exscan by recursive doubling on lines.
    Doubling(allreduce::doubling::Doubling<'a>),
    /// Allreduce by recursive doubling on lines, of operands that are longer than a line.
    LongDoubling(allreduce::long_doubling::Doubling<'a>),
    /// Allreduce by slices.
    Slices(Exchange<allreduce::slices::Slices<'a>>),
    /// Allreduce by groups.
    Grouped(Exchange<allreduce::groups::Grouped<'a>>),
    /// Reduce up a tree of posted lines.
    Tree(reduce::tree::Tree<'a>),
    /// Alltoall by groups.
    GroupedAlltoall(Exchange<alltoall::groups::Grouped<'a>>),
    /// Gather by groups.
    GroupedGather(Exchange<gather::groups::Grouped<'a>>),
    /// Allgather by groups.
    GroupedAllgather(Exchange<allgather::groups::Grouped<'a>>),
    /// Scan and exscan by groups.
    GroupedScan(Exchange<scan::groups::Grouped<'a>>),
    /// Reduce by groups.
    GroupedReduce(Exchange<reduce::groups::Grouped<'a>>),
    /// Reduce by slices.
    SlicedReduce(Exchange<reduce::slices::Slices<'a>>),
    /// Reduce, allreduce, scan and exscan by exchange.
    Reduce(Exchange<reduce::exchange::Reduce<'a>>),
    /// Reduce_scatter by groups.
    GroupedReduceScatter(Exchange<reduce_scatter::groups::Grouped<'a>>),
    /// Reduce_scatter by exchange.
    ReduceScatter(Exchange<reduce_scatter::exchange::ReduceScatter<'a>>),
    /// Gather and allgather on posted lines.
    PostedGather(gather::posted::Posted<'a>),
    /// Gather and allgather by exchange.
    Gather(Exchange<gather::exchange::Gather<'a>>),
    /// Paper P2's gather.
    P2Gather(P2Gather<'a>),
    /// Paper P2's scatter.
    P2Scatter(P2Scatter<'a>),
    /// Paper P2's allgather.
    P2Allgather(P2Allgather<'a>),
    /// Scatter.
    Scatter(Scatter<'a>),
    /// Alltoall of short blocks.
    Alltoall(Alltoall<'a>),
    /// Alltoall, a block for each pair of processes.
    Pairwise(Pairwise<'a>),
}

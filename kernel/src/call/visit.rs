//! From a call to its machine: the algorithm is chosen once, and a visitor gets the machine with its own type.
//!
//! This is the one place that knows which machine runs which call. The visitor decides what to do with it: the
//! blocking call runs it at once, so that a small message's machine lives in registers; [`Call::build`] keeps it.
//!
//! The arms of the match below have no guards that look into the call by reference: with two of them the compiler no longer saw which
//! call a function makes, and put all machines into each function of the C library.

use super::Call;
use super::any::Any;
use crate::Rank;
use crate::algorithm::{
    AllreduceAlgorithm, AlltoallAlgorithm, BarrierAlgorithm, BcastAlgorithm, LINE_REDUCED, MoveAlgorithm,
    ReduceAlgorithm, ReduceScatterAlgorithm, ScanAlgorithm,
};
use crate::collective::Collective;
use crate::comm::Member;
use crate::data::blocks::{Blocks, longest};
use crate::data::datatype::Data;
use crate::error::Refusal;
use crate::machine::Operation;
use crate::op::Op;
use crate::shm::allreduce::groups::Grouped;
use crate::shm::allreduce::long_doubling;
use crate::shm::allreduce::slices::Slices;
use crate::shm::barrier::{central::Central, combining::Combining, dissemination::Dissemination, doubling, posted};
use crate::shm::engine::line_blocks::Lengths;
use crate::shm::gather::exchange::Gather;
use crate::shm::papers::allgather::P2Allgather;
use crate::shm::papers::bcast::P1Bcast;
use crate::shm::papers::gather::P2Gather;
use crate::shm::papers::scatter::P2Scatter;
use crate::shm::reduce::exchange::Reduce;
use crate::shm::reduce::tree::Tree;
use crate::shm::reduce_scatter::exchange::ReduceScatter;
use crate::shm::{allgather, allreduce, alltoall, bcast, gather, reduce, reduce_scatter, scan, scatter};
use crate::table::Choice;

/// What to do with a call's machine, of whichever type.
pub trait Visit<'buf> {
    /// What [`Self::visit`] returns.
    type Output;

    /// The calling process's state on the communicator, which decides which algorithm runs.
    fn member(&self) -> &Member;

    /// `ran` is the chosen algorithm, and `operation` its machine, not started, or the refusal of an argument.
    fn visit<O: Operation + Into<Any<'buf>>>(self, ran: Choice, operation: Result<O, Refusal>) -> Self::Output;
}

/// Does an alltoall go by groups?
#[inline(always)]
fn by_groups(me: &Member, receive: &Blocks<'_>, algorithm: AlltoallAlgorithm) -> bool {
    me.chooser().alltoall_by(algorithm, receive.most()) == AlltoallAlgorithm::Groups
        && alltoall::groups::Grouped::applies(me, receive.most())
}

/// The machine of an alltoall by groups. Apart from the others: beside them in one function it would make pairwise ones slower.
#[cold]
#[inline(never)]
fn grouped_alltoall<'buf, V: Visit<'buf>>(visitor: V, send: Option<Blocks<'buf>>, receive: Blocks<'buf>) -> V::Output {
    let operation = alltoall::groups::Grouped::new(visitor.member(), send, receive);
    visitor.visit(Choice::Alltoall(AlltoallAlgorithm::Groups), operation)
}

/// The machine of a gather by groups, or by exchange where that does not apply.
#[cold]
#[inline(never)]
fn grouped_gather<'buf, V: Visit<'buf>>(
    visitor: V,
    send: Option<Data<'buf>>,
    receive: Option<Blocks<'buf>>,
    root: Rank,
) -> V::Output {
    let me = visitor.member();
    if !gather::groups::Grouped::applies(me, longest(send.as_ref(), receive.as_ref())) {
        let operation = Gather::equal(me, send, receive, root);
        return visitor.visit(Choice::Move(MoveAlgorithm::Exchange), operation);
    }
    let operation = gather::groups::Grouped::new(me, send, receive, root);
    visitor.visit(Choice::Move(MoveAlgorithm::Groups), operation)
}

/// The machine of a reduce_scatter by groups.
#[cold]
#[inline(never)]
fn grouped_reduce_scatter<'buf, V: Visit<'buf>>(
    visitor: V,
    send: Blocks<'buf>,
    receive: Data<'buf>,
    op: Op,
) -> V::Output {
    let operation = reduce_scatter::groups::Grouped::new(visitor.member(), send, receive, op);
    visitor.visit(Choice::ReduceScatter(ReduceScatterAlgorithm::Groups), operation)
}

impl<'buf> Call<'buf> {
    /// Chooses the algorithm, builds its machine, and gives both to the visitor.
    #[inline(always)]
    pub fn visit<V: Visit<'buf>>(&self, visitor: V) -> V::Output {
        let me = visitor.member();
        let choose = me.chooser();
        /// One algorithm, and the machine that runs it.
        macro_rules! by {
            ($ran:expr, $operation:expr) => {{
                let operation = $operation;
                visitor.visit($ran, operation)
            }};
        }
        match *self {
            Self::Barrier { algorithm } => match choose.barrier_by(algorithm) {
                it @ BarrierAlgorithm::Posted => by!(Choice::Barrier(it), Ok(posted::Posted::default())),
                it @ (BarrierAlgorithm::Auto | BarrierAlgorithm::Dissemination) => {
                    by!(Choice::Barrier(it), Ok(Dissemination::default()))
                }
                it @ BarrierAlgorithm::Doubling => by!(Choice::Barrier(it), doubling::Doubling::new(me)),
                it @ BarrierAlgorithm::Central => by!(Choice::Barrier(it), Ok(Central::default())),
                it @ BarrierAlgorithm::Combining(arity) => by!(Choice::Barrier(it), Combining::new(me, arity)),
            },
            Self::Bcast { data, root, algorithm } => match choose.bcast_by(algorithm, data.len()) {
                it @ BcastAlgorithm::Posted => by!(Choice::Bcast(it), bcast::posted::Posted::new(me, data, root)),
                it @ BcastAlgorithm::Groups => by!(Choice::Bcast(it), bcast::groups::Grouped::new(me, data, root)),
                it @ (BcastAlgorithm::Auto | BcastAlgorithm::Queue) => {
                    by!(Choice::Bcast(it), bcast::queue::Queue::new(me, data, root))
                }
                it @ BcastAlgorithm::Cico(tree) => {
                    by!(Choice::Bcast(it), P1Bcast::new(me, data, root, tree))
                }
            },
            Self::Gather { send, receive, root, algorithm } => {
                match choose.move_by(algorithm, Collective::Gather, || longest(send.as_ref(), receive.as_ref())) {
                    it @ MoveAlgorithm::Cico => {
                        by!(Choice::Move(it), P2Gather::new(me, send, receive, root))
                    }
                    MoveAlgorithm::Groups => grouped_gather(visitor, send, receive, root),
                    it if longest(send.as_ref(), receive.as_ref()) <= gather::posted::MOST => {
                        by!(Choice::Move(it), gather::posted::Posted::gather(me, send, receive, root))
                    }
                    it => by!(Choice::Move(it), Gather::equal(me, send, receive, root)),
                }
            }
            Self::Gatherv { send, receive, root, algorithm } => {
                match choose.move_by(algorithm, Collective::Gatherv, || 0) {
                    it @ MoveAlgorithm::Cico => {
                        by!(Choice::Move(it), P2Gather::new(me, send, receive, root))
                    }
                    it if gather::posted::all_fit(me, send.as_ref(), receive.as_ref(), root) => {
                        by!(Choice::Move(it), gather::posted::Posted::gatherv(me, send, receive, root))
                    }
                    it => by!(Choice::Move(it), Gather::vary(me, send, receive, root)),
                }
            }
            Self::Scatter { send, receive, root, algorithm } => {
                match choose.move_by(algorithm, Collective::Scatter, || longest(receive.as_ref(), send.as_ref())) {
                    it @ MoveAlgorithm::Cico => {
                        by!(Choice::Move(it), P2Scatter::new(me, send, receive, root))
                    }
                    it => match Lengths::equal(me, longest(receive.as_ref(), send.as_ref())) {
                        Some(lengths) => {
                            by!(Choice::Move(it), scatter::on_lines(me, send, receive, root, lengths))
                        }
                        None => by!(Choice::Move(it), scatter::pairwise::scatter(me, send, receive, root)),
                    },
                }
            }
            Self::Scatterv { send, receive, root, algorithm } => {
                match choose.move_by(algorithm, Collective::Scatterv, || 0) {
                    it @ MoveAlgorithm::Cico => {
                        by!(Choice::Move(it), P2Scatter::new(me, send, receive, root))
                    }
                    it => match scatter::lengths(me, send.as_ref(), receive.as_ref(), root) {
                        Some(lengths) => {
                            by!(Choice::Move(it), scatter::on_lines(me, send, receive, root, lengths))
                        }
                        None => by!(Choice::Move(it), scatter::pairwise::scatterv(me, send, receive, root)),
                    },
                }
            }
            Self::Allgather { send, receive, algorithm } => {
                match choose.move_by(algorithm, Collective::Allgather, || receive.most()) {
                    it @ MoveAlgorithm::Cico => {
                        by!(Choice::Move(it), P2Allgather::new(me, send, receive))
                    }
                    it @ MoveAlgorithm::Groups if allgather::groups::Grouped::applies(me, &receive) => {
                        by!(Choice::Move(it), allgather::groups::Grouped::new(me, send, receive))
                    }
                    _ if receive.most() <= gather::posted::MOST => {
                        by!(Choice::Move(MoveAlgorithm::Exchange), gather::posted::Posted::allgather(me, send, receive))
                    }
                    _ => by!(Choice::Move(MoveAlgorithm::Exchange), allgather::exchange::allgather(me, send, receive)),
                }
            }
            Self::Allreduce { send, receive, op, algorithm } => {
                let it = match choose.allreduce_by(algorithm, send.len(), op.commutative()) {
                    AllreduceAlgorithm::Groups if !Grouped::applies(me, &op) => {
                        AllreduceAlgorithm::ungrouped(send.len(), me.size(), me.layout().params().crowded)
                    }
                    AllreduceAlgorithm::Doubling if !long_doubling::Doubling::applies(me, send.len()) => {
                        AllreduceAlgorithm::ungrouped(send.len(), me.size(), me.layout().params().crowded)
                    }
                    it => it,
                };
                match it {
                    it @ AllreduceAlgorithm::Posted => {
                        by!(Choice::Allreduce(it), reduce::posted::Posted::to_all(me, send, receive, op))
                    }
                    it @ AllreduceAlgorithm::Doubling if send.len() <= LINE_REDUCED => {
                        by!(Choice::Allreduce(it), allreduce::doubling::Doubling::new(me, send, receive, op))
                    }
                    it @ AllreduceAlgorithm::Doubling => {
                        by!(Choice::Allreduce(it), long_doubling::Doubling::new(me, send, receive, op))
                    }
                    it @ AllreduceAlgorithm::Slices => by!(Choice::Allreduce(it), Slices::new(me, send, receive, op)),
                    it @ AllreduceAlgorithm::Groups => by!(Choice::Allreduce(it), Grouped::new(me, send, receive, op)),
                    it if send.len() <= reduce::posted::MOST => {
                        by!(Choice::Allreduce(it), reduce::posted::Posted::to_all(me, send, receive, op))
                    }
                    it => by!(Choice::Allreduce(it), Reduce::to_all(me, send, receive, op)),
                }
            }
            Self::Alltoall { send, receive, algorithm } if by_groups(me, &receive, algorithm) => {
                grouped_alltoall(visitor, send, receive)
            }
            Self::Alltoall { send, receive, .. } => match Lengths::equal(me, receive.most()) {
                Some(lengths) => {
                    by!(Choice::Alltoall(AlltoallAlgorithm::Exchange), alltoall::on_lines(me, send, receive, lengths))
                }
                None => {
                    by!(Choice::Alltoall(AlltoallAlgorithm::Exchange), alltoall::pairwise::alltoall(me, send, receive))
                }
            },
            Self::Alltoallv { send, receive } => match alltoall::lengths(me, send.as_ref(), receive.most()) {
                Some(lengths) => by!(Choice::Exchange, alltoall::on_lines(me, send, receive, lengths)),
                None => by!(Choice::Exchange, alltoall::pairwise::alltoallv(me, send, receive)),
            },
            Self::Reduce { send, receive, op, root, algorithm } => {
                let it = match choose.reduce_by(algorithm, send.len(), op.commutative()) {
                    ReduceAlgorithm::Groups if !reduce::groups::Grouped::applies(me, &op) => {
                        ReduceAlgorithm::ungrouped(send.len(), me.size())
                    }
                    it => it,
                };
                let it = match it {
                    ReduceAlgorithm::Slices if !reduce::slices::Slices::applies(me, &op) => ReduceAlgorithm::Exchange,
                    it => it,
                };
                match it {
                    it @ ReduceAlgorithm::Groups => {
                        by!(Choice::Reduce(it), reduce::groups::Grouped::new(me, send, receive, op, root))
                    }
                    it @ ReduceAlgorithm::Slices => {
                        by!(Choice::Reduce(it), reduce::slices::Slices::new(me, send, receive, op, root))
                    }
                    it @ ReduceAlgorithm::Exchange if send.len() <= reduce::posted::MOST => {
                        by!(Choice::Reduce(it), reduce::posted::Posted::to_root(me, send, receive, op, root))
                    }
                    it @ ReduceAlgorithm::Tree => by!(Choice::Reduce(it), Tree::new(me, send, receive, op, root)),
                    it => by!(Choice::Reduce(it), Reduce::to_root(me, send, receive, op, root)),
                }
            }
            Self::ReduceScatter { send, receive, op, algorithm } => {
                // A length that is compared, whatever the others are.
                let bytes = || send.most().saturating_mul(send.ranks().into());
                match choose.reduce_scatter_by(algorithm, bytes, op.commutative()) {
                    ReduceScatterAlgorithm::Groups if reduce_scatter::groups::Grouped::applies(me, &op) => {
                        grouped_reduce_scatter(visitor, send, receive, op)
                    }
                    _ => by!(
                        Choice::ReduceScatter(ReduceScatterAlgorithm::Exchange),
                        ReduceScatter::new(me, send, receive, op)
                    ),
                }
            }
            Self::Scan { send, receive, op, algorithm } => {
                match choose.scan_by(algorithm, false, send.len(), op.commutative()) {
                    it @ ScanAlgorithm::Doubling => by!(Choice::Scan(it), scan::doubling::scan(me, send, receive, op)),
                    it @ ScanAlgorithm::Groups => by!(Choice::Scan(it), scan::groups::scan(me, send, receive, op)),
                    it if send.len() <= reduce::posted::MOST => {
                        by!(Choice::Scan(it), reduce::posted::Posted::scan(me, send, receive, op))
                    }
                    it => by!(Choice::Scan(it), scan::exchange::scan(me, send, receive, op)),
                }
            }
            Self::Exscan { send, receive, op, algorithm } => {
                match choose.scan_by(algorithm, true, send.len(), op.commutative()) {
                    it @ ScanAlgorithm::Doubling => {
                        by!(Choice::Scan(it), scan::doubling::exscan(me, send, receive, op))
                    }
                    it @ ScanAlgorithm::Groups => by!(Choice::Scan(it), scan::groups::exscan(me, send, receive, op)),
                    it if send.len() <= reduce::posted::MOST => {
                        by!(Choice::Scan(it), reduce::posted::Posted::exscan(me, send, receive, op))
                    }
                    it => by!(Choice::Scan(it), scan::exchange::exscan(me, send, receive, op)),
                }
            }
        }
    }

    /// Its machine for `me`, not started. A refusal is not told to other ranks.
    ///
    /// # Errors
    /// An argument is refused.
    pub fn build(&self, me: &Member) -> Result<Any<'buf>, Refusal> {
        self.visit(Build(me))
    }
}

/// Keeps the machine.
struct Build<'m>(&'m Member);

impl<'buf> Visit<'buf> for Build<'_> {
    type Output = Result<Any<'buf>, Refusal>;

    #[inline(always)]
    fn member(&self) -> &Member {
        self.0
    }

    #[inline(always)]
    fn visit<O: Operation + Into<Any<'buf>>>(self, _: Choice, operation: Result<O, Refusal>) -> Self::Output {
        operation.map(Into::into)
    }
}

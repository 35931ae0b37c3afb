//! The rules that hold where a table says nothing. Over a segment they are what [`crate::select`] resolves `Auto` to
//! in closed form, which costs a call nothing; a test compares the two.

use super::{Collective, Plan, Rule, Span};
use crate::msg::{
    Algorithm, allgather, allreduce, alltoall, barrier, bcast, gather, reduce, reduce_scatter, scan, scatter,
};
use crate::select::{AllreduceAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm, WHOLE};
use crate::shm::allreduce::posted::MOST as LINE_REDUCED;
use crate::shm::bcast::posted::MOST as LINE_SENT;
use Collective as C;

const fn shm(collective: C, plan: Plan) -> Rule {
    Rule::all(collective, plan)
}

const fn msg(collective: C, algorithm: Algorithm) -> Rule {
    Rule::all(collective, Plan::Messages(algorithm))
}

const fn bytes(rule: Rule, least: u64, most: u64) -> Rule {
    Rule { bytes: Span::new(least, most), ..rule }
}

const fn ranks(rule: Rule, least: u32, most: u32) -> Rule {
    Rule { ranks: Span::new(least, most), ..rule }
}

const POSTED: Plan = Plan::Allreduce(AllreduceAlgorithm::Posted);
const WHOLES: Plan = Plan::Allreduce(AllreduceAlgorithm::Exchange);
const SLICES: Plan = Plan::Allreduce(AllreduceAlgorithm::Slices);
const DISSEMINATION: Plan = Plan::Barrier(BarrierAlgorithm::Dissemination);
const MOVE: Plan = Plan::Move(MoveAlgorithm::Exchange);

/// Bytes from which a message is worth being cut: what is sent once less counts more than another start-up. Of the
/// simulator's network of a cluster of today (docs/tuning.md).
const LONG: u64 = 32 << 10;

/// For every call at least one rule, whose algorithm applies. They do not overlap.
pub const BUILT_IN: &[Rule] = &[
    ranks(shm(C::Barrier, DISSEMINATION), 1, 2),
    ranks(shm(C::Barrier, Plan::Barrier(BarrierAlgorithm::Posted)), 3, 16),
    ranks(shm(C::Barrier, DISSEMINATION), 17, u32::MAX),
    bytes(shm(C::Bcast, Plan::Bcast(BcastAlgorithm::Posted)), 0, LINE_SENT),
    bytes(shm(C::Bcast, Plan::Bcast(BcastAlgorithm::Queue)), LINE_SENT + 1, u64::MAX),
    bytes(shm(C::Allreduce, POSTED), 0, LINE_REDUCED),
    ranks(bytes(shm(C::Allreduce, WHOLES), LINE_REDUCED + 1, u64::MAX), 1, 2),
    ranks(bytes(shm(C::Allreduce, WHOLES), LINE_REDUCED + 1, WHOLE), 3, u32::MAX),
    ranks(bytes(shm(C::Allreduce, SLICES), WHOLE + 1, u64::MAX), 3, u32::MAX),
    shm(C::Gather, MOVE),
    shm(C::Gatherv, MOVE),
    shm(C::Scatter, MOVE),
    shm(C::Scatterv, MOVE),
    shm(C::Allgather, MOVE),
    shm(C::Alltoall, Plan::Exchange),
    shm(C::Alltoallv, Plan::Exchange),
    shm(C::Reduce, Plan::Exchange),
    shm(C::ReduceScatter, Plan::Exchange),
    shm(C::Scan, Plan::Exchange),
    shm(C::Exscan, Plan::Exchange),
    msg(C::Barrier, Algorithm::Barrier(barrier::Algorithm::Dissemination)),
    bytes(msg(C::Bcast, Algorithm::Bcast(bcast::Algorithm::Knomial(2))), 0, LONG - 1),
    bytes(msg(C::Bcast, Algorithm::Bcast(bcast::Algorithm::ScatterAllgather)), LONG, u64::MAX),
    msg(C::Gather, Algorithm::Gather(gather::Algorithm::Binomial)),
    msg(C::Gatherv, Algorithm::Gather(gather::Algorithm::Linear)),
    msg(C::Scatter, Algorithm::Scatter(scatter::Algorithm::Binomial)),
    msg(C::Scatterv, Algorithm::Scatter(scatter::Algorithm::Linear)),
    bytes(msg(C::Allgather, Algorithm::Allgather(allgather::Algorithm::Bruck)), 0, LONG - 1),
    bytes(msg(C::Allgather, Algorithm::Allgather(allgather::Algorithm::Ring)), LONG, u64::MAX),
    bytes(msg(C::Alltoall, Algorithm::Alltoall(alltoall::Algorithm::Bruck)), 0, 255),
    bytes(msg(C::Alltoall, Algorithm::Alltoall(alltoall::Algorithm::Pairwise)), 256, u64::MAX),
    msg(C::Alltoallv, Algorithm::Alltoall(alltoall::Algorithm::Pairwise)),
    bytes(msg(C::Reduce, Algorithm::Reduce(reduce::Algorithm::Knomial(2))), 0, LONG - 1),
    bytes(msg(C::Reduce, Algorithm::Reduce(reduce::Algorithm::ScatterGather)), LONG, u64::MAX),
    bytes(msg(C::Allreduce, Algorithm::Allreduce(allreduce::Algorithm::Doubling)), 0, LONG - 1),
    bytes(msg(C::Allreduce, Algorithm::Allreduce(allreduce::Algorithm::Rabenseifner)), LONG, u64::MAX),
    msg(C::ReduceScatter, Algorithm::ReduceScatter(reduce_scatter::Algorithm::Pairwise)),
    msg(C::Scan, Algorithm::Scan(scan::Algorithm::Doubling)),
    msg(C::Exscan, Algorithm::Scan(scan::Algorithm::Doubling)),
];

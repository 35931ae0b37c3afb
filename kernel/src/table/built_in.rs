//! The rules for calls that no rule of a table matches. Over a segment [`crate::algorithm`] has the same rules as code,
//! which costs a call nothing; a test compares the two.

use super::{Choice, Collective, Rule, Span};
use crate::algorithm::{
    AllreduceAlgorithm, AlltoallAlgorithm, BarrierAlgorithm, BcastAlgorithm, COLLECTED, DOUBLED, FEW, GROUPED,
    HANDED_ON, LINE_REDUCED, LISTENED, MoveAlgorithm, PAIR, PASSED_ON, PREFIXED, RELAYED, ROOT_FOLDS, ReduceAlgorithm,
    ReduceScatterAlgorithm, SPREAD, ScanAlgorithm, WHOLE,
};
use crate::msg::{
    Algorithm, allgather, allreduce, alltoall, barrier, bcast, gather, reduce, reduce_scatter, scan, scatter,
};
use crate::region::layout::LINE_PAYLOAD as LINE_SENT;
use Collective as C;

const fn shm(collective: C, plan: Choice) -> Rule {
    Rule::all(collective, plan)
}

const fn bytes(rule: Rule, least: u64, most: u64) -> Rule {
    Rule { bytes: Span::new(least, most), ..rule }
}

const fn ranks(rule: Rule, least: u32, most: u32) -> Rule {
    Rule { ranks: Span::new(least, most), ..rule }
}

/// A rule for processes that have a core each, for ranges of lengths and of numbers of processes, both ends included.
const fn uncrowded(collective: C, plan: Choice, lengths: (u64, u64), processes: (u32, u32)) -> Rule {
    let rule = ranks(bytes(shm(collective, plan), lengths.0, lengths.1), processes.0, processes.1);
    Rule { crowded: Some(false), ..rule }
}

/// A rule over messages, for ranges of lengths and of numbers of processes, both ends included.
const fn msg(collective: C, algorithm: Algorithm, lengths: (u64, u64), processes: (u32, u32)) -> Rule {
    let rule = Rule::all(collective, Choice::Messages(algorithm));
    ranks(bytes(rule, lengths.0, lengths.1), processes.0, processes.1)
}

const fn bcast(algorithm: bcast::Algorithm, lengths: (u64, u64), processes: (u32, u32)) -> Rule {
    msg(C::Bcast, Algorithm::Bcast(algorithm), lengths, processes)
}

const fn reduce(algorithm: reduce::Algorithm, lengths: (u64, u64), processes: (u32, u32)) -> Rule {
    msg(C::Reduce, Algorithm::Reduce(algorithm), lengths, processes)
}

const fn gather(algorithm: gather::Algorithm, lengths: (u64, u64), processes: (u32, u32)) -> Rule {
    msg(C::Gather, Algorithm::Gather(algorithm), lengths, processes)
}

const fn scatter(algorithm: scatter::Algorithm, lengths: (u64, u64), processes: (u32, u32)) -> Rule {
    msg(C::Scatter, Algorithm::Scatter(algorithm), lengths, processes)
}

const fn allgather(algorithm: allgather::Algorithm, lengths: (u64, u64), processes: (u32, u32)) -> Rule {
    msg(C::Allgather, Algorithm::Allgather(algorithm), lengths, processes)
}

const fn alltoall(algorithm: alltoall::Algorithm, lengths: (u64, u64), processes: (u32, u32)) -> Rule {
    msg(C::Alltoall, Algorithm::Alltoall(algorithm), lengths, processes)
}

const fn scan(collective: C, algorithm: scan::Algorithm, lengths: (u64, u64), processes: (u32, u32)) -> Rule {
    msg(collective, Algorithm::Scan(algorithm), lengths, processes)
}

const ONE_LINE: Choice = Choice::Bcast(BcastAlgorithm::Posted);
const POSTED: Choice = Choice::Allreduce(AllreduceAlgorithm::Posted);
const DOUBLING: Choice = Choice::Allreduce(AllreduceAlgorithm::Doubling);
const TREE: Choice = Choice::Reduce(ReduceAlgorithm::Tree);
const FOLDED: Choice = Choice::Reduce(ReduceAlgorithm::Exchange);
const SLICED: Choice = Choice::Reduce(ReduceAlgorithm::Slices);
const SHARED: Choice = Choice::Reduce(ReduceAlgorithm::Groups);
const WHOLES: Choice = Choice::Allreduce(AllreduceAlgorithm::Exchange);
const SLICES: Choice = Choice::Allreduce(AllreduceAlgorithm::Slices);
const GROUPS: Choice = Choice::Allreduce(AllreduceAlgorithm::Groups);
const DISSEMINATION: Choice = Choice::Barrier(BarrierAlgorithm::Dissemination);
const BARRIER_DOUBLING: Choice = Choice::Barrier(BarrierAlgorithm::Doubling);
const EACH_PAIR: Choice = Choice::Alltoall(AlltoallAlgorithm::Exchange);
const PASSED: Choice = Choice::Alltoall(AlltoallAlgorithm::Groups);
const SCAN_DOUBLING: Choice = Choice::Scan(ScanAlgorithm::Doubling);
const EACH_BELOW: Choice = Choice::Scan(ScanAlgorithm::Exchange);
const PREFIXES: Choice = Choice::Scan(ScanAlgorithm::Groups);
const EACH_BLOCK: Choice = Choice::ReduceScatter(ReduceScatterAlgorithm::Exchange);
const BLOCKS: Choice = Choice::ReduceScatter(ReduceScatterAlgorithm::Groups);
const MOVE: Choice = Choice::Move(MoveAlgorithm::Exchange);
const ROWS: Choice = Choice::Move(MoveAlgorithm::Groups);

/// Any length, any number of processes.
const ANY: (u64, u64) = (0, u64::MAX);
const ALL: (u32, u32) = (1, u32::MAX);

// Over messages the bounds come from the simulator, with the network of a present-day cluster. Each is the geometric
// mean of two points of `unisono tune --messages --check` (docs/howto/tuning.md): 8 KiB of 4 and 16, 11 processes of 8
// and 16.
const SHORT: u64 = 8 << 10;
const LONG: u64 = 32 << 10;
const LONGER: u64 = 128 << 10;
const LONGEST: u64 = 512 << 10;
/// Bytes of a segment down a chain.
const SEGMENT: u64 = 8192;

/// For every call one rule, whose algorithm applies. None is for the papers' queues: ours are as fast or faster
/// (docs/results/tuning.md).
pub const BUILT_IN: &[Rule] = &[
    ranks(shm(C::Barrier, DISSEMINATION), 1, 1),
    ranks(shm(C::Barrier, Choice::Barrier(BarrierAlgorithm::Posted)), 2, LISTENED),
    Rule { crowded: Some(false), ..ranks(shm(C::Barrier, BARRIER_DOUBLING), LISTENED + 1, u32::MAX) },
    Rule { crowded: Some(true), ..ranks(shm(C::Barrier, DISSEMINATION), LISTENED + 1, u32::MAX) },
    ranks(bytes(shm(C::Bcast, ONE_LINE), 0, LINE_SENT), 1, SPREAD - 1),
    Rule { crowded: Some(true), ..ranks(bytes(shm(C::Bcast, ONE_LINE), 0, LINE_SENT), SPREAD, u32::MAX) },
    uncrowded(C::Bcast, Choice::Bcast(BcastAlgorithm::Groups), (0, LINE_SENT), (SPREAD, u32::MAX)),
    bytes(shm(C::Bcast, Choice::Bcast(BcastAlgorithm::Queue)), LINE_SENT + 1, u64::MAX),
    ranks(bytes(shm(C::Allreduce, POSTED), 0, LINE_REDUCED), 1, LISTENED),
    Rule { crowded: Some(false), ..ranks(bytes(shm(C::Allreduce, DOUBLING), 0, DOUBLED), LISTENED + 1, u32::MAX) },
    Rule { crowded: Some(true), ..ranks(bytes(shm(C::Allreduce, POSTED), 0, LINE_REDUCED), LISTENED + 1, u32::MAX) },
    ranks(bytes(shm(C::Allreduce, WHOLES), LINE_REDUCED + 1, WHOLE[0]), 1, PAIR),
    ranks(bytes(shm(C::Allreduce, SLICES), WHOLE[0] + 1, u64::MAX), 1, PAIR),
    Rule { crowded: Some(true), ..ranks(bytes(shm(C::Allreduce, WHOLES), LINE_REDUCED + 1, WHOLE[1]), PAIR + 1, FEW) },
    Rule { crowded: Some(true), ..ranks(bytes(shm(C::Allreduce, SLICES), WHOLE[1] + 1, u64::MAX), PAIR + 1, FEW) },
    uncrowded(C::Allreduce, WHOLES, (LINE_REDUCED + 1, WHOLE[2]), (PAIR + 1, FEW)),
    uncrowded(C::Allreduce, SLICES, (WHOLE[2] + 1, u64::MAX), (PAIR + 1, FEW)),
    ranks(bytes(shm(C::Allreduce, WHOLES), LINE_REDUCED + 1, WHOLE[2]), FEW + 1, RELAYED - 1),
    uncrowded(C::Allreduce, DOUBLING, (LINE_REDUCED + 1, DOUBLED), (RELAYED, LISTENED)),
    Rule {
        crowded: Some(true),
        ..ranks(bytes(shm(C::Allreduce, WHOLES), LINE_REDUCED + 1, WHOLE[2]), RELAYED, LISTENED)
    },
    ranks(bytes(shm(C::Allreduce, SLICES), WHOLE[2] + 1, u64::MAX), FEW + 1, LISTENED),
    Rule {
        crowded: Some(false),
        ..ranks(bytes(shm(C::Allreduce, GROUPS), DOUBLED + 1, u64::MAX), LISTENED + 1, u32::MAX)
    },
    Rule {
        crowded: Some(true),
        ..ranks(bytes(shm(C::Allreduce, WHOLES), LINE_REDUCED + 1, WHOLE[2]), LISTENED + 1, u32::MAX)
    },
    Rule {
        crowded: Some(true),
        ..ranks(bytes(shm(C::Allreduce, SLICES), WHOLE[2] + 1, u64::MAX), LISTENED + 1, u32::MAX)
    },
    ranks(shm(C::Gather, MOVE), 1, COLLECTED - 1),
    Rule { crowded: Some(true), ..ranks(shm(C::Gather, MOVE), COLLECTED, u32::MAX) },
    uncrowded(C::Gather, MOVE, (0, LINE_REDUCED), (COLLECTED, u32::MAX)),
    uncrowded(C::Gather, ROWS, (LINE_REDUCED + 1, HANDED_ON), (COLLECTED, u32::MAX)),
    uncrowded(C::Gather, MOVE, (HANDED_ON + 1, u64::MAX), (COLLECTED, u32::MAX)),
    shm(C::Gatherv, MOVE),
    shm(C::Scatter, MOVE),
    shm(C::Scatterv, MOVE),
    ranks(shm(C::Allgather, MOVE), 1, COLLECTED - 1),
    Rule { crowded: Some(true), ..ranks(shm(C::Allgather, MOVE), COLLECTED, u32::MAX) },
    uncrowded(C::Allgather, MOVE, (0, LINE_REDUCED), (COLLECTED, u32::MAX)),
    uncrowded(C::Allgather, ROWS, (LINE_REDUCED + 1, HANDED_ON), (COLLECTED, u32::MAX)),
    uncrowded(C::Allgather, MOVE, (HANDED_ON + 1, u64::MAX), (COLLECTED, u32::MAX)),
    ranks(shm(C::Alltoall, EACH_PAIR), 1, RELAYED - 1),
    Rule { crowded: Some(true), ..ranks(shm(C::Alltoall, EACH_PAIR), RELAYED, u32::MAX) },
    uncrowded(C::Alltoall, PASSED, (0, PASSED_ON), (RELAYED, u32::MAX)),
    uncrowded(C::Alltoall, EACH_PAIR, (PASSED_ON + 1, u64::MAX), (RELAYED, u32::MAX)),
    shm(C::Alltoallv, Choice::Exchange),
    ranks(bytes(shm(C::Reduce, FOLDED), 0, LINE_REDUCED), 1, FEW),
    uncrowded(C::Reduce, TREE, (0, LINE_REDUCED), (FEW + 1, u32::MAX)),
    Rule { crowded: Some(true), ..ranks(bytes(shm(C::Reduce, FOLDED), 0, LINE_REDUCED), FEW + 1, u32::MAX) },
    ranks(bytes(shm(C::Reduce, FOLDED), LINE_REDUCED + 1, u64::MAX), 1, PAIR),
    uncrowded(C::Reduce, FOLDED, (LINE_REDUCED + 1, ROOT_FOLDS[0]), (PAIR + 1, FEW)),
    uncrowded(C::Reduce, SLICED, (ROOT_FOLDS[0] + 1, u64::MAX), (PAIR + 1, FEW)),
    uncrowded(C::Reduce, FOLDED, (LINE_REDUCED + 1, ROOT_FOLDS[1]), (FEW + 1, LISTENED)),
    uncrowded(C::Reduce, SLICED, (ROOT_FOLDS[1] + 1, u64::MAX), (FEW + 1, LISTENED)),
    uncrowded(C::Reduce, SHARED, (LINE_REDUCED + 1, u64::MAX), (LISTENED + 1, u32::MAX)),
    Rule {
        crowded: Some(true),
        ..ranks(bytes(shm(C::Reduce, FOLDED), LINE_REDUCED + 1, u64::MAX), PAIR + 1, u32::MAX)
    },
    ranks(shm(C::ReduceScatter, EACH_BLOCK), 1, LISTENED),
    Rule { crowded: Some(true), ..ranks(shm(C::ReduceScatter, EACH_BLOCK), LISTENED + 1, u32::MAX) },
    uncrowded(C::ReduceScatter, EACH_BLOCK, (0, LINE_SENT), (LISTENED + 1, u32::MAX)),
    uncrowded(C::ReduceScatter, BLOCKS, (LINE_SENT + 1, u64::MAX), (LISTENED + 1, u32::MAX)),
    ranks(shm(C::Scan, EACH_BELOW), 1, GROUPED - 1),
    Rule { crowded: Some(true), ..ranks(shm(C::Scan, EACH_BELOW), GROUPED, u32::MAX) },
    uncrowded(C::Scan, EACH_BELOW, (0, PREFIXED), (GROUPED, LISTENED)),
    uncrowded(C::Scan, PREFIXES, (PREFIXED + 1, u64::MAX), (GROUPED, LISTENED)),
    uncrowded(C::Scan, EACH_BELOW, (0, LINE_REDUCED), (LISTENED + 1, SPREAD - 1)),
    uncrowded(C::Scan, SCAN_DOUBLING, (0, LINE_REDUCED), (SPREAD, u32::MAX)),
    uncrowded(C::Scan, PREFIXES, (LINE_REDUCED + 1, u64::MAX), (LISTENED + 1, u32::MAX)),
    ranks(shm(C::Exscan, EACH_BELOW), 1, GROUPED - 1),
    Rule { crowded: Some(true), ..ranks(shm(C::Exscan, EACH_BELOW), GROUPED, u32::MAX) },
    uncrowded(C::Exscan, EACH_BELOW, (0, PREFIXED), (GROUPED, LISTENED)),
    uncrowded(C::Exscan, PREFIXES, (PREFIXED + 1, u64::MAX), (GROUPED, LISTENED)),
    uncrowded(C::Exscan, EACH_BELOW, (0, LINE_REDUCED), (LISTENED + 1, SPREAD - 1)),
    uncrowded(C::Exscan, SCAN_DOUBLING, (0, LINE_REDUCED), (SPREAD, u32::MAX)),
    uncrowded(C::Exscan, PREFIXES, (LINE_REDUCED + 1, u64::MAX), (LISTENED + 1, u32::MAX)),
    msg(C::Barrier, Algorithm::Barrier(barrier::Algorithm::Dissemination), ANY, ALL),
    // Wide trees for short messages, whose time is start-ups; chains for long ones; scatter and doubling where a chain
    // would be long.
    bcast(bcast::Algorithm::Flat, (0, SHORT - 1), (1, 11)),
    bcast(bcast::Algorithm::Knomial(4), (0, SHORT - 1), (12, u32::MAX)),
    bcast(bcast::Algorithm::Knomial(2), (SHORT, u64::MAX), (1, 2)),
    bcast(bcast::Algorithm::Knomial(2), (SHORT, LONG - 1), (3, u32::MAX)),
    bcast(bcast::Algorithm::Chain(SEGMENT), (LONG, LONGER - 1), (3, 5)),
    bcast(bcast::Algorithm::ScatterDoubling, (LONG, LONGER - 1), (6, u32::MAX)),
    bcast(bcast::Algorithm::Chain(SEGMENT), (LONGER, LONGEST - 1), (3, 11)),
    bcast(bcast::Algorithm::ScatterDoubling, (LONGER, LONGEST - 1), (12, u32::MAX)),
    bcast(bcast::Algorithm::Chain(SEGMENT), (LONGEST, u64::MAX), (3, 32)),
    bcast(bcast::Algorithm::ScatterDoubling, (LONGEST, u64::MAX), (33, u32::MAX)),
    reduce(reduce::Algorithm::Flat, (0, SHORT - 1), (1, 11)),
    reduce(reduce::Algorithm::Knomial(4), (0, SHORT - 1), (12, u32::MAX)),
    reduce(reduce::Algorithm::Knomial(2), (SHORT, u64::MAX), (1, 2)),
    reduce(reduce::Algorithm::Knomial(2), (SHORT, LONG - 1), (3, u32::MAX)),
    reduce(reduce::Algorithm::Chain(SEGMENT), (LONG, LONGER - 1), (3, 5)),
    reduce(reduce::Algorithm::ScatterGather, (LONG, LONGER - 1), (6, u32::MAX)),
    reduce(reduce::Algorithm::Chain(SEGMENT), (LONGER, LONGEST - 1), (3, 11)),
    reduce(reduce::Algorithm::ScatterGather, (LONGER, LONGEST - 1), (12, u32::MAX)),
    reduce(reduce::Algorithm::Chain(SEGMENT), (LONGEST, u64::MAX), (3, 32)),
    reduce(reduce::Algorithm::ScatterGather, (LONGEST, u64::MAX), (33, u32::MAX)),
    gather(gather::Algorithm::Linear, ANY, (1, 32)),
    gather(gather::Algorithm::Binomial, (0, 2047), (33, 128)),
    gather(gather::Algorithm::Linear, (2048, u64::MAX), (33, 128)),
    gather(gather::Algorithm::Binomial, ANY, (129, u32::MAX)),
    scatter(scatter::Algorithm::Linear, ANY, (1, 32)),
    scatter(scatter::Algorithm::Binomial, (0, 2047), (33, 128)),
    scatter(scatter::Algorithm::Linear, (2048, u64::MAX), (33, 128)),
    scatter(scatter::Algorithm::Binomial, ANY, (129, u32::MAX)),
    msg(C::Gatherv, Algorithm::Gather(gather::Algorithm::Linear), ANY, ALL),
    msg(C::Scatterv, Algorithm::Scatter(scatter::Algorithm::Linear), ANY, ALL),
    allgather(allgather::Algorithm::Linear, (0, LONGER - 1), (1, 11)),
    allgather(allgather::Algorithm::Bruck, (0, 181), (12, 32)),
    allgather(allgather::Algorithm::Linear, (182, LONGER - 1), (12, 32)),
    allgather(allgather::Algorithm::Bruck, (0, 1447), (33, 128)),
    allgather(allgather::Algorithm::Linear, (1448, LONG - 1), (33, 128)),
    allgather(allgather::Algorithm::Bruck, (LONG, LONGER - 1), (33, 128)),
    allgather(allgather::Algorithm::Bruck, (0, LONGER - 1), (129, u32::MAX)),
    allgather(allgather::Algorithm::Ring, (LONGER, u64::MAX), ALL),
    alltoall(alltoall::Algorithm::Linear, (0, LONGER - 1), (1, 11)),
    alltoall(alltoall::Algorithm::Bruck, (0, 181), (12, 32)),
    alltoall(alltoall::Algorithm::Linear, (182, LONGER - 1), (12, 32)),
    alltoall(alltoall::Algorithm::Bruck, (0, 1447), (33, u32::MAX)),
    alltoall(alltoall::Algorithm::Linear, (1448, LONGER - 1), (33, u32::MAX)),
    alltoall(alltoall::Algorithm::Pairwise, (LONGER, u64::MAX), ALL),
    msg(C::Alltoallv, Algorithm::Alltoall(alltoall::Algorithm::Pairwise), ANY, ALL),
    msg(C::Allreduce, Algorithm::Allreduce(allreduce::Algorithm::Doubling), (0, LONG - 1), ALL),
    msg(C::Allreduce, Algorithm::Allreduce(allreduce::Algorithm::Doubling), (LONG, LONGER - 1), (1, 2)),
    msg(C::Allreduce, Algorithm::Allreduce(allreduce::Algorithm::Rabenseifner), (LONG, LONGER - 1), (3, u32::MAX)),
    msg(C::Allreduce, Algorithm::Allreduce(allreduce::Algorithm::Rabenseifner), (LONGER, u64::MAX), ALL),
    msg(C::ReduceScatter, Algorithm::ReduceScatter(reduce_scatter::Algorithm::Pairwise), ANY, ALL),
    scan(C::Scan, scan::Algorithm::Doubling, ANY, (1, 2)),
    scan(C::Scan, scan::Algorithm::Doubling, (0, LONGER - 1), (3, u32::MAX)),
    scan(C::Scan, scan::Algorithm::Chain(SEGMENT), (LONGER, u64::MAX), (3, 32)),
    scan(C::Scan, scan::Algorithm::Doubling, (LONGER, LONGEST - 1), (33, u32::MAX)),
    scan(C::Scan, scan::Algorithm::Chain(SEGMENT), (LONGEST, u64::MAX), (33, 128)),
    scan(C::Scan, scan::Algorithm::Doubling, (LONGEST, u64::MAX), (129, u32::MAX)),
    scan(C::Exscan, scan::Algorithm::Doubling, ANY, (1, 2)),
    scan(C::Exscan, scan::Algorithm::Doubling, (0, LONG - 1), (3, u32::MAX)),
    scan(C::Exscan, scan::Algorithm::Chain(SEGMENT), (LONG, LONGER - 1), (3, 11)),
    scan(C::Exscan, scan::Algorithm::Doubling, (LONG, LONGER - 1), (12, u32::MAX)),
    scan(C::Exscan, scan::Algorithm::Chain(SEGMENT), (LONGER, LONGEST - 1), (3, 32)),
    scan(C::Exscan, scan::Algorithm::Doubling, (LONGER, LONGEST - 1), (33, u32::MAX)),
    scan(C::Exscan, scan::Algorithm::Chain(SEGMENT), (LONGEST, u64::MAX), (3, 512)),
    scan(C::Exscan, scan::Algorithm::Doubling, (LONGEST, u64::MAX), (513, u32::MAX)),
];

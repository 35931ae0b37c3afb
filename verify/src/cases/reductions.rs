//! Reduce, allreduce, reduce_scatter, scan and exscan.

use super::{Stage, User, lengths, roots, seat};
use crate::oracle::{Fold, mix};
use unisono_kernel::msg::parts::Slices;
use unisono_kernel::msg::schedule::Area;
use unisono_kernel::msg::{Parts, Schedule, allreduce, reduce, reduce_scatter, scan};

/// The operations of the cases: one that commutes, one that doesn't, and one of floats.
pub const FOLDS: [Fold; 3] = [Fold::SumI64, Fold::Affine, Fold::SumF64];

/// A rank's operand in words. Sums of floats are exact: any order gives the same bits.
pub fn operand(fold: Fold, rank: u32, elements: u64) -> Vec<u64> {
    let words = elements * fold.element() as u64 / 8;
    let word = |at| mix(u64::from(rank) << 32 ^ at);
    match fold {
        Fold::SumF64 => (0..words).map(|at| f64::from(word(at) as u16).to_bits()).collect(),
        _ => (0..words).map(word).collect(),
    }
}

/// Words as they lie in memory.
pub fn to_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The fold of the operands of a range of ranks, in rank order.
pub fn folded(fold: Fold, ranks: std::ops::Range<u32>, elements: u64) -> Vec<u8> {
    let mut result = operand(fold, ranks.start, elements);
    for rank in ranks.start + 1..ranks.end {
        fold.apply(&mut result, &operand(fold, rank, elements));
    }
    to_bytes(&result)
}

/// A process's memory before the call: the operand is the input, or in place it lies in the result area.
pub fn user(fold: Fold, rank: u32, elements: u64, in_place: bool, wants: bool) -> User {
    let operand = to_bytes(&operand(fold, rank, elements));
    match (in_place, wants) {
        (true, true) => User { send: Vec::new(), receive: operand },
        (_, true) => User { receive: vec![0x55; operand.len()], send: operand },
        _ => User { send: operand, receive: Vec::new() },
    }
}

/// The bytes of so many elements.
pub fn length(fold: Fold, elements: u64) -> u64 {
    elements * fold.element() as u64
}

/// Reductions to a root among `size` processes.
pub fn reduces(size: u32, stage: &mut impl Stage) {
    use reduce::Algorithm::{Chain, Flat, Knomial, ScatterGather};
    for algorithm in [Flat, Chain(32), Chain(1 << 20), Knomial(2), Knomial(3), Knomial(8), ScatterGather] {
        for root in roots(size) {
            for (fold, in_place) in FOLDS.iter().flat_map(|&fold| [(fold, false), (fold, true)]) {
                for elements in lengths(size, &[0, 1, 7, 40], stage) {
                    let name = format!("reduce {algorithm:?} p={size} root={root} {fold:?} {elements} {in_place}");
                    let (bytes, op) = (length(fold, elements), fold.op());
                    let plan =
                        |rank| reduce::plan(seat(rank, size), bytes, op, root, in_place, algorithm).expect("a plan");
                    let before = |rank| user(fold, rank, elements, in_place, rank == root);
                    let after = |rank| if rank == root { folded(fold, 0..size, elements) } else { Vec::new() };
                    stage.case(&name, size, plan, before, after);
                }
            }
        }
    }
}

/// Reductions to all ranks among `size` processes.
pub fn allreduces(size: u32, stage: &mut impl Stage) {
    use allreduce::Algorithm::{Doubling, Rabenseifner, Ring, SegmentedRing};
    for algorithm in [Doubling, Ring, SegmentedRing(8), SegmentedRing(16), SegmentedRing(40), Rabenseifner] {
        for (fold, in_place) in FOLDS.iter().flat_map(|&fold| [(fold, false), (fold, true)]) {
            if algorithm.applicable(&fold.op()).is_err() {
                assert_eq!(fold, Fold::Affine);
                continue;
            }
            for elements in lengths(size, &[0, 1, 7, 16, 17, 100], stage) {
                let name = format!("allreduce {algorithm:?} p={size} {fold:?} {elements} {in_place}");
                let bytes = length(fold, elements);
                let plan =
                    |rank| allreduce::plan(seat(rank, size), bytes, fold.op(), in_place, algorithm).expect("a plan");
                let wanted = folded(fold, 0..size, elements);
                let before = |rank| user(fold, rank, elements, in_place, true);
                stage.case(&name, size, plan, before, |_| wanted.clone());
            }
        }
    }
}

/// Reductions of a block for each rank among `size` processes.
pub fn reduce_scatters(size: u32, stage: &mut impl Stage) {
    use reduce_scatter::Algorithm::{Pairwise, Ring};
    let varying: Vec<u64> = (0..size).map(|rank| mix(rank.into()) % 5).collect();
    let displacements: Vec<u64> =
        varying.iter().scan(0, |sum, count| Some(std::mem::replace(sum, *sum + count))).collect();
    for algorithm in [Pairwise, Ring] {
        for (fold, in_place) in FOLDS.iter().flat_map(|&fold| [(fold, false), (fold, true)]) {
            if algorithm.applicable(&fold.op()).is_err() {
                continue;
            }
            let element = fold.element() as u64;
            let equal = lengths(size, &[0, 3], stage);
            let equal = equal.map(|count| Parts::equal(size, count * element).expect("blocks that fit"));
            let others = [
                Parts::vary(size, &varying, &displacements, element).expect("blocks that fit"),
                Parts::slices(size, Slices::new(23 * element, element, size)),
            ];
            for parts in equal.chain(others) {
                let name = format!("reduce_scatter {algorithm:?} p={size} {fold:?} {parts:?} {in_place}");
                let plan = |rank| {
                    reduce_scatter::plan(seat(rank, size), parts, fold.op(), in_place, algorithm).expect("a plan")
                };
                reduce_scatter_case(stage, &name, size, parts, fold, in_place, plan);
            }
        }
    }
}

/// A reduction of a block for each rank by `plan`.
pub fn reduce_scatter_case<S: Schedule>(
    stage: &mut impl Stage,
    name: &str,
    size: u32,
    parts: Parts<'_>,
    fold: Fold,
    in_place: bool,
    plan: impl Fn(u32) -> S,
) {
    let elements = parts.reach() / fold.element() as u64;
    let before = |rank| {
        let mut user = user(fold, rank, elements, in_place, true);
        user.receive.truncate(if in_place { usize::MAX } else { parts.len(rank) as usize });
        user
    };
    let after = |rank| {
        let place = parts.place(Area::Receive, rank);
        let all = folded(fold, 0..size, elements);
        let mut receive = before(rank).receive;
        let from = place.at as usize;
        receive[..place.len as usize].copy_from_slice(&all[from..from + place.len as usize]);
        receive
    };
    stage.case(name, size, plan, before, after);
}

/// Scans and exscans among `size` processes.
pub fn scans(size: u32, stage: &mut impl Stage) {
    use scan::Algorithm::{Chain, Doubling};
    for algorithm in [Doubling, Chain(16), Chain(1 << 20)] {
        for (fold, in_place) in FOLDS.iter().flat_map(|&fold| [(fold, false), (fold, true)]) {
            for (elements, exclusive) in lengths(size, &[0, 1, 9], stage).flat_map(|n| [(n, false), (n, true)]) {
                let name = format!("scan {algorithm:?} p={size} {fold:?} {elements} {in_place} {exclusive}");
                let (bytes, op) = (length(fold, elements), fold.op());
                let plan =
                    |rank| scan::plan(seat(rank, size), bytes, op, in_place, exclusive, algorithm).expect("a plan");
                scan_case(stage, &name, size, Operand { fold, elements, in_place }, exclusive, plan);
            }
        }
    }
}

/// The operand of a scan.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// The operation and its elements.
    pub fold: Fold,
    /// The number of elements.
    pub elements: u64,
    /// Does the operand lie in the result area?
    pub in_place: bool,
}

/// A scan by `plan`.
pub fn scan_case<S: Schedule>(
    stage: &mut impl Stage,
    name: &str,
    size: u32,
    operand: Operand,
    exclusive: bool,
    plan: impl Fn(u32) -> S,
) {
    let Operand { fold, elements, in_place } = operand;
    let before = |rank| user(fold, rank, elements, in_place, true);
    let after = |rank| match (exclusive, rank) {
        (true, 0) => before(0).receive,
        (true, rank) => folded(fold, 0..rank, elements),
        (false, rank) => folded(fold, 0..rank + 1, elements),
    };
    stage.case(name, size, plan, before, after);
}

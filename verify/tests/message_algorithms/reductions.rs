//! Reduce, allreduce, reduce_scatter, scan and exscan.

use super::{LARGE, Under, User, check, lengths, outcome, roots, seat, sizes};
use std::ffi::c_void;
use unisono_kernel::msg::parts::Slices;
use unisono_kernel::msg::{Parts, allreduce, reduce, reduce_scatter, scan};
use unisono_kernel::op::{Op, User as Function};
use unisono_verify::network::Mode;
use unisono_verify::oracle::{Fold, mix};

const FOLDS: [Fold; 3] = [Fold::SumI64, Fold::Affine, Fold::SumF64];

/// A rank's operand in words. Sums of floats are exact: any order gives the same bits.
fn operand(fold: Fold, rank: u32, elements: u64) -> Vec<u64> {
    let words = elements * fold.element() as u64 / 8;
    let word = |at| mix(u64::from(rank) << 32 ^ at);
    match fold {
        Fold::SumF64 => (0..words).map(|at| f64::from(word(at) as u16).to_bits()).collect(),
        _ => (0..words).map(word).collect(),
    }
}

fn to_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The fold of the operands of a range of ranks, in rank order.
fn folded(fold: Fold, ranks: std::ops::Range<u32>, elements: u64) -> Vec<u8> {
    let mut result = operand(fold, ranks.start, elements);
    for rank in ranks.start + 1..ranks.end {
        fold.apply(&mut result, &operand(fold, rank, elements));
    }
    to_bytes(&result)
}

/// A process's memory before: the operand is the input, or in place in the result area, where the result goes.
fn user(fold: Fold, rank: u32, elements: u64, in_place: bool, wants: bool) -> User {
    let operand = to_bytes(&operand(fold, rank, elements));
    match (in_place, wants) {
        (true, true) => User { send: Vec::new(), receive: operand },
        (_, true) => User { receive: vec![0x55; operand.len()], send: operand },
        _ => User { send: operand, receive: Vec::new() },
    }
}

fn length(fold: Fold, elements: u64) -> u64 {
    elements * fold.element() as u64
}

#[test]
fn reduces() {
    use reduce::Algorithm::{Chain, Flat, Knomial, ScatterGather};
    for size in sizes().chain([33]) {
        for algorithm in [Flat, Chain(32), Chain(1 << 20), Knomial(2), Knomial(3), Knomial(8), ScatterGather] {
            for root in roots(size) {
                for (fold, in_place) in FOLDS.iter().flat_map(|&fold| [(fold, false), (fold, true)]) {
                    for &elements in lengths(size, &[0, 1, 7, 40]) {
                        let name = format!("reduce {algorithm:?} p={size} root={root} {fold:?} {elements} {in_place}");
                        let (bytes, op) = (length(fold, elements), fold.op());
                        let plan = |rank| reduce::plan(seat(rank, size), bytes, op, root, in_place, algorithm).unwrap();
                        let user = |rank| user(fold, rank, elements, in_place, rank == root);
                        let after = |rank| match rank == root {
                            true => folded(fold, 0..size, elements),
                            false => Vec::new(),
                        };
                        let plans: Vec<_> = (0..size).map(plan).collect();
                        check(&name, &plans, &(0..size).map(user).collect::<Vec<_>>(), after);
                    }
                }
            }
        }
    }
}

#[test]
fn allreduces() {
    use allreduce::Algorithm::{Doubling, Rabenseifner, Ring, SegmentedRing};
    for size in sizes().chain(LARGE) {
        for algorithm in [Doubling, Ring, SegmentedRing(8), SegmentedRing(16), SegmentedRing(40), Rabenseifner] {
            for (fold, in_place) in FOLDS.iter().flat_map(|&fold| [(fold, false), (fold, true)]) {
                if algorithm.applicable(&fold.op()).is_err() {
                    assert_eq!(fold, Fold::Affine);
                    continue;
                }
                for &elements in lengths(size, &[0, 1, 7, 16, 17, 100]) {
                    let name = format!("allreduce {algorithm:?} p={size} {fold:?} {elements} {in_place}");
                    let bytes = length(fold, elements);
                    let plan = |rank| allreduce::plan(seat(rank, size), bytes, fold.op(), in_place, algorithm).unwrap();
                    let user = |rank| user(fold, rank, elements, in_place, true);
                    let plans: Vec<_> = (0..size).map(plan).collect();
                    let wanted = folded(fold, 0..size, elements);
                    check(&name, &plans, &(0..size).map(user).collect::<Vec<_>>(), |_| wanted.clone());
                }
            }
        }
    }
}

/// Depends on the order and the grouping of its operands.
unsafe extern "C-unwind" fn scramble(left: *const c_void, right: *mut c_void, count: u64, _: *mut c_void) {
    let (left, right) = (left.cast::<u64>(), right.cast::<u64>());
    for i in 0..count as usize {
        // SAFETY: the kernel's contract: `count` aligned elements.
        let l = unsafe { left.wrapping_add(i).read() };
        // SAFETY: as above.
        let r = unsafe { right.wrapping_add(i).read() };
        // SAFETY: as above, writable.
        unsafe { right.wrapping_add(i).write(mix(l) ^ r.rotate_left(7)) };
    }
}

/// Sums that depend on their order, and a user's operation that says it commutes although its bits don't.
#[test]
fn allreduces_give_all_ranks_the_same_bits() {
    use allreduce::Algorithm::{Doubling, Rabenseifner, Ring, SegmentedRing};
    // SAFETY: `scramble` reads and writes `count` elements of its arrays and nothing else.
    let scrambled = Op::User(unsafe { Function::new(scramble, std::ptr::null_mut(), 8, true) });
    for size in sizes() {
        for algorithm in [Doubling, Ring, SegmentedRing(16), Rabenseifner] {
            for op in [Op::SUM_F64, scrambled] {
                let word = |at: u64| (f64::from(mix(at) as i32) * 2f64.powi((mix(at) >> 32) as i32 % 60)).to_bits();
                let user = |rank: u32| {
                    let words: Vec<u64> = (0..40).map(|at| word(u64::from(rank) << 32 | at)).collect();
                    User { send: to_bytes(&words), receive: vec![0; 320] }
                };
                let plan = |rank| allreduce::plan(seat(rank, size), 320, op, false, algorithm).unwrap();
                let name = format!("allreduce {algorithm:?} p={size} {op}");
                let plans: Vec<_> = (0..size).map(plan).collect();
                let users: Vec<_> = (0..size).map(user).collect();
                let results = outcome(&name, &plans, &users, Under::Network(Mode::Rendezvous)).unwrap();
                assert!(results.iter().all(|user| user.receive == results[0].receive), "{name}");
            }
        }
    }
}

#[test]
fn reduce_scatters() {
    use reduce_scatter::Algorithm::{Pairwise, Ring};
    for size in sizes() {
        let varying: Vec<u64> = (0..size).map(|rank| mix(rank.into()) % 5).collect();
        let displacements: Vec<u64> =
            varying.iter().scan(0, |sum, count| Some(std::mem::replace(sum, *sum + count))).collect();
        for algorithm in [Pairwise, Ring] {
            for (fold, in_place) in FOLDS.iter().flat_map(|&fold| [(fold, false), (fold, true)]) {
                if algorithm.applicable(&fold.op()).is_err() {
                    continue;
                }
                let element = fold.element() as u64;
                let kinds = [
                    Parts::equal(size, 0).unwrap(),
                    Parts::equal(size, 3 * element).unwrap(),
                    Parts::vary(size, &varying, &displacements, element).unwrap(),
                    Parts::slices(size, Slices::new(23 * element, element, size)),
                ];
                for parts in kinds {
                    let name = format!("reduce_scatter {algorithm:?} p={size} {fold:?} {parts:?} {in_place}");
                    let elements = parts.reach() / element;
                    let plan =
                        |rank| reduce_scatter::plan(seat(rank, size), parts, fold.op(), in_place, algorithm).unwrap();
                    let before = |rank| {
                        let mut user = user(fold, rank, elements, in_place, true);
                        user.receive.truncate(if in_place { usize::MAX } else { parts.len(rank) as usize });
                        user
                    };
                    let after = |rank| {
                        let place = parts.place(unisono_kernel::msg::schedule::Area::Receive, rank);
                        let all = folded(fold, 0..size, elements);
                        let mut receive = before(rank).receive;
                        let from = place.at as usize;
                        receive[..place.len as usize].copy_from_slice(&all[from..from + place.len as usize]);
                        receive
                    };
                    let plans: Vec<_> = (0..size).map(plan).collect();
                    check(&name, &plans, &(0..size).map(before).collect::<Vec<_>>(), after);
                }
            }
        }
    }
}

#[test]
fn scans() {
    use scan::Algorithm::{Chain, Doubling};
    for size in sizes() {
        for algorithm in [Doubling, Chain(16), Chain(1 << 20)] {
            for (fold, in_place) in FOLDS.iter().flat_map(|&fold| [(fold, false), (fold, true)]) {
                for (elements, exclusive) in [0, 1, 9].into_iter().flat_map(|n| [(n, false), (n, true)]) {
                    let name = format!("scan {algorithm:?} p={size} {fold:?} {elements} {in_place} {exclusive}");
                    let (bytes, op) = (length(fold, elements), fold.op());
                    let plan = |rank| scan::plan(seat(rank, size), bytes, op, in_place, exclusive, algorithm).unwrap();
                    let before = |rank| user(fold, rank, elements, in_place, true);
                    let after = |rank| match (exclusive, rank) {
                        (true, 0) => before(0).receive,
                        (true, rank) => folded(fold, 0..rank, elements),
                        (false, rank) => folded(fold, 0..rank + 1, elements),
                    };
                    let plans: Vec<_> = (0..size).map(plan).collect();
                    check(&name, &plans, &(0..size).map(before).collect::<Vec<_>>(), after);
                }
            }
        }
    }
}

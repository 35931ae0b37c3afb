//! Broadcast, gather, scatter, allgather, alltoall, and barriers.

use super::{LARGE, User, bytes, check, lengths, roots, seat, sizes};
use unisono_kernel::msg::schedule::Area;
use unisono_kernel::msg::{Parts, Schedule, allgather, alltoall, barrier, bcast, gather, scatter};
use unisono_kernel::pattern::bagds::{Table, stages, table_words, work_words};
use unisono_kernel::pattern::log2_ceil;
use unisono_verify::oracle::mix;

/// Counts and displacements of blocks that vary, in falling order and with gaps; one in four has nothing.
pub(super) struct Varying {
    counts: Vec<u64>,
    displacements: Vec<u64>,
}

impl Varying {
    pub(super) fn new(size: u32, seed: u64) -> Self {
        let counts: Vec<u64> = (0..size).map(|rank| mix(seed ^ u64::from(rank)) % 8 / 2 * 2).collect();
        let ends = counts.iter().rev().scan(1, |end, count| Some(std::mem::replace(end, *end + count + 1)));
        let mut displacements: Vec<u64> = ends.collect();
        displacements.reverse();
        Self { counts, displacements }
    }

    pub(super) fn parts(&self) -> Parts<'_> {
        Parts::vary(self.counts.len() as u32, &self.counts, &self.displacements, 3).expect("blocks that fit")
    }
}

/// `block` at a rank's place in `memory`.
fn put(memory: &mut [u8], parts: Parts<'_>, rank: u32, block: &[u8]) {
    // A block of nothing may lie anywhere.
    if !block.is_empty() {
        let at = parts.place(Area::Receive, rank).at as usize;
        memory[at..at + block.len()].copy_from_slice(block);
    }
}

/// What the block from `sender` to `receiver` holds.
fn between(sender: u32, receiver: u32, len: u64) -> Vec<u8> {
    bytes(sender * 64 + receiver, len)
}

#[test]
fn broadcasts() {
    use bcast::Algorithm::{Chain, Flat, Knomial, ScatterAllgather};
    for size in sizes().chain(LARGE) {
        for algorithm in [Flat, Chain(16), Chain(1 << 20), Knomial(2), Knomial(3), Knomial(7), ScatterAllgather] {
            for root in roots(size) {
                for &len in lengths(size, &[0, 1, 16, 33, 200]) {
                    let name = format!("bcast {algorithm:?} p={size} root={root} {len}");
                    let plans: Vec<_> =
                        (0..size).map(|rank| bcast::plan(seat(rank, size), len, root, algorithm).unwrap()).collect();
                    let before = |rank| User { send: Vec::new(), receive: bytes(rank, len) };
                    check(&name, &plans, &(0..size).map(before).collect::<Vec<_>>(), |_| bytes(root, len));
                }
            }
        }
    }
}

#[test]
fn gathers_and_scatters() {
    for size in sizes() {
        let (one, two) = (Varying::new(size, 1), Varying::new(size, 2));
        let kinds = [one.parts(), two.parts(), Parts::equal(size, 0).unwrap(), Parts::equal(size, 5).unwrap()];
        for parts in kinds {
            for root in roots(size) {
                for in_place in [false, true] {
                    let (case, all) = (format!("p={size} root={root} {parts:?} {in_place}"), (size, parts));
                    use gather::Algorithm as Gather;
                    for algorithm in [Gather::Linear, Gather::Binomial] {
                        let plan = |rank| {
                            let own = parts.len(rank);
                            gather::plan(seat(rank, size), own, parts, root, in_place, algorithm).unwrap()
                        };
                        if algorithm.applicable(&parts).is_ok() {
                            gather_case(&format!("gather {algorithm:?} {case}"), all, root, in_place, plan);
                        }
                    }
                    use scatter::Algorithm as Scatter;
                    for algorithm in [Scatter::Linear, Scatter::Binomial] {
                        let plan = |rank| {
                            let own = parts.len(rank);
                            scatter::plan(seat(rank, size), own, parts, root, in_place, algorithm).unwrap()
                        };
                        if algorithm.applicable(&parts).is_ok() {
                            scatter_case(&format!("scatter {algorithm:?} {case}"), all, root, in_place, plan);
                        }
                    }
                }
            }
        }
    }
}

/// Everyone's memory where each has a block of its own, and has everyone's where `central` says so.
fn before(size: u32, parts: Parts<'_>, in_place: bool, central: impl Fn(u32) -> bool) -> Vec<User> {
    let user = |rank| {
        let (block, mut receive) = (bytes(rank, parts.len(rank)), vec![0x55; parts.reach() as usize]);
        match (central(rank), in_place) {
            (true, true) => {
                put(&mut receive, parts, rank, &block);
                User { send: Vec::new(), receive }
            }
            (true, false) => User { send: block, receive },
            (false, _) => User { send: block, receive: Vec::new() },
        }
    };
    (0..size).map(user).collect()
}

/// The blocks of all, with what lies between them.
fn gathered(size: u32, parts: Parts<'_>) -> Vec<u8> {
    let mut all = vec![0x55; parts.reach() as usize];
    (0..size).for_each(|rank| put(&mut all, parts, rank, &bytes(rank, parts.len(rank))));
    all
}

pub(super) fn gather_case<S: Schedule>(
    name: &str,
    (size, parts): (u32, Parts<'_>),
    root: u32,
    in_place: bool,
    plan: impl Fn(u32) -> S,
) {
    let before = before(size, parts, in_place, |rank| rank == root);
    let after = |rank| if rank == root { gathered(size, parts) } else { Vec::new() };
    check(name, &(0..size).map(plan).collect::<Vec<_>>(), &before, after);
}

pub(super) fn scatter_case<S: Schedule>(
    name: &str,
    (size, parts): (u32, Parts<'_>),
    root: u32,
    in_place: bool,
    plan: impl Fn(u32) -> S,
) {
    let before = |rank| User {
        send: if rank == root { gathered(size, parts) } else { Vec::new() },
        receive: if rank == root && in_place { Vec::new() } else { vec![0x55; parts.len(rank) as usize] },
    };
    let after = |rank| match rank == root && in_place {
        true => Vec::new(),
        false => bytes(rank, parts.len(rank)),
    };
    let before: Vec<_> = (0..size).map(before).collect();
    check(name, &(0..size).map(plan).collect::<Vec<_>>(), &before, after);
}

pub(super) fn allgather_case<S: Schedule>(
    name: &str,
    (size, parts): (u32, Parts<'_>),
    in_place: bool,
    plan: impl Fn(u32) -> S,
) {
    let before = before(size, parts, in_place, |_| true);
    check(name, &(0..size).map(plan).collect::<Vec<_>>(), &before, |_| gathered(size, parts));
}

pub(super) fn alltoall_case<'p, S: Schedule>(
    name: &str,
    size: u32,
    in_place: bool,
    parts: impl Fn(u32) -> Parts<'p>,
    plan: impl Fn(u32) -> S,
) {
    let filled = |rank: u32, content: &dyn Fn(u32) -> (u32, u32)| {
        let mut memory = vec![0x55; parts(rank).reach() as usize];
        for peer in 0..size {
            let (sender, receiver) = content(peer);
            put(&mut memory, parts(rank), peer, &between(sender, receiver, parts(rank).len(peer)));
        }
        memory
    };
    let before = |rank| {
        let outgoing = filled(rank, &|peer| (rank, peer));
        match in_place {
            true => User { send: Vec::new(), receive: outgoing },
            false => User { receive: vec![0x55; outgoing.len()], send: outgoing },
        }
    };
    let after = |rank| filled(rank, &|peer| (peer, rank));
    check(name, &(0..size).map(plan).collect::<Vec<_>>(), &(0..size).map(before).collect::<Vec<_>>(), after);
}

#[test]
fn allgathers() {
    use allgather::Algorithm::{Bagds, Bruck, Doubling, Ring};
    for size in sizes().chain([33]) {
        let (mut work, one, two) = (vec![0; work_words(size)], Varying::new(size, 1), Varying::new(size, 2));
        let stages = stages(size, &mut work).unwrap();
        let mut words = vec![vec![0; table_words(size, stages)]; size as usize];
        let tables: Vec<_> = (0..)
            .zip(&mut words)
            .map(|(rank, words)| Table::new(seat(rank, size), &mut work, words).unwrap())
            .collect();
        for algorithm in [Ring, Bruck, Doubling, Bagds] {
            if algorithm.applicable(size, tables.first()).is_err() {
                assert!(algorithm == Doubling && !size.is_power_of_two());
                continue;
            }
            for parts in [one.parts(), two.parts(), Parts::equal(size, 0).unwrap(), Parts::equal(size, 5).unwrap()] {
                for in_place in [false, true] {
                    let name = format!("allgather {algorithm:?} p={size} {parts:?} {in_place}");
                    let plan = |rank| {
                        let table = Some(tables[rank as usize]);
                        allgather::plan(seat(rank, size), parts, in_place, algorithm, table).unwrap()
                    };
                    allgather_case(&name, (size, parts), in_place, plan);
                }
            }
        }
    }
}

#[test]
fn alltoalls() {
    use alltoall::Algorithm::{Bruck, Linear, Pairwise};
    for size in sizes() {
        // The block from s to r is as long as both say: counts of a symmetric matrix, so that they serve in place too.
        let count = |sender: u32, receiver: u32| {
            mix(u64::from(sender.min(receiver)) << 8 | u64::from(sender.max(receiver))) % 4
        };
        let rows: Vec<Varying> = (0..size)
            .map(|rank| {
                let counts: Vec<u64> = (0..size).map(|peer| count(rank, peer)).collect();
                let ends = counts.iter().scan(2, |end, count| Some(std::mem::replace(end, *end + count + 1)));
                let displacements = ends.collect();
                Varying { counts, displacements }
            })
            .collect();
        for algorithm in [Linear, Pairwise, Bruck] {
            for (in_place, equal) in [(false, None), (true, None), (false, Some(0)), (false, Some(5)), (true, Some(5))]
            {
                let parts = |rank: u32| match equal {
                    Some(len) => Parts::equal(size, len).unwrap(),
                    None => rows[rank as usize].parts(),
                };
                if algorithm.applicable(&parts(0)).is_err() {
                    assert!(algorithm == Bruck && equal.is_none());
                    continue;
                }
                let name = format!("alltoall {algorithm:?} p={size} {equal:?} {in_place}");
                let plan = |rank| {
                    let send = (!in_place).then(|| parts(rank));
                    alltoall::plan(seat(rank, size), send, parts(rank), algorithm).unwrap()
                };
                alltoall_case(&name, size, in_place, parts, plan);
            }
        }
    }
}

#[test]
fn barriers() {
    use barrier::Algorithm::{Bruck, Butterfly, Central, Combining, Dissemination, Tournament};
    for size in sizes().chain([33, 64, 100]) {
        for algorithm in [Central, Combining(1), Combining(3), Dissemination, Tournament, Bruck, Butterfly] {
            let plans: Vec<_> = (0..size).map(|rank| barrier::plan(seat(rank, size), algorithm).unwrap()).collect();
            let nothing = vec![User { send: Vec::new(), receive: Vec::new() }; size as usize];
            check(&format!("barrier {algorithm:?} p={size}"), &plans, &nothing, |_| Vec::new());
            if matches!(algorithm, Dissemination | Bruck | Butterfly) {
                assert!(plans.iter().all(|plan| plan.rounds() == log2_ceil(size).into()));
            }
        }
    }
}

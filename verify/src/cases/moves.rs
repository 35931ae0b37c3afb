//! Broadcast, gather, scatter, allgather, alltoall, and barriers.

use super::{Stage, User, bytes, lengths, roots, seat};
use crate::oracle::mix;
use unisono_kernel::msg::schedule::Area;
use unisono_kernel::msg::{Parts, Schedule, allgather, alltoall, barrier, bcast, gather, scatter};
use unisono_kernel::pattern::bagds::{Table, stages, table_words, work_words};

/// Counts and displacements of blocks that vary, in reverse order and with gaps; one in four is empty.
#[derive(Clone, Debug)]
pub struct Varying {
    counts: Vec<u64>,
    displacements: Vec<u64>,
}

impl Varying {
    /// Blocks of `size` ranks.
    pub fn new(size: u32, seed: u64) -> Self {
        let counts: Vec<u64> = (0..size).map(|rank| mix(seed ^ u64::from(rank)) % 8 / 2 * 2).collect();
        let ends = counts.iter().rev().scan(1, |end, count| Some(std::mem::replace(end, *end + count + 1)));
        let mut displacements: Vec<u64> = ends.collect();
        displacements.reverse();
        Self { counts, displacements }
    }

    /// The blocks.
    ///
    /// # Panics
    /// They don't fit.
    pub fn parts(&self) -> Parts<'_> {
        Parts::vary(self.counts.len() as u32, &self.counts, &self.displacements, 3).expect("blocks that fit")
    }
}

/// `block` at a rank's place in `memory`.
fn put(memory: &mut [u8], parts: Parts<'_>, rank: u32, block: &[u8]) {
    // An empty block may lie anywhere.
    if !block.is_empty() {
        let at = parts.place(Area::Receive, rank).at as usize;
        memory[at..at + block.len()].copy_from_slice(block);
    }
}

/// The data of the block from `sender` to `receiver`.
fn between(sender: u32, receiver: u32, len: u64) -> Vec<u8> {
    bytes(sender * 64 + receiver, len)
}

/// Broadcasts among `size` processes.
pub fn broadcasts(size: u32, stage: &mut impl Stage) {
    use bcast::Algorithm::{Chain, Flat, Knomial, ScatterAllgather, ScatterDoubling};
    let trees = [Flat, Chain(16), Chain(1 << 20), Knomial(2), Knomial(3), Knomial(7)];
    for algorithm in trees.into_iter().chain([ScatterAllgather, ScatterDoubling]) {
        for root in roots(size) {
            for len in lengths(size, &[0, 1, 16, 33, 200], stage) {
                let name = format!("bcast {algorithm:?} p={size} root={root} {len}");
                let plan = |rank| bcast::plan(seat(rank, size), len, root, algorithm).expect("a plan");
                let before = |rank| User { send: Vec::new(), receive: bytes(rank, len) };
                stage.case(&name, size, plan, before, |_| bytes(root, len));
            }
        }
    }
}

/// Gathers and scatters among `size` processes.
pub fn gathers_and_scatters(size: u32, stage: &mut impl Stage) {
    use gather::Algorithm as Gather;
    use scatter::Algorithm as Scatter;
    let (one, two) = (Varying::new(size, 1), Varying::new(size, 2));
    let equal = lengths(size, &[0, 5], stage).map(|len| Parts::equal(size, len).expect("blocks that fit"));
    for parts in [one.parts(), two.parts()].into_iter().chain(equal) {
        for (root, in_place) in roots(size).flat_map(|root| [(root, false), (root, true)]) {
            let case = format!("p={size} root={root} {parts:?} {in_place}");
            for algorithm in [Gather::Linear, Gather::Binomial] {
                if algorithm.applicable(&parts).is_ok() {
                    let name = format!("gather {algorithm:?} {case}");
                    let plan = |rank| {
                        gather::plan(seat(rank, size), parts.len(rank), parts, root, in_place, algorithm)
                            .expect("a plan")
                    };
                    gather_case(stage, &name, size, parts, root, in_place, plan);
                }
            }
            for algorithm in [Scatter::Linear, Scatter::Binomial] {
                if algorithm.applicable(&parts).is_ok() {
                    let name = format!("scatter {algorithm:?} {case}");
                    let plan = |rank| {
                        scatter::plan(seat(rank, size), parts.len(rank), parts, root, in_place, algorithm)
                            .expect("a plan")
                    };
                    scatter_case(stage, &name, size, parts, root, in_place, plan);
                }
            }
        }
    }
}

/// A gather of `parts` by `plan`.
pub fn gather_case<S: Schedule>(
    stage: &mut impl Stage,
    name: &str,
    size: u32,
    parts: Parts<'_>,
    root: u32,
    in_place: bool,
    plan: impl Fn(u32) -> S,
) {
    let before = |rank| before(rank, parts, in_place, rank == root);
    let after = |rank| if rank == root { gathered(size, parts) } else { Vec::new() };
    stage.case(name, size, plan, before, after);
}

/// A scatter of `parts` by `plan`.
pub fn scatter_case<S: Schedule>(
    stage: &mut impl Stage,
    name: &str,
    size: u32,
    parts: Parts<'_>,
    root: u32,
    in_place: bool,
    plan: impl Fn(u32) -> S,
) {
    let keeps = |rank| rank == root && in_place;
    let before = |rank| User {
        send: if rank == root { gathered(size, parts) } else { Vec::new() },
        receive: if keeps(rank) { Vec::new() } else { vec![0x55; parts.len(rank) as usize] },
    };
    let after = |rank| if keeps(rank) { Vec::new() } else { bytes(rank, parts.len(rank)) };
    stage.case(name, size, plan, before, after);
}

/// The memory of a rank that has a block of its own, and all ranks' blocks if it is `central`.
fn before(rank: u32, parts: Parts<'_>, in_place: bool, central: bool) -> User {
    let (block, mut receive) = (bytes(rank, parts.len(rank)), vec![0x55; parts.reach() as usize]);
    match (central, in_place) {
        (true, true) => {
            put(&mut receive, parts, rank, &block);
            User { send: Vec::new(), receive }
        }
        (true, false) => User { send: block, receive },
        (false, _) => User { send: block, receive: Vec::new() },
    }
}

/// The blocks of all ranks, with the gaps between them.
fn gathered(size: u32, parts: Parts<'_>) -> Vec<u8> {
    let mut all = vec![0x55; parts.reach() as usize];
    (0..size).for_each(|rank| put(&mut all, parts, rank, &bytes(rank, parts.len(rank))));
    all
}

/// Allgathers among `size` processes.
pub fn allgathers(size: u32, stage: &mut impl Stage) {
    use allgather::Algorithm::{Bagds, Bruck, Doubling, Linear, Ring};
    let (mut work, one, two) = (vec![0; work_words(size)], Varying::new(size, 1), Varying::new(size, 2));
    let stages = stages(size, &mut work).expect("a number of stages");
    let mut words = vec![vec![0; table_words(size, stages)]; size as usize];
    let tables: Vec<_> = (0..)
        .zip(&mut words)
        .map(|(rank, words)| Table::new(seat(rank, size), &mut work, words).expect("a table"))
        .collect();
    for algorithm in [Ring, Bruck, Doubling, Bagds, Linear] {
        if algorithm.applicable(size, !tables.is_empty()).is_err() {
            assert!(algorithm == Doubling && !size.is_power_of_two());
            continue;
        }
        let equal = lengths(size, &[0, 5], stage).map(|len| Parts::equal(size, len).expect("blocks that fit"));
        for parts in [one.parts(), two.parts()].into_iter().chain(equal) {
            for in_place in [false, true] {
                let name = format!("allgather {algorithm:?} p={size} {parts:?} {in_place}");
                let plan = |rank| {
                    let table = Some(tables[rank as usize]);
                    allgather::plan(seat(rank, size), parts, in_place, algorithm, table).expect("a plan")
                };
                allgather_case(stage, &name, size, parts, in_place, plan);
            }
        }
    }
}

/// An allgather of `parts` by `plan`.
pub fn allgather_case<S: Schedule>(
    stage: &mut impl Stage,
    name: &str,
    size: u32,
    parts: Parts<'_>,
    in_place: bool,
    plan: impl Fn(u32) -> S,
) {
    stage.case(name, size, plan, |rank| before(rank, parts, in_place, true), |_| gathered(size, parts));
}

/// Alltoalls among `size` processes.
pub fn alltoalls(size: u32, stage: &mut impl Stage) {
    use alltoall::Algorithm::{Bruck, Linear, Pairwise};
    // The counts are a symmetric matrix, so that they can be used in place, too.
    let count =
        |sender: u32, receiver: u32| mix(u64::from(sender.min(receiver)) << 8 | u64::from(sender.max(receiver))) % 4;
    let rows: Vec<Varying> = (0..size)
        .map(|rank| {
            let counts: Vec<u64> = (0..size).map(|peer| count(rank, peer)).collect();
            let ends = counts.iter().scan(2, |end, count| Some(std::mem::replace(end, *end + count + 1)));
            let displacements = ends.collect();
            Varying { counts, displacements }
        })
        .collect();
    let equal: Vec<_> = lengths(size, &[0, 5], stage).map(Some).collect();
    for algorithm in [Linear, Pairwise, Bruck] {
        for (equal, in_place) in equal.iter().chain([&None]).flat_map(|&equal| [(equal, false), (equal, true)]) {
            let parts = |rank: u32| match equal {
                Some(len) => Parts::equal(size, len).expect("blocks that fit"),
                None => rows[rank as usize].parts(),
            };
            if algorithm.applicable(&parts(0)).is_err() {
                assert!(algorithm == Bruck && equal.is_none());
                continue;
            }
            let name = format!("alltoall {algorithm:?} p={size} {equal:?} {in_place}");
            let plan = |rank| {
                let send = (!in_place).then(|| parts(rank));
                alltoall::plan(seat(rank, size), send, parts(rank), algorithm).expect("a plan")
            };
            alltoall_case(stage, &name, size, in_place, parts, plan);
        }
    }
}

/// An alltoall by `plan`; `parts` are the blocks of each rank for the others, as long as theirs for it.
pub fn alltoall_case<'p, S: Schedule>(
    stage: &mut impl Stage,
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
    stage.case(name, size, plan, before, |rank| filled(rank, &|peer| (peer, rank)));
}

/// Barriers among `size` processes.
pub fn barriers(size: u32, stage: &mut impl Stage) {
    use barrier::Algorithm::{Bruck, Butterfly, Central, Combining, Dissemination, Tournament};
    for algorithm in [Central, Combining(1), Combining(3), Dissemination, Tournament, Bruck, Butterfly] {
        let plan = |rank| barrier::plan(seat(rank, size), algorithm).expect("a plan");
        let nothing = |_| User { send: Vec::new(), receive: Vec::new() };
        stage.case(&format!("barrier {algorithm:?} p={size}"), size, plan, nothing, |_| Vec::new());
    }
}

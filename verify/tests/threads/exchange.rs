//! The exchange collectives between threads, compared with the results that MPI defines: every p from 1
//! to 9, every root, equal and unequal blocks, empty ones, several steps and queues, other datatypes on the
//! other side, in place; mixed with others, so that lines and slots are reused.

use unisono_kernel::Rank;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::blocks::{Block, Blocks};
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::region::Params;
use unisono_kernel::shm::allgather::exchange::allgather;
use unisono_kernel::shm::alltoall::pairwise::{alltoall, alltoallv};
use unisono_kernel::shm::gather::exchange::Gather;
use unisono_kernel::shm::scatter::{scatter, scatterv};
use unisono_local::{Local, Segment, run_on};

type Comm = Communicator<Local>;

/// A queue of few short slots: everything is reused within one operation.
fn params(ranks: u32) -> Params {
    Params { queue_slots: 2, queue_fragment: 512, lines: 8, ..Params::new(ranks) }
}

/// Byte `at` of the block that `from` sends to `to` in round `seed`.
fn byte(seed: usize, from: usize, to: usize, at: usize) -> u8 {
    (seed.wrapping_mul(131) ^ from.wrapping_mul(29) ^ to.wrapping_mul(53) ^ at.wrapping_mul(7) ^ (at >> 8)) as u8
}

fn block(seed: usize, from: usize, to: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| byte(seed, from, to, at)).collect()
}

const BLANK: u8 = 0xEE;

/// Lengths of the ranks' blocks: equal, or the most unequal there are.
fn lengths(ranks: usize, most: usize, equal: bool) -> Vec<u64> {
    (0..ranks).map(|rank| if equal { most } else { (rank * 2 + 1) % ranks * most / ranks } as u64).collect()
}

/// Displacements with a gap after each block, blocks in reverse order.
fn displacements(counts: &[u64]) -> Vec<u64> {
    let mut at = 3;
    let mut all: Vec<u64> = counts
        .iter()
        .rev()
        .map(|count| {
            let here = at;
            at += count + 5;
            here
        })
        .collect();
    all.reverse();
    all
}

fn memory(counts: &[u64]) -> Vec<u8> {
    vec![BLANK; 3 + counts.iter().map(|count| *count as usize + 5).sum::<usize>()]
}

/// Memory in which block r holds `bytes(r)`, where it is given.
fn filled(counts: &[u64], bytes: impl Fn(usize) -> Option<Vec<u8>>) -> Vec<u8> {
    let mut all = memory(counts);
    for (rank, (count, at)) in counts.iter().zip(displacements(counts)).enumerate() {
        if let Some(bytes) = bytes(rank) {
            all[at as usize..(at + count) as usize].copy_from_slice(&bytes);
        }
    }
    all
}

/// Every second byte of memory: a block with holes.
const HOLES: Datatype<'static> = Datatype::Vector { blocks: 1, block: 1, stride: 2 };

fn spread(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| [*byte, BLANK]).collect()
}

/// Blocks with gaps, in reverse order.
fn vary<'a>(memory: &'a mut [u8], counts: &'a [u64], places: &'a [u64]) -> Blocks<'a> {
    // SAFETY: the slice is ours.
    unsafe { Blocks::vary(Buf::of_mut(memory), counts, places, Datatype::BYTE) }.unwrap()
}

fn equal(memory: &mut [u8], ranks: usize, count: usize) -> Blocks<'_> {
    // SAFETY: the slice is ours.
    unsafe { Blocks::equal(Buf::of_mut(memory), ranks as u32, count as u64, Datatype::BYTE) }.unwrap()
}

/// Data of the same bytes with a hole after each, for odd ranks.
fn own(memory: &mut [u8], odd: bool) -> Data<'_> {
    let count = memory.len() as u64;
    if odd {
        let stretched = Datatype::Vector { blocks: count / 2, block: 1, stride: 2 };
        return Data::typed(memory, u64::from(count > 1), stretched).unwrap();
    }
    Data::bytes_mut(memory)
}

fn one(comm: &mut Comm, seed: usize, most: usize, is_equal: bool, in_place: bool) {
    let (me, size) = (comm.rank() as usize, comm.size() as usize);
    let counts = lengths(size, most, is_equal);
    let places = displacements(&counts);
    let len = |rank: usize| counts[rank] as usize;
    let odd = me % 2 == 1;
    for root in 0..size {
        let seed = seed + 1000 * root;
        let is_root = me == root;
        // Gather.
        let mut mine = block(seed, me, root, len(me));
        if odd {
            mine = spread(&mine);
        }
        let send = if is_root && in_place { None } else { Some(own(&mut mine, odd)) };
        let before = |rank| (in_place && rank == root).then(|| block(seed, rank, root, len(rank)));
        let after = filled(&counts, |rank| Some(block(seed, rank, root, len(rank))));
        let mut all = filled(&counts, before);
        let receive = is_root.then(|| vary(&mut all, &counts, &places));
        comm.call(|member| Gather::vary(member, send, receive, root as Rank)).unwrap();
        assert_eq!(all, if is_root { after } else { filled(&counts, before) }, "gatherv, root {root}");
        // Scatter.
        let whole = filled(&counts, |rank| Some(block(seed, root, rank, len(rank))));
        let mut all = if is_root { whole.clone() } else { memory(&counts) };
        let mut mine = vec![BLANK; if odd { 2 * len(me) } else { len(me) }];
        let send = is_root.then(|| vary(&mut all, &counts, &places));
        let receive = if is_root && in_place { None } else { Some(own(&mut mine, odd)) };
        comm.call(|member| scatterv(member, send, receive, root as Rank)).unwrap();
        if !(is_root && in_place) {
            let right = block(seed, root, me, len(me));
            assert_eq!(mine, if odd { spread(&right) } else { right }, "scatterv, root {root}");
        }
        assert!(!is_root || all == whole);
        if is_equal {
            let mut mine = block(seed, me, root, most);
            let mut all: Vec<u8> = (0..size).flat_map(|rank| block(seed, rank, root, most)).collect();
            let right = all.clone();
            if !is_root || !in_place {
                all.fill(BLANK);
            } else {
                all[..root * most].fill(BLANK);
                all[(root + 1) * most..].fill(BLANK);
            }
            let send = if is_root && in_place { None } else { Some(own(&mut mine, false)) };
            let receive = is_root.then(|| equal(&mut all, size, most));
            comm.call(|member| Gather::equal(member, send, receive, root as Rank)).unwrap();
            assert!(!is_root || all == right, "gather, root {root}");
            let mut all: Vec<u8> = (0..size).flat_map(|rank| block(seed, root, rank, most)).collect();
            let mut mine = vec![BLANK; most];
            let send = is_root.then(|| equal(&mut all, size, most));
            let receive = if is_root && in_place { None } else { Some(own(&mut mine, false)) };
            comm.call(|member| scatter(member, send, receive, root as Rank)).unwrap();
            assert!(is_root && in_place || mine == block(seed, root, me, most), "scatter, root {root}");
        }
    }
    // Allgather.
    let mut mine = block(seed, me, 0, len(me));
    if odd {
        mine = spread(&mine);
    }
    let mut all = filled(&counts, |rank| (in_place && rank == me).then(|| block(seed, rank, 0, len(rank))));
    let send = (!in_place).then(|| own(&mut mine, odd));
    let receive = vary(&mut all, &counts, &places);
    comm.call(|member| allgather(member, send, receive)).unwrap();
    assert_eq!(all, filled(&counts, |rank| Some(block(seed, rank, 0, len(rank)))), "allgatherv");
    // Alltoall: what i sends to j has the length of block (i + j) mod p.
    let counts: Vec<u64> = (0..size).map(|rank| counts[(rank + me) % size]).collect();
    let places = displacements(&counts);
    let len = |rank: usize| counts[rank] as usize;
    let sent = filled(&counts, |rank| Some(block(seed, me, rank, len(rank))));
    let mut source = sent.clone();
    let mut all = if in_place { sent.clone() } else { memory(&counts) };
    let send = (!in_place).then(|| vary(&mut source, &counts, &places));
    let receive = vary(&mut all, &counts, &places);
    comm.call(|member| alltoallv(member, send, receive)).unwrap();
    assert_eq!(all, filled(&counts, |rank| Some(block(seed, rank, me, len(rank)))), "alltoallv");
    // Alltoallw: the same lengths, every second block with holes.
    let vector = |len: u64| Datatype::Vector { blocks: len, block: 1, stride: 2 };
    let holes = |rank: usize| rank % 2 == 1 && len(rank) > 0;
    let typed: Vec<Block<'_>> = (0..size)
        .map(|rank| match holes(rank) {
            true => Block { displacement: 2 * places[rank], count: 1, datatype: vector(counts[rank]) },
            false => Block { displacement: 2 * places[rank], count: counts[rank], datatype: Datatype::BYTE },
        })
        .collect();
    let layout = |from: &dyn Fn(usize) -> Vec<u8>| {
        let mut all = vec![BLANK; 2 * memory(&counts).len()];
        for (rank, place) in places.iter().enumerate() {
            let bytes = if holes(rank) { spread(&from(rank)) } else { from(rank) };
            let at = 2 * *place as usize;
            all[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        all
    };
    let mut source = layout(&|rank| block(seed, me, rank, len(rank)));
    let mut all = vec![BLANK; source.len()];
    // SAFETY: the vectors are ours.
    let each = |memory: &mut Vec<u8>| unsafe { Blocks::each(Buf::of_mut(memory), &typed) }.unwrap();
    let (send, receive) = (each(&mut source), each(&mut all));
    comm.call(|member| alltoallv(member, Some(send), receive)).unwrap();
    assert_eq!(all, layout(&|rank| block(seed, rank, me, len(rank))), "alltoallw");
    if is_equal {
        let sent: Vec<u8> = (0..size).flat_map(|rank| block(seed, me, rank, most)).collect();
        let mut source = sent.clone();
        let mut all = if in_place { sent } else { vec![BLANK; size * most] };
        let send = (!in_place).then(|| equal(&mut source, size, most));
        let receive = equal(&mut all, size, most);
        comm.call(|member| alltoall(member, send, receive)).unwrap();
        let right: Vec<u8> = (0..size).flat_map(|rank| block(seed, rank, me, most)).collect();
        assert_eq!(all, right, "alltoall");
    }
    let mut token = [seed as u8; 4];
    comm.bcast(&mut token, (seed % size) as Rank).unwrap();
    assert_eq!(token, [seed as u8; 4]);
}

#[test]
fn blocks_end_where_mpi_says() {
    assert!(HOLES.size() == Some(1));
    for (ranks, lend) in (1..=9).flat_map(|ranks| [(ranks, false), (ranks, true)]) {
        let segment = Segment::new(params(ranks)).unwrap();
        // What is received into holes is not read where it lies: its lenders post it.
        let segment = if lend { segment.lend_from(1) } else { segment };
        run_on(&segment, |mut comm| {
            let mut seed = 0;
            for most in [0, 1, 8, 13, 112, 113, 512, 700, 5000] {
                for is_equal in [true, false] {
                    for in_place in [false, true] {
                        seed += 1;
                        one(&mut comm, seed, most, is_equal, in_place);
                    }
                }
            }
        })
        .unwrap();
    }
}

//! Reductions between threads: every p from 1 to 9, every root, from no elements to several queues full,
//! in place and not, operations that commute and one that does not, every algorithm.

use core::ffi::c_void;
use unisono_kernel::Rank;
use unisono_kernel::algorithm::{AllreduceAlgorithm, ReduceAlgorithm, ScanAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::op::{Op, User};
use unisono_kernel::region::Params;
use unisono_kernel::region::layout::PARTIAL;
use unisono_kernel::shm::reduce::tree;
use unisono_local::{Local, run};

type Comm = Communicator<Local>;

/// x → a·x + b modulo 2⁶⁴, composed: does not commute.
const fn compose(l: [u64; 2], r: [u64; 2]) -> [u64; 2] {
    [l[0].wrapping_mul(r[0]), l[0].wrapping_mul(r[1]).wrapping_add(l[1])]
}

unsafe extern "C-unwind" fn affine(left: *const c_void, right: *mut c_void, count: u64, _: *mut c_void) {
    for i in 0..count as usize {
        let (left, right) = (left.cast::<[u64; 2]>().wrapping_add(i), right.cast::<[u64; 2]>().wrapping_add(i));
        // SAFETY: the kernel's contract: `count` aligned elements.
        let l = unsafe { left.read() };
        // SAFETY: as above.
        let r = unsafe { right.read() };
        // SAFETY: as above, writable.
        unsafe { right.write(compose(l, r)) };
    }
}

fn composition() -> Op {
    // SAFETY: `affine` takes any two arrays of elements of 16 bytes.
    Op::User(unsafe { User::new(affine, core::ptr::null_mut(), 16, false) })
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fold {
    Integers,
    Doubles,
    Maps,
}

impl Fold {
    fn op(self) -> Op {
        match self {
            Self::Integers => Op::SUM_I64,
            Self::Doubles => Op::SUM_F64,
            Self::Maps => composition(),
        }
    }

    const fn words(self) -> usize {
        if matches!(self, Self::Maps) { 2 } else { 1 }
    }

    /// The operand of `rank`: words that no two ranks share; doubles whose sum depends on the order.
    fn operand(self, seed: usize, rank: usize, count: usize) -> Vec<u64> {
        (0..count * self.words())
            .map(|at| {
                let mixed = ((seed * 31 + rank) as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (at as u64) << 7;
                match self {
                    Self::Doubles => (((mixed >> 12) as f64) * 10f64.powi((rank % 5) as i32 * 3)).to_bits(),
                    _ => mixed | 1,
                }
            })
            .collect()
    }

    /// x₀ ∘ (x₁ ∘ (… ∘ xₕ)).
    fn right(self, seed: usize, ranks: usize, count: usize) -> Vec<u64> {
        let mut sum = self.operand(seed, ranks - 1, count);
        for rank in (0..ranks - 1).rev() {
            let left = self.operand(seed, rank, count);
            for (left, sum) in left.chunks(self.words()).zip(sum.chunks_mut(self.words())) {
                match self {
                    Self::Integers => sum[0] = left[0].wrapping_add(sum[0]),
                    Self::Doubles => sum[0] = (f64::from_bits(left[0]) + f64::from_bits(sum[0])).to_bits(),
                    Self::Maps => sum.copy_from_slice(&compose([left[0], left[1]], [sum[0], sum[1]])),
                }
            }
        }
        sum
    }
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// In place the same memory for both sides, else two buffers.
fn sides<'a>(send: &'a mut [u8], receive: &'a mut [u8], in_place: bool) -> (Data<'a>, Data<'a>) {
    let receive = Data::bytes_mut(receive);
    (if in_place { receive } else { Data::bytes_mut(send) }, receive)
}

const BLANK: u8 = 0xEE;

fn one(comm: &mut Comm, seed: usize, fold: Fold, count: usize, in_place: bool) {
    let (me, size, op) = (comm.rank() as usize, comm.size() as usize, fold.op());
    let operand = bytes(&fold.operand(seed, me, count));
    let right = bytes(&fold.right(seed, size, count));
    let fresh = |used: bool| if in_place && used { operand.clone() } else { vec![BLANK; operand.len()] };
    let (mut send, mut receive): (Vec<u8>, Vec<u8>);
    // What fits a line has algorithms of its own, which keep the order of ranks, but may fold along a tree.
    let short = operand.len() as u64 <= tree::MOST;
    let near = |receive: &[u8], right: &[u8]| {
        let near = |(a, b): (&[u8; 8], &[u8; 8])| {
            let (a, b) = (f64::from_ne_bytes(*a), f64::from_ne_bytes(*b));
            (a - b).abs() <= 1e-12 * b.abs()
        };
        receive.as_chunks().0.iter().zip(right.as_chunks().0).all(near)
    };
    let reduces = [
        ReduceAlgorithm::Auto,
        ReduceAlgorithm::Exchange,
        ReduceAlgorithm::Slices,
        ReduceAlgorithm::Groups,
        ReduceAlgorithm::Tree,
    ];
    for (root, algorithm) in (0..size).flat_map(|root| reduces.map(|algorithm| (root, algorithm))) {
        if algorithm == ReduceAlgorithm::Tree && !short {
            continue;
        }
        let mine = me == root;
        (send, receive) = (operand.clone(), fresh(mine));
        let (from, into) = sides(&mut send, &mut receive, in_place && mine);
        let receives = mine.then_some(into);
        comm.run(&Call::Reduce { send: from, receive: receives, op, root: root as Rank, algorithm }).unwrap();
        if mine && fold == Fold::Doubles {
            assert!(near(&receive, &right), "reduce to {root} by {algorithm}");
        } else {
            let wanted = if mine { right.clone() } else { fresh(false) };
            assert_eq!(receive, wanted, "reduce to {root} by {algorithm}");
        }
    }
    let all = [
        AllreduceAlgorithm::Auto,
        AllreduceAlgorithm::Exchange,
        AllreduceAlgorithm::Slices,
        AllreduceAlgorithm::Groups,
        AllreduceAlgorithm::Doubling,
    ];
    let doubled = operand.len() as u64 <= PARTIAL;
    for algorithm in all.into_iter().filter(|algorithm| doubled || *algorithm != AllreduceAlgorithm::Doubling) {
        (send, receive) = (operand.clone(), fresh(true));
        let (from, into) = sides(&mut send, &mut receive, in_place);
        comm.run(&Call::Allreduce { send: from, receive: into, op, algorithm }).unwrap();
        if fold == Fold::Doubles {
            let mut all = vec![0; size * receive.len()];
            // SAFETY: the vector is ours.
            let blocks =
                unsafe { Blocks::equal(Buf::of_mut(&mut all), size as u32, receive.len() as u64, Datatype::BYTE) };
            comm.allgather(Some(Data::bytes_mut(&mut receive)), blocks.unwrap()).unwrap();
            assert!(receive.is_empty() || all.chunks(receive.len()).all(|other| other == receive), "bits differ");
            assert!(near(&receive, &right), "allreduce by {algorithm:?}");
        } else {
            assert_eq!(receive, right, "allreduce by {algorithm:?}");
        }
    }
    // The vector in unequal blocks.
    let counts: Vec<u64> =
        (0..size).map(|rank| ((rank + 1) * count / size - rank * count / size) as u64).rev().collect();
    let places: Vec<u64> = counts.iter().scan(0, |at, count| Some(std::mem::replace(at, *at + count))).collect();
    let element = (8 * fold.words()) as u64;
    let (begin, len) = ((places[me] * element) as usize, (counts[me] * element) as usize);
    send = operand.clone();
    receive = vec![BLANK; len];
    let memory = Buf::of_mut(&mut send);
    // SAFETY: the vector is ours.
    let blocks = unsafe { Blocks::vary(memory, &counts, &places, Datatype::Contiguous { bytes: element }) }.unwrap();
    let into = if in_place {
        // SAFETY: as above; the same memory, in place.
        unsafe { Data::from_raw(Buf::new(memory.ptr(), len), len as u64, Datatype::BYTE) }.unwrap()
    } else {
        Data::bytes_mut(&mut receive)
    };
    comm.reduce_scatter(blocks, into, op).unwrap();
    let found = if in_place { &send[..len] } else { &receive[..] };
    if fold != Fold::Doubles {
        assert_eq!(found, &right[begin..begin + len], "reduce_scatter");
    }
    // Scans: an exscan's result is the scan's of the rank before.
    let scans = [ScanAlgorithm::Auto, ScanAlgorithm::Exchange, ScanAlgorithm::Groups, ScanAlgorithm::Doubling];
    for algorithm in scans.into_iter().filter(|algorithm| short || *algorithm != ScanAlgorithm::Doubling) {
        for (exclusive, ranks) in [(false, me + 1), (true, me)] {
            (send, receive) = (operand.clone(), fresh(true));
            let (from, into) = sides(&mut send, &mut receive, in_place);
            comm.run(&match exclusive {
                false => Call::Scan { send: from, receive: into, op, algorithm },
                true => Call::Exscan { send: from, receive: into, op, algorithm },
            })
            .unwrap();
            let wanted = if ranks == 0 { fresh(true) } else { bytes(&fold.right(seed, ranks, count)) };
            let what = format!("scan of {ranks} by {algorithm}, exclusive {exclusive}");
            // Along a tree doubles are added in another order.
            match fold == Fold::Doubles && algorithm != ScanAlgorithm::Exchange && ranks > 0 {
                true => assert!(near(&receive, &wanted), "{what}"),
                false => assert_eq!(receive, wanted, "{what}"),
            }
            assert!(in_place || send == operand, "{what}: operands are only read");
        }
    }
    comm.barrier().unwrap();
}

#[test]
fn reductions_fold_everyones_operand() {
    for ranks in 1..=9 {
        let params = Params { queue_slots: 2, queue_fragment: 1024, lines: 8, ..Params::new(ranks) };
        run(params, |mut comm| {
            let mut seed = 0;
            for fold in [Fold::Integers, Fold::Doubles, Fold::Maps] {
                for count in [0, 1, 3, 7, 14, 15, 64, 129, 1000] {
                    for in_place in [false, true] {
                        seed += 1;
                        one(&mut comm, seed, fold, count, in_place);
                    }
                }
            }
        })
        .unwrap();
    }
}

/// Among so many ranks, which have a core each as far as the segment says, short operands go by doubling and up a tree.
#[test]
fn short_reductions_of_many_ranks() {
    for ranks in [16, 17, 18, 23, 31, 32, 33, 40] {
        run(Params { lines: 4, ..Params::new(ranks) }, |mut comm| {
            for (seed, count) in [0, 1, 3, 6, 3].into_iter().enumerate() {
                for fold in [Fold::Integers, Fold::Doubles, Fold::Maps] {
                    if count * fold.words() <= 6 {
                        one(&mut comm, seed, fold, count, seed % 2 > 0);
                    }
                }
            }
            let chosen = comm.run(&Call::allreduce(&[0; 48], &mut [0; 48], Op::SUM_I64)).unwrap();
            assert_eq!(chosen.to_string(), if ranks > 16 { "doubling" } else { "posted" });
            let scanned = |comm: &mut Comm, words: usize| {
                let (mut send, mut receive) = (vec![0; 8 * words], vec![0; 8 * words]);
                let (send, receive) = (Data::bytes_mut(&mut send), Data::bytes_mut(&mut receive));
                let call = Call::Scan { send, receive, op: Op::SUM_I64, algorithm: ScanAlgorithm::Auto };
                comm.run(&call).unwrap().to_string()
            };
            assert_eq!(scanned(&mut comm, 6), if ranks >= 32 { "doubling" } else { "exchange" });
            assert_eq!(scanned(&mut comm, 7), if ranks > 16 { "groups" } else { "exchange" });
            assert_eq!(scanned(&mut comm, 600), "groups");
        })
        .unwrap();
    }
}

/// Slots in which not all ranks have room for an element: they take turns.
#[test]
fn slots_that_are_short_for_so_many_ranks() {
    for (ranks, queue_slots) in [(5, 2), (6, 4), (9, 16)] {
        let params = Params { queue_slots, queue_fragment: 64, lines: 8, ..Params::new(ranks) };
        run(params, |mut comm| {
            let mut seed = 0;
            for fold in [Fold::Integers, Fold::Doubles, Fold::Maps] {
                for count in [1, 7, 64, 401] {
                    for in_place in [false, true] {
                        seed += 1;
                        one(&mut comm, seed, fold, count, in_place);
                    }
                }
            }
        })
        .unwrap();
    }
}

/// A user's XOR of opaque elements, whose length is in its context.
unsafe extern "C-unwind" fn xor(left: *const c_void, right: *mut c_void, count: u64, element: *mut c_void) {
    // SAFETY: the context points to the length of an element.
    let bytes = count as usize * unsafe { element.cast::<u64>().read() } as usize;
    // SAFETY: the kernel's contract: `count` elements.
    let left = unsafe { core::slice::from_raw_parts(left.cast::<u8>(), bytes) };
    // SAFETY: as above, writable, apart from the others.
    let right = unsafe { core::slice::from_raw_parts_mut(right.cast::<u8>(), bytes) };
    right.iter_mut().zip(left).for_each(|(right, left)| *right ^= left);
}

/// The longest elements that `unisono.h` promises, among more ranks than a slot of any kind has room for.
#[test]
fn the_longest_elements_of_many_ranks() {
    const ELEMENT: u64 = 4096;
    for (ranks, fragment) in [(10, 32 << 10), (64, 32 << 10), (40, 4096)] {
        for commutative in [true, false] {
            let params = Params { queue_slots: 4, queue_fragment: fragment, lines: 4, ..Params::new(ranks) };
            run(params, |mut comm| {
                let element = ELEMENT;
                // SAFETY: `xor` takes any two arrays of elements of the context's length, which lives as long as the calls.
                let op = unsafe { User::new(xor, (&raw const element).cast_mut().cast(), ELEMENT, commutative) };
                let (me, op) = (comm.rank() as usize, Op::User(op));
                let operand =
                    |rank: usize| (0..ranks as usize * ELEMENT as usize).map(move |at| ((at * (rank + 3)) >> 4) as u8);
                let sum =
                    (0..ranks as usize).fold(vec![0; ranks as usize * ELEMENT as usize], |mut sum: Vec<u8>, rank| {
                        sum.iter_mut().zip(operand(rank)).for_each(|(sum, byte)| *sum ^= byte);
                        sum
                    });
                let (mut send, mut receive): (Vec<u8>, _) = (operand(me).collect(), vec![BLANK; ELEMENT as usize]);
                let memory = Buf::of_mut(&mut send);
                // SAFETY: the vector is ours.
                let blocks =
                    unsafe { Blocks::equal(memory, ranks, 1, Datatype::Contiguous { bytes: ELEMENT }) }.unwrap();
                comm.reduce_scatter(blocks, Data::bytes_mut(&mut receive), op).unwrap();
                assert!(
                    receive == sum[me * ELEMENT as usize..][..ELEMENT as usize],
                    "reduce_scatter at {me} of {ranks}"
                );
                let mut all = vec![BLANK; sum.len()];
                comm.run(&Call::Allreduce {
                    send: Data::bytes_mut(&mut send),
                    receive: Data::bytes_mut(&mut all),
                    op,
                    algorithm: AllreduceAlgorithm::Auto,
                })
                .unwrap();
                assert!(all == sum, "allreduce at {me} of {ranks}");
            })
            .unwrap();
        }
    }
}

/// Small slots and more ranks than one has room for.
#[test]
fn allreduces_of_hundreds_of_ranks_in_small_slots() {
    let ranks = 300;
    let params = Params { queue_slots: 2, queue_fragment: 4096, lines: 2, ..Params::new(ranks) };
    run(params, |mut comm| {
        for count in [129, 1001] {
            one_sum(&mut comm, count);
        }
    })
    .unwrap();
}

fn one_sum(comm: &mut Comm, count: usize) {
    let (me, size) = (u64::from(comm.rank()), u64::from(comm.size()));
    let send = bytes(&(0..count as u64).map(|at| at * me).collect::<Vec<_>>());
    let mut receive = vec![BLANK; send.len()];
    comm.allreduce(&send, &mut receive, Op::SUM_U64).unwrap();
    let sum = size * (size - 1) / 2;
    assert_eq!(receive, bytes(&(0..count as u64).map(|at| at * sum).collect::<Vec<_>>()), "at {me}");
}

//! Calls with bad arguments, and the seams: messages, two levels, nonblocking operations in flight.
//!
//! Bad input: every rank gets an error that names argument, value and bound, at the call or at the
//! next one, and nobody hangs. (A refusal poisons the communicator for good.)

mod common;

use common::{bounded, refusal};
use unisono_kernel::blocks::Blocks;
use unisono_kernel::buffer::Buf;
use unisono_kernel::comm::Comm;
use unisono_kernel::datatype::{Data, Datatype};
use unisono_kernel::driver::Communicator;
use unisono_kernel::error::{Argument, Bound, Error, Refusal};
use unisono_kernel::hier::bcast::{Nodes, two_level};
use unisono_kernel::machine::Machine;
use unisono_kernel::msg::bcast::binomial::Binomial;
use unisono_kernel::op::Op;
use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::region::Params;
use unisono_kernel::select::{BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm};
use unisono_kernel::shm::allgather::exchange::allgather;
use unisono_kernel::shm::gather;
use unisono_kernel::shm::reduce::exchange::Reduce;
use unisono_kernel::step::Step;
use unisono_kernel::transport::{Messages, Shared};
use unisono_local::{Levels, Local, Mailbox, Mailboxes, Segment};

const RANKS: u32 = 4;

type Call = fn(&mut Communicator<Local>) -> Result<(), Error>;

const ALGORITHMS: [BcastAlgorithm; 7] = [
    BcastAlgorithm::Auto,
    BcastAlgorithm::Posted,
    BcastAlgorithm::Queue,
    BcastAlgorithm::Cico(Tree::Flat),
    BcastAlgorithm::Cico(Tree::Chain),
    BcastAlgorithm::Cico(Tree::Kary(2)),
    BcastAlgorithm::Cico(Tree::Knomial(2)),
];

/// Each rank makes `call`, then barriers until one fails; answers the first refusal that each got.
fn refusals(call: impl Fn(&mut Communicator<Local>) -> Result<(), Error> + Send + Sync + 'static) -> Vec<Refusal> {
    refusals_of(RANKS, call)
}

fn refusals_of(
    ranks: u32,
    call: impl Fn(&mut Communicator<Local>) -> Result<(), Error> + Send + Sync + 'static,
) -> Vec<Refusal> {
    let params = Params { lines: 2, queue_slots: 2, ..Params::new(ranks).with_cico() };
    let errors = bounded(move || {
        unisono_local::run(params, |mut c| {
            let error = match call(&mut c) {
                Err(error) => error,
                // Nobody leaves a barrier that one rank never enters.
                Ok(()) => c.barrier().expect_err("the barrier after a refusal must fail"),
            };
            // And so does everything after it.
            for _ in 0..3 {
                assert!(refusal(c.barrier().expect_err("poisoned")).is_some());
            }
            error
        })
        .unwrap()
    });
    errors.into_iter().map(|e| refusal(e).unwrap_or_else(|| panic!("{e} names no argument"))).collect()
}

#[test]
fn a_root_beyond_the_ranks() {
    for algorithm in ALGORITHMS {
        for root in [RANKS, u32::MAX] {
            let wanted = Refusal::new(Argument::Root, root.into(), Bound::Below(RANKS.into()));
            for bad in [0b1111u32, 0b0001, 0b0010, 0b1000, 0b0110] {
                let found = refusals(move |c| {
                    let mut data = [1; 8];
                    let root = if bad >> c.rank() & 1 == 1 { root } else { 0 };
                    c.bcast_with(Data::bytes_mut(&mut data), root, algorithm)
                });
                assert_eq!(found, [wanted; RANKS as usize], "{algorithm:?} on ranks {bad:b}");
            }
        }
    }
}

#[test]
fn lengths_that_differ() {
    for algorithm in ALGORITHMS {
        for (root, others) in [(8, 16), (16, 8), (0, 8), (8, 0), (8, 9), (0, 100_000), (100_000, 0), (70_000, 60_000)] {
            if algorithm == BcastAlgorithm::Posted && root.max(others) > 112 {
                continue;
            }
            // All others differ from the root, or one of them does.
            for odd in [0b1110u32, 0b1000, 0b0010] {
                let found = refusals(move |c| {
                    let mut data = vec![1; if odd >> c.rank() & 1 == 1 { others } else { root }];
                    c.bcast_with(Data::bytes_mut(&mut data), 0, algorithm)
                });
                for Refusal { argument, value, bound } in found {
                    let wanted = [root as u64, others as u64];
                    assert_eq!(argument, Argument::Bytes, "{algorithm:?} {root} {others}");
                    let Bound::Equals(bound) = bound else { panic!("{bound:?}") };
                    assert!(wanted.contains(&value) && wanted.contains(&bound) && value != bound);
                }
            }
        }
    }
}

#[test]
fn auto_where_the_lengths_choose_two_algorithms() {
    for (root, others) in [(8, 4096), (4096, 8), (112, 113), (113, 112)] {
        let found = refusals(move |c| {
            let mut data = vec![1; if c.rank() == 0 { root } else { others }];
            c.bcast(&mut data, 0)
        });
        assert!(found.iter().all(|r| r.argument == Argument::Bytes), "{found:?}");
    }
}

/// Found where the awaited line is posted by another collective. (Beyond two ranks, a rank can wait
/// for a line that no peer's collective posts at all: that is erroneous as in MPI, and only a
/// host's bound of time ends it.)
#[test]
fn another_collective_on_the_other_rank() {
    let found = refusals_of(2, |c| {
        let mut data = [1; 8];
        if c.rank() == 1 { c.allreduce_in_place(&mut data, Op::SUM_I64) } else { c.bcast(&mut data, 0) }
    });
    assert!(found.iter().all(|r| r.argument == Argument::Collective), "{found:?}");
}

#[test]
fn operands_that_do_not_fit() {
    for (bytes, op, wanted) in [
        (57, (|| Op::SUM_F64) as fn() -> Op, Refusal::new(Argument::Bytes, 57, Bound::MultipleOf(8))),
        (49, || Op::SUM_I64, Refusal::new(Argument::Bytes, 49, Bound::MultipleOf(8))),
        (7, || Op::SUM_F64, Refusal::new(Argument::Bytes, 7, Bound::MultipleOf(8))),
    ] {
        for bad in [0b1111u32, 0b0001, 0b0100] {
            let found = refusals(move |c| {
                let mut data = vec![0; if bad >> c.rank() & 1 == 1 { bytes } else { 8 }];
                c.allreduce_in_place(&mut data, op())
            });
            assert_eq!(found, [wanted; RANKS as usize], "ranks {bad:b}");
        }
    }
    let found = refusals(|c| {
        let mut data = vec![0; if c.rank() == 1 { 16 } else { 8 }];
        c.allreduce_in_place(&mut data, Op::SUM_I64)
    });
    assert!(found.iter().all(|r| r.argument == Argument::Bytes), "{found:?}");
    let found = refusals(|c| c.allreduce(&[0; 16], &mut [0; 8], Op::SUM_I64));
    assert_eq!(found, [Refusal::new(Argument::Bytes, 8, Bound::Equals(16)); RANKS as usize]);
}

#[test]
fn arities_and_messages_that_an_algorithm_does_not_carry() {
    let zero = Refusal::new(Argument::Arity, 0, Bound::AtLeast(1));
    let found = refusals(|c| c.barrier_with(BarrierAlgorithm::Combining(if c.rank() == 3 { 0 } else { 2 })));
    assert_eq!(found, [zero; RANKS as usize]);
    let found = refusals(|c| c.bcast_with(Data::bytes_mut(&mut [0; 113]), 0, BcastAlgorithm::Posted));
    assert_eq!(found, [Refusal::new(Argument::Bytes, 113, Bound::AtMost(112)); RANKS as usize]);
}

/// Only messages: what `Binomial` needs.
struct Net(Mailbox);

impl Messages for Net {
    type P2p = Mailbox;
    fn messages(&mut self) -> &mut Mailbox {
        &mut self.0
    }
}

fn finish<X: ?Sized>(machine: &mut impl Machine<X>, x: &mut X) {
    while let Step::Wait(_) = machine.poll(x).expect("a poll that fails") {
        std::thread::yield_now();
    }
}

#[test]
fn binomial_broadcast_over_mailboxes() {
    bounded(|| {
        for size in 1..=17 {
            let boxes = Mailboxes::connect(size);
            std::thread::scope(|scope| {
                for (mailbox, rank) in boxes.into_iter().zip(0..) {
                    scope.spawn(move || {
                        let mut net = Net(mailbox);
                        for root in 0..size {
                            // Two operations per root are under way on different ranks at once.
                            for (operation, bytes) in [(2 * root, 0), (2 * root + 1, 100)] {
                                let sent: Vec<u8> = (0..bytes).map(|i| (i + root * 3 + size) as u8).collect();
                                let mut data = if rank == root { sent.clone() } else { vec![0; bytes as usize] };
                                let buffer = Buf::of_mut(&mut data);
                                // SAFETY: `data` is this thread's, and outlives the machine, which ends below.
                                let machine = unsafe { Binomial::new(rank, size, buffer, root, operation.into()) };
                                finish(&mut machine.unwrap(), &mut net);
                                assert_eq!(data, sent, "p={size} root={root} rank={rank}");
                            }
                        }
                    });
                }
            });
        }
    });
}

#[test]
fn binomial_refuses_ranks_and_roots() {
    for (rank, root, argument, value) in [(3, 0, Argument::Rank, 3), (0, 3, Argument::Root, 3)] {
        // SAFETY: an empty buffer.
        let refused = unsafe { Binomial::new(rank, 3, Buf::of_mut(&mut []), root, 1) };
        assert_eq!(refused, Err(Refusal::new(argument, value, Bound::Below(3))));
    }
}

#[test]
fn two_levels() {
    bounded(|| {
        for (nodes, per_node) in [(2u32, 2u32), (3, 2), (4, 3), (1, 3), (3, 1)] {
            let params = Params { lines: 2, queue_slots: 2, queue_fragment: 64, ..Params::new(per_node) };
            for root in 0..nodes * per_node {
                for bytes in [0, 8, 300] {
                    two_level_case(nodes, params, root, bytes);
                }
            }
        }
    });
}

/// Three broadcasts from one root. Mailboxes are fresh: there is one per node, and it is the leader's.
fn two_level_case(nodes: u32, params: Params, root: u32, bytes: usize) {
    let per_node = params.ranks;
    std::thread::scope(|scope| {
        for (mailbox, node) in Mailboxes::connect(nodes).into_iter().zip(0..nodes) {
            let segment = Segment::new(params).unwrap();
            let leader = if node == root / per_node { root % per_node } else { 0 };
            let mut net = Some(mailbox);
            for rank in 0..per_node {
                // Who does not lead gets a network of its own, and never uses it.
                let mailbox = if rank == leader { net.take() } else { Mailboxes::connect(1).pop() };
                let comm = Comm::new(segment.clone(), *segment.layout(), rank).unwrap();
                let mut x = Levels { comm, mailbox: mailbox.expect("one leader") };
                scope.spawn(move || {
                    let sent: Vec<u8> = (0..bytes).map(|i| (i as u32 + root * 5 + 1) as u8).collect();
                    for algorithm in [BcastAlgorithm::Auto, BcastAlgorithm::Queue, BcastAlgorithm::Auto] {
                        let is_root = node * per_node + rank == root;
                        let mut data = if is_root { sent.clone() } else { vec![0; bytes] };
                        let (nodes, buffer) = (Nodes { nodes, node }, Buf::of_mut(&mut data));
                        let me = x.shared().1;
                        // SAFETY: `data` is this thread's, and outlives the machine, which ends below.
                        let machine = unsafe { two_level(me, nodes, buffer, root, algorithm) };
                        finish(&mut machine.unwrap(), &mut x);
                        assert_eq!(data, sent, "{nodes:?} root={root} rank={rank}");
                    }
                });
            }
        }
    });
}

/// Rank 1 never waits: testing the second of two operations is all that moves the first.
#[test]
fn testing_the_second_operation_moves_the_first() {
    let params = Params::new(2);
    let sums = bounded(move || {
        unisono_local::run(params, |mut c| {
            let rank = c.rank();
            let (mut message, mut sum) = ([if rank == 0 { 7u8 } else { 0 }; 4096], [0u8; 8]);
            let mut work = 0u64;
            c.scope(|scope| {
                let first = scope.start_bcast(Data::bytes_mut(&mut message), 0, BcastAlgorithm::Queue)?;
                let second = scope.start_allreduce(&[1, 0, 0, 0, 0, 0, 0, 0], &mut sum, Op::SUM_I64)?;
                while !scope.test(second)? {
                    // The computation that the operations overlap with.
                    work = work.wrapping_mul(31).wrapping_add(1);
                    std::thread::yield_now();
                }
                // Operations complete in the order of their start: no call was made for the first.
                assert!(scope.test(first)?);
                Ok(())
            })
            .unwrap();
            assert_eq!(message, [7; 4096]);
            sum
        })
        .unwrap()
    });
    assert_eq!(sums, [[2, 0, 0, 0, 0, 0, 0, 0]; 2]);
}

/// Any machine can be in flight: here an allgather, a reduce longer than a line, and paper P2's gather, together.
#[test]
fn collectives_of_all_kinds_in_flight_together() {
    const RANKS: u32 = 3;
    const BLOCK: usize = 200;
    const WORDS: usize = 3000;
    let params = Params { queue_slots: 2, queue_fragment: 64, ..Params::new(RANKS).with_cico() };
    let block = |rank: u32, seed: usize| (0..BLOCK).map(move |at| (at * (seed + 1) + rank as usize) as u8);
    let operand = |rank: u32| (0..WORDS as i64).map(move |at| at * at + i64::from(rank));
    let bytes = |values: &mut dyn Iterator<Item = i64>| values.flat_map(i64::to_ne_bytes).collect::<Vec<u8>>();
    let found = bounded(move || {
        unisono_local::run(params, move |mut c| {
            let rank = c.rank();
            let (mut first, mut last): (Vec<u8>, Vec<u8>) = (block(rank, 0).collect(), block(rank, 1).collect());
            let mut operand = bytes(&mut operand(rank));
            let mut all = vec![0; BLOCK * RANKS as usize];
            let mut ends = all.clone();
            let mut sum = vec![0; 8 * WORDS];
            c.scope(|scope| {
                let blocks = |memory| Blocks::equal_mut(memory, RANKS, BLOCK as u64, Datatype::BYTE);
                let (all, ends) = (blocks(&mut all)?, blocks(&mut ends)?);
                let (first, last) = (Some(Data::bytes_mut(&mut first)), Some(Data::bytes_mut(&mut last)));
                let (operand, sum) = (Data::bytes_mut(&mut operand), Data::bytes_mut(&mut sum));
                let one = scope.start(|me| allgather(me, first, all))?;
                let two = scope.start(|me| Reduce::to_root(me, operand, Some(sum), Op::SUM_I64, 1))?;
                let three = scope.start(|me| gather::cico::Cico::new(me, last, Some(ends), 2))?;
                while !scope.test(three)? {
                    std::thread::yield_now();
                }
                assert!(scope.test(one)? && scope.test(two)?);
                Ok(())
            })
            .unwrap();
            (all, sum, ends)
        })
        .unwrap()
    });
    let blocks = |seed| (0..RANKS).flat_map(|rank| block(rank, seed)).collect::<Vec<u8>>();
    let sums = bytes(&mut (0..WORDS).map(|at| (0..RANKS).map(|rank| operand(rank).nth(at).unwrap()).sum()));
    for (rank, (all, sum, ends)) in found.into_iter().enumerate() {
        assert_eq!(all, blocks(0), "allgather on rank {rank}");
        assert_eq!(sum, if rank == 1 { sums.clone() } else { vec![0; 8 * WORDS] }, "reduce on rank {rank}");
        assert_eq!(ends, if rank == 2 { blocks(1) } else { vec![0; ends.len()] }, "gather on rank {rank}");
    }
}

/// Paper P2's algorithms want queues of the papers, as paper P1's broadcast does.
#[test]
fn a_segment_without_the_papers_queues() {
    let calls: [Call; 4] = [
        |c| c.bcast_with(Data::bytes_mut(&mut [0; 8]), 0, BcastAlgorithm::Cico(Tree::Flat)),
        |c| moved(c, |c, one, all| c.gather_with(Some(one), Some(all), 0, MoveAlgorithm::Cico)),
        |c| moved(c, |c, one, all| c.scatterv_with(Some(all), Some(one), 0, MoveAlgorithm::Cico)),
        |c| moved(c, |c, one, all| c.allgather_with(Some(one), all, MoveAlgorithm::Cico)),
    ];
    for call in calls {
        let answers = bounded(move || unisono_local::run(Params::new(2), move |mut c| call(&mut c)).unwrap());
        for answer in answers {
            let wanted = Refusal::new(Argument::Slots, 0, Bound::AtLeast(1));
            assert_eq!(answer.err().and_then(refusal), Some(wanted));
        }
    }
}

/// A call on one block of 8 bytes, and one for each rank.
fn moved(
    c: &mut Communicator<Local>,
    call: impl FnOnce(&mut Communicator<Local>, Data<'_>, Blocks<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut one, mut all) = ([0; 8], vec![0; 8 * c.size() as usize]);
    let blocks = Blocks::equal_mut(&mut all, c.size(), 8, Datatype::BYTE)?;
    call(c, Data::bytes_mut(&mut one), blocks)
}

/// One thread holds both ends, so the order is certain: the second operation can't be complete
/// before the peer acts, and a test of it completes the first as soon as its message is there.
#[test]
fn requests_complete_in_order_and_a_full_scope_refuses() {
    let segment = Segment::new(Params { lines: 16, ..Params::new(2) }).unwrap();
    let layout = *segment.layout();
    let end = |rank| Communicator::<Local>::new(segment.clone(), layout, rank, unisono_local::waiting(2)).unwrap();
    let (mut root, mut other) = (end(0), end(1));
    let mut received = [[0u8; 8]; 9];
    other
        .scope(|scope| {
            let mut requests = Vec::new();
            for buffer in received.iter_mut().take(8) {
                requests.push(scope.start_bcast(Data::bytes_mut(buffer), 0, BcastAlgorithm::Posted)?);
            }
            let full = scope.start_barrier(BarrierAlgorithm::Central).unwrap_err();
            assert_eq!(refusal(full), Some(Refusal::new(Argument::Requests, 9, Bound::AtMost(8))));
            assert!(!scope.test(requests[0])?);
            for done in 0..8 {
                root.bcast(&mut [done as u8 + 1; 8], 0)?;
                // The last one's test moves the oldest.
                assert_eq!(scope.test(requests[7])?, done == 7);
                for (index, &request) in requests.iter().enumerate() {
                    assert_eq!(scope.test(request)?, index <= done);
                }
            }
            Ok(())
        })
        .unwrap();
    for (index, bytes) in received.iter().enumerate().take(8) {
        assert_eq!(*bytes, [index as u8 + 1; 8]);
    }
}

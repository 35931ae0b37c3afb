//! Calls with bad arguments: every rank gets an error that names argument, value and bound, at the call or at the
//! next one, and no rank hangs. (A refusal poisons the communicator for good.)

use crate::common::{bounded, refusal};
use unisono_kernel::algorithm::{AllreduceAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::{Argument, Bound, Condition, Error, Refusal};
use unisono_kernel::op::Op;
use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::region::Params;
use unisono_local::Local;

const RANKS: u32 = 4;

type Body = fn(&mut Communicator<Local>) -> Result<(), Error>;

const ALGORITHMS: [BcastAlgorithm; 8] = [
    BcastAlgorithm::Auto,
    BcastAlgorithm::Posted,
    BcastAlgorithm::Groups,
    BcastAlgorithm::Queue,
    BcastAlgorithm::Cico(Tree::Flat),
    BcastAlgorithm::Cico(Tree::Chain),
    BcastAlgorithm::Cico(Tree::Kary(2)),
    BcastAlgorithm::Cico(Tree::Knomial(2)),
];

/// Each rank makes `call`, then barriers until one fails; returns the first refusal that each got.
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
                    c.run(&Call::Bcast { data: Data::bytes_mut(&mut data), root, algorithm }).map(drop)
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
            if matches!(algorithm, BcastAlgorithm::Posted | BcastAlgorithm::Groups) && root.max(others) > 112 {
                continue;
            }
            // All others differ from the root, or one of them does.
            for odd in [0b1110u32, 0b1000, 0b0010] {
                let found = refusals(move |c| {
                    let mut data = vec![1; if odd >> c.rank() & 1 == 1 { others } else { root }];
                    c.run(&Call::Bcast { data: Data::bytes_mut(&mut data), root: 0, algorithm }).map(drop)
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
    let found = refusals(|c| {
        c.run(&Call::Barrier { algorithm: BarrierAlgorithm::Combining(if c.rank() == 3 { 0 } else { 2 }) }).map(drop)
    });
    assert_eq!(found, [zero; RANKS as usize]);
    let found = refusals(|c| {
        c.run(&Call::Bcast { data: Data::bytes_mut(&mut [0; 113]), root: 0, algorithm: BcastAlgorithm::Posted })
            .map(drop)
    });
    assert_eq!(found, [Refusal::new(Argument::Bytes, 113, Bound::AtMost(112)); RANKS as usize]);
}

/// An op's elements have no holes: data with some is refused, but for an allreduce of a line.
#[test]
fn reductions_of_data_with_holes() {
    const HOLED: Datatype<'static> = Datatype::Vector { blocks: 2, block: 64, stride: 128 };
    let wanted = Refusal::not(Argument::Datatype, Condition::Contiguous);
    let calls: [Body; 5] = [
        |c| {
            let (mut send, mut receive) = ([0; 192], [0; 128]);
            let (send, receive) = (Data::typed(&mut send, 1, HOLED)?, Data::bytes_mut(&mut receive));
            c.run(&Call::Allreduce { send, receive, op: Op::SUM_I64, algorithm: AllreduceAlgorithm::Auto }).map(drop)
        },
        |c| {
            let (mut send, mut receive) = ([0; 128], [0; 192]);
            let (send, receive) = (Data::bytes_mut(&mut send), Data::typed(&mut receive, 1, HOLED)?);
            c.run(&Call::Allreduce { send, receive, op: Op::SUM_I64, algorithm: AllreduceAlgorithm::Auto }).map(drop)
        },
        |c| c.reduce(Data::typed(&mut [0; 192], 1, HOLED)?, Some(Data::bytes_mut(&mut [0; 128])), Op::SUM_I64, 0),
        |c| c.scan(Data::typed(&mut [0; 192], 1, HOLED)?, Data::bytes_mut(&mut [0; 128]), Op::SUM_I64),
        |c| c.exscan(Data::bytes_mut(&mut [0; 128]), Data::typed(&mut [0; 192], 1, HOLED)?, Op::SUM_I64),
    ];
    for call in calls {
        assert_eq!(refusals(call), [wanted; RANKS as usize]);
    }
}

/// Paper P2's algorithms need queues of the papers, as paper P1's broadcast does.
#[test]
fn a_segment_without_the_papers_queues() {
    let calls: [Body; 4] = [
        |c| {
            c.run(&Call::Bcast {
                data: Data::bytes_mut(&mut [0; 8]),
                root: 0,
                algorithm: BcastAlgorithm::Cico(Tree::Flat),
            })
            .map(drop)
        },
        |c| {
            moved(c, |c, one, all| {
                c.run(&Call::Gather { send: Some(one), receive: Some(all), root: 0, algorithm: MoveAlgorithm::Cico })
                    .map(drop)
            })
        },
        |c| {
            moved(c, |c, one, all| {
                c.run(&Call::Scatterv { send: Some(all), receive: Some(one), root: 0, algorithm: MoveAlgorithm::Cico })
                    .map(drop)
            })
        },
        |c| {
            moved(c, |c, one, all| {
                c.run(&Call::Allgather { send: Some(one), receive: all, algorithm: MoveAlgorithm::Cico }).map(drop)
            })
        },
    ];
    for call in calls {
        let answers = bounded(move || unisono_local::run(Params::new(2), move |mut c| call(&mut c)).unwrap());
        for answer in answers {
            let wanted = Refusal::not(Argument::Slots, Condition::PaperQueues);
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

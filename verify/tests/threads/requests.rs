//! Nonblocking operations: several requests of one process in flight, which complete in the order of their start.

use crate::common::{bounded, refusal};
use unisono_kernel::algorithm::{BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::op::Op;
use unisono_kernel::region::Params;
use unisono_kernel::shm::allgather::exchange::allgather;
use unisono_kernel::shm::papers::gather::P2Gather;
use unisono_kernel::shm::reduce::exchange::Reduce;
use unisono_local::{Local, Segment};

/// Rank 1 never waits: only its tests of the second operation move the first one.
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
                let one = scope.start_with(|me| allgather(me, first, all))?;
                let two = scope.start_with(|me| Reduce::to_root(me, operand, Some(sum), Op::SUM_I64, 1))?;
                let three = scope.start_with(|me| P2Gather::new(me, last, Some(ends), 2))?;
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

/// One thread holds both ranks, so the order is certain: the second operation can't be complete
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

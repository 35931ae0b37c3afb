//! An algorithm that does not apply is refused by name; and so are arguments out of bounds and memory that is too
//! short.

use super::seat;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::msg::{
    Memory, Needs, Parts, PlanError, Rounds, Schedule, allgather, allreduce, alltoall, bcast, gather, reduce,
    reduce_scatter, scan, scatter,
};
use unisono_kernel::op::Op;
use unisono_kernel::pattern::bagds::{Table, table_words, work_words};
use unisono_verify::network::{Mode, run};
use unisono_verify::oracle::Fold;

#[test]
fn algorithms_that_do_not_apply() {
    let (me, equal) = (seat(1, 6), Parts::equal(6, 8).unwrap());
    let (counts, displacements) = ([8; 6], [0, 8, 16, 24, 32, 40]);
    let vary = Parts::vary(6, &counts, &displacements, 8).unwrap();
    let affine = Fold::Affine.op();
    let of = |error: PlanError| match error {
        PlanError::Inapplicable { algorithm, needs } => (algorithm.to_string(), needs),
        other => panic!("{other}"),
    };
    let ring = |algorithm| of(allreduce::plan(me, 64, affine, false, algorithm).unwrap_err());
    assert_eq!(ring(allreduce::Algorithm::Ring), ("allreduce/ring".into(), Needs::Commutative));
    assert_eq!(
        ring(allreduce::Algorithm::SegmentedRing(64)),
        ("allreduce/segmented-ring-64".into(), Needs::Commutative)
    );
    let error = reduce_scatter::plan(me, equal, affine, false, reduce_scatter::Algorithm::Ring).unwrap_err();
    assert_eq!(of(error), ("reduce_scatter/ring".into(), Needs::Commutative));
    let error = allgather::plan(me, equal, false, allgather::Algorithm::Doubling, None).unwrap_err();
    assert_eq!(of(error), ("allgather/doubling".into(), Needs::PowerOfTwo(6)));
    let error = allgather::plan(me, equal, false, allgather::Algorithm::Bagds, None).unwrap_err();
    assert_eq!(of(error), ("allgather/bagds".into(), Needs::Table));
    let error = gather::plan(me, 8, vary, 0, false, gather::Algorithm::Binomial).unwrap_err();
    assert_eq!(of(error), ("gather/binomial".into(), Needs::EqualBlocks));
    let error = scatter::plan(me, 8, vary, 0, false, scatter::Algorithm::Binomial).unwrap_err();
    assert_eq!(of(error), ("scatter/binomial".into(), Needs::EqualBlocks));
    let error = alltoall::plan(me, Some(equal), vary, alltoall::Algorithm::Bruck).unwrap_err();
    assert_eq!(of(error), ("alltoall/bruck".into(), Needs::EqualBlocks));
}

#[test]
fn arguments_out_of_bounds() {
    let me = seat(1, 6);
    let root = Refusal::new(Argument::Root, 6, Bound::Below(6));
    for algorithm in [bcast::Algorithm::Flat, bcast::Algorithm::ScatterAllgather] {
        assert_eq!(bcast::plan(me, 8, 6, algorithm).unwrap_err(), root);
    }
    for algorithm in [reduce::Algorithm::Flat, reduce::Algorithm::ScatterGather] {
        assert_eq!(reduce::plan(me, 8, Op::SUM_I64, 6, false, algorithm).unwrap_err(), root);
    }
    let error = bcast::plan(me, 8, 0, bcast::Algorithm::Chain(0)).unwrap_err();
    assert_eq!(error, Refusal::new(Argument::Fragment, 0, Bound::AtLeast(1)));
    let error = bcast::plan(me, 8, 0, bcast::Algorithm::Knomial(1)).unwrap_err();
    assert_eq!(error, Refusal::new(Argument::Arity, 1, Bound::AtLeast(2)));
    let odd = Refusal::new(Argument::Bytes, 9, Bound::MultipleOf(8));
    assert_eq!(scan::plan(me, 9, Op::SUM_I64, false, false, scan::Algorithm::Doubling).unwrap_err(), odd);
    let error = allreduce::plan(me, 9, Op::SUM_I64, false, allreduce::Algorithm::Ring).unwrap_err();
    assert_eq!(error, PlanError::Refused(odd));
    let error = Parts::vary(6, &[0; 6], &[0; 5], 1).unwrap_err();
    assert_eq!(error, Refusal::new(Argument::Displacements, 5, Bound::Equals(6)));
    assert_eq!(Parts::vary(2, &[1, 2], &[0, u64::MAX], 1).unwrap_err().argument, Argument::Extent);
    assert_eq!(Parts::equal(4, u64::MAX / 2).unwrap_err().argument, Argument::Bytes);
    let error = bcast::plan(me, u64::MAX, 0, bcast::Algorithm::Flat).unwrap_err();
    assert_eq!(error, Refusal::new(Argument::Bytes, u64::MAX, Bound::AtMost(1 << 61)));
    let error = allgather::plan(me, Parts::equal(5, 8).unwrap(), false, allgather::Algorithm::Ring, None).unwrap_err();
    assert_eq!(error, PlanError::Refused(Refusal::new(Argument::Ranks, 5, Bound::Equals(6))));
    let own = gather::plan(seat(0, 2), 7, Parts::equal(2, 8).unwrap(), 0, false, gather::Algorithm::Linear);
    assert_eq!(own.unwrap_err(), PlanError::Refused(Refusal::new(Argument::Bytes, 7, Bound::Equals(8))));
}

/// Two processes with different lengths: the layer's error names the right peer.
#[test]
fn lengths_that_differ() {
    let plan = |rank| bcast::plan(seat(rank, 2), 8 + u64::from(rank), 0, bcast::Algorithm::Flat).unwrap();
    let mut memory = [vec![0; 8], vec![0; 9]];
    let make = |(rank, receive): (u32, &mut Vec<u8>)| {
        let memory = Memory { send: Memory::NOTHING, receive: Buf::of_mut(receive), scratch: Memory::NOTHING };
        // SAFETY: the vectors outlive the machines, and are touched by nobody else until then.
        unsafe { Rounds::of(plan(rank), memory, 1) }.unwrap()
    };
    let mut machines: Vec<_> = (0..).zip(&mut memory).map(make).collect();
    let fault = run(&mut machines, Mode::Eager, 1).unwrap_err();
    assert_eq!(fault, "rank 1: a message to or from rank 0 has another length than its receive");
}

/// A process that waits for a receive and for a send names both peers.
#[test]
fn a_wait_for_two_peers() {
    let plan =
        allgather::plan(seat(1, 3), Parts::equal(3, 4).unwrap(), false, allgather::Algorithm::Ring, None).unwrap();
    let (send, mut receive) = ([1; 4], [0; 12]);
    let memory = Memory { send: Buf::of(&send), receive: Buf::of_mut(&mut receive), scratch: Memory::NOTHING };
    // SAFETY: the arrays outlive the machine, and are touched by nobody else until then.
    let machine = unsafe { Rounds::of(plan, memory, 1) }.unwrap();
    let fault = run(&mut [None, Some(machine), None], Mode::Rendezvous, 1).unwrap_err();
    assert!(fault.starts_with("deadlock"), "{fault}");
    assert!(fault.contains("peer: Some(0)") && fault.contains("peer: Some(2)"), "{fault}");
}

#[test]
fn a_table_for_others() {
    let (mut work, mut words) = (vec![0; work_words(4)], vec![0; table_words(4, 2)]);
    let table = Table::new(seat(1, 4), &mut work, &mut words).unwrap();
    let parts = Parts::equal(6, 8).unwrap();
    let error = allgather::plan(seat(1, 6), parts, false, allgather::Algorithm::Bagds, Some(table)).unwrap_err();
    assert_eq!(error, PlanError::Refused(Refusal::new(Argument::Ranks, 4, Bound::Equals(6))));
}

#[test]
fn memory_that_is_too_short() {
    let plan = allreduce::plan(seat(1, 6), 64, Op::SUM_I64, false, allreduce::Algorithm::Doubling).unwrap();
    let needed = plan.bytes();
    assert_eq!((needed.send, needed.receive), (64, 64));
    let refused = |send: u64, receive: u64, scratch: u64| {
        let (send, mut receive, mut scratch) =
            (vec![0; send as usize], vec![0; receive as usize], vec![0; scratch as usize]);
        let memory =
            Memory { send: Buf::of(&send), receive: Buf::of_mut(&mut receive), scratch: Buf::of_mut(&mut scratch) };
        // SAFETY: the vectors live through the call; no poll follows.
        unsafe { Rounds::of(plan, memory, 1) }.err()
    };
    let short = |argument, value, bound| Some(Refusal::new(argument, value, Bound::AtLeast(bound)));
    assert_eq!(refused(63, 64, 64), short(Argument::Bytes, 63, 64));
    assert_eq!(refused(64, 63, 64), short(Argument::Bytes, 63, 64));
    let (scratch, enough) = (needed.scratch.saturating_sub(1), needed.scratch);
    // Rank 1 is outside the core, and needs none.
    assert_eq!((enough, scratch), (0, 0));
    assert_eq!(refused(64, 64, enough), None);
    let inside = allreduce::plan(seat(0, 6), 64, Op::SUM_I64, false, allreduce::Algorithm::Doubling).unwrap();
    assert_eq!(inside.bytes().scratch, 64);
}

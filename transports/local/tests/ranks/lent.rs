//! Where all memory is lent, no bytes of messages are written to the segment: results of slices, too, are read where they lie.

use unisono_kernel::comm::Communicator;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::op::Op;
use unisono_kernel::region::{Params, Region};
use unisono_local::{Local, Segment, run_on};

/// Are all slots of the segment as they were made?
fn is_untouched(segment: &Segment) -> bool {
    let layout = segment.layout();
    let slots = u64::from(layout.params().queue_slots);
    (0..layout.ranks()).flat_map(|rank| (0..slots).map(move |clock| (rank, clock))).all(|(rank, clock)| {
        let slot = layout.slot(rank, clock);
        let mut bytes = vec![1; slot.len() as usize];
        // SAFETY: the ranks have ended; the vector is ours.
        unsafe { segment.read(slot, Buf::of_mut(&mut bytes)) };
        bytes.iter().all(|byte| *byte == 0)
    })
}

#[test]
fn an_allreduce_of_lent_memory_moves_nothing_through_slots() {
    for (ranks, words) in [(2, 40_000), (3, 3001), (4, 40_000), (5, 6)] {
        let segment = Segment::new(Params::new(ranks)).unwrap().lend_from(1);
        let value = |rank: u32, at: usize, round: u64| u64::from(rank + 1) * 1000 + at as u64 * 7 + round;
        run_on(&segment, |mut comm| {
            let me = comm.rank();
            let own = |round| (0..words).flat_map(|at| value(me, at, round).to_ne_bytes()).collect::<Vec<u8>>();
            let expected = |round| {
                let sum = |at| (0..ranks).map(|rank| value(rank, at, round)).sum::<u64>();
                (0..words).flat_map(|at| sum(at).to_ne_bytes()).collect::<Vec<u8>>()
            };
            let mut receive = vec![0xee; 8 * words];
            for round in 0..20 {
                let mut send = own(round);
                if round % 2 == 0 {
                    comm.allreduce(&send, &mut receive, Op::SUM_U64).unwrap();
                    assert_eq!(receive, expected(round), "{ranks} ranks, {words} words, round {round}");
                } else {
                    comm.allreduce_in_place(&mut send, Op::SUM_U64).unwrap();
                    assert_eq!(send, expected(round), "{ranks} ranks, {words} words, round {round}");
                }
                // As soon as a call returns, nothing of it is read any more.
                send.fill(0xdd);
                receive.fill(0xee);
            }
        })
        .unwrap();
        assert!(is_untouched(&segment), "{ranks} ranks, {words} words");
    }
}

/// Rank 0 of two sends its message by a broadcast, which writes it to `first`; then `next` follows. Does that write
/// anything to slots?
fn passes_slots(next: impl Fn(&mut Communicator<Local>, [&mut [u8]; 2]) + Sync) -> bool {
    let segment = Segment::new(Params::new(2)).unwrap().lend_from(1);
    run_on(&segment, |mut comm| {
        let [mut first, mut second] = [comm.rank() as u8 + 1, 0].map(|value| vec![value; 300_000]);
        comm.bcast(&mut first, 0).unwrap();
        assert_eq!(first, [1; 300_000]);
        assert!(is_untouched(&segment));
        comm.barrier().unwrap();
        next(&mut comm, [&mut first, &mut second]);
    })
    .unwrap();
    !is_untouched(&segment)
}

#[test]
fn what_the_operation_before_has_received_is_not_lent() {
    let bcast = |comm: &mut Communicator<Local>, buffer: &mut [u8], root: u32| {
        if comm.rank() == root {
            buffer.fill(7);
        }
        comm.bcast(buffer, root).unwrap();
        assert_eq!(buffer, [7; 300_000]);
    };
    assert!(passes_slots(|comm, [first, _]| bcast(comm, first, 1)), "rank 1 sends on what it has received");
    assert!(!passes_slots(|comm, [first, _]| bcast(comm, first, 0)), "rank 0 sends again");
    assert!(!passes_slots(|comm, [_, second]| bcast(comm, second, 1)), "rank 1 sends something else");

    let allreduce = |comm: &mut Communicator<Local>, receive: &mut [u8]| {
        comm.allreduce(&[3; 300_000], receive, Op::SUM_U64).unwrap();
        assert_eq!(receive, [6; 300_000]);
    };
    assert!(passes_slots(|comm, [first, _]| {
        allreduce(comm, first);
        allreduce(comm, first);
    }));
    assert!(!passes_slots(|comm, [first, second]| {
        allreduce(comm, second);
        allreduce(comm, first);
        allreduce(comm, second);
    }));
}

#[test]
fn what_the_operation_before_has_received_is_not_lent_in_place() {
    let in_place = |comm: &mut Communicator<Local>, buffer: &mut [u8]| {
        buffer.fill(3);
        comm.allreduce_in_place(buffer, Op::SUM_U64).unwrap();
        assert_eq!(buffer, [6; 300_000]);
    };
    assert!(!passes_slots(|comm, [_, second]| in_place(comm, second)));
    assert!(passes_slots(|comm, [first, _]| in_place(comm, first)), "rank 1 has received it by the broadcast");
    assert!(passes_slots(|comm, [_, second]| {
        in_place(comm, second);
        in_place(comm, second);
    }));
    assert!(!passes_slots(|comm, [first, second]| {
        in_place(comm, second);
        comm.bcast(first, 0).unwrap();
        in_place(comm, second);
    }));
}

/// A root copies its own block last where it could lend it: it is in its place like those of others.
#[test]
fn a_gather_of_lent_blocks_has_the_roots_own_block_too() {
    for (ranks, bytes) in [(1, 40_000), (2, 40_000), (3, 40_000), (3, 300_000), (4, 5000)] {
        let segment = Segment::new(Params::new(ranks)).unwrap().lend_from(1);
        run_on(&segment, |mut comm| {
            let me = comm.rank();
            for root in (0..ranks).cycle().take(8) {
                let block = |rank: u32| (0..bytes).map(move |at| (at as u32 * 7 + rank * 31 + root) as u8);
                let mut send: Vec<u8> = block(me).collect();
                let mut all = vec![0xee; if me == root { bytes * ranks as usize } else { 0 }];
                let receive =
                    (me == root).then(|| Blocks::equal_mut(&mut all, ranks, bytes as u64, Datatype::BYTE).unwrap());
                comm.gather(Some(Data::bytes_mut(&mut send)), receive, root).unwrap();
                // As soon as a call returns, nothing of it is read any more.
                send.fill(0xdd);
                assert!(
                    me != root || (0..ranks).flat_map(block).eq(all.iter().copied()),
                    "{ranks} ranks, {bytes} bytes"
                );
            }
        })
        .unwrap();
        assert!(is_untouched(&segment), "{ranks} ranks, {bytes} bytes");
    }
}

/// The root's operand lies where its result will: what it copies of a loan must not overwrite parts that it has still to
/// post.
#[test]
fn a_reduce_in_place_takes_no_more_of_a_loan_than_it_has_posted() {
    for (ranks, root) in [(2, 0), (3, 0), (3, 1), (3, 2), (4, 1)] {
        let segment = Segment::new(Params { queue_slots: 2, queue_fragment: 1024, ..Params::new(ranks) }).unwrap();
        let value = |rank: u32, at: u64| u64::from(rank + 1) * 1000 + at * 7;
        run_on(&segment.lend_from(1), |mut comm| {
            let me = comm.rank();
            let mut send: Vec<u8> = (0..2500).flat_map(|at| value(me, at).to_ne_bytes()).collect();
            let data = Data::bytes_mut(&mut send);
            comm.reduce(data, (me == root).then_some(data), Op::SUM_U64, root).unwrap();
            if me == root {
                let sum = |at| (0..ranks).map(|rank| value(rank, at)).sum::<u64>();
                let expected: Vec<u8> = (0..2500).flat_map(|at| sum(at).to_ne_bytes()).collect();
                assert!(send == expected, "{ranks} ranks, root {root}");
            }
        })
        .unwrap();
    }
}

/// Rank 0 of a scan or an exscan folds nothing into its operand, so that it lends it in place, too.
#[test]
fn rank_0_of_a_scan_lends_in_place() {
    for exclusive in [false, true] {
        assert!(!passes_slots(|comm, [send, receive]| {
            for round in 0..3 {
                let me = comm.rank();
                send.fill(me as u8 + round + 1);
                let (send, own) = (Data::bytes_mut(send), Data::bytes_mut(receive));
                let receive = if me == 0 { send } else { own };
                if exclusive {
                    comm.exscan(send, receive, Op::SUM_U64).unwrap();
                } else {
                    comm.scan(send, receive, Op::SUM_U64).unwrap();
                }
                let own = [round + 1, round + 2][me as usize];
                let below = if me == 0 { 0 } else { round + 1 };
                let expected = if me > 0 && exclusive { below } else { own + below };
                let result = receive.as_contiguous().unwrap();
                // SAFETY: the memory is this test's.
                let result = unsafe { std::slice::from_raw_parts(result.ptr(), result.len()) };
                assert!(result.iter().all(|byte| *byte == expected), "rank {me}, round {round}");
            }
        }));
    }
}

/// The other's operand is copied and folded with the root's own in pieces, the last of which may be short.
#[test]
fn a_reduce_of_two_folds_what_is_lent_in_pieces() {
    for words in [1024, 1025, 1537, 4095, 40_001] {
        let segment = Segment::new(Params::new(2)).unwrap().lend_from(1);
        run_on(&segment, |mut comm| {
            let me = comm.rank();
            for root in [0, 1, 1, 0] {
                let value = |rank: u32, at: u64| u64::from(rank + 1) * 1000 + at * 7 + u64::from(root);
                let mut send: Vec<u8> = (0..words).flat_map(|at| value(me, at).to_ne_bytes()).collect();
                let mut sums = vec![0xee; send.len() + 8];
                let receive = (me == root).then(|| Data::bytes_mut(&mut sums[..8 * words as usize]));
                comm.reduce(Data::bytes_mut(&mut send), receive, Op::SUM_U64, root).unwrap();
                // As soon as a call returns, nothing of it is read any more.
                send.fill(0xdd);
                let sum = |at| (value(0, at) + value(1, at)).to_ne_bytes();
                assert!(
                    me != root || (0..words).flat_map(sum).chain([0xee; 8]).eq(sums.iter().copied()),
                    "{words}, {root}"
                );
            }
        })
        .unwrap();
        assert!(is_untouched(&segment), "{words} words");
    }
}

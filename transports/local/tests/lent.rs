//! Where all memory is lent, no bytes of messages are written to the segment: results of slices, too, are read where they lie.

use unisono_kernel::data::buffer::Buf;
use unisono_kernel::op::Op;
use unisono_kernel::region::{Params, Region};
use unisono_local::{Segment, run_on};

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
    for (ranks, words) in [(2, 2000), (3, 3001), (4, 40_000), (5, 6)] {
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

//! Bad input: every rank gets an error that names argument, value and bound, and no rank hangs.

use super::*;
use unisono_kernel::comm::Member;
use unisono_kernel::machine::Operation;
use unisono_kernel::region::{Base, Counter, Layout, Mailword, Region};
use unisono_kernel::shm::papers::gather::P2Gather;
use unisono_kernel::shm::papers::scatter::P2Scatter;

/// The refused argument in an error, of this rank or of the rank that poisoned the communicator.
fn refusal(error: Error) -> Option<Refusal> {
    match error {
        Error::Refused(refusal) | Error::Poll(PollError::Mismatch { refusal, .. }) => Some(refusal),
        Error::Poisoned(poison) => match poison.cause {
            Cause::Refused(refusal) => Some(refusal),
            _ => None,
        },
        _ => None,
    }
}

/// Each rank makes `call`, then barriers until one fails; returns the first refusal that each got.
fn refusals(call: impl Fn(&mut Communicator<Local>) -> Result<(), Error> + Send + Sync + 'static) -> Vec<Refusal> {
    let errors = bounded(move || {
        unisono_local::run(params(P as u32), |mut c| match call(&mut c) {
            Err(error) => error,
            Ok(()) => c.barrier().expect_err("the barrier after a refusal must fail"),
        })
        .unwrap()
    });
    errors.into_iter().map(|e| refusal(e).unwrap_or_else(|| panic!("{e} names no argument"))).collect()
}

/// One collective with the counts, displacements and own bytes that this rank believes in.
fn call_with(
    c: &mut Communicator<Local>,
    what: What,
    root: u32,
    (counts, displacements): (&[u64], &[u64]),
    own: usize,
) -> Result<(), Error> {
    let (mut memory, mut own) = (vec![0; 100], vec![1; own]);
    let blocks = match blocks(&mut memory, counts, displacements) {
        Ok(blocks) => blocks,
        Err(refusal) => return Err(c.refuse(refusal)),
    };
    call(c, what, root, blocks, Data::bytes_mut(&mut own))
}

const COUNTS: [u64; P] = [4, 9, 2];
const PLACES: [u64; P] = [0, 4, 13];

#[test]
fn a_root_beyond_the_ranks() {
    for what in [Scatter, Gather] {
        for bad in [0b111u32, 0b001, 0b010, 0b110] {
            let found = refusals(move |c| {
                let root = if bad >> c.rank() & 1 == 1 { 3 } else { 0 };
                let own = COUNTS[c.rank() as usize] as usize;
                call_with(c, what, root, (&COUNTS, &PLACES), own)
            });
            assert_eq!(found, [Refusal::new(Argument::Root, 3, Bound::Below(3)); P], "{what:?} on ranks {bad:b}");
        }
    }
}

/// A rank whose own block has another length than the root, or rank 0, says.
#[test]
fn counts_that_differ_between_ranks() {
    for what in [Scatter, Gather, Allgather] {
        for (odd, own) in [(1, 0), (1, 8), (1, 10), (1, 90), (2, 0), (2, 3), (2, 40)] {
            let found = refusals(move |c| {
                let me = c.rank() as usize;
                let mut counts = COUNTS;
                let mut places = PLACES;
                if me == odd {
                    counts[odd] = own;
                    places = [91, 0, 95];
                    places[odd] = 0;
                    places[3 - odd] = if odd == 1 { 95 } else { 0 };
                    if odd == 2 {
                        places[1] = 50;
                    }
                }
                call_with(c, what, 0, (&counts, &places), counts[me] as usize)
            });
            let wanted = Refusal::new(Argument::Bytes, own, Bound::Equals(COUNTS[odd]));
            assert_eq!(found, [wanted; P], "{what:?}, rank {odd} has {own}");
        }
    }
}

/// In an allgatherv all ranks pass all counts: one may be wrong about another's block.
#[test]
fn a_rank_that_is_wrong_about_another() {
    for (wrong, about, count) in [(0, 1, 8), (2, 0, 5), (1, 2, 0), (1, 0, 40)] {
        let found = refusals(move |c| {
            let (mut counts, me) = (COUNTS, c.rank() as usize);
            if me == wrong {
                counts[about] = count;
            }
            let places = one_after_the_other(&counts);
            call_with(c, Allgather, 0, (&counts, &places), counts[me] as usize)
        });
        for Refusal { argument, value, bound } in found {
            let (theirs, own) = (count, COUNTS[about]);
            assert_eq!(argument, Argument::Bytes);
            assert!((value, bound) == (theirs, Bound::Equals(own)) || (value, bound) == (own, Bound::Equals(theirs)));
        }
    }
}

#[test]
fn blocks_that_overlap_where_they_are_received() {
    for (what, bad) in [(Gather, 0b001u32), (Allgather, 0b111), (Allgather, 0b010)] {
        let found = refusals(move |c| {
            let me = c.rank();
            let places = if bad >> me & 1 == 1 { [0, 3, 13] } else { PLACES };
            call_with(c, what, 0, (&COUNTS, &places), COUNTS[me as usize] as usize)
        });
        assert_eq!(found, [Refusal::new(Argument::Displacements, 0, Bound::Apart(1)); P], "{what:?}");
    }
}

/// The root of a scatterv may send the same bytes to two ranks.
#[test]
fn blocks_that_overlap_where_they_are_sent() {
    let all = bounded(|| {
        unisono_local::run(params(P as u32), |mut c| {
            let own = COUNTS[c.rank() as usize] as usize;
            call_with(&mut c, Scatter, 1, (&COUNTS, &[0, 0, 1]), own)
        })
    });
    assert_eq!(all.unwrap(), [Ok(()); P]);
}

#[test]
fn blocks_and_buffers_that_do_not_fit_here() {
    for what in [Scatter, Gather, Allgather] {
        let short: fn(&mut Communicator<Local>, What) -> Result<(), Error> =
            |c, what| call_with(c, what, c.rank(), (&COUNTS, &PLACES), 1);
        for Refusal { argument, value, .. } in refusals(move |c| short(c, what)) {
            assert_eq!((argument, value), (Argument::Bytes, 1));
        }
        let found = refusals(move |c| call_with(c, what, c.rank(), (&COUNTS[..2], &PLACES[..2]), 4));
        assert_eq!(found, [Refusal::new(Argument::Ranks, 2, Bound::Equals(3)); P]);
        let found = refusals(move |c| call_with(c, what, 0, (&COUNTS, &[0, 92, 4]), 4));
        assert_eq!(found, [Refusal::new(Argument::Extent, 101, Bound::AtMost(100)); P]);
    }
}

#[test]
fn a_buffer_that_is_missing() {
    let absent = Refusal::not(Argument::Buffer, Condition::Given);
    assert_eq!(refusals(|c| c.call(|me| P2Scatter::new(me, None, None, 0))), [absent; P]);
    assert_eq!(refusals(|c| c.call(|me| P2Gather::new(me, None, None, 0))), [absent; P]);
}

#[test]
fn ranks_that_call_different_collectives() {
    for (first, second) in [(Scatter, Gather), (Gather, Scatter), (Allgather, Scatter), (Gather, Allgather)] {
        let found = refusals(move |c| {
            let me = c.rank();
            let what = if me == 0 { first } else { second };
            call_with(c, what, 0, (&COUNTS, &PLACES), COUNTS[me as usize] as usize)
        });
        for Refusal { argument, .. } in found {
            assert_eq!(argument, Argument::Collective, "{first:?} and {second:?}");
        }
    }
}

#[test]
fn a_segment_without_the_papers_queues() {
    let wanted = Refusal::not(Argument::Slots, Condition::PaperQueues);
    let errors = bounded(|| {
        unisono_local::run(Params::new(P as u32), |mut c| {
            let own = COUNTS[c.rank() as usize] as usize;
            call_with(&mut c, Allgather, 0, (&COUNTS, &PLACES), own)
        })
    });
    assert_eq!(errors.unwrap().into_iter().map(|e| refusal(e.unwrap_err())).collect::<Vec<_>>(), [Some(wanted); P]);
}

/// A hostile root announces the longest possible block, in slots of one byte, to a rank that reaches its last sets.
#[test]
fn counts_that_would_take_more_sets_than_there_are() {
    let cico = Some(Cico { slots: 1, fragment: 1, sets: 1 });
    let segment = Segment::new(Params { cico, ..Params::new(3) }).unwrap();
    let (layout, sets) = (*segment.layout(), Base::MOST - 1);
    let mut comm = Comm::resume(segment.clone(), layout, 1, Base { sets, ..Base::default() }).unwrap();
    let mut own = [0; 1];
    let scatter = P2Scatter::new(comm.member(), None, Some(Data::bytes_mut(&mut own)), 0).unwrap();
    let mut machine = scatter.started(comm.member_mut());
    let store = |word, value| segment.counter(word).store_release(value);
    store(layout.set_typesize(0), 1);
    store(layout.set_count(0, 1), 1);
    store(layout.set_count(0, 2), i64::MAX as u64);
    // A scatter, in docs/reference/segment.md's numbers.
    store(layout.set_bytes(0), 4 << 56);
    segment.publish(layout.set_op(0), sets + 1);
    segment.mail(layout.set_rootready(0, 1)).put_release(1);
    let refusal = Refusal::new(Argument::Sets, i64::MAX as u64, Bound::AtMost(2 * Base::MOST - sets - 1));
    assert_eq!(machine.poll(&mut comm), Err(PollError::Mismatch { peer: 0, refusal }));
}

/// A rank that is told to begin at counts at which no communicator can end does not continue from there.
#[test]
fn a_base_beyond_all_counts() {
    let layout = Layout::new(params(2)).unwrap();
    for beyond in [Base::MOST, u64::MAX] {
        let bases = [
            Base { operation: beyond, ..Base::default() },
            Base { clock: beyond, ..Base::default() },
            Base { sets: beyond, ..Base::default() },
            Base { centrals: beyond, ..Base::default() },
        ];
        for base in bases {
            let most = if base.centrals > 0 { Base::MOST_CENTRALS } else { Base::MOST };
            let refusal = Refusal::new(Argument::Base, beyond, Bound::Below(most));
            assert_eq!(Member::resume(layout, 0, base), Err(refusal));
        }
    }
}

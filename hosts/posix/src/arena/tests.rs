//! Arenas by themselves: several processes' views of one arena, in one process.

use super::*;
use proptest::prelude::*;
use unisono_kernel::region::{Counter, Flag, Region};

#[test]
fn bytes_are_parsed() {
    for (text, bytes) in [("0", 0), ("4096", 4096), ("3k", 3 << 10), ("64M", 64 << 20), ("2G", 2 << 30)] {
        assert_eq!(parse_bytes(text), Some(bytes), "{text}");
    }
    for text in ["", "M", "-1", "+1", "1 M", "1MM", "1T", "x", "99999999999999999999", "18446744073709551615K"] {
        assert_eq!(parse_bytes(text), None, "{text}");
    }
}

/// A slice that not all its ranks have left.
#[derive(Debug)]
struct Live {
    offset: u64,
    bytes: u64,
    term: Term,
    slice: Slice,
    present: Vec<Rank>,
    end: Base,
}

#[derive(Clone, Debug)]
enum Step {
    /// Reserves a slice for so many ranks; leases it or gives it up; so many operations run on it.
    Make(u32, bool, u64),
    /// A rank leaves a communicator, with all operations complete or not.
    Leave(usize, usize, bool),
    /// A communicator is poisoned.
    Poison(usize),
    /// The owner looks at leases.
    Collect,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let make = (1u32..4, prop::bool::weighted(0.8), 0u64..5).prop_map(|(ranks, taken, n)| Step::Make(ranks, taken, n));
    let leave = (any::<usize>(), any::<usize>(), prop::bool::weighted(0.9));
    let leave = leave.prop_map(|(comm, rank, good)| Step::Leave(comm, rank, good));
    prop::collection::vec(
        prop_oneof![4 => make, 8 => leave, 1 => any::<usize>().prop_map(Step::Poison), 2 => Just(Step::Collect)],
        1..80,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    /// The bytes in use are those of slices that not all ranks have left; live slices do not overlap; each starts with
    /// the counts of the slice before it in the same place, or on zeros.
    #[test]
    fn leases_sum_to_zero_and_terms_continue(steps in steps(), kilobytes in 200u64..4000) {
        let mut arena = Arena::create(100, kilobytes << 10).unwrap();
        let mut live: Vec<Live> = Vec::new();
        for step in steps {
            match step {
                Step::Make(ranks, taken, operations) => {
                    let Some(reserved) = arena.reserve(ranks, 0, &mut alive) else { continue };
                    let slice = arena.reserved(reserved.offset).unwrap().clone();
                    let (offset, bytes) = (reserved.offset, slice.plan().bytes());
                    prop_assert!(offset >= 100);
                    prop_assert!(live.iter().all(|l| offset + bytes <= l.offset || l.offset + l.bytes <= offset));
                    // SAFETY: the slice lives to the end of the block.
                    let segment = unsafe { slice.segment() };
                    let done = segment.flag(slice.plan().layout().done(ranks - 1));
                    prop_assert!(Flag::load_acquire(done).is(reserved.term.base.operation));
                    if !taken {
                        arena.give_up(offset);
                        continue;
                    }
                    arena.lease(offset, Arc::default(), 0);
                    let end = Base { operation: reserved.term.base.operation + operations, ..reserved.term.base };
                    Flag::store_release(done, end.operation);
                    let present = (0..ranks).collect();
                    live.push(Live { offset, bytes, term: reserved.term, slice, present, end });
                }
                Step::Leave(comm, rank, good) if !live.is_empty() => {
                    let comm = comm % live.len();
                    let one = &mut live[comm];
                    let rank = one.present.swap_remove(rank % one.present.len());
                    if rank == 0 && good {
                        arena.end(one.offset, one.end);
                    }
                    one.slice.leave(rank, one.term.epoch, good.then_some(one.end));
                    if one.present.is_empty() {
                        live.swap_remove(comm);
                    }
                }
                Step::Poison(comm) if !live.is_empty() => {
                    let comm = comm % live.len();
                    let one = &mut live[comm];
                    // SAFETY: the slice lives in `one`.
                    let segment = unsafe { one.slice.segment() };
                    Counter::store_release(segment.counter(one.slice.plan().layout().state()), 7);
                }
                Step::Collect => arena.collect_some(),
                Step::Leave(..) | Step::Poison(_) => {}
            }
            let held: u64 = live.iter().map(|one| one.bytes).sum();
            prop_assert!(arena.used() >= held);
            arena.collect(usize::MAX, &mut alive);
            prop_assert_eq!(arena.used(), held);
        }
        for one in live {
            one.present.iter().for_each(|&rank| one.slice.leave(rank, one.term.epoch, None));
        }
        arena.collect(usize::MAX, &mut alive);
        prop_assert_eq!(arena.used(), 0);
        prop_assert_eq!(arena.take_refusal(), None);
    }

    /// The allocator against a list of what was taken.
    #[test]
    fn room_is_never_given_twice(steps in prop::collection::vec((1u64..40, any::<bool>(), any::<usize>()), 1..200)) {
        let mut room = Room::new(0, 256);
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for (len, take, which) in steps {
            if take {
                if let Some(at) = room.take(len) {
                    prop_assert!(at + len <= 256);
                    prop_assert!(taken.iter().all(|(other, bytes)| at + len <= *other || other + bytes <= at));
                    taken.push((at, len));
                }
            } else if !taken.is_empty() {
                let (at, len) = taken.swap_remove(which % taken.len());
                room.give(at, len);
            }
            prop_assert_eq!(room.used(), taken.iter().map(|(_, len)| len).sum::<u64>());
            prop_assert!(room.most_used() >= room.used());
        }
        for (at, len) in taken {
            room.give(at, len);
        }
        // All in one piece again.
        prop_assert_eq!(room.take(256), Some(0));
        prop_assert_eq!(room.take(1), None);
        prop_assert_eq!(room.take(0), None);
    }
}

#[test]
fn a_process_that_ended_counts_as_having_left_and_the_slice_is_zeroed() {
    let mut arena = Arena::create(0, 8 << 20).unwrap();
    let reserved = arena.reserve(2, 0, &mut alive).unwrap();
    let slice = arena.reserved(reserved.offset).unwrap().clone();
    arena.lease(reserved.offset, Arc::from([4, 9]), 0);
    arena.end(reserved.offset, Base::default());
    slice.leave(0, 1, Some(Base::default()));
    arena.collect(1, &mut |process| process == 4);
    assert_eq!(arena.used(), slice.plan().bytes(), "process 9 lives");
    arena.collect(1, &mut |process| process == 9);
    assert_eq!((arena.used(), arena.warm(), arena.room().used()), (0, 0, 0));
    assert_eq!(slice.first_present(1, 0), Some(0), "zero");
}

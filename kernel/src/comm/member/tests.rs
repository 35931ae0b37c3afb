use super::*;
use crate::region::words::Words;
use crate::region::{Extent, Params};
use std::vec::Vec;

const KINDS: [Kind; 4] = [Kind::Bcast, Kind::Barrier, Kind::Reduce, Kind::Scan];

pub(in crate::comm) fn layout(ranks: u32) -> Layout {
    Layout::new(Params { page: 256, ..Params::new(ranks) }).unwrap()
}

/// Two members of one segment, after so many operations.
pub(in crate::comm) fn two(operations: [u64; 2]) -> (Words, [Member; 2]) {
    let layout = layout(2);
    let mut members = [0, 1].map(|rank| Member::new(layout, rank).unwrap());
    for (member, operations) in members.iter_mut().zip(operations) {
        (0..operations).for_each(|at| _ = member.begin(KINDS[at as usize % 4]));
    }
    (Words::new(&layout), members)
}

/// What `me` claims at the end of an operation that takes so many fragments of so many bytes.
fn claims(region: &Words, me: &mut Member, fragments: u64, bytes: u64) -> Vec<Extent> {
    let operation = me.begin(Kind::Barrier);
    me.take_clock(fragments, bytes);
    me.finish(region, operation);
    region.take_claims()
}

#[test]
fn a_process_claims_its_next_line_and_its_next_slot_but_not_around_long_messages() {
    let (region, [_, mut me]) = two([0, 0]);
    let (least, most) = (*CLAIMED.start(), *CLAIMED.end());
    let line = |operation| me.layout.line_body(1, operation, 120);
    let slot = |clock, bytes| me.layout.in_slot(1, clock, bytes, me.lap).part(0, bytes);
    let lines = [2, 3, 4, 5, 6, 9, 10].map(line);
    let slots = [(0, least), (2, least), (3, least), (4, 3000), (14, most)].map(|(clock, bytes)| slot(clock, bytes));
    assert_eq!(claims(&region, &mut me, 0, 0), [lines[0], slots[0]]);
    assert_eq!(claims(&region, &mut me, 0, 0), [lines[1]], "the slot was claimed");
    assert_eq!(claims(&region, &mut me, 2, 8), [lines[2], slots[1]]);
    assert_eq!(claims(&region, &mut me, 1, u64::MAX), [lines[3], slots[2]], "of an unknown length");
    assert_eq!(claims(&region, &mut me, 1, 3000), [lines[4], slots[3]], "as much as was written");
    assert_eq!(claims(&region, &mut me, 10, most + 1), []);
    assert_eq!(claims(&region, &mut me, 0, 0), [], "the next one is probably long again");
    assert_eq!(claims(&region, &mut me, 0, 0), [lines[5], slots[4]]);
    assert_eq!(claims(&region, &mut me, 0, u64::MAX), [lines[6]]);
}

#[test]
fn a_process_that_waits_claims_at_once_and_not_again_at_the_end() {
    let (region, [_, mut me]) = two([0, 0]);
    let operation = me.begin(Kind::Barrier);
    me.take_clock(1, 3000);
    me.idle(&region);
    let slot = me.layout.in_slot(1, 1, 3000, me.lap).part(0, 3000);
    assert_eq!(region.take_claims(), [me.layout.line_body(1, 2, 120), slot]);
    me.idle(&region);
    me.finish(&region, operation);
    assert_eq!(region.take_claims(), []);
    assert_eq!(claims(&region, &mut me, 1, 3000).len(), 2, "the next operation's");
}

#[test]
fn of_many_ranks_those_claim_a_slot_that_have_written_one() {
    let layout = layout(3);
    let (region, mut me) = (Words::new(&layout), Member::new(layout, 1).unwrap());
    let (line, slot) = (|operation| layout.line_body(1, operation, 120), layout.slot(1, 2).part(0, *CLAIMED.start()));
    assert_eq!(claims(&region, &mut me, 1, 8), [line(2)]);
    me.take_slot(&region, 2, 1).unwrap();
    assert_eq!(claims(&region, &mut me, 1, 8), [line(3), slot]);
    assert_eq!(claims(&region, &mut me, 1, 8), [line(4)], "it has not written since");
}

#[test]
fn a_line_that_more_than_eight_ranks_await_is_not_claimed() {
    let claimed = |ranks, kind, bytes| {
        let layout = layout(ranks);
        let (region, mut me) = (Words::new(&layout), Member::new(layout, 1).unwrap());
        let operation = me.begin(kind);
        me.take_clock(1, bytes);
        me.take_slot(&region, operation, 0).unwrap();
        me.finish(&region, operation);
        region.take_claims().into_iter().map(|at| at.len()).collect::<Vec<_>>()
    };
    assert_eq!([8, 9].map(|ranks| claimed(ranks, Kind::Bcast, 1000)), [std::vec![120, 1000], std::vec![1000]]);
    assert_eq!([8, 9].map(|ranks| claimed(ranks, Kind::Scatter, 1000)), [std::vec![120, 1000], std::vec![1000]]);
    assert_eq!([17, 33].map(|ranks| claimed(ranks, Kind::Bcast, 1000)), [std::vec![1000], std::vec![1000]]);
    assert_eq!([9, 16, 17].map(|ranks| claimed(ranks, Kind::Allreduce, 1000).len()), [2, 2, 0]);
}

#[test]
fn a_root_is_a_rank() {
    let (_, [me, _]) = two([0, 0]);
    assert_eq!([0, 1].map(|root| me.check_root(root)), [Ok(0), Ok(1)]);
    assert_eq!(me.check_root(2), Err(Refusal::new(Argument::Root, 2, Bound::Below(2))));
}

#[test]
fn a_line_is_free_when_all_have_finished_its_last_use() {
    let (region, [mut me, _]) = two([0, 0]);
    let done = region.flag(me.layout.done(1));
    let awaited = |needed, operation| WaitSet::flag(me.layout.done(1), Until::AtLeast(needed), 1, operation);
    let (first, second) = (awaited(1, 65), awaited(4, 68));
    assert_eq!([1, 64].map(|operation| me.line_free(&region, operation)), [Ok(()); 2]);
    assert_eq!(me.line_free(&region, 65), Err(first));
    Flag::store_release(done, 3);
    assert_eq!(me.line_free(&region, 65), Ok(()));
    assert_eq!(me.acknowledged, 3);
    assert_eq!(me.line_free(&region, 67), Ok(()));
    assert_eq!(me.line_free(&region, 68), Err(second));
    // The peer's word may be wrong: here it claims operations that have not started.
    Flag::store_release(done, 1000);
    assert_eq!(me.line_free(&region, 68), Ok(()));
    assert_eq!(me.acknowledged, 67);
    me.all_reached(70);
    me.all_reached(50);
    assert_eq!(me.acknowledged, 69);
}

#[test]
fn a_slot_is_taken_when_all_are_done_with_what_it_held() {
    let (region, [mut me, _]) = two([1, 0]);
    let slots = u64::from(me.layout.params().queue_slots);
    let taken = region.flag(me.layout.acked(1));
    let awaits = |needed| WaitSet::flag(me.layout.acked(1), Until::AtLeast(needed), 1, 1);
    let (first, third) = (awaits(1), awaits(3));
    for clock in 0..slots {
        assert_eq!(me.take_slot(&region, 1, clock), Ok(()), "it never held anything");
    }
    assert_eq!(me.take_slot(&region, 1, slots), Err(first));
    Flag::store_release(taken, 2);
    assert_eq!([0, 1].map(|more| me.take_slot(&region, 1, slots + more)), [Ok(()); 2]);
    assert_eq!(me.drained, 2);
    assert_eq!(me.take_slot(&region, 1, slots + 2), Err(third));
    Flag::store_release(taken, u64::MAX);
    assert_eq!(me.take_slot(&region, 1, slots + 2), Ok(()));
    assert_eq!(me.drained, slots + 2);
}

#[test]
fn slots_that_hold_nothing_are_taken_without_a_look() {
    let layout = Layout::new(Params { queue_slots: 512, ..Params::new(2) }).unwrap();
    let (region, mut me) = (Words::new(&layout), Member::new(layout, 0).unwrap());
    assert_eq!(me.take_slot(&region, 1, 0), Ok(()));
    assert_eq!([300, 513, 514].map(|clock| me.take_slot(&region, 1, clock)), [Ok(()); 3]);
    let awaits = WaitSet::flag(layout.acked(1), Until::AtLeast(1), 1, 1);
    assert_eq!(me.take_slot(&region, 1, 512), Err(awaits));
}

#[test]
fn operations_are_finished_where_all_say_so() {
    let (region, [mut me, _]) = two([1, 0]);
    assert_eq!(me.all_finished(&region, 1), Ok(()), "there is none before the first");
    let done = me.layout.done(1);
    let awaits = WaitSet::flag(done, Until::AtLeast(1), 1, 2);
    assert_eq!(me.all_finished(&region, 2), Err(awaits));
    Flag::store_release(region.flag(done), 1);
    assert_eq!(me.all_finished(&region, 2), Ok(()));
    Flag::store_release(region.flag(done), 0);
    assert_eq!(me.all_finished(&region, 2), Ok(()), "known without a load");
}

#[test]
fn after_a_change_of_the_lap_all_are_done_with_what_was_before() {
    struct Wanted<'a>(&'a Words, u64);
    // SAFETY: forwards to an implementation that keeps the contract.
    unsafe impl Region for Wanted<'_> {
        crate::forward_region!(Words, |this| this.0; own loans, laps and publish);
        fn lap(&self, _: u64) -> Lap {
            Lap::wide(self.1)
        }
    }
    let (region, [mut me, _]) = two([1, 0]);
    let taken = region.flag(me.layout.acked(1));
    let waits = [(1, 1), (2, 5), (2, 6), (3, 7)]
        .map(|(operation, needed)| WaitSet::flag(me.layout.acked(1), Until::AtLeast(needed), 1, operation));
    assert_eq!(me.lap(), Lap::wide(me.layout.params().queue_slots.into()), "all slots, if nothing else is said");
    me.choose_lap(&Wanted(&region, 4), 1, 0);
    assert_eq!([0, 1, 2, 3].map(|clock| me.take_slot(&region, 1, clock)), [Ok(()); 4]);
    assert_eq!(me.take_slot(&region, 1, 4), Err(waits[0]), "the first slot holds fragment 0");
    Flag::store_release(taken, 1);
    assert_eq!(me.take_slot(&region, 1, 4), Ok(()));
    // Slot 0 holds fragment 4, slot 1 fragment 1.
    me.choose_lap(&Wanted(&region, 2), 2, 5);
    assert_eq!(me.take_slot(&region, 2, 6), Err(waits[1]));
    Flag::store_release(taken, 5);
    assert_eq!([5, 6].map(|clock| me.take_slot(&region, 2, clock)), [Ok(()); 2]);
    assert_eq!(me.take_slot(&region, 2, 7), Err(waits[2]));
    // Fragment 6 lies in slot 0, where fragment 16 of a longer lap goes, or in one that shares its entry.
    me.choose_lap(&Wanted(&region, u64::MAX), 3, 8);
    assert_eq!(me.take_slot(&region, 3, 16), Err(waits[3]));
}

#[test]
fn counts_go_on_from_the_base() {
    let base = Base { operation: 7, clock: 11, sets: 13, centrals: 17 };
    let mut me = Member::resume(layout(3), 2, base).unwrap();
    assert_eq!(me.base(), base);
    assert_eq!((me.rank(), me.size(), me.operation()), (2, 3, 7));
    assert_eq!([1, 2].map(|step| me.after(step)), [0, 1]);
    assert_eq!((me.take_clock(5, 100), me.take_sets(2), me.take_central()), (11, 14, 18));
    assert_eq!(me.begin(Kind::Bcast), 8);
    assert_eq!(me.sets_left(), 2 * Base::MOST - 15);
    let after = Base { operation: 8, clock: 16, sets: 15, centrals: 18 };
    assert_eq!(me.base(), after);
    assert_eq!(me.begin(Kind::Barrier), 9);
    assert_eq!(me.digest(9, Kind::Barrier).kind(), Kind::Barrier as u64);
    assert!(Member::resume(layout(3), 3, base).is_err());
    assert!(Member::resume(layout(3), 0, Base { clock: Base::MOST, ..base }).is_err());
}

use super::member::tests::{layout, two};
use super::*;
use crate::collective::Kind;
use crate::error::{Argument, Bound, Cause};
use crate::region::words::Words;
use std::vec::Vec;

/// Stores the words that `peer` tells, one by one.
fn put(region: &Words, peer: &Member, [operation, kinds]: [u64; 2]) {
    for (id, value) in peer.layout().calling(peer.rank()).into_iter().zip([operation, kinds]) {
        Counter::store_release(region.counter(id), value);
    }
}

#[test]
fn kinds_are_told_the_latest_in_the_lowest_bits() {
    let (_, [me, peer]) = two([5, 0]);
    assert_eq!(me.history().kinds(), 0x1_b791);
    assert_eq!(peer.history().kinds(), 0);
}

#[test]
fn nothing_is_told_while_the_words_change() {
    let (region, [me, peer]) = two([5, 5]);
    assert_eq!(me.told(&region, 1), None);
    peer.tell(&region);
    assert_eq!(me.told(&region, 1), Some((5, 0x1_b791)));
    put(&region, &peer, [0, 0x1_b791]);
    assert_eq!(me.told(&region, 1), None, "it tells again just now");
}

/// The operations that one has told the other, and whether their kinds differ.
fn differences(operations: [u64; 2], other: impl Fn(&mut Member)) -> Vec<(u64, bool)> {
    let (region, [me, mut peer]) = two(operations);
    other(&mut peer);
    peer.tell(&region);
    me.both_know(&region, 1).map(|(operation, differ)| (operation, differ.is_some())).collect()
}

#[test]
fn what_both_know_is_compared_the_latest_first() {
    let alike = |from: u64, to: u64| (to..=from).rev().map(|at| (at, false)).collect::<Vec<_>>();
    assert_eq!(differences([20, 20], |_| ()), alike(20, 5));
    assert_eq!(differences([20, 23], |_| ()), alike(20, 8));
    assert_eq!(differences([23, 20], |_| ()), alike(20, 8));
    assert_eq!(differences([20, 36], |_| ()), []);
    assert_eq!(differences([36, 20], |_| ()), []);
    let another = |peer: &mut Member| _ = peer.begin(Kind::Gather);
    assert_eq!(differences([21, 20], another)[..2], [(21, true), (20, false)]);
    assert_eq!(differences([23, 20], another)[..2], [(21, true), (20, false)]);
}

#[test]
fn kinds_differ_if_both_are_known() {
    let differ = |mine, theirs| Member::differ(mine, theirs).map(|refusal| (refusal.value, refusal.bound));
    assert_eq!(differ(3, 4), Some((3, Bound::Equals(4))));
    assert_eq!([(3, 3), (0, 4), (3, 0), (0, 0)].map(|(mine, theirs)| differ(mine, theirs)), [None; 4]);
}

#[test]
fn a_rank_that_has_called_another_collective_is_named() {
    let (region, [me, mut peer]) = two([21, 20]);
    assert_eq!(me.compare(&region), Ok(()));
    peer.begin(Kind::Gather);
    peer.tell(&region);
    let refusal = Refusal::new(Argument::Collective, 1, Bound::Equals(3));
    assert_eq!(me.compare(&region), Err(WaitError::Diverged { peer: 1, refusal }));
    // Later operations don't hide an earlier difference that is still told.
    let before = Refusal::new(Argument::EarlierCollective, 1, Bound::Equals(3));
    assert_eq!(me.differ_before(&region, 1, 22), before);
    assert_eq!(me.differ_before(&region, 1, 21).value, 0, "before the last nothing differed");
}

#[test]
fn a_rank_beyond_the_size_never_waits() {
    let layout = layout(2);
    let region = Words::new(&layout);
    let me = Comm::new(&region, layout, 0).unwrap();
    // In this region words beyond the segment panic.
    assert!(!me.waits(2));
}

#[test]
fn a_poison_is_one_word_for_all() {
    let layout = layout(2);
    let region = Words::new(&layout);
    let members = [0, 1].map(|rank| Comm::new(&region, layout, rank).unwrap());
    assert_eq!(members.each_ref().map(Observe::poison), [None; 2]);
    let poison = |rank, cause| Poison { rank, operation: 3, cause };
    assert_eq!(members[1].poison_with(poison(0, Cause::Died)), poison(0, Cause::Died));
    assert_eq!(members[0].poison_with(poison(1, Cause::Late)), poison(0, Cause::Died), "the first one counts");
    assert_eq!(members.each_ref().map(Observe::poison), [Some(poison(0, Cause::Died)); 2]);
}

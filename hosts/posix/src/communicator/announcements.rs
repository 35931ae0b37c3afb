//! How a process announces a communicator to a group of others without a collective: lines in the head of its arena.
//!
//! ```text
//! head of an arena:  announcements, a line each  |  taken: a line for each process of the job, a word for each announcement
//! ```
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | line i of L: sequence | L | all | the announcement's number, i modulo the lines' number; 0 while it is written |
//! | line i of L: key, birth | L | the group's ranks | a hash of communicator, group and tag; the memory |
//! | taken i for L, of r | r | L | the number of the last announcement in line i of L that r took |
//!
//! L overwrites line i when each process of the last announcement's group has taken it or has ended. Any process may
//! read the line meanwhile, and reads the whole announcement or none (the kernel's [`announcement`], which loom
//! checks). If a group is made several times with the same key, each process finds its announcements in order, because
//! it skips those that it has taken.

use super::birth::Words;
use crate::arena::{Arenas, WorldRank};
use std::sync::Arc;
use unisono_kernel::region::{Counter, LINE, Word, announcement};

/// Announcement lines of one process: so many groups may be in creation while some of their members are late.
const NOTICES: u64 = LINE / 8;

/// Bytes of the head, in a job of `size` processes.
pub(crate) fn head(size: u32) -> u64 {
    LINE * (NOTICES + u64::from(size))
}

fn line<'a>(arenas: &'a Arenas, of: WorldRank, index: u64) -> impl Fn(usize) -> Option<&'a Word> + Copy {
    move |at| arenas.word(of, LINE * index + 8 * at as u64)
}

/// The word of `me` that says which announcement in line `index` of `of` it has taken last.
fn taken(arenas: &Arenas, me: WorldRank, of: WorldRank, index: u64) -> Option<&Word> {
    arenas.word(me, LINE * (NOTICES + u64::from(of)) + 8 * index)
}

/// The writer's private record of its announcements.
#[derive(Debug, Default)]
pub(super) struct Ring {
    /// The number of the last one.
    sequence: u64,
    /// The group of the last announcement in each line.
    groups: [Option<Arc<[WorldRank]>>; NOTICES as usize],
}

impl Ring {
    /// May the next announcement be written: has each process of the group whose announcement it overwrites taken that
    /// one, or ended?
    pub(super) fn is_free(&self, arenas: &Arenas, me: WorldRank, gone: impl Fn(WorldRank) -> bool) -> bool {
        let next = self.sequence + 1;
        let (index, before) = (next % NOTICES, next.saturating_sub(NOTICES));
        let group = self.groups.get(index as usize).and_then(Option::as_deref).unwrap_or_default();
        group.iter().all(|&process| {
            let word = taken(arenas, process, me, index);
            // pairs with: take
            process == me || word.is_none_or(|word| Counter::load_acquire(word).at_least(before)) || gone(process)
        })
    }

    /// Writes the next announcement, if its line [is free](Self::is_free).
    pub(super) fn post(&mut self, arenas: &Arenas, me: WorldRank, group: &Arc<[WorldRank]>, key: u64, birth: &Words) {
        self.sequence += 1;
        let index = self.sequence % NOTICES;
        if let Some(entry) = self.groups.get_mut(index as usize) {
            *entry = Some(Arc::clone(group));
        }
        let [one, two, three, four, five, six, seven, eight] = *birth;
        announcement::post(
            line(arenas, me, index),
            self.sequence,
            &[key, one, two, three, four, five, six, seven, eight],
        );
    }
}

/// The first announcement, by its number, of those that `look` finds in the lines.
///
/// The lines are looked at twice: one may be written when it was its turn already, and a later one before it is its. The writer
/// writes in order, so whoever has seen an announcement sees all before it.
fn first<A>(mut look: impl FnMut(u64) -> Option<(u64, A)>) -> Option<(u64, A)> {
    let mut all = || (0..NOTICES).filter_map(&mut look).min_by_key(|(sequence, _)| *sequence);
    all()?;
    all()
}

/// Takes the first announcement of `writer` with this key that `me` has not taken, if there is one by now.
pub(super) fn take(arenas: &Arenas, writer: WorldRank, me: WorldRank, key: u64) -> Option<Words> {
    let (sequence, (taken, words)) = first(|index| {
        let at = line(arenas, writer, index);
        let (sequence, taken) = (announcement::number(at)?, taken(arenas, me, writer, index)?);
        if Counter::load_acquire(taken).at_least(sequence) {
            return None;
        }
        let [found, words @ ..]: [u64; 9] = announcement::values(at, sequence)?;
        (found == key).then_some((sequence, (taken, words)))
    })?;
    // publishes: the reads of the announcement, to the writer that reuses it
    Counter::store_release(taken, sequence);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sealed::Sealed;

    fn arenas(size: u32) -> Arenas {
        let spans = Arenas::plan(head(size), &vec![0; size as usize], u64::MAX);
        let map = Sealed::create(Arenas::bytes(&spans)).unwrap().map().unwrap();
        Arenas::new(Arc::new(map), spans)
    }

    #[test]
    fn each_member_takes_each_notice_once_and_in_order() {
        let arenas = arenas(3);
        let (mut ring, group) = (Ring::default(), Arc::from([0, 1, 2]));
        for round in 0..5 {
            assert!(ring.is_free(&arenas, 1, |_| false));
            ring.post(&arenas, 1, &group, 77, &[round; 8]);
        }
        ring.post(&arenas, 1, &group, 78, &[9; 8]);
        for me in [0, 2] {
            assert_eq!(take(&arenas, 1, me, 78), Some([9; 8]));
            assert_eq!(take(&arenas, 1, me, 79), None);
            for round in 0..5 {
                assert_eq!(take(&arenas, 1, me, 77), Some([round; 8]));
            }
            assert_eq!(take(&arenas, 1, me, 77), None);
            assert_eq!(take(&arenas, 0, me, 77), None);
        }
    }

    /// A member has looked at line 3 when announcements 3 and 4 are written, with the same key: it takes 3.
    #[test]
    fn the_first_one_is_found_while_more_come() {
        for already in [2, 3] {
            let (mut posted, mut passed) = (already, false);
            let found = first(|index| {
                let seen = (3..=posted).contains(&index).then_some((index, index));
                passed |= index == 3;
                posted = if passed { 4 } else { posted };
                seen
            });
            assert_eq!(found, Some((3, 3)), "{already} were written before");
        }
        assert_eq!(first(|_| None::<(u64, ())>), None);
    }

    #[test]
    fn a_notice_that_is_not_taken_is_not_overwritten() {
        let arenas = arenas(3);
        let (mut ring, pair, group) = (Ring::default(), Arc::from([2, 1]), Arc::from([0, 1, 2]));
        ring.post(&arenas, 2, &group, 5, &[5; 8]);
        for _ in 1..NOTICES {
            assert!(ring.is_free(&arenas, 2, |_| false));
            ring.post(&arenas, 2, &pair, 6, &[6; 8]);
            assert!(take(&arenas, 2, 1, 6).is_some());
        }
        assert!(!ring.is_free(&arenas, 2, |_| false));
        assert!(take(&arenas, 2, 0, 5).is_some());
        assert!(!ring.is_free(&arenas, 2, |_| false));
        assert!(ring.is_free(&arenas, 2, |process| process == 1), "a process that ended takes nothing any more");
        assert!(take(&arenas, 2, 1, 5).is_some());
        assert!(ring.is_free(&arenas, 2, |_| false));
    }
}

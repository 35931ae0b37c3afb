//! Open MPI's `coll/sm`: a segment has two sets of four fragments for each rank, a control word for each rank and fragment, and a
//! word for each set that says which operation uses it, and how many ranks still do.
//!
//! A broadcast goes down a tree of degree 4: a rank with children copies each fragment from its parent's into its own and tells
//! them, then copies it out. A reduction's root waits for each rank's fragment, the last rank first, and folds them all itself;
//! an allreduce is a reduction to rank 0 and a broadcast. A barrier fans in by counters, and out by words.
//!
//! The layout is that of papers P1 and P2, which follow this component.

use super::Done;
use super::process::{Id, Process};
use unisono_kernel::Rank;
use unisono_kernel::machine::poll::Until;
use unisono_kernel::op::Op;
use unisono_kernel::region::{Cico, Params};

/// coll_sm_comm_num_segments, …_in_use_flags, …_fragment_size, …_tree_degree.
const SEGMENTS: u32 = 8;
const SETS: u64 = 2;
const FRAGMENT: usize = 8192;
const DEGREE: u32 = 4;

/// In a set's word: the operation is beyond the number of ranks.
const OPERATION: u32 = 16;

pub(super) fn params(ranks: u32) -> Params {
    // A set of the layout for each segment: control words of reductions lie by set and rank.
    let cico = Cico { slots: SEGMENTS, fragment: FRAGMENT as u64, sets: SEGMENTS };
    Params { lines: 4, queue_slots: 1, queue_fragment: 64, cico: Some(cico), ..Params::new(ranks) }
}

#[derive(Debug, Default)]
pub(super) struct Sm {
    barriers: u64,
    /// Sets used so far.
    sets: u64,
}

/// One use of a set.
#[derive(Clone, Copy)]
struct Set {
    number: u64,
}

impl Set {
    fn word(self, me: &Process) -> Id {
        me.layout.set_readers((self.number % SETS) as u32).into()
    }

    fn segments(self) -> std::ops::Range<u32> {
        let each = SEGMENTS / SETS as u32;
        let first = (self.number % SETS) as u32 * each;
        first..first + each
    }

    /// The root waits until nobody uses the set, and takes it for `users`.
    fn take(self, me: &Process, users: u32) -> Done {
        let before = self.number.saturating_sub(SETS) << OPERATION;
        me.wait(self.word(me), Until::Equals(if self.number > SETS { before } else { 0 }), me.rank)?;
        me.store(self.word(me), self.number << OPERATION | u64::from(users));
        Ok(())
    }

    /// Others wait until the root has taken it.
    fn join(self, me: &Process, root: Rank) -> Done {
        me.reaches(self.word(me), self.number << OPERATION, root)
    }

    fn leave(self, me: &Process) {
        me.subtract(self.word(me), 1);
    }
}

impl Sm {
    fn next_set(&mut self) -> Set {
        self.sets += 1;
        Set { number: self.sets }
    }

    fn children(me: &Process, place: u32) -> std::ops::Range<u32> {
        let first = (DEGREE * place + 1).min(me.size());
        first..(first + DEGREE).min(me.size())
    }

    pub(super) fn barrier(&mut self, me: &Process) -> Done {
        let set = 2 * (self.barriers % 2);
        self.barriers += 1;
        let word = |rank: Rank, out: u64| me.layout.line(rank, set + out);
        let children = Self::children(me, me.rank);
        if !children.is_empty() {
            me.wait(word(me.rank, 0), Until::Equals(children.len() as u64), children.start)?;
            me.store(word(me.rank, 0), 0);
        }
        if me.rank != 0 {
            let parent = (me.rank - 1) / DEGREE;
            me.add(word(parent, 0), 1);
            me.wait(word(me.rank, 1), Until::Nonzero, parent)?;
            me.store(word(me.rank, 1), 0);
        }
        for child in children {
            me.store(word(child, 1), 1);
        }
        Ok(())
    }

    pub(super) fn bcast(&mut self, me: &Process, bytes: &mut [u8], root: Rank) -> Done {
        let (size, all) = (me.size(), bytes.len());
        let place = (me.rank + size - root) % size;
        let real = |place: u32| (place + root) % size;
        let children: Vec<Rank> = Self::children(me, place).map(real).collect();
        let parent = (place != 0).then(|| real((place - 1) / DEGREE));
        let mut start = 0;
        loop {
            let set = self.next_set();
            match parent {
                None => set.take(me, size - 1)?,
                Some(_) => set.join(me, root)?,
            }
            for segment in set.segments() {
                let end = all.min(start + FRAGMENT);
                let part = &mut bytes[start..end];
                let own = me.layout.fragment(me.rank, segment);
                if let Some(parent) = parent {
                    let told = me.layout.control(me.rank, segment);
                    me.wait(told, Until::Nonzero, parent)?;
                    me.store(told, 0);
                    me.read(me.layout.fragment(parent, segment), part);
                }
                if !children.is_empty() {
                    me.write(own, part);
                }
                for &child in &children {
                    me.store(me.layout.control(child, segment), 1 + part.len() as u64);
                }
                start = end;
                if start == all {
                    break;
                }
            }
            if parent.is_some() {
                set.leave(me);
            }
            if start == all {
                return Ok(());
            }
        }
    }

    pub(super) fn allreduce(&mut self, me: &Process, bytes: &mut [u8], op: &Op) -> Done {
        let (size, all, mut start) = (me.size(), bytes.len(), 0);
        while start < all {
            let set = self.next_set();
            match me.rank {
                0 => set.take(me, size)?,
                _ => set.join(me, 0)?,
            }
            for segment in set.segments() {
                let end = all.min(start + FRAGMENT);
                let part = &mut bytes[start..end];
                let told = |rank: Rank| me.layout.set_count(segment, rank);
                if me.rank == 0 {
                    for rank in (1..size).rev() {
                        me.wait(told(rank), Until::Nonzero, rank)?;
                        me.store(told(rank), 0);
                        me.fold(me.layout.fragment(rank, segment), part, op);
                    }
                } else {
                    me.write(me.layout.fragment(me.rank, segment), part);
                    me.store(told(me.rank), part.len() as u64);
                }
                start = end;
                if start == all {
                    break;
                }
            }
            set.leave(me);
        }
        self.bcast(me, bytes, 0)
    }
}

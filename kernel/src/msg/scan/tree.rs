//! Scan and exscan along a tree: totals of subtrees go up, prefixes come down. The ranks of a subtree are
//! consecutive, and the subtrees of a process's children follow one another in rank order after the process itself.
//! So a process can send each child the fold of all ranks before the child's subtree: the prefix that came from its
//! parent, its own operand, and the totals of the children before.
//!
//! ```text
//! up    round i: child i's total arrives          slot i + 1 = own ∘ total 0 ∘ … ∘ total i
//!       then: slot of the last child to the parent, while the prefix of all ranks before arrives in slot 0
//! down  child i gets prefix ∘ slot i              the result is prefix ∘ own, or the prefix alone in an exscan
//! ```
//! A subtree that ends with the last rank sends no total: no rank after it needs one.

use crate::error::Refusal;
use crate::msg::parts::check_operand;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::op::Op;
use crate::pattern::tree::Branches;

/// One process's part of a scan or exscan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UpDown<T> {
    tree: T,
    children: u32,
    /// Is the last rank in this subtree?
    is_last: bool,
    bytes: u64,
    op: Op,
    in_place: bool,
    exclusive: bool,
}

impl<T: Branches> UpDown<T> {
    /// As [`super::doubling::Doubling::new`], along a tree whose root is rank 0. `is_last`: the last rank is in this
    /// process's subtree.
    ///
    /// # Errors
    /// The operand is not a whole number of elements, or too long.
    pub(in crate::msg) fn along(
        tree: T,
        is_last: bool,
        bytes: u64,
        op: Op,
        in_place: bool,
        exclusive: bool,
    ) -> Result<Self, Refusal> {
        check_operand(bytes, &op)?;
        Ok(Self { tree, children: tree.count(), is_last, bytes, op, in_place, exclusive })
    }

    /// Number of children that send their totals.
    fn totals(&self) -> u32 {
        self.children - u32::from(self.is_last && self.children > 0)
    }

    /// A slot of working memory, as in the figure above.
    fn slot(&self, slot: u32) -> Place {
        Place::new(Area::Scratch, u64::from(slot) * self.bytes, self.bytes)
    }

    fn operand(&self) -> Place {
        Place::new(if self.in_place { Area::Receive } else { Area::Send }, 0, self.bytes)
    }

    const fn result(&self) -> Place {
        Place::new(Area::Receive, 0, self.bytes)
    }

    /// The fold of this process's operand and the totals of its first `totals` children.
    fn folded(&self, totals: u32) -> Place {
        if totals == 0 { self.operand() } else { self.slot(totals) }
    }

    /// The place of the prefix that child `index` receives.
    fn prefix(&self, index: u32) -> Place {
        match (index, self.tree.parent().is_some(), self.exclusive) {
            (0, true, false) => self.result(),
            // The total was sent to the parent; its slot is free.
            (0, true, true) => self.slot(self.children),
            _ => self.folded(index),
        }
    }

    /// The `index`-th piece of work after the prefix has arrived: it is folded into slots 1 …, then into the operand.
    fn join(&self, index: u32) -> Option<Work> {
        let own = (self.children.saturating_sub(1), self.slot(0));
        let (operand, result) = (self.operand(), self.result());
        if let Some(slot) = (1..self.children).nth(index as usize) {
            return Some(Work::Fold { left: own.1, right: self.slot(slot) });
        }
        let fold = |to| Work::Fold { left: self.slot(0), right: to };
        let copy = |from, to| Work::Copy { from, to };
        let works = match self.exclusive {
            false => [(!self.in_place).then(|| copy(operand, result)), Some(fold(result)), None],
            true => {
                let first = self.slot(self.children);
                let some = self.children > 0;
                [some.then(|| copy(operand, first)), some.then(|| fold(first)), Some(copy(self.slot(0), result))]
            }
        };
        works.into_iter().flatten().nth((index - own.0) as usize)
    }
}

impl<T: Branches> Schedule for UpDown<T> {
    fn rounds(&self) -> u64 {
        u64::from(self.totals()) + 1 + u64::from(self.children > 0)
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        match round.checked_sub(self.totals().into())? {
            0 => {
                let peer = self.tree.parent().filter(|_| index == 0 && !self.is_last)?;
                Some(Message { peer, place: self.folded(self.totals()) })
            }
            _ => {
                // The largest subtree first.
                let child = self.children.checked_sub(index + 1)?;
                Some(Message { peer: self.tree.child(child)?, place: self.prefix(child) })
            }
        }
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        if index > 0 {
            return None;
        }
        match u32::try_from(round).ok()? {
            child if child < self.totals() => {
                Some(Message { peer: self.tree.child(child)?, place: self.slot(child + 1) })
            }
            round if round == self.totals() => Some(Message { peer: self.tree.parent()?, place: self.slot(0) }),
            _ => None,
        }
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        if moment != Moment::After {
            return None;
        }
        match (u32::try_from(round).ok()?, self.tree.parent()) {
            (child, _) if child < self.totals() => {
                Some(Work::Fold { left: self.folded(child), right: self.slot(child + 1) }).filter(|_| index == 0)
            }
            (round, Some(_)) if round == self.totals() => self.join(index),
            (round, None) if round == self.totals() && index == 0 && !self.exclusive && !self.in_place => {
                Some(Work::Copy { from: self.operand(), to: self.result() })
            }
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        let unused = self.exclusive && self.tree.parent().is_none() && !self.in_place;
        let alone = self.tree.parent().is_none() && self.children == 0;
        Bytes {
            send: if self.in_place { 0 } else { self.bytes },
            receive: if unused { 0 } else { self.bytes },
            scratch: if alone { 0 } else { (u64::from(self.children) + 1) * self.bytes },
        }
    }

    fn op(&self) -> Option<Op> {
        Some(self.op)
    }
}

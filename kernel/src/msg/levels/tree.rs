//! The trees of all levels' groups as one tree: a process hangs from its parent on its last level, and under it hang its
//! children on all of its levels, the innermost first.
//!
//! A segmented schedule along this tree is pipelined across the levels: a leader passes a segment on to the inside while
//! the next one comes from the outside. If the ranks below each member are runs, subtrees follow one another in rank
//! order.

use super::circle::{Circle, Circles};
use super::shape::Shapes;
use super::{LEVELS, Needs, PlanError};
use crate::Rank;
use crate::pattern::tree::{Branches, Position, Tree};

/// One process's neighbours: O(levels) bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LevelTree<'s> {
    parent: Option<Rank>,
    children: u32,
    rungs: [Option<Rung<'s>>; LEVELS],
}

/// The part of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Rung<'s> {
    circle: Circle<'s>,
    tree: Tree,
    children: u32,
}

impl Rung<'_> {
    fn position(&self) -> Position {
        self.tree.position(self.circle.own(), self.circle.head(), self.circle.size())
    }
}

impl<'s> LevelTree<'s> {
    /// The tree of these circles; on each level of the shape that is said for it.
    pub(super) fn new(circles: &Circles<'s>, shapes: &Shapes) -> Result<Self, PlanError> {
        shapes.check_trees()?;
        let mut all = Self { parent: None, children: 0, rungs: [None; LEVELS] };
        for ((index, circle), slot) in circles.iter().zip(&mut all.rungs) {
            let tree = shapes.at(index).tree().ok_or(PlanError::OverLevels(Needs::Trees))?;
            let mut rung = Rung { circle, tree, children: 0 };
            let position = rung.position();
            rung.children = position.count();
            all.children += rung.children;
            all.parent = position.parent().map(|parent| circle.rank(parent));
            *slot = Some(rung);
        }
        Ok(all)
    }
}

impl Branches for LevelTree<'_> {
    #[inline]
    fn parent(&self) -> Option<Rank> {
        self.parent
    }

    #[inline]
    fn count(&self) -> u32 {
        self.children
    }

    #[inline]
    fn child(&self, mut index: u32) -> Option<Rank> {
        for rung in self.rungs.iter().flatten() {
            match index.checked_sub(rung.children) {
                None => return rung.position().child(index).map(|child| rung.circle.rank(child)),
                Some(rest) => index = rest,
            }
        }
        None
    }
}

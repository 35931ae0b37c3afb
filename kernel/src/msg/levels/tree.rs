//! The trees of all groups of all levels as one tree: a process's parent is the one on its outermost level, and its
//! children are those on all of its levels, the innermost level's first.
//!
//! A segmented schedule along this tree is pipelined across the levels: a leader sends a segment on to the inner
//! levels while the next one arrives from the outer level. If the ranks below each member are consecutive, subtrees
//! follow one another in rank order.

use super::circle::{Circle, Circles};
use super::shape::Shapes;
use super::{LEVELS, Needs, PlanError};
use crate::Rank;
use crate::pattern::tree::{Branches, Position, Tree};

/// One process's parent and children, in O(levels) bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LevelTree<'s> {
    parent: Option<Rank>,
    children: u32,
    rungs: [Option<Rung<'s>>; LEVELS],
}

/// The part of the tree on one level.
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
    /// The tree of these circles, with each level's shape.
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

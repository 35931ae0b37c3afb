//! The shape of the communication in a group, one for each level, and the names of algorithms over levels.

use super::super::named::{Named, Needs, PlanError, number};
use super::super::{allreduce, bcast, reduce};
use super::LEVELS;
use crate::pattern::tree::Tree;
use core::fmt;

/// The shape of the communication among the members of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Each member communicates with the head.
    Flat,
    /// A chain of all members.
    Chain,
    /// A k-nomial tree.
    Knomial(u32),
    /// A tree with up to this many children per vertex. In segments it is short, and no member sends much. The ranks
    /// of a subtree are not consecutive, so the op must commute.
    Kary(u32),
    /// The vector is cut into slices: a broadcast is a scatter and an allgather round a ring, a reduce is a
    /// reduce_scatter and a gather. It can't be segmented.
    Slices,
    /// The same by recursive halving and doubling, in fewer rounds. It can't be segmented.
    Halves,
}

impl Shape {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "flat" => Self::Flat,
            "chain" => Self::Chain,
            "binomial" => Self::Knomial(2),
            "binary" => Self::Kary(2),
            "slices" => Self::Slices,
            "halves" => Self::Halves,
            _ if name.starts_with("kary-") => Self::Kary(number(name, "kary", 1)?),
            _ => Self::Knomial(number(name, "knomial", 2)?),
        })
    }

    /// The tree of this shape; `None` if it is not a tree.
    pub(super) const fn tree(self) -> Option<Tree> {
        match self {
            Self::Flat => Some(Tree::Flat),
            Self::Chain => Some(Tree::Chain),
            Self::Knomial(k) => Some(Tree::Knomial(k)),
            Self::Kary(k) => Some(Tree::Kary(k)),
            Self::Slices | Self::Halves => None,
        }
    }

    /// The broadcast of this shape among the ranks of a whole communicator; there is none for k-ary trees.
    pub(super) const fn bcast(self) -> Option<bcast::Algorithm> {
        Some(match self {
            Self::Flat => bcast::Algorithm::Flat,
            Self::Chain => bcast::Algorithm::Chain(u64::MAX),
            Self::Knomial(k) => bcast::Algorithm::Knomial(k),
            Self::Kary(_) => return None,
            Self::Slices => bcast::Algorithm::ScatterAllgather,
            Self::Halves => bcast::Algorithm::ScatterDoubling,
        })
    }

    /// The reduce of this shape among the ranks of a whole communicator; there is none for k-ary trees.
    pub(super) const fn reduce(self) -> Option<reduce::Algorithm> {
        Some(match self {
            Self::Flat => reduce::Algorithm::Flat,
            Self::Chain => reduce::Algorithm::Chain(u64::MAX),
            Self::Knomial(k) => reduce::Algorithm::Knomial(k),
            Self::Kary(_) => return None,
            Self::Slices | Self::Halves => reduce::Algorithm::ScatterGather,
        })
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flat => f.write_str("flat"),
            Self::Chain => f.write_str("chain"),
            Self::Knomial(k) => write!(f, "knomial-{k}"),
            Self::Kary(k) => write!(f, "kary-{k}"),
            Self::Slices => f.write_str("slices"),
            Self::Halves => f.write_str("halves"),
        }
    }
}

/// A shape for each level that has groups, from the innermost to the outermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shapes([Shape; LEVELS]);

impl Shapes {
    /// The same shape on all levels.
    pub const fn all(shape: Shape) -> Self {
        Self([shape; LEVELS])
    }

    /// The shapes of a list; the last one counts for all further levels. `None` if the list is empty or has more
    /// shapes than there are levels.
    pub fn new(list: impl IntoIterator<Item = Shape>) -> Option<Self> {
        let mut list = list.into_iter();
        let mut last = list.next()?;
        let mut shapes = [last; LEVELS];
        for shape in shapes.iter_mut().skip(1) {
            last = list.next().unwrap_or(last);
            *shape = last;
        }
        list.next().is_none().then_some(Self(shapes))
    }

    /// The shape on the level of this index.
    #[inline]
    pub fn at(&self, index: usize) -> Shape {
        self.0.get(index).copied().unwrap_or(Shape::Flat)
    }

    /// Are the ranks of subtrees consecutive on all levels?
    pub(super) fn are_ordered(&self) -> bool {
        !self.0.iter().any(|shape| matches!(shape, Shape::Kary(_)))
    }

    /// Checks that the shape is a tree on all levels, also on those in which this process takes no part: so all ranks
    /// get the same result.
    pub(super) fn check_trees(&self) -> Result<(), PlanError> {
        for shape in &self.0 {
            shape.tree().ok_or(PlanError::OverLevels(Needs::Trees))?.check()?;
        }
        Ok(())
    }

    /// Is the shape a tree on all levels?
    pub(super) fn are_trees(&self) -> bool {
        self.0.iter().all(|shape| shape.tree().is_some())
    }
}

/// The algorithm of a collective over levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algorithm {
    /// The shape on each level. Gather, scatter, allgather and alltoall are flat on all levels, whatever it is.
    pub shapes: Shapes,
    /// Bytes of the segments in which bcast, reduce and allreduce are pipelined across levels; `None`: in one segment.
    pub segment: Option<u64>,
    /// For allreduce only. `Some`: paper P3's ReduceAllreduceBcast, with this allreduce among the members of the last
    /// level's group. `None`: ReduceBcast.
    pub top: Option<allreduce::Algorithm>,
    /// For bcast and reduce, as paper P3 prints them: a root that is not rank 0 hands its data to rank 0 before the
    /// broadcast, or gets the result from it. Else it takes the place of its leaders, which spares that message.
    pub through_0: bool,
}

impl Algorithm {
    /// Binomial trees on all levels, in one segment.
    pub const BINOMIAL: Self =
        Self { shapes: Shapes::all(Shape::Knomial(2)), segment: None, top: None, through_0: false };

    /// The algorithm with the name `levels[0][-BYTES][/SHAPE[:SHAPE…]][+TOP]`, such as `levels`,
    /// `levels-8192/chain:binomial`, `levels/flat+doubling`. Shapes are `flat`, `chain`, `knomial-K`, `binomial`,
    /// `kary-K`, `binary`, `slices`, `halves`, from the innermost level to the outermost; without any: binomial.
    /// `levels0`: through rank 0. `None` for other names.
    pub fn from_name(name: &str) -> Option<Self> {
        let (name, top) = match name.split_once('+') {
            None => (name, None),
            Some((name, top)) => (name, Some(allreduce::Algorithm::from_name(top)?)),
        };
        let (name, shapes) = match name.split_once('/') {
            None => (name, Shapes::all(Shape::Knomial(2))),
            Some((name, list)) => {
                let mut known = true;
                let shapes = list.split(':').map_while(|shape| {
                    let shape = Shape::from_name(shape);
                    known &= shape.is_some();
                    shape
                });
                let shapes = Shapes::new(shapes);
                (name, shapes.filter(|_| known)?)
            }
        };
        let through_0 = name.starts_with("levels0");
        let prefix = if through_0 { "levels0" } else { "levels" };
        let segment = if name == prefix { None } else { Some(number(name, prefix, 1)?) };
        Some(Self { shapes, segment, top, through_0 })
    }

    /// Checks that it can go along one tree through all levels, or one level after the other. All ranks get the same
    /// result, on whatever levels they take part.
    pub(super) fn check(&self) -> Result<(), PlanError> {
        self.fits(false).map_err(PlanError::OverLevels)
    }

    /// The same for a table. `needs_trees`: the collective can't go one level after the other.
    pub(crate) fn fits(&self, needs_trees: bool) -> Result<(), Needs> {
        let by_level = self.shapes.are_ordered() && self.segment.is_none() && !needs_trees;
        if self.shapes.are_trees() || by_level { Ok(()) } else { Err(Needs::Trees) }
    }

    pub(super) const fn segment(&self) -> u64 {
        match self.segment {
            None => u64::MAX,
            Some(segment) => segment,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.through_0 { "levels0" } else { "levels" })?;
        if let Some(segment) = self.segment {
            write!(f, "-{segment}")?;
        }
        let Shapes(shapes) = &self.shapes;
        let last = shapes.last().copied().unwrap_or(Shape::Flat);
        // A shape that is repeated to the end is shown once.
        let shown = shapes.iter().rposition(|shape| *shape != last).map_or(1, |index| index + 2);
        for (shape, separator) in shapes.iter().take(shown).zip(core::iter::once('/').chain(core::iter::repeat(':'))) {
            write!(f, "{separator}{shape}")?;
        }
        match self.top.map(Named::name) {
            None => Ok(()),
            Some((top, None)) => write!(f, "+{top}"),
            Some((top, Some(number))) => write!(f, "+{top}-{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn names_are_what_they_print() {
        for name in [
            "levels/knomial-2",
            "levels-8192/chain",
            "levels/flat:knomial-4:chain",
            "levels-64/flat:chain:kary-2",
            "levels/slices+segmented-ring-64",
            "levels/flat:halves",
            "levels-1/flat:flat:flat:flat:flat:flat:flat:chain+doubling",
            "levels0/flat",
            "levels0-64/flat:chain",
        ] {
            assert_eq!(Algorithm::from_name(name).map(|algorithm| algorithm.to_string()).as_deref(), Some(name));
        }
        assert_eq!(Algorithm::from_name("levels"), Some(Algorithm::BINOMIAL));
        assert_eq!(Algorithm::from_name("levels/binomial:binomial"), Some(Algorithm::BINOMIAL));
        for bad in [
            "",
            "level",
            "levels-0",
            "levels1",
            "levels00",
            "levels0-0",
            "levels-",
            "levels/",
            "levels/flat:",
            "levels/flat:round",
            "levels/knomial-1",
            "levels/kary-0",
            "levels+best",
            "levels/flat:flat:flat:flat:flat:flat:flat:flat:flat",
        ] {
            assert_eq!(Algorithm::from_name(bad), None, "{bad}");
        }
    }
}

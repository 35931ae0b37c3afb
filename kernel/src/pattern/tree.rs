//! Rooted trees over ranks (paper P1, section 4.2): flat, chain, k-ary, k-nomial, for any root.
//!
//! A tree is built over *vertices* `0 .. p`; vertex 0 is the root, and rank `r` is vertex
//! `(r - root) mod p`. So parent and children need no table, whatever the root: they take a few operations
//! for flat, chain and k-ary trees, and for k-nomial ones a search for the lowest nonzero digit, of at most 20 steps.

use super::{Seat, rotated};
use crate::Rank;
use crate::error::{Argument, Bound, Refusal};
use core::fmt;

/// The shape of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tree {
    /// The root is the parent of all other vertices.
    Flat,
    /// Each vertex has one child (P1: linear).
    Chain,
    /// Vertex `v` has the children `k·v + 1 ..= k·v + k`. Binary is `Kary(2)`. `k` is 1 at least.
    Kary(u32),
    /// The children of `v` are `v + j·kⁱ` (`0 < j < k`) for each place `i` below `v`'s lowest
    /// nonzero digit in base `k`. Binomial is `Knomial(2)`. `k` is 2 at least.
    Knomial(u32),
}

impl Tree {
    /// Paper P1's choice: binary.
    pub const BINARY: Self = Self::Kary(2);
    /// Binomial.
    pub const BINOMIAL: Self = Self::Knomial(2);

    /// Checks the arity.
    ///
    /// # Errors
    /// 0 for k-ary, 0 or 1 for k-nomial.
    pub fn check(self) -> Result<Self, Refusal> {
        match self {
            Self::Flat | Self::Chain => {}
            Self::Kary(k) => {
                Refusal::check(Argument::Arity, k.into(), Bound::AtLeast(1))?;
            }
            Self::Knomial(k) => {
                Refusal::check(Argument::Arity, k.into(), Bound::AtLeast(2))?;
            }
        }
        Ok(self)
    }

    /// The tree of this name: `flat`, `chain`, `binary`, `binomial`, `kary-K`, `knomial-K`. `None` for other names, and
    /// if K is too small.
    pub fn from_name(name: &str) -> Option<Self> {
        let tree = match name {
            "flat" => Self::Flat,
            "chain" => Self::Chain,
            "binary" => Self::BINARY,
            "binomial" => Self::BINOMIAL,
            _ => match name.split_once('-')? {
                ("kary", k) => Self::Kary(k.parse().ok()?),
                ("knomial", k) => Self::Knomial(k.parse().ok()?),
                _ => return None,
            },
        };
        tree.check().ok()
    }

    /// The place of `rank` in this tree over `size` processes rooted at `root`. The arity must have
    /// been [checked](Self::check); ranks are below `size`.
    #[inline]
    pub fn position(self, rank: Rank, root: Rank, size: u32) -> Position {
        debug_assert!(rank < size && root < size);
        let vertex = Seat { rank, size }.vertex(root);
        let (parent, children) = match self {
            Self::Flat => (0, if vertex == 0 { Children::Run { next: 1, end: size } } else { Children::NONE }),
            Self::Chain => (vertex.wrapping_sub(1), Children::run(u64::from(vertex) + 1, 1, size)),
            Self::Kary(k) => {
                let first = u64::from(vertex) * u64::from(k) + 1;
                (vertex.wrapping_sub(1) / k, Children::run(first, k.into(), size))
            }
            Self::Knomial(k) => {
                // `place` = kⁱ of the lowest nonzero digit; for the root, above the highest digit.
                let mut place = 1u64;
                while place < u64::from(size) && u64::from(vertex).is_multiple_of(place * u64::from(k)) {
                    place *= u64::from(k);
                }
                let digit = u64::from(vertex) / place % u64::from(k);
                let parent = u64::from(vertex) - digit * place;
                (parent as u32, Children::Digits { vertex: vertex.into(), k: k.into(), place, digit: 0 })
            }
        };
        Position { root, size, parent: (vertex != 0).then_some(parent), children }
    }
}

/// The name, as [`Tree::from_name`] reads it.
impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Flat => f.write_str("flat"),
            Self::Chain => f.write_str("chain"),
            Self::BINARY => f.write_str("binary"),
            Self::BINOMIAL => f.write_str("binomial"),
            Self::Kary(k) => write!(f, "kary-{k}"),
            Self::Knomial(k) => write!(f, "knomial-{k}"),
        }
    }
}

/// One rank's neighbours in a tree. Its subtree's vertices are in this order: its own, then child 0's subtree, then
/// child 1's.
pub trait Branches: Copy + Eq + core::hash::Hash {
    /// The parent; `None` for the root.
    fn parent(&self) -> Option<Rank>;

    /// Number of children.
    fn count(&self) -> u32;

    /// The child of this index; `None` after the last.
    fn child(&self, index: u32) -> Option<Rank>;
}

impl Branches for Position {
    #[inline]
    fn parent(&self) -> Option<Rank> {
        self.parent()
    }

    #[inline]
    fn count(&self) -> u32 {
        self.count()
    }

    #[inline]
    fn child(&self, index: u32) -> Option<Rank> {
        self.child(index)
    }
}

/// One rank's neighbours in a tree: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    root: Rank,
    size: u32,
    parent: Option<u32>,
    children: Children,
}

impl Position {
    /// The parent; `None` for the root.
    #[inline]
    pub fn parent(&self) -> Option<Rank> {
        self.parent.map(|vertex| rotated(vertex, self.root, self.size))
    }

    /// The children; for k-nomial trees the largest subtrees first.
    #[inline]
    pub fn children(&self) -> impl Iterator<Item = Rank> + use<> {
        let Self { root, size, mut children, .. } = *self;
        core::iter::from_fn(move || children.next(size)).map(move |vertex| rotated(vertex, root, size))
    }

    /// Number of children.
    #[inline]
    pub fn count(&self) -> u32 {
        match self.children {
            Children::Run { next, end } => end - next,
            Children::Digits { .. } => (0..).take_while(|&index| self.vertex(index).is_some()).count() as u32,
        }
    }

    /// The child of this index, from the lowest vertex up. In flat, chain and k-nomial trees the vertices of a subtree
    /// are in this order: its own, then child 0's subtree, then child 1's. One step per digit at most.
    #[inline]
    pub fn child(&self, index: u32) -> Option<Rank> {
        self.vertex(index).map(|vertex| rotated(vertex, self.root, self.size))
    }

    /// The vertex of [`Self::child`].
    #[inline]
    fn vertex(&self, index: u32) -> Option<u32> {
        match self.children {
            Children::Run { next, end } => Some(next.checked_add(index)?).filter(|child| *child < end),
            Children::Digits { vertex, k, place, .. } => {
                let below = k.checked_pow(index / (k as u32 - 1)).filter(|below| *below < place)?;
                let child = vertex + (u64::from(index) % (k - 1) + 1) * below;
                (child < self.size.into()).then_some(child as u32)
            }
        }
    }
}

/// Number of vertices of the subtree of `vertex` in the binomial tree over `size` vertices: `vertex` and those that
/// follow it.
#[inline]
pub const fn subtree(vertex: u32, size: u32) -> u32 {
    let (rest, whole) = (size - vertex, vertex & vertex.wrapping_neg());
    if vertex == 0 || whole > rest { rest } else { whole }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Children {
    Run {
        next: u32,
        end: u32,
    },
    /// Places below `place`, highest first; within a place digits 1 .. k.
    Digits {
        vertex: u64,
        k: u64,
        place: u64,
        digit: u64,
    },
}

impl Children {
    const NONE: Self = Self::Run { next: 0, end: 0 };

    fn run(first: u64, count: u64, size: u32) -> Self {
        let cut = |v: u64| v.min(size.into()) as u32;
        Self::Run { next: cut(first), end: cut(first + count) }
    }

    #[inline]
    fn next(&mut self, size: u32) -> Option<u32> {
        match self {
            Self::Run { next, end } => {
                let child = *next;
                *next += u32::from(child < *end);
                (child < *end).then_some(child)
            }
            Self::Digits { vertex, k, place, digit } => loop {
                if *digit == 0 {
                    if *place == 1 {
                        return None;
                    }
                    *place /= *k;
                    *digit = 1;
                }
                let child = *vertex + *digit * *place;
                let within = child < u64::from(size);
                *digit = if within && *digit + 1 < *k { *digit + 1 } else { 0 };
                if within {
                    return Some(child as u32);
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const TREES: [Tree; 10] = [
        Tree::Flat,
        Tree::Chain,
        Tree::Kary(1),
        Tree::Kary(2),
        Tree::Kary(3),
        Tree::Kary(7),
        Tree::Knomial(2),
        Tree::Knomial(3),
        Tree::Knomial(4),
        Tree::Knomial(5),
    ];

    #[test]
    fn every_rank_but_the_root_is_one_childs_child() {
        for tree in TREES {
            for size in (1..=33).chain([64, 100]) {
                for root in 0..size {
                    let mut parents = std::vec![Vec::new(); size as usize];
                    for rank in 0..size {
                        for child in tree.position(rank, root, size).children() {
                            parents[child as usize].push(rank);
                        }
                    }
                    for rank in 0..size {
                        let wanted: Vec<_> = tree.position(rank, root, size).parent().into_iter().collect();
                        assert_eq!(parents[rank as usize], wanted, "{tree:?} p={size} root={root} rank={rank}");
                        assert_eq!(wanted.is_empty(), rank == root);
                    }
                }
            }
        }
    }

    #[test]
    fn children_by_index_are_the_same_children_in_rising_order() {
        for tree in TREES {
            for size in (1..=33).chain([64, 100]) {
                for rank in 0..size {
                    let position = tree.position(rank, 0, size);
                    let mut wanted: Vec<_> = position.children().collect();
                    wanted.sort_unstable();
                    let found: Vec<_> = (0..position.count()).filter_map(|index| position.child(index)).collect();
                    assert_eq!(found, wanted, "{tree:?} p={size} rank={rank}");
                    assert_eq!(position.child(position.count()), None);
                }
            }
        }
    }

    #[test]
    fn every_rank_hangs_below_the_root() {
        for tree in TREES {
            for size in [1, 2, 17, 1000, 1 << 20] {
                for rank in (0..size).step_by(1 + size as usize / 50) {
                    let (mut at, mut depth) = (rank, 0);
                    while let Some(parent) = tree.position(at, 0, size).parent() {
                        (at, depth) = (parent, depth + 1);
                        assert!(depth < size);
                    }
                    assert_eq!(at, 0);
                }
            }
        }
    }

    #[test]
    fn binomial_subtrees_follow_their_vertex() {
        for size in 1..=33 {
            for vertex in 0..size {
                let children = || Tree::BINOMIAL.position(vertex, 0, size).children();
                assert_eq!(subtree(vertex, size), 1 + children().map(|child| subtree(child, size)).sum::<u32>());
                let ends = children().map(|child| child + subtree(child, size));
                assert_eq!(ends.max().unwrap_or(vertex + 1), vertex + subtree(vertex, size));
            }
        }
    }

    #[test]
    fn the_binomial_tree_of_eight() {
        let children = |rank| Tree::BINOMIAL.position(rank, 0, 8).children().collect::<Vec<_>>();
        assert_eq!(children(0), [4, 2, 1]);
        assert_eq!(children(4), [6, 5]);
        assert_eq!(children(6), [7]);
        assert_eq!(children(7), []);
    }
}

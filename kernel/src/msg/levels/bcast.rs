//! Broadcast over levels (paper P3, section 4): along one tree through all levels, or one level after the other.
//!
//! As the paper prints it, a root that is not rank 0 first hands its data to rank 0, and gets them back.

use super::circle::Circles;
use super::stages::{Areas, Base, Stage, Stages};
use super::tree::LevelTree;
use super::{Algorithm, LEVELS, Needs, PlanError};
use crate::Rank;
use crate::msg::bcast;
use crate::msg::bcast::tree::Pipeline;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Sequence, Work, either};
use crate::topology::group::Groups;

either! {
    #[expect(clippy::large_enum_variant, reason = "plain data of a call; there is no heap to box it in")]
    /// One process's part of a broadcast over levels, from the head of the last circle.
    Within<'s> {
        /// Along one tree through all levels.
        Tree(Pipeline<LevelTree<'s>>),
        /// One level after the other.
        Stages(Stages<'s, bcast::Plan>),
    }
}

/// One process's part of a broadcast over levels, from any root.
pub type Plan<'s> = Sequence<HandOver, Within<'s>>;

/// The message from a root to rank 0, which broadcasts in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandOver {
    /// This process's partner, if it is one of the two.
    peer: Option<Rank>,
    sends: bool,
    bytes: u64,
}

impl HandOver {
    fn message(&self, sends: bool, index: u32) -> Option<Message> {
        let peer = self.peer.filter(|_| sends == self.sends && index == 0)?;
        Some(Message { peer, place: Place::new(Area::Receive, 0, self.bytes) })
    }
}

impl Schedule for HandOver {
    fn rounds(&self) -> u64 {
        self.peer.is_some().into()
    }

    fn send(&self, _: u64, index: u32) -> Option<Message> {
        self.message(true, index)
    }

    fn receive(&self, _: u64, index: u32) -> Option<Message> {
        self.message(false, index)
    }

    fn work(&self, _: u64, _: Moment, _: u32) -> Option<Work> {
        None
    }

    fn bytes(&self) -> Bytes {
        Bytes { receive: self.bytes, ..Bytes::default() }
    }
}

/// The part of `rank` in a broadcast of `bytes` bytes from `root`. Through rank 0, data are written at the root, too: the
/// same bytes.
///
/// # Errors
/// `rank` or `root` is not a rank of the communicator; a segment has no bytes; the shapes have slices, which can't be
/// segmented.
pub fn plan<'s>(
    groups: &Groups<'s>,
    rank: Rank,
    bytes: u64,
    root: Rank,
    algorithm: Algorithm,
) -> Result<Plan<'s>, PlanError> {
    let from = if algorithm.through_0 { 0 } else { root };
    let circles = Circles::new(groups, rank, root).and_then(|_| Circles::new(groups, rank, from))?;
    let peer = match rank {
        _ if from == root => None,
        _ if rank == root => Some(from),
        _ => (rank == from).then_some(root),
    };
    Ok(Sequence::new(HandOver { peer, sends: rank == root, bytes }, within(&circles, bytes, algorithm)?))
}

/// The same in these circles, from the head of the last one.
pub(super) fn within<'s>(circles: &Circles<'s>, bytes: u64, algorithm: Algorithm) -> Result<Within<'s>, PlanError> {
    algorithm.check()?;
    let shapes = algorithm.shapes;
    if shapes.are_trees() {
        let tree = LevelTree::new(circles, &shapes)?;
        return Ok(Pipeline::along(tree, bytes, algorithm.segment())?.into());
    }
    let mut stages = [None; LEVELS];
    let areas = Areas { send: Base::start(Area::Send), receive: Base::start(Area::Receive), scratch: Base::scratch(0) };
    // The outermost level first.
    for ((index, circle), slot) in circles.iter().zip(stages.iter_mut().rev()) {
        let shape = shapes.at(index).bcast().ok_or(PlanError::OverLevels(Needs::Trees))?;
        let plan = bcast::plan(circle.seat()?, bytes, circle.head(), shape)?;
        *slot = Some(Stage { circle: Some(circle), areas, plan });
    }
    Ok(Stages(stages).into())
}

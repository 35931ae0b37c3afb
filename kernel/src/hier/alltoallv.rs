//! Alltoall(v) over two levels, without leaders: pairs of ranks on different nodes exchange messages, those on one node
//! blocks in shared memory.
//!
//! ```text
//! messages         each rank of A ◄──────► each rank of B      eight partners at a time
//! shared memory    A0 ◄─► A1 ◄─► A2     B0 ◄─► B1
//! ```
//! Nobody but sender and receiver knows a block's length, and none is copied on its way. Who is whose partner is a
//! round-robin tournament: in distance t, ranks a and b with a + b ≡ t modulo p meet; so each pair meets once, both in one
//! round, and in place a round's blocks are all that is put aside. Blocks of no bytes are no messages.

use super::Nodes;
use crate::Rank;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::buffer::Buf;
use crate::error::{Argument, Bound, Refusal};
use crate::machine::{Operation, Then};
use crate::msg::rounds::WINDOW;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::msg::{Memory, Parts, PlanError, Rounds};
use crate::pattern::rotated;
use crate::shm::alltoall::pairwise::{alltoall, alltoallv};
use crate::shm::engine::pairwise::Pairwise;

/// The blocks for and from the ranks of this node.
#[derive(Clone, Copy, Debug)]
pub struct Near<'a> {
    /// For them; none in place.
    pub send: Option<Blocks<'a>>,
    /// From them.
    pub receive: Blocks<'a>,
}

/// One process's part.
pub type Alltoallv<'a> = Then<Rounds<Plan<'a>>, Pairwise<'a>>;

/// What one process does, before it has memory: its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan<'a> {
    nodes: Nodes<'a>,
    send: Parts<'a>,
    receive: Parts<'a>,
    in_place: bool,
}

/// The part of a process in an alltoall from blocks `send` to blocks `receive`, one for each rank; in place without `send`:
/// then two ranks send each other as much as they receive.
///
/// # Errors
/// Not one block per rank.
pub fn plan<'a>(nodes: Nodes<'a>, send: Option<Parts<'a>>, receive: Parts<'a>) -> Result<Plan<'a>, PlanError> {
    let (in_place, send) = (send.is_none(), send.unwrap_or(receive));
    for parts in [&send, &receive] {
        Refusal::check(Argument::Ranks, parts.size().into(), Bound::Equals(nodes.size().into()))?;
    }
    Ok(Plan { nodes, send, receive, in_place })
}

impl<'a> Plan<'a> {
    /// Bytes of working memory: in place, the blocks of a round.
    pub fn scratch(&self) -> u64 {
        self.bytes().scratch
    }

    /// The next operation of `me`, from the blocks of `send` to those of `receive`; in place without `send`. `near` are the
    /// blocks for and from the ranks of this node, in the same memory.
    ///
    /// # Errors
    /// A buffer is too short; the own block has two lengths; blocks of `near` overlap where they are received.
    ///
    /// # Safety
    /// `send` is readable, `receive` and `scratch` are writable, all exclusive during `'a`, apart, and outlive the message
    /// layer's use of them.
    pub unsafe fn machine(
        self,
        me: &mut Member,
        send: Option<Buf>,
        receive: Buf,
        near: Near<'a>,
        scratch: Buf,
    ) -> Result<Alltoallv<'a>, Refusal> {
        let equal = self.send.is_equal() && self.receive.is_equal();
        let inside = match equal {
            true => alltoall(me, near.send, near.receive),
            false => alltoallv(me, near.send, near.receive),
        }?
        .started(me);
        let memory = Memory { send: send.unwrap_or(Memory::NOTHING), receive, scratch };
        // SAFETY: the caller's promise; `inside` is polled only after the messages are complete.
        Ok(Then::new(unsafe { Rounds::of(self, memory, me.operation()) }?, inside))
    }

    /// Whom this process meets in a round, where `parts` have bytes.
    fn partners(&self, round: u64, parts: Parts<'a>) -> impl Iterator<Item = Rank> + use<'a> {
        let (nodes, size) = (self.nodes, self.nodes.size());
        let distances = (round * u64::from(WINDOW)).min(size.into()) as u32..;
        let partner = move |distance| rotated(distance, size - nodes.me(), size);
        let meets = move |peer: &Rank| nodes.is_apart(*peer) && parts.len(*peer) > 0;
        distances.take(WINDOW as usize).take_while(move |&distance| distance < size).map(partner).filter(meets)
    }

    /// What goes to the `index`-th partner of a round: the partner, its block, and where in place that is put aside.
    fn outgoing(&self, round: u64, index: u32) -> Option<(Rank, Place, Place)> {
        let peer = self.partners(round, self.send).nth(index as usize)?;
        let before = self.partners(round, self.send).take(index as usize).map(|peer| self.send.len(peer)).sum();
        let block = self.send.place(if self.in_place { Area::Receive } else { Area::Send }, peer);
        Some((peer, block, Place::new(Area::Scratch, before, block.len)))
    }
}

impl Schedule for Plan<'_> {
    fn rounds(&self) -> u64 {
        self.nodes.size().div_ceil(WINDOW).into()
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let (peer, block, aside) = self.outgoing(round, index)?;
        Some(Message { peer, place: if self.in_place { aside } else { block } })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let peer = self.partners(round, self.receive).nth(index as usize)?;
        Some(Message { peer, place: self.receive.place(Area::Receive, peer) })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let (_, block, aside) = self.outgoing(round, index).filter(|_| self.in_place && moment == Moment::Before)?;
        Some(Work::Copy { from: block, to: aside })
    }

    fn bytes(&self) -> Bytes {
        let (send, receive) = (self.send.reach(), self.receive.reach());
        let aside = |round| self.partners(round, self.send).map(|peer| self.send.len(peer)).sum();
        match self.in_place {
            true => Bytes { send: 0, receive, scratch: (0..self.rounds()).map(aside).max().unwrap_or(0) },
            false => Bytes { send, receive, scratch: 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hier::Home;
    use std::vec::Vec;

    /// Ranks 0 … 18 in distances on three nodes; each has (a + b) % 3 bytes for each.
    #[test]
    fn each_pair_of_ranks_on_different_nodes_meets_once_in_one_round() {
        const SIZE: u32 = 19;
        let homes: Vec<_> = (0..SIZE).map(|rank| Home { node: rank % 3, rank: rank / 3 }).collect();
        let lengths: Vec<Vec<u64>> = (0..SIZE).map(|a| (0..SIZE).map(|b| u64::from((a + b) % 3)).collect()).collect();
        let starts: Vec<u64> = (0..u64::from(SIZE)).map(|rank| 2 * rank).collect();
        let plans: Vec<_> = (0..SIZE)
            .map(|me| {
                let parts = Parts::vary(SIZE, &lengths[me as usize], &starts, 1).unwrap();
                plan(Nodes::new(&homes, &[0, 1, 2], me).unwrap(), None, parts).unwrap()
            })
            .collect();
        let mut met = 0;
        for (a, plan) in (0..SIZE).zip(&plans) {
            for round in 0..plan.rounds() {
                let heard: Vec<_> = (0..).map_while(|index| plan.receive(round, index)).collect();
                let sent: Vec<_> = (0..).map_while(|index| plan.send(round, index)).collect();
                let ends = sent.iter().map(|message| message.place.at + message.place.len);
                assert!(ends.max().unwrap_or(0) <= plan.scratch());
                assert_eq!(sent.len(), heard.len());
                for (to, from) in sent.iter().zip(&heard) {
                    assert_eq!((to.peer, to.place.len), (from.peer, from.place.len));
                    let back = (0..).map_while(|index| plans[to.peer as usize].receive(round, index));
                    assert_eq!(back.filter(|back| back.peer == a && back.place.len == to.place.len).count(), 1);
                    met += 1;
                }
            }
        }
        let apart = |a: u32, b: u32| a % 3 != b % 3 && !(a + b).is_multiple_of(3);
        assert_eq!(met, (0..SIZE).map(|a| (0..SIZE).filter(|&b| apart(a, b)).count()).sum::<usize>());
        assert!(met > 100);
    }
}

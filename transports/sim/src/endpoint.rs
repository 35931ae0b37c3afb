//! The point-to-point layer of one rank on the simulated network.

use crate::fabric::Channel;
use crate::net::Net;
use crate::time::Time;
use std::cell::RefCell;
use std::rc::Rc;
use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::machine::p2p::{P2p, P2pError, Tag};
use unisono_kernel::machine::poll::Slot;
use unisono_kernel::machine::transport::Messages;

/// The peer's rank is not below the size.
pub const NO_SUCH_RANK: P2pError = P2pError(1);
/// The slot has no active request.
pub const NO_SUCH_SLOT: P2pError = P2pError(2);

/// One rank's point-to-point layer, on virtual time. A send takes o_s of the rank's own time, and is complete when
/// its last byte has left. A receive takes o_r.
#[derive(Clone, Debug)]
pub struct Endpoint {
    rank: Rank,
    size: u32,
    /// In a group: the world rank of each rank of the group. `None`: ranks are world ranks.
    members: Option<Rc<[Rank]>>,
    net: Rc<RefCell<Net>>,
}

impl Endpoint {
    pub(crate) const fn new(rank: Rank, size: u32, net: Rc<RefCell<Net>>) -> Self {
        Self { rank, size, members: None, net }
    }

    /// This rank's layer in a group, whose rank i is `members[i]` here. `None` if this rank is not a member, or if a
    /// member is not a rank.
    #[must_use]
    pub fn among(&self, members: &Rc<[Rank]>) -> Option<Self> {
        let mine = self.in_world(self.rank).ok()?;
        let members: Rc<[Rank]> = members.iter().map(|&rank| self.in_world(rank).ok()).collect::<Option<_>>()?;
        let rank = members.iter().position(|&rank| rank == mine)? as Rank;
        Some(Self { rank, size: members.len() as u32, members: Some(members), net: Rc::clone(&self.net) })
    }

    /// This rank's clock.
    pub fn now(&self) -> Time {
        self.in_world(self.rank).map_or(Time::ZERO, |rank| self.net.borrow().clock(rank))
    }

    /// Simulates a computation: this rank is busy for `span`.
    pub fn work(&mut self, span: Time) {
        if let Ok(rank) = self.in_world(self.rank) {
            let mut net = self.net.borrow_mut();
            let until = net.clock(rank) + span;
            net.advance(rank, until);
        }
    }

    /// The world rank of a rank.
    fn in_world(&self, rank: Rank) -> Result<Rank, P2pError> {
        match &self.members {
            _ if rank >= self.size => Err(NO_SUCH_RANK),
            None => Ok(rank),
            Some(members) => members.get(rank as usize).copied().ok_or(NO_SUCH_RANK),
        }
    }
}

impl Messages for Endpoint {
    type P2p = Self;
    fn messages(&mut self) -> &mut Self {
        self
    }
}

impl P2p for Endpoint {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    unsafe fn post_send(&mut self, to: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError> {
        let channel = Channel { from: self.in_world(self.rank)?, to: self.in_world(to)? };
        // SAFETY: the caller's promise.
        Ok(unsafe { self.net.borrow_mut().send(channel, tag, buf) })
    }

    unsafe fn post_recv(&mut self, from: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError> {
        let channel = Channel { from: self.in_world(from)?, to: self.in_world(self.rank)? };
        // SAFETY: the caller's promise.
        Ok(unsafe { self.net.borrow_mut().receive(channel, tag, buf) })
    }

    fn test(&mut self, slot: Slot) -> Result<bool, P2pError> {
        let rank = self.in_world(self.rank)?;
        self.net.borrow_mut().test(rank, slot)
    }
}

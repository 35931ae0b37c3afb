//! Binomial broadcast: receive from the parent, send to the children, the largest subtree first.

use crate::Rank;
use crate::buffer::Buf;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::Machine;
use crate::p2p::{P2p, P2pError, Tag};
use crate::pattern::tree::{Position, Tree};
use crate::step::{Await, Awaits, Slot, Source, Step};
use crate::transport::Messages;

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binomial {
    operation: u64,
    buffer: Buf,
    tree: Position,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Receive,
    Received {
        slot: Slot,
        from: Rank,
    },
    /// Sends to the child of this index.
    Send {
        child: u32,
    },
    Sent {
        child: u32,
        slot: Slot,
    },
    Done,
}

impl Binomial {
    /// Process `rank` of `size`: `buffer` goes from `root` to everyone, as `operation` (the messages' tag).
    ///
    /// # Errors
    /// `rank` or `root` is not below `size`.
    ///
    /// # Safety
    /// `buffer` is readable at the root, writable elsewhere, and nobody else's until the machine is
    /// done or the point-to-point layer is dropped.
    pub unsafe fn new(rank: Rank, size: u32, buffer: Buf, root: Rank, operation: u64) -> Result<Self, Refusal> {
        Refusal::check(Argument::Rank, rank.into(), Bound::Below(size.into()))?;
        Refusal::check(Argument::Root, root.into(), Bound::Below(size.into()))?;
        let state = if rank == root { State::Send { child: 0 } } else { State::Receive };
        Ok(Self { operation, buffer, tree: Tree::BINOMIAL.position(rank, root, size), state })
    }

    fn wait(&self, slot: Slot, peer: Rank) -> Step {
        let source = Source::Message(slot);
        Step::Wait(Awaits::one(Await { source, peer: Some(peer), operation: self.operation }))
    }
}

impl<X: Messages + ?Sized> Machine<X> for Binomial {
    fn poll(&mut self, x: &mut X) -> Result<Step, PollError> {
        let layer = x.messages();
        let tag = Tag(self.operation);
        let failed = |peer| move |P2pError(code)| PollError::Messages { peer, code };
        loop {
            self.state = match self.state {
                State::Receive => match self.tree.parent() {
                    Some(from) => {
                        // SAFETY: `new`'s contract; a receive is posted once.
                        let posted = unsafe { layer.post_recv(from, tag, self.buffer) };
                        State::Received { slot: posted.map_err(failed(from))?, from }
                    }
                    None => State::Send { child: 0 },
                },
                State::Received { slot, from } => {
                    if !layer.test(slot).map_err(failed(from))? {
                        return Ok(self.wait(slot, from));
                    }
                    State::Send { child: 0 }
                }
                State::Send { child } => match self.tree.children().nth(child as usize) {
                    Some(to) => {
                        // SAFETY: `new`'s contract; the buffer is complete and only read from here on.
                        let posted = unsafe { layer.post_send(to, tag, self.buffer) };
                        State::Sent { slot: posted.map_err(failed(to))?, child }
                    }
                    None => State::Done,
                },
                State::Sent { child, slot } => {
                    let to = self.tree.children().nth(child as usize).unwrap_or(0);
                    if !layer.test(slot).map_err(failed(to))? {
                        return Ok(self.wait(slot, to));
                    }
                    State::Send { child: child + 1 }
                }
                State::Done => return Ok(Step::Done),
            };
        }
    }
}

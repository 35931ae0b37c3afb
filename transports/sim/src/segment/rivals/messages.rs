//! Messages between two ranks, as Open MPI's `btl/sm` sends them: a message of up to [`BESIDE`] bytes lies beside its number, a longer
//! eager one in a fragment of the sender's, and of one beyond the eager limit the receiver copies the sender's buffer
//! (rendezvous, RGET). A pair of ranks has a line for numbers each way (a fast box), so nobody searches.
//!
//! A message is a range of the vector on which a call works, the same range at both ranks.

use super::Done;
use super::process::{Id, Process};
use std::ops::Range;
use unisono_kernel::Rank;
use unisono_kernel::error::WaitError;
use unisono_kernel::machine::poll::Until;
use unisono_kernel::region::Cico;

/// Bytes that fit in the line of a message's number.
const BESIDE: usize = 48;

/// Fragments of a rank.
const FRAGMENTS: u32 = 64;

/// In a message's number: no fragment, the message is in the sender's buffer.
const RENDEZVOUS: u64 = 0xff;

/// The segment's part for messages of up to so many eager bytes.
pub(super) const fn shape(eager: u64) -> Cico {
    Cico { slots: FRAGMENTS, fragment: eager, sets: 1 }
}

#[derive(Debug)]
pub(super) struct Messages {
    /// By rank: messages sent to it, and received from it.
    sent: Vec<u64>,
    received: Vec<u64>,
    /// By fragment: the message in it last.
    held: [Option<(Rank, u64)>; FRAGMENTS as usize],
    next: u32,
    eager: usize,
}

impl Messages {
    pub(super) fn new(me: &Process, eager: usize) -> Self {
        let none = vec![0; me.size() as usize];
        Self { sent: none.clone(), received: none, held: [None; FRAGMENTS as usize], next: 0, eager }
    }

    /// The number of the last message from one rank to another, and its fragment.
    fn number(me: &Process, from: Rank, to: Rank) -> Id {
        me.layout.control_all(from, 0, to).into()
    }

    /// How many messages of the other one a rank has taken: on the second line of the pair.
    fn taken(me: &Process, from: Rank, to: Rank) -> Id {
        me.layout.control_all(to, 8, from).into()
    }

    /// Sends `vector[range]`. A message that is not eager is in the buffer, and must stay there until [`Self::sent_all`].
    pub(super) fn send(&mut self, me: &Process, to: Rank, vector: &[u8], range: Range<usize>) -> Done {
        let count = self.sent[to as usize] + 1;
        // One number lies in the line at a time.
        me.reaches(Self::taken(me, me.rank, to), count - 1, to)?;
        let bytes = &vector[range];
        let fragment = if bytes.len() > self.eager {
            RENDEZVOUS
        } else {
            let fragment = self.next;
            self.next = (fragment + 1) % FRAGMENTS;
            if let Some((peer, before)) = self.held[fragment as usize].replace((to, count)) {
                me.reaches(Self::taken(me, me.rank, peer), before, peer)?;
            }
            let at = me.layout.fragment(me.rank, fragment);
            if bytes.len() > BESIDE {
                me.write(at, bytes)
            } else {
                me.has(at, bytes)
            }
            fragment.into()
        };
        self.sent[to as usize] = count;
        me.store(Self::number(me, me.rank, to), count << 8 | fragment);
        Ok(())
    }

    /// Receives `bytes`, which lie at `range` of the sender's vector.
    pub(super) fn receive(&mut self, me: &Process, from: Rank, bytes: &mut [u8], range: Range<usize>) -> Done {
        let count = self.received[from as usize] + 1;
        self.received[from as usize] = count;
        let number = me.wait(Self::number(me, from, me.rank), Until::AtLeast(count << 8), from)?;
        let fragment = number & 0xff;
        if fragment == RENDEZVOUS {
            me.read(me.layout.slot(from, 0).part(range.start as u64, range.len() as u64), bytes);
        } else {
            let at = me.layout.fragment(from, fragment as u32);
            if bytes.len() > BESIDE { me.read(at, bytes) } else { me.look(at, bytes) }
        }
        me.store(Self::taken(me, from, me.rank), count);
        Ok(())
    }

    /// Waits until `to` has taken all that was sent to it, if it was not eager.
    pub(super) fn sent_all(&self, me: &Process, to: Rank, bytes: usize) -> Result<(), WaitError> {
        if bytes > self.eager { me.reaches(Self::taken(me, me.rank, to), self.sent[to as usize], to) } else { Ok(()) }
    }
}

//! Messages through mailboxes: the messages of each process, and the machine that sends and receives them.

use super::hash::spread;
use std::hash::Hash;
use unisono_kernel::Rank;
use unisono_kernel::comm::Member;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{PollError, Refusal};
use unisono_kernel::machine::Machine;
use unisono_kernel::machine::p2p::{P2p, P2pError, Tag};
use unisono_kernel::machine::poll::{Poll, Slot, WaitSet};
use unisono_kernel::machine::transport::Shared;
use unisono_shm::{Mailbox, Peer, Post};

/// The error of a process whose posted requests all wait for requests that it has not posted.
const STUCK: P2pError = P2pError(-1);

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Letter {
    /// Its sender.
    pub from: Rank,
    /// Its receiver.
    pub to: Rank,
    /// Its tag.
    pub tag: u64,
    /// Its bytes.
    pub len: usize,
}

/// The messages of a model. Each process posts its own ones in this order, two at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mail {
    /// The messages.
    pub letters: &'static [Letter],
    /// Rank 1 posts in reverse order.
    pub falling: bool,
}

impl Mail {
    /// Number of messages, and `-falling`.
    pub(crate) fn name(self) -> String {
        format!("mail-{}{}", self.letters.len(), if self.falling { "-falling" } else { "" })
    }

    /// Bytes of user memory: a place for each message.
    pub(crate) fn memory(self) -> usize {
        self.letters.iter().map(|letter| letter.len).sum()
    }

    /// User memory before and after.
    pub(crate) fn fill(self, rank: Rank, done: bool, blank: u8) -> Vec<u8> {
        let byte = |at: usize, k: usize| spread((at as u64 + 1) << 32 | k as u64) as u8;
        let of = |(at, letter): (usize, &Letter)| -> Vec<u8> {
            let has = letter.from == rank || done && letter.to == rank;
            (0..letter.len).map(|k| if has { byte(at, k) } else { blank }).collect()
        };
        self.letters.iter().enumerate().flat_map(of).collect()
    }

    /// The process's machine, on user memory that starts at `memory`.
    pub(crate) fn machine(self, me: &Member, memory: *mut u8) -> Result<Talk, Refusal> {
        let post = Post::new(*me.layout(), me.rank(), [Peer::default(); 3])?;
        Ok(Talk { mail: self, rank: me.rank(), memory, post, next: 0, active: [None; 2] })
    }
}

/// One process's part: posts, two at a time, and tests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Talk {
    mail: Mail,
    rank: Rank,
    memory: *mut u8,
    post: Post<[Peer; 3]>,
    next: usize,
    active: [Option<Slot>; 2],
}

impl Talk {
    /// The `index`-th message of this process, and where its bytes begin.
    fn own(&self, index: usize) -> Option<(Letter, usize)> {
        let places =
            self.mail.letters.iter().scan(0, |at, letter| Some((*letter, std::mem::replace(at, *at + letter.len))));
        let mut own: Vec<_> = places.filter(|(letter, _)| letter.from == self.rank || letter.to == self.rank).collect();
        if self.mail.falling && self.rank == 1 {
            own.reverse();
        }
        own.get(index).copied()
    }

    fn post<P: P2p>(&self, mailbox: &mut P, (letter, at): (Letter, usize)) -> Result<Slot, P2pError> {
        let buf = Buf::new(self.memory.wrapping_add(at), letter.len);
        if letter.from == self.rank {
            // SAFETY: the place is this message's alone, in memory that outlives the model.
            unsafe { mailbox.post_send(letter.to, Tag(letter.tag), buf) }
        } else {
            // SAFETY: as above.
            unsafe { mailbox.post_recv(letter.from, Tag(letter.tag), buf) }
        }
    }
}

impl<X: Shared + ?Sized> Machine<X> for Talk {
    fn poll(&mut self, x: &mut X) -> Result<Poll, PollError> {
        let failed = |P2pError(code)| PollError::Messages { peer: 0, code };
        let mut mailbox = Mailbox::new(x.shared().0, self.post.clone());
        let mut active = self.active;
        loop {
            for place in &mut active {
                if let (None, Some(own)) = (&place, self.own(self.next)) {
                    *place = Some(self.post(&mut mailbox, own).map_err(failed)?);
                    self.next += 1;
                }
            }
            let mut moved = false;
            for place in &mut active {
                if let Some(slot) = *place
                    && mailbox.test(slot).map_err(failed)?
                {
                    (*place, moved) = (None, true);
                }
            }
            // A test may complete the other request, too.
            moved |= active.iter().flatten().any(|slot| mailbox.post().is_over(*slot));
            if !moved {
                break;
            }
        }
        (self.active, self.post) = (active, mailbox.into_post());
        let mut events = self.active.iter().flatten().filter_map(|slot| self.post.event(*slot, 0));
        Ok(match (events.next(), events.next()) {
            (None, _) if self.active == [None; 2] => Poll::Done,
            // Only this process's requests could move these, and it has no further ones.
            (None, _) => return Err(failed(STUCK)),
            (Some(one), None) => Poll::Wait(WaitSet::one(one)),
            (Some(one), Some(other)) => Poll::Wait(WaitSet::either(one, other)),
        })
    }
}

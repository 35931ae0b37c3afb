//! Point-to-point messages inside a segment: the kernel's [`P2p`] over the mailboxes of its layout
//! ([`unisono_kernel::region::mailboxes`]), for any kind of region.
//!
//! A message is cut into fragments. The sender writes a fragment to its slot and publishes the slot's sequence word.
//! The receiver copies the fragment out and publishes how many it has copied. A send is complete when its last
//! fragment is in the mailbox, a receive when it has copied its last fragment out.
//!
//! The messages of a pair of ranks start in the order in which they were posted, so a receiver looks at them in that
//! order: a receive matches the first message with its tag. It looks only among the `m` oldest messages of the pair
//! that have not been received, where `m` is the layout's [`messages`](unisono_kernel::region::Mailboxes::messages).
//! So a process that receives in another order than was sent may skip up to m − 1 messages.
//!
//! Requests make progress only in calls: each send that is posted and each test advances all requests of this
//! process. No call blocks or allocates. A process may have [`REQUESTS`] requests at once.
//!
//! Words that a peer writes are checked against private copies. A word larger than it can be is [`OVERRUN`]. If the
//! length of a message differs from the receive's, the error is [`P2pError::LENGTH`], and the message stays in the
//! mailbox. So does a message whose tag no receive has. Wrong bytes in a payload can't be noticed.

use heapless::Vec;
use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Condition, Refusal};
use unisono_kernel::machine::p2p::{P2p, P2pError, Tag};
use unisono_kernel::machine::poll::{Await, Slot, Source, Until};
use unisono_kernel::region::mailboxes::{MOST_NUMBER, count};
use unisono_kernel::region::{Flag, FlagId, Layout, Pair, Region, Untrusted};

/// The peer's rank is not below the size.
pub const NO_SUCH_RANK: P2pError = P2pError(1);
/// The slot has no active request.
pub const NO_SUCH_SLOT: P2pError = P2pError(3);
/// The process has [`REQUESTS`] requests already.
pub const FULL: P2pError = P2pError(4);
/// A peer's word is larger than it can be: the peer does not keep the protocol, or something else has written to the
/// segment.
pub const OVERRUN: P2pError = P2pError(5);
/// The message has more fragments, or the pair of ranks more messages, than can be numbered.
pub const TOO_LONG: P2pError = P2pError(6);

/// Most requests that a process has at once.
pub const REQUESTS: usize = 64;

/// What a process knows of its messages with one other process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Number of messages to it that were posted.
    posted: u64,
    /// Number of messages to it whose first fragment is in the mailbox.
    begun: u64,
    /// All messages from it before this one were matched with a receive.
    first: u64,
    /// Bit i: message `first` + i from it was matched, too.
    met: u64,
}

impl Peer {
    /// The first message from it, from `message` on, that was not matched with a receive.
    fn unmet(&self, message: u64) -> u64 {
        let message = message.max(self.first);
        let bit = (message - self.first).min(63);
        message + u64::from((self.met >> bit).trailing_ones())
    }

    /// Notes that message `message` from it was matched.
    fn meet(&mut self, message: u64) {
        self.met |= 1 << (message - self.first).min(63);
        let met = self.met.trailing_ones();
        self.first += u64::from(met);
        self.met = self.met.checked_shr(met).unwrap_or(0);
    }
}

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// It sends message `message` to the peer; the fragments before `fragment` are in the mailbox.
    Send { message: u64, fragment: u64 },
    /// A receive that was not matched yet: the messages before `next` were matched with other receives, or have other
    /// tags.
    Expect { next: u64 },
    /// It receives message `message` from the peer; the fragments before `fragment` were copied out.
    Receive { message: u64, fragment: u64 },
    /// It is complete, or has failed.
    Over(Result<(), P2pError>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Request {
    slot: u32,
    peer: Rank,
    tag: Tag,
    buf: Buf,
    state: State,
}

/// A word for which a request waits: the value that it must reach, and the largest that it can have.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    word: FlagId,
    least: u64,
    most: u64,
}

impl Wanted {
    /// Has the word reached the value?
    #[inline]
    fn look<R: Region>(&self, region: &R) -> Result<bool, P2pError> {
        // A slot that was never used is free; then there is no word to load.
        let word = if self.least == 0 { Untrusted::new(0) } else { region.flag(self.word).load_acquire() };
        if word.against(self.most).is_gt() { Err(OVERRUN) } else { Ok(word.at_least(self.least)) }
    }
}

/// Fragment `fragment` of `message` is in the mailbox.
#[inline]
const fn filled(pair: &Pair, message: u64, fragment: u64) -> Wanted {
    let there = count(message, fragment + 1);
    Wanted { word: pair.sequence(message, fragment), least: there, most: there }
}

/// The slot of fragment `fragment` of `message` is free: the fragment that it held last was copied out. The fragments
/// before this one are in the mailbox.
#[inline]
const fn emptied(pair: &Pair, message: u64, fragment: u64) -> Wanted {
    let (messages, slots) = (pair.shape().messages as u64, pair.shape().slots as u64);
    let least = match (fragment.checked_sub(slots), message.checked_sub(messages)) {
        (Some(last), _) => count(message, last + 1),
        (None, Some(last)) => count(last + 1, 0),
        (None, None) => 0,
    };
    // The receiver can't have copied out more than was written.
    let most = if fragment == 0 { least } else { count(message, fragment) };
    Wanted { word: pair.acked(message), least, most }
}

/// A process's requests, and what it knows of its peers, without the region: plain data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Post<P> {
    layout: Layout,
    rank: Rank,
    peers: P,
    /// The requests, in the order in which they were posted.
    requests: Vec<Request, REQUESTS>,
}

impl<P: AsRef<[Peer]> + AsMut<[Peer]>> Post<P> {
    /// The state of process `rank` on a fresh segment of this layout. `peers` has one element per rank, each
    /// `Peer::default()`.
    ///
    /// # Errors
    /// `rank` is not below the number of ranks, the segment has no mailboxes, or `peers` has too few elements.
    pub fn new(layout: Layout, rank: Rank, peers: P) -> Result<Self, Refusal> {
        Refusal::check(Argument::Rank, rank.into(), Bound::Below(layout.ranks().into()))?;
        layout.mailbox(rank, rank).ok_or(Refusal::not(Argument::Messages, Condition::Mailboxes))?;
        Refusal::check(Argument::Ranks, peers.as_ref().len() as u64, Bound::AtLeast(layout.ranks().into()))?;
        Ok(Self { layout, rank, peers, requests: Vec::new() })
    }

    /// Adds a request, in the first free slot.
    fn note(&mut self, peer: Rank, tag: Tag, buf: Buf, state: State) -> Result<Slot, P2pError> {
        let used = self.requests.iter().fold(0u64, |used, request| used | 1 << request.slot);
        let slot = used.trailing_ones();
        self.requests.push(Request { slot, peer, tag, buf, state }).map_err(|_| FULL)?;
        Ok(Slot(slot))
    }

    fn send(&mut self, to: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError> {
        let pair = self.layout.mailbox(self.rank, to).ok_or(NO_SUCH_RANK)?;
        pair.shape().fragments(buf.len() as u64).ok_or(TOO_LONG)?;
        let message = self.peers.as_ref().get(to as usize).ok_or(NO_SUCH_RANK)?.posted;
        if message + 1 == MOST_NUMBER {
            return Err(TOO_LONG);
        }
        let slot = self.note(to, tag, buf, State::Send { message, fragment: 0 })?;
        self.peers.as_mut().iter_mut().skip(to as usize).take(1).for_each(|peer| peer.posted += 1);
        Ok(slot)
    }

    fn receive(&mut self, from: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError> {
        let pair = self.layout.mailbox(from, self.rank).ok_or(NO_SUCH_RANK)?;
        pair.shape().fragments(buf.len() as u64).ok_or(TOO_LONG)?;
        self.note(from, tag, buf, State::Expect { next: 0 })
    }

    /// Is the request complete? If so, or if it has failed, its slot is freed.
    fn test(&mut self, Slot(slot): Slot) -> Result<bool, P2pError> {
        let index = self.requests.iter().position(|request| request.slot == slot).ok_or(NO_SUCH_SLOT)?;
        match self.requests.get(index) {
            Some(&Request { state: State::Over(end), .. }) => {
                self.requests.remove(index);
                end.map(|()| true)
            }
            _ => Ok(false),
        }
    }

    /// Is the request complete, has it failed, or is there none in this slot?
    pub fn is_over(&self, Slot(slot): Slot) -> bool {
        !self.requests.iter().any(|request| request.slot == slot && !matches!(request.state, State::Over(_)))
    }

    /// The event for which an active request waits. `None` if the request waits for another request of this process,
    /// or is complete or has failed. `operation` is the operation to which it belongs.
    pub fn event(&self, Slot(slot): Slot, operation: u64) -> Option<Await> {
        let index = self.requests.iter().position(|request| request.slot == slot)?;
        let peer = self.requests.get(index)?.peer;
        let Wanted { word, least, .. } = self.wanted(index)?;
        Some(Await { source: Source::Flag(word, Until::AtLeast(least)), peer: Some(peer), operation, stage: 0 })
    }

    /// The word for which a request waits; `None` if it waits for another request of this process, or is complete or
    /// has failed.
    fn wanted(&self, index: usize) -> Option<Wanted> {
        let Request { peer, tag, state, .. } = *self.requests.get(index)?;
        let (to, from) = (self.layout.mailbox(self.rank, peer)?, self.layout.mailbox(peer, self.rank)?);
        let known = self.peers.as_ref().get(peer as usize)?;
        match state {
            State::Send { message, fragment } => (message <= known.begun).then(|| emptied(&to, message, fragment)),
            State::Receive { message, fragment } => Some(filled(&from, message, fragment)),
            State::Expect { next } => {
                let same = |other: &&Request| {
                    (other.peer, other.tag) == (peer, tag) && matches!(other.state, State::Expect { .. })
                };
                let oldest = !self.requests.iter().take(index).any(|other| same(&other));
                let next = known.unmet(next);
                let in_window = next - known.first < u64::from(from.shape().messages);
                (oldest && in_window).then(|| filled(&from, next, 0))
            }
            State::Over(_) => None,
        }
    }

    /// Advances all requests as far as possible.
    fn advance<R: Region>(&mut self, region: &R) {
        for index in 0..self.requests.len() {
            while let Some(wanted) = self.wanted(index) {
                let state = match wanted.look(region) {
                    Ok(false) => break,
                    Ok(true) => self.step(region, index),
                    Err(error) => Some(State::Over(Err(error))),
                };
                let Some(state) = state else { break };
                self.requests.iter_mut().skip(index).take(1).for_each(|request| request.state = state);
            }
        }
    }

    /// Advances a request, whose word has reached its value, by one fragment, or past one message with another tag.
    /// Returns its new state.
    fn step<R: Region>(&mut self, region: &R, index: usize) -> Option<State> {
        let Request { peer, tag, buf, state, .. } = *self.requests.get(index)?;
        let (to, from) = (self.layout.mailbox(self.rank, peer)?, self.layout.mailbox(peer, self.rank)?);
        let known = self.peers.as_mut().get_mut(peer as usize)?;
        match state {
            State::Send { message, fragment } => {
                let (part, last) = cut(&to, buf, fragment);
                if fragment == 0 {
                    let head = [tag.0, buf.len() as u64];
                    let words = Buf::new(head.as_ptr().cast_mut().cast(), size_of_val(&head));
                    // SAFETY: two local words; what the slot held was copied out (`emptied`).
                    unsafe { region.write(to.head(message), words) };
                    known.begun += 1;
                }
                // SAFETY: `post_send`'s contract: readable until the request is complete or has failed; the slot as
                // above.
                unsafe { region.write(to.payload(message, fragment), part) };
                // publishes: the head and the bytes, to the receiver
                region.publish(to.sequence(message, fragment), count(message, fragment + 1));
                Some(if last { State::Over(Ok(())) } else { State::Send { message, fragment: fragment + 1 } })
            }
            State::Expect { next } => {
                let message = known.unmet(next);
                let mut head = [0u64; 2];
                let words = Buf::new(head.as_mut_ptr().cast(), size_of_val(&head));
                // SAFETY: two local words; the slot is filled (`filled`), and the sender writes it again only after
                // our `acked`.
                unsafe { region.read(from.head(message), words) };
                let [found, len] = head;
                if tag.0 != found {
                    return Some(State::Expect { next: message + 1 });
                }
                known.meet(message);
                let fits = len == buf.len() as u64;
                Some(if fits { State::Receive { message, fragment: 0 } } else { State::Over(Err(P2pError::LENGTH)) })
            }
            State::Receive { message, fragment } => {
                let (part, last) = cut(&from, buf, fragment);
                // SAFETY: `post_recv`'s contract: writable, and accessed by nothing else until the request is
                // complete or has failed; the slot as above.
                unsafe { region.read(from.payload(message, fragment), part) };
                let copied = if last { count(message + 1, 0) } else { count(message, fragment + 1) };
                // publishes: the copy out of the slot, to the sender that writes it again
                region.publish(from.acked(message), copied);
                Some(if last { State::Over(Ok(())) } else { State::Receive { message, fragment: fragment + 1 } })
            }
            State::Over(_) => None,
        }
    }
}

/// One rank's point-to-point layer: a [`Post`] and its region.
#[derive(Clone, Debug)]
pub struct Mailbox<R, P> {
    region: R,
    post: Post<P>,
}

impl<R: Region, P: AsRef<[Peer]> + AsMut<[Peer]>> Mailbox<R, P> {
    /// `post` on `region`, which has `post`'s layout.
    pub const fn new(region: R, post: Post<P>) -> Self {
        Self { region, post }
    }

    /// This process's private state.
    pub const fn post(&self) -> &Post<P> {
        &self.post
    }

    /// Gives the private state back.
    pub fn into_post(self) -> Post<P> {
        self.post
    }
}

impl<R: Region, P: AsRef<[Peer]> + AsMut<[Peer]>> P2p for Mailbox<R, P> {
    fn rank(&self) -> Rank {
        self.post.rank
    }

    fn size(&self) -> u32 {
        self.post.layout.ranks()
    }

    unsafe fn post_send(&mut self, to: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError> {
        let slot = self.post.send(to, tag, buf)?;
        self.post.advance(&self.region);
        Ok(slot)
    }

    unsafe fn post_recv(&mut self, from: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError> {
        self.post.receive(from, tag, buf)
    }

    fn test(&mut self, slot: Slot) -> Result<bool, P2pError> {
        self.post.advance(&self.region);
        self.post.test(slot)
    }

    fn has_ended(&mut self, slot: Slot) -> bool {
        self.post.advance(&self.region);
        self.post.is_over(slot)
    }
}

/// The bytes of a fragment, and whether it is the last one.
fn cut(pair: &Pair, buf: Buf, fragment: u64) -> (Buf, bool) {
    let room = pair.shape().fragment;
    let at = (fragment * room).min(buf.len() as u64) as usize;
    let rest = buf.len() - at;
    (Buf::new(buf.ptr().wrapping_add(at), rest.min(room as usize)), rest as u64 <= room)
}

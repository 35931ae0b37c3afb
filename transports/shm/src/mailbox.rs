//! Point-to-point messages inside a segment: the kernel's [`P2p`] over the mailboxes of its layout
//! ([`unisono_kernel::region::mailboxes`]), for any kind of region.
//!
//! A message is cut into fragments. The sender writes a fragment to its slot and publishes the slot's sequence word;
//! the receiver copies it out and publishes how far it has come. A send is complete when its last fragment is in the
//! mailbox, a receive when it has copied its last one out.
//!
//! Messages of a pair begin in the order in which they were posted, so a receiver looks at them in that order: a
//! receive takes the first one with its tag. It finds it among the `m` oldest of the pair that have not been taken
//! (`m` being the layout's [`messages`](unisono_kernel::region::Mailboxes::messages)): who receives in another order
//! than was sent may leave m − 1 messages behind.
//!
//! Everything moves when a process calls: each post and test moves all that this process has posted. Nothing blocks,
//! nothing is allocated: a process has [`REQUESTS`] requests at once.
//!
//! What a peer writes is checked against private copies: a word that is ahead of what it can be is [`OVERRUN`], another
//! length than the receive's is [`P2pError::LENGTH`], and the message stays where it is; a tag that nobody asks for stays where it is. Wrong bytes remain
//! possible, as in any payload.

use heapless::Vec;
use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::machine::p2p::{P2p, P2pError, Tag};
use unisono_kernel::machine::poll::{Await, Slot, Source, Until};
use unisono_kernel::region::mailboxes::{MOST_NUMBER, count};
use unisono_kernel::region::{Flag, FlagId, Layout, Pair, Region, Untrusted};

/// The peer's rank is not below the size.
pub const NO_SUCH_RANK: P2pError = P2pError(1);
/// The slot is not active.
pub const NO_SUCH_SLOT: P2pError = P2pError(3);
/// More than [`REQUESTS`] requests.
pub const FULL: P2pError = P2pError(4);
/// A peer's word is ahead of what it can be: it does not keep the protocol, or the segment was written to.
pub const OVERRUN: P2pError = P2pError(5);
/// The message has more fragments than can be numbered, or the pair more messages.
pub const TOO_LONG: P2pError = P2pError(6);

/// Requests of a process at once.
pub const REQUESTS: usize = 64;

/// What a process knows of its messages with one other process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Messages to it that were posted, and that have begun to travel.
    posted: u64,
    begun: u64,
    /// Messages from it: all before `first` have met their receives; bit i: so has `first` + i.
    first: u64,
    met: u64,
}

impl Peer {
    /// The first message from it that has met no receive, from `message` on.
    fn unmet(&self, message: u64) -> u64 {
        let message = message.max(self.first);
        let behind = (message - self.first).min(63);
        message + u64::from((self.met >> behind).trailing_ones())
    }

    /// Message `message` from it has met its receive.
    fn meet(&mut self, message: u64) {
        self.met |= 1 << (message - self.first).min(63);
        let met = self.met.trailing_ones();
        self.first += u64::from(met);
        self.met = self.met.checked_shr(met).unwrap_or(0);
    }
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Message `message` to the peer, fragments before `fragment` are in the mailbox.
    Send { message: u64, fragment: u64 },
    /// No message has come yet for this receive: all before `next` have met others, or have other tags.
    Expect { next: u64 },
    /// Message `message` from the peer, fragments before `fragment` have been copied out.
    Receive { message: u64, fragment: u64 },
    /// The end.
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

/// A value that a word must reach, and the largest that its writer may have come to.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    word: FlagId,
    least: u64,
    most: u64,
}

impl Wanted {
    /// Is it there?
    #[inline]
    fn look<R: Region>(&self, region: &R) -> Result<bool, P2pError> {
        // A slot that was never used before is free: no word says so.
        let word = if self.least == 0 { Untrusted::new(0) } else { region.flag(self.word).load_acquire() };
        if word.against(self.most).is_gt() { Err(OVERRUN) } else { Ok(word.at_least(self.least)) }
    }
}

/// Fragment `fragment` of `message` in the mailbox.
#[inline]
const fn filled(pair: &Pair, message: u64, fragment: u64) -> Wanted {
    let there = count(message, fragment + 1);
    Wanted { word: pair.sequence(message, fragment), least: there, most: there }
}

/// The slot of fragment `fragment` of `message`, all before it being in the mailbox: what it held last has been copied
/// out.
#[inline]
const fn emptied(pair: &Pair, message: u64, fragment: u64) -> Wanted {
    let (messages, slots) = (pair.shape().messages as u64, pair.shape().slots as u64);
    let least = match (fragment.checked_sub(slots), message.checked_sub(messages)) {
        (Some(last), _) => count(message, last + 1),
        (None, Some(last)) => count(last + 1, 0),
        (None, None) => 0,
    };
    // Nobody takes what is not there yet.
    let most = if fragment == 0 { least } else { count(message, fragment) };
    Wanted { word: pair.acked(message), least, most }
}

/// A process's requests and peers, without the region: plain data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Post<P> {
    layout: Layout,
    rank: Rank,
    peers: P,
    /// In the order in which they were posted.
    requests: Vec<Request, REQUESTS>,
}

impl<P: AsRef<[Peer]> + AsMut<[Peer]>> Post<P> {
    /// Process `rank` of a fresh segment of this layout. `peers` holds one for each rank, all `Peer::default()`.
    ///
    /// # Errors
    /// `rank` is not below the number of ranks, the segment has no mailboxes, `peers` are too few.
    pub fn new(layout: Layout, rank: Rank, peers: P) -> Result<Self, Refusal> {
        Refusal::check(Argument::Rank, rank.into(), Bound::Below(layout.ranks().into()))?;
        layout.mailbox(rank, rank).ok_or(Refusal::new(Argument::Messages, 0, Bound::AtLeast(1)))?;
        Refusal::check(Argument::Ranks, peers.as_ref().len() as u64, Bound::AtLeast(layout.ranks().into()))?;
        Ok(Self { layout, rank, peers, requests: Vec::new() })
    }

    /// Notes a request in the first free slot.
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

    /// Is the request over? True and errors free its slot.
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

    /// Is the request over, or unknown?
    pub fn is_over(&self, Slot(slot): Slot) -> bool {
        !self.requests.iter().any(|request| request.slot == slot && !matches!(request.state, State::Over(_)))
    }

    /// The event that an active request waits for, where that is a word of a peer: not where another request of this
    /// process comes first. `operation` is whose request it is.
    pub fn event(&self, Slot(slot): Slot, operation: u64) -> Option<Await> {
        let index = self.requests.iter().position(|request| request.slot == slot)?;
        let peer = self.requests.get(index)?.peer;
        let Wanted { word, least, .. } = self.wanted(index)?;
        Some(Await { source: Source::Flag(word, Until::AtLeast(least)), peer: Some(peer), operation, stage: 0 })
    }

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

    /// Moves all requests as far as they come.
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

    /// Moves a request by one fragment, or past one message that is not its own; what it waited for is there.
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
                    // SAFETY: two words of ours; what the slot held was copied out (`emptied`).
                    unsafe { region.write(to.head(message), words) };
                    known.begun += 1;
                }
                // SAFETY: `post_send`'s contract: readable until the request is over; the slot as above.
                unsafe { region.write(to.payload(message, fragment), part) };
                // publishes: the head and the bytes, to the receiver
                region.publish(to.sequence(message, fragment), count(message, fragment + 1));
                Some(if last { State::Over(Ok(())) } else { State::Send { message, fragment: fragment + 1 } })
            }
            State::Expect { next } => {
                let message = known.unmet(next);
                let mut head = [0u64; 2];
                let words = Buf::new(head.as_mut_ptr().cast(), size_of_val(&head));
                // SAFETY: two words of ours; the sender writes the slot again when all of it was taken (`filled`).
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
                // SAFETY: `post_recv`'s contract: writable and ours until the request is over; the slot as above.
                unsafe { region.read(from.payload(message, fragment), part) };
                let behind = if last { count(message + 1, 0) } else { count(message, fragment + 1) };
                // publishes: the copy out of the slot, to the sender that writes it again
                region.publish(from.acked(message), behind);
                Some(if last { State::Over(Ok(())) } else { State::Receive { message, fragment: fragment + 1 } })
            }
            State::Over(_) => None,
        }
    }
}

/// One rank's end: a [`Post`] and the region that it is for.
#[derive(Clone, Debug)]
pub struct Mailbox<R, P> {
    region: R,
    post: Post<P>,
}

impl<R: Region, P: AsRef<[Peer]> + AsMut<[Peer]>> Mailbox<R, P> {
    /// `post` on the region whose layout it has.
    pub const fn new(region: R, post: Post<P>) -> Self {
        Self { region, post }
    }

    /// The private state.
    pub const fn post(&self) -> &Post<P> {
        &self.post
    }

    /// The end of it.
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

/// The bytes of a fragment; is it the last one?
fn cut(pair: &Pair, buf: Buf, fragment: u64) -> (Buf, bool) {
    let room = pair.shape().fragment;
    let at = (fragment * room).min(buf.len() as u64) as usize;
    let rest = buf.len() - at;
    (Buf::new(buf.ptr().wrapping_add(at), rest.min(room as usize)), rest as u64 <= room)
}

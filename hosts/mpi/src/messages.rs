//! Point-to-point messages of an MPI, as the kernel's [`P2p`]: what `include/unisono_messages.h` declares.
//!
//! A message of 2³⁰ bytes or more goes in pieces of so many, the last one shorter, maybe empty: so no count is beyond a
//! C `int`, and two lengths that differ differ in a piece, which its receiver sees. Tags are operations' numbers modulo the
//! MPI's number of tags but one: the last tag is that of news, by which a process that has failed tells others why.

use core::ffi::{c_int, c_void};
use core::fmt;
use std::time::{Duration, Instant};
use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::Poison;
use unisono_kernel::machine::p2p::{P2p, P2pError, Tag, Tell};
use unisono_kernel::machine::poll::{Slot, Source, WaitSet};
use unisono_kernel::machine::transport::{Messages, Observe};
use unisono_kernel::region::state;

/// The slot is not active.
pub const NO_SUCH_SLOT: P2pError = P2pError(-16);
/// The peer's rank is not below the size.
pub const NO_SUCH_RANK: P2pError = P2pError(-17);

/// Most bytes of a message: `UNISONO_MESSAGES_MOST`.
const MOST: usize = 1 << 30;

/// Most bytes of a piece; few in tests.
const PIECE: usize = if cfg!(test) { 1 << 12 } else { MOST };

/// From any rank: `UNISONO_MESSAGES_ANY`.
const ANY: Rank = Rank::MAX;

/// How long whoever tells news sees to it that they leave.
const LEAVE: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 1000 });

/// `struct unisono_messages`: functions of C, and what they take first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Layer {
    context: *mut c_void,
    rank: u32,
    size: u32,
    tags: u64,
    send: unsafe extern "C" fn(*mut c_void, *const u8, u64, u32, c_int, *mut usize) -> c_int,
    probe: unsafe extern "C" fn(*mut c_void, u32, c_int, *mut c_int, *mut u64) -> c_int,
    receive: unsafe extern "C" fn(*mut c_void, *mut u8, u64, u32, c_int, *mut usize) -> c_int,
    test: unsafe extern "C" fn(*mut c_void, *mut usize, *mut c_int) -> c_int,
    close: unsafe extern "C" fn(*mut c_void) -> c_int,
}

/// Success, or the error's number.
fn answer(code: c_int) -> Result<(), P2pError> {
    if code == 0 { Ok(()) } else { Err(P2pError(code)) }
}

/// What an error's number means; the MPI's own are its error classes.
pub fn describe(error: P2pError) -> impl fmt::Display {
    fmt::from_fn(move |f| match error.0 {
        _ if error == P2pError::LENGTH => f.write_str("a message has another length than its receive"),
        -2 => f.write_str("MPI is not initialised, or finalised"),
        -3 => f.write_str("the communicator is MPI_COMM_NULL"),
        -4 => f.write_str("the communicator is an inter-communicator"),
        -5 => f.write_str("the library was built for another MPI"),
        -16 => f.write_str("no such request"),
        -17 => f.write_str("no such rank"),
        class => write!(f, "the MPI's error class {class}"),
    })
}

/// A send or a receive that the MPI works on.
type Request = usize;

/// What a slot holds.
#[derive(Debug)]
enum Posted {
    Free,
    /// The pieces that have not ended, the last one first.
    Send(Vec<Request>),
    Receive(Receive),
    Ended(Result<(), P2pError>),
}

#[derive(Clone, Copy, Debug)]
struct Receive {
    /// The order of posts.
    number: u64,
    peer: Rank,
    tag: c_int,
    buf: Buf,
    /// Pieces that have been received.
    pieces: usize,
    /// The next one, once its message has come.
    under_way: Option<Request>,
}

impl Receive {
    /// Has every piece met its message?
    fn has_met(&self) -> bool {
        self.pieces + usize::from(self.under_way.is_some()) > self.buf.len() / PIECE
    }
}

/// One process's end of an MPI communicator.
///
/// When it is dropped, sends that no receiver has taken are waited for: an MPI can't take them back.
#[derive(Debug)]
pub struct Endpoint {
    layer: Layer,
    slots: Vec<Posted>,
    /// Receives posted so far.
    receives: u64,
    /// What was given up, and has not ended; with the memory that a message of a wrong length goes to.
    left: Vec<(Request, Vec<u8>)>,
}

// SAFETY: the layer's functions may be called by any thread, one at a time; `MPI_THREAD_SERIALIZED` or more is the
// maker's promise.
unsafe impl Send for Endpoint {}

impl Endpoint {
    /// On a layer of C's.
    ///
    /// # Safety
    /// The layer was connected by `unisono_messages_connect`, or does what the header says, and is this endpoint's alone.
    /// More than one thread uses it, or the MPI, only as `MPI_Init_thread` granted.
    pub const unsafe fn new(layer: Layer) -> Self {
        Self { layer, slots: Vec::new(), receives: 0, left: Vec::new() }
    }

    /// Gives up all that was posted, after an error: nothing is received any more, messages that were on their way here are
    /// awaited. Sends that no receiver has taken are still read until the endpoint is dropped: how many.
    pub fn give_up(&mut self) -> usize {
        for posted in std::mem::take(&mut self.slots) {
            match posted {
                Posted::Send(pieces) => self.left.extend(pieces.into_iter().map(|piece| (piece, Vec::new()))),
                Posted::Receive(Receive { under_way: Some(request), .. }) => self.layer.wait(request),
                _ => {}
            }
        }
        self.left.len()
    }

    /// Tells `ranks` how the operations of this process ended, so that nobody waits for it: once at most, after an error.
    pub fn tell(&mut self, ranks: impl IntoIterator<Item = Rank>, how: Poison) {
        let news: Vec<u8> = state::words(how).into_iter().flat_map(u64::to_le_bytes).collect();
        let begun = ranks.into_iter().filter_map(|rank| {
            let news = news.clone();
            // Whoever can't be told is not.
            Some((self.layer.send(rank, self.layer.news(), Buf::of(&news)).ok()?, news))
        });
        let (mut under_way, begin): (Vec<_>, _) = (begun.collect(), Instant::now());
        while !under_way.is_empty() && begin.elapsed() < LEAVE {
            under_way.retain_mut(|(request, _)| self.layer.has_ended(request) == Ok(false));
            std::thread::yield_now();
        }
        self.left.append(&mut under_way);
    }

    fn post(&mut self, posted: Posted) -> Slot {
        match self.slots.iter_mut().zip(0..).find(|(slot, _)| matches!(slot, Posted::Free)) {
            Some((slot, number)) => {
                *slot = posted;
                Slot(number)
            }
            None => {
                self.slots.push(posted);
                Slot(self.slots.len() as u32 - 1)
            }
        }
    }

    fn check(&self, peer: Rank) -> Result<(), P2pError> {
        if peer < self.layer.size { Ok(()) } else { Err(NO_SUCH_RANK) }
    }

    const fn tag(&self, Tag(tag): Tag) -> c_int {
        (tag % (self.layer.tags - 1)) as c_int
    }

    /// Moves what is in a slot.
    fn advance(&mut self, at: usize) -> Result<(), P2pError> {
        let Self { layer, slots, left, .. } = self;
        match slots.get_mut(at) {
            Some(Posted::Send(pieces)) => {
                while let Some(piece) = pieces.last_mut() {
                    if !layer.has_ended(piece)? {
                        return Ok(());
                    }
                    pieces.pop();
                }
            }
            Some(Posted::Receive(receive)) => {
                while receive.pieces <= receive.buf.len() / PIECE {
                    if let Some(request) = &mut receive.under_way {
                        if !layer.has_ended(request)? {
                            return Ok(());
                        }
                        (receive.pieces, receive.under_way) = (receive.pieces + 1, None);
                    } else {
                        receive.under_way = layer.meet(receive, left)?;
                        if receive.under_way.is_none() {
                            return Ok(());
                        }
                    }
                }
            }
            _ => return Ok(()),
        }
        self.end(at, Ok(()));
        Ok(())
    }

    /// The receives that take the messages of one peer and tag before the one in a slot.
    fn before(&self, at: usize) -> Vec<usize> {
        let Some(Posted::Receive(receive)) = self.slots.get(at) else { return Vec::new() };
        let earlier = |posted: &Posted| match posted {
            Posted::Receive(other) if other.peer == receive.peer && other.tag == receive.tag => {
                (other.number < receive.number && !other.has_met()).then_some(other.number)
            }
            _ => None,
        };
        let mut all: Vec<_> = (0..).zip(&self.slots).filter_map(|(at, posted)| Some((earlier(posted)?, at))).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, at)| at).collect()
    }

    fn advance_or_fail(&mut self, at: usize) {
        if let Err(error) = self.advance(at) {
            self.end(at, Err(error));
        }
    }

    fn end(&mut self, at: usize, result: Result<(), P2pError>) {
        if let Some(posted) = self.slots.get_mut(at) {
            *posted = Posted::Ended(result);
        }
    }
}

/// The piece of this number.
fn piece(buf: Buf, number: usize) -> Buf {
    let at = number * PIECE;
    Buf::new(buf.ptr().wrapping_add(at), (buf.len() - at).min(PIECE))
}

impl Layer {
    /// The tag of news.
    const fn news(&self) -> c_int {
        (self.tags - 1) as c_int
    }

    fn send(&self, to: Rank, tag: c_int, buf: Buf) -> Result<Request, P2pError> {
        let mut request = 0;
        // SAFETY: `Endpoint::new`'s contract; the bytes are readable by `post_send`'s.
        answer(unsafe { (self.send)(self.context, buf.ptr(), buf.len() as u64, to, tag, &raw mut request) })?;
        Ok(request)
    }

    /// Begins to receive the next piece, if its message has come.
    fn meet(&self, receive: &Receive, left: &mut Vec<(Request, Vec<u8>)>) -> Result<Option<Request>, P2pError> {
        let Receive { peer, tag, buf, pieces, .. } = *receive;
        let (mut found, mut len, mut request) = (0, 0, 0);
        // SAFETY: `Endpoint::new`'s contract; integers of ours.
        answer(unsafe { (self.probe)(self.context, peer, tag, &raw mut found, &raw mut len) })?;
        if found == 0 {
            return Ok(None);
        }
        let buf = piece(buf, pieces);
        if len != buf.len() as u64 {
            // Its sender shall not wait: it goes elsewhere.
            let mut elsewhere = vec![0; len as usize];
            // SAFETY: `Endpoint::new`'s contract; the memory is kept until the request has ended.
            answer(unsafe { (self.receive)(self.context, elsewhere.as_mut_ptr(), len, peer, tag, &raw mut request) })?;
            left.push((request, elsewhere));
            return Err(P2pError::LENGTH);
        }
        // SAFETY: `Endpoint::new`'s contract; the bytes are writable by `post_recv`'s.
        answer(unsafe { (self.receive)(self.context, buf.ptr(), len, peer, tag, &raw mut request) })?;
        Ok(Some(request))
    }

    fn has_ended(&self, request: &mut Request) -> Result<bool, P2pError> {
        let mut done = 0;
        // SAFETY: `Endpoint::new`'s contract; a request of this layer's that has not ended.
        answer(unsafe { (self.test)(self.context, request, &raw mut done) })?;
        Ok(done != 0)
    }

    /// Waits until it has ended, well or not.
    fn wait(&self, mut request: Request) {
        while self.has_ended(&mut request) == Ok(false) {
            std::thread::yield_now();
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.give_up();
        // What others told, and nobody asked after.
        while self.news().is_some() {}
        for (request, _) in &self.left {
            self.layer.wait(*request);
        }
        // SAFETY: `Endpoint::new`'s contract: the layer is this endpoint's, which has no requests any more.
        let _ = unsafe { (self.layer.close)(self.layer.context) };
    }
}

impl P2p for Endpoint {
    fn rank(&self) -> Rank {
        self.layer.rank
    }

    fn size(&self) -> u32 {
        self.layer.size
    }

    unsafe fn post_send(&mut self, to: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError> {
        self.check(to)?;
        let tag = self.tag(tag);
        let mut pieces = Vec::with_capacity(1);
        for number in 0..=buf.len() / PIECE {
            match self.layer.send(to, tag, piece(buf, number)) {
                Ok(request) => pieces.insert(0, request),
                Err(error) => {
                    self.left.extend(pieces.into_iter().map(|piece| (piece, Vec::new())));
                    return Err(error);
                }
            }
        }
        Ok(self.post(Posted::Send(pieces)))
    }

    unsafe fn post_recv(&mut self, from: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError> {
        self.check(from)?;
        let (number, tag) = (self.receives, self.tag(tag));
        self.receives += 1;
        Ok(self.post(Posted::Receive(Receive { number, peer: from, tag, buf, pieces: 0, under_way: None })))
    }

    fn test(&mut self, slot: Slot) -> Result<bool, P2pError> {
        if !self.has_ended(slot) {
            return Ok(false);
        }
        let posted = self.slots.get_mut(slot.0 as usize).ok_or(NO_SUCH_SLOT)?;
        match std::mem::replace(posted, Posted::Free) {
            Posted::Ended(result) => result.map(|()| true),
            _ => Err(NO_SUCH_SLOT),
        }
    }

    fn news(&mut self) -> Option<Poison> {
        let mut words = [[0; 8]; 5];
        let buf = Buf::of_mut(words.as_flattened_mut());
        let receive = Receive { number: 0, peer: ANY, tag: self.layer.news(), buf, pieces: 0, under_way: None };
        let request = self.layer.meet(&receive, &mut self.left).ok()??;
        self.layer.wait(request);
        Some(state::of_words(words.map(u64::from_le_bytes)))
    }

    fn has_ended(&mut self, slot: Slot) -> bool {
        let at = slot.0 as usize;
        for earlier in self.before(at) {
            self.advance_or_fail(earlier);
            if matches!(self.slots.get(earlier), Some(Posted::Receive(receive)) if !receive.has_met()) {
                return false;
            }
        }
        self.advance_or_fail(at);
        !matches!(self.slots.get(at), Some(Posted::Send(_) | Posted::Receive(_)))
    }
}

impl Tell for Endpoint {
    fn tell(&mut self, ranks: impl Iterator<Item = Rank>, why: Poison) {
        Self::tell(self, ranks, why);
    }

    fn give_up(&mut self) {
        Self::give_up(self);
    }
}

impl Messages for Endpoint {
    type P2p = Self;
    fn messages(&mut self) -> &mut Self {
        self
    }
}

/// Messages alone: no segment that could be poisoned.
impl Observe for Endpoint {
    fn ready(&mut self, on: &WaitSet) -> bool {
        on.iter().any(|event| match event.source {
            Source::Message(slot) => self.has_ended(slot),
            _ => true,
        })
    }

    fn poison(&self) -> Option<Poison> {
        None
    }
}

#[cfg(test)]
pub(crate) mod network;
#[cfg(test)]
mod tests;

//! Point-to-point messages of an MPI, as the kernel's [`P2p`], through the functions that `include/unisono_messages.h`
//! declares.
//!
//! A message of 2³⁰ bytes or more is sent in pieces of 2³⁰ bytes; the last piece is shorter, and may be empty. So every
//! count fits a C `int`, and if the lengths of send and receive differ, the receiver sees it in a piece.
//!
//! An MPI must not meet a message that is longer than its receive (docs/explanation/decisions.md, 34 and 111). So short
//! messages and long ones have tags of their own: a receive for a short one is posted at once, with room for any short one,
//! and is copied from there; a long one is received when it has arrived and its length was compared. Where a rank waits for
//! one kind and its peer has sent the other, it finds that after a while.
//!
//! Tags: of an operation with number n, 2n and 2n + 1, modulo the even number below the MPI's number of tags. The last tag
//! is for news, by which a process that has failed tells others why.

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

/// Error: the slot has no request.
pub const NO_SUCH_SLOT: P2pError = P2pError(-16);
/// Error: the peer's rank is out of range.
pub const NO_SUCH_RANK: P2pError = P2pError(-17);

/// The most bytes of a message of the layer: `UNISONO_MESSAGES_MOST`.
const MOST: usize = 1 << 30;

/// Bytes of a piece; fewer in tests.
const PIECE: usize = if cfg!(test) { 1 << 12 } else { MOST };

/// Any source: `UNISONO_MESSAGES_ANY`.
const ANY: Rank = Rank::MAX;

/// The most bytes of a short message.
pub(crate) const SHORT: usize = if cfg!(test) { 16 } else { 1 << 10 };

/// A receive that has waited for this long beside a message of the other kind waits for one that does not come.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1000 });

/// Of so many tests of a receive that find nothing, one looks for a message of the other kind.
const LOOKS: u32 = if cfg!(test) { 4 } else { 1 << 10 };

/// How long a process that sends news tests these sends.
const LEAVE: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 1000 });

/// `struct unisono_messages`: C functions, and their first argument.
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
    expect: Option<unsafe extern "C" fn(*mut c_void, *mut u8, u64, u32, c_int, *mut usize) -> c_int>,
    cancel: Option<unsafe extern "C" fn(*mut c_void, usize, *mut c_int, *mut u64) -> c_int>,
    test: unsafe extern "C" fn(*mut c_void, *mut usize, *mut c_int, *mut u64) -> c_int,
    close: unsafe extern "C" fn(*mut c_void) -> c_int,
}

/// The result of a layer's function: success, or the error's number.
fn checked(code: c_int) -> Result<(), P2pError> {
    if code == 0 { Ok(()) } else { Err(P2pError(code)) }
}

/// The text of an error; positive numbers are the MPI's error classes.
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

/// The layer's number for a send or receive in flight.
type Request = usize;

/// The state of a slot.
#[derive(Debug)]
enum Posted {
    Free,
    /// A send, with its pieces that are not complete, the last one first.
    Send(Vec<Request>),
    Receive(Receive),
    /// Complete or failed.
    Ended(Result<(), P2pError>),
}

/// Room for a short message: [`SHORT`] bytes.
type Room = Vec<u8>;

#[derive(Debug)]
struct Receive {
    /// Number of receives posted before it.
    number: u64,
    peer: Rank,
    tag: c_int,
    buf: Buf,
    /// Number of pieces that were received.
    pieces: usize,
    /// The receive of the next piece, which is started when its message has arrived.
    under_way: Option<Request>,
    /// The receive of a short message, which was started before that.
    early: Option<(Request, Room)>,
    /// Number of tests that have found nothing.
    looks: u32,
    /// Since when a message of the other kind has been there.
    other: Option<Instant>,
}

impl Receive {
    const fn new(number: u64, peer: Rank, tag: c_int, buf: Buf) -> Self {
        Self { number, peer, tag, buf, pieces: 0, under_way: None, early: None, looks: 0, other: None }
    }

    /// Has the message of every piece arrived?
    fn has_arrived(&self) -> bool {
        self.pieces + usize::from(self.under_way.is_some()) > self.buf.len() / PIECE
    }

    /// Do messages go to the other one first?
    fn follows(&self, other: &Posted) -> Option<u64> {
        let Posted::Receive(other) = other else { return None };
        let same = other.peer == self.peer && other.operation() == self.operation();
        (same && other.number < self.number && !other.has_arrived()).then_some(other.number)
    }

    /// The first of the tags of its operation.
    const fn operation(&self) -> c_int {
        self.tag & !1
    }

    /// The tag of its operation's messages of the other kind.
    const fn other_tag(&self) -> c_int {
        self.tag ^ 1
    }

    /// A test has found nothing. Has a message of the other kind been there for long?
    fn waits_in_vain(&mut self, layer: &Layer) -> Result<bool, P2pError> {
        self.looks = self.looks.wrapping_add(1);
        if !self.looks.is_multiple_of(LOOKS) || layer.expect.is_none() {
            return Ok(false);
        }
        if layer.arrived(self.peer, self.other_tag())?.is_none() {
            self.other = None;
            return Ok(false);
        }
        Ok(self.other.get_or_insert_with(Instant::now).elapsed() >= PATIENCE)
    }

    /// Makes progress on the receive of a short message that was started early. Is it complete?
    fn advance_early(
        &mut self,
        layer: &Layer,
        rooms: &mut Vec<Room>,
        left: &mut Vec<(Request, Vec<u8>)>,
    ) -> Result<bool, P2pError> {
        let Some((request, _)) = &mut self.early else { return Ok(false) };
        let mut came = layer.ended(request);
        if came == Ok(None) && !self.waits_in_vain(layer)? {
            return Ok(false);
        }
        let Some((request, room)) = self.early.take() else { return Ok(false) };
        if came == Ok(None) {
            came = layer.cancel(request);
        }
        let taken = match came {
            Ok(Some(len)) => self.take(&room, len),
            Ok(None) => layer.start_receive(self, self.other_tag(), left).and(Err(P2pError::LENGTH)),
            Err(error) => {
                // It may be written yet.
                std::mem::forget(room);
                return Err(error);
            }
        };
        rooms.push(room);
        taken.map(|()| true)
    }

    /// Gives up what was started early.
    fn give_up(&mut self, layer: &Layer) {
        if let Some((request, room)) = self.early.take()
            && layer.cancel(request).is_err()
        {
            // It may be written yet.
            std::mem::forget(room);
        }
    }

    /// Takes the short message of `len` bytes that has come into `room`.
    fn take(&self, room: &Room, len: u64) -> Result<(), P2pError> {
        match room.get(..self.buf.len()).filter(|bytes| bytes.len() as u64 == len) {
            // SAFETY: as many bytes, writable by `post_recv`'s contract.
            Some(bytes) => unsafe { self.buf.ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) },
            None => return Err(P2pError::LENGTH),
        }
        Ok(())
    }
}

/// One process's end of an MPI communicator.
///
/// When it is dropped, it waits for sends that are not complete, because an MPI can't take them back.
#[derive(Debug)]
pub struct Endpoint {
    layer: Layer,
    slots: Vec<Posted>,
    /// Number of receives posted so far.
    receives: u64,
    /// Rooms that no receive has.
    rooms: Vec<Room>,
    /// Requests that were given up and are not complete, with memory of their own: for a message of a wrong length, or
    /// for news.
    left: Vec<(Request, Vec<u8>)>,
}

// SAFETY: the layer's functions may be called by any thread, one at a time; `MPI_THREAD_SERIALIZED` or more is the
// maker's promise.
unsafe impl Send for Endpoint {}

impl Endpoint {
    /// An endpoint on a layer from C.
    ///
    /// # Safety
    /// The layer was connected by `unisono_messages_connect`, or does what the header says, and nothing else uses it.
    /// More than one thread uses it, or the MPI, only if `MPI_Init_thread` has granted that.
    pub const unsafe fn new(layer: Layer) -> Self {
        Self { layer, slots: Vec::new(), receives: 0, rooms: Vec::new(), left: Vec::new() }
    }

    /// Gives up all that was posted, after an error. It waits for receives whose messages have arrived; others are dropped.
    /// Returns the number of sends that are not complete: the MPI may read their memory until the endpoint is dropped.
    pub fn give_up(&mut self) -> usize {
        for posted in std::mem::take(&mut self.slots) {
            match posted {
                Posted::Send(pieces) => self.left.extend(pieces.into_iter().map(|piece| (piece, Vec::new()))),
                Posted::Receive(Receive { under_way: Some(request), .. }) => self.layer.wait(request),
                Posted::Receive(mut receive) => receive.give_up(&self.layer),
                _ => {}
            }
        }
        self.left.len()
    }

    /// Sends `ranks` the error with which this process's operations ended, so that they do not wait for it. To be
    /// called once at most, after an error.
    pub fn tell(&mut self, ranks: impl IntoIterator<Item = Rank>, how: Poison) {
        let news: Vec<u8> = state::words(how).into_iter().flat_map(u64::to_le_bytes).collect();
        let begun = ranks.into_iter().filter_map(|rank| {
            let news = news.clone();
            // A rank to which the send fails is skipped.
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

    const fn tag(&self, Tag(tag): Tag, len: usize) -> c_int {
        let operation = 2 * (tag % ((self.layer.tags - 1) / 2));
        (operation + !self.layer.is_short(len) as u64) as c_int
    }

    /// Starts to receive the short message for this slot, if no other receive comes first.
    fn start_early(&mut self, at: usize) -> Result<(), P2pError> {
        let Self { layer, slots, rooms, .. } = self;
        let Some(Posted::Receive(receive)) = slots.get(at) else { return Ok(()) };
        let starts = receive.early.is_none() && layer.is_short(receive.buf.len());
        if !starts || slots.iter().any(|other| receive.follows(other).is_some()) {
            return Ok(());
        }
        let mut room = rooms.pop().unwrap_or_else(|| vec![0; SHORT]);
        let request = layer.start_early(receive, &mut room)?;
        if let Some(Posted::Receive(receive)) = slots.get_mut(at) {
            receive.early = Some((request, room));
        }
        Ok(())
    }

    /// Makes progress on the request in a slot.
    fn advance(&mut self, at: usize) -> Result<(), P2pError> {
        self.start_early(at)?;
        let Self { layer, slots, rooms, left, .. } = self;
        match slots.get_mut(at) {
            Some(Posted::Send(pieces)) => {
                while let Some(piece) = pieces.last_mut() {
                    if !layer.has_ended(piece)? {
                        return Ok(());
                    }
                    pieces.pop();
                }
            }
            Some(Posted::Receive(receive)) if receive.early.is_some() => {
                if !receive.advance_early(layer, rooms, left)? {
                    return Ok(());
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
                        receive.under_way = layer.start_receive(receive, receive.tag, left)?;
                        if receive.under_way.is_none() {
                            // Where a piece has come, the others will: its last may be as long as a short message.
                            if receive.pieces == 0 && receive.waits_in_vain(layer)? {
                                layer.start_receive(receive, receive.other_tag(), left)?;
                            }
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

    /// The slots of receives of the same peer and tag that were posted before the one in this slot, in order: messages
    /// go to them first.
    fn before(&self, at: usize) -> Vec<usize> {
        let Some(Posted::Receive(receive)) = self.slots.get(at) else { return Vec::new() };
        let earlier = |(at, posted)| Some((receive.follows(posted)?, at));
        let mut all: Vec<(u64, usize)> = (0..).zip(&self.slots).filter_map(earlier).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, at)| at).collect()
    }

    fn advance_or_fail(&mut self, at: usize) {
        if let Err(error) = self.advance(at) {
            self.end(at, Err(error));
        }
    }

    fn end(&mut self, at: usize, result: Result<(), P2pError>) {
        let Some(posted) = self.slots.get_mut(at) else { return };
        if let Posted::Receive(receive) = posted {
            receive.give_up(&self.layer);
        }
        *posted = Posted::Ended(result);
    }
}

/// The piece with this number.
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
        checked(unsafe { (self.send)(self.context, buf.ptr(), buf.len() as u64, to, tag, &raw mut request) })?;
        Ok(request)
    }

    /// Are messages of so many bytes short ones?
    const fn is_short(&self, len: usize) -> bool {
        self.expect.is_some() && len <= SHORT
    }

    /// The bytes of the first message with this tag that has arrived.
    fn arrived(&self, peer: Rank, tag: c_int) -> Result<Option<u64>, P2pError> {
        let (mut found, mut len) = (0, 0);
        // SAFETY: `Endpoint::new`'s contract; integers of ours.
        checked(unsafe { (self.probe)(self.context, peer, tag, &raw mut found, &raw mut len) })?;
        Ok((found != 0).then_some(len))
    }

    /// Starts to receive a short message, which may not have arrived.
    fn start_early(&self, receive: &Receive, room: &mut Room) -> Result<Request, P2pError> {
        let (expect, mut request) = (self.expect.ok_or(NO_SUCH_SLOT)?, 0);
        // SAFETY: `Endpoint::new`'s contract; the room is kept until the request has ended.
        checked(unsafe {
            expect(self.context, room.as_mut_ptr(), SHORT as u64, receive.peer, receive.tag, &raw mut request)
        })?;
        Ok(request)
    }

    /// Gives up a receive that was started early. The bytes of its message, if that came before.
    fn cancel(&self, request: Request) -> Result<Option<u64>, P2pError> {
        let (cancel, mut came, mut len) = (self.cancel.ok_or(NO_SUCH_SLOT)?, 0, 0);
        // SAFETY: `Endpoint::new`'s contract; a receive of this layer's that has not ended.
        checked(unsafe { cancel(self.context, request, &raw mut came, &raw mut len) })?;
        Ok((came != 0).then_some(len))
    }

    /// Starts to receive the next piece, if its message has arrived with this tag.
    fn start_receive(
        &self,
        receive: &Receive,
        tag: c_int,
        left: &mut Vec<(Request, Vec<u8>)>,
    ) -> Result<Option<Request>, P2pError> {
        let Receive { peer, buf, pieces, .. } = *receive;
        let Some(len) = self.arrived(peer, tag)? else { return Ok(None) };
        let mut request = 0;
        let buf = piece(buf, pieces);
        if len != buf.len() as u64 {
            // It is received into other memory, so that its sender does not wait.
            let mut elsewhere = vec![0; len as usize];
            // SAFETY: `Endpoint::new`'s contract; the memory is kept until the request has ended.
            checked(unsafe { (self.receive)(self.context, elsewhere.as_mut_ptr(), len, peer, tag, &raw mut request) })?;
            left.push((request, elsewhere));
            return Err(P2pError::LENGTH);
        }
        // SAFETY: `Endpoint::new`'s contract; the bytes are writable by `post_recv`'s.
        checked(unsafe { (self.receive)(self.context, buf.ptr(), len, peer, tag, &raw mut request) })?;
        Ok(Some(request))
    }

    fn has_ended(&self, request: &mut Request) -> Result<bool, P2pError> {
        let mut done = 0;
        // SAFETY: `Endpoint::new`'s contract; a request of this layer's that has not ended.
        checked(unsafe { (self.test)(self.context, request, &raw mut done, core::ptr::null_mut()) })?;
        Ok(done != 0)
    }

    /// The bytes that a receive has received, if it has ended.
    fn ended(&self, request: &mut Request) -> Result<Option<u64>, P2pError> {
        let (mut done, mut len) = (0, 0);
        // SAFETY: as in `has_ended`.
        checked(unsafe { (self.test)(self.context, request, &raw mut done, &raw mut len) })?;
        Ok((done != 0).then_some(len))
    }

    /// Waits until a request is complete or has failed.
    fn wait(&self, mut request: Request) {
        while self.has_ended(&mut request) == Ok(false) {
            std::thread::yield_now();
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.give_up();
        // Receives news that were not asked for.
        while self.news().is_some() {}
        for (request, _) in &self.left {
            self.layer.wait(*request);
        }
        // SAFETY: `Endpoint::new`'s contract: only this endpoint uses the layer, and it has no requests any more.
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
        let tag = self.tag(tag, buf.len());
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
        let receive = Receive::new(self.receives, from, self.tag(tag, buf.len()), buf);
        self.receives += 1;
        let slot = self.post(Posted::Receive(receive));
        if let Err(error) = self.start_early(slot.0 as usize) {
            self.end(slot.0 as usize, Err(error));
        }
        Ok(slot)
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
        let receive = Receive::new(0, ANY, self.layer.news(), buf);
        let request = self.layer.start_receive(&receive, receive.tag, &mut self.left).ok()??;
        self.layer.wait(request);
        Some(state::of_words(words.map(u64::from_le_bytes)))
    }

    fn has_ended(&mut self, slot: Slot) -> bool {
        let at = slot.0 as usize;
        for earlier in self.before(at) {
            self.advance_or_fail(earlier);
            if matches!(self.slots.get(earlier), Some(Posted::Receive(receive)) if !receive.has_arrived()) {
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

/// Only messages: there is no segment that could be poisoned.
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

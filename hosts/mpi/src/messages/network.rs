//! Messages between threads of one process: a layer for tests, as slow as an MPI may be.
//!
//! A message is found by the second probe, and a receive is complete at its second test; until then its bytes are
//! garbage. The bytes of a long message are read when it is received, and its send is complete then. A receive that is started
//! before its message has come looks for it when it is tested.

use super::{ANY, Endpoint, Layer};
use core::ffi::{c_int, c_void};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use unisono_kernel::Rank;

/// The most bytes of a message that is copied when it is sent.
const EAGER: u64 = 16;

const TAGS: u64 = 1 << 20;

enum Bytes {
    Copied(Vec<u8>),
    /// At an address of the sender, with this length.
    At(usize, u64),
}

impl Bytes {
    fn len(&self) -> u64 {
        match self {
            Self::Copied(bytes) => bytes.len() as u64,
            Self::At(_, len) => *len,
        }
    }
}

struct Message {
    from: Rank,
    tag: c_int,
    bytes: Bytes,
    looked_for: bool,
    taken: Arc<Mutex<bool>>,
}

enum Request {
    Send(Arc<Mutex<bool>>),
    /// The address, the bytes that are written there at completion, and whether it was tested before.
    Receive(usize, Vec<u8>, bool),
    /// One that was started early: the address, the room there, the peer and the tag.
    Expect(usize, u64, Rank, c_int),
    Ended,
}

#[derive(Default)]
struct State {
    /// By receiver.
    sent: Vec<VecDeque<Message>>,
    closed: usize,
}

/// The state that all ranks share.
#[derive(Clone, Default)]
pub(crate) struct Network(Arc<Mutex<State>>);

struct Seat {
    network: Network,
    rank: Rank,
    requests: Vec<Request>,
}

impl Network {
    /// Each rank's layer.
    pub(crate) fn layers(ranks: u32) -> (Self, Vec<Layer>) {
        let network = Self::default();
        network.0.lock().unwrap().sent.resize_with(ranks as usize, VecDeque::new);
        let layer = |rank| {
            let context = Box::into_raw(Box::new(Seat { network: network.clone(), rank, requests: Vec::new() })).cast();
            Layer {
                context,
                rank,
                size: ranks,
                tags: TAGS,
                send,
                probe,
                receive,
                expect: Some(expect),
                cancel: Some(cancel),
                test,
                close,
            }
        };
        let layers = (0..ranks).map(layer).collect();
        (network, layers)
    }

    /// The number of layers that were closed, and of messages that were not received.
    pub(crate) fn left(&self) -> (usize, usize) {
        let state = self.0.lock().unwrap();
        (state.closed, state.sent.iter().map(VecDeque::len).sum())
    }
}

/// Each rank's end of a network.
pub(crate) fn endpoints(ranks: u32) -> (Network, Vec<Endpoint>) {
    let (network, layers) = Network::layers(ranks);
    // SAFETY: the functions do what the header says.
    (network, layers.into_iter().map(|layer| unsafe { Endpoint::new(layer) }).collect())
}

fn of<'s>(context: *mut c_void) -> &'s mut Seat {
    // SAFETY: a seat of `layers`, which one thread uses until it is closed.
    unsafe { &mut *context.cast() }
}

fn begin(seat: &mut Seat, begun: Request, request: *mut usize) -> c_int {
    seat.requests.push(begun);
    // SAFETY: an integer of the caller.
    unsafe { request.write(seat.requests.len() - 1) };
    0
}

unsafe extern "C" fn send(
    at: *mut c_void,
    bytes: *const u8,
    len: u64,
    to: u32,
    tag: c_int,
    request: *mut usize,
) -> c_int {
    assert!((0..TAGS as c_int).contains(&tag), "{tag} is not a tag");
    let (seat, taken) = (of(at), Arc::new(Mutex::new(len <= EAGER)));
    let bytes = match len {
        // SAFETY: readable, by the contract.
        ..=EAGER => Bytes::Copied(unsafe { core::slice::from_raw_parts(bytes, len as usize) }.to_vec()),
        _ => Bytes::At(bytes.expose_provenance(), len),
    };
    let message = Message { from: seat.rank, tag, bytes, looked_for: false, taken: Arc::clone(&taken) };
    seat.network.0.lock().unwrap().sent[to as usize].push_back(message);
    begin(seat, Request::Send(taken), request)
}

fn first(sent: &VecDeque<Message>, from: u32, tag: c_int) -> Option<usize> {
    sent.iter().position(|message| (from == ANY || message.from == from) && message.tag == tag)
}

unsafe extern "C" fn probe(at: *mut c_void, from: u32, tag: c_int, found: *mut c_int, len: *mut u64) -> c_int {
    let seat = of(at);
    let sent = &mut seat.network.0.lock().unwrap().sent[seat.rank as usize];
    let message = first(sent, from, tag).map(|at| &mut sent[at]);
    let len_of =
        message.and_then(|message| std::mem::replace(&mut message.looked_for, true).then(|| message.bytes.len()));
    // SAFETY: an integer of the caller.
    unsafe { found.write(len_of.is_some().into()) };
    // SAFETY: as above.
    unsafe { len.write(len_of.unwrap_or(0)) };
    0
}

unsafe extern "C" fn receive(
    at: *mut c_void,
    to: *mut u8,
    len: u64,
    from: u32,
    tag: c_int,
    request: *mut usize,
) -> c_int {
    let seat = of(at);
    let message = {
        let sent = &mut seat.network.0.lock().unwrap().sent[seat.rank as usize];
        let first = first(sent, from, tag).unwrap();
        sent.remove(first).unwrap()
    };
    assert_eq!(message.bytes.len(), len);
    let bytes = match message.bytes {
        Bytes::Copied(bytes) => bytes,
        // SAFETY: readable until the send has ended, by the contract.
        Bytes::At(at, len) => unsafe {
            core::slice::from_raw_parts(core::ptr::with_exposed_provenance(at), len as usize).to_vec()
        },
    };
    *message.taken.lock().unwrap() = true;
    // SAFETY: writable, by the contract.
    unsafe { to.write_bytes(0xee, bytes.len()) };
    begin(seat, Request::Receive(to.expose_provenance(), bytes, false), request)
}

unsafe extern "C" fn expect(
    at: *mut c_void,
    to: *mut u8,
    room: u64,
    from: u32,
    tag: c_int,
    request: *mut usize,
) -> c_int {
    // SAFETY: writable, by the contract.
    unsafe { to.write_bytes(0xee, room as usize) };
    begin(of(at), Request::Expect(to.expose_provenance(), room, from, tag), request)
}

/// Receives the message of such a receive, if it has come, and was looked for before or is taken `now`.
fn meet(seat: &mut Seat, number: usize, now: bool) -> Option<u64> {
    let Request::Expect(to, room, from, tag) = seat.requests[number] else { return None };
    let sent = &mut seat.network.0.lock().unwrap().sent[seat.rank as usize];
    let first = first(sent, from, tag)?;
    if !std::mem::replace(&mut sent[first].looked_for, true) && !now {
        return None;
    }
    let message = sent.remove(first)?;
    let Bytes::Copied(bytes) = message.bytes else { panic!("a long message has a short one's tag") };
    assert!(bytes.len() as u64 <= room);
    seat.requests[number] = Request::Ended;
    // SAFETY: writable until the receive has ended, by the contract.
    unsafe { core::ptr::with_exposed_provenance_mut::<u8>(to).copy_from(bytes.as_ptr(), bytes.len()) };
    Some(bytes.len() as u64)
}

unsafe extern "C" fn cancel(at: *mut c_void, request: usize, came: *mut c_int, len: *mut u64) -> c_int {
    let seat = of(at);
    let met = meet(seat, request, true);
    seat.requests[request] = Request::Ended;
    // SAFETY: integers of the caller.
    unsafe { came.write(met.is_some().into()) };
    // SAFETY: as above.
    unsafe { len.write(met.unwrap_or(0)) };
    0
}

unsafe extern "C" fn test(at: *mut c_void, request: *mut usize, done: *mut c_int, len: *mut u64) -> c_int {
    let seat = of(at);
    // SAFETY: an integer of the caller.
    let number = unsafe { request.read() };
    if let Request::Expect(..) = seat.requests[number] {
        let met = meet(seat, number, false);
        // SAFETY: integers of the caller, who asks for the length of a receive that was started early.
        unsafe { len.write(met.unwrap_or(0)) };
        // SAFETY: as above.
        unsafe { done.write(met.is_some().into()) };
        return 0;
    }
    let request = &mut seat.requests[number];
    let has_ended = match request {
        Request::Send(taken) => *taken.lock().unwrap(),
        Request::Receive(_, _, asked @ false) => std::mem::replace(asked, true),
        Request::Receive(to, bytes, true) => {
            // SAFETY: writable until the receive has ended, by the contract.
            unsafe { core::ptr::with_exposed_provenance_mut::<u8>(*to).copy_from(bytes.as_ptr(), bytes.len()) };
            true
        }
        Request::Expect(..) | Request::Ended => panic!("a complete request is tested"),
    };
    if has_ended {
        *request = Request::Ended;
    }
    // SAFETY: an integer of the caller.
    unsafe { done.write(has_ended.into()) };
    0
}

unsafe extern "C" fn close(at: *mut c_void) -> c_int {
    // SAFETY: a seat of `layers`, which nothing uses any more.
    let seat = unsafe { Box::from_raw(at.cast::<Seat>()) };
    assert!(seat.requests.iter().all(|request| matches!(request, Request::Ended)), "a request is left");
    seat.network.0.lock().unwrap().closed += 1;
    0
}

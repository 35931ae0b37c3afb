//! An endpoint on a layer of one rank.

use super::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use unisono_kernel::error::{Argument, Bound, Cause, Refusal};

/// A layer of one rank: what it sends waits for it. Requests end when they are asked after for the second time.
#[derive(Default)]
struct Loop {
    sent: VecDeque<(c_int, Vec<u8>)>,
    asked: Vec<bool>,
    closed: bool,
}

fn of<'l>(context: *mut c_void) -> std::cell::RefMut<'l, Loop> {
    // SAFETY: `endpoint`'s cell, which outlives the endpoint.
    unsafe { &*context.cast::<RefCell<Loop>>() }.borrow_mut()
}

fn begin(on: &mut Loop, request: *mut usize) -> c_int {
    on.asked.push(false);
    // SAFETY: an integer of the caller's.
    unsafe { request.write(on.asked.len() - 1) };
    0
}

unsafe extern "C" fn send(
    at: *mut c_void,
    from: *const u8,
    len: u64,
    _: u32,
    tag: c_int,
    request: *mut usize,
) -> c_int {
    let mut on = of(at);
    // SAFETY: readable, by the contract.
    on.sent.push_back((tag, unsafe { core::slice::from_raw_parts(from, len as usize) }.to_vec()));
    begin(&mut on, request)
}

unsafe extern "C" fn probe(at: *mut c_void, _: u32, tag: c_int, found: *mut c_int, len: *mut u64) -> c_int {
    let first = of(at).sent.iter().find(|(sent, _)| *sent == tag).map(|(_, bytes)| bytes.len());
    // SAFETY: integers of the caller's.
    unsafe { found.write(first.is_some().into()) };
    // SAFETY: as above.
    unsafe { len.write(first.unwrap_or(0) as u64) };
    0
}

unsafe extern "C" fn receive(at: *mut c_void, to: *mut u8, len: u64, _: u32, tag: c_int, request: *mut usize) -> c_int {
    let mut on = of(at);
    let first = on.sent.iter().position(|(sent, _)| *sent == tag).unwrap();
    let (_, bytes) = on.sent.remove(first).unwrap();
    assert_eq!(bytes.len() as u64, len);
    // SAFETY: writable, by the contract.
    unsafe { to.copy_from(bytes.as_ptr(), bytes.len()) };
    begin(&mut on, request)
}

unsafe extern "C" fn test(at: *mut c_void, request: *mut usize, done: *mut c_int) -> c_int {
    let mut on = of(at);
    // SAFETY: integers of the caller's.
    let asked = &mut on.asked[unsafe { request.read() }];
    // SAFETY: as above.
    unsafe { done.write((*asked).into()) };
    *asked = true;
    0
}

unsafe extern "C" fn close(at: *mut c_void) -> c_int {
    of(at).closed = true;
    0
}

fn endpoint(on: &RefCell<Loop>) -> Endpoint {
    let context = (&raw const *on).cast_mut().cast();
    let layer = Layer { context, rank: 0, size: 1, tags: 16, send, probe, receive, test, close };
    // SAFETY: the functions do what the header says; the cell outlives the endpoint.
    unsafe { Endpoint::new(layer) }
}

fn post(end: &mut Endpoint, tag: u64, bytes: &[u8]) -> Slot {
    // SAFETY: copied at once.
    unsafe { end.post_send(0, Tag(tag), Buf::of(bytes)) }.unwrap()
}

fn want(end: &mut Endpoint, tag: u64, bytes: &mut [u8]) -> Slot {
    // SAFETY: the tests keep the bytes, and look at them when the receive has ended.
    unsafe { end.post_recv(0, Tag(tag), Buf::of_mut(bytes)) }.unwrap()
}

#[test]
fn messages_go_to_receives_in_the_order_of_posts_whichever_is_asked_after() {
    let on = RefCell::default();
    let mut end = endpoint(&on);
    let mut got = [[0; 1]; 3];
    let [a, b, c] = got.each_mut();
    // 3 and 18 are one tag of sixteen, of which one is not for operations.
    let (first, second, other) = (want(&mut end, 3, a), want(&mut end, 18, b), want(&mut end, 4, c));
    for (tag, byte) in [(4, 40), (3, 30), (3, 31)] {
        let sent = post(&mut end, tag, &[byte]);
        assert_eq!([end.test(sent), end.test(sent), end.test(sent)], [Ok(false), Ok(true), Err(NO_SUCH_SLOT)]);
    }
    for slot in [second, other, first] {
        while !end.test(slot).unwrap() {}
    }
    assert_eq!(got, [[30], [31], [40]]);
    drop(end);
    assert!(on.borrow().closed);
}

#[test]
fn another_length_is_an_error_and_nothing_is_written() {
    for (sent, wanted) in [(3, 2), (2, 3), (0, 1), (1, 0)] {
        let on = RefCell::default();
        let mut end = endpoint(&on);
        let mut got = vec![7; wanted];
        let slot = want(&mut end, 0, &mut got);
        assert!(!end.has_ended(slot));
        post(&mut end, 0, &vec![1; sent]);
        assert!(end.has_ended(slot));
        assert_eq!(end.test(slot), Err(P2pError::LENGTH));
        // The message is taken all the same: its sender does not wait.
        assert_eq!((got, on.borrow().sent.len()), (vec![7; wanted], 0));
        assert_eq!(end.give_up(), 2);
        drop(end);
        assert!(on.borrow().asked.iter().all(|asked| *asked));
    }
}

#[test]
fn what_is_given_up_receives_nothing() {
    let on = RefCell::default();
    let mut end = endpoint(&on);
    let mut got = [7];
    let slot = want(&mut end, 0, &mut got);
    assert_eq!(end.give_up(), 0);
    post(&mut end, 0, &[1]);
    assert!(end.test(Slot(slot.0 + 1)).is_err());
    assert_eq!(got, [7]);
}

#[test]
fn news_are_told_once_and_taken_for_no_message() {
    let on = RefCell::default();
    let mut end = endpoint(&on);
    assert_eq!(end.news(), None);
    let refusal = Refusal::new(Argument::Bytes, 1 << 40, Bound::Equals(7));
    for cause in [Cause::Late, Cause::Died, Cause::Fault, Cause::Messages(17), Cause::Refused(refusal)] {
        let told = Poison { rank: 70_000, operation: 12, cause };
        end.tell([0], told);
        let mut got = [7; 40];
        let slot = want(&mut end, 15, &mut got);
        assert!(!end.has_ended(slot));
        assert_eq!((end.news(), end.news(), end.give_up()), (Some(told), None, 0));
    }
    // Those that nobody asks after are taken all the same.
    end.tell([0, 0], Poison { rank: 1, operation: 1, cause: Cause::Late });
    drop(end);
    assert!(on.borrow().sent.is_empty());
}

#[test]
fn ranks_that_are_none_are_refused() {
    let on = RefCell::default();
    let mut end = endpoint(&on);
    // SAFETY: refused.
    assert_eq!(unsafe { end.post_send(1, Tag(0), Buf::of(&[])) }, Err(NO_SUCH_RANK));
    // SAFETY: refused.
    assert_eq!(unsafe { end.post_recv(1, Tag(0), Buf::of(&[])) }, Err(NO_SUCH_RANK));
}

//! An endpoint on a layer of one rank.

use super::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use unisono_kernel::error::{Argument, Bound, Cause, Refusal};
use unisono_kernel::machine::poll::Await;

/// A layer of one rank, whose messages go to itself. Requests are complete at their second test.
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
    // SAFETY: an integer of the caller.
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
    assert!((0..16).contains(&tag), "{tag} is not a tag");
    // SAFETY: readable, by the contract.
    on.sent.push_back((tag, unsafe { core::slice::from_raw_parts(from, len as usize) }.to_vec()));
    begin(&mut on, request)
}

unsafe extern "C" fn probe(at: *mut c_void, _: u32, tag: c_int, found: *mut c_int, len: *mut u64) -> c_int {
    let first = of(at).sent.iter().find(|(sent, _)| *sent == tag).map(|(_, bytes)| bytes.len());
    // SAFETY: integers of the caller.
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

unsafe extern "C" fn test(at: *mut c_void, request: *mut usize, done: *mut c_int, _: *mut u64) -> c_int {
    let mut on = of(at);
    // SAFETY: integers of the caller.
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
    let layer =
        Layer { context, rank: 0, size: 1, tags: 16, send, probe, receive, expect: None, cancel: None, test, close };
    // SAFETY: the functions do what the header says; the cell outlives the endpoint.
    unsafe { Endpoint::new(layer) }
}

fn post(end: &mut Endpoint, tag: u64, bytes: &[u8]) -> Slot {
    // SAFETY: copied at once.
    unsafe { end.post_send(0, Tag(tag), Buf::of(bytes)) }.unwrap()
}

fn want(end: &mut Endpoint, tag: u64, bytes: &mut [u8]) -> Slot {
    // SAFETY: the tests keep the bytes, and read them after the receive is complete.
    unsafe { end.post_recv(0, Tag(tag), Buf::of_mut(bytes)) }.unwrap()
}

#[test]
fn messages_go_to_receives_in_the_order_of_posts_whichever_is_tested() {
    let on = RefCell::default();
    let mut end = endpoint(&on);
    let mut got = [[0; 1]; 3];
    let [a, b, c] = got.each_mut();
    // 3 and 10 are the same tag: there are sixteen tags, two for each operation, and one that is not for operations.
    let (first, second, other) = (want(&mut end, 3, a), want(&mut end, 10, b), want(&mut end, 4, c));
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
        // The message is received into other memory, so that its sender does not wait.
        assert_eq!((got, on.borrow().sent.len()), (vec![7; wanted], 0));
        assert_eq!(end.give_up(), 2);
        drop(end);
        assert!(on.borrow().asked.iter().all(|asked| *asked));
    }
}

#[test]
fn a_short_receive_that_was_started_early_takes_one_message_of_its_length() {
    for (sent, wanted) in [(0, 0), (1, 1), (SHORT, SHORT), (1, 2), (2, 1), (SHORT, 0)] {
        let (network, mut ends) = network::endpoints(2);
        let (bytes, mut got) = (vec![1; sent], vec![7; wanted]);
        // SAFETY: the bytes outlive the endpoints, here and below.
        let slot = unsafe { ends[0].post_recv(1, Tag(3), Buf::of_mut(&mut got)) }.unwrap();
        assert!(matches!(&ends[0].slots[0], Posted::Receive(Receive { early: Some(_), .. })));
        assert!(!ends[0].has_ended(slot));
        // SAFETY: as above.
        unsafe { ends[1].post_send(0, Tag(3), Buf::of(&bytes)) }.unwrap();
        assert_eq!([ends[0].has_ended(slot), ends[0].has_ended(slot)], [false, true]);
        let (result, left) = if sent == wanted { (Ok(true), 1) } else { (Err(P2pError::LENGTH), 7) };
        assert_eq!((ends[0].test(slot), ends[0].rooms.len()), (result, 1));
        ends.clear();
        assert_eq!((network.left(), got), ((2, 0), vec![left; wanted]));
    }
}

#[test]
fn receives_of_one_peer_and_tag_are_started_in_their_order() {
    let (network, mut ends) = network::endpoints(2);
    let lens = [1, SHORT + 1, 2, SHORT + 2, 3];
    let mut got = lens.map(|len| vec![0; len]);
    // SAFETY: the bytes outlive the endpoints, here and below.
    let slots = got.each_mut().map(|got| unsafe { ends[0].post_recv(1, Tag(3), Buf::of_mut(got)) }.unwrap());
    let early = |end: &Endpoint| {
        end.slots.iter().filter(|slot| matches!(slot, Posted::Receive(Receive { early: Some(_), .. }))).count()
    };
    assert_eq!(early(&ends[0]), 1);
    let messages = lens.map(|len| vec![len as u8; len]);
    for message in &messages {
        // SAFETY: as above.
        unsafe { ends[1].post_send(0, Tag(3), Buf::of(message)) }.unwrap();
    }
    // The last one is tested first.
    for slot in slots.into_iter().rev() {
        while !ends[0].test(slot).unwrap() {
            assert!(early(&ends[0]) <= 1);
        }
    }
    ends.clear();
    assert_eq!((network.left(), got), ((2, 0), messages));
}

#[test]
fn a_message_of_the_other_kind_is_an_error_after_a_while() {
    for (sent, wanted) in [(SHORT + 1, SHORT), (SHORT, SHORT + 1), (0, 100), (100, 0)] {
        let (network, mut ends) = network::endpoints(2);
        let (bytes, mut got) = (vec![1; sent], vec![7; wanted]);
        // SAFETY: the bytes outlive the endpoints, here and below.
        let slot = unsafe { ends[0].post_recv(1, Tag(3), Buf::of_mut(&mut got)) }.unwrap();
        // SAFETY: as above.
        unsafe { ends[1].post_send(0, Tag(3), Buf::of(&bytes)) }.unwrap();
        let begin = Instant::now();
        while !ends[0].has_ended(slot) {}
        assert!(begin.elapsed() >= PATIENCE);
        assert_eq!(ends[0].test(slot), Err(P2pError::LENGTH));
        ends.clear();
        assert_eq!((network.left(), got), ((2, 0), vec![7; wanted]));
    }
}

#[test]
fn a_message_of_the_other_kind_may_come_before_the_one_that_is_waited_for() {
    for lens in [[SHORT + 1, SHORT], [SHORT, SHORT + 1]] {
        let (network, mut ends) = network::endpoints(2);
        let (bytes, mut got) = (lens.map(|len| vec![len as u8; len]), lens.map(|len| vec![0; len]));
        // SAFETY: the bytes outlive the endpoints, here and below.
        let slots = got.each_mut().map(|got| unsafe { ends[0].post_recv(1, Tag(3), Buf::of_mut(got)) }.unwrap());
        // SAFETY: as above.
        unsafe { ends[1].post_send(0, Tag(3), Buf::of(&bytes[1])) }.unwrap();
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE / 2 {
            assert!(!ends[0].has_ended(slots[0]));
        }
        // SAFETY: as above.
        unsafe { ends[1].post_send(0, Tag(3), Buf::of(&bytes[0])) }.unwrap();
        for slot in slots {
            while !ends[0].test(slot).unwrap() {}
        }
        ends.clear();
        assert_eq!((network.left(), got), ((2, 0), bytes));
    }
}

#[test]
fn the_last_piece_of_a_long_message_is_no_short_one() {
    let (network, mut ends) = network::endpoints(2);
    let bytes: Vec<u8> = (0..PIECE + 5).map(|at| (at % 251) as u8).collect();
    let (mut got, mut short) = (vec![0; bytes.len()], [0; 5]);
    // SAFETY: the bytes outlive the endpoints, here and below.
    let slot = unsafe { ends[0].post_recv(1, Tag(3), Buf::of_mut(&mut got)) }.unwrap();
    let tag = ends[1].tag(Tag(3), bytes.len());
    let first = ends[1].layer.send(0, tag, Buf::of(&bytes[..PIECE])).unwrap();
    // SAFETY: as above.
    unsafe { ends[1].post_send(0, Tag(3), Buf::of(&[9; 5])) }.unwrap();
    let begin = Instant::now();
    while begin.elapsed() < 2 * PATIENCE {
        assert!(!ends[0].has_ended(slot));
    }
    let last = ends[1].layer.send(0, tag, Buf::of(&bytes[PIECE..])).unwrap();
    while !ends[0].test(slot).unwrap() {}
    // SAFETY: as above.
    let slot = unsafe { ends[0].post_recv(1, Tag(3), Buf::of_mut(&mut short)) }.unwrap();
    while !ends[0].test(slot).unwrap() {}
    [first, last].into_iter().for_each(|sent| ends[1].layer.wait(sent));
    ends.clear();
    assert_eq!((network.left(), got == bytes, short), ((2, 0), true, [9; 5]));
}

#[test]
fn a_receive_that_was_started_early_is_given_up() {
    for comes in [false, true] {
        let (network, mut ends) = network::endpoints(2);
        let mut got = [7];
        // SAFETY: the byte outlives the endpoints; the other one's is copied at once.
        unsafe { ends[0].post_recv(1, Tag(3), Buf::of_mut(&mut got)) }.unwrap();
        if comes {
            // SAFETY: as above.
            unsafe { ends[1].post_send(0, Tag(3), Buf::of(&[1])) }.unwrap();
        }
        assert_eq!(ends[0].give_up(), 0);
        ends.clear();
        assert_eq!((network.left(), got), ((2, 0), [7]));
    }
}

#[test]
fn receives_that_are_given_up_receive_nothing() {
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
fn news_are_received_once_and_not_taken_for_a_message() {
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
    // News that are not asked for are received when the endpoint is dropped.
    end.tell([0, 0], Poison { rank: 1, operation: 1, cause: Cause::Late });
    drop(end);
    assert!(on.borrow().sent.is_empty());
}

#[test]
fn ranks_out_of_range_are_refused() {
    let on = RefCell::default();
    let mut end = endpoint(&on);
    // SAFETY: refused.
    assert_eq!(unsafe { end.post_send(1, Tag(0), Buf::of(&[])) }, Err(NO_SUCH_RANK));
    // SAFETY: refused.
    assert_eq!(unsafe { end.post_recv(1, Tag(0), Buf::of(&[])) }, Err(NO_SUCH_RANK));
}

#[test]
fn long_messages_go_in_pieces_to_their_own_receives() {
    let on = RefCell::default();
    let mut end = endpoint(&on);
    for len in [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 7] {
        let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let (mut first, mut second) = (vec![0; len], vec![0; len + 1]);
        let slots = [want(&mut end, 1, &mut first), want(&mut end, 1, &mut second)];
        let sent = [post(&mut end, 1, &bytes), post(&mut end, 1, &[&bytes[..], &[9]].concat())];
        assert_eq!(on.borrow().sent.len(), len / PIECE + 1 + (len + 1) / PIECE + 1);
        assert!(on.borrow().sent.iter().all(|(_, piece)| piece.len() <= PIECE));
        // The second receive is tested first: the pieces of the first are received before its own.
        for slot in [slots[1], slots[0], sent[1], sent[0]] {
            while !end.test(slot).unwrap() {}
        }
        assert!(first == bytes && second[..len] == bytes[..] && second[len] == 9, "{len}");
    }
    assert_eq!(end.give_up(), 0);
}

#[test]
fn a_receive_waits_only_for_earlier_ones_of_its_peer_and_tag() {
    let (_, mut ends) = network::endpoints(3);
    let mut got = [[0; 1]; 4];
    let [a, b, c, d] = got.each_mut();
    let receive = |end: &mut Endpoint, from, tag, bytes: &mut [u8]| {
        // SAFETY: the bytes outlive the endpoints' use of them.
        unsafe { end.post_recv(from, Tag(tag), Buf::of_mut(bytes)) }.unwrap()
    };
    let [other_tag, other_peer] = [receive(&mut ends[0], 1, 8, a), receive(&mut ends[0], 2, 7, b)];
    let [first, second] = [receive(&mut ends[0], 1, 7, c), receive(&mut ends[0], 1, 7, d)];
    let send = |end: &mut Endpoint, bytes: &[u8]| {
        // SAFETY: copied at once.
        let sent = unsafe { end.post_send(0, Tag(7), Buf::of(bytes)) }.unwrap();
        assert!(end.has_ended(sent));
    };
    assert_eq!((ends[1].rank(), ends[1].size()), (1, 3));
    // Receives that wait for other messages do not delay these.
    let on = |slot| WaitSet::one(Await { source: Source::Message(slot), peer: Some(1), operation: 1, stage: 0 });
    let comes = |ends: &mut [Endpoint], bytes: &[u8], slot| {
        send(&mut ends[1], bytes);
        let looks = (0..9).position(|_| Observe::ready(&mut ends[0], &on(slot)));
        assert!(looks.is_some_and(|looks| looks > 0), "{looks:?}");
    };
    comes(&mut ends, &[1], first);
    assert!([second, other_tag, other_peer].iter().all(|slot| !Observe::ready(&mut ends[0], &on(*slot))));
    comes(&mut ends, &[2], second);
    assert_eq!(
        [first, second, other_tag, other_peer].map(|slot| ends[0].test(slot)),
        [Ok(true), Ok(true), Ok(false), Ok(false)]
    );
    assert_eq!(got, [[0], [0], [1], [2]]);
    ends.drain(..).for_each(drop);
}

#[test]
fn a_process_that_sends_news_waits_a_while_for_receivers_and_not_for_ever() {
    let (network, mut ends) = network::endpoints(3);
    let told = Poison { rank: 0, operation: 1, cause: Cause::Died };
    let begin = Instant::now();
    ends[0].tell([1, 2], told);
    assert!(begin.elapsed() >= LEAVE);
    assert_eq!((ends[0].left.len(), network.left()), (2, (0, 2)));
    for end in &mut ends[1..] {
        assert_eq!([end.news(), end.news()], [None, Some(told)]);
    }
    ends.clear();
    assert_eq!(network.left(), (3, 0));
}

#[test]
fn a_receive_that_has_started_is_waited_for_when_it_is_given_up() {
    let (network, mut ends) = network::endpoints(2);
    let (message, mut got) = ([1; SHORT + 1], [7; SHORT + 1]);
    // SAFETY: the bytes outlive the endpoints.
    unsafe { ends[1].post_send(0, Tag(0), Buf::of(&message)) }.unwrap();
    // SAFETY: as above.
    let slot = unsafe { ends[0].post_recv(1, Tag(0), Buf::of_mut(&mut got)) }.unwrap();
    while !matches!(ends[0].slots[slot.0 as usize], Posted::Receive(Receive { under_way: Some(_), .. })) {
        assert!(!ends[0].has_ended(slot));
    }
    assert_eq!(ends[0].give_up(), 0);
    ends.clear();
    assert_eq!((network.left(), got), ((2, 0), message));
}

#[test]
fn an_error_of_the_layer_is_that_of_the_call() {
    unsafe extern "C" fn refuses(_: *mut c_void, _: *const u8, _: u64, _: u32, _: c_int, _: *mut usize) -> c_int {
        15
    }
    let on = RefCell::default();
    let mut end = endpoint(&on);
    end.layer.send = refuses;
    // SAFETY: refused.
    assert_eq!(unsafe { end.post_send(0, Tag(0), Buf::of(&[1])) }, Err(P2pError(15)));
    assert_eq!(describe(P2pError(15)).to_string(), "the MPI's error class 15");
    let all = [P2pError::LENGTH, P2pError(-2), P2pError(-3), P2pError(-4), P2pError(-5), NO_SUCH_SLOT, NO_SUCH_RANK];
    let words: std::collections::HashSet<_> = all.into_iter().map(|error| describe(error).to_string()).collect();
    assert!(words.len() == all.len() && words.iter().all(|words| !words.contains("class")), "{words:?}");
}

#[test]
fn a_long_send_is_waited_for_when_its_endpoint_is_dropped() {
    let (network, mut ends) = network::endpoints(2);
    let (bytes, mut got) = (vec![7; PIECE + 5], vec![0; PIECE + 5]);
    // SAFETY: the bytes outlive both endpoints.
    unsafe { ends[0].post_send(1, Tag(0), Buf::of(&bytes)) }.unwrap();
    // SAFETY: as above.
    let slot = unsafe { ends[1].post_recv(0, Tag(0), Buf::of_mut(&mut got)) }.unwrap();
    let mut receiver = ends.pop().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| drop(ends));
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(network.left(), (0, 2));
        while !receiver.test(slot).unwrap() {}
    });
    drop(receiver);
    assert_eq!((network.left(), got == bytes), ((2, 0), true));
}

#[test]
fn the_header_has_the_same_bound() {
    let header = include_str!("../../include/unisono_messages.h");
    let line = header.lines().find_map(|line| line.strip_prefix("#define UNISONO_MESSAGES_MOST "));
    assert_eq!((line, MOST), (Some("(UINT64_C(1) << 30)"), 1 << 30));
    let short = header.lines().find_map(|line| line.strip_prefix("#define UNISONO_MESSAGES_SHORT "));
    assert_eq!(short, Some("(UINT64_C(1) << 10)"));
    assert_eq!((NO_SUCH_SLOT.0, NO_SUCH_RANK.0, PIECE, SHORT), (-16, -17, 4096, 16));
}

//! Mailboxes of a segment as a point-to-point layer: order, tags, lengths; refusals; and a peer that writes
//! arbitrary words.

use proptest::prelude::*;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Refusal};
use unisono_kernel::machine::p2p::{P2p, P2pError, Tag};
use unisono_kernel::machine::poll::Slot;
use unisono_kernel::region::{Flag, Layout, Mailboxes as Shape, Params, Region};
use unisono_local::{Mailbox, Segment};
use unisono_shm::mailbox::{FULL, NO_SUCH_RANK, NO_SUCH_SLOT, OVERRUN, REQUESTS, TOO_LONG};
use unisono_shm::{Peer, Post};
use unisono_verify::oracle::mix;

fn segment(ranks: u32, messages: u32, slots: u32, fragment: u64) -> Segment {
    let mailboxes = Some(Shape { messages, slots, fragment });
    Segment::new(Params { page: 256, queue_slots: 1, queue_fragment: 64, mailboxes, ..Params::new(ranks) }).unwrap()
}

fn end(segment: &Segment, rank: u32) -> Mailbox {
    let peers = vec![Peer::default(); segment.layout().ranks() as usize];
    Mailbox::new(segment.clone(), Post::new(*segment.layout(), rank, peers).unwrap())
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| mix(seed << 32 ^ at) as u8).collect()
}

/// Bytes that outlive every request of a test: a request that is not complete leaves them to the layer.
fn leak(bytes: Vec<u8>) -> Buf {
    Buf::of_mut(bytes.leak())
}

fn send(from: &mut Mailbox, to: u32, tag: u64, bytes: Vec<u8>) -> Slot {
    // SAFETY: the bytes are never freed.
    unsafe { from.post_send(to, Tag(tag), leak(bytes)) }.unwrap()
}

fn receive(at: &mut Mailbox, from: u32, tag: u64, len: usize) -> (Slot, Buf) {
    let buf = leak(vec![0xee; len]);
    // SAFETY: the bytes are never freed, and looked at when the request is over.
    (unsafe { at.post_recv(from, Tag(tag), buf) }.unwrap(), buf)
}

fn content(buf: Buf) -> Vec<u8> {
    // SAFETY: leaked by `receive`; the request is over.
    unsafe { core::slice::from_raw_parts(buf.ptr(), buf.len()) }.to_vec()
}

/// Tests both requests until both are complete.
fn finish(a: (&mut Mailbox, Slot), b: (&mut Mailbox, Slot)) {
    let mut over = (false, false);
    for _ in 0..10_000 {
        over = (over.0 || a.0.test(a.1) == Ok(true), over.1 || b.0.test(b.1) == Ok(true));
        if over == (true, true) {
            return;
        }
    }
    panic!("nothing moves: {over:?}");
}

#[test]
fn messages_of_any_length_posted_before_and_after() {
    for (messages, slots, fragment) in [(1, 1, 8), (2, 2, 104), (8, 1, 1000)] {
        let segment = segment(2, messages, slots, fragment);
        let (mut a, mut b) = (end(&segment, 0), end(&segment, 1));
        for len in [0, 1, 7, 8, 9, 104, 105, 999, 1000, 5000] {
            let early = receive(&mut b, 0, 1, len);
            let sent = send(&mut a, 1, 1, bytes(1, len));
            finish((&mut a, sent), (&mut b, early.0));
            assert_eq!(content(early.1), bytes(1, len));
            let sent = send(&mut a, 1, 2, bytes(2, len));
            let late = receive(&mut b, 0, 2, len);
            finish((&mut a, sent), (&mut b, late.0));
            assert_eq!(content(late.1), bytes(2, len));
        }
    }
}

#[test]
fn one_tag_keeps_its_order_and_tags_do_not_wait_for_each_other() {
    let segment = segment(2, 4, 1, 8);
    let (mut a, mut b) = (end(&segment, 0), end(&segment, 1));
    let sent = [(1, 10), (2, 20), (1, 11), (3, 30)].map(|(tag, byte)| send(&mut a, 1, tag, vec![byte]));
    assert!(sent.into_iter().all(|slot| a.test(slot) == Ok(true)));
    // A fifth one waits for the first.
    let fifth = send(&mut a, 1, 1, vec![12]);
    assert_eq!(a.test(fifth), Ok(false));
    let posted = [(3, 30), (1, 10), (1, 11), (2, 20)].map(|(tag, byte)| (receive(&mut b, 0, tag, 1), byte));
    for ((slot, buf), byte) in posted.into_iter().rev() {
        assert_eq!(b.test(slot), Ok(true));
        assert_eq!(content(buf), [byte]);
        assert_eq!(b.test(slot), Err(NO_SUCH_SLOT));
    }
    let last = receive(&mut b, 0, 1, 1);
    finish((&mut a, fifth), (&mut b, last.0));
    assert_eq!(content(last.1), [12]);
}

#[test]
fn a_process_writes_to_itself() {
    let segment = segment(1, 1, 1, 8);
    let mut me = end(&segment, 0);
    let sent = send(&mut me, 0, 5, bytes(3, 30));
    let (got, buf) = receive(&mut me, 0, 5, 30);
    let mut over = (false, false);
    for _ in 0..10 {
        over = (over.0 || me.test(sent) == Ok(true), over.1 || me.test(got) == Ok(true));
    }
    assert_eq!((over, content(buf)), ((true, true), bytes(3, 30)));
}

#[test]
fn what_does_not_fit_is_an_error() {
    let segment = segment(2, 2, 1, 8);
    let (mut a, mut b) = (end(&segment, 0), end(&segment, 1));
    let nothing = Buf::of(&[]);
    // SAFETY: no bytes.
    assert_eq!(unsafe { a.post_send(2, Tag(1), nothing) }, Err(NO_SUCH_RANK));
    // SAFETY: as above.
    assert_eq!(unsafe { a.post_recv(2, Tag(1), nothing) }, Err(NO_SUCH_RANK));
    assert_eq!(a.test(Slot(0)), Err(NO_SUCH_SLOT));
    // SAFETY: refused before a byte is touched.
    assert_eq!(unsafe { a.post_send(1, Tag(1), Buf::new(nothing.ptr(), 8 << 24)) }, Err(TOO_LONG));
    let sent = send(&mut a, 1, 1, vec![1; 3]);
    assert_eq!(a.test(sent), Ok(true));
    let (got, _) = receive(&mut b, 0, 1, 4);
    assert_eq!(b.test(got), Err(P2pError::LENGTH));
    let slots: Vec<Slot> = (0..REQUESTS).map(|_| receive(&mut b, 0, 9, 1).0).collect();
    // SAFETY: no bytes.
    assert_eq!(unsafe { b.post_recv(0, Tag(9), nothing) }, Err(FULL));
    assert!(slots.into_iter().all(|slot| b.test(slot) == Ok(false)));

    let refused =
        |layout: Layout, rank, peers: usize| Post::new(layout, rank, vec![Peer::default(); peers]).unwrap_err();
    let without = Layout::new(Params::new(2)).unwrap();
    let arguments = [refused(*segment.layout(), 2, 2), refused(without, 0, 2), refused(*segment.layout(), 0, 1)];
    let argument = |refusal: Refusal| refusal.argument;
    assert_eq!(arguments.map(argument), [Argument::Rank, Argument::Messages, Argument::Ranks]);
}

#[test]
fn words_that_are_ahead_are_overruns() {
    let segment = segment(2, 1, 1, 8);
    let mailbox = segment.layout().mailbox(0, 1).unwrap();
    let (mut a, mut b) = (end(&segment, 0), end(&segment, 1));
    let (got, _) = receive(&mut b, 0, 1, 20);
    segment.flag(mailbox.sequence(0, 0)).store_release(7);
    assert_eq!(b.test(got), Err(OVERRUN));
    let sent = send(&mut a, 1, 1, bytes(4, 20));
    segment.flag(mailbox.acked(0)).store_release(7);
    assert_eq!(a.test(sent), Err(OVERRUN));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Three ranks send each other messages while words and heads of all mailboxes get arbitrary values: requests are
    /// complete, fail, or never end; nothing is written outside a buffer, and nothing into a send buffer.
    #[test]
    fn corrupt_words_give_errors_and_no_more(
        (messages, slots) in (0u32..3, 0u32..2), fragment in 1u64..4, seed in any::<u64>(),
    ) {
        let segment = segment(3, 1 << messages, 1 << slots, 8 * fragment);
        let mut ends: Vec<_> = (0..3).map(|rank| end(&segment, rank)).collect();
        let mut random = seed;
        let mut below = |bound: u64| {
            random = mix(random);
            (random >> 20) % bound
        };
        let mut active: Vec<(usize, Slot)> = Vec::new();
        // Whole buffers with a guard on both sides, what lies between them, and whether it may be written.
        let mut buffers: Vec<(Buf, Vec<u8>, bool)> = Vec::new();
        for _ in 0..300 {
            let (rank, peer) = (below(3) as usize, below(3) as u32);
            match below(6) {
                0 | 1 if active.len() < 40 => {
                    let (sends, tag, len) = (below(2) == 0, Tag(below(2)), below(60) as usize);
                    let all = bytes(below(1 << 40), len + 32);
                    let whole = leak(all.clone());
                    let inner = Buf::new(whole.ptr().wrapping_add(16), len);
                    buffers.push((whole, all, !sends));
                    let slot = if sends {
                        // SAFETY: never freed.
                        unsafe { ends[rank].post_send(peer, tag, inner) }
                    } else {
                        // SAFETY: never freed, and looked at at the end.
                        unsafe { ends[rank].post_recv(peer, tag, inner) }
                    };
                    active.push((rank, slot.unwrap()));
                }
                2 => {
                    let mailbox = segment.layout().mailbox(rank as u32, peer).unwrap();
                    let value = [below(8), below(4) << 24 | below(4), below(1 << 40) << 24, u64::MAX >> below(64)];
                    let value = value[below(4) as usize];
                    let word = [value.to_ne_bytes()];
                    let at = mailbox.head(below(4));
                    match below(3) {
                        0 => segment.flag(mailbox.sequence(below(4), below(2))).store_release(value),
                        1 => segment.flag(mailbox.acked(below(4))).store_release(value),
                        // SAFETY: readable; nobody runs beside this thread.
                        _ => unsafe { segment.write(at.part(8 * below(2), 8), Buf::of(word.as_flattened())) },
                    }
                }
                _ => {
                    if !active.is_empty() {
                        let at = below(active.len() as u64) as usize;
                        let (rank, slot) = active[at];
                        if ends[rank].test(slot) != Ok(false) {
                            active.swap_remove(at);
                        }
                    }
                }
            }
        }
        drop(ends);
        for (whole, before, written) in buffers {
            let (now, inner) = (content(whole), 16..before.len() - 16);
            prop_assert_eq!(&now[..16], &before[..16]);
            prop_assert_eq!(&now[inner.end..], &before[inner.end..]);
            prop_assert!(written || now[inner.clone()] == before[inner]);
        }
    }
}

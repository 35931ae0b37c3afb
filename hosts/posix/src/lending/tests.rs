//! Which messages are lent, and how they are read.

use super::*;
use crate::allocation::Allocation;
use unisono_shm::Lenders as _;

const fn from(from: usize) -> Lengths {
    Lengths { from, below: usize::MAX }
}

fn lenders(peers: Vec<Peer>, from: usize) -> Lenders {
    let peers = peers.into_iter().map(Arc::new).collect();
    Lenders::new(peers, heap::of_process().ok(), LendFrom::bytes(from), false, None)
}

#[test]
fn what_is_shorter_than_all_that_is_lent_is_not_looked_at() {
    let shortest = |heap, from, windows: bool| {
        let lenders = Lenders::new(Box::default(), heap, from, false, None);
        if windows { lenders.with_windows(Arc::default()).shortest } else { lenders.shortest }
    };
    let heap = heap::of_process().ok();
    assert_eq!(shortest(None, LendFrom::OFF, false), usize::MAX);
    assert_eq!(shortest(None, LendFrom::bytes(5000), false), 5000);
    assert_eq!(shortest(heap, LendFrom::bytes(5000), false), LEAST);
    assert_eq!(shortest(None, LendFrom::OFF, true), LEAST);
    assert_eq!(shortest(heap, LendFrom::bytes(50), true), 50);
}

#[test]
fn a_loan_leads_into_its_lenders_heap_and_nowhere_else() {
    let heap = heap::of_process().unwrap();
    let (number, place) = (std::process::id(), *heap.place());
    let other = Place { bytes: place.bytes - crate::page(), ..place };
    let lenders = lenders(vec![Peer::new(number, Some(place)), Peer::new(number, None), Peer::new(0, Some(other))], 1);
    let memory = Allocation::new(10_000).unwrap();
    // SAFETY: inside, and this test's.
    unsafe { memory.buf().ptr().write_bytes(7, 10_000) };
    let Some(loan) = lenders.lend(memory.buf(), Kind::Bcast) else { panic!("it lies in the heap") };
    assert_eq!((loan.way, Some(loan.at)), (HEAP, heap.offset_of(memory.buf().ptr(), 10_000)));
    let place_of = |lender, loan, from, len| lenders.mapped(lender, loan, from, len);
    let last = place_of(0, loan, 9_999, 1).expect("mapped");
    // SAFETY: the map holds it, and only this thread writes it.
    assert_eq!(unsafe { last.read_volatile() }, 7);
    // What a corrupt line may say.
    let end = place.bytes;
    for (at, from, len) in [
        (end, 0, 1),
        (end - 1, 0, 2),
        (end - 1, 1, 1),
        (u64::MAX, 1, 1),
        (0, u64::MAX, 1),
        (0, 0, usize::MAX),
        (0, end, 1),
    ] {
        assert_eq!(place_of(0, Loan { way: HEAP, at }, from, len), None, "{at} {from} {len}");
    }
    assert!(place_of(0, Loan { way: HEAP, at: end - 1 }, 0, 1).is_some());
    for lender in [1, 2, 3, u32::MAX] {
        assert_eq!(place_of(lender, loan, 0, 1), None, "{lender}: no heap, another length, no such rank");
    }
    for way in [ADDRESS, NonZeroU64::MAX] {
        assert_eq!(place_of(0, Loan { way, ..loan }, 0, 1), None, "{way}");
    }
    // By the other way only processes of known numbers, and addresses at which there is memory.
    let mut byte = [0u8];
    let mut read = |lender, loan| {
        // SAFETY: the array is ours.
        unsafe { lenders.read(lender, loan, 0, Buf::of_mut(&mut byte)) }.is_ok()
    };
    let address = Loan { way: ADDRESS, at: memory.buf().ptr().expose_provenance() as u64 };
    assert!(!read(2, address) && !read(9, address) && !read(0, Loan { way: HEAP, ..address }));
    assert!(read(0, address) && !read(0, Loan { at: 8, ..address }));
    assert!(!read(0, address), "once refused, it is not tried again");
}

#[test]
fn windows_are_lent_to_those_who_have_them() {
    let mut memory = vec![7u8; LEAST];
    let (process, number) = (std::process::id(), Windows::number());
    let part = Part { process: process.into(), base: memory.as_mut_ptr(), bytes: LEAST as u64 };
    let windows = Arc::new(Windows::default());
    // SAFETY: the vector lives longer than the window is known.
    assert!(unsafe { windows.add(number, 0, &[part]) });
    let peers = || vec![Peer::new(process, None), Peer::new(0, None)].into_iter().map(Arc::new).collect();
    let without = Lenders::new(peers(), None, LendFrom::OFF, false, None);
    assert!(without.lend(Buf::of(&memory), Kind::Bcast).is_none());
    let lenders = Lenders::new(peers(), None, LendFrom::OFF, false, None).with_windows(Arc::clone(&windows));
    assert!(lenders.lend(Buf::of(&memory[1..]), Kind::Bcast).is_none(), "too short");
    let loan = lenders.lend(Buf::of(&memory), Kind::Bcast).expect("it lies in the window");
    let mut dst = vec![0u8; LEAST];
    let mut read = |lenders: &Lenders, lender, from| {
        // SAFETY: the vector is this test's.
        unsafe { lenders.read(lender, loan, from, Buf::of_mut(&mut dst)) }.is_ok()
    };
    assert!(lenders.mapped(0, loan, 0, 1).is_none(), "it is read under a lock");
    assert!(read(&lenders, 0, 0) && !read(&lenders, 0, 1) && !read(&lenders, 1, 0) && !read(&without, 0, 0));
    windows.remove(number);
    assert!(!read(&lenders, 0, 0));
    assert_eq!(dst, memory);
    // Where it is refused again and again, it is tried more rarely.
    // SAFETY: as above.
    assert!(unsafe { windows.add(number, 0, &[part]) });
    lenders.answered(false);
    assert!(
        lenders.lend(Buf::of(&memory), Kind::Bcast).is_none() && lenders.lend(Buf::of(&memory), Kind::Bcast).is_some()
    );
}

#[test]
fn where_ranks_share_cores_only_long_messages_are_lent() {
    let memory = Allocation::new(CROWDED_LEAST).unwrap();
    for (crowded, least) in [(false, LEAST), (true, CROWDED_LEAST)] {
        let lenders = Lenders::new(Box::new([]), heap::of_process().ok(), LendFrom::OFF, crowded, None);
        let lends = |bytes| lenders.lend(Buf::new(memory.buf().ptr(), bytes), Kind::Bcast).is_some();
        assert!(lends(least) && !lends(least - 1), "{crowded}");
    }
}

#[test]
fn a_scatters_root_says_which_gap_its_readers_keep() {
    let memory = vec![7u8; 400];
    let peers = || (0..4).map(|_| Arc::new(Peer::new(std::process::id(), None))).collect();
    let gaps = |crowded, kind| {
        let lenders = Lenders::new(peers(), None, LendFrom::bytes(100), crowded, None);
        let lend = |_| {
            let loan = lenders.lend(Buf::of(&memory), kind).expect("long enough");
            let mut byte = [0u8];
            lenders.await_turn(loan, 1, 1);
            // SAFETY: the array is ours.
            unsafe { lenders.read(0, loan, 399, Buf::of_mut(&mut byte)) }.expect("this process's memory");
            assert_eq!(byte, [7]);
            lenders.answered(true);
            turns::gap(loan.way, ADDRESS).expect("an address")
        };
        let mut gaps: Vec<u64> = (0..20).map(lend).collect();
        gaps.dedup();
        gaps
    };
    assert_eq!(gaps(false, Kind::Scatter).len(), 4, "each is tried");
    assert_eq!(gaps(true, Kind::Scatter), [0], "who waits takes another one's time");
    assert_eq!(gaps(false, Kind::Alltoall), [0], "readers begin with different lenders");
}

#[test]
fn what_is_refused_is_lent_more_rarely() {
    let lenders = lenders(vec![], 100);
    let memory = vec![0u8; 100];
    let lends = || lenders.lend(Buf::of(&memory), Kind::Bcast).is_some();
    assert!(lenders.lend(Buf::of(&memory[1..]), Kind::Bcast).is_none());
    for refused in 1..6 {
        assert!(lends());
        lenders.answered(false);
        assert_eq!((0..(1 << refused) - 1).filter(|_| lends()).count(), 0, "{refused}");
    }
    assert!(lends());
    lenders.answered(true);
    assert!((0..100).all(|_| lends()));
}

#[test]
fn buffers_that_are_used_again_are_lent_from_their_own_length_on() {
    let few = ByKind::NONE.and(Kind::Bcast, true, Lengths { from: 8, below: 40 }).and(Kind::Bcast, false, from(16));
    let lenders =
        Lenders::new(Box::new([]), None, LendFrom::measured(Lent::and_heap(few), Lent::and_heap(few), 2), false, None);
    let memory = [0u8; 100];
    let lends = |at: usize, bytes| lenders.lend(Buf::of(&memory[at..at + bytes]), Kind::Bcast).is_some();
    assert!(!lends(0, 7) && !lends(0, 7), "too short for either");
    assert!(!lends(0, 8) && lends(0, 8) && lends(0, 39) && !lends(0, 40));
    assert!(lends(1, 16) && !lends(2, 15) && lends(2, 15));
    // Four are remembered.
    assert!(!lends(3, 8) && lends(0, 8) && !lends(4, 8) && !lends(0, 8) && lends(0, 8));
}

#[test]
fn what_was_measured_holds_for_few_ranks_or_many_and_not_where_they_share_cores() {
    let few = ByKind::NONE.and(Kind::Alltoall, true, from(8)).and(Kind::Alltoall, false, from(9));
    let many = ByKind::NONE.and(Kind::Scatter, true, from(7));
    let measured = LendFrom::measured(Lent::and_heap(few), Lent::and_heap(many), 5);
    let shortest = |of: LendFrom, ranks, crowded| {
        let of = of.among(ranks, crowded).ordinary;
        [(Kind::Alltoall, true), (Kind::Alltoall, false), (Kind::Scatter, true)]
            .map(|(kind, warm)| of.lengths(kind, warm).map(|lengths| lengths.from))
    };
    assert_eq!(shortest(measured, 4, false), [Some(8), Some(9), None]);
    assert_eq!(shortest(measured, 5, false), [None, None, Some(7)]);
    let crowded = [Some(SCATTERED); 3];
    let below =
        |kind, warm| LendFrom::UNMEASURED.among(4, true).ordinary.lengths(kind, warm).map(|lengths| lengths.below);
    assert_eq!([below(Kind::Alltoall, true), below(Kind::Alltoall, false)], [Some(2 << 20); 2]);
    assert_eq!([below(Kind::Scatter, true), below(Kind::Scatter, false)], [Some(usize::MAX), None]);
    assert_eq!([Kind::Allgather, Kind::Allreduce, Kind::Reduce, Kind::Gather].map(|kind| below(kind, true)), [None; 4]);
    assert_eq!([4, 5].map(|ranks| shortest(measured, ranks, true)), [crowded; 2]);
    assert_eq!([2, 9].map(|ranks| shortest(LendFrom::bytes(8), ranks, true)), [[Some(8); 3]; 2], "asked for");
    assert_eq!(shortest(LendFrom::OFF, 9, false), [None; 3]);
    let unmeasured = |ranks, crowded| shortest(LendFrom::UNMEASURED, ranks, crowded);
    assert_eq!(unmeasured(MANY, false), [None, None, Some(SCATTERED)]);
    assert_eq!([unmeasured(MANY - 1, false), unmeasured(MANY, true)], [[None; 3], crowded]);
    // A block is the message where each reader has one of its own.
    let memory = [0u8; 30];
    let peers = || (0..4).map(|_| Arc::new(Peer::new(0, None))).collect();
    let just = |few| LendFrom::measured(Lent::and_heap(few), Lent::and_heap(ByKind::NONE), 5);
    let lends = |kind| {
        Lenders::new(peers(), None, just(ByKind::NONE.and(kind, false, from(8))), false, None)
            .lend(Buf::of(&memory), kind)
    };
    assert_eq!([Kind::Alltoall, Kind::Scatter, Kind::Gather].map(|kind| lends(kind).is_some()), [true, true, true]);
    let lends = |kind| {
        Lenders::new(peers(), None, just(ByKind::NONE.and(kind, false, from(9))), false, None)
            .lend(Buf::of(&memory), kind)
    };
    assert_eq!([Kind::Alltoall, Kind::Scatter, Kind::Gather].map(|kind| lends(kind).is_some()), [false, false, true]);
}

#[test]
fn what_two_cores_copy_faster_is_not_lent_in_a_heap_either() {
    let memory = Allocation::new(10_000).unwrap();
    let long = ByKind::NONE.and(Kind::Reduce, true, from(8_000));
    let lent = Lent { ordinary: ByKind::NONE, posted: long };
    let peers = (0..2).map(|_| Arc::new(Peer::new(0, None))).collect();
    let lenders = Lenders::new(peers, heap::of_process().ok(), LendFrom::measured(lent, lent, 5), false, None);
    let lends = |kind, bytes| lenders.lend(Buf::new(memory.buf().ptr(), bytes), kind).is_some();
    // The first message from a buffer is not known to be in the caches.
    assert_eq!([0, 1].map(|_| lends(Kind::Reduce, 8_000)), [true, false]);
    assert!(lends(Kind::Reduce, 7_999) && lends(Kind::Gather, 10_000));
    // Where both are asked, neither makes the buffer known to the other.
    let lent = Lent { ordinary: long, posted: ByKind::NONE.and(Kind::Reduce, false, from(8_000)) };
    let peers = (0..2).map(|_| Arc::new(Peer::new(0, None))).collect();
    let lenders = Lenders::new(peers, heap::of_process().ok(), LendFrom::measured(lent, lent, 5), false, None);
    let ways = [0, 1].map(|_| lenders.lend(memory.buf(), Kind::Reduce).map(|loan| loan.way));
    assert_eq!(ways, [None, Some(HEAP)], "cold: by two copies; warm: where it lies");
}

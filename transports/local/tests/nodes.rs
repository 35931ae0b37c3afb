//! Collectives over several nodes as another runtime embeds them: it brings segments, a network and memory, and calls
//! `hier::Communicator`.
//!
//! Here the runtime is threads. Five ranks live on two nodes of two and three; each node has a segment of its own, and messages
//! between nodes go through mailboxes. Nothing of an MPI takes part.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use unisono_kernel::Rank;
use unisono_kernel::comm::Comm;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Cause, Error, Poison, Refusal};
use unisono_kernel::hier::reduce_scatter::pays;
use unisono_kernel::hier::{Call, Communicator, Home, Host, Lengths, Levels, Lists, NUMBERS, Side, Spans};
use unisono_kernel::machine::p2p::{P2p, P2pError, Tag, Tell};
use unisono_kernel::machine::poll::Slot;
use unisono_kernel::machine::wait::SpinThen;
use unisono_kernel::op::Op;
use unisono_kernel::region::Params;
use unisono_kernel::table::Between;
use unisono_local::{Mailbox, Mailboxes, Segment, Thread, waiting};

/// The node of each rank. Rank 0 leads one, rank 1 the other.
const NODES: [u32; 5] = [0, 1, 1, 0, 1];
const SIZE: usize = NODES.len();

/// The network: mailboxes for messages, and for each rank a list of what it was told of errors.
struct Network {
    mailbox: Mailbox,
    told: Arc<[Mutex<Vec<Poison>>; SIZE]>,
}

impl P2p for Network {
    fn rank(&self) -> Rank {
        self.mailbox.rank()
    }

    fn size(&self) -> u32 {
        self.mailbox.size()
    }

    unsafe fn post_send(&mut self, to: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError> {
        // SAFETY: the caller's promise.
        unsafe { self.mailbox.post_send(to, tag, buf) }
    }

    unsafe fn post_recv(&mut self, from: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError> {
        // SAFETY: the caller's promise.
        unsafe { self.mailbox.post_recv(from, tag, buf) }
    }

    fn test(&mut self, slot: Slot) -> Result<bool, P2pError> {
        self.mailbox.test(slot)
    }

    fn has_ended(&mut self, slot: Slot) -> bool {
        self.mailbox.has_ended(slot)
    }

    fn news(&mut self) -> Option<Poison> {
        self.told[self.rank() as usize].lock().unwrap().pop()
    }
}

impl Tell for Network {
    fn tell(&mut self, ranks: impl Iterator<Item = Rank>, why: Poison) {
        ranks.for_each(|rank| self.told[rank as usize].lock().unwrap().push(why));
    }

    /// A mailbox moves bytes only when its own rank tests, which a communicator that has failed does no more.
    fn give_up(&mut self) {}
}

/// What the runtime brings: all memory is slices, as where there is no heap.
struct Threads<'a>(PhantomData<&'a mut ()>);

impl<'a> Host for Threads<'a> {
    type Region = Segment;
    type Messages = Network;
    type Wait = SpinThen<Thread>;
    type Places = Lists<'a>;
    type Scratch = &'a mut [u8];
}

/// Runs `body` on each rank, which has so many bytes of working memory, and returns what the bodies return.
fn run<A: Send>(
    memory: impl Fn(Rank) -> usize + Sync,
    body: impl Fn(&mut Communicator<Threads<'_>>) -> A + Sync,
) -> Vec<A> {
    run_on(NODES, memory, body)
}

/// The same where ranks are on these two nodes.
fn run_on<A: Send>(
    nodes: [u32; SIZE],
    memory: impl Fn(Rank) -> usize + Sync,
    body: impl Fn(&mut Communicator<Threads<'_>>) -> A + Sync,
) -> Vec<A> {
    let ranks_of = |node| nodes.iter().filter(|at| **at == node).count() as u32;
    let segments = [0, 1].map(|node| Segment::new(Params::new(ranks_of(node))).unwrap());
    let told: Arc<[Mutex<Vec<Poison>>; SIZE]> = Arc::default();
    let member = |mailbox: Mailbox| {
        let (me, told) = (mailbox.rank() as usize, told.clone());
        let segment = segments[nodes[me] as usize].clone();
        // Its rank on the node: how many of the node's ranks are before it.
        let inside = nodes[..me].iter().filter(|node| **node == nodes[me]).count() as Rank;
        let layout = *segment.layout();
        let levels = Levels { comm: Comm::new(segment, layout, inside).unwrap(), messages: Network { mailbox, told } };
        let (mut homes, mut leaders) = ([Home { node: 0, rank: 0 }; SIZE], [0; SIZE]);
        let (mut order, mut numbers) = ([0; SIZE], [[0; NUMBERS]; SIZE]);
        let places = Lists::new(&mut homes, &mut leaders, &mut order, &mut numbers);
        let mut scratch = vec![0; memory(me as Rank)];
        let algorithms = Between::cut(&[], 2, 1).unwrap();
        let mut communicator =
            Communicator::new(levels, waiting(SIZE as u32), places, scratch.as_mut_slice(), &nodes, algorithms)
                .unwrap();
        assert_eq!((communicator.rank() as usize, communicator.size() as usize), (me, SIZE));
        body(&mut communicator)
    };
    std::thread::scope(|scope| {
        let ends = Mailboxes::connect(SIZE as u32).into_iter();
        let threads: Vec<_> = ends.map(|mailbox| scope.spawn(|| member(mailbox))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

const ENOUGH: usize = 1 << 16;

/// What `rank` sends.
fn bytes(rank: Rank, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + rank as usize * 31 + 1) as u8).collect()
}

#[test]
fn broadcasts_from_roots_that_lead_no_node() {
    // None, a few, and more than a segment of the pipeline over both levels.
    for (root, len) in [2, 3, 4].into_iter().flat_map(|root| [(root, 0), (root, 100), (root, 300_000)]) {
        let received = run(
            |_| ENOUGH,
            |communicator| {
                let mut buffer = if communicator.rank() == root { bytes(root, len) } else { vec![0; len] };
                // SAFETY: the buffer is this thread's; where the call fails, the test fails.
                unsafe { communicator.run(Call::Bcast { buffer: Buf::of_mut(&mut buffer), root }) }.unwrap();
                communicator.barrier().unwrap();
                buffer
            },
        );
        assert!(received == vec![bytes(root, len); SIZE], "{len} bytes of {root}");
    }
}

#[test]
fn reduces_to_all_in_place() {
    const COUNT: u64 = 1000;
    let number = |rank: u64, at: u64| (rank + 1) * 1_000_003 + at;
    let sums = run(
        |_| ENOUGH,
        |communicator| {
            let mut values: Vec<u8> =
                (0..COUNT).flat_map(|at| number(communicator.rank().into(), at).to_ne_bytes()).collect();
            let both = Buf::of_mut(&mut values);
            // SAFETY: as in the broadcast.
            unsafe { communicator.run(Call::Allreduce { send: both, receive: both, op: Op::SUM_U64 }) }.unwrap();
            values
        },
    );
    let sum = |at| (0..SIZE as u64).map(|rank| number(rank, at)).sum::<u64>();
    let expected: Vec<u8> = (0..COUNT).flat_map(|at| sum(at).to_ne_bytes()).collect();
    assert!(sums == vec![expected; SIZE]);
}

#[test]
fn blocks_of_a_fold_go_to_their_ranks() {
    const LENGTHS: [u64; SIZE] = [16, 0, 800, 8, 40];
    let number = |rank: u64, at: u64| (rank + 1) * 1_000_003 + at;
    let values = |number: &dyn Fn(u64) -> u64, from: u64, bytes: u64| {
        (from..from + bytes / 8).flat_map(|at| number(at).to_ne_bytes()).collect::<Vec<u8>>()
    };
    for (in_place, lengths) in [false, true].into_iter().flat_map(|it| [(it, LENGTHS), (it, [24; SIZE])]) {
        let all = lengths.iter().sum();
        let results = run_on(
            [0, 0, 1, 1, 1],
            |_| ENOUGH,
            |communicator| {
                let me = communicator.rank() as usize;
                let mut operand = values(&|at| number(me as u64, at), 0, all);
                let mut result = vec![0xa5; lengths[me] as usize];
                assert!(communicator.reduce_scatters(all));
                let send = Buf::of_mut(&mut operand);
                let own = Buf::new(send.ptr(), result.len());
                let receive = if in_place { own } else { Buf::of_mut(&mut result) };
                let blocks = match lengths == LENGTHS {
                    true => Lengths::Each(&lengths),
                    false => Lengths::Equal(lengths[0]),
                };
                let call = Call::ReduceScatter { send, receive, lengths: blocks, op: Op::SUM_U64 };
                // SAFETY: as in the broadcast.
                unsafe { communicator.run(call) }.unwrap();
                if in_place { operand[..lengths[me] as usize].to_vec() } else { result }
            },
        );
        let sum = |at| (0..SIZE as u64).map(|rank| number(rank, at)).sum();
        let mut from = 0;
        for (length, result) in lengths.into_iter().zip(results) {
            assert!(result == values(&sum, from, length), "{lengths:?} {in_place}");
            from += length / 8;
        }
    }
    // Of more nodes short ones, and where ranks lie across nodes none.
    assert_eq!(
        [(4, 0), (5, 0), (5, 81_919), (5, 81_920)].map(|(nodes, bytes)| pays(nodes, bytes)),
        [true, false, false, true]
    );
    let apart = run(|_| ENOUGH, |communicator| communicator.reduce_scatters(8));
    assert_eq!(apart, [false; SIZE]);
}

#[test]
fn a_reduce_scatter_of_other_lengths_is_refused() {
    let refusals = [
        (8, 8, [8; SIZE], Refusal::new(Argument::Bytes, 8, Bound::Equals(40))),
        (40, 0, [8; SIZE], Refusal::new(Argument::Bytes, 0, Bound::Equals(8))),
        (20, 4, [4; SIZE], Refusal::new(Argument::Bytes, 4, Bound::MultipleOf(8))),
    ];
    for (send, receive, lengths, refusal) in refusals {
        let ends = run_on(
            [0, 0, 0, 1, 1],
            |_| ENOUGH,
            |communicator| {
                let (operand, mut result) = (vec![0; send], vec![0; receive]);
                let (send, receive) = (Buf::of(&operand), Buf::of_mut(&mut result));
                let call = Call::ReduceScatter { send, receive, lengths: Lengths::Each(&lengths), op: Op::SUM_U64 };
                // SAFETY: buffers of this thread; the bytes of a failed call are moved no more.
                unsafe { communicator.run(call) }.unwrap_err()
            },
        );
        // All refuse it, or hear of it first.
        assert!(ends.contains(&Error::Refused(refusal)), "{ends:?}");
    }
}

#[test]
fn scans_among_ranks_that_lie_across_nodes() {
    const COUNT: u64 = 100;
    let values = |number: &dyn Fn(u64) -> u64| (0..COUNT).flat_map(|at| number(at).to_ne_bytes()).collect::<Vec<u8>>();
    let number = |rank: u64, at: u64| (rank + 1) * 1_000_003 + at;
    for (in_place, exclusive) in [(false, false), (true, false), (false, true), (true, true)] {
        let results = run(
            |_| ENOUGH,
            |communicator| {
                let operand = values(&|at| number(communicator.rank().into(), at));
                let mut result = if in_place { operand.clone() } else { vec![0xa5; operand.len()] };
                let send = (!in_place).then(|| Buf::of(&operand));
                let call = Call::Scan { send, receive: Buf::of_mut(&mut result), op: Op::SUM_U64, exclusive };
                // SAFETY: as in the broadcast.
                unsafe { communicator.run(call) }.unwrap();
                result
            },
        );
        for (rank, result) in (0..).zip(results) {
            let ranks = 0..rank + u64::from(!exclusive);
            let sums = values(&|at| ranks.clone().map(|rank| number(rank, at)).sum());
            let untouched = if in_place { values(&|at| number(rank, at)) } else { vec![0xa5; sums.len()] };
            assert!(result == if ranks.is_empty() { untouched } else { sums }, "{rank}, {in_place}, {exclusive}");
        }
    }
}

#[test]
fn a_scan_of_two_lengths_is_refused() {
    let refused = Refusal::new(Argument::Bytes, 16, Bound::Equals(8));
    let ends = run(
        |_| ENOUGH,
        |communicator| {
            let (operand, mut result) = ([0; 16], [0; 8]);
            let send = Some(Buf::of(if communicator.rank() == 3 { &operand } else { &operand[..8] }));
            let call = Call::Scan { send, receive: Buf::of_mut(&mut result), op: Op::SUM_U64, exclusive: false };
            // SAFETY: buffers of this thread; the bytes of a failed call are moved no more.
            let end = unsafe { communicator.run(call) };
            end.and_then(|()| communicator.barrier()).unwrap_err()
        },
    );
    for (rank, end) in ends.into_iter().enumerate() {
        match end {
            Error::Refused(mine) => assert_eq!((rank, mine), (3, refused)),
            Error::Poisoned(poison) => assert_eq!((poison.rank, poison.cause), (3, Cause::Refused(refused)), "{rank}"),
            other => panic!("rank {rank}: {other}"),
        }
    }
}

/// Blocks of unequal lengths, one of them empty, with a byte between each two.
const LENGTHS: [u64; SIZE] = [1000, 3, 0, 257, 40];
const STARTS: [u64; SIZE] = [0, 1001, 1005, 1006, 1264];
const BLOCKS: Spans<'_> = Spans { lengths: &LENGTHS, starts: &STARTS };
const BYTES: usize = 1304;

fn block(rank: usize) -> Vec<u8> {
    bytes(rank as Rank, LENGTHS[rank] as usize)
}

/// All blocks where they belong.
fn all_blocks() -> Vec<u8> {
    let mut all = vec![0xa5; BYTES];
    (0..SIZE).for_each(|rank| all[STARTS[rank] as usize..][..LENGTHS[rank] as usize].copy_from_slice(&block(rank)));
    all
}

fn allgather(communicator: &mut Communicator<Threads<'_>>) -> Result<Vec<u8>, Error> {
    let (send, mut receive) = (block(communicator.rank() as usize), vec![0xa5; BYTES]);
    let to = Side { base: receive.as_mut_ptr(), blocks: BLOCKS };
    // SAFETY: buffers of this thread, which outlive all use of them: the bytes of a failed call are moved no more.
    unsafe { communicator.run(Call::Allgatherv { send: Some(Buf::of(&send)), receive: to }) }.map(|()| receive)
}

#[test]
fn gathers_unequal_blocks_to_all_and_scatters_them_from_one() {
    let gathered = run(
        |_| ENOUGH,
        |communicator| {
            let (me, mut all) = (communicator.rank() as usize, allgather(communicator).unwrap());
            // Only the root says where blocks lie.
            let root = 3;
            let blocks = if me == root { BLOCKS } else { Spans { lengths: &[], starts: &[] } };
            let mut mine = vec![0; LENGTHS[me] as usize];
            let receive = Some(Buf::of_mut(&mut mine));
            let send = Side { base: all.as_mut_ptr(), blocks };
            // SAFETY: as in the broadcast.
            unsafe { communicator.run(Call::Scatterv { send, receive, root: root as Rank }) }.unwrap();
            assert!(mine == block(me), "the block of {me}");
            all
        },
    );
    assert!(gathered == vec![all_blocks(); SIZE]);
}

/// Moves a call of this thread's until it is complete; returns how often it was pending.
fn finish(call: impl Future<Output = Result<(), Error>>) -> (usize, Result<(), Error>) {
    let mut call = pin!(call);
    for pending in 0.. {
        if let Poll::Ready(end) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return (pending, end);
        }
        std::thread::yield_now();
    }
    unreachable!()
}

#[test]
fn calls_that_are_started_go_on_from_where_they_were_pending() {
    let ends = run(
        |_| ENOUGH,
        |communicator| {
            let me = communicator.rank() as usize;
            let (send, mut all, mut mine) = (block(me), vec![0xa5; BYTES], vec![0; LENGTHS[me] as usize]);
            let lists = |root| if me == root { BLOCKS } else { Spans { lengths: &[], starts: &[] } };
            // Lengths first, then blocks: to one rank, and from there back.
            let (to, from) = (lists(1), lists(1));
            let receive = Side { base: all.as_mut_ptr(), blocks: to };
            let gathers = Call::Gatherv { send: Some(Buf::of(&send)), receive, root: 1 };
            // SAFETY: buffers of this thread; where the call fails, the test fails.
            let (mut pending, end) = finish(unsafe { communicator.start(gathers) });
            end.unwrap();
            let side = Side { base: all.as_mut_ptr(), blocks: from };
            let scatters = Call::Scatterv { send: side, receive: Some(Buf::of_mut(&mut mine)), root: 1 };
            // SAFETY: as above.
            let (more, end) = finish(unsafe { communicator.start(scatters) });
            end.unwrap();
            pending += more;
            // A call that waits between two that are started.
            communicator.barrier().unwrap();
            let mut long = if me == 4 { bytes(4, 600_000) } else { vec![0; 600_000] };
            // SAFETY: as above.
            let (more, end) =
                finish(unsafe { communicator.start(Call::Bcast { buffer: Buf::of_mut(&mut long), root: 4 }) });
            end.unwrap();
            assert!(mine == block(me) && long == bytes(4, 600_000), "{me}");
            (all, pending + more)
        },
    );
    let untouched = vec![0xa5; BYTES];
    for (rank, (all, _)) in ends.iter().enumerate() {
        assert!(*all == if rank == 1 { all_blocks() } else { untouched.clone() }, "{rank}");
    }
    // The long message has more bytes than are on their way at a time.
    assert!(ends.iter().any(|(_, pending)| *pending > 0), "nothing was pending");
}

#[test]
fn a_call_that_is_started_hears_of_errors() {
    let refusal = Refusal::new(Argument::Root, 7, Bound::Below(SIZE as u64));
    let ends = run(
        |_| ENOUGH,
        |communicator| {
            let root = if communicator.rank() == 2 { 7 } else { 0 };
            // SAFETY: no bytes.
            finish(unsafe { communicator.start(Call::Bcast { buffer: Buf::of(&[]), root }) })
                .1
                .and_then(|()| communicator.barrier())
                .unwrap_err()
        },
    );
    for (rank, end) in ends.into_iter().enumerate() {
        match end {
            Error::Refused(mine) => assert_eq!((rank, mine), (2, refusal)),
            Error::Poisoned(poison) => assert_eq!((poison.rank, poison.cause), (2, Cause::Refused(refusal)), "{rank}"),
            other => panic!("rank {rank}: {other}"),
        }
    }
}

#[test]
fn what_one_rank_refuses_all_ranks_of_both_nodes_hear() {
    let refusal = Refusal::new(Argument::Root, 9, Bound::Below(SIZE as u64));
    let ends = run(
        |_| ENOUGH,
        |communicator| {
            let result = match communicator.rank() {
                // SAFETY: no bytes.
                4 => unsafe { communicator.run(Call::Bcast { buffer: Buf::of(&[]), root: 9 }) },
                _ => communicator.barrier(),
            };
            let end = result.and_then(|()| communicator.barrier()).unwrap_err();
            (end, communicator.failure())
        },
    );
    for (rank, (end, failure)) in ends.into_iter().enumerate() {
        assert_eq!(failure.map(|poison| (poison.rank, poison.cause)), Some((4, Cause::Refused(refusal))), "{rank}");
        match end {
            Error::Refused(mine) => assert_eq!((rank, mine), (4, refusal)),
            Error::Poisoned(poison) => assert_eq!((poison.rank, poison.cause), (4, Cause::Refused(refusal)), "{rank}"),
            other => panic!("rank {rank}: {other}"),
        }
    }
}

#[test]
fn a_rank_without_working_memory_is_named_to_all() {
    let ends = run(|rank| if rank == 2 { 0 } else { ENOUGH }, |communicator| allgather(communicator).unwrap_err());
    for (rank, end) in ends.into_iter().enumerate() {
        match end {
            Error::Refused(refusal) => assert_eq!((rank, refusal.argument), (2, Argument::Scratch)),
            Error::Poisoned(poison) => assert_eq!((poison.rank, poison.cause), (2, Cause::Died), "{rank}"),
            other => panic!("rank {rank}: {other}"),
        }
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let member = |nodes: &[u32], inside: Rank| {
        let mut ends = Mailboxes::connect(3);
        let segment = Segment::new(Params::new(2)).unwrap();
        let layout = *segment.layout();
        let messages = Network { mailbox: ends.swap_remove(0), told: Arc::default() };
        let levels = Levels { comm: Comm::new(segment, layout, inside).unwrap(), messages };
        let (mut homes, mut leaders) = ([Home { node: 0, rank: 0 }; 3], [0; 3]);
        let (mut order, mut numbers) = ([0; 3], [[0; NUMBERS]; 3]);
        let places = Lists::new(&mut homes, &mut leaders, &mut order, &mut numbers);
        let algorithms = Between::cut(&[], 2, 1).unwrap();
        Communicator::<Threads<'_>>::new(levels, waiting(3), places, &mut [], nodes, algorithms).map(|made| made.rank())
    };
    assert_eq!(member(&[0, 1, 0], 0), Ok(0));
    assert_eq!(member(&[0, 1, 0], 1), Err(Refusal::new(Argument::Rank, 1, Bound::Equals(0))));
    assert_eq!(member(&[0, 1, 1], 0), Err(Refusal::new(Argument::Ranks, 2, Bound::Equals(1))));
    assert_eq!(member(&[0, 1], 0), Err(Refusal::new(Argument::Ranks, 2, Bound::Equals(3))));
    assert_eq!(member(&[0, 2, 0], 0), Err(Refusal::new(Argument::Rank, 2, Bound::AtMost(1))));
}

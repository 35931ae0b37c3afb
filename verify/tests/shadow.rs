//! The shadow: legal programs keep its rules in any order of polls, and members with a fault break one at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use unisono_kernel::Rank;
use unisono_kernel::algorithm::{AllreduceAlgorithm, BcastAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::call::any::Any;
use unisono_kernel::collective::Kind;
use unisono_kernel::comm::{Comm, Member};
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::machine::poll::Poll;
use unisono_kernel::machine::{Machine, Operation};
use unisono_kernel::op::Op;
use unisono_kernel::region::{Base, Cico, Counter, Flag, FlagId, Layout, Loan, Mailword, Params, Region};
use unisono_kernel::shm::allreduce::groups::Grouped;
use unisono_kernel::shm::alltoall::pairwise::alltoallv;
use unisono_local::Segment;
use unisono_verify::oracle::mix;
use unisono_verify::shadow::{Shadow, Shadowed};

/// Words of one kind, of a rank.
type Words = fn(&Layout, Rank) -> FlagId;

/// A member with a fault: it publishes some of its words too soon, by this difference.
struct Hasty<R> {
    region: R,
    word: Option<FlagId>,
    ahead: u64,
}

// SAFETY: forwards to a region that keeps the contract; a value that lies is no worse than a peer that does.
unsafe impl<R: Region> Region for Hasty<R> {
    unisono_kernel::forward_region!(R, |this| &this.region; own publish);

    fn publish(&self, id: FlagId, value: u64) {
        let ahead = if self.word == Some(id) { self.ahead } else { 0 };
        self.region.publish(id, value + ahead);
    }
}

/// Slots so few and short that they are used again within a call.
fn params(ranks: u32) -> Params {
    Params { page: 256, lines: 4, queue_slots: 4, queue_fragment: 256, ..Params::new(ranks) }
}

/// The members' views of one segment with a shadow, one of which may have a fault.
fn views(params: Params, lie: Option<(Rank, Words, u64)>) -> (Layout, impl Fn(Rank) -> Hasty<Shadowed<Segment>>) {
    views_of(Segment::new(params).unwrap(), lie)
}

fn views_of(segment: Segment, lie: Option<(Rank, Words, u64)>) -> (Layout, impl Fn(Rank) -> Hasty<Shadowed<Segment>>) {
    let layout = *segment.layout();
    let shadow = Shadow::new(layout, Base::default());
    let view = move |rank| {
        let region = Shadowed::new(segment.clone(), &shadow, &layout, rank);
        let lie = lie.filter(|(liar, ..)| *liar == rank);
        Hasty { region, word: lie.map(|(_, word, _)| word(&layout, rank)), ahead: lie.map_or(0, |(.., ahead)| ahead) }
    };
    (layout, view)
}

/// Bytes of the block from `from` to `to` in a round: for a line, for a slot, or for pairwise rounds, and often 0.
fn between(seed: u64, round: u64, from: Rank, to: Rank) -> u64 {
    const ALL: [u64; 12] = [0, 0, 0, 1, 8, 31, 64, 120, 240, 300, 900, 2000];
    // Now and then one process has short blocks only, and so another place for them.
    let longest = 3 + mix(seed ^ round << 8 ^ u64::from(from) << 4) % 9;
    ALL[(mix(seed << 32 ^ round << 16 ^ u64::from(from) << 8 ^ u64::from(to)) % (longest + 1)) as usize]
}

fn byte(round: u64, from: Rank, to: Rank, at: usize) -> u8 {
    mix(round << 40 ^ u64::from(from) << 36 ^ u64::from(to) << 32 ^ at as u64) as u8
}

/// Leaks a value, since machines refer to it for as long as the program runs.
fn leak<T>(all: impl IntoIterator<Item = T>) -> &'static mut [T] {
    Vec::leak(all.into_iter().collect())
}

/// Blocks one after the other, with block r from `of`.
fn blocks(ranks: u32, len: impl Fn(Rank) -> u64, of: impl Fn(Rank, usize) -> u8) -> (Buf, Blocks<'static>) {
    let counts = leak((0..ranks).map(&len));
    let places = leak((0..ranks as usize).map(|rank| counts[..rank].iter().sum::<u64>()));
    let memory = leak((0..ranks).flat_map(|rank| (0..len(rank) as usize).map(move |at| (rank, at))));
    let memory = Buf::of_mut(leak(memory.iter().map(|&(rank, at)| of(rank, at))));
    // SAFETY: the memory is never freed; one poll at a time touches it.
    (memory, unsafe { Blocks::vary(memory, counts, places, Datatype::BYTE) }.unwrap())
}

fn content(buf: Buf) -> &'static [u8] {
    // SAFETY: never freed, and nobody writes it any more.
    unsafe { core::slice::from_raw_parts(buf.ptr(), buf.len()) }
}

/// One process: alltoallv, a broadcast, and an allreduce by groups or another broadcast, in turn.
struct Process<R> {
    comm: Comm<R>,
    round: u64,
    machine: Option<(Any<'static>, Buf)>,
}

const ROUNDS: u64 = 12;

/// Is a round's operation an allreduce by groups?
fn by_groups(ranks: u32, round: u64) -> bool {
    round % 3 == 2 && Grouped::divides(ranks)
}

/// Bytes of a round's message to all.
fn message(seed: u64, round: u64) -> usize {
    between(seed, round, 0, 0) as usize / 8 * 8
}

/// A rank's operand in a round.
fn operand(seed: u64, round: u64, rank: Rank) -> impl Iterator<Item = u64> {
    (0..message(seed, round) / 8).map(move |at| mix(round << 40 ^ u64::from(rank) << 32 ^ at as u64))
}

impl<R: Region> Process<R> {
    fn machine(me: &mut Member, seed: u64, round: u64) -> (Any<'static>, Buf) {
        let (ranks, rank) = (me.size(), me.rank());
        if round.is_multiple_of(3) {
            let (_, send) = blocks(ranks, |to| between(seed, round, rank, to), |to, at| byte(round, rank, to, at));
            let (buf, receive) = blocks(ranks, |from| between(seed, round, from, rank), |_, _| 0);
            return (Any::from(alltoallv(me, Some(send), receive).unwrap()).started(me), buf);
        }
        if by_groups(ranks, round) {
            let send = Buf::of_mut(leak(operand(seed, round, rank).flat_map(u64::to_ne_bytes)));
            let receive = Buf::of_mut(leak(vec![0; send.len()]));
            // SAFETY: never freed; one poll at a time touches them.
            let data = |buf: Buf| unsafe { Data::from_raw(buf, buf.len() as u64, Datatype::BYTE) }.unwrap();
            let (algorithm, op) = (AllreduceAlgorithm::Groups, Op::SUM_U64);
            let call = Call::Allreduce { send: data(send), receive: data(receive), op, algorithm };
            return (call.build(me).unwrap().started(me), receive);
        }
        let (root, len) = ((mix(seed ^ round) % u64::from(ranks)) as Rank, message(seed, round));
        let buf = Buf::of_mut(leak((0..len).map(|at| if rank == root { byte(round, root, root, at) } else { 0 })));
        // SAFETY: never freed; one poll at a time touches it.
        let data = unsafe { Data::from_raw(buf, len as u64, Datatype::BYTE) }.unwrap();
        (Call::Bcast { data, root, algorithm: BcastAlgorithm::Queue }.build(me).unwrap().started(me), buf)
    }

    /// The right data after a round.
    fn expected(&self, seed: u64) -> Vec<u8> {
        let (ranks, rank, round) = (self.comm.member().size(), self.comm.member().rank(), self.round);
        if by_groups(ranks, round) {
            let add = |sums: Vec<u64>, rank| {
                sums.iter().zip(operand(seed, round, rank)).map(|(a, b)| a.wrapping_add(b)).collect()
            };
            let sums = (1..ranks).fold(operand(seed, round, 0).collect(), add);
            return sums.into_iter().flat_map(u64::to_ne_bytes).collect();
        }
        if round.is_multiple_of(3) {
            let block =
                |from| (0..between(seed, round, from, rank) as usize).map(move |at| byte(round, from, rank, at));
            return (0..ranks).flat_map(block).collect();
        }
        let root = (mix(seed ^ round) % u64::from(ranks)) as Rank;
        (0..message(seed, round)).map(|at| byte(round, root, root, at)).collect()
    }

    /// Polls once; are all rounds done?
    fn poll(&mut self, seed: u64) -> bool {
        if self.round == ROUNDS {
            return true;
        }
        let none = || Self::machine(self.comm.member_mut(), seed, self.round);
        let (mut machine, buf) = self.machine.take().unwrap_or_else(none);
        let step = machine.poll(&mut self.comm);
        if step.unwrap() == Poll::Done {
            assert!(content(buf) == self.expected(seed), "wrong data in round {}", self.round);
            self.round += 1;
        } else {
            self.machine = Some((machine, buf));
        }
        false
    }
}

/// Runs the seed's program in the seed's order of polls; returns the text of a panic. Messages of at least so many bytes
/// are lent.
fn run(ranks: u32, seed: u64, lie: Option<(Rank, Words, u64)>, lend_from: usize) -> Result<(), String> {
    let (layout, view) = views_of(Segment::new(params(ranks)).unwrap().lend_from(lend_from), lie);
    let process = |rank| Process { comm: Comm::new(view(rank), layout, rank).unwrap(), round: 0, machine: None };
    let mut processes: Vec<_> = (0..ranks).map(process).collect();
    let mut random = seed;
    caught(|| {
        for _ in 0..100_000 {
            random = mix(random);
            // Runs of polls, so that some processes are late by many operations.
            for _ in 0..1 + random % 7 {
                processes[(random >> 8) as usize % ranks as usize].poll(seed);
            }
            if processes.iter().all(|process| process.round == ROUNDS) {
                return;
            }
        }
        panic!("stuck");
    })
}

fn caught(body: impl FnOnce()) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| match panic.downcast::<String>() {
        Ok(said) => *said,
        Err(panic) => panic.downcast_ref::<&str>().unwrap_or(&"?").to_string(),
    })
}

#[test]
fn blocks_of_any_lengths_keep_the_rules() {
    for ranks in 2..=6 {
        for seed in 0..100 {
            for lend_from in [usize::MAX, 1] {
                assert_eq!(run(ranks, seed, None, lend_from), Ok(()), "{ranks} ranks, seed {seed}, from {lend_from}");
            }
        }
    }
}

/// At least so many of 100 seeds find the fault, by this rule or another one. (A process that reads a slot that was
/// written anew, after it has seen the word that says so, breaks no rule: its data is wrong.)
fn found(lie: (Rank, Words, u64), lend_from: usize, (least, rule): (usize, &str)) {
    for ranks in 2..=4 {
        let faults = (0..100).filter_map(|seed| run(ranks, seed, Some(lie), lend_from).err());
        let broken: Vec<_> = faults.filter(|fault| fault.contains(": S")).collect();
        assert!(broken.len() >= least, "{ranks} ranks: {} of 100 seeds find it", broken.len());
        assert!(broken.iter().any(|fault| fault.contains(rule)), "{ranks} ranks: {broken:#?}");
    }
}

/// As a reader of alltoallv once did that put off a fragment, and published that it was done with all of them.
#[test]
fn who_releases_a_fragment_too_soon_is_found_at_its_next_look_at_it() {
    found((0, Layout::acked, 1), usize::MAX, (90, "S3: it has released"));
}

#[test]
fn who_releases_a_line_too_soon_is_found() {
    found((1, Layout::done, 1), usize::MAX, (90, "S3: it has released"));
}

#[test]
fn who_publishes_before_it_writes_is_found() {
    found((0, Layout::ready, 1), usize::MAX, (2, "S3: "));
}

/// A fragment of the papers, step by step: S2 and S3 depend on what is published and released, S1 on the loads that
/// were made.
#[test]
fn what_no_word_orders_is_found_even_if_it_went_well() {
    let params = Params { cico: Some(Cico { slots: 1, fragment: 8, sets: 1 }), ..params(2) };
    let (layout, view) = views(params, None);
    let (fragment, control, readers) = (layout.fragment(0, 0), layout.control(1, 0), layout.set_readers(0));
    let (root, reader) = (view(0), view(1));
    let mut word = [0; 8];
    let word = Buf::of_mut(&mut word);
    // SAFETY: the word is ours, and everything happens on one thread; so it does below.
    let write = || caught(|| unsafe { root.write(fragment, word) });
    // SAFETY: as above.
    let read = || caught(|| unsafe { reader.read(fragment, word) });
    let writes = |fault| Err(format!("rank 0 writes fragment(0, 0)[..8]: {fault}"));
    let reads = |fault| Err(format!("rank 1 reads fragment(0, 0)[..8]: {fault}"));
    root.counter(readers).store_release(1);
    assert_eq!(write(), Ok(()));
    assert_eq!(read(), reads("S3: nothing is published there"));
    root.mail(control).put_release(8);
    assert_eq!(read(), reads("S1: overlap: rank 0 may write there now"));
    assert!(reader.mail(control).peek_acquire().is(8));
    assert_eq!(read(), Ok(()));
    // A clear releases nothing: the set's counter does.
    reader.mail(control).clear();
    assert!(root.mail(control).peek_acquire().is(0));
    assert_eq!(write(), writes("S2: rank 1 has not released what is there"));
    reader.counter(readers).fetch_sub(1);
    assert_eq!(write(), writes("S1: overlap: rank 1 may read there now"));
    root.counter(readers).load_acquire();
    assert_eq!(write(), Ok(()));
}

/// As in a tree of P1, where rank 1 passes a fragment on to rank 2, after it was told of it, and without that.
#[test]
fn who_was_not_told_of_a_fragment_tells_nobody() {
    let params = Params { cico: Some(Cico { slots: 1, fragment: 8, sets: 1 }), ..params(3) };
    let (layout, view) = views(params, None);
    let (root, child, grandchild) = (view(0), view(1), view(2));
    let mut word = [0; 8];
    let word = Buf::of_mut(&mut word);
    let tell = |region: &Hasty<Shadowed<Segment>>, reader| region.mail(layout.control(reader, 0)).put_release(8);
    let take = |region: &Hasty<Shadowed<Segment>>, reader| {
        assert!(region.mail(layout.control(reader, 0)).peek_acquire().is(8));
        region.mail(layout.control(reader, 0)).clear();
        // SAFETY: the word is ours, and everything happens on one thread.
        caught(|| unsafe { region.read(layout.fragment(0, 0), word) })
    };
    let nothing = Err("rank 2 reads fragment(0, 0)[..8]: S3: nothing is published there".into());
    root.counter(layout.set_readers(0)).store_release(2);
    // SAFETY: as above.
    unsafe { root.write(layout.fragment(0, 0), word) };
    tell(&child, 2);
    assert_eq!(take(&grandchild, 2), nothing);
    tell(&root, 1);
    assert_eq!(take(&child, 1), Ok(()));
    // SAFETY: as above.
    assert_eq!(caught(|| unsafe { grandchild.read(layout.fragment(0, 0), word) }), nothing);
    tell(&child, 2);
    assert_eq!(take(&grandchild, 2), Ok(()));
}

/// Rules of a set's words: opening it too early, setting a mailword that was not taken, taking one that was not set.
#[test]
fn words_of_a_set_are_told_and_released() {
    let params = Params { cico: Some(Cico { slots: 1, fragment: 8, sets: 1 }), ..params(2) };
    let (layout, view) = views(params, None);
    let (readers, count, ready) = (layout.set_readers(0), layout.set_count(0, 1), layout.set_rootready(0, 1));
    let (root, reader) = (view(0), view(1));
    let open = || caught(|| root.counter(readers).store_release(2));
    let told = || caught(|| assert!(reader.counter(count).load_acquire().is(5)));
    assert_eq!(open(), Ok(()));
    root.counter(count).store_release(5);
    let nothing = Err("rank 1 at set_count(0, 1): S3: nothing is published there".into());
    assert_eq!(told(), nothing);
    assert_eq!(
        caught(|| reader.mail(ready).clear()),
        Err("rank 1 at set_rootready(0, 1): S3: an empty mailword is cleared".into())
    );
    root.mail(ready).put_release(1);
    assert_eq!(
        caught(|| root.mail(ready).put_release(2)),
        Err("rank 0 at set_rootready(0, 1): S2: a mailword holds 1, not taken yet".into())
    );
    assert_eq!(told(), Ok(()));
    root.counter(readers).fetch_sub(1);
    assert_eq!(open(), Err("rank 0 at set_readers(0): S2: rank 1 has not released what is there".into()));
    reader.counter(readers).fetch_sub(1);
    assert_eq!(told(), Err("rank 1 at set_count(0, 1): S3: it has released what is there".into()));
    assert_eq!(open(), Ok(()));
}

/// A lender and a reader of two loans of eight words each, step by step.
struct Pair {
    layout: Layout,
    ranks: [Hasty<Shadowed<Segment>>; 2],
    memory: [Buf; 2],
}

impl Pair {
    fn new() -> Self {
        let (layout, view) = views_of(Segment::new(params(2)).unwrap().lend_from(1), None);
        Self { layout, ranks: [0, 1].map(view), memory: [words(8), words(8)] }
    }

    /// The lender lends both.
    fn lend(&self) -> [Loan; 2] {
        self.memory.map(|memory| self.ranks[0].lend(memory, Kind::Allreduce).unwrap())
    }

    /// A rank stores to a word: the lender to its own ones, if `rank` is 0.
    fn publish(&self, rank: Rank, word: Words, value: u64) -> Result<(), String> {
        caught(|| self.ranks[rank as usize].publish(word(&self.layout, rank), value))
    }

    /// A rank looks at a word of the other one.
    fn look(&self, rank: Rank, word: Words) {
        self.ranks[rank as usize].flag(word(&self.layout, 1 - rank)).load_acquire();
    }

    /// The loans are announced, and the reader knows.
    fn announced() -> (Self, [Loan; 2]) {
        let pair = Self::new();
        let loans = pair.lend();
        assert_eq!(pair.publish(0, line, 1), Ok(()));
        pair.look(1, line);
        (pair, loans)
    }

    /// The reader reads two words from word `from` on.
    fn read(&self, loan: Loan, from: u64) -> Result<(), String> {
        // SAFETY: the words are ours, and everything happens on one thread.
        caught(|| unsafe { self.ranks[1].fetch(0, loan, 8 * from, words(2)).unwrap() })
    }

    /// A rank writes two words of the loan of this number, from word `from` on: it copies to there, and folds into it.
    fn write(&self, rank: Rank, loan: usize, from: usize) -> Result<(), String> {
        let (region, acc) = (&self.ranks[rank as usize], Buf::new(self.memory[loan].ptr().wrapping_add(8 * from), 16));
        // SAFETY: as above.
        let copied = caught(|| unsafe { region.copy_private(words(2), acc) });
        // SAFETY: as above.
        let folded = caught(|| unsafe { region.fold_private(words(2), acc, &Op::SUM_I64) });
        assert_eq!(copied, folded);
        folded
    }
}

/// Words of zeros.
fn words(count: usize) -> Buf {
    Buf::new(leak(vec![0u64; count]).as_mut_ptr().cast(), 8 * count)
}

/// The line of a rank's first operation.
fn line(layout: &Layout, rank: Rank) -> FlagId {
    layout.line(rank, 1)
}

fn reads(from: u64, fault: &str) -> Result<(), String> {
    Err(format!("rank 1 reads [{}..{}] of what rank 0 lends: {fault}", 8 * from, 8 * from + 16))
}

#[test]
fn what_is_read_of_a_loan_is_announced_and_inside_it() {
    let pair = Pair::new();
    let other = Pair::new().lend()[0];
    assert_eq!(pair.read(other, 0), reads(0, "S3: nothing is lent there"));
    let [loan, _] = pair.lend();
    assert_eq!(pair.read(loan, 0), reads(0, "S3: nothing is published there"));
    assert_eq!(pair.publish(0, line, 1), Ok(()));
    assert_eq!(pair.read(loan, 0), reads(0, "S1: overlap: rank 0 may write there now"));
    pair.look(1, line);
    assert_eq!(pair.read(loan, 6), Ok(()));
    assert_eq!(pair.read(loan, 7), reads(7, "S3: nothing is lent there"));
    assert_eq!(pair.read(other, 0), reads(0, "S3: nothing is lent there"));
}

#[test]
fn nobody_writes_what_others_may_read_of_a_loan() {
    let (pair, [message, results]) = Pair::announced();
    assert_eq!(pair.read(message, 2), Ok(()));
    let writes = |rank, fault| Err(format!("rank {rank} writes 16 bytes where rank 0 lends: {fault}"));
    assert_eq!(pair.write(0, 0, 1), writes(0, "S1: overlap: rank 1 may read there now"));
    assert_eq!(pair.write(1, 0, 6), writes(1, "S2: rank 0 lends these bytes, and no other rank writes them"));
    // Results are written while they are lent, and read when they are published.
    assert_eq!(pair.write(0, 1, 0), Ok(()));
    assert_eq!(pair.read(results, 1), reads(1, "S1: overlap: rank 0 may write there now"));
    assert_eq!(pair.publish(0, Layout::ready, 1), Ok(()));
    assert_eq!(pair.read(results, 1), reads(1, "S1: overlap: rank 0 may write there now"));
    pair.look(1, Layout::ready);
    assert_eq!(pair.read(results, 1), Ok(()));
    // What the reader's words have told the lender to be read is the lender's own again.
    assert_eq!(pair.publish(1, Layout::answer, 2), Ok(()));
    pair.look(0, Layout::answer);
    assert_eq!(pair.write(0, 0, 1), Ok(()));
}

#[test]
fn a_lender_ends_its_operation_when_its_readers_have_released_the_loans() {
    let (pair, [loan, _]) = Pair::announced();
    assert_eq!(pair.read(loan, 0), Ok(()));
    assert_eq!(pair.publish(0, Layout::acked, 1), Ok(()));
    // The answer orders what was read, and releases nothing.
    assert_eq!(pair.publish(1, Layout::answer, 2), Ok(()));
    pair.look(0, Layout::answer);
    let ends = || Err("rank 0 at done(0): S2: rank 1 has not released what it reads of the loan".into());
    assert_eq!(pair.publish(0, Layout::done, 1), ends());
    assert_eq!(pair.publish(1, Layout::acked, 1), Ok(()));
    assert_eq!(pair.publish(0, Layout::done, 1), Ok(()));
    assert_eq!(pair.read(loan, 0), reads(0, "S3: nothing is lent there"));
    // The next operation, in which nothing is lent, and the one after it.
    assert_eq!(pair.publish(0, |layout, rank| layout.line(rank, 2), 2), Ok(()));
    assert_eq!(pair.read(loan, 0), reads(0, "S3: nothing is lent there"));
    assert_eq!(pair.publish(0, Layout::done, 2), Ok(()));
    let [loan, _] = pair.lend();
    assert_eq!(pair.read(loan, 0), reads(0, "S3: nothing is published there"));
}

/// The root of a gather asks whether it can lend its block, and posts no line.
#[test]
fn what_no_line_announced_is_forgotten_at_the_operations_end() {
    let pair = Pair::new();
    pair.lend();
    assert_eq!(pair.publish(0, Layout::done, 1), Ok(()));
    let [loan, _] = pair.lend();
    let line: Words = |layout, rank| layout.line(rank, 2);
    assert_eq!(pair.publish(0, line, 2), Ok(()));
    pair.look(1, line);
    assert_eq!(pair.read(loan, 0), Ok(()));
}

#[test]
fn a_lender_that_has_not_seen_the_release_may_write_what_is_read() {
    let (pair, [loan, _]) = Pair::announced();
    assert_eq!(pair.read(loan, 0), Ok(()));
    assert_eq!(pair.publish(1, Layout::acked, 1), Ok(()));
    assert_eq!(pair.publish(0, Layout::acked, 1), Ok(()));
    let race = "rank 0 ends its operation, in which it lends: S1: overlap: rank 1 may read there now";
    assert_eq!(pair.publish(0, Layout::done, 1), Err(race.into()));
}

#[test]
fn a_reader_that_has_released_a_loan_does_not_read_it_again() {
    let (pair, [loan, _]) = Pair::announced();
    assert_eq!(pair.publish(1, Layout::acked, 1), Ok(()));
    assert_eq!(pair.read(loan, 0), Ok(()));
    assert_eq!(pair.publish(1, Layout::answer, 2), Ok(()));
    pair.look(0, Layout::answer);
    assert_eq!(pair.publish(0, Layout::acked, 1), Ok(()));
    let late = "rank 0 at done(0): S3: rank 1 has read of the loan when it had released it";
    assert_eq!(pair.publish(0, Layout::done, 1), Err(late.into()));
    // At once, if it has ended the operation, too.
    assert_eq!(pair.publish(1, Layout::done, 1), Ok(()));
    assert_eq!(pair.read(loan, 0), reads(0, "S3: it has released what is there"));
}

#[test]
fn who_releases_a_loan_too_soon_is_found() {
    found((0, Layout::acked, 1), 1, (90, "S3: rank 0 has read of the loan when it had released it"));
}

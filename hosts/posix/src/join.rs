//! The whole start-up of one rank, from a bootstrap to a communicator.
//!
//! | step | rank 0 | the others | what the allgather after it orders |
//! |---|---|---|---|
//! | greet | plans; process, binding, node | the same | all compare plans before anything is made |
//! | create | checks the room; makes file, pages, seals, map, header; makes the arenas' file | – | the files exist before another rank opens them |
//! | attach | maps the arenas | opens, checks, maps the segment and the arenas | rank 0 may close its descriptors; the maps keep the files |
//! | place | reserves and touches the shared pages and its own | the same without the shared pages | the words `leaders` (P1) are written to placed pages |
//! | verify | looks up its pages, and whether the next rank lives | the same | all ranks are ready: the first operation may start |
//!
//! So each rank opens two files of rank 0, and the descriptor of one process, however many ranks there are.
//!
//! Every step ends in an allgather that carries "fine" or a failure; see [`crate::bootstrap`].

use crate::arena::{self, Arena, Arenas, Range};
use crate::binding::{self, PuSet};
use crate::bootstrap::{Bootstrap, agree};
use crate::communicator::{Commons, Intracomm, Place, head};
use crate::decisions::{RULES, TABLE, decisions};
use crate::error::PosixError;
use crate::heap::{self, Place as HeapPlace};
use crate::lending::{self, LendFrom};
use crate::locality::Processes;
use crate::pages::{self, Kind, Mapped, Pages};
use crate::placement::{self, Placement, Summary};
use crate::policy::Policy;
use crate::sealed::Sealed;
use crate::segment::{Handle, Segment};
use crate::topology::Topology;
use crate::waiting::{self, Choice, Waiting};
use crate::watch::{Descriptors, Liveness, Process};
use crate::wire::{Reader, Writer};
use crate::{cgroup, space, sys, timeout, watch};
use core::fmt;
use std::sync::Arc;
use std::time::Duration;
use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::region::layout::VERSION;
use unisono_kernel::region::{Base, Counter, Layout, Params, Region};

/// What a caller may ask of a start-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The segment's parameters, in place of the plan. The same on every rank.
    pub params: Option<Params>,
    /// The longest wait inside an operation; an operation that waits longer for a peer fails. `None`: what the
    /// environment says ([`timeout::TIMEOUT`]), else no bound, and only a peer's death ends a wait with an error.
    pub timeout: Option<Duration>,
    /// How to wait.
    pub spin: Waiting,
    /// Which pages the segment should have. The same on every rank.
    pub pages: Pages,
    /// Whether each rank's own pages are also bound to its NUMA node by a memory policy. First touch is always done.
    pub policy: Policy,
    /// Called on rank 0 with one line for each option that could not be fulfilled, and why.
    pub log: Option<fn(fmt::Arguments<'_>)>,
    /// Size of this process's arena in bytes, from which communicators get their memory. `None`: what the environment
    /// says ([`arena::VARIABLE`]), else [`arena::DEFAULT`].
    pub arena: Option<u64>,
    /// For checks that start where counters wrap: the counts with which the first communicator starts, and later ones
    /// on fresh memory (there the count of central barriers is zero). The same on every rank.
    #[doc(hidden)]
    pub begin: Base,
    /// From which length on this rank's messages are lent that do not lie in its heap; ranks may differ in it. `None`: what
    /// the environment says ([`lending::VARIABLE`]).
    pub lend_from: Option<LendFrom>,
}

/// What every rank knows of every rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The process.
    pub process: Process,
    /// Its NUMA node.
    pub node: u32,
    /// The PUs on which it may run.
    pub pus: PuSet,
}

/// A rank that is ready.
#[derive(Debug)]
pub struct Joined<C = Intracomm> {
    /// All ranks' communicator: for collectives, and to make other communicators from.
    pub communicator: C,
    /// The communicator's segment.
    pub segment: Segment,
    /// Where this rank's pages are, page by page.
    pub placement: Placement,
    /// The same as numbers, of all ranks, by rank.
    pub placements: Vec<Summary>,
    /// Which pages the segment has, and why.
    pub pages: pages::Choice,
    /// How this rank waits, and why.
    pub waiting: Choice,
    /// How this rank learns that a peer has died.
    pub liveness: Liveness,
    /// All ranks' processes, by rank.
    pub peers: Vec<Peer>,
}

impl Joined {
    /// Where all ranks run, from their bindings when they joined: the groups of each level are built from it. All ranks
    /// of a machine get the same result, unless control groups show them different parts of the machine.
    pub fn processes(&self) -> Processes {
        let bindings: Vec<_> = self.peers.iter().map(|peer| peer.pus.clone()).collect();
        let mut processes = Processes::default();
        processes.add_node(&Topology::read(), None, &bindings);
        processes
    }
}

/// Starts this rank. All ranks call; a process that is to be bound to PUs is bound before. `plan` returns the segment's
/// parameters for a number of ranks, the same on every rank.
///
/// # Errors
/// One rank's failure is an error on every rank, which names that rank and the cause.
pub fn join(
    bootstrap: &mut dyn Bootstrap,
    plan: impl Fn(u32) -> Params,
    options: &Options,
) -> Result<Joined, PosixError> {
    let Joined { communicator, segment, placement, placements, pages, waiting, liveness, peers } =
        join_place(bootstrap, plan, options)?;
    let communicator = Intracomm::open(communicator)?;
    Ok(Joined { communicator, segment, placement, placements, pages, waiting, liveness, peers })
}

/// [`join`] for hosts that make a communicator of their own type: they open the place themselves.
///
/// # Errors
/// As [`join`].
pub fn join_place(
    bootstrap: &mut dyn Bootstrap,
    plan: impl Fn(u32) -> Params,
    options: &Options,
) -> Result<Joined<Place>, PosixError> {
    let (rank, size) = (bootstrap.rank(), bootstrap.size());
    // Whether ranks are crowded follows below from what all have told; ranks may plan with different views of the machine.
    let params = options.params.unwrap_or_else(|| plan(size)).with_crowded(false);

    let greeting = Greeting::of(params, size, options);
    let all = agree(bootstrap, greeting.as_ref().map(Greeting::write).map_err(Clone::clone))?;
    let Greeting { layout, pages: asked, policy, timeout, lend_from, .. } = greeting?;
    let (peers, quota, wanted) = compare(&layout, &all)?;
    let spans = wanted.spans(size);
    let sets: Vec<_> = peers.iter().map(|peer| peer.pus.clone()).collect();
    let choice = waiting::choose(&sets, quota);
    // All ranks have the same sets and the smallest quota; what they decide for themselves may differ.
    let crowded = choice.yields;
    let params = params.with_crowded(crowded);
    let waiting = waiting::decide(options.spin, choice);

    let made = waiting.and_then(|waiting| {
        let create = || create(params, asked, peers.first(), Arenas::bytes(&spans));
        Ok((waiting, (rank == 0).then(create).transpose()?))
    });
    let message = made.as_ref().map(|(_, made)| made.as_ref().map_or(vec![], |(_, _, made)| made.write()));
    let all = agree(bootstrap, message.map_err(Clone::clone))?;
    let (waiting, made) = made?;

    let attached = match made {
        Some(made) => Ok(made),
        None => Created::read(&all).and_then(|made| {
            let attached = Segment::attach_in(&made.handle, &in_pages(params, made.kind)?, made.kind);
            let opened = attached.and_then(|segment| Ok((segment, Sealed::open(&made.arenas, Arenas::bytes(&spans))?)));
            let (segment, file) = opened.map_err(|error| open_failure(error, 0, &peers))?;
            Ok((segment, file, made))
        }),
    };
    let attached =
        attached.and_then(|(segment, file, made)| Ok((segment, map_arenas(file, rank, spans, options)?, made)));
    let message = attached.as_ref().map(|_| write_heap(asked)).map_err(Clone::clone);
    let all = agree(bootstrap, message)?;
    let (heaps, without): (Vec<_>, Vec<_>) = all.iter().map(|message| read_heap(message).unzip()).unzip();
    let (segment, arenas, Created { kind, why, .. }) = attached?;
    let layout = *segment.layout();

    let node = peers.get(rank as usize).map_or(0, |peer| peer.node);
    let placed = binding::on_node(node, || placement::place(&segment, rank, policy, node));
    let unbound = step(bootstrap, placed)?;

    write_leader(&segment, rank, &peers);
    if rank == 0 && options.begin != Base::default() {
        segment.region().counter(layout.central_count()).store_release(options.begin.arrivals(size));
    }
    let placement = Placement { unbound, ..placement::verify(&segment, rank, node) };
    let processes: Vec<_> = peers.iter().map(|peer| peer.process).collect();
    let watching = Descriptors::open(rank, &processes);
    let all = agree(bootstrap, watching.as_ref().map(|_| placement.summary().write()).map_err(Clone::clone))?;
    let (descriptors, liveness) = watching?;
    let placements: Option<_> = (0..).zip(&all).map(|(rank, message)| Summary::read(rank, message)).collect();
    let placements: Vec<Summary> = placements.ok_or_else(malformed)?;
    let pages = pages::Choice { asked, kind, bytes: segment.bytes(), mapped: sum_mapped(&placements), why };
    if let (Some(log), 0) = (options.log, rank) {
        log_fallbacks(log, &pages, policy, &placements);
        if asked == Pages::Huge {
            log_heaps(log, &heaps, &without);
        }
    }

    let reached = reach(&processes, rank, &heaps);
    let nodes = (peers.iter().map(|peer| peer.node).collect(), policy);
    let lending = (lend_from, options.log);
    let commons = Commons::new(rank, arenas, descriptors.into(), nodes, reached, lending, (waiting.yields, crowded));
    let communicator = Place::world(commons.into(), segment.region(), layout, options.begin, timeout);
    Ok(Joined { communicator, segment, placement, placements, pages, waiting, liveness, peers })
}

/// What all ranks together have mapped; `None` if a rank could not look it up.
fn sum_mapped(placements: &[Summary]) -> Option<Mapped> {
    placements.iter().try_fold(Mapped::default(), |sum, Summary { mapped, .. }| {
        let Mapped { bytes, huge } = (*mapped)?;
        Some(Mapped { bytes: sum.bytes.saturating_add(bytes), huge: sum.huge.saturating_add(huge) })
    })
}

/// Logs one line for each option that could not be fulfilled.
fn log_fallbacks(log: fn(fmt::Arguments<'_>), pages: &pages::Choice, policy: Policy, placements: &[Summary]) {
    if pages.fell_back() {
        log(format_args!("huge pages were asked for, the segment has {pages}: {}", pages.why));
    }
    let unbound = placements.iter().filter(|placement| placement.unbound.is_some());
    if let (Some(first), ranks) = (unbound.clone().next(), unbound.count()) {
        let why = std::io::Error::from_raw_os_error(first.unbound.unwrap_or(0));
        log(format_args!(
            "mbind ({policy}) is refused to {ranks} ranks, rank {} the first: {why}; first touch stays",
            first.rank
        ));
    }
}

/// Logs one line if huge pages were asked for, and heaps have ordinary ones; `why` is what each rank tells of its own.
fn log_heaps(log: fn(fmt::Arguments<'_>), heaps: &[Option<HeapPlace>], why: &[Option<&str>]) {
    let ordinary = |heap: &Option<HeapPlace>| heap.is_some_and(|heap| heap.kind == Kind::Ordinary);
    let mut without = (0..).zip(heaps).zip(why).filter(|((_, heap), _)| ordinary(heap));
    if let Some(((first, _), why)) = without.next() {
        let (ranks, why) = (1 + without.count(), why.unwrap_or_default());
        log(format_args!(
            "huge pages were asked for, the heaps of {ranks} ranks have ordinary pages, rank {first} the first: {why}"
        ));
    }
}

/// Ends a step that has no data for the other ranks: they learn only whether it succeeded here.
fn step<A>(bootstrap: &mut dyn Bootstrap, mine: Result<A, PosixError>) -> Result<A, PosixError> {
    agree(bootstrap, mine.as_ref().map(|_| vec![]).map_err(Clone::clone))?;
    mine
}

/// Why a file of `maker` can't be opened. A process that ends loses its descriptors a moment before others can see that
/// it has ended: so this waits for that a little.
fn open_failure(error: PosixError, maker: Rank, peers: &[Peer]) -> PosixError {
    if let Some(apart) = peers.get(maker as usize).and_then(|maker| Process::this().apart_from(&maker.process)) {
        return PosixError::Peer { rank: maker, cause: format!("{error}: it is in another {apart} namespace") };
    }
    let ended = peers.get(maker as usize).is_some_and(|maker| watch::ends(&maker.process, Duration::from_millis(100)));
    if ended { watch::gone(maker) } else { error }
}

fn malformed() -> PosixError {
    PosixError::bootstrap("a rank sent a message that does not belong to this start-up")
}

/// What a rank sends about itself in the first allgather.
struct Greeting {
    layout: Layout,
    me: Peer,
    quota: Option<u64>,
    pages: Pages,
    policy: Policy,
    /// The decision table's hash.
    table: u64,
    begin: Base,
    /// Bytes of its arena.
    arena: u64,
    /// The longest wait; ranks may differ in it.
    timeout: Option<Duration>,
    /// From which length on messages are lent; ranks may differ in it.
    lend_from: LendFrom,
}

impl Greeting {
    fn of(params: Params, size: u32, options: &Options) -> Result<Self, PosixError> {
        let layout = Layout::new(params)?;
        let begin = options.begin.check()?;
        Refusal::check(Argument::Ranks, size.into(), Bound::Equals(params.ranks.into()))?;
        let (node, pus) = (binding::numa_node()?, binding::affinity()?);
        let me = Peer { process: Process::this(), node, pus };
        let (pages, policy) = (options.pages.decide()?, options.policy.decide()?);
        let table = decisions()?.hash();
        let timeout = options.timeout.map_or_else(timeout::from_env, |bound| Ok(Some(bound)))?;
        let lend_from = options.lend_from.map_or_else(LendFrom::setting, Ok)?;
        let arena = options.arena.map_or_else(arena::from_env, Ok)?;
        Ok(Self { layout, me, quota: cgroup::processors(), pages, policy, table, begin, arena, timeout, lend_from })
    }

    fn write(&self) -> Vec<u8> {
        let Peer { process: Process { pid, start, namespace, users }, node, pus } = &self.me;
        let quota = self.quota.unwrap_or(u64::MAX);
        let words = [(*pid).into(), *start, *namespace, *users, (*node).into(), quota, self.pages as u64, self.table];
        let Base { operation, clock, sets, centrals } = self.begin;
        let begin = [operation, clock, sets, centrals];
        let greeting = Writer::default().word(VERSION).word(self.layout.hash()).words(&words).words(pus.words());
        greeting.words(&begin).word(self.arena).word(sys::file_limit()).0
    }
}

/// The arenas that ranks want.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    /// Their bytes, by rank.
    bytes: Vec<u64>,
    /// The longest file that rank 0 may make.
    most: u64,
}

impl Wanted {
    /// Where the arenas lie, in a job of `size` processes.
    fn spans(&self, size: u32) -> Box<[Range]> {
        Arenas::plan(head(size), &self.bytes, self.most)
    }
}

/// Reads all ranks' greetings: the peers, the smallest quota of processor time, and the arenas. Every rank makes the same
/// comparisons, in the same order, of the same bytes: so all succeed, or all fail with the same error.
fn compare(layout: &Layout, all: &[Vec<u8>]) -> Result<(Vec<Peer>, Option<u64>, Wanted), PosixError> {
    let hash_of_0 = Reader(all.first().map_or(&[][..], Vec::as_slice)).words_after_version();
    let mut peers = Vec::with_capacity(all.len());
    let (mut pages_of_0, mut table_of_0, mut begin_of_0) = (None, None, None);
    let (mut quota, mut wanted) = (u64::MAX, Wanted::default());
    for (rank, message) in (0..).zip(all) {
        let differs = |refusal: Refusal| PosixError::Peer { rank, cause: format!("{refusal} (as rank 0 has it)") };
        let mut reader = Reader(message);
        let version = reader.word().ok_or_else(malformed)?;
        Refusal::check(Argument::Version, version, Bound::Equals(VERSION)).map_err(differs)?;
        let hash = reader.word().ok_or_else(malformed)?;
        let words = reader.words().ok_or_else(malformed)?;
        let &[pid, start, namespace, users, node, share, pages, table] = words.as_slice() else {
            return Err(malformed());
        };
        let (Ok(pid), Ok(node)) = (pid.try_into(), node.try_into()) else { return Err(malformed()) };
        if *pages_of_0.get_or_insert(pages) != pages {
            let cause = format!("asks for other pages than rank 0 ({})", pages::PAGES);
            return Err(PosixError::Peer { rank, cause });
        }
        if *table_of_0.get_or_insert(table) != table {
            let cause = format!("has another decision table than rank 0 ({TABLE}, {RULES})");
            return Err(PosixError::Peer { rank, cause });
        }
        // After the table: different tables may be the cause of different plans.
        let expected = hash_of_0.unwrap_or_else(|| layout.hash());
        Refusal::check(Argument::Hash, hash, Bound::Equals(expected)).map_err(differs)?;
        let pus = PuSet::from_words(reader.words().ok_or_else(malformed)?);
        let begin = reader.words().ok_or_else(malformed)?;
        for (count, of_0) in begin.iter().zip(begin_of_0.get_or_insert_with(|| begin.clone())) {
            Refusal::check(Argument::Base, *count, Bound::Equals(*of_0)).map_err(differs)?;
        }
        wanted.bytes.push(reader.word().ok_or_else(malformed)?);
        let most = reader.word().ok_or_else(malformed)?;
        if rank == 0 {
            wanted.most = most;
        }
        peers.push(Peer { process: Process { pid, start, namespace, users }, node, pus });
        quota = quota.min(share);
    }
    Ok((peers, (quota != u64::MAX).then_some(quota), wanted))
}

impl Reader<'_> {
    /// The layout's hash in a greeting.
    fn words_after_version(mut self) -> Option<u64> {
        self.word()?;
        self.word()
    }
}

/// The segment and the arenas' file that rank 0 has made, as the other ranks learn of them.
struct Created {
    handle: Handle,
    kind: Kind,
    arenas: Handle,
    /// Why it does not have the kinds of pages that were tried before.
    why: String,
}

impl Created {
    fn write(&self) -> Vec<u8> {
        let files =
            Writer::default().words(&words_of(&self.handle, self.kind.code())).words(&words_of(&self.arenas, 0));
        files.bytes(self.why.as_bytes()).0
    }

    fn read(all: &[Vec<u8>]) -> Result<Self, PosixError> {
        let mut reader = Reader(all.first().map_or(&[][..], Vec::as_slice));
        let mut file = || reader.words().and_then(|words| handle_of(&words)).ok_or_else(malformed);
        let ((handle, kind), (arenas, _)) = (file()?, file()?);
        let why = String::from_utf8_lossy(reader.bytes().ok_or_else(malformed)?).into_owned();
        let kind = Kind::from_code(kind).ok_or_else(malformed)?;
        Ok(Self { handle, kind, arenas, why })
    }
}

/// The layout that all ranks compute for pages of this kind.
fn in_pages(params: Params, kind: Kind) -> Result<Layout, Refusal> {
    let page = if kind == Kind::Ordinary { params.page } else { params.page.max(kind.area()) };
    Layout::new(Params { page, ..params })
}

/// A file's handle and one more word about the file, as words of a message.
fn words_of(&Handle { pid, fd, device, inode }: &Handle, about: u64) -> [u64; 5] {
    [pid.into(), fd as u64, device, inode, about]
}

fn handle_of(words: &[u64]) -> Option<(Handle, u64)> {
    let &[pid, fd, device, inode, about] = words else { return None };
    Some((Handle { pid: pid.try_into().ok()?, fd: fd.try_into().ok()?, device, inode }, about))
}

/// Rank 0 makes the segment, in the first kind of pages that it gets; the header's page is the first to be placed. And it makes a file of
/// so many bytes for all ranks' arenas.
fn create(
    params: Params,
    asked: Pages,
    me: Option<&Peer>,
    arenas: u64,
) -> Result<(Segment, Sealed, Created), PosixError> {
    let (segment, kind, why) = pages::first(asked.kinds(), |kind| {
        let layout = match in_pages(params, kind) {
            Ok(layout) => layout,
            Err(refusal) => return (0, Err(refusal.into())),
        };
        // The pool of huge pages is not counted as available memory, and reserves its pages by itself.
        let fits = if kind == Kind::Hugetlb { Ok(()) } else { space::check(layout.first_bytes()) };
        let create = || binding::on_node(me.map_or(0, |me| me.node), || Segment::create_in(&layout, kind));
        (layout.bytes(), fits.and_then(|()| create()))
    })?;
    let file = Sealed::create(arenas)?;
    let (handle, arenas) = (segment.handle()?, file.handle()?);
    Ok((segment, file, Created { handle, kind, arenas, why }))
}

/// Maps all processes' arenas; this one's is rank `me`'s. They stay mapped, so that making a communicator maps nothing.
fn map_arenas(file: Sealed, me: Rank, spans: Box<[Range]>, options: &Options) -> Result<(Arena, Arenas), PosixError> {
    let map = Arc::new(file.map()?);
    map.keep_from_children()?;
    let own = spans.get(me as usize).copied().ok_or_else(malformed)?;
    let head = head(spans.len() as u32).next_multiple_of(arena::page());
    let arena = Arena::within(file, Arc::clone(&map), own, head)?;
    let arena = arena.beginning(options.begin).with_queues(decisions()?.queues());
    Ok((arena, Arenas::new(map, spans)))
}

/// This process's heap; without one it lends no memory there.
fn write_heap(pages: Pages) -> Vec<u8> {
    let Ok(heap) = heap::of_process_in(pages) else { return vec![] };
    let HeapPlace { handle, bytes, kind } = *heap.place();
    Writer::default().words(&words_of(&handle, bytes)).word(kind.code()).bytes(heap.why().as_bytes()).0
}

/// The heap that a rank has told of, and why it has no better pages.
fn read_heap(message: &[u8]) -> Option<(HeapPlace, &str)> {
    let mut reader = Reader(message);
    let (handle, bytes) = handle_of(&reader.words()?)?;
    let place = HeapPlace { handle, bytes, kind: Kind::from_code(reader.word()?)? };
    Some((place, core::str::from_utf8(reader.bytes()?).unwrap_or_default()))
}

/// How this process, rank `me`, reaches the others' memory.
fn reach(processes: &[Process], me: Rank, heaps: &[Option<HeapPlace>]) -> Box<[Arc<lending::Peer>]> {
    let namespace = processes.get(me as usize).map_or(0, |process| process.namespace);
    let number = |process: &Process| if process.namespace == namespace { process.pid } else { 0 };
    let peers = processes.iter().zip(heaps).map(|(process, heap)| lending::Peer::new(number(process), *heap));
    peers.map(Arc::new).collect()
}

/// Writes this rank's element of P1's `leaders`: the lowest rank on its NUMA node.
fn write_leader(segment: &Segment, rank: Rank, peers: &[Peer]) {
    let node = |rank: Rank| peers.get(rank as usize).map(|peer| peer.node);
    let leader = (0..rank).find(|&other| node(other) == node(rank)).unwrap_or(rank);
    let bytes = (leader as i32).to_ne_bytes();
    // SAFETY: this rank alone writes its element, and no rank reads it before the next allgather; the bytes are ours.
    unsafe { segment.region().write(segment.layout().leader(rank), Buf::of(&bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_finds_the_rank_with_another_plan() {
        let greeting = |queue_slots| {
            Greeting::of(Params { queue_slots, ..Params::new(1) }, 1, &Options::default())
                .map(|greeting| (greeting.layout, greeting.write()))
        };
        let (mine, theirs) = (greeting(16).unwrap(), greeting(32).unwrap());
        for layout in [mine.0, theirs.0] {
            let error = compare(&layout, &[mine.1.clone(), theirs.1.clone()]).unwrap_err();
            assert!(error.to_string().starts_with("rank 1: layout hash is"), "{error}");
        }
        assert!(compare(&mine.0, &[mine.1.clone(), vec![1, 2]]).is_err());
    }

    #[test]
    fn every_rank_finds_the_rank_that_begins_elsewhere() {
        let greeting = |sets| {
            let begin = Base { operation: 7, sets, ..Base::default() };
            Greeting::of(Params::new(1), 1, &Options { begin, ..Options::default() }).unwrap()
        };
        let (mine, theirs) = (greeting(3), greeting(4));
        assert!(compare(&mine.layout, &[mine.write(), mine.write()]).is_ok());
        let error = compare(&mine.layout, &[mine.write(), theirs.write()]).unwrap_err().to_string();
        assert_eq!(error, "rank 1: base is 4, must be 3 (as rank 0 has it)");
    }

    #[test]
    fn every_rank_finds_the_rank_with_another_decision_table() {
        let greeting = |table| Greeting { table, ..Greeting::of(Params::new(1), 1, &Options::default()).unwrap() };
        let (mine, theirs) = (greeting(7), greeting(8));
        assert!(compare(&mine.layout, &[mine.write(), mine.write()]).is_ok());
        // Another table may give another plan too: the error names the table.
        let queues = Layout::new(Params::new(1).with_cico()).unwrap();
        for theirs in [theirs, Greeting { layout: queues, ..greeting(8) }] {
            let error = compare(&mine.layout, &[mine.write(), theirs.write()]).unwrap_err().to_string();
            assert!(error.contains("rank 1") && error.contains("UNISONO_TABLE"), "{error}");
        }
    }
}

//! The whole start-up of one rank, from a bootstrap to a communicator.
//!
//! | step | rank 0 | the others | what the allgather after it orders |
//! |---|---|---|---|
//! | greet | plans; process, binding, node | the same | all compare plans before anything is made |
//! | create | room? file, seals, map, header | – | the handle exists before anyone opens it |
//! | attach | – | open, check, map | rank 0's descriptor may go; the file lives by its maps |
//! | place | reserves and touches the shared pages and its own | its own | P1's leaders lie on placed pages |
//! | verify | looks up its pages, opens its peers' descriptors | the same | everyone is ready: the first operation may begin |
//!
//! Every step ends in an allgather that carries "fine" or a failure; see [`crate::bootstrap`].

use crate::binding::{self, PuSet};
use crate::bootstrap::{Bootstrap, agree};
use crate::error::PosixError;
use crate::host::Host;
use crate::locality::Processes;
use crate::placement::{self, Placement, Summary};
use crate::segment::{Handle, Segment};
use crate::topology::Topology;
use crate::waiting::{self, Choice, Waiting};
use crate::watch::{Liveness, Process, Watch};
use crate::wire::{Reader, Writer};
use crate::{Posix, cgroup, space, watch};
use std::time::Duration;
use unisono_kernel::Rank;
use unisono_kernel::buffer::Buf;
use unisono_kernel::driver::Communicator;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::region::layout::VERSION;
use unisono_kernel::region::{Layout, Params, Region};
use unisono_kernel::wait::SpinThen;

/// What a caller may ask of a start-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The segment's parameters, in place of the plan. The same on every rank.
    pub params: Option<Params>,
    /// Bound on one wait inside an operation: who is later is an error. `None`: wait for the living for ever.
    pub timeout: Option<Duration>,
    /// How to wait.
    pub spin: Waiting,
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
pub struct Joined {
    /// To call collectives on.
    pub communicator: Communicator<Posix>,
    /// The segment under it.
    pub segment: Segment,
    /// Where this rank's pages are, page by page.
    pub placement: Placement,
    /// Where everyone's pages are, by rank, in figures.
    pub placements: Vec<Summary>,
    /// How this rank waits, and why.
    pub waiting: Choice,
    /// How this rank learns that a peer is gone.
    pub liveness: Liveness,
    /// Everyone, by rank.
    pub peers: Vec<Peer>,
}

impl Joined {
    /// Where everyone is, by their bindings when they joined: what groups are built from. Every rank of a machine sees the
    /// same, unless control groups show them different parts of it.
    pub fn processes(&self) -> Processes {
        let bindings: Vec<_> = self.peers.iter().map(|peer| peer.pus.clone()).collect();
        let mut processes = Processes::default();
        processes.add_node(&Topology::read(), None, &bindings);
        processes
    }
}

/// Starts this rank up: bind first, then call. `plan` gives the parameters for a number of ranks,
/// the same on every rank.
///
/// # Errors
/// One rank's failure is an error on every rank, which names that rank and the cause.
pub fn join(
    bootstrap: &mut dyn Bootstrap,
    plan: impl Fn(u32) -> Params,
    options: &Options,
) -> Result<Joined, PosixError> {
    let (rank, size) = (bootstrap.rank(), bootstrap.size());
    let params = options.params.unwrap_or_else(|| plan(size));

    let greeting = Greeting::of(params, size);
    let all = agree(bootstrap, greeting.as_ref().map(Greeting::write).map_err(Clone::clone))?;
    let layout = greeting?.layout;
    let (peers, quota) = meet(&layout, &all)?;
    let waiting = {
        let sets: Vec<_> = peers.iter().map(|peer| peer.pus.clone()).collect();
        waiting::decide(options.spin, waiting::choose(&sets, quota))
    };

    let made =
        waiting.and_then(|waiting| Ok((waiting, (rank == 0).then(|| create(&layout, peers.first())).transpose()?)));
    let message = made.as_ref().map(|(_, made)| made.as_ref().map_or(vec![], |(_, handle)| write_handle(handle)));
    let all = agree(bootstrap, message.map_err(Clone::clone))?;
    let (waiting, made) = made?;

    let attached = match made {
        Some((segment, _)) => Ok(segment),
        None => read_handle(&all).and_then(|handle| {
            // A maker that ends takes its descriptor along, a moment before it can be seen to have ended.
            let ended = |_: &PosixError| peers.first().is_some_and(|maker| watch::ends(&maker.process, 100));
            Segment::attach(&handle, &layout).map_err(|e| if ended(&e) { watch::gone(0) } else { e })
        }),
    };
    let segment = step(bootstrap, attached)?;

    let node = peers.get(rank as usize).map_or(0, |peer| peer.node);
    step(bootstrap, binding::on_node(node, || placement::place(&segment, rank)))?;

    lead(&segment, rank, &peers);
    let placement = placement::verify(&segment, rank, node);
    let processes: Vec<_> = peers.iter().map(|peer| peer.process).collect();
    let watching = Watch::open(segment.region(), layout, rank, &processes);
    let all = agree(bootstrap, watching.as_ref().map(|_| placement.summary().write()).map_err(Clone::clone))?;
    let (watch, liveness) = watching?;
    let placements: Option<_> = (0..).zip(&all).map(|(rank, message)| Summary::read(rank, message)).collect();
    let placements = placements.ok_or_else(malformed)?;

    let host = Host::new(waiting.yields, options.timeout, watch);
    let wait = if waiting.yields { SpinThen::crowded(host) } else { SpinThen::spinning(host) };
    let communicator = Communicator::new(segment.region(), layout, rank, wait)?;
    Ok(Joined { communicator, segment, placement, placements, waiting, liveness, peers })
}

/// A step that has nothing to tell but whether it went well.
fn step<A>(bootstrap: &mut dyn Bootstrap, mine: Result<A, PosixError>) -> Result<A, PosixError> {
    agree(bootstrap, mine.as_ref().map(|_| vec![]).map_err(Clone::clone))?;
    mine
}

fn malformed() -> PosixError {
    PosixError::bootstrap("a rank sent a message that is no part of this start-up")
}

/// What a rank tells of itself.
struct Greeting {
    layout: Layout,
    me: Peer,
    quota: Option<u64>,
}

impl Greeting {
    fn of(params: Params, size: u32) -> Result<Self, PosixError> {
        let layout = Layout::new(params)?;
        Refusal::check(Argument::Ranks, size.into(), Bound::Equals(params.ranks.into()))?;
        let (node, pus) = (binding::numa_node()?, binding::affinity()?);
        let me = Peer { process: Process::this(), node, pus };
        Ok(Self { layout, me, quota: cgroup::processors() })
    }

    fn write(&self) -> Vec<u8> {
        let Peer { process: Process { pid, start, namespace }, node, pus } = &self.me;
        let quota = self.quota.unwrap_or(u64::MAX);
        let words = [(*pid).into(), *start, *namespace, (*node).into(), quota];
        Writer::default().word(VERSION).word(self.layout.hash()).words(&words).words(pus.words()).0
    }
}

/// Reads everyone's greeting. Every rank makes the same comparisons, in the same order, of the same
/// bytes: all pass or all fail alike.
fn meet(layout: &Layout, all: &[Vec<u8>]) -> Result<(Vec<Peer>, Option<u64>), PosixError> {
    let hash_of_0 = Reader(all.first().map_or(&[][..], Vec::as_slice)).words_after_version();
    let mut peers = Vec::with_capacity(all.len());
    let mut quota = u64::MAX;
    for (rank, message) in (0..).zip(all) {
        let differs = |refusal: Refusal| PosixError::Peer { rank, cause: format!("{refusal} (as rank 0 has it)") };
        let mut reader = Reader(message);
        let version = reader.word().ok_or_else(malformed)?;
        Refusal::check(Argument::Version, version, Bound::Equals(VERSION)).map_err(differs)?;
        let hash = reader.word().ok_or_else(malformed)?;
        let expected = hash_of_0.unwrap_or_else(|| layout.hash());
        Refusal::check(Argument::Hash, hash, Bound::Equals(expected)).map_err(differs)?;
        let words = reader.words().ok_or_else(malformed)?;
        let &[pid, start, namespace, node, share] = words.as_slice() else { return Err(malformed()) };
        let (Ok(pid), Ok(node)) = (pid.try_into(), node.try_into()) else { return Err(malformed()) };
        let pus = PuSet::from_words(reader.words().ok_or_else(malformed)?);
        peers.push(Peer { process: Process { pid, start, namespace }, node, pus });
        quota = quota.min(share);
    }
    Ok((peers, (quota != u64::MAX).then_some(quota)))
}

impl Reader<'_> {
    /// The plan's hash in a greeting.
    fn words_after_version(mut self) -> Option<u64> {
        self.word()?;
        self.word()
    }
}

/// Rank 0's part; the header's page is the first to be placed.
fn create(layout: &Layout, me: Option<&Peer>) -> Result<(Segment, Handle), PosixError> {
    space::check(layout.bytes())?;
    let segment = binding::on_node(me.map_or(0, |me| me.node), || Segment::create(layout))?;
    let handle = segment.handle()?;
    Ok((segment, handle))
}

fn write_handle(handle: &Handle) -> Vec<u8> {
    let Handle { pid, fd, device, inode } = *handle;
    Writer::default().words(&[pid.into(), fd as u64, device, inode]).0
}

fn read_handle(all: &[Vec<u8>]) -> Result<Handle, PosixError> {
    let words = all.first().and_then(|message| Reader(message).words()).ok_or_else(malformed)?;
    let &[pid, fd, device, inode] = words.as_slice() else { return Err(malformed()) };
    let (Ok(pid), Ok(fd)) = (pid.try_into(), fd.try_into()) else { return Err(malformed()) };
    Ok(Handle { pid, fd, device, inode })
}

/// P1's `leaders`: the lowest rank on this rank's NUMA node.
fn lead(segment: &Segment, rank: Rank, peers: &[Peer]) {
    let node = |rank: Rank| peers.get(rank as usize).map(|peer| peer.node);
    let leader = (0..rank).find(|&other| node(other) == node(rank)).unwrap_or(rank);
    let bytes = (leader as i32).to_ne_bytes();
    // SAFETY: this rank alone writes its element, and nobody reads before the next allgather; the bytes are ours.
    unsafe { segment.region().write(segment.layout().leader(rank), Buf::of(&bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Alone;
    use unisono_kernel::op::Op;

    #[test]
    fn one_process_alone_joins_and_calls() {
        let plan = |ranks| Params::new(ranks).with_cico();
        let mut joined = join(&mut Alone, plan, &Options::default()).unwrap();
        assert_eq!(joined.segment.seals().unwrap(), crate::segment::SEALS);
        assert_eq!(joined.placement.checked * crate::sys::page(), joined.segment.bytes());
        assert_eq!(joined.placements, [joined.placement.summary()]);
        assert_eq!(joined.liveness, Liveness::Watched);
        assert_eq!(joined.processes().localities().len(), 1);
        let mut eight = 5i64.to_ne_bytes();
        joined.communicator.bcast(&mut eight, 0).unwrap();
        joined.communicator.barrier().unwrap();
        joined.communicator.allreduce_in_place(&mut eight, Op::SUM_I64).unwrap();
        assert_eq!(i64::from_ne_bytes(eight), 5);
    }

    #[test]
    fn a_plan_for_other_ranks_is_refused() {
        let options = Options { params: Some(Params::new(4)), ..Options::default() };
        let error = join(&mut Alone, Params::new, &options).unwrap_err();
        assert_eq!(error.to_string(), "ranks is 1, must be 4");
    }

    #[test]
    fn absurd_sizes_are_refused_before_anything_is_mapped() {
        let plan = |ranks| Params { queue_slots: 1 << 20, queue_fragment: 1 << 40, ..Params::new(ranks) };
        let error = join(&mut Alone, plan, &Options::default()).unwrap_err();
        assert!(matches!(error, PosixError::Space { needed, .. } if needed > 1 << 60), "{error}");
    }

    #[test]
    fn every_rank_finds_the_rank_with_another_plan() {
        let greeting = |queue_slots| {
            Greeting::of(Params { queue_slots, ..Params::new(1) }, 1)
                .map(|greeting| (greeting.layout, greeting.write()))
        };
        let (mine, theirs) = (greeting(16).unwrap(), greeting(32).unwrap());
        for layout in [mine.0, theirs.0] {
            let error = meet(&layout, &[mine.1.clone(), theirs.1.clone()]).unwrap_err();
            assert!(error.to_string().starts_with("rank 1: layout hash is"), "{error}");
        }
        assert!(meet(&mine.0, &[mine.1.clone(), vec![1, 2]]).is_err());
    }
}

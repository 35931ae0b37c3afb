//! The states of several processes in one process: each has its arena, and maps the others' arenas.

use super::*;
use proptest::prelude::*;
use unisono_c::reductions::unisono_allreduce;
use unisono_kernel::algorithm::{BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::msg::bcast;
use unisono_kernel::msg::levels::Way;
use unisono_kernel::region::{Flag, Region};
use unisono_kernel::table::Between;
use unisono_posix::arena::{Queues, page};

const ROOM: u64 = 16 << 20;
/// More ranks than any machine has PUs: they yield.
const CROWD: u32 = 1 << 10;

fn processes(ranks: u32, bytes: u64) -> Vec<Process> {
    (0..ranks).map(|_| Process::new(true, bytes)).collect()
}

fn offers<'p>(members: impl Iterator<Item = &'p Process>) -> Vec<Words> {
    let members: Vec<_> = members.collect();
    members.iter().map(|process| process.offer(members.len() as u32)).collect()
}

/// Attaches all members; returns the largest reason, and their leases.
fn attach(members: &[&Process], offers: &[Words]) -> (Reason, Vec<Lease>) {
    let results: Vec<_> = (0..).zip(members).map(|(rank, process)| process.attach(offers, rank, CROWD, None)).collect();
    let worst = results.iter().map(|(reason, _)| *reason).max().unwrap();
    (worst, results.into_iter().map(|(_, lease)| lease).collect())
}

/// A communicator of these members, or the reason why there is none.
fn communicator(members: &[&Process]) -> Result<Vec<Lease>, Reason> {
    let offers = offers(members.iter().copied());
    let (reason, mut leases) = attach(members, &offers);
    for (process, lease) in members.iter().zip(&mut leases) {
        let comm = process.settle(lease, reason == Reason::Attached);
        assert_eq!(comm.is_some(), reason == Reason::Attached);
    }
    if reason == Reason::Attached { Ok(leases) } else { Err(reason) }
}

fn attached(lease: &Lease) -> &Attached {
    lease.0.as_ref().unwrap()
}

/// The first word of each page.
fn words(lease: &Lease) -> Vec<u64> {
    let slice = &attached(lease).slice;
    let layout = slice.plan().layout();
    // SAFETY: the lease outlives the view.
    let segment = unsafe { slice.segment() };
    let ids = (0..layout.ranks()).flat_map(|rank| [layout.done(rank), layout.line(rank, 1), layout.ready(rank)]);
    let slots = (0..layout.ranks()).map(|rank| {
        let mut word = [0; 8];
        // SAFETY: a buffer of this test; nothing writes to the slot now.
        unsafe { segment.read(layout.slot(rank, 3), unisono_kernel::data::buffer::Buf::of_mut(&mut word)) };
        u64::from_ne_bytes(word)
    });
    ids.map(|id| Flag::load_acquire(segment.flag(id)).unchecked()).chain(slots).collect()
}

/// Writes to the words that [`words`] reads.
fn dirty(lease: &Lease) {
    let slice = &attached(lease).slice;
    let layout = slice.plan().layout();
    // SAFETY: the lease outlives the view.
    let segment = unsafe { slice.segment() };
    for rank in 0..layout.ranks() {
        for id in [layout.done(rank), layout.line(rank, 1), layout.ready(rank)] {
            Flag::store_release(segment.flag(id), 0x5a5a);
        }
        // SAFETY: a buffer of this test; nothing reads the slot now.
        unsafe { segment.write(layout.slot(rank, 3), unisono_kernel::data::buffer::Buf::of(&[0x5a; 64])) };
    }
}

fn used(process: &Process) -> u64 {
    process.sums().used
}

#[test]
fn two_communicators_reduce_and_all_memory_is_free_at_the_end() {
    let ranks = processes(3, ROOM);
    let members: Vec<_> = ranks.iter().collect();
    let (all, pair) = (communicator(&members).unwrap(), communicator(&members[1..]).unwrap());
    std::thread::scope(|scope| {
        for (group, leases) in [(0u64, all), (100, pair)] {
            let owners = &ranks[ranks.len() - leases.len()..];
            let sum = (1..=leases.len() as u64).sum::<u64>() + group * leases.len() as u64;
            for (process, lease) in owners.iter().zip(leases) {
                scope.spawn(move || {
                    let Attached { comm, rank, .. } = *attached(&lease);
                    for _ in 0..100 {
                        let (mine, mut result) = (u64::from(rank) + 1 + group, 0u64);
                        let (from, to) = ((&raw const mine).cast(), (&raw mut result).cast());
                        // SAFETY: only this thread uses the handle; one element each; 9 is UNISONO_U64, 1 UNISONO_SUM.
                        let code = unsafe { unisono_allreduce(comm, from, to, 1, 9, core::ptr::without_provenance(1)) };
                        assert_eq!((code, result), (UNISONO_OK, sum));
                    }
                    process.release(lease);
                });
            }
        }
    });
    for process in &ranks {
        let sums = process.sums();
        assert_eq!(sums.used, 0);
        assert_eq!(sums.attached, sums.released);
    }
    assert_eq!(ranks.iter().map(|process| process.sums().attached).sum::<u64>(), 5);
    assert!(ranks.iter().any(|process| process.sums().most_used > 0));
}

#[test]
fn slots_are_small_once_half_is_used_and_then_the_arena_is_full() {
    let ranks = processes(2, ROOM);
    let members: Vec<_> = ranks.iter().collect();
    let mut leases = Vec::new();
    let reason = loop {
        match communicator(&members) {
            Ok(pair) => leases.push(pair),
            Err(reason) => break reason,
        }
    };
    assert_eq!(reason, Reason::Full);
    let sizes: Vec<_> = leases.iter().map(|pair| attached(&pair[0]).slice.plan().bytes()).collect();
    let [large, small] = [Queues::Large, Queues::Small].map(|queues| Plan::new(2, queues).unwrap().bytes());
    assert_eq!(sizes[0], large);
    assert_eq!(*sizes.last().unwrap(), small);
    let in_large = sizes.iter().filter(|size| **size == large).count() as u64 * large;
    assert!(in_large >= ROOM && in_large <= ROOM + 2 * large, "half of two arenas: {in_large}");
    for process in &ranks {
        assert!(ROOM - used(process) < small);
    }
    // Releasing one makes room for one.
    for (process, lease) in members.iter().zip(leases.pop().unwrap()) {
        process.release(lease);
    }
    leases.push(communicator(&members).unwrap());
    assert_eq!(communicator(&members).unwrap_err(), Reason::Full);
    for (process, lease) in leases.into_iter().flat_map(|pair| members.iter().zip(pair)) {
        process.release(lease);
    }
    assert!(ranks.iter().all(|process| used(process) == 0));
    assert!(attached(&communicator(&members).unwrap()[0]).slice.plan().bytes() == large);
}

#[test]
fn if_one_arena_is_full_another_is_used() {
    let mut ranks = processes(2, ROOM);
    ranks.push(Process::new(true, 0));
    ranks.push(Process::new(true, page()));
    let members: Vec<_> = ranks.iter().collect();
    let leases = communicator(&members).unwrap();
    assert!(leases.iter().enumerate().all(|(rank, lease)| attached(lease).own == (rank == 0)));
    for (process, lease) in members.iter().zip(leases) {
        process.release(lease);
    }
    assert!(ranks.iter().all(|process| used(process) == 0));
}

#[test]
fn a_member_that_never_leaves_keeps_the_slice_in_use() {
    let ranks = processes(2, ROOM);
    let members: Vec<_> = ranks.iter().collect();
    let mut leases = communicator(&members).unwrap();
    let bytes = attached(&leases[0]).slice.plan().bytes();
    drop(leases.pop());
    ranks[0].release(leases.pop().unwrap());
    for _ in 0..3 {
        assert_eq!(used(&ranks[0]), bytes);
        let more = communicator(&members).unwrap();
        members.iter().zip(more).for_each(|(process, lease)| process.release(lease));
    }
    assert_eq!(used(&ranks[0]), bytes);
}

#[test]
fn memory_is_zero_when_it_is_reused() {
    let ranks = processes(2, ROOM);
    let members: Vec<_> = ranks.iter().collect();
    let mut places = Vec::new();
    for round in 0..6 {
        let leases = communicator(&members).unwrap();
        for lease in &leases {
            assert!(words(lease).iter().all(|word| *word == 0), "round {round}");
        }
        dirty(&leases[round % 2]);
        assert!(words(&leases[(round + 1) % 2]).iter().all(|word| *word != 0));
        places.push(attached(&leases[0]).slice.offset());
        for (process, lease) in members.iter().zip(leases) {
            process.release(lease);
        }
    }
    assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
}

#[test]
fn a_rank_that_is_off_decides_for_all_and_one_rank_is_alone() {
    let mut ranks = processes(2, ROOM);
    assert_eq!(communicator(&[&ranks[0]]).unwrap_err(), Reason::Alone);
    ranks.push(Process::new(false, ROOM));
    let members: Vec<_> = ranks.iter().collect();
    assert_eq!(communicator(&members).unwrap_err(), Reason::Off);
    assert_eq!(communicator(&[&ranks[2]]).unwrap_err(), Reason::Alone.max(Reason::Off));
    assert!(ranks.iter().all(|process| used(process) == 0));
    assert_eq!(ranks[2].sums().arena, 0);
}

/// Every word of the chosen offer, and each of its halves, with other values: the peer refuses it, or gets a wrong
/// slice that is inside the arena.
#[test]
fn a_forged_offer_is_refused_or_harmless() {
    let ranks = processes(2, ROOM);
    let honest = offers(ranks.iter());
    for word in 0..8 {
        for change in
            [1, 1 << 12, 1 << 31, 1 << 32, 1 << 40, 1 << 41, 1 << 63, u64::MAX, u64::MAX << 32, u64::MAX >> 32]
        {
            let mut forged = honest.clone();
            forged[0][word] ^= change;
            let (reason, lease) = ranks[1].attach(&forged, 1, 2, None);
            let mut lease = lease;
            if reason == Reason::Attached {
                let slice = &attached(&lease).slice;
                assert!(slice.offset() + slice.plan().bytes() <= ROOM);
                assert!(word != 0, "a wrong version");
            }
            // All but the free bytes and the offset in the arena is checked. (A thread shares the owner's memory.)
            let is_thread = std::fs::exists(format!("/proc/self/task/{}", forged[0][3] >> 32)).unwrap_or(false);
            let may_pass = matches!(word, 1 | 6 | 7) || word == 3 && is_thread;
            assert!(may_pass || reason != Reason::Attached, "word {word}, change {change:#x}: {reason:?}");
            ranks[1].settle(&mut lease, false);
            // As in a communicator's life: an offer for every attach.
            let _ = ranks[1].offer(2);
        }
    }
    // Its own offer, forged: it is not taken for one of its slices.
    let mut forged = honest.clone();
    (forged[1][6], forged[1][7]) = (7 << 32, u64::MAX);
    assert_eq!(ranks[1].attach(&forged, 1, 2, None).0, Reason::Refused);
    // A rank out of range is refused, and so is an empty list of offers.
    assert_eq!(ranks[1].attach(&honest, 2, 2, None).0, Reason::Refused);
    assert_eq!(ranks[1].attach(&[], 0, 2, None).0, Reason::Alone);
}

#[derive(Clone, Debug)]
enum Action {
    /// The ranks of these bits make a communicator, or one of them fails.
    Make(u8, bool),
    /// A rank of a communicator releases it.
    Release(usize, usize),
}

/// A communicator that not all ranks have released.
struct Live {
    /// The process whose arena it is in.
    owner: usize,
    bytes: u64,
    /// The ranks that have not released it.
    leases: Vec<(usize, Lease)>,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let make = (3u8..16, prop::bool::weighted(0.8)).prop_map(|(ranks, agreed)| Action::Make(ranks, agreed));
    let release = (any::<usize>(), any::<usize>()).prop_map(|(comm, rank)| Action::Release(comm, rank));
    prop::collection::vec(prop_oneof![1 => make, 2 => release], 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    #[test]
    fn makes_and_releases_sum_to_zero(actions in actions(), megabytes in 1u64..12) {
        let ranks = processes(4, megabytes << 20);
        let mut live: Vec<Live> = Vec::new();
        for action in actions {
            match action {
                Action::Make(bits, agreed) => {
                    let members: Vec<_> = (0..4).filter(|rank| bits >> rank & 1 == 1).collect();
                    let states: Vec<_> = members.iter().map(|rank| &ranks[*rank]).collect();
                    let offers = offers(states.iter().copied());
                    let (reason, mut leases) = attach(&states, &offers);
                    let agreed = agreed && reason == Reason::Attached;
                    for (process, lease) in states.iter().zip(&mut leases) {
                        prop_assert_eq!(process.settle(lease, agreed).is_some(), agreed);
                    }
                    if agreed {
                        let (owner, _) = offer::choose(&offers).unwrap();
                        let bytes = attached(&leases[0]).slice.plan().bytes();
                        prop_assert!(leases.iter().all(|lease| words(lease).iter().all(|word| *word == 0)));
                        leases.iter().for_each(dirty);
                        let owner = members[owner as usize];
                        live.push(Live { owner, bytes, leases: members.into_iter().zip(leases).collect() });
                    }
                }
                Action::Release(comm, rank) if !live.is_empty() => {
                    let comm = comm % live.len();
                    let members = &mut live[comm].leases;
                    let (process, lease) = members.swap_remove(rank % members.len());
                    ranks[process].release(lease);
                    if live[comm].leases.is_empty() {
                        live.swap_remove(comm);
                    }
                }
                Action::Release(..) => {}
            }
            for (rank, process) in ranks.iter().enumerate() {
                let held: u64 = live.iter().filter(|comm| comm.owner == rank).map(|comm| comm.bytes).sum();
                prop_assert_eq!(used(process), held);
            }
        }
        for (process, lease) in live.into_iter().flat_map(|comm| comm.leases) {
            ranks[process].release(lease);
        }
        for process in &ranks {
            let sums = process.sums();
            prop_assert_eq!(sums.used, 0);
            prop_assert_eq!(sums.attached, sums.released);
        }
    }
}

pub(crate) fn table(rules: &str) -> Process {
    let decisions: &'static Decisions = Box::leak(Box::new(Decisions::read(None, Some(rules)).unwrap()));
    Process { decisions: Some(decisions), ..Process::new(true, ROOM) }
}

#[test]
fn between_nodes_the_table_of_all_ranks_chooses_too() {
    let processes = ["msg bcast ranks 2 use flat", "msg bcast ranks 2 use flat", "msg bcast use chain-7"].map(table);
    let [first, second, other] = processes.each_ref();
    let none = Process::new(true, ROOM);
    let bcast = |members: &[&Process], nodes| {
        let offers = offers(members.iter().copied());
        let each =
            (0..).zip(members).map(|(rank, member)| member.between(nodes, 1, rank, &offers).unwrap().bcast(1 << 20));
        each.collect::<Vec<_>>()
    };
    let built_in = |nodes| Between::cut(&[], nodes, 1).unwrap().bcast(1 << 20);
    assert_eq!(bcast(&[first, second], 2), [Way::Flat(bcast::Algorithm::Flat); 2]);
    assert_eq!(bcast(&[first, second], 3), [built_in(3); 2], "the rule is for others");
    assert_eq!(bcast(&[other, other], 3), [Way::Flat(bcast::Algorithm::Chain(7)); 2]);
    assert_eq!(bcast(&[first, second, other], 2), [built_in(2); 3]);
    assert_eq!(bcast(&[&none, first], 2), [built_in(2); 2]);
}

#[test]
fn a_slice_has_the_queues_that_the_table_of_its_owner_uses() {
    let processes = ["shm bcast use cico-flat", "shm bcast use cico-flat", "shm barrier use central"].map(table);
    let [first, second, other] = processes.each_ref();
    let of = |members: &[&Process]| {
        let leases = communicator(members).unwrap();
        let seen = leases.iter().map(|lease| {
            let attached = attached(lease);
            // SAFETY: the leases live.
            let bcast = unsafe { &*attached.comm }.chooser().bcast_by(BcastAlgorithm::Auto, 1 << 20);
            (attached.slice.plan().queues(), matches!(bcast, BcastAlgorithm::Cico(_)))
        });
        let seen: Vec<_> = seen.collect();
        members.iter().zip(leases).for_each(|(member, lease)| member.release(lease));
        seen
    };
    assert_eq!(of(&[first, second]), [(Queues::Papers, true); 2]);
    let mixed = of(&[first, other]);
    assert!(mixed[0] == mixed[1] && !mixed[0].1, "another table on one rank: {mixed:?}");
    assert_eq!(of(&[other, other]), [(Queues::Large, false); 2]);
}

#[test]
fn a_table_is_used_if_all_ranks_have_it_and_on_no_rank_otherwise() {
    let barriers = |members: &[&Process]| {
        let leases = communicator(members).unwrap();
        // SAFETY: the leases live.
        let chosen = |lease| unsafe { &*attached(lease).comm }.chooser().barrier_by(BarrierAlgorithm::Auto);
        let chosen: Vec<_> = leases.iter().map(chosen).collect();
        members.iter().zip(leases).for_each(|(member, lease)| member.release(lease));
        chosen
    };
    let one = "shm barrier ranks 3..4 use central";
    let processes = [one, one, one, "shm barrier use central"].map(table);
    let [first, second, third, other] = processes.each_ref();
    let none = Process::new(true, ROOM);
    assert_eq!(barriers(&[first, second, third]), [BarrierAlgorithm::Central; 3]);
    assert_eq!(barriers(&[first, second]), [BarrierAlgorithm::Posted; 2], "the rule is for others");
    assert_eq!(barriers(&[first, other, second]), [BarrierAlgorithm::Posted; 3]);
    assert_eq!(barriers(&[&none, first, second]), [BarrierAlgorithm::Posted; 3]);
}

/// Does a lease's table leave a call of MPI's collective of this name?
fn leaves(lease: *const Lease, name: &core::ffi::CStr, bytes: u64) -> bool {
    // SAFETY: a string.
    let number = unsafe { crate::unisono_mpi_collective(name.as_ptr()) };
    // SAFETY: null, or settled and not released, as all callers' are.
    let any = unsafe { crate::unisono_mpi_leaves_any(lease, number) };
    // SAFETY: as above.
    let one = unsafe { crate::unisono_mpi_leaves(lease, number, bytes, 1) };
    assert!(one <= any, "{name:?}");
    one == 1
}

#[test]
fn a_table_leaves_the_same_calls_on_all_ranks() {
    let one = "shm bcast bytes 9.. ranks 2..3 use mpi; shm alltoallv use mpi";
    let processes = [one, one, one, one, "shm bcast use mpi"].map(table);
    let [first, second, third, fourth, other] = processes.each_ref();
    let none = Process::new(true, ROOM);
    // On each rank: broadcasts of 100 and of 8 bytes, and an alltoallw.
    let left = |members: &[&Process]| {
        let leases = communicator(members).unwrap();
        let of =
            |lease: &Lease| [leaves(lease, c"bcast", 100), leaves(lease, c"bcast", 8), leaves(lease, c"alltoallw", 0)];
        let found: Vec<_> = leases.iter().map(of).collect();
        members.iter().zip(leases).for_each(|(member, lease)| member.release(lease));
        found
    };
    assert_eq!(left(&[first, second, third]), [[true, false, true]; 3]);
    assert_eq!(left(&[first, second, third, fourth]), [[false, false, true]; 4], "the rule is for fewer ranks");
    assert_eq!(left(&[first, other]), [[false; 3]; 2], "another table on one rank");
    assert_eq!(left(&[&none, first]), [[false; 3]; 2]);
    assert!(!leaves(core::ptr::null(), c"bcast", 8), "no segment");
    assert!(!leaves(core::ptr::null(), c"neighbor_alltoall", 8), "tables have no rules for it");
}

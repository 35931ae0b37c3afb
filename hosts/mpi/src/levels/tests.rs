//! Collectives over nodes between threads: each rank is a process's state of its own, and messages go through memory.

use super::alltoall::*;
use super::blocks::*;
use super::folds::*;
use super::started::*;
use super::*;
use crate::messages::network::{self, Network};
use crate::offer::Reason;
use std::ptr::{null, null_mut, without_provenance, without_provenance_mut};
use std::time::Duration;
use unisono_c::error::unisono_last_error;
use unisono_kernel::algorithm::BarrierAlgorithm;
use unisono_kernel::class::Class;
use unisono_kernel::region::{Counter, Word};
use unisono_kernel::table::{Choice, Collective, Over, Rule, Span};

mod collectives;
mod started;

const U64: c_int = 9;
const I32: c_int = 4;
const SUM: usize = 1;
const ROOM: u64 = 16 << 20;
const HERE: *mut c_void = without_provenance_mut(IN_PLACE);

/// One rank of a job.
struct Seat<'j> {
    levels: *const Levels,
    me: Rank,
    nodes: &'j [u32],
    /// Barriers that ranks have come to.
    came: &'j Word,
    /// Are calls started, and then tested until they are complete?
    starts: bool,
}

// SAFETY: one thread uses it.
unsafe impl Send for Seat<'_> {}

/// Runs `member` on each rank, which are on these nodes, and nothing is left in the end.
fn job(nodes: &[u32], member: impl Fn(&Seat<'_>) + Sync) {
    assert_eq!(run(nodes, || Process::new(true, ROOM), member).left(), (nodes.len(), 0));
}

/// The same where all calls fail in the end: then no layer is closed, since the MPI may read what was sent. Each wait has this
/// bound.
fn failing(nodes: &[u32], bound: Option<Duration>, member: impl Fn(&Seat<'_>) + Sync) {
    assert_eq!(run(nodes, || Process::new(true, ROOM).bounded(bound), member).left().0, 0);
}

fn run(nodes: &[u32], process: impl Fn() -> Process, member: impl Fn(&Seat<'_>) + Sync) -> Network {
    let size = nodes.len() as u32;
    let processes: Vec<_> = nodes.iter().map(|_| process()).collect();
    let (network, endpoints) = network::endpoints(size);
    let members = levels(nodes, &processes, endpoints);
    let came = Word::zero();
    std::thread::scope(|scope| {
        for ((me, levels), process) in (0..).zip(members).zip(&processes) {
            let (came, member) = (&came, &member);
            scope.spawn(move || {
                member(&Seat { levels: &raw const levels, me, nodes, came, starts: false });
                process.release(levels.into_lease());
            });
        }
    });
    for process in processes {
        let sums = process.sums();
        assert_eq!((sums.used, sums.attached, sums.released), (0, 1, 1));
    }
    network
}

/// As the shim makes them.
fn levels(nodes: &[u32], processes: &[Process], endpoints: Vec<Endpoint>) -> Vec<Levels> {
    let mut offers = Vec::new();
    for (process, node) in processes.iter().zip(nodes) {
        let inside = nodes.iter().filter(|other| *other == node).count() as u32;
        let mut words = process.offer_level(inside);
        // Numbers as hosts have them.
        words[2] = 1000 - u64::from(*node);
        offers.push(words);
    }
    let on = |node: &u32| -> Vec<Words> {
        nodes.iter().zip(&offers).filter(|(other, _)| *other == node).map(|(_, words)| *words).collect()
    };
    let mut leases: Vec<_> = (processes.iter().zip(nodes).enumerate())
        .map(|(rank, (process, node))| {
            let inside = nodes[..rank].iter().filter(|other| *other == node).count() as Rank;
            let (reason, lease) = process.attach_level(&on(node), inside);
            assert_eq!(reason, Reason::Attached);
            lease
        })
        .collect();
    for (process, lease) in processes.iter().zip(&mut leases) {
        assert!(process.settle(lease, true).is_some());
    }
    // An algorithm that needs memory of the host.
    let plan = Choice::from_name(Over::Messages, Collective::Allgather, "bagds").unwrap();
    let bagds = Rule { bytes: Span::new(16, u64::MAX), ..Rule::all(Collective::Allgather, plan) };
    (processes.iter().zip(leases).zip(endpoints))
        .map(|((process, lease), messages)| {
            let between = Between::cut(&[bagds], nodes.iter().max().unwrap() + 1, 1).unwrap();
            let waiting = Waiting { yields: true, progress: None };
            Levels::new(process, lease, messages, (nodes, &[]), between, waiting).unwrap()
        })
        .collect()
}

fn byte(from: Rank, to: Rank, at: usize) -> u8 {
    (from as usize * 89 + to as usize * 31 + at * 7 + at / 251 + 1) as u8
}

/// What `from` sends to `to`.
fn bytes_of(from: Rank, to: Rank, len: u64) -> Vec<u8> {
    (0..len as usize).map(|at| byte(from, to, at)).collect()
}

fn number(rank: Rank, at: usize) -> u64 {
    u64::from(rank + 1) * 1_000_003 + at as u64 * 37
}

fn numbers(rank: Rank, count: usize) -> Vec<u64> {
    (0..count).map(|at| number(rank, at)).collect()
}

/// Where blocks lie.
#[derive(Clone, Copy, Debug)]
enum Lie {
    Row,
    Gaps,
    Backwards,
}

/// Blocks of one process, some bytes of memory.
struct Blocks {
    counts: Vec<u64>,
    starts: Vec<u64>,
    memory: Vec<u8>,
}

const UNTOUCHED: u8 = 0xa5;

impl Blocks {
    fn new(counts: Vec<u64>, lie: Lie) -> Self {
        let gap = |at: usize| if matches!(lie, Lie::Gaps) { at as u64 % 3 + 1 } else { 0 };
        let mut order: Vec<_> = (0..counts.len()).collect();
        if matches!(lie, Lie::Backwards) {
            order.reverse();
        }
        let (mut starts, mut end) = (vec![0; counts.len()], 0);
        for at in order {
            starts[at] = end;
            end += counts[at] + gap(at);
        }
        Self { counts, starts, memory: vec![UNTOUCHED; end as usize] }
    }

    fn set(&mut self, at: Rank, bytes: &[u8]) {
        let (start, count) = (self.starts[at as usize] as usize, self.counts[at as usize] as usize);
        self.memory[start..start + count].copy_from_slice(bytes);
    }

    /// The same with these blocks: what it must be in the end.
    fn with(&self, block: impl Fn(Rank, u64) -> Vec<u8>) -> Vec<u8> {
        let counts = self.counts.clone();
        let mut all = Self { memory: vec![UNTOUCHED; self.memory.len()], starts: self.starts.clone(), counts };
        for (rank, len) in (0..).zip(self.counts.clone()) {
            all.set(rank, &block(rank, len));
        }
        all.memory
    }

    fn to(&mut self) -> *mut c_void {
        self.memory.as_mut_ptr().cast()
    }
}

fn said(code: c_int) -> String {
    assert_ne!(code, 0);
    let mut text = [0; 300];
    // SAFETY: so many bytes of ours.
    let len = unsafe { unisono_last_error(text.as_mut_ptr().cast(), text.len()) };
    String::from_utf8(text[..len.min(text.len() - 1)].to_vec()).unwrap()
}

fn fine(code: c_int) {
    assert_eq!(code, 0, "{}", said(code));
}

/// Bytes that rank `of` has in collectives of unequal blocks: none, the longest, a few.
fn share(of: Rank, most: u64) -> u64 {
    match of % 3 {
        0 => most / 2 + u64::from(of),
        1 => 0,
        _ => most,
    }
}

impl Seat<'_> {
    /// A barrier that is too late.
    fn next(&self) -> String {
        // SAFETY: a communicator.
        said(unsafe { unisono_mpi_levels_barrier(self.levels, null_mut()) })
    }

    /// Barriers until one fails: how.
    fn until_told(&self) -> String {
        loop {
            // SAFETY: a communicator.
            let code = unsafe { unisono_mpi_levels_barrier(self.levels, null_mut()) };
            if code != 0 {
                return said(code);
            }
        }
    }

    fn inner<T>(&self, look: impl FnOnce(&mut Communicator) -> T) -> T {
        // SAFETY: lives through the job.
        look(unsafe { &*self.levels }.calls.try_lock().unwrap().communicator())
    }
}

#[test]
fn every_collective_over_nodes() {
    for nodes in [&[0, 1][..], &[0, 0, 1], &[0, 1, 0, 2, 1], &[0, 0, 0, 1, 1, 2], &[0, 1, 2, 3], &[0, 1, 1, 1]] {
        job(nodes, |seat| {
            for (round, most) in (0..).zip([0, 8, 61, 1000, 9000]) {
                seat.every_collective(most);
                seat.barrier(round);
            }
        });
    }
}

#[test]
fn inside_a_node_the_table_chooses() {
    use crate::process::tests::table;
    let barrier = |rules: Option<&'static str>| {
        let chosen = Mutex::new(Vec::new());
        let process = || rules.map_or_else(|| Process::new(true, ROOM), table);
        run(&[0, 1, 0], process, |seat| {
            let chooser = seat.inner(|inner| inner.levels().comm.member().chooser());
            chosen.lock().unwrap().push(chooser.barrier_by(BarrierAlgorithm::Auto));
        });
        chosen.into_inner().unwrap()
    };
    let none = barrier(None);
    let central = barrier(Some("shm barrier use central"));
    assert!(central == [BarrierAlgorithm::Central; 3] && !none.contains(&BarrierAlgorithm::Central), "{none:?}");
}

#[test]
fn long_messages_go_in_segments_and_working_memory_is_given_back() {
    job(&[0, 1, 0], |seat| {
        const LONG: usize = 70_001;
        seat.bcast(8 * LONG as u64, 1);
        seat.reduce(LONG, Some(2), false);
        seat.reduce(LONG, None, true);
        let counts = vec![KEPT as u64 / 2 + 1; 3];
        seat.gather(counts, Lie::Backwards, 0, false, false);
        if seat.me == 0 {
            assert!(seat.inner(|inner| inner.scratch().0.len()) > KEPT);
        }
        seat.reduce(1, None, false);
        let kept = seat.inner(|inner| inner.scratch().0.capacity());
        assert!(kept <= KEPT && (kept == KEPT || seat.me != 0), "{kept}");
    });
}

#[test]
fn lengths_that_disagree_are_named_on_both_sides() {
    // The last rank, which is not on the root's node, and does not lead its own.
    let nodes = [0, 1, 0, 1];
    for gathers in [true, false] {
        failing(&nodes, None, |seat| {
            let own: u64 = if seat.me == 3 { 2 } else { 1 };
            let (mut all, mut mine) = (Blocks::new(vec![1; 4], Lie::Row), [0; 2]);
            let (to, at) = (all.to(), mine.as_mut_ptr().cast());
            let (counts, starts) = (all.counts.as_ptr(), all.starts.as_ptr());
            let code = match gathers {
                // SAFETY: lists and buffers of ours.
                true => unsafe { unisono_mpi_levels_gatherv(seat.levels, at, own, to, counts, starts, 0, null_mut()) },
                // SAFETY: as above.
                false => unsafe {
                    unisono_mpi_levels_scatterv(seat.levels, to, counts, starts, at, own, 0, null_mut())
                },
            };
            let who = if gathers { 0 } else { 3 };
            let text = if code != 0 { said(code) } else { seat.until_told() };
            let refusal = if gathers { "bytes is 1, must be 2" } else { "bytes is 2, must be 1" };
            if seat.me == who {
                assert_eq!(
                    (code, text),
                    (Class::Mismatch.number(), format!("disagreement with rank {}: {refusal}", 3 - who))
                );
            } else {
                let named = text.starts_with(&format!("rank {who} refused operation ")) && text.ends_with(refusal);
                assert!(named, "{text}");
            }
        });
    }
}

#[test]
fn an_argument_that_one_rank_gets_wrong_is_told_to_all() {
    let words = [
        "root is 4, must be below 4",
        "root is 4, must be below 4",
        "bytes is 9223372036854775807, must be at most ",
        "root is 7, must be below 4",
        "root is 4, must be below 4",
        "bytes is 18446744073709551615, must be at most 9223372036854775807",
        "datatype is 0, must be at least 1",
    ];
    for (wrong, words) in (0..).zip(words) {
        failing(&[0, 1, 1, 0], None, |seat| {
            if seat.me == wrong % 4 {
                let (sum, mut to) = (without_provenance(SUM), [0; 8]);
                let at = to.as_mut_ptr().cast::<c_void>();
                let code = match wrong {
                    // SAFETY: refused before anything is read.
                    0 => unsafe { unisono_mpi_levels_bcast(seat.levels, at, 8, 4, null_mut()) },
                    // SAFETY: as above.
                    1 => unsafe {
                        unisono_mpi_levels_reduce(seat.levels, at, at, u64::MAX / 16, U64, sum, 4, null_mut())
                    },
                    // SAFETY: as above.
                    2 => unsafe { unisono_mpi_levels_alltoall(seat.levels, at, at, u64::MAX / 2, null_mut()) },
                    // SAFETY: as above.
                    3 => unsafe { unisono_mpi_levels_gather(seat.levels, at, at, 1, 7, null_mut()) },
                    // SAFETY: as above.
                    4 => unsafe { unisono_mpi_levels_scatter(seat.levels, at, at, 1, 4, null_mut()) },
                    // SAFETY: as above.
                    5 => unsafe { unisono_mpi_levels_allreduce(seat.levels, at, at, u64::MAX, U64, sum, null_mut()) },
                    // SAFETY: as above.
                    _ => unsafe { unisono_mpi_levels_reduce(seat.levels, at, at, 1, 0, sum, 0, null_mut()) },
                };
                let text = said(code);
                assert!(text.starts_with(words), "{text}");
            }
            let text = seat.until_told();
            assert!(text.starts_with(&format!("rank {} refused operation 1: {words}", wrong % 4)), "{text}");
        });
    }
}

/// What the ranks are told where one does not come, with such a bound.
fn told_of(nodes: &[u32], late: Rank, bound: Duration) -> Vec<String> {
    let told = Mutex::new(Vec::new());
    failing(nodes, Some(bound), |seat| {
        seat.barrier(0);
        while seat.me == late && seat.inner(|inner| inner.failure()).is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let (text, again) = (seat.next(), seat.next());
        assert_eq!(text, again);
        told.lock().unwrap().push(text);
    });
    told.into_inner().unwrap()
}

#[test]
fn who_is_late_is_named_by_all() {
    // A rank that leads no node, one that leads its own, one that is alone on its own, and the first.
    for (nodes, late) in [(&[0, 0, 1, 1][..], 3), (&[0, 1, 1, 0], 1), (&[0, 1, 1], 0), (&[0, 0, 1, 2, 2], 0)] {
        let name = format!("rank {late} was late: ");
        // On a busy machine a rank that comes may be late, too: then with more time.
        let named = [300, 1000, 5000].into_iter().any(|bound| {
            let told = told_of(nodes, late, Duration::from_millis(bound));
            assert!(told.iter().all(|text| text.contains(" was late: ")), "{nodes:?}: {told:?}");
            told.len() == nodes.len() && told.iter().all(|text| text.starts_with(&name))
        });
        assert!(named, "{nodes:?}: not {late}");
    }
}

#[test]
fn each_wait_has_a_bound_of_its_own() {
    use unisono_kernel::error::WaitError;
    use unisono_kernel::machine::poll::{Await, Slot, Source, WaitSet};
    use unisono_kernel::machine::wait::Relax;
    let bound = Some(Duration::from_millis(300));
    let mut host = Bounded::new(Patient::new(true, None, Default::default()), bound);
    let on = WaitSet::one(Await { source: Source::Message(Slot(0)), peer: Some(2), operation: 1, stage: 0 });
    for _ in 0..2 {
        host.begin();
        assert_eq!(host.relax(&on), Ok(()));
        let error = core::iter::repeat_with(|| host.relax(&on)).find_map(Result::err);
        assert_eq!(error, Some(WaitError::Late(2)));
    }
}

#[test]
fn a_rank_that_can_take_part_no_more_tells_all() {
    for gone in 0..4 {
        failing(&[0, 1, 1, 0], None, |seat| {
            seat.barrier(0);
            seat.came.fetch_add(1);
            if seat.me == gone {
                // Who is still in the barrier would hear of it there.
                while !Counter::load_acquire(seat.came).at_least(2 * u64::from(seat.size())) {
                    std::thread::yield_now();
                }
                // SAFETY: a communicator.
                unsafe { unisono_mpi_levels_report(seat.levels) };
            }
            let text = seat.until_told();
            assert_eq!(text, format!("rank {gone} died (seen in operation 3)"), "{}", seat.me);
        });
    }
    // SAFETY: null is no communicator.
    unsafe { unisono_mpi_levels_report(null()) };
}

#[test]
fn calls_that_can_not_be_are_refused() {
    job(&[0, 1], |seat| {
        // SAFETY: lives through the job.
        let busy = unsafe { &*seat.levels }.caller.lock().unwrap();
        // SAFETY: a communicator.
        assert_eq!(unsafe { unisono_mpi_levels_barrier(seat.levels, null_mut()) }, Class::Busy.number());
        drop(busy);
        let (lists, mut to) = ([0; 2], [0; 2]);
        let at = to.as_mut_ptr().cast::<c_void>();
        for (counts, starts) in [(null(), lists.as_ptr()), (lists.as_ptr(), null())] {
            // SAFETY: a communicator, a list of two numbers.
            let code = unsafe { unisono_mpi_levels_allgatherv(seat.levels, at, 0, at, counts, starts, null_mut()) };
            assert_eq!(code, Class::Null.number());
        }
        let mut one = [1_i32, 2];
        // An operation that there is, on elements that there are.
        let code = unsafe {
            // SAFETY: one element, in place.
            unisono_mpi_levels_allreduce(
                seat.levels,
                HERE,
                one.as_mut_ptr().cast(),
                1,
                I32,
                without_provenance(SUM),
                null_mut(),
            )
        };
        fine(code);
        assert_eq!(one, [2, 2]);
    });
    // SAFETY: null is no communicator.
    assert_eq!(unsafe { unisono_mpi_levels_barrier(null(), null_mut()) }, Class::Null.number());
}

#[test]
fn bytes_of_a_predefined_operation_are_counted() {
    let op = Op::SUM_U64;
    let at = without_provenance::<c_void>(64);
    assert_eq!(elements(at, 3, &op).unwrap().len(), 24);
    assert_eq!(elements(at, 0, &op).unwrap().len(), 0);
    let refusal = elements(at, u64::MAX / 8, &op).unwrap_err();
    assert_eq!((refusal.argument, refusal.bound), (Argument::Bytes, Bound::AtMost(isize::MAX as u64)));
    assert_eq!(bytes(at, isize::MAX as u64).unwrap().len(), isize::MAX as usize);
    assert!(bytes(at, 1 << 63).is_err());
}

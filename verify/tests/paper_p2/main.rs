//! The printed defects of paper P2 (docs/explanation/papers.md), each as a test: a model of the printed loop fails with
//! it, the same model without it passes, and so do the machines that ship, on the same calls under the same schedule.
//!
//! | what the print has wrong, or leaves open | test | shown in |
//! |---|---|---|
//! | the wait on `rootready` is inverted | `who_waits_for_rootready_…` | S G |
//! | the waits on `ctrl`, `ctrlall` are inverted | `who_waits_for_a_fragment_…` | S G A |
//! | a reader clears `counts[rank]`, not `rootready[rank]` | `a_reader_clears_…`, `a_count_is_not_cleared_…` | S G |
//! | a rank that is not the root uses `scounts` before it is told them | `counts_are_used_after_…` | S G |
//! | a process whose block ends before the longest leaves | `unequal_blocks_…`, `who_has_no_bytes_…` | S G A |
//! | so does a root whose own block is the longest | `a_root_whose_own_block_is_the_longest_…` | S G |
//! | no bytes open no set | `no_bytes_at_all_…` | S G, no defect in A |
//! | a stale `rootready` shows old counts | `everyone_consumes_rootready` | S G |
//! | `op` does not start at −1 | `a_fresh_set_does_not_look_open` | S G A, from 0: A |
//! | `p·sizeof(scounts)` bytes are copied | `counts_are_copied_as_counts` | S G |
//! | byte totals are ints | `totals_are_wider_than_an_int`, `two_gigabytes_…` | S G A |
//! | `ctrl` is cleared after the own decrement | `words_are_cleared_before_…` | S G A |
//! | the text names no process that clears `ctrl` (gatherv), `ctrlall` | `who_reads_clears` | G A |
//! | reading in the order 0 … p−1 meets at process 0 | `everyone_reads_its_neighbour_first` | A |
//!
//! S, G, A: scatterv, gatherv, allgatherv. That allgatherv's processes leave with their own block is a reading of
//! Fig. 1: its prose does not say when they do, and with the other reading (all blocks are received) they leave
//! together. Everyone knows the counts there: no `rootready`, nothing to be told, and all skip a call without bytes.
//!
//! Without a test: `rootready` is redundant, and the words are O(p²), which are not faults. The place of `ctrlall`,
//! at the sender, decides only which process waits for whose memory. Memory orderings are checked by loom
//! (`tests/loom.rs`).

mod hostile;
mod ours;
mod printed;
mod refused;
mod turns;

use ours::{call, one_after_the_other, params};
use printed::Defect::{self, *};
use printed::{Call, F, S, W, as_printed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use turns::{Fault, P, Schedule};
use unisono_kernel::comm::{Comm, Communicator};
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::{Argument, Bound, Cause, Condition, Error, PollError, Refusal};
use unisono_kernel::machine::poll::Poll;
use unisono_kernel::machine::{Machine, Operation};
use unisono_kernel::region::{Cico, Params};
use unisono_kernel::shm::papers::allgather::P2Allgather;
use unisono_local::{Local, Segment};

/// The paper's collectives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Scatter,
    Gather,
    Allgather,
}
use What::{Allgather, Gather, Scatter};

const ALL: [What; 3] = [Scatter, Gather, Allgather];
const ROOTED: [What; 2] = [Scatter, Gather];

/// Runs `body`; a body that never returns fails the test instead of hanging it.
fn bounded<A: Send + 'static>(body: impl FnOnce() -> A + Send + 'static) -> A {
    let (send, receive) = channel();
    let thread = std::thread::spawn(move || drop(send.send(body())));
    match receive.recv_timeout(Duration::from_secs(60)) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => panic!("hangs: some rank never returned"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!(),
        },
    }
}

fn blocks<'a>(memory: &'a mut [u8], counts: &'a [u64], displacements: &'a [u64]) -> Result<Blocks<'a>, Refusal> {
    Blocks::vary_mut(memory, counts, displacements, Datatype::BYTE)
}

/// The mended loop and the machines that ship pass under every schedule.
fn pass(what: What, calls: &'static [Call]) {
    bounded(move || {
        for schedule in Schedule::all() {
            let mended = printed::run(what, calls, schedule, &[]);
            assert!(mended.is_ok(), "{what:?}, mended, {schedule:?}: {mended:?}");
            assert_eq!(ours::run(what, calls, schedule), Ok(()), "{what:?}, ours, {schedule:?}");
        }
        assert_eq!(ours::run_free(what, calls), Ok(()), "{what:?}");
    });
}

/// The print with these defects fails on these calls under this schedule; without them, and ours, do not.
fn fails(what: What, calls: &'static [Call], defects: &'static [Defect], schedule: Schedule, fault: Fault) {
    let found = bounded(move || printed::run(what, calls, schedule, defects));
    assert_eq!(found, Err(fault), "{what:?} with {defects:?}, {schedule:?}");
    pass(what, calls);
}

/// Schedules in which rank 0, mostly the root, is as slow as possible, or as fast.
const SLOW_ROOT: Schedule = Schedule::First([1, 2, 0]);
const FAST_ROOT: Schedule = Schedule::First([0, 1, 2]);

#[test]
fn unequal_blocks_do_not_deadlock() {
    // Rank 1 takes one set, rank 2 takes four; then the next call finds all ranks at the same set.
    for what in ALL {
        let calls = &[(0, [0, 1, 4 * F]), (0, [2, F, F])];
        fails(what, calls, &[EndsEarly], FAST_ROOT, Fault::Deadlock);
    }
}

#[test]
fn who_has_no_bytes_takes_part() {
    for what in ALL {
        fails(what, &[(0, [0, 0, 1]), (0, [0, 1, 1])], &[EndsEarly], FAST_ROOT, Fault::Deadlock);
    }
}

#[test]
fn a_root_whose_own_block_is_the_longest_does_not_deadlock() {
    for what in ROOTED {
        fails(what, &[(0, [3 * F, F, F])], &[OwnBlock], FAST_ROOT, Fault::Deadlock);
        fails(what, &[(2, [1, 2, 7 * F]), (0, [9 * F, 1, 0])], &[OwnBlock], FAST_ROOT, Fault::Deadlock);
        // Where it is not the longest, it does not matter.
        let calls = &[(1, [0, 5 * F + 1, 0]), (1, [F, 0, 3 * F])];
        assert!(printed::run(what, &calls[1..], FAST_ROOT, &[OwnBlock]).is_ok());
        pass(what, calls);
    }
}

#[test]
fn no_bytes_at_all_take_one_set() {
    // A rank without bytes can't know that no other rank has any.
    let calls: &[Call] = &[(0, [0, 0, 0]), (0, [5, 0, 0]), (1, [1, 1, 1])];
    for what in ROOTED {
        fails(what, calls, &[NoSet], FAST_ROOT, Fault::Deadlock);
    }
    // Where all know all counts, all skip the call.
    assert!(printed::run(Allgather, calls, FAST_ROOT, &[NoSet]).is_ok());
    pass(Allgather, calls);
}

#[test]
fn everyone_consumes_rootready() {
    // Rank 1 has nothing first, in set 0; two sets later a stale word shows it the old counts.
    for what in ROOTED {
        let calls: &[Call] = &[(0, [0, 0, 1]), (0, [0, 1, 1]), (0, [0, 3 * F, 2 * F])];
        assert!(printed::run(what, &calls[..2], SLOW_ROOT, &[Unconsumed]).is_ok());
        let fault = if what == Scatter { Fault::Wrong } else { Fault::Deadlock };
        fails(what, calls, &[Unconsumed], SLOW_ROOT, fault);
    }
}

#[test]
fn a_reader_clears_rootready_and_not_its_count() {
    for what in ROOTED {
        let calls: &[Call] = &[(0, [0, 1, 1]), (0, [0, 1, 1]), (0, [0, 3 * F, 3 * F])];
        assert!(printed::run(what, &calls[..2], SLOW_ROOT, &[ClearsCounts]).is_ok());
        let fault = if what == Scatter { Fault::Wrong } else { Fault::Deadlock };
        fails(what, calls, &[ClearsCounts], SLOW_ROOT, fault);
    }
}

#[test]
fn a_count_is_not_cleared_before_a_slower_reader_has_seen_it() {
    // Rank 2 misses that rank 1 takes three sets.
    for what in ROOTED {
        let calls = &[(0, [0, 3 * F, F]), (0, [0, 1, 1])];
        fails(what, calls, &[ClearsCounts], Schedule::First([1, 0, 2]), Fault::Deadlock);
    }
}

#[test]
fn who_waits_for_rootready_waits_until_it_is_there() {
    for what in ROOTED {
        // It waits for what is there to go away, or takes counts that are not there yet.
        let calls = &[(0, [1, 3 * F, 3 * F])];
        fails(what, calls, &[InvertedRootready], FAST_ROOT, Fault::Deadlock);
        let fault = if what == Scatter { Fault::Wrong } else { Fault::Deadlock };
        fails(what, calls, &[InvertedRootready], SLOW_ROOT, fault);
    }
}

#[test]
fn who_waits_for_a_fragment_waits_until_it_is_there() {
    for what in ALL {
        // It waits for what is there to go away, or reads what is not there yet.
        let calls = &[(0, [0, 2, 0])];
        let slow_writer = Schedule::First([0, 2, 1]);
        let (late, early) = if what == Scatter { (FAST_ROOT, SLOW_ROOT) } else { (SLOW_ROOT, slow_writer) };
        fails(what, calls, &[InvertedCtrl], late, Fault::Deadlock);
        fails(what, calls, &[InvertedCtrl], early, Fault::Wrong);
    }
}

#[test]
fn counts_are_used_after_they_are_told() {
    // The others believe that there is nothing to do.
    fails(Scatter, &[(0, [0, 1, F])], &[Untold], FAST_ROOT, Fault::Wrong);
    fails(Gather, &[(0, [0, 1, F])], &[Untold], FAST_ROOT, Fault::Deadlock);
}

#[test]
fn a_fresh_set_does_not_look_open() {
    // Someone leaves set 1 before it is opened: that decrement is lost, and the set is never free again.
    let calls: &[Call] = &[(0, [0, 1, 2 * F]), (0, [0, 1, 2 * F])];
    for what in ALL {
        fails(what, calls, &[LostMinus], SLOW_ROOT, Fault::Deadlock);
    }
    // Zeroed memory: `rootready` guards the one set that looks open, where there is such a word.
    fails(Allgather, calls, &[ZeroedOp], SLOW_ROOT, Fault::Deadlock);
    for what in ROOTED {
        assert!(printed::run(what, calls, SLOW_ROOT, &[ZeroedOp]).is_ok());
    }
}

#[test]
fn counts_are_copied_as_counts() {
    for what in ROOTED {
        fails(what, &[(0, [1, 2, 3])], &[WideCopy], FAST_ROOT, Fault::Overrun);
    }
}

#[test]
fn totals_are_wider_than_an_int() {
    for what in ALL {
        fails(what, &[(0, [0, 130, 1])], &[NarrowTotals], FAST_ROOT, Fault::Wrong);
    }
}

/// The same, with ints as they are: a block whose bytes an int can't count, most of them the same ones.
#[test]
fn two_gigabytes_go_through_the_queues() {
    const MIB: usize = 1 << 20;
    let all = bounded(|| {
        let cico = Cico { slots: 8, fragment: 1 << 16, sets: 2 };
        unisono_local::run(Params { cico: Some(cico), ..Params::new(P as u32) }, |mut c| {
            let mut displacements = [0; 2049];
            displacements[2048] = MIB as u64;
            let datatype = Datatype::Indexed { block: MIB as u64, displacements: &displacements };
            assert!(datatype.size() > Some(i32::MAX as u64));
            let sent: Vec<u8> = (0..2 * MIB).map(|at| (at / 509) as u8).collect();
            let me = c.rank();
            for what in ALL {
                let sends = if what == Scatter { me == 0 } else { me == 1 };
                let receives = if what == Scatter { me == 1 } else { me == 0 || what == Allgather };
                let nothing = || vec![0; 2 * MIB];
                let (mut all, mut own) = match (what, sends) {
                    (_, false) => (nothing(), nothing()),
                    (Scatter, true) => (sent.clone(), nothing()),
                    (_, true) => (nothing(), sent.clone()),
                };
                let blocks = Blocks::vary_mut(&mut all, &[0, 1, 0], &[0; P], datatype)?;
                call(&mut c, what, 0, blocks, Data::typed(&mut own, u64::from(me == 1), datatype)?)?;
                let received = if what == Scatter { &own } else { &all };
                assert!(*received == if receives { sent.clone() } else { nothing() }, "{what:?} on rank {me}");
            }
            Ok::<(), Error>(())
        })
    });
    assert_eq!(all.unwrap(), [Ok(()); P]);
}

#[test]
fn words_are_cleared_before_the_set_is_left() {
    // The slowest has left set 0 and not cleared its words, when that set comes again: new words are cleared, or old
    // ones read.
    for (what, calls, schedule, fault) in [
        (Scatter, &[(1, [F, 0, 0]), (1, [0, 0, 1]), (1, [F, 0, 0])], SLOW_ROOT, Fault::Deadlock),
        (Gather, &[(0, [0, F, F]), (1, [0, 0, F]), (1, [0, 0, F])], SLOW_ROOT, Fault::Wrong),
        (Allgather, &[(0, [F, F, F]), (0, [F, F, 0]), (0, [F, F, F])], FAST_ROOT, Fault::Deadlock),
    ] {
        fails(what, calls, &[LateClear], schedule, fault);
    }
}

#[test]
fn who_reads_clears() {
    for what in [Gather, Allgather] {
        fails(what, &[(0, [F, 3 * F, 3 * F])], &[NeverClears], FAST_ROOT, Fault::Wrong);
    }
}

/// Not a fault, but in the order 0 … p−1 all processes read one process's memory at the same time.
#[test]
fn everyone_reads_its_neighbour_first() {
    const CALL: Call = (0, [F, F, F]);
    for schedule in Schedule::all() {
        let firsts = |defects| printed::run(Allgather, &[CALL], schedule, defects).unwrap().map(Option::unwrap);
        assert_eq!(firsts(&[FromZero]), [1, 0, 0]);
        assert_eq!(firsts(&[]), [1, 2, 0]);
    }
    pass(Allgather, &[CALL]);
    // Ours, as far as each comes in one poll: the ranks below have filled their slots, and the last one has
    // nothing to wait for.
    let segment = Segment::new(params(P as u32)).unwrap();
    let counts = CALL.1.map(|count| count as u64);
    let displacements = one_after_the_other(&counts);
    for rank in 0..P as u32 {
        let mut comm = Comm::new(segment.clone(), *segment.layout(), rank).unwrap();
        let (mut own, mut all) = ([7; F], [0; P * F]);
        let receive = blocks(&mut all, &counts, &displacements).unwrap();
        let send = Some(Data::bytes_mut(&mut own));
        let allgather = P2Allgather::new(comm.member(), send, receive).unwrap();
        let mut machine = allgather.started(comm.member_mut());
        let awaited = match machine.poll(&mut comm).unwrap() {
            Poll::Wait(awaits) => awaits.first().peer,
            Poll::Done => None,
        };
        assert_eq!(awaited, (rank + 1 < P as u32).then_some(rank + 1));
    }
}

#[test]
fn as_printed_nothing_works() {
    for what in ALL {
        let calls: &[Call] = &[(0, [1, 1, 1]), (0, [1, 1, 1])];
        for schedule in Schedule::all() {
            let found = bounded(move || printed::run(what, calls, schedule, as_printed(what)));
            assert!(found.is_err(), "{what:?}, {schedule:?}");
        }
        pass(what, calls);
    }
}

//! The printed defects of paper P2 (PAPERS.md), each as a test: a model of the printed loop fails with it, the
//! same model without it passes, and so do the machines that ship, on the same calls.

mod printed;

use printed::{Call, Deadlock, Defects, F, P, S, W, byte};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use unisono_kernel::blocks::Blocks;
use unisono_kernel::buffer::Buf;
use unisono_kernel::comm::Comm;
use unisono_kernel::datatype::{Data, Datatype};
use unisono_kernel::driver::Communicator;
use unisono_kernel::error::{Argument, Bound, Cause, Error, PollError, Refusal};
use unisono_kernel::machine::Machine;
use unisono_kernel::region::Params;
use unisono_kernel::region::layout::Cico;
use unisono_kernel::shm::{allgather, gather, scatter};
use unisono_kernel::step::Step;
use unisono_local::{Local, Segment};

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

/// The segment of the printed model: two sets of one slot of four bytes.
fn params(ranks: u32) -> Params {
    let cico = Cico { slots: S as u32, fragment: F as u64, sets: W as u32 };
    Params { page: 128, cico: Some(cico), ..Params::new(ranks) }
}

fn blocks<'a>(memory: &'a mut [u8], counts: &'a [u64], displacements: &'a [u64]) -> Result<Blocks<'a>, Refusal> {
    // SAFETY: the memory is borrowed for as long as the blocks.
    unsafe { Blocks::vary(Buf::of_mut(memory), counts, displacements, Datatype::BYTE) }
}

fn one_after_the_other(counts: &[u64]) -> Vec<u64> {
    (0..counts.len()).map(|rank| counts[..rank].iter().sum()).collect()
}

/// Scatters, gathers and allgathers the blocks of each call, by the machines that ship.
fn mended(calls: &'static [Call]) {
    let all = bounded(move || {
        unisono_local::run(params(P as u32), |mut c| {
            for (number, &(root, counts)) in calls.iter().enumerate() {
                let counts = counts.map(|count| count as u64);
                let displacements = one_after_the_other(&counts);
                let block = |rank: usize| (0..counts[rank] as usize).map(move |at| byte(number, rank, at));
                let all: Vec<u8> = (0..P).flat_map(block).collect();
                let me = c.rank() as usize;
                let mut own = vec![0; counts[me] as usize];
                let mut sent = all.clone();
                let send = blocks(&mut sent, &counts, &displacements)?;
                let receive = Data::bytes_mut(&mut own);
                c.call(|me| scatter::cico::Cico::new(me, Some(send), Some(receive), root as u32))?;
                assert!(own.iter().copied().eq(block(me)), "scatterv of call {number} on rank {me}");
                for everyone in [false, true] {
                    let mut found = vec![0; all.len()];
                    let receive = blocks(&mut found, &counts, &displacements)?;
                    let send = Some(Data::bytes_mut(&mut own));
                    if everyone {
                        c.call(|me| allgather::cico::Cico::new(me, send, receive))?;
                    } else {
                        c.call(|me| gather::cico::Cico::new(me, send, Some(receive), root as u32))?;
                    }
                    assert!(found == all || !everyone && me != root, "call {number} on rank {me}: {found:?}");
                }
            }
            Ok::<(), Error>(())
        })
        .unwrap()
    });
    assert_eq!(all, [Ok(()); P]);
}

/// The print with one defect fails on these calls, without it does not; nor do the machines.
fn mends(calls: &'static [Call], defects: Defects) -> Result<bool, Deadlock> {
    let found = bounded(move || printed::run(calls, defects));
    assert_ne!(found, Ok(true), "as printed: {defects:?}");
    assert_eq!(bounded(move || printed::run(calls, Defects::default())), Ok(true));
    mended(calls);
    found
}

/// The same, where the failure is a deadlock.
fn deadlocks(calls: &'static [Call], defects: Defects) {
    assert_eq!(mends(calls, defects), Err(Deadlock));
}

const NONE: Defects = Defects {
    inverted_rootready: false,
    inverted_ctrl: false,
    clears_counts: false,
    untold: false,
    ends_early: false,
    no_set: false,
    unconsumed: false,
    lost_minus: false,
};

#[test]
fn unequal_blocks_do_not_deadlock() {
    // Rank 1 takes one set, rank 2 takes four; then the next call finds everyone at the same set.
    let calls: &[Call] = &[(0, [0, 1, 4 * F]), (0, [2, F, F])];
    deadlocks(calls, Defects { ends_early: true, ..NONE });
}

#[test]
fn a_root_whose_own_block_is_the_longest_or_the_shortest_does_not_deadlock() {
    deadlocks(&[(0, [1, F, 3 * F]), (1, [F, 9 * F, F])], Defects { ends_early: true, ..NONE });
    mended(&[(0, [9 * F, 1, 0]), (1, [0, 5 * F + 1, 0]), (2, [1, 2, 7 * F])]);
}

#[test]
fn no_bytes_at_all_take_one_set() {
    // A process that receives nothing can't know that nobody else receives anything.
    deadlocks(&[(0, [0, 0, 0]), (0, [5, 0, 0]), (1, [1, 1, 1])], Defects { no_set: true, ..NONE });
}

#[test]
fn everyone_consumes_rootready() {
    // Rank 1 receives nothing first, in set 0; two sets later a stale word would show it the old counts.
    let calls: &[Call] = &[(0, [0, 0, 1]), (0, [0, 1, 1]), (0, [0, 3 * F, 2 * F])];
    let _ = mends(calls, Defects { unconsumed: true, ..NONE });
}

#[test]
fn a_reader_clears_rootready_and_not_its_count() {
    let calls: &[Call] = &[(0, [0, 1, 1]), (0, [0, 1, 1]), (0, [0, 3 * F, 3 * F])];
    let _ = mends(calls, Defects { clears_counts: true, ..NONE });
}

#[test]
fn who_waits_for_rootready_waits_until_it_is_there() {
    let _ = mends(&[(0, [1, 3 * F, 3 * F])], Defects { inverted_rootready: true, ..NONE });
}

#[test]
fn who_waits_for_a_fragment_waits_until_it_is_there() {
    let calls: &[Call] = &[(0, [1, 2, 3])];
    // It either reads what is not there yet, or waits for ever for what is there to go away.
    let _ = mends(calls, Defects { inverted_ctrl: true, ..NONE });
}

#[test]
fn who_is_not_the_root_uses_counts_after_it_is_told() {
    let calls: &[Call] = &[(0, [0, 1, 3 * F]), (0, [0, 1, 1])];
    let _ = mends(calls, Defects { untold: true, ..NONE });
}

#[test]
fn a_fresh_set_does_not_look_open() {
    // Rank 1 has nothing in the second set: it leaves a set that looks open before anyone has opened it.
    let calls: &[Call] = &[(0, [0, 1, 2 * F])];
    deadlocks(calls, Defects { lost_minus: true, ..NONE });
}

#[test]
fn as_printed_nothing_works() {
    let all = Defects {
        inverted_rootready: true,
        inverted_ctrl: true,
        clears_counts: true,
        untold: true,
        ends_early: true,
        no_set: true,
        unconsumed: true,
        lost_minus: true,
    };
    let calls: &[Call] = &[(0, [1, 1, 1]), (0, [1, 1, 1])];
    let _ = mends(calls, all);
}

/// The print reads in the order 0 … p−1, so that everyone meets at process 0.
#[test]
fn everyone_reads_its_neighbour_first() {
    let segment = Segment::new(params(4)).unwrap();
    let counts = [3; 4];
    let displacements = one_after_the_other(&counts);
    for rank in 0..4u32 {
        let mut comm = Comm::new(segment.clone(), *segment.layout(), rank).unwrap();
        let (mut own, mut all) = ([7; 3], [0; 12]);
        let receive = blocks(&mut all, &counts, &displacements).unwrap();
        let send = Some(Data::bytes_mut(&mut own));
        let mut machine = allgather::cico::Cico::new(comm.member_mut(), send, receive).unwrap();
        let awaited = match machine.poll(&mut comm).unwrap() {
            Step::Wait(awaits) => awaits.first().peer,
            Step::Done => None,
        };
        // The ranks below have filled their slots, and rank 3 has no more to wait for.
        assert_eq!(awaited, (rank < 3).then_some(rank + 1));
    }
}

mod hostile;
mod refused;

//! Teams whose ranks are threads, with messages through memory.

use super::*;
use crate::messages::network;
use std::time::Instant;
use unisono_kernel::Rank;
use unisono_kernel::error::{Argument, Bound};
use unisono_kernel::machine::p2p::P2p;
use unisono_kernel::msg::{allreduce, bcast};
use unisono_kernel::op::{Element, Op, Operation};
use unisono_kernel::pattern::Seat;

fn team(ranks: u32, member: impl Fn(Team, Seat) + Sync) {
    let (_, endpoints) = network::endpoints(ranks);
    std::thread::scope(|scope| {
        for endpoint in endpoints {
            let member = &member;
            let seat = Seat::new(endpoint.rank(), endpoint.size()).unwrap();
            scope.spawn(move || member(Team::new(endpoint), seat));
        }
    });
}

fn plan_of(seat: Seat, bytes: u64, root: Rank) -> bcast::Plan {
    bcast::plan(seat, bytes, root, bcast::Algorithm::Knomial(2)).unwrap()
}

#[test]
fn a_team_runs_one_collective_after_another() {
    team(5, |mut team, seat| {
        for bytes in [8_u64, 800, 20_000] {
            for round in 0..3_u8 {
                let send = vec![round + seat.rank() as u8 + 1; bytes as usize];
                let mut receive = vec![0; bytes as usize];
                let algorithm = allreduce::Algorithm::Rabenseifner;
                let plan =
                    allreduce::plan(seat, bytes, Op::new(Operation::Sum, Element::U8).unwrap(), false, algorithm)
                        .unwrap();
                // SAFETY: no call fails.
                unsafe { team.run(plan, &send, &mut receive) }.unwrap();
                assert!(receive.iter().all(|&byte| byte == 5 * round + 15), "{bytes} {round}");
            }
        }
        assert_eq!(team.messages().rank(), seat.rank());
        assert_eq!(team.messages_mut().size(), 5);
    });
}

#[test]
fn a_buffer_that_is_too_short_is_refused_and_the_team_can_be_used() {
    team(2, |mut team, seat| {
        // SAFETY: refused.
        let error = unsafe { team.run(plan_of(seat, 64, 0), &[], &mut [0; 63]) }.unwrap_err();
        assert_eq!(error, AttachError::Refused(Refusal::new(Argument::Bytes, 63, Bound::AtLeast(64))));
        assert_eq!(error.to_string(), "bytes is 63, must be at least 64");
        let mut buffer = [seat.rank() as u8; 64];
        // SAFETY: does not fail.
        unsafe { team.run(plan_of(seat, 64, 1), &[], &mut buffer) }.unwrap();
        assert_eq!(buffer, [1; 64]);
    });
}

#[test]
fn a_wait_that_is_too_long_names_the_rank_and_the_team_fails() {
    team(2, |mut team, seat| {
        team.set_timeout(Some(Duration::from_millis(100)));
        if seat.rank() == 1 {
            let (mut buffer, begin) = ([0; 8], Instant::now());
            // SAFETY: nothing is sent.
            let error = unsafe { team.run(plan_of(seat, 8, 0), &[], &mut buffer) }.unwrap_err();
            assert!(begin.elapsed() >= Duration::from_millis(100));
            assert_eq!(error, AttachError::Wait(WaitError::Late(0)));
            assert_eq!(error.to_string(), "rank 0 is late");
            // SAFETY: as above.
            assert_eq!(unsafe { team.run(plan_of(seat, 8, 1), &[], &mut buffer) }, Err(error));
        }
    });
}

#[test]
fn messages_of_other_lengths_are_named() {
    team(2, |mut team, seat| {
        let (bytes, mut buffer) = (8 + u64::from(seat.rank()), [0; 9]);
        // SAFETY: the data is copied at once.
        let result = unsafe { team.run(plan_of(seat, bytes, 0), &[], &mut buffer) };
        if seat.rank() == 1 {
            let text = "message to or from rank 0: a message has another length than its receive";
            assert_eq!(result.unwrap_err().to_string(), text);
        }
    });
}

#[test]
fn errors_say_what_they_are() {
    for (error, words) in [
        (AttachError::Library("no such file".into()), "no such file"),
        (P2pError(-3).into(), "the communicator is MPI_COMM_NULL"),
        (AttachError::Wait(WaitError::Died(3)), "Died(3)"),
        (AttachError::Poll(PollError::Overrun { peer: 1, expected: 2, found: 3 }), "corrupt word of rank 1: "),
    ] {
        assert!(error.to_string().starts_with(words), "{error}");
    }
}

#[test]
fn a_library_that_is_not_unisonos_is_an_error_with_the_loaders_text() {
    // SAFETY: there is no such file.
    let error = unsafe { Library::load(c"/nowhere/libunisono.so") }.unwrap_err();
    assert!(error.to_string().contains("/nowhere/libunisono.so"), "{error}");
    // SAFETY: the C library, which is in this process already.
    let error = unsafe { Library::load(c"libc.so.6") }.unwrap_err();
    assert!(error.to_string().contains("unisono_messages_connect"), "{error}");
    // SAFETY: this program has no such function.
    assert!(unsafe { Library::of_process() }.is_err());
}

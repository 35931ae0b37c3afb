//! Calls that are started, and tested until they are complete.

use super::*;

#[test]
fn every_collective_can_be_started() {
    for nodes in [&[0, 1][..], &[0, 1, 0, 2, 1], &[0, 0, 0, 1, 1, 2]] {
        job(nodes, |seat| {
            let seat = Seat { starts: true, ..*seat };
            for (round, most) in (0..).zip([0, 61, 9000]) {
                seat.every_collective(most);
                seat.barrier(round);
            }
        });
    }
}

/// Tests a request once: its end, if there is one.
fn tested(request: &mut *mut Started) -> Option<c_int> {
    let mut done = 0;
    // SAFETY: a request of this thread's.
    let code = unsafe { unisono_mpi_levels_test(request, &raw mut done) };
    (done == 1).then_some(code)
}

#[test]
fn started_calls_run_in_their_order_whichever_is_tested() {
    const CALLS: usize = 5;
    const LEN: u64 = 100_000;
    job(&[0, 1, 0, 1, 2], |seat| {
        let levels = seat.levels;
        let (mut buffers, mut requests) = (vec![vec![0; LEN as usize]; CALLS], [null_mut(); CALLS]);
        for (root, (buffer, request)) in (0..).zip(buffers.iter_mut().zip(&mut requests)) {
            if seat.me == root {
                buffer.copy_from_slice(&bytes_of(root, root, LEN));
            }
            // SAFETY: a buffer of ours, which stays until the request is complete.
            fine(unsafe { unisono_mpi_levels_bcast(levels, buffer.as_mut_ptr().cast(), LEN, root, request) });
        }
        // Each rank asks for another one: all before it are complete then, too, though nobody has asked.
        let asked = seat.me as usize;
        while tested(&mut requests[asked]).map(fine).is_none() {
            std::thread::yield_now();
        }
        for (root, buffer) in buffers.iter().enumerate().take(asked + 1) {
            assert!(*buffer == bytes_of(root as Rank, root as Rank, LEN), "{root} at {asked}");
        }
        // A call that waits comes after all that were started.
        seat.barrier(0);
        for (root, (buffer, request)) in (0..).zip(buffers.iter().zip(&mut requests)) {
            assert!(*buffer == bytes_of(root, root, LEN), "{root}");
            assert_eq!(tested(request), Some(0));
            assert_eq!((tested(request), request.is_null()), (Some(0), true), "null is complete");
        }
    });
}

#[test]
fn a_call_that_was_started_may_fail_in_its_turn() {
    failing(&[0, 1, 1], None, |seat| {
        let levels = seat.levels;
        let (mut buffer, mut first, mut second) = ([seat.me as u8; 8], null_mut(), null_mut());
        let (at, root) = (buffer.as_mut_ptr().cast(), if seat.me == 2 { 3 } else { 0 });
        // SAFETY: a buffer of ours, which stays until the requests are complete.
        fine(unsafe { unisono_mpi_levels_bcast(levels, at, 8, 1, &raw mut first) });
        // SAFETY: as above.
        fine(unsafe { unisono_mpi_levels_bcast(levels, at, 8, root, &raw mut second) });
        let end = |request: &mut _| loop {
            if let Some(code) = tested(request) {
                return code;
            }
            std::thread::yield_now();
        };
        fine(end(&mut first));
        assert_eq!(buffer, [1; 8]);
        let code = end(&mut second);
        let text = if code == 0 { seat.until_told() } else { said(code) };
        assert!(text.contains("root is 3, must be below 3"), "{text}");
        // SAFETY: two pointers that are null.
        let code = unsafe { unisono_mpi_levels_test(null_mut(), null_mut()) };
        assert_eq!(code, Class::Null.number());
    });
}

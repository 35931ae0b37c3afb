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
        let (mut buffers, mut first, mut second) = ([[seat.me as u8; 8]; 2], null_mut(), null_mut());
        let [to, other] = &mut buffers;
        let root = if seat.me == 2 { 3 } else { 0 };
        // SAFETY: a buffer of ours, which stays until the request is complete.
        fine(unsafe { unisono_mpi_levels_bcast(levels, to.as_mut_ptr().cast(), 8, 1, &raw mut first) });
        // SAFETY: as above.
        fine(unsafe { unisono_mpi_levels_bcast(levels, other.as_mut_ptr().cast(), 8, root, &raw mut second) });
        let end = |request: &mut _| loop {
            if let Some(code) = tested(request) {
                return code;
            }
            std::thread::yield_now();
        };
        fine(end(&mut first));
        assert_eq!(buffers[0], [1; 8]);
        let code = end(&mut second);
        let text = if code == 0 { seat.until_told() } else { said(code) };
        assert!(text.contains("root is 3, must be below 3"), "{text}");
        // SAFETY: two pointers that are null.
        let code = unsafe { unisono_mpi_levels_test(null_mut(), null_mut()) };
        assert_eq!(code, Class::Null.number());
    });
}

#[test]
fn a_rank_that_can_take_part_no_more_ends_first_what_it_has_started() {
    const LEN: u64 = 100_000;
    failing(&[0, 1, 1], None, |seat| {
        // It is never dropped: after an error messages may still be read there.
        let (buffer, mut request) = (vec![0; LEN as usize].leak(), null_mut());
        if seat.me == 1 {
            buffer.copy_from_slice(&bytes_of(1, 1, LEN));
        }
        // SAFETY: a buffer of ours, which stays until the request is complete.
        fine(unsafe { unisono_mpi_levels_bcast(seat.levels, buffer.as_mut_ptr().cast(), LEN, 1, &raw mut request) });
        for _ in 0..if seat.me == 2 { 2 } else { 0 } {
            // SAFETY: a communicator.
            unsafe { unisono_mpi_levels_report(seat.levels) };
        }
        let end = loop {
            match tested(&mut request) {
                Some(code) => break code,
                None => std::thread::yield_now(),
            }
        };
        // Who is still in it when rank 2 has ended it hears of that there.
        if end == 0 {
            assert!(*buffer == bytes_of(1, 1, LEN), "{}", seat.me);
        }
        assert!(seat.me != 2 || end == 0, "{}", said(end));
        let text = if end == 0 { seat.until_told() } else { said(end) };
        assert!(text.starts_with("rank 2 died "), "{text}");
    });
}

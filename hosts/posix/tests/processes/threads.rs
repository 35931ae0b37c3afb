//! Two threads of each process use two communicators at the same time: each makes others, lets calls fail, and renews.

use super::communicators::{Done, joined, nothing_is_leased, succeeds, verify};
use unisono_posix::{Intracomm, PosixError};

/// Makes communicators by all three calls, one after the other; every fifth one gets a wrong root and is renewed.
/// `thread` numbers the threads.
fn work(mut comm: Intracomm, thread: u64) -> Result<(), PosixError> {
    let everyone: Vec<u32> = (0..comm.size()).collect();
    let color = comm.rank() % 2;
    for round in 0..60 {
        let mut made = match (round + thread) % 3 {
            0 => comm.dup()?,
            1 => comm.split(Some(color), 0)?.expect("a color"),
            _ => comm.create_group(&everyone, 1)?,
        };
        let members: Vec<u32> = made.place().members().into();
        let verified = verify(&mut made, round, &members);
        if round % 5 != 0 {
            verified?;
            continue;
        }
        // A slow rank gets the refusal while it still verifies.
        let error = match verified {
            Ok(()) => made.bcast(&mut [0], 1000).expect_err("no such root").into(),
            Err(error) => error,
        };
        assert!(error.to_string().contains("root is 1000"), "{error}");
        made.renew()?;
        verify(&mut made, round, &members)?;
    }
    Ok(())
}

pub(super) fn threads() -> Done {
    let mut world = joined(Some(32 << 20))?;
    let comms = [world.dup()?, world.dup()?];
    std::thread::scope(|scope| {
        let threads = (0..).zip(comms).map(|(thread, comm)| scope.spawn(move || work(comm, thread)));
        threads.collect::<Vec<_>>().into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;
    nothing_is_leased(&mut world)
}

#[test]
fn two_threads_make_communicators_at_once() {
    for ranks in [1, 2, 4] {
        drop(succeeds("threads", "", ranks));
    }
}

//! A thousand communicators that live at once: each has its own queues, and memory exists only where it was used.

use super::communicators::{Done, joined, succeeds};
use unisono_kernel::op::Op;
use unisono_posix::arena::page;
use unisono_posix::{Intracomm, PosixError};

const THOUSAND: u64 = 1000;

fn sum(comm: &mut Intracomm, mine: u64) -> Result<u64, PosixError> {
    let mut word = mine.to_ne_bytes();
    comm.allreduce_in_place(&mut word, Op::SUM_U64)?;
    Ok(u64::from_ne_bytes(word))
}

fn touched(world: &mut Intracomm) -> Result<u64, PosixError> {
    world.barrier()?;
    let mine = world.place().usage().touched;
    sum(world, mine)
}

/// Makes a thousand communicators, each with one short allreduce.
pub(super) fn thousand() -> Done {
    let mut world = joined(None)?;
    let size = u64::from(world.size());
    let before = touched(&mut world)?;
    let (mut live, mut bytes) = (Vec::new(), 0);
    for _ in 0..THOUSAND {
        let mut comm = world.dup()?;
        bytes += comm.place().bytes();
        assert_eq!(sum(&mut comm, 1)?, size);
        live.push(comm);
    }
    let each = (touched(&mut world)? - before) / THOUSAND;
    // The page of the state word; for each rank a page of control lines and one of posted lines.
    assert_eq!(each, page() + size * 2 * page(), "touched by each, in bytes");
    assert!(each < bytes / THOUSAND / 5);
    Ok(())
}

#[test]
fn a_thousand_that_live_cost_the_pages_that_they_touch() {
    for ranks in [2, 3] {
        drop(succeeds("thousand", "", ranks));
    }
}

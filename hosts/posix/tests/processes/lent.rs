//! Messages that are lent: a rank dies while others read its memory, and the system forbids reading one rank's.

use super::body::{Failure, argument, launched, say};
use super::death::error;
use super::{Scene, kill, mappers, runs};
use core::fmt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::op::{Element, Op, Operation};
use unisono_kernel::region::Params;
use unisono_posix::launch::Exit;
use unisono_posix::lending::LendFrom;
use unisono_posix::{Intracomm, Joined, Options, Waiting, join};

/// Bytes of each block. Ranks lend from half of it on.
const BYTES: usize = 40_000;

static LINES: AtomicU32 = AtomicU32::new(0);

fn log(_: fmt::Arguments<'_>) {
    LINES.fetch_add(1, Relaxed);
}

fn joined() -> Result<Joined, Failure> {
    let options = Options { lend_from: Some(LendFrom::bytes(BYTES / 2)), log: Some(log), ..Options::default() };
    Ok(join(&mut launched()?, Params::new, &options)?)
}

/// The byte of a block that goes from one rank to another.
fn byte(round: u32, from: u32, to: u32) -> u8 {
    (round * 31 + from * 7 + to * 3) as u8
}

/// Blocks of `from`, one for each of `ranks`.
fn blocks(round: u32, from: u32, ranks: u32) -> Vec<u8> {
    (0..ranks).flat_map(|to| [byte(round, from, to); BYTES]).collect()
}

/// One call of each collective in which memory is lent, by other ways to the same data: each rank checks what it gets.
fn calls(comm: &mut Intracomm, round: u32) -> Result<(), Failure> {
    let (me, ranks) = (comm.rank(), comm.size());
    let root = round % ranks;
    let mut data = if me == root { blocks(round, root, 1) } else { vec![0; BYTES] };
    comm.bcast(&mut data, root)?;
    assert_eq!(data, blocks(round, root, 1));

    let block = BYTES as u64;
    let mut own = blocks(round, me, 1);
    let all: Vec<u8> = (0..ranks).flat_map(|rank| blocks(round, rank, 1)).collect();
    let mut got = vec![0; all.len()];
    comm.allgather(Some(Data::bytes_mut(&mut own)), Blocks::equal_mut(&mut got, ranks, block, Datatype::BYTE)?)?;
    assert_eq!(got, all);

    let mut got = vec![0; all.len()];
    let mut send = blocks(round, me, ranks);
    let send = Blocks::equal_mut(&mut send, ranks, block, Datatype::BYTE)?;
    comm.alltoall(Some(send), Blocks::equal_mut(&mut got, ranks, block, Datatype::BYTE)?)?;
    let expected: Vec<u8> = (0..ranks).flat_map(|from| [byte(round, from, me); BYTES]).collect();
    assert_eq!(got, expected);

    scatter(comm, round)?;

    let mut sums = vec![u8::from(me == 0); BYTES];
    sums[0] = me as u8;
    comm.allreduce_in_place(&mut sums, Op::new(Operation::Sum, Element::U8)?)?;
    assert!(sums[0] == (0..ranks).sum::<u32>() as u8 && sums[1..].iter().all(|sum| *sum == 1));
    Ok(())
}

/// A scatter whose root lends its blocks: each rank checks its own.
fn scatter(comm: &mut Intracomm, round: u32) -> Result<(), Failure> {
    let (me, ranks) = (comm.rank(), comm.size());
    let root = round % ranks;
    let mut send = if me == root { blocks(round, root, ranks) } else { vec![] };
    let send = if me == root { Some(Blocks::equal_mut(&mut send, ranks, BYTES as u64, Datatype::BYTE)?) } else { None };
    let mut got = vec![0; BYTES];
    comm.scatter(send, Some(Data::bytes_mut(&mut got)), root)?;
    assert_eq!(got, [byte(round, root, me); BYTES]);
    Ok(())
}

/// Ranks that wait by spinning, as where each has a core: readers of a scatter's blocks begin in turn. Each root lends more often
/// than a trial of gaps takes.
pub(super) fn in_turn() -> Result<(), Failure> {
    let spin = Waiting::Spin;
    let options = Options { lend_from: Some(LendFrom::bytes(BYTES / 2)), spin, ..Options::default() };
    let Joined { mut communicator, waiting, .. } = join(&mut launched()?, Params::new, &options)?;
    assert!(!waiting.yields);
    (0..100).try_for_each(|round| scatter(&mut communicator, round))
}

#[test]
fn readers_of_one_rank_begin_in_turn() {
    let scene = Scene::new("in-turn");
    let outcome = scene.run("lent-in-turn", "", 4);
    assert_eq!(outcome.exits, [Exit::Code(0); 4], "{outcome}");
}

/// Until something ends them.
pub(super) fn endless() -> Result<(), Failure> {
    let Joined { mut communicator, segment, .. } = joined()?;
    if communicator.rank() == 0 {
        say("inode", segment.handle()?.inode);
    }
    say("joined", "");
    (0..).try_for_each(|round| calls(&mut communicator, round))
}

#[test]
fn a_rank_that_dies_while_memory_is_lent_is_named_by_all_others() {
    for round in 0..12u64 {
        let scene = Scene::new(&format!("lent-{round}"));
        let running = scene.spawn("lent-endless", 3);
        let pids = running.pids().to_vec();
        (0..3).for_each(|rank| drop(scene.said(rank, "joined")));
        let inode = scene.said(0, "inode");
        std::thread::sleep(std::time::Duration::from_micros(10_000 + 770 * round));
        let victim = (round % 3) as usize;
        kill(pids[victim]);
        let outcome = running.wait().unwrap();
        assert_eq!((outcome.first, outcome.killed.len()), (Some(victim as u32), 0), "round {round}: {outcome}");
        assert_eq!(outcome.exits[victim], Exit::Signal(9), "{outcome}");
        for rank in (0..3).filter(|&rank| rank as usize != victim) {
            let (_, text) = error(&scene, rank);
            assert!(text.starts_with(&format!("rank {victim} died")), "round {round}, rank {rank}: {text}");
            assert_eq!(outcome.exits[rank as usize], Exit::Code(3), "{outcome}");
        }
        assert_eq!(mappers(&inode), [""; 0]);
        assert!(pids.iter().all(|&pid| !runs(pid)));
    }
}

/// Starts this rank anew without capabilities: a privileged process may read any other one's memory. Returns in the new
/// program.
fn unprivileged() {
    const MARK: &str = "UNISONO_TEST_UNPRIVILEGED";
    if std::env::var_os(MARK).is_some() {
        return;
    }
    // What is not in this set no program gets that is started from here. Where this process may not take anything from it,
    // it has no capabilities itself.
    for capability in 0..64 {
        // SAFETY: it takes numbers.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability) };
    }
    let mut words = std::env::args_os();
    let error = Command::new(words.next().unwrap()).args(words).env(MARK, "1").exec();
    panic!("exec: {error}");
}

/// The ranks of the argument become unreadable after some rounds, while the others stay as they are.
pub(super) fn forbidden() -> Result<(), Failure> {
    unprivileged();
    let Joined { mut communicator, .. } = joined()?;
    let mut second = communicator.dup()?;
    let me = communicator.rank().to_string();
    (0..4).try_for_each(|round| calls(&mut communicator, round))?;
    say("before", LINES.load(Relaxed));
    communicator.barrier()?;
    if argument().split(' ').any(|rank| rank == me) {
        // SAFETY: it takes numbers.
        assert_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) }, 0);
    }
    communicator.barrier()?;
    (4..40).try_for_each(|round| calls(&mut communicator, round).and_then(|()| calls(&mut second, round)))?;
    say("after", LINES.load(Relaxed));
    Ok(())
}

#[test]
fn where_the_system_forbids_to_read_a_rank_messages_go_through_the_segment() {
    for (unreadable, lines) in [("1", [1, 0, 1]), ("0 1 2", [1; 3]), ("", [0; 3])] {
        let scene = Scene::new(&format!("forbidden-{}", unreadable.len()));
        let outcome = scene.run("lent-forbidden", unreadable, 3);
        assert_eq!(outcome.exits, [Exit::Code(0); 3], "{unreadable}: {outcome}");
        for (rank, lines) in (0..).zip(lines) {
            assert_eq!(scene.said(rank, "before"), "0", "{unreadable}: rank {rank}");
            assert_eq!(scene.said(rank, "after"), lines.to_string(), "{unreadable}: rank {rank}");
        }
    }
}

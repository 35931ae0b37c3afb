//! Ranks whose large blocks lie in the heap, by the preloaded library alone: collectives read them where they lie. Without a
//! harness, because the program starts itself as ranks.

use std::path::Path;
use std::time::Duration;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::op::Op;
use unisono_kernel::region::Params;
use unisono_posix::bootstrap::Launched;
use unisono_posix::launch::{Bind, Launch};
use unisono_posix::{Options, heap, join, placement};

const RANKS: u32 = 3;

fn main() {
    if std::env::args().any(|word| word == "--list") {
        return;
    }
    match Launched::from_env().expect("the launcher's words") {
        Some(launcher) => rank(launcher),
        None => launch(),
    }
}

fn launch() {
    let test = std::env::current_exe().expect("the test has a path");
    let library = test.parent().unwrap_or(Path::new(".")).join("libunisono_heap.so");
    let env = vec![("LD_PRELOAD".into(), library.into())];
    let (program, args, grace) = (test.into(), Vec::new(), Duration::from_secs(10));
    let outcome = Launch { ranks: RANKS, bind: Bind::Core, program, args, env, grace }.run().expect("the ranks start");
    assert!(outcome.success(), "{outcome}");
    println!("ranks: collectives on {RANKS} ranks' own blocks passed");
}

/// How many heaps of others this process has mapped, to read them.
fn mapped() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the maps");
    maps.lines().filter(|line| line.contains("memfd:unisono") && line.contains(" r--s ")).count()
}

fn rank(mut launcher: Launched) {
    let mut joined = join(&mut launcher, Params::new, &Options::default()).expect("all ranks join");
    let comm = &mut joined.communicator;
    let (me, size) = (comm.rank(), comm.size());
    let (mut pages, mut misplaced, node) = (0, 0, joined.placement.node);
    let heap = heap::of_process().expect("a heap");
    assert_eq!(mapped(), 0, "nothing is mapped before it is needed");
    for (round, len) in [2047, 2048, 5000, 100_000, 1 << 18].into_iter().enumerate() {
        let value = |rank: u32, at: usize| (rank as usize * 7 + at * 3 + round) as u64;
        let mine: Vec<u64> = (0..len).map(|at| value(me, at)).collect();
        assert_eq!(heap.holds(mine.as_ptr().cast()), len >= 2048);
        let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        let root = round as u32 % size;
        let mut sent = bytes(&mine);
        comm.bcast(&mut sent, root).expect("bcast");
        assert_eq!(sent, bytes(&(0..len).map(|at| value(root, at)).collect::<Vec<_>>()));
        let mut sum = bytes(&mine);
        comm.allreduce_in_place(&mut sum, Op::SUM_U64).expect("allreduce");
        let expected = (0..len).map(|at| (0..size).map(|rank| value(rank, at)).sum());
        assert_eq!(sum, bytes(&expected.collect::<Vec<u64>>()));
        if heap.holds(mine.as_ptr().cast()) {
            let memory = Buf::new(mine.as_ptr().cast_mut().cast(), size_of_val(&mine[..]));
            let found = placement::verify_memory(memory, me, node);
            (pages, misplaced) = (pages + found.checked, misplaced + found.misplaced.len());
        }
    }
    assert!(mapped() >= 1, "others' blocks were copied from where they lie");
    println!("ranks: rank {me}, node {node}: {pages} pages of its own blocks, {misplaced} misplaced");
    assert!(pages > 0 && misplaced == 0);
    let (usage, block) = (heap.usage(), vec![1_u8; 100_000]);
    let grown = heap.usage();
    assert!(heap.holds(block.as_ptr()) && grown.used >= usage.used + 100_000, "{usage:?} {grown:?}");
    assert!(grown.touched >= grown.used.min(100_000), "{grown:?}");
}

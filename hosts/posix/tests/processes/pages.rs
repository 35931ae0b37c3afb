//! Huge pages and memory policies on request. The test does not know whether the machine has huge pages: both outcomes
//! are right, if the report agrees with the kernel (the body reads smaps itself) and a fallback is explained once.

use super::Scene;
use super::body::{Failure, argument, launched, say, smaps};
use super::communicators::complaints;
use super::pool::Pool;
use std::fs::read_to_string;
use unisono_kernel::region::Params;
use unisono_posix::launch::Bind;
use unisono_posix::pages::{HUGE, Kind};
use unisono_posix::{Allocation, Joined, Limit, Options, Pages, PosixError, heap, join};

/// The log that the ranks, which have ended, wrote about a topic, if they wrote one.
fn log(scene: &Scene, topic: &str) -> Option<String> {
    read_to_string(scene.directory.join(format!("{topic}-0"))).ok()
}

#[test]
fn what_came_of_huge_pages_is_what_smaps_says() {
    for ranks in [1, 3] {
        let scene = Scene::new(&format!("pages-{ranks}"));
        let outcome = scene.run("pages", "", ranks);
        assert!(outcome.success(), "{outcome}\n{}", complaints(&scene, ranks));
        let said: Vec<_> = (0..ranks).map(|rank| scene.said(rank, "pages")).collect();
        println!("{}", said[0]);
        assert!(said.iter().all(|one| *one == said[0]), "{said:?}");
        let log_of_pages = log(&scene, "log");
        assert_eq!(log_of_pages.is_some(), said[0].starts_with("true "), "{said:?}");
        if let Some(line) = log_of_pages {
            assert!(
                line.starts_with("huge pages were asked for, the segment has ")
                    && line.contains(": no huge pages of the pool: "),
                "{line}"
            );
        }
        let bound = (0..ranks).all(|rank| scene.said(rank, "bound") == "true");
        assert_eq!(log(&scene, "unbound").is_none(), bound);
    }
}

#[test]
fn the_environment_overrides_and_is_checked() {
    let launch = |name: &str, variable: &str, value: &str| {
        let scene = Scene::new(name);
        let mut launch = scene.launch("pages", "", 2, Bind::None);
        launch.env.push((variable.into(), value.into()));
        assert!(!launch.run().unwrap().success());
        (0..2).map(|rank| super::death::error(&scene, rank).1).collect::<Vec<_>>()
    };
    let errors = launch("pages-word", "UNISONO_PAGES", "large");
    assert!(errors.iter().any(|error| error == "UNISONO_PAGES is \"large\", must be default or huge"), "{errors:?}");
    let errors = launch("policy-word", "UNISONO_MBIND", "interleave");
    assert!(errors.iter().any(|error| error.starts_with("UNISONO_MBIND is \"interleave\"")), "{errors:?}");
}

#[test]
fn a_rank_that_asks_for_other_pages_is_named() {
    let scene = Scene::new("other-pages");
    assert!(!scene.run("other-pages", "", 3).success());
    for rank in 0..3 {
        let (_, error) = super::death::error(&scene, rank);
        assert_eq!(error, "rank 1: asks for other pages than rank 0 (UNISONO_PAGES)");
    }
}

/// Bytes of the blocks that are lent: not a multiple of huge pages.
const BLOCK: usize = 5_000_000;

/// The bytes of a block.
fn bytes(block: &mut Allocation) -> &mut [u8] {
    // SAFETY: the block is this value's, which is borrowed as long as the result lives.
    unsafe { std::slice::from_raw_parts_mut(block.buf().ptr(), block.buf().len()) }
}

/// Asks for huge pages. Blocks of each rank's heap are lent and read by the others; what the heap says of its pages is what
/// the kernel says. With the pool's pages it has no blocks that the pool has no room for.
pub(super) fn heap() -> Result<(), Failure> {
    let log = |line: std::fmt::Arguments<'_>| {
        let text = line.to_string();
        say(if text.contains("the heaps") { "heaps" } else { "log" }, text)
    };
    let options = Options { pages: Pages::Huge, log: Some(log), ..Options::default() };
    let Joined { mut communicator, .. } = join(&mut launched()?, Params::new, &options)?;
    let heap = heap::of_process()?;
    let mut block = communicator.allocate(BLOCK)?;
    let sent = |root: u32| (0..BLOCK).map(|at| (at * 3 + root as usize * 7 + (at >> 12)) as u8).collect::<Vec<_>>();
    bytes(&mut block).copy_from_slice(&sent(communicator.rank()));
    let mut received = vec![0; BLOCK];
    for root in 0..communicator.size() {
        let data = if communicator.rank() == root { bytes(&mut block) } else { &mut received[..] };
        communicator.bcast(data, root)?;
        assert!(*data == sent(root), "from {root}");
    }
    let maps = read_to_string("/proc/self/maps")?;
    let read = maps.lines().filter(|line| line.contains("memfd:unisono") && line.contains(" r--s ")).count();
    assert_eq!(
        read as u32,
        communicator.size() - 1,
        "the others' heaps are mapped, since they were lent something there"
    );

    let (kind, found) = (heap.place().kind, smaps(heap.place().handle));
    let held = BLOCK as u64 / HUGE * HUGE;
    match kind {
        Kind::Hugetlb => assert!(found.1 && found.0.huge >= held, "{found:?}"),
        Kind::Transparent => assert!(!found.1 && found.0.bytes >= held, "{found:?}"),
        Kind::Ordinary => assert!(found.0.huge == 0 && found.0.bytes >= held, "{found:?}"),
    }
    assert_eq!(heap.why().is_empty(), kind == Kind::Hugetlb, "{}", heap.why());
    let all = heap.place().bytes - (64 << 20);
    for turn in 0..communicator.size() {
        communicator.barrier()?;
        if turn != communicator.rank() || argument() != "pool" {
            continue;
        }
        let before = heap.usage();
        let refused = communicator.allocate(all as usize).map(drop);
        assert!(matches!(refused, Err(PosixError::Space { limit: Limit::Pool, .. })), "{refused:?}");
        assert!(!heap.resize(block.buf().ptr(), all as usize));
        assert_eq!(heap.usage(), before, "nothing of what was refused stays");
        // Longer than what is kept: its pages go back, but for parts of huge ones at its ends.
        drop(communicator.allocate(70 << 20)?);
        assert!(heap.usage().touched < 70 << 20, "{:?}", heap.usage());
        let mut again = communicator.allocate(70 << 20)?;
        assert!(bytes(&mut again).iter().all(|&byte| byte == 0));
    }
    communicator.barrier()?;
    say("heap", format_args!("{kind:?}"));
    Ok(())
}

/// The heaps of two ranks: their pages, and the line that says why they are ordinary ones.
fn heaps(argument: &str) -> (String, Option<String>) {
    let scene = Scene::new(&format!("heap-{argument}"));
    let outcome = scene.run("heap-pages", argument, 2);
    assert!(
        outcome.success(),
        "{outcome}
{}",
        complaints(&scene, 2)
    );
    (scene.said(0, "heap"), log(&scene, "heaps"))
}

#[test]
fn a_heap_has_huge_pages_or_a_line_says_why_not() {
    let (kind, line) = heaps("any");
    println!("{kind} {line:?}");
    assert_eq!(line.is_some(), kind == "Ordinary", "{line:?}");
    if let Some(line) = line {
        let said = "huge pages were asked for, the heaps of 2 ranks have ordinary pages, rank 0 the first: \
                    no huge pages of the pool: ";
        assert!(line.starts_with(said) && line.contains("; no transparent huge pages: "), "{line}");
    }
    // Two heaps of up to 75 MiB in turn, and segments of this and other tests.
    if let Some(_pool) = Pool::with(128) {
        assert_eq!(heaps("pool"), ("Hugetlb".into(), None));
    }
}

//! Where pages are placed on a machine with several NUMA nodes. On a machine with one node every page is right, so
//! these tests are ignored by default: `make numa` runs them in an emulated machine.

use super::Scene;
use super::body::{Failure, launched, say};
use std::collections::BTreeSet;
use std::sync::Arc;
use unisono_kernel::region::Params;
use unisono_posix::arena::{Plan, Queues, Slice};
use unisono_posix::launch::Bind;
use unisono_posix::sealed::Sealed;
use unisono_posix::{Joined, Options, Placement, Policy, binding, join, placement};

/// The node in "rank 0, node 1: ...".
fn node(placement: &str) -> u32 {
    let node = placement.split_once("node ").and_then(|(_, rest)| rest.split_once(':'));
    node.and_then(|(node, _)| node.parse().ok()).unwrap_or_else(|| panic!("no node in {placement:?}"))
}

#[test]
#[ignore = "needs two NUMA nodes: make numa runs it"]
fn every_page_is_on_its_owners_node() {
    let nodes: BTreeSet<u32> = binding::nodes().iter().map(|(node, _)| *node).collect();
    assert!(nodes.len() >= 2, "{nodes:?}");
    let ranks = binding::affinity().unwrap().len() as u32;
    for bind in [Bind::Core, Bind::Numa, Bind::None] {
        let scene = Scene::new(&format!("placed-{bind:?}"));
        let outcome = scene.launch("binding", "", ranks, bind).run().unwrap();
        assert!(outcome.success(), "{outcome}");
        let placements: Vec<_> = (0..ranks).map(|rank| scene.said(rank, "placement")).collect();
        for placement in &placements {
            println!("bound to {bind:?}: {placement}");
            assert!(placement.ends_with(" pages, 0 misplaced, 0 unknown"), "{placement}");
        }
        let used: BTreeSet<u32> = placements.iter().map(|placement| node(placement)).collect();
        // A rank that is not bound may run anywhere; bound ones use all nodes.
        assert!(bind == Bind::None || used == nodes, "{used:?}");
    }
}

/// On a machine with one node each page is right; that they are looked up is tested everywhere.
#[test]
fn pages_of_later_communicators_are_on_their_owners_nodes() {
    let ranks = binding::affinity().unwrap().len().clamp(2, 4) as u32 & !1;
    for bind in [Bind::Core, Bind::None] {
        let scene = Scene::new(&format!("slices-{bind:?}"));
        let outcome = scene.launch("slices", "", ranks, bind).run().unwrap();
        assert!(outcome.success(), "{outcome}");
        for rank in 0..ranks {
            let said = scene.said(rank, "slices");
            println!("bound to {bind:?}: {said}");
            assert!(
                said.starts_with("18 communicators, ") && said.ends_with(" pages, 0 misplaced, 0 unknown"),
                "{said}"
            );
        }
    }
}

/// Blocks of this rank's heap, of several lengths, again and again, which are lent to all others; one of them before this
/// rank has touched it.
pub(super) fn heap() -> Result<(), Failure> {
    let Joined { mut communicator, placement: Placement { node, .. }, .. } =
        join(&mut launched()?, Params::new, &Options::default())?;
    let me = communicator.rank();
    let (mut sum, mut blocks) = (Placement { rank: me, node, ..Placement::default() }, 0);
    for (round, len) in [5000, 300_000, 3 << 20, 300_000, 3 << 20].into_iter().enumerate() {
        let block = communicator.allocate(len)?;
        // SAFETY: the block is this value's, and is used through this slice alone.
        let data = unsafe { std::slice::from_raw_parts_mut(block.buf().ptr(), len) };
        let value = if round == 2 { 0 } else { round as u8 + 1 };
        if value > 0 {
            data.fill(value);
        }
        let mut received = vec![0; len];
        for root in 0..communicator.size() {
            communicator.bcast(if root == me { &mut *data } else { &mut received }, root)?;
            assert!(root == me || received.iter().all(|&byte| byte == value));
        }
        assert!(data.iter().all(|&byte| byte == value));
        let found = placement::verify_memory(block.buf(), me, node);
        assert!(found.checked == (len as u64).div_ceil(unisono_posix::page()), "{found}");
        sum.checked += found.checked;
        sum.misplaced.extend(found.misplaced);
        sum.unknown += found.unknown;
        blocks += 1;
    }
    say("heap", format!("{blocks} blocks, {sum}"));
    Ok(())
}

/// On a machine with one node each page is right; that they are looked up is tested everywhere.
#[test]
fn blocks_of_a_heap_are_on_their_owners_nodes() {
    let ranks = binding::affinity().unwrap().len().clamp(2, 4) as u32;
    for bind in [Bind::Core, Bind::Numa] {
        let scene = Scene::new(&format!("heap-{bind:?}"));
        let outcome = scene.launch("heap-placed", "", ranks, bind).run().unwrap();
        assert!(outcome.success(), "{outcome}");
        let nodes: BTreeSet<u32> = (0..ranks)
            .map(|rank| {
                let said = scene.said(rank, "heap");
                println!("bound to {bind:?}: {said}");
                assert!(said.starts_with("5 blocks, ") && said.ends_with(" pages, 0 misplaced, 0 unknown"), "{said}");
                node(&said)
            })
            .collect();
        assert_eq!(nodes.len(), binding::nodes().len().min(ranks as usize), "{nodes:?}");
    }
}

/// Without a policy a page is where it was touched first: so the tests above would see it. With one it is on its owner's
/// node, also where another process has placed the same memory otherwise meanwhile.
#[test]
#[ignore = "needs two NUMA nodes: make numa runs it"]
fn a_part_that_another_process_touches_first_lies_elsewhere_without_a_policy() {
    let nodes = binding::nodes();
    let [(here, pus), (there, _), ..] = &nodes[..] else { panic!("{nodes:?}") };
    binding::bind(pus).unwrap();
    let plan = Plan::new(2, Queues::Small).unwrap();
    let misplaced = |of: &[[u32; 2]]| {
        let file = Sealed::create(plan.bytes()).unwrap();
        let maps = [file.map().unwrap(), file.map().unwrap()].map(Arc::new);
        let slices = maps.map(|map| Slice::new(map, 0, plan).unwrap());
        for (nodes, slice) in of.iter().zip(slices.iter().cycle()) {
            let nodes = nodes.iter().copied().map(Some);
            placement::of_slice(slice, 0, nodes, Policy::default()).unwrap();
        }
        for rank in [0, 1] {
            slices[0].populate(rank);
        }
        [(0, here), (1, there)].map(|(rank, node)| {
            let found = placement::verify_slice(&slices[0], rank, *node);
            assert!(found.checked > 0 && found.unknown == 0, "{found}");
            found.misplaced.len() as u64 * 100 / found.checked
        })
    };
    let (right, wrong) = ([*here, *there], [*there, *here]);
    assert_eq!(misplaced(&[]), [0, 100]);
    assert_eq!(misplaced(&[right]), [0, 0]);
    assert_eq!(misplaced(&[wrong]), [100, 100]);
    assert_eq!(misplaced(&[right, wrong, right]), [0, 0], "a policy that another map has replaced");
}

/// Pages of a process's part.
const PART: usize = 64;
/// Processes, on two nodes in turns.
const PARTS: usize = 8;
const PAGE: usize = 4096;

/// The pages that lie on another node than the process that touches them first, in a segment that is a file of `folder`: each process
/// in turn touches all pages of its part. `random`: under `MADV_RANDOM`.
fn misplaced_in_file(folder: &str, random: bool, nodes: &[(u32, binding::PuSet)]) -> usize {
    let path = std::path::Path::new(folder).join("segment");
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    file.set_len((PARTS * PART * PAGE) as u64).unwrap();
    // SAFETY: no other process has the file.
    let mut map = unsafe { memmap2::MmapMut::map_mut(&file) }.unwrap();
    if random {
        map.advise(memmap2::Advice::Random).unwrap();
    }
    for (part, (_, pus)) in (0..PARTS).zip(nodes.iter().take(2).cycle()) {
        binding::bind(pus).unwrap();
        (part * PART..(part + 1) * PART).for_each(|page| map[page * PAGE] = 1);
    }
    let pages: Vec<_> = (0..PARTS * PART).map(|page| map.as_mut_ptr().wrapping_add(page * PAGE)).collect();
    let mut found = vec![-1_i32; pages.len()];
    let nowhere = std::ptr::null::<i32>();
    // SAFETY: as many addresses as results; without targets it moves nothing.
    let code =
        unsafe { libc::syscall(libc::SYS_move_pages, 0, pages.len(), pages.as_ptr(), nowhere, found.as_mut_ptr(), 0) };
    assert_eq!(code, 0);
    std::fs::remove_file(path).unwrap();
    let owner = |page: usize| nodes[page / PART % 2].0;
    found.iter().enumerate().filter(|(page, node)| **node != owner(*page) as i32).count()
}

/// Paper P1's figure 11. The page cache of a file system with a disk reads ahead: a page lies on the node of the process whose fault
/// has brought it, be it of another one's part.
#[test]
#[ignore = "needs two NUMA nodes, and a disk (UNISONO_DISK): make numa runs it"]
fn pages_that_are_read_ahead_lie_where_the_reader_runs() {
    let nodes = binding::nodes();
    assert!(nodes.len() >= 2, "{nodes:?}");
    let folder = std::env::var("UNISONO_DISK").expect("a folder on a disk");
    for (advice, random) in [("read ahead", false), ("MADV_RANDOM", true)] {
        let misplaced = misplaced_in_file(&folder, random, &nodes);
        println!("{advice}: {misplaced} of {} pages misplaced", PARTS * PART);
        assert_eq!(misplaced > 0, !random);
    }
}

#[test]
#[ignore = "needs two NUMA nodes: make numa runs it"]
fn a_rank_that_is_bound_wrong_is_reported() {
    for mistake in ["pus", "memory"] {
        let scene = Scene::new(&format!("misplaced-{mistake}"));
        let outcome = scene.launch("astray", mistake, 2, Bind::Numa).run().unwrap();
        assert!(outcome.success(), "{outcome}");
        let [right, wrong] = [0, 1].map(|rank| scene.said(rank, "placement"));
        println!("{mistake} elsewhere: {wrong}");
        assert!(right.ends_with(" 0 misplaced, 0 unknown"), "{right}");
        // Rank 1 announced its node, then moved to rank 0's: all its pages are there, and the report names all of them.
        let (first, report) = wrong.split_once('\n').expect("a line for the pages");
        let (here, there) = (node(&wrong), node(&right));
        let pages: u64 = first.split(' ').nth(4).and_then(|word| word.parse().ok()).expect("a number of pages");
        assert_eq!(first, format!("rank 1, node {here}: {pages} pages, {pages} misplaced, 0 unknown"));
        assert_eq!(report, format!("  own pages 0-{}: on node {there}, expected {here}", pages - 1));
        // Every other rank knows the numbers.
        assert_eq!(scene.said(0, "of-1"), first);
    }
}

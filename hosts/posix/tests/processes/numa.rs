//! Where pages are placed on a machine with several NUMA nodes. On a machine with one node every page is right, so
//! these tests are ignored by default: `make numa` runs them in an emulated machine.

use super::Scene;
use std::collections::BTreeSet;
use unisono_posix::binding;
use unisono_posix::launch::Bind;

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

//! Collectives over levels: on clusters of all sorts, with ranks in blocks, round robin and in any order.

use super::{Toy, check};
use unisono_kernel::msg::levels::{self, Algorithm, Line};
use unisono_kernel::msg::{Needs, Parts, PlanError};
use unisono_kernel::op::Op;
use unisono_kernel::topology::group::{Groups, Place};
use unisono_kernel::topology::{Level, Levels, Locality};
use unisono_verify::cases::{FOLDS, Operand, User, Varying, bytes, folded, length, roots, user};
use unisono_verify::cases::{allgather_case, alltoall_case, gather_case, reduce_scatter_case, scan_case, scatter_case};
use unisono_verify::oracle::{Fold, mix};

/// The places of so many ranks; units nest, nodes have different numbers of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Ranks fill units one after the other.
    Blocks,
    /// Neighbours are in different units.
    RoundRobin,
    /// By chance; a few ranks share no unit inside a node.
    Any,
}

const ORDERS: [Order; 3] = [Order::Blocks, Order::RoundRobin, Order::Any];

fn localities(size: u32, order: Order, seed: u64) -> Vec<Locality> {
    let locality = |rank: u32| {
        let core = match order {
            Order::Blocks => rank,
            Order::RoundRobin => rank % 4 * (size / 4 + 1) + rank / 4,
            Order::Any => (mix(seed ^ u64::from(rank)) % 24) as u32,
        };
        // Two NUMA nodes of three cores in the first of each pair of nodes, one of two in the other.
        let (pair, rest) = (core / 8, core % 8);
        let (node, numa) = if rest < 6 { (2 * pair, rest / 3) } else { (2 * pair + 1, 0) };
        let place = Locality::NOWHERE.with(Level::Node, node).with(Level::Switch1, node / 3);
        let unbound = order == Order::Any && mix(seed + u64::from(rank)).is_multiple_of(5);
        if unbound { place } else { place.with(Level::Numa, numa).with(Level::L2, numa * 3 + rest % 3 / 2) }
    };
    (0..size).map(locality).collect()
}

/// Runs `body` with the groups of some clusters of `size` ranks, and a name for each.
fn clusters(size: u32, mut body: impl FnMut(&str, &Groups<'_>)) {
    for order in ORDERS {
        for levels in ["L2-NM-ND-SW", "NM-ND", "SW"] {
            let (mut places, mut ranks) = (vec![Place::default(); size as usize], vec![0; size as usize]);
            let localities = localities(size, order, size.into());
            let levels: Levels = levels.parse().unwrap();
            let groups = Groups::build(&localities, levels, &mut places, &mut ranks).unwrap();
            assert!(order != Order::Blocks || groups.are_runs());
            body(&format!("p={size} {order:?} {levels}"), &groups);
        }
    }
}

fn named(name: &str) -> Algorithm {
    Algorithm::from_name(name).unwrap()
}

const SIZES: [u32; 7] = [1, 2, 3, 5, 8, 17, 30];

#[test]
fn broadcasts() {
    for size in SIZES {
        clusters(size, |cluster, groups| {
            for name in [
                "levels",
                "levels/flat:chain",
                "levels-16/chain:knomial-3",
                "levels/slices",
                "levels-64/kary-2",
                "levels/halves",
                "levels/flat:halves",
                "levels0/flat:chain",
                "levels0-16/chain",
                "levels0/slices",
            ] {
                for root in roots(size) {
                    for len in [0, 33, 200] {
                        let plan = |rank| levels::bcast::plan(groups, rank, len, root, named(name)).unwrap();
                        let plans: Vec<_> = (0..size).map(plan).collect();
                        let before = |rank| User { send: Vec::new(), receive: bytes(rank, len) };
                        let case = format!("bcast {name} {cluster} root={root} {len}");
                        check(&case, &plans, &(0..size).map(before).collect::<Vec<_>>(), |_| bytes(root, len));
                    }
                }
            }
        });
    }
}

/// Checks that an operation that does not commute is refused where groups are not runs of ranks, and by k-ary trees;
/// returns whether the algorithm applies.
fn applies<P>(groups: &Groups<'_>, name: &str, fold: Fold, plan: impl Fn(u32) -> Result<P, PlanError>) -> bool {
    let (needs, applies) = match name.contains("kary") {
        true => (Needs::Commutative, fold.op().commutative()),
        false => (Needs::Runs, fold.op().commutative() || groups.are_runs()),
    };
    assert!(applies || plan(0).err() == Some(PlanError::OverLevels(needs)));
    applies
}

#[test]
fn reduces() {
    for size in SIZES {
        clusters(size, |cluster, groups| {
            for name in [
                "levels",
                "levels/flat:chain",
                "levels-32/chain:kary-2",
                "levels/slices",
                "levels/flat:slices",
                "levels/halves:flat",
                "levels0",
                "levels0-32/flat:chain",
            ] {
                for root in roots(size) {
                    for (fold, in_place) in FOLDS.iter().flat_map(|&fold| [(fold, false), (fold, true)]) {
                        for elements in [0, 7, 40] {
                            let (bytes, op) = (length(fold, elements), fold.op());
                            let plan =
                                |rank| levels::reduce::plan(groups, rank, bytes, op, root, in_place, named(name));
                            if !applies(groups, name, fold, plan) {
                                continue;
                            }
                            let case = format!("reduce {name} {cluster} root={root} {fold:?} {elements} {in_place}");
                            let user = |rank| user(fold, rank, elements, in_place, rank == root);
                            let wanted = folded(fold, 0..size, elements);
                            let after = |rank| if rank == root { wanted.clone() } else { Vec::new() };
                            let plans: Vec<_> = (0..size).map(|rank| plan(rank).unwrap()).collect();
                            check(&case, &plans, &(0..size).map(user).collect::<Vec<_>>(), after);
                        }
                    }
                }
            }
        });
    }
}

#[test]
fn allreduces() {
    const NAMES: [&str; 8] = [
        "levels",
        "levels-32/chain:flat",
        "levels/slices",
        "levels/halves+rabenseifner",
        "levels+doubling",
        "levels-16/knomial-3:chain+rabenseifner",
        "levels-16/kary-3+ring",
        "levels/flat+segmented-ring-16",
    ];
    for size in SIZES {
        clusters(size, |cluster, groups| {
            for name in NAMES {
                for (fold, in_place) in FOLDS.iter().flat_map(|&fold| [(fold, false), (fold, true)]) {
                    for elements in [0, 7, 40] {
                        let (bytes, op) = (length(fold, elements), fold.op());
                        let plan = |rank| levels::allreduce::plan(groups, rank, bytes, op, in_place, named(name));
                        // A ring at the top is refused by its own name.
                        if fold == Fold::Affine && name.ends_with("ring-16") {
                            assert!(plan(0).is_err());
                            continue;
                        }
                        if !applies(groups, name, fold, plan) {
                            continue;
                        }
                        let case = format!("allreduce {name} {cluster} {fold:?} {elements} {in_place}");
                        let user = |rank| user(fold, rank, elements, in_place, true);
                        let wanted = folded(fold, 0..size, elements);
                        let plans: Vec<_> = (0..size).map(|rank| plan(rank).unwrap()).collect();
                        check(&case, &plans, &(0..size).map(user).collect::<Vec<_>>(), |_| wanted.clone());
                    }
                }
            }
        });
    }
}

#[test]
fn barriers() {
    for size in SIZES {
        clusters(size, |cluster, groups| {
            for name in ["levels", "levels/flat", "levels/chain:knomial-3"] {
                let plan = |rank| levels::barrier::plan(groups, rank, named(name)).unwrap();
                let plans: Vec<_> = (0..size).map(plan).collect();
                let nothing = vec![User { send: Vec::new(), receive: Vec::new() }; size as usize];
                check(&format!("barrier {name} {cluster}"), &plans, &nothing, |_| Vec::new());
            }
        });
    }
}

/// Runs `body` with clusters and lines of their ranks.
fn lines(mut body: impl FnMut(&str, u32, Line<'_>)) {
    for size in SIZES {
        clusters(size, |cluster, groups| {
            let mut order = vec![0; size as usize];
            body(cluster, size, Line::build(groups, &mut order).unwrap());
        });
    }
}

#[test]
fn gathers_scatters_and_allgathers() {
    lines(|cluster, size, line| {
        let varying = Varying::new(size, 1);
        for parts in [varying.parts(), Parts::equal(size, 0).unwrap(), Parts::equal(size, 5).unwrap()] {
            for in_place in [false, true] {
                for root in roots(size) {
                    let case = format!("levels {cluster} root={root} {parts:?} {in_place}");
                    let plan = |rank| levels::gather::plan(line, rank, parts, root, in_place).unwrap();
                    gather_case(&mut Toy, &format!("gather {case}"), size, parts, root, in_place, plan);
                    let plan = |rank| levels::scatter::plan(line, rank, parts, root, in_place).unwrap();
                    scatter_case(&mut Toy, &format!("scatter {case}"), size, parts, root, in_place, plan);
                }
                for name in ["levels", "levels-8/chain", "levels/slices"] {
                    let plan = |rank| levels::allgather::plan(line, rank, parts, in_place, named(name)).unwrap();
                    let case = format!("allgather {name} {cluster} {parts:?} {in_place}");
                    allgather_case(&mut Toy, &case, size, parts, in_place, plan);
                }
            }
        }
    });
}

#[test]
fn alltoalls() {
    lines(|cluster, size, line| {
        for (block, in_place) in [(0, false), (5, false), (5, true)] {
            let plan = |rank| levels::alltoall::plan(line, rank, block, in_place).unwrap();
            let case = format!("alltoall levels {cluster} {block} {in_place}");
            alltoall_case(&mut Toy, &case, size, in_place, |_| Parts::equal(size, block).unwrap(), plan);
        }
    });
}

#[test]
fn reduce_scatters_and_scans() {
    lines(|cluster, size, line| {
        for (fold, in_place) in FOLDS.iter().flat_map(|&fold| [(fold, false), (fold, true)]) {
            let op = fold.op();
            for (name, elements) in [("levels", 3), ("levels-32/chain", 3), ("levels/slices", 1), ("levels", 0)] {
                let parts = Parts::equal(size, length(fold, elements)).unwrap();
                let plan = |rank| levels::reduce_scatter::plan(line, rank, parts, op, in_place, named(name));
                let case = format!("reduce_scatter {name} {cluster} {fold:?} {elements} {in_place}");
                if applies(line.groups(), name, fold, plan) {
                    reduce_scatter_case(&mut Toy, &case, size, parts, fold, in_place, |rank| plan(rank).unwrap());
                }
            }
            for name in ["levels", "levels/flat:chain", "levels/knomial-3"] {
                for (elements, exclusive) in [0, 1, 9].into_iter().flat_map(|n| [(n, false), (n, true)]) {
                    let bytes = length(fold, elements);
                    let plan =
                        |rank| levels::scan::plan(line.groups(), rank, bytes, op, in_place, exclusive, named(name));
                    if !line.groups().are_runs() {
                        assert_eq!(plan(0).err(), Some(PlanError::OverLevels(Needs::Runs)));
                        continue;
                    }
                    let case = format!("scan {name} {cluster} {fold:?} {elements} {in_place} {exclusive}");
                    scan_case(&mut Toy, &case, size, Operand { fold, elements, in_place }, exclusive, |rank| {
                        plan(rank).unwrap()
                    });
                }
            }
        }
    });
}

/// Whichever rank is the root, no process sends or receives more messages than it has neighbours in its tree.
#[test]
fn every_root_costs_the_same_messages() {
    use unisono_kernel::msg::Schedule;
    clusters(30, |cluster, groups| {
        for root in 0..30 {
            let plan = |rank| levels::bcast::plan(groups, rank, 8, root, Algorithm::BINOMIAL).unwrap();
            let sent = |plan: levels::bcast::Plan<'_>| {
                (0..plan.rounds()).flat_map(|r| (0..).map_while(move |i| plan.send(r, i))).count()
            };
            assert_eq!((0..30).map(|rank| sent(plan(rank))).sum::<usize>(), 29, "{cluster} root={root}");
        }
    });
}

#[test]
fn what_is_wrong_is_named() {
    clusters(5, |_, groups| {
        let refused =
            |name, rank, root| levels::bcast::plan(groups, rank, 8, root, named(name)).unwrap_err().to_string();
        assert_eq!(refused("levels", 5, 0), "rank is 5, must be below 5");
        assert_eq!(refused("levels", 0, 5), "root is 5, must be below 5");
        assert!(refused("levels/slices:kary-2", 0, 0).contains("needs trees on all levels, not slices"));
        // Also by a rank that takes part in no level of slices.
        let error = |rank| levels::barrier::plan(groups, rank, named("levels/flat:flat:slices")).unwrap_err();
        assert!((0..5).all(|rank| error(rank) == PlanError::OverLevels(Needs::Trees)));
        for name in ["levels-8/slices", "levels-8/flat:halves"] {
            assert!(refused(name, 0, 0).contains("needs trees on all levels, not slices"), "{name}");
        }
        let error = levels::allreduce::plan(groups, 0, 7, Op::SUM_F64, false, Algorithm::BINOMIAL).unwrap_err();
        assert!(error.to_string().contains("bytes is 7"), "{error}");
    });
}

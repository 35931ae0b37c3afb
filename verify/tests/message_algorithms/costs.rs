//! The costs of schedules, counted without running them: the tables of docs/reference/algorithms.md are compared with
//! them.
//!
//! To write them anew: `UNISONO_WRITE_DOCS=1 cargo test -p unisono-verify --test message_algorithms costs`.

use super::{seat, sizes};
use std::fmt::Write;
use unisono_kernel::msg::schedule::Message;
use unisono_kernel::msg::{
    Named, Parts, Schedule, allgather, allreduce, alltoall, bcast, reduce, reduce_scatter, scan,
};
use unisono_kernel::op::Op;
use unisono_kernel::pattern::bagds::{Table, stages, table_words, work_words};
use unisono_kernel::pattern::log2_ceil;

/// The cost of an algorithm, over all ranks.
#[derive(Default)]
struct Cost {
    /// Messages that follow one another, each sent after what its sender received in earlier rounds.
    depth: u64,
    /// Most messages that one process sends, and most bytes.
    messages: u64,
    bytes: u64,
    /// Most working memory of a process.
    scratch: u64,
    /// Messages of all.
    all: u64,
    /// The longest messages of the rounds, added up; rounds of all ranks being the same ones.
    path: u64,
}

fn sends(plan: &impl Schedule, round: u64) -> impl Iterator<Item = Message> {
    (0..).map_while(move |index| plan.send(round, index))
}

fn cost<S: Schedule>(plans: &[S]) -> Cost {
    let mut cost = Cost::default();
    for plan in plans {
        let all = || (0..plan.rounds()).flat_map(|round| sends(plan, round));
        cost.messages = cost.messages.max(all().count() as u64);
        cost.bytes = cost.bytes.max(all().map(|message| message.place.len).sum());
        cost.scratch = cost.scratch.max(plan.bytes().scratch);
        cost.all += all().count() as u64;
    }
    cost.depth = depth(plans);
    let longest = |round| {
        let rounds = plans.iter().filter(|plan| round < plan.rounds());
        rounds.flat_map(|plan| sends(plan, round)).map(|message| message.place.len).max()
    };
    cost.path = (0..plans.iter().map(Schedule::rounds).max().unwrap_or(0)).filter_map(longest).sum();
    cost
}

/// The longest chain of messages: one that is sent in a round follows those received in rounds before, and a round ends
/// when all of its messages are there.
fn depth<S: Schedule>(plans: &[S]) -> u64 {
    let mut arrivals = std::collections::BTreeMap::<(u32, u32), std::collections::VecDeque<u64>>::new();
    let mut state: Vec<(u64, u64, bool)> = vec![(0, 0, false); plans.len()];
    loop {
        let mut moved = false;
        for (rank, plan) in (0u32..).zip(plans) {
            let (round, depth, posted) = &mut state[rank as usize];
            if *round == plan.rounds() {
                continue;
            }
            if !*posted {
                for message in sends(plan, *round) {
                    arrivals.entry((rank, message.peer)).or_default().push_back(*depth + 1);
                }
                (*posted, moved) = (true, true);
            }
            let from: Vec<_> = (0..).map_while(|index| plan.receive(*round, index)).map(|m| (m.peer, rank)).collect();
            if from.iter().all(|key| arrivals.get(key).is_some_and(|queue| !queue.is_empty())) {
                for key in from {
                    *depth = arrivals.get_mut(&key).and_then(|queue| queue.pop_front()).unwrap_or(0).max(*depth);
                }
                (*round, *posted, moved) = (*round + 1, false, true);
            }
        }
        if !moved {
            break;
        }
    }
    assert!(state.iter().zip(plans).all(|((round, ..), plan)| *round == plan.rounds()), "a circle");
    state.iter().map(|(_, depth, _)| *depth).max().unwrap_or(0)
}

fn plans<S>(size: u32, plan: impl Fn(u32) -> S) -> Vec<S> {
    (0..size).map(plan).collect()
}

/// Runs `body` with the tables of all ranks.
fn with_tables<A>(size: u32, body: impl FnOnce(&[Table<'_>]) -> A) -> A {
    let mut work = vec![0; work_words(size)];
    let stages = stages(size, &mut work).unwrap();
    let mut words = vec![vec![0; table_words(size, stages)]; size as usize];
    let tables = (0..).zip(&mut words).map(|(rank, words)| Table::new(seat(rank, size), &mut work, words).unwrap());
    body(&tables.collect::<Vec<_>>())
}

fn gathering(size: u32, name: &str, block: u64) -> Option<Cost> {
    let (algorithm, parts) = (allgather::Algorithm::from_name(name).unwrap(), Parts::equal(size, block).unwrap());
    with_tables(size, |tables| {
        algorithm.applicable(size, !tables.is_empty()).ok()?;
        let plan = |rank| allgather::plan(seat(rank, size), parts, false, algorithm, Some(tables[rank as usize]));
        Some(cost(&plans(size, |rank| plan(rank).unwrap())))
    })
}

/// BAGDS beside Bruck's algorithm, which has ⌈log2 p⌉ rounds for every p.
fn stages_table() -> String {
    let mut text = String::from(
        "| p | stages: BAGDS | Bruck | messages: BAGDS | Bruck | blocks on the way: BAGDS | Bruck |\n\
         |--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for size in sizes().skip(1).chain([32, 33, 64, 100]) {
        let (bagds, bruck) = (gathering(size, "bagds", 1).unwrap(), gathering(size, "bruck", 1).unwrap());
        assert_eq!((bruck.depth, bruck.path), (log2_ceil(size).into(), u64::from(size) - 1));
        let stages = stages(size, &mut vec![0; work_words(size)]).unwrap();
        let (ours, theirs) = (bruck.all, bagds.all);
        writeln!(text, "| {size} | {stages} | {} | {theirs} | {ours} | {} | {} |", bruck.depth, bagds.path, bruck.path)
            .unwrap();
    }
    text
}

/// All algorithms at one length, for a power of two and one process more.
fn costs_table() -> String {
    const BYTES: u64 = 1 << 16;
    let mut text = String::from(
        "| algorithm | p | chain of messages | messages of the busiest | its bytes | scratch |\n\
         |---|--:|--:|--:|--:|--:|\n",
    );
    for size in [16, 17] {
        let mut row = |name: &str, cost: Cost| {
            let Cost { depth, messages, bytes, scratch, .. } = cost;
            writeln!(text, "| {name} | {size} | {depth} | {messages} | {bytes} | {scratch} |").unwrap();
        };
        let at = |rank| seat(rank, size);
        for name in ["flat", "chain-8192", "knomial-2", "knomial-4", "scatter-allgather", "scatter-doubling"] {
            let algorithm = bcast::Algorithm::from_name(name).unwrap();
            row(&format!("bcast/{name}"), cost(&plans(size, |r| bcast::plan(at(r), BYTES, 0, algorithm).unwrap())));
        }
        for name in ["flat", "chain-8192", "knomial-2", "scatter-gather"] {
            let algorithm = reduce::Algorithm::from_name(name).unwrap();
            let plan = |r| reduce::plan(at(r), BYTES, Op::SUM_F64, 0, false, algorithm).unwrap();
            row(&format!("reduce/{name}"), cost(&plans(size, plan)));
        }
        for name in ["doubling", "ring", "segmented-ring-1024", "rabenseifner"] {
            let algorithm = allreduce::Algorithm::from_name(name).unwrap();
            let plan = |r| allreduce::plan(at(r), BYTES, Op::SUM_F64, false, algorithm).unwrap();
            row(&format!("allreduce/{name}"), cost(&plans(size, plan)));
        }
        let (block, op) = (BYTES / 16, Op::SUM_F64);
        let parts = Parts::equal(size, block).unwrap();
        for name in ["ring", "bruck", "doubling", "bagds"] {
            if let Some(cost) = gathering(size, name, block) {
                row(&format!("allgather/{name}"), cost);
            }
        }
        for name in ["linear", "pairwise", "bruck"] {
            let algorithm = alltoall::Algorithm::from_name(name).unwrap();
            let plan = |r| alltoall::plan(at(r), Some(parts), parts, algorithm).unwrap();
            row(&format!("alltoall/{name}"), cost(&plans(size, plan)));
        }
        for name in ["pairwise", "ring"] {
            let algorithm = reduce_scatter::Algorithm::from_name(name).unwrap();
            let plan = |r| reduce_scatter::plan(at(r), parts, op, false, algorithm).unwrap();
            row(&format!("reduce_scatter/{name}"), cost(&plans(size, plan)));
        }
        for name in ["doubling", "chain-8192"] {
            let algorithm = scan::Algorithm::from_name(name).unwrap();
            let plan = |r| scan::plan(at(r), BYTES, op, false, false, algorithm).unwrap();
            row(&format!("scan/{name}"), cost(&plans(size, plan)));
        }
    }
    text
}

/// Compares a table with the text between its marks in docs/reference/algorithms.md, or writes it there.
fn compare(mark: &str, table: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/algorithms.md");
    let text = std::fs::read_to_string(path).expect("docs/reference/algorithms.md");
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
    let from = text.find(&begin).expect("the table's mark") + begin.len();
    let to = from + text[from..].find(&end).expect("the table's end");
    if std::env::var_os("UNISONO_WRITE_DOCS").is_some() {
        std::fs::write(path, format!("{}{table}{}", &text[..from], &text[to..])).expect("docs/reference/algorithms.md");
    } else {
        assert!(&text[from..to] == table, "docs/reference/algorithms.md is not what is counted:\n{table}");
    }
}

#[test]
fn tables_of_the_docs_are_what_is_counted() {
    compare("stages", &stages_table());
    compare("costs", &costs_table());
}

#[test]
fn known_costs() {
    let size = 16;
    let ring = |algorithm| {
        cost(&plans(size, |r| allreduce::plan(seat(r, size), 1 << 16, Op::SUM_F64, false, algorithm).unwrap()))
    };
    // 2·(p − 1) messages of n / p bytes.
    let cost = ring(allreduce::Algorithm::Ring);
    assert_eq!((cost.depth, cost.messages, cost.bytes), (30, 30, 30 << 12));
    // The same bytes in 2·log2 p messages.
    let cost = ring(allreduce::Algorithm::Rabenseifner);
    assert_eq!((cost.depth, cost.messages, cost.bytes), (8, 8, 30 << 12));
    // log2 p whole operands.
    let cost = ring(allreduce::Algorithm::Doubling);
    assert_eq!((cost.depth, cost.messages, cost.bytes), (4, 4, 4 << 16));
}

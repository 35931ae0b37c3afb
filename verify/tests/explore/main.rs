//! The explorer's fast tier: all interleavings of small models, and faults that it must find. `UNISONO_SOAK=1` adds larger ones.

use std::collections::BTreeSet;
use std::sync::Mutex;
use unisono_kernel::algorithm::BarrierAlgorithm;
use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::region::Base;
use unisono_verify::explore::{
    Check, Class, Collective, Exchange, Family, Lending, Limits, Mutation, Operation, Program, Report, Words, alphabet,
    exchanges, explore, order, run, walk,
};

mod groups;
mod lent;

const DISSEMINATION: Operation = Operation::Barrier(BarrierAlgorithm::Dissemination);
const DOUBLING: Operation = Operation::Barrier(BarrierAlgorithm::Doubling);
const CENTRAL: Operation = Operation::Barrier(BarrierAlgorithm::Central);
const COMBINING: Operation = Operation::Barrier(BarrierAlgorithm::Combining(2));

/// Do the larger families run, too?
fn soak() -> bool {
    std::env::var_os("UNISONO_SOAK").is_some_and(|v| v == "1")
}

fn family(ranks: u32, sets: u32, alphabet: Vec<Operation>, length: u32) -> Family {
    Family { ranks, sets, alphabet, length }
}

/// Explores a family to the end; no model may fail or be cut short.
fn explore_all(family: &Family) {
    let report = pass(explore, family.spread(), family.models());
    assert!(report.states > report.models && report.transitions > report.states);
}

#[test]
fn two_ranks_all_mixes_up_to_four() {
    for (length, fragments) in [(1, 3), (2, 3), (3, 2)] {
        explore_all(&family(2, 2, alphabet(2, &[Tree::Flat], fragments), length));
    }
    for (length, fragments) in [(3, 3), (4, 2)] {
        by_states_if(soak(), &family(2, 2, alphabet(2, &[Tree::Flat], fragments), length));
    }
}

/// Of the third one on, allreduces by doubling use lines again; others in between change nothing. Three and five ranks have
/// one outside the core.
#[test]
fn doublings_alone_and_in_mixes() {
    let others = [Operation::posted(0), Operation::posted(1), Operation::queue(1, 1), Operation::Fold, DISSEMINATION];
    let mixed: Vec<_> = others.into_iter().chain([Operation::Doubling]).collect();
    let doublings = |ranks, times| Program::new(ranks, 1, vec![Operation::Doubling; times]);
    for ranks in 2..=5 {
        pass(order, (1..=6).map(|times| doublings(ranks, times)), 6);
        order_all(&family(ranks, 1, mixed.clone(), 3));
    }
    pass(explore, [doublings(2, 6), doublings(3, 4), doublings(4, 3), doublings(5, 1)].into_iter(), 4);
    explore_all(&family(2, 1, mixed.clone(), 4));
    explore_all(&family(3, 1, mixed, 2));
}

/// Of operands that are longer than a line: they use the lines of short ones, and of scans, in turn with them.
#[test]
fn long_doublings_alone_and_in_mixes() {
    let others = [Operation::posted(1), Operation::Doubling, Operation::short_scan(true), DISSEMINATION];
    let mixed: Vec<_> = others.into_iter().chain([Operation::LongDoubling]).collect();
    let doublings = |ranks, times| Program::new(ranks, 1, vec![Operation::LongDoubling; times]);
    for ranks in 2..=6 {
        pass(order, (1..=6).map(|times| doublings(ranks, times)), 6);
        order_all(&family(ranks, 1, mixed.clone(), 3));
    }
    pass(explore, [doublings(2, 5), doublings(3, 3), doublings(4, 1)].into_iter(), 3);
    explore_all(&family(2, 1, mixed.clone(), 3));
    explore_all(&family(3, 1, mixed, 1));
    let early: Words = |layout, word| (0..2).any(|turn| layout.partial(1, turn > 0, 0).offset() == word.offset);
    for ranks in 2..=4 {
        killed(ranks, 1, &[Operation::LongDoubling], Mutation::Forge(early, 1), &["S3: ", "overlap", "wrong data"]);
    }
    let lost: Words = |layout, word| (0..2).any(|turn| layout.partial(0, turn > 0, 0).offset() == word.offset);
    for ranks in [2, 4] {
        killed(ranks, 1, &[Operation::LongDoubling], Mutation::Lose(lost, None), &["deadlock"]);
        killed(ranks, 1, &[Operation::LongDoubling], Mutation::Deafen(lost), &["lost wake-up"]);
    }
}

/// A rank that only posts runs ahead of those that fold what it has posted.
#[test]
fn trees_alone_and_in_mixes() {
    for ranks in 2..=5 {
        let trees = [0, 1, ranks - 1].map(Operation::Tree);
        let others = [Operation::posted(0), Operation::queue(1, 1), Operation::Fold, Operation::Doubling];
        order_all(&family(ranks, 1, trees.into_iter().chain(others).collect(), 3));
        pass(order, (0..ranks).map(|root| Program::new(ranks, 1, vec![Operation::Tree(root); 6])), ranks.into());
    }
    let lines =
        |ranks: u32| [Operation::Tree(0), Operation::Tree(ranks - 1), Operation::posted(0), Operation::Doubling].into();
    explore_all(&family(2, 1, lines(2), 4));
    explore_all(&family(3, 1, lines(3), 2));
    explore_all(&family(4, 1, vec![Operation::Tree(0), Operation::Tree(3)], 1));
    killed(2, 1, &[Operation::Tree(0); 3], UNACKNOWLEDGED, &["S2: ", "corrupt word", "overlap", "wrong data"]);
}

/// A line of a partial result that says too early that it is there.
#[test]
fn a_partial_result_that_is_read_too_early_is_found() {
    let early: Words = |layout, word| (0..2).any(|turn| layout.partial(1, turn > 0, 0).offset() == word.offset);
    for ranks in 2..=4 {
        killed(ranks, 1, &[Operation::Doubling], Mutation::Forge(early, 1), &["S3: ", "overlap", "wrong data"]);
    }
}

/// Scans by doubling use the lines of allreduces by doubling, and the other way round.
#[test]
fn short_scans_alone_and_in_mixes() {
    let scans = [false, true].map(Operation::short_scan);
    let others =
        [Operation::posted(0), Operation::posted(1), Operation::queue(1, 1), Operation::Fold, Operation::Doubling];
    let mixed: Vec<_> = others.into_iter().chain(scans).collect();
    let alone = |ranks, times| scans.map(|scan| Program::new(ranks, 1, vec![scan; times]));
    for ranks in 2..=5 {
        pass(order, (1..=6).flat_map(|times| alone(ranks, times)), 12);
        order_all(&family(ranks, 1, mixed.clone(), 3));
    }
    pass(explore, [(2, 6), (3, 4), (4, 2), (5, 1)].into_iter().flat_map(|(ranks, times)| alone(ranks, times)), 8);
    explore_all(&family(2, 1, mixed.clone(), 3));
    explore_all(&family(3, 1, mixed, 2));
    let early: Words = |layout, word| (0..2).any(|turn| layout.partial(1, turn > 0, 0).offset() == word.offset);
    for ranks in 2..=4 {
        killed(ranks, 1, &scans[..1], Mutation::Forge(early, 1), &["S3: ", "overlap", "wrong data"]);
    }
}

/// Broadcasts by groups: of two to five ranks, one or two of a group. A leader posts on what it has read.
#[test]
fn broadcasts_by_groups_alone_and_in_mixes() {
    for ranks in 2..=6 {
        let grouped = [0, 1, ranks - 1].map(Operation::grouped);
        let others = [Operation::posted(0), Operation::queue(1, 1), Operation::Tree(0), Operation::Doubling];
        order_all(&family(ranks, 1, grouped.into_iter().chain(others).collect(), 3));
        pass(order, (0..ranks).map(|root| Program::new(ranks, 1, vec![Operation::grouped(root); 6])), ranks.into());
    }
    let lines = |ranks: u32| vec![Operation::grouped(0), Operation::grouped(ranks - 1), Operation::posted(1)];
    explore_all(&family(2, 1, lines(2), 3));
    explore_all(&family(3, 1, lines(3), 2));
    explore_all(&family(4, 1, lines(4), 1));
    killed(4, 1, &[Operation::grouped(0); 3], UNACKNOWLEDGED, &["S2: ", "corrupt word", "overlap", "wrong data"]);
    // A leader that has not heard the root yet.
    let early: Words = |layout, word| layout.line(2, 1).offset() == word.offset;
    killed(4, 1, &[Operation::grouped(0)], Mutation::Forge(early, 1), &["S3: ", "overlap", "wrong data"]);
}

/// The words of barriers by doubling are those of dissemination, which other ranks read. Three, five and six ranks have some outside
/// the core.
#[test]
fn barriers_by_doubling_alone_and_in_mixes() {
    let mixed =
        vec![DOUBLING, DISSEMINATION, CENTRAL, Operation::Doubling, Operation::posted(0), Operation::queue(1, 1)];
    for ranks in 2..=6 {
        pass(order, (1..=4).map(|times| Program::new(ranks, 1, vec![DOUBLING; times])), 4);
        order_all(&family(ranks, 1, mixed.clone(), 3));
    }
    explore_all(&family(2, 1, mixed.clone(), 4));
    explore_all(&family(3, 1, mixed, 2));
    explore_all(&family(5, 1, vec![DOUBLING], 1));
}

#[test]
fn two_ranks_one_set_and_sums_in_place() {
    let mut all = alphabet(2, &[Tree::Flat], 2);
    all.push(Operation::Sum);
    explore_all(&family(2, 1, all, 2));
}

#[test]
fn three_ranks_all_pairs() {
    explore_all(&family(3, 2, alphabet(3, &[Tree::Flat, Tree::Chain, Tree::BINOMIAL], 3), 1));
    explore_all(&family(3, 2, alphabet(3, &[Tree::Chain], 2), 2));
    explore_all(&family(3, 1, alphabet(3, &[Tree::Flat], 2), 2));
}

#[test]
fn three_ranks_all_mixes_of_three() {
    by_states_if(soak(), &family(3, 2, alphabet(3, &[Tree::Flat], 1), 3));
}

#[test]
fn three_ranks_posted_lines_of_three() {
    let lines = vec![Operation::posted(0), Operation::posted(1), Operation::posted(2), Operation::Fold, DISSEMINATION];
    explore_all(&family(3, 2, lines, 3));
}

#[test]
fn four_ranks_each_operation_and_some_pairs() {
    explore_all(&family(4, 2, alphabet(4, &[Tree::BINARY], 2), 1));
    let rooted = |root| [Operation::posted(root), Operation::queue(root, 1), Operation::cico(root, Tree::Flat, 1)];
    explore_all(&family(4, 1, [0, 3].into_iter().flat_map(rooted).collect(), 2));
    explore_all(&family(4, 2, vec![Operation::posted(0), Operation::posted(3), DISSEMINATION, CENTRAL, COMBINING], 2));
}

#[test]
fn five_ranks_each_broadcast_and_barrier() {
    let rooted = |root| [Operation::posted(root), Operation::cico(root, Tree::BINOMIAL, 1)];
    let barriers = [DISSEMINATION, CENTRAL, COMBINING];
    explore_all(&family(5, 2, [0, 4].into_iter().flat_map(rooted).chain(barriers).collect(), 1));
}

/// Decides a family by the order that waits force; no model may fail.
fn order_all(family: &Family) {
    let report = pass(order, family.spread(), family.models());
    assert!(report.states > report.transitions && report.transitions > report.models);
}

/// Explores a family to the end, or decides it by order.
fn by_states_if(states: bool, family: &Family) {
    if states { explore_all(family) } else { order_all(family) }
}

/// Checks so many models to the end; none may fail or be cut short.
fn pass(check: Check, models: impl Iterator<Item = Program> + Send, count: u64) -> Report {
    let mut models = models.peekable();
    let name = models.peek().map(Program::name).unwrap_or_default();
    let report = run(check, models, Mutation::None, Limits::default(), 2);
    println!("{name} ...: {report}, {:?}, largest {:?}", report.time, report.largest);
    assert_eq!(report.failures, [""; 0], "{}", report.failures.first().map_or("", |first| first));
    assert_eq!((report.models, report.cut.len(), report.skipped), (count, 0, 0));
    report
}

#[test]
fn two_to_five_ranks_all_mixes_by_order() {
    for ranks in 2..=5 {
        for sets in [1, 2] {
            let trees = [Tree::Flat, Tree::Chain, Tree::BINARY, Tree::BINOMIAL];
            order_all(&family(ranks, sets, alphabet(ranks, &trees, 3), 1));
            order_all(&family(ranks, sets, alphabet(ranks, &[Tree::BINOMIAL], 2), 2));
        }
        let most = if ranks < 4 || soak() { 3 } else { 2 };
        order_all(&family(ranks, 2, alphabet(ranks, &[Tree::BINARY], 1), most));
    }
}

/// Checks models in a world with a fault; the faults found.
fn mutate(check: Check, models: impl Iterator<Item = Program> + Send, mutation: Mutation) -> Vec<String> {
    run(check, models, mutation, Limits::default(), 2).failures
}

/// Both checks of one model in a world with a fault, which must be found under one of these names.
fn killed(ranks: u32, sets: u32, operations: &[Operation], mutation: Mutation, faults: &[&str]) {
    killed_by(&BOTH, &Program::new(ranks, sets, operations.to_vec()), mutation, faults);
}

const BOTH: [(&str, Check); 2] = [("states", explore), ("order", order)];

/// The same for some checks, by name.
fn killed_by(checks: &[(&str, Check)], program: &Program, mutation: Mutation, faults: &[&str]) {
    let name = program.name();
    for &(by, check) in checks {
        let found = mutate(check, [program.clone()].into_iter(), mutation);
        assert_eq!(found.len(), 1, "{name}: the fault is not found by {by}");
        assert!(faults.iter().any(|fault| found[0].contains(fault)), "{name}, by {by}: {}", found[0]);
        // The same model without the fault is sound: it is the fault that was found. Once is enough for several faults.
        if SOUND.lock().unwrap().insert(format!("{by} {program:?}")) {
            assert_eq!(mutate(check, [program.clone()].into_iter(), Mutation::None), [""; 0]);
        }
    }
}

/// The models that were checked without a fault.
static SOUND: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Posted lines without their `done` check: two alternating lines without acknowledgement.
const UNACKNOWLEDGED: Mutation =
    Mutation::Forge(|layout, word| (0..layout.ranks()).any(|rank| layout.done(rank).offset() == word.offset), u64::MAX);

/// Two lines that alternate are not enough: 82 of 120 sequences of up to four allreduces and broadcasts overwrite a line
/// under its reader. That is three processes with two roots; two processes have 48.
#[test]
fn lines_without_acknowledgement_are_overwritten_under_their_readers() {
    let lines = vec![Operation::posted(0), Operation::posted(1), Operation::Fold];
    for (ranks, expected) in [(2, 48), (3, 82)] {
        let families: Vec<_> = (1..=4).map(|length| family(ranks, 2, lines.clone(), length)).collect();
        assert_eq!(families.iter().map(Family::models).sum::<u64>(), 120);
        let all = || families.iter().flat_map(Family::spread);
        for program in all() {
            let found =
                [explore as Check, order].map(|check| mutate(check, [program.clone()].into_iter(), UNACKNOWLEDGED));
            assert_eq!(found[0].len(), found[1].len(), "{found:?}");
        }
        for check in [explore as Check, order] {
            let found = mutate(check, all(), UNACKNOWLEDGED);
            println!("p={ranks}: {} of 120\n{}", found.len(), found[0]);
            assert_eq!(found.len(), expected);
            // At the write that overwrites, or in what the reader sees: a line that is ahead, a copy under way, another
            // operation's head or bytes.
            let kinds = ["S2: ", "corrupt word", "overlap", "disagreement", "wrong data"];
            assert!(found.iter().all(|fault| kinds.iter().any(|kind| fault.contains(kind))));
            let allreduces = Program::new(ranks, 2, vec![Operation::Fold; 4]);
            assert_eq!(mutate(check, [allreduces].into_iter(), UNACKNOWLEDGED), [""; 0]);
        }
    }
}

#[test]
fn a_queue_that_does_not_ask_what_was_taken_overruns_its_readers() {
    let all_taken = Mutation::Forge(
        |layout, word| (0..layout.ranks()).any(|rank| layout.acked(rank).offset() == word.offset),
        u64::MAX,
    );
    killed(2, 2, &[Operation::queue(0, 3)], all_taken, &["S2: ", "overlap", "corrupt word", "wrong data"]);
    killed(2, 2, &[Operation::queue(1, 3)], all_taken, &["S2: ", "overlap", "wrong data"]);
    killed(
        3,
        2,
        &[Operation::queue(0, 2), Operation::queue(0, 1)],
        all_taken,
        &["S2: ", "overlap", "corrupt word", "wrong data"],
    );
}

#[test]
fn a_root_of_p1_that_does_not_wait_for_readers_overwrites_their_fragments() {
    let no_readers = Mutation::Forge(|layout, word| (0..2).any(|k| layout.set_readers(k).offset() == word.offset), 0);
    let bcast = |root| Operation::cico(root, Tree::Flat, 1);
    killed(2, 1, &[bcast(0), bcast(0)], no_readers, &["S2: rank"]);
    killed(2, 1, &[bcast(1), bcast(1)], no_readers, &["S2: rank"]);
    killed(2, 2, &[bcast(0), bcast(0), bcast(0)], no_readers, &["S2: rank"]);
}

#[test]
fn a_clear_that_is_lost_is_found() {
    let lost = Mutation::Lose(|_, word| word.class == Class::Mail, Some(0));
    let bcast = |root| Operation::cico(root, Tree::Flat, 1);
    killed(2, 1, &[bcast(0), bcast(0)], lost, &["not taken yet", "S3: it has released", "wrong data"]);
    killed(2, 2, &[bcast(1), bcast(1), bcast(1)], lost, &["not taken yet", "S3: it has released", "wrong data"]);
}

#[test]
fn a_barrier_that_hears_too_early_lets_processes_through() {
    let early = |words: Words| Mutation::Forge(words, 1);
    let rounds: Words = |layout, word| {
        (0..layout.ranks()).any(|rank| (0..layout.rounds()).any(|i| layout.round(rank, i).offset() == word.offset))
    };
    killed(2, 2, &[DISSEMINATION], early(rounds), &["has not entered"]);
    killed(3, 2, &[DISSEMINATION], early(rounds), &["has not entered"]);
    killed(2, 2, &[DOUBLING], early(rounds), &["has not entered"]);
    killed(3, 2, &[DOUBLING], early(rounds), &["has not entered"]);
    killed(5, 2, &[DOUBLING], early(|layout, word| word.offset == layout.round(1, 0).offset()), &["has not entered"]);
    killed(2, 2, &[CENTRAL], early(|layout, word| word.offset == layout.release(0).offset()), &["has not entered"]);
    killed(3, 2, &[COMBINING], early(|layout, word| word.offset == layout.arrive(2).offset()), &["has not entered"]);
}

#[test]
fn data_read_before_it_is_published_is_found() {
    let early = Mutation::Forge(|layout, word| word.offset == layout.ready(0).offset(), 2);
    killed(2, 2, &[Operation::queue(0, 2)], early, &["S3: ", "overlap"]);
}

/// Each word of the protocols, and a program in which a process waits for it.
fn awaited() -> [(Words, Vec<Operation>); 13] {
    let posted = Operation::posted(0);
    let cico = |count| vec![Operation::cico(0, Tree::Flat, 1); count];
    [
        (|layout, word| word.offset == layout.line(0, 1).offset(), vec![posted]),
        (|layout, word| word.offset == layout.done(1).offset(), vec![posted; 3]),
        (|layout, word| word.offset == layout.ready(0).offset(), vec![Operation::queue(0, 2)]),
        (|layout, word| word.offset == layout.acked(1).offset(), vec![Operation::queue(0, 3)]),
        (|layout, word| word.offset == layout.set_op(1).offset(), cico(1)),
        (|layout, word| word.offset == layout.control(1, 1).offset(), cico(1)),
        (|layout, word| word.offset == layout.round(0, 0).offset(), vec![DISSEMINATION]),
        (|layout, word| word.offset == layout.round(0, 0).offset(), vec![DOUBLING]),
        (|layout, word| word.offset == layout.partial(0, true, 0).offset(), vec![Operation::Doubling]),
        (|layout, word| word.offset == layout.partial(0, true, 0).offset(), vec![Operation::short_scan(true)]),
        (|layout, word| word.offset == layout.central_count().offset(), vec![CENTRAL]),
        (|layout, word| word.offset == layout.arrive(1).offset(), vec![COMBINING]),
        (|layout, word| word.offset == layout.release(0).offset(), vec![COMBINING]),
    ]
}

#[test]
fn a_store_that_is_lost_is_a_deadlock() {
    for (words, operations) in awaited() {
        killed(2, 2, &operations, Mutation::Lose(words, None), &["deadlock"]);
    }
    // A reader's subtraction, as it leaves a set.
    let leave: Words = |layout, word| word.offset == layout.set_readers(1).offset();
    let cico = Operation::cico(0, Tree::Flat, 1);
    killed(2, 2, &[cico; 3], Mutation::Lose(leave, Some(1u64.wrapping_neg())), &["deadlock"]);
}

#[test]
fn a_waiter_that_is_not_woken_is_found() {
    for (words, operations) in awaited() {
        killed(2, 2, &operations, Mutation::Deafen(words), &["lost wake-up"]);
    }
}

#[test]
fn exchanges_alone_and_in_pairs() {
    for ranks in 2..=5 {
        for fragments in [0, 1, 3] {
            order_all(&family(ranks, 1, exchanges(ranks, fragments), 1));
        }
        let mut mixed = exchanges(ranks, 1);
        mixed.extend(exchanges(ranks, 0).into_iter().take(ranks as usize));
        mixed.extend(alphabet(ranks, &[Tree::BINOMIAL], 2));
        order_all(&family(ranks, 1, mixed, 2));
    }
    explore_all(&family(2, 1, exchanges(2, 0), 1));
    explore_all(&family(2, 1, exchanges(2, 2), 1));
    explore_all(&family(2, 1, exchanges(2, 1), 2));
}

/// An exchange with rank 0 as its root.
const fn exchange(collective: Collective, fragments: usize) -> Operation {
    Operation::Exchange(Exchange { collective, root: 0, fragments })
}

/// [`killed`] with two processes, and with three by order.
fn exchange_killed(operations: &[Operation], mutation: Mutation, faults: &[&str]) {
    killed(2, 1, operations, mutation, faults);
    killed_by(&BOTH[1..], &program_of_three(operations.to_vec()), mutation, faults);
}

/// A scatter of three goes on in its readers' queues: it waits for nothing but what was taken before it.
fn program_of_three(operations: Vec<Operation>) -> Program {
    let scatters = |operation: &Operation| {
        matches!(operation, Operation::Exchange(Exchange { collective: Collective::Scatterv, .. }))
    };
    let times = if operations.iter().all(scatters) { 2 } else { 1 };
    Program::new(3, 1, operations.repeat(times))
}

/// Words that publish a fragment: the line for the first one, `ready` for others.
const POSTED: [(Words, usize); 2] = [
    (|layout, word| (0..layout.ranks()).any(|rank| (0..2).any(|n| layout.line(rank, n).offset() == word.offset)), 0),
    (|layout, word| (0..layout.ranks()).any(|rank| layout.ready(rank).offset() == word.offset), 2),
];

const TAKEN: Words = |layout, word| (0..layout.ranks()).any(|rank| layout.acked(rank).offset() == word.offset);
const DONE: Words = |layout, word| (0..layout.ranks()).any(|rank| layout.done(rank).offset() == word.offset);

/// A process posts three fragments into two slots, or four operations into two lines, for a process that posts nothing
/// by which the first one could see that they were taken.
const ONE_SIDED: [Collective; 4] = [Collective::Gatherv, Collective::Scatterv, Collective::Reduce, Collective::Scan];

#[test]
fn an_exchange_whose_store_is_lost_is_a_deadlock() {
    for (words, fragments) in POSTED {
        for collective in Collective::ALL {
            exchange_killed(&[exchange(collective.0, fragments)], Mutation::Lose(words, None), &["deadlock"]);
        }
    }
    for collective in ONE_SIDED {
        exchange_killed(&[exchange(collective, 3)], Mutation::Lose(TAKEN, None), &["deadlock"]);
        exchange_killed(&[exchange(collective, 0); 3], Mutation::Lose(DONE, None), &["deadlock"]);
    }
}

#[test]
fn an_exchange_whose_waiter_is_not_woken_is_found() {
    for (words, fragments) in POSTED {
        for collective in Collective::ALL {
            exchange_killed(&[exchange(collective.0, fragments)], Mutation::Deafen(words), &["lost wake-up"]);
        }
    }
    for collective in ONE_SIDED {
        exchange_killed(&[exchange(collective, 3)], Mutation::Deafen(TAKEN), &["lost wake-up"]);
        exchange_killed(&[exchange(collective, 0); 3], Mutation::Deafen(DONE), &["lost wake-up"]);
    }
}

#[test]
fn an_exchange_that_hears_too_early_reads_what_is_being_written() {
    let faults = ["S3: ", "overlap", "in no order", "wrong data", "corrupt", "disagreement"];
    for collective in Collective::ALL {
        exchange_killed(&[exchange(collective.0, 2)], Mutation::Forge(POSTED[1].0, u64::MAX), &faults);
    }
}

#[test]
fn an_exchange_that_does_not_ask_what_was_taken_or_done_overruns_its_readers() {
    let faults = ["S2: ", "overlap", "in no order", "corrupt word", "wrong data"];
    for collective in ONE_SIDED {
        exchange_killed(&[exchange(collective, 4)], Mutation::Forge(TAKEN, u64::MAX), &faults);
        exchange_killed(&[exchange(collective, 0); 3], Mutation::Forge(DONE, u64::MAX), &faults);
    }
}

/// Models with four slots: processes post two steps ahead.
fn ahead(family: &Family) -> impl Iterator<Item = Program> + Send + '_ {
    family.spread().map(|program| program.with_slots(4))
}

#[test]
fn exchanges_run_ahead_of_what_they_take() {
    for ranks in 2..=4 {
        let alone = family(ranks, 1, exchanges(ranks, 5), 1);
        pass(order, ahead(&alone), alone.models());
    }
    let mut mixed = exchanges(2, 3);
    mixed.extend([Operation::queue(0, 3), Operation::queue(1, 3)]);
    let pairs = family(2, 1, mixed, 2);
    pass(order, ahead(&pairs), pairs.models());
    if soak() {
        // Ten ticks of two writers each are too many states.
        let long = family(2, 1, exchanges(2, 5), 1);
        let is_slices = |program: &Program| program.operations == [exchange(Collective::Slices, 5)];
        pass(explore, ahead(&long).filter(move |program| !is_slices(program)), long.models() - 1);
    }
    for fragments in [1, 2] {
        let short = family(2, 1, exchanges(2, fragments), 1);
        pass(explore, ahead(&short), short.models());
    }
}

/// A process's own slot may have been last used several operations ago, under another root; lengths that
/// only the root knows advance the clock by more than there are fragments.
#[test]
fn queues_whose_writers_change() {
    for ranks in if soak() { 2..=3 } else { 2..=2 } {
        let rooted = |root| {
            let of = |collective, fragments| Operation::Exchange(Exchange { collective, root, fragments });
            [
                of(Collective::Gatherv, 2),
                of(Collective::Scatterv, 3),
                of(Collective::Scatterv, 0),
                Operation::queue(root, 2),
            ]
        };
        let mixes = family(ranks, 1, (0..ranks).flat_map(rooted).collect(), 3);
        pass(order, ahead(&mixes), mixes.models());
    }
}

/// Nine pieces of a slice are a batch of eight and one of one.
#[test]
fn slices_in_two_batches() {
    for (ranks, slots) in [(2, 4), (2, 16), (2, 32), (3, 4), (3, 16)] {
        let slices = vec![exchange(Collective::Slices, 9)];
        pass(order, [Program::new(ranks, 1, slices).with_slots(slots)].into_iter(), 1);
    }
}

/// Of a longer queue, several slots share one record of their last use.
#[test]
fn queues_longer_than_what_is_known_of_their_slots() {
    long_queues(32);
    if soak() {
        long_queues(64);
    }
}

fn long_queues(slots: u32) {
    for collective in [Collective::Gatherv, Collective::Allgather] {
        let twice = vec![exchange(collective, slots as usize / 2 + 2); 2];
        pass(order, [Program::new(2, 1, twice).with_slots(slots)].into_iter(), 1);
    }
}

/// [`killed`] with four slots, with two processes, and with three by order. Slices have twice the steps, and by
/// states too many.
fn ahead_killed(operations: &[Operation], mutation: Mutation, faults: &[&str]) {
    let slices = |operation: &Operation| {
        matches!(operation, Operation::Exchange(Exchange { collective: Collective::Slices, .. }))
    };
    let program = |ranks| Program::new(ranks, 1, operations.to_vec()).with_slots(4);
    killed_by(if operations.iter().any(slices) { &BOTH[1..] } else { &BOTH }, &program(2), mutation, faults);
    killed_by(&BOTH[1..], &program(3), mutation, faults);
}

/// An exchange of about so many steps.
fn long(collective: Collective, ticks: usize) -> Vec<Operation> {
    vec![exchange(collective, if collective == Collective::Slices { ticks.div_ceil(2) } else { ticks })]
}

/// An exchange that must look at what was taken. A scatter also uses its readers' queues, where it looks at the
/// operation before.
fn asking(collective: Collective, ticks: usize) -> Vec<Operation> {
    let mut operations = long(collective, ticks);
    if collective == Collective::Scatterv {
        operations.insert(0, exchange(collective, ticks - 3));
    }
    operations
}

#[test]
fn faults_of_who_runs_ahead_are_found() {
    for (collective, _) in Collective::ALL {
        ahead_killed(&asking(collective, 5), Mutation::Lose(TAKEN, None), &["deadlock"]);
        ahead_killed(&long(collective, 5), Mutation::Lose(POSTED[1].0, None), &["deadlock"]);
        ahead_killed(&long(collective, 5), Mutation::Forge(POSTED[1].0, u64::MAX), &EARLY);
    }
    // Elsewhere `ready` tells what was taken: a process that has posted a step has taken all but the last two before
    // it.
    for collective in ONE_SIDED {
        ahead_killed(&asking(collective, 6), Mutation::Forge(TAKEN, u64::MAX), &EARLY);
        ahead_killed(&asking(collective, 6), Mutation::Deafen(TAKEN), &["lost wake-up"]);
    }
}

/// Messages whose lengths only the root knows go round the queue, as others do: the first four wait for no process.
#[test]
fn private_lengths_begin_with_the_next_slot() {
    let of = |times| Program::new(2, 1, vec![exchange(Collective::Gatherv, 1); times]).with_slots(4);
    let unheard = |times| mutate(order, [of(times)].into_iter(), Mutation::Lose(TAKEN, None));
    assert_eq!(unheard(4), [""; 0]);
    assert!(unheard(5)[0].contains("deadlock"));
}

/// A process that reads pairwise also reads the blocks that lie side by side, before it publishes that it has taken
/// them.
#[test]
fn lengths_that_differ_both_ways() {
    for ranks in 2..=3 {
        let operations = |root| vec![exchange(Collective::Unequal, 2), Operation::queue(root, 2)];
        let models = (0..ranks).map(|root| Program::new(ranks, 1, operations(root)));
        pass(order, models, ranks.into());
    }
    pass(explore, [Program::new(2, 1, vec![exchange(Collective::Unequal, 2), Operation::queue(1, 2)])].into_iter(), 1);
}

/// Where a counter of 16, 24, 32 or 40 bits would wrap, and near the end: two operations before it, and two after.
#[test]
fn counters_begin_near_every_wrap() {
    let wraps = [1 << 16, 1 << 32, Base::MOST, 1 << 24, 1 << 40];
    for &wrap in if soak() { &wraps[..] } else { &wraps[..3] } {
        let near = |most: u64| wrap.min(most) - 2;
        let base = Base {
            operation: near(Base::MOST),
            clock: near(Base::MOST),
            sets: near(Base::MOST),
            centrals: near(Base::MOST_CENTRALS),
        };
        for ranks in [2, 3] {
            let trees: &[Tree] = if ranks == 2 { &[Tree::Flat] } else { &[Tree::Chain] };
            // Of the clock, longer messages take more at once; of three processes, all that is longer takes its time.
            let most = if ranks == 2 { 3 } else { 1 };
            let all = alphabet(ranks, trees, most).into_iter().chain((0..=most).flat_map(|n| exchanges(ranks, n)));
            let models: Vec<_> =
                all.map(|operation| Program::new(ranks, 2, vec![operation; 4]).from_base(base)).collect();
            let count = models.len() as u64;
            pass(order, models.clone().into_iter(), count);
            if ranks == 2 && wrap == 1 << 32 {
                let short = |program: &Program| Program::new(2, 2, program.operations[..2].to_vec()).from_base(base);
                let models: Vec<_> = models.iter().map(short).collect();
                pass(explore, models.into_iter(), count);
            }
        }
    }
}

/// What shows that a process has read, or written over, something too early.
const EARLY: [&str; 7] = ["S2: ", "S3: ", "overlap", "in no order", "wrong data", "corrupt", "disagreement"];

/// Walks through models that have too many states to explore them all; the states that were met, some of them again.
fn walk_all(models: Vec<Program>) {
    let (count, states) = (models.len(), if soak() { 2_000_000 } else { 30_000 });
    let limits = Limits { states, ..Limits::default() };
    let report = run(walk, models.into_iter(), Mutation::None, limits, 2);
    println!("{count} models walked: {report}, {:?}", report.time);
    assert_eq!(report.failures, [""; 0], "{}", report.failures.first().map_or("", |first| first));
    assert_eq!((report.cut.len(), report.skipped), (count, 0));
    assert!(report.states >= states * count as u64);
}

/// Who lends, and who can read what is lent.
const LENT: [Lending; 4] = [Lending::All, Lending::OneReadsNot, Lending::EvenReadNot, Lending::OneLendsNot];

//! The explorer's fast tier: all interleavings of small models, and faults that it must find.

use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::select::BarrierAlgorithm;
use unisono_verify::explore::{
    Check, Class, Collective, Exchange, Family, Limits, Mutation, Operation, Program, Words, alphabet, exchanges,
    explore, order, run,
};

const DISSEMINATION: Operation = Operation::Barrier(BarrierAlgorithm::Dissemination);
const CENTRAL: Operation = Operation::Barrier(BarrierAlgorithm::Central);
const COMBINING: Operation = Operation::Barrier(BarrierAlgorithm::Combining(2));

fn family(ranks: u32, sets: u32, alphabet: Vec<Operation>, length: u32) -> Family {
    Family { ranks, sets, alphabet, length }
}

/// Explores a family to the end; nothing may fail, nothing may be cut.
fn explore_all(family: &Family) {
    let report = run(explore, family.spread(), Mutation::None, Limits::default(), 2);
    println!("p={} length {}: {report}, {:?}, largest {:?}", family.ranks, family.length, report.time, report.largest);
    assert_eq!(report.failures, [""; 0], "{}", report.failures.first().map_or("", |first| first));
    assert_eq!((report.models, report.cut.len(), report.skipped), (family.models(), 0, 0));
    assert!(report.states > report.models && report.transitions > report.states);
}

#[test]
fn two_ranks_all_mixes_up_to_four() {
    for (length, fragments) in [(1, 3), (2, 3), (3, 3), (4, 2)] {
        explore_all(&family(2, 2, alphabet(2, &[Tree::Flat], fragments), length));
    }
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
    explore_all(&family(3, 2, alphabet(3, &[Tree::Flat], 1), 3));
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

/// Decides a family by the order that waits force; nothing may fail.
fn order_all(family: &Family) {
    let report = run(order, family.spread(), Mutation::None, Limits::default(), 2);
    println!("p={} length {}: {report}, {:?}", family.ranks, family.length, report.time);
    assert_eq!(report.failures, [""; 0], "{}", report.failures.first().map_or("", |first| first));
    assert_eq!((report.models, report.cut.len(), report.skipped), (family.models(), 0, 0));
    assert!(report.states > report.transitions && report.transitions > report.models);
}

#[test]
fn two_to_five_ranks_all_mixes_by_order() {
    for ranks in 2..=5 {
        for sets in [1, 2] {
            let trees = [Tree::Flat, Tree::Chain, Tree::BINARY, Tree::BINOMIAL];
            order_all(&family(ranks, sets, alphabet(ranks, &trees, 3), 1));
            order_all(&family(ranks, sets, alphabet(ranks, &[Tree::BINOMIAL], 2), 2));
        }
        order_all(&family(ranks, 2, alphabet(ranks, &[Tree::BINARY], 1), 3));
    }
}

/// Checks models in a world with a fault; the faults found.
fn mutate(check: Check, models: impl Iterator<Item = Program> + Send, mutation: Mutation) -> Vec<String> {
    run(check, models, mutation, Limits::default(), 2).failures
}

/// Both checks of one model in a world with a fault, which must be found under one of these names.
fn killed(ranks: u32, sets: u32, operations: &[Operation], mutation: Mutation, faults: &[&str]) {
    killed_by(&[("states", explore), ("order", order)], (ranks, sets), operations, mutation, faults);
}

/// The same for some checks, by name.
fn killed_by(
    checks: &[(&str, Check)],
    (ranks, sets): (u32, u32),
    operations: &[Operation],
    mutation: Mutation,
    faults: &[&str],
) {
    let program = Program::new(ranks, sets, operations.to_vec());
    let name = program.name();
    for &(by, check) in checks {
        let found = mutate(check, [program.clone()].into_iter(), mutation);
        assert_eq!(found.len(), 1, "{name}: the fault is not found by {by}");
        assert!(faults.iter().any(|fault| found[0].contains(fault)), "{name}, by {by}: {}", found[0]);
        // The same model without the fault is sound: it is the fault that was found.
        assert_eq!(mutate(check, [program.clone()].into_iter(), Mutation::None), [""; 0]);
    }
}

/// Posted lines without their `done` check: two alternating lines without acknowledgement.
const UNACKNOWLEDGED: Mutation =
    Mutation::Forge(|layout, word| (0..layout.ranks()).any(|rank| layout.done(rank).offset() == word.offset), u64::MAX);

/// DESIGN, section 5: 82 of 120 sequences of up to four allreduces and broadcasts overwrite a line
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
            // What the overwritten reader sees: a line that is ahead, a copy under way, another
            // operation's head or bytes.
            let kinds = ["corrupt word", "overlap", "disagreement", "wrong data"];
            assert!(found.iter().all(|fault| kinds.iter().any(|kind| fault.contains(kind))));
            assert!(ranks == 3 || found.iter().any(|fault| fault.contains("overlap")));
            let allreduces = Program::new(ranks, 2, vec![Operation::Fold; 4]);
            assert_eq!(mutate(check, [allreduces].into_iter(), UNACKNOWLEDGED), [""; 0]);
        }
    }
}

#[test]
fn a_queue_that_does_not_ask_what_was_taken_overruns_its_readers() {
    let all_taken = Mutation::Forge(
        |layout, word| (0..layout.ranks()).any(|rank| layout.taken(rank).offset() == word.offset),
        u64::MAX,
    );
    killed(2, 2, &[Operation::queue(0, 3)], all_taken, &["overlap", "corrupt word", "wrong data"]);
    killed(2, 2, &[Operation::queue(1, 3)], all_taken, &["overlap", "wrong data"]);
    killed(
        3,
        2,
        &[Operation::queue(0, 2), Operation::queue(0, 1)],
        all_taken,
        &["overlap", "corrupt word", "wrong data"],
    );
}

#[test]
fn a_root_of_p1_that_does_not_wait_for_readers_overwrites_their_fragments() {
    let no_readers = Mutation::Forge(|layout, word| (0..2).any(|k| layout.set_readers(k).offset() == word.offset), 0);
    let bcast = |root| Operation::cico(root, Tree::Flat, 1);
    killed(2, 1, &[bcast(0), bcast(0)], no_readers, &["overlap", "not taken yet"]);
    killed(2, 1, &[bcast(1), bcast(1)], no_readers, &["overlap", "not taken yet"]);
    killed(2, 2, &[bcast(0), bcast(0), bcast(0)], no_readers, &["overlap", "not taken yet"]);
}

#[test]
fn a_clear_that_is_lost_is_found() {
    let lost = Mutation::Lose(|_, word| word.class == Class::Mail, Some(0));
    let bcast = |root| Operation::cico(root, Tree::Flat, 1);
    killed(2, 1, &[bcast(0), bcast(0)], lost, &["not taken yet", "overlap", "wrong data"]);
    killed(2, 2, &[bcast(1), bcast(1), bcast(1)], lost, &["not taken yet", "overlap", "wrong data"]);
}

#[test]
fn a_barrier_that_hears_too_early_lets_processes_through() {
    let early = |words: Words| Mutation::Forge(words, 1);
    let rounds: Words = |layout, word| {
        (0..layout.ranks()).any(|rank| (0..layout.rounds()).any(|i| layout.round(rank, i).offset() == word.offset))
    };
    killed(2, 2, &[DISSEMINATION], early(rounds), &["has not entered"]);
    killed(3, 2, &[DISSEMINATION], early(rounds), &["has not entered"]);
    killed(2, 2, &[CENTRAL], early(|layout, word| word.offset == layout.release(0).offset()), &["has not entered"]);
    killed(3, 2, &[COMBINING], early(|layout, word| word.offset == layout.arrive(2).offset()), &["has not entered"]);
}

#[test]
fn data_read_before_it_is_published_is_found() {
    let early = Mutation::Forge(|layout, word| word.offset == layout.ready(0).offset(), 2);
    killed(2, 2, &[Operation::queue(0, 2)], early, &["overlap"]);
}

/// Each word of the protocols, and a program in which someone waits for it.
fn awaited() -> [(Words, Vec<Operation>); 10] {
    let posted = Operation::posted(0);
    let cico = |count| vec![Operation::cico(0, Tree::Flat, 1); count];
    [
        (|layout, word| word.offset == layout.line(0, 1).offset(), vec![posted]),
        (|layout, word| word.offset == layout.done(1).offset(), vec![posted; 3]),
        (|layout, word| word.offset == layout.ready(0).offset(), vec![Operation::queue(0, 2)]),
        (|layout, word| word.offset == layout.taken(1).offset(), vec![Operation::queue(0, 3)]),
        (|layout, word| word.offset == layout.set_op(1).offset(), cico(1)),
        (|layout, word| word.offset == layout.control(1, 1).offset(), cico(1)),
        (|layout, word| word.offset == layout.round(0, 0).offset(), vec![DISSEMINATION]),
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
    killed_by(&[("order", order)], (3, 1), operations, mutation, faults);
}

/// Words that say that a fragment is there: the line for the first one, `ready` for others.
const POSTED: [(Words, usize); 2] = [
    (|layout, word| (0..layout.ranks()).any(|rank| (0..2).any(|n| layout.line(rank, n).offset() == word.offset)), 0),
    (|layout, word| (0..layout.ranks()).any(|rank| layout.ready(rank).offset() == word.offset), 2),
];

const TAKEN: Words = |layout, word| (0..layout.ranks()).any(|rank| layout.taken(rank).offset() == word.offset);
const DONE: Words = |layout, word| (0..layout.ranks()).any(|rank| layout.done(rank).offset() == word.offset);

/// Someone posts three fragments into two slots, or four operations into two lines, to who posts nothing that
/// would say that it has taken them.
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
    let faults = ["overlap", "in no order", "wrong data", "corrupt"];
    for collective in Collective::ALL {
        exchange_killed(&[exchange(collective.0, 2)], Mutation::Forge(POSTED[1].0, u64::MAX), &faults);
    }
}

#[test]
fn an_exchange_that_does_not_ask_what_was_taken_or_done_overruns_its_readers() {
    let faults = ["overlap", "in no order", "corrupt word", "wrong data"];
    for collective in ONE_SIDED {
        exchange_killed(&[exchange(collective, 3)], Mutation::Forge(TAKEN, u64::MAX), &faults);
        exchange_killed(&[exchange(collective, 0); 3], Mutation::Forge(DONE, u64::MAX), &faults);
    }
}

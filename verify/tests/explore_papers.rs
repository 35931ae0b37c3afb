//! The explorer on paper P2's scatterv, gatherv and allgatherv: alone, with one another, with P1's broadcast,
//! whose sets they share, and with operations that use no sets; and faults that it must find.

use unisono_kernel::algorithm::BarrierAlgorithm;
use unisono_kernel::pattern::tree::Tree;
use unisono_verify::explore::{
    Check, Class, Family, Limits, Mutation, Operation, Program, Words, explore, order, papers, run,
};

fn family(ranks: u32, sets: u32, alphabet: Vec<Operation>, length: u32) -> Family {
    Family { ranks, sets, alphabet, length }
}

/// Checks a family to the end; no model may fail or be cut short.
fn all(check: Check, family: &Family) {
    let report = run(check, family.spread(), Mutation::None, Limits::default(), 2);
    println!("p={} length {}: {report}, {:?}, largest {:?}", family.ranks, family.length, report.time, report.largest);
    assert_eq!(report.failures, [""; 0], "{}", report.failures.first().map_or("", |first| first));
    assert_eq!((report.models, report.cut.len(), report.skipped), (family.models(), 0, 0));
}

/// P2's operations beside one of each other kind.
fn beside_others(ranks: u32) -> Vec<Operation> {
    let root = ranks - 1;
    let others = [Operation::cico(root, Tree::BINARY, 2), Operation::posted(root), Operation::queue(0, 2)];
    let barrier = Operation::Barrier(BarrierAlgorithm::Central);
    papers(ranks, 2).into_iter().chain(others).chain([Operation::Fold, barrier]).collect()
}

#[test]
fn two_to_five_ranks_by_order() {
    for ranks in 1..=5 {
        for sets in [1, 2] {
            // Five fragments take three sets of one slot: lengths wrap around.
            for fragments in 1..=5 {
                all(order, &family(ranks, sets, papers(ranks, fragments), 1));
            }
            all(order, &family(ranks, sets, beside_others(ranks), 2));
        }
    }
    for ranks in 2..=3 {
        all(order, &family(ranks, 2, papers(ranks, 1), 3));
        all(order, &family(ranks, 1, papers(ranks, 2), 3));
    }
}

#[test]
fn two_ranks_in_all_interleavings() {
    for sets in [1, 2] {
        all(explore, &family(2, sets, papers(2, 3), 1));
        all(explore, &family(2, sets, beside_others(2), 2));
    }
    all(explore, &family(2, 2, papers(2, 1), 3));
}

#[test]
fn three_ranks_in_all_interleavings() {
    all(explore, &family(3, 1, papers(3, 3), 1));
    all(explore, &family(3, 2, papers(3, 2), 1));
    all(explore, &family(3, 2, papers(3, 1), 2));
}

/// Checks one model in a world with a fault; the fault found.
fn found(check: Check, program: &Program, mutation: Mutation) -> Vec<String> {
    run(check, [program.clone()].into_iter(), mutation, Limits::default(), 1).failures
}

/// Both checks of one model in a world with a fault, which must be found under one of these names.
fn killed(ranks: u32, sets: u32, operations: &[Operation], mutation: Mutation, faults: &[&str]) {
    let program = Program::new(ranks, sets, operations.to_vec());
    let name = program.name();
    for (by, check) in [("states", explore as Check), ("order", order)] {
        let fault = found(check, &program, mutation);
        assert_eq!(fault.len(), 1, "{name}: the fault is not found by {by}");
        assert!(faults.iter().any(|name| fault[0].contains(name)), "{name}, by {by}: {}", fault[0]);
        // The same model without the fault is sound: it is the fault that was found.
        assert_eq!(found(check, &program, Mutation::None), [""; 0]);
    }
}

const SCATTERV: Operation = Operation::scatterv(0, 1);
const GATHERV: Operation = Operation::gatherv(0, 1);
const ALLGATHERV: Operation = Operation::allgatherv(1);

/// Each word of the protocols, and a program in which a process waits for it. Sets are taken from 1 on.
fn awaited() -> [(Words, Operation); 8] {
    let op: Words = |layout, word| word.offset == layout.set_op(1).offset();
    let rootready: Words = |layout, word| word.offset == layout.set_rootready(1, 1).offset();
    let control: Words = |layout, word| word.offset == layout.control(1, 1).offset();
    let control_all: Words = |layout, word| word.offset == layout.control_all(1, 1, 0).offset();
    [
        (op, SCATTERV),
        (op, GATHERV),
        (op, ALLGATHERV),
        (rootready, SCATTERV),
        (rootready, GATHERV),
        (control, SCATTERV),
        (control, GATHERV),
        (control_all, ALLGATHERV),
    ]
}

#[test]
fn a_store_that_is_lost_is_a_deadlock() {
    for (words, operation) in awaited() {
        killed(2, 2, &[operation], Mutation::Lose(words, None), &["deadlock"]);
    }
    // A subtraction, as a process leaves a set.
    let leave: Words = |layout, word| word.offset == layout.set_readers(1).offset();
    for operation in [SCATTERV, GATHERV, ALLGATHERV] {
        killed(2, 2, &[operation; 3], Mutation::Lose(leave, Some(1u64.wrapping_neg())), &["deadlock"]);
    }
}

#[test]
fn a_waiter_that_is_not_woken_is_found() {
    for (words, operation) in awaited() {
        killed(2, 2, &[operation], Mutation::Deafen(words), &["lost wake-up"]);
    }
}

#[test]
fn who_opens_a_set_that_is_not_left_overwrites_its_words() {
    let no_readers = Mutation::Forge(|layout, word| (0..2).any(|k| layout.set_readers(k).offset() == word.offset), 0);
    let faults = ["S2: rank", "a word is stored while a process may look at it"];
    for operation in [SCATTERV, ALLGATHERV] {
        killed(2, 1, &[operation; 2], no_readers, &faults);
        killed(3, 2, &[operation; 3], no_readers, &faults);
    }
    // A root that has gathered knows that all have written; another root does not.
    killed(3, 1, &[GATHERV, Operation::gatherv(1, 1)], no_readers, &faults);
    // P1's broadcast and P2's operations wait for one another's readers.
    let bcast = Operation::cico(0, Tree::Flat, 1);
    for pair in [[bcast, SCATTERV], [SCATTERV, bcast]] {
        killed(2, 1, &pair, no_readers, &faults);
    }
}

#[test]
fn a_clear_that_is_lost_is_found() {
    for operation in [SCATTERV, GATHERV, ALLGATHERV] {
        // A later operation's put meets a word that was never taken.
        let lost = Mutation::Lose(|_, word| word.class == Class::Mail, Some(0));
        killed(2, 1, &[operation; 2], lost, &["not taken yet", "S3: it has released", "wrong data"]);
        killed(2, 2, &[operation; 3], lost, &["not taken yet", "S3: it has released", "wrong data"]);
    }
}

#[test]
fn counts_that_are_read_too_early_or_lie_are_named() {
    let ready = Mutation::Forge(|layout, word| word.offset == layout.set_rootready(1, 1).offset(), 1);
    for operation in [SCATTERV, GATHERV] {
        killed(2, 2, &[operation], ready, &["S3: nothing is published there", "a word is read while it may be stored"]);
        let lie = Mutation::Forge(|layout, word| word.offset == layout.set_count(1, 1).offset(), 7);
        killed(2, 2, &[operation], lie, &["bytes is 4, must be 28"]);
        // Of another's block a process knows nothing: it is that one which finds out.
        let lie = Mutation::Forge(|layout, word| word.offset == layout.set_count(1, 2).offset(), 70);
        killed(3, 2, &[operation], lie, &["bytes is 0, must be 280"]);
        // A count that no memory holds, of a rank that does not look at it in time.
        let lie = Mutation::Forge(|layout, word| word.offset == layout.set_typesize(1).offset(), u64::MAX);
        killed(3, 2, &[operation], lie, &["must be 18446744073709551615", "must be at most"]);
    }
    let lie = Mutation::Forge(|layout, word| word.offset == layout.set_count(1, 0).offset(), 7);
    killed(2, 2, &[ALLGATHERV], lie, &["bytes is 4, must be 28"]);
}

#[test]
fn fragments_that_are_announced_too_early_are_read_while_they_are_written() {
    let control: Words = |layout, word| word.offset == layout.control(1, 1).offset();
    let control_all: Words = |layout, word| word.offset == layout.control_all(1, 1, 0).offset();
    for (words, operation) in [(control, SCATTERV), (control, GATHERV), (control_all, ALLGATHERV)] {
        killed(2, 2, &[operation], Mutation::Forge(words, 4), &["S3: ", "two stores of a word in no order"]);
    }
}

#[test]
fn a_collective_that_differs_is_named() {
    // The head of a set says another collective than the one that is called.
    for operation in [SCATTERV, GATHERV, ALLGATHERV, Operation::cico(0, Tree::Flat, 1)] {
        let other = Mutation::Forge(|layout, word| word.offset == layout.set_bytes(1).offset(), 6 << 56);
        killed(2, 2, &[operation], other, &["must be alltoall"]);
    }
}

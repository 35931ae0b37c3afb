//! Operations by groups, and reduces that share the folds: alone, in mixes, and their faults.

use super::{
    BOTH, DISSEMINATION, EARLY, LENT, POSTED, TAKEN, ahead, exchange, explore_all, family, killed_by, order_all, pass,
    walk_all,
};
use unisono_verify::explore::{
    Collective, Exchange, Lending, Limits, Mutation, Operation, Program, Sharing, Words, explore, order, walk,
};

/// Four ranks are two groups of two, six are two of three, and five have no groups: each after and before other operations, whose
/// first fragments are posted ahead; in one slot, two, and four. Nine pieces are a batch of eight and one of one. By states there
/// are too many.
#[test]
fn groups_alone_and_in_mixes() {
    let groups = |ranks, pieces, times| Program::new(ranks, 1, vec![Operation::Groups(pieces); times]);
    for (ranks, slots) in [(4, 1), (4, 2), (4, 4), (5, 2), (6, 2), (6, 4)] {
        let models = [(1, 4), (2, 2), (3, 1)].map(|(pieces, times)| groups(ranks, pieces, times).with_slots(slots));
        let laps = models.clone().map(Program::with_laps);
        pass(order, models.into_iter().chain(laps), 6);
    }
    for (ranks, slots) in [(4, 2), (4, 16), (6, 4)] {
        pass(order, [groups(ranks, 9, 1).with_slots(slots)].into_iter(), 1);
    }
    let others = [
        Operation::posted(3),
        Operation::queue(1, 2),
        Operation::Doubling,
        exchange(Collective::Slices, 1),
        exchange(Collective::Gatherv, 2),
        DISSEMINATION,
    ];
    let mixes = family(4, 1, others.into_iter().chain([Operation::Groups(1), Operation::Groups(2)]).collect(), 2);
    order_all(&mixes);
    pass(order, ahead(&mixes), mixes.models());
}

/// Operands that are lent within each group are not posted, but to who can't read them; the two ranks of a column that can't, and
/// whose groups can, take from each other only what both post later.
#[test]
fn sums_by_groups_of_lent_operands() {
    let sums = |pieces: &[usize]| pieces.iter().map(|&pieces| Operation::SumByGroups(pieces)).collect::<Vec<_>>();
    let others = [Operation::queue(1, 2), exchange(Collective::Allgather, 2), exchange(Collective::Gatherv, 2)];
    let mixes = others.map(|other| vec![Operation::SumByGroups(1), other, Operation::SumByGroups(2)]);
    let all: Vec<_> = [sums(&[1, 1, 1]), sums(&[2, 1]), sums(&[3])].into_iter().chain(mixes).collect();
    for (ranks, slots) in [(4, 1), (4, 2), (4, 4), (6, 2)] {
        let models = all.iter().map(|operations| Program::new(ranks, 1, operations.clone()).with_slots(slots));
        let models: Vec<_> = models.collect();
        pass(order, models.clone().into_iter(), models.len() as u64);
        let lent = models.iter().flat_map(|model| LENT.map(|lending| model.clone().lent(lending)));
        walk_all(lent.collect());
    }
    // A loan's words: who can't read one says so, and who has read all says that, too.
    let answers: Words = |layout, word| (0..4).any(|rank| layout.answer(rank).offset() == word.offset);
    for lending in [Lending::All, Lending::EvenReadNot] {
        let program = Program::new(4, 1, sums(&[1, 2])).lent(lending);
        for (mutation, faults) in [
            (Mutation::Lose(answers, None), &["deadlock"][..]),
            (Mutation::Deafen(answers), &["lost wake-up"]),
            (Mutation::Forge(TAKEN, u64::MAX), &EARLY),
        ] {
            let found = walk(&program, mutation, Limits::default()).unwrap().failure.unwrap();
            assert!(faults.iter().any(|fault| found.contains(fault)), "{found}");
        }
    }
}

/// Operations by groups: in the second step a rank posts what it has taken in the first; the next operation's blocks are posted ahead.
/// In one slot, two, and four; and beside `others`.
fn by_groups(grouped: impl Fn(usize) -> Operation, others: &[Operation]) {
    for (ranks, slots) in [(4, 1), (4, 2), (4, 4), (6, 1), (6, 2), (6, 4)] {
        let longest = if ranks == 4 { 4 } else { 2 };
        let models = [vec![grouped(1); 4], vec![grouped(longest), grouped(1), grouped(2)]];
        let models = models.map(|operations| Program::new(ranks, 1, operations).with_slots(slots));
        let laps = models.clone().map(Program::with_laps);
        pass(order, models.into_iter().chain(laps), 4);
    }
    let common = [Operation::posted(3), Operation::queue(1, 2), exchange(Collective::Gatherv, 2), DISSEMINATION];
    let alphabet = common.iter().chain(others).copied().chain([grouped(1), grouped(4)]).collect();
    let mixes = family(4, 1, alphabet, 2);
    order_all(&mixes);
    pass(order, ahead(&mixes), mixes.models());
    for (ranks, slots) in [(4, 2), (6, 2)] {
        words_are_needed(&Program::new(ranks, 1, vec![grouped(1); 2]).with_slots(slots));
    }
}

#[test]
fn alltoalls_by_groups() {
    let others = [Operation::Groups(1), exchange(Collective::Alltoall, 1)];
    by_groups(|words| exchange(Collective::GroupedAlltoall, words), &others);
}

/// Beside alltoalls by groups, whose second step has the same shape.
#[test]
fn allgathers_by_groups() {
    let others = [exchange(Collective::Allgather, 1), exchange(Collective::GroupedAlltoall, 1)];
    by_groups(|words| exchange(Collective::GroupedAllgather, words), &others);
    let others = [Operation::Groups(1), exchange(Collective::GroupedAllgather, 1)];
    by_groups(|words| exchange(Collective::ColumnsAllgather, words), &others);
}

/// What a rank has folded for its column lies in the fragment that it posted, until the column has read it.
#[test]
fn reduce_scatters_by_groups() {
    let others = [Operation::Groups(1), exchange(Collective::ReduceScatter, 1)];
    by_groups(|pieces| exchange(Collective::GroupedReduceScatter, pieces), &others);
}

/// The ranks of the root's column post again what they have copied beside their own block.
#[test]
fn gathers_by_groups() {
    let to = |root| {
        move |fragments| Operation::Exchange(Exchange { collective: Collective::GroupedGather, root, fragments })
    };
    for root in [0, 3] {
        by_groups(to(root), &[to(1)(1), exchange(Collective::GroupedAllgather, 1)]);
    }
}

/// The words of fragments that were posted and taken: each of them is missed where it is lost, wakes nobody, or lies.
fn words_are_needed(program: &Program) {
    let found = |mutation, faults: &[&str]| killed_by(&BOTH[1..], program, mutation, faults);
    for words in [POSTED[0].0, POSTED[1].0, TAKEN] {
        found(Mutation::Lose(words, None), &["deadlock"]);
        found(Mutation::Deafen(words), &["lost wake-up"]);
    }
    for words in [POSTED[1].0, TAKEN] {
        found(Mutation::Forge(words, u64::MAX), &EARLY);
    }
}

/// Four ranks are groups of two in a group of groups, five have one level more, six are two groups of three.
#[test]
fn scans_by_groups_alone_and_in_mixes() {
    for (ranks, slots) in [(2, 2), (3, 1), (4, 1), (4, 2), (4, 4), (5, 2), (6, 2), (6, 4)] {
        let models = [(1, 4), (2, 2), (3, 1)].into_iter().flat_map(|(pieces, times)| {
            [Operation::scan(pieces), Operation::exscan(pieces)]
                .map(|scan| Program::new(ranks, 1, vec![scan; times]).with_slots(slots))
        });
        let models: Vec<_> = models.collect();
        let laps: Vec<_> = models.iter().cloned().map(Program::with_laps).collect();
        pass(order, models.into_iter().chain(laps), 12);
    }
    for (ranks, slots) in [(4, 2), (4, 16), (6, 4)] {
        let long = [Operation::scan(9), Operation::exscan(9)];
        pass(order, long.map(|scan| Program::new(ranks, 1, vec![scan]).with_slots(slots)).into_iter(), 2);
    }
    let others = [
        Operation::posted(3),
        Operation::queue(1, 2),
        Operation::Groups(1),
        Operation::short_scan(false),
        exchange(Collective::Scan, 1),
        exchange(Collective::Gatherv, 2),
    ];
    let scans = [Operation::scan(1), Operation::scan(2), Operation::exscan(2)];
    let mixes = family(4, 1, others.into_iter().chain(scans).collect(), 2);
    order_all(&mixes);
    pass(order, ahead(&mixes), mixes.models());
    explore_all(&family(2, 1, vec![Operation::scan(2), Operation::exscan(2), Operation::queue(1, 2)], 2));
    explore_all(&family(3, 1, vec![Operation::scan(1), Operation::exscan(1)], 1));
}

#[test]
fn faults_of_scans_by_groups_are_found() {
    for (scan, ranks, slots) in [(Operation::scan(3), 4, 2), (Operation::exscan(3), 4, 4), (Operation::scan(3), 6, 2)] {
        let program = Program::new(ranks, 1, vec![scan]).with_slots(slots);
        words_are_needed(&program);
    }
}

const fn shared(by: Sharing, root: u32, pieces: usize) -> Operation {
    Operation::Shared { root, pieces, by }
}

/// What a rank folds lies in its own slot until the root has taken it, while it posts ahead, also for the next operation, under
/// another root; in one slot, two, and four. The last slice of four ranks is the shortest one; of two ranks, one folds all.
#[test]
fn reduces_that_share_the_folds_alone_and_in_mixes() {
    use Sharing::{GroupsOfSums, Slices, SlicesOfSums};
    let slices = [(2, 1), (2, 4), (3, 1), (3, 2), (3, 4), (4, 2), (4, 4)].map(|at| (at, [Slices, SlicesOfSums]));
    let groups = [(4, 1), (4, 2), (4, 4), (6, 2), (6, 4)].map(|at| (at, [GroupsOfSums, GroupsOfSums]));
    for ((ranks, slots), [by, next]) in slices.into_iter().chain(groups) {
        let programs = [
            vec![shared(by, ranks - 1, 3)],
            vec![shared(by, 0, 2), shared(next, 1, 2)],
            vec![shared(next, 1, 1), shared(by, 1, 1), shared(next, 0, 1)],
        ];
        let models = programs.map(|operations| Program::new(ranks, 1, operations).with_slots(slots));
        let laps = models.clone().map(Program::with_laps);
        pass(order, models.into_iter().chain(laps), 6);
    }
    let others = [
        Operation::posted(1),
        Operation::queue(1, 2),
        Operation::Tree(1),
        exchange(Collective::Slices, 1),
        exchange(Collective::Reduce, 2),
        DISSEMINATION,
    ];
    for (ranks, forms) in [
        (3, [shared(SlicesOfSums, 0, 1), shared(Slices, 2, 2)]),
        (4, [shared(GroupsOfSums, 0, 1), shared(GroupsOfSums, 2, 2)]),
    ] {
        let mixes = family(ranks, 1, others.into_iter().chain(forms).collect(), 2);
        order_all(&mixes);
        pass(order, ahead(&mixes), mixes.models());
    }
}

#[test]
fn reduces_by_slices_of_two_ranks_in_all_orders() {
    for (slots, pieces) in [(1, 1), (2, 1), (2, 2), (4, 2)] {
        let operations = [shared(Sharing::SlicesOfSums, 0, pieces), shared(Sharing::Slices, 1, pieces)];
        let programs = operations.map(|operation| Program::new(2, 1, vec![operation]).with_slots(slots));
        pass(explore, programs.into_iter(), 2);
    }
}

/// `acked` says both that a rank has folded, and that the root has collected: a root that does not ask reads a fold too soon, and
/// a rank that does not ask posts over its fold. By groups `ready` says the former.
#[test]
fn faults_of_reduces_that_share_the_folds_are_found() {
    for (ranks, slots, by) in [
        (3, 2, Sharing::SlicesOfSums),
        (3, 4, Sharing::Slices),
        (4, 2, Sharing::Slices),
        (4, 2, Sharing::GroupsOfSums),
        (4, 4, Sharing::GroupsOfSums),
    ] {
        let program = Program::new(ranks, 1, vec![shared(by, 1, 3)]).with_slots(slots);
        words_are_needed(&program);
    }
}

/// A process that has gone on to the shares posts over a fragment that others of its group may not have folded: `ready` of those
/// that it takes from meanwhile does not tell.
#[test]
fn faults_of_groups_are_found() {
    for (ranks, slots) in [(4, 2), (4, 4), (6, 2)] {
        let program = Program::new(ranks, 1, vec![Operation::Groups(2)]).with_slots(slots);
        words_are_needed(&program);
    }
}

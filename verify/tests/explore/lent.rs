//! Messages that are lent: read where they lie before their owner writes there again.

use super::{LENT, exchange, killed_by, pass, soak, walk_all};
use unisono_verify::explore::{
    Check, Collective, Exchange, Family, Lending, Mutation, Operation, Program, exchanges, explore, order,
};

/// Every collective whose messages can be lent, alone and followed by another one: all lend, one or more can't read, one does not
/// lend. A lender writes its memory as soon as its operation has ended; who still reads it then overlaps, or gets wrong
/// bytes.
fn lent(ranks: u32, length: u32, all: &[Operation]) -> Vec<Program> {
    let families = Family { ranks, sets: 2, alphabet: all.to_vec(), length };
    families.spread().flat_map(|program| LENT.map(|lending| program.clone().lent(lending))).collect()
}

#[test]
fn what_is_lent_is_read_before_its_owner_writes_it_again() {
    for (ranks, fragments) in [(2, 1), (2, 2), (3, 1)] {
        let all: Vec<_> = exchanges(ranks, fragments).into_iter().chain([Operation::queue(1, fragments)]).collect();
        let models = lent(ranks, 1, &all);
        let count = models.len() as u64;
        pass(explore, models.into_iter(), count);
    }
    let pairs =
        [(Collective::Gatherv, 0), (Collective::Scatter, 1), (Collective::Allgather, 0), (Collective::Reduce, 1)]
            .map(|(collective, root)| Operation::Exchange(Exchange { collective, root, fragments: 2 }));
    let models = lent(2, 2, &[&pairs[..], &[Operation::queue(0, 2)]].concat());
    let count = models.len() as u64;
    pass(explore, models.into_iter(), count);
}

/// Of more ranks, and more fragments, twice: there are too many states to explore them all.
#[test]
fn walks_through_what_is_lent() {
    for (ranks, fragments) in [(3, 2), (4, 1), (4, 3), (5, 2)] {
        let all = exchanges(ranks, fragments).into_iter().chain([Operation::queue(1, fragments)]);
        let twice = all.map(|operation| Program::new(ranks, 2, vec![operation; 2]));
        walk_all(twice.flat_map(|model| LENT.map(|lending| model.clone().lent(lending))).collect());
    }
}

/// Writers that use one slot of their queues and two in turn, each as it likes: what a slot holds is taken before it is
/// written again, also where the last lap was another one.
#[test]
fn a_writer_may_change_its_lap_with_each_operation() {
    // Three ranks with two fragments have too many states: their models are decided by the order that waits force.
    let families: [(u32, usize, u32, Check); 5] =
        [(2, 1, 2, explore), (2, 3, 1, explore), (3, 1, 1, explore), (3, 2, 1, order), (2, 3, 2, explore)];
    for &(ranks, fragments, length, check) in if soak() { &families[..] } else { &families[..4] } {
        let all: Vec<_> = exchanges(ranks, fragments).into_iter().chain([Operation::queue(1, fragments)]).collect();
        let family = Family { ranks, sets: 2, alphabet: all, length };
        let models: Vec<_> = family.spread().map(Program::with_laps).collect();
        let count = models.len() as u64;
        pass(check, models.into_iter(), count);
    }
}

/// A lender may post a fragment after it has acknowledged all of its operation, since a rank that has read its loan asks for
/// fragments when it can't read another one. The root of the next operation writes to that lender's queue.
#[test]
fn a_root_writes_to_a_queue_when_its_owner_has_finished() {
    let next = Exchange { collective: Collective::Scatter, root: 2, fragments: 2 };
    let operations = vec![exchange(Collective::Allgather, 1), Operation::Exchange(next)];
    let model = Program::new(3, 2, operations).with_laps().lent(Lending::TwoUnreadable);
    pass(explore, [model].into_iter(), 1);
}

/// Each of the two words alone keeps most readers: a reader answers when it has read, and acknowledges later. So a lender
/// that takes all for acknowledged, and still waits for answers, leaves the bytes right: a rule of the shadow is broken.
#[test]
fn a_lender_that_does_not_wait_for_its_readers_is_found() {
    let all_read = Mutation::Forge(
        |layout, word| {
            let of = |rank| [layout.acked(rank).offset(), layout.answer(rank).offset()];
            (0..layout.ranks()).any(|rank| of(rank).contains(&word.offset))
        },
        u64::MAX,
    );
    let all_acked = Mutation::Forge(
        |layout, word| (0..layout.ranks()).any(|rank| layout.acked(rank).offset() == word.offset),
        u64::MAX,
    );
    let states: [(&str, Check); 1] = [("states", explore)];
    for ranks in [2, 3] {
        for collective in [Collective::Gatherv, Collective::Allgather, Collective::Reduce] {
            let exchange = Operation::Exchange(Exchange { collective, root: 0, fragments: 1 });
            let program = Program::new(ranks, 2, vec![exchange]).lent(Lending::All);
            killed_by(&states, &program, all_read, &["S2", "S3"]);
            killed_by(&states, &program, all_acked, &["has not released what it reads of the loan"]);
        }
        let program = Program::new(ranks, 2, vec![Operation::queue(0, 1)]).lent(Lending::All);
        killed_by(&states, &program, all_read, &["S2", "S3"]);
        killed_by(&states, &program, all_acked, &["has not released what it reads of the loan"]);
    }
}

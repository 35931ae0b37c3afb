//! Every collective in every form between threads, compared with the results that MPI defines; several in flight on two
//! communicators, started in any interleaving; requests that are misused.

use crate::common::{bounded, refusal};
use crate::family::{Family, Memory};
use proptest::prelude::*;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use unisono_kernel::algorithm::{AllreduceAlgorithm, BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::call::progress::Progress;
use unisono_kernel::call::scope::{ACTIVE, Request};
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::error::{Argument, Bound, Cause, Condition, Error, Poison, Refusal};
use unisono_kernel::op::Op;
use unisono_kernel::region::Params;
use unisono_local::{Local, Segment};

/// Queues of few short slots: everything is reused within one operation.
fn params(ranks: u32) -> Params {
    Params { queue_slots: 4, queue_fragment: 512, lines: 4, ..Params::new(ranks).with_cico() }
}

/// Words of a block: none, a posted line's, several fragments' of a queue.
const WORDS: [usize; 4] = [0, 1, 6, 700];

#[derive(Clone, Copy, Debug)]
enum Form {
    Blocking,
    Nonblocking,
    Persistent,
}

/// Three rounds of a collective, the same buffers in each.
fn rounds(c: &mut Communicator<Local>, form: Form, family: Family, words: usize) {
    let (me, size) = (c.rank() as usize, c.size() as usize);
    let memory = Memory::new(family, (me, size), words);
    let right = |round| assert!(memory.right(round), "{family:?} of {words} words, {form:?}, round {round}, rank {me}");
    match form {
        Form::Blocking => (0..3).for_each(|round| {
            memory.fill(round);
            c.run(&memory.call()).unwrap();
            right(round);
        }),
        Form::Nonblocking => (0..3).for_each(|round| {
            memory.fill(round);
            let call = memory.call();
            c.scope(|scope| scope.start(call).and_then(|request| scope.wait(request))).unwrap();
            right(round);
        }),
        Form::Persistent => c
            .scope(|scope| {
                let persistent = scope.init(memory.call())?;
                for round in 0..3 {
                    memory.fill(round);
                    let request = scope.restart(persistent)?;
                    // Complete by looking, and by waiting.
                    while round == 1 && !scope.test(request)? {
                        std::thread::yield_now();
                    }
                    scope.wait_persistent(persistent)?;
                    right(round);
                }
                scope.free(persistent)
            })
            .unwrap(),
    }
}

#[test]
fn every_collective_in_every_form() {
    for ranks in [1, 2, 3, 5] {
        bounded(move || {
            unisono_local::run(params(ranks), |mut c| {
                for (family, words) in Family::ALL.iter().flat_map(|family| WORDS.map(|words| (*family, words))) {
                    for form in [Form::Blocking, Form::Nonblocking, Form::Persistent] {
                        rounds(&mut c, form, family, words);
                    }
                }
            })
            .unwrap();
        });
    }
}

/// The collectives that are started in a phase on each of two communicators.
type Phase = [Vec<(usize, usize)>; 2];

/// Numbers that look random.
fn mix(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize
}

/// One rank: starts each phase's operations in an interleaving of its own, tests now and then, and waits in an order of its own.
fn interleave(comms: &mut [Communicator<Local>; 2], phases: &[Phase], mut seed: u64) {
    let [first, second] = comms;
    let who = (first.rank() as usize, first.size() as usize);
    let memory = |&(family, words): &(usize, usize)| {
        Memory::new(Family::ALL[family % Family::ALL.len()], who, WORDS[words % WORDS.len()])
    };
    let memories: Vec<[Vec<Memory>; 2]> =
        phases.iter().map(|phase| [0, 1].map(|which| phase[which].iter().map(memory).collect())).collect();
    first
        .scope(|first| {
            second.scope(|second| {
                for (round, phase) in memories.iter().enumerate() {
                    let mut started: Vec<(usize, Request)> = Vec::new();
                    let mut next = [0, 0];
                    while next != [phase[0].len(), phase[1].len()] {
                        let which = mix(&mut seed) % 2;
                        let which = if next[which] < phase[which].len() { which } else { 1 - which };
                        let memory = &phase[which][next[which]];
                        memory.fill(round);
                        next[which] += 1;
                        let call = memory.call();
                        started.push((which, if which == 0 { first.start(call)? } else { second.start(call)? }));
                        if mix(&mut seed).is_multiple_of(3) {
                            let (which, request) = started[mix(&mut seed) % started.len()];
                            if which == 0 {
                                first.test(request)?
                            } else {
                                second.test(request)?
                            };
                        }
                    }
                    while !started.is_empty() {
                        let (which, request) = started.swap_remove(mix(&mut seed) % started.len());
                        if which == 0 {
                            first.wait_among(request, &mut [second])?;
                        } else {
                            second.wait_among(request, &mut [first])?;
                        }
                    }
                    assert!(
                        phase.iter().flatten().all(|memory| memory.right(round)),
                        "phase {round} on rank {}",
                        who.0
                    );
                }
                Ok(())
            })
        })
        .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Two communicators, whose operations ranks start and wait for in different orders.
    #[test]
    fn starts_on_two_communicators_in_any_interleaving(
        ranks in 1u32..5,
        phases in prop::collection::vec(
            [0, 1].map(|_| prop::collection::vec((0..Family::ALL.len(), 0..WORDS.len()), 0..=ACTIVE)), 1..4),
        seed: u64,
    ) {
        bounded(move || {
            let other = Segment::new(params(ranks)).unwrap();
            unisono_local::run(params(ranks), |c| {
                let (layout, rank) = (*other.layout(), c.rank());
                let wait = unisono_local::waiting(2 * ranks);
                let second = Communicator::new(other.clone(), layout, rank, wait).unwrap();
                interleave(&mut [c, second], &phases, seed ^ u64::from(rank) << 17);
            })
            .unwrap();
        });
    }
}

/// Rank 0 makes the second communicator's call before it waits for the first one's broadcast, rank 1 after: the call
/// progresses the broadcast, whether it spins or yields.
#[test]
fn blocking_calls_move_the_scopes_that_they_are_given() {
    const MANY: usize = 1 << 20;
    for policy in [1, 1000] {
        let other = Segment::new(params(2)).unwrap();
        let received = bounded(move || {
            unisono_local::run(params(2), |mut first| {
                let (layout, rank) = (*other.layout(), first.rank());
                let wait = unisono_local::waiting(policy);
                let mut second = Communicator::<Local>::new(other.clone(), layout, rank, wait).unwrap();
                let mut bytes = vec![rank as u8; MANY];
                let (mut sum, one) = ([0; 8], 1i64.to_ne_bytes());
                first
                    .scope(|scope| {
                        let request = scope.start_bcast(Data::bytes_mut(&mut bytes), 1, BcastAlgorithm::Auto)?;
                        let call = Call::allreduce(&one, &mut sum, Op::SUM_I64);
                        if rank == 1 {
                            scope.wait(request)?;
                        }
                        second.run_among(&call, &mut [scope])?;
                        second.run_among(&Call::Barrier { algorithm: BarrierAlgorithm::Auto }, &mut [])?;
                        scope.wait(request)
                    })
                    .unwrap();
                bytes == [1; MANY] && i64::from_ne_bytes(sum) == 2
            })
            .unwrap()
        });
        assert_eq!(received, [true; 2]);
    }
}

/// An operation that a call progresses may fail, or panic: then the call itself goes on, or all ranks get an error.
#[test]
fn a_call_that_unwinds_among_others_is_over_for_all() {
    struct Falls;
    impl Progress for Falls {
        fn progress(&mut self) {
            panic!("others fall");
        }
    }
    let [mut one, mut other] = ends();
    let call = Call::Barrier { algorithm: BarrierAlgorithm::Auto };
    let fall = AssertUnwindSafe(|| one.run_among(&call, &mut [&mut Falls]));
    assert!(catch_unwind(fall).is_err());
    assert!(matches!(other.barrier(), Err(Error::Poisoned(Poison { rank: 0, cause: Cause::Fault, .. }))));
}

/// Both ranks of a communicator in one thread: the order of events is certain.
fn ends() -> [Communicator<Local>; 2] {
    let segment = Segment::new(params(2)).unwrap();
    let layout = *segment.layout();
    [0, 1].map(|rank| Communicator::new(segment.clone(), layout, rank, unisono_local::waiting(2)).unwrap())
}

fn bcast(bytes: &[Cell<u8>]) -> Call<'_> {
    Call::Bcast { data: Data::cells(bytes), root: 0, algorithm: BcastAlgorithm::Auto }
}

const TWICE: Option<Refusal> = Some(Refusal::not(Argument::Requests, Condition::Inactive));
const NONE: Option<Refusal> = Some(Refusal::not(Argument::Requests, Condition::Known));

/// A persistent operation that is inactive is waited for at once; an active one is neither started nor freed.
#[test]
fn a_persistent_operation_is_started_when_it_is_not_active() {
    let [mut root, mut other] = ends();
    let bytes = [const { Cell::new(0) }; 3];
    other
        .scope(|scope| {
            let persistent = scope.init(bcast(&bytes))?;
            scope.wait_persistent(persistent)?;
            for round in 1..10 {
                let request = scope.restart(persistent)?;
                assert!(scope.is_active(persistent)? && !scope.test(request)?);
                assert_eq!(refusal(scope.restart(persistent).unwrap_err()), TWICE);
                assert_eq!(refusal(scope.free(persistent).unwrap_err()), TWICE);
                root.bcast(&mut [round; 3], 0)?;
                scope.wait_persistent(persistent)?;
                assert_eq!(bytes.each_ref().map(Cell::get), [round; 3]);
                assert!(!scope.is_active(persistent)? && scope.test(request)?);
                scope.wait_persistent(persistent)?;
            }
            scope.free(persistent)?;
            for error in [
                scope.restart(persistent).map(drop),
                scope.free(persistent),
                scope.wait_persistent(persistent),
                scope.is_active(persistent).map(drop),
            ] {
                assert_eq!(refusal(error.unwrap_err()), NONE);
            }
            // Its place is another one's now, which the old name does not name.
            let next = scope.init(bcast(&bytes))?;
            assert_eq!(refusal(scope.restart(persistent).unwrap_err()), NONE);
            scope.wait_persistent(next)
        })
        .unwrap();
}

/// There is room for so many requests, persistent or active; a refused one has changed nothing.
#[test]
fn a_full_scope_refuses_and_goes_on() {
    let [mut root, mut other] = ends();
    let bytes = [const { Cell::new(0) }; 3];
    other
        .scope(|scope| {
            let all: Vec<_> = (0..ACTIVE).map(|_| scope.init(bcast(&bytes))).collect::<Result<_, _>>()?;
            let full = Some(Refusal::new(Argument::Requests, ACTIVE as u64 + 1, Bound::AtMost(ACTIVE as u64)));
            assert_eq!(refusal(scope.init(bcast(&bytes)).unwrap_err()), full);
            assert_eq!(refusal(scope.start(bcast(&bytes)).unwrap_err()), full);
            // In another order than they were planned in.
            let started: Vec<_> = all.iter().rev().map(|one| scope.restart(*one)).collect::<Result<_, _>>()?;
            for (round, request) in (1..).zip(started) {
                assert!(!scope.test(request)?);
                root.bcast(&mut [round; 3], 0)?;
                scope.wait(request)?;
                assert_eq!(bytes.each_ref().map(Cell::get), [round; 3]);
            }
            scope.free(all[3])?;
            let request = scope.start(bcast(&bytes))?;
            root.bcast(&mut [99; 3], 0)?;
            scope.wait(request)
        })
        .unwrap();
    assert_eq!(bytes[0].get(), 99);
}

/// A wait for one operation does not wait for those that were started after it: other ranks may not have called them
/// yet.
#[test]
fn a_wait_is_for_what_was_started_before() {
    bounded(|| {
        let [mut root, mut other] = ends();
        let bytes = [const { Cell::new(0) }; 3];
        other
            .scope(|scope| {
                let persistent = scope.init(bcast(&bytes))?;
                let first = scope.restart(persistent)?;
                root.bcast(&mut [1; 3], 0)?;
                let second = scope.start(bcast(&bytes))?;
                scope.wait_persistent(persistent)?;
                scope.wait(first)?;
                assert!(!scope.test(second)?);
                root.bcast(&mut [2; 3], 0)?;
                scope.wait(second)
            })
            .unwrap();
        assert_eq!(bytes.map(Cell::into_inner), [2; 3]);
    });
}

/// A scope that unwinds leaves no rank waiting for the operations that it started, and the communicator works if they
/// were complete.
#[test]
fn a_scope_that_unwinds_is_over_for_all() {
    for active in [false, true] {
        let [mut root, mut other] = ends();
        let bytes = [const { Cell::new(0) }; 3];
        let body = AssertUnwindSafe(|| {
            other.scope(|scope| -> Result<(), Error> {
                if active {
                    let _ = scope.start(bcast(&bytes))?;
                }
                panic!("the body falls");
            })
        });
        assert!(catch_unwind(body).is_err());
        let poison = other.bcast(&mut [0; 3], 1).err();
        assert_eq!(matches!(poison, Some(Error::Poisoned(Poison { rank: 1, cause: Cause::Fault, .. }))), active);
        assert_eq!(root.bcast(&mut [0; 3], 0).is_err(), active);
    }
}

/// Requests are numbers: an active one that is forgotten is completed by the scope's end.
#[test]
fn forgotten_requests_are_completed_by_the_scopes_end() {
    let segment = params(2);
    let found = bounded(move || {
        unisono_local::run(segment, |mut c| {
            let bytes = [const { Cell::new(0) }; 3];
            bytes.iter().for_each(|byte| byte.set(if c.rank() == 0 { 5 } else { 0 }));
            c.scope(|scope| {
                let persistent = scope.init(bcast(&bytes))?;
                let _ = scope.restart(persistent)?;
                let _ = scope.start_barrier(BarrierAlgorithm::Auto)?;
                Ok(())
            })
            .unwrap();
            bytes.map(Cell::into_inner)
        })
        .unwrap()
    });
    assert_eq!(found, [[5; 3]; 2]);
}

/// A wrong argument is refused when the operation is initialised, with the number that it would have had; persistent
/// ones that exist give the poison when they are started, and nothing is written any more.
#[test]
fn a_poisoned_communicator_starts_nothing() {
    let [mut bad, mut other] = ends();
    let bytes = [const { Cell::new(1) }; 3];
    let poison = other
        .scope(|scope| {
            let persistent = scope.init(bcast(&bytes))?;
            let active = scope.restart(persistent)?;
            let refused = Call::Bcast { data: Data::cells(&bytes), root: 9, algorithm: BcastAlgorithm::Auto };
            let error = bad.scope(|bad| {
                let _ = bad.start_barrier(BarrierAlgorithm::Central)?;
                let _ = bad.start(bcast(&bytes))?;
                bad.init(refused)
            });
            assert_eq!(refusal(error.unwrap_err()), Some(Refusal::new(Argument::Root, 9, Bound::Below(2))));
            let Error::Poisoned(poison) = scope.test(active).unwrap_err() else { panic!("not poisoned") };
            for error in [scope.restart(persistent).map(drop), scope.wait(active), scope.wait_persistent(persistent)] {
                assert!(error.is_err());
            }
            let idle = scope.init(bcast(&bytes)).map(drop);
            assert_eq!(idle, Err(Error::Poisoned(poison)));
            Ok(poison)
        })
        .unwrap_err();
    let Error::Poisoned(poison) = poison else { panic!("{poison} is no poison") };
    assert_eq!((poison.rank, poison.operation), (0, 3));
    assert!(matches!(poison.cause, Cause::Refused(_)));
    assert_eq!(bytes.map(Cell::into_inner), [1; 3]);
}

/// An inactive persistent operation gives the poison too.
#[test]
fn an_idle_persistent_operation_gives_the_poison() {
    let [mut bad, mut other] = ends();
    let bytes = [const { Cell::new(1) }; 3];
    let error = other.scope(|scope| {
        let persistent = scope.init(bcast(&bytes))?;
        bad.bcast(&mut [0; 3], 7).unwrap_err();
        scope.wait_persistent(persistent)?;
        scope.restart(persistent).map(drop)
    });
    assert!(matches!(error, Err(Error::Poisoned(_))));
}

/// Initialising takes no number: ranks that initialise different operations can run the same ones.
#[test]
fn planning_takes_part_in_nothing() {
    let found = bounded(|| {
        unisono_local::run(params(3), |mut c| {
            let rank = c.rank();
            let bytes = [const { Cell::new(0) }; 2000];
            let sum = Cell::new([0; 8]);
            let sum: &Cell<[u8]> = &sum;
            let sum = sum.as_slice_of_cells();
            bytes.iter().for_each(|byte| byte.set(if rank == 0 { 7 } else { 0 }));
            c.scope(|scope| {
                for _ in 0..rank {
                    let unused = scope.init(bcast(&bytes))?;
                    scope.free(unused)?;
                }
                let one = scope.start(bcast(&bytes))?;
                let (send, receive) = (Data::cells(sum), Data::cells(sum));
                sum[0].set(rank as u8 + 1);
                let two = Call::Allreduce { send, receive, op: Op::SUM_I64, algorithm: AllreduceAlgorithm::Exchange };
                let two = scope.start(two)?;
                scope.wait(two)?;
                scope.test(one)
            })
            .unwrap();
            (bytes[1999].get(), sum[0].get())
        })
        .unwrap()
    });
    assert_eq!(found, [(7, 6); 3]);
}

//! Random programs with refused arguments: every rank's error names the rank, the argument, its value and its bound.
//! All renew the communicator, agree where to go on, and go on; the results on it are right.

use crate::common::{bounded, refusal};
use crate::family::{Family, Memory};
use core::ffi::c_void;
use proptest::prelude::*;
use unisono_kernel::algorithm::BarrierAlgorithm;
use unisono_kernel::call::Call;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::{Argument, Cause, Condition, Error, Poison, PollError, Refusal};
use unisono_kernel::op::{Op, User};
use unisono_kernel::region::Params;
use unisono_local::{Local, renew};

fn params(ranks: u32) -> Params {
    Params { queue_slots: 4, queue_fragment: 512, lines: 4, ..Params::new(ranks).with_cico() }
}

/// The mistake in one rank's call.
#[derive(Clone, Copy, Debug)]
enum Mistake {
    /// The root is not a rank of the communicator.
    Root,
    /// The operation has elements of no bytes.
    Operation,
    /// There is a block too many.
    Count,
    /// Its blocks, or its operand, are longer than the others'.
    Length,
}

const MISTAKES: [Mistake; 4] = [Mistake::Root, Mistake::Operation, Mistake::Count, Mistake::Length];

unsafe extern "C-unwind" fn nothing(_: *const c_void, _: *mut c_void, _: u64, _: *mut c_void) {}

/// The call with the mistake, and the argument that is refused for it; `None` where there can't be such a one.
fn spoilt<'a>(call: Call<'a>, mistake: Mistake, size: u32, longer: &'a Memory) -> Option<(Call<'a>, Argument)> {
    // SAFETY: never called: the operation is refused.
    let op = Op::User(unsafe { User::new(nothing, std::ptr::null_mut(), 0, true) });
    let mut call = call;
    let argument = match (mistake, &mut call) {
        (_, Call::Barrier { algorithm }) => {
            *algorithm = BarrierAlgorithm::Combining(0);
            Argument::Arity
        }
        (
            Mistake::Root,
            Call::Bcast { root, .. }
            | Call::Gather { root, .. }
            | Call::Gatherv { root, .. }
            | Call::Scatter { root, .. }
            | Call::Scatterv { root, .. }
            | Call::Reduce { root, .. },
        ) => {
            *root = size + 3;
            Argument::Root
        }
        (
            Mistake::Operation,
            Call::Reduce { op: wrong, .. }
            | Call::Allreduce { op: wrong, .. }
            | Call::ReduceScatter { op: wrong, .. }
            | Call::Scan { op: wrong, .. }
            | Call::Exscan { op: wrong, .. },
        ) => {
            *wrong = op;
            Argument::Extent
        }
        (Mistake::Count, Call::Allgather { receive, .. } | Call::Alltoall { receive, .. }) => {
            *receive = Blocks::equal_mut(&mut [], size + 1, 0, Datatype::BYTE).ok()?;
            Argument::Ranks
        }
        (Mistake::Length, _) => return Some((longer.call(), Argument::Bytes)),
        _ => return None,
    };
    Some((call, argument))
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Blocking,
    Nonblocking,
    Persistent,
}

/// A few collectives in one form, with a mistake in one rank's call.
#[derive(Clone, Debug)]
struct Phase {
    calls: Vec<(usize, usize)>,
    form: usize,
    wrong: Option<(usize, u32, usize)>,
}

const WORDS: [usize; 4] = [0, 1, 6, 700];

impl Phase {
    fn memory(&self, at: usize, who: (usize, usize), more: usize) -> Memory {
        let (family, words) = self.calls[at];
        Memory::new(Family::ALL[family % Family::ALL.len()], who, WORDS[words % WORDS.len()] + more)
    }

    /// The wrong call, its rank, the mistake, and the refused argument.
    fn wrong(&self, size: u32) -> Option<(usize, u32, Mistake, Argument)> {
        let (at, culprit, mistake) = self.wrong?;
        let (at, culprit) = (at % self.calls.len(), culprit % size);
        let who = (culprit as usize, size as usize);
        let [memory, longer] = [0, who.1].map(|more| self.memory(at, who, more));
        // The first that there can be, beginning with the one that was drawn.
        (0..MISTAKES.len()).find_map(|turn| {
            let mistake = MISTAKES[(mistake + turn) % MISTAKES.len()];
            let lonely = matches!(mistake, Mistake::Length) && size == 1;
            let (_, argument) = spoilt(memory.call(), mistake, size, &longer).filter(|_| !lonely)?;
            Some((at, culprit, mistake, argument))
        })
    }

    /// Runs the collectives, with or without the mistake, and checks the results of the right calls.
    fn run(&self, c: &mut Communicator<Local>, round: usize, wrongly: bool) -> Result<(), Error> {
        let (me, size) = (c.rank(), c.size());
        let who = (me as usize, size as usize);
        let wrong = self.wrong(size).filter(|_| wrongly);
        let memories: Vec<_> =
            (0..self.calls.len()).map(|at| [0, who.1].map(|more| self.memory(at, who, more))).collect();
        let call = |at: usize| {
            let [memory, longer] = &memories[at];
            memory.fill(round);
            let spoil = wrong.filter(|&(wrong, culprit, ..)| (wrong, culprit) == (at, me));
            let spoilt = spoil.and_then(|(_, _, mistake, _)| spoilt(memory.call(), mistake, size, longer));
            spoilt.map_or(memory.call(), |(call, _)| call)
        };
        let right = |at: usize| {
            let counts = wrong.is_none_or(|(wrong, ..)| at < wrong);
            assert!(!counts || memories[at][0].right(round), "{self:?}, call {at}, round {round}, rank {me}");
        };
        let all = 0..self.calls.len();
        match [Form::Blocking, Form::Nonblocking, Form::Persistent][self.form % 3] {
            Form::Blocking => all.into_iter().try_for_each(|at| {
                c.run(&call(at))?;
                right(at);
                Ok(())
            }),
            Form::Nonblocking => c.scope(|scope| {
                let requests = all.map(|at| scope.start(call(at))).collect::<Result<Vec<_>, _>>()?;
                for (at, request) in requests.into_iter().enumerate() {
                    scope.wait(request)?;
                    right(at);
                }
                Ok(())
            }),
            Form::Persistent => c.scope(|scope| {
                let planned = all.map(|at| scope.init(call(at))).collect::<Result<Vec<_>, _>>()?;
                for (at, planned) in planned.into_iter().enumerate() {
                    let _ = scope.restart(planned)?;
                    scope.wait_persistent(planned)?;
                    right(at);
                }
                Ok(())
            }),
        }
    }
}

/// Does the error name the refused argument and the rank at fault?
fn tells(error: Error, me: u32, (culprit, mistake, argument): (u32, Mistake, Argument)) -> bool {
    let named = match error {
        Error::Refused(_) => me == culprit,
        Error::Poll(PollError::Mismatch { .. }) => matches!(mistake, Mistake::Length),
        // Who finds that lengths differ refuses them.
        Error::Poisoned(poison) => poison.rank == culprit || matches!(mistake, Mistake::Length),
        _ => false,
    };
    // Paper P1's sets compare fragments, whose size follows from the length.
    let differs = |found| matches!((mistake, found), (Mistake::Length, Argument::Fragment));
    named && refusal(error).is_some_and(|refusal| refusal.argument == argument || differs(refusal.argument))
}

/// One rank's program; returns how often it renewed its communicator.
fn program(mut c: Communicator<Local>, phases: &[Phase]) -> usize {
    let (mut at, mut renewals) = (0, 0);
    while let Some(phase) = phases.get(at) {
        let mut result = phase.run(&mut c, at, true);
        if result.is_ok() && phase.wrong(c.size()).is_none() {
            at += 1;
            continue;
        }
        // Who has finished what failed elsewhere goes on, until it is told.
        if result.is_ok() && at + 1 < phases.len() {
            result = phases[at + 1].run(&mut c, at, false);
        }
        let error = result.and_then(|()| c.barrier()).expect_err("no rank leaves a barrier that one rank never enters");
        // Others may have been told when they were one operation behind.
        let failed = (at..phases.len()).find(|&at| phases[at].wrong(c.size()).is_some()).expect("one is wrong");
        let (_, culprit, mistake, argument) = phases[failed].wrong(c.size()).expect("it is wrong");
        assert!(
            tells(error, c.rank(), (culprit, mistake, argument)),
            "rank {}: {error}: {:?}",
            c.rank(),
            phases[failed]
        );
        renew(&mut c).expect("no rank died");
        renewals += 1;
        // All agree where to go on.
        let mut next = (failed as u64 + 1).to_ne_bytes();
        let all: Vec<u8> = next.repeat(c.size() as usize);
        let mut told = vec![0; all.len()];
        let blocks = Blocks::equal_mut(&mut told, c.size(), 8, Datatype::BYTE).expect("blocks that fit");
        c.allgather(Some(Data::bytes_mut(&mut next)), blocks).expect("it works at once");
        assert_eq!(told, all);
        at = failed + 1;
    }
    renewals
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn programs_go_on_after_refusals_in_every_form(
        ranks in 1u32..6,
        phases in prop::collection::vec(
            (
                prop::collection::vec((0..Family::ALL.len(), 0..WORDS.len()), 1..=4),
                0..3usize,
                prop::option::weighted(0.4, (0..4usize, 0..8u32, 0..MISTAKES.len())),
            ).prop_map(|(calls, form, wrong)| Phase { calls, form, wrong }),
            1..10),
    ) {
        let wrong = phases.iter().filter(|phase| phase.wrong(ranks).is_some()).count();
        let renewals = bounded(move || unisono_local::run(params(ranks), |c| program(c, &phases)).unwrap());
        prop_assert_eq!(renewals, vec![wrong; ranks as usize]);
    }
}

/// A communicator that has not failed, and one of which a rank died, are not renewed; they are unchanged.
#[test]
fn only_what_all_survived_is_renewed() {
    let healthy = Some(Refusal::not(Argument::Failures, Condition::Failed));
    let sums = bounded(move || {
        let all_have_theirs = std::sync::Barrier::new(3);
        unisono_local::run(params(3), |mut c| {
            assert_eq!(refusal(renew(&mut c).unwrap_err()), healthy);
            let mut sum = i64::from(c.rank()).to_ne_bytes();
            c.allreduce_in_place(&mut sum, Op::SUM_I64).unwrap();
            let dead = Poison { rank: 2, operation: 1, cause: Cause::Died };
            all_have_theirs.wait();
            // One of them says so, all are told.
            if c.rank() == 0 {
                c.comm().poison_with(dead);
            }
            assert_eq!(c.barrier(), Err(Error::Poisoned(dead)));
            assert_eq!(renew(&mut c), Err(Error::Poisoned(dead)));
            assert_eq!(c.barrier(), Err(Error::Poisoned(dead)));
            i64::from_ne_bytes(sum)
        })
        .unwrap()
    });
    assert_eq!(sums, [3; 3]);
}

/// After a user's operation that unwinds, and after a rank that was late, all ranks renew the communicator.
#[test]
fn whatever_all_survived_is_renewed() {
    for cause in [Cause::Fault, Cause::Late] {
        bounded(move || {
            unisono_local::run(params(2), |mut c| {
                if c.rank() == 1 {
                    c.comm().poison_with(Poison { rank: 1, operation: 1, cause });
                }
                let error = c.barrier().unwrap_err().to_string();
                assert!(error.contains("rank 1"), "{error}");
                renew(&mut c).unwrap();
                c.barrier().unwrap();
            })
            .unwrap();
        });
    }
}

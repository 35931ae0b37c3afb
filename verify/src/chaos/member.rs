//! One process of a program: its communicator, its present call, the machine of that call.

use super::program::Call;
use super::stage::Stage;
use crate::explore::ordered;
use unisono_kernel::Rank;
use unisono_kernel::call;
use unisono_kernel::call::any::Any;
use unisono_kernel::comm::{Comm, Member};
use unisono_kernel::error::{Cause, Poison, PollError, Refusal};
use unisono_kernel::machine::poll::{Poll, WaitSet};
use unisono_kernel::machine::transport::Observe;
use unisono_kernel::machine::{Machine, Operation};
use unisono_kernel::op::Op;
use unisono_kernel::region::{Base, Layout, Region};
use unisono_kernel::shm::reduce::posted::Posted;

/// One process's part of a call of a program.
fn build<'s>(me: &Member, stage: &'s Stage<'_>, index: usize) -> Result<Any<'s>, Refusal> {
    let ((send, receive), memory) = (stage.data(index, me.rank()), stage.memory(index, me.rank()));
    match stage.calls()[index] {
        Call::Bcast { algorithm, root, .. } => call::Call::Bcast { data: receive, root, algorithm }.build(me),
        Call::Barrier(algorithm) => call::Call::Barrier { algorithm }.build(me),
        Call::Allreduce { op, .. } => Ok(Posted::to_all(me, send, receive, op.op())?.into()),
        Call::Spread(spread) => spread.machine(me, memory),
        Call::Uneven(uneven) => Ok(uneven.machine(me, memory)?.into()),
        Call::Exchange { exchange, ordered: is } => {
            let slot = me.layout().params().queue_fragment as usize;
            exchange.machine(me, slot, memory, if is { ordered() } else { Op::SUM_I64 })
        }
    }
}

/// The outcome of a poll.
pub(super) enum Outcome {
    /// The process is not complete yet.
    Going,
    /// All calls are complete here.
    Finished,
    /// The machine failed.
    Failed(PollError),
}

/// One process.
pub(super) struct Process<'s, R> {
    comm: Comm<R>,
    stage: &'s Stage<'s>,
    /// The number of the present call.
    at: usize,
    machine: Option<Any<'s>>,
    /// What the machine returned last.
    waits: Option<WaitSet>,
    /// The process has failed and given up.
    over: bool,
}

impl<'s, R: Region> Process<'s, R> {
    /// The processes of a segment; each has a view of it.
    pub(super) fn all((layout, base): (Layout, Base), view: impl Fn(Rank) -> R, stage: &'s Stage<'s>) -> Vec<Self> {
        let comm = |rank| Comm::resume(view(rank), layout, rank, base).expect("the rank is below the layout's");
        let process = |rank| Self { comm: comm(rank), stage, at: 0, machine: None, waits: None, over: false };
        (0..layout.ranks()).map(process).collect()
    }

    pub(super) fn rank(&self) -> Rank {
        self.comm.member().rank()
    }

    /// The present call, for reports.
    pub(super) fn place(&self) -> (Rank, usize, Option<WaitSet>) {
        (self.rank(), self.at, self.waits)
    }

    /// Starts the next call if none runs; polls once.
    fn poll(&mut self) -> Outcome {
        if self.at == self.stage.calls().len() {
            return Outcome::Finished;
        }
        let machine = match &mut self.machine {
            Some(machine) => machine,
            none => {
                let made = build(self.comm.member(), self.stage, self.at);
                let made = made.expect("the decoder makes no call that is refused");
                none.insert(made.started(self.comm.member_mut()))
            }
        };
        match machine.poll(&mut self.comm) {
            Ok(Poll::Wait(on)) => self.waits = Some(on),
            Ok(Poll::Done) => {
                assert_eq!(machine.poll(&mut self.comm), Ok(Poll::Done), "done stays done");
                self.next();
            }
            Err(error) => return Outcome::Failed(error),
        }
        if self.at == self.stage.calls().len() { Outcome::Finished } else { Outcome::Going }
    }

    fn next(&mut self) {
        self.at += 1;
        (self.machine, self.waits) = (None, None);
    }

    /// Polls once, among members that keep the protocol: without an awaited event nothing changes,
    /// and no event for which it waits has happened yet. `segment` is a view through which
    /// the check looks, without being a process.
    pub(super) fn poll_checked(&mut self, segment: impl Region) -> Outcome {
        let mut looker = Comm::with_member(segment, self.comm.member().clone());
        let idle = self.waits.filter(|on| !looker.ready(on));
        let before = (self.at, self.waits, self.machine.clone());
        let outcome = self.poll();
        assert!(
            idle.is_none() || before == (self.at, self.waits, self.machine.clone()),
            "a spurious poll changed {before:#?}"
        );
        if let Some(on) = self.waits {
            assert!(!looker.ready(&on), "waits for what has happened: {on:?} {:#?}", self.machine);
        }
        outcome
    }

    /// Polls once, as a driver does, on a segment whose words may have any values.
    pub(super) fn poll_hostile(&mut self, looks: bool, goes_on: bool) {
        if self.over || self.at == self.stage.calls().len() {
            return;
        }
        if looks && let Some(poison) = self.comm.poison() {
            assert!(!poison.to_string().is_empty());
            self.fail(goes_on);
        } else if let Outcome::Failed(error) = self.poll() {
            let cause = match error {
                PollError::Mismatch { refusal, .. } => Cause::Refused(refusal),
                _ => Cause::Fault,
            };
            let (rank, operation) = (self.rank(), self.comm.member().operation());
            let counts = self.comm.poison_with(Poison { rank, operation, cause });
            // A rank that is not a member would be one of another node.
            assert!(counts.rank < 1 << 20);
            self.fail(goes_on);
        }
    }

    /// The call has ended; a driver whose state word was cleared may make another call.
    fn fail(&mut self, goes_on: bool) {
        self.next();
        self.over = !goes_on;
    }
}

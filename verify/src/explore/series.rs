//! A program's processes, as the model that is explored: one operation after the other.

use unisono_kernel::Rank;
use unisono_kernel::call::any::Any;
use unisono_kernel::comm::{Comm, Member};
use unisono_kernel::error::{PollError, Refusal};
use unisono_kernel::machine::poll::Poll;
use unisono_kernel::machine::transport::Shared;
use unisono_kernel::machine::{Machine, Operation as _};
use unisono_kernel::region::Layout;

use super::mail::Talk;
use super::operation::Operation;
use super::process::{self, Model, Segment, Turn};
use super::program::{Lending, Program};
use super::tape::Probes;
use std::cell::Cell;

/// A machine of any operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Running {
    Call(Box<Any<'static>>),
    Mail(Box<Talk>),
}

impl Running {
    pub(super) fn start(mut self, me: &mut Member) -> Self {
        if let Self::Call(operation) = &mut self {
            operation.start(me);
        }
        self
    }
}

impl<X: Shared + ?Sized> Machine<X> for Running {
    fn poll(&mut self, x: &mut X) -> Result<Poll, PollError> {
        match self {
            Self::Call(operation) => operation.poll(x),
            Self::Mail(machine) => machine.poll(x),
        }
    }
}

/// A program's processes: one operation after the other.
#[derive(Debug)]
pub(crate) struct Series<'p> {
    program: &'p Program,
    layout: Layout,
    /// The real user memory, of which there is one: each poll fills it first.
    memory: Box<[Cell<u8>]>,
}

/// A process between two polls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Body {
    /// Operations that are done.
    done: usize,
    member: Member,
    /// The present operation's machine; nothing after the last operation.
    machine: Option<Running>,
    memory: Box<[u8]>,
    /// Has it lent something in this operation? It writes that memory when the operation has ended.
    lent: bool,
}

impl<'p> Series<'p> {
    pub(crate) fn new(program: &'p Program) -> Result<Self, Refusal> {
        let memory = program.memory(0, 0).into_iter().map(Cell::new).collect();
        Ok(Self { program, layout: program.layout()?, memory })
    }

    /// Starts the next operation.
    fn next(&self, body: &mut Body) -> Result<(), Refusal> {
        let memory = self.memory.as_ptr().cast_mut().cast();
        let more = body.done < self.program.operations.len();
        let made = more.then(|| self.program.machine(&body.member, body.done, memory)).transpose()?;
        body.machine = made.map(|machine| machine.start(&mut body.member));
        Ok(())
    }

    /// The first byte of user memory that is wrong after the operations done so far.
    fn wrong_byte(&self, body: &Body) -> Option<String> {
        let right = self.program.memory(body.member.rank(), body.done);
        let at = body.memory.iter().zip(&right).position(|(found, expected)| found != expected)?;
        let (found, expected) = (body.memory[at], right[at]);
        Some(format!("wrong data after operation {}: byte {at} is {found:#x}, must be {expected:#x}", body.done))
    }
}

impl Model for Series<'_> {
    type Body = Body;

    fn segments(&self) -> Vec<Segment> {
        let lent = match self.program.lending {
            Lending::None => 0,
            // All that an operation sends lies in its memory.
            _ => self.memory.len().next_multiple_of(8) as u64,
        };
        let group = (0..self.layout.ranks()).collect();
        vec![Segment { layout: self.layout, base: self.program.base, group, lent }]
    }

    fn start(&self, rank: Rank) -> Result<Body, Refusal> {
        let member = Member::resume(self.layout, rank, self.program.base)?;
        let mut body =
            Body { done: 0, member, machine: None, memory: self.program.memory(rank, 0).into(), lent: false };
        self.next(&mut body)?;
        Ok(body)
    }

    fn poll(&self, body: &mut Body, probes: &[Probes]) -> Result<Turn, String> {
        let (Some(machine), [probes]) = (&mut body.machine, probes) else { return Ok(Turn::Goes) };
        probes.sit(self.program.lending.seat(body.member.rank(), self.program.laps, body.done));
        for (cell, &byte) in self.memory.iter().zip(&body.memory) {
            cell.set(byte);
        }
        let mut comm = Comm::with_member(probes, body.member.clone());
        let step = machine.poll(&mut comm).map_err(|error| error.to_string())?;
        body.member = comm.member().clone();
        body.memory = self.memory.iter().map(Cell::get).collect();
        body.lent |= probes.has_lent();
        if let Poll::Wait(awaits) = step {
            return Ok(Turn::Waits(vec![(0, awaits)]));
        }
        if body.lent {
            probes.take_back();
            body.lent = false;
        }
        body.done += 1;
        match self.wrong_byte(body) {
            Some(fault) => Err(fault),
            None => self.next(body).map(|()| Turn::Goes).map_err(|refusal| refusal.to_string()),
        }
    }

    fn is_finished(&self, body: &Body) -> bool {
        body.machine.is_none()
    }

    fn operation(&self, body: &Body) -> Option<process::Operation> {
        Some((body.done, 0))
    }

    fn has_entered(&self, body: &Body, (index, _): process::Operation, looked: bool) -> bool {
        body.done > index || body.done == index && looked
    }

    fn left(&self, from: &Body, to: &Body) -> Option<process::Operation> {
        let barrier = matches!(self.program.operations.get(from.done), Some(Operation::Barrier(_)));
        (barrier && to.done > from.done).then_some((from.done, 0))
    }

    fn members(&self, _: process::Operation) -> Vec<Rank> {
        (0..self.layout.ranks()).collect()
    }

    fn name(&self) -> String {
        self.program.name()
    }

    fn describe(&self, body: &Body) -> String {
        let operation = self.program.operations.get(body.done).map(Operation::name).unwrap_or_default();
        format!("{:>2} {operation}", body.done + 1)
    }
}

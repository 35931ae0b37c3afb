//! A process as an automaton, unfolded from the real machines as far as the search comes.
//!
//! A *position* is all that a process is between two shared accesses: how many operations are done,
//! private state, the machine and user memory at the start of the current poll, what the poll has
//! seen so far, and what the last poll waits for. The next access follows from it. Each pair of
//! position and answer is polled once per model; after that it is one look-up.
//!
//! A poll that ends without a further access is no transition: the position behind it is that of
//! the next poll, or of the next operation's first.

use super::access::Access;
use super::hash::Table;
use super::program::{Program, Running};
use super::tape::{Probes, Tape};
use std::cell::Cell;
use std::rc::Rc;
use unisono_kernel::Rank;
use unisono_kernel::comm::{Comm, Member};
use unisono_kernel::error::Refusal;
use unisono_kernel::machine::Machine;
use unisono_kernel::step::{Awaits, Step};

/// A position, by number.
pub(crate) type Position = u32;

/// What a position is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Local {
    /// Operations that are done.
    done: usize,
    member: Member,
    /// None behind the last operation.
    machine: Option<Running>,
    log: Vec<u64>,
    memory: Box<[u8]>,
    awaits: Option<Awaits>,
}

/// What follows.
#[derive(Clone, Debug)]
pub(crate) enum Next {
    /// This access.
    Access(Access),
    /// Nothing: all operations are done.
    Finished,
    /// Nothing: the last poll failed, or left wrong data.
    Failed(String),
}

/// A position, and what the search asks of it.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    local: Rc<Local>,
    pub(crate) next: Next,
}

impl Node {
    /// Operations that are done.
    pub(crate) fn done(&self) -> usize {
        self.local.done
    }

    /// What the last poll waits for, if that was the last thing that happened.
    pub(crate) fn awaits(&self) -> Option<&Awaits> {
        self.local.awaits.as_ref()
    }

    /// Is a poll under way?
    pub(crate) fn mid_poll(&self) -> bool {
        !self.local.log.is_empty()
    }

    /// Has the current operation made an access?
    pub(crate) fn entered(&self) -> bool {
        self.mid_poll() || self.awaits().is_some()
    }
}

/// All processes of one model.
#[derive(Debug)]
pub(crate) struct Processes {
    program: Program,
    tape: Rc<Tape>,
    probes: Probes,
    /// The one piece of real user memory: each replay fills it first.
    memory: Box<[Cell<u8>]>,
    nodes: Vec<Node>,
    positions: Table<Rc<Local>, Position>,
    edges: Table<(Position, u64), Position>,
}

impl Processes {
    /// Nothing unfolded yet.
    pub(crate) fn new(program: Program) -> Result<Self, Refusal> {
        let layout = program.layout()?;
        let tape = Rc::new(Tape::default());
        let probes = Probes::new(Rc::clone(&tape), layout.bytes());
        let memory = program.memory(0, 0).into_iter().map(Cell::new).collect();
        let (nodes, positions, edges) = (Vec::new(), Table::default(), Table::default());
        Ok(Self { program, tape, probes, memory, nodes, positions, edges })
    }

    /// A rank's first position.
    pub(crate) fn start(&mut self, rank: Rank) -> Result<Position, Refusal> {
        let member = Member::resume(self.program.layout()?, rank, self.program.base)?;
        let memory = self.program.memory(rank, 0).into();
        Ok(self.operation(Local { done: 0, member, machine: None, log: Vec::new(), memory, awaits: None }))
    }

    /// What is known of a position.
    #[inline]
    pub(crate) fn node(&self, position: Position) -> &Node {
        &self.nodes[position as usize]
    }

    /// The bytes of a payload.
    pub(crate) fn tape(&self) -> &Tape {
        &self.tape
    }

    /// The position behind the next access, given what it answers.
    #[inline]
    pub(crate) fn step(&mut self, position: Position, answer: u64) -> Position {
        if let Some(&behind) = self.edges.get(&(position, answer)) {
            return behind;
        }
        let mut local = (*self.node(position).local).clone();
        local.log.push(answer);
        let behind = self.settle(local);
        self.edges.insert((position, answer), behind);
        behind
    }

    /// Makes the next operation; the position before its first access.
    fn operation(&mut self, mut local: Local) -> Position {
        if local.done == self.program.operations.len() {
            local.machine = None;
            return self.intern(local, Next::Finished);
        }
        let memory = self.memory.as_ptr().cast_mut().cast();
        match self.program.machine(&mut local.member, local.done, memory) {
            Ok(machine) => {
                local.machine = Some(machine);
                self.settle(local)
            }
            Err(refusal) => self.intern(local, Next::Failed(refusal.to_string())),
        }
    }

    /// Polls along the log until the next access is known.
    fn settle(&mut self, mut local: Local) -> Position {
        loop {
            for (cell, &byte) in self.memory.iter().zip(&local.memory) {
                cell.set(byte);
            }
            self.tape.rewind(&local.log);
            let mut machine = local.machine.clone();
            let mut comm = Comm::with_member(&self.probes, local.member.clone());
            let step = machine.poll(&mut comm);
            if let Some(access) = self.tape.next() {
                return self.intern(local, Next::Access(access));
            }
            local.member = comm.member().clone();
            let looked = !local.log.is_empty();
            local.log.clear();
            local.memory = self.memory.iter().map(Cell::get).collect();
            local.machine = machine;
            match step {
                Ok(Step::Wait(awaits)) if looked => local.awaits = Some(awaits),
                Ok(Step::Wait(_)) => return self.intern(local, Next::Failed("waits without a look".into())),
                Ok(Step::Done) => {
                    local.done += 1;
                    local.awaits = None;
                    if let Some(fault) = self.wrong_byte(&local) {
                        return self.intern(local, Next::Failed(fault));
                    }
                    return self.operation(local);
                }
                Err(error) => return self.intern(local, Next::Failed(error.to_string())),
            }
        }
    }

    /// The first byte of user memory that is not what the operations done so far must have left.
    fn wrong_byte(&self, local: &Local) -> Option<String> {
        let right = self.program.memory(local.member.rank(), local.done);
        let at = local.memory.iter().zip(&right).position(|(found, expected)| found != expected)?;
        let (found, expected) = (local.memory[at], right[at]);
        Some(format!("wrong data after operation {}: byte {at} is {found:#x}, must be {expected:#x}", local.done))
    }

    fn intern(&mut self, mut local: Local, next: Next) -> Position {
        if !local.log.is_empty() {
            // A new poll is under way: what the last one waited for is history.
            local.awaits = None;
        }
        if let (Some(&position), Next::Access(_) | Next::Finished) = (self.positions.get(&local), &next) {
            return position;
        }
        let (position, local) = (self.nodes.len() as Position, Rc::new(local));
        if !matches!(next, Next::Failed(_)) {
            self.positions.insert(Rc::clone(&local), position);
        }
        self.nodes.push(Node { local, next });
        position
    }
}

//! A process as an automaton, unfolded from the real machines as far as the search needs.
//!
//! A *position* is the whole state of a process between two shared accesses: its [body](Model::Body) at the start of
//! the current poll, the values that the poll has seen so far, and the events for which the last poll waits. The next
//! access follows from it. The *answer* of an access is the value that it returns. Each pair of position and answer is
//! polled once per model; after that it is one look-up.
//!
//! A poll that ends without a further access is not a transition: the position after it is that of
//! the next poll, or of the next operation's first one.

use super::access::Access;
use super::hash::Table;
use super::tape::{Probes, Tape};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use unisono_kernel::Rank;
use unisono_kernel::error::Refusal;
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::region::{Base, Layout};

/// A model: the processes' operations and segments.
pub(crate) trait Model {
    /// The state of a process between two polls: private state, machines, user memory.
    type Body: Clone + Debug + Eq + Hash;

    /// The segments, with the ranks of their members, in the order of their ranks there.
    fn segments(&self) -> Vec<Segment>;

    /// A process before its first poll.
    ///
    /// # Errors
    /// An argument is refused.
    fn start(&self, rank: Rank) -> Result<Self::Body, Refusal>;

    /// One poll of a process that is not finished, whose accesses go to the probes of each segment. It depends only on
    /// the body and the values that the probes return.
    ///
    /// # Errors
    /// The poll failed, or left wrong data.
    fn poll(&self, body: &mut Self::Body, probes: &[Probes]) -> Result<Turn, String>;

    /// Is the process finished?
    fn is_finished(&self, body: &Self::Body) -> bool;

    /// The process's present operation, if there is one.
    fn operation(&self, body: &Self::Body) -> Option<Operation>;

    /// Has the process entered an operation, if it has `looked` at something in this poll or the one before?
    fn has_entered(&self, body: &Self::Body, operation: Operation, looked: bool) -> bool;

    /// The barrier that was left between two bodies.
    fn left(&self, from: &Self::Body, to: &Self::Body) -> Option<Operation>;

    /// The ranks that take part in an operation.
    fn members(&self, operation: Operation) -> Vec<Rank>;

    /// The model's name in reports.
    fn name(&self) -> String;

    /// The process's present action, in a few words.
    fn describe(&self, body: &Self::Body) -> String;
}

/// An operation: its number, and how often it was made before.
pub(crate) type Operation = (usize, u32);

/// A segment of a model.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) layout: Layout,
    pub(crate) base: Base,
    /// Its members.
    pub(crate) group: Vec<Rank>,
    /// Bytes behind the layout's in which what a member lends lies, each member's after the others'.
    pub(crate) lent: u64,
}

impl Segment {
    /// Bytes with those for loans.
    pub(crate) fn bytes(&self) -> u64 {
        self.layout.bytes() + self.lent * u64::from(self.layout.ranks())
    }
}

/// How a poll ended.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    /// It can be polled again at once.
    Goes,
    /// It waits for any of these events, each in the segment of this number.
    Waits(Vec<Awaited>),
}

/// Events that a process waits for, and the number of their segment.
pub(crate) type Awaited = (usize, WaitSet);

/// A position, by number.
pub(crate) type Position = u32;

/// A process at the start of a poll, and its number: equal ones have the same.
#[derive(Clone, Debug)]
struct Start<B> {
    body: Rc<B>,
    number: u32,
}

/// The parts of a position.
#[derive(Clone, Debug)]
struct Local<B> {
    start: Start<B>,
    log: Vec<u64>,
    awaits: Vec<Awaited>,
}

impl<B> PartialEq for Local<B> {
    fn eq(&self, other: &Self) -> bool {
        let key = |local: &Self| local.start.number;
        key(self) == key(other) && self.log == other.log && self.awaits == other.awaits
    }
}

impl<B> Eq for Local<B> {}

impl<B> Hash for Local<B> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.start.number.hash(state);
        self.log.hash(state);
        self.awaits.hash(state);
    }
}

/// What follows after a position.
#[derive(Clone, Debug)]
pub(crate) enum Next {
    /// This access.
    Access(Access),
    /// Nothing: all operations are done.
    Finished,
    /// Nothing: the last poll failed, or left wrong data.
    Failed(String),
}

/// A position, and what the search needs to know about it.
#[derive(Clone, Debug)]
pub(crate) struct Node<B> {
    local: Rc<Local<B>>,
    pub(crate) next: Next,
}

impl<B> Node<B> {
    /// The process at the start of the poll.
    pub(crate) fn body(&self) -> &B {
        &self.local.start.body
    }

    /// The events for which the last poll waits, if no access came after it.
    pub(crate) fn awaits(&self) -> &[Awaited] {
        &self.local.awaits
    }

    /// Is the process inside a poll?
    pub(crate) fn mid_poll(&self) -> bool {
        !self.local.log.is_empty()
    }

    /// Has the process looked at something in this poll, or in one that waits?
    pub(crate) fn looked(&self) -> bool {
        self.mid_poll() || !self.awaits().is_empty()
    }
}

/// All processes of one model.
#[derive(Debug)]
pub(crate) struct Processes<'p, M: Model> {
    model: &'p M,
    tape: Rc<Tape>,
    probes: Vec<Probes>,
    nodes: Vec<Node<M::Body>>,
    starts: Table<Rc<M::Body>, u32>,
    positions: Table<Rc<Local<M::Body>>, Position>,
    edges: Table<(Position, u64), Position>,
}

impl<'p, M: Model> Processes<'p, M> {
    /// An automaton of which nothing is unfolded yet.
    pub(crate) fn new(model: &'p M) -> Self {
        let tape = Rc::new(Tape::default());
        let mut begin = 0;
        let segments = model.segments().into_iter().map(|segment| {
            let probes = Probes::new(Rc::clone(&tape), begin, &segment);
            begin += segment.bytes();
            probes
        });
        let probes = segments.collect();
        let (nodes, starts, positions) = (Vec::new(), Table::default(), Table::default());
        Self { model, tape, probes, nodes, starts, positions, edges: Table::default() }
    }

    /// A rank's first position.
    pub(crate) fn start(&mut self, rank: Rank) -> Result<Position, Refusal> {
        let body = self.model.start(rank)?;
        let start = self.begin(body);
        Ok(self.settle(Local { start, log: Vec::new(), awaits: Vec::new() }))
    }

    /// A process at the start of a poll. A poll has many positions, and its body is large: it is compared once.
    fn begin(&mut self, body: M::Body) -> Start<M::Body> {
        if let Some((body, &number)) = self.starts.get_key_value(&body) {
            return Start { body: Rc::clone(body), number };
        }
        let (body, number) = (Rc::new(body), self.starts.len() as u32);
        self.starts.insert(Rc::clone(&body), number);
        Start { body, number }
    }

    /// The facts about a position.
    #[inline]
    pub(crate) fn node(&self, position: Position) -> &Node<M::Body> {
        &self.nodes[position as usize]
    }

    /// The bytes of a payload.
    pub(crate) fn tape(&self) -> &Tape {
        &self.tape
    }

    /// The position after the next access, given its answer.
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

    /// Polls along the log until the next access is known.
    fn settle(&mut self, mut local: Local<M::Body>) -> Position {
        while !self.model.is_finished(&local.start.body) {
            self.tape.rewind(&local.log);
            let mut body = M::Body::clone(&local.start.body);
            let turn = self.model.poll(&mut body, &self.probes);
            if let Some(access) = self.tape.next() {
                return self.intern(local, Next::Access(access));
            }
            let looked = !local.log.is_empty();
            local.log.clear();
            local.start = self.begin(body);
            match turn {
                Ok(Turn::Waits(awaits)) if looked => local.awaits = awaits,
                Ok(Turn::Waits(_)) => return self.intern(local, Next::Failed("waits without a look".into())),
                Ok(Turn::Goes) => local.awaits.clear(),
                Err(fault) => return self.intern(local, Next::Failed(fault)),
            }
        }
        self.intern(local, Next::Finished)
    }

    fn intern(&mut self, mut local: Local<M::Body>, next: Next) -> Position {
        if !local.log.is_empty() {
            // A new poll has begun: the events for which the last one waited no longer count.
            local.awaits.clear();
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

//! Programs: the operations that all processes call, their data, and the right results.

use unisono_kernel::Rank;
use unisono_kernel::algorithm::{AllreduceAlgorithm, BarrierAlgorithm, BcastAlgorithm, ReduceAlgorithm, ScanAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::call::any::Any;
use unisono_kernel::comm::{Comm, Member};
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::{PollError, Refusal};
use unisono_kernel::machine::poll::Poll;
use unisono_kernel::machine::transport::Shared;
use unisono_kernel::machine::{Machine, Operation as _};
use unisono_kernel::op::{Op, User};
use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::region::layout::LINE_PAYLOAD;
use unisono_kernel::region::{Base, Cico, Layout, Mailboxes, Params};

use super::blocks::Spread;
use super::exchanges::Exchange;
use super::hash::spread;
use super::mail::{Mail, Talk};
use super::process::{self, Model, Segment, Turn};
use super::tape::{Probes, Seat};
use crate::oracle::blocks::Direction;
use std::cell::Cell;
use std::ffi::c_void;

/// One collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A broadcast.
    Bcast {
        /// The algorithm.
        algorithm: BcastAlgorithm,
        /// The root.
        root: Rank,
        /// Bytes of the message.
        bytes: usize,
    },
    /// Paper P2's collectives.
    Spread(Spread),
    /// The collectives that exchange through lines and queues.
    Exchange(Exchange),
    /// An allreduce in place: sums of two `i64`.
    Sum,
    /// An allreduce with an operation that does not commute.
    Fold,
    /// The same by doubling.
    Doubling,
    /// The same by doubling, in place, of an operand that is longer than a line.
    LongDoubling,
    /// The same by groups, in place, of a column of so many pieces; among four ranks, of two groups of two.
    Groups(usize),
    /// The same of sums, between two buffers: where ranks lend, its operands are lent.
    SumByGroups(usize),
    /// A reduce up a tree, with an operation that does not commute.
    Tree(Rank),
    /// A scan, or an exscan, in place, with an operation that does not commute: of two words by doubling, else of so many pieces.
    Scan {
        /// The algorithm.
        algorithm: ScanAlgorithm,
        /// Is it an exscan?
        exclusive: bool,
        /// Pieces of the vector.
        pieces: usize,
    },
    /// A reduce in which the ranks share the folds.
    Shared {
        /// The root.
        root: Rank,
        /// Slots that the operand would fill: so many pieces, or some more.
        pieces: usize,
        /// How.
        by: Sharing,
    },
    /// Messages through mailboxes.
    Mail(Mail),
    /// A barrier.
    Barrier(BarrierAlgorithm),
}

/// How ranks share the folds of a reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// By slices, with an operation that does not commute.
    Slices,
    /// By slices, of sums, which the root receives in place.
    SlicesOfSums,
    /// The same by groups; among four ranks, of two groups of two.
    GroupsOfSums,
}

/// Bytes of a reduction's operand: two words.
const OPERAND: usize = 16;
/// Bytes by which the operand of an allreduce by groups grows with each piece: in a slot, two columns of four ranks.
const GROUPS_PIECE: usize = 128;
/// Slots of the queue, unless a program has another number.
const SLOTS: u32 = 2;
/// Bytes of a slot in the queue, and in P1's.
const QUEUE_FRAGMENT: usize = 192;
const CICO_FRAGMENT: usize = 8;
/// What user memory holds where nothing has been received yet.
const BLANK: u8 = 0xEE;

/// Bytes of a message of so many fragments, the last one being short.
const fn cut(fragments: usize, fragment: usize) -> usize {
    fragments * fragment - fragment / 2
}

impl Operation {
    /// A broadcast on posted lines.
    pub const fn posted(root: Rank) -> Self {
        Self::Bcast { algorithm: BcastAlgorithm::Posted, root, bytes: 12 }
    }

    /// A scan by groups, of so many pieces.
    pub const fn scan(pieces: usize) -> Self {
        Self::Scan { algorithm: ScanAlgorithm::Groups, exclusive: false, pieces }
    }

    /// An exscan by groups, of so many pieces.
    pub const fn exscan(pieces: usize) -> Self {
        Self::Scan { algorithm: ScanAlgorithm::Groups, exclusive: true, pieces }
    }

    /// A scan, or an exscan, by doubling.
    pub const fn short_scan(exclusive: bool) -> Self {
        Self::Scan { algorithm: ScanAlgorithm::Doubling, exclusive, pieces: 0 }
    }

    /// The same by groups: among four ranks, of two groups of two.
    pub const fn grouped(root: Rank) -> Self {
        Self::Bcast { algorithm: BcastAlgorithm::Groups, root, bytes: 12 }
    }

    /// A broadcast of so many fragments through the queue.
    pub const fn queue(root: Rank, fragments: usize) -> Self {
        Self::Bcast { algorithm: BcastAlgorithm::Queue, root, bytes: cut(fragments, QUEUE_FRAGMENT) }
    }

    /// Paper P1's broadcast of so many fragments.
    pub const fn cico(root: Rank, tree: Tree, fragments: usize) -> Self {
        Self::Bcast { algorithm: BcastAlgorithm::Cico(tree), root, bytes: cut(fragments, CICO_FRAGMENT) }
    }

    /// Paper P2's scatterv; the longest block that is sent has so many fragments.
    pub const fn scatterv(root: Rank, fragments: usize) -> Self {
        Self::Spread(Spread { direction: Direction::Scatter, root, bytes: cut(fragments, CICO_FRAGMENT) })
    }

    /// Paper P2's gatherv, likewise.
    pub const fn gatherv(root: Rank, fragments: usize) -> Self {
        Self::Spread(Spread { direction: Direction::Gather, root, bytes: cut(fragments, CICO_FRAGMENT) })
    }

    /// Paper P2's allgatherv, likewise.
    pub const fn allgatherv(fragments: usize) -> Self {
        Self::Spread(Spread { direction: Direction::Allgather, root: 0, bytes: cut(fragments, CICO_FRAGMENT) })
    }

    /// Algorithm, fragments where a message is cut, root: `posted:0`, `queue-3:1`, `cico-flat-2:0`, `scatterv-2:1`, `allgatherv-1`.
    pub fn name(&self) -> String {
        match *self {
            Self::Bcast { algorithm, root, bytes } => match algorithm {
                BcastAlgorithm::Auto => format!("auto:{root}"),
                BcastAlgorithm::Posted => format!("posted:{root}"),
                BcastAlgorithm::Groups => format!("groups:{root}"),
                BcastAlgorithm::Queue => format!("queue-{}:{root}", bytes.div_ceil(QUEUE_FRAGMENT)),
                BcastAlgorithm::Cico(tree) => {
                    format!("cico-{}-{}:{root}", tree_name(tree), bytes.div_ceil(CICO_FRAGMENT))
                }
            },
            Self::Exchange(exchange) => exchange.name(),
            Self::Spread(spread) => {
                let (name, fragments) = (spread.name(), spread.bytes.div_ceil(CICO_FRAGMENT));
                let root =
                    if spread.direction == Direction::Allgather { String::new() } else { format!(":{}", spread.root) };
                format!("{name}-{fragments}{root}")
            }
            Self::Mail(mail) => mail.name(),
            Self::Sum => "sum".into(),
            Self::Fold => "fold".into(),
            Self::Doubling => "doubling".into(),
            Self::LongDoubling => "long-doubling".into(),
            Self::Groups(pieces) => format!("groups-{pieces}"),
            Self::SumByGroups(pieces) => format!("sum-by-groups-{pieces}"),
            Self::Tree(root) => format!("tree:{root}"),
            Self::Scan { algorithm, exclusive, pieces } => {
                format!("{}scan-{algorithm}-{pieces}", if exclusive { "ex" } else { "" })
            }
            Self::Shared { root, pieces, by } => match by {
                Sharing::Slices => format!("slices-{pieces}:{root}"),
                Sharing::SlicesOfSums => format!("slices-of-sums-{pieces}:{root}"),
                Sharing::GroupsOfSums => format!("groups-of-sums-{pieces}:{root}"),
            },
            Self::Barrier(BarrierAlgorithm::Auto | BarrierAlgorithm::Posted) => "posted-barrier".into(),
            Self::Barrier(BarrierAlgorithm::Dissemination) => "dissemination".into(),
            Self::Barrier(BarrierAlgorithm::Doubling) => "doubling-barrier".into(),
            Self::Barrier(BarrierAlgorithm::Central) => "central".into(),
            Self::Barrier(BarrierAlgorithm::Combining(arity)) => format!("combining-{arity}"),
        }
    }

    /// Is the message cut into fragments?
    pub const fn is_cut(&self) -> bool {
        matches!(self, Self::Bcast { algorithm: BcastAlgorithm::Queue, .. }) || self.has_sets()
    }

    /// Is it a paper's algorithm, through sets of queues?
    pub const fn has_sets(&self) -> bool {
        matches!(self, Self::Bcast { algorithm: BcastAlgorithm::Cico(_), .. } | Self::Spread(_))
    }

    /// Bytes of user memory of one process for the operation.
    fn memory(&self, ranks: u32) -> usize {
        match *self {
            Self::Spread(spread) => spread.memory(ranks),
            Self::Exchange(exchange) => exchange.memory(ranks, QUEUE_FRAGMENT),
            Self::Bcast { bytes, .. } => bytes,
            Self::Mail(mail) => mail.memory(),
            Self::Sum | Self::LongDoubling | Self::Groups(_) | Self::Scan { .. } => self.operand(),
            Self::Fold | Self::Doubling | Self::SumByGroups(_) | Self::Tree(_) | Self::Shared { .. } => {
                2 * self.operand()
            }
            Self::Barrier(_) => 0,
        }
    }

    /// Bytes of a reduction's operand.
    const fn operand(&self) -> usize {
        match *self {
            Self::LongDoubling => LINE_PAYLOAD as usize + 8,
            Self::Groups(pieces) | Self::SumByGroups(pieces) => GROUPS_PIECE * pieces - 8,
            Self::Scan { algorithm: ScanAlgorithm::Groups, pieces, .. } => QUEUE_FRAGMENT * pieces - 8,
            Self::Shared { pieces, .. } => QUEUE_FRAGMENT * pieces - 8,
            _ => OPERAND,
        }
    }
}

fn tree_name(tree: Tree) -> String {
    match tree {
        Tree::Flat => "flat".into(),
        Tree::Chain => "chain".into(),
        Tree::BINARY => "binary".into(),
        Tree::BINOMIAL => "binomial".into(),
        Tree::Kary(k) => format!("kary-{k}"),
        Tree::Knomial(k) => format!("knomial-{k}"),
    }
}

/// `left ∘ right` of the operation that does not commute.
pub(crate) const fn fold(left: u64, right: u64) -> u64 {
    left.wrapping_mul(31).wrapping_add(right)
}

/// Two affine maps of 32 bits (factor and term), one after the other: associative, and does not commute.
const fn compose(left: u64, right: u64) -> u64 {
    let [(a, b), (c, d)] = [(left >> 32, left as u32 as u64), (right >> 32, right as u32 as u64)];
    a.wrapping_mul(c) << 32 | b.wrapping_mul(c).wrapping_add(d) as u32 as u64
}

/// [`fold`] as a user's function.
unsafe extern "C-unwind" fn fold_all(left: *const c_void, right: *mut c_void, count: u64, _: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { each(left, right, count, fold) }
}

/// [`compose`] as a user's function.
unsafe extern "C-unwind" fn compose_all(left: *const c_void, right: *mut c_void, count: u64, _: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { each(left, right, count, compose) }
}

/// Folds words.
///
/// # Safety
/// Two arrays of `count` words; the right one may be written.
unsafe fn each(left: *const c_void, right: *mut c_void, count: u64, fold: fn(u64, u64) -> u64) {
    for index in 0..count as usize {
        let (left, right) = (left.cast::<u64>().wrapping_add(index), right.cast::<u64>().wrapping_add(index));
        // SAFETY: the caller's promise.
        let l = unsafe { left.read() };
        // SAFETY: as above.
        let r = unsafe { right.read() };
        // SAFETY: as above; the right one is to be written.
        unsafe { right.write(fold(l, r)) };
    }
}

/// The operation that does not commute, but is associative.
fn composed() -> Op {
    // SAFETY: `compose_all` takes any two arrays of words, aligned as operands are.
    Op::User(unsafe { User::new(compose_all, std::ptr::null_mut(), 8, false) })
}

/// The operation that neither commutes nor is associative.
pub(crate) fn ordered() -> Op {
    // SAFETY: `fold_all` takes any two arrays of words, aligned as operands are.
    Op::User(unsafe { User::new(fold_all, std::ptr::null_mut(), 8, false) })
}

/// A machine of any operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Running {
    Call(Box<Any<'static>>),
    Mail(Box<Talk>),
}

impl Running {
    fn start(mut self, me: &mut Member) -> Self {
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

/// The operations that all processes of a model call, in this order, and their segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The segment.
    pub params: Params,
    /// The value from which all counts begin.
    pub base: Base,
    /// The operations.
    pub operations: Vec<Operation>,
    /// Which ranks lend their messages, and can read what others lend.
    pub lending: Lending,
    /// Do processes use one slot of their queues in one operation, and two in the next, each in its turn?
    pub laps: bool,
}

/// Which ranks lend each other memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lending {
    /// None.
    #[default]
    None,
    /// All.
    All,
    /// All lend, and rank 1 can't read.
    OneReadsNot,
    /// All lend, and no even rank can read.
    EvenReadNot,
    /// All can read, and rank 1 does not lend.
    OneLendsNot,
    /// All lend in every second operation, from the first one on, and no rank can read what rank 2 lends: a rank that has
    /// read other loans asks for fragments.
    TwoUnreadable,
}

impl Lending {
    /// `done`: the operations that the rank has ended.
    const fn seat(self, rank: Rank, laps: bool, done: usize) -> Seat {
        let one = rank == 1;
        let (lends, reads) = match self {
            Self::None => (false, false),
            Self::All => (true, true),
            Self::OneReadsNot => (true, !one),
            Self::EvenReadNot => (true, rank % 2 == 1),
            Self::OneLendsNot => (!one, true),
            Self::TwoUnreadable => (done.is_multiple_of(2), true),
        };
        let reads_not = if matches!(self, Self::TwoUnreadable) { Some(2) } else { None };
        Seat { rank, lends, reads, reads_not, laps }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::All => " lent",
            Self::OneReadsNot => " lent-unreadable-by-1",
            Self::EvenReadNot => " lent-unreadable-by-even",
            Self::OneLendsNot => " lent-but-by-1",
            Self::TwoUnreadable => " lent-at-times-unreadable-of-2",
        }
    }
}

impl Program {
    /// `operations` of `ranks` processes on the smallest segment: two lines, two slots, `sets` of P1's
    /// sets in two slots of 8 bytes. Everything is reused within a few operations.
    pub const fn new(ranks: u32, sets: u32, operations: Vec<Operation>) -> Self {
        let cico = Some(Cico { slots: 2, fragment: CICO_FRAGMENT as u64, sets });
        Self {
            params: Params {
                ranks,
                page: 256,
                lines: 2,
                queue_slots: SLOTS,
                queue_fragment: QUEUE_FRAGMENT as u64,
                cico,
                mailboxes: None,
                crowded: false,
            },
            base: Base { operation: 0, clock: 0, sets: 0, centrals: 0 },
            operations,
            lending: Lending::None,
            laps: false,
        }
    }

    /// The same on memory on which a communicator ended with these counts.
    #[must_use]
    pub const fn from_base(mut self, base: Base) -> Self {
        self.base = base;
        self
    }

    /// The same where ranks lend each other memory.
    #[must_use]
    pub const fn lent(mut self, lending: Lending) -> Self {
        self.lending = lending;
        self
    }

    /// The same where each process changes the lap of its queue with each operation.
    #[must_use]
    pub const fn with_laps(mut self) -> Self {
        self.laps = true;
        self
    }

    /// The same with so many slots in each queue.
    #[must_use]
    pub fn with_slots(mut self, slots: u32) -> Self {
        self.params.queue_slots = slots;
        self
    }

    /// The same with mailboxes of words: so many messages, in so many slots each.
    #[must_use]
    pub const fn with_mailboxes(mut self, messages: u32, slots: u32) -> Self {
        self.params.mailboxes = Some(Mailboxes { messages, slots, fragment: 8 });
        self
    }

    /// Number of processes, slots where they are not two, and the operations' names.
    pub fn name(&self) -> String {
        let Params { ranks, queue_slots, .. } = self.params;
        let names: Vec<_> = self.operations.iter().map(Operation::name).collect();
        let sets = self.params.cico.map_or(0, |cico| cico.sets);
        let cico = if self.operations.iter().any(Operation::has_sets) { format!(" q={sets}") } else { String::new() };
        let slots = if queue_slots == SLOTS { String::new() } else { format!(" s={queue_slots}") };
        let Base { operation, clock, sets, centrals } = self.base;
        let begins = [operation, clock, sets, centrals].into_iter().max().filter(|most| *most > 0);
        let begins = begins.map_or(String::new(), |most| format!(" from={most:#x}"));
        let laps = if self.laps { " laps" } else { "" };
        format!("p={ranks}{cico}{slots}{begins}{}{laps} {}", self.lending.name(), names.join(" "))
    }

    /// The segment's layout.
    ///
    /// # Errors
    /// The parameters do not fit.
    pub fn layout(&self) -> Result<Layout, Refusal> {
        Layout::new(self.params)
    }

    /// A process's user memory after `done` operations: the right results.
    pub(crate) fn memory(&self, rank: Rank, done: usize) -> Vec<u8> {
        let mut memory = Vec::new();
        for (index, operation) in self.operations.iter().enumerate() {
            let done = index < done;
            match *operation {
                Operation::Bcast { root, bytes, .. } if rank == root || done => {
                    memory.extend((0..bytes.div_ceil(8)).flat_map(|k| word(index, root, k).to_le_bytes()).take(bytes));
                }
                Operation::Bcast { bytes, .. } => memory.extend(std::iter::repeat_n(BLANK, bytes)),
                Operation::Spread(spread) => {
                    let data = |rank, len: usize| {
                        (0..len.div_ceil(8)).flat_map(|k| word(index, rank, k).to_le_bytes()).take(len).collect()
                    };
                    memory.extend(spread.fill(self.params.ranks, rank, done, data));
                }
                Operation::Exchange(exchange) => {
                    let word = |rank, k| word(index, rank, k);
                    memory.extend(exchange.fill(self.params.ranks, QUEUE_FRAGMENT, rank, done, word, fold));
                }
                Operation::Mail(mail) => memory.extend(mail.fill(rank, done, BLANK)),
                Operation::Sum if done => memory.extend(self.reduced(index, u64::wrapping_add)),
                Operation::LongDoubling | Operation::Groups(_) if done => memory.extend(self.reduced(index, compose)),
                Operation::Scan { exclusive, .. } if done && (rank > 0 || !exclusive) => {
                    memory.extend(self.folded(index, compose, rank + 1 - u32::from(exclusive)));
                }
                Operation::Sum | Operation::LongDoubling | Operation::Groups(_) | Operation::Scan { .. } => {
                    memory.extend(operand(index, rank, operation.operand()))
                }
                Operation::Shared { root, by: Sharing::SlicesOfSums | Sharing::GroupsOfSums, .. }
                    if done && root == rank =>
                {
                    memory.extend(self.reduced(index, u64::wrapping_add));
                    memory.extend(std::iter::repeat_n(BLANK, operation.operand()));
                }
                operation @ (Operation::Fold
                | Operation::Doubling
                | Operation::SumByGroups(_)
                | Operation::Tree(_)
                | Operation::Shared { .. }) => {
                    memory.extend(operand(index, rank, operation.operand()));
                    let blank = std::iter::repeat_n(BLANK, operation.operand()).collect();
                    let op = match operation {
                        Operation::Fold => fold,
                        Operation::SumByGroups(_) => u64::wrapping_add,
                        _ => compose,
                    };
                    let receives = match operation {
                        Operation::Tree(root) | Operation::Shared { root, .. } => root == rank,
                        _ => true,
                    };
                    memory.extend(if done && receives { self.reduced(index, op) } else { blank });
                }
                Operation::Barrier(_) => {}
            }
        }
        memory
    }

    /// The fold of all ranks' operands in rank order.
    fn reduced(&self, index: usize, op: fn(u64, u64) -> u64) -> Vec<u8> {
        self.folded(index, op, self.params.ranks)
    }

    /// The fold of the operands of the first `ranks` ranks.
    fn folded(&self, index: usize, op: fn(u64, u64) -> u64, ranks: u32) -> Vec<u8> {
        let fold = |k| (1..ranks).fold(word(index, 0, k), |sum, rank| op(sum, word(index, rank, k)));
        (0..self.operations[index].operand() / 8).flat_map(|k| fold(k).to_le_bytes()).collect()
    }

    /// The machine of operation `index`, on user memory that starts at `memory`.
    pub(crate) fn machine(&self, me: &Member, index: usize, memory: *mut u8) -> Result<Running, Refusal> {
        let offset: usize = self.operations[..index].iter().map(|operation| operation.memory(self.params.ranks)).sum();
        let data = |at: usize, len: usize| {
            let memory = Buf::new(memory.wrapping_add(offset + at), len);
            // SAFETY: the memory is as long as `Program::memory`, lives as long as the model, and only
            // one poll at a time touches it.
            unsafe { Data::from_raw(memory, len as u64, Datatype::BYTE) }
        };
        let reduce = |algorithm, send, receive, op| Call::Allreduce { send, receive, op, algorithm };
        let sum = |send, receive, op| reduce(AllreduceAlgorithm::Posted, send, receive, op);
        let machine = match self.operations[index] {
            Operation::Bcast { algorithm, root, bytes } => {
                Call::Bcast { data: data(0, bytes)?, root, algorithm }.build(me)?
            }
            Operation::Sum => sum(data(0, OPERAND)?, data(0, OPERAND)?, Op::SUM_I64).build(me)?,
            Operation::Fold => sum(data(0, OPERAND)?, data(OPERAND, OPERAND)?, ordered()).build(me)?,
            Operation::Doubling => {
                reduce(AllreduceAlgorithm::Doubling, data(0, OPERAND)?, data(OPERAND, OPERAND)?, composed())
                    .build(me)?
            }
            Operation::LongDoubling => {
                let operand = data(0, self.operations[index].operand())?;
                reduce(AllreduceAlgorithm::Doubling, operand, operand, composed()).build(me)?
            }
            Operation::Groups(_) => {
                let operand = data(0, self.operations[index].operand())?;
                reduce(AllreduceAlgorithm::Groups, operand, operand, composed()).build(me)?
            }
            Operation::SumByGroups(_) => {
                let bytes = self.operations[index].operand();
                reduce(AllreduceAlgorithm::Groups, data(0, bytes)?, data(bytes, bytes)?, Op::SUM_U64).build(me)?
            }
            Operation::Scan { algorithm, exclusive, .. } => {
                let (send, op) = (data(0, self.operations[index].operand())?, composed());
                match exclusive {
                    false => Call::Scan { send, receive: send, op, algorithm },
                    true => Call::Exscan { send, receive: send, op, algorithm },
                }
                .build(me)?
            }
            Operation::Tree(root) => {
                let (algorithm, receive) =
                    (ReduceAlgorithm::Tree, (me.rank() == root).then_some(data(OPERAND, OPERAND)?));
                Call::Reduce { send: data(0, OPERAND)?, receive, op: composed(), root, algorithm }.build(me)?
            }
            Operation::Shared { root, by, .. } => {
                let bytes = self.operations[index].operand();
                let (algorithm, op, at) = match by {
                    Sharing::Slices => (ReduceAlgorithm::Slices, composed(), bytes),
                    Sharing::SlicesOfSums => (ReduceAlgorithm::Slices, Op::SUM_U64, 0),
                    Sharing::GroupsOfSums => (ReduceAlgorithm::Groups, Op::SUM_U64, 0),
                };
                let (send, receive) = (data(0, bytes)?, (me.rank() == root).then_some(data(at, bytes)?));
                Call::Reduce { send, receive, op, root, algorithm }.build(me)?
            }
            Operation::Exchange(exchange) => {
                exchange.machine(me, QUEUE_FRAGMENT, memory.wrapping_add(offset), ordered())?
            }
            Operation::Spread(spread) => spread.machine(me, memory.wrapping_add(offset))?,
            Operation::Mail(mail) => {
                return Ok(Running::Mail(mail.machine(me, memory.wrapping_add(offset))?.into()));
            }
            Operation::Barrier(algorithm) => Call::Barrier { algorithm }.build(me)?,
        };
        Ok(Running::Call(machine.into()))
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

/// Word `k` of the data of `rank` in operation `index`; all such words differ.
const fn word(index: usize, rank: Rank, k: usize) -> u64 {
    spread((index as u64) << 32 | (rank as u64) << 16 | (k as u64 + 1))
}

fn operand(index: usize, rank: Rank, bytes: usize) -> Vec<u8> {
    (0..bytes / 8).flat_map(|k| word(index, rank, k).to_le_bytes()).collect()
}

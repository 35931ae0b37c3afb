//! Programs: the operations that all processes call, their data, the right results, and the machines.

use unisono_kernel::Rank;
use unisono_kernel::algorithm::{AllreduceAlgorithm, ReduceAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::comm::Member;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::Refusal;
use unisono_kernel::op::{Op, User};
use unisono_kernel::region::{Base, Cico, Layout, Mailboxes, Params};

use super::hash::spread;
use super::operation::{CICO_FRAGMENT, OPERAND, Operation, QUEUE_FRAGMENT, SLOTS, Sharing};
use super::series::Running;
use super::tape::Seat;
use std::ffi::c_void;

/// What user memory holds where nothing has been received yet.
const BLANK: u8 = 0xEE;

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
    pub(super) const fn seat(self, rank: Rank, laps: bool, done: usize) -> Seat {
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
    pub(super) fn machine(&self, me: &Member, index: usize, memory: *mut u8) -> Result<Running, Refusal> {
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

/// Word `k` of the data of `rank` in operation `index`; all such words differ.
const fn word(index: usize, rank: Rank, k: usize) -> u64 {
    spread((index as u64) << 32 | (rank as u64) << 16 | (k as u64 + 1))
}

fn operand(index: usize, rank: Rank, bytes: usize) -> Vec<u8> {
    (0..bytes / 8).flat_map(|k| word(index, rank, k).to_le_bytes()).collect()
}

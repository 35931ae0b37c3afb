//! One rank of a model: collectives as calls that either complete with checked data or give the execution up.

use super::region::{Lending, Segment};
use crate::explore::{Exchange, Spread, fold, ordered};
use unisono_kernel::Rank;
use unisono_kernel::algorithm::{AllreduceAlgorithm, BarrierAlgorithm, BcastAlgorithm, ReduceAlgorithm, ScanAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::comm::{Comm, Member};
use unisono_kernel::data::datatype::Data;
use unisono_kernel::error::{Poison, Refusal, WaitError};
use unisono_kernel::machine::Operation;
use unisono_kernel::machine::drive::{Stop, run};
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::machine::transport::{Observe, Wait};
use unisono_kernel::op::Op;
use unisono_kernel::region::{Base, Flag, Layout, Region, announcement, lease, state};

/// Why this execution ends on this rank.
#[derive(Clone, Copy, Debug)]
pub struct Abandoned;

/// Gives up at the first wait. Another execution is the one in which the event came in time: a
/// failed look has no side effect, so no safety is lost (liveness is the explorer's).
#[derive(Clone, Copy, Debug)]
struct Abandon;

impl<X: Observe + ?Sized> Wait<X> for Abandon {
    fn wait(&mut self, _: &mut X, _: &WaitSet) -> Result<(), WaitError> {
        Err(WaitError::Abandoned)
    }
}

/// One rank.
#[derive(Debug)]
pub struct Seat {
    comm: Comm<Segment>,
}

impl Seat {
    /// Rank `rank` of a fresh segment.
    pub fn new(segment: Segment, layout: Layout, rank: Rank) -> Self {
        Self { comm: Comm::new(segment, layout, rank).expect("model assertion: a rank of the layout") }
    }

    /// Sets whether this rank lends, and whether it can read.
    pub fn set_lending(&self, lending: Lending) {
        self.comm.region().set_lending(lending);
    }

    /// From now on the lap of this rank's queue has one slot in every second operation.
    pub fn change_laps(&self) {
        self.comm.region().change_laps();
    }

    /// Writes the memory that this rank has lent.
    pub fn take_back(&self) {
        self.comm.region().take_back();
    }

    /// This rank.
    pub const fn rank(&self) -> Rank {
        self.comm.member().rank()
    }

    /// Number of ranks.
    pub const fn size(&self) -> u32 {
        self.comm.member().size()
    }

    /// The parts that messages need: the region, its layout, this rank.
    pub(super) const fn parts(&self) -> (&Segment, Layout, Rank) {
        (self.comm.region(), *self.comm.member().layout(), self.rank())
    }

    fn call<O: Operation>(&mut self, built: Result<O, Refusal>) -> Result<(), Abandoned> {
        let built = built.expect("model assertion: arguments are good");
        let mut machine = built.started(self.comm.member_mut());
        match run(&mut machine, &mut self.comm, &mut Abandon) {
            Ok(()) => Ok(()),
            Err(Stop::Wait(_)) => Err(Abandoned),
            Err(Stop::Poll(error)) => panic!("model assertion: rank {}: {error}", self.rank()),
        }
    }

    /// Broadcasts `bytes` bytes that differ from operation to operation; checks them.
    pub fn bcast(&mut self, root: Rank, bytes: usize, algorithm: BcastAlgorithm) -> Result<(), Abandoned> {
        let operation = self.comm.member().operation() + 1;
        let sent: Vec<u8> = (0..bytes).map(|i| (operation * 31 + u64::from(root) * 7 + i as u64 + 1) as u8).collect();
        let mut data = if self.rank() == root { sent.clone() } else { vec![0; bytes] };
        let data_of = Data::bytes_mut(&mut data);
        let made = Call::Bcast { data: data_of, root, algorithm }.build(self.comm.member());
        self.call(made)?;
        assert_eq!(data, sent, "model assertion: broadcast {operation} on rank {}", self.rank());
        Ok(())
    }

    /// Scatters, gathers or allgathers blocks that differ from operation to operation; checks them.
    pub fn spread(&mut self, spread: Spread) -> Result<(), Abandoned> {
        let (ranks, rank, operation) = (self.size(), self.rank(), self.comm.member().operation() + 1);
        let data =
            |rank: Rank, len| (0..len).map(|i| (operation * 31 + u64::from(rank) * 7 + i as u64 + 1) as u8).collect();
        let mut memory = spread.fill(ranks, rank, false, data);
        let made = spread.machine(self.comm.member(), memory.as_mut_ptr());
        self.call(made)?;
        let wanted = spread.fill(ranks, rank, true, data);
        assert_eq!(memory, wanted, "model assertion: operation {operation} on rank {rank}");
        Ok(())
    }

    /// Exchanges words that differ from operation to operation, by lines or queues; checks them.
    pub fn exchange(&mut self, exchange: Exchange) -> Result<(), Abandoned> {
        let (ranks, rank, operation) = (self.size(), self.rank(), self.comm.member().operation() + 1);
        let slot = self.comm.member().layout().params().queue_fragment as usize;
        let word = |rank: Rank, k: usize| operation << 32 | u64::from(rank) << 16 | (k as u64 + 1);
        let fill = |done| -> Vec<u64> {
            let bytes = exchange.fill(ranks, slot, rank, done, word, fold);
            bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
        };
        let mut memory = fill(false);
        let made = exchange.machine(self.comm.member(), slot, memory.as_mut_ptr().cast(), ordered());
        self.call(made)?;
        assert_eq!(memory, fill(true), "model assertion: {exchange:?}, operation {operation} on rank {rank}");
        Ok(())
    }

    /// Sums one `i64` per rank; checks the sum.
    pub fn allreduce(&mut self, algorithm: AllreduceAlgorithm) -> Result<(), Abandoned> {
        self.allreduce_of::<1>(algorithm)
    }

    /// The same of so many equal `i64`.
    pub fn allreduce_of<const WORDS: usize>(&mut self, algorithm: AllreduceAlgorithm) -> Result<(), Abandoned> {
        let operation = self.comm.member().operation() as i64 + 1;
        let term = |rank: Rank| operation * 100 + i64::from(rank);
        let mut data = [term(self.rank()).to_le_bytes(); WORDS];
        let both = Data::bytes_mut(data.as_flattened_mut());
        let made = Call::Allreduce { send: both, receive: both, op: Op::SUM_I64, algorithm }.build(self.comm.member());
        self.call(made)?;
        let wanted: i64 = (0..self.size()).map(term).sum();
        assert_eq!(data.map(i64::from_le_bytes), [wanted; WORDS], "model assertion: allreduce {operation}");
        Ok(())
    }

    /// Sums the `i64` of the lower ranks, and with `inclusive` its own; checks the sum.
    pub fn scan(&mut self, inclusive: bool, algorithm: ScanAlgorithm) -> Result<(), Abandoned> {
        let operation = self.comm.member().operation() as i64 + 1;
        let term = |rank: Rank| operation * 100 + i64::from(rank);
        let mut data = term(self.rank()).to_le_bytes();
        let (send, op) = (Data::bytes_mut(&mut data), Op::SUM_I64);
        let call = match inclusive {
            true => Call::Scan { send, receive: send, op, algorithm },
            false => Call::Exscan { send, receive: send, op, algorithm },
        };
        let made = call.build(self.comm.member());
        self.call(made)?;
        let below = self.rank() + u32::from(inclusive);
        let wanted = if below == 0 { term(0) } else { (0..below).map(term).sum() };
        assert_eq!(i64::from_le_bytes(data), wanted, "model assertion: scan {operation}");
        Ok(())
    }

    /// Sums one `i64` per rank up a tree of lines; the root checks the sum.
    pub fn reduce(&mut self, root: Rank) -> Result<(), Abandoned> {
        let operation = self.comm.member().operation() as i64 + 1;
        let term = |rank: Rank| operation * 100 + i64::from(rank);
        let (mut data, at_root) = (term(self.rank()).to_le_bytes(), self.rank() == root);
        let (send, algorithm) = (Data::bytes_mut(&mut data), ReduceAlgorithm::Tree);
        let call = Call::Reduce { send, receive: at_root.then_some(send), op: Op::SUM_I64, root, algorithm };
        let made = call.build(self.comm.member());
        self.call(made)?;
        let wanted = if at_root { (0..self.size()).map(term).sum() } else { term(self.rank()) };
        assert_eq!(i64::from_le_bytes(data), wanted, "model assertion: reduce {operation}");
        Ok(())
    }

    /// A barrier.
    pub fn barrier(&mut self, algorithm: BarrierAlgorithm) -> Result<(), Abandoned> {
        let made = Call::Barrier { algorithm }.build(self.comm.member());
        self.call(made)
    }

    /// Writes this rank's note: plain memory, ordered by barriers alone.
    pub fn write_note(&self, value: u64) {
        self.comm.region().write_note(self.rank(), value);
    }

    /// Asserts that every rank's note is `value`.
    pub fn check_notes(&self, value: u64) {
        for rank in 0..self.size() {
            let note = self.comm.region().read_note(rank);
            assert_eq!(note, value, "model assertion: the note of rank {rank}");
        }
    }

    /// The note of `rank`.
    pub fn note(&self, rank: Rank) -> u64 {
        self.comm.region().read_note(rank)
    }

    /// Leaves the memory at the end of this term; returns its last counts.
    pub fn leave(&self, epoch: u32) -> Base {
        let end = self.comm.end();
        lease::leave(self.comm.region(), self.comm.member().layout(), self.rank(), epoch, end);
        end.expect("model assertion: all is finished")
    }

    /// Have all ranks left this term, at the same counts?
    pub fn all_left(&self, epoch: u32, end: Base) -> bool {
        let (region, layout) = (self.comm.region(), self.comm.member().layout());
        let over = lease::first_present(region, layout, epoch, 0).is_none();
        assert!(!over || lease::ended_alike(region, layout, epoch, end), "model assertion: all ended alike");
        over
    }

    /// Tells the others that the memory is free, as a line of another communicator would.
    pub fn announce(&self, epoch: u32) {
        self.comm.region().publish(self.comm.member().layout().arrive(0), epoch.into());
    }

    /// Has rank 0 told that the memory is free?
    pub fn is_announced(&self, epoch: u32) -> bool {
        self.comm.region().flag(self.comm.member().layout().arrive(0)).load_acquire().at_least(epoch.into())
    }

    /// Becomes a rank of a new communicator on the same memory.
    pub fn resume(&mut self, rank: Rank, base: Base) {
        let layout = *self.comm.member().layout();
        *self.comm.member_mut() = Member::resume(layout, rank, base).expect("model assertion: a rank of the layout");
    }

    /// Writes an announcement with two numbers that follow from its own number.
    pub fn post_announcement(&self, number: u64) {
        announcement::post(|at| self.comm.region().announcement(at), number, &[10 * number, 10 * number + 1]);
    }

    /// Reads the present announcement, and asserts that it is whole, if there is one.
    pub fn look_at_announcement(&self) -> Result<(), Abandoned> {
        let word = |at| self.comm.region().announcement(at);
        let number = announcement::number(word).ok_or(Abandoned)?;
        let values = announcement::values(word, number).ok_or(Abandoned)?;
        assert_eq!(values, [10 * number, 10 * number + 1], "model assertion: notice {number} is read whole");
        Ok(())
    }

    /// Poisons the lease; returns the poison that counts.
    pub fn poison(&mut self, poison: Poison) -> Poison {
        self.comm.poison_with(poison)
    }

    /// The poison that is seen now.
    pub fn look(&self) -> Option<Poison> {
        state::look(self.comm.region(), self.comm.member().layout())
    }
}

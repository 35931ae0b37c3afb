//! The machines that ship, in turns: a segment whose every access waits for the rank's turn.

use super::What::{self, Allgather, Gather, Scatter};
use super::printed::{Call, F, S, W, byte};
use super::turns::{Fault, P, Schedule, Turns};
use std::sync::Arc;
use unisono_kernel::comm::{Comm, Communicator};
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::{Error, WaitError};
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::machine::transport::{Observe, Transport, Wait};
use unisono_kernel::region::{Cico, Params, Region};
use unisono_kernel::shm::papers::allgather::P2Allgather;
use unisono_kernel::shm::papers::gather::P2Gather;
use unisono_kernel::shm::papers::scatter::P2Scatter;
use unisono_local::Segment;

/// The segment of the printed model: two sets of one slot of four bytes.
pub(crate) fn params(ranks: u32) -> Params {
    let cico = Cico { slots: S as u32, fragment: F as u64, sets: W as u32 };
    Params { page: 256, cico: Some(cico), ..Params::new(ranks) }
}

pub(crate) fn one_after_the_other(counts: &[u64]) -> Vec<u64> {
    (0..counts.len()).map(|rank| counts[..rank].iter().sum()).collect()
}

/// One collective of the paper's.
pub(crate) fn call<T: Transport>(
    c: &mut Communicator<T>,
    what: What,
    root: u32,
    all: Blocks<'_>,
    own: Data<'_>,
) -> Result<(), Error>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    match what {
        Scatter => c.call(|me| P2Scatter::new(me, Some(all), Some(own), root)),
        Gather => c.call(|me| P2Gather::new(me, Some(own), Some(all), root)),
        Allgather => c.call(|me| P2Allgather::new(me, Some(own), all)),
    }
}

const GUARD: [u8; 16] = [0xA5; 16];

/// A call of the model's, with its bytes, and its result here.
fn check<T: Transport>(c: &mut Communicator<T>, what: What, number: usize, (root, counts): Call) -> Result<(), Fault>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    let me = c.rank() as usize;
    let block = |rank: usize| (0..counts[rank]).map(move |at| byte(number, rank, at));
    let whole: Vec<u8> = (0..P).flat_map(block).collect();
    let part: Vec<u8> = block(me).collect();
    let counts = counts.map(|count| count as u64);
    let places = one_after_the_other(&counts);
    let nothing = |like: &[u8]| vec![0; like.len()];
    let (all, own) = match what {
        Scatter => (whole.clone(), nothing(&part)),
        Gather | Allgather => (nothing(&whole), part.clone()),
    };
    let expected = match what {
        Gather if me != root => nothing(&whole),
        _ => whole,
    };
    let (mut all, mut own) = ([&all[..], &GUARD].concat(), [&own[..], &GUARD].concat());
    let blocks = Blocks::vary_mut(&mut all[..expected.len()], &counts, &places, Datatype::BYTE).unwrap();
    match call(c, what, root as u32, blocks, Data::bytes_mut(&mut own[..part.len()])) {
        Err(Error::Abandoned) => return Err(Fault::Deadlock),
        other => other.unwrap(),
    }
    match () {
        () if !all.ends_with(&GUARD) || !own.ends_with(&GUARD) => Err(Fault::Overrun),
        () if !all.starts_with(&expected) || !own.starts_with(&part) => Err(Fault::Wrong),
        () => Ok(()),
    }
}

/// Runs the calls by the machines that ship, in turns.
pub(crate) fn run(what: What, calls: &[Call], schedule: Schedule) -> Result<(), Fault> {
    let segment = Segment::new(params(P as u32)).unwrap();
    let layout = *segment.layout();
    Turns::run(schedule, |turns, rank| {
        let region = Turned { segment: segment.clone(), turns: turns.clone(), rank };
        let comm = Comm::new(segment.clone(), layout, rank as u32).unwrap();
        let wait = InTurns { comm, turns: turns.clone() };
        let mut c = Communicator::<Scheduled>::new(region, layout, rank as u32, wait).unwrap();
        calls.iter().enumerate().try_for_each(|(number, &call)| check(&mut c, what, number, call))
    })
    .map(|_| ())
}

/// The same by threads that run freely.
pub(crate) fn run_free(what: What, calls: &[Call]) -> Result<(), Fault> {
    let body = |mut c: Communicator<_>| {
        calls.iter().enumerate().try_for_each(|(number, &call)| check(&mut c, what, number, call))
    };
    unisono_local::run(params(P as u32), body).unwrap().into_iter().collect()
}

/// A segment on the heap, in turns.
enum Scheduled {}

impl Transport for Scheduled {
    type Region = Turned;
    type Wait = InTurns;
}

/// Waits without accesses of its own that others could wait for.
struct InTurns {
    comm: Comm<Segment>,
    turns: Arc<Turns>,
}

impl<X: Observe> Wait<X> for InTurns {
    fn wait(&mut self, _: &mut X, on: &WaitSet) -> Result<(), WaitError> {
        let rank = self.comm.member().rank() as usize;
        let comm = &mut self.comm;
        let over = self.turns.wait(rank, || comm.ready(on) || comm.poison().is_some());
        match comm.poison() {
            Some(poison) => Err(WaitError::Poisoned(poison)),
            None => over.map_err(|_| WaitError::Abandoned),
        }
    }
}

struct Turned {
    segment: Segment,
    turns: Arc<Turns>,
    rank: usize,
}

impl Turned {
    /// The segment, at this rank's turn.
    fn turn(&self) -> &Segment {
        self.turns.turn(self.rank);
        &self.segment
    }
}

// SAFETY: forwards to the segment, which keeps the contract.
unsafe impl Region for Turned {
    unisono_kernel::forward_region!(Segment, |turned| turned.turn());
}

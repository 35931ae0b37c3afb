//! Algorithms over messages under SimGrid's SMPI: the functions that `collectives.c` calls, by name, on its own message
//! layer.
//!
//! The same [`Team`] runs the same schedules over a real MPI. All ranks are contexts of one process here, so nothing is
//! static.

use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use unisono_kernel::Rank;
use unisono_kernel::error::Refusal;
use unisono_kernel::machine::p2p::P2p;
use unisono_kernel::msg::{
    Algorithm, Parts, PlanError, Schedule, allgather, allreduce, barrier, bcast, levels, reduce,
};
use unisono_kernel::op::Op;
use unisono_kernel::pattern::Seat;
use unisono_kernel::pattern::bagds::{self, Table};
use unisono_kernel::topology::group::{Groups, Place};
use unisono_kernel::topology::{Level, Levels, Locality};
use unisono_mpi::attach::{AttachError, Team};
use unisono_mpi::messages::{Endpoint, Layer};

/// The operation of reductions.
const OP: Op = Op::SUM_I32;
/// The root.
const ROOT: Rank = 0;

/// One rank's endpoint, and the places of all ranks.
#[derive(Debug)]
pub struct Party {
    team: Team,
    seat: Seat,
    places: Vec<Place>,
    order: Vec<Rank>,
    localities: Vec<Locality>,
    /// BAGDS's work and table, which it makes once.
    stages: (Vec<u64>, Vec<u64>),
}

/// Why a call did not succeed.
#[derive(Debug)]
enum Failure {
    /// The algorithm or the levels do not exist.
    Unknown,
    Plan(PlanError),
    Attach(AttachError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("no such algorithm, or no such levels"),
            Self::Plan(error) => error.fmt(f),
            Self::Attach(error) => error.fmt(f),
        }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Plan(refusal.into())
    }
}

impl From<AttachError> for Failure {
    fn from(error: AttachError) -> Self {
        Self::Attach(error)
    }
}

impl Party {
    /// Ranks fill nodes of `per_node`, and switches of `per_leaf` nodes, one after the other.
    fn new(endpoint: Endpoint, per_node: u32, per_leaf: u32) -> Result<Self, Refusal> {
        let team = Team::new(endpoint);
        let seat = Seat::new(team.messages().rank(), team.messages().size())?;
        let locality = |rank: Rank| {
            let node = rank / per_node.max(1);
            Locality::NOWHERE.with(Level::Node, node).with(Level::Switch1, node / per_leaf.max(1))
        };
        let size = seat.size();
        let (places, order) = (vec![Place::default(); size as usize], vec![0; size as usize]);
        let localities = (0..size).map(locality).collect();
        Ok(Self { team, seat, places, order, localities, stages: Default::default() })
    }

    /// Runs `COLLECTIVE/ALGORITHM`, as `bcast/binomial`, `reduce/levels-8192/chain`; with `@LEVELS` at the end, over
    /// these levels alone. An allgather receives `bytes` from each rank.
    fn run(&mut self, name: &str, send: &[u8], receive: &mut [u8], bytes: u64) -> Result<(), Failure> {
        let Self { team, seat, places, order, localities, stages } = self;
        let (name, levels) = match name.split_once('@') {
            None => (name, Levels::EVERY),
            Some((name, levels)) => (name, levels.parse().map_err(|_| Failure::Unknown)?),
        };
        let (collective, algorithm) = name.split_once('/').ok_or(Failure::Unknown)?;
        if let Some(algorithm) = levels::Algorithm::from_name(algorithm) {
            let (groups, me) = (Groups::build(localities, levels, places, order)?, seat.rank());
            return match collective {
                "bcast" => go(team, levels::bcast::plan(&groups, me, bytes, ROOT, algorithm)?, send, receive),
                "reduce" => {
                    go(team, levels::reduce::plan(&groups, me, bytes, OP, ROOT, false, algorithm)?, send, receive)
                }
                "allreduce" => {
                    go(team, levels::allreduce::plan(&groups, me, bytes, OP, false, algorithm)?, send, receive)
                }
                _ => Err(Failure::Unknown),
            };
        }
        match Algorithm::from_name(name) {
            Some(Algorithm::Bcast(how)) => go(team, bcast::plan(*seat, bytes, ROOT, how)?, send, receive),
            Some(Algorithm::Reduce(how)) => go(team, reduce::plan(*seat, bytes, OP, ROOT, false, how)?, send, receive),
            Some(Algorithm::Allreduce(how)) => go(team, allreduce::plan(*seat, bytes, OP, false, how)?, send, receive),
            Some(Algorithm::Barrier(how)) => go(team, barrier::plan(*seat, how)?, send, receive),
            Some(Algorithm::Allgather(how)) => {
                let parts = Parts::equal(seat.size(), bytes)?;
                let table = match how {
                    allgather::Algorithm::Bagds => Some(table(*seat, stages)?),
                    _ => None,
                };
                go(team, allgather::plan(*seat, parts, false, how, table)?, send, receive)
            }
            _ => Err(Failure::Unknown),
        }
    }
}

/// This rank's stages of BAGDS, the first time computed in `stages`.
fn table(seat: Seat, (work, words): &mut (Vec<u64>, Vec<u64>)) -> Result<Table<'_>, Refusal> {
    work.resize(bagds::work_words(seat.size()), 0);
    let stages = bagds::stages(seat.size(), work)?;
    words.resize(bagds::table_words(seat.size(), stages), 0);
    Table::new(seat, work, words)
}

fn go(team: &mut Team, plan: impl Schedule, send: &[u8], receive: &mut [u8]) -> Result<(), Failure> {
    // SAFETY: after an error the program ends, and sends nothing any more.
    Ok(unsafe { team.run(plan, send, receive) }?)
}

/// This rank's endpoint, on its layer; null where the communicator has no ranks.
///
/// # Safety
/// The layer does what `unisono_messages.h` says, and is given to this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_simgrid_join(layer: *const Layer, per_node: u32, per_leaf: u32) -> *mut Party {
    // SAFETY: the caller's promise.
    let layer = unsafe { layer.read() };
    // SAFETY: the caller's promise.
    let endpoint = unsafe { Endpoint::new(layer) };
    Party::new(endpoint, per_node, per_leaf).map_or(core::ptr::null_mut(), |party| Box::into_raw(Box::new(party)))
}

/// Runs a collective by its name: 0; 1 where the algorithm does not apply; 2 after an error, which is printed.
///
/// # Safety
/// `party` comes from [`unisono_simgrid_join`]; `name` is a string; `send` has `bytes` bytes, `receive` as many for each rank, and
/// both stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_simgrid_run(
    party: *mut Party,
    name: *const c_char,
    send: *const u8,
    receive: *mut u8,
    bytes: u64,
) -> c_int {
    // SAFETY: the caller's promise.
    let party = unsafe { &mut *party };
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    // SAFETY: the caller's promise.
    let send = unsafe { core::slice::from_raw_parts(send, bytes as usize) };
    // SAFETY: the caller's promise.
    let receive = unsafe { core::slice::from_raw_parts_mut(receive, bytes as usize * party.seat.size() as usize) };
    match party.run(&name, send, receive, bytes) {
        Ok(()) => 0,
        Err(Failure::Plan(error)) if !matches!(error, PlanError::Refused(_)) => 1,
        Err(failure) => {
            eprintln!("rank {}: {name}, {bytes} bytes: {failure}", party.seat.rank());
            2
        }
    }
}

/// Closes the layer. Collective.
///
/// # Safety
/// `party` comes from [`unisono_simgrid_join`], and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_simgrid_leave(party: *mut Party) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(party) });
}

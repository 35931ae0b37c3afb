//! Broadcasts, and the collectives that move blocks.

use super::far::{BLOCK, Far};
use super::image::{Content, Image, Part};
use super::{Case, Cases, FAR, LARGE};
use crate::error::Failure;
use unisono_kernel::algorithm::{BcastAlgorithm, MoveAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::blocks::{Block, Blocks};
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::{Error, Refusal};
use unisono_kernel::pattern::tree::Tree;
use unisono_posix::Posix;

type Check = fn(&mut Communicator<Posix>, Case, &Side, MoveAlgorithm) -> Result<bool, Error>;

const MOVES: [(&str, Check); 3] = [("gather", gather), ("scatter", scatter), ("allgather", allgather)];

pub(super) fn check(cases: &mut Cases<'_>) -> Result<(), Failure> {
    const QUEUE: BcastAlgorithm = BcastAlgorithm::Queue;
    cases.run("bcast queue".into(), |comm, case| bcast(comm, case, QUEUE))?;
    cases.run("bcast cico-binomial".into(), |comm, case| bcast(comm, case, BcastAlgorithm::Cico(Tree::BINOMIAL)))?;
    cases.run("bcast, bytes to vector".into(), dense)?;
    for (index, send) in Far::ALL.into_iter().enumerate() {
        let receive = Far::ALL[(index + 1) % Far::ALL.len()];
        let name = format!("bcast, far {} to far {}", send.name(), receive.name());
        cases.run(name, |comm, case| sparse(comm, case, send, receive))?;
    }
    for (name, call) in MOVES {
        for (by, algorithm) in [("exchange", MoveAlgorithm::Exchange), ("cico", MoveAlgorithm::Cico)] {
            cases.run(format!("{name} {by}"), |comm, case| call(comm, case, &Side::equal(case.size), algorithm))?;
            cases.run(format!("{name}v {by}"), |comm, case| {
                // The root's own block lies near, the others far.
                let first = if name == "allgather" { case.me } else { case.size - 1 };
                let counts = (0..case.size as u64).map(|rank| LARGE + rank).collect();
                call(comm, case, &Side::vary(counts, first), algorithm)
            })?;
        }
    }
    cases.run("alltoall in place".into(), alltoall)?;
    cases.run("alltoallv, the own block is large".into(), |comm, case| alltoallv(comm, case, 0))?;
    cases.run("alltoallv, the next rank's is large".into(), |comm, case| alltoallv(comm, case, 1))?;
    cases.run("alltoallw".into(), alltoallw)
}

/// A block per rank in one piece of memory.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) counts: Vec<u64>,
    places: Vec<u64>,
    vary: bool,
    /// The root of a rooted operation; its block lies first.
    root: usize,
}

impl Side {
    /// Large blocks, one after the other.
    pub(super) fn equal(size: usize) -> Self {
        let places = (0..size as u64).map(|rank| rank * LARGE).collect();
        Self { counts: vec![LARGE; size], places, vary: false, root: 0 }
    }

    /// Blocks of these lengths, far from each other, in the order of ranks from `first` on.
    pub(super) fn vary(counts: Vec<u64>, first: usize) -> Self {
        let size = counts.len();
        let places = (0..size).map(|rank| 3 + ((rank + size - first) % size) as u64 * FAR).collect();
        Self { counts, places, vary: true, root: first }
    }

    pub(super) fn image(&self, content: impl Fn(usize) -> Content) -> Image {
        let block = |rank| Part { at: self.places[rank], len: self.counts[rank], content: content(rank), position: 0 };
        (0..self.counts.len()).map(block).fold(Image::blank(0), Image::with)
    }

    pub(super) fn blocks<'a>(&'a self, memory: &'a mut [u8]) -> Result<Blocks<'a>, Refusal> {
        if self.vary {
            return Blocks::vary_mut(memory, &self.counts, &self.places, Datatype::BYTE);
        }
        Blocks::equal_mut(memory, self.counts.len() as u32, LARGE, Datatype::BYTE)
    }
}

fn bcast(comm: &mut Communicator<Posix>, case: Case, algorithm: BcastAlgorithm) -> Result<bool, Error> {
    let root = case.size - 1;
    let wanted = Image::whole(LARGE, case.sent(root, 0));
    let mut memory = if case.me == root { wanted.memory() } else { wanted.zeros() };
    comm.run(&Call::Bcast { data: Data::typed(&mut memory, LARGE, Datatype::BYTE)?, root: root as u32, algorithm })?;
    Ok(wanted.held_by(&memory))
}

/// A broadcast of bytes to a vector of as many bytes with small holes.
fn dense(comm: &mut Communicator<Posix>, case: Case) -> Result<bool, Error> {
    const BLOCKS: u64 = (1 << 31) / BLOCK + 1;
    const STRIDE: u64 = BLOCK + 9;
    let content = case.sent(0, 0);
    if case.me == 0 {
        let wanted = Image::whole(BLOCKS * BLOCK, content);
        let mut memory = wanted.memory();
        comm.bcast(&mut memory, 0)?;
        return Ok(wanted.held_by(&memory));
    }
    let part = |block| Part { at: block * STRIDE, len: BLOCK, content, position: block * BLOCK };
    let wanted = (0..BLOCKS).map(part).fold(Image::blank(0), Image::with);
    let mut memory = wanted.zeros();
    let vector = Datatype::Vector { blocks: BLOCKS, block: BLOCK, stride: STRIDE };
    comm.run(&Call::Bcast { data: Data::typed(&mut memory, 1, vector)?, root: 0, algorithm: BcastAlgorithm::Auto })?;
    Ok(wanted.held_by(&memory))
}

/// A broadcast of two elements whose blocks lie far apart.
fn sparse(comm: &mut Communicator<Posix>, case: Case, send: Far, receive: Far) -> Result<bool, Error> {
    let (root, count) = (case.size - 1, 2);
    let kind = if case.me == root { send } else { receive };
    let wanted = kind.put(Image::blank(0), 0, count, case.sent(root, 0));
    let mut memory = if case.me == root { wanted.memory() } else { wanted.zeros() };
    let data = Data::typed(&mut memory, count, kind.datatype())?;
    comm.run(&Call::Bcast { data, root: root as u32, algorithm: BcastAlgorithm::Auto })?;
    Ok(wanted.held_by(&memory))
}

fn gather(comm: &mut Communicator<Posix>, case: Case, side: &Side, algorithm: MoveAlgorithm) -> Result<bool, Error> {
    let Case { me, .. } = case;
    let root = side.root;
    let sent = Image::whole(side.counts[me], case.sent(me, root));
    let wanted = if me == root { side.image(|rank| case.sent(rank, root)) } else { Image::blank(0) };
    let (mut own, mut all) = (sent.memory(), wanted.zeros());
    let send = Some(Data::typed(&mut own, side.counts[me], Datatype::BYTE)?);
    let receive = if me == root { Some(side.blocks(&mut all)?) } else { None };
    if side.vary {
        comm.run(&Call::Gatherv { send, receive, root: root as u32, algorithm })?;
    } else {
        comm.run(&Call::Gather { send, receive, root: root as u32, algorithm })?;
    }
    Ok(sent.held_by(&own) && wanted.held_by(&all))
}

fn scatter(comm: &mut Communicator<Posix>, case: Case, side: &Side, algorithm: MoveAlgorithm) -> Result<bool, Error> {
    let Case { me, .. } = case;
    let root = side.root;
    let sent = if me == root { side.image(|rank| case.sent(root, rank)) } else { Image::blank(0) };
    let wanted = Image::whole(side.counts[me], case.sent(root, me));
    let (mut all, mut own) = (sent.memory(), wanted.zeros());
    let send = if me == root { Some(side.blocks(&mut all)?) } else { None };
    let receive = Some(Data::typed(&mut own, side.counts[me], Datatype::BYTE)?);
    if side.vary {
        comm.run(&Call::Scatterv { send, receive, root: root as u32, algorithm })?;
    } else {
        comm.run(&Call::Scatter { send, receive, root: root as u32, algorithm })?;
    }
    Ok(sent.held_by(&all) && wanted.held_by(&own))
}

fn allgather(comm: &mut Communicator<Posix>, case: Case, side: &Side, algorithm: MoveAlgorithm) -> Result<bool, Error> {
    let Case { me, .. } = case;
    let sent = Image::whole(side.counts[me], case.sent(me, 0));
    let wanted = side.image(|rank| case.sent(rank, 0));
    let (mut own, mut all) = (sent.memory(), wanted.zeros());
    let send = Some(Data::typed(&mut own, side.counts[me], Datatype::BYTE)?);
    comm.run(&Call::Allgather { send, receive: side.blocks(&mut all)?, algorithm })?;
    Ok(sent.held_by(&own) && wanted.held_by(&all))
}

/// In place: two buffers of large blocks would not fit most machines.
fn alltoall(comm: &mut Communicator<Posix>, case: Case) -> Result<bool, Error> {
    let Case { me, size, .. } = case;
    let side = Side::equal(size);
    let mut all = side.image(|rank| case.sent(me, rank)).memory();
    comm.alltoall(None, side.blocks(&mut all)?)?;
    Ok(side.image(|rank| case.sent(rank, me)).held_by(&all))
}

/// One large block to the `step`-th next rank, short ones to the others.
fn alltoallv(comm: &mut Communicator<Posix>, case: Case, step: usize) -> Result<bool, Error> {
    let Case { me, size, .. } = case;
    let len = |from: usize, to: usize| {
        let least = if to == (from + step) % size { LARGE } else { 1000 };
        least + from as u64
    };
    let outgoing = Side::vary((0..size).map(|to| len(me, to)).collect(), me);
    let incoming = Side::vary((0..size).map(|from| len(from, me)).collect(), me);
    let (sent, wanted) = (outgoing.image(|to| case.sent(me, to)), incoming.image(|from| case.sent(from, me)));
    let (mut source, mut target) = (sent.memory(), wanted.zeros());
    comm.alltoallv(Some(outgoing.blocks(&mut source)?), incoming.blocks(&mut target)?)?;
    Ok(sent.held_by(&source) && wanted.held_by(&target))
}

/// Sends many bytes to the next rank, and an element whose blocks lie far apart to each of the others.
fn alltoallw(comm: &mut Communicator<Posix>, case: Case) -> Result<bool, Error> {
    let Case { me, size, .. } = case;
    let kind = |other: usize, turn: usize| Far::ALL[(me + other + turn) % Far::ALL.len()];
    let (sent, outgoing) = each(size, (me + 1) % size, |to| (kind(to, 0), case.sent(me, to)));
    let (wanted, incoming) = each(size, (me + size - 1) % size, |from| (kind(from, 1), case.sent(from, me)));
    let (mut source, mut target) = (sent.memory(), wanted.zeros());
    comm.alltoallv(Some(Blocks::each_mut(&mut source, &outgoing)?), Blocks::each_mut(&mut target, &incoming)?)?;
    Ok(sent.held_by(&source) && wanted.held_by(&target))
}

/// A block per rank, with the type and the content that `of` returns. The block of rank `large` is bytes
/// instead, after all others.
fn each(size: usize, large: usize, of: impl Fn(usize) -> (Far, Content)) -> (Image, Vec<Block<'static>>) {
    let (mut image, mut displacement) = (Image::blank(0), 5);
    let mut blocks = vec![Block { displacement, count: 0, datatype: Datatype::BYTE }; size];
    for rank in (1..=size).map(|step| (large + step) % size) {
        let (kind, content) = of(rank);
        (image, blocks[rank]) = if rank == large {
            let part = Part { at: displacement, len: LARGE, content, position: 0 };
            (image.with(part), Block { displacement, count: LARGE, datatype: Datatype::BYTE })
        } else {
            let datatype = kind.datatype();
            (kind.put(image, displacement, 1, content), Block { displacement, count: 1, datatype })
        };
        displacement += kind.extent() + 3;
    }
    (image, blocks)
}

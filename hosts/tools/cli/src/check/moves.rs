//! Gather, scatter, allgather, alltoall and their vector forms: every algorithm × root × size, in place and
//! not, bytes on both sides and two different datatypes.

use super::side::{Side, Type, message};
use super::{Caller, FRAGMENT, QUEUE_SLOTS, Tally, roots};
use crate::error::Failure;
use unisono_kernel::algorithm::{AlltoallAlgorithm, MoveAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::error::Error;
use unisono_kernel::region::layout::LINE_PAYLOAD;

/// The parts of a case that are the same on all ranks.
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: usize,
    /// Bytes of the longest block.
    most: u64,
    /// A vector form: blocks of several lengths, with gaps.
    vary: bool,
    types: Types,
    in_place: bool,
    algorithm: MoveAlgorithm,
    /// That of an alltoall of equal blocks.
    pairs: AlltoallAlgorithm,
    me: usize,
    size: usize,
    root: usize,
}

/// The datatypes of a block at its sender and at its receiver.
#[derive(Clone, Copy, Debug)]
struct Types {
    name: &'static str,
    send: Type,
    receive: Type,
}

const TYPES: [Types; 3] = [
    Types { name: "bytes", send: Type::Bytes, receive: Type::Bytes },
    Types { name: "vector to indexed", send: Type::Second, receive: Type::Third },
    Types { name: "struct to vector", send: Type::Struct, receive: Type::Second },
];

type Check = fn(&mut Caller<'_>, Case) -> Result<bool, Error>;

/// The collectives, each with its call, whether it has a root, and its algorithms.
const MOVES: [(&str, Check, bool, &[&str]); 4] = [
    ("gather", gather, true, &["exchange", "cico", "groups"]),
    ("scatter", scatter, true, &["exchange", "cico"]),
    ("allgather", allgather, false, &["exchange", "cico", "groups"]),
    ("alltoall", alltoall, false, &["exchange", "groups"]),
];

/// Lengths of a block around those at which an algorithm goes another way.
pub(super) const SIZES: [u64; 9] = {
    let (line, fragment, queue) = (LINE_PAYLOAD, FRAGMENT, FRAGMENT * QUEUE_SLOTS as u64);
    [0, 1, 8, line, line + 1, fragment - 1, fragment, fragment + 1, 2 * queue + 5]
};

pub(super) fn check(comm: &mut Caller<'_>, tally: &mut Tally) -> Result<(), Failure> {
    let (me, size) = (comm.rank() as usize, comm.size() as usize);
    for (name, call, rooted, algorithms) in MOVES {
        for algorithm_name in algorithms {
            let pairs = AlltoallAlgorithm::from_name(algorithm_name);
            let algorithm = MoveAlgorithm::from_name(algorithm_name);
            if pairs.is_none() && algorithm.is_none() {
                return Err(Failure::Words(format!("no algorithm {algorithm_name}")));
            }
            let (algorithm, pairs) = (algorithm.unwrap_or_default(), pairs.unwrap_or_default());
            let roots = if rooted { roots(comm.size()) } else { vec![0] };
            let sized = |most| roots.iter().map(move |&root| (most, root as usize));
            for (most, root) in SIZES.into_iter().flat_map(sized) {
                for (types, flags) in TYPES.iter().flat_map(|types| (0..4).map(move |flags| (*types, flags))) {
                    let [vary, in_place] = [1, 2].map(|flag| flags & flag != 0);
                    if vary && name != "allgather" && pairs == AlltoallAlgorithm::Groups {
                        continue;
                    }
                    let seed = tally.cases.len();
                    let right =
                        call(comm, Case { seed, most, vary, types, in_place, algorithm, pairs, me, size, root })?;
                    let form = if vary { "v" } else { "" };
                    let at = if rooted { format!(" root {root}") } else { String::new() };
                    let place = if in_place { " in place" } else { "" };
                    tally.case(format!("{name}{form} {algorithm_name}{at} {most} B {}{place}", types.name), right);
                }
            }
        }
    }
    Ok(())
}

impl Case {
    /// Bytes of each rank's block.
    fn counts(&self) -> Vec<u64> {
        if self.vary { unequal(self.most, self.size) } else { vec![self.most; self.size] }
    }

    fn one(&self, count: u64, sends: bool) -> Side {
        Side::one(count, self.kind(sends))
    }

    fn many(&self, counts: &[u64], sends: bool) -> Side {
        Side::many(counts, self.vary, self.kind(sends))
    }

    const fn kind(&self, sends: bool) -> Type {
        if sends { self.types.send } else { self.types.receive }
    }

    /// Does this rank's own block of a rooted operation stay in place?
    const fn keeps(&self) -> bool {
        self.in_place && self.me == self.root
    }
}

/// Lengths of blocks, the longest one `most`.
pub(super) fn unequal(most: u64, size: usize) -> Vec<u64> {
    let ranks = size as u64;
    let count = |rank| most * ((2 * rank + 1) % ranks) / (ranks - 1);
    if ranks > 1 { (0..ranks).map(count).collect() } else { vec![most] }
}

/// A side that holds in each block the bytes that `bytes` returns for it.
fn filled(side: &Side, counts: &[u64], bytes: impl Fn(usize, u64) -> Vec<u8>) -> Side {
    counts.iter().enumerate().fold(side.clone(), |side, (rank, count)| side.with(rank, &bytes(rank, *count)))
}

fn gather(comm: &mut Caller<'_>, case: Case) -> Result<bool, Error> {
    let Case { seed, me, root, algorithm, .. } = case;
    let counts = case.counts();
    let bytes = |rank, count| message(seed, rank, root, count);
    let mut all = case.many(&counts, false);
    let wanted = filled(&all, &counts, bytes);
    if case.keeps() {
        all = all.with(me, &bytes(me, counts[me]));
    }
    let sent = case.one(counts[me], true).with(0, &bytes(me, counts[me]));
    let mut own = sent.clone();
    let send = if case.keeps() { None } else { Some(own.data()?) };
    let receive = if me == root { Some(all.blocks()?) } else { None };
    let root = root as u32;
    comm.run(if case.vary {
        Call::Gatherv { send, receive, root, algorithm }
    } else {
        Call::Gather { send, receive, root, algorithm }
    })?;
    Ok(own == sent && (me != case.root || all == wanted))
}

fn scatter(comm: &mut Caller<'_>, case: Case) -> Result<bool, Error> {
    let Case { seed, me, root, algorithm, .. } = case;
    let counts = case.counts();
    let bytes = |rank, count| message(seed, root, rank, count);
    let sent = filled(&case.many(&counts, true), &counts, bytes);
    let mut all = sent.clone();
    let mut own = case.one(counts[me], false);
    let wanted = own.clone().with(0, &bytes(me, counts[me]));
    let send = if me == root { Some(all.blocks()?) } else { None };
    let receive = if case.keeps() { None } else { Some(own.data()?) };
    let root = root as u32;
    comm.run(if case.vary {
        Call::Scatterv { send, receive, root, algorithm }
    } else {
        Call::Scatter { send, receive, root, algorithm }
    })?;
    Ok(all == sent && (case.keeps() || own == wanted))
}

fn allgather(comm: &mut Caller<'_>, case: Case) -> Result<bool, Error> {
    let Case { seed, me, .. } = case;
    let counts = case.counts();
    let bytes = |rank, count| message(seed, rank, 0, count);
    let mut all = case.many(&counts, false);
    let wanted = filled(&all, &counts, bytes);
    if case.in_place {
        all = all.with(me, &bytes(me, counts[me]));
    }
    let sent = case.one(counts[me], true).with(0, &bytes(me, counts[me]));
    let mut own = sent.clone();
    let send = if case.in_place { None } else { Some(own.data()?) };
    comm.run(Call::Allgather { send, receive: all.blocks()?, algorithm: case.algorithm })?;
    Ok(own == sent && all == wanted)
}

/// Rank i's block for rank j has the length of number (i + j) mod p, so that the call may also be in place.
fn alltoall(comm: &mut Caller<'_>, case: Case) -> Result<bool, Error> {
    let Case { seed, me, size, .. } = case;
    let lengths = case.counts();
    let counts: Vec<u64> = (0..size).map(|rank| lengths[(rank + me) % size]).collect();
    let outgoing = |rank, count| message(seed, me, rank, count);
    let mut all = case.many(&counts, false);
    let wanted = filled(&all, &counts, |rank, count| message(seed, rank, me, count));
    if case.in_place {
        all = filled(&all, &counts, outgoing);
    }
    let sent = filled(&case.many(&counts, true), &counts, outgoing);
    let mut source = sent.clone();
    let send = if case.in_place { None } else { Some(source.blocks()?) };
    let receive = all.blocks()?;
    let algorithm = case.pairs;
    comm.run(if case.vary { Call::Alltoallv { send, receive } } else { Call::Alltoall { send, receive, algorithm } })?;
    Ok(source == sent && all == wanted)
}

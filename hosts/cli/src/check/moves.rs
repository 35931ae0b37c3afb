//! Gather, scatter, allgather, alltoall and their vector forms: every root × size, in place and not,
//! bytes on both sides and two different datatypes.

use super::side::{Side, Type, message};
use super::{FRAGMENT, QUEUE_SLOTS, Tally};
use crate::error::Failure;
use unisono_kernel::driver::Communicator;
use unisono_kernel::error::Error;
use unisono_kernel::region::layout::LINE_PAYLOAD;
use unisono_posix::Posix;

/// What is the same for all ranks.
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: usize,
    /// Bytes of the longest block.
    most: u64,
    /// A vector form: blocks of several lengths, with gaps.
    vary: bool,
    typed: bool,
    in_place: bool,
    me: usize,
    size: usize,
    root: usize,
}

type Move = fn(&mut Communicator<Posix>, Case) -> Result<bool, Error>;

pub(super) fn check(comm: &mut Communicator<Posix>, tally: &mut Tally) -> Result<(), Failure> {
    let (line, fragment, queue) = (LINE_PAYLOAD, FRAGMENT, FRAGMENT * u64::from(QUEUE_SLOTS));
    let sizes = [0, 1, 8, line, line + 1, fragment - 1, fragment, fragment + 1, 2 * queue + 5];
    let (me, size) = (comm.rank() as usize, comm.size() as usize);
    let moves: [(&str, Move, usize); 4] =
        [("gather", gather, size), ("scatter", scatter, size), ("allgather", allgather, 1), ("alltoall", alltoall, 1)];
    for (name, call, roots) in moves {
        for (most, root) in sizes.iter().flat_map(|most| (0..roots).map(move |root| (*most, root))) {
            for flags in 0..8 {
                let [vary, typed, in_place] = [1, 2, 4].map(|flag| flags & flag != 0);
                let seed = tally.cases.len();
                let right = call(comm, Case { seed, most, vary, typed, in_place, me, size, root })?;
                let form = if vary { "v" } else { "" };
                let at = if roots > 1 { format!(" root {root}") } else { String::new() };
                let types = if typed { "vector to indexed" } else { "bytes" };
                let place = if in_place { " in place" } else { "" };
                tally.case(format!("{name}{form}{at} {most} B {types}{place}"), right);
            }
        }
    }
    Ok(())
}

impl Case {
    /// Bytes of each rank's block.
    fn counts(&self) -> Vec<u64> {
        let (ranks, steps) = (self.size as u64, (self.size as u64 - 1).max(1));
        let count = |rank| self.most * ((2 * rank + 1) % ranks) / steps;
        (0..ranks).map(|rank| if self.vary && ranks > 1 { count(rank) } else { self.most }).collect()
    }

    fn one(&self, count: u64, sends: bool) -> Side {
        Side::one(count, self.kind(sends))
    }

    fn many(&self, counts: &[u64], sends: bool) -> Side {
        Side::many(counts, self.vary, self.kind(sends))
    }

    const fn kind(&self, sends: bool) -> Type {
        match (self.typed, sends) {
            (false, _) => Type::Bytes,
            (true, true) => Type::Second,
            (true, false) => Type::Third,
        }
    }

    /// Does this rank keep its block of a rooted operation where it is?
    const fn keeps(&self) -> bool {
        self.in_place && self.me == self.root
    }
}

/// A side that holds in each block what `bytes` answers for it.
fn filled(side: &Side, counts: &[u64], bytes: impl Fn(usize, u64) -> Vec<u8>) -> Side {
    counts.iter().enumerate().fold(side.clone(), |side, (rank, count)| side.with(rank, &bytes(rank, *count)))
}

fn gather(comm: &mut Communicator<Posix>, case: Case) -> Result<bool, Error> {
    let Case { seed, me, root, .. } = case;
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
    if case.vary {
        comm.gatherv(send, receive, root as u32)?;
    } else {
        comm.gather(send, receive, root as u32)?;
    }
    Ok(own == sent && (me != root || all == wanted))
}

fn scatter(comm: &mut Communicator<Posix>, case: Case) -> Result<bool, Error> {
    let Case { seed, me, root, .. } = case;
    let counts = case.counts();
    let bytes = |rank, count| message(seed, root, rank, count);
    let sent = filled(&case.many(&counts, true), &counts, bytes);
    let mut all = sent.clone();
    let mut own = case.one(counts[me], false);
    let wanted = own.clone().with(0, &bytes(me, counts[me]));
    let send = if me == root { Some(all.blocks()?) } else { None };
    let receive = if case.keeps() { None } else { Some(own.data()?) };
    if case.vary {
        comm.scatterv(send, receive, root as u32)?;
    } else {
        comm.scatter(send, receive, root as u32)?;
    }
    Ok(all == sent && (case.keeps() || own == wanted))
}

fn allgather(comm: &mut Communicator<Posix>, case: Case) -> Result<bool, Error> {
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
    comm.allgather(send, all.blocks()?)?;
    Ok(own == sent && all == wanted)
}

/// What i sends to j has the length of block (i + j) mod p, so that it may also be in place.
fn alltoall(comm: &mut Communicator<Posix>, case: Case) -> Result<bool, Error> {
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
    if case.vary {
        comm.alltoallv(send, all.blocks()?)?;
    } else {
        comm.alltoall(send, all.blocks()?)?;
    }
    Ok(source == sent && all == wanted)
}

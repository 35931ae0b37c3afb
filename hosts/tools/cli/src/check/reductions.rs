//! Reduce, allreduce, reduce_scatter, scan and exscan: roots × algorithms × operation × size, in
//! place and not.

use super::operands::Fold;
use super::{Caller, FRAGMENT, QUEUE_SLOTS, Tally, roots};
use crate::error::Failure;
use std::collections::BTreeSet;
use unisono_kernel::algorithm::{AllreduceAlgorithm, ReduceAlgorithm, ReduceScatterAlgorithm, ScanAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::Error;
use unisono_kernel::op::Op;
use unisono_kernel::region::layout::{LINE_PAYLOAD, PARTIAL};
use unisono_kernel::shm::reduce::tree;

/// The rules choose some of these only where ranks have a core each.
const ALLREDUCES: [&str; 6] = ["auto", "posted", "doubling", "exchange", "slices", "groups"];
const REDUCES: [&str; 4] = ["tree", "exchange", "slices", "groups"];
const SCANS: [&str; 4] = ["auto", "doubling", "exchange", "groups"];
const BLANK: u8 = 0xEE;

/// The parts of a case that are the same on all ranks, and this rank.
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: usize,
    fold: Fold,
    op: Op,
    words: usize,
    in_place: bool,
    me: usize,
    size: usize,
}

pub(super) fn check(comm: &mut Caller<'_>, tally: &mut Tally) -> Result<(), Failure> {
    let (line, queue) = (LINE_PAYLOAD, FRAGMENT * u64::from(QUEUE_SLOTS));
    let sizes = [0, 8, 16, tree::MOST, 56, line, line + 16, FRAGMENT, FRAGMENT + 16, 2 * queue + 48];
    let (me, size) = (comm.rank() as usize, comm.size() as usize);
    for fold in Fold::ALL {
        for words in sizes.iter().map(|bytes| *bytes as usize / 8).filter(|words| words % fold.words() == 0) {
            for in_place in [false, true] {
                let case = Case { seed: tally.cases.len(), fold, op: fold.op()?, words, in_place, me, size };
                let mut report = |name: &str, right: bool| {
                    let place = if in_place { " in place" } else { "" };
                    tally.case(format!("{name} {} {} B{place}", fold.name(), 8 * words), right);
                };
                let short = 8 * words as u64 <= tree::MOST;
                for root in roots(comm.size()) {
                    report(&format!("reduce root {root}"), case.reduce(comm, root as usize, "auto")?);
                }
                for name in REDUCES.into_iter().filter(|name| *name != "tree" || short) {
                    for root in BTreeSet::from([size / 2, size - 1]) {
                        report(&format!("reduce {name} root {root}"), case.reduce(comm, root, name)?);
                    }
                }
                let applies = |name: &&str| match *name {
                    "posted" => short,
                    "doubling" => 8 * words as u64 <= PARTIAL,
                    _ => true,
                };
                for name in ALLREDUCES.into_iter().filter(applies) {
                    report(&format!("allreduce {name}"), case.allreduce(comm, name)?);
                }
                for name in ["exchange", "groups"] {
                    report(&format!("reduce_scatter {name}"), case.reduce_scatter(comm, false, name)?);
                    report(&format!("reduce_scatter_block {name}"), case.reduce_scatter(comm, true, name)?);
                }
                for name in SCANS.into_iter().filter(|name| *name != "doubling" || short) {
                    report(&format!("scan {name}"), case.scan(comm, name)?);
                    report(&format!("exscan {name}"), case.exscan(comm, name)?);
                }
            }
        }
    }
    Ok(())
}

/// The algorithm of a scan or an exscan that has this name.
fn scans(name: &str) -> Result<ScanAlgorithm, Failure> {
    ScanAlgorithm::from_name(name).ok_or_else(|| Failure::Words(format!("no algorithm {name}")))
}

impl Case {
    fn operand(&self) -> Vec<u8> {
        self.fold.operand(self.seed, self.me, self.words)
    }

    /// The fold of the first `ranks` ranks' operands.
    fn result(&self, ranks: usize) -> Vec<u8> {
        self.fold.result(self.seed, ranks, self.words)
    }

    /// The receive buffer after a call; in place the operand lies there before.
    fn run(
        &self,
        receives: bool,
        call: impl FnOnce(Data<'_>, Data<'_>) -> Result<(), Error>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let mut send = self.operand();
        let in_place = self.in_place && receives;
        let mut receive = if in_place { send.clone() } else { vec![BLANK; send.len()] };
        let into = Data::bytes_mut(&mut receive);
        call(if in_place { into } else { Data::bytes_mut(&mut send) }, into)?;
        // Operands are only read.
        Ok((send == self.operand()).then_some(receive))
    }

    fn reduce(&self, comm: &mut Caller<'_>, root: usize, name: &str) -> Result<bool, Failure> {
        let algorithm = ReduceAlgorithm::from_name(name);
        let algorithm = algorithm.ok_or_else(|| Failure::Words(format!("no algorithm {name}")))?;
        let mine = self.me == root;
        let (op, root) = (self.op, root as u32);
        let found = self.run(mine, |send, receive| {
            comm.run(Call::Reduce { send, receive: mine.then_some(receive), op, root, algorithm })
        })?;
        let wanted = if mine { self.result(self.size) } else { vec![BLANK; 8 * self.words] };
        Ok(found == Some(wanted))
    }

    fn allreduce(&self, comm: &mut Caller<'_>, name: &str) -> Result<bool, Failure> {
        let algorithm = AllreduceAlgorithm::from_name(name);
        let algorithm = algorithm.ok_or_else(|| Failure::Words(format!("no algorithm {name}")))?;
        let op = self.op;
        let found = self.run(true, |send, receive| comm.run(Call::Allreduce { send, receive, op, algorithm }))?;
        Ok(found == Some(self.result(self.size)))
    }

    fn scan(&self, comm: &mut Caller<'_>, name: &str) -> Result<bool, Failure> {
        let (op, algorithm) = (self.op, scans(name)?);
        let found = self.run(true, |send, receive| comm.run(Call::Scan { send, receive, op, algorithm }))?;
        Ok(found == Some(self.result(self.me + 1)))
    }

    fn exscan(&self, comm: &mut Caller<'_>, name: &str) -> Result<bool, Failure> {
        let (op, algorithm) = (self.op, scans(name)?);
        let found = self.run(true, |send, receive| comm.run(Call::Exscan { send, receive, op, algorithm }))?;
        let wanted = match self.me {
            0 if self.in_place => self.operand(),
            0 => vec![BLANK; 8 * self.words],
            below => self.result(below),
        };
        Ok(found == Some(wanted))
    }

    /// The operand in unequal blocks, or in equal ones as far as they go; in place the result lies where
    /// the blocks begin.
    fn reduce_scatter(&self, comm: &mut Caller<'_>, equal: bool, name: &str) -> Result<bool, Failure> {
        let algorithm = ReduceScatterAlgorithm::from_name(name);
        let algorithm = algorithm.ok_or_else(|| Failure::Words(format!("no algorithm {name}")))?;
        let Self { me, size, .. } = *self;
        let element = 8 * self.fold.words();
        let count = self.words / self.fold.words();
        // Blocks grow with the rank: the first ones are empty, if there are few elements.
        let begin = |rank: usize| if equal { rank * (count / size) } else { rank * rank * count / (size * size) };
        let counts: Vec<u64> = (0..size).map(|rank| (begin(rank + 1) - begin(rank)) as u64).collect();
        let places: Vec<u64> = (0..size).map(|rank| begin(rank) as u64).collect();
        let (from, len) = (begin(me) * element, counts[me] as usize * element);
        let (mut send, mut receive) = (self.operand(), vec![BLANK; len]);
        let (memory, datatype) = (Buf::of_mut(&mut send), Datatype::Contiguous { bytes: element as u64 });
        let blocks = if equal {
            // SAFETY: the vector is ours until the call ends.
            unsafe { Blocks::equal(memory, size as u32, counts[me], datatype) }
        } else {
            // SAFETY: as above.
            unsafe { Blocks::vary(memory, &counts, &places, datatype) }
        }?;
        let into = if self.in_place {
            // SAFETY: as above; in place it is the same memory.
            unsafe { Data::from_raw(Buf::new(memory.ptr(), len), len as u64, Datatype::BYTE) }?
        } else {
            Data::bytes_mut(&mut receive)
        };
        comm.run(Call::ReduceScatter { send: blocks, receive: into, op: self.op, algorithm })?;
        let found = if self.in_place { &send[..len] } else { &receive };
        Ok(found == &self.result(size)[from..from + len] && (self.in_place || send == self.operand()))
    }
}

//! Reductions of single bytes.

use super::image::{Bytewise, Content, Image};
use super::moves::Side;
use super::{Case, Cases, LARGE};
use crate::error::Failure;
use unisono_kernel::algorithm::AllreduceAlgorithm;
use unisono_kernel::call::Call;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::error::Error;
use unisono_kernel::op::Op;
use unisono_posix::Posix;

type Check = fn(&mut Communicator<Posix>, Data<'_>, Data<'_>, Op) -> Result<(), Error>;

/// A reduction of whole operands.
struct Reduction {
    name: &'static str,
    by: Bytewise,
    call: Check,
    /// The number of ranks whose folded operands a rank receives; `None`: it receives nothing.
    ranks: fn(Case) -> usize,
}

const REDUCTIONS: [Reduction; 5] = [
    Reduction {
        name: "reduce",
        by: Bytewise::SumU8,
        call: |comm, send, receive, op| {
            let root = comm.size() - 1;
            let receive = (comm.rank() == root).then_some(receive);
            comm.reduce(send, receive, op, root)
        },
        ranks: |case| if case.me + 1 == case.size { case.size } else { 0 },
    },
    Reduction {
        name: "allreduce exchange",
        by: Bytewise::BandU8,
        call: |comm, send, receive, op| {
            comm.run(&Call::Allreduce { send, receive, op, algorithm: AllreduceAlgorithm::Exchange }).map(drop)
        },
        ranks: |case| case.size,
    },
    Reduction {
        name: "allreduce slices",
        by: Bytewise::MaxI8,
        call: |comm, send, receive, op| {
            comm.run(&Call::Allreduce { send, receive, op, algorithm: AllreduceAlgorithm::Slices }).map(drop)
        },
        ranks: |case| case.size,
    },
    Reduction {
        name: "scan",
        by: Bytewise::SumU8,
        call: |comm, send, receive, op| comm.scan(send, receive, op),
        ranks: |case| case.me + 1,
    },
    Reduction {
        name: "exscan",
        by: Bytewise::MaxI8,
        call: |comm, send, receive, op| comm.exscan(send, receive, op),
        ranks: |case| case.me,
    },
];

pub(super) fn check(cases: &mut Cases<'_>) -> Result<(), Failure> {
    for reduction in &REDUCTIONS {
        cases.run(reduction.name.into(), |comm, case| reduction.apart(comm, case))?;
        cases.run(format!("{} in place", reduction.name), |comm, case| reduction.in_place(comm, case))?;
    }
    cases.run("reduce_scatter_block".into(), |comm, case| {
        reduce_scatter(comm, case, &Side::equal(case.size), Bytewise::SumU8)
    })?;
    cases.run("reduce_scatter".into(), |comm, case| {
        // Short blocks, then a large one, far after them.
        let mut counts: Vec<u64> = (0..case.size as u64).map(|rank| 1000 + rank).collect();
        counts[case.size - 1] = LARGE;
        reduce_scatter(comm, case, &Side::vary(counts, 0), Bytewise::BandU8)
    })
}

impl Reduction {
    /// A rank's operand, and its result in a buffer that holds `before` first.
    fn images(&self, case: Case, before: Image) -> (Image, Image) {
        let ranks = (self.ranks)(case);
        let folded = Content::Folded { case: case.number, ranks, to: 0, by: self.by };
        let wanted = if ranks == 0 { before } else { Image::whole(LARGE, folded) };
        (Image::whole(LARGE, case.sent(case.me, 0)), wanted)
    }

    fn apart(&self, comm: &mut Communicator<Posix>, case: Case) -> Result<bool, Error> {
        let (sent, wanted) = self.images(case, Image::blank(LARGE));
        let (mut send, mut receive) = (sent.memory(), wanted.zeros());
        (self.call)(comm, Data::bytes_mut(&mut send), Data::bytes_mut(&mut receive), self.by.op()?)?;
        Ok(sent.held_by(&send) && wanted.held_by(&receive))
    }

    fn in_place(&self, comm: &mut Communicator<Posix>, case: Case) -> Result<bool, Error> {
        let (sent, wanted) = self.images(case, Image::whole(LARGE, case.sent(case.me, 0)));
        let mut memory = sent.memory();
        let data = Data::bytes_mut(&mut memory);
        (self.call)(comm, data, data, self.by.op()?)?;
        Ok(wanted.held_by(&memory))
    }
}

fn reduce_scatter(comm: &mut Communicator<Posix>, case: Case, side: &Side, by: Bytewise) -> Result<bool, Error> {
    let Case { number, me, size } = case;
    let sent = side.image(|to| case.sent(me, to));
    let wanted = Image::whole(side.counts[me], Content::Folded { case: number, ranks: size, to: me, by });
    let (mut send, mut receive) = (sent.memory(), wanted.zeros());
    comm.reduce_scatter(side.blocks(&mut send)?, Data::bytes_mut(&mut receive), by.op()?)?;
    Ok(sent.held_by(&send) && wanted.held_by(&receive))
}

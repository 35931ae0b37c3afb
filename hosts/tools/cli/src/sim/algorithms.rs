//! The algorithms over messages that can be simulated, by collective and name.

use super::data::{Case, Memory, OP};
use crate::args::Collective;
use crate::decide::messages;
use crate::error::Failure;
use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::Refusal;
use unisono_kernel::machine::Machine;
use unisono_kernel::msg::levels::Line;
use unisono_kernel::msg::{
    self, Algorithm, Parts, PlanError, Rounds, Schedule, allgather, allreduce, alltoall, barrier, bcast, gather,
    levels, reduce, reduce_scatter, scan, scatter,
};
use unisono_kernel::pattern::Seat;
use unisono_kernel::pattern::bagds::{self, Table};
use unisono_kernel::table;
use unisono_sim::Endpoint;

/// An algorithm, and the name that the user gave.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) name: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A flat algorithm, which treats all ranks alike.
    Flat(Algorithm),
    /// Over the levels of the machine.
    Levels(levels::Algorithm),
}

impl Choice {
    /// The choice as a decision table names it; nothing for algorithms over levels, which tables do not have.
    pub(crate) const fn plan(&self) -> Option<table::Choice> {
        match self.kind {
            Kind::Flat(algorithm) => Some(table::Choice::Messages(algorithm)),
            Kind::Levels(_) => None,
        }
    }
}

/// Algorithms over levels that `all` includes.
pub(crate) const fn over_levels(collective: Collective) -> &'static [&'static str] {
    match collective {
        Collective::Bcast | Collective::Reduce => &[
            "levels",
            "levels/flat",
            "levels/knomial-4",
            "levels/knomial-8",
            "levels/binomial:knomial-4",
            "levels/slices",
            "levels/halves",
            "levels/flat:halves",
            "levels/knomial-4:halves",
            "levels-4096/knomial-4:flat",
            "levels-2048/binary",
            "levels-4096/binary",
            "levels-8192/binary",
            "levels-16384/binary:binary:chain",
            "levels-16384/chain",
        ],
        Collective::Allreduce => &[
            "levels",
            "levels/knomial-4",
            "levels+doubling",
            "levels/knomial-4+doubling",
            "levels/knomial-8+doubling",
            "levels/slices+rabenseifner",
            "levels/halves+rabenseifner",
            "levels/halves+ring",
            "levels-2048/binary",
            "levels-4096/binary",
            "levels-8192/binary",
            "levels-16384/binary:binary:chain",
            "levels-16384/binary+rabenseifner",
            "levels-16384/chain",
        ],
        Collective::Gather | Collective::Scatter | Collective::Alltoall => &["levels"],
        Collective::Allgather => &["levels", "levels-8192/binary", "levels-8192/chain"],
        Collective::Barrier | Collective::ReduceScatter | Collective::Scan | Collective::Exscan => {
            &["levels", "levels/flat", "levels/knomial-4"]
        }
        _ => &[],
    }
}

/// The algorithm that a name stands for.
pub(crate) fn choice(collective: Collective, name: &str) -> Result<Choice, Failure> {
    let (kind, known) = messages(collective).unwrap_or_default();
    let family = if kind == "exscan" { "scan" } else { kind };
    let flat = Algorithm::from_name(&format!("{family}/{name}")).map(Kind::Flat);
    let rooted = matches!(collective, Collective::Bcast | Collective::Reduce);
    let over = levels::Algorithm::from_name(name).filter(|algorithm| rooted || !algorithm.through_0);
    let found = flat.or(over.map(Kind::Levels));
    let kind = found.ok_or_else(|| {
        Failure::Words(format!("no algorithm {name:?} for {kind}: {}, levels..., all", known.join(", ")))
    })?;
    Ok(Choice { name: name.into(), kind })
}

/// What algorithms need besides the call.
#[derive(Debug)]
pub(crate) struct Tables<'w> {
    line: Line<'w>,
    /// All ranks' stages of BAGDS.
    stages: Vec<Table<'w>>,
}

impl<'w> Tables<'w> {
    /// The tables that `choice` needs, in the storage `words`.
    pub(crate) fn new(
        choice: &Choice,
        ranks: u32,
        line: Line<'w>,
        words: &'w mut Vec<Vec<u64>>,
    ) -> Result<Self, Refusal> {
        if choice.kind != Kind::Flat(Algorithm::Allgather(allgather::Algorithm::Bagds)) {
            return Ok(Self { line, stages: Vec::new() });
        }
        let mut work = vec![0; bagds::work_words(ranks)];
        let stages = bagds::stages(ranks, &mut work)?;
        words.resize(ranks as usize, vec![0; bagds::table_words(ranks, stages)]);
        let one = |(rank, words): (Rank, &'w mut Vec<u64>)| Table::new(Seat::new(rank, ranks)?, &mut work, words);
        Ok(Self { line, stages: (0..).zip(words).map(one).collect::<Result<_, _>>()? })
    }
}

/// A rank's machine on its memory, to which the machine's working memory is added.
pub(crate) fn machine<'a>(
    case: &Case,
    rank: Rank,
    choice: &Choice,
    tables: &Tables<'a>,
    memory: &'a mut Memory,
) -> Result<Box<dyn Machine<Endpoint> + 'a>, PlanError> {
    match choice.kind {
        Kind::Flat(algorithm) => flat(case, rank, algorithm, tables, memory),
        Kind::Levels(algorithm) => levels(case, rank, algorithm, tables.line, memory),
    }
}

fn flat<'a>(
    case: &Case,
    rank: Rank,
    algorithm: Algorithm,
    tables: &Tables<'a>,
    memory: &'a mut Memory,
) -> Result<Box<dyn Machine<Endpoint> + 'a>, PlanError> {
    let Case { bytes, root, ranks, .. } = *case;
    let seat = Seat::new(rank, ranks)?;
    let blocks = |bytes| Parts::equal(ranks, bytes);
    let exclusive = case.collective == Collective::Exscan;
    match algorithm {
        Algorithm::Barrier(algorithm) => run(barrier::plan(seat, algorithm)?, memory),
        Algorithm::Bcast(algorithm) => run(bcast::plan(seat, bytes, root, algorithm)?, memory),
        Algorithm::Reduce(algorithm) => run(reduce::plan(seat, bytes, OP, root, false, algorithm)?, memory),
        Algorithm::Allreduce(algorithm) => run(allreduce::plan(seat, bytes, OP, false, algorithm)?, memory),
        Algorithm::Gather(algorithm) => run(gather::plan(seat, bytes, blocks(bytes)?, root, false, algorithm)?, memory),
        Algorithm::Scatter(algorithm) => {
            run(scatter::plan(seat, bytes, blocks(bytes)?, root, false, algorithm)?, memory)
        }
        Algorithm::Allgather(algorithm) => {
            let table = tables.stages.get(rank as usize).copied();
            run(allgather::plan(seat, blocks(bytes)?, false, algorithm, table)?, memory)
        }
        Algorithm::Alltoall(algorithm) => {
            run(alltoall::plan(seat, Some(blocks(bytes)?), blocks(bytes)?, algorithm)?, memory)
        }
        Algorithm::ReduceScatter(algorithm) => {
            run(reduce_scatter::plan(seat, blocks(case.slice())?, OP, false, algorithm)?, memory)
        }
        Algorithm::Scan(algorithm) => run(scan::plan(seat, bytes, OP, false, exclusive, algorithm)?, memory),
    }
}

fn levels<'a>(
    case: &Case,
    rank: Rank,
    algorithm: levels::Algorithm,
    line: Line<'a>,
    memory: &'a mut Memory,
) -> Result<Box<dyn Machine<Endpoint> + 'a>, PlanError> {
    let Case { collective, bytes, root, ranks } = *case;
    let groups = line.groups();
    let blocks = |bytes| Parts::equal(ranks, bytes);
    match collective {
        Collective::Bcast => run(levels::bcast::plan(groups, rank, bytes, root, algorithm)?, memory),
        Collective::Reduce => run(levels::reduce::plan(groups, rank, bytes, OP, root, false, algorithm)?, memory),
        Collective::Allreduce => run(levels::allreduce::plan(groups, rank, bytes, OP, false, algorithm)?, memory),
        Collective::Gather => run(levels::gather::plan(line, rank, blocks(bytes)?, root, false)?, memory),
        Collective::Scatter => run(levels::scatter::plan(line, rank, blocks(bytes)?, root, false)?, memory),
        Collective::Allgather => run(levels::allgather::plan(line, rank, blocks(bytes)?, false, algorithm)?, memory),
        Collective::Alltoall => run(levels::alltoall::plan(line, rank, bytes, false)?, memory),
        Collective::ReduceScatter => {
            let parts = blocks(case.slice())?;
            run(levels::reduce_scatter::plan(line, rank, parts, OP, false, algorithm)?, memory)
        }
        Collective::Scan | Collective::Exscan => {
            let exclusive = collective == Collective::Exscan;
            run(levels::scan::plan(groups, rank, bytes, OP, false, exclusive, algorithm)?, memory)
        }
        // A barrier; `run` has refused collectives that are not simulated.
        _ => run(levels::barrier::plan(groups, rank, algorithm)?, memory),
    }
}

/// The machine that runs a schedule, with working memory.
fn run<'a>(plan: impl Schedule + 'a, memory: &'a mut Memory) -> Result<Box<dyn Machine<Endpoint> + 'a>, PlanError> {
    memory.scratch.resize(plan.bytes().scratch as usize, 0);
    let Memory { send, receive, scratch } = memory;
    let memory = msg::Memory { send: Buf::of(send), receive: Buf::of_mut(receive), scratch: Buf::of_mut(scratch) };
    // SAFETY: the machine borrows the three vectors, so it is dropped before they are; nothing else touches them.
    Ok(Box::new(unsafe { Rounds::of(plan, memory, 1) }?))
}

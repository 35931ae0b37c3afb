//! What can be simulated: each collective's algorithms over messages, by name.

use super::data::{Case, Memory, OP};
use crate::args::Collective;
use crate::error::Failure;
use unisono_kernel::Rank;
use unisono_kernel::buffer::Buf;
use unisono_kernel::error::Refusal;
use unisono_kernel::machine::Machine;
use unisono_kernel::msg::{
    self, Algorithm, Parts, PlanError, Rounds, Schedule, allgather, allreduce, alltoall, barrier, bcast, gather,
    reduce, reduce_scatter, scan, scatter,
};
use unisono_kernel::pattern::Seat;
use unisono_kernel::pattern::bagds::{self, Table};
use unisono_kernel::table::Plan;
use unisono_sim::Endpoint;

/// An algorithm, by the name that it was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) name: String,
    algorithm: Algorithm,
}

impl Choice {
    /// As a table has it.
    pub(crate) const fn plan(&self) -> Plan {
        Plan::Messages(self.algorithm)
    }
}

/// The collective's name, and those of its algorithms, the default first; nothing where messages have none.
pub(crate) const fn names(collective: Collective) -> Option<(&'static str, &'static [&'static str])> {
    Some(match collective {
        Collective::Barrier => {
            ("barrier", &["dissemination", "central", "combining-4", "tournament", "bruck", "butterfly"])
        }
        Collective::Bcast => ("bcast", &["binomial", "flat", "knomial-4", "chain-8192", "scatter-allgather"]),
        Collective::Reduce => ("reduce", &["binomial", "flat", "knomial-4", "chain-8192", "scatter-gather"]),
        Collective::Allreduce => ("allreduce", &["doubling", "rabenseifner", "ring", "segmented-ring-8192"]),
        Collective::Gather => ("gather", &["binomial", "linear"]),
        Collective::Scatter => ("scatter", &["binomial", "linear"]),
        Collective::Allgather => ("allgather", &["bruck", "ring", "doubling", "bagds"]),
        Collective::Alltoall => ("alltoall", &["pairwise", "linear", "bruck"]),
        Collective::ReduceScatter => ("reduce_scatter", &["pairwise", "ring"]),
        Collective::Scan => ("scan", &["doubling", "chain-8192"]),
        Collective::Exscan => ("exscan", &["doubling", "chain-8192"]),
        Collective::Overlap | Collective::Comm => return None,
    })
}

/// The algorithm that a name stands for.
pub(crate) fn choice(collective: Collective, name: &str) -> Result<Choice, Failure> {
    let (kind, known) = names(collective).unwrap_or_default();
    let family = if kind == "exscan" { "scan" } else { kind };
    let found = Algorithm::from_name(&format!("{family}/{name}"));
    let algorithm =
        found.ok_or_else(|| Failure::Words(format!("no algorithm {name:?} for {kind}: {}, all", known.join(", "))))?;
    Ok(Choice { name: name.into(), algorithm })
}

/// What algorithms need to know beside the call.
#[derive(Debug, Default)]
pub(crate) struct Tables<'w> {
    /// All ranks' stages of BAGDS.
    stages: Vec<Table<'w>>,
}

impl<'w> Tables<'w> {
    /// Those that `choice` needs, in `words`.
    pub(crate) fn new(choice: &Choice, ranks: u32, words: &'w mut Vec<Vec<u64>>) -> Result<Self, Refusal> {
        if choice.algorithm != Algorithm::Allgather(allgather::Algorithm::Bagds) {
            return Ok(Self::default());
        }
        let mut work = vec![0; bagds::work_words(ranks)];
        let stages = bagds::stages(ranks, &mut work)?;
        words.resize(ranks as usize, vec![0; bagds::table_words(ranks, stages)]);
        let one = |(rank, words): (Rank, &'w mut Vec<u64>)| Table::new(Seat::new(rank, ranks)?, &mut work, words);
        Ok(Self { stages: (0..).zip(words).map(one).collect::<Result<_, _>>()? })
    }
}

/// A rank's machine, on its memory; that gets the working memory that the machine needs.
pub(crate) fn machine<'a>(
    case: &Case,
    rank: Rank,
    choice: &Choice,
    tables: &Tables<'a>,
    memory: &'a mut Memory,
) -> Result<Box<dyn Machine<Endpoint> + 'a>, PlanError> {
    let Case { bytes, root, ranks, .. } = *case;
    let seat = Seat::new(rank, ranks)?;
    let blocks = |bytes| Parts::equal(ranks, bytes);
    let exclusive = case.collective == Collective::Exscan;
    match choice.algorithm {
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

/// The machine of a schedule, with working memory for it.
fn run<'a>(plan: impl Schedule + 'a, memory: &'a mut Memory) -> Result<Box<dyn Machine<Endpoint> + 'a>, PlanError> {
    memory.scratch.resize(plan.bytes().scratch as usize, 0);
    let Memory { send, receive, scratch } = memory;
    let memory = msg::Memory { send: Buf::of(send), receive: Buf::of_mut(receive), scratch: Buf::of_mut(scratch) };
    // SAFETY: the machine borrows the three vectors, so it is given up before they are; nobody else touches them.
    Ok(Box::new(unsafe { Rounds::of(plan, memory, 1) }?))
}

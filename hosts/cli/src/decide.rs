//! Which algorithms there are, what is chosen for a call, and what else could be.

use crate::args::Collective;
use crate::error::Failure;
use clap::ValueEnum;
use unisono_kernel::table::{self, Ask, Over, Plan, Site};
use unisono_posix::decisions::decisions;

/// A call of the command line, as tables ask for it; nothing where that is no collective. Its operation commutes, and a
/// segment has the papers' queues, as bench's have.
pub(crate) fn ask(over: Over, collective: Collective, bytes: u64, ranks: u32) -> Option<Ask> {
    let collective = table::Collective::from_name(&name(collective))?;
    let bytes = if collective.has_bytes() { bytes } else { 0 };
    let site = Site { papers: true, ..Site::flat(ranks) };
    Some(Ask { over, collective, bytes, commutative: true, site })
}

/// A collective's name.
pub(crate) fn name(collective: Collective) -> String {
    collective.to_possible_value().map_or_else(String::new, |value| value.get_name().into())
}

/// What `auto` stands for: by the environment's table, else as built in.
pub(crate) fn default(over: Over, collective: Collective, bytes: u64, ranks: u32) -> Result<Option<Plan>, Failure> {
    let Some(ask) = ask(over, collective, bytes, ranks) else { return Ok(None) };
    Ok(table::select(decisions()?.rules(), &ask).map(|chosen| chosen.plan))
}

/// Does the algorithm of this name serve the call?
pub(crate) fn applies(over: Over, collective: Collective, name: &str, bytes: u64, ranks: u32) -> bool {
    let ask = ask(over, collective, bytes, ranks);
    ask.is_some_and(|ask| Plan::from_name(over, ask.collective, name).is_some_and(|plan| plan.applies(&ask).is_ok()))
}

/// The algorithms that there are, whether they serve a call or not.
pub(crate) fn candidates(over: Over, collective: Collective) -> Vec<Plan> {
    let names = match over {
        Over::Segment => names(collective),
        Over::Messages => messages(collective).map_or(&[][..], |(_, names)| names),
    };
    let kind = ask(over, collective, 0, 1).map(|ask| ask.collective);
    names.iter().filter_map(|name| Plan::from_name(over, kind?, name)).collect()
}

/// The algorithms of a collective over a segment, but for further arities.
pub(crate) fn names(collective: Collective) -> &'static [&'static str] {
    match collective {
        Collective::Bcast => &["posted", "queue", "cico-flat", "cico-chain", "cico-binary", "cico-binomial"],
        Collective::Barrier => &["posted", "dissemination", "central", "combining"],
        Collective::Allreduce => &["posted", "exchange", "slices"],
        Collective::Gather | Collective::Scatter | Collective::Allgather => &["exchange", "cico"],
        Collective::Alltoall
        | Collective::Reduce
        | Collective::ReduceScatter
        | Collective::Scan
        | Collective::Exscan => &["exchange"],
        Collective::Overlap | Collective::Comm => &[],
    }
}

/// The collective's name, and those of its algorithms over messages, the default first; nothing where messages have none.
pub(crate) const fn messages(collective: Collective) -> Option<(&'static str, &'static [&'static str])> {
    Some(match collective {
        Collective::Barrier => {
            ("barrier", &["dissemination", "central", "combining-4", "tournament", "bruck", "butterfly"])
        }
        Collective::Bcast => {
            ("bcast", &["binomial", "flat", "knomial-4", "chain-8192", "scatter-allgather", "scatter-doubling"])
        }
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

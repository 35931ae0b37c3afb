//! The algorithms of each collective, the choice for a call, and the alternatives.

use crate::args::Collective;
use crate::error::Failure;
use clap::ValueEnum;
use unisono_kernel::algorithm::{
    AllreduceAlgorithm, AlltoallAlgorithm, MoveAlgorithm, ReduceAlgorithm, ReduceScatterAlgorithm,
};
use unisono_kernel::region::Params;
use unisono_kernel::shm::allreduce::groups::Grouped;
use unisono_kernel::shm::{allgather, alltoall};
use unisono_kernel::table::{self, Ask, Choice, Collective as Kind, Over, Site};
use unisono_posix::decisions::decisions;
use unisono_posix::waiting;

/// The question that a call of the command line puts to a decision table; nothing for `overlap` and `comm`, which are
/// not collectives. Its operation commutes, and a segment has the papers' queues, as bench's segments have. `crowded`: ranks share
/// cores.
pub(crate) fn ask(over: Over, collective: Collective, bytes: u64, ranks: u32, crowded: bool) -> Option<Ask> {
    let collective = kind(collective)?;
    let bytes = if collective.has_bytes() { bytes } else { 0 };
    let site = Site { papers: true, stages: true, crowded, ..Site::flat(ranks) };
    Some(Ask { over, collective, bytes, commutative: true, site })
}

/// Do so many ranks share cores on this machine?
pub(crate) fn crowded(ranks: u32) -> bool {
    ranks > waiting::cores()
}

/// The collective for which the kernel chooses an algorithm; nothing for `overlap` and `comm`.
pub(crate) fn kind(collective: Collective) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| forms(*kind).contains(&collective))
}

/// The command line's names of a collective of the kernel, which are MPI's. Several have one choice.
pub(crate) const fn forms(kind: Kind) -> &'static [Collective] {
    match kind {
        Kind::Barrier => &[Collective::Barrier],
        Kind::Bcast => &[Collective::Bcast],
        Kind::Gather => &[Collective::Gather],
        Kind::Gatherv => &[Collective::Gatherv],
        Kind::Scatter => &[Collective::Scatter],
        Kind::Scatterv => &[Collective::Scatterv],
        Kind::Allgather => &[Collective::Allgather, Collective::Allgatherv],
        Kind::Alltoall => &[Collective::Alltoall],
        Kind::Alltoallv => &[Collective::Alltoallv, Collective::Alltoallw],
        Kind::Reduce => &[Collective::Reduce],
        Kind::Allreduce => &[Collective::Allreduce],
        Kind::ReduceScatter => &[Collective::ReduceScatter, Collective::ReduceScatterBlock],
        Kind::Scan => &[Collective::Scan],
        Kind::Exscan => &[Collective::Exscan],
    }
}

/// The collective that stands for this one in the simulator and in `tune`, which have equal blocks alone; nothing where it
/// stands for itself.
pub(crate) const fn stands_for(collective: Collective) -> Option<Collective> {
    match collective {
        Collective::Gatherv => Some(Collective::Gather),
        Collective::Scatterv => Some(Collective::Scatter),
        Collective::Allgatherv => Some(Collective::Allgather),
        Collective::Alltoallv | Collective::Alltoallw => Some(Collective::Alltoall),
        Collective::ReduceScatterBlock => Some(Collective::ReduceScatter),
        _ => None,
    }
}

/// A collective's name.
pub(crate) fn name(collective: Collective) -> String {
    collective.to_possible_value().map_or_else(String::new, |value| value.get_name().into())
}

/// What `auto` stands for: by the environment's table, else as built in.
pub(crate) fn default(
    over: Over,
    collective: Collective,
    bytes: u64,
    ranks: u32,
    crowded: bool,
) -> Result<Option<Choice>, Failure> {
    let Some(ask) = ask(over, collective, bytes, ranks, crowded) else { return Ok(None) };
    Ok(table::select(decisions()?.rules(), &ask).map(|chosen| chosen.plan))
}

/// Does the algorithm of this name apply to the call, and does no other take its place?
pub(crate) fn applies(over: Over, collective: Collective, name: &str, bytes: u64, ranks: u32) -> bool {
    let Some(ask) = ask(over, collective, bytes, ranks, false) else { return false };
    Choice::from_name(over, ask.collective, name).is_some_and(|plan| {
        let takes_place = match plan {
            Choice::Allreduce(AllreduceAlgorithm::Groups)
            | Choice::Reduce(ReduceAlgorithm::Groups)
            | Choice::ReduceScatter(ReduceScatterAlgorithm::Groups) => !Grouped::divides(ranks),
            Choice::Alltoall(AlltoallAlgorithm::Groups) => {
                !alltoall::groups::Grouped::fits(ranks, Params::new(ranks).queue_fragment, bytes)
            }
            Choice::Move(MoveAlgorithm::Groups) => {
                // A gather's groups fit where those of an allgather do.
                !allgather::groups::Grouped::fits(ranks, Params::new(ranks).queue_fragment, bytes)
            }
            Choice::Reduce(ReduceAlgorithm::Slices) => ranks < 2,
            _ => false,
        };
        plan.applies(&ask).is_ok() && !takes_place
    })
}

/// All algorithms of a collective, whether they apply to a call or not.
pub(crate) fn candidates(over: Over, collective: Collective) -> Vec<Choice> {
    let names = match over {
        Over::Segment => names(collective),
        Over::Messages => messages(collective).map_or(&[][..], |(_, names)| names),
    };
    let kind = kind(collective);
    names.iter().filter_map(|name| Choice::from_name(over, kind?, name)).collect()
}

/// The algorithms of a collective over a segment; of trees with an arity, not every arity.
pub(crate) fn names(collective: Collective) -> &'static [&'static str] {
    match collective {
        Collective::Bcast => &["posted", "groups", "queue", "cico-flat", "cico-chain", "cico-binary", "cico-binomial"],
        Collective::Barrier => &["posted", "dissemination", "doubling", "central", "combining"],
        Collective::Allreduce => &["posted", "doubling", "exchange", "slices", "groups"],
        Collective::Reduce => &["tree", "exchange", "slices", "groups"],
        Collective::Scan | Collective::Exscan => &["doubling", "exchange", "groups"],
        Collective::Gatherv | Collective::Scatter | Collective::Scatterv => &["exchange", "cico"],
        Collective::Gather | Collective::Allgather | Collective::Allgatherv => &["exchange", "cico", "groups"],
        Collective::Alltoall => &["exchange", "groups"],
        Collective::ReduceScatter | Collective::ReduceScatterBlock => &["exchange", "groups"],
        Collective::Alltoallv | Collective::Alltoallw => &["exchange"],
        Collective::Overlap | Collective::Comm => &[],
    }
}

/// The name of the collective or of its form with equal blocks, and the names of its algorithms over messages, the
/// default first; nothing where it has no algorithm over messages.
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
        Collective::Gather | Collective::Gatherv => ("gather", &["binomial", "linear"]),
        Collective::Scatter | Collective::Scatterv => ("scatter", &["binomial", "linear"]),
        Collective::Allgather | Collective::Allgatherv => {
            ("allgather", &["bruck", "ring", "doubling", "bagds", "linear"])
        }
        Collective::Alltoall | Collective::Alltoallv | Collective::Alltoallw => {
            ("alltoall", &["pairwise", "linear", "bruck"])
        }
        Collective::ReduceScatter | Collective::ReduceScatterBlock => ("reduce_scatter", &["pairwise", "ring"]),
        Collective::Scan => ("scan", &["doubling", "chain-8192"]),
        Collective::Exscan => ("exscan", &["doubling", "chain-8192"]),
        Collective::Overlap | Collective::Comm => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// `forms` names every collective of the kernel, or does not compile: so none can be missing here, or be there twice.
    #[test]
    fn the_command_line_has_every_collective_of_the_kernel_once() {
        let forms: Vec<_> = Kind::ALL.into_iter().flat_map(forms).copied().map(name).collect();
        let beside = [Collective::Overlap, Collective::Comm].map(name);
        let variants: BTreeSet<_> = Collective::value_variants().iter().copied().map(name).collect();
        assert_eq!(forms.iter().chain(&beside).cloned().collect::<BTreeSet<_>>(), variants);
        assert_eq!(forms.len() + beside.len(), variants.len());
        for kind in Kind::ALL {
            let form = Collective::from_str(kind.name(), false).expect("MPI's name");
            assert_eq!(self::kind(form), Some(kind));
        }
    }

    /// The C program of `make bench` has them all, too (hosts/tools/bench).
    #[test]
    fn the_command_line_has_every_collective_of_the_benchmark_against_mpis() {
        let text = include_str!("../../bench/c/subjects.c");
        let list = text.split("subjects[] = {").nth(1).and_then(|rest| rest.split("};").next()).expect("a list");
        let mut there: Vec<_> = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
        let mut here: Vec<_> = Kind::ALL.into_iter().flat_map(forms).copied().map(name).collect();
        there.sort();
        here.sort();
        assert_eq!((here.len(), here), (17, there));
    }

    #[test]
    fn every_algorithm_is_one_of_the_kernel() {
        for &collective in Collective::value_variants() {
            assert_eq!(candidates(Over::Segment, collective).len(), names(collective).len(), "{collective:?}");
            let over_messages = messages(collective).map_or(0, |(_, names)| names.len());
            assert_eq!(candidates(Over::Messages, collective).len(), over_messages, "{collective:?}");
        }
    }
}

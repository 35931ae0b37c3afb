//! `unisono topo`: the machine, the memory of a communicator, and groups of processes that share units (paper P3).

mod groups;
mod show;

use crate::out::outln;
pub(crate) use groups::work;

use crate::args::Topo;
use crate::error::Failure;
use serde_json::json;
use unisono_kernel::region::{Layout, Params};
use unisono_posix::arena::{Plan, Queues, VARIABLE as ARENA};
use unisono_posix::pages::{self, HUGE};
use unisono_posix::topology::{Object, Topology};

/// Numbers of processes in the memory table.
const RANKS: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

pub(crate) fn run(args: Topo) -> Result<(), Failure> {
    if groups::wanted(&args) {
        return groups::run(args);
    }
    let topology = Topology::read();
    let mut memory = Vec::new();
    if args.memory {
        for ranks in RANKS {
            let (ours, papers) = (Params::new(ranks), Params::new(ranks).with_cico());
            let pairs = papers.cico.and_then(|cico| cico.pairs(ranks, papers.page)).unwrap_or(0) * u64::from(ranks);
            let huge = Layout::new(Params { page: HUGE, ..ours })?.bytes();
            let small = Plan::new(ranks, Queues::Small).map_or(0, |plan| plan.bytes());
            memory.push((ranks, Layout::new(ours)?.bytes(), small, huge, Layout::new(papers)?.bytes(), pairs));
        }
    }
    if args.json {
        let rows: Vec<_> = memory
            .iter()
            .map(|(ranks, ours, small, huge, cico, pairs)| {
                json!({
                    "ranks": ranks,
                    "bytes": ours,
                    "bytes_small": small,
                    "bytes_on_huge_pages": huge,
                    "bytes_with_cico": cico,
                    "bytes_of_pairs": pairs,
                })
            })
            .collect();
        let objects: Vec<_> = topology
            .objects()
            .iter()
            .map(|Object { kind, os, bytes, pus }| {
                json!({"kind": kind.to_string(), "os": os, "bytes": bytes, "pus": pus.iter().collect::<Vec<_>>()})
            })
            .collect();
        outln!(
            "{}",
            json!({"source": topology.source(), "huge_pages": pages::offer(), "topology": objects, "memory": rows})
        )?;
        return Ok(());
    }
    outln!("{topology}")?;
    outln!("(read by {})", topology.source())?;
    outln!("{}", pages::offer())?;
    if args.memory {
        let (papers, pairs) = ("with papers' queues", "of it, P2's p² flags");
        let huge = "on huge pages";
        outln!("\na communicator's KiB; small: where half of an arena ({ARENA}) is in use")?;
        outln!(
            "{:>6} {:>14} {:>14} {:>14} {huge:>14} {papers:>20} {pairs:>20}",
            "ranks",
            "KiB",
            "KiB per rank",
            "small"
        )?;
        for (ranks, ours, small, huge, cico, pairs) in memory {
            let [ours, small, huge, cico, pairs] = [ours, small, huge, cico, pairs].map(|bytes| bytes as f64 / 1024.0);
            let each = ours / f64::from(ranks);
            outln!("{ranks:>6} {ours:>14.0} {each:>14.1} {small:>14.0} {huge:>14.0} {cico:>20.0} {pairs:>20.0}")?;
        }
    }
    Ok(())
}

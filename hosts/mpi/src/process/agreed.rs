//! What all ranks of a communicator know alike from their offers: the choices by a table, and the switches of nodes.

use super::Process;
use crate::network::{SWITCHES, Switch};
use crate::offer::{self, Unswitched, Words};
use crate::say::{Cause, once, settled};
use unisono_kernel::Rank;
use unisono_kernel::table::{Between, Choices, Collective};
use unisono_posix::arena::Slice;
use unisono_posix::decisions::{Decisions, RULES, TABLE};

/// The collective by whose rules MPI's collective of this name is chosen: forms of equal and of unequal blocks, or types, share them.
pub fn ruled(name: &str) -> Option<Collective> {
    match name {
        "allgatherv" => Some(Collective::Allgather),
        "alltoallw" => Some(Collective::Alltoallv),
        "reduce_scatter_block" => Some(Collective::ReduceScatter),
        name => Collective::from_name(name),
    }
}

impl Process {
    /// What `Auto` means on a slice, by the table that all ranks have; `None`, on all ranks, if they do not have the
    /// same.
    pub(super) fn choices(&self, slice: &Slice, rank: Rank, offers: &[Words]) -> Option<&'static Choices> {
        self.agreed(rank, offers, "choices are built in")?.choices(slice.plan().layout())
    }

    /// The switch of each node; none where all ranks agree to go on without, since one of them has no right file. It prints
    /// that, and why. `nodes` is the node of each rank.
    pub fn switches(&self, nodes: &[u32], rank: Rank, offers: &[Words]) -> Vec<u32> {
        let consequence = "all nodes are taken to be on one switch";
        offer::switches(offers, nodes).unwrap_or_else(|unswitched| {
            match (unswitched, &self.switch) {
                (Unswitched::Untold, _) => {}
                (Unswitched::Wrong(wrong), Switch::Wrong(why)) if rank == wrong => {
                    once(Cause::Network, format_args!("{why}: {consequence}"));
                }
                (Unswitched::Lacks(lacks), _) if rank == lacks => {
                    once(Cause::Network, format_args!("{SWITCHES} is not set here, and is elsewhere: {consequence}"));
                }
                // Of a communicator that others of its ranks have later this one says nothing either.
                _ => settled(Cause::Network),
            }
            Vec::new()
        })
    }

    /// On one node switches change nothing, but a wrong file is heard of there, too: [`Self::switches`] prints.
    pub(super) fn hear_of_switches(&self, rank: Rank, offers: &[Words]) {
        if offers.len() > 1 {
            let _of_no_use = self.switches(&[], rank, offers);
        }
    }

    /// The choices for messages between `nodes` nodes, whose network has so many `levels`: by the table that all ranks have,
    /// whose offers these are, else the built-in rules.
    pub fn between(&self, nodes: u32, levels: u32, rank: Rank, offers: &[Words]) -> Option<Between> {
        let rules = self.agreed(rank, offers, "choices between nodes are built in").map_or(&[][..], Decisions::rules);
        // A table that can't be cut was refused when it was read.
        Between::cut(rules, nodes, levels).ok()
    }

    /// The table, if all ranks have the same. If not, rank 0 prints that, with `consequence`.
    fn agreed(&self, rank: Rank, offers: &[Words], consequence: &str) -> Option<&'static Decisions> {
        let Some(other) = offer::other_table(offers) else { return self.decisions };
        if rank == 0 {
            let text = "another decision table than rank 0";
            once(Cause::Table, format_args!("rank {other} has {text} ({TABLE}, {RULES}): {consequence}"));
        }
        None
    }
}

//! The part of a table for messages between the leaders of nodes: for each collective, the algorithm by the length of
//! the call.

use super::choices::{Steps, TooMany, steps};
use super::{Ask, Choice, Collective, Over, Rule, Site};
use crate::msg::{Algorithm, allgather, allreduce, barrier, bcast, reduce};

/// The algorithms between nodes, by length. It is made once, together with a communicator over nodes. Gather, scatter
/// and alltoall have no choice here, since the nodes' parts may have any lengths.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Between {
    barrier: Steps<barrier::Algorithm>,
    bcast: Steps<bcast::Algorithm>,
    reduce: Steps<reduce::Algorithm>,
    /// For ops that don't commute, and for ops that do.
    allreduce: [Steps<allreduce::Algorithm>; 2],
    allgather: Steps<allgather::Algorithm>,
}

/// Makes a closure that returns the algorithm of one collective from a [`Choice`].
macro_rules! of {
    ($variant:ident) => {
        |plan| if let Choice::Messages(Algorithm::$variant(algorithm)) = plan { Some(algorithm) } else { None }
    };
}

impl Between {
    /// The part of `table` for messages among `nodes` ranks on one level; where it has no rule, the built-in rules.
    ///
    /// # Errors
    /// The table divides a collective into too many ranges.
    pub fn cut(table: &[Rule], nodes: u32) -> Result<Self, TooMany> {
        let site = Site::flat(nodes);
        let ask = |collective, commutative| Ask { over: Over::Messages, collective, bytes: 0, commutative, site };
        let allreduce = |commutative| steps(table, ask(Collective::Allreduce, commutative), of!(Allreduce));
        Ok(Self {
            barrier: steps(table, ask(Collective::Barrier, true), of!(Barrier))?,
            bcast: steps(table, ask(Collective::Bcast, true), of!(Bcast))?,
            reduce: steps(table, ask(Collective::Reduce, true), of!(Reduce))?,
            allreduce: [allreduce(false)?, allreduce(true)?],
            allgather: steps(table, ask(Collective::Allgather, true), of!(Allgather))?,
        })
    }

    /// The algorithm of a barrier.
    pub fn barrier(&self) -> barrier::Algorithm {
        self.barrier.at(0).unwrap_or(barrier::Algorithm::Dissemination)
    }

    /// The algorithm of a broadcast of `bytes`.
    pub fn bcast(&self, bytes: u64) -> bcast::Algorithm {
        self.bcast.at(bytes).unwrap_or(bcast::Algorithm::Knomial(2))
    }

    /// The algorithm of a reduce of operands of `bytes`.
    pub fn reduce(&self, bytes: u64) -> reduce::Algorithm {
        self.reduce.at(bytes).unwrap_or(reduce::Algorithm::Knomial(2))
    }

    /// The algorithm of an allreduce of operands of `bytes`.
    pub fn allreduce(&self, bytes: u64, commutative: bool) -> allreduce::Algorithm {
        let [ordered, any] = &self.allreduce;
        if commutative { any } else { ordered }.at(bytes).unwrap_or(allreduce::Algorithm::Doubling)
    }

    /// The algorithm of an allgather of which the longest node's part has `bytes`.
    pub fn allgather(&self, bytes: u64) -> allgather::Algorithm {
        self.allgather.at(bytes).unwrap_or(allgather::Algorithm::Bruck)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{BUILT_IN, select};

    const LENGTHS: [u64; 12] =
        [0, 1, 8191, 8192, 32 << 10, 100_000, 128 << 10, 511 << 10, 512 << 10, 1 << 20, 1 << 40, u64::MAX];

    /// For every collective, length and number of nodes it has the choice of [`select`], with a table and without.
    #[test]
    fn a_cut_says_what_select_says() {
        let table = [
            Rule { ranks: crate::table::Span::new(4, 9), ..bcast_by(bcast::Algorithm::Chain(4096)) },
            Rule { bytes: crate::table::Span::new(64, 8191), ..reduce_by(reduce::Algorithm::Flat) },
            allreduce_by(allreduce::Algorithm::Ring),
            // Applies to a power of two of nodes only.
            Rule::all(Collective::Allgather, Choice::Messages(Algorithm::Allgather(allgather::Algorithm::Doubling))),
            // Does not match one level.
            Rule { levels: crate::table::Span::new(2, 3), ..Rule::all(Collective::Barrier, CENTRAL) },
        ];
        for rules in [&[][..], &table] {
            for nodes in (1..40).chain([1000]) {
                let between = Between::cut(rules, nodes).unwrap();
                for bytes in LENGTHS {
                    let chosen = |collective, commutative| {
                        let site = Site::flat(nodes);
                        let ask = Ask { over: Over::Messages, collective, bytes, commutative, site };
                        select(rules, &ask).unwrap().plan
                    };
                    let is =
                        |algorithm: Algorithm, plan| assert_eq!(Choice::Messages(algorithm), plan, "{nodes} {bytes}");
                    is(between.barrier().into(), chosen(Collective::Barrier, true));
                    is(between.bcast(bytes).into(), chosen(Collective::Bcast, true));
                    is(between.reduce(bytes).into(), chosen(Collective::Reduce, true));
                    is(between.allreduce(bytes, true).into(), chosen(Collective::Allreduce, true));
                    is(between.allreduce(bytes, false).into(), chosen(Collective::Allreduce, false));
                    is(between.allgather(bytes).into(), chosen(Collective::Allgather, true));
                }
            }
        }
        assert!(BUILT_IN.len() > table.len());
        let four = Between::cut(&table, 4).unwrap();
        assert_eq!((four.bcast(8), four.allgather(8)), (bcast::Algorithm::Chain(4096), allgather::Algorithm::Doubling));
        assert_eq!(four.allreduce(8, true), allreduce::Algorithm::Ring);
        assert_eq!(four.barrier(), barrier::Algorithm::Dissemination);
    }

    const CENTRAL: Choice = Choice::Messages(Algorithm::Barrier(barrier::Algorithm::Central));

    fn bcast_by(algorithm: bcast::Algorithm) -> Rule {
        Rule::all(Collective::Bcast, Choice::Messages(Algorithm::Bcast(algorithm)))
    }

    fn reduce_by(algorithm: reduce::Algorithm) -> Rule {
        Rule::all(Collective::Reduce, Choice::Messages(Algorithm::Reduce(algorithm)))
    }

    fn allreduce_by(algorithm: allreduce::Algorithm) -> Rule {
        Rule::all(Collective::Allreduce, Choice::Messages(Algorithm::Allreduce(algorithm)))
    }
}

//! The part of a table for messages between the leaders of nodes: for each collective, the algorithm by the length of
//! the call. It may be one over the switches that connect the nodes (paper P3).

use super::choices::{Steps, TooMany, steps};
use super::{Ask, Choice, Collective, Over, Rule, Site};
use crate::msg::levels::Way;
use crate::msg::{Algorithm, allgather, allreduce, barrier, bcast, levels, reduce};

/// An algorithm of leaders: among all of them alike, or over the switches that connect their nodes.
pub type By<A> = Way<A, levels::Algorithm>;

/// The algorithms between nodes, by length. It is made once, together with a communicator over nodes. Among all leaders alike,
/// gather, scatter and alltoall have no choice here, since the nodes' parts may have any lengths.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Between {
    barrier: Steps<By<barrier::Algorithm>>,
    bcast: Steps<By<bcast::Algorithm>>,
    /// For ops that don't commute, and for ops that do.
    reduce: [Steps<By<reduce::Algorithm>>; 2],
    allreduce: [Steps<By<allreduce::Algorithm>>; 2],
    allgather: Steps<By<allgather::Algorithm>>,
    /// Over levels, or not.
    gather: Steps<By<()>>,
    scatter: Steps<By<()>>,
    alltoall: Steps<By<()>>,
}

/// Makes a closure that returns the algorithm of one collective from a [`Choice`].
macro_rules! of {
    ($variant:ident) => {
        |plan| match plan {
            Choice::Messages(Algorithm::$variant(algorithm)) => Some(Way::Flat(algorithm)),
            Choice::Levels(algorithm) => Some(Way::Levels(algorithm)),
            _ => None,
        }
    };
}

impl Between {
    /// The part of `table` for messages among `nodes` ranks, whose network has so many `levels`, 1 at least; where it has no
    /// rule, the built-in rules.
    ///
    /// # Errors
    /// The table divides a collective into too many ranges.
    pub fn cut(table: &[Rule], nodes: u32, levels: u32) -> Result<Self, TooMany> {
        let site = Site { levels, stages: true, ..Site::flat(nodes) };
        let ask = |collective, commutative| Ask { over: Over::Messages, collective, bytes: 0, commutative, site };
        let reduce = |commutative| steps(table, ask(Collective::Reduce, commutative), of!(Reduce));
        let allreduce = |commutative| steps(table, ask(Collective::Allreduce, commutative), of!(Allreduce));
        let blocks = |collective| {
            steps(table, ask(collective, true), |plan| match plan {
                Choice::Levels(algorithm) => Some(Way::Levels(algorithm)),
                _ => Some(Way::Flat(())),
            })
        };
        Ok(Self {
            barrier: steps(table, ask(Collective::Barrier, true), of!(Barrier))?,
            bcast: steps(table, ask(Collective::Bcast, true), of!(Bcast))?,
            reduce: [reduce(false)?, reduce(true)?],
            allreduce: [allreduce(false)?, allreduce(true)?],
            allgather: steps(table, ask(Collective::Allgather, true), of!(Allgather))?,
            gather: blocks(Collective::Gather)?,
            scatter: blocks(Collective::Scatter)?,
            alltoall: blocks(Collective::Alltoall)?,
        })
    }

    /// The algorithm of a barrier.
    pub fn barrier(&self) -> By<barrier::Algorithm> {
        self.barrier.at(0).unwrap_or(Way::Flat(barrier::Algorithm::Dissemination))
    }

    /// The algorithm of a broadcast of `bytes`.
    pub fn bcast(&self, bytes: u64) -> By<bcast::Algorithm> {
        self.bcast.at(bytes).unwrap_or(Way::Flat(bcast::Algorithm::Knomial(2)))
    }

    /// The algorithm of a reduce of operands of `bytes`.
    pub fn reduce(&self, bytes: u64, commutative: bool) -> By<reduce::Algorithm> {
        let [ordered, any] = &self.reduce;
        if commutative { any } else { ordered }.at(bytes).unwrap_or(Way::Flat(reduce::Algorithm::Knomial(2)))
    }

    /// The algorithm of an allreduce of operands of `bytes`.
    pub fn allreduce(&self, bytes: u64, commutative: bool) -> By<allreduce::Algorithm> {
        let [ordered, any] = &self.allreduce;
        if commutative { any } else { ordered }.at(bytes).unwrap_or(Way::Flat(allreduce::Algorithm::Doubling))
    }

    /// Is BAGDS, which needs a table of stages, the algorithm of any allgather?
    pub fn needs_stages(&self) -> bool {
        self.allgather.iter().any(|by| by == Way::Flat(allgather::Algorithm::Bagds))
    }

    /// The algorithm of an allgather of which the longest node's part has `bytes`.
    pub fn allgather(&self, bytes: u64) -> By<allgather::Algorithm> {
        self.allgather.at(bytes).unwrap_or(Way::Flat(allgather::Algorithm::Bruck))
    }

    /// The algorithm of a gather of which the longest node's part has `bytes`.
    pub fn gather(&self, bytes: u64) -> By<()> {
        self.gather.at(bytes).unwrap_or(Way::Flat(()))
    }

    /// The same of a scatter.
    pub fn scatter(&self, bytes: u64) -> By<()> {
        self.scatter.at(bytes).unwrap_or(Way::Flat(()))
    }

    /// The algorithm of an alltoall of blocks of `bytes`, if they go through leaders.
    pub fn alltoall(&self, bytes: u64) -> By<()> {
        self.alltoall.at(bytes).unwrap_or(Way::Flat(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msg::Needs;
    use crate::table::{BUILT_IN, Span, Unfit, select};

    const LENGTHS: [u64; 12] =
        [0, 1, 8191, 8192, 32 << 10, 100_000, 128 << 10, 511 << 10, 512 << 10, 1 << 20, 1 << 40, u64::MAX];

    /// For every collective, length and number of nodes it has the choice of [`select`], with a table and without.
    #[test]
    fn a_cut_says_what_select_says() {
        let table = [
            Rule { ranks: Span::new(4, 9), ..bcast_by(bcast::Algorithm::Chain(4096)) },
            Rule { bytes: Span::new(64, 8191), ..reduce_by(reduce::Algorithm::Flat) },
            allreduce_by(allreduce::Algorithm::Ring),
            // Applies to a power of two of nodes only.
            Rule::all(Collective::Allgather, Choice::Messages(Algorithm::Allgather(allgather::Algorithm::Doubling))),
            // Does not match one level.
            Rule { levels: Span::new(2, 3), ..Rule::all(Collective::Barrier, CENTRAL) },
        ];
        for rules in [&[][..], &table] {
            for nodes in (1..40).chain([1000]) {
                let between = Between::cut(rules, nodes, 1).unwrap();
                for bytes in LENGTHS {
                    let chosen = |collective, commutative| {
                        let site = Site::flat(nodes);
                        let ask = Ask { over: Over::Messages, collective, bytes, commutative, site };
                        select(rules, &ask).unwrap().plan
                    };
                    let is = |choice, plan| assert_eq!(choice, plan, "{nodes} {bytes}");
                    is(by(between.barrier()), chosen(Collective::Barrier, true));
                    is(by(between.bcast(bytes)), chosen(Collective::Bcast, true));
                    is(by(between.reduce(bytes, true)), chosen(Collective::Reduce, true));
                    is(by(between.reduce(bytes, false)), chosen(Collective::Reduce, false));
                    is(by(between.allreduce(bytes, true)), chosen(Collective::Allreduce, true));
                    is(by(between.allreduce(bytes, false)), chosen(Collective::Allreduce, false));
                    is(by(between.allgather(bytes)), chosen(Collective::Allgather, true));
                }
            }
        }
        assert!(BUILT_IN.len() > table.len());
        let four = Between::cut(&table, 4, 1).unwrap();
        assert_eq!(four.bcast(8), Way::Flat(bcast::Algorithm::Chain(4096)));
        assert_eq!(four.allgather(8), Way::Flat(allgather::Algorithm::Doubling));
        assert_eq!(four.allreduce(8, true), Way::Flat(allreduce::Algorithm::Ring));
        assert_eq!(four.barrier(), Way::Flat(barrier::Algorithm::Dissemination));
    }

    #[test]
    fn over_switches_where_there_are_some_and_the_op_commutes() {
        let named =
            |collective, name| Rule::all(collective, Choice::from_name(Over::Messages, collective, name).unwrap());
        fn levels<A>(name: &str) -> By<A> {
            Way::Levels(levels::Algorithm::from_name(name).unwrap())
        }
        let table = [
            Rule { bytes: Span::new(0, 999), ..named(Collective::Bcast, "levels/flat:chain") },
            named(Collective::Reduce, "levels-64/chain"),
            named(Collective::Allreduce, "levels+doubling"),
            named(Collective::Barrier, "levels"),
            named(Collective::Gather, "levels"),
            Rule { bytes: Span::new(0, 99), ..named(Collective::Scatter, "levels") },
            named(Collective::Allgather, "levels/chain"),
            named(Collective::Alltoall, "levels"),
        ];
        let (two, one) = (Between::cut(&table, 4, 2).unwrap(), Between::cut(&table, 4, 1).unwrap());
        assert_eq!((two.bcast(999), two.bcast(1000)), (levels("levels/flat:chain"), one.bcast(1000)));
        assert_eq!(
            (two.reduce(8, true), two.allreduce(8, true)),
            (levels("levels-64/chain"), levels("levels+doubling"))
        );
        assert_eq!(two.barrier(), levels("levels"));
        assert_eq!((two.gather(8), two.alltoall(8)), (levels("levels"), levels("levels")));
        assert_eq!((two.scatter(99), two.scatter(100)), (levels("levels"), Way::Flat(())));
        assert_eq!(two.allgather(8), levels("levels/chain"));
        let built_in = Between::cut(&[], 4, 1).unwrap();
        assert_eq!(
            (two.reduce(8, false), two.allreduce(8, false)),
            (built_in.reduce(8, false), built_in.allreduce(8, false))
        );
        assert_eq!(one, built_in);
        for (collective, name) in [
            (Collective::Gatherv, "levels"),
            (Collective::Alltoallv, "levels"),
            (Collective::Scan, "levels"),
            (Collective::Gather, "levels0"),
            (Collective::Bcast, "levels+doubling"),
            (Collective::Allreduce, "levels0"),
            (Collective::Bcast, "levels/"),
        ] {
            assert_eq!(Choice::from_name(Over::Messages, collective, name), None, "{collective} {name}");
        }
        let site = Site { levels: 2, ..Site::flat(4) };
        let ask = |collective| Ask { over: Over::Messages, collective, bytes: 8, commutative: true, site };
        let applies = |collective, name| named(collective, name).plan.applies(&ask(collective));
        assert_eq!(applies(Collective::Bcast, "levels/slices"), Ok(()));
        assert_eq!(
            [applies(Collective::Bcast, "levels0/slices"), applies(Collective::Reduce, "levels0/flat")],
            [Ok(()); 2]
        );
        let trees = Err(Unfit::Needs(Needs::Trees));
        for (collective, name) in [
            (Collective::Bcast, "levels-64/slices"),
            (Collective::Barrier, "levels/slices"),
            (Collective::Reduce, "levels0/slices"),
        ] {
            assert_eq!(applies(collective, name), trees, "{collective} {name}");
        }
    }

    fn by<A>(way: By<A>) -> Choice
    where
        Algorithm: From<A>,
    {
        match way {
            Way::Flat(algorithm) => Choice::Messages(algorithm.into()),
            Way::Levels(algorithm) => Choice::Levels(algorithm),
        }
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

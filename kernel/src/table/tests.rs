use super::*;
use crate::algorithm::{
    AllreduceAlgorithm, AlltoallAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm, ReduceAlgorithm,
    ReduceScatterAlgorithm, ScanAlgorithm,
};
use crate::comm::Member;
use crate::msg::{self, Named};
use crate::pattern::tree::Tree;
use crate::region::{Layout, Params};
use std::string::ToString;
use std::vec::Vec;

const LENGTHS: [u64; 18] =
    [0, 1, 48, 49, 112, 113, 1024, 1025, 4096, 5120, 5121, 8192, 8193, 16384, 16385, 1 << 20, 1 << 40, u64::MAX];
const RANKS: [u32; 12] = [1, 2, 3, 4, 7, 8, 11, 12, 16, 17, 1024, u32::MAX];

fn asks() -> impl Iterator<Item = Ask> {
    let over = [Over::Segment, Over::Messages].into_iter();
    let each = over.flat_map(|over| Collective::ALL.into_iter().map(move |collective| (over, collective)));
    each.flat_map(|(over, collective)| {
        LENGTHS.into_iter().flat_map(move |bytes| {
            RANKS.into_iter().flat_map(move |ranks| {
                let each = [(false, false), (false, true), (true, false), (true, true)].into_iter();
                let each = each.flat_map(|of| [false, true].map(|crowded| (of, crowded)));
                each.map(move |((commutative, papers), crowded)| Ask {
                    over,
                    collective,
                    bytes,
                    commutative,
                    site: Site { papers, stages: papers, crowded, ..Site::flat(ranks) },
                })
            })
        })
    })
}

/// Every algorithm that has a name, of every collective.
pub(super) fn plans() -> Vec<(Collective, Choice)> {
    let shm = ["posted", "queue", "cico-flat", "cico-kary-3", "cico-binomial", "dissemination", "central"];
    let shm = [&shm[..], &["combining-4", "exchange", "slices", "groups", "tree", "cico", "mpi"]].concat();
    let msg = ["flat", "chain-8192", "knomial-4", "scatter-allgather", "scatter-gather", "doubling", "ring"];
    let more = ["segmented-ring-64", "rabenseifner", "linear", "binomial", "bruck", "bagds", "pairwise", "tournament"];
    let names = [&shm[..], &msg, &more, &["butterfly", "scatter-doubling"]].concat();
    let mut plans = Vec::new();
    for collective in Collective::ALL {
        for over in [Over::Segment, Over::Messages] {
            plans
                .extend(names.iter().filter_map(|name| Some((collective, Choice::from_name(over, collective, name)?))));
        }
    }
    plans
}

#[test]
fn there_is_a_built_in_rule_for_every_call_and_only_one() {
    for ask in asks() {
        let rules = BUILT_IN.iter().filter(|rule| rule.matches(&ask)).count();
        assert_eq!(rules, 1, "{ask:?}");
        let chosen = select(&[], &ask).unwrap();
        assert_eq!((chosen.rule, chosen.plan.applies(&ask)), (None, Ok(())), "{ask:?}");
    }
    // At both ends of every rule's ranges, and next to them.
    let around = |end: u64| [end.saturating_sub(1), end, end.saturating_add(1)];
    let lengths: Vec<u64> =
        BUILT_IN.iter().flat_map(|rule| [rule.bytes.least, rule.bytes.most]).flat_map(around).collect();
    let ranks: Vec<u64> = BUILT_IN
        .iter()
        .flat_map(|rule| [rule.ranks.least, rule.ranks.most])
        .flat_map(|end| around(end.into()))
        .collect();
    for rule in BUILT_IN {
        for (&bytes, &ranks) in lengths.iter().flat_map(|bytes| ranks.iter().map(move |ranks| (bytes, ranks))) {
            let Ok(ranks @ 1..) = u32::try_from(ranks) else { continue };
            let (over, collective) = (rule.plan.over(), rule.collective);
            let ask = Ask { over, collective, bytes, commutative: true, site: Site::flat(ranks) };
            assert_eq!(BUILT_IN.iter().filter(|rule| rule.matches(&ask)).count(), 1, "{ask:?}");
        }
    }
    for (at, one) in BUILT_IN.iter().enumerate() {
        assert!(BUILT_IN.iter().skip(at + 1).all(|other| !one.meets(other)), "{one:?}");
    }
}

/// The code that resolves `Auto` without a table has the built-in rules.
#[test]
fn the_closed_form_is_the_built_in_table() {
    for ask in asks().filter(|ask| ask.over == Over::Segment) {
        let (bytes, Site { ranks, crowded, .. }) = (ask.bytes, ask.site);
        let closed = match ask.collective {
            Collective::Barrier => Choice::Barrier(BarrierAlgorithm::Auto.resolve(ranks, crowded)),
            Collective::Bcast => Choice::Bcast(BcastAlgorithm::Auto.resolve(bytes, ranks, crowded)),
            Collective::Allreduce => Choice::Allreduce(AllreduceAlgorithm::Auto.resolve(bytes, ranks, crowded)),
            Collective::Alltoall => Choice::Alltoall(AlltoallAlgorithm::Auto.resolve(bytes, ranks, crowded)),
            Collective::ReduceScatter => {
                Choice::ReduceScatter(ReduceScatterAlgorithm::Auto.resolve(|| bytes, ranks, crowded))
            }
            Collective::Reduce => Choice::Reduce(ReduceAlgorithm::Auto.resolve(bytes, ranks, crowded)),
            Collective::Scan | Collective::Exscan => Choice::Scan(ScanAlgorithm::Auto.resolve(bytes, ranks, crowded)),
            Collective::Gather
            | Collective::Gatherv
            | Collective::Scatter
            | Collective::Scatterv
            | Collective::Allgather => {
                Choice::Move(MoveAlgorithm::Auto.resolve(ask.collective, || bytes, ranks, crowded))
            }
            _ => Choice::Exchange,
        };
        assert_eq!(select(&[], &ask).map(|chosen| chosen.plan), Some(closed), "{ask:?}");
    }
}

/// Whatever rules a table has, the chosen algorithm applies, for all calls and all algorithms.
#[test]
fn select_never_answers_an_algorithm_that_does_not_apply() {
    for (collective, plan) in plans() {
        let table = [Rule::all(collective, plan)];
        for ask in asks() {
            let chosen = select(&table, &ask).unwrap();
            assert_eq!(chosen.plan.applies(&ask), Ok(()), "{plan} for {ask:?}");
            let serves = table[0].matches(&ask) && plan.applies(&ask).is_ok();
            assert_eq!(chosen.rule, serves.then_some(0), "{plan} for {ask:?}");
        }
    }
}

#[test]
fn names_are_what_they_print() {
    for (collective, plan) in plans() {
        assert_eq!(Choice::from_name(plan.over(), collective, &plan.to_string()), Some(plan), "{collective} {plan}");
    }
    for collective in Collective::ALL {
        assert_eq!(Collective::from_name(collective.name()), Some(collective));
        assert_eq!(Choice::from_name(Over::Segment, collective, "auto"), None);
    }
    assert_eq!(Choice::from_name(Over::Segment, Collective::Bcast, "slices"), None);
    for collective in [Collective::Gatherv, Collective::Scatter, Collective::Scatterv] {
        assert_eq!(Choice::from_name(Over::Segment, collective, "groups"), None);
        assert_eq!(MoveAlgorithm::Groups.resolve(collective, || 64, 64, false), MoveAlgorithm::Exchange);
    }
    assert_eq!(
        Choice::from_name(Over::Messages, Collective::Exscan, "doubling").map(Choice::over),
        Some(Over::Messages)
    );
    assert_eq!(msg::bcast::Algorithm::from_name("binomial").map(Named::name), Some(("knomial", Some(2))));
}

const PAPERS: Site = Site { papers: true, stages: true, ..Site::flat(4) };

fn queue_from(least: u64) -> Rule {
    let plan = Choice::Bcast(BcastAlgorithm::Cico(Tree::BINARY));
    Rule { bytes: Span::new(least, 1 << 20), ..Rule::all(Collective::Bcast, plan) }
}

#[test]
fn a_cut_table_is_the_table() {
    let slices = Rule {
        commutative: Some(false),
        ranks: Span::new(4, 4),
        ..Rule::all(Collective::Allreduce, Choice::Allreduce(AllreduceAlgorithm::Slices))
    };
    let gather = Rule { bytes: Span::new(0, 64), ..Rule::all(Collective::Gather, Choice::Move(MoveAlgorithm::Cico)) };
    let table =
        [queue_from(100), slices, gather, Rule::all(Collective::Barrier, Choice::Barrier(BarrierAlgorithm::Central))];
    for site in [PAPERS, Site { papers: false, ..PAPERS }, Site { ranks: 3, ..PAPERS }] {
        let choices = std::boxed::Box::leak(std::boxed::Box::new(Choices::cut(&table, site).unwrap()));
        let mut me = Member::new(Layout::new(Params::new(site.ranks)).unwrap(), 0).unwrap();
        me.set_choices(Some(choices));
        for ask in asks().filter(|ask| ask.over == Over::Segment) {
            let ask = Ask { site, ..ask };
            let (bytes, plan) = (ask.bytes, select(&table, &ask).unwrap().plan);
            let found = match ask.collective {
                Collective::Barrier => Choice::Barrier(me.chooser().barrier_by(BarrierAlgorithm::Auto)),
                Collective::Bcast => Choice::Bcast(me.chooser().bcast_by(BcastAlgorithm::Auto, bytes)),
                Collective::Allreduce => {
                    Choice::Allreduce(me.chooser().allreduce_by(AllreduceAlgorithm::Auto, bytes, ask.commutative))
                }
                Collective::Gather | Collective::Scatter | Collective::Allgather => {
                    Choice::Move(me.chooser().move_by(MoveAlgorithm::Auto, ask.collective, || bytes))
                }
                _ => continue,
            };
            assert_eq!(found, plan, "{ask:?}");
        }
        assert_eq!(me.chooser().bcast_by(BcastAlgorithm::Posted, 1 << 20), BcastAlgorithm::Posted, "named: as named");
    }
}

/// A call is left where there is an MPI. Where there is none the rule is passed over.
#[test]
fn a_cut_table_says_what_is_left_to_the_mpi() {
    let left = |collective, bytes| Rule { bytes, ranks: Span::new(2, 4), ..Rule::all(collective, Choice::Mpi) };
    let ordered = Rule { commutative: Some(false), ..left(Collective::Allreduce, Span::new(100, 200)) };
    let table = [left(Collective::Bcast, Span::new(9, 1 << 20)), ordered, left(Collective::Gatherv, Span::<u64>::ANY)];
    for site in [PAPERS, Site { ranks: 5, ..PAPERS }] {
        let choices = Choices::cut(&table, site).unwrap();
        let mut found = 0;
        for ask in asks().filter(|ask| ask.over == Over::Segment) {
            let beside_mpi = Ask { site: Site { mpi: true, ..site }, ..ask };
            let leaves = select(&table, &beside_mpi).unwrap().plan == Choice::Mpi;
            assert_eq!(choices.leaves(ask.collective, ask.bytes, ask.commutative), leaves, "{ask:?}");
            assert_ne!(select(&table, &Ask { site, ..ask }).unwrap().plan, Choice::Mpi, "{ask:?}");
            found += usize::from(leaves);
        }
        let any: Vec<_> = Collective::ALL.into_iter().filter(|one| choices.leaves_any(*one)).collect();
        let (bcast, gatherv, allreduce) = (Collective::Bcast, Collective::Gatherv, Collective::Allreduce);
        let meant = if site.ranks == 4 { &[bcast, gatherv, allreduce][..] } else { &[] };
        assert_eq!((any.as_slice(), found > 0), (meant, site.ranks == 4));
    }
}

#[test]
fn more_ranges_than_there_is_room_for_are_an_error() {
    let rule = |at: u64| Rule { bytes: Span::new(1000 + 2 * at, 1000 + 2 * at), ..queue_from(0) };
    let table: Vec<_> = (0..8).map(rule).collect();
    let error = Choices::cut(&table, PAPERS).unwrap_err();
    assert_eq!(error.to_string(), "bcast of 4 ranks has more than 16 ranges of bytes");
    assert!(Choices::cut(&table[..7], PAPERS).is_ok());
}

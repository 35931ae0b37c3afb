//! Paper P3's groups against a second, plain way to build them, on random clusters with ranks in any order.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use unisono_kernel::Rank;
use unisono_kernel::topology::group::{Groups, Place};
use unisono_kernel::topology::{Level, Levels, Locality};

/// Groups of one level: leader and members.
type Row = BTreeMap<Rank, Vec<Rank>>;

/// A cluster whose units nest, with ranks that are not bound, and the levels in use.
fn clusters() -> impl Strategy<Value = (Vec<Locality>, Levels)> {
    let rank = (0..3u32, 0..3u32, 0..2u32, 0..2u32, 0..2u32, 0..2u32, 0..2u32, 0..8u8);
    (proptest::collection::vec(rank, 1..60), any::<u8>()).prop_map(|(ranks, off)| {
        let locality = |(spine, leaf, node, package, numa, l3, l2, binding)| {
            let leaf = spine * 3 + leaf;
            let place = Locality::NOWHERE.with(Level::Switch2, spine).with(Level::Switch1, leaf);
            let place = place.with(Level::Node, leaf * 2 + node);
            if binding == 0 {
                return place;
            }
            let place = place.with(Level::Package, package).with(Level::Numa, package * 2 + numa);
            let l3 = (package * 2 + numa) * 2 + l3;
            if binding == 1 { place } else { place.with(Level::L3, l3).with(Level::L2, l3 * 2 + l2) }
        };
        let levels = Level::EVERY.into_iter().filter(|&level| off >> level as u8 & 1 == 0);
        (ranks.into_iter().map(locality).collect(), levels.collect())
    })
}

/// The groups of every level, built by the kernel, checked with what it returns for each rank.
fn built(localities: &[Locality], levels: Levels) -> Vec<(Level, Row)> {
    let (mut places, mut order) = (vec![Place::default(); localities.len()], vec![0; localities.len()]);
    let groups = Groups::build(localities, levels, &mut places, &mut order).expect("the storage fits");
    let row = |index| groups.at(index).map(|group| (group.leader(), group.members().collect())).collect();
    let rows: Vec<(Level, Row)> = (0..).zip(groups.levels()).map(|(index, &level)| (level, row(index))).collect();
    for rank in 0..groups.ranks() {
        let own: Vec<_> = groups.of(rank).collect();
        assert_eq!(own.len(), groups.count(rank));
        for (index, (level, row)) in rows.iter().enumerate() {
            let around: Vec<_> = row.iter().filter(|(_, members)| members.contains(&rank)).collect();
            assert_eq!(around.len(), usize::from(index < own.len()), "rank {rank} on {level}");
            assert_eq!(groups.group(rank, index).is_some(), index < own.len());
            for (leader, members) in around {
                assert_eq!((own[index].leader(), own[index].level()), (*leader, *level));
                assert!(own[index].members().eq(members.iter().copied()));
            }
        }
    }
    rows
}

/// The same, level by level through maps.
fn plain(localities: &[Locality], levels: Levels) -> Vec<(Level, Row)> {
    let mut members: Vec<Rank> = (0..localities.len() as Rank).collect();
    let mut rows = Vec::new();
    for level in levels.iter() {
        let mut units = BTreeMap::<_, Vec<Rank>>::new();
        for &rank in &members {
            let locality = &localities[rank as usize];
            let node = (level < Level::Node).then_some(locality.unit(Level::Node));
            let alone = locality.unit(level).is_none().then_some(rank);
            units.entry((node, locality.unit(level), alone)).or_default().push(rank);
        }
        let row: Row = units.into_values().map(|group| (group[0], group)).collect();
        if row.len() < members.len() {
            members = row.keys().copied().collect();
            rows.push((level, row));
        }
    }
    rows
}

/// Every rank below each group of a level.
fn spans(rows: &[(Level, Row)]) -> Vec<(Level, BTreeSet<BTreeSet<Rank>>)> {
    let mut below = BTreeMap::<Rank, BTreeSet<Rank>>::new();
    let own = |rank: &Rank| BTreeSet::from([*rank]);
    let mut spans = Vec::new();
    for (level, row) in rows {
        let under = |rank: &Rank| below.get(rank).cloned().unwrap_or_else(|| own(rank));
        below = row.iter().map(|(leader, members)| (*leader, members.iter().flat_map(under).collect())).collect();
        spans.push((*level, below.values().cloned().collect()));
    }
    spans
}

proptest! {
    #[test]
    fn groups_are_those_of_the_plain_way((localities, levels) in clusters()) {
        let rows = built(&localities, levels);
        prop_assert_eq!(&rows, &plain(&localities, levels));
        let mut members: Vec<Rank> = (0..localities.len() as Rank).collect();
        for (level, row) in &rows {
            // Each member is in exactly one group, which its lowest rank leads; leaders are the next level's members.
            let mut all: Vec<_> = row.values().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(&all, &members, "{}", level);
            for (leader, group) in row {
                prop_assert_eq!(group.iter().min(), Some(leader));
            }
            prop_assert!(row.len() < members.len(), "{} moves nothing", level);
            members = row.keys().copied().collect();
        }
        prop_assert_eq!(members, [0]);
    }

    #[test]
    fn what_a_level_switched_off_had_joined_is_joined_by_the_next((localities, levels) in clusters(), which in 0..7usize) {
        let off = Level::EVERY[which];
        let (with, without) = (built(&localities, levels.with(off)), built(&localities, levels.without(off)));
        let above = |rows: &[(Level, Row)]| {
            spans(rows).into_iter().filter(|(level, _)| *level > off).map(|(_, spans)| spans).collect::<Vec<_>>()
        };
        prop_assert!(without.iter().all(|(level, _)| *level != off));
        let (with, without) = (above(&with), above(&without));
        // Units nest: the groups above hold whom they held. A level may have joined what only this one joins else.
        prop_assert!(with.iter().all(|spans| without.contains(spans)));
    }

    #[test]
    fn the_order_of_ranks_changes_names_only((localities, levels) in clusters(), seed in any::<u64>()) {
        let mut names: Vec<Rank> = (0..localities.len() as Rank).collect();
        names.sort_by_key(|&rank| (u64::from(rank) + 1).wrapping_mul(seed | 1).rotate_left(17));
        let renamed: Vec<_> = names.iter().map(|&rank| localities[rank as usize]).collect();
        let back = |spans: &BTreeSet<BTreeSet<Rank>>| -> BTreeSet<BTreeSet<Rank>> {
            spans.iter().map(|span| span.iter().map(|&rank| names[rank as usize]).collect()).collect()
        };
        let (one, other) = (spans(&built(&localities, levels)), spans(&built(&renamed, levels)));
        let other: Vec<_> = other.iter().map(|(level, spans)| (*level, back(spans))).collect();
        prop_assert_eq!(one, other);
    }

    #[test]
    fn locality_strings_return((localities, _) in clusters(), core in 0..u32::MAX, l1 in 0..u32::MAX) {
        for locality in localities {
            let inside = [Level::Node, Level::Switch1, Level::Switch2];
            let inside = inside.into_iter().fold(locality, |locality, level| locality.with(level, u32::MAX));
            let inside = inside.with_core(core).with_l1(l1);
            prop_assert_eq!(inside.to_string().parse(), Ok(inside));
        }
    }

    #[test]
    fn no_text_is_too_strange(text in "(SK|L[0-9]|CR|NM|HT|[:,-]|[0-9]{1,12}|é){0,12}") {
        if let Ok(locality) = text.parse::<Locality>() {
            prop_assert_eq!(locality.to_string().parse(), Ok(locality));
        }
        if let Ok(levels) = text.parse::<Levels>() {
            prop_assert_eq!(levels.to_string().parse(), Ok(levels));
        }
    }
}

//! Groups as text and JSON.

use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;
use unisono_kernel::Rank;
use unisono_kernel::topology::group::{Group, Groups, Place};
use unisono_kernel::topology::{Level, Levels};
use unisono_posix::locality::Processes;

/// One rank a line, as paper P3 writes it: `36: G1(36-53) G2(36,54) G3(0,36)`.
pub(super) fn lines(groups: &Groups<'_>, ranks: &[Rank]) -> String {
    let mut text = String::new();
    for &rank in ranks {
        let _ = write!(text, "{rank}:");
        for (number, group) in (1..).zip(groups.of(rank)) {
            let _ = write!(text, " G{number}{group}");
        }
        text.push('\n');
    }
    text
}

/// All groups, the outermost first, two blanks per level.
pub(super) fn tree(processes: &Processes, groups: &Groups<'_>) -> String {
    let used: Levels = groups.levels().iter().copied().collect();
    let mut text = format!("{} processes, active levels {}", groups.ranks(), processes.active());
    let _ = writeln!(text, ", groups on {}", if groups.levels().is_empty() { "none".into() } else { used.to_string() });
    if let Some(top) = groups.levels().len().checked_sub(1) {
        branch(&mut text, groups, 0, top, 0);
    }
    text
}

fn branch(text: &mut String, groups: &Groups<'_>, leader: Rank, index: usize, depth: usize) {
    let Some(group) = groups.group(leader, index) else { return };
    let _ = writeln!(text, "{:blanks$}G{} {} {group}", "", index + 1, group.level(), blanks = 2 * depth);
    if let Some(below) = index.checked_sub(1) {
        group.members().for_each(|member| branch(text, groups, member, below, depth + 1));
    }
}

/// One object: the levels, how long it `took` to build the groups from the localities and how much memory they keep, and all
/// groups or those of some ranks.
pub(super) fn json(processes: &Processes, groups: &Groups<'_>, ranks: Option<&[Rank]>, took: Duration) -> Value {
    let one = |index: usize, group: Group<'_>| {
        let members: Vec<Rank> = group.members().collect();
        json!({"group": index + 1, "level": group.level().name(), "leader": group.leader(), "members": members})
    };
    let levels: Vec<_> = groups.levels().iter().map(|level| level.name()).collect();
    let bytes = groups.ranks() as usize * (size_of::<Place>() + size_of::<Rank>());
    let mut object = json!({
        "processes": groups.ranks(),
        "levels": levels,
        "unbound": processes.unbound(),
        "build_ms": took.as_secs_f64() * 1e3,
        "bytes": bytes,
    });
    let every = |index| groups.at(index).map(move |group| one(index, group));
    match ranks {
        None => object["groups"] = (0..levels.len()).flat_map(every).collect(),
        Some(ranks) => {
            let of = |&rank: &Rank| {
                let groups: Vec<_> = groups.of(rank).enumerate().map(|(index, group)| one(index, group)).collect();
                let locality = processes.localities().get(rank as usize).copied().unwrap_or_default();
                let [node, switch] = [Level::Node, Level::Switch1].map(|level| locality.unit(level));
                json!({"rank": rank, "locality": locality.to_string(), "node": node, "switch": switch, "groups": groups})
            };
            object["ranks"] = ranks.iter().map(of).collect();
        }
    }
    object
}

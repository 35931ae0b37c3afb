//! Checks of rules: of each one alone, and of all together.

use crate::Fault;
use unisono_kernel::msg::Needs;
use unisono_kernel::table::{Ask, Between, Choice, Choices, Rule, Site, Unfit};

/// Checks rules with their lines.
pub(crate) fn check(rules: &[(usize, Rule)]) -> Result<(), (usize, Fault)> {
    for (at, (line, rule)) in rules.iter().enumerate() {
        fits(rule).map_err(|why| (*line, Fault::Unfit { algorithm: rule.plan.to_string(), why }))?;
        if let Some((other, _)) = rules.iter().take(at).find(|(_, other)| other.meets(rule)) {
            return Err((*line, Fault::Overlaps(*other)));
        }
    }
    let bare: Vec<_> = rules.iter().map(|(_, rule)| *rule).collect();
    cuts(&bare).map_err(|fault| (rules.last().map_or(1, |(line, _)| *line), fault))
}

/// Checks that the algorithm applies to every call that the rule matches. A rule for the papers' queues is not an
/// error: it is passed over where the segment does not have them. So is one for BAGDS where there are no stages, one for the MPI
/// where there is none, and one over levels, where the network has one level or the op does not commute.
fn fits(rule: &Rule) -> Result<(), Unfit> {
    let over_levels = matches!(rule.plan, Choice::Levels(_));
    let levels = if over_levels { rule.levels.most.min(2) } else { rule.levels.least };
    let crowded = rule.crowded.unwrap_or(false);
    let site = Site { ranks: rule.ranks.least, levels, papers: true, stages: true, crowded, mpi: true };
    let ask = Ask {
        over: rule.plan.over(),
        collective: rule.collective,
        // A barrier has no bytes, and not all ranks know the bytes of unequal blocks.
        bytes: if rule.collective.has_bytes() { rule.bytes.most } else { 0 },
        commutative: rule.commutative.unwrap_or(over_levels || !rule.collective.folds()),
        site,
    };
    rule.plan.applies(&ask)?;
    let next = Site { ranks: rule.ranks.least.saturating_add(1), ..site };
    // An algorithm that needs a power of two can have a rule for one number of ranks, or for 1 and 2.
    match rule.plan.applies(&Ask { site: next, ..ask }) {
        Err(why @ Unfit::Needs(Needs::PowerOfTwo(_))) if rule.ranks.has(next.ranks) => Err(why),
        _ if rule.ranks.has(3) && rule.ranks.least < 3 => {
            rule.plan.applies(&Ask { site: Site { ranks: 3, ..site }, ..ask })
        }
        _ => Ok(()),
    }
}

/// Checks that the table can be cut to a communicator of any size.
pub(crate) fn cuts(rules: &[Rule]) -> Result<(), Fault> {
    let ends = rules.iter().flat_map(|rule| [rule.ranks.least, rule.ranks.most.saturating_add(1)]);
    let mut ranks: Vec<u32> = ends.chain([1, 2, 3, 17]).collect();
    ranks.sort_unstable();
    ranks.dedup();
    for ranks in ranks {
        for levels in [1, 2] {
            Between::cut(rules, ranks.max(1), levels).map_err(Fault::TooMany)?;
        }
        for papers in [false, true] {
            let levels = rules.iter().flat_map(|rule| [rule.levels.least, rule.levels.most]).chain([1]);
            for levels in levels {
                for crowded in [false, true] {
                    let site = Site { levels, papers, crowded, ..Site::flat(ranks) };
                    Choices::cut(rules, site).map_err(Fault::TooMany)?;
                }
            }
        }
    }
    Ok(())
}

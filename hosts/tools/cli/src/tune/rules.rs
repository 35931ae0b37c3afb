//! From measured cells to a table, which has a rule where another algorithm than the present one is better beyond
//! doubt.

use super::costs::Cell;
use crate::decide;
use crate::error::Failure;
use unisono_kernel::table::{Ask, Choice, Collective, Over, Rule, Site, Span, select};
use unisono_table::Table;

/// A gain of at most this part of a time gets no rule.
pub(super) const WORTH: f64 = 0.03;
/// An algorithm that was chosen and takes longer than the best by more than this part is a miss.
const MISS: f64 = 0.10;

/// A call, and its algorithms' times.
pub(crate) struct Call<'c> {
    ask: Ask,
    pub(crate) cells: Vec<&'c Cell>,
}

/// The cells by call, in the order of the sweep.
pub(crate) fn calls(cells: &[Cell]) -> Vec<Call<'_>> {
    let mut calls: Vec<Call<'_>> = Vec::new();
    for cell in cells {
        if let Some(call) = calls.iter_mut().find(|call| call.cells.first().is_some_and(|first| first.is_of(cell))) {
            call.cells.push(cell);
        } else if let (Some(over), Some(collective)) =
            (Over::from_name(&cell.over), Collective::from_name(&cell.collective))
        {
            let crowded = over == Over::Segment && decide::crowded(cell.ranks);
            let site = Site { papers: true, stages: true, crowded, ..Site::flat(cell.ranks) };
            let bytes = if collective.has_bytes() { cell.bytes } else { 0 };
            calls.push(Call { ask: Ask { over, collective, bytes, commutative: true, site }, cells: vec![cell] });
        }
    }
    calls
}

impl<'c> Call<'c> {
    /// The least time.
    pub(crate) fn best(&self) -> Option<&'c Cell> {
        self.cells.iter().copied().min_by(|one, other| one.p50_ns.total_cmp(&other.p50_ns))
    }

    /// The time of the algorithm that a table chooses.
    pub(crate) fn chosen(&self, table: &[Rule]) -> Option<&'c Cell> {
        let plan = select(table, &self.ask)?.plan;
        self.cells.iter().copied().find(|cell| cell.plan() == Some(plan))
    }

    /// The cell of the algorithm that should be chosen: the best one, if its interval is apart from the built-in
    /// choice's and the gain is worth a rule.
    fn better(&self) -> Option<Choice> {
        let (best, present) = (self.best()?, self.chosen(&[])?);
        let beyond_doubt = best.high_ns < present.low_ns && best.p50_ns < (1.0 - WORTH) * present.p50_ns;
        beyond_doubt.then(|| best.plan())?
    }
}

/// A choice that is not the best.
pub(crate) struct Miss<'c> {
    pub(crate) chosen: &'c Cell,
    pub(crate) best: &'c Cell,
    /// The excess, as a part of the best time.
    pub(crate) excess: f64,
    /// Do the two intervals overlap?
    pub(crate) doubtful: bool,
}

/// Where a table's choice takes [`MISS`] more than the best algorithm.
pub(crate) fn misses<'c>(calls: &[Call<'c>], table: &[Rule]) -> Vec<Miss<'c>> {
    let miss = |call: &Call<'c>| {
        let (chosen, best) = (call.chosen(table)?, call.best()?);
        let excess = chosen.p50_ns / best.p50_ns - 1.0;
        let doubtful = best.high_ns >= chosen.low_ns;
        (excess > MISS).then_some(Miss { chosen, best, excess, doubtful })
    };
    calls.iter().filter_map(miss).collect()
}

/// The range for which the measurement at `at` holds: half the way, in ratio, to the next measured numbers on both
/// sides; nothing is known before the first and after the last one.
pub(super) fn around(at: u64, measured: &[u64]) -> Span<u64> {
    let halfway = |one: u64, other: u64| (one as f64 * other as f64).sqrt() as u64;
    let before = measured.iter().copied().filter(|one| *one < at).max();
    let after = measured.iter().copied().filter(|one| *one > at).min();
    Span::new(before.map_or(at, |before| halfway(before, at) + 1), after.map_or(at, |after| halfway(at, after)))
}

/// The rules of a table that differs from the built-in choice: for each number of processes, ranges of bytes.
pub(crate) fn rules(calls: &[Call<'_>]) -> Result<Table, Failure> {
    let mut rules: Vec<Rule> = Vec::new();
    for call in calls {
        let Some(plan) = call.better() else { continue };
        let same = |other: &&Call<'_>| (other.ask.over, other.ask.collective) == (call.ask.over, call.ask.collective);
        let ranks: Vec<u64> = calls.iter().filter(same).map(|other| other.ask.site.ranks.into()).collect();
        let at_these = calls.iter().filter(same).filter(|other| other.ask.site == call.ask.site);
        let lengths: Vec<u64> = at_these.map(|other| other.ask.bytes).collect();
        let ranks = around(call.ask.site.ranks.into(), &ranks);
        let rule = Rule {
            ranks: Span::new(ranks.least as u32, ranks.most as u32),
            commutative: needs_commutative(plan, &call.ask).then_some(true),
            ..Rule::all(call.ask.collective, plan)
        };
        if !call.ask.collective.has_bytes() {
            rules.push(rule);
            continue;
        }
        let Some(bytes) = fitting(plan, &call.ask, around(call.ask.bytes, &lengths)) else { continue };
        match rules.last_mut() {
            Some(last)
                if Rule { bytes: last.bytes, ..rule } == *last && last.bytes.most.saturating_add(1) == bytes.least =>
            {
                last.bytes.most = bytes.most;
            }
            _ => rules.push(Rule { bytes, ..rule }),
        }
    }
    // One number of processes at a time, where an algorithm needs a power of two.
    for rule in &mut rules {
        if Table::new(vec![*rule]).is_err() {
            let power = rule.ranks.most.checked_add(1).map_or(1, |next| next.next_power_of_two() / 2);
            rule.ranks = Span::new(power, power);
        }
    }
    Table::new(rules).map_err(|e| Failure::Words(e.to_string()))
}

fn needs_commutative(plan: Choice, ask: &Ask) -> bool {
    plan.applies(&Ask { commutative: false, ..*ask }).is_err()
}

/// The part of a range in which the algorithm applies: the upper end is lowered to the most bytes that it takes.
fn fitting(plan: Choice, ask: &Ask, range: Span<u64>) -> Option<Span<u64>> {
    match plan.applies(&Ask { bytes: range.most, ..*ask }) {
        Ok(()) => Some(range),
        Err(unisono_kernel::table::Unfit::Longer(most)) if most >= range.least => Some(Span::new(range.least, most)),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(algorithm: &str, ranks: u32, bytes: u64, ns: (f64, f64, f64)) -> Cell {
        let (low_ns, p50_ns, high_ns) = ns;
        let (over, collective) = ("shm".into(), "bcast".into());
        Cell { over, collective, algorithm: algorithm.into(), ranks, bytes, p50_ns, low_ns, high_ns, samples: 11 }
    }

    /// At 8 bytes the queue seems better, but not beyond doubt; at 4 and 16 KiB of 2 ranks cico-flat is; at 64 KiB the
    /// queue.
    fn sweep() -> Vec<Cell> {
        vec![
            cell("posted", 2, 8, (90.0, 100.0, 110.0)),
            cell("queue", 2, 8, (80.0, 85.0, 95.0)),
            cell("queue", 2, 4096, (900.0, 1000.0, 1100.0)),
            cell("cico-flat", 2, 4096, (700.0, 750.0, 800.0)),
            cell("queue", 2, 16384, (900.0, 1000.0, 1100.0)),
            cell("cico-flat", 2, 16384, (700.0, 750.0, 800.0)),
            cell("queue", 2, 65536, (900.0, 1000.0, 1100.0)),
            cell("cico-flat", 2, 65536, (980.0, 990.0, 1000.0)),
            cell("queue", 8, 4096, (900.0, 1000.0, 1100.0)),
            cell("cico-flat", 8, 4096, (100.0, 110.0, 120.0)),
        ]
    }

    #[test]
    fn what_is_better_beyond_doubt_becomes_a_rule() {
        let cells = sweep();
        let calls = calls(&cells);
        assert_eq!(calls.len(), 5);
        let table = rules(&calls).unwrap();
        let text: Vec<_> = table
            .to_string()
            .lines()
            .skip(1)
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        // 182 = √(8 · 4096) + 1, 32768 = √(16384 · 65536); 4 = √(2 · 8).
        assert_eq!(
            text,
            ["shm bcast bytes 182..32768 ranks 2..4 use cico-flat", "shm bcast bytes 4096 ranks 5..8 use cico-flat"]
        );
        assert_eq!(misses(&calls, &[]).len(), 4);
        let left = misses(&calls, table.rules());
        assert_eq!(left.len(), 1);
        assert!(left[0].doubtful && (left[0].excess - (100.0 / 85.0 - 1.0)).abs() < 1e-12);
        assert_eq!((left[0].chosen.algorithm.as_str(), left[0].best.algorithm.as_str()), ("posted", "queue"));
    }

    #[test]
    fn ranges_lie_around_what_was_measured() {
        assert_eq!(around(4, &[2, 4, 8]), Span::new(3, 5));
        assert_eq!(around(2, &[2, 4, 8]), Span::new(2, 2));
        assert_eq!(around(8, &[2, 4, 8]), Span::new(6, 8));
        assert_eq!(around(8, &[8]), Span::new(8, 8));
    }

    #[test]
    fn a_rule_reaches_as_far_as_its_algorithm() {
        let cells = [
            cell("queue", 2, 64, (900.0, 1000.0, 1100.0)),
            cell("posted", 2, 64, (100.0, 110.0, 120.0)),
            cell("queue", 2, 4096, (900.0, 1000.0, 1100.0)),
        ];
        let ask = calls(&cells)[0].ask;
        let posted = cells[1].plan().unwrap();
        assert_eq!(fitting(posted, &ask, Span::new(0, 512)), Some(Span::new(0, 112)));
        assert_eq!(fitting(posted, &ask, Span::new(200, 512)), None);
    }
}

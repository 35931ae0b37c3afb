//! The decision table of a process: what `Auto` means, as the environment says. It is read once, and all ranks compare
//! theirs when they join.
//!
//! There are two variables: a file ([`TABLE`]), and rules ([`RULES`]) that are looked at before the file's. Without
//! either the built-in rules apply. A third one ([`CICO`]) has the shape of the papers' queues, where rules use them. Each
//! communicator uses the table cut to its number of ranks; a cut is made once for each number and is kept until the process
//! ends.

use crate::arena::Queues;
use crate::error::PosixError;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use unisono_kernel::region::{Cico, Layout, Params};
use unisono_kernel::table::{Choices, Rule, Site};
use unisono_table::Table;

/// Environment variable: a decision table's file.
pub const TABLE: &str = "UNISONO_TABLE";
/// Environment variable: rules separated by semicolons, which are looked at before the file's.
pub const RULES: &str = "UNISONO_RULES";
/// Environment variable: slots, bytes of a slot, and sets of the papers' queues.
pub const CICO: &str = "UNISONO_CICO";

/// A table and its cuts.
#[derive(Debug, Default)]
pub struct Decisions {
    table: Table,
    cico: Option<Cico>,
    cuts: Mutex<HashMap<Site, &'static Choices>>,
}

impl Decisions {
    /// Reads a file and rules; either may be absent.
    ///
    /// # Errors
    /// The file can't be read; a rule is wrong.
    pub fn read(file: Option<&Path>, rules: Option<&str>) -> Result<Self, PosixError> {
        let refused = |error: unisono_table::TableError| PosixError::Table { cause: error.to_string() };
        let file = match file {
            None => Table::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|error| PosixError::io("read", &error, format!("read {TABLE}={}", path.display())))?;
                Table::read(&path.display().to_string(), &text).map_err(refused)?
            }
        };
        let rules = rules.map_or(Ok(Table::default()), |rules| Table::read_rules(RULES, rules).map_err(refused))?;
        Ok(Self { table: rules.before(file).map_err(refused)?, ..Self::default() })
    }

    /// The same, where the papers' queues have this shape: `SLOTS,BYTES,SETS`.
    ///
    /// # Errors
    /// The text has another form. What numbers go together the segment's layout says.
    pub fn with_cico(self, shape: &str) -> Result<Self, PosixError> {
        let numbers: Option<Vec<u64>> = shape.split(',').map(|number| number.parse().ok()).collect();
        let cico = match numbers.as_deref() {
            Some(&[slots, fragment, sets]) => u32::try_from(slots)
                .ok()
                .zip(u32::try_from(sets).ok())
                .map(|(slots, sets)| Cico { slots, fragment, sets }),
            _ => None,
        };
        let wrong =
            || PosixError::Setting { name: CICO, value: shape.into(), bound: "SLOTS,BYTES,SETS, such as 64,8192,1" };
        Ok(Self { cico: Some(cico.ok_or_else(wrong)?), ..self })
    }

    /// The rules; if there are none, the built-in rules apply.
    pub fn rules(&self) -> &[Rule] {
        self.table.rules()
    }

    /// The default parameters of a segment for `ranks` ranks: with the papers' queues if a rule uses them.
    pub fn params(&self, ranks: u32) -> Params {
        let params = Params::new(ranks);
        if self.queues() == Queues::Large {
            return params;
        }
        let default = params.with_cico();
        Params { cico: self.cico.or(default.cico), ..default }
    }

    /// The queues of a communicator's slice of an arena: with the papers' if a rule uses them, of the default shape.
    pub fn queues(&self) -> Queues {
        let used = self.rules().iter().any(|rule| rule.plan.in_papers_queues());
        if used { Queues::Papers } else { Queues::Large }
    }

    /// The hash that ranks compare; 0 without rules.
    pub fn hash(&self) -> u64 {
        if self.rules().is_empty() { 0 } else { self.table.hash() }
    }

    /// What `Auto` means in a communicator of this layout; `None`: the built-in rules.
    pub fn choices(&self, layout: &Layout) -> Option<&'static Choices> {
        if self.rules().is_empty() {
            return None;
        }
        let params = layout.params();
        let site = Site { papers: params.cico.is_some(), crowded: params.crowded, ..Site::flat(params.ranks) };
        let mut cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(choices) = cuts.get(&site) {
            return Some(*choices);
        }
        // A table that can't be cut was refused when it was read.
        let choices = Choices::cut(self.rules(), site).ok()?;
        // Never freed: one for each number of ranks that a communicator ever had.
        let choices: &'static Choices = Box::leak(Box::new(choices));
        cuts.insert(site, choices);
        Some(choices)
    }
}

/// The environment's decision table, read by the first call.
///
/// # Errors
/// As [`Decisions::read`], each time.
pub fn decisions() -> Result<&'static Decisions, PosixError> {
    static READ: OnceLock<Result<Decisions, PosixError>> = OnceLock::new();
    let read = || {
        let (file, rules) = (std::env::var_os(TABLE), std::env::var_os(RULES));
        let rules = rules.map(|rules| rules.to_string_lossy().into_owned());
        let read = Decisions::read(file.as_deref().filter(|file| !file.is_empty()).map(Path::new), rules.as_deref())?;
        match std::env::var_os(CICO).filter(|shape| !shape.is_empty()) {
            Some(shape) => read.with_cico(&shape.to_string_lossy()),
            None => Ok(read),
        }
    };
    READ.get_or_init(read).as_ref().map_err(Clone::clone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_kernel::algorithm::{BarrierAlgorithm, BcastAlgorithm};
    use unisono_kernel::comm::Member;

    #[test]
    fn a_table_is_cut_to_each_size_once() {
        let decisions = Decisions::read(None, Some("shm bcast ranks 2..3 use queue; shm barrier use central")).unwrap();
        let layout = |ranks| Layout::new(Params::new(ranks)).unwrap();
        let of = |ranks| {
            let mut me = Member::new(layout(ranks), 0).unwrap();
            me.set_choices(decisions.choices(&layout(ranks)));
            (me.chooser().bcast_by(BcastAlgorithm::Auto, 8), me.chooser().barrier_by(BarrierAlgorithm::Auto))
        };
        assert_eq!(of(2), (BcastAlgorithm::Queue, BarrierAlgorithm::Central));
        assert_eq!(of(4), (BcastAlgorithm::Posted, BarrierAlgorithm::Central));
        let (one, other) = (decisions.choices(&layout(2)).unwrap(), decisions.choices(&layout(2)).unwrap());
        assert!(std::ptr::eq(one, other));
        let none = Decisions::default();
        assert_eq!((none.choices(&layout(2)), none.hash()), (None, 0));
        assert_ne!(decisions.hash(), 0);
        assert_eq!((decisions.params(3), none.params(3)), (Params::new(3), Params::new(3)));
        let queues =
            Decisions::read(None, Some("shm bcast ranks 2 use queue; shm gatherv ranks 9.. use cico")).unwrap();
        assert_eq!(queues.params(3), Params::new(3).with_cico());
        let shaped = queues.with_cico("64,8192,1").unwrap();
        assert_eq!(shaped.params(3).cico, Some(Cico { slots: 64, fragment: 8192, sets: 1 }));
        assert_eq!(none.with_cico("64,8192,1").unwrap().params(3), Params::new(3), "no rule uses them");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for shape in ["64", "64,8K,1", "64,8192,1,2", "4294967296,8192,1"] {
            let error = Decisions::default().with_cico(shape).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("UNISONO_CICO is {shape:?}, must be SLOTS,BYTES,SETS, such as 64,8192,1")
            );
        }
        let error = Decisions::read(None, Some("shm bcast use slices")).unwrap_err();
        assert_eq!(error.to_string(), "UNISONO_RULES:1: no algorithm of this collective is called \"slices\"");
        let error = Decisions::read(Some(Path::new("/no/such/table")), None).unwrap_err();
        assert!(error.to_string().contains("/no/such/table"), "{error}");
    }
}

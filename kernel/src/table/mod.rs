//! The decision table: which algorithm runs a call. The choice depends only on what is the same on all ranks.
//!
//! | file | what |
//! |---|---|
//! | `plan` | calls, algorithms, and to which calls each algorithm applies |
//! | `built_in` | the rules for calls that no rule of a table matches |
//! | `choices` | the part of a table that one communicator needs, for a fast look-up by each call |
//! | `between` | the same for messages between nodes |
//!
//! A table is a slice of [`Rule`]s: plain data, read from a file by `unisono-table` or made by an embedder.
//! [`select`] returns the algorithm of the first rule that matches and whose algorithm applies, else that of a built-in
//! rule.

mod between;
mod built_in;
mod choices;
mod plan;

pub use crate::collective::Collective;
pub use between::{Between, By};
pub use built_in::BUILT_IN;
pub use choices::{Choices, Chooser, STEPS, Steps, TooMany};
pub use plan::{Ask, Choice, Over, Site, Unfit};

/// A range with both ends in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span<N> {
    /// The least.
    pub least: N,
    /// The greatest.
    pub most: N,
}

impl<N: Copy + PartialOrd> Span<N> {
    /// From one end to the other.
    pub const fn new(least: N, most: N) -> Self {
        Self { least, most }
    }

    /// Is the value in the range?
    pub fn has(&self, value: N) -> bool {
        self.least <= value && value <= self.most
    }

    /// Have the two ranges a common value?
    pub fn meets(&self, other: &Self) -> bool {
        self.least <= other.most && other.least <= self.most
    }

    /// Is no value in the range?
    pub fn is_empty(&self) -> bool {
        self.least > self.most
    }
}

impl Span<u64> {
    /// Any number.
    pub const ANY: Self = Self::new(0, u64::MAX);
}

impl Span<u32> {
    /// Any count from 1 on.
    pub const ANY: Self = Self::new(1, u32::MAX);
}

/// One line of a table: the calls that it is for, and their algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The collective.
    pub collective: Collective,
    /// Bytes, as [`Collective`] says for each collective.
    pub bytes: Span<u64>,
    /// Numbers of processes.
    pub ranks: Span<u32>,
    /// Numbers of levels.
    pub levels: Span<u32>,
    /// Whether the op commutes; `None`: any op.
    pub commutative: Option<bool>,
    /// Whether processes share cores; `None`: either.
    pub crowded: Option<bool>,
    /// The algorithm. It also says whether the rule is for a segment or for messages.
    pub plan: Choice,
}

impl Rule {
    /// The rule that gives all calls of a collective this algorithm.
    pub const fn all(collective: Collective, plan: Choice) -> Self {
        let (bytes, ranks, levels) = (Span::<u64>::ANY, Span::<u32>::ANY, Span::<u32>::ANY);
        Self { collective, bytes, ranks, levels, commutative: None, crowded: None, plan }
    }

    /// Does the rule match this call?
    pub fn matches(&self, ask: &Ask) -> bool {
        self.collective == ask.collective
            && self.plan.over() == ask.over
            && self.bytes.has(ask.bytes)
            && self.ranks.has(ask.site.ranks)
            && self.levels.has(ask.site.levels)
            && self.commutative.is_none_or(|wanted| wanted == ask.commutative)
            && self.crowded.is_none_or(|wanted| wanted == ask.site.crowded)
    }

    /// Is there a call that both rules match?
    pub fn meets(&self, other: &Self) -> bool {
        self.collective == other.collective
            && self.plan.over() == other.plan.over()
            && self.bytes.meets(&other.bytes)
            && self.ranks.meets(&other.ranks)
            && self.levels.meets(&other.levels)
            && self.commutative.zip(other.commutative).is_none_or(|(one, two)| one == two)
            && self.crowded.zip(other.crowded).is_none_or(|(one, two)| one == two)
    }
}

/// What [`select`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chosen {
    /// The algorithm.
    pub plan: Choice,
    /// The rule's index in the table; `None`: a built-in rule.
    pub rule: Option<usize>,
}

/// The algorithm for a call: that of the first rule of `table` that matches and whose algorithm applies, else of the
/// first such rule in [`BUILT_IN`], which has one for every call.
pub fn select(table: &[Rule], ask: &Ask) -> Option<Chosen> {
    let serves = |rule: &Rule| rule.matches(ask) && rule.plan.applies(ask).is_ok();
    match table.iter().position(serves) {
        Some(at) => table.get(at).map(|rule| Chosen { plan: rule.plan, rule: Some(at) }),
        None => BUILT_IN.iter().find(|rule| serves(rule)).map(|rule| Chosen { plan: rule.plan, rule: None }),
    }
}

#[cfg(test)]
mod plans;
#[cfg(test)]
mod tests;

//! The decision table: which algorithm runs a call, chosen by what all ranks know alike.
//!
//! | file | what |
//! |---|---|
//! | `plan` | collectives, algorithms, where each applies |
//! | `built_in` | the rules that hold where a table says nothing |
//! | `choices` | a table cut to one communicator, for the way of a call |
//! | `between` | the same for messages between nodes |
//!
//! A table is a slice of [`Rule`]s: plain data, read from a file by `unisono-table` or written down by an embedder.
//! [`select`] is pure: the first rule that matches and whose algorithm applies, else the built-in one.

mod between;
mod built_in;
mod choices;
mod plan;

pub use crate::collective::Collective;
pub use between::Between;
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

    /// Is the value in it?
    pub fn has(&self, value: N) -> bool {
        self.least <= value && value <= self.most
    }

    /// Has it a value in common with another one?
    pub fn meets(&self, other: &Self) -> bool {
        self.least <= other.most && other.least <= self.most
    }

    /// Is there nothing in it?
    pub fn is_empty(&self) -> bool {
        self.least > self.most
    }
}

impl Span<u64> {
    /// Any number.
    pub const ANY: Self = Self::new(0, u64::MAX);
}

impl Span<u32> {
    /// Any count that is none of nothing.
    pub const ANY: Self = Self::new(1, u32::MAX);
}

/// One line of a table: calls, and the algorithm that serves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Which collective.
    pub collective: Collective,
    /// Of these lengths.
    pub bytes: Span<u64>,
    /// Of so many processes.
    pub ranks: Span<u32>,
    /// On so many levels.
    pub levels: Span<u32>,
    /// With an operation that commutes, or one that does not; `None`: with any.
    pub commutative: Option<bool>,
    /// How. It says over what, too.
    pub plan: Choice,
}

impl Rule {
    /// For all calls of a collective.
    pub const fn all(collective: Collective, plan: Choice) -> Self {
        let (bytes, ranks, levels) = (Span::<u64>::ANY, Span::<u32>::ANY, Span::<u32>::ANY);
        Self { collective, bytes, ranks, levels, commutative: None, plan }
    }

    /// Is the call one of these?
    pub fn matches(&self, ask: &Ask) -> bool {
        self.collective == ask.collective
            && self.plan.over() == ask.over
            && self.bytes.has(ask.bytes)
            && self.ranks.has(ask.site.ranks)
            && self.levels.has(ask.site.levels)
            && self.commutative.is_none_or(|wanted| wanted == ask.commutative)
    }

    /// Is there a call that both match?
    pub fn meets(&self, other: &Self) -> bool {
        self.collective == other.collective
            && self.plan.over() == other.plan.over()
            && self.bytes.meets(&other.bytes)
            && self.ranks.meets(&other.ranks)
            && self.levels.meets(&other.levels)
            && self.commutative.zip(other.commutative).is_none_or(|(one, two)| one == two)
    }
}

/// What [`select`] answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chosen {
    /// The algorithm.
    pub plan: Choice,
    /// The rule: its place in the table. `None`: a built-in one.
    pub rule: Option<usize>,
}

/// The algorithm for a call: that of the first rule of `table` that matches and applies, else of the first such in
/// [`BUILT_IN`], which has one for every call.
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

//! Decision tables as text: which algorithm runs which calls (docs/reference/tables.md).
//!
//! ```text
//! unisono table 1
//! # over  which      calls                             algorithm
//! shm     bcast      bytes 113..8K ranks 2..4          use cico-binary
//! shm     allreduce  bytes 49..256 commutative no      use exchange
//! msg     allgather  ranks 16 levels 1                 use doubling
//! ```
//!
//! A line is a rule. Conditions come in any order, each once; `A..B` includes both ends, either may be left out, and
//! `A` alone is `A..A`. Bytes may have the suffix K, M or G. Calls that no rule matches use the built-in choice. Rules
//! of one text do not overlap, so their order means nothing.
//!
//! A text is read whole or refused: [`TableError`] has the line. Several texts make one table, the first one's rules
//! first.

#![forbid(unsafe_code)]

mod check;
mod error;
mod read;
mod write;

pub use error::{Fault, TableError};
pub use read::bytes;
pub use write::Line;

use std::fmt;
use unisono_kernel::table::Rule;

/// The first line of a file: the format, and its version.
pub const HEADER: &str = "unisono table 1";

/// A list of rules that were checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    rules: Vec<Rule>,
}

impl Table {
    /// Reads a file's text; `origin` names it in errors.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn read(origin: &str, text: &str) -> Result<Self, TableError> {
        let named = |(line, fault)| TableError { origin: origin.into(), line, fault };
        let mut lines = read::lines(text);
        match lines.next() {
            Some((_, HEADER)) => {}
            Some((line, _)) => return Err(named((line, Fault::Header))),
            None => return Err(named((1, Fault::Header))),
        }
        Self::of(lines).map_err(named)
    }

    /// Reads the rules of an environment variable: without a header, separated by semicolons or line ends.
    ///
    /// # Errors
    /// The first rule that is wrong; its number is the error's line.
    pub fn read_rules(origin: &str, text: &str) -> Result<Self, TableError> {
        let text = text.replace(';', "\n");
        Self::of(read::lines(&text)).map_err(|(line, fault)| TableError { origin: origin.into(), line, fault })
    }

    /// Checks rules that were not read from a text, as if each were a line of one.
    ///
    /// # Errors
    /// The first rule that is wrong.
    pub fn new(rules: Vec<Rule>) -> Result<Self, TableError> {
        let numbered: Vec<_> = (1..).zip(rules).collect();
        check::check(&numbered).map_err(|(line, fault)| TableError { origin: "rules".into(), line, fault })?;
        Ok(Self { rules: numbered.into_iter().map(|(_, rule)| rule).collect() })
    }

    fn of<'t>(lines: impl Iterator<Item = (usize, &'t str)>) -> Result<Self, (usize, Fault)> {
        let rule = |(line, text)| read::rule(text).map(|rule| (line, rule)).map_err(|fault| (line, fault));
        let numbered = lines.map(rule).collect::<Result<Vec<_>, _>>()?;
        check::check(&numbered)?;
        Ok(Self { rules: numbered.into_iter().map(|(_, rule)| rule).collect() })
    }

    /// The rules, in the order of the text.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// These rules, and `other`'s for calls that they do not match.
    ///
    /// # Errors
    /// Together the rules divide a collective into too many ranges of bytes.
    pub fn before(mut self, other: Self) -> Result<Self, TableError> {
        self.rules.extend(other.rules);
        let (origin, line) = ("rules together".into(), self.rules.len());
        check::cuts(&self.rules).map_err(|fault| TableError { origin, line, fault })?;
        Ok(self)
    }

    /// A hash of the rules, by which ranks compare their tables.
    pub fn hash(&self) -> u64 {
        let text = self.to_string();
        // FNV-1a.
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

/// The text of a file, as [`Table::read`] reads it.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        self.rules.iter().try_for_each(|rule| writeln!(f, "{}", Line(rule)))
    }
}

#[cfg(test)]
mod tests;

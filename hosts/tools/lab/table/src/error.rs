//! What is wrong with a table, and where.

use std::fmt;
use unisono_kernel::table::{Collective, TooMany, Unfit};

/// A table that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError {
    /// The file, or the variable.
    pub origin: String,
    /// The line, from 1; in a variable, the rule.
    pub line: usize,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The first line is not the format's.
    Header,
    /// A word that stands for nothing.
    Unknown {
        /// What it should name.
        what: &'static str,
        /// The word.
        name: String,
    },
    /// Something is missing.
    Missing(&'static str),
    /// A condition for the second time, or words behind the algorithm.
    Superfluous(String),
    /// No number or range where one must be.
    Range(String),
    /// A range without a value in it: the rule is never reached.
    Unreachable(String),
    /// Bytes are no condition of this collective: not all ranks know them, or there are none.
    Bytes(Collective),
    /// This collective has no operation that could commute.
    Operation(Collective),
    /// The algorithm does not serve all of these calls.
    Unfit {
        /// Its name.
        algorithm: String,
        /// Why not.
        why: Unfit,
    },
    /// A rule before says something about some of these calls.
    Overlaps(usize),
    /// Too many ranges of bytes.
    TooMany(TooMany),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => write!(f, "a table begins with {:?}", super::HEADER),
            Self::Unknown { what, name } => write!(f, "no {what} is called {name:?}"),
            Self::Missing(what) => write!(f, "{what} is missing"),
            Self::Superfluous(word) => write!(f, "{word:?} is one too many"),
            Self::Range(text) => write!(f, "{text:?} is no number or range A..B"),
            Self::Unreachable(text) => write!(f, "nothing is in the range {text:?}: the rule is never reached"),
            Self::Bytes(collective) => write!(f, "{collective} is not chosen by bytes: not all ranks know any"),
            Self::Operation(collective) => write!(f, "{collective} has no operation that could commute"),
            Self::Unfit { algorithm, why } => write!(f, "{algorithm} {why}"),
            Self::Overlaps(line) => write!(f, "line {line} says something about some of these calls"),
            Self::TooMany(too_many) => too_many.fmt(f),
        }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.origin, self.line, self.fault)
    }
}

impl std::error::Error for TableError {}

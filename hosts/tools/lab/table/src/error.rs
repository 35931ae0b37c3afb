//! The error of a table: what is wrong, and in which line.

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
    /// The first line is not the header of the format.
    Header,
    /// An unknown word.
    Unknown {
        /// What the word should name.
        what: &'static str,
        /// The word.
        name: String,
    },
    /// Something is missing.
    Missing(&'static str),
    /// A condition for the second time, or words after the algorithm.
    Superfluous(String),
    /// Not a number or range, where one must be.
    Range(String),
    /// An empty range: the rule is never reached.
    Unreachable(String),
    /// This collective can't have a condition on bytes: not all ranks know them, or it has no bytes.
    Bytes(Collective),
    /// A condition on commutativity, for a collective without a reduction's operation.
    Operation(Collective),
    /// The algorithm does not apply to all calls that the rule matches.
    Unfit {
        /// Its name.
        algorithm: String,
        /// Why not.
        why: Unfit,
    },
    /// An earlier rule matches some of these calls, too.
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
            Self::Range(text) => write!(f, "{text:?} is not a number or range A..B"),
            Self::Unreachable(text) => write!(f, "nothing is in the range {text:?}: the rule is never reached"),
            Self::Bytes(collective) => write!(f, "{collective} is not chosen by bytes: not all ranks know any"),
            Self::Operation(collective) => write!(f, "{collective} has no operation that could commute"),
            Self::Unfit { algorithm, why } => write!(f, "{algorithm} {why}"),
            Self::Overlaps(line) => write!(f, "line {line} has a rule for some of these calls"),
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

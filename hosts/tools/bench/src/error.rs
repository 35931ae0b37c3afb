//! What ends the program early.

use std::fmt;
use std::io;
use std::path::Path;

/// A failure, in words for the user.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Any failure, in words.
    Words(String),
    /// A report could not be read or written.
    Json(serde_json::Error),
}

impl Failure {
    /// A file that could not be used.
    pub(crate) fn file(what: &str, path: &Path, error: &io::Error) -> Self {
        Self::Words(format!("{what} {}: {error}", path.display()))
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => f.write_str(words),
            Self::Json(error) => write!(f, "not a report of this program: {error}"),
        }
    }
}

//! What a team of `unisono check --random` is told.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// What a team runs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Programs {
    pub(super) source: Source,
    /// Time for a step of a program.
    pub(super) limit: Duration,
    /// Where ranks leave their reports.
    pub(super) reports: PathBuf,
}

/// Where programs come from.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum Source {
    /// This one, in its text.
    Text(String),
    /// Drawn from this seed and those that follow, for so long.
    Seeds(u64, Duration),
}

//! The job of a team of `unisono check --random`.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// The programs that a team runs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Programs {
    pub(super) source: Source,
    /// The bound of time for a step of a program.
    pub(super) limit: Duration,
    /// The folder of the ranks' reports.
    pub(super) reports: PathBuf,
}

/// The source of programs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) enum Source {
    /// The program whose text is in this file. (It may be longer than a variable of the environment, in which jobs travel.)
    File(PathBuf),
    /// Programs drawn from this seed and the following ones, for a time.
    Seeds(u64, Duration),
}

//! What ends the program early.

use std::fmt;
use unisono_kernel::error::{Error, Refusal};
use unisono_kernel::msg::PlanError;
use unisono_posix::PosixError;

/// Why a subcommand failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A collective failed.
    Call(Error),
    /// The machine refused something.
    Host(PosixError),
    /// No algorithm over messages could be planned.
    Plan(PlanError),
    /// Anything else, in words.
    Words(String),
    /// The reason was printed already; only the exit code is left.
    Silent(u8),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(e) => e.fmt(f),
            Self::Host(e) => e.fmt(f),
            Self::Plan(e) => e.fmt(f),
            Self::Words(words) => f.write_str(words),
            Self::Silent(code) => write!(f, "exit code {code}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::Call(e)
    }
}
impl From<Refusal> for Failure {
    fn from(e: Refusal) -> Self {
        Self::Call(Error::Refused(e))
    }
}
impl From<PosixError> for Failure {
    fn from(e: PosixError) -> Self {
        Self::Host(e)
    }
}
impl From<PlanError> for Failure {
    fn from(e: PlanError) -> Self {
        Self::Plan(e)
    }
}
impl From<unisono_model::ModelError> for Failure {
    fn from(e: unisono_model::ModelError) -> Self {
        Self::Words(e.to_string())
    }
}
impl From<unisono_plot::PlotError> for Failure {
    fn from(e: unisono_plot::PlotError) -> Self {
        Self::Words(e.to_string())
    }
}
impl From<unisono_measure::MeasureError> for Failure {
    fn from(e: unisono_measure::MeasureError) -> Self {
        Self::Words(e.to_string())
    }
}
impl From<fmt::Error> for Failure {
    fn from(e: fmt::Error) -> Self {
        Self::Words(e.to_string())
    }
}
impl From<serde_json::Error> for Failure {
    fn from(e: serde_json::Error) -> Self {
        Self::Words(format!("JSON: {e}"))
    }
}

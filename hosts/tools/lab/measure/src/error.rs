//! Why a measurement was not made.

use std::fmt;
use unisono_kernel::Rank;
use unisono_kernel::error::PollError;
use unisono_model::ModelError;

/// Why a measurement was not made.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MeasureError {
    /// Too few samples, or times that can't be parameters.
    Model(ModelError),
    /// A message failed.
    Poll(Rank, PollError),
    /// A rank did not reach the end of its script.
    Stuck(String),
    /// A thread panicked.
    Panicked(Rank),
    /// The MPI failed, or one of the job's messages.
    Job(String),
    /// More ranks take part than the job has.
    Ranks {
        /// The number of ranks that take part.
        wanted: u32,
        /// The number of ranks of the job.
        are: u32,
    },
    /// At too few lengths the interval between messages was longer than a process is busy with each: the network's gap
    /// can't be told from the processes' pace.
    Hidden {
        /// The number of lengths at which it was longer.
        lengths: usize,
        /// The number that is needed.
        least: usize,
    },
}

impl From<ModelError> for MeasureError {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(error) => error.fmt(f),
            Self::Poll(rank, error) => write!(f, "rank {rank}: {error}"),
            Self::Stuck(who) => write!(f, "the simulation did not end: {who}"),
            Self::Panicked(rank) => write!(f, "rank {rank} panicked"),
            Self::Job(why) => f.write_str(why),
            Self::Ranks { wanted, are } => write!(f, "ranks of the job are {are}, must be at least {wanted}"),
            Self::Hidden { lengths, least } => write!(
                f,
                "lengths whose messages follow each other at the network's pace are {lengths}, must be at least {least}: \
                 the processes are slower than the network, or disturbed"
            ),
        }
    }
}

impl std::error::Error for MeasureError {}

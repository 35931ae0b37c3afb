//! The forms of a call: blocking, nonblocking, persistent.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use unisono_kernel::call::Call;
use unisono_kernel::comm::Communicator;
use unisono_kernel::error::Error;
use unisono_posix::Posix;

/// The form in which a collective is called.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// A call that returns when it is complete
    #[default]
    Blocking,
    /// Start, then wait
    Nonblocking,
    /// Initialise once, then start and wait
    Persistent,
}

impl Form {
    pub(crate) const ALL: [Self; 3] = [Self::Blocking, Self::Nonblocking, Self::Persistent];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Nonblocking => "nonblocking",
            Self::Persistent => "persistent",
        }
    }

    /// One operation in this form, from its initialisation until it is complete.
    pub(crate) fn run(self, comm: &mut Communicator<Posix>, call: Call<'_>) -> Result<(), Error> {
        match self {
            Self::Blocking => comm.run(&call).map(drop),
            Self::Nonblocking => comm.scope(|scope| {
                let request = scope.start(call)?;
                scope.wait(request)
            }),
            Self::Persistent => comm.scope(|scope| {
                let persistent = scope.init(call)?;
                let request = scope.restart(persistent)?;
                scope.wait(request)
            }),
        }
    }
}

//! A way to make an operation: the kernel's machine, or a loop written by hand.

use super::handwritten::HandWritten;
use super::subject::Subject;
use crate::error::Failure;
use crate::job::Team;
use unisono_kernel::Rank;
use unisono_kernel::driver::Communicator;
use unisono_kernel::error::Error;
use unisono_posix::{Joined, Posix};

/// A subject that is ready to be called.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) subject: Subject,
    hand: Option<HandWritten>,
}

impl Contender {
    /// Makes ready, and checks results from every root.
    pub(crate) fn join(team: &mut Team, joined: &mut Joined, subject: Subject) -> Result<Self, Failure> {
        let hand = subject.is_hand_written().map(|promises| HandWritten::join(team, promises)).transpose()?;
        let mut own = Self { subject, hand };
        own.verify(team, joined)?;
        Ok(own)
    }

    /// Checks results from every root.
    pub(crate) fn verify(&mut self, team: &mut Team, joined: &mut Joined) -> Result<(), Failure> {
        let subject = self.subject.clone();
        subject.verify(team, joined, |comm, buffer, root| self.call(comm, buffer, root))
    }

    /// One operation on `buffer`.
    #[inline]
    pub(crate) fn call(&mut self, comm: &mut Communicator<Posix>, buffer: &mut [u8], root: Rank) -> Result<(), Error> {
        match &mut self.hand {
            Some(hand) => hand.call(buffer),
            None => self.subject.call(comm, buffer, root),
        }
    }
}

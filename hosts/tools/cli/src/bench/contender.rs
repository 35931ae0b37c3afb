//! What a row of the benchmark measures: the kernel's machine in one of its forms, or a loop written by hand.

use super::handwritten::HandWritten;
use super::rival::Rival;
use super::subject::{ByHand, Subject};
use crate::error::Failure;
use crate::form::Form;
use crate::team::Team;
use unisono_kernel::Rank;
use unisono_kernel::call::Call;
use unisono_kernel::call::any::Any;
use unisono_kernel::comm::Communicator;
use unisono_kernel::error::Error;
use unisono_posix::{Joined, Posix};

/// A loop that is written by hand.
#[derive(Debug)]
enum Hand {
    Allreduce(HandWritten),
    Rival(Rival),
}

impl Hand {
    fn join(team: &mut Team, which: ByHand) -> Result<Self, Failure> {
        Ok(match which {
            ByHand::Allreduce { guarantees } => Self::Allreduce(HandWritten::join(team, guarantees)?),
            ByHand::Rival => Self::Rival(Rival::join(team)?),
        })
    }

    #[inline]
    fn call(&mut self, comm: &mut Communicator<Posix>, buffer: &mut [u8], root: Rank) -> Result<(), Error> {
        match self {
            Self::Allreduce(hand) => hand.call(buffer),
            Self::Rival(rival) => rival.call(comm, buffer, root),
        }
    }
}

/// A subject that is ready to be called.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) subject: Subject,
    pub(crate) form: Form,
    hand: Option<Hand>,
    /// By root: the address of the buffer that a persistent operation was planned for, and its machine.
    planned: Vec<Option<(*const u8, Any<'static>)>>,
}

impl Contender {
    /// Makes a subject ready, and checks results from every root. A loop that is written by hand is always blocking.
    pub(crate) fn join(team: &mut Team, joined: &mut Joined, subject: Subject, form: Form) -> Result<Self, Failure> {
        let subject = subject.on(team.rank());
        let hand = subject.by_hand().map(|which| Hand::join(team, which)).transpose()?;
        let form = if hand.is_some() { Form::Blocking } else { form };
        let planned = (0..team.size()).map(|_| None).collect();
        let mut own = Self { subject, form, hand, planned };
        own.verify(team, joined)?;
        Ok(own)
    }

    /// Checks results from every root.
    pub(crate) fn verify(&mut self, team: &mut Team, joined: &mut Joined) -> Result<(), Failure> {
        let subject = self.subject.clone();
        subject.verify(team, joined, |comm, buffer, root| self.call(comm, buffer, root))
    }

    /// One operation on `buffer`. A persistent one is initialised when a buffer is used for the first time.
    #[inline]
    pub(crate) fn call(&mut self, comm: &mut Communicator<Posix>, buffer: &mut [u8], root: Rank) -> Result<(), Error> {
        match (&mut self.hand, self.form) {
            (Some(hand), _) => hand.call(comm, buffer, root),
            (None, Form::Blocking) => self.subject.call(comm, buffer, root),
            (None, Form::Nonblocking) => {
                let call = self.subject.describe(comm.rank(), buffer, root)?;
                Form::Nonblocking.run(comm, call)
            }
            (None, Form::Persistent) => self.again(comm, buffer, root),
        }
    }

    /// Starts the persistent operation of this buffer and root, and waits for it.
    #[inline]
    fn again(&mut self, comm: &mut Communicator<Posix>, buffer: &mut [u8], root: Rank) -> Result<(), Error> {
        let address = buffer.as_ptr();
        let Some(planned) = self.planned.get_mut(root as usize) else { return Ok(()) };
        let machine = match planned {
            Some((planned, machine)) if *planned == address => machine,
            _ => {
                let call = self.subject.describe(comm.rank(), buffer, root)?;
                // SAFETY: only the lifetime changes; the machine is polled below alone, while the buffer of this
                // address, whose length is the subject's, is borrowed. The lists of its blocks are the subject's, which
                // lives as long as the machine and is not changed.
                let call = unsafe { core::mem::transmute::<Call<'_>, Call<'static>>(call) };
                &mut planned.insert((address, comm.build(0, |me| call.build(me))?)).1
            }
        };
        comm.start(machine)?;
        comm.complete(machine).map(drop)
    }
}

//! The blocking loop: polls a machine, and waits between two polls.

use super::Machine;
use crate::error::{PollError, WaitError};
use crate::machine::poll::Poll;
use crate::machine::transport::{Observe, Wait};

/// Why [`run`] ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// A poll failed.
    Poll(PollError),
    /// A wait failed.
    Wait(WaitError),
}

/// Polls `machine` until it is done, and waits between two polls: a blocking call.
///
/// # Errors
/// The first failure of a poll or a wait; the machine must not be polled after it.
#[inline(always)]
pub fn run<X, M, W>(machine: &mut M, x: &mut X, wait: &mut W) -> Result<(), Stop>
where
    X: Observe + ?Sized,
    M: Machine<X> + ?Sized,
    W: Wait<X> + ?Sized,
{
    loop {
        // Not `map_err(..)?`: that copies what is awaited, before anything is known to be.
        match machine.poll(x) {
            Ok(Poll::Done) => return Ok(()),
            Ok(Poll::Wait(on)) => {
                x.idle();
                wait.wait(x, &on).map_err(Stop::Wait)?
            }
            Err(error) => return Err(Stop::Poll(error)),
        }
    }
}

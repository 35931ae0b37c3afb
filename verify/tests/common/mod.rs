//! Functions for tests of bad calls.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use unisono_kernel::error::{Cause, Error, PollError, Refusal};

/// Longer than any body takes, also on a slow machine beside other work.
const NEVER: Duration = Duration::from_secs(180);

/// Runs `body`; a body that never returns fails the test instead of hanging it.
pub(crate) fn bounded<A: Send + 'static>(body: impl FnOnce() -> A + Send + 'static) -> A {
    let (send, receive) = channel();
    let thread = std::thread::spawn(move || drop(send.send(body())));
    match receive.recv_timeout(NEVER) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => panic!("hangs: some rank never returned"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!(),
        },
    }
}

/// The refused argument in an error, of this rank or of the rank that poisoned the communicator.
#[allow(dead_code, reason = "not every test is refused something")]
pub(crate) fn refusal(error: Error) -> Option<Refusal> {
    match error {
        Error::Refused(refusal) | Error::Poll(PollError::Mismatch { refusal, .. }) => Some(refusal),
        Error::Poisoned(poison) => match poison.cause {
            Cause::Refused(refusal) => Some(refusal),
            _ => None,
        },
        _ => None,
    }
}

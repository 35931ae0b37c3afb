//! What tests of bad calls share.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use unisono_kernel::error::{Cause, Error, PollError, Refusal};

/// Runs `body`; a body that never returns fails the test instead of hanging it.
pub(crate) fn bounded<A: Send + 'static>(body: impl FnOnce() -> A + Send + 'static) -> A {
    let (send, receive) = channel();
    let thread = std::thread::spawn(move || drop(send.send(body())));
    match receive.recv_timeout(Duration::from_secs(20)) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => panic!("hangs: some rank never returned"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!(),
        },
    }
}

/// What an error says of the argument that was refused, here or by the rank that poisoned.
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

//! One line on stderr where the system refuses something.
//!
//! The one place of this library that prints. It is a host below a program that knows nothing of it: there is
//! nobody else to tell why communicators stay with the underlying MPI.

use core::fmt;
use std::io::Write;
use unisono_kernel::region::{Counter, Word};

/// What was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The value of a variable of the environment.
    Setting,
    /// A decision table.
    Table,
    /// To make this process's arena.
    Arena,
    /// To map another process's arena.
    Peer,
    /// To say which node this is.
    Node,
    /// To give memory back.
    Punch,
    /// A handle on a communicator.
    Handle,
}

const CAUSES: usize = 7;

static SAID: [Word; CAUSES] = [const { Word::zero() }; CAUSES];

/// Prints one line, once per process and cause. A closed stderr is no error.
pub fn once(cause: Cause, text: impl fmt::Display) {
    let first = SAID.get(cause as usize).is_some_and(|said| said.claim(0, 1).is(0));
    if first {
        // Whole, so that the lines of several ranks do not mix.
        let line = format!("unisono: process {}: {text}\n", std::process::id());
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

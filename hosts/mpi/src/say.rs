//! One line on stderr if the system refuses something.
//!
//! Nothing else in this library prints. It runs below a program that does not know of it, so stderr is the only place
//! to say why communicators stay with the underlying MPI.

use core::fmt;
use std::io::Write;
use unisono_kernel::region::{Counter, Word};

/// What was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The value of an environment variable.
    Setting,
    /// A decision table.
    Table,
    /// Making this process's arena.
    Arena,
    /// Mapping another process's arena.
    Peer,
    /// Finding out which node this is.
    Node,
    /// Giving memory back.
    Punch,
    /// Memory for a communicator's handle.
    Handle,
    /// Reading another process's memory.
    Copy,
    /// Placing memory on a NUMA node.
    Place,
    /// The switches that connect nodes.
    Network,
    /// The heap's pages.
    Pages,
}

const CAUSES: usize = 11;

static SAID: [Word; CAUSES] = [const { Word::zero() }; CAUSES];

/// Another rank prints it: this process does not, now or later.
pub fn settled(cause: Cause) {
    let _by_another = is_first(cause);
}

/// Is this the first time in this process?
fn is_first(cause: Cause) -> bool {
    SAID.get(cause as usize).is_some_and(|said| said.claim(0, 1).is(0))
}

/// Prints one line, once for each process and cause. A closed stderr is ignored.
pub fn once(cause: Cause, text: impl fmt::Display) {
    if is_first(cause) {
        // In one call, so that the lines of several ranks do not mix.
        let line = format!("unisono: process {}: {text}\n", std::process::id());
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

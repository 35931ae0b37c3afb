//! What the program says on standard output. `println!` panics where it can't write; here that is a [`Failure`].

use crate::error::Failure;
use std::fmt;
use std::io::{self, ErrorKind, Write};

/// Like `print!`, with an answer.
macro_rules! out {
    ($($words:tt)*) => { $crate::out::write(format_args!($($words)*)) };
}

/// Like `println!`, with an answer.
macro_rules! outln {
    ($($words:tt)*) => { $crate::out::write(format_args!("{}\n", format_args!($($words)*))) };
}

pub(crate) use {out, outln};

pub(crate) fn write(words: fmt::Arguments<'_>) -> Result<(), Failure> {
    answer(io::stdout().write_fmt(words))
}

/// Writes what is held back: at the program's end, where the standard library would forget an error.
pub(crate) fn finish() -> Result<(), Failure> {
    answer(io::stdout().flush())
}

/// A reader who is gone, as in `| head`, has what it wanted: no error. And rank 0, which speaks, must not leave the other
/// ranks for it: they would call it dead.
fn answer(done: io::Result<()>) -> Result<(), Failure> {
    match done {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::Words(format!("standard output: {e}"))),
        _ => Ok(()),
    }
}

//! What the program says on standard output. `println!` panics where it can't write; here that is a [`Failure`].

use crate::error::Failure;
use std::fmt;
use std::io::{self, ErrorKind, Write};

/// Like `print!`, but returns a result.
macro_rules! out {
    ($($words:tt)*) => { $crate::out::write(format_args!($($words)*)) };
}

/// Like `println!`, but returns a result.
macro_rules! outln {
    ($($words:tt)*) => { $crate::out::write(format_args!("{}\n", format_args!($($words)*))) };
}

pub(crate) use {out, outln};

pub(crate) fn write(words: fmt::Arguments<'_>) -> Result<(), Failure> {
    answer(io::stdout().write_fmt(words))
}

/// Writes what is still buffered. To be called at the program's end, where the standard library would ignore an error.
pub(crate) fn finish() -> Result<(), Failure> {
    answer(io::stdout().flush())
}

/// A reader that has closed the pipe, as in `| head`, has what it wanted: this is not an error. The report's files are
/// written all the same.
fn answer(done: io::Result<()>) -> Result<(), Failure> {
    match done {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::Words(format!("standard output: {e}"))),
        _ => Ok(()),
    }
}

//! Unisono for C: what `include/unisono.h` declares.
//!
//! The header is written by hand; tests compare it with this crate: numbers, sizes of the
//! structs, exported names, parameters of the collectives' forms. Every function checks its pointers for null and answers
//! an error number; nothing here panics, prints or keeps state beyond the handle, and per thread the last error and
//! where it has started requests.
//!
//! | module | what |
//! |---|---|
//! | [`error`] | the fixed numbers, and the text of the last error |
//! | [`params`] | what a segment is made for |
//! | [`comm`] | segments and handles: create, attach, free |
//! | [`waiting`] | how handles wait, and for how long |
//! | [`moves`] | barrier, broadcast, scatter, gather, allgather, alltoall |
//! | [`datatype`] | datatypes with holes, as handles |
//! | [`typed`] | alltoallw, and moves of elements of a datatype |
//! | [`reductions`] | reduce, allreduce, reduce_scatter, scan, exscan |
//! | [`operation`] | their datatypes and operations |
//! | [`ran`] | which algorithm ran a call |
//! | [`request`] | their nonblocking and persistent forms: start, test, wait, free |

mod arguments;
pub mod comm;
pub mod datatype;
pub mod error;
mod forms;
mod heap;
pub mod moves;
pub mod operation;
pub mod params;
mod progress;
pub mod ran;
pub mod reductions;
pub mod request;
pub mod typed;
pub mod waiting;

const fn number(digits: &str) -> u32 {
    let (digits, mut value, mut i) = (digits.as_bytes(), 0, 0);
    while i < digits.len() {
        value = 10 * value + (digits[i] - b'0') as u32;
        i += 1;
    }
    value
}

/// The library's version, as `major * 10000 + minor * 100 + patch`.
pub const VERSION: u32 = number(env!("CARGO_PKG_VERSION_MAJOR")) * 10000
    + number(env!("CARGO_PKG_VERSION_MINOR")) * 100
    + number(env!("CARGO_PKG_VERSION_PATCH"));

/// Answers [`VERSION`]: compare it with the header's `UNISONO_VERSION`.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_version() -> u32 {
    VERSION
}

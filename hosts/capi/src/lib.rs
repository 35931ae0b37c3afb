//! Unisono for C: the functions that `include/unisono.h` declares.
//!
//! The header is written by hand; tests compare it with this crate: numbers, sizes of the structs, exported names,
//! parameters of the collectives' forms. Every function checks its pointers for null and returns an error number.
//! Nothing here panics or prints. State is kept in the handle, and for each thread its last error and the communicators
//! on which it has started requests.
//!
//! | module | contents |
//! |---|---|
//! | [`error`] | the fixed numbers, and the text of the last error |
//! | [`params`] | a segment's parameters |
//! | [`comm`] | segments and handles: create, attach, free |
//! | [`waiting`] | how handles wait, and for how long |
//! | [`moves`] | barrier, broadcast, scatter, gather, allgather, alltoall |
//! | [`datatype`] | datatypes with holes, as handles |
//! | [`typed`] | alltoallw, and moves of elements of a datatype |
//! | [`reductions`] | reduce, allreduce, reduce_scatter, scan, exscan |
//! | [`operation`] | datatypes and operations of reductions |
//! | [`ran`] | which algorithm ran a call |
//! | [`request`] | nonblocking and persistent operations: start, test, wait, free |

// Exported names are left out of the unit tests' binary (`not(test)` where they are): each would have all machines that it
// may run compiled, of which these tests run none.

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

/// Returns [`VERSION`], to be compared with the header's `UNISONO_VERSION`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn unisono_version() -> u32 {
    VERSION
}

//! Legal programs of collectives: the ranks' calls, their order, and the data that each rank must receive.
//!
//! A [`Program`] is plain data, with a text ([`text`]) that other interpreters can run too. It says what each call moves
//! and, apart from that, in which order each rank starts, tests and waits: ranks may differ in that as far as MPI lets
//! them ([`legal`]). Every byte that a call sends follows from a rule ([`fill`]), so that each rank knows what it
//! must receive without asking.

pub mod draw;
pub mod fill;
pub mod interpret;
pub mod judge;
pub mod legal;
pub mod lending;
pub mod memory;
pub mod program;
pub mod shrink;
pub mod text;
pub mod threads;
mod turns;

pub use program::{Call, Name, Op, Program, Segment, Shape, Step, Verb};

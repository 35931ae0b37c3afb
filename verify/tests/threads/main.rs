//! The machines between threads, one after the other and against each other: results, bad input, programs that are wrong. One
//! binary, since each of these files needs the same machines compiled.

mod asymmetric;
mod bad_calls;
#[path = "../common/mod.rs"]
mod common;
mod exchange;
mod family;
mod forms;
mod properties;
mod reductions;
mod renewals;
mod requests;
mod wrong_programs;

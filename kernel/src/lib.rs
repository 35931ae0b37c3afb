//! Collective operations as polled state machines.
//!
//! A collective is a small machine that is polled; all that it needs from the world (shared
//! words, bytes, messages, waiting) comes through traits. So the same machine runs between
//! processes on a NUMA server, over messages between servers, inside a model checker and inside
//! a fuzzer.
//!
//! The crate has no `std`, no `alloc`, no operating system, no clock and no threads in it.
//!
//! Read [`machine`] and [`step`] for the contract of a machine, [`region`] for shared memory,
//! [`p2p`] for messages, [`driver`] for what turns machines into calls.
#![no_std]

// Words of a segment are of 64 bits: a flag and what it counts change at once.
#[cfg(not(target_has_atomic = "64"))]
compile_error!("unisono-kernel needs atomic integers of 64 bits, which this target does not have");

#[cfg(test)]
extern crate std;

pub mod algorithm;
pub mod barrier;
pub mod blocks;
pub mod buffer;
pub mod call;
pub mod class;
pub mod collective;
pub mod comm;
pub mod datatype;
pub mod driver;
pub mod error;
pub mod group;
pub mod hier;
pub mod machine;
pub mod msg;
pub mod op;
pub mod p2p;
pub mod pattern;
pub mod region;
pub mod shm;
pub mod step;
pub mod table;
pub mod topology;
pub mod transport;
pub mod wait;

/// Position of a process in its communicator, `0 .. size` (MPI 4.1, 7.1).
pub type Rank = u32;

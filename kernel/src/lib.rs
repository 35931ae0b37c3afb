//! Collective operations as polled state machines.
//!
//! Each process runs its part of a collective as a small state machine, which is polled. All that a machine needs from
//! outside (shared words, bytes, messages, waiting) comes through traits. So the same machine runs between processes on
//! a NUMA server, over messages between servers, inside a model checker and inside a fuzzer.
//!
//! The crate uses neither `std` nor `alloc`, no operating system, no clock and no threads.
//!
//! Read [`machine`] for the contract of a machine, [`region`] for shared memory, [`machine::p2p`] for messages, and
//! [`call`] for how a call runs its machine.
#![no_std]

// Words of a segment have 64 bits, and are read and written as one atomic.
#[cfg(not(target_has_atomic = "64"))]
compile_error!("unisono-kernel needs atomic integers of 64 bits, which this target does not have");

#[cfg(test)]
extern crate std;

pub mod algorithm;
pub mod call;
pub mod class;
pub mod collective;
pub mod comm;
pub mod data;
pub mod error;
pub mod hier;
pub mod machine;
pub mod msg;
pub mod op;
pub mod pattern;
pub mod region;
pub mod shm;
pub mod table;
pub mod topology;

/// Position of a process in its communicator, `0 .. size` (MPI 4.1, 7.1).
pub type Rank = u32;

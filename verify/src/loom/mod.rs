//! Memory orderings under loom: the kernel's machines over words and payload that loom watches.
//!
//! Each [`Protocol`] is a few operations of two or three ranks. Loom runs every interleaving and
//! every value that the C11 model lets a load return, and fails on a race for payload; the seats
//! check the data. A wait gives the execution up (see [`seat`]), so each run also counts the
//! executions in which *all* ranks completed: if there are none, nothing was checked.
//!
//! For every ordering that a protocol needs there is a [`Mutant`] that weakens it and must fail.
//! Failures end in a panic, so models and mutants run as processes of `loom-model`.

mod mail;
pub mod protocols;
pub mod region;
pub mod seat;
pub mod word;

pub use protocols::{FLAWED, PROTOCOLS, Protocol, SPARE};
pub use word::Mutant;

use region::Segment;
use seat::Seat;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use unisono_kernel::region::Layout;

/// The counts of a model's run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// All executions.
    pub executions: u64,
    /// Executions in which every rank completed.
    pub completed: u64,
}

/// Runs all executions of `protocol`.
///
/// # Panics
/// On a race, on wrong data, on a machine's error: the model, or the mutant, is wrong.
pub fn check(protocol: &'static Protocol, mutant: Option<Mutant>) -> Outcome {
    // Plain atomics, not loom's: they count across executions and order nothing in them.
    static EXECUTIONS: AtomicU64 = AtomicU64::new(0);
    static COMPLETED: AtomicU64 = AtomicU64::new(0);
    let layout = Layout::new(protocol.params).expect("model assertion: parameters are good");
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound = protocol.preemptions;
    builder.max_branches = 10_000;
    builder.check(move || {
        EXECUTIONS.fetch_add(1, Ordering::Relaxed);
        let mut segments = Segment::new(&layout, mutant).into_iter().zip(0..layout.ranks()).rev();
        let finished = Arc::new(AtomicU64::new(0));
        let member = move |seat: Option<(Segment, u32)>, finished: Arc<AtomicU64>| {
            let (segment, rank) = seat.expect("model assertion: a segment per rank");
            let mut seat = Seat::new(segment, layout, rank);
            if (protocol.body)(&mut seat).is_ok()
                && finished.fetch_add(1, Ordering::Relaxed) + 1 == u64::from(layout.ranks())
            {
                COMPLETED.fetch_add(1, Ordering::Relaxed);
            }
        };
        // This thread takes rank 0's seat.
        for _ in 1..layout.ranks() {
            let (seat, finished) = (segments.next(), Arc::clone(&finished));
            ::loom::thread::spawn(move || member(seat, finished));
        }
        member(segments.next(), finished);
    });
    Outcome { executions: EXECUTIONS.load(Ordering::Relaxed), completed: COMPLETED.load(Ordering::Relaxed) }
}

//! An allreduce of one `f64` as one would write it by hand: no machine, no checks, no liveness.
//!
//! Two alternating lines per rank; post mine, read all, fold in rank order. It is right for pure
//! sequences of allreduces alone. What the kernel's generality costs is the difference to it.

use crate::error::Failure;
use crate::job::Team;
use unisono_kernel::error::Error;
use unisono_kernel::region::{Flag, Params, Region, Word};
use unisono_posix::Joined;

/// One rank's part, on a segment of its own.
#[derive(Debug)]
pub(crate) struct HandWritten {
    scratch: Joined,
    operation: u64,
}

impl HandWritten {
    pub(crate) fn join(team: &mut Team) -> Result<Self, Failure> {
        Ok(Self { scratch: team.join(Params { lines: 2, ..Params::new(team.size()) })?, operation: 0 })
    }

    /// Sums everyone's `buffer`, in place.
    #[inline]
    pub(crate) fn call(&mut self, buffer: &mut [u8]) -> Result<(), Error> {
        let comm = self.scratch.communicator.comm();
        let (region, me) = (comm.region(), comm.member());
        self.operation += 1;
        let operation = self.operation;
        let line = |rank| {
            let sequence: *const Word = region.flag(me.layout().line(rank, operation));
            // SAFETY: the word behind the sequence word lies in the same line of 128 bytes; R1, R4.
            (unsafe { &*sequence }, unsafe { &*sequence.wrapping_add(1) })
        };
        let Some(mine) = buffer.first_chunk_mut() else { return Ok(()) };
        let (sequence, value) = line(me.rank());
        value.store_payload(u64::from_ne_bytes(*mine));
        sequence.store_release(operation);
        let mut sum = 0.0;
        for rank in 0..me.size() {
            let (sequence, value) = line(rank);
            while !sequence.load_acquire().at_least(operation) {
                if self.scratch.waiting.yields {
                    std::thread::yield_now();
                }
            }
            sum += f64::from_bits(value.load_payload());
        }
        *mine = sum.to_ne_bytes();
        Ok(())
    }
}

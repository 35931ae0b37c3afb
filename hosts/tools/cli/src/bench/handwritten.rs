//! An allreduce of one `f64` as one would write it by hand: the difference in time is the cost of the kernel's
//! generality.
//!
//! * `hand-written` gives the guarantees of the kernel's machine, for this one case: a line that names
//!   its operation and its length, bounds, acknowledgement, poison, liveness.
//! * `sketch` gives none: two alternating lines per rank, correct for sequences of allreduces
//!   alone; a dead peer hangs it. The difference between the two is the cost of the guarantees.

use super::bare::Bare;
use crate::error::Failure;
use crate::team::Team;
use unisono_kernel::error::Error;
use unisono_kernel::region::{Flag, Params, Region, Word, state};

/// The head of a line: an allreduce of 8 bytes.
const HEAD: u64 = 2 << 56 | 8;

/// One rank's part, on a segment of its own.
#[derive(Debug)]
pub(crate) struct HandWritten {
    on: Bare,
    promises: bool,
    operation: u64,
    acknowledged: u64,
}

impl HandWritten {
    pub(crate) fn join(team: &mut Team, promises: bool) -> Result<Self, Failure> {
        let lines = if promises { Params::new(team.size()).lines } else { 2 };
        let on = Bare::join(team, Params { lines, ..Params::new(team.size()) })?;
        Ok(Self { on, promises, operation: 0, acknowledged: 0 })
    }

    /// Sums all ranks' `buffer`, in place.
    #[inline]
    pub(crate) fn call(&mut self, buffer: &mut [u8]) -> Result<(), Error> {
        let Some(mine) = buffer.first_chunk_mut() else { return Ok(()) };
        if self.promises { self.promised(mine) } else { self.sketched(mine) }
    }

    /// The sequence word of a line, its head and its payload.
    #[inline]
    fn line(&self, rank: u32) -> [&Word; 3] {
        let sequence: *const Word = self.on.region.flag(self.on.layout.line(rank, self.operation));
        // SAFETY: the words after the sequence word lie in the same line of 128 bytes; R1, R4.
        [0, 1, 2].map(|word| unsafe { &*sequence.wrapping_add(word) })
    }

    #[inline]
    fn sketched(&mut self, mine: &mut [u8; 8]) -> Result<(), Error> {
        self.operation += 1;
        let [sequence, value, _] = self.line(self.on.rank);
        value.store_payload(u64::from_ne_bytes(*mine));
        sequence.store_release(self.operation);
        let mut sum = 0.0;
        for rank in 0..self.on.layout.ranks() {
            let [sequence, value, _] = self.line(rank);
            while !sequence.load_acquire().at_least(self.operation) {
                if self.on.joined.waiting.yields {
                    std::thread::yield_now();
                }
            }
            sum += f64::from_bits(value.load_payload());
        }
        *mine = sum.to_ne_bytes();
        Ok(())
    }

    #[inline]
    fn promised(&mut self, mine: &mut [u8; 8]) -> Result<(), Error> {
        if let Some(poison) = state::look(&self.on.region, &self.on.layout) {
            return Err(Error::Poisoned(poison));
        }
        self.operation += 1;
        let lines = u64::from(self.on.layout.params().lines);
        if self.operation > self.acknowledged + lines {
            for rank in 0..self.on.layout.ranks() {
                self.on.wait(self.on.layout.done(rank), self.operation - lines, rank)?;
            }
        }
        let [sequence, head, value] = self.line(self.on.rank);
        head.store_payload(HEAD);
        value.store_payload(u64::from_ne_bytes(*mine));
        sequence.store_release(self.operation);
        let mut sum = 0.0;
        for rank in 0..self.on.layout.ranks() {
            self.on.wait(self.on.layout.line(rank, self.operation), self.operation, rank)?;
            let [sequence, head, value] = self.line(rank);
            if !sequence.load_acquire().is(self.operation) || head.load_payload() != HEAD {
                return Err(Error::Abandoned);
            }
            sum += f64::from_bits(value.load_payload());
        }
        *mine = sum.to_ne_bytes();
        self.acknowledged = self.operation - 1;
        self.on.region.publish(self.on.layout.done(self.on.rank), self.operation);
        Ok(())
    }
}

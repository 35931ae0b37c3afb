//! The broadcast of MVAPICH, as paper P1 describes it in section 3, to compare with (its figure 12).
//!
//! Each process has a queue of w = 128 slots, each with f = 8192 bytes and the number of the fragment with which it was filled
//! last. The root copies fragments into the slots of its queue in turn, and sets their numbers; the others wait for the number
//! of the next fragment, and copy it out. When all slots are full, all processes meet in a barrier, and begin with the first slot.
//! Notices go to all at once (a flat tree); the barrier is ours.

use super::bare::Bare;
use crate::error::Failure;
use crate::team::Team;
use unisono_kernel::Rank;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::Error;
use unisono_kernel::region::{Params, Region};
use unisono_posix::Posix;

/// w, and f.
const SLOTS: u32 = 128;
const FRAGMENT: usize = 8192;
/// One rank's part, on a segment of its own.
#[derive(Debug)]
pub(crate) struct Rival {
    on: Bare,
    /// The number of the last fragment; the first is 1.
    written: u64,
}

impl Rival {
    pub(crate) fn join(team: &mut Team) -> Result<Self, Failure> {
        let params =
            Params { lines: SLOTS, queue_slots: SLOTS, queue_fragment: FRAGMENT as u64, ..Params::new(team.size()) };
        Ok(Self { on: Bare::join(team, params)?, written: 0 })
    }

    /// `buffer` goes from `root` to everyone; `comm` are the same processes, for the barrier.
    pub(crate) fn call(&mut self, comm: &mut Communicator<Posix>, buffer: &mut [u8], root: Rank) -> Result<(), Error> {
        // A message of no bytes is one fragment of none.
        for index in 0..buffer.len().div_ceil(FRAGMENT).max(1) {
            let fragment = buffer.chunks_mut(FRAGMENT).nth(index).unwrap_or_default();
            let slot = self.written % u64::from(SLOTS);
            if slot == 0 && self.written > 0 {
                comm.barrier()?;
            }
            self.written += 1;
            // The slot's number lies in the line of the same index.
            let number = self.on.layout.line(root, slot);
            let at = self.on.layout.slot(root, slot).part(0, fragment.len() as u64);
            if root == self.on.rank {
                // SAFETY: all ranks have read what the slot held before the barrier; it is this rank's to write.
                unsafe { self.on.region.write(at, Buf::of(fragment)) };
                // publishes: the fragment
                self.on.region.publish(number, self.written);
            } else {
                // pairs with: publish
                self.on.wait(number, self.written, root)?;
                // SAFETY: published, and not written again before the next barrier.
                unsafe { self.on.region.read(at, Buf::of_mut(fragment)) };
            }
        }
        Ok(())
    }
}

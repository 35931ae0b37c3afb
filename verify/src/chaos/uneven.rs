//! Alltoallv whose blocks have a length of their own for each pair and each direction.

use crate::explore::forever;
use crate::oracle::mix;
use unisono_kernel::Rank;
use unisono_kernel::comm::Member;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::Datatype;
use unisono_kernel::error::Refusal;
use unisono_kernel::region::layout::LINE_PAYLOAD;
use unisono_kernel::shm::alltoall::pairwise::alltoallv;
use unisono_kernel::shm::engine::pairwise::Pairwise;

/// The lengths of a call's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Uneven(pub(super) u8);

impl Uneven {
    /// Bytes of the block from `from` to `to`: often 0, else around a bound of lines and of slots of so many bytes. The
    /// blocks of some processes are all short.
    fn len(self, slot: u64, from: Rank, to: Rank) -> u64 {
        let pair = u64::from(self.0) << 32 | u64::from(from) << 8 | u64::from(to);
        let number = |salt: u64, below| mix(pair | salt << 16) % below;
        let longest = 2 + mix(u64::from(self.0) << 16 | u64::from(from)) % 7;
        match number(1, longest) {
            0 | 1 => 0,
            2 => 1 + number(2, 16),
            3 => LINE_PAYLOAD / (1 + number(2, 4)),
            4 => slot / (1 + number(2, 5)),
            5 => slot - 8 + number(2, 16),
            _ => slot * (1 + number(2, 4)) + number(3, 9),
        }
    }

    fn sent(self, slot: u64, ranks: u32, rank: Rank) -> impl Iterator<Item = u64> {
        (0..ranks).map(move |to| self.len(slot, rank, to))
    }

    fn received(self, slot: u64, ranks: u32, rank: Rank) -> impl Iterator<Item = u64> {
        (0..ranks).map(move |from| self.len(slot, from, rank))
    }

    /// A process's memory before or after the call: its send blocks, then its receive blocks; `data(from, to, bytes)`
    /// is a block.
    pub(super) fn fill(
        self,
        ranks: u32,
        slot: u64,
        rank: Rank,
        received: impl Fn(Rank, u64) -> Vec<u8>,
        sent: impl Fn(Rank, u64) -> Vec<u8>,
    ) -> Vec<u8> {
        let sent = (0..ranks).zip(self.sent(slot, ranks, rank)).flat_map(|(to, len)| sent(to, len));
        let received = (0..ranks).zip(self.received(slot, ranks, rank)).flat_map(|(from, len)| received(from, len));
        sent.chain(received).collect()
    }

    /// The process's machine, on such memory.
    pub(super) fn machine(self, me: &Member, memory: *mut u8) -> Result<Pairwise<'static>, Refusal> {
        let (slot, ranks, rank) = (me.layout().params().queue_fragment, me.size(), me.rank());
        let blocks = |at: *mut u8, counts: Vec<u64>| {
            let places = (0..counts.len()).map(|rank| counts[..rank].iter().sum()).collect();
            let memory = Buf::new(at, counts.iter().sum::<u64>() as usize);
            // SAFETY: the memory is as long as `fill`'s, outlives the machine, and one poll at a time touches it.
            unsafe { Blocks::vary(memory, forever(counts), forever(places), Datatype::BYTE) }
        };
        let behind = memory.wrapping_add(self.sent(slot, ranks, rank).sum::<u64>() as usize);
        let send = blocks(memory, self.sent(slot, ranks, rank).collect())?;
        alltoallv(me, Some(send), blocks(behind, self.received(slot, ranks, rank).collect())?)
    }
}

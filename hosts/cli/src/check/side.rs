//! What a rank sends or receives: blocks in memory of its own, of one of three datatypes.

use unisono_kernel::blocks::Blocks;
use unisono_kernel::buffer::Buf;
use unisono_kernel::datatype::{Data, Datatype};
use unisono_kernel::error::Refusal;

/// What nobody has written.
const BLANK: u8 = 0xEE;

/// How the bytes of a side lie in memory: byte i of all is the last of `stride` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// One after the other.
    Bytes,
    /// Every second one: a vector, where the side is one block.
    Second,
    /// Every third one: an indexed type.
    Third,
}

impl Type {
    const fn stride(self) -> usize {
        match self {
            Self::Bytes => 1,
            Self::Second => 2,
            Self::Third => 3,
        }
    }

    /// One byte, behind its holes.
    const fn datatype(self) -> Datatype<'static> {
        match self {
            Self::Bytes => Datatype::BYTE,
            Self::Second => Datatype::Indexed { block: 1, displacements: &[1] },
            Self::Third => Datatype::Indexed { block: 1, displacements: &[2] },
        }
    }
}

/// Blocks in one piece of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Side {
    memory: Vec<u8>,
    counts: Vec<u64>,
    /// Where the blocks lie, in bytes of the packed order; none: one after the other.
    places: Option<Vec<u64>>,
    kind: Type,
}

impl Side {
    /// One block.
    pub(super) fn one(count: u64, kind: Type) -> Self {
        Self::new(vec![count], None, kind)
    }

    /// A block per rank: one after the other, or in reverse order with gaps between them.
    pub(super) fn many(counts: &[u64], gaps: bool, kind: Type) -> Self {
        const GAP: u64 = 5;
        let mut end = 3;
        let mut place = |count: &u64| {
            let begin = end;
            end += count + GAP;
            begin
        };
        let mut places: Vec<u64> = counts.iter().rev().map(&mut place).collect();
        places.reverse();
        Self::new(counts.into(), gaps.then_some(places), kind)
    }

    fn new(counts: Vec<u64>, places: Option<Vec<u64>>, kind: Type) -> Self {
        let packed = match &places {
            Some(places) => places.iter().zip(&counts).map(|(place, count)| place + count).max().unwrap_or(0),
            None => counts.iter().sum(),
        };
        Self { memory: vec![BLANK; packed as usize * kind.stride()], counts, places, kind }
    }

    /// The same with these bytes in a block.
    pub(super) fn with(mut self, block: usize, bytes: &[u8]) -> Self {
        let begin = match &self.places {
            Some(places) => places[block],
            None => self.counts[..block].iter().sum(),
        };
        let stride = self.kind.stride();
        for (at, byte) in (begin as usize..).zip(bytes) {
            self.memory[(at + 1) * stride - 1] = *byte;
        }
        self
    }

    /// The only block, as data.
    pub(super) fn data(&mut self) -> Result<Data<'_>, Refusal> {
        let count = self.counts[0];
        if self.kind == Type::Second && count > 0 {
            let vector = Datatype::Vector { blocks: count, block: 1, stride: 2 };
            return Data::typed(&mut self.memory[1..], 1, vector);
        }
        Data::typed(&mut self.memory, count, self.kind.datatype())
    }

    /// All blocks.
    pub(super) fn blocks(&mut self) -> Result<Blocks<'_>, Refusal> {
        let (memory, datatype) = (Buf::of_mut(&mut self.memory), self.kind.datatype());
        match &self.places {
            // SAFETY: the memory is this side's, borrowed as long as the blocks.
            Some(places) => unsafe { Blocks::vary(memory, &self.counts, places, datatype) },
            None => {
                let count = self.counts.first().copied().unwrap_or(0);
                // SAFETY: as above.
                unsafe { Blocks::equal(memory, self.counts.len() as u32, count, datatype) }
            }
        }
    }
}

/// What `from` sends to `to` in case `seed`.
pub(super) fn message(seed: usize, from: usize, to: usize, len: u64) -> Vec<u8> {
    let mixed = seed.wrapping_mul(131) ^ from.wrapping_mul(29) ^ to.wrapping_mul(53);
    (0..len as usize).map(|at| (mixed ^ at.wrapping_mul(7) ^ (at >> 8)) as u8).collect()
}

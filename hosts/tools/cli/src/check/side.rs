//! A side of a call, which a rank sends or receives: blocks in memory of its own, of one of four datatypes.

use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::datatype::{Data, Datatype, Field};
use unisono_kernel::error::Refusal;

/// The value of bytes that were not written.
pub(super) const BLANK: u8 = 0xEE;

/// How the bytes of a side lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// One after the other.
    Bytes,
    /// Every second byte: a vector, where the side is one block.
    Second,
    /// Every third byte: an indexed type.
    Third,
    /// The second byte of four: a struct with an empty field, and padding; a struct of two fields, where the side is a
    /// block of an even length.
    Struct,
}

impl Type {
    /// Bytes of memory for one packed byte, and its offset in them.
    const fn place(self) -> (usize, usize) {
        match self {
            Self::Bytes => (1, 0),
            Self::Second => (2, 1),
            Self::Third => (3, 2),
            Self::Struct => (4, 1),
        }
    }

    /// Bytes of memory for one packed byte.
    pub(super) const fn stride(self) -> usize {
        self.place().0
    }

    /// The offset in memory of packed byte `at`.
    pub(super) const fn at(self, at: usize) -> usize {
        at * self.place().0 + self.place().1
    }

    /// The datatype of one byte and its holes.
    pub(super) const fn datatype(self) -> Datatype<'static> {
        match self {
            Self::Bytes => Datatype::BYTE,
            Self::Second => Datatype::Indexed { block: 1, displacements: &[1] },
            Self::Third => Datatype::Indexed { block: 1, displacements: &[2] },
            Self::Struct => {
                const FIELDS: &[Field] = &[Field { displacement: 0, bytes: 0 }, Field { displacement: 1, bytes: 1 }];
                Datatype::Struct { fields: FIELDS, extent: 4 }
            }
        }
    }
}

/// Blocks in one piece of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Side {
    memory: Vec<u8>,
    counts: Vec<u64>,
    /// The blocks' offsets, in packed bytes; nothing if they lie one after the other.
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

    /// The same side, with these bytes in a block.
    pub(super) fn with(mut self, block: usize, bytes: &[u8]) -> Self {
        let begin = match &self.places {
            Some(places) => places[block],
            None => self.counts[..block].iter().sum(),
        };
        for (at, byte) in (begin as usize..).zip(bytes) {
            self.memory[self.kind.at(at)] = *byte;
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
        if self.kind == Type::Struct && count.is_multiple_of(2) {
            const FIELDS: &[Field] = &[Field { displacement: 1, bytes: 1 }, Field { displacement: 5, bytes: 1 }];
            return Data::typed(&mut self.memory, count / 2, Datatype::Struct { fields: FIELDS, extent: 8 });
        }
        Data::typed(&mut self.memory, count, self.kind.datatype())
    }

    /// All blocks.
    pub(super) fn blocks(&mut self) -> Result<Blocks<'_>, Refusal> {
        let (memory, datatype) = (&mut self.memory, self.kind.datatype());
        match &self.places {
            Some(places) => Blocks::vary_mut(memory, &self.counts, places, datatype),
            None => {
                let count = self.counts.first().copied().unwrap_or(0);
                Blocks::equal_mut(memory, self.counts.len() as u32, count, datatype)
            }
        }
    }
}

/// The data that `from` sends to `to` in case `seed`.
pub(super) fn message(seed: usize, from: usize, to: usize, len: u64) -> Vec<u8> {
    let mixed = seed.wrapping_mul(131) ^ from.wrapping_mul(29) ^ to.wrapping_mul(53);
    (0..len as usize).map(|at| (mixed ^ at.wrapping_mul(7) ^ (at >> 8)) as u8).collect()
}

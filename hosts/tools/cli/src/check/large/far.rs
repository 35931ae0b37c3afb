//! Datatypes of a few megabytes in blocks that lie gigabytes apart.

use super::image::{Content, Image, Part};
use unisono_kernel::data::datatype::{Datatype, Field};

/// Bytes of a block.
pub(super) const BLOCK: u64 = (1 << 20) + 1;
/// Blocks of an element.
const BLOCKS: u64 = 3;
/// More than 2³¹ bytes from block to block.
const STRIDE: u64 = (1 << 31) + 7;

const DISPLACEMENTS: [u64; BLOCKS as usize] = [(1 << 32) + 17, 0, (1 << 31) + 9];

const FIELDS: [Field; BLOCKS as usize] = [
    Field { displacement: (1 << 31) + 3, bytes: BLOCK },
    Field { displacement: (1 << 32) + 5, bytes: BLOCK },
    Field { displacement: 1, bytes: BLOCK },
];

/// Three blocks, two of them beyond 2³¹ bytes from the element's start, one beyond 2³².
#[derive(Clone, Copy, Debug)]
pub(super) enum Far {
    Vector,
    Indexed,
    Struct,
}

impl Far {
    pub(super) const ALL: [Self; 3] = [Self::Vector, Self::Indexed, Self::Struct];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Vector => "vector",
            Self::Indexed => "indexed",
            Self::Struct => "struct",
        }
    }

    pub(super) const fn datatype(self) -> Datatype<'static> {
        match self {
            Self::Vector => Datatype::Vector { blocks: BLOCKS, block: BLOCK, stride: STRIDE },
            Self::Indexed => Datatype::Indexed { block: BLOCK, displacements: &DISPLACEMENTS },
            Self::Struct => Datatype::Struct { fields: &FIELDS, extent: self.extent() },
        }
    }

    /// Bytes from element to element.
    pub(super) const fn extent(self) -> u64 {
        match self {
            Self::Vector => (BLOCKS - 1) * STRIDE + BLOCK,
            Self::Indexed => DISPLACEMENTS[0] + BLOCK,
            Self::Struct => FIELDS[1].displacement + BLOCK + 9,
        }
    }

    /// The blocks' offsets, in packed order.
    const fn places(self) -> [u64; BLOCKS as usize] {
        match self {
            Self::Vector => [0, STRIDE, 2 * STRIDE],
            Self::Indexed => DISPLACEMENTS,
            Self::Struct => [FIELDS[0].displacement, FIELDS[1].displacement, FIELDS[2].displacement],
        }
    }

    /// An image with `count` elements from byte `at` on.
    pub(super) fn put(self, image: Image, at: u64, count: u64, content: Content) -> Image {
        let places = (0..count).flat_map(|element| self.places().map(|place| at + element * self.extent() + place));
        let part = |(block, at)| Part { at, len: BLOCK, content, position: block * BLOCK };
        let image = (0..).zip(places).map(part).fold(image, Image::with);
        image.reaching(at + count * self.extent())
    }
}

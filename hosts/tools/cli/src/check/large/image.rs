//! Buffers of gigabytes, described by their parts, which are written and compared a chunk at a time.

use rustix::mm::{Advice, madvise};
use unisono_kernel::error::Refusal;
use unisono_kernel::op::{Element, Op, Operation};

/// Bytes that are made or compared at once.
const CHUNK: usize = 16 << 10;

/// An operation on single bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bytewise {
    SumU8,
    BandU8,
    MaxI8,
}

impl Bytewise {
    pub(super) fn op(self) -> Result<Op, Refusal> {
        match self {
            Self::SumU8 => Op::new(Operation::Sum, Element::U8),
            Self::BandU8 => Op::new(Operation::Band, Element::U8),
            Self::MaxI8 => Op::new(Operation::Max, Element::I8),
        }
    }

    fn fold(self, sum: &mut [u8], next: &[u8]) {
        match self {
            Self::SumU8 => each(sum, next, u8::wrapping_add),
            Self::BandU8 => each(sum, next, |a, b| a & b),
            Self::MaxI8 => each(sum, next, |a, b| (a as i8).max(b as i8) as u8),
        }
    }
}

/// Inlined, so that each operation is a loop of its own.
#[inline(always)]
fn each(sum: &mut [u8], next: &[u8], of: impl Fn(u8, u8) -> u8) {
    sum.iter_mut().zip(next).for_each(|(a, b)| *a = of(*a, *b));
}

/// The content of a part of a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    /// The data that rank `from` sends to rank `to`.
    Sent { case: usize, from: usize, to: usize },
    /// The data that the first `ranks` ranks send to rank `to`, folded.
    Folded { case: usize, ranks: usize, to: usize, by: Bytewise },
}

impl Content {
    /// The content's bytes from position `at` on, at most a chunk.
    fn put(self, at: u64, bytes: &mut [u8]) {
        match self {
            Self::Sent { case, from, to } => pattern((case << 40 | from << 20 | to) as u64, at, bytes),
            Self::Folded { case, ranks, to, by } => {
                Self::Sent { case, from: 0, to }.put(at, bytes);
                let next = &mut [0; CHUNK][..bytes.len()];
                for from in 1..ranks {
                    Self::Sent { case, from, to }.put(at, next);
                    by.fold(bytes, next);
                }
            }
        }
    }
}

/// Bytes `8 * index ..` of the pattern of `seed`: places that differ in any bit below 2⁴³ differ in all bytes.
#[inline(always)]
const fn word(seed: u64, index: u64) -> [u8; 8] {
    mix(index ^ mix(seed)).to_ne_bytes()
}

/// A hash of a number, which changes all of its bits.
#[inline(always)]
const fn mix(number: u64) -> u64 {
    let product = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

/// The bytes of the pattern of `seed` from position `at` on.
fn pattern(seed: u64, at: u64, bytes: &mut [u8]) {
    let (index, skip) = (at / 8, (at % 8) as usize);
    let head = ((8 - skip) % 8).min(bytes.len());
    let (first, rest) = bytes.split_at_mut(head);
    first.copy_from_slice(&word(seed, index)[skip..skip + head]);
    let index = at.div_ceil(8);
    let (words, last) = rest.as_chunks_mut();
    let tail = word(seed, index + words.len() as u64);
    words.iter_mut().zip(index..).for_each(|(to, index)| *to = word(seed, index));
    last.copy_from_slice(&tail[..last.len()]);
}

/// A stretch of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// The part's first byte in memory, and its length.
    pub(super) at: u64,
    pub(super) len: u64,
    /// The part's content, from this position on.
    pub(super) content: Content,
    pub(super) position: u64,
}

impl Part {
    /// The chunks of `memory` in the part, each with its position.
    fn chunks(self, memory: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
        (self.position..).step_by(CHUNK).zip(memory[self.at as usize..][..self.len as usize].chunks(CHUNK))
    }
}

/// The parts of a buffer. All other bytes are zero, and take no memory as long as they are not written.
#[derive(Clone, Debug)]
pub(super) struct Image {
    room: u64,
    /// The parts, in the order of memory.
    parts: Vec<Part>,
}

impl Image {
    /// Zeros.
    pub(super) const fn blank(room: u64) -> Self {
        Self { room, parts: Vec::new() }
    }

    /// `len` bytes of one content.
    pub(super) fn whole(len: u64, content: Content) -> Self {
        Self::blank(len).with(Part { at: 0, len, content, position: 0 })
    }

    /// The same image with one more part, which overlaps no other one, and with room for it.
    pub(super) fn with(mut self, part: Part) -> Self {
        self.parts.insert(self.parts.partition_point(|other| other.at < part.at), part);
        self.reaching(part.at + part.len)
    }

    /// The same image with room for at least `room` bytes.
    pub(super) fn reaching(mut self, room: u64) -> Self {
        self.room = self.room.max(room);
        self
    }

    /// An image of zeros of the same length.
    pub(super) fn zeros(&self) -> Vec<u8> {
        let mut memory = vec![0; self.room as usize];
        huge_pages(&mut memory);
        memory
    }

    /// A buffer that holds the image.
    pub(super) fn memory(&self) -> Vec<u8> {
        let mut memory = self.zeros();
        for part in &self.parts {
            let bytes = &mut memory[part.at as usize..][..part.len as usize];
            let positions = (part.position..).step_by(CHUNK);
            positions.zip(bytes.chunks_mut(CHUNK)).for_each(|(at, chunk)| part.content.put(at, chunk));
        }
        memory
    }

    /// Does a buffer hold exactly this image? Each byte is compared.
    pub(super) fn held_by(&self, memory: &[u8]) -> bool {
        let mut wanted = [0; CHUNK];
        let mut equal = |part: &Part, at, chunk: &[u8]| {
            let wanted = &mut wanted[..chunk.len()];
            part.content.put(at, wanted);
            wanted == chunk
        };
        let mut end = 0;
        let parts = self.parts.iter().all(|part| {
            let begin = std::mem::replace(&mut end, (part.at + part.len) as usize);
            zero(&memory[begin..part.at as usize]) && part.chunks(memory).all(|(at, chunk)| equal(part, at, chunk))
        });
        memory.len() as u64 == self.room && parts && zero(&memory[end..])
    }
}

/// Asks for huge pages: the first touch of gigabytes takes longer than anything else here. It may be refused.
fn huge_pages(memory: &mut [u8]) {
    const PAGE: usize = 4096;
    let skip = memory.as_ptr().align_offset(PAGE).min(memory.len());
    let whole = &mut memory[skip..];
    // SAFETY: whole pages that are this slice's own, whose contents the advice leaves alone.
    let _ = unsafe { madvise(whole.as_mut_ptr().cast(), whole.len() / PAGE * PAGE, Advice::LinuxHugepage) };
}

/// Are all these bytes zero?
fn zero(bytes: &[u8]) -> bool {
    const ZERO: [u8; CHUNK] = [0; CHUNK];
    bytes.chunks(CHUNK).all(|chunk| chunk == &ZERO[..chunk.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(from: usize, to: usize) -> Content {
        Content::Sent { case: 3, from, to }
    }

    fn bytes(content: Content, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        content.put(at, &mut bytes);
        bytes
    }

    #[test]
    fn a_pattern_does_not_depend_on_how_it_is_cut() {
        let whole = bytes(sent(1, 2), 0, 100);
        for at in 0..40 {
            for len in 0..40 {
                assert_eq!(bytes(sent(1, 2), at as u64, len), whole[at..at + len], "{at} {len}");
            }
        }
    }

    #[test]
    fn far_places_and_other_messages_differ() {
        let here = bytes(sent(0, 1), 5, 4096);
        let same = |there: &[u8]| here.iter().zip(there).filter(|(a, b)| a == b).count();
        for shift in (3..43).map(|bit| 1 << bit) {
            let equal = same(&bytes(sent(0, 1), 5 + shift, 4096));
            assert!(equal < 400, "{equal} of 4096 bytes are {shift} bytes further the same");
        }
        for content in [sent(1, 0), sent(0, 2), sent(1, 1), Content::Sent { case: 4, from: 0, to: 1 }] {
            assert!(same(&bytes(content, 5, 4096)) < 100, "{content:?}");
        }
    }

    #[test]
    fn folds_are_byte_by_byte() {
        let operands = [0, 1, 2].map(|from| bytes(sent(from, 0), 7, 50));
        let wanted = |of: fn(u8, u8) -> u8| -> Vec<u8> {
            (0..50).map(|i| of(of(operands[0][i], operands[1][i]), operands[2][i])).collect()
        };
        let folded = |by| bytes(Content::Folded { case: 3, ranks: 3, to: 0, by }, 7, 50);
        assert_eq!(folded(Bytewise::SumU8), wanted(u8::wrapping_add));
        assert_eq!(folded(Bytewise::BandU8), wanted(|a, b| a & b));
        assert_eq!(folded(Bytewise::MaxI8), wanted(|a, b| if (a as i8) < b as i8 { b } else { a }));
    }

    #[test]
    fn every_byte_counts() {
        let len = 2 * CHUNK as u64 + 3;
        let part = |at, to| Part { at, len, content: sent(0, to), position: 11 };
        let end = 30 + 2 * len;
        let image = Image::blank(end + 5).with(part(30 + len, 1)).with(part(10, 2));
        let mut memory = image.memory();
        assert!(image.held_by(&memory));
        let places = [0, 9, 10, 9 + len, 10 + len, 29 + len, 30 + len, 10 + CHUNK as u64, end - 1, end, end + 4];
        for at in places.map(|at| at as usize) {
            memory[at] ^= 1;
            assert!(!image.held_by(&memory), "{at}");
            memory[at] ^= 1;
        }
        memory.push(0);
        assert!(!image.held_by(&memory));
        assert!(Image::blank(3).held_by(&[0; 3]));
    }
}

//! A segment of words alone, for tests of what happens in words.

use super::{CounterId, Extent, FlagId, Layout, MailId, Region, Word};
use crate::data::buffer::Buf;
use crate::op::Op;
use std::vec::Vec;

pub(crate) struct Words(Vec<Word>);

impl Words {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self((0..layout.bytes() / 8).map(|_| Word::zero()).collect())
    }

    fn word(&self, offset: u64) -> &Word {
        &self.0[offset as usize / 8]
    }
}

/// A test that copies bytes asks for what is not here.
const NO_BYTES: &str = "a segment of words alone has no bytes to copy";

// SAFETY: one thread, one memory; no bytes are copied anywhere: who asks for that panics.
unsafe impl Region for Words {
    type Flag = Word;
    type Mailword = Word;
    type Counter = Word;

    fn flag(&self, id: FlagId) -> &Word {
        self.word(id.0)
    }
    fn mail(&self, id: MailId) -> &Word {
        self.word(id.0)
    }
    fn counter(&self, id: CounterId) -> &Word {
        self.word(id.0)
    }
    unsafe fn write(&self, _: Extent, _: Buf) {
        panic!("{NO_BYTES}");
    }
    unsafe fn read(&self, _: Extent, _: Buf) {
        panic!("{NO_BYTES}");
    }
    unsafe fn fold(&self, _: Extent, _: Buf, _: &Op) {
        panic!("{NO_BYTES}");
    }
}

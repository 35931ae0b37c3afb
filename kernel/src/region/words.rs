//! A segment of words without payload bytes, for tests.

use super::{CounterId, Extent, FlagId, Layout, MailId, Region, Word};
use crate::data::buffer::Buf;
use crate::op::Op;
use core::cell::RefCell;
use std::vec::Vec;

/// The words, and what was claimed.
pub(crate) struct Words(Vec<Word>, RefCell<Vec<Extent>>);

impl Words {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self((0..layout.bytes() / 8).map(|_| Word::zero()).collect(), RefCell::default())
    }

    /// What was claimed since the last call of this function.
    pub(crate) fn take_claims(&self) -> Vec<Extent> {
        self.1.take()
    }

    fn word(&self, offset: u64) -> &Word {
        &self.0[offset as usize / 8]
    }
}

/// The panic of a test that copies bytes.
const NO_BYTES: &str = "a segment of words alone has no bytes to copy";

// SAFETY: one thread, one memory; no bytes are copied: the functions that would copy panic.
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
    fn claim(&self, at: Extent) {
        self.1.borrow_mut().push(at);
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

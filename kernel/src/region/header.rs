//! The segment's first page: what it was made for, so that an attacher can refuse.
//!
//! Words: magic, version, layout hash, total bytes, then the parameters. The magic is stored
//! last, with release; who sees it sees the rest. All is untrusted: an attacher plans its own
//! layout from the words and compares.

use super::layout::{Cico, VERSION};
use super::{Flag, FlagId, Layout, Mailboxes, Params, Region};
use crate::error::{Argument, Bound, Refusal};

/// "UNISONO1", little-endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"UNISONO1");

const WORDS: usize = 15;

/// Bytes that must be mapped before [`attach`] may look.
pub const BYTES: u64 = 8 * WORDS as u64;

fn words(layout: &Layout) -> [u64; WORDS] {
    let Params { ranks, page, lines, queue_slots, queue_fragment, cico, mailboxes } = *layout.params();
    let c = cico.unwrap_or(Cico { slots: 0, fragment: 0, sets: 0 });
    let m = mailboxes.unwrap_or(Mailboxes::NONE);
    [
        MAGIC,
        VERSION,
        layout.hash(),
        layout.bytes(),
        ranks.into(),
        page,
        lines.into(),
        queue_slots.into(),
        queue_fragment,
        c.slots.into(),
        c.fragment,
        c.sets.into(),
        m.messages.into(),
        m.slots.into(),
        m.fragment,
    ]
}

const fn id(word: usize) -> FlagId {
    FlagId(8 * word as u64)
}

/// Writes the header of a fresh, zeroed segment; the magic last.
pub fn create<R: Region>(region: &R, layout: &Layout) {
    for (word, value) in words(layout).into_iter().enumerate().rev() {
        region.flag(id(word)).store_release(value);
    }
}

/// Reads the header of a segment of `mapped` bytes and plans its layout.
///
/// # Errors
/// Magic (also while the creator has not finished), version, a parameter out of bounds, a size
/// beyond `mapped`, or a hash that differs from the layout that follows from the parameters.
pub fn attach<R: Region>(region: &R, mapped: u64) -> Result<Layout, Refusal> {
    Refusal::check(Argument::SegmentBytes, mapped, Bound::AtLeast(BYTES))?;
    // Each word is read once, into private memory (R7). The magic first: it publishes the others.
    let mut read = [0; WORDS];
    for (word, value) in read.iter_mut().enumerate() {
        *value = region.flag(id(word)).load_acquire().unchecked();
    }
    let [
        magic,
        version,
        hash,
        bytes,
        ranks,
        page,
        lines,
        queue_slots,
        queue_fragment,
        slots,
        fragment,
        sets,
        mail @ ..,
    ] = read;
    Refusal::check(Argument::Magic, magic, Bound::Equals(MAGIC))?;
    Refusal::check(Argument::Version, version, Bound::Equals(VERSION))?;
    let narrow = |argument, value: u64| {
        u32::try_from(value).map_err(|_| Refusal::new(argument, value, Bound::AtMost(u32::MAX.into())))
    };
    let cico = if (slots, fragment, sets) == (0, 0, 0) {
        None
    } else {
        Some(Cico { slots: narrow(Argument::Slots, slots)?, fragment, sets: narrow(Argument::Sets, sets)? })
    };
    let mailboxes = match mail {
        [0, 0, 0] => None,
        [messages, slots, fragment] => Some(Mailboxes {
            messages: narrow(Argument::Messages, messages)?,
            slots: narrow(Argument::MailboxSlots, slots)?,
            fragment,
        }),
    };
    let layout = Layout::new(Params {
        ranks: narrow(Argument::Ranks, ranks)?,
        page,
        lines: narrow(Argument::Lines, lines)?,
        queue_slots: narrow(Argument::QueueSlots, queue_slots)?,
        queue_fragment,
        cico,
        mailboxes,
    })?;
    Refusal::check(Argument::SegmentBytes, bytes, Bound::Equals(layout.bytes()))?;
    Refusal::check(Argument::SegmentBytes, mapped, Bound::AtLeast(bytes))?;
    Refusal::check(Argument::Hash, hash, Bound::Equals(layout.hash()))?;
    Ok(layout)
}

/// The same, and the layout must be the one that this process expects.
///
/// # Errors
/// As [`attach`]; a layout other than `expected` is a refused hash.
pub fn attach_expecting<R: Region>(region: &R, mapped: u64, expected: &Layout) -> Result<(), Refusal> {
    let found = attach(region, mapped)?;
    Refusal::check(Argument::Ranks, found.ranks().into(), Bound::Equals(expected.ranks().into()))?;
    Refusal::check(Argument::Hash, found.hash(), Bound::Equals(expected.hash()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::words::Words;

    fn layout(ranks: u32) -> Layout {
        Layout::new(Params { page: 256, ..Params::new(ranks) }).unwrap()
    }

    #[test]
    fn what_was_made_is_attached() {
        for made in [layout(3), Layout::new(Params::new(2).with_cico()).unwrap()] {
            let region = Words::new(&made);
            assert_eq!(attach(&region, made.bytes()).map_err(|refusal| refusal.argument), Err(Argument::Magic));
            create(&region, &made);
            assert_eq!(attach(&region, made.bytes()), Ok(made));
            assert_eq!(attach_expecting(&region, made.bytes(), &made), Ok(()));
            assert!(attach_expecting(&region, made.bytes(), &layout(4)).is_err());
            let other = Layout::new(Params { lines: 128, ..*made.params() }).unwrap();
            assert!(attach_expecting(&region, made.bytes(), &other).is_err());
        }
    }

    #[test]
    fn each_word_of_a_header_counts() {
        let made = layout(3);
        for word in 0..WORDS {
            for other in [0, 1, 7, u64::MAX] {
                let region = Words::new(&made);
                create(&region, &made);
                let flag = region.flag(id(word));
                if !Flag::load_acquire(flag).is(other) {
                    Flag::store_release(flag, other);
                    assert!(attach(&region, made.bytes()).is_err(), "word {word} is {other}");
                }
            }
        }
        let region = Words::new(&made);
        create(&region, &made);
        assert!(attach(&region, made.bytes() - 1).is_err());
        assert!(attach(&region, BYTES - 1).is_err());
    }

    #[test]
    fn a_header_is_fifteen_words() {
        assert_eq!((BYTES, WORDS), (120, 15));
    }
}

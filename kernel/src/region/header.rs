//! The segment's first page: its parameters, so that a process that attaches can check them.
//!
//! Words: magic, version, layout hash, total bytes, then the parameters. The magic is stored
//! last, with release: a process that sees it sees the rest. All words are untrusted: a process that attaches plans its
//! own layout from them and compares.

use super::layout::VERSION;
use super::{Cico, Flag, FlagId, Layout, Mailboxes, Params, Region};
use crate::error::{Argument, Bound, Refusal};
use core::mem::offset_of;

/// "UNISONO1", little-endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"UNISONO1");

/// Bytes that must be mapped before [`attach`] may read them.
pub const BYTES: u64 = size_of::<Header>() as u64;

/// Makes a struct of words that lie one after the other, and access to each by its name.
macro_rules! words {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(C)]
        pub struct $name { $($(#[$doc])* pub $field: u64,)* }

        impl $name {
            /// The words in order: each one's name, and its offset in bytes from the segment's start.
            pub const WORDS: [(&'static str, u64); size_of::<Self>() / 8] =
                [$((stringify!($field), offset_of!(Self, $field) as u64),)*];

            /// Reads each word once, in order, into private memory (R7).
            fn load<R: Region>(region: &R) -> Self {
                Self { $($field: region.flag(FlagId(offset_of!(Self, $field) as u64)).load_acquire().unchecked(),)* }
            }

            /// The words' values, in order.
            const fn values(&self) -> [u64; size_of::<Self>() / 8] {
                [$(self.$field,)*]
            }
        }
    };
}

words! {
    /// The header's words by name, in their order in the segment, for tools and debuggers.
    ///
    /// For the segment it only gives offsets: no reference or pointer to a `Header` is made from a segment's
    /// bytes (docs/explanation/memory-model.md, R1); each word is a [`Flag`], found by [`offset_of!`]. A value of this
    /// type is a private copy.
    pub struct Header {
        /// [`MAGIC`], stored last.
        magic,
        /// [`VERSION`].
        version,
        /// [`Layout::hash`].
        hash,
        /// Bytes of the segment.
        bytes,
        /// [`Params::ranks`].
        ranks,
        /// [`Params::page`].
        page,
        /// [`Params::lines`].
        lines,
        /// [`Params::queue_slots`].
        queue_slots,
        /// [`Params::queue_fragment`].
        queue_fragment,
        /// [`Cico::slots`]; this and the next two are 0 in a segment without the papers' queues.
        slots,
        /// [`Cico::fragment`].
        fragment,
        /// [`Cico::sets`].
        sets,
        /// [`Mailboxes::messages`]; this and the next two are 0 in a segment without mailboxes.
        messages,
        /// [`Mailboxes::slots`].
        mail_slots,
        /// [`Mailboxes::fragment`].
        mail_fragment,
        /// [`Params::crowded`]: 0 or 1.
        crowded,
    }
}

impl Header {
    fn of(layout: &Layout) -> Self {
        let Params { ranks, page, lines, queue_slots, queue_fragment, cico, mailboxes, crowded } = *layout.params();
        let c = cico.unwrap_or(Cico { slots: 0, fragment: 0, sets: 0 });
        let m = mailboxes.unwrap_or(Mailboxes::NONE);
        Self {
            magic: MAGIC,
            version: VERSION,
            hash: layout.hash(),
            bytes: layout.bytes(),
            ranks: ranks.into(),
            page,
            lines: lines.into(),
            queue_slots: queue_slots.into(),
            queue_fragment,
            slots: c.slots.into(),
            fragment: c.fragment,
            sets: c.sets.into(),
            messages: m.messages.into(),
            mail_slots: m.slots.into(),
            mail_fragment: m.fragment,
            crowded: crowded.into(),
        }
    }

    /// The segment's parameters, as the header has them: untrusted.
    fn params(&self) -> Result<Params, Refusal> {
        let narrow = |argument, value: u64| {
            u32::try_from(value).map_err(|_| Refusal::new(argument, value, Bound::AtMost(u32::MAX.into())))
        };
        let cico = match (self.slots, self.fragment, self.sets) {
            (0, 0, 0) => None,
            (slots, fragment, sets) => {
                Some(Cico { slots: narrow(Argument::Slots, slots)?, fragment, sets: narrow(Argument::Sets, sets)? })
            }
        };
        let mailboxes = match (self.messages, self.mail_slots, self.mail_fragment) {
            (0, 0, 0) => None,
            (messages, slots, fragment) => Some(Mailboxes {
                messages: narrow(Argument::Messages, messages)?,
                slots: narrow(Argument::MailboxSlots, slots)?,
                fragment,
            }),
        };
        Ok(Params {
            ranks: narrow(Argument::Ranks, self.ranks)?,
            page: self.page,
            lines: narrow(Argument::Lines, self.lines)?,
            queue_slots: narrow(Argument::QueueSlots, self.queue_slots)?,
            queue_fragment: self.queue_fragment,
            cico,
            mailboxes,
            crowded: match self.crowded {
                0 => false,
                1 => true,
                other => return Err(Refusal::new(Argument::Crowded, other, Bound::AtMost(1))),
            },
        })
    }
}

/// Writes the header of a fresh, zeroed segment; the magic last.
pub fn create<R: Region>(region: &R, layout: &Layout) {
    for ((_, offset), value) in Header::WORDS.into_iter().zip(Header::of(layout).values()).rev() {
        region.flag(FlagId(offset)).store_release(value);
    }
}

/// Reads the header of a segment of `mapped` bytes and plans its layout.
///
/// # Errors
/// The magic is wrong (also while the creator has not finished), or the version is; a parameter is out of bounds; the
/// size is more than `mapped`; or the hash is not that of the layout that follows from the parameters.
pub fn attach<R: Region>(region: &R, mapped: u64) -> Result<Layout, Refusal> {
    Refusal::check(Argument::SegmentBytes, mapped, Bound::AtLeast(BYTES))?;
    // The magic first: it publishes the others.
    let header = Header::load(region);
    Refusal::check(Argument::Magic, header.magic, Bound::Equals(MAGIC))?;
    Refusal::check(Argument::Version, header.version, Bound::Equals(VERSION))?;
    let layout = Layout::new(header.params()?)?;
    Refusal::check(Argument::SegmentBytes, header.bytes, Bound::Equals(layout.bytes()))?;
    Refusal::check(Argument::SegmentBytes, mapped, Bound::AtLeast(header.bytes))?;
    Refusal::check(Argument::Hash, header.hash, Bound::Equals(layout.hash()))?;
    Ok(layout)
}

/// The same, and checks that the layout is the one that this process expects.
///
/// # Errors
/// As [`attach`]; or the layout differs from `expected`: the refusal names the ranks or the hash.
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
        for (word, offset) in Header::WORDS {
            for other in [0, 1, 7, u64::MAX] {
                let region = Words::new(&made);
                create(&region, &made);
                let flag = region.flag(FlagId(offset));
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

    /// The magic is stored last: a process that sees it sees the rest.
    #[test]
    fn words_lie_one_after_the_other_from_the_magic_on() {
        let offsets: std::vec::Vec<_> = Header::WORDS.iter().map(|(_, offset)| *offset).collect();
        assert_eq!(offsets, (0..16).map(|word| 8 * word).collect::<std::vec::Vec<_>>());
        assert_eq!((BYTES, align_of::<Header>(), Header::WORDS[0]), (128, 8, ("magic", 0)));
    }

    #[test]
    fn a_header_of_a_layout_is_read_as_it_was_stored() {
        let params = Params { page: 256, ..Params::new(3).with_cico().with_mailboxes() };
        let made = Layout::new(params).unwrap();
        let region = Words::new(&made);
        create(&region, &made);
        let header = Header::load(&region);
        assert_eq!((header, header.params()), (Header::of(&made), Ok(params)));
        let by_word = |word: u64| Flag::load_acquire(region.flag(FlagId(8 * word))).unchecked();
        assert_eq!([4, 9, 12, 14].map(by_word), [3, 16, 8, 4072]);
    }

    /// docs/reference/segment.md has the same words at the same offsets.
    #[test]
    fn the_documentation_has_every_word() {
        let text = include_str!("../../../docs/reference/segment.md");
        for (name, offset) in Header::WORDS {
            let row = std::format!("| {offset} | `{name}` |");
            assert!(text.contains(&row), "docs/reference/segment.md has no row {row}");
        }
        assert!(text.contains(&std::format!("`version` | of the layout: {VERSION} |")));
    }
}

//! A hostile peer's stores to a segment: words between two polls, a header, a state word.

use super::arena::Guarded;
use super::{Bytes, Segment};
use unisono_kernel::error::Cause;
use unisono_kernel::region::{Base, Cico, Extent, LINE, Layout, Mailboxes, Params, Word, header, layout, state};
use unisono_shm::Mapped;

/// Stores a value to a word of the segment, both chosen by the bytes.
pub(super) fn store(segment: &Segment, choice: u8, bytes: &mut Bytes<'_>) {
    let words = segment.layout.bytes() / 8;
    let place = u64::from(bytes.byte()) << 8 | u64::from(bytes.byte());
    // Most words that steer a machine are the first of their line.
    let place = if choice & 1 == 0 { place % words } else { place * (LINE / 8) % words };
    // SAFETY: the place is below the segment's words; the segment is accessed as atomics and through views.
    let word = unsafe { Word::at(segment.region.base().cast::<u64>().wrapping_add(place as usize)) };
    let now = word.load_payload();
    let value = match choice >> 1 & 7 {
        0 => u64::from(bytes.byte()),
        1 => now.wrapping_add(1 + u64::from(bytes.byte()) % 4),
        2 => now.wrapping_sub(1 + u64::from(bytes.byte()) % 4),
        3 => now ^ 1 << bytes.below(64),
        4 => 0,
        5 => u64::MAX >> bytes.below(64),
        6 => now.wrapping_mul(256) | u64::from(bytes.byte()),
        _ => bytes.word(),
    };
    word.store_payload(value);
}

/// Attaches to arbitrary bytes: an error, or a layout that lies inside what is mapped.
///
/// The first byte chooses how much of the header is corrected, so that a fuzzer gets past the checks:
/// nothing; magic and version; also size and hash; also the size of the mapping that is passed.
/// Returns whether a layout was found.
///
/// # Panics
/// When a condition does not hold.
pub fn attach(data: &[u8]) -> bool {
    let Some((&mode, memory)) = data.split_first() else { return false };
    let memory = &memory[..memory.len().min(1 << 16)];
    let mut contents = memory.to_vec();
    let word =
        |i: usize| memory.get(8 * i..8 * i + 8).map_or(0, |b| u64::from_le_bytes(b.try_into().expect("8 bytes")));
    let mut planned = None;
    if mode & 3 >= 1 {
        put(&mut contents, 0, header::MAGIC);
        put(&mut contents, 1, layout::VERSION);
    }
    if mode & 3 >= 2 {
        planned = plan(word).ok();
        if let Some(layout) = planned {
            put(&mut contents, 2, layout.hash());
            put(&mut contents, 3, layout.bytes());
        }
    }
    let guarded = Guarded::new(contents.len(), 0, 0);
    guarded.set(&contents);
    // SAFETY: guarded above, accessed through this view alone while it lives.
    let region = unsafe { Mapped::new(guarded.base(), contents.len() as u64) }.expect("a line is aligned");
    let mapped = match planned {
        // A view stays within its own bytes, whatever size is passed to `attach`.
        Some(layout) if mode & 3 == 3 => layout.bytes(),
        _ => contents.len() as u64,
    };
    let attached = header::attach(&region, mapped);
    match attached {
        Ok(layout) => {
            assert!(layout.bytes() <= mapped, "{layout:?} on {mapped} bytes");
            inside(&layout);
        }
        Err(refusal) => {
            assert!(!refusal.to_string().is_empty());
            let whole = contents.len() as u64 >= header::BYTES && mode & 3 >= 2;
            let fits = |layout: Layout| whole && layout.bytes() <= mapped;
            assert!(!planned.is_some_and(fits), "{planned:?} was refused: {refusal}");
        }
    }
    assert!(guarded.intact(), "beyond the segment");
    assert_eq!(guarded.get(), contents, "attach writes nothing");
    attached.is_ok()
}

fn put(memory: &mut [u8], word: usize, value: u64) {
    if let Some(place) = memory.get_mut(8 * word..8 * word + 8) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

/// The layout that follows from the header's parameters, if they are valid.
fn plan(word: impl Fn(usize) -> u64) -> Result<Layout, ()> {
    let narrow = |i| u32::try_from(word(i)).map_err(drop);
    let cico = match (word(9), word(10), word(11)) {
        (0, 0, 0) => None,
        (_, fragment, _) => Some(Cico { slots: narrow(9)?, fragment, sets: narrow(11)? }),
    };
    let (ranks, lines, queue_slots) = (narrow(4)?, narrow(6)?, narrow(7)?);
    let mailboxes = match (word(12), word(13), word(14)) {
        (0, 0, 0) => None,
        (_, _, fragment) => Some(Mailboxes { messages: narrow(12)?, slots: narrow(13)?, fragment }),
    };
    let (queue_fragment, crowded) = (word(8), word(15) == 1);
    let page = word(5);
    Layout::new(Params { ranks, page, lines, queue_slots, queue_fragment, cico, mailboxes, crowded }).map_err(drop)
}

/// Asserts that every word and extent of the layout lies inside its bytes, for the first and the last ranks, slots and
/// operations.
fn inside(layout: &Layout) {
    let edges = |n: u64| [0, 1, n / 2, n.saturating_sub(2), n - 1].map(|i| i.min(n - 1));
    let word = |offset: u64| {
        assert!(
            offset.is_multiple_of(8) && offset.checked_add(8).is_some_and(|end| end <= layout.bytes()),
            "{offset}: {layout:?}"
        );
    };
    let extent = |at: Extent| {
        assert!(at.offset().checked_add(at.len()).is_some_and(|end| end <= layout.bytes()), "{at:?}: {layout:?}");
    };
    let Params { ranks, cico, mailboxes, .. } = *layout.params();
    word(layout.state().offset());
    word(layout.central_count().offset());
    extent(layout.shared_pages());
    for set in cico.iter().flat_map(|c| edges(c.sets.into())) {
        let set = set as u32;
        word(layout.set_op(set).offset());
        word(layout.set_bytes(set).offset());
        word(layout.set_readers(set).offset());
    }
    for rank in edges(ranks.into()) {
        let rank = rank as u32;
        extent(layout.own_pages(rank));
        extent(layout.leader(rank));
        for flag in
            [layout.done(rank), layout.acked(rank), layout.ready(rank), layout.arrive(rank), layout.release(rank)]
        {
            word(flag.offset());
        }
        for round in 0..layout.rounds() {
            word(layout.round(rank, round).offset());
            for turn in [false, true] {
                word(layout.partial(rank, turn, round).offset());
                extent(layout.partial_body(rank, turn, round));
            }
        }
        for operation in [0, 1, u64::MAX / 2, u64::MAX] {
            word(layout.line(rank, operation).offset());
            extent(layout.line_body(rank, operation, u64::MAX));
            extent(layout.slot(rank, operation));
        }
        for to in edges(ranks.into()) {
            assert_eq!(mailboxes.is_some(), layout.mailbox(rank, to as u32).is_some());
            let Some(mailbox) = layout.mailbox(rank, to as u32) else { continue };
            for (message, fragment) in [(0, 0), (1, u64::MAX), (u64::MAX, 1), (u64::MAX, u64::MAX)] {
                word(mailbox.sequence(message, fragment).offset());
                word(mailbox.acked(message).offset());
                extent(mailbox.head(message));
                extent(mailbox.payload(message, fragment));
            }
        }
        for slot in cico.iter().flat_map(|c| edges(c.slots.into())) {
            word(layout.control(rank, slot as u32).offset());
            extent(layout.fragment(rank, slot as u32));
        }
    }
}

/// Reads the poison of a lease whose words are arbitrary.
///
/// # Panics
/// When the poison is not within its bounds or can't be printed.
pub fn poison(data: &[u8]) {
    let mut bytes = Bytes(data);
    let ranks = 1 + bytes.below(5) as u32;
    let segment =
        Segment::new(Layout::new(Params { page: 256, ..Params::new(ranks) }).expect("few ranks fit"), Base::default());
    // Every word of the state's page and of each rank's control lines, records among them.
    let (state, shared) = (segment.layout.state().offset(), segment.layout.shared_pages());
    let small = bytes.byte();
    for offset in std::iter::once(state).chain((shared.len()..segment.layout.bytes()).step_by(8)) {
        // The words of a record are mostly small numbers.
        let value = if small & 1 == 1 && offset != state { bytes.below(32) } else { bytes.word() };
        if bytes.0.is_empty() {
            break;
        }
        // SAFETY: the offset is below the segment's bytes and a multiple of 8.
        unsafe { Word::at(segment.region.base().wrapping_add(offset as usize).cast()) }.store_payload(value);
    }
    let Some(found) = state::look(&segment.region, &segment.layout) else { return };
    assert!(found.rank < 1 << 20 && found.operation < 1 << 30, "{found:?}");
    assert!(!found.to_string().is_empty());
    // The first poison counts, whichever rank comes later.
    let later = unisono_kernel::error::Poison { rank: 0, operation: 1, cause: Cause::Died };
    assert_eq!(state::poison(&segment.region, &segment.layout, 0, later), found);
}

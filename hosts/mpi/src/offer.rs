//! The offers that the ranks of a communicator exchange, and the choice that every rank makes from them alike.
//!
//! ```text
//! word 0  version of this library and of the segment's layout; if it differs, the other words may mean something else
//!      1  number of ranks (32 bits), the slice's queues (7), whether ranks share cores (1), reason (8)
//!      2  node
//!      3  process (32), its descriptor (32)
//!      4  device        5  inode        of the arena's file
//!      6  offset of the slice in the arena (32), bytes of the arena (32), both in pages of 4096
//!      7  bytes of the arena that are still free, in pages of 4096 (32); a hash of the process's decision table (32),
//! or 0
//!      8  inode of the heap's file; 0: it has no heap
//!      9  its descriptor (32), the kind of its pages (2), bytes of the heap in pages of 4096 (30)
//!     10  the switch that connects the node to others: a number of [`Switch`]
//!     11  device of the heap's file
//! ```
//! Offers come from other processes, so everything is checked before it is used, here or when the file is opened. A
//! fault that no check can find (a slice that is not free) causes wrong data or errors, as any corrupt segment does.

use crate::network::Switch;
use core::ffi::c_int;
use unisono_kernel::Rank;
use unisono_kernel::region::{Term, layout};
use unisono_posix::arena::{Queues, Reserved};
use unisono_posix::heap::Place;
use unisono_posix::pages::Kind;
use unisono_posix::sealed::Handle;

/// The words of an offer: `unisono_mpi_offer_t`.
pub type Words = [u64; 12];

/// Why a communicator stays with the underlying MPI. When ranks agree, the largest number wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum Reason {
    /// It does not stay: it is attached.
    Attached = 0,
    /// It has one rank, so nothing is to be gained.
    Alone = 1,
    /// Ranks on several nodes, or in namespaces that can't share memory.
    Nodes = 2,
    /// No arena has room.
    Full = 3,
    /// The system refused to make or map memory.
    Refused = 4,
    /// Another version of this library on another rank.
    Versions = 5,
    /// Switched off on some rank, or in the child of a fork.
    Off = 6,
}

impl Reason {
    /// All, in order.
    pub const ALL: [Self; 7] =
        [Self::Attached, Self::Alone, Self::Nodes, Self::Full, Self::Refused, Self::Versions, Self::Off];

    /// The reason of this number; [`Reason::Refused`] for other numbers.
    fn from_code(code: u64) -> Self {
        Self::ALL.into_iter().find(|reason| *reason as c_int as u64 == code).unwrap_or(Self::Refused)
    }
}

/// The versions of the words, of the layout, and of the library.
const VERSION: u64 = 6 << 48 | layout::VERSION << 32 | unisono_c::VERSION as u64;

/// Unit of offsets and sizes in an offer.
const UNIT: u64 = 4096;

/// The bit from which on word 9 has the kind of the heap's pages.
const KIND: u32 = 30;

/// Bytes of the largest arena whose slices an offer can name.
pub const MOST: u64 = UNIT << 31;

/// The process that makes an offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// Its node.
    pub node: u64,
    /// Its process number.
    pub pid: u32,
}

impl Owner {
    /// An offer without memory to `ranks` ranks, with the reason.
    pub const fn refuse(self, ranks: u32, reason: Reason) -> Words {
        [VERSION, (reason as u64) << 40 | ranks as u64, self.node, (self.pid as u64) << 32, 0, 0, 0, 0, 0, 0, 0, 0]
    }
}

/// A slice on offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The node of its owner.
    pub node: u64,
    /// The arena's file.
    pub handle: Handle,
    /// Bytes of the arena.
    pub arena: u64,
    /// The slice.
    pub reserved: Reserved,
    /// Do the ranks share cores, as far as the owner knows?
    pub crowded: bool,
}

/// Where an offer says that ranks share cores.
const CROWDED: u64 = 1 << 39;

impl Offer {
    /// The words of the offer to `ranks` ranks.
    pub fn encode(&self, ranks: u32) -> Words {
        let Self { node, handle, arena, reserved, crowded } = *self;
        let Handle { pid, fd, device, inode } = handle;
        let place = ((reserved.offset / UNIT) << 32) | (arena / UNIT);
        let [version, what, _, process, ..] = Owner { node, pid }.refuse(ranks, Reason::Attached);
        let what = what | if crowded { CROWDED } else { 0 };
        let (what, process) = (what | reserved.queues.code() << 32, process | u64::from(fd as u32));
        [version, what, node, process, device, inode, place, (reserved.free / UNIT) << 32, 0, 0, 0, 0]
    }
}

/// Reads an offer to `ranks` ranks: its owner, and the slice, or `None` if the owner's arena is full. Any other reason
/// holds for all ranks, and is an error.
fn decode(words: &Words, ranks: u32) -> Result<(Owner, Option<Offer>), Reason> {
    let &[version, what, node, process, device, inode, place, free, ..] = words;
    if version != VERSION {
        return Err(Reason::Versions);
    }
    let owner = Owner { node, pid: (process >> 32) as u32 };
    match Reason::from_code(what >> 40) {
        Reason::Attached => {}
        Reason::Full => return Ok((owner, None)),
        reason => return Err(reason),
    }
    let queues = Queues::from_code((what >> 32) & 0x7f).filter(|_| what as u32 == ranks).ok_or(Reason::Refused)?;
    let handle = Handle { pid: owner.pid, fd: process as u32 as i32, device, inode };
    let (offset, arena) = ((place >> 32) * UNIT, u64::from(place as u32) * UNIT);
    Ok((
        owner,
        Some(Offer {
            node,
            handle,
            arena,
            reserved: Reserved { offset, queues, free: (free >> 32) * UNIT, term: Term::FIRST },
            crowded: what & CROWDED != 0,
        }),
    ))
}

/// The same offer, with the hash of the process's decision table.
pub fn with_table(words: Words, hash: u64) -> Words {
    let mut words = words;
    words[7] |= u64::from((hash ^ hash >> 32) as u32);
    words
}

/// The same offer, with the process's heap.
pub fn with_heap(words: Words, heap: &Place) -> Words {
    let Place { handle: Handle { fd, device, inode, .. }, bytes, kind } = *heap;
    let mut words = words;
    words[8..10].copy_from_slice(&[inode, (u64::from(fd as u32) << 32) | (kind.code() << KIND) | (bytes / UNIT)]);
    words[11] = device;
    words
}

/// The same offer, with the switch of the process's node.
pub const fn with_switch(words: Words, switch: &Switch) -> Words {
    let mut words = words;
    words[10] = switch.number();
    words
}

/// Why the switches of nodes count for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unswitched {
    /// No rank was told of any.
    Untold,
    /// The first rank whose file is wrong.
    Wrong(Rank),
    /// The first rank that was not told, where others were.
    Lacks(Rank),
}

/// The switch of each node, numbered in the order of nodes: as the node's first rank says. `nodes` is the node of each rank
/// ([`nodes`]).
///
/// # Errors
/// They count for nothing, on all ranks.
pub fn switches(offers: &[Words], nodes: &[u32]) -> Result<Vec<u32>, Unswitched> {
    let number = |words: &Words| words[10];
    let first = |number_is: fn(u64) -> bool| (0..).zip(offers).find(|(_, words)| number_is(number(words)));
    if let Some((rank, _)) = first(|number| number == Switch::WRONG) {
        return Err(Unswitched::Wrong(rank));
    }
    match (first(|number| number == Switch::UNTOLD), first(|number| number > Switch::WRONG)) {
        (Some(_), None) | (None, None) => return Err(Unswitched::Untold),
        (Some((rank, _)), Some(_)) => return Err(Unswitched::Lacks(rank)),
        (None, Some(_)) => {}
    }
    let (mut seen, mut switches) = (Vec::new(), Vec::new());
    for (words, node) in offers.iter().zip(nodes) {
        if *node as usize == switches.len() {
            let known = seen.iter().position(|other| *other == number(words));
            switches.push(known.unwrap_or(seen.len()) as u32);
            if known.is_none() {
                seen.push(number(words));
            }
        }
    }
    Ok(switches)
}

/// The processes that make these offers, on this process's node: their numbers, and their heaps; number 0 for an offer that
/// can't be read.
pub fn owners(offers: &[Words]) -> impl Iterator<Item = (u32, Option<Place>)> {
    offers.iter().map(|words| {
        let &[_, _, _, _, _, _, _, _, inode, size, _, device] = words;
        let Ok((Owner { pid, .. }, _)) = decode(words, offers.len() as u32) else { return (0, None) };
        let handle = Handle { pid, fd: (size >> 32) as u32 as i32, device, inode };
        let (bytes, kind) = ((size & ((1 << KIND) - 1)) * UNIT, Kind::from_code(size >> KIND & 3));
        (pid, kind.filter(|_| inode != 0).map(|kind| Place { handle, bytes, kind }))
    })
}

/// The first rank whose decision table differs from rank 0's; `None` if all have the same table, or no rank has one.
pub fn other_table(offers: &[Words]) -> Option<Rank> {
    let table = |words: &Words| words[7] as u32;
    let of_0 = table(offers.first()?);
    (0..).zip(offers).find(|(_, words)| table(words) != of_0).map(|(rank, _)| rank)
}

/// The slice that is taken, and the rank that offers it; every rank computes the same from the same offers.
///
/// # Errors
/// The largest reason among the offers; or that there is one rank, or several nodes, or no room.
pub fn choose(offers: &[Words]) -> Result<(Rank, Offer), Reason> {
    let ranks = u32::try_from(offers.len()).map_err(|_| Reason::Refused)?;
    let mut worst = if ranks > 1 { Reason::Attached } else { Reason::Alone };
    let mut first_node = None;
    let mut best: Option<(Rank, Offer)> = None;
    for (rank, words) in (0..).zip(offers) {
        match decode(words, ranks) {
            Err(reason) => worst = worst.max(reason),
            Ok((Owner { node, .. }, offer)) => {
                if *first_node.get_or_insert(node) != node {
                    worst = worst.max(Reason::Nodes);
                }
                // Of equal offers the first is taken.
                if let Some(offer) = offer
                    && best.is_none_or(|(_, best)| best.reserved.free < offer.reserved.free)
                {
                    best = Some((rank, offer));
                }
            }
        }
    }
    if worst > Reason::Attached { Err(worst) } else { best.ok_or(Reason::Full) }
}

/// The slice that `rank` offers, if its offer can be read.
pub fn slice_of(offers: &[Words], rank: Rank) -> Option<Offer> {
    decode(offers.get(rank as usize)?, offers.len() as u32).ok()?.1
}

/// The node of each rank, numbered in the order of their first ranks; `None` if an offer can't be read.
pub fn nodes(offers: &[Words]) -> Option<Vec<u32>> {
    let mut seen = Vec::new();
    let number = |words| {
        let node = decode(words, offers.len() as u32).ok()?.0.node;
        let known = seen.iter().position(|other| *other == node);
        Some(known.unwrap_or_else(|| {
            seen.push(node);
            seen.len() - 1
        }) as u32)
    };
    offers.iter().map(number).collect()
}

/// The processes whose offers can be read.
pub fn pids(offers: &[Words]) -> impl Iterator<Item = u32> {
    let owners = offers.iter().filter_map(|words| decode(words, offers.len() as u32).ok());
    owners.map(|(owner, _)| owner.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(node: u64, free: u64) -> Offer {
        let handle = Handle { pid: 7, fd: 3, device: 4, inode: 5 };
        Offer {
            node,
            handle,
            arena: 1 << 20,
            reserved: Reserved { offset: 8192, queues: Queues::Small, free: free * UNIT, term: Term::FIRST },
            crowded: false,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for queues in [Queues::Large, Queues::Small, Queues::Papers] {
            let mut offer = offer(9, 77);
            offer.reserved.queues = queues;
            for crowded in [false, true] {
                offer.crowded = crowded;
                assert_eq!(decode(&offer.encode(3), 3), Ok((Owner { node: 9, pid: 7 }, Some(offer))));
            }
        }
        let owner = Owner { node: 9, pid: 7 };
        for reason in Reason::ALL.into_iter().skip(1) {
            let expected = if reason == Reason::Full { Ok((owner, None)) } else { Err(reason) };
            assert_eq!(decode(&owner.refuse(3, reason), 3), expected);
        }
    }

    #[test]
    fn the_version_has_three_parts() {
        assert_eq!(
            [VERSION >> 48, VERSION >> 32 & 0xffff, VERSION & 0xffff_ffff],
            [6, layout::VERSION, unisono_c::VERSION.into()]
        );
        // The largest arena's pages fit their word.
        assert_eq!((MOST / UNIT) >> 31, 1);
    }

    #[test]
    fn the_arena_with_most_room_is_taken_and_of_equal_ones_the_first() {
        let offers = [3, 5, 5, 4].map(|free| offer(1, free).encode(4));
        assert_eq!(choose(&offers).map(|(rank, _)| rank), Ok(1));
        let offers = [Owner { node: 1, pid: 7 }.refuse(2, Reason::Full), offer(1, 0).encode(2)];
        assert_eq!(choose(&offers).map(|(rank, _)| rank), Ok(1));
    }

    #[test]
    fn the_largest_reason_wins_wherever_it_stands() {
        let fine = offer(1, 1).encode(3);
        let refused = |reason| Owner { node: 1, pid: 7 }.refuse(3, reason);
        for (offers, reason) in [
            ([refused(Reason::Full); 3], Reason::Full),
            ([fine, refused(Reason::Refused), fine], Reason::Refused),
            ([refused(Reason::Off), refused(Reason::Refused), fine], Reason::Off),
            ([refused(Reason::Full), fine, offer(2, 1).encode(3)], Reason::Nodes),
            ([Owner { node: 2, pid: 7 }.refuse(3, Reason::Full), fine, fine], Reason::Nodes),
            ([offer(2, 1).encode(3), refused(Reason::Refused), fine], Reason::Refused),
            ([fine, [0; 12], fine], Reason::Versions),
            ([fine, offer(1, 1).encode(4), fine], Reason::Refused),
        ] {
            assert_eq!(choose(&offers), Err(reason), "{offers:?}");
        }
        assert_eq!(choose(&[offer(1, 1).encode(1)]), Err(Reason::Alone));
        assert_eq!(choose(&[Owner { node: 1, pid: 7 }.refuse(1, Reason::Off)]), Err(Reason::Off));
        assert_eq!(choose(&[]), Err(Reason::Alone));
    }

    #[test]
    fn nodes_are_numbered_by_their_first_ranks() {
        let offers = [7, 9, 7, 3, 9].map(|node| offer(node, 1).encode(5));
        assert_eq!(nodes(&offers), Some(vec![0, 1, 0, 2, 1]));
        let full = Owner { node: 9, pid: 7 }.refuse(2, Reason::Full);
        assert_eq!(nodes(&[full, offer(7, 1).encode(2)]), Some(vec![0, 1]));
        assert_eq!(nodes(&[[0; 12], full]), None);

        let ranks_on = |offers: &[Words], rank| {
            // SAFETY: as many offers as it is told of.
            unsafe { crate::unisono_mpi_node_ranks(offers.as_ptr(), offers.len() as u32, rank) }
        };
        assert_eq!([0, 1, 2, 3, 4, 5].map(|rank| ranks_on(&offers, rank)), [2, 2, 2, 1, 2, 0]);
        assert_eq!(ranks_on(&[[0; 12], full], 1), 0);
    }

    #[test]
    fn switches_are_those_of_each_nodes_first_rank() {
        let fine = offer(7, 1).encode(5);
        let on = |switches: [u64; 5]| switches.map(|hash| with_switch(fine, &Switch::Known(hash)));
        let nodes = [0, 1, 0, 2, 1];
        assert_eq!(switches(&on([9, 8, 5, 9, 6]), &nodes), Ok(vec![0, 1, 0]));
        assert_eq!(switches(&[fine; 5], &nodes), Err(Unswitched::Untold));
        assert_eq!(switches(&[], &[]), Err(Unswitched::Untold));
        let mut some = on([9; 5]);
        some[3] = fine;
        assert_eq!(switches(&some, &nodes), Err(Unswitched::Lacks(3)));
        some[4] = with_switch(fine, &Switch::Wrong(String::new()));
        assert_eq!(switches(&some, &nodes), Err(Unswitched::Wrong(4)));
        assert_eq!(decode(&some[0], 5), decode(&fine, 5), "nothing else is another");
    }

    #[test]
    fn a_rank_with_another_table_is_named() {
        let full = Owner { node: 1, pid: 7 }.refuse(3, Reason::Full);
        let fine = offer(1, 1).encode(3);
        let one = 5 << 32 | 6;
        assert_eq!(other_table(&[fine, full, fine]), None);
        assert_eq!(other_table(&[fine, full, fine].map(|words| with_table(words, one))), None);
        assert_eq!(other_table(&[with_table(fine, one), with_table(full, one), fine]), Some(2));
        assert_eq!(other_table(&[fine, with_table(full, one), with_table(fine, one + 1)]), Some(1));
        assert_eq!(other_table(&[]), None);
        // Both halves of a hash matter, and which one is which.
        for (mine, other) in [(6, one), (0, 6), (7, one), (5 << 32, 5), (5 << 32, 0)] {
            let differ = other_table(&[with_table(fine, mine), with_table(fine, other)]);
            assert_eq!(differ, (mine != 5 << 32 || other != 5).then_some(1), "{mine} {other}");
        }
        assert_eq!(decode(&with_table(fine, u64::MAX - 1), 3), decode(&fine, 3), "nothing else is another");
    }

    #[test]
    fn an_offer_tells_of_its_process_and_heap() {
        let handle = |fd| Handle { pid: 7, fd, device: 5, inode: 11 };
        let heap = |fd| Place { handle: handle(fd), bytes: 3 << 40, kind: Kind::Hugetlb };
        let fine = offer(1, 5).encode(2);
        let full = Owner { node: 1, pid: 8 }.refuse(2, Reason::Full);
        let told = with_table(with_heap(fine, &heap(9)), 6);
        assert_eq!(owners(&[told, fine]).collect::<Vec<_>>(), [(7, Some(heap(9))), (7, None)]);
        assert_eq!(decode(&told, 2), decode(&fine, 2), "nothing else is another");
        // A process whose arena is full has a heap, too.
        let place = Place { handle: Handle { pid: 8, ..heap(-1).handle }, ..heap(-1) };
        assert_eq!(owners(&[with_heap(full, &place), [0; 12]]).collect::<Vec<_>>(), [(8, Some(place)), (0, None)]);
    }

    #[test]
    fn no_words_are_read_as_an_unknown_reason() {
        let mut words = offer(1, 1).encode(2);
        words[1] |= 9 << 40;
        assert_eq!(decode(&words, 2), Err(Reason::Refused));
        let mut words = offer(1, 1).encode(2);
        words[1] |= 2 << 32;
        assert_eq!(decode(&words, 2), Err(Reason::Refused));
    }
}

//! Where the segment's pages are: reserved and touched first by their owner, then looked up.
//!
//! On request each rank first sets a memory policy for its own area with `mbind`; if that is refused, first touch
//! decides. Each rank is bound, or confined to its node for this step. It reserves its own area with `fallocate`: the
//! kernel takes those pages from the caller's node, and a shortage is an error here instead of a kill later. It touches
//! every page under `MADV_RANDOM` (one page for each fault), and asks `move_pages` where each one is. That call knows
//! only pages that the caller has mapped, so each is read before. Where the call is missing or forbidden, the pages
//! count as unknown, with the reason.
//!
//! The words and bytes of pairs of ranks (mailboxes, P2's `ctrlall`) are not reserved: their pages have a policy, and exist once a
//! pair uses them.
//!
//! The slices of arenas, in which all later communicators lie, can't be touched by their owners first: no rank waits for
//! another one there, and so many pages would cost memory before they are used. So each member sets the policy of all
//! parts before its own first access ([`of_slice`]): then no page is placed without one, whoever touches it. Where
//! `mbind` is refused each member touches its own part at once, and those who were faster have placed some of it.

use crate::arena::Slice;
use crate::binding;
use crate::error::{Limit, PosixError};
use crate::pages::Mapped;
use crate::policy::Policy;
use crate::segment::Segment;
use crate::wire::{Reader, Writer};
use crate::{space, sys};
use core::ffi::c_void;
use core::fmt;
use memmap2::Advice;
use rustix::io::Errno;
use std::io;
use std::sync::OnceLock;
use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::region::{Counter, Extent, Layout, Word};

/// A page that is not on its owner's NUMA node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Misplaced {
    /// True: it is one of the shared pages (header, lease, P1's sets) that rank 0 owns. False: in the rank's own area.
    pub shared: bool,
    /// Its index in that area.
    pub page: u64,
    /// The node that it is on.
    pub found: u32,
    /// The node of its owner.
    pub expected: u32,
}

/// Where the pages of one rank are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The rank.
    pub rank: Rank,
    /// Its NUMA node.
    pub node: u32,
    /// Number of pages that were looked up: all that the rank owns.
    pub checked: u64,
    /// Bytes of a page.
    pub page: u64,
    /// The pages on another node.
    pub misplaced: Vec<Misplaced>,
    /// Number of pages whose node is not known.
    pub unknown: u64,
    /// Why it is not known: the last error number.
    pub errno: Option<i32>,
    /// How many bytes of the segment the rank has mapped, and how many in huge pages; `None`: the kernel does not say.
    pub mapped: Option<Mapped>,
    /// The error number of `mbind`, if it was asked for and refused.
    pub unbound: Option<i32>,
}

/// A [`Placement`] as numbers, which all ranks know of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The rank.
    pub rank: Rank,
    /// Its NUMA node.
    pub node: u32,
    /// Number of pages that were looked up: all that the rank owns.
    pub checked: u64,
    /// Number of pages on another node.
    pub misplaced: u64,
    /// Number of pages whose node is not known.
    pub unknown: u64,
    /// How many bytes of the segment the rank has mapped, and how many in huge pages; `None`: the kernel does not say.
    pub mapped: Option<Mapped>,
    /// The error number of `mbind`, if it was asked for and refused.
    pub unbound: Option<i32>,
}

/// The extents that `rank` touches first: in its area, and for rank 0 the shared pages too (with true).
fn owned(layout: &Layout, rank: Rank) -> impl Iterator<Item = (bool, Extent)> {
    let shared = (rank == 0).then(|| (true, layout.shared_pages()));
    shared.into_iter().chain([(false, layout.first_pages(rank))])
}

/// Reserves the pages of `rank` and touches each, on the caller's NUMA node. `node` is that node's number, for the
/// policy. The pages of its pairs are left to those who use them: p² in all ranks' areas. Returns the error number of the policy's call, if it was refused.
///
/// # Errors
/// [`PosixError::Space`] if there is not enough memory; other errors of the system calls.
pub(crate) fn place(segment: &Segment, rank: Rank, policy: Policy, node: u32) -> Result<Option<i32>, PosixError> {
    let mut unbound = None;
    for (_, extent) in owned(segment.layout(), rank) {
        if let Err(error) = segment.bind(extent, policy, node) {
            unbound = Some(sys::errno(&error));
        }
        segment.reserve(extent).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::NOSPC | Errno::NOMEM) => {
                let (available, _) = space::available();
                PosixError::Space { needed: extent.len(), available, limit: Limit::Reserve }
            }
            _ => PosixError::io("fallocate", &error, format!("reserve {} bytes of the segment", extent.len())),
        })?;
        segment.advise(extent, Advice::Random)?;
        segment.page_words(extent).for_each(touch);
        segment.advise(extent, Advice::Normal)?;
    }
    let pairs = segment.layout().pair_pages(rank);
    if !pairs.is_empty() && several_nodes() {
        let policy = if policy == Policy::FirstTouch { Policy::Preferred } else { policy };
        // If it is refused, a page lies on the node of whoever touches it first.
        let _refused = segment.bind(pairs, policy, node);
    }
    Ok(unbound)
}

/// Writes to a page without changing it, even if another rank writes there: adds 0 atomically, in a way that the
/// compiler can't leave out.
fn touch(word: &Word) {
    word.fetch_add(core::hint::black_box(0));
}

/// Looks up every page of `rank`, which should be on `node`.
pub(crate) fn verify(segment: &Segment, rank: Rank, node: u32) -> Placement {
    let mut placement = Placement { rank, node, page: segment.kind().page(), ..Placement::default() };
    for (shared, extent) in owned(segment.layout(), rank) {
        let pages: Vec<_> = segment
            .page_words(extent)
            .map(|word| {
                core::hint::black_box(word.load_payload());
                std::ptr::from_ref(word).cast_mut().cast()
            })
            .collect();
        placement.look_up(shared, &pages);
    }
    placement.mapped = segment.mapped_pages();
    placement
}

/// Has this machine several NUMA nodes?
fn several_nodes() -> bool {
    static SEVERAL: OnceLock<bool> = OnceLock::new();
    *SEVERAL.get_or_init(|| binding::nodes().len() > 1)
}

/// A number for the nodes of a slice's members, in the order of their ranks: a slice whose members were on other nodes has
/// its pages there. 0 on a machine with one node. It has 31 bits.
pub fn digest(nodes: impl Iterator<Item = u32>) -> u32 {
    nodes.fold(0_u32, |digest, node| digest.wrapping_mul(0x0100_0193).wrapping_add(node)) & (u32::MAX >> 1)
}

/// Sets the policy of all members' parts of a slice, so that each comes to lie on its member's node, whoever touches it
/// first. `nodes` are the members' nodes by rank, or `me` alone knows its own: those of other ranks are `None`. On a machine
/// with one node nothing is done. To be called before this process, which is rank `me`, accesses the slice.
///
/// # Errors
/// The system refuses the policy. Then this process's own part exists now: it was touched here.
pub fn of_slice(
    slice: &Slice,
    me: Rank,
    nodes: impl Iterator<Item = Option<u32>>,
    policy: Policy,
) -> Result<(), PosixError> {
    if !several_nodes() {
        return Ok(());
    }
    bind_parts(slice, nodes, policy.mode().unwrap_or(sys::MPOL_PREFERRED)).map_err(|error| {
        slice.populate(me);
        PosixError::io("mbind", &error, "place a communicator's memory")
    })
}

/// The policy is the file's. But Linux keeps a copy of it with each map, skips a call that does not change the copy, and
/// gives the whole of neighbouring pages with equal copies to the file again: what other processes have set meanwhile would
/// be lost. So this goes through a map of its own.
fn bind_parts(slice: &Slice, nodes: impl Iterator<Item = Option<u32>>, mode: i32) -> io::Result<()> {
    let layout = *slice.plan().layout();
    // SAFETY: the slice lies inside its map, and consists of whole pages.
    let alias = unsafe { sys::Alias::of(slice.map().base().wrapping_add(slice.offset() as usize), layout.bytes()) }?;
    let bind = |from: u64, to: u64, node: Option<u32>| match node {
        Some(node) => sys::mbind(alias.base().wrapping_add(from as usize), to - from, mode, node),
        None => Ok(()),
    };
    // Neighbours on one node share a call; the shared pages, which are the first, are rank 0's.
    let (mut begin, mut run) = (layout.shared_pages().offset(), None);
    for (rank, node) in (0..layout.ranks()).zip(nodes) {
        let own = layout.own_pages(rank).offset();
        if rank > 0 && node != run {
            bind(begin, own, run)?;
            begin = own;
        }
        run = node;
    }
    bind(begin, layout.bytes(), run)
}

/// Looks up the pages of `rank`'s part of a slice that this process has mapped; they should be on `node`.
pub fn verify_slice(slice: &Slice, rank: Rank, node: u32) -> Placement {
    let page = crate::page();
    let mut placement = Placement { rank, node, page, ..Placement::default() };
    for (shared, extent) in owned(slice.plan().layout(), rank) {
        let base = slice.map().base().wrapping_add((slice.offset() + extent.offset()) as usize);
        placement.look_up(shared, &pages_of(base, extent.len()));
    }
    placement
}

/// Looks up the pages of any memory that this process, which is rank `rank`, has mapped; they should be on `node`.
pub fn verify_memory(memory: Buf, rank: Rank, node: u32) -> Placement {
    let page = crate::page();
    let mut placement = Placement { rank, node, page, ..Placement::default() };
    let before = memory.ptr().addr() as u64 % page;
    let start = memory.ptr().wrapping_sub(before as usize);
    placement.look_up(false, &pages_of(start, memory.len() as u64 + before));
    placement
}

/// The addresses of the pages of `len` bytes from a page's start on.
fn pages_of(base: *mut u8, len: u64) -> Vec<*mut c_void> {
    (0..len).step_by(crate::page() as usize).map(|at| base.wrapping_add(at as usize).cast()).collect()
}

impl Placement {
    /// Adds these pages of an area. Those that this process has not mapped are left out.
    fn look_up(&mut self, shared: bool, pages: &[*mut c_void]) {
        let mut nodes = vec![-Errno::AGAIN.raw_os_error(); pages.len()];
        if let Err(error) = sys::page_nodes(pages, &mut nodes) {
            nodes.fill(-sys::errno(&error));
        }
        for (page, found) in (0..).zip(nodes) {
            if found == -Errno::NOENT.raw_os_error() {
                continue;
            }
            self.checked += 1;
            match u32::try_from(found) {
                Ok(found) if found == self.node => {}
                Ok(found) => self.misplaced.push(Misplaced { shared, page, found, expected: self.node }),
                Err(_) => {
                    self.unknown += 1;
                    self.errno = Some(-found);
                }
            }
        }
    }

    /// The same as numbers.
    pub fn summary(&self) -> Summary {
        let Self { rank, node, checked, unknown, mapped, unbound, .. } = *self;
        Summary { rank, node, checked, misplaced: self.misplaced.len() as u64, unknown, mapped, unbound }
    }
}

/// In a message: the kernel did not say what is mapped.
const UNKNOWN: u64 = u64::MAX;

impl Summary {
    pub(crate) fn write(&self) -> Vec<u8> {
        let Mapped { bytes, huge } = self.mapped.unwrap_or(Mapped { bytes: 0, huge: UNKNOWN });
        let unbound = self.unbound.unwrap_or(0);
        let words = [self.node.into(), self.checked, self.misplaced, self.unknown, bytes, huge, unbound as u64];
        Writer::default().words(&words).0
    }

    pub(crate) fn read(rank: Rank, message: &[u8]) -> Option<Self> {
        let words = Reader(message).words()?;
        let &[node, checked, misplaced, unknown, bytes, huge, unbound] = words.as_slice() else { return None };
        let mapped = (huge != UNKNOWN).then_some(Mapped { bytes, huge });
        let unbound = Some(i32::try_from(unbound).ok()?).filter(|&errno| errno != 0);
        Some(Self { rank, node: node.try_into().ok()?, checked, misplaced, unknown, mapped, unbound })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, node, checked, misplaced, unknown, unbound, .. } = self;
        write!(f, "rank {rank}, node {node}: {checked} pages, {misplaced} misplaced, {unknown} unknown")?;
        match unbound {
            Some(errno) => write!(f, ", mbind refused: {}", io::Error::from_raw_os_error(*errno)),
            None => Ok(()),
        }
    }
}

/// The summary, then every misplaced page; neighbouring pages share a line.
impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.summary().fmt(f)?;
        if let Some(errno) = self.errno {
            write!(f, " ({})", io::Error::from_raw_os_error(errno))?;
        }
        let run = |a: &Misplaced, b: &Misplaced| b.page == a.page + 1 && (a.shared, a.found) == (b.shared, b.found);
        for run in self.misplaced.chunk_by(run) {
            let [first, .., last] = run else {
                write!(f, "\n  {}", Line { first: &run[0], last: None })?;
                continue;
            };
            write!(f, "\n  {}", Line { first, last: Some(last.page) })?;
        }
        Ok(())
    }
}

/// One line of a report: a page, or the pages from it to the index `last`.
struct Line<'a> {
    first: &'a Misplaced,
    last: Option<u64>,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misplaced { shared, page, found, expected } = self.first;
        let area = if *shared { "shared" } else { "own" };
        match self.last {
            None => write!(f, "{area} page {page}: on node {found}, expected {expected}"),
            Some(last) => write!(f, "{area} pages {page}-{last}: on node {found}, expected {expected}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_kernel::region::Params;

    #[test]
    fn pages_are_placed_counted_and_left_as_they_were() {
        let layout = Layout::new(Params::new(2).with_cico()).unwrap();
        let segment = Segment::create(&layout).unwrap();
        let before = segment.page_words(layout.shared_pages()).next().unwrap().load_payload();
        let mut pages = 0;
        for rank in 0..2 {
            assert_eq!(place(&segment, rank, Policy::FirstTouch, 0), Ok(None));
            let placement = verify(&segment, rank, binding::numa_node().unwrap());
            pages += placement.checked;
            assert!(placement.errno.is_some() || placement.unknown == 0, "{placement}");
            let known = Summary::read(rank, &placement.summary().write());
            assert_eq!(known, Some(placement.summary()));
        }
        assert_eq!(pages * sys::page(), layout.first_bytes());
        assert!(layout.first_bytes() < layout.bytes());
        let after = segment.page_words(layout.shared_pages()).next().unwrap().load_payload();
        assert_eq!(before, after);
    }

    #[test]
    fn a_range_has_its_owners_policy_or_the_refusal_is_told() {
        let layout = Layout::new(Params::new(2)).unwrap();
        let node = binding::numa_node().unwrap();
        for (policy, mode) in [(Policy::Preferred, sys::MPOL_PREFERRED), (Policy::Bind, sys::MPOL_BIND)] {
            let segment = Segment::create(&layout).unwrap();
            let refused = place(&segment, 1, policy, node).unwrap();
            let mode_at = |extent: Extent| {
                let word = std::ptr::from_ref(segment.page_words(extent).next().unwrap());
                sys::policy_at(word.cast_mut().cast())
            };
            if refused.is_none() {
                assert_eq!(mode_at(layout.own_pages(1)).unwrap(), mode, "{policy}");
                assert_eq!(mode_at(layout.own_pages(0)).unwrap(), libc::MPOL_DEFAULT, "{policy}");
            }
            let summary = Summary { rank: 1, unbound: refused, ..Summary::default() };
            assert_eq!(summary.to_string().contains("mbind refused"), refused.is_some());
            // There is no such node: the refusal is returned, and the pages are placed by first touch.
            let segment = Segment::create(&layout).unwrap();
            assert_ne!(place(&segment, 0, policy, 1000), Ok(None));
            assert_eq!(verify(&segment, 0, node).misplaced, []);
        }
    }

    #[test]
    fn a_page_on_another_node_is_reported() {
        let layout = Layout::new(Params::new(1)).unwrap();
        let segment = Segment::create(&layout).unwrap();
        assert_eq!(place(&segment, 0, Policy::FirstTouch, 0), Ok(None));
        let placement = verify(&segment, 0, 1000);
        assert_eq!(placement.misplaced.len() as u64 + placement.unknown, placement.checked);
        if placement.unknown == 0 {
            let text = placement.to_string();
            assert!(text.contains("shared pages 0-1: on node"), "{text}");
            assert!(text.contains("expected 1000"), "{text}");
        }
    }
}

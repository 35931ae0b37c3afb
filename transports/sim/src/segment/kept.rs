//! What the caches of a core keep: as much as they have room for. What came first goes first.

use std::collections::{HashMap, HashSet, VecDeque};

/// Bytes of a page. Private memory is kept by pages, not by lines: so a run needs little memory.
pub const PAGE: usize = 4096;

/// Something that a cache keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Item {
    /// A line that others may have, too.
    Line(u32),
    /// A page of private memory: its address ÷ [`PAGE`].
    Page(usize),
}

/// A page of private memory that was used.
#[derive(Clone, Copy, Debug)]
struct Page {
    kept: bool,
    changed: bool,
}

/// The caches of a core.
#[derive(Debug)]
pub(super) struct Kept {
    /// Lines for which there is room.
    room: u64,
    /// Lines that are kept, those of pages included.
    lines: u64,
    /// What came, the latest at the end. What others took away is in it, too, and what came again is in it several times.
    order: VecDeque<Item>,
    pages: HashMap<usize, Page>,
}

impl Kept {
    /// Lines of a page.
    pub(super) const LINES: u64 = PAGE as u64 / super::caches::LINE;

    /// Items of `order` above twice those that are kept, when it is cleared of what is not kept.
    const SPARE: usize = 4096;

    pub(super) fn new(bytes: u64) -> Self {
        Self { room: bytes / super::caches::LINE, lines: 0, order: VecDeque::new(), pages: HashMap::new() }
    }

    /// A line came.
    pub(super) fn came(&mut self, line: usize) {
        self.lines += 1;
        // A run has fewer lines: 2³² of them are 256 GiB.
        self.order.push_back(Item::Line(line as u32));
    }

    /// A line was taken away.
    pub(super) const fn went(&mut self) {
        self.lines -= 1;
    }

    /// A page is used, and may be changed. `false`: it was kept before, and is not any more; it is now. One that was never used is
    /// kept: the program has just made it.
    pub(super) fn uses(&mut self, page: usize, changes: bool) -> bool {
        let before = self.pages.get(&page).copied();
        let (kept, changed) = before.map_or((false, false), |page| (page.kept, page.kept && page.changed));
        self.pages.insert(page, Page { kept: true, changed: changed || changes });
        if !kept {
            self.lines += Self::LINES;
            self.order.push_back(Item::Page(page));
        }
        kept || before.is_none()
    }

    /// What goes next, if more is kept than there is room for.
    pub(super) fn oldest(&mut self) -> Option<Item> {
        if self.lines > self.room { self.order.pop_front() } else { None }
    }

    /// A page goes; returns whether it was changed.
    pub(super) fn drops(&mut self, page: usize) -> bool {
        let Some(page) = self.pages.get_mut(&page).filter(|page| page.kept) else { return false };
        page.kept = false;
        self.lines -= Self::LINES;
        page.changed
    }

    /// Forgets what is not kept, from time to time. `holds`: has the core this line?
    pub(super) fn clear(&mut self, holds: impl Fn(u32) -> bool) {
        if self.order.len() < 2 * self.lines as usize + Self::SPARE {
            return;
        }
        let (mut seen, pages) = (HashSet::new(), &self.pages);
        let mut latest: Vec<Item> = (self.order.iter().rev().copied())
            .filter(|item| match *item {
                Item::Line(line) => holds(line),
                Item::Page(page) => pages.get(&page).is_some_and(|page| page.kept),
            })
            .filter(|item| seen.insert(*item))
            .collect();
        latest.reverse();
        self.order = latest.into();
    }
}

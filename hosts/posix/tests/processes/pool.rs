//! The kernel's pool of huge pages, for tests that need some; hosts/heap's use it, too.

use std::fs::{read_to_string, write};

/// The kernel's pool of huge pages, with other pages until this is dropped.
pub(super) struct Pool {
    before: String,
}

impl Pool {
    const PAGES: &str = "/proc/sys/vm/nr_hugepages";

    /// With at least so many pages; `None`, and a line that says so: this process may not change it, or they can't be had.
    pub(super) fn with(pages: u64) -> Option<Self> {
        let pool = Self { before: read_to_string(Self::PAGES).unwrap_or_default() };
        let number = |text: &str| text.trim().parse::<u64>().unwrap_or(0);
        if number(&pool.before) < pages {
            let written = write(Self::PAGES, pages.to_string());
            let found = read_to_string(Self::PAGES).unwrap_or_default();
            if written.is_err() || number(&found) < pages {
                eprintln!("SKIPPED: a pool of {pages} huge pages ({written:?}, it has {})", found.trim());
                return None;
            }
        }
        Some(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _unchanged = write(Self::PAGES, &self.before);
    }
}

//! A segment's pages exist once they are used: of mailboxes between all pairs of ranks, only those of pairs that exchange messages.

use unisono_kernel::region::{Layout, Params};
use unisono_local::Segment;

/// Bytes of this process that are in memory; `None` if the system does not say.
fn resident() -> Option<u64> {
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

#[test]
fn a_fresh_segment_takes_next_to_no_memory() {
    let params = Params::new(64).with_mailboxes();
    let bytes = Layout::new(params).unwrap().bytes();
    assert!(bytes > 64 * 64 * 65_536);
    let before = resident();
    let segment = Segment::new(params).unwrap();
    if let (Some(before), Some(after)) = (before, resident()) {
        assert!(after < before + bytes / 16, "{} of {bytes} bytes exist", after - before);
    }
    assert_eq!(segment.layout().bytes(), bytes);
}

//! Is there enough memory for a segment? Checked before anything is mapped, because a page that can't be had kills the
//! process that touches it.

use crate::cgroup;
use crate::error::{Limit, PosixError};
use std::fs::read_to_string;

/// Bytes that are available now, and the limit that says so.
pub fn available() -> (u64, Limit) {
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| mem_available(&text)).unwrap_or(u64::MAX);
    match cgroup::memory() {
        Some(group) if group < machine => (group, Limit::Cgroup),
        _ => (machine, Limit::Machine),
    }
}

fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Refuses a segment that does not fit.
///
/// # Errors
/// [`PosixError::Space`], with the bytes that are needed and those that are available.
pub fn check(needed: u64) -> Result<(), PosixError> {
    let (available, limit) = available();
    if needed <= available { Ok(()) } else { Err(PosixError::Space { needed, available, limit }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read() {
        assert_eq!(mem_available("MemTotal: 9 kB\nMemAvailable:    12 kB\n"), Some(12 << 10));
        assert_eq!(mem_available("MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn the_absurd_is_refused_with_both_figures() {
        assert_eq!(check(1), Ok(()));
        let error = check(1 << 60).unwrap_err();
        assert!(
            matches!(error, PosixError::Space { needed, available, .. } if needed == 1 << 60 && available < needed)
        );
    }
}

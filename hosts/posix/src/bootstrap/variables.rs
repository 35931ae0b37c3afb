//! The environment variables that the launcher sets for a process.

/// The process's rank.
pub const RANK: &str = "UNISONO_RANK";
/// Number of processes.
pub const SIZE: &str = "UNISONO_SIZE";
/// File descriptor of the process's end of its socket to the launcher.
pub const BOOTSTRAP_FD: &str = "UNISONO_BOOTSTRAP_FD";

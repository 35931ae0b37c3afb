//! The machine that was measured, in words.

use serde::{Deserialize, Serialize};
use std::fs::read_to_string;
use std::process::Command;

/// When and where.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Machine {
    pub(crate) date: String,
    pub(crate) processor: String,
    pub(crate) kernel: String,
    pub(crate) cores: u32,
    /// Load averages before the first round.
    pub(crate) load: String,
}

impl Machine {
    /// This machine, now.
    pub(crate) fn this() -> Self {
        let word = |path: &str| read_to_string(path).unwrap_or_default().trim().to_owned();
        let info = word("/proc/cpuinfo");
        let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let date = Command::new("date").args(["-u", "+%F %H:%M UTC"]).output();
        Self {
            date: date.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default(),
            processor: model.map_or("unknown", |(_, model)| model).to_owned(),
            kernel: word("/proc/sys/kernel/osrelease"),
            cores: cores(),
            load: word("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" "),
        }
    }
}

/// Cores that this process may use.
pub(crate) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

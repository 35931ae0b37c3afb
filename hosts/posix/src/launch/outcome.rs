//! How the ranks ended.

use core::fmt;
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use unisono_kernel::Rank;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
}

impl Exit {
    /// Did it exit with code 0?
    pub const fn success(self) -> bool {
        matches!(self, Self::Code(0))
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        // A process that has ended has a code or a signal.
        status.code().map_or_else(|| Self::Signal(status.signal().unwrap_or(0)), Self::Code)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signal = match *self {
            Self::Code(code) => return write!(f, "ended with code {code}"),
            Self::Signal(signal) => signal,
        };
        let name = match Signal::from_named_raw(signal) {
            Some(Signal::HUP) => " (SIGHUP)",
            Some(Signal::INT) => " (SIGINT)",
            Some(Signal::QUIT) => " (SIGQUIT)",
            Some(Signal::ILL) => " (SIGILL)",
            Some(Signal::TRAP) => " (SIGTRAP)",
            Some(Signal::ABORT) => " (SIGABRT)",
            Some(Signal::BUS) => " (SIGBUS)",
            Some(Signal::FPE) => " (SIGFPE)",
            Some(Signal::KILL) => " (SIGKILL)",
            Some(Signal::SEGV) => " (SIGSEGV)",
            Some(Signal::PIPE) => " (SIGPIPE)",
            Some(Signal::TERM) => " (SIGTERM)",
            _ => "",
        };
        write!(f, "was killed by signal {signal}{name}")
    }
}

/// How all ranks ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Each process's end, by rank.
    pub exits: Vec<Exit>,
    /// Ranks that the launcher killed, because the grace period was over or the caller asked for it.
    pub killed: Vec<Rank>,
    /// The rank that failed first.
    pub first: Option<Rank>,
}

impl Outcome {
    /// Did all exit with code 0?
    pub fn success(&self) -> bool {
        self.exits.iter().all(|exit| exit.success())
    }
}

/// The ranks that failed, the first one first, and last those that the launcher killed.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.success() {
            return write!(f, "all {} ranks ended with code 0", self.exits.len());
        }
        let bad = (0..).zip(&self.exits).filter(|(rank, exit)| !exit.success() && !self.killed.contains(rank));
        let mut bad: Vec<(Rank, &Exit)> = bad.collect();
        bad.sort_by_key(|&(rank, _)| (Some(rank) != self.first, rank));
        let bad = bad.into_iter().map(|(rank, exit)| format!("rank {rank} {exit}"));
        let killed = self.killed.iter().map(|rank| format!("rank {rank} still ran and was killed by the launcher"));
        f.write_str(&bad.chain(killed).collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_names_the_rank_that_failed_first() {
        let exits = vec![Exit::Code(1), Exit::Code(0), Exit::Signal(9), Exit::Signal(9)];
        let outcome = Outcome { exits, killed: vec![3], first: Some(2) };
        let text = "rank 2 was killed by signal 9 (SIGKILL); rank 0 ended with code 1; \
                    rank 3 still ran and was killed by the launcher";
        assert_eq!(outcome.to_string(), text);
        assert!(!outcome.success());
        let fine = Outcome { exits: vec![Exit::Code(0); 2], killed: vec![], first: None };
        assert_eq!(fine.to_string(), "all 2 ranks ended with code 0");
    }
}

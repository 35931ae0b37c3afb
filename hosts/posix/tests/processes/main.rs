//! Real processes: this binary launches itself, once per rank.
//!
//! A test names a body. The launcher starts ranks that run only the ignored test `rank`, which runs that body and
//! writes its results to files in the test's directory. No test here depends on how fast the machine is: time limits
//! only end runs that would hang.

mod alone;
mod body;
mod bound;
mod collectives;
mod communicators;
mod death;
mod lent;
mod numa;
mod pages;
mod polling;
mod pool;
mod refused;
mod renewals;
mod start_up;
mod thousand;
mod threads;

use rustix::process::{Pid, Signal};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use unisono_posix::launch::{Bind, Launch, Outcome, Running};

/// Environment variables: the body that a rank runs, its argument, and the directory for its results.
const BODY: &str = "UNISONO_TEST_BODY";
const ARGUMENT: &str = "UNISONO_TEST_ARGUMENT";
const DIRECTORY: &str = "UNISONO_TEST_DIRECTORY";

#[test]
#[ignore = "what the other tests start as a rank"]
fn rank() {
    if std::env::var_os(BODY).is_some() {
        body::run();
    }
}

/// A test's own directory, which is removed afterwards.
struct Scene {
    directory: PathBuf,
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Scene {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("unisono-posix-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        Self { directory }
    }

    /// How to start `ranks` ranks that run a body. Their standard output is the test harness's, and is discarded.
    fn launch(&self, body: &str, argument: &str, ranks: u32, bind: Bind) -> Launch {
        let exe = std::env::current_exe().unwrap();
        let words = ["-c", "exec \"$@\" > /dev/null 2>&1", "sh"].map(OsString::from);
        let args = ["rank", "--exact", "--ignored", "--nocapture"].map(OsString::from);
        Launch {
            ranks,
            bind,
            program: "/bin/sh".into(),
            args: words.into_iter().chain([exe.into()]).chain(args).collect(),
            env: vec![
                (BODY.into(), body.into()),
                (ARGUMENT.into(), argument.into()),
                (DIRECTORY.into(), self.directory.clone().into()),
            ],
            grace: Duration::from_secs(10),
        }
    }

    fn spawn(&self, body: &str, ranks: u32) -> Running {
        self.launch(body, "", ranks, Bind::None).spawn().unwrap()
    }

    fn run(&self, body: &str, argument: &str, ranks: u32) -> Outcome {
        self.launch(body, argument, ranks, Bind::None).run().unwrap()
    }

    /// Waits for a rank's text about a topic, and returns it.
    fn said(&self, rank: u32, topic: &str) -> String {
        let path = self.directory.join(format!("{topic}-{rank}"));
        let begin = Instant::now();
        loop {
            match std::fs::read_to_string(&path) {
                Ok(text) => return text,
                Err(_) if begin.elapsed() < Duration::from_secs(20) => std::thread::sleep(Duration::from_millis(2)),
                Err(error) => panic!("rank {rank} did not say {topic}: {error}"),
            }
        }
    }
}

/// Nanoseconds of the clock that all processes share.
fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn kill(pid: u32) {
    // It may have ended already.
    let pid = Pid::from_raw(pid.cast_signed()).expect("a child of this process");
    let _ = rustix::process::kill_process(pid, Signal::KILL);
}

/// Takes this thread's new pages from one of the first 64 NUMA nodes.
fn confine_memory(node: u32) {
    let mask = 1u64 << node;
    // SAFETY: the mask has 64 bits; the kernel reads one bit less than the number that it gets.
    let done = unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_BIND, &raw const mask, 65) };
    assert_eq!(done, 0, "set_mempolicy: {}", std::io::Error::last_os_error());
}

/// Does the process still run? A zombie does not.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, after)| !after.starts_with(['Z', 'X']))
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(10), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes that map the segment with this inode.
fn mappers(inode: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let maps =
        processes.filter_map(|entry| Some((entry.path(), std::fs::read_to_string(entry.path().join("maps")).ok()?)));
    let named = |line: &str| line.contains("/memfd:unisono") && line.split(' ').any(|word| word == inode);
    maps.filter(|(_, maps)| maps.lines().any(named)).map(|(path, _)| path.display().to_string()).collect()
}

/// The names in `/dev/shm`.
fn shared_files() -> Vec<OsString> {
    let mut names: Vec<_> = std::fs::read_dir("/dev/shm").unwrap().flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

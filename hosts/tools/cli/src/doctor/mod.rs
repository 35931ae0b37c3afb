//! `unisono doctor`: what of Unisono works on this machine, why the rest does not, and what each way to copy between processes costs.

pub(crate) mod args;
mod launchers;

use crate::args::Collective;
use crate::bench::{Calls, Contender, Plan, Subject, rate_times};
use crate::decide;
use crate::error::Failure;
use crate::form::Form;
use crate::job::Job;
use crate::near::{self, Place, Reading};
use crate::out::outln;
use crate::run;
use crate::team::{self, Team};
use args::Doctor;
use serde::{Deserialize, Serialize};
use std::fs::read_to_string;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};
use unisono_kernel::region::Params;
use unisono_model::stats::Median;
use unisono_posix::lending::{self, Cell, LendFrom, Measured};
use unisono_posix::pages::Kind;
use unisono_posix::placement::Summary;
use unisono_posix::sealed::{Handle, Sealed};
use unisono_posix::{Allocation, Joined, Policy, binding, heap, pages};

/// Processes at most, unless more are asked for: their buffers need memory.
const MOST: u32 = 16;

/// Bytes at most of a process's buffer.
const ROOM: u64 = 32 << 20;

/// A way, and whether it works.
#[derive(Debug, Serialize)]
struct Way {
    way: &'static str,
    works: bool,
    /// Why not, or what is to be known.
    note: String,
}

impl Way {
    fn of(way: &'static str, result: Result<String, String>) -> Self {
        let works = result.is_ok();
        let (Ok(note) | Err(note)) = result;
        Self { way, works, note }
    }
}

/// The nanoseconds of a collective by each way; a line of JSON.
#[derive(Debug, Serialize)]
struct Times<'m> {
    collective: &'m str,
    ranks: u32,
    bytes: u64,
    warm: bool,
    segment_ns: f64,
    across_ns: Option<f64>,
    lent_ns: f64,
}

/// Two processes first: what is between them is between any two. Then many, who may all read one's memory at once.
pub(crate) fn run(args: Doctor) -> Result<(), Failure> {
    let pus = std::thread::available_parallelism().map_or(1, |pus| pus.get() as u32).min(MOST);
    let mut ranks = if args.ranks.is_empty() { vec![2, pus.max(2)] } else { args.ranks.clone() };
    ranks.dedup();
    let seconds = args.seconds / ranks.len() as f64;
    for (turn, ranks) in ranks.into_iter().enumerate() {
        let job = Job::Doctor(Doctor { seconds, again: turn > 0, ..args.clone() });
        team::launch(ranks, args.bind, Vec::new(), &job)?;
    }
    Ok(())
}

/// A place in this process's memory, for the other one to read.
#[derive(Debug, Deserialize, Serialize)]
struct Exhibit {
    pid: u32,
    address: u64,
    fd: i32,
    device: u64,
    inode: u64,
    heap: u64,
    pages: u64,
    offset: u64,
}

/// What the exhibit holds.
const TEXT: &[u8; 16] = b"read where it is";

/// A rank of `unisono doctor`.
pub(crate) fn work(team: &mut Team, args: &Doctor) -> Result<(), Failure> {
    // Not as an earlier answer says: that would be compared with itself.
    let mut joined = team.join_lending(Params::new(team.size()), LendFrom::OFF, Policy::FirstTouch)?;
    let mut across = team.join_lending(Params::new(team.size()), LendFrom::bytes(1), Policy::Preferred)?;
    let (heap, by_call) = (reads_heap(team)?, reads_process(team)?);
    let readable = by_call.is_ok();
    let mut ways = vec![
        Way::of("shared memory: a sealed memfd", Ok(format!("{}; {}", joined.pages, pages::offer()))),
        Way::of("death of a process is seen", Ok(format!("{}; {}", joined.liveness, numbers()))),
        Way::of("lent memory: the other's heap, mapped to be read", heap),
        Way::of("the program's own blocks in that heap", library()),
        Way::of("single copy: process_vm_readv", by_call),
        Way::of(
            "ranks that share a core take turns, whoever starts them",
            turns(read_to_string(SESSIONS).ok().as_deref()),
        ),
        Way::of("each process's part of a segment lies on its NUMA node", placed(&joined, &across)),
    ];
    if team.rank() == 0 && !args.again {
        ways.extend(launchers::found().into_iter().map(|found| Way::of("an MPI's collectives taken over", found)));
        // They are known now; the times take longer.
        show_ways(&ways, args.json)?;
    }
    let (cells, left) = measure(team, args, &mut joined, &mut across, readable)?;
    if team.rank() != 0 {
        return Ok(());
    }
    let busy = (left > 0).then(|| {
        let timed = cells.len();
        format!(
            "doctor: this machine is busy: among {} processes {timed} cells are timed and {left} are not",
            team.size()
        )
    });
    let measured = Measured { cells };
    if args.json {
        for Cell { collective, ranks, bytes, warm, segment_ns, across_ns, lent_ns } in &measured.cells {
            let (ranks, bytes, warm, segment_ns, across_ns, lent_ns) =
                (*ranks, *bytes, *warm, *segment_ns, *across_ns, *lent_ns);
            let times = Times { collective, ranks, bytes, warm, segment_ns, across_ns, lent_ns };
            outln!("{}", serde_json::to_string(&times)?)?;
        }
    } else {
        show(&measured, team.size())?;
    }
    if let Some(busy) = busy {
        return Err(Failure::Words(if args.keep { format!("{busy}, so nothing is kept") } else { busy }));
    }
    if args.keep {
        let path = measured.keep().map_err(|error| Failure::Words(format!("doctor: {error}")))?;
        if !args.json {
            outln!("kept in {}", path.display())?;
        }
    }
    Ok(())
}

fn show_ways(ways: &[Way], json: bool) -> Result<(), Failure> {
    for line @ Way { way, works, note } in ways {
        match json {
            true => outln!("{}", serde_json::to_string(line)?)?,
            false => outln!("{:<4} {way}: {note}", if *works { "yes" } else { "no" })?,
        }
    }
    Ok(())
}

fn show(measured: &Measured, ranks: u32) -> Result<(), Failure> {
    outln!(
        "\n{ranks} processes, back to back and with a barrier before each call, µs: two copies through the segment; process_vm_readv; lent memory"
    )?;
    outln!(
        "{:<14}{:>10}{:>9}{:>11}{:>11}{:>11}{:>13}{:>13}",
        "collective",
        "bytes",
        "buffers",
        "two",
        "readv",
        "lent",
        "readv ÷ two",
        "lent ÷ two"
    )?;
    let us = |ns: Option<f64>| ns.map_or("-".into(), |ns| format!("{:.2}", ns / 1e3));
    for Cell { collective, bytes, warm, segment_ns, across_ns, lent_ns, .. } in &measured.cells {
        let buffers = if *warm { "warm" } else { "cold" };
        let ratio = |ns: Option<f64>| ns.map_or("-".into(), |ns| format!("{:.2}", ns / segment_ns));
        let times = [Some(*segment_ns), *across_ns, Some(*lent_ns)].map(us);
        let [two, readv, lent] = &times;
        let (by_readv, by_lent) = (ratio(*across_ns), ratio(Some(*lent_ns)));
        outln!("{collective:<14}{bytes:>10}{buffers:>9}{two:>11}{readv:>11}{lent:>11}{by_readv:>13}{by_lent:>13}")?;
    }
    let mut names: Vec<&str> = measured.cells.iter().map(|cell| cell.collective.as_str()).collect();
    names.dedup();
    for (warm, buffers) in [(true, "are used again and again"), (false, "change from call to call")] {
        let lengths =
            |name: &str| measured.lengths(name, ranks, warm).map_or("never".into(), |lengths| lengths.to_string());
        let all: Vec<String> = names.iter().map(|name| format!("{name} {}", lengths(name))).collect();
        outln!(
            "one copy by process_vm_readv is clearly faster ({}=auto) where buffers {buffers}: {}",
            lending::VARIABLE,
            all.join(", ")
        )?;
    }
    Ok(())
}

/// Can each process read the other's heap? The answer of the one that can't, or this one's.
fn reads_heap(team: &mut Team) -> Result<Result<String, String>, Failure> {
    let allocation = Allocation::new(TEXT.len())?;
    let memory = allocation.buf();
    // SAFETY: this value's, as long as it lives, and no other process writes it.
    unsafe { std::slice::from_raw_parts_mut(memory.ptr(), memory.len()) }.copy_from_slice(TEXT);
    let heap = heap::of_process()?;
    let Handle { pid, fd, device, inode } = heap.place().handle;
    let offset = heap.offset_of(memory.ptr(), memory.len()).unwrap_or(0);
    let heap::Place { bytes, kind, .. } = *heap.place();
    let mine = Exhibit { pid, address: 0, fd, device, inode, heap: bytes, pages: kind.code(), offset };
    let all = team.gather(&mine)?;
    let other = other(team, &all)?;
    let handle = Handle { pid: other.pid, fd: other.fd, device: other.device, inode: other.inode };
    let theirs = Kind::from_code(other.pages).unwrap_or_default();
    let read = Sealed::open_to_read(&handle, other.heap, theirs).map_err(|error| error.to_string()).and_then(|map| {
        let place = map.base().wrapping_add(other.offset as usize).cast::<[u8; 16]>();
        let inside = other.offset + TEXT.len() as u64 <= map.bytes();
        // SAFETY: inside the map; the owner has written it before the exchange, and does not write it now.
        let found = inside.then(|| unsafe { place.read_volatile() });
        if found == Some(*TEXT) { Ok(()) } else { Err("the other's data is not there".into()) }
    });
    let all = team.gather(&read)?;
    drop(allocation);
    let gib = bytes >> 30;
    let why = if heap.why().is_empty() { String::new() } else { format!(" ({})", heap.why()) };
    Ok(all
        .into_iter()
        .collect::<Result<Vec<()>, _>>()
        .map(|_| format!("a heap of {gib} GiB of addresses; {kind} as they are used{why}")))
}

/// The same for memory of its own, by a system call.
fn reads_process(team: &mut Team) -> Result<Result<String, String>, Failure> {
    let memory = *TEXT;
    let address = std::hint::black_box(memory.as_ptr()).expose_provenance() as u64;
    let mine = Exhibit { pid: std::process::id(), address, fd: 0, device: 0, inode: 0, heap: 0, pages: 0, offset: 0 };
    let all = team.gather(&mine)?;
    let other = other(team, &all)?;
    let mut found = [0; TEXT.len()];
    let read = lending::read(other.pid, other.address, &mut found).map_err(|error| error.to_string());
    let read = read.and_then(|()| if found == *TEXT { Ok(()) } else { Err("the other's data is not there".into()) });
    let all = team.gather(&read)?;
    std::hint::black_box(&memory);
    let settings = settings();
    let result = all.into_iter().collect::<Result<Vec<()>, String>>();
    Ok(result.map(|_| settings.clone()).map_err(|why| format!("{why}; {settings}")))
}

fn other<'a>(team: &Team, all: &'a [Exhibit]) -> Result<&'a Exhibit, Failure> {
    all.get(1 - team.rank() as usize % 2).ok_or_else(|| Failure::Words("doctor: two ranks are needed".into()))
}

/// The kernel's settings that allow or forbid reading another process.
fn settings() -> String {
    let scope = read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    let scope = scope.map_or("no Yama".into(), |scope| format!("Yama's ptrace_scope is {}", scope.trim()));
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map_or("?", str::trim);
    let seccomp = field("Seccomp:");
    let traces = u64::from_str_radix(field("CapEff:"), 16).is_ok_and(|capabilities| capabilities >> 19 & 1 == 1);
    let traces = if traces { "held" } else { "not held" };
    format!("{scope}; seccomp mode {seccomp}; CAP_SYS_PTRACE {traces}; {}", users())
}

/// The namespace of users, and what another one of its own means.
fn users() -> String {
    let map = read_to_string("/proc/self/uid_map").unwrap_or_default();
    let lines: Vec<_> = map.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>().join(" ")).collect();
    match initial("user", USERS) {
        Some(true) => "the initial user namespace".into(),
        Some(false) => format!(
            "a user namespace of its own (uid_map: {}): ranks in it can't open or read those outside it, whatever \
             capabilities they hold in it, and can't join them",
            lines.join(", ")
        ),
        None => "user namespace unknown".into(),
    }
}

/// The namespace of process numbers, and what another one of its own means.
fn numbers() -> &'static str {
    match initial("pid", NUMBERS) {
        Some(true) => "the initial PID namespace",
        Some(false) => {
            "a PID namespace of its own: ranks in it and ranks outside it know each other by other numbers (no pidfd, no \
             process_vm_readv), and can't join"
        }
        None => "PID namespace unknown",
    }
}

/// The inodes of the namespaces that the kernel starts with (its `PROC_USER_INIT_INO`, `PROC_PID_INIT_INO`).
const USERS: u64 = 0xeffffffd;
const NUMBERS: u64 = 0xeffffffc;

/// Is this process in the namespace with which the kernel starts? `None`: it does not say.
fn initial(kind: &str, first: u64) -> Option<bool> {
    Some(std::fs::metadata(format!("/proc/self/ns/{kind}")).ok()?.ino() == first)
}

/// Do all pages lie where they should, by first touch, as `touched` says, and may a process bind them, as `bound` says?
fn placed(touched: &Joined, bound: &Joined) -> Result<String, String> {
    let sum = |of: fn(&Summary) -> u64| touched.placements.iter().map(of).sum::<u64>();
    let (checked, misplaced, unknown) = (sum(|s| s.checked), sum(|s| s.misplaced), sum(|s| s.unknown));
    let nodes = binding::nodes().len().max(1);
    let errno = bound.placements.iter().find_map(|summary| summary.unbound);
    let binds = errno.map_or("mbind allowed".into(), |errno| {
        format!("mbind refused, so by first touch alone: {}", std::io::Error::from_raw_os_error(errno))
    });
    let note = format!("{nodes} NUMA node{}; {binds}", if nodes == 1 { "" } else { "s" });
    if misplaced > 0 {
        return Err(format!("{misplaced} of {checked} pages lie on other nodes; {note}"));
    }
    if unknown > 0 {
        let why = touched.placement.errno.map(std::io::Error::from_raw_os_error);
        let why = why.map_or(String::new(), |why| format!(" ({why})"));
        return Err(format!("where {unknown} of {checked} pages lie, move_pages does not say{why}; {note}"));
    }
    Ok(format!("{checked} pages looked up; {note}"))
}

/// Whether Linux shares a core among sessions first, and then among the processes of each.
const SESSIONS: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// Does a rank that yields give its core to the next rank, even where a launcher makes each rank a session of its own? `sessions`
/// is what [`SESSIONS`] holds.
fn turns(sessions: Option<&str>) -> Result<String, String> {
    match sessions.map(str::trim) {
        None => Ok("this kernel does not share cores by sessions".to_owned()),
        Some("0") => Ok("kernel.sched_autogroup_enabled is 0".to_owned()),
        Some(other) => Err(format!(
            "kernel.sched_autogroup_enabled is {other}, must be 0: where there are more ranks than cores, those that MPICH's launcher \
             starts, each a session of its own, wait longer (not in a CPU control group; see docs/howto/mpi.md, Crowded cores)"
        )),
    }
}

/// Is the library there that puts programs' blocks into the heap?
fn library() -> Result<String, String> {
    let found = run::library().map_err(|failure| failure.to_string())?;
    Ok(format!("{} (`unisono run --heap shared`, or LD_PRELOAD)", found.display()))
}

/// How much longer than what is timed all of it may take, on a busy machine: so many times, and seconds more. (Where nothing else
/// runs, seven times.)
const BUSY: (f64, f64) = (25.0, 60.0);

/// Times each collective and length by the three ways, in turn: calls one after the other, each rank being the root in turn, as IMB does,
/// and calls after a barrier from one root, as OSU does; the geometric mean of both counts. Returns how many of them are left, too,
/// since that took too long.
fn measure(
    team: &mut Team,
    args: &Doctor,
    two: &mut Joined,
    across: &mut Joined,
    readable: bool,
) -> Result<(Vec<Cell>, usize), Failure> {
    const PASSES: usize = 2;
    // Times during which the cores were moved away are taken again, so often at most.
    const AGAIN: usize = 2;
    let lengths = |warm: bool| args.bytes.iter().map(move |bytes| (*bytes, warm));
    let each = |one| lengths(true).chain(lengths(false)).map(move |(bytes, warm)| (one, bytes, warm));
    let cells: Vec<_> = args.collectives.iter().copied().flat_map(each).collect();
    let budget = args.seconds * 1e9 / (6 * PASSES * cells.len().max(1)) as f64;
    let subject = |collective: Collective, bytes, ranks| {
        let subject = Subject::by_name(collective, "auto", bytes, ranks)?.into_iter().next();
        subject.ok_or_else(|| Failure::Words(format!("doctor: {collective:?} can't be timed")))
    };
    let barrier = subject(Collective::Barrier, 0, team.size())?;
    let mut barrier = [Contender::join(team, two, barrier, Form::Blocking)?];
    let read = |team: &mut Team, two: &mut Joined, barrier: &mut [Contender]| {
        let plan =
            Plan { iterations: Some(near::CALLS.into()), warm: true, lent: false, calls: Calls::InTurn, budget: 0.0 };
        let times = rate_times(team, two, barrier, plan)?;
        let ns = || times.iter().flat_map(|times| &times.ns).copied();
        Ok(Reading { least: ns().fold(f64::INFINITY, f64::min), all: ns().sum::<f64>() * f64::from(near::CALLS) })
    };
    let crowded = decide::crowded(team.size());
    let mut place = Place::survey(crowded, &mut || read(team, two, &mut barrier))?;
    let (begin, most) = (Instant::now(), Duration::from_secs_f64(BUSY.0 * args.seconds + BUSY.1));
    let mut found = Vec::new();
    for (number, (collective, bytes, warm)) in cells.iter().copied().enumerate() {
        if team.gather(&(begin.elapsed() > most))?.contains(&true) {
            return Ok((found, cells.len() - number));
        }
        // What is overwritten in place is never lent.
        let subject = subject(collective, bytes, team.size())?.apart();
        if subject.room() > ROOM && team.size() > 2 {
            continue;
        }
        let mut by_segment = [Contender::join(team, two, subject.clone(), Form::Blocking)?];
        let mut by_call = [Contender::join(team, across, subject.clone(), Form::Blocking)?];
        let mut times = [const { [const { Vec::new() }; 2] }; 3];
        for _ in 0..PASSES {
            for (way, times) in times.iter_mut().enumerate().filter(|(way, _)| *way != 1 || readable) {
                for (calls, times) in [Calls::InTurn, Calls::Apart].into_iter().zip(times) {
                    let plan = Plan { iterations: None, warm, lent: way == 2, calls, budget };
                    for tries in 0..=AGAIN {
                        let reached = place.reached(&mut || read(team, two, &mut barrier))?;
                        let more = match way {
                            1 => rate_times(team, across, &mut by_call, plan)?,
                            _ => rate_times(team, two, &mut by_segment, plan)?,
                        };
                        let moved = reached && !place.is_there(&mut || read(team, two, &mut barrier))?;
                        if !moved || tries == AGAIN {
                            times.extend(more.into_iter().flat_map(|times| times.ns));
                            break;
                        }
                    }
                }
            }
        }
        let median = |times: &Vec<f64>| Median::new(times, 0.95).ok().map(|median| median.value);
        let mean = |[in_turn, apart]: &[Vec<f64>; 2]| Some((median(in_turn)? * median(apart)?).sqrt());
        let [segment, across, lent] = times.each_ref().map(mean);
        let missing = || Failure::Words("doctor: nothing was timed".into());
        found.push(Cell {
            collective: subject.collective().into(),
            ranks: team.size(),
            bytes,
            warm,
            segment_ns: segment.ok_or_else(missing)?,
            across_ns: across,
            lent_ns: lent.ok_or_else(missing)?,
        });
    }
    Ok((found, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_share_a_core_where_the_kernel_says_so() {
        assert!(turns(None).is_ok() && turns(Some("0\n")).is_ok());
        let why = turns(Some("1\n")).expect_err("sessions");
        assert!(why.starts_with("kernel.sched_autogroup_enabled is 1, must be 0: "), "{why}");
    }
}

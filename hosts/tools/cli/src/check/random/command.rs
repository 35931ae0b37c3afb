//! Drawn programs that a command runs from a file (`unisono check --random SECONDS --by COMMAND`), such as the
//! interpreter in C of `verify/programs/c`, under an MPI.
//!
//! The command writes K to FILE.begun when it begins the K-th program of its FILE, and prints `rank R: program K:
//! WORDS` where something is wrong.

use super::Directory;
use crate::args::Check;
use crate::error::Failure;
use crate::out::outln;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use unisono_programs::Program;
use unisono_programs::draw::Budget;
use unisono_programs::shrink::shrink_by_running;

/// The number of programs in a file: starting the command takes as long as many programs.
const BATCH: u64 = 50;
/// Bounds of time for a step of a program, also while it is shrunk; and for the whole shrinking.
const LIMIT: Duration = Duration::from_secs(15);
const SHORT: Duration = Duration::from_secs(5);
const SHRINK: Duration = Duration::from_secs(120);
const TRIES: u32 = 2;
/// Lines that are shown of a command whose output names no rank.
const LINES: usize = 8;

/// The limits of programs that are drawn for a command: in C, communicators are handles.
pub(super) fn budget(ranks: u32) -> Budget {
    Budget { handles: true, ..super::budget(ranks, false) }
}

/// The program of a file that is wrong, and the command's words about it.
struct Wrong {
    at: u64,
    words: String,
}

/// A command and all processes that it starts. They are killed if they don't end by themselves.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // The process group that was made for the command; all of its processes may have ended.
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

fn send_lines(from: impl Read + Send + 'static, to: Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            if to.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
}

/// Runs programs by a command, with a bound of time for each step; returns the first program that is wrong.
fn run(command: &str, directory: &Directory, programs: &[Program], limit: Duration) -> Result<Option<Wrong>, Failure> {
    let ranks = programs.first().map_or(1, |program| program.ranks);
    let (file, begun) = (directory.0.join("programs"), directory.0.join("programs.begun"));
    let _ = std::fs::remove_file(&begun);
    let text: String = programs.iter().map(Program::to_string).collect();
    let failed = |what: &str, e: std::io::Error| Failure::Words(format!("{what}: {e}"));
    std::fs::write(&file, text).map_err(|e| failed(&file.display().to_string(), e))?;
    let command = command.replace("{n}", &ranks.to_string());
    let mut child = Command::new("sh")
        .args(["-c", &format!("{command} \"$1\""), "sh"])
        .arg(&file)
        .env("PROGRAM_SECONDS", limit.as_secs().to_string())
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| failed(&command, e))?;
    let (sender, lines) = channel();
    if let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) {
        send_lines(out, sender.clone());
        send_lines(err, sender);
    }
    let mut group = Group(child);
    let begun = || std::fs::read_to_string(&begun).ok().and_then(|at| at.trim().parse().ok());
    let (mut said, mut last, mut before) = (Vec::new(), Vec::new(), None);
    let mut late = false;
    loop {
        // Ranks end by themselves when a step takes too long: this bound is for the program that starts them.
        match lines.recv_timeout(2 * limit) {
            Ok(line) => {
                if let Some(words) = of_rank(&line) {
                    said.push(words);
                } else {
                    last.push(line);
                    last.drain(..last.len().saturating_sub(LINES));
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let now = begun();
                late = std::mem::replace(&mut before, now) == now;
                if late {
                    break;
                }
            }
        }
    }
    let status = if late { None } else { Some(group.0.wait().map_err(|e| failed(&command, e))?) };
    drop(group);
    let right = status.is_some_and(|status| status.success());
    if right && said.is_empty() {
        return Ok(None);
    }
    let Some(begun) = begun() else {
        return Err(Failure::Words(format!("{command}: started no program\n{}", last.join("\n"))));
    };
    // Rank 0 may be further than the rank that failed.
    let at = said.iter().map(|(at, _)| *at).min().unwrap_or(begun);
    let words: Vec<_> = said.into_iter().filter(|(of, _)| *of == at).map(|(_, words)| words).collect();
    let words = if words.is_empty() { format!("{}\n{}", ended(status), last.join("\n")) } else { words.join("\n") };
    Ok(Some(Wrong { at, words }))
}

fn ended(status: Option<ExitStatus>) -> String {
    match status {
        None => "the command did not end in time".into(),
        Some(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("the command ended with code {code}"),
            (None, signal) => format!("the command ended by signal {}", signal.unwrap_or(0)),
        },
    }
}

/// Parses `rank R: program K: WORDS`: K, and the words with the rank.
fn of_rank(line: &str) -> Option<(u64, String)> {
    let (rank, rest) = line.strip_prefix("rank ")?.split_once(": program ")?;
    let (at, words) = rest.split_once(": ")?;
    Some((at.parse().ok()?, format!("rank {rank}: {words}")))
}

/// Runs this program, or draws programs. A program that fails under `--by` and not under `--unless` is an error.
pub(super) fn check(args: &Check, by: &str, program: Option<Program>, seed: u64) -> Result<(), Failure> {
    let directory = Directory::new()?;
    let one = |command: &str, program: &Program, limit| {
        run(command, &directory, std::slice::from_ref(program), limit).map(|wrong| wrong.map(|wrong| wrong.words))
    };
    // Does it fail under the MPI alone, too? A fault may show in one of several runs.
    let fails_alone = |program: &Program, limit| -> Result<bool, Failure> {
        let Some(unless) = &args.unless else { return Ok(false) };
        let (mut ran, mut refused) = (false, None);
        for _ in 0..TRIES {
            match one(unless, program, limit) {
                Ok(Some(_)) => return Ok(true),
                Ok(None) => ran = true,
                Err(error) => refused = Some(error),
            }
        }
        // A rank may fail in the program before rank 0 has said that it begins. A command that never begins one is wrong.
        match refused {
            Some(error) if !ran => Err(error),
            refused => Ok(refused.is_some()),
        }
    };
    if let Some(program) = program {
        if let Some(words) = one(by, &program, LIMIT)? {
            return Err(Failure::Words(words));
        }
        outln!("1 program passed")?;
        return Ok(());
    }
    let until = Instant::now() + Duration::from_secs(args.random.unwrap_or(0));
    let (mut next, mut passed, mut over) = (seed, 0, 0);
    while Instant::now() < until {
        let batch: Vec<_> = (next..next + BATCH).map(|seed| Program::draw(seed, &budget(args.ranks))).collect();
        let Some(Wrong { at, words }) = run(by, &directory, &batch, LIMIT)? else {
            (next, passed) = (next + BATCH, passed + BATCH);
            continue;
        };
        let program = batch[at as usize].clone();
        (next, passed) = (next + at + 1, passed + at);
        if fails_alone(&program, LIMIT)? {
            over += 1;
            continue;
        }
        outln!("seed {}, {} ranks: FAILED\n{words}", next - 1, program.ranks)?;
        let tries = (TRIES, Instant::now() + SHRINK);
        let (short, words) = shrink_by_running(program, words, tries, |program| match one(by, program, SHORT) {
            Ok(Some(words)) if !fails_alone(program, SHORT).unwrap_or(true) => Err(words),
            _ => Ok(()),
        });
        outln!("shrunk: {}\n{short}", words.replace('\n', "\n        "))?;
        return Err(Failure::Silent(1));
    }
    let underlying =
        if args.unless.is_some() { format!(", {over} failed under the MPI alone, too") } else { String::new() };
    outln!("{passed} programs passed{underlying}; seeds {seed} to {}", next - 1)?;
    Ok(())
}

//! Every loom model passes and completes executions; every mutant fails. Each runs as a process of
//! `loom-model`, since a failure inside loom may end in more than a panic.
//!
//! `UNISONO_SOAK=1` adds the long models.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use unisono_verify::loom::{FLAWED, Mutant, PROTOCOLS, Protocol, SPARE};

/// How a process of `loom-model` ended.
#[derive(Debug)]
struct Ended {
    success: bool,
    output: String,
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    let mut pipe = pipe.expect("the pipe was asked for");
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = pipe.read_to_string(&mut text);
        text
    })
}

fn model(arguments: &[&str]) -> Ended {
    let program = env!("CARGO_BIN_EXE_loom-model");
    let mut command = Command::new(program);
    command.args(arguments).env("RUST_BACKTRACE", "0").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("loom-model starts");
    let (out, err) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let success = ends_in_time(&mut child);
    let output = out.join().expect("reads") + &err.join().expect("reads");
    Ended { success: success.unwrap_or(false), output }
}

/// Did the process succeed? `None`: it took so long that it was killed, which counts as a failure.
fn ends_in_time(child: &mut Child) -> Option<bool> {
    let limit = Instant::now() + Duration::from_secs(if soak() { 3600 } else { 240 });
    loop {
        if let Some(status) = child.try_wait().expect("waits") {
            return Some(status.success());
        }
        if Instant::now() > limit {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn soak() -> bool {
    std::env::var_os("UNISONO_SOAK").is_some_and(|v| v == "1")
}

fn protocols() -> impl Iterator<Item = &'static Protocol> {
    PROTOCOLS.iter().filter(|p| soak() || !p.long)
}

/// Runs `check` on each item, two at a time, and fails with all complaints.
fn for_each<T: Send>(items: impl Iterator<Item = T>, check: impl Fn(T) -> Result<(), String> + Sync) {
    let items = Mutex::new(items.collect::<Vec<_>>());
    let complaints = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(item) = items.lock().expect("no panic").pop() else { break };
                    if let Err(complaint) = check(item) {
                        complaints.lock().expect("no panic").push(complaint);
                    }
                }
            });
        }
    });
    let complaints = complaints.into_inner().expect("no panic");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn models_pass_and_complete() {
    for_each(protocols(), |protocol| {
        let Ended { success, output } = model(&[protocol.name]);
        let completed = output.split("completed=").nth(1).and_then(|rest| rest.split_whitespace().next());
        let completed: u64 = completed.and_then(|n| n.parse().ok()).unwrap_or(0);
        let good = success && completed > 0;
        println!("{}", output.trim());
        if good { Ok(()) } else { Err(format!("{}: {output}", protocol.name)) }
    });
}

#[test]
fn mutants_fail() {
    let pairs = protocols().flat_map(|p| p.needs.iter().map(move |mutant| (p.name, *mutant)));
    for_each(pairs, |(protocol, mutant)| {
        assert!(Mutant::from_name(mutant).is_some(), "{mutant}");
        let Ended { success, output } = model(&[protocol, mutant]);
        let named = output.contains("Causality violation") || output.contains("model assertion");
        if !success && named { Ok(()) } else { Err(format!("{protocol} {mutant} was not caught: {output}")) }
    });
}

#[test]
fn flawed_protocols_fail() {
    for_each(FLAWED.iter(), |protocol| {
        let Ended { success, output } = model(&[protocol.name]);
        let named = output.contains("Causality violation") || output.contains("model assertion");
        if !success && named { Ok(()) } else { Err(format!("{} was not caught: {output}", protocol.name)) }
    });
}

/// The list of orderings that are stronger than they must be is right, and none of them is needed elsewhere.
#[test]
fn spare_orderings_are_spare() {
    let all: Vec<&str> = PROTOCOLS.iter().flat_map(|p| p.needs).copied().collect();
    for_each(SPARE.iter(), |(protocol, mutant, why)| {
        assert!(Mutant::from_name(mutant).is_some() && !all.contains(mutant), "{mutant}");
        let Ended { success, output } = model(&[protocol, mutant]);
        if success { Ok(()) } else { Err(format!("{protocol} {mutant} ({why}): {output}")) }
    });
}

#[test]
fn what_is_unknown_is_refused() {
    for arguments in [&["no-such-protocol"] as &[&str], &["central-2", "done.everything"], &[]] {
        assert!(!model(arguments).success);
    }
    assert!(model(&["--list"]).success);
}

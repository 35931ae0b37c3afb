//! One run of a program that prints a JSON object per line: its lines, or the reason why there are none.

use serde::de::DeserializeOwned;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Runs `command` and returns its lines. The error has the status, or the time that was exceeded, and
/// the last words on standard error.
pub(crate) fn lines<L: DeserializeOwned>(mut command: Command, timeout: Duration) -> Result<Vec<L>, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|e| format!("{name}: {e}"))?;
    let out = child.stdout.take().map(read);
    let err = child.stderr.take().map(read);
    let status = wait(&mut child, timeout).map_err(|e| format!("{name}: {e}"))?;
    let text = |reader: Option<JoinHandle<String>>| reader.and_then(|r| r.join().ok()).unwrap_or_default();
    let (out, err) = (text(out), text(err));
    match status {
        Some(status) if status.success() => parse(&out).map_err(|e| format!("{name}: {e}")),
        Some(status) => Err(format!("{status}: {}", reason(&err))),
        None => Err(format!("no end after {} s", timeout.as_secs())),
    }
}

fn read(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // Output before an error is kept.
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn parse<L: DeserializeOwned>(out: &str) -> Result<Vec<L>, String> {
    // Launchers have been seen to print lines of their own.
    let objects = out.lines().filter(|line| line.starts_with('{'));
    objects.map(|line| serde_json::from_str(line).map_err(|e| format!("{e} in {line}"))).collect()
}

/// The line of standard error that tells most.
fn reason(err: &str) -> String {
    let telling = ["wrong result", "collectives:", "must be", "rror"];
    let found = telling.iter().find_map(|word| err.lines().find(|line| line.contains(word)));
    let line = found.or_else(|| err.lines().rfind(|line| !line.trim().is_empty())).unwrap_or("no words");
    line.trim().chars().take(200).collect()
}

/// Waits for the end; `None` if the time is up: then the process group is asked to end, and killed if it does not.
fn wait(child: &mut Child, timeout: Duration) -> std::io::Result<Option<ExitStatus>> {
    let ended = |child: &mut Child, by: Duration| -> std::io::Result<Option<ExitStatus>> {
        let begin = Instant::now();
        loop {
            match child.try_wait()? {
                None if begin.elapsed() < by => thread::sleep(Duration::from_millis(20)),
                status => return Ok(status),
            }
        }
    };
    if let Some(status) = ended(child, timeout)? {
        return Ok(Some(status));
    }
    for signal in ["-TERM", "-KILL"] {
        // The shell's own kill: a bare machine has no other.
        let group = format!("kill {signal} -{}", child.id());
        let _ = Command::new("sh").args(["-c", &group]).stderr(Stdio::null()).status();
        if ended(child, Duration::from_secs(3))?.is_some() {
            break;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn shell(script: &str, seconds: u64) -> Result<Vec<Value>, String> {
        let mut sh = Command::new("sh");
        sh.args(["-c", script]);
        lines(sh, Duration::from_secs(seconds))
    }

    #[test]
    fn objects_are_read_and_other_lines_left() {
        let rows = shell("echo '{\"a\":1}'; echo noise; echo '{\"a\":2}'", 60).unwrap();
        assert_eq!(rows.iter().map(|row| row["a"].as_i64().unwrap()).collect::<Vec<_>>(), [1, 2]);
        assert!(shell("echo '{broken'", 60).unwrap_err().contains("{broken"));
    }

    #[test]
    fn a_program_that_dies_has_a_reason() {
        let reason = shell("echo 'wrong result: bcast of 8 bytes' >&2; echo other >&2; exit 3", 60).unwrap_err();
        assert_eq!(reason, "exit status: 3: wrong result: bcast of 8 bytes");
        assert!(shell("kill -SEGV $$", 60).unwrap_err().contains("signal"));
        let missing: Result<Vec<Value>, _> = lines(Command::new("/no/such/program"), Duration::from_secs(1));
        assert!(missing.unwrap_err().starts_with("/no/such/program: "));
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        assert_eq!(shell("sleep 1000 & wait", 1).unwrap_err(), "no end after 1 s");
    }
}

//! The examples in C say how long the system's own calls take. They compile without a warning, and say how they are used.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles an example of this folder to a program.
fn compile(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).with_extension("out");
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Wextra", "-Werror", "-O2", "-o"]).arg(&program).arg(source);
    assert!(cc.status().unwrap().success(), "{cc:?}");
    program
}

#[test]
fn across_compiles() {
    compile("across.c");
}

#[test]
fn readers_say_how_long_each_gap_takes() {
    let program = compile("readers.c");
    let run = |words: &[&str]| Command::new(&program).args(words).output().unwrap();
    assert_eq!(run(&["1", "100", "small"]).status.code(), Some(2), "one rank");
    let ran = run(&["2", "100", "small"]);
    // Where the kernel forbids to read a process, it says so.
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(out.lines().count() == 12 || err.contains("process_vm_readv"), "{ran:?}");
    assert!(out.lines().all(|line| line.starts_with("2 ranks, 100 B, small pages, gap ")), "{out}");
}

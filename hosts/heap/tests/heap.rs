//! The library under programs that do not know of it: one in C, and one whose ranks call collectives.

#[path = "../../posix/tests/processes/pool.rs"]
mod pool;

use pool::Pool;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The library of this build: Cargo puts it next to this test, without a hash in its name.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    test.parent().expect("it lies in deps").join("libunisono_heap.so")
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{command:?}: {}\n{}\n{}", output.status, texts[0], texts[1]);
    output
}

fn compile() -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("heap");
    let mut cc = Command::new("cc");
    // The compiler must not know what malloc does.
    cc.args(["-Wall", "-Wextra", "-Werror", "-std=c11", "-O1", "-fno-builtin", "-pthread"]);
    run(cc.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/heap.c")).arg("-o").arg(&program));
    program
}

#[test]
fn a_program_in_c_keeps_its_data() {
    let program = compile();
    let limited = || {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 1000; exec \"$@\"", "sh"]).arg(&program);
        command
    };
    let said = run(limited().env("LD_PRELOAD", library()));
    assert!(String::from_utf8_lossy(&said.stdout).ends_with("fine\n"));
    run(limited().env("LD_PRELOAD", library()).env("UNISONO_HEAP", "off").arg("off"));
    // Its largest blocks are 300 MB.
    if let Some(_pool) = Pool::with(300) {
        run(limited().env("LD_PRELOAD", library()).env("UNISONO_PAGES", "huge").arg("pool"));
    }
}

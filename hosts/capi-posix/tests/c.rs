//! The header and the library, from C: compiled with `cc`, every warning an error, and started by this project's
//! launcher.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use unisono_posix::launch::{Bind, Exit, Launch, Outcome};
use unisono_programs::Program;
use unisono_programs::draw::Budget;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// The library of this build: Cargo puts it next to this test, without a hash in its name.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    test.parent().expect("it lies in deps").join("libunisono_posix_c.so")
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Links the library under the name that programs load it by, in its folder; returns the linker's flag for that folder.
fn found(library: &Path) -> String {
    let folder = library.parent().expect("it lies in deps");
    // Another test may have made it.
    drop(symlink("libunisono_posix_c.so", folder.join("libunisono_posix.so.0")));
    format!("-Wl,-rpath,{}", folder.display())
}

fn compile(source: &str, name: &str) -> PathBuf {
    compile_all(&[&format!("tests/{source}.c")], name)
}

fn compile_all(sources: &[&str], name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-std=c11", "-O1"]);
    cc.args(["include", "../capi/include"].map(|folder| format!("-I{HERE}/{folder}")));
    cc.args(sources.iter().map(|source| format!("{HERE}/{source}"))).arg("-o").arg(&program).arg(library());
    run(cc.arg(found(&library())));
    program
}

fn start(program: PathBuf, ranks: u32, part: &str, env: &[(&str, &str)]) -> Outcome {
    let env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let (program, args, grace) = (program.into(), vec![part.into()], Duration::from_secs(10));
    Launch { ranks, bind: Bind::Core, program, args, env, grace }.run().expect("the ranks start")
}

fn launch(name: &str, part: &str) -> Outcome {
    start(compile("join", name), 3, part, &[])
}

#[test]
fn communicators_are_made_and_freed() {
    let program = compile("communicators", "communicators");
    for env in
        [&[("UNISONO_ARENA", "4M")][..], &[("UNISONO_ARENA", "32M"), ("UNISONO_RULES", "shm bcast use cico-flat")]]
    {
        let outcome = start(program.clone(), 5, "", env);
        assert!(outcome.success(), "{env:?}: {outcome}");
    }
}

/// By the kernel's single copy, too, of the rank whose memory is its own.
#[test]
fn memory_is_read_where_it_lies() {
    let program = compile("lent", "lent");
    for single_copy in ["off", "1", "30000"] {
        let outcome = start(program.clone(), 4, "", &[("UNISONO_SINGLE_COPY", single_copy)]);
        assert!(outcome.success(), "{single_copy}: {outcome}");
    }
}

#[test]
fn launched_processes_join_and_call() {
    let papers = "shm bcast use cico-binary; shm gather use cico; shm scatter use cico; shm allgather use cico";
    let program = compile("join", "together");
    for env in [&[][..], &[("UNISONO_RULES", papers)]] {
        let outcome = start(program.clone(), 3, "together", env);
        assert!(outcome.success(), "{env:?}: {outcome}");
    }
}

/// The program of README.md.
#[test]
fn the_example_sums() {
    let program = compile_all(&["examples/sum.c"], "sum");
    let said = |rank: u32| program.with_extension(rank.to_string());
    let command = format!("{0} > {0}.$UNISONO_RANK", program.display());
    let (args, grace) = (vec!["-c".into(), command.into()], Duration::from_secs(10));
    let launch = Launch { ranks: 4, bind: Bind::Core, program: "/bin/sh".into(), args, env: Vec::new(), grace };
    let outcome = launch.run().expect("the ranks start");
    assert!(outcome.success(), "{outcome}");
    for rank in 0..4 {
        let text = std::fs::read_to_string(said(rank)).expect("what it printed");
        assert_eq!(text, format!("rank {rank} of 4: the sum is 10\n"));
    }
}

/// The interpreter in C of drawn programs, and a file with these programs' texts.
fn interpreter(name: &str, texts: &str) -> (PathBuf, String) {
    let sources = ["program.c", "by_unisono.c"].map(|name| format!("../../verify/programs/c/{name}"));
    let program = compile_all(&sources.each_ref().map(String::as_str), name);
    let file = program.with_extension("txt");
    std::fs::write(&file, texts).expect("the programs' file");
    (program, file.to_string_lossy().into_owned())
}

#[test]
fn drawn_programs_pass() {
    for ranks in [1, 2, 3, 5] {
        let budget = Budget { handles: true, pause: 100, ..Budget::new(ranks) };
        let texts: String = (0..30).map(|seed| Program::draw(seed, &budget).to_string()).collect();
        let (program, file) = interpreter(&format!("programs-{ranks}"), &texts);
        let outcome = start(program, ranks, &file, &[]);
        assert!(outcome.success(), "{ranks} ranks: {outcome}");
    }
}

/// A process may make a communicator, free it, and end: ranks that are still making it must not take that for a death.
#[test]
fn a_process_may_end_while_others_make_its_communicator() {
    let split = "ranks 3\nseed 1\ncall 0 0 split auto 0 0 none 1 0 2 -1 2 -2 -1 0\n* run 0\n";
    let (program, file) = interpreter("split", split);
    for _ in 0..40 {
        let outcome = start(program.clone(), 3, &file, &[]);
        assert!(outcome.success(), "{outcome}");
    }
}

#[test]
fn a_rank_that_ends_is_named_to_the_others() {
    assert_eq!(launch("death", "death").to_string(), "rank 1 ended with code 7");
}

#[test]
fn a_rank_that_does_not_come_is_named_when_a_bound_is_over() {
    let program = compile("late", "late");
    let bound = [("UNISONO_TIMEOUT", "0.3")];
    for (part, env) in
        [("environment", &bound[..]), ("tests", &bound), ("inherits", &[]), ("memory", &[]), ("killed", &[])]
    {
        let outcome = start(program.clone(), 3, part, env);
        let last = if part == "killed" { Exit::Signal(9) } else { Exit::Code(0) };
        assert_eq!(outcome.exits, [Exit::Code(0), Exit::Code(0), last], "{part}: {outcome}");
    }
}

#[test]
fn a_timeout_that_is_not_a_number_is_named() {
    let outcome = start(compile("join", "bound"), 3, "together", &[("UNISONO_TIMEOUT", "soon")]);
    assert!(outcome.exits.iter().all(|exit| *exit == Exit::Code(1)), "{outcome}");
}

#[test]
fn without_a_launcher_the_error_says_so() {
    run(Command::new(compile("join", "alone")).arg("alone"));
}

#[test]
fn the_library_is_the_plain_one_and_join() {
    let nm = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library()));
    let exported = String::from_utf8_lossy(&nm.stdout).into_owned();
    for name in [
        "unisono_join",
        "unisono_comm_dup",
        "unisono_comm_create_group",
        "unisono_attach",
        "unisono_bcast",
        "unisono_version",
        "unisono_last_error",
    ] {
        assert!(exported.lines().any(|line| line.ends_with(&format!(" {name}"))), "{name}");
    }
}

//! The examples of `unisono-posix` under `unisono run`: each compares its result with a sequential run.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Builds the examples where this test was built, and returns the folder in which they lie. With the whole workspace, nothing
/// is compiled again that its tests have compiled.
fn examples() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let folder = test.ancestors().nth(2).expect("it lies in PROFILE/deps");
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let build = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--quiet", "--workspace", "--examples", "--profile", profile])
        .arg("--target-dir")
        .arg(folder.parent().expect("it lies in a target folder"))
        .output()
        .expect("cargo starts");
    assert!(build.status.success(), "{}", text(&build.stderr));
    folder.join("examples")
}

fn run(name: &str, args: &[&str]) -> Output {
    let mut unisono = Command::new(env!("CARGO_BIN_EXE_unisono"));
    unisono.args(["run", "-n", "3", "--"]).arg(examples().join(name)).args(args);
    unisono.output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_rank_has_the_sum() {
    let output = run("sum", &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found = text(&output.stdout);
    let mut lines: Vec<_> = found.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["rank 0 of 3: the sum is 6", "rank 1 of 3: the sum is 6", "rank 2 of 3: the sum is 6"]);
}

#[test]
fn kmeans_finds_the_irises() {
    let output = run("kmeans", &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found = text(&output.stdout);
    for line in ["cluster 0: 50 rows", "cluster 1: 62 rows", "cluster 2: 38 rows", "the same clusters"] {
        assert!(found.contains(line), "{found}");
    }
}

#[test]
fn heat_spreads_as_on_one_process() {
    let output = run("heat", &["40", "300"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found = text(&output.stdout);
    assert!(found.contains("40 x 40 points on 3 ranks: 300 steps"), "{found}");
    assert!(found.contains("bit by bit"), "{found}");
}

#[test]
fn what_is_wrong_is_named() {
    for (name, args, words) in [
        ("kmeans", &["3", "/no/such.csv"][..], "kmeans: the file: No such file"),
        ("kmeans", &["151"], "kmeans: 151 clusters of 150 rows"),
        ("heat", &["2"], "heat: 2 rows for 3 ranks"),
        ("heat", &["--help"], "usage: unisono run"),
    ] {
        let output = run(name, args);
        assert!(!output.status.success(), "{name} {args:?}");
        assert!(text(&output.stderr).contains(words), "{name} {args:?}: {}", text(&output.stderr));
    }
}

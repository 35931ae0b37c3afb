//! `unisono bench` of collectives whose blocks have lengths of their own. Every row is verified before it is printed.

use serde_json::Value;
use std::process::{Command, Output};

fn unisono(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unisono")).args(args).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output of `bench` with these arguments, which must succeed.
fn bench(args: &[&str]) -> String {
    let output = unisono(&[&["bench"], args].concat());
    assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn rows(args: &[&str]) -> Vec<Value> {
    let lines = bench(&[args, &["--json"]].concat());
    lines.lines().map(|line| serde_json::from_str(line).expect("one JSON object per line")).collect()
}

/// Each, and how many algorithms it has.
const VARYING: [(&str, usize); 6] =
    [("gatherv", 2), ("scatterv", 2), ("allgatherv", 2), ("alltoallv", 1), ("alltoallw", 1), ("reduce_scatter", 1)];

#[test]
fn every_number_of_ranks_form_and_algorithm_is_right() {
    let forms = [("1", "blocking"), ("2", "nonblocking"), ("5", "blocking"), ("3", "persistent")];
    for (name, algorithms) in VARYING {
        for (ranks, form) in forms {
            let call = [name, "-n", ranks, "--blocks", "unequal", "--form", form, "--bytes", "0,8,20000"];
            let how = ["--algorithm", "all", "--iterations", "4", "--method", "rate"];
            let rows = rows(&[&call[..], &how].concat());
            assert_eq!(rows.len(), 3 * algorithms, "{call:?}");
            for row in &rows {
                assert_eq!((&row["collective"], &row["blocks"]), (&name.into(), &"unequal".into()));
                assert_eq!((&row["form"], &row["ranks"].to_string()), (&form.into(), &ranks.to_owned()));
                assert!(row["p50_ns"].as_f64().is_some_and(|ns| ns > 0.0), "{row}");
            }
            assert!(rows.iter().any(|row| row["default"] == true), "{call:?}");
        }
        let rows = rows(&[name, "-n", "3", "--bytes", "8,4800", "--iterations", "4", "--method", "rate"]);
        assert!(rows.len() == 2 && rows.iter().all(|row| row["blocks"] == "equal"), "{rows:?}");
    }
}

/// A block form, which has one count for all ranks; both methods; a table for a person.
#[test]
fn reduce_scatter_block_and_both_methods() {
    let rows_of = |args: &[&str]| rows(&[args, &["--iterations", "4"]].concat());
    let rows = rows_of(&["reduce_scatter_block", "-n", "3", "--bytes", "0,8,4800"]);
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| row["collective"] == "reduce_scatter_block" && row["blocks"] == "equal"));
    let rows = rows_of(&["alltoallv", "-n", "3", "--bytes", "100", "--blocks", "unequal"]);
    let methods: Vec<_> = rows.iter().map(|row| row["method"].as_str().unwrap_or_default()).collect();
    assert_eq!(methods, ["window", "rate"]);
    let table = bench(&["gatherv", "-n", "2", "--bytes", "8", "--blocks", "unequal", "--iterations", "4"]);
    assert!(table.lines().next().is_some_and(|line| line.ends_with("; unequal blocks")), "{table}");
    assert!(table.lines().any(|line| line.starts_with("gatherv ") && line.ends_with('-')), "no floor: {table}");
}

/// An allgather is chosen for by its longest block, which unequal ones have beyond their mean.
#[test]
fn the_longest_block_decides() {
    let chosen = |blocks| {
        let call =
            ["allgatherv", "-n", "3", "--bytes", "3000", "--blocks", blocks, "--iterations", "4", "--method", "rate"];
        let output = Command::new(env!("CARGO_BIN_EXE_unisono"))
            .args(["bench"])
            .args(call)
            .arg("--json")
            .env("UNISONO_RULES", "shm allgather bytes ..4K use exchange; shm allgather bytes 4097.. use cico")
            .output()
            .expect("the program starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let row: Value = serde_json::from_slice(&output.stdout).expect("a row");
        assert_eq!(row["default"], true);
        row["algorithm"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!((chosen("equal").as_str(), chosen("unequal").as_str()), ("exchange", "cico"));
}

#[test]
fn what_has_no_unequal_blocks_says_so() {
    for (args, words) in [
        (&["bench", "gather", "--blocks", "unequal"][..], "gather has no unequal blocks: gatherv, scatterv, "),
        (&["bench", "reduce_scatter_block", "--blocks", "unequal"], "reduce_scatter_block has no unequal blocks"),
        (&["bench", "bcast", "--blocks", "unequal"], "bcast has no unequal blocks"),
        (&["bench", "reduce_scatter", "--bytes", "9"], "bytes is 9"),
        (&["bench", "gatherv", "-n", "8", "--bytes", "9999999999G"], "must be at most 17592186044416"),
        (&["bench", "alltoallw", "--algorithm", "cico"], "no algorithm \"cico\" for alltoallw: auto, all, exchange"),
        (&["sim", "gatherv"], "gatherv is not simulated; gather is, by the same algorithms"),
        (&["sim", "alltoallw", "--algorithm", "all"], "alltoallw is not simulated; alltoall is"),
        (&["tune", "--check", "--collectives", "scatterv"], "scatterv is not measured here; scatter is"),
    ] {
        let output = unisono(args);
        assert!(!output.status.success(), "{args:?}");
        assert!(text(&output.stderr).contains(words), "{args:?}: {}", text(&output.stderr));
    }
}

#[test]
fn explain_knows_them() {
    for (name, _) in VARYING.into_iter().chain([("reduce_scatter_block", 1)]) {
        let output = unisono(&["explain", name, "-n", "4", "--bytes", "4K", "--json"]);
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        let rows: Vec<Value> =
            text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
        for over in ["shm", "msg"] {
            let chosen = rows.iter().filter(|row| row["over"] == over && row["chosen"] == true);
            assert_eq!(chosen.count(), 1, "{name} over {over}");
        }
    }
    let said = text(&unisono(&["explain", "gatherv", "-n", "4", "--json"]).stdout);
    let binomial = said.lines().find(|line| line.contains("\"binomial\"")).expect("a candidate");
    assert!(binomial.contains("needs ") && binomial.contains("\"chosen\":false"), "{binomial}");
}

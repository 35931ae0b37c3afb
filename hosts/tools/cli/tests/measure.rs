//! `unisono measure`, as a person uses it. The simulator is the judge of what is measured there; of a real machine only
//! that there are times.

use serde_json::Value;
use std::process::{Command, Output};

fn unisono(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unisono")).args(args).output().expect("the program starts")
}

fn rows(args: &[&str]) -> Vec<Value> {
    let output = unisono(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(|line| serde_json::from_str(line).expect("one JSON object per line")).collect()
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"))
}

#[test]
fn logp_of_the_simulator_is_what_was_put_in() {
    let all = rows(&["measure", "logp", "--over", "sim", "--repetitions", "6", "--json"]);
    let values: Vec<_> = all.iter().take(5).map(|row| (row["parameter"].as_str(), number(row, "ns"))).collect();
    // The leaf's defaults, docs/explanation/simulator.md.
    let put_in = [("L", 1000.0), ("o_s", 200.0), ("o_r", 200.0), ("g", 50.0), ("G", 0.08)];
    for ((name, found), (wanted, put_in)) in values.into_iter().zip(put_in) {
        assert_eq!(name, Some(wanted));
        assert!((found - put_in).abs() < 0.01, "{wanted}: {found}");
    }
    let chosen: f64 = all.iter().skip(5).map(|row| number(row, "chosen %")).sum();
    assert!((chosen - 100.0).abs() < 0.5, "{all:?}");
    // As docs/explanation/papers.md says: of the paper's three, with its parameters, dissemination for every size.
    let papers: Vec<_> = all.iter().skip(5).map(|row| row["with the paper's parameters %"].as_f64()).collect();
    assert_eq!(papers, [Some(0.0), Some(0.0), Some(100.0), None, None, None]);
}

/// Every number of processes has a barrier, also above those that were asked for.
#[test]
fn the_choice_is_written_as_a_table_that_any_program_reads() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("barriers.table");
    let file = path.to_str().expect("a path");
    let args = ["measure", "logp", "--over", "sim", "--repetitions", "6", "--most-ranks", "40", "--output", file];
    let output = unisono(&args);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains(&format!("export UNISONO_TABLE={file}")), "{said}");
    let table = std::fs::read_to_string(&path).expect("a table");
    let rules: Vec<_> = table.lines().skip(1).collect();
    assert!(
        !rules.is_empty() && rules.iter().all(|rule| rule.starts_with("msg") && rule.contains("barrier")),
        "{table}"
    );
    assert!(rules[rules.len() - 1].contains(".. "), "{table}");
    for ranks in ["2", "40", "1000"] {
        let command = ["explain", "barrier", "-n", ranks, "--json"];
        let output = Command::new(env!("CARGO_BIN_EXE_unisono")).args(command).env("UNISONO_TABLE", file).output();
        let said = String::from_utf8_lossy(&output.expect("it runs").stdout).into_owned();
        let by_table = |line: &&str| line.contains("\"over\":\"msg\"") && line.contains("the table says: msg barrier");
        assert_eq!(said.lines().filter(by_table).count(), 1, "{said}");
    }
}

/// The choice by formulas is never slower than the best fixed barrier beyond noise.
#[test]
fn the_adaptive_barrier_is_as_fast_as_any_fixed_one() {
    let all = rows(&["measure", "barriers", "--most-ranks", "33", "--repetitions", "8", "--delay", "50", "--json"]);
    assert_eq!(all.len(), 6);
    for row in &all {
        assert!(number(row, "slower than adaptive %") > -1.0, "{row}");
        for test in ["χ² by errors: probability", "χ² of the paper, in µs"] {
            assert!((0.0..=1.0).contains(&number(row, test)), "{row}");
        }
    }
}

/// Without delays of messages there is no noise: the choice is the fastest for every size.
#[test]
fn without_noise_the_adaptive_barrier_is_the_fastest_of_all() {
    let all = rows(&["measure", "barriers", "--most-ranks", "40", "--repetitions", "2", "--json"]);
    assert_eq!(all.len(), 6);
    for row in &all {
        assert_eq!(number(row, "sizes where adaptive is slower"), 0.0, "{row}");
        assert!(number(row, "slower than adaptive %") >= 0.0, "{row}");
    }
}

#[test]
fn the_switch_is_told() {
    for (network, ratio) in [("star", 0.9..1.2), ("crossbar", 3.0..8.1)] {
        let args = ["measure", "network", "--over", "sim", "--network", network, "--repetitions", "2", "--json"];
        let all = rows(&args);
        assert!((number(&all[0], "value") - 1400.0).abs() < 1.0, "{all:?}");
        assert!(ratio.contains(&number(&all[2], "value")), "{network}: {all:?}");
    }
}

#[test]
fn the_queue_has_times_and_a_model_beside_measurements() {
    let all = rows(&["measure", "queue", "--message", "256K", "--queue-bytes", "64K", "--seconds", "0.02", "--json"]);
    let names: Vec<_> = all.iter().take(4).map(|row| row["time"].as_str().unwrap_or_default()).collect();
    assert_eq!(names, ["t", "t_WO", "t_A", "t_W"]);
    assert!(all.iter().skip(4).count() >= 8);
    assert!(all.iter().skip(4).all(|row| number(row, "measured µs") > 0.0 && number(row, "model µs") > 0.0), "{all:?}");
    // Figure 9: the slots are fixed while their length varies.
    let few = ["--fragments", "4K,12K,20K"];
    let args = ["measure", "queue", "--message", "64K", "--slots", "32", "--seconds", "0.02", "--json"];
    let args = [&args[..], &few].concat();
    let all = rows(&args);
    let shapes: Vec<_> = all.iter().skip(4).take(3).map(|row| (number(row, "f"), number(row, "s"))).collect();
    assert_eq!(shapes, [4096.0, 12_288.0, 20_480.0].map(|f| (f, 32.0)));
}

#[test]
fn ranks_leave_apart() {
    let all = rows(&["measure", "skew", "-n", "3", "--repetitions", "20", "--json"]);
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|row| number(row, "from") <= number(row, "to")), "{all:?}");
    let few = unisono(&["measure", "skew", "--repetitions", "5"]);
    assert!(!few.status.success() && String::from_utf8_lossy(&few.stderr).contains("samples is 5, must be at least 6"));
}

#[test]
fn what_is_wrong_is_named() {
    for (args, words) in [
        (&["measure", "logp", "--over", "sim", "--repetitions", "5"][..], "repetitions is 5, must be at least 6"),
        (&["measure", "network", "--over", "sim", "-n", "3"], "ranks (p) is 3, must be at least 4"),
        (&["measure", "queue", "--algorithm", "queue"], "no broadcast of paper P1 is called \"queue\""),
        (&["measure", "queue", "--algorithm", "cico-kary-0"], "no broadcast of paper P1"),
        (&["measure", "queue", "--seconds", "0"], "seconds is 0"),
        (&["measure", "queue", "--fragments", "0"], "fragments: a slot of 0 bytes"),
        (&["measure", "logp", "--over", "sim", "--parameters", "/no/such/file"], "/no/such/file"),
    ] {
        let output = unisono(args);
        assert!(!output.status.success(), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(words), "{args:?}: {said}");
    }
}

//! Decision tables as a person meets them: the environment, `explain`, `tune`.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

fn unisono(args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_unisono"));
    command.args(args).env_remove("UNISONO_TABLE").env_remove("UNISONO_RULES");
    command.envs(env.iter().copied()).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeds(args: &[&str], env: &[(&str, &str)]) -> String {
    let output = unisono(args, env);
    assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn rows(args: &[&str], env: &[(&str, &str)]) -> Vec<Value> {
    let lines = succeeds(args, env);
    lines.lines().map(|line| serde_json::from_str(line).expect("one JSON object per line")).collect()
}

/// A file of its own, gone afterwards.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("unisono-decisions-{}-{name}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path of letters")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(self.0.with_extension("json"));
    }
}

#[test]
fn the_environment_changes_what_auto_runs() {
    let bench = ["bench", "bcast", "-n", "2", "--bytes", "8", "--iterations", "20", "--method", "rate", "--json"];
    let of = |env: &[(&str, &str)]| {
        let row = &rows(&bench, env)[0];
        assert_eq!(row["default"], true, "{row}");
        row["algorithm"].as_str().unwrap_or_default().to_owned()
    };
    let file = File::new("table");
    std::fs::write(&file.0, "unisono table 1\nshm bcast bytes ..64 ranks 2 use queue\n").expect("a file");
    assert_eq!(of(&[]), "posted");
    assert_eq!(of(&[("UNISONO_RULES", "shm bcast ranks 2 use cico-binary")]), "cico-binary");
    assert_eq!(of(&[("UNISONO_TABLE", file.path())]), "queue");
    let both = [("UNISONO_TABLE", file.path()), ("UNISONO_RULES", "shm bcast bytes ..8 use cico-chain")];
    assert_eq!(of(&both), "cico-chain");
    assert_eq!(of(&[("UNISONO_RULES", "shm bcast ranks 3.. use queue")]), "posted");
}

/// All forms and collectives of `check` by another table.
#[test]
fn what_a_table_chooses_is_right() {
    let rules = "shm bcast use cico-binomial; shm barrier use combining-3; shm allreduce use slices; shm gather use cico; \
                 shm gatherv use cico; shm scatter use cico; shm scatterv use cico; shm allgather bytes ..4K use cico";
    let said = succeeds(&["check", "-n", "3", "--form", "blocking,nonblocking"], &[("UNISONO_RULES", rules)]);
    assert!(said.contains("passed, 0 failed"), "{said}");
}

#[test]
fn a_wrong_table_is_refused_with_its_line() {
    for (rules, said) in [
        ("shm bcast use slices", "UNISONO_RULES:1: no algorithm of this collective is called \"slices\""),
        ("shm bcast use queue; shm bcast ranks 2 use cico-flat", "UNISONO_RULES:2: line 1 has a rule"),
    ] {
        for args in [&["bench", "barrier", "--iterations", "1"][..], &["explain", "bcast"], &["demo", "-n", "2"]] {
            let output = unisono(args, &[("UNISONO_RULES", rules)]);
            assert!(!output.status.success());
            assert!(text(&output.stderr).contains(said), "{args:?}: {}", text(&output.stderr));
        }
    }
    let output = unisono(&["explain", "bcast"], &[("UNISONO_TABLE", "/no/such/table")]);
    assert!(!output.status.success() && text(&output.stderr).contains("/no/such/table"));
}

#[test]
fn explain_names_every_candidate_and_why_the_winner_won() {
    let all = rows(&["explain", "allreduce", "--bytes", "4096", "-n", "16", "--json"], &[]);
    for over in ["shm", "msg"] {
        let of: Vec<_> = all.iter().filter(|row| row["over"] == over).collect();
        assert!(of.len() >= 3);
        let chosen: Vec<_> = of.iter().filter(|row| row["chosen"] == true).collect();
        assert_eq!(chosen.len(), 1);
        assert!(chosen[0]["reason"].as_str().is_some_and(|reason| reason.starts_with("built in: ")), "{}", chosen[0]);
    }
    let row = |name: &str| all.iter().find(|row| row["algorithm"] == name).expect("a candidate");
    assert_eq!(row("posted")["reason"], "carries 48 bytes at most");
    assert!(["slices", "groups"].iter().all(|name| row(name)["predicted_ns"].as_f64().is_some_and(|ns| ns > 0.0)));
    assert_eq!(row("slices")["chosen"], true);
    let ordered = rows(&["explain", "allreduce", "--bytes", "4096", "-n", "16", "--ordered", "--json"], &[]);
    let ring = ordered.iter().find(|row| row["algorithm"] == "ring").expect("a candidate");
    assert_eq!(ring["reason"], "needs an operation that commutes");
    let said = succeeds(
        &["explain", "allreduce", "--bytes", "4096", "-n", "16"],
        &[("UNISONO_RULES", "shm allreduce use exchange")],
    );
    assert!(said.contains("the table says: shm allreduce use exchange"), "{said}");
    assert!(!unisono(&["explain", "overlap"], &[]).status.success());
}

#[test]
fn tune_writes_a_table_and_what_it_measured() {
    let file = File::new("tuned");
    let tune = ["tune", "--minutes", "0.01", "-n", "2", "--collectives", "bcast,barrier", "--bytes", "8,4K"];
    let said = succeeds(&[&tune[..], &["--output", file.path()]].concat(), &[]);
    assert!(said.contains("3 cells") && said.contains("UNISONO_TABLE="), "{said}");
    let table = std::fs::read_to_string(&file.0).expect("a table");
    assert!(table.starts_with("unisono table 1\n"), "{table}");
    let explain = |args: &[&str]| rows(&[&["explain"], args, &["--json", "--table", file.path()]].concat(), &[]);
    let measured = |row: &Value| row["measured_ns"].as_f64().is_some_and(|ns| ns > 0.0);
    assert_eq!(explain(&["bcast", "--bytes", "4K"]).iter().filter(|row| measured(row)).count(), 5);
    assert_eq!(explain(&["bcast", "--bytes", "8K"]).iter().filter(|row| measured(row)).count(), 0);
    // It stands: a second run measures nothing.
    let again = succeeds(&[&tune[..], &["--output", file.path()]].concat(), &[]);
    assert!(again.contains("there is a table of this topology"), "{again}");
    let checked = rows(&[&tune[..], &["--check", "--json"]].concat(), &[("UNISONO_TABLE", file.path())]);
    assert_eq!(checked.iter().filter(|row| row.get("miss").is_none()).count(), 7 + 5 + 5);
    for bad in [&["--minutes", "0"][..], &["--bytes", "9"], &["-n", "1"], &["--collectives", "alltoallv"]] {
        let output = unisono(&[&["tune", "--check"], bad].concat(), &[]);
        assert!(!output.status.success(), "{bad:?}");
    }
}

/// In the simulator nothing is noise: the table that is written has no miss, whatever the built-in choice has.
#[test]
fn a_table_from_the_simulator_misses_nothing() {
    let file = File::new("simulated");
    let tune = ["tune", "--messages", "-n", "2,5,16", "--bytes", "8,4K,64K", "--output", file.path()];
    let said = succeeds(&tune, &[]);
    assert!(said.contains("the table written misses the best by more than 10 % in 0"), "{said}");
    let check = [&tune[..6], &["--check"]].concat();
    let said = succeeds(&check, &[("UNISONO_TABLE", file.path())]);
    assert!(said.contains("what is chosen now misses the best by more than 10 % in 0"), "{said}");
    assert!(!unisono(&["tune", "--messages", "-n", "2"], &[]).status.success(), "no output, no check");
}

/// Ranks of an MPI are measured in `ONLY=tables make test-mpi`; here is what is said without one.
#[test]
fn tune_says_how_it_is_started_in_an_mpi() {
    let fails = |args: &[&str]| {
        let names = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_FD"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_unisono"));
        for name in names {
            command.env_remove(name);
        }
        let output = command.args(["tune", "--preload"]).args(args).output().expect("the program starts");
        assert!(!output.status.success(), "{args:?}");
        text(&output.stderr)
    };
    assert!(fails(&[]).contains("give --output"), "{}", fails(&[]));
    assert!(fails(&["--check"]).contains("no launcher of an MPI has started this"), "{}", fails(&["--check"]));
    assert!(fails(&["--check", "--bytes", "9"]).contains("multiples of 8"));
    assert!(fails(&["--check", "--collectives", "comm"]).contains("comm is not a collective of MPI's"));
    for other in [&["-n", "2"][..], &["--messages"], &["--force"]] {
        assert!(fails(&[&["--check"], other].concat()).contains("cannot be used with"), "{other:?}");
    }
}

/// A rule that leaves calls to an MPI is read, and passed over where there is none.
#[test]
fn a_rule_for_the_mpi_is_passed_over_without_one() {
    let rules = [("UNISONO_RULES", "shm bcast bytes ..64 ranks 2 use mpi; shm gatherv use mpi")];
    let bench = ["bench", "bcast", "-n", "2", "--bytes", "8", "--iterations", "20", "--method", "rate", "--json"];
    assert_eq!(rows(&bench, &rules)[0]["algorithm"], "posted");
    let output = unisono(&bench, &[("UNISONO_RULES", "msg bcast use mpi")]);
    assert!(text(&output.stderr).contains("no algorithm of this collective is called \"mpi\""));
}

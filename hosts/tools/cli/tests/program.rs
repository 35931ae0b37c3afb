//! The program, as a person uses it.

use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn unisono(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unisono")).args(args).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output of a run that must succeed.
fn succeeds(args: &[&str]) -> String {
    let output = unisono(args);
    assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn rows(args: &[&str]) -> Vec<Value> {
    succeeds(args).lines().map(|line| serde_json::from_str(line).expect("one JSON object per line")).collect()
}

#[test]
fn bench_prints_one_object_per_cell_and_method() {
    let rows = rows(&["bench", "bcast", "-n", "2", "--bytes", "8,8192", "--iterations", "50", "--json"]);
    assert_eq!(rows.len(), 4);
    for row in &rows {
        assert_eq!(row["collective"], "bcast");
        assert_eq!(row["host"], "posix");
        assert_eq!(row["ranks"], 2);
        assert_eq!(row["default"], true);
        for field in ["p50_ns", "p99_ns", "max_ns", "floor_ns"] {
            assert!(row[field].as_f64().is_some_and(|ns| ns > 0.0), "{field} in {row}");
        }
        assert!(row["p50_ns"].as_f64() <= row["max_ns"].as_f64());
    }
    assert_eq!(rows[0]["algorithm"], "posted");
    assert_eq!(rows[2]["algorithm"], "queue");
    assert_eq!((&rows[0]["method"], &rows[1]["method"]), (&"window".into(), &"rate".into()));
}

#[test]
fn bench_knows_every_collective_and_form_of_algorithm() {
    let common = ["-n", "3", "--iterations", "20", "--json", "--method", "rate"];
    let run = |first: &[&str]| rows(&[first, &common].concat()).len();
    assert_eq!(run(&["bench", "bcast", "--bytes", "8", "--algorithm", "all"]), 7);
    assert_eq!(run(&["bench", "barrier", "--algorithm", "all"]), 5);
    assert_eq!(run(&["bench", "allreduce", "--bytes", "8,48"]), 2);
    assert_eq!(run(&["bench", "allreduce", "--bytes", "8,5000,40000", "--algorithm", "all"]), 6 + 2 + 2);
    for name in ["gather", "scatter", "allgather", "alltoall", "reduce", "reduce_scatter_block", "scan", "exscan"] {
        assert_eq!(run(&["bench", name, "--bytes", "0,8,5000"]), 3, "{name}");
        let rows = if ["reduce", "scan", "exscan"].contains(&name) {
            3 + 2
        } else if ["gather", "scatter", "allgather"].contains(&name) {
            4
        } else {
            2
        };
        assert_eq!(run(&["bench", name, "--bytes", "0,20000", "--algorithm", "all"]), rows, "{name}");
    }
    assert_eq!(run(&["bench", "gather", "--bytes", "8", "--algorithm", "cico"]), 1);
    assert_eq!(run(&["bench", "bcast", "--bytes", "5000", "--algorithm", "cico-knomial-3", "--cico-sets", "4"]), 1);
    // Rows are verified from each root; the queue of 128 slots of 8 KiB turns over.
    assert_eq!(run(&["bench", "bcast", "--bytes", "0,8,8192,20000,2M", "--algorithm", "rival"]), 5);
}

/// A communicator's bytes, as docs/reference/segment.md says: two pages, and per rank control lines, 64 lines, a queue.
fn bytes_of(ranks: u64, queue: u64) -> u64 {
    let up = |bytes: u64| bytes.next_multiple_of(4096);
    let rounds = u64::from(ranks.next_power_of_two().trailing_zeros());
    let control = up(128 * (5 + rounds) + 2 * rounds * (128 + 2048));
    2 * 4096 + ranks * (control + up(128 * 64) + queue)
}

/// Slots of 32 KiB: more where ranks are few.
const fn queue_of(ranks: u64) -> u64 {
    let slots = match ranks {
        2 => 128,
        3 | 4 => 32,
        _ => 16,
    };
    slots * (32 << 10)
}

#[test]
fn bench_makes_and_frees_communicators() {
    for ranks in ["1", "2", "5"] {
        let rows = rows(&["bench", "comm", "-n", ranks, "--iterations", "200", "--json"]);
        let names: Vec<_> = rows.iter().map(|row| row["collective"].as_str().unwrap_or_default()).collect();
        assert_eq!(names, ["dup", "split", "create_group"]);
        assert!(rows.iter().all(|row| row["p50_ns"].as_f64().is_some_and(|ns| ns > 0.0)));
        let ranks: u64 = ranks.parse().expect("a number");
        let (all, half) = [ranks, ranks.div_ceil(2)].map(|ranks| bytes_of(ranks, queue_of(ranks))).into();
        assert!(rows.iter().all(|row| row["iterations"] == 2200));
        assert_eq!(
            rows.iter().map(|row| row["bytes_each"].as_u64().expect("bytes")).collect::<Vec<_>>(),
            [all, half, all]
        );
    }
    let table = succeeds(&["bench", "comm", "-n", "2", "--iterations", "5"]);
    assert!(table.lines().any(|line| line.starts_with("create_group ")), "{table}");
}

#[test]
fn bench_measures_every_form() {
    let common = ["--iterations", "20", "--json", "--method", "rate"];
    for form in ["blocking", "nonblocking", "persistent"] {
        for name in ["bcast", "barrier", "allreduce", "gather", "alltoall", "reduce_scatter", "scan"] {
            let rows = rows(&[&["bench", name, "-n", "3", "--bytes", "4800", "--form", form][..], &common].concat());
            assert_eq!((rows.len(), &rows[0]["form"]), (1, &form.into()), "{name}");
        }
    }
    let rows = rows(&["bench", "overlap", "-n", "2", "--bytes", "8,64K", "--iterations", "5", "--json"]);
    assert_eq!(rows.len(), 2);
    for row in &rows {
        for field in ["alone_ns", "compute_ns", "both_ns"] {
            assert!(row[field].as_f64().is_some_and(|ns| ns > 0.0), "{field} in {row}");
        }
    }
}

#[test]
fn what_has_no_floor_says_so() {
    let common = ["-n", "2", "--iterations", "20", "--json", "--method", "rate"];
    for (name, known) in [("bcast", true), ("allreduce", false), ("reduce", false), ("scan", false)] {
        let rows = rows(&[&["bench", name, "--bytes", "8192"][..], &common].concat());
        assert_eq!(rows[0]["floor_ns"].is_number(), known, "{name}");
        assert_eq!(rows[0]["floor_ns"].is_null(), !known, "{name}");
    }
    let table = succeeds(&["bench", "scan", "-n", "2", "--bytes", "8", "--iterations", "5"]);
    assert!(table.lines().any(|line| line.starts_with("scan") && line.ends_with('-')), "{table}");
}

#[test]
fn p_1_works() {
    assert_eq!(rows(&["bench", "bcast", "-n", "1", "--bytes", "0,8,100000", "--iterations", "5", "--json"]).len(), 6);
    assert_eq!(rows(&["bench", "barrier", "-n", "1", "--iterations", "5", "--json"]).len(), 2);
    assert!(succeeds(&["check", "-n", "1"]).ends_with(" passed, 0 failed\n"));
}

/// More of them in `make soak`.
#[test]
fn ten_thousand_barriers_end() {
    for algorithm in ["dissemination", "central", "combining"] {
        let args = [
            "bench",
            "barrier",
            "-n",
            "8",
            "--iterations",
            "1000",
            "--json",
            "--method",
            "rate",
            "--algorithm",
            algorithm,
        ];
        let rows = rows(&args);
        assert_eq!(rows[0]["iterations"], 11_000);
    }
}

#[test]
fn check_passes_on_real_processes() {
    for ranks in ["2", "3", "5"] {
        let output = succeeds(&["check", "-n", ranks]);
        let last = output.lines().last().unwrap_or_default();
        let passed: u32 = last.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        assert!(passed > 6000 && last.ends_with(" passed, 0 failed"), "{last}");
    }
    let one = succeeds(&["check", "-n", "2", "--form", "persistent", "--verbose"]);
    assert!(one.contains("ok     persistent scan ") && !one.contains("nonblocking"), "{one}");
}

#[test]
fn drawn_programs_pass_on_real_processes() {
    let output = succeeds(&["check", "--random", "3", "--seed", "1", "-n", "3"]);
    assert!(output.contains(" programs passed, ") && output.contains("; seeds 1 to "), "{output}");
    let printed = succeeds(&["check", "--random", "0", "--seed", "7", "--print", "-n", "2"]);
    let file = std::env::temp_dir().join(format!("unisono-printed-{}", std::process::id()));
    std::fs::write(&file, printed).expect("a file");
    let output = succeeds(&["check", "--program", file.to_str().expect("a path in words")]);
    assert_eq!(output, "1 program passed\n");
    // A text may be longer than a variable of a process's environment: those of 128 ranks are.
    let steps = "* spin 1\n".repeat(15_000);
    std::fs::write(&file, format!("ranks 2\nseed 1\nsegment 4 4 512 0 0 0 0 0 0 0\n{steps}")).expect("a file");
    let output = succeeds(&["check", "--program", file.to_str().expect("a path in words")]);
    assert_eq!(output, "1 program passed\n");
    // Where the world's communicator begins to count is the program's.
    let beyond = "ranks 1\nseed 1\nsegment 64 16 32768 0 0 0 4611686018427387904 0 0 0\n";
    std::fs::write(&file, beyond).expect("a file");
    let output = unisono(&["check", "--program", file.to_str().expect("a path in words")]);
    assert!(text(&output.stderr).contains("base is 4611686018427387904, must be below"), "{output:?}");
    let beside =
        "ranks 1\ncall 0 0 barrier auto 0 0 none 1 0\ncall 1 0 dup auto 0 0 none 1 0 1\n* start 0\n* run 1\n* wait 0\n";
    std::fs::write(&file, beside).expect("a file");
    let output = unisono(&["check", "--program", file.to_str().expect("a path in words")]);
    assert!(text(&output.stderr).contains("call 1 (dup) on communicator 0, which the open scope"), "{output:?}");
    std::fs::write(&file, "ranks 2\nseed x\n").expect("a file");
    let output = unisono(&["check", "--program", file.to_str().expect("a path in words")]);
    assert!(text(&output.stderr).contains("line 2: seed \"x\" is not a number that fits"), "{output:?}");
    std::fs::remove_file(&file).expect("it is there");
}

/// A command that says that program 3 of its file is wrong, if there are so many, and that the only one of it is, else.
#[test]
fn drawn_programs_are_run_by_a_command() {
    let wrong = "f() { k=$(($(grep -c ^ranks \"$1\") > 3 ? 3 : 0)); echo $k > \"$1.begun\"; echo \"rank 1: program $k: a wrong byte\"; false; }; f";
    let random = ["check", "--random", "5", "--seed", "1", "-n", "2", "--by"];
    let output = unisono(&[&random[..], &[wrong]].concat());
    let said = text(&output.stdout);
    assert!(
        !output.status.success() && said.starts_with("seed 4, 2 ranks: FAILED\nrank 1: a wrong byte\nshrunk: "),
        "{said}"
    );
    assert!(said.contains("\nranks 1\n") && !said.contains("\ncall "), "{said}");
    let over = succeeds(&["check", "--random", "1", "--seed", "1", "--by", wrong, "--unless", wrong]);
    assert!(over.contains(" failed under the MPI alone, too; seeds 1 to "), "{over}");
    // The MPI alone ends before the program begins, in every second run; then in every one.
    let toggle = std::env::temp_dir().join(format!("unisono-toggle-{}", std::process::id()));
    let flaky = format!("f() {{ if [ -e {0} ]; then rm {0}; else touch {0}; false; fi; }}; f", toggle.display());
    let over = succeeds(&["check", "--random", "1", "--seed", "1", "--by", wrong, "--unless", &flaky]);
    assert!(over.contains(" failed under the MPI alone, too; seeds 1 to "), "{over}");
    let never = unisono(&[&random[..], &[wrong, "--unless", "false"]].concat());
    assert!(text(&never.stderr).contains("started no program"), "{never:?}");
    let right = succeeds(&["check", "--random", "1", "--seed", "1", "--by", "true"]);
    assert!(right.contains("50 programs passed; seeds 1 to ") || right.contains("00 programs passed; "), "{right}");
    let none = unisono(&[&random[..], &["echo nothing here; false"]].concat());
    assert!(text(&none.stderr).contains("started no program\nnothing here"), "{none:?}");
}

#[test]
fn demo_broadcasts_a_file() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/demo.rs");
    let output = succeeds(&["demo", "-n", "3", file]);
    assert_eq!(output.matches("SHA-256").count(), 3);
    assert!(output.ends_with("demo: done\n"));
}

#[test]
fn sim_prints_the_keys_of_bench_on_virtual_time() {
    let sim = ["sim", "bcast", "--algorithm", "binomial", "--ranks", "4096", "--nodes", "64", "--network", "fattree"];
    let args = [&sim[..], &["--bytes", "8,8K", "--json"]].concat();
    let output = rows(&args);
    assert_eq!(output, rows(&args), "the same seed, the same run");
    assert_eq!(output.len(), 2);
    for (row, bytes) in output.iter().zip([8, 8192]) {
        assert_eq!(
            (&row["collective"], &row["algorithm"], &row["host"]),
            (&"bcast".into(), &"binomial".into(), &"sim".into())
        );
        assert_eq!((&row["ranks"], &row["nodes"], &row["bytes"]), (&4096.into(), &64.into(), &bytes.into()));
        let sent = |class: &str| row["traffic"][class]["messages"].as_u64().expect("a number");
        assert_eq!((sent("node"), sent("leaf"), sent("spine")), (64 * 63, 60, 3));
    }
    // Six rounds inside nodes, four inside a leaf switch, two above; 7 G between first byte and last.
    let rounds = 6.0 * (50.0 + 0.35 + 100.0 + 50.0) + 4.0 * 1400.56 + 2.0 * 2000.56;
    assert!(
        (output[0]["p50_ns"].as_f64().expect("a number") - rounds).abs() < 0.01,
        "{rounds} is not {}",
        output[0]["p50_ns"]
    );
}

#[test]
fn sim_runs_the_algorithms_over_a_segment_on_many_cores() {
    for collective in [
        "barrier",
        "bcast",
        "allreduce",
        "gather",
        "gatherv",
        "scatter",
        "scatterv",
        "allgather",
        "allgatherv",
        "alltoall",
        "alltoallv",
        "alltoallw",
        "reduce",
        "reduce_scatter",
        "reduce_scatter_block",
        "scan",
        "exscan",
    ] {
        let args =
            ["sim", collective, "--segment", "--machine", "epyc-7r13x2", "-n", "9", "--root", "2", "--bytes", "8,4K"];
        let args = [&args[..], &["--algorithm", "all", "--json"]].concat();
        let output = rows(&args);
        assert!(!output.is_empty(), "{collective}");
        for row in &output {
            assert_eq!((&row["host"], &row["machine"]), (&"segment".into(), &"epyc-7r13x2".into()));
            assert!(row["p50_ns"].as_f64().unwrap() > 0.0, "{row}");
        }
        assert_eq!(output, rows(&args), "{collective}: not the same again");
    }
}

/// Rows of `sim COLLECTIVE --segment` among nine ranks.
fn nine(collective: &str, more: &[&str]) -> Vec<Value> {
    let args = ["sim", collective, "--segment", "--machine", "epyc-7r13x2", "-n", "9", "--json"];
    rows(&[&args[..], more].concat())
}

#[test]
fn sim_runs_other_libraries_in_the_same_model_where_they_are_asked_for() {
    const RIVALS: [&str; 5] = ["xhc", "xhc-flat", "release-gather", "coll-sm", "tuned"];
    let names = |rows: &[Value]| -> Vec<String> {
        rows.iter().map(|row| row["algorithm"].as_str().unwrap_or_default().to_owned()).collect()
    };
    for collective in ["barrier", "bcast", "allreduce"] {
        for method in ["window", "rate"] {
            let all = nine(collective, &["--rivals", "--bytes", "24", "--root", "4", "--method", method]);
            assert_eq!(names(&all)[1..], RIVALS, "{collective}");
            assert!(all[0]["default"] == true && all[1..].iter().all(|row| row["default"] == false), "{all:?}");
            assert!(all.iter().all(|row| row["p50_ns"].as_f64() > Some(0.0)), "{all:?}");
        }
        let ours = names(&nine(collective, &["--algorithm", "all"]));
        assert!(!ours.is_empty() && ours.iter().all(|name| !RIVALS.contains(&name.as_str())), "{ours:?}");
        assert_eq!(names(&nine(collective, &["--algorithm", "tuned,xhc"])), ["tuned", "xhc"]);
    }
    let refused = |args: &[&str], words: &str| {
        let output = unisono(args);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{args:?}: {said}");
    };
    let gather = ["sim", "gather", "--segment", "--machine", "near-pair", "-n", "2"];
    refused(&[&gather[..], &["--rivals"]].concat(), "barrier, bcast and allreduce have rivals");
    refused(&[&gather[..], &["--algorithm", "xhc"]].concat(), "no algorithm \"xhc\"");
    refused(&["sim", "bcast", "--rivals"], "--segment");
}

/// A call among others takes no longer than one for which all begin together and after which all meet; and the mean over ranks is not
/// later than the last one's end.
#[test]
fn sim_counts_calls_that_follow_one_another() {
    for collective in ["barrier", "bcast", "allreduce"] {
        let all = nine(collective, &["--method", "both", "--bytes", "8,8K", "--iterations", "18"]);
        assert!(all.len() == if collective == "barrier" { 2 } else { 4 }, "{all:?}");
        for pair in all.as_chunks::<2>().0 {
            let [window, rate] = pair;
            let time = |row: &Value, key: &str| row[key].as_f64().unwrap();
            assert_eq!((&window["method"], &rate["method"]), (&"window".into(), &"rate".into()));
            assert_eq!(window["bytes"], rate["bytes"]);
            assert!(time(window, "mean_ns") <= time(window, "p50_ns"), "{window}");
            assert!(time(rate, "mean_ns") <= time(rate, "p50_ns"), "{rate}");
            assert!(time(rate, "p50_ns") > 0.0 && time(rate, "p50_ns") <= time(window, "p50_ns"), "{window} {rate}");
        }
    }
}

#[test]
fn sim_refuses_machines_that_are_none() {
    let sim = ["sim", "barrier", "--segment"];
    for (more, words) in [
        (&["--machine", "abacus"][..], "no machine of this name (epyc-7r13x2, "),
        (&["--machine", "near-pair", "-n", "3"], "ranks is 3, must be at most 2: each has a core of its own"),
        (&["--machine", "near-pair", "-n", "2", "--root", "2"], "root is 2, must be below 2"),
        (&["--machine", "near-pair", "--nodes", "2"], "cannot be used with"),
        (&[], "--machine"),
    ] {
        let output = unisono(&[&sim[..], more].concat());
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{more:?}: {said}");
    }
}

/// Each row is verified before it is printed.
#[test]
fn sim_knows_every_collective_and_algorithm() {
    for (collective, algorithms) in [
        ("barrier", 6),
        ("bcast", 6),
        ("reduce", 5),
        ("allreduce", 4),
        ("gather", 2),
        ("scatter", 2),
        ("allgather", 4),
        ("alltoall", 3),
        ("reduce_scatter", 2),
        ("scan", 2),
        ("exscan", 2),
    ] {
        let args = ["sim", collective, "-n", "17", "--nodes", "3", "--bytes", "4,1K", "--algorithm", "all", "--json"];
        let output = rows(&args);
        // A barrier has no bytes. Doubling needs a power of two.
        assert_eq!(output.len(), if collective == "barrier" { algorithms } else { 2 * algorithms }, "{collective}");
        let names: BTreeSet<_> = output.iter().map(|row| row["algorithm"].to_string()).collect();
        assert_eq!(names.len(), algorithms);
        let time = |row: &Value| row["p50_ns"].as_f64().expect("a number");
        assert!(output.iter().all(|row| time(row) > 0.0 && row["host"] == "sim"), "{collective}");
    }
    let args =
        ["sim", "allreduce", "--ranks", "4096", "--nodes", "64", "--network", "fattree", "--bytes", "8", "--json"];
    let [ours] = &rows(&args)[..] else { panic!("a row") };
    let bench = rows(&["bench", "allreduce", "-n", "2", "--bytes", "8", "--iterations", "10", "--json"]);
    let keys = bench[0].as_object().expect("an object").keys();
    assert!(keys.into_iter().all(|key| ours.get(key).is_some()), "{ours}");
    // Twelve rounds of doubling: six inside nodes, whose ranks share a port between nodes in the others.
    assert_eq!(ours["traffic"]["node"]["messages"], 4096 * 6);
}

/// Each row is verified before it is printed.
#[test]
fn sim_goes_over_levels() {
    let machine = ["-n", "30", "--nodes", "4", "--packages", "2", "--numa", "2", "--levels", "NM-SK-ND"];
    for collective in [
        "barrier",
        "bcast",
        "reduce",
        "allreduce",
        "gather",
        "scatter",
        "allgather",
        "alltoall",
        "reduce_scatter",
        "scan",
        "exscan",
    ] {
        for place in ["block", "turns"] {
            let call = ["sim", collective, "--bytes", "64", "--algorithm", "all", "--json", "--place", place];
            let output = rows(&[&call[..], &machine].concat());
            let over =
                output.iter().filter(|row| row["algorithm"].as_str().is_some_and(|name| name.starts_with("levels")));
            // Prefixes need groups that are runs of ranks.
            assert_eq!(over.count() > 0, place == "block" || !collective.ends_with("scan"), "{collective} {place}");
        }
    }
    let call = ["sim", "bcast", "--bytes", "8,64K", "--algorithm", "all", "--compare"];
    let table = succeeds(&[&call[..], &machine].concat());
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 4, "{table}");
    assert!(lines[2].starts_with("| 8 | knomial-4 |") && lines[3].starts_with("| 65536 |"), "{table}");
    assert!(lines[3].contains("| levels-") && !lines[3].contains('–'), "{table}");
    // Further sets of levels are named; where one has the groups of an earlier one, it is left out.
    let sets = ["-n", "32", "--nodes", "4", "--levels", "ND-SW,ND,ND-SW2", "--network"];
    let call = ["sim", "allreduce", "--bytes", "1K", "--algorithm", "all", "--json"];
    let tree = ["fattree", "--nodes-per-leaf", "2", "--uplinks", "1"];
    for (network, wanted) in [(&tree[..], 1), (&["crossbar"], 0)] {
        let output = rows(&[&call[..], &sets, network].concat());
        let named = |row: &&Value| row["algorithm"].as_str().is_some_and(|name| name.contains('@'));
        let plain =
            output.iter().filter(|row| !named(row) && row["algorithm"].as_str().unwrap_or("").starts_with("levels"));
        assert_eq!(output.iter().filter(named).count(), wanted * plain.count());
        assert!(output.iter().filter(named).all(|row| row["algorithm"].as_str().unwrap_or("").ends_with("@ND")));
    }
}

#[test]
fn sim_draws_and_tells_every_rank() {
    let file = std::env::temp_dir().join(format!("unisono-sim-{}.svg", std::process::id()));
    let plot = file.to_str().expect("a name");
    let chance = ["--iterations", "5", "--delay", "500", "--skew", "100", "--stragglers", "2", "--slowdown", "3"];
    let args = ["sim", "bcast", "-n", "6", "--bytes", "8,64", "--plot", plot, "--json", "--per-rank", "--root", "3"];
    let args = [&args[..], &["--algorithm", "binomial"]].concat();
    for row in rows(&[&args[..], &chance].concat()) {
        assert_eq!(row["iterations"], 5);
        assert_eq!(row["ends_ns"].as_array().map(Vec::len), Some(6));
        assert!(row["p50_ns"].as_f64() < row["max_ns"].as_f64(), "{row}");
    }
    let svg = std::fs::read_to_string(&file).expect("the plot");
    std::fs::remove_file(&file).expect("removable");
    assert!(svg.starts_with("<svg") && svg.contains("binomial"), "{svg}");
}

#[test]
fn sim_reads_parameters() {
    let file = std::env::temp_dir().join(format!("unisono-sim-{}.json", std::process::id()));
    let link = r#"{"L": 1, "os": 2, "or": 3, "g": 5, "G": 0.5}"#;
    let network = |link: &str| format!(r#"{{"topology": "star", "node": {link}, "leaf": {link}, "spine": {link}}}"#);
    let file_name = file.to_str().expect("a name");
    let args =
        ["sim", "bcast", "-n", "4", "--bytes", "9", "--algorithm", "binomial", "--json", "--parameters", file_name];
    std::fs::write(&file, network(link)).expect("writable");
    // By hand: transports/sim/tests/sim/times.rs.
    assert_eq!(rows(&args)[0]["p50_ns"], 28.0);
    for (from, to, words) in [
        ("5", "-5", "a link's time is -5, must be between 0 and 1000000000 at line 1 column 63"),
        ("5", "\"5\"", "invalid type"),
        ("\"g\": 5, ", "", "missing field `g`"),
    ] {
        std::fs::write(&file, network(&link.replacen(from, to, 1))).expect("writable");
        let output = unisono(&args);
        assert!(!output.status.success() && text(&output.stderr).contains(words), "{words}: {}", text(&output.stderr));
    }
    std::fs::remove_file(&file).expect("removable");
}

/// Subcommands that print in different ways: at once, by line, from rank 0 of started ranks.
const PRINTING: [&[&str]; 10] = [
    &["topo", "--memory"],
    &["topo", "--synthetic", "core:2", "--groups", "0,1"],
    &["model", "--figure", "p1.4"],
    &["model", "--table", "p1.1"],
    &["explain", "bcast", "-n", "4"],
    &["sim", "bcast", "-n", "4"],
    &["check", "--random", "0", "--seed", "7", "--print", "-n", "2"],
    &["check", "--random", "0", "--seed", "7"],
    &["bench", "bcast", "-n", "2", "--bytes", "8", "--iterations", "5", "--json"],
    &["bench", "comm", "-n", "2", "--iterations", "5"],
];

/// How a subcommand ends that writes to this, and what it says.
fn written_to(args: &[&str], to: impl Into<Stdio>) -> (Option<i32>, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_unisono"));
    let output = program.args(args).stdout(to).output().expect("the program starts");
    (output.status.code(), text(&output.stderr))
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    for args in PRINTING {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let (code, errors) = written_to(args, full);
        assert_eq!(code, Some(1), "{args:?}: {errors}");
        assert!(errors.contains("standard output: No space left on device"), "{args:?}: {errors}");
        assert!(!errors.contains("panicked"), "{args:?}: {errors}");
    }
}

#[test]
fn a_reader_who_is_gone_is_no_error() {
    for args in PRINTING {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        assert_eq!(written_to(args, writer), (Some(0), String::new()), "{args:?}");
    }
}

/// Before any rank is started: one line, in no rank's name.
#[test]
fn bench_names_the_algorithms_where_one_is_unknown() {
    for (collective, words) in [
        (
            "bcast",
            "auto, all, posted, groups, queue, cico-flat, cico-chain, cico-binary, cico-binomial, cico-kary-K, cico-knomial-K, rival",
        ),
        ("barrier", "auto, all, posted, dissemination, doubling, central, combining, combining-N"),
        ("allreduce", "auto, all, posted, doubling, exchange, slices, groups, hand-written and sketch (8 bytes)"),
        ("gather", "auto, all, exchange, cico, groups"),
        ("scatter", "auto, all, exchange, cico"),
        ("scan", "auto, all, doubling, exchange, groups"),
        ("alltoall", "auto, all, exchange, groups"),
        ("alltoallv", "auto, all, exchange"),
    ] {
        let output = unisono(&["bench", collective, "-n", "3", "--algorithm", "best"]);
        assert_eq!(output.status.code(), Some(1), "{collective}");
        let line = format!("unisono: no algorithm \"best\" for {collective}: {words}\n");
        assert_eq!((text(&output.stderr), text(&output.stdout)), (line, String::new()));
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (args, words) in [
        (&["bench", "bcast", "-n", "2", "--cico-sets", "5"][..], "sets (q) is 5, must divide 16"),
        (&["bench", "bcast", "-n", "2", "--lines", "3"], "lines is 3, must be a multiple of 4"),
        (&["bench", "bcast", "-n", "0"], "ranks is 0, must be at least 1"),
        (&["bench", "bcast", "--algorithm", "best"], "no algorithm \"best\""),
        (&["bench", "bcast", "-n", "2", "--queue-slots", "1048576", "--queue-fragment", "1G"], "bytes"),
        (&["bench", "allreduce", "--bytes", "57"], "bytes is 57"),
        (&["bench", "allreduce", "--bytes", "56", "--algorithm", "posted"], "bytes is 56"),
        (&["bench", "gather", "--algorithm", "posted"], "no algorithm \"posted\""),
        (&["bench", "scan", "--algorithm", "cico"], "no algorithm \"cico\""),
        (&["check", "-n", "48", "--large-counts"], "of 48 processes needs 4705.0 GiB, "),
        (&["sim", "bcast", "-n", "0"], "ranks is 0, must be between 1 and 1048576"),
        (&["sim", "bcast", "-n", "4", "--nodes", "5"], "nodes is 5, must be between 1 and 4"),
        (&["sim", "bcast", "--root", "16"], "root is 16, must be below 16"),
        (&["sim", "bcast", "--algorithm", "best"], "no algorithm \"best\" for bcast: binomial"),
        (&["sim", "overlap"], "overlap is not a collective over messages"),
        (
            &["sim", "allgather", "-n", "6", "--algorithm", "doubling"],
            "allgather/doubling needs a power of two of ranks",
        ),
        (&["sim", "bcast", "--levels", "NM-ND"], "--levels: this machine has no NM: --packages, --numa"),
        (
            &["sim", "bcast", "--numa", "2", "--levels", "NM-XX"],
            "an unknown name at byte 3; levels are L2, L3, NM, SK, ND, SW, SW2",
        ),
        (&["sim", "bcast", "--algorithm", "levels/round"], "no algorithm \"levels/round\" for bcast"),
        (&["sim", "bcast", "--algorithm", "levels-8/slices"], "needs trees on all levels, not slices"),
        (
            &["sim", "scan", "--nodes", "4", "--place", "turns", "--algorithm", "levels"],
            "needs groups that are runs of ranks",
        ),
        (&["sim", "exscan", "--algorithm", "levels/kary-2"], "needs an operation that commutes"),
        (&["sim", "bcast", "-n", "4", "--numa", "5"], "NUMA nodes is 5, must be between 1 and 4"),
        (&["sim", "bcast", "--compare"], "--levels"),
        (&["sim", "allreduce", "--bytes", "7"], "bytes is 7, must be a multiple of 4"),
        (&["sim", "bcast", "--bytes", "1G"], "bytes is 1073741824, must be at most 536870912"),
        (&["sim", "bcast", "--delay=-1"], "delay is -1"),
        (&["sim", "bcast", "--network", "fattree", "--uplinks", "0"], "fattree.uplinks is 0"),
        (&["sim", "bcast", "--parameters", "/no/such/file"], "/no/such/file"),
        (&["sim", "bcast", "--drop", "16"], "dropped rank is 16"),
        (
            &["sim", "bcast", "-n", "8", "--algorithm", "binomial", "--drop", "4"],
            "rank 5 waits for rank 4 in operation 1",
        ),
        (&["demo", "-n", "2", "/no/such/file"], "/no/such/file"),
        (&["run", "-n", "2", "/no/such/program"], "/no/such/program"),
        (&["run", "-n", "2", "--timeout", "0", "true"], "must be seconds, above 0"),
    ] {
        let output = unisono(args);
        assert!(!output.status.success(), "{args:?}");
        assert!(text(&output.stderr).contains(words), "{args:?}: {}", text(&output.stderr));
    }
}

#[test]
fn run_starts_copies_and_passes_their_failure_on() {
    let output = succeeds(&["run", "-n", "3", "--", "/bin/sh", "-c", "echo rank $UNISONO_RANK of $UNISONO_SIZE"]);
    let mut lines: Vec<_> = output.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["rank 0 of 3", "rank 1 of 3", "rank 2 of 3"]);
    let timeout = ["run", "-n", "1", "--timeout", "2.5", "--", "/bin/sh", "-c", "echo $UNISONO_TIMEOUT"];
    assert_eq!(succeeds(&timeout), "2.5\n");
    let output = unisono(&["run", "-n", "2", "--", "/bin/sh", "-c", "exit $UNISONO_RANK"]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("rank 1 ended with code 1"), "{}", text(&output.stderr));
}

/// The ranks of a launcher: its children, in the order in which they were started.
fn children(parent: u32) -> Vec<u32> {
    let parent_of = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // "pid (name) state ppid ...", where the name may hold anything.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let entries = std::fs::read_dir("/proc").expect("/proc is readable").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut pids: Vec<u32> = pids.filter(|pid| parent_of(pid) == Some(parent)).collect();
    pids.sort_unstable();
    pids
}

/// How long a process has run, in hundredths of a second.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let words = stat.rsplit_once(')').map_or("", |(_, words)| words).split_whitespace();
    // The eleven words behind the name come before the times in user and in kernel mode.
    words.skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum()
}

/// The names of shared memory.
fn named_memory() -> BTreeSet<OsString> {
    let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    files.map(|file| file.file_name()).collect()
}

#[test]
fn a_killed_rank_is_named_by_every_other() {
    let before = named_memory();
    let mut bench = Command::new(env!("CARGO_BIN_EXE_unisono"))
        .args(["bench", "bcast", "-n", "4", "--bytes", "8", "--method", "rate", "--iterations", "900000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The first line says that all ranks have come. Each has joined, and measures, when it has run for a while since.
    let mut first = String::new();
    BufReader::new(bench.stdout.take().expect("piped")).read_line(&mut first).expect("readable");
    assert!(first.starts_with("4 ranks"), "{first}");
    let ranks = children(bench.id());
    assert_eq!(ranks.len(), 4);
    let run: Vec<u64> = ranks.iter().map(|pid| ticks(*pid)).collect();
    while ranks.iter().zip(&run).any(|(pid, run)| ticks(*pid) < run + 20) {
        assert!(bench.try_wait().expect("a child").is_none(), "it ended before a rank was killed");
        std::thread::sleep(Duration::from_millis(10));
    }
    // The shell's own: a bare machine has no program of that name.
    let kill = Command::new("/bin/sh").args(["-c", &format!("kill -9 {}", ranks[2])]).status().expect("sh runs");
    assert!(kill.success());
    let begin = Instant::now();
    let output = bench.wait_with_output().expect("the program ends");
    println!("ended {:?} after the kill", begin.elapsed());
    assert!(!output.status.success());
    let errors = text(&output.stderr);
    for survivor in [0, 1, 3] {
        assert!(errors.contains(&format!("rank {survivor}: rank 2 died")), "rank {survivor} in: {errors}");
    }
    assert!(ranks.iter().all(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()), "no rank is left");
    // Other programs may have removed theirs.
    let more: Vec<_> = named_memory().difference(&before).cloned().collect();
    assert!(more.is_empty(), "left behind: {more:?}");
}

#[test]
fn huge_pages_are_there_or_one_line_says_why_not() {
    let output =
        unisono(&["bench", "bcast", "-n", "2", "--iterations", "5", "--pages", "huge", "--mbind", "preferred"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    let lines = |of: &str| err.lines().filter(|line| line.starts_with(of)).count();
    let refusals = lines("unisono: huge pages were asked for, the segment");
    assert!(lines("unisono: huge pages were asked for, the heaps") <= 1, "{err}");
    assert_eq!(refusals, usize::from(out.contains(" bytes in ordinary pages")), "{out}{err}");
    assert_eq!(refusals, usize::from(!out.contains("mapped are in huge ones)")), "{out}{err}");
    let program = ["sh", "-c", "echo $UNISONO_PAGES $UNISONO_MBIND"];
    let words = [&["run", "-n", "1", "--pages", "huge", "--mbind", "bind", "--"][..], &program].concat();
    assert_eq!(succeeds(&words), "huge bind\n");
    assert!(!unisono(&["bench", "bcast", "--pages", "large"]).status.success());
}

#[test]
fn topo_shows_the_machine_and_the_memory() {
    let output = succeeds(&["topo", "--memory"]);
    assert!(output.contains("Machine") && output.contains("  1024 "), "{output}");
    let json: Value = serde_json::from_str(&succeeds(&["topo", "--json", "--memory"])).expect("JSON");
    let rows = json["memory"].as_array().expect("rows");
    assert_eq!(rows.len(), 11);
    for row in rows {
        let ranks = row["ranks"].as_u64().expect("a number");
        assert_eq!(row["bytes"], bytes_of(ranks, queue_of(ranks)), "{row}");
        assert_eq!(row["bytes_small"], bytes_of(ranks, 16 * 4096), "{row}");
    }
}

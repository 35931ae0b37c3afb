//! The C program under Unisono: its rows, its refusals, and that it finds a wrong result.

use serde_json::Value;
use std::fs::{read_to_string, remove_file};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use unisono_posix::launch::{Bind, Launch};
// So that the library is built beside this test.
use unisono_posix_c as _;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Compiles the program under a name of its own, every warning an error.
fn compile(name: &str, flags: &[&str]) -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let deps = test.parent().expect("it lies in deps");
    // By this name programs ask for it; another test may have made it.
    drop(symlink("libunisono_posix_c.so", deps.join("libunisono_posix.so.0")));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let sources = ["collectives.c", "line.c", "methods.c", "subjects.c", "backend_mpi.c", "backend_unisono.c"];
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-DUNISONO"]);
    cc.args(["capi", "capi-posix"].map(|folder| format!("-I{HERE}/../../{folder}/include")));
    cc.args(flags).args(sources.map(|source| format!("{HERE}/c/{source}"))).arg("-o").arg(&program);
    cc.arg(deps.join("libunisono_posix_c.so")).arg(format!("-Wl,-rpath,{}", deps.display()));
    let output = cc.output().expect("cc starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs the program on some ranks; returns rank 0's lines, all ranks' errors, and whether all ended with success.
fn run(program: &Path, ranks: u32, args: &[&str]) -> (Vec<Value>, String, bool) {
    let at = |stream: &str, rank: u32| PathBuf::from(format!("{}.{stream}.{rank}", program.display()));
    (0..ranks).for_each(|rank| ["out", "err"].iter().for_each(|stream| drop(remove_file(at(stream, rank)))));
    let script = "exec \"$0\" \"$@\" >\"$0.out.$UNISONO_RANK\" 2>\"$0.err.$UNISONO_RANK\"";
    let mut words = vec!["-c".into(), script.into(), program.into()];
    words.extend(args.iter().map(Into::into));
    let grace = std::time::Duration::from_secs(2);
    let launch = Launch { ranks, bind: Bind::Core, program: "sh".into(), args: words, env: Vec::new(), grace };
    let outcome = launch.run().expect("the ranks start");
    let out = read_to_string(at("out", 0)).unwrap_or_default();
    let err = (0..ranks).map(|rank| read_to_string(at("err", rank)).unwrap_or_default()).collect();
    (out.lines().map(|line| serde_json::from_str(line).expect("an object")).collect(), err, outcome.success())
}

const COLLECTIVES: [&str; 17] = [
    "barrier",
    "bcast",
    "reduce",
    "scatter",
    "scatterv",
    "gather",
    "gatherv",
    "allreduce",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
];

const SHORT: [&str; 8] = ["--budget-ms", "1", "--least", "2", "--repetitions", "2", "--crowded", "1"];

#[test]
fn every_collective_has_rows() {
    let program = compile("rows", &[]);
    for ranks in [2, 3] {
        let (lines, err, well) = run(&program, ranks, &[&["--bytes", "8,8192"], &SHORT[..]].concat());
        assert!(well, "{err}");
        assert!(lines[0]["library"].as_str().is_some_and(|name| name.starts_with("Unisono ")));
        let of = |name: &str| lines.iter().filter(|line| line["collective"] == *name).collect::<Vec<_>>();
        let forms = |name: &str| -> Vec<String> {
            let rows = of(name).into_iter().filter(|row| row["bytes"] == 8 || row["bytes"] == 0);
            rows.map(|row| format!("{} {}", row["method"].as_str().unwrap(), row["root"].as_str().unwrap())).collect()
        };
        let bcast = ["window fixed", "window rotating", "rate rotating", "osu fixed", "imb rotating"];
        assert_eq!(forms("bcast"), bcast);
        assert_eq!(forms("barrier"), ["window none", "rate none", "osu none", "imb none"]);
        for name in COLLECTIVES {
            let rooted = ["bcast", "reduce", "scatter", "scatterv", "gather", "gatherv"].contains(&name);
            let sizes = if name == "barrier" { 1 } else { 2 };
            assert_eq!(of(name).len(), sizes * if rooted { 5 } else { 4 }, "{name}");
        }
        for row in &lines[1..] {
            let ns = ["p50_ns", "p99_ns", "max_ns"].map(|field| row[field].as_f64().expect("a number"));
            assert!(ns[0] > 0.0 && ns.is_sorted(), "{row}");
            assert_eq!(row["ranks"], ranks);
        }
    }
}

#[test]
fn rows_say_how_far_the_cores_are() {
    let program = compile("line", &[]);
    let file = program.with_extension("zeroes");
    let path = file.to_str().expect("a name in UTF-8");
    for ranks in [2, 3] {
        // What another program left in the file is nobody's affair.
        std::fs::write(&file, [7; 4096]).expect("a file");
        let (lines, err, well) = run(&program, ranks, &["--line", path, "--survey", "5"]);
        assert!(well, "{err}");
        let readings: Vec<f64> = serde_json::from_value(lines[0]["line_ns"].clone()).expect("numbers");
        assert!(readings.len() == 5 && readings.iter().all(|ns| *ns > 0.0), "{readings:?}");
        for most in ["1000000000", "1"] {
            // No reading is as short as a nanosecond: the row is printed all the same.
            let args =
                [&["--collectives", "barrier", "--methods", "imb", "--line", path, "--line-most", most], &SHORT[..]];
            let (lines, err, well) = run(&program, ranks, &args.concat());
            assert!(well && lines.len() == 2, "{err}");
            assert!(lines[1]["line_ns"].as_f64().is_some_and(|ns| ns > 1.0), "{lines:?}");
        }
    }
}

#[test]
fn a_wrong_result_ends_the_run_and_is_named() {
    let program = compile("broken", &["-include", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/broken.h")]);
    let bcast = |bytes| run(&program, 2, &[&["--collectives", "bcast", "--bytes", bytes], &SHORT[..]].concat());
    let (_, err, well) = bcast("8,512");
    assert!(well, "{err}");
    let (_, err, well) = bcast("8192");
    assert!(!well);
    assert!(err.contains("wrong result: bcast of 8192 bytes from root 0 at rank 1"), "{err}");
}

#[test]
fn bad_arguments_are_refused_with_name_value_and_bound() {
    let program = compile("refusals", &[]);
    for (args, words) in [
        (&["--bytes", "12"][..], "--bytes is 12, must be multiples of 8 from 8 to 64 MiB"),
        (&["--bytes", "8,x"], "--bytes is x, must be"),
        (&["--collectives", "bcst"], "--collectives is bcst, must be"),
        (&["--methods", "best"], "--methods is best, must be window, rate, osu, imb"),
        (&["--roots", "fix"], "--roots is fix, must be fixed, rotating"),
        (&["--least", "0"], "--least is 0, must be 1 to 2000"),
        (&["--crowded"], "--crowded is missing, must be 0 or 1"),
        (&["--survey", "9"], "--survey is given, must be with --line and for two ranks"),
        (&["--line-most", "0"], "--line-most is 0, must be 1 to 1000000000"),
        (&["--fast", "1"], "an option is --fast, must be"),
    ] {
        let (lines, err, well) = run(&program, 2, args);
        assert!(!well && lines.is_empty() && err.contains(words), "{args:?}: {err}");
    }
}

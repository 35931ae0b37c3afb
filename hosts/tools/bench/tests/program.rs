//! The program, as a person uses it; no MPI is needed.

use roxmltree::{Document, Node, ParsingOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unisono-bench")).args(args).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn draw(report: &str, name: &str) -> (Output, PathBuf) {
    let folder = folder(name);
    let (json, html) = (folder.join("bench.json"), folder.join("page.html"));
    std::fs::write(&json, report).expect("a report");
    let _ = std::fs::remove_file(&html);
    (bench(&["page", json.to_str().expect("text"), "--out", html.to_str().expect("text")]), html)
}

fn count(page: Node<'_, '_>, tag: &str) -> usize {
    page.descendants().filter(|node| node.has_tag_name(tag) || node.tag_name().name() == tag).count()
}

const CANNED: &str = include_str!("canned.json");

#[test]
fn a_report_becomes_a_well_formed_page_with_all_its_plots() {
    let (output, html) = draw(CANNED, "canned");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(html).expect("a page");
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&page, options).expect("well-formed");
    let body = document.descendants().find(|node| node.tag_name().name() == "body").expect("a body");
    // 2 and 4 ranks: window with a fixed root, and rate: ratio, floor, bcast, scan; a rotating root: the same without scan.
    let plots: usize = body.attribute("data-plots").and_then(|n| n.parse().ok()).expect("a number of plots");
    assert_eq!(plots, 2 * (4 + 3 + 4));
    let figures: Vec<_> = body.descendants().filter(|node| node.tag_name().name() == "figure").collect();
    let ids: Vec<_> = figures.iter().filter_map(|figure| figure.attribute("id")).map(String::from).collect();
    assert_eq!(ids, (1..=plots).map(|n| format!("plot-{n}")).collect::<Vec<_>>());
    for figure in figures {
        assert_eq!(count(figure, "svg"), 1);
        assert!(count(figure, "polyline") > 0, "a plot has lines");
        let texts = figure.descendants().filter(|node| node.tag_name().name() == "text");
        let labels: Vec<_> = texts.filter_map(|node| node.text()).map(str::trim).collect();
        for wanted in ["8 B", "512 B", "4 KiB"] {
            assert!(labels.contains(&wanted), "{wanted} below the plot: {labels:?}");
        }
        let time = |label: &&&str| label.ends_with(" ns") || label.ends_with(" µs") || label.ends_with(" ms");
        let beside = labels.iter().filter(time).count();
        assert_eq!(beside >= 2, labels.contains(&"time"), "units beside a plot of times: {labels:?}");
    }
    for (tag, most) in [("script", 0), ("link", 0), ("img", 0), ("h1", 1)] {
        assert!(count(body, tag) <= most, "{tag}");
    }
    assert!(page.contains("<td>-</td>") && page.contains("mpirun.mpich is not installed"));
    assert!(page.contains("ompi+unisono</td>") && page.contains("bcast 8 B rate rotating 1.13"), "the preload");
    assert!(page.contains("&lt;b&gt;") && !page.contains("<b>&amp;"), "text from libraries is escaped");
}

#[test]
fn an_empty_report_has_a_page() {
    let mut report: serde_json::Value = serde_json::from_str(CANNED).expect("JSON");
    for list in ["cells", "summaries", "preloads", "samples", "floors", "members"] {
        report[list] = serde_json::Value::Array(Vec::new());
    }
    let (output, _) = draw(&report.to_string(), "empty");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("with 0 plots"));
}

#[test]
fn a_report_from_before_the_preload_has_a_page() {
    let mut report: serde_json::Value = serde_json::from_str(CANNED).expect("JSON");
    assert!(report.as_object_mut().and_then(|fields| fields.remove("preloads")).is_some());
    let (output, html) = draw(&report.to_string(), "before");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!std::fs::read_to_string(html).expect("a page").contains("preloaded"));
}

#[test]
fn what_is_no_report_is_refused() {
    for bad in ["", "{}", "[1]", "{\"machine\": 3}"] {
        let (output, html) = draw(bad, "bad");
        assert!(!output.status.success());
        assert!(text(&output.stderr).contains("not a report"), "{}", text(&output.stderr));
        assert!(!html.exists());
    }
    let output = bench(&["page", "/no/such/file"]);
    assert!(!output.status.success() && text(&output.stderr).contains("/no/such/file"));
}

#[test]
fn bad_arguments_are_refused_with_name_value_and_bound() {
    for (args, words) in [
        (&["--rounds", "0"][..], &["--rounds", "'0'", "1..=1000"][..]),
        (&["--ranks", "2,1"], &["--ranks", "'1'", "2..=1024"]),
        (&["--bytes", "8,12"], &["--bytes", "'12'", "multiple of 8 from 8 to 64M"]),
        (&["--bytes", "99999999999M"], &["--bytes", "'99999999999M'", "64M"]),
        (&["--collectives", "bcst"], &["--collectives", "'bcst'", "bcast"]),
        (&["--methods", "best"], &["--methods", "'best'", "window", "rate", "osu", "imb"]),
        (&["--roots", "3"], &["--roots", "'3'", "fixed", "rotating"]),
        (&["--configurations", "mvapich"], &["--configurations", "'mvapich'", "mpich-yield"]),
        (&["--budget", "-1"], &["-1"]),
        (&["--timeout", "0"], &["--timeout", "'0'", "1..=86400"]),
    ] {
        let output = bench(&[&["run"], args].concat());
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        words.iter().for_each(|word| assert!(error.contains(word), "{word} is not in {error}"));
    }
}

#[test]
fn a_machine_without_anything_is_named_and_no_crash() {
    let out = folder("bare");
    let output = Command::new(env!("CARGO_BIN_EXE_unisono-bench"))
        .args(["run", "--rounds", "1", "--ranks", "2", "--bytes", "8", "--unisono", "/no/unisono"])
        .arg("--out")
        .arg(&out)
        .env("PATH", "/no/path")
        .output()
        .expect("the program starts");
    let (table, error) = (text(&output.stdout), text(&output.stderr));
    for reason in ["Unisono, 2 ranks: /no/unisono is missing", "Open MPI, 2 ranks: mpirun.openmpi is not installed"] {
        assert!(table.contains(reason), "{reason} is not in {table}");
    }
    assert!(!output.status.success() && error.contains("Unisono FAILED"), "{error}");
    assert!(out.join("bench.json").exists() && out.join("bench.html").exists());
}

#[test]
fn copies_are_timed_and_summed_up() {
    let output = bench(&["copies", "--bytes", "8K", "--cores", "1"]);
    let text = text(&output.stdout);
    let row: Vec<f64> = text.lines().nth(2).unwrap().split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert!(output.status.success() && row.len() == 5 && row.iter().all(|&time| time > 0.0), "{text}");
    assert_eq!(text.lines().last(), Some("copies: 1 lengths"));
}

/// How the subcommands that print end, where standard output is this: code and standard error.
fn written_to(to: impl Fn() -> Stdio) -> Vec<(Option<i32>, String)> {
    let folder = folder("written");
    let (json, out) = (folder.join("bench.json"), folder.join("run"));
    std::fs::write(&json, CANNED).expect("a report");
    let json = json.to_str().expect("text");
    let run = ["run", "--rounds", "1", "--ranks", "2", "--bytes", "8", "--unisono", "/no/unisono", "--out"];
    let run = [&run[..], &[out.to_str().expect("text")]].concat();
    let of = |args: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_unisono-bench"));
        let output = program.args(args).env("PATH", "/no/path").stdout(to()).output().expect("the program starts");
        (output.status.code(), text(&output.stderr))
    };
    [&["page", json][..], &["copies", "--bytes", "8K", "--cores", "1"], &run].map(of).into()
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    for (code, errors) in
        written_to(|| std::fs::File::options().write(true).open("/dev/full").expect("Linux has it").into())
    {
        assert_eq!(code, Some(1), "{errors}");
        assert!(
            errors.contains("standard output: No space left on device") && !errors.contains("panicked"),
            "{errors}"
        );
    }
}

#[test]
fn a_reader_who_is_gone_is_no_error() {
    let gone = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        writer.into()
    };
    let [page, copies, run] = &written_to(gone)[..] else { panic!("three subcommands") };
    assert_eq!((page, copies), (&(Some(0), String::new()), &(Some(0), String::new())));
    // Unisono is missing there: that alone is its error.
    assert!(run.0 == Some(1) && run.1.contains("Unisono FAILED") && !run.1.contains("panicked"), "{run:?}");
}

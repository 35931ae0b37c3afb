//! `unisono model`, as a person uses it; the formulas are tested where they are.

use serde_json::Value;
use std::process::{Command, Output};

const FIGURES: [(&str, usize, usize); 6] =
    [("p1.4", 3, 128), ("p1.6", 1, 128), ("p1.8", 2, 497), ("p4.6", 4, 99), ("p5.5", 6, 101), ("p5.6", 6, 101)];

fn model(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unisono")).arg("model").args(args).output().expect("the program starts")
}

/// Standard output of a run that must succeed.
fn succeeds(args: &[&str]) -> String {
    let output = model(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn rows(args: &[&str]) -> Vec<Value> {
    succeeds(args).lines().map(|line| serde_json::from_str(line).expect("one JSON object per line")).collect()
}

#[test]
fn figures_as_json_and_text() {
    for (figure, lines, points) in FIGURES {
        let object = rows(&["--figure", figure, "--json"]).remove(0);
        let series = object["series"].as_array().expect("an array");
        assert_eq!(series.len(), lines, "{figure}");
        for line in series {
            assert_eq!(line["points"].as_array().map(Vec::len), Some(points), "{figure}");
        }
        let text = succeeds(&["--figure", figure]);
        let most = text.lines().count();
        assert!((20..=50).contains(&most), "{figure}: {most} lines");
        assert!(text.contains(series[0]["name"].as_str().expect("a name")), "{figure}");
    }
}

/// Each line of a figure is a polyline with as many corners as it has points.
#[test]
fn figures_as_svg() {
    let folder = std::env::temp_dir().join(format!("unisono-model-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (figure, lines, points) in FIGURES {
        let path = folder.join(figure).with_extension("svg");
        let said = succeeds(&["--figure", figure, "--plot", path.to_str().expect("UTF-8")]);
        assert!(said.contains(", figure "), "{said}");
        let text = std::fs::read_to_string(&path).expect("the file is there");
        let svg = roxmltree::Document::parse(&text).expect("well-formed");
        let polylines = svg.descendants().filter(|node| node.has_tag_name("polyline"));
        let corners = polylines.map(|line| line.attribute("points").unwrap_or_default().split_whitespace().count());
        assert!(corners.filter(|&count| count >= points).count() >= lines, "{figure}");
    }
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

/// At f = 16 KiB, m = 1 MiB, b = 64 KiB, times of 2, 0, 0 and 10 ns: 16 · 32768 + 64 · 10 + 2097152 ns = 2.62208 ms.
#[test]
fn parameters_change_figures() {
    let times = ["--byte-time", "2", "--set-wait", "0", "--decrement", "0", "--slot-wait", "10"];
    let sizes = ["--message", "1M", "--queue-bytes", "64K"];
    let figure = rows(&[&["--figure", "p1.4", "--json"], &times[..], &sizes].concat()).remove(0);
    let points = figure["series"][0]["points"].as_array().expect("points");
    let point = points.iter().find(|point| point[0] == 16384.0).expect("f = 16 KiB");
    assert!(point[1].as_f64().is_some_and(|ms| (ms - 2.622_08).abs() < 1e-9), "{point}");
}

#[test]
fn choices_stand_beside_the_papers_claim() {
    let paper = rows(&["--table", "p4.choices", "--json"]);
    let of = |rows: &[Value], name: &str| {
        let row = rows.iter().find(|row| row["barrier"] == name).expect("a row");
        (row["share %"].as_f64(), row["paper's claim %"].as_f64())
    };
    assert_eq!(of(&paper, "dissemination"), (Some(100.0), Some(96.0)));
    assert_eq!(of(&paper, "combining-groups-4"), (Some(0.0), Some(3.0)));
    assert_eq!(of(&paper, "central"), (Some(0.0), Some(1.0)));
    // L = 20, o = g = 1: the central counter for P = 5 to 37, 33 of 99 sizes.
    let far = ["--latency", "20", "--send-overhead", "1", "--receive-overhead", "1", "--gap", "1"];
    let far = rows(&[&["--table", "p4.choices", "--json"], &far[..]].concat());
    assert!(of(&far, "central").0.is_some_and(|share| (share - 100.0 / 3.0).abs() < 1e-9));
    assert_eq!(rows(&["--table", "p4.choices", "--json", "--barriers", "all"]).len(), 7);
}

#[test]
fn tables() {
    let table = rows(&["--table", "p1.1", "--json"]);
    assert_eq!((table.len(), table[0]["s=f/2"].as_f64()), (16, Some(8.0)));
    assert!(succeeds(&["--table", "p1.1"]).contains("\n 4096      8      4      2       1     0.5    0.25"));
    let crossings = rows(&["--table", "p5.crossings", "--json"]);
    assert!(crossings.iter().any(|row| row["p"] == 8 && row["stages"] == 3 && row["BAGDS/direct"] == "always"));
    let rules = succeeds(&["--table", "p1.rules"]);
    assert!(rules.contains("14482") && rules.lines().count() == 8, "{rules}");
}

#[test]
fn what_is_wrong_is_named() {
    for (args, words) in [
        (&["--figure", "p1.4", "--slot-wait", "-1"][..], "wait for a slot (t_W) is -1, must be above 0"),
        (&["--figure", "p1.4", "--queue-bytes", "0"], "queue (b) is 0, must be at least 1"),
        (&["--figure", "p4.6", "--latency", "-3"], "latency (L) is -3, must be at least 0"),
        (&["--figure", "p4.6", "--gap", "NaN"], "gap (g) is NaN, must be at least 0"),
        (&["--figure", "p4.6", "--members", "1"], "members of a group (n) is 1, must be at least 2"),
        (&["--figure", "p5.5", "--ranks", "5000"], "ranks (p) is 5000, must be at most 4096"),
        (&["--figure", "p1.4", "--latency", "3"], "--latency: no parameter here; there are --byte-time"),
        (&["--table", "p1.1", "--slots", "3"], "--slots: this table has no parameters"),
        (&["--figure", "p1.5"], "possible values"),
        (&["--figure", "p1.4", "--plot", "/no/such/folder/a.svg"], "/no/such/folder/a.svg"),
        (&[], "--figure"),
    ] {
        let output = model(args);
        assert!(!output.status.success(), "{args:?}");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.contains(words), "{args:?}: {errors}");
    }
}

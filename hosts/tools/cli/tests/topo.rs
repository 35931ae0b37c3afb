//! Groups of paper P3, as a person asks for them.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

const NODE: &str = "package:2 [numa] core:18";

fn topo(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unisono")).arg("topo").args(args).output().expect("the program starts")
}

fn succeeds(args: &[&str]) -> String {
    let output = topo(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn refused(args: &[&str]) -> String {
    let output = topo(args);
    assert!(!output.status.success() && output.stdout.is_empty(), "{args:?}");
    String::from_utf8(output.stderr).expect("text")
}

/// A file of this test's own.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file in the directory for tests");
    path
}

/// Paper P3's cluster: 64 nodes, 16 on each switch.
fn switches(name: &str) -> String {
    let line = |node| format!("node{node:02} sw1{}\n", (node - 1) / 16 + 1);
    let text: String = (1..=64).map(line).collect();
    file(name, &format!("# <node-name> <switch-name>\n\n{text}")).display().to_string()
}

#[test]
fn the_papers_example_to_the_last_group() {
    let file = switches("example");
    let common = ["--synthetic", NODE, "--nodes", "node01,node02,node48", "--switches", &file];
    let of = |more: &[&str]| succeeds(&[&common, more].concat());
    let expected = "0: G1(0-17) G2(0,18) G3(0,36) G4(0,72)\n1: G1(0-17)\n36: G1(36-53) G2(36,54) G3(0,36)\n";
    assert_eq!(of(&["--groups", "0,1,36"]), expected);
    let ranks: Vec<_> = (0..108).map(|rank| rank.to_string()).collect();
    for (rank, line) in (0..).zip(of(&["--groups", &ranks.join(",")]).lines()) {
        let first = rank / 18 * 18;
        let more = match rank {
            0 => " G2(0,18) G3(0,36) G4(0,72)",
            18 => " G2(0,18)",
            36 => " G2(36,54) G3(0,36)",
            54 => " G2(36,54)",
            72 => " G2(72,90) G3(72) G4(0,72)",
            90 => " G2(72,90)",
            _ => "",
        };
        assert_eq!(line, format!("{rank}: G1({first}-{}){more}", first + 17));
    }
    let tree = "\
108 processes, active levels NM-SK-ND-SW-SW2, groups on NM-ND-SW-SW2
G4 SW2 (0,72)
  G3 SW (0,36)
    G2 ND (0,18)
      G1 NM (0-17)
      G1 NM (18-35)
    G2 ND (36,54)
      G1 NM (36-53)
      G1 NM (54-71)
  G3 SW (72)
    G2 ND (72,90)
      G1 NM (72-89)
      G1 NM (90-107)
";
    assert_eq!(of(&[]), tree);
    let json: Value = serde_json::from_str(&of(&["--json"])).expect("JSON");
    assert_eq!(json["groups"].as_array().map(Vec::len), Some(6 + 3 + 2 + 1));
    assert_eq!(json["groups"][11]["members"], serde_json::json!([0, 72]));
    let json: Value = serde_json::from_str(&of(&["--json", "--groups", "90"])).expect("JSON");
    assert_eq!((&json["ranks"][0]["locality"], &json["ranks"][0]["switch"]), (&"SK1:CR18:NM1".into(), &2.into()));
    assert_eq!(json["ranks"][0]["groups"][1]["leader"], 72);
}

#[test]
fn groups_of_thousands_of_ranks_cost_twelve_bytes_each() {
    let nodes: Vec<_> = (0..32).map(|node| format!("n{node}")).collect();
    let machine = "package:2 [numa] l3:4 core:16";
    let text = succeeds(&["--synthetic", machine, "--nodes", &nodes.join(","), "--groups", "0", "--json"]);
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&json["processes"], &json["bytes"]), (&4096.into(), &(4096 * 12).into()));
    assert!(json["build_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{json}");
}

#[test]
fn levels_are_switched_off_by_name() {
    let file = switches("levels");
    let of = |levels, ranks| {
        let nodes = "node01,node02,node48";
        succeeds(&["--synthetic", NODE, "--nodes", nodes, "--switches", &file, "--levels", levels, "--groups", ranks])
    };
    assert_eq!(of("NM-ND-SW", "36,72"), "36: G1(36-53) G2(36,54) G3(0,36)\n72: G1(72-89) G2(72,90) G3(72) G4(0,72)\n");
    assert_eq!(
        of("package:machine", "0,36"),
        "0: G1(0-17) G2(0,18) G3(0,36,72)\n36: G1(36-53) G2(36,54) G3(0,36,72)\n"
    );
    assert_eq!(of("L2", "107"), "107: G1(0-107)\n");
}

#[test]
fn described_processes_are_bound_as_asked() {
    let of = |more: &[&str]| succeeds(&[&["--synthetic", "package:2 [numa] core:4", "--nodes", "a,b"], more].concat());
    assert_eq!(of(&["--bind", "numa", "--groups", "0,1"]), "0: G1(0,2,4,6) G2(0-1) G3(0,8)\n1: G1(1,3,5,7) G2(0-1)\n");
    assert_eq!(of(&["-n", "10", "--groups", "8"]), "8: G1(8-9) G2(8) G3(0,8)\n");
    let output = topo(&["--synthetic", "core:4", "--bind", "none", "--groups", "3"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "3: G1(0-3)\n");
    let warning = "unisono: 4 of 4 ranks are not bound (0-3): they take part from the node level on\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), warning);
}

#[test]
fn real_processes_are_grouped_by_their_bindings() {
    let line = succeeds(&["-n", "3", "--groups", "0"]);
    assert!(line.starts_with("0: G1(0"), "{line}");
    let json: Value = serde_json::from_str(&succeeds(&["-n", "3", "--json"])).expect("JSON");
    assert_eq!((&json["processes"], &json["unbound"]), (&3.into(), &serde_json::json!([])));
    let output = topo(&["-n", "3", "--bind", "none", "--groups", "2"]);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores > 1 && json["groups"].as_array().is_some_and(|groups| !groups.is_empty()) {
        assert_eq!(String::from_utf8_lossy(&output.stdout), "2: G1(0-2)\n");
    }
}

#[test]
fn all_groups_are_drawn() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("groups.svg");
    let plot = path.display().to_string();
    succeeds(&["--synthetic", NODE, "--nodes", "a,b", "--plot", &plot]);
    let svg = std::fs::read_to_string(path).expect("the drawing");
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for text in ["(0-17)", "(36,54)", "(0,36)", "G3 ALL"] {
        assert!(svg.contains(text), "{text}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let bad = |name: &str, text| file(name, text).display().to_string();
    let unknown = bad("unknown", "a s1\n# b s1\n");
    let repeated = bad("repeated", "a s1\nb s1\n\na s2\n");
    let malformed = bad("malformed", "a s1\nb\n");
    for (args, message) in [
        (&["--nodes", "a,b", "--switches", &unknown][..], "unknown node b: lines 1 to 2 do not name it"),
        (&["--nodes", "a,b", "--switches", &repeated], "line 4: node a again, first on line 1"),
        (&["--nodes", "a,b", "--switches", &malformed], "line 2: 1 word, must be 2: NODE SWITCH"),
        (&["--nodes", "a,b", "--switches", "/no/such/file"], "/no/such/file: No such file"),
        (&["--nodes", "a,a"], "--nodes: \"a\""),
        (&["--nodes", "a,"], "--nodes: \"\""),
        (&["--levels", "NM-XX"], "an unknown name at byte 3"),
        (&["--levels", "NM-ND-NM"], "a repeated name at byte 6"),
        (&["--groups", "36"], "rank is 36, must be below 36"),
        (&["-n", "37"], "ranks is 37, must be at most 36"),
        (&["-n", "0"], "ranks is 0, must be at least 1"),
        (&["--plot", "/no/such/directory/x.svg"], "/no/such/directory/x.svg: No such file"),
    ] {
        let error = refused(&[&["--synthetic", NODE], args].concat());
        assert!(error.contains(message), "{args:?}: {error}");
    }
    assert!(refused(&["--synthetic", "package:2 foo:3"]).contains("\"foo:3\""));
    assert!(refused(&["--nodes", "a"]).contains("--synthetic"));
    assert!(refused(&["--memory", "--bind", "core"]).contains("--memory"));
    assert!(refused(&["-n", "2", "--switches", &malformed]).contains("line 2"));
}

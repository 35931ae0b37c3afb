//! The header and the library, from C: compiled with `cc`, every warning an error.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use unisono_c::operation::COp;
use unisono_c::params::CParams;
use unisono_kernel::class::Class;
use unisono_kernel::op::{Element, Operation};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    output
}

/// `libunisono_c` of this build: Cargo puts it next to this test, without a hash in its name.
fn library(extension: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let deps = test.parent().expect("it lies in deps");
    let library = deps.join(format!("libunisono_c.{extension}"));
    assert!(library.exists(), "{} is missing", library.display());
    library
}

fn compile(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Wextra", "-Werror", "-std=c11", "-O1", "-I"]).arg(Path::new(HERE).join("include"));
    cc.args(flags).arg(Path::new(HERE).join(source)).arg("-o").arg(&program);
    if !flags.contains(&"-fsyntax-only") {
        let pc = pc();
        let private = pc.lines().find_map(|line| line.strip_prefix("Libs.private: ")).expect("what it needs");
        cc.arg(library("a")).args(private.split(' '));
    }
    run(&mut cc);
    program
}

fn pc() -> String {
    std::fs::read_to_string(Path::new(HERE).join("unisono.pc.in")).expect("the template is there")
}

fn header() -> String {
    std::fs::read_to_string(Path::new(HERE).join("include/unisono.h")).expect("the header is there")
}

#[test]
fn c_programs_call_every_function() {
    for name in ["bcast", "moves", "types", "reductions", "requests", "late", "orders"] {
        let output = run(&mut Command::new(compile(&format!("tests/{name}.c"), name, &[])));
        assert_eq!(output.stdout, b"all well\n");
    }
}

#[test]
fn the_example_broadcasts_on_memory_that_it_mapped() {
    let output = run(&mut Command::new(compile("examples/broadcast.c", "example", &[])));
    let mut lines: Vec<_> = String::from_utf8(output.stdout).expect("text").lines().map(String::from).collect();
    lines.sort();
    let expected: Vec<_> = (0..4).map(|rank| format!("rank {rank} of 4: good news from rank 0")).collect();
    assert_eq!(lines, expected);
}

#[test]
fn the_header_is_cplusplus_too() {
    compile("examples/broadcast.c", "none", &["-fsyntax-only", "-Wstrict-prototypes", "-pedantic"]);
    if Command::new("c++").arg("--version").output().is_ok() {
        let header = Path::new(HERE).join("include/unisono.h");
        run(Command::new("c++").args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++"]).arg(header));
    }
}

#[test]
fn numbers_in_the_header_are_the_librarys() {
    let header = header();
    let defined = |name: &str, value: &str| {
        let line = format!("#define {name} {value}");
        assert!(header.lines().any(|l| l.starts_with(&line)), "no line {line:?}");
    };
    for class in Class::ALL {
        defined(class.name().to_str().expect("text"), &format!("({})", class.number()));
    }
    defined("UNISONO_OK", "(0)");
    let errors = header.lines().filter(|l| l.starts_with("#define UNISONO_ERR_")).count();
    assert_eq!(errors, Class::ALL.len());
    for element in Element::ALL {
        defined(&format!("UNISONO_{}", element.name().to_uppercase()), &format!("({})", element.number()));
    }
    for operation in Operation::ALL {
        let value = format!("((const unisono_op *){})", operation.number());
        defined(&format!("UNISONO_{}", operation.name().to_uppercase()), &value);
    }
    let operations = header.lines().filter(|l| l.contains("((const unisono_op *)")).count();
    assert_eq!(operations, Operation::ALL.len());
    assert!(header.contains(&format!("#define UNISONO_VERSION {}\n", unisono_c::VERSION)));
    assert!(pc().contains(concat!("Version: ", env!("CARGO_PKG_VERSION"), "\n")));
    assert_eq!(size_of::<CParams>(), 32, "the first release's struct; it may only grow");
    assert_eq!(size_of::<COp>(), 24, "a function, a context, a number");
}

#[test]
fn the_library_exports_what_the_header_declares() {
    let nm = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library("so")));
    let exported: BTreeSet<String> =
        String::from_utf8_lossy(&nm.stdout).lines().filter_map(|l| l.split(' ').nth(2).map(String::from)).collect();
    assert_eq!(exported, declared(&header()));
}

/// The names of the functions that the header declares: names before a parenthesis outside of comments, but for the
/// function type.
fn declared(header: &str) -> BTreeSet<String> {
    let mut code = String::new();
    let mut rest = header;
    while let Some((before, comment)) = rest.split_once("/*") {
        code += before;
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    code += rest;
    let lines = code.lines().filter(|l| !l.starts_with("typedef") && !l.starts_with('#'));
    let words = lines.flat_map(|l| l.split([' ', '*'])).filter_map(|word| word.split_once('('));
    words.map(|(name, _)| name.to_string()).filter(|name| name.starts_with("unisono_")).collect()
}

//! The kernel needs no standard library: a program that has none links it and runs it (`verify/nostd`).
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

const TARGET: &str = "x86_64-unknown-linux-gnu";

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let status = output.status;
    assert!(status.success(), "{command:?}: {status}\n{}{}", text(&output.stdout), text(&output.stderr));
    output
}

/// Cargo in a folder of this package, untouched by flags meant for the tests.
fn cargo(folder: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        cargo.env_remove(variable);
    }
    cargo
}

#[test]
fn a_program_without_a_standard_library_runs_the_kernel() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nostd");
    run(cargo("nostd").args(["build", "--release", "--locked", "--target", TARGET, "--target-dir"]).arg(&folder));
    let program = folder.join(TARGET).join("release/unisono-nostd");
    // Its exit status names the step that went wrong.
    run(&mut Command::new(&program));
    let undefined = run(Command::new("nm").arg("-u").arg(&program)).stdout;
    assert_eq!(String::from_utf8_lossy(&undefined), "", "symbols that are not defined");
    let symbols = run(Command::new("nm").arg(&program)).stdout;
    let symbols = String::from_utf8_lossy(&symbols);
    assert!(symbols.contains("unisono_kernel"), "the kernel is linked in");
    // Names mangled by either scheme: the crates' lengths stand before them.
    for foreign in ["3std", "5alloc3", "malloc", "__libc_start_main"] {
        assert!(!symbols.contains(foreign), "{foreign} is linked in");
    }
}

#[test]
fn the_kernel_depends_on_heapless_and_on_spins_traits_alone() {
    let lines = |package: &str, format| -> BTreeSet<String> {
        let arguments = ["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--format", format];
        let output = run(cargo(".").args(arguments));
        String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect()
    };
    let tree = |package: &str| -> BTreeSet<String> {
        lines(package, "{p}").iter().filter_map(|line| line.split(' ').next().map(String::from)).collect()
    };
    let (kernel, heapless) = (tree("unisono-kernel"), tree("heapless"));
    assert!(heapless.contains("heapless") && heapless.len() < 6, "{heapless:?}");
    let expected = heapless.into_iter().chain(["unisono-kernel".to_string(), "spin".to_string()]).collect();
    assert_eq!(kernel, expected);
    // Without features spin has no locks, and nothing of the standard library.
    let features = lines("unisono-kernel", "{p}, features: [{f}]");
    let of_spin: Vec<_> = features.iter().filter(|line| line.starts_with("spin ")).collect();
    assert!(matches!(of_spin[..], [line] if line.ends_with(", features: []")), "{of_spin:?}");
}

/// Is there a core library for the target? If not, prints how to get it; tests that need it are passed over.
fn installed(target: &str) -> bool {
    let folder = run(Command::new("rustc").args(["--print", "target-libdir", "--target", target])).stdout;
    let there = Path::new(String::from_utf8_lossy(&folder).trim()).is_dir();
    if !there {
        eprintln!("passed over: `rustup target add {target}` is needed");
    }
    there
}

/// Kernels leave vector registers alone: the compiler gives up on code that names them.
#[test]
fn a_target_without_vectors_gets_plain_copies() {
    const NONE: &str = "x86_64-unknown-none";
    if !installed(NONE) {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nostd");
    for profile in ["dev", "release"] {
        let build = ["build", "--locked", "--package", "unisono-shm", "--target", NONE, "--profile", profile];
        run(cargo("nostd").args(build).arg("--target-dir").arg(&folder));
    }
    assert!(folder.join(NONE).join("debug/libunisono_shm.rlib").is_file());
}

#[test]
fn a_target_without_atomics_of_64_bits_is_refused_in_a_sentence() {
    const THUMB: &str = "thumbv7em-none-eabi";
    if !installed(THUMB) {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nostd");
    let check = ["check", "--locked", "--package", "unisono-kernel", "--target", THUMB, "--target-dir"];
    let output = cargo("nostd").args(check).arg(&folder).output().expect("cargo starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{errors}");
    assert!(errors.contains("error: unisono-kernel needs atomic integers of 64 bits"), "{errors}");
}

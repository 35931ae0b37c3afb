//! The crates that others may depend on can be packaged: what a registry asks for is there. `make package` builds them.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

/// Standard output of cargo in the repository.
fn cargo(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(args).args(["--locked", "--offline"]).current_dir(ROOT).output();
    let output = output.expect("cargo starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.as_ref().display()))
}

/// The workspace's crates.
fn crates() -> Vec<Value> {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let mut metadata: Value = serde_json::from_str(&metadata).expect("JSON");
    serde_json::from_value(metadata["packages"].take()).expect("a list")
}

fn words<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// `publish = false` is an empty list of registries.
fn is_public(package: &Value) -> bool {
    package["publish"].is_null()
}

#[test]
fn public_crates_say_what_a_registry_asks_for() {
    let crates = crates();
    let public: BTreeSet<_> = crates.iter().filter(|one| is_public(one)).map(|one| words(one, "name")).collect();
    for package in crates.iter().filter(|one| is_public(one)) {
        let name = words(package, "name");
        for key in ["description", "license", "repository", "readme", "rust_version"] {
            assert!(!words(package, key).is_empty(), "{name} has no {key}");
        }
        for key in ["keywords", "categories"] {
            let count = package[key].as_array().map_or(0, Vec::len);
            assert!((1..=5).contains(&count), "{name} has {count} {key}, must be 1 to 5");
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let (other, range) = (words(dependency, "name"), words(dependency, "req"));
            assert!(range != "*", "{name} depends on {other} without a version");
            assert!(!range.starts_with('='), "{name} depends on {other} {range}: no range");
            assert!(
                dependency["path"].is_null() || public.contains(other),
                "{name} depends on {other}, which is not public"
            );
        }
    }
}

#[test]
fn each_package_has_both_licences_and_its_readme() {
    for package in crates().iter().filter(|one| is_public(one)) {
        let name = words(package, "name");
        let list = cargo(&["package", "--list", "--allow-dirty", "-p", name]);
        let files: BTreeSet<_> = list.lines().collect();
        for file in ["Cargo.toml", "README.md", "LICENSE-APACHE", "LICENSE-MIT", "src/lib.rs"] {
            assert!(files.contains(file), "{file} is not in the package of {name}");
        }
        let folder = Path::new(words(package, "manifest_path")).parent().expect("a folder");
        for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
            assert_eq!(read(folder.join(file)), read(Path::new(ROOT).join(file)), "{file} of {name}");
        }
    }
}

/// `make package` and docs/howto/package.md name the public crates, and no others.
#[test]
fn the_lists_of_public_crates_agree() {
    let crates = crates();
    let public: BTreeSet<_> =
        crates.iter().filter(|one| is_public(one)).map(|one| words(one, "name").to_owned()).collect();
    let makefile = read(Path::new(ROOT).join("Makefile"));
    let list = makefile.lines().find_map(|line| line.strip_prefix("CRATES = ")).expect("a list");
    assert_eq!(list.split(' ').map(str::to_owned).collect::<BTreeSet<_>>(), public);
    let page = read(Path::new(ROOT).join("docs/howto/package.md"));
    let rows = page.lines().filter(|line| line.starts_with("| `unisono"));
    let names = rows.flat_map(|row| row.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2));
    assert_eq!(names.map(str::to_owned).collect::<BTreeSet<_>>(), public);
}

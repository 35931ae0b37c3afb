//! Lists that are complete: variables of the environment, and targets.

use super::{files, is_ours, is_page, read, root};
use std::collections::BTreeSet;
use std::fs;

/// The variables of the environment that `text` reads or passes on, as literals of Rust or C.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split("\"UNISONO").skip(1).filter_map(|rest| {
        let (name, _) = rest.split_once('"')?;
        let is_name = name.starts_with('_') || name.is_empty();
        (is_name && name.chars().all(|c| c == '_' || c.is_ascii_uppercase())).then_some(name)
    })
}

#[test]
fn every_variable_that_code_reads_is_in_the_list() {
    let page = read(&root().join("docs/reference/environment.md"));
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `UNISONO"));
    let listed: BTreeSet<_> = rows.filter_map(|row| row.split(['`', '=']).next()).collect();
    let mut sources = Vec::new();
    for folder in [".ci", "hosts", "transports", "verify"] {
        files(&root().join(folder), &|path| !is_page(path) && !is_ours(path), &mut sources);
    }
    let texts: Vec<_> = sources.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    // Names of C's constants, and what a test tells the processes that it starts.
    let is_listed = |name: &&str| !["_TEST_", "_ERR_", "_OK"].iter().any(|other| name.starts_with(other));
    let read: BTreeSet<_> = texts.iter().flat_map(|text| variables(text)).filter(is_listed).collect();
    assert!(read.len() > 10, "{read:?}");
    let missing: Vec<_> = read.difference(&listed).collect();
    let is_read = |name: &&&str| texts.iter().any(|text| text.contains(&format!("UNISONO{name}")));
    let dead: Vec<_> = listed.iter().filter(|name| !is_read(name)).collect();
    assert!(missing.is_empty() && dead.is_empty(), "not listed: {missing:?}; listed, not read: {dead:?}");
}

#[test]
fn every_target_is_in_the_list() {
    let makefile = read(&root().join("Makefile"));
    let targets =
        makefile.lines().filter(|line| line.contains(": ") && line.contains(" ## ") || line.contains(": ## "));
    let targets: BTreeSet<_> = targets.filter_map(|line| line.split(':').next()).collect();
    let page = read(&root().join("docs/reference/targets.md"));
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `make "));
    let listed: BTreeSet<_> = rows.filter_map(|row| row.split(['`', ' ']).next()).collect();
    assert!(targets.len() > 10, "{targets:?}");
    assert_eq!(targets, listed);
}

//! README.md, CHANGELOG.md, CONTRIBUTING.md and docs/ name only what exists: pages, links, files, variables, targets,
//! and the programs that README.md shows.

mod links;
mod lists;
mod names;
mod readme;

use std::fs;
use std::path::{Path, PathBuf};

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder of the repository").to_path_buf()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All files below `folder` for which `keep` holds, except those that are built or found by checks.
fn files(folder: &Path, keep: &dyn Fn(&Path) -> bool, into: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !["target", "corpus", "artifacts"].contains(&name) {
                files(&path, keep, into);
            }
        } else if keep(&path) {
            into.push(path);
        }
    }
}

/// These tests, which name files that do not exist.
fn is_ours(path: &Path) -> bool {
    path.starts_with(root().join("verify/tests/docs"))
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// Every page for readers.
fn pages() -> Vec<PathBuf> {
    let mut pages = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|name| root().join(name)).to_vec();
    files(&root().join("docs"), &is_page, &mut pages);
    assert!(pages.len() > 20, "{pages:?}");
    pages
}

/// The page's lines that are not in a fence.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The targets of links: the text between `](` and `)`.
fn links(text: &str) -> Vec<&str> {
    prose(text)
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link)
        .collect()
}

//! Pages and files that are named by their paths exist.

use super::{files, is_ours, pages, read, root};
use std::fs;

/// The paths below docs/ that a text names: `docs/`, folders, and a file's name.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
    text.match_indices("docs/").filter_map(move |(at, _)| {
        let rest = &text[at..];
        let path = rest.split(|c| !is_part(c)).next().unwrap_or_default().trim_end_matches(['.', '/']);
        // A word of another kind, as in `target/docs/`, or the folder itself.
        let alone = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c))
            || text[..at].ends_with("../");
        (alone && path.contains('.')).then_some(path)
    })
}

#[test]
fn every_page_that_code_names_is_there() {
    let mut sources = vec![root().join("Makefile"), root().join("CONTRIBUTING.md"), root().join("CHANGELOG.md")];
    for folder in [".ci", "kernel", "transports", "hosts", "verify", "fuzz"] {
        files(&root().join(folder), &|_| true, &mut sources);
    }
    let mut found = 0;
    let mut wrong = Vec::new();
    for source in sources.iter().filter(|source| !is_ours(source)) {
        // Files that are not text are passed over.
        let Ok(text) = fs::read_to_string(source) else { continue };
        for path in named(&text) {
            found += 1;
            if !root().join(path).exists() {
                wrong.push(format!("{}: {path}", source.display()));
            }
        }
    }
    assert!(found > 30, "{found} names");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(
        named("see docs/a-b/c.md, or ../docs/d.svg. docs/ x/docs/e.md").collect::<Vec<_>>(),
        ["docs/a-b/c.md", "docs/d.svg"]
    );
}

/// Text between backquotes that looks like a file of the repository.
fn quoted_files(text: &str) -> impl Iterator<Item = &str> {
    let is_path = |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || "/-_.".contains(c));
    let folders = [".ci/", "fuzz/", "hosts/", "kernel/", "transports/", "verify/"];
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.filter(is_path).filter(move |word| folders.iter().any(|folder| word.starts_with(folder)))
}

/// Except in results, which are dated.
#[test]
fn every_file_that_pages_name_is_there() {
    let pages = pages().into_iter().filter(|page| !page.starts_with(root().join("docs/results")));
    let mut found = 0;
    let mut wrong = Vec::new();
    for page in pages {
        for file in quoted_files(&read(&page)) {
            found += 1;
            if !root().join(file).exists() {
                wrong.push(format!("{}: {file}", page.display()));
            }
        }
    }
    assert!(found > 50, "{found} files");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let text = "`kernel/src/none.rs` and `kernel::none`, `hosts/*/src`, or\n`kernel/src` alone";
    assert_eq!(quoted_files(text).collect::<Vec<_>>(), ["kernel/src/none.rs", "kernel/src"]);
}

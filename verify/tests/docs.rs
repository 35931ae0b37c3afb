//! What README.md, CHANGELOG.md, CONTRIBUTING.md and docs/ say of the repository is there: pages, links, files, variables,
//! targets, and the programs that README.md shows.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder of the repository").to_path_buf()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All files below `folder` for which `keep` holds, but what is built or found.
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

/// The anchors of a page's headings, made as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let heads = prose(text).filter(|line| line.starts_with('#'));
    let titles = heads.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    titles
        .map(|title| {
            title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-")
        })
        .collect()
}

/// Without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// What stands between `](` and `)`.
fn links(text: &str) -> Vec<&str> {
    prose(text)
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link)
        .collect()
}

/// What is wrong with `link` on the page at `path`, if anything is.
fn broken(path: &Path, link: &str) -> Option<String> {
    if link.contains("://") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let to = if file.is_empty() { path.to_path_buf() } else { plain(&path.parent()?.join(file)) };
    if !to.exists() {
        return Some(format!("{}: {link}: there is no {}", path.display(), to.display()));
    }
    let wrong = anchor.is_some_and(|anchor| !is_page(&to) || !anchors(&read(&to)).contains(anchor));
    wrong.then(|| format!("{}: {link}: {} has no such heading", path.display(), to.display()))
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut found = 0;
    let mut wrong = Vec::new();
    for page in pages() {
        let text = read(&page);
        for link in links(&text) {
            found += 1;
            wrong.extend(broken(&page, link));
        }
    }
    assert!(found > 50, "{found} links");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let page = root().join("docs/README.md");
    for link in ["none.md", "#none", "explanation/decisions.md#none", "../README.md#none"] {
        assert!(broken(&page, link).is_some(), "{link}");
    }
    let text = "A [b](c.md#d), and [e](f).\n```\n[g](h)\n```\n## On *two*, `three`: four\n";
    assert_eq!(links(text), ["c.md#d", "f"]);
    assert_eq!(anchors(text), ["on-two-three-four".to_owned()].into());
}

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
    let here = Path::new(file!()).file_name();
    let mut found = 0;
    let mut wrong = Vec::new();
    for source in sources.iter().filter(|source| source.file_name() != here) {
        // What is no text names no page.
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

/// What is between backquotes and looks like a file of the repository.
fn quoted_files(text: &str) -> impl Iterator<Item = &str> {
    let is_path = |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || "/-_.".contains(c));
    let folders = [".ci/", "fuzz/", "hosts/", "kernel/", "transports/", "verify/"];
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.filter(is_path).filter(move |word| folders.iter().any(|folder| word.starts_with(folder)))
}

/// But for results, which are of their day.
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

/// The picture has the rows from which it was drawn.
#[test]
fn the_picture_is_of_the_table() {
    let table = read(&root().join("docs/results/bench.md"));
    let picture = read(&root().join("docs/results/ratios.svg"));
    let (_, rest) = picture.split_once("<desc>").expect("a description");
    let (description, _) = rest.split_once("</desc>").expect("its end");
    let mut lines = description.lines().skip(1);
    let machine = lines.next().expect("the machine");
    assert!(table.lines().any(|line| line == machine), "{machine}: run .ci/picture");
    let rows: Vec<_> = lines.collect();
    assert_eq!(rows.len(), 10, "{rows:?}");
    for row in rows {
        let (panel, row) = row.split_once(": ").expect("p, and a row");
        let head = format!("\n## {panel}, window, root fixed");
        let section = table.split(&head).nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a table");
        assert!(section.lines().any(|line| line == row), "{panel}, {row}: run .ci/picture");
    }
    let readme = read(&root().join("README.md"));
    assert!(readme.contains(&format!("Measured {}", &machine[..10])), "README.md has another date than the picture");
}

#[test]
fn the_index_names_every_page() {
    let index = root().join("docs/README.md");
    let text = read(&index);
    let named: BTreeSet<_> = links(&text).into_iter().map(|link| root().join("docs").join(link)).collect();
    let missing: Vec<_> = pages()
        .into_iter()
        .filter(|page| page.starts_with(root().join("docs")) && *page != index && !named.contains(page))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// What the fences of a language hold, in their order.
fn fences<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let open = format!("\n```{language}\n");
    text.split(&open).skip(1).filter_map(|rest| rest.split_once("\n```").map(|(code, _)| code)).collect()
}

#[test]
fn the_programs_of_the_readme_are_those_that_tests_run() {
    let text = read(&root().join("README.md"));
    // The first doctest of `unisono-local`, and what hosts/capi-posix/tests/c.rs compiles.
    let documentation = read(&root().join("transports/local/src/lib.rs"));
    let lines = documentation.lines().map_while(|line| line.strip_prefix("//!"));
    let page: String = lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect();
    let doctest = page.split("```\n").nth(1).expect("a doctest");
    assert_eq!(fences(&text, "rust"), [doctest.trim_end()]);
    let c = read(&root().join("hosts/capi-posix/examples/sum.c"));
    assert_eq!(fences(&text, "c"), [c.trim_end()]);
}

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
        files(&root().join(folder), &|path| !is_page(path) && !path.ends_with("tests/docs.rs"), &mut sources);
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

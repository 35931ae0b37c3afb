//! README.md shows programs that tests run, and a picture of a table.

use super::{read, root};

/// The contents of a language's fences, in their order.
fn fences<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let open = format!("\n```{language}\n");
    text.split(&open).skip(1).filter_map(|rest| rest.split_once("\n```").map(|(code, _)| code)).collect()
}

#[test]
fn the_programs_of_the_readme_are_those_that_tests_run() {
    let text = read(&root().join("README.md"));
    // The first doctest of `unisono`, and what hosts/capi-posix/tests/c.rs compiles.
    let documentation = read(&root().join("hosts/unisono/src/lib.rs"));
    let lines = documentation.lines().map_while(|line| line.strip_prefix("//!"));
    let page: String = lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect();
    let doctest = page.split("```\n").nth(1).expect("a doctest");
    assert_eq!(fences(&text, "rust"), [doctest.trim_end()]);
    let c = read(&root().join("hosts/capi-posix/examples/sum.c"));
    assert_eq!(fences(&text, "c"), [c.trim_end()]);
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

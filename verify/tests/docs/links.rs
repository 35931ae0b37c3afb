//! Links lead to files and headings, and the index to every page.

use super::{is_page, links, pages, prose, read, root};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

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

//! No files of the kernel, or of the command-line program, import each other in a circle: a reader of a file can read
//! all files first on which it depends.
//!
//! Names that a file uses are followed through re-exports to the file that defines them. A file of tests may name
//! anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module, or an item in one: the words of its path after `crate`.
type Words = Vec<String>;

struct Crate {
    /// The text of each file, by its module.
    files: BTreeMap<Words, String>,
    /// The re-exports of a file: the item, and the path from which it comes.
    passed_on: BTreeMap<Words, BTreeMap<String, Words>>,
}

/// Without comments, and without the tests at the end of the file.
fn code(text: &str) -> String {
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn read(directory: &Path, module: &Words, files: &mut BTreeMap<Words, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut inner = module.clone();
        if !["mod", "lib", "main"].contains(&name.as_str()) {
            inner.push(name.clone());
        }
        if path.is_dir() {
            read(&path, &inner, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests" {
            files.insert(inner, code(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The paths of a `use`, with those in braces one by one.
fn expand(before: &str, tree: &str, paths: &mut Vec<String>) {
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        paths.push(format!("{before}{}", path.trim()));
        return;
    };
    let before = format!("{before}{}", tree[..open].trim());
    let inner = &tree[open + 1..tree.rfind('}').unwrap()];
    let (mut depth, mut from) = (0, 0);
    for (at, letter) in inner.char_indices().chain([(inner.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[from..at].trim().is_empty() {
                    expand(&before, &inner[from..at], paths);
                }
                from = at + 1;
            }
            _ => {}
        }
    }
}

/// The paths of all `use` in a text, each with whether it is a re-export.
fn uses(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut passed, mut imported) = (Vec::new(), Vec::new());
    for statement in text.split_inclusive(';').filter_map(|statement| statement.strip_suffix(';')) {
        let line = statement.rsplit("\n\n").next().unwrap_or_default();
        let Some(at) = line.find("use ").filter(|&at| at == 0 || line.as_bytes()[at - 1].is_ascii_whitespace()) else {
            continue;
        };
        let before = line[..at].lines().last().unwrap_or_default();
        expand("", &line[at + 4..], if before.contains("pub") { &mut passed } else { &mut imported });
    }
    (passed, imported)
}

/// The paths in a text that begin with `crate`, `super` or `self`.
fn named(text: &str) -> Vec<String> {
    let starts = ["crate::", "super::", "self::"].into_iter().flat_map(|start| text.match_indices(start));
    let letter = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let whole = starts.filter(|(at, _)| !text[..*at].ends_with(letter));
    whole.map(|(at, _)| text[at..].split(|c| !letter(c)).next().unwrap_or_default().to_owned()).collect()
}

impl Crate {
    fn new(directory: &str) -> Self {
        let mut files = BTreeMap::new();
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(directory), &Vec::new(), &mut files);
        let mut this = Self { files, passed_on: BTreeMap::new() };
        let passed = |(module, text): (&Words, &String)| {
            let paths = uses(text).0.into_iter().filter_map(|path| this.inside(module, &path));
            (module.clone(), paths.filter_map(|path| Some((path.last()?.clone(), path))).collect())
        };
        this.passed_on = this.files.iter().map(passed).collect();
        this
    }

    /// A path, resolved from a module; `None` if it leads to another crate.
    fn inside(&self, module: &Words, path: &str) -> Option<Words> {
        let words: Words = path.split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let ups = words.iter().take_while(|word| *word == "super").count();
        let base = module.get(..module.len().checked_sub(ups)?)?;
        match words.first()?.as_str() {
            "crate" => Some(words[1..].to_vec()),
            "super" => Some([base, &words[ups..]].concat()),
            "self" => Some([base, &words[1..]].concat()),
            first => {
                let child = [base, &[first.to_owned()]].concat();
                self.files.contains_key(&child).then(|| [base, &words[..]].concat())
            }
        }
    }

    /// The module that defines what a path names.
    fn file_of(&self, path: &Words) -> Option<Words> {
        let most = (0..=path.len()).rev().find(|&words| self.files.contains_key(&path[..words]))?;
        let further = path.get(most).and_then(|item| self.passed_on.get(&path[..most])?.get(item));
        match further {
            Some(other) if other != path => self.file_of(&[other, &path[most + 1..]].concat()),
            _ => Some(path[..most].to_vec()),
        }
    }

    /// The files on which each file depends.
    fn imports(&self) -> BTreeMap<Words, BTreeSet<Words>> {
        let of = |(module, text): (&Words, &String)| {
            let (passed, imported) = uses(text);
            // A file does not depend on what it only re-exports.
            let own =
                text.split(';').filter(|statement| !statement.contains("pub use ") && !statement.contains(") use "));
            let paths = imported.into_iter().chain(own.flat_map(named)).filter(|path| !passed.contains(path));
            let files = paths.filter_map(|path| self.file_of(&self.inside(module, &path)?));
            (module.clone(), files.filter(|file| file != module && !file.is_empty()).collect())
        };
        self.files.iter().map(of).collect()
    }

    /// The files of circles, and those that depend on them.
    fn circles(&self) -> Vec<String> {
        let mut left = self.imports();
        while let Some(ground) = left.iter().find(|(_, on)| on.is_empty()).map(|(file, _)| file.clone()) {
            left.remove(&ground);
            left.values_mut().for_each(|on| _ = on.remove(&ground));
        }
        let show = |(file, on): (Words, BTreeSet<Words>)| {
            let on: Vec<_> = on.iter().map(|on| on.join("::")).collect();
            format!("{} rests on {}", file.join("::"), on.join(", "))
        };
        left.into_iter().map(show).collect()
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    for (directory, least) in [("kernel/src", 100), ("hosts/tools/cli/src", 50)] {
        let it = Crate::new(directory);
        assert!(it.files.len() > least, "{directory}: {} files were found", it.files.len());
        assert_eq!(it.circles(), Vec::<String>::new(), "{directory}");
    }
}

#[test]
fn a_circle_is_found_also_through_a_re_export() {
    let files = [
        ("", "mod a;\nmod b;\npub use b::Second;\n"),
        ("a", "//! Uses crate::c.\n\nuse crate::{Second, d::Third};\npub struct First(Second);"),
        ("b", "use super::a::{\n    First,\n};\npub struct Second;"),
        ("c", "pub fn f(_: crate::a::First) {}"),
        ("d", "pub struct Third;\n\n#[cfg(test)]\nmod tests {\n    use crate::c;\n}"),
    ];
    let module = |name: &str| name.split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect::<Words>();
    let files: BTreeMap<_, _> = files.iter().map(|(name, text)| (module(name), code(text))).collect();
    let mut it = Crate { files, passed_on: BTreeMap::new() };
    it.passed_on.insert(Vec::new(), [("Second".to_owned(), module("b::Second"))].into());
    assert_eq!(it.circles(), ["a rests on b", "b rests on a", "c rests on a"]);
}

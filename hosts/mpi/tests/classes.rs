//! Compares every list of errors with the kernel's table: the preload's switch, and the table in
//! docs/reference/errors.md.

use unisono_kernel::class::Class;

fn name(class: Class) -> &'static str {
    class.name().to_str().expect("text")
}

/// The labels of a C switch with the value that each returns; several labels may precede one `return`.
fn cases(c: &str) -> Vec<(&str, &str)> {
    let (mut waiting, mut all) = (Vec::new(), Vec::new());
    for line in c.lines().map(str::trim) {
        if let Some((label, _)) = line.strip_prefix("case ").and_then(|rest| rest.split_once(':')) {
            waiting.push(label);
        }
        if let Some((_, value)) = line.split_once("return ") {
            let value = value.split(';').next().unwrap_or_default();
            all.extend(waiting.drain(..).map(|label| (label, value)));
        }
    }
    all
}

#[test]
fn the_preload_raises_the_class_of_each_number() {
    let mut found = cases(include_str!("../shim/errors.c"));
    let mut expected: Vec<_> = Class::ALL.iter().map(|&class| (name(class), class.mpi())).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn the_documentation_has_a_row_for_each_number() {
    let page = include_str!("../../../docs/reference/errors.md");
    let rows = page.lines().filter(|line| line.starts_with("| `UNISONO_ERR_"));
    let found: Vec<_> = rows.map(|row| row.split(" | ").take(3).collect::<Vec<_>>().join(" | ")).collect();
    let row = |&class: &Class| format!("| `{}` | {} | `{}`", name(class), class.number(), class.mpi());
    assert_eq!(found, Class::ALL.iter().map(row).collect::<Vec<_>>());
}

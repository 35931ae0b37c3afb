//! Prints objects as a tree.

use super::{Kind, Object};
use core::fmt;

pub(super) fn write(f: &mut fmt::Formatter<'_>, objects: &[Object]) -> fmt::Result {
    let mut around: Vec<&Object> = Vec::new();
    let mut newline = "";
    let mut objects = objects.iter().peekable();
    while let Some(object) = objects.next() {
        while around.last().is_some_and(|outer| !object.pus.is_subset(&outer.pus)) {
            around.pop();
        }
        write!(f, "{newline}{:indent$}{}", "", Label(object), indent = 2 * around.len())?;
        newline = "\n";
        if object.kind == Kind::Core
            && let Some(pu) = objects.next_if(|pu| pu.kind == Kind::Pu && pu.pus == object.pus)
        {
            write!(f, ", {}", Label(pu))?;
        }
        if object.kind != Kind::Pu {
            around.push(object);
        }
    }
    Ok(())
}

struct Label<'a>(&'a Object);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Object { kind, os, bytes, pus } = self.0;
        match kind {
            Kind::Machine => return write!(f, "{kind} ({} PUs)", pus.len()),
            Kind::Cache(_) => write!(f, "{kind}"),
            _ => write!(f, "{kind} {os}"),
        }?;
        if *bytes > 0 { write!(f, " ({})", Bytes(*bytes)) } else { Ok(()) }
    }
}

/// A size with the largest unit that leaves it above 1, in at most one decimal.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        let (unit, name) = units.into_iter().find(|(unit, _)| self.0 >= *unit).unwrap_or((1, "B"));
        let tenths = (self.0 as u128 * 10 / unit as u128) as u64;
        match tenths % 10 {
            0 => write!(f, "{} {name}", tenths / 10),
            rest => write!(f, "{}.{rest} {name}", tenths / 10),
        }
    }
}

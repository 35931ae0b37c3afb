//! Reads a synthetic description of a machine, as hwloc has them: `package:2 [numa] core:18 pu:2`.
//!
//! Each level is a type and the number of such objects in each object of the level before; `[numa]` attaches a NUMA
//! node to each object of the level before, or to the machine. Types may be shortened, in small or capital letters.
//! This reads as hwloc 2 does, with these differences: levels without a type are refused. If the last level is not PUs
//! (hwloc refuses that), each of its objects gets a core with one PU, or only a PU if there are cores above. `indexes=`
//! is ignored, so PUs have their logical numbers. NUMA nodes are on one level only.

use super::{CacheLevel, Kind, Object, Topology};
use crate::error::PosixError;

/// The largest number of PUs that a description may have.
const MOST: u32 = 4096;

/// One level of the description.
#[derive(Clone, Copy)]
struct Step {
    /// The kind of its objects; `None` for a die, a group or an instruction cache, which only multiply.
    kind: Option<Kind>,
    /// Objects in each of the level before.
    count: u32,
    /// Bytes of each.
    bytes: u64,
}

/// One part of a description.
struct Item {
    step: Step,
    /// It stands in brackets: attached to the level before, not a level.
    attached: bool,
}

/// Where the NUMA nodes are.
#[derive(Clone, Copy, Default)]
struct Numa {
    /// Index of the level that they are attached to.
    level: usize,
    /// Bytes of each.
    bytes: u64,
}

/// The machine of a description.
pub(super) fn read(description: &str) -> Result<Topology, PosixError> {
    let mut steps = vec![Step { kind: Some(Kind::Machine), count: 1, bytes: 0 }];
    let mut memory: Option<Numa> = None;
    let mut rest = description.trim_start();
    while !rest.is_empty() {
        let here = rest;
        let Item { step, attached } = item(&mut rest).map_err(|bound| refusal(here, bound))?;
        let numa = step.kind == Some(Kind::NumaNode);
        let bound = match step.kind {
            kind if attached && kind != Some(Kind::NumaNode) => Some("[numa]: nothing else can be attached"),
            Some(Kind::NumaNode) if memory.is_some() => Some("the only level of NUMA nodes"),
            Some(kind) if has(&steps, kind) => Some("a type that was not there yet"),
            _ if has(&steps, Kind::Pu) => Some("absent: PUs are the last level"),
            _ => None,
        };
        if let Some(bound) = bound {
            return Err(refusal(here, bound));
        }
        if !attached {
            // As in hwloc, a level of NUMA nodes is a level of groups with one attached to each.
            steps.push(Step { kind: step.kind.filter(|_| !numa), ..step });
        }
        if numa {
            memory = Some(Numa { level: steps.len() - 1, bytes: step.bytes });
        }
        rest = rest.trim_start();
    }
    if steps.len() == 1 {
        return Err(refusal(description, "one level at least, such as core:4"));
    }
    for kind in [Kind::Core, Kind::Pu] {
        if !has(&steps, Kind::Pu) && !has(&steps, kind) {
            steps.push(Step { kind: Some(kind), count: 1, bytes: 0 });
        }
    }
    let pus = steps.iter().try_fold(1u32, |product, step| product.checked_mul(step.count));
    let pus = pus.filter(|pus| (1..=MOST).contains(pus)).ok_or_else(|| refusal(description, "1 to 4096 PUs"))?;
    Ok(Topology::new("synthetic", objects(&steps, memory.unwrap_or_default(), pus)))
}

fn has(steps: &[Step], kind: Kind) -> bool {
    steps.iter().any(|step| step.kind == Some(kind))
}

/// Takes one part off the start of `rest`: a level, `TYPE:NUMBER(ATTRIBUTES)`, or an attached object,
/// `[TYPE(ATTRIBUTES)]`. The error says what the text must be.
fn item(rest: &mut &str) -> Result<Item, &'static str> {
    let attached = rest.strip_prefix('[');
    let name = take(attached.unwrap_or(rest), rest, |c| c.is_ascii_alphanumeric());
    let kind = kind(name).ok_or("a type of hwloc's: numa, package, l3, core, pu …")?;
    let mut step = Step { kind, count: 1, bytes: 0 };
    if attached.is_none() {
        const BOUND: &str = "TYPE:NUMBER or [numa]";
        let after = rest.strip_prefix(':').ok_or(BOUND)?;
        step.count = take(after, rest, |c| c.is_ascii_digit()).parse().map_err(|_| BOUND)?;
    }
    if let Some(after) = rest.strip_prefix('(') {
        let (list, after) = after.split_once(')').ok_or("closed by )")?;
        step.bytes = attributes(list).ok_or("(size=BYTES), (memory=BYTES) or (indexes=LIST); BYTES as 8MB")?;
        *rest = after;
    }
    if attached.is_some() {
        *rest = rest.strip_prefix(']').ok_or("closed by ]")?;
    }
    Ok(Item { step, attached: attached.is_some() })
}

/// All objects of a machine of `pus` PUs.
fn objects(steps: &[Step], memory: Numa, pus: u32) -> Vec<Object> {
    let mut objects = Vec::new();
    let mut width = 1;
    for (index, step) in steps.iter().enumerate() {
        width *= step.count;
        let numa = (index == memory.level).then_some((Kind::NumaNode, memory.bytes));
        for (kind, bytes) in step.kind.map(|kind| (kind, step.bytes)).into_iter().chain(numa) {
            let each = pus / width;
            let object = |os| Object { kind, os, bytes, pus: (os * each..(os + 1) * each).collect() };
            objects.extend((0..width).map(object));
        }
    }
    objects
}

/// The longest start of `text` whose characters pass `such`; `rest` becomes the text after it.
fn take<'t>(text: &'t str, rest: &mut &'t str, such: impl Fn(char) -> bool) -> &'t str {
    let (taken, after) = text.split_at(text.find(|c| !such(c)).unwrap_or(text.len()));
    *rest = after;
    taken
}

/// The kind that a name stands for: `None` if there is no such type, `Some(None)` if its objects are not kept.
fn kind(name: &str) -> Option<Option<Kind>> {
    let name = name.to_ascii_lowercase();
    let short = |full: &str, least: usize| name.len() >= least && full.starts_with(&name);
    if let Some(cache) = name.strip_prefix('l') {
        let level = cache.chars().next()?.to_digit(10).filter(|level| (1..=5).contains(level))?;
        return match cache.get(1..)? {
            "" | "d" | "u" | "cache" | "dcache" | "ucache" => Some(Some(Kind::Cache(CacheLevel::new(level)))),
            "i" | "icache" if level <= 3 => Some(None),
            _ => None,
        };
    }
    Some(match () {
        () if short("package", 2) || short("socket", 2) => Some(Kind::Package),
        () if short("numanode", 2) || short("node", 2) => Some(Kind::NumaNode),
        () if short("core", 2) => Some(Kind::Core),
        () if name == "pu" => Some(Kind::Pu),
        () if short("die", 2) || short("group", 2) => None,
        () => return None,
    })
}

/// The bytes of `size=8MB indexes=…`.
fn attributes(list: &str) -> Option<u64> {
    let mut bytes = 0;
    for attribute in list.split_whitespace() {
        let (name, value) = attribute.split_once('=')?;
        match name {
            "size" | "memory" => {
                let mut unit = "";
                let number: u64 = take(value, &mut unit, |c| c.is_ascii_digit()).parse().ok()?;
                let units =
                    [("", 1), ("kB", 1000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000)];
                let binary = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];
                let factor = units.iter().chain(&binary).find(|(known, _)| known.eq_ignore_ascii_case(unit))?.1;
                bytes = number.checked_mul(factor)?;
            }
            "indexes" => {}
            _ => return None,
        }
    }
    Some(bytes)
}

fn refusal(at: &str, bound: &'static str) -> PosixError {
    PosixError::Setting { name: "this part of the synthetic topology", value: at.to_owned(), bound }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(description: &str) -> Vec<usize> {
        let topology = read(description).unwrap();
        let cache = |level| Kind::Cache(CacheLevel::new(level));
        let kinds = [Kind::Package, Kind::NumaNode, cache(3), cache(2), Kind::Core, Kind::Pu];
        kinds.into_iter().map(|kind| topology.of(kind).count()).collect()
    }

    #[test]
    fn the_papers_node() {
        let topology = read("package:2 [numa] core:18").unwrap();
        assert_eq!(topology.pus().to_string(), "0-35");
        let lists = |kind| topology.of(kind).map(|object| object.pus.to_string()).collect::<Vec<_>>();
        assert_eq!(lists(Kind::Package), ["0-17", "18-35"]);
        assert_eq!(lists(Kind::NumaNode), ["0-17", "18-35"]);
        assert_eq!(topology.cores().len(), 36);
        assert_eq!(topology.source(), "synthetic");
    }

    #[test]
    fn types_are_those_of_hwloc() {
        assert_eq!(counts("package:2 [numa] l2:2 core:2 pu:2"), [2, 2, 0, 4, 8, 16]);
        assert_eq!(counts("pack:2 numa:2 core:2 pu:1"), [2, 4, 0, 0, 8, 8]);
        assert_eq!(counts("[numa(memory=4GB)] SOCKET:2 die:2 L3:1(size=8MiB) l1d:1 l1i:1 co:3"), [2, 1, 4, 0, 12, 12]);
        assert_eq!(counts("no:2 pu:2"), [0, 2, 0, 0, 0, 4]);
        assert_eq!(counts("core:4"), [0, 1, 0, 0, 4, 4]);
        assert_eq!(counts(" L3:2  L2:2 "), [0, 1, 2, 4, 4, 4]);
        // What `lstopo --of synthetic` writes.
        let export = "Package:1 [NUMANode(memory=25276510208)] L3Cache:1(size=33554432) L2Cache:2(size=1048576) \
                      L1dCache:1(size=49152) L1iCache:1(size=32768) Core:1 PU:1(indexes=1,0)";
        assert_eq!(counts(export), [1, 1, 1, 2, 2, 2]);
        let topology = read(export).unwrap();
        assert_eq!(topology.of(Kind::NumaNode).next().map(|node| node.bytes), Some(25_276_510_208));
        assert_eq!(topology.of(Kind::Cache(CacheLevel::new(2))).next().map(|cache| cache.bytes), Some(1 << 20));
    }

    #[test]
    fn bad_descriptions_name_the_place() {
        for (description, at) in [
            ("", ""),
            ("package:2 foo:2", "foo:2"),
            ("2 2", "2 2"),
            ("package:x core:2", "package:x core:2"),
            ("package core:2", "package core:2"),
            ("package:-1", "package:-1"),
            ("package:0 core:2", "package:0 core:2"),
            ("package:2 [numa core:2", "[numa core:2"),
            ("package:2 [core] pu:2", "[core] pu:2"),
            ("package:2 [] pu:2", "[] pu:2"),
            ("package:2 package:2", "package:2"),
            ("package:2 [numa] numa:2", "numa:2"),
            ("pu:2 core:2", "core:2"),
            ("package:2(size=8XB) core:2", "package:2(size=8XB) core:2"),
            ("package:2(size=8 core:2", "package:2(size=8 core:2"),
            ("package:65536 core:65536", "package:65536 core:65536"),
            ("core:4097", "core:4097"),
            ("core:99999999999", "core:99999999999"),
            ("l6:2", "l6:2"),
            ("pacé:2", "pacé:2"),
        ] {
            let error = read(description).unwrap_err();
            assert!(matches!(&error, PosixError::Setting { value, .. } if value == at), "{description}: {error}");
        }
    }

    /// hwloc reads `HWLOC_SYNTHETIC` when it is asked for the machine: this test runs itself with it, once per description.
    #[cfg(feature = "hwloc")]
    #[test]
    fn hwloc_reads_the_same() {
        const HWLOC: &str = "HWLOC_SYNTHETIC";
        let descriptions = [
            "package:2 [numa] core:18 pu:1",
            "pack:2 numa:2 l3:1 l2:2 core:2 pu:2",
            "[numa] SOCKET:2 die:2 L3:1(size=8MB) l1d:1 l1i:1 co:3 pu:1",
            "no:2 l2:3 core:1 pu:2",
            "group:2 package:1 [numa(memory=4GB)]l3:2 core:2 pu:1",
        ];
        let Ok(description) = std::env::var(HWLOC) else {
            let run = |description: &&str| {
                let mut this = std::process::Command::new(std::env::current_exe().unwrap());
                this.args(["--exact", "topology::synthetic::tests::hwloc_reads_the_same"]).env(HWLOC, description);
                let output = String::from_utf8(this.output().unwrap().stdout).unwrap();
                assert!(output.contains("1 passed; 0 failed"), "{description}: {output}");
            };
            return descriptions.iter().for_each(run);
        };
        let (ours, theirs) = (read(&description).unwrap(), Topology::read());
        assert_eq!(theirs.source(), "hwloc");
        let cache = |level| Kind::Cache(CacheLevel::new(level));
        for kind in [Kind::Package, Kind::NumaNode, cache(3), cache(2), cache(1), Kind::Core, Kind::Pu] {
            let lists =
                |topology: &Topology| topology.of(kind).map(|object| object.pus.to_string()).collect::<Vec<_>>();
            assert_eq!(lists(&ours), lists(&theirs), "{kind} of {description}");
        }
    }
}

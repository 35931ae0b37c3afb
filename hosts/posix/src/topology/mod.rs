//! The machine: packages, NUMA nodes, caches, cores and PUs, each with the PUs below it.
//!
//! Three readers make the same list of objects: hwloc (feature `hwloc`); one for the operating system's `/sys`, which
//! needs no C library and is used if hwloc fails; and one for descriptions of other machines.

#[cfg(feature = "hwloc")]
mod hwloc;
mod synthetic;
mod sysfs;
mod tree;

use crate::binding::PuSet;
use crate::error::PosixError;
use core::fmt;

/// Kinds of objects, in hwloc's words, from the outside to the inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Processors that share a coherent memory.
    Machine,
    /// A socket.
    Package,
    /// Memory, and the PUs close to it.
    NumaNode,
    /// A data or unified cache of this level, 1 … 5.
    Cache(CacheLevel),
    /// A core.
    Core,
    /// A processing unit: what a thread is bound to.
    Pu,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Machine => "Machine",
            Self::Package => "Package",
            Self::NumaNode => "NUMANode",
            Self::Cache(level) => return write!(f, "L{}Cache", level.level()),
            Self::Core => "Core",
            Self::Pu => "PU",
        })
    }
}

/// The level of a cache; outer caches order before inner ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CacheLevel(core::cmp::Reverse<u32>);

impl CacheLevel {
    /// Level 1 is the one next to the core.
    pub const fn new(level: u32) -> Self {
        Self(core::cmp::Reverse(level))
    }

    /// The number.
    pub const fn level(self) -> u32 {
        self.0.0
    }
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// What it is.
    pub kind: Kind,
    /// The operating system's number; for a cache hwloc's number, or 0 when read from `/sys`.
    pub os: u32,
    /// Bytes of a cache or of a NUMA node's memory; 0 for other kinds.
    pub bytes: u64,
    /// The PUs in it.
    pub pus: PuSet,
}

/// The machine's objects, outer ones first, neighbours in order of their PUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    source: &'static str,
    objects: Vec<Object>,
}

impl Topology {
    /// Reads this machine's objects.
    pub fn read() -> Self {
        #[cfg(feature = "hwloc")]
        if let Some(objects) = hwloc::objects() {
            return Self::new("hwloc", objects);
        }
        Self::from_sys()
    }

    /// Reads this machine's objects from `/sys`.
    pub fn from_sys() -> Self {
        Self::new("sys", sysfs::objects())
    }

    /// The machine of a synthetic description as hwloc has them, such as `package:2 [numa] core:18`: levels from the
    /// outside to the inside, each a type and the number of such objects in each object of the level before; `[numa]`
    /// attaches a NUMA node to each of them. PUs are numbered in logical order (`indexes=` is ignored). If the last
    /// level is not PUs, each of its objects gets one.
    ///
    /// # Errors
    /// The part of the description from the place on where it is wrong; more than 4096 PUs.
    pub fn synthetic(description: &str) -> Result<Self, PosixError> {
        synthetic::read(description)
    }

    fn new(source: &'static str, mut objects: Vec<Object>) -> Self {
        objects.retain(|object| !object.pus.is_empty());
        let pus: PuSet = objects.iter().flat_map(|object| object.pus.iter()).collect();
        if !objects.iter().any(|object| object.kind == Kind::Machine) {
            objects.push(Object { kind: Kind::Machine, os: 0, bytes: 0, pus });
        }
        objects
            .sort_by_cached_key(|object| (object.pus.iter().next(), core::cmp::Reverse(object.pus.len()), object.kind));
        Self { source, objects }
    }

    /// Which reader made the list: `hwloc`, `sys`, or `synthetic`.
    pub const fn source(&self) -> &'static str {
        self.source
    }

    /// All objects; an object follows those that contain it.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// The objects of one kind, in order of their PUs.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.objects.iter().filter(move |object| object.kind == kind)
    }

    /// The PUs of each core.
    pub fn cores(&self) -> Vec<PuSet> {
        self.of(Kind::Core).map(|core| core.pus.clone()).collect()
    }

    /// The machine's PUs.
    pub fn pus(&self) -> PuSet {
        self.of(Kind::Pu).flat_map(|pu| pu.pus.iter()).collect()
    }

    /// The innermost object of `kind` that holds a PU.
    pub fn around(&self, kind: Kind, pu: u32) -> Option<&Object> {
        self.of(kind).find(|object| object.pus.contains(pu))
    }
}

/// A tree: one object per line, two blanks per level; cores with one PU share its line.
impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tree::write(f, &self.objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_its_parts_from_every_source() {
        let sys = Topology::from_sys();
        let here = Topology::read();
        for topology in [&sys, &here] {
            let pus = topology.pus();
            assert!(!pus.is_empty(), "{topology}");
            for kind in [Kind::Machine, Kind::NumaNode, Kind::Package, Kind::Core] {
                let covered: PuSet = topology.of(kind).flat_map(|object| object.pus.iter()).collect();
                assert_eq!(covered, pus, "{kind:?}\n{topology}");
            }
        }
        #[cfg(feature = "hwloc")]
        assert_eq!(here.source(), "hwloc");
        assert_eq!(sys.pus(), here.pus());
        assert_eq!(sys.cores(), here.cores());
    }

    #[test]
    fn two_nodes_nest_and_print() {
        fn object(kind: Kind, os: u32, list: &str, bytes: u64) -> Object {
            Object { kind, os, bytes, pus: PuSet::from_list(list).unwrap() }
        }
        let cache = |level| Kind::Cache(CacheLevel::new(level));
        let mut objects = vec![object(cache(2), 0, "0-1", 2 << 20), object(cache(1), 0, "0-1", 48 << 10)];
        for node in 0..2 {
            let list = format!("{}-{}", 2 * node, 2 * node + 1);
            objects.push(object(Kind::NumaNode, node, &list, 1 << 30));
            objects.push(object(Kind::Package, node, &list, 0));
        }
        objects.push(object(Kind::Core, 0, "0-1", 0));
        objects.extend((0..4).map(|pu| object(Kind::Pu, pu, &pu.to_string(), 0)));
        objects.extend([object(Kind::Core, 1, "2", 0), object(Kind::Core, 2, "3", 0)]);
        let topology = Topology::new("test", objects);
        let expected = "\
Machine (4 PUs)
  Package 0
    NUMANode 0 (1 GiB)
      L2Cache (2 MiB)
        L1Cache (48 KiB)
          Core 0
            PU 0
            PU 1
  Package 1
    NUMANode 1 (1 GiB)
      Core 1, PU 2
      Core 2, PU 3";
        assert_eq!(topology.to_string(), expected);
        assert_eq!(topology.around(Kind::NumaNode, 3).map(|node| node.os), Some(1));
    }
}

//! Reads the machine through hwloc.
//!
//! Only calls of the `hwloc2` crate that can't panic with hwloc 2.0 … 2.12: the tree is walked
//! from its root (listing NUMA nodes panics: their depth is a negative number that the crate takes
//! for an unsigned one), and NUMA nodes are gathered from the PUs' node sets. Sets are read bit by
//! bit up to their last one: the crate's iterator does not end on an infinite set.

use super::{CacheLevel, Kind, Object, sysfs};
use crate::binding::PuSet;
use hwloc2::{CpuSet, ObjectType, TopologyObject};
use std::collections::BTreeMap;

/// All objects; `None` if hwloc fails.
pub(super) fn objects() -> Option<Vec<Object>> {
    let topology = hwloc2::Topology::new()?;
    if topology.depth() == 0 || topology.size_at_depth(0) == 0 {
        return None;
    }
    let mut objects = Vec::new();
    let mut nodes = BTreeMap::<u32, PuSet>::new();
    let mut rest = vec![topology.object_at_root()];
    while let Some(object) = rest.pop() {
        rest.extend(object.children());
        let pus = object.cpuset().map(|set| bits(&set)).unwrap_or_default();
        let Some(kind) = kind(object) else { continue };
        if kind == Kind::Pu {
            for node in object.nodeset().map(|set| bits(&set)).unwrap_or_default().iter() {
                nodes.entry(node).or_default().extend(pus.iter());
            }
        }
        // The attributes of a cache start with its size.
        let bytes = match kind {
            Kind::Cache(_) => object.cache_attributes().map_or(0, |cache| cache.size()),
            _ => 0,
        };
        objects.push(Object { kind, os: object.os_index(), bytes, pus });
    }
    let node = |(os, pus)| Object { kind: Kind::NumaNode, os, bytes: sysfs::node_bytes(os), pus };
    objects.extend(nodes.into_iter().map(node));
    Some(objects)
}

fn kind(object: &TopologyObject) -> Option<Kind> {
    Some(match object.object_type() {
        ObjectType::Machine => Kind::Machine,
        ObjectType::Package => Kind::Package,
        ObjectType::Core => Kind::Core,
        ObjectType::PU => Kind::Pu,
        ObjectType::L1Cache => Kind::Cache(CacheLevel::new(1)),
        ObjectType::L2Cache => Kind::Cache(CacheLevel::new(2)),
        ObjectType::L3Cache => Kind::Cache(CacheLevel::new(3)),
        ObjectType::L4Cache => Kind::Cache(CacheLevel::new(4)),
        ObjectType::L5Cache => Kind::Cache(CacheLevel::new(5)),
        _ => return None,
    })
}

fn bits(set: &CpuSet) -> PuSet {
    // An infinite set has no last bit, and is taken for empty but for bit 0.
    let last = u32::try_from(set.last()).unwrap_or(0);
    (0..=last).filter(|&bit| set.is_set(bit)).collect()
}

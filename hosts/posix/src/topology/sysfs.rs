//! Reads the machine from `/sys/devices/system`.

use super::{CacheLevel, Kind, Object};
use crate::binding::{self, PuSet};
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

const CPU: &str = "/sys/devices/system/cpu";

fn list(path: &Path) -> Option<PuSet> {
    PuSet::from_list(&read_to_string(path).ok()?)
}

fn number(path: &Path) -> Option<u32> {
    read_to_string(path).ok()?.trim().parse().ok()
}

/// All objects. Where `/sys` does not say, the simplest machine is assumed: one package, one NUMA node, a core per PU.
pub(super) fn objects() -> Vec<Object> {
    let online = list(&Path::new(CPU).join("online")).or_else(|| binding::affinity().ok()).unwrap_or_default();
    let mut objects: Vec<Object> = Vec::new();
    for pu in online.iter() {
        let one: PuSet = core::iter::once(pu).collect();
        let at = PathBuf::from(format!("{CPU}/cpu{pu}"));
        let topology = at.join("topology");
        let within = |name: &str| list(&topology.join(name)).map(|pus| pus.intersection(&online));
        let core = within("core_cpus_list").or_else(|| within("thread_siblings_list"));
        let package = within("package_cpus_list").or_else(|| within("core_siblings_list"));
        let id = |name: &str| number(&topology.join(name));
        let core = Object {
            kind: Kind::Core,
            os: id("core_id").unwrap_or(pu),
            bytes: 0,
            pus: core.unwrap_or_else(|| one.clone()),
        };
        let package = Object {
            kind: Kind::Package,
            os: id("physical_package_id").unwrap_or(0),
            bytes: 0,
            pus: package.unwrap_or_else(|| online.clone()),
        };
        let found = [Object { kind: Kind::Pu, os: pu, bytes: 0, pus: one }, core, package];
        for object in found.into_iter().chain(caches(&at.join("cache"), &online)) {
            add(&mut objects, object);
        }
    }
    let mut nodes = binding::nodes();
    if nodes.is_empty() {
        nodes.push((0, online));
    }
    let node = |(os, pus)| Object { kind: Kind::NumaNode, os, bytes: node_bytes(os), pus };
    objects.extend(nodes.into_iter().map(node));
    objects
}

/// Adds an object, unless it is there: each PU that shares it reports it.
fn add(objects: &mut Vec<Object>, object: Object) {
    if !objects.iter().any(|known| known.kind == object.kind && known.pus == object.pus) {
        objects.push(object);
    }
}

fn caches(directory: &Path, online: &PuSet) -> Vec<Object> {
    let cache = |at: &Path| {
        if read_to_string(at.join("type")).ok()?.trim() == "Instruction" {
            return None;
        }
        let kind = Kind::Cache(CacheLevel::new(number(&at.join("level"))?));
        let size = read_to_string(at.join("size")).ok()?;
        let bytes = size.trim().strip_suffix('K')?.parse::<u64>().ok()? << 10;
        let pus = list(&at.join("shared_cpu_list"))?.intersection(online);
        Some(Object { kind, os: 0, bytes, pus })
    };
    let entries = read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| cache(&entry.path())).collect()
}

/// Memory of a NUMA node; 0 if unknown.
pub(super) fn node_bytes(node: u32) -> u64 {
    let text = read_to_string(format!("/sys/devices/system/node/node{node}/meminfo")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.split_once("MemTotal:"));
    let kib = line.and_then(|(_, rest)| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

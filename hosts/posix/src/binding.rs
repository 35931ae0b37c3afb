//! Sets of PUs, and confining this process to one.

use crate::error::PosixError;
use crate::sys;
use core::fmt;
use std::fs::read_to_string;

/// A set of PUs, by the operating system's numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PuSet(Vec<u64>);

/// Higher numbers than this are ignored or refused.
const MOST: u32 = 1 << 18;

impl PuSet {
    /// From words of bits, the lowest PU first.
    pub fn from_words(mut words: Vec<u64>) -> Self {
        words.truncate((MOST / 64) as usize);
        while words.last() == Some(&0) {
            words.pop();
        }
        Self(words)
    }

    /// Parses a list such as `0-3,8`; `None` if the text is not such a list.
    pub fn from_list(list: &str) -> Option<Self> {
        let mut set = Self::default();
        for part in list.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            if last >= MOST {
                return None;
            }
            set.extend(first..=last);
        }
        Some(set)
    }

    /// The words of bits.
    pub fn words(&self) -> &[u64] {
        &self.0
    }

    /// Adds a PU.
    pub fn insert(&mut self, pu: u32) {
        let word = (pu / 64) as usize;
        if pu < MOST {
            self.0.resize(self.0.len().max(word + 1), 0);
            self.0[word] |= 1 << (pu % 64);
        }
    }

    /// Is the PU in it?
    pub fn contains(&self, pu: u32) -> bool {
        self.0.get((pu / 64) as usize).is_some_and(|word| word >> (pu % 64) & 1 == 1)
    }

    /// Number of PUs.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// No PU?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The PUs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        (0..self.0.len() as u32 * 64).filter(|&pu| self.contains(pu))
    }

    /// Are all of these PUs in `other`?
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().enumerate().all(|(i, word)| word & !other.0.get(i).copied().unwrap_or(0) == 0)
    }

    /// The PUs in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self::from_words(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }
}

impl Extend<u32> for PuSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, pus: I) {
        pus.into_iter().for_each(|pu| self.insert(pu));
    }
}

impl FromIterator<u32> for PuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(pus: I) -> Self {
        let mut set = Self::default();
        set.extend(pus);
        set
    }
}

impl fmt::Display for PuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        let mut next = 0;
        while let Some(first) = self.iter().find(|&pu| pu >= next) {
            let last = (first..).take_while(|&pu| self.contains(pu)).last().unwrap_or(first);
            write!(f, "{comma}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            (comma, next) = (",", last + 1);
        }
        Ok(())
    }
}

/// The PUs on which the calling thread may run.
///
/// # Errors
/// The system call's.
pub fn affinity() -> Result<PuSet, PosixError> {
    affinity_of(0)
}

/// The PUs on which the first thread of a process may run; 0: the calling thread.
///
/// # Errors
/// The system call's.
pub fn affinity_of(pid: u32) -> Result<PuSet, PosixError> {
    let words = sys::affinity(pid).map_err(|e| PosixError::io("sched_getaffinity", &e, "read the binding"))?;
    Ok(PuSet::from_words(words))
}

/// Confines the calling thread, and threads that it starts, to these PUs.
///
/// # Errors
/// No PU of the set exists and is allowed.
pub fn bind(pus: &PuSet) -> Result<(), PosixError> {
    let done = sys::set_affinity(pus.words());
    done.map_err(|e| PosixError::io("sched_setaffinity", &e, format!("bind to PUs {pus}")))
}

/// The NUMA node of the calling thread: that of all PUs on which it may run, else of the one on
/// which it runs now.
///
/// # Errors
/// The system call's.
pub fn numa_node() -> Result<u32, PosixError> {
    let (_, now) = sys::here().map_err(|e| PosixError::io("getcpu", &e, "learn the NUMA node"))?;
    let allowed = affinity()?;
    let around = nodes().into_iter().find(|(_, pus)| !allowed.is_empty() && allowed.is_subset(pus));
    Ok(around.map_or(now, |(node, _)| node))
}

/// Runs `work` with the calling thread confined to a NUMA node, if it may run there; afterwards the thread may run
/// where it could before. Without this a rank that is not bound would place its pages wherever the scheduler moves it.
pub(crate) fn on_node<A>(node: u32, work: impl FnOnce() -> A) -> A {
    let before = affinity().unwrap_or_default();
    let near = nodes().into_iter().find(|(other, _)| *other == node).map(|(_, pus)| pus.intersection(&before));
    let confined = near.is_some_and(|pus| !pus.is_empty() && pus != before && bind(&pus).is_ok());
    let result = work();
    if confined {
        // Allowed before, so allowed now, unless an administrator has changed that: then the kernel's choice stays.
        let _ = bind(&before);
    }
    result
}

/// The machine's NUMA nodes that have PUs, as the kernel lists them.
pub fn nodes() -> Vec<(u32, PuSet)> {
    let online = read_to_string("/sys/devices/system/node/online").ok().and_then(|list| PuSet::from_list(&list));
    let pus = |node: u32| {
        let list = read_to_string(format!("/sys/devices/system/node/node{node}/cpulist")).ok()?;
        PuSet::from_list(&list).filter(|pus| !pus.is_empty()).map(|pus| (node, pus))
    };
    online.unwrap_or_default().iter().filter_map(pus).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        for list in ["", "0", "0-3", "0-3,8", "1,63-65,200"] {
            assert_eq!(PuSet::from_list(list).unwrap().to_string(), list);
        }
        assert_eq!(PuSet::from_list("0-3,8\n").unwrap().len(), 5);
        assert_eq!(PuSet::from_list("x"), None);
        assert_eq!(PuSet::from_list("0-4000000000"), None);
    }

    #[test]
    fn sets_compare() {
        let set = |list| PuSet::from_list(list).unwrap();
        assert!(set("1,65").is_subset(&set("0-70")));
        assert!(!set("1,65").is_subset(&set("0-3")));
        assert_eq!(set("0-3,64").intersection(&set("2-9")), set("2-3"));
    }

    #[test]
    fn this_thread_binds_to_one_pu_and_has_a_node() {
        let before = affinity().unwrap();
        let first: PuSet = before.iter().take(1).collect();
        std::thread::spawn(move || {
            bind(&first).unwrap();
            assert_eq!(affinity().unwrap(), first);
            let node = numa_node().unwrap();
            assert_eq!(on_node(node, || numa_node().unwrap()), node);
            assert_eq!(affinity().unwrap(), first);
        })
        .join()
        .unwrap();
        assert_eq!(affinity().unwrap(), before);
        assert!(bind(&PuSet::default()).is_err());
    }
}

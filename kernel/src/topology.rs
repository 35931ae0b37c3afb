//! Levels of machines and their network, and which unit of each level a process runs on (paper P3, section 2.1).
//!
//! A level is a kind of unit that processes share: a cache, a memory, a node, a switch. A process has, per level, the
//! number of the unit that it runs on, if it is a single one: a process that is bound to a package does not run on a
//! single L2 cache, and one that is not bound has units on the levels of nodes and switches only.

pub mod group;

use core::fmt;
use core::str::FromStr;

/// A kind of unit that processes share. The order, from the inside to the outside, is that in which groups are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// An L2 cache.
    L2,
    /// An L3 cache.
    L3,
    /// A NUMA node.
    Numa,
    /// A package (P3: processor, socket).
    Package,
    /// A compute node.
    Node,
    /// A switch of level 1 (leaf).
    Switch1,
    /// A group of switches of level 2 (spine).
    Switch2,
    /// The communicator. P3 does not have this level: it joins the groups that the levels in use leave separate, and
    /// can't be switched off.
    All,
}

impl Level {
    /// All of them, in order.
    pub const EVERY: [Self; 8] =
        [Self::L2, Self::L3, Self::Numa, Self::Package, Self::Node, Self::Switch1, Self::Switch2, Self::All];

    /// Names: first the one that is printed (P3's, section 6, if it has one), then hwloc's and others that are
    /// understood.
    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::L2 => &["L2", "L2Cache"],
            Self::L3 => &["L3", "L3Cache"],
            Self::Numa => &["NM", "NUMANode", "NUMA"],
            Self::Package => &["SK", "Package", "Socket"],
            Self::Node => &["ND", "Machine", "Node"],
            Self::Switch1 => &["SW", "SW1"],
            Self::Switch2 => &["SW2"],
            Self::All => &["ALL"],
        }
    }

    /// The name, as P3 writes it.
    pub const fn name(self) -> &'static str {
        match self.names() {
            [name, ..] => name,
            [] => "",
        }
    }

    /// The level of a name in P3's or hwloc's words, in upper or lower case. [`Self::All`] can't be named.
    pub fn from_name(name: &str) -> Option<Self> {
        let known = |level: &Self| level.names().iter().any(|known| known.eq_ignore_ascii_case(name));
        Self::EVERY.into_iter().find(known).filter(|&level| level != Self::All)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of levels; [`Level::All`] is always in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Levels(u8);

impl Levels {
    /// [`Level::All`] alone: no hierarchy.
    pub const NONE: Self = Self(Level::All.bit());
    /// Every level.
    pub const EVERY: Self = Self(u8::MAX);

    /// Is it in the set?
    pub const fn contains(self, level: Level) -> bool {
        self.0 & level.bit() != 0
    }

    /// The set with `level`.
    #[must_use]
    pub const fn with(self, level: Level) -> Self {
        Self(self.0 | level.bit())
    }

    /// The set without `level`.
    #[must_use]
    pub const fn without(self, level: Level) -> Self {
        Self(self.0 & !level.bit() | Self::NONE.0)
    }

    /// The levels in both.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The levels in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Its levels, from the inside to the outside.
    pub fn iter(self) -> impl Iterator<Item = Level> {
        Level::EVERY.into_iter().filter(move |&level| self.contains(level))
    }
}

impl FromIterator<Level> for Levels {
    fn from_iter<I: IntoIterator<Item = Level>>(levels: I) -> Self {
        levels.into_iter().fold(Self::NONE, Self::with)
    }
}

/// The levels that stay switched on: names between `-` or `:`, as P3 writes them (`NM-SK-ND-SW`, `NM:ND:SW`), in any order.
impl FromStr for Levels {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let mut levels = Self::NONE;
        for (at, name) in parts(text, &['-', ':']) {
            let level = Level::from_name(name).ok_or(Malformed { at, fault: Fault::Unknown })?;
            if levels.contains(level) {
                return Err(Malformed { at, fault: Fault::Repeated });
            }
            levels = levels.with(level);
        }
        Ok(levels)
    }
}

/// P3's notation, `NM-ND-SW`, without [`Level::All`].
impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut dash = "";
        for level in self.iter().filter(|&level| level != Level::All) {
            write!(f, "{dash}{level}")?;
            dash = "-";
        }
        Ok(())
    }
}

/// A process's locality: the number of the unit that it runs on, per level.
///
/// Units inside a node are numbered per node. Its text is P3's locality string, which is PMIx's
/// (`SK1:L31:L218:L118:CR18:NM1`). The text has only the units inside the node, and of those only the known ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Locality([u32; 9]);

/// The process does not run on a single unit.
const NOWHERE: u32 = u32::MAX;
/// Places in a [`Locality`] after those of the levels.
const L1: usize = Level::All as usize;
const CORE: usize = L1 + 1;

/// The fields of a locality string, in P3's order.
const FIELDS: [(&str, usize); 6] = [
    ("SK", Level::Package as usize),
    ("L3", Level::L3 as usize),
    ("L2", Level::L2 as usize),
    ("L1", L1),
    ("CR", CORE),
    ("NM", Level::Numa as usize),
];
/// PMIx's field for the PUs of a core: read and ignored.
const THREADS: &str = "HT";

impl Default for Locality {
    fn default() -> Self {
        Self::NOWHERE
    }
}

impl Locality {
    /// Without any unit: nothing is known.
    pub const NOWHERE: Self = Self([NOWHERE; 9]);

    /// The unit on a level, if there is a single one.
    pub const fn unit(&self, level: Level) -> Option<u32> {
        match level {
            Level::All => Some(0),
            level => self.get(level as usize),
        }
    }

    /// The core, if there is a single one.
    pub const fn core(&self) -> Option<u32> {
        self.get(CORE)
    }

    /// The L1 cache, if there is a single one.
    pub const fn l1(&self) -> Option<u32> {
        self.get(L1)
    }

    /// The same with this unit on a level; `u32::MAX`: without a unit. [`Level::All`] has one unit, which can't be set.
    #[must_use]
    pub const fn with(self, level: Level, unit: u32) -> Self {
        if matches!(level, Level::All) { self } else { self.set(level as usize, unit) }
    }

    /// The same with this core.
    #[must_use]
    pub const fn with_core(self, core: u32) -> Self {
        self.set(CORE, core)
    }

    /// The same with this L1 cache.
    #[must_use]
    pub const fn with_l1(self, l1: u32) -> Self {
        self.set(L1, l1)
    }

    /// A number that is equal for processes on the same unit of a level, and differs for others; `None`: the process
    /// does not run on a single unit.
    pub(crate) fn key(&self, level: Level) -> Option<u64> {
        let unit = self.unit(level)?.into();
        if level >= Level::Node {
            return Some(unit);
        }
        Some(u64::from(self.unit(Level::Node)?) << 32 | unit)
    }

    const fn get(&self, place: usize) -> Option<u32> {
        match self.0[place] {
            NOWHERE => None,
            unit => Some(unit),
        }
    }

    const fn set(mut self, place: usize, unit: u32) -> Self {
        self.0[place] = unit;
        self
    }
}

impl fmt::Display for Locality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut colon = "";
        for (name, place) in FIELDS {
            if let Some(unit) = self.get(place) {
                write!(f, "{colon}{name}{unit}")?;
                colon = ":";
            }
        }
        Ok(())
    }
}

/// Reads P3's and PMIx's locality strings: fields in any order, each once. A field may list several units (`L20-3`, `CR0,4`):
/// then the process does not run on a single one. An empty string is that of a process that is not bound.
impl FromStr for Locality {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let mut locality = Self::NOWHERE;
        let mut seen = 0u8;
        for (at, field) in parts(text, &[':']).filter(|_| !text.is_empty()) {
            let wrong = |fault| Malformed { at, fault };
            let (name, list) = field.split_at_checked(2).ok_or(wrong(Fault::Unknown))?;
            let known = FIELDS.iter().position(|(known, _)| *known == name);
            let bit = match known {
                Some(place) => 1 << place,
                None if name == THREADS => 1 << FIELDS.len(),
                None => return Err(wrong(Fault::Unknown)),
            };
            if seen & bit != 0 {
                return Err(wrong(Fault::Repeated));
            }
            seen |= bit;
            let unit = single(list).map_err(wrong)?;
            if let (Some((_, place)), Some(unit)) = (known.and_then(|known| FIELDS.get(known)), unit) {
                locality = locality.set(*place, unit);
            }
        }
        Ok(locality)
    }
}

/// The only number of a list such as `3`; `None` for a list of several, such as `0-3,8`.
fn single(list: &str) -> Result<Option<u32>, Fault> {
    let number = |digits: &str| match digits.parse() {
        _ if !digits.bytes().all(|byte| byte.is_ascii_digit()) || digits.is_empty() => Err(Fault::Number),
        Err(_) | Ok(NOWHERE) => Err(Fault::Large),
        Ok(number) => Ok(number),
    };
    let mut only = None;
    let mut runs = 0;
    for run in list.split(',') {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(Fault::Backwards);
        }
        only = (first == last).then_some(first);
        runs += 1;
    }
    Ok(only.filter(|_| runs == 1))
}

/// The parts of a text between separators, each with the byte at which it starts.
fn parts<'t>(text: &'t str, separators: &'static [char]) -> impl Iterator<Item = (usize, &'t str)> {
    let mut at = 0;
    text.split(separators).map(move |part| {
        let begin = at;
        at += part.len() + 1;
        (begin, part)
    })
}

/// Why a list of levels or a locality string is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Malformed {
    /// The byte of the text at which the wrong part starts.
    pub at: usize,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// An unknown name.
    Unknown,
    /// A repeated name.
    Repeated,
    /// A number is missing.
    Number,
    /// A number of 2³² − 1 or more.
    Large,
    /// A range whose end is below its start.
    Backwards,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.fault {
            Fault::Unknown => "an unknown name",
            Fault::Repeated => "a repeated name",
            Fault::Number => "a missing number",
            Fault::Large => "a number above 4294967294",
            Fault::Backwards => "a range whose end is below its start",
        };
        write!(f, "{what} at byte {}", self.at)
    }
}

impl core::error::Error for Malformed {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_papers_lists_of_levels_are_read_and_written() {
        for text in ["NM-SK-ND-SW", "NM-ND-SW", "L2-L3-NM-SK-ND-SW-SW2", "L3"] {
            assert_eq!(text.parse::<Levels>().map(|levels| levels.to_string()).as_deref(), Ok(text));
        }
        let hwloc = "numanode:package:MACHINE:sw1:sw2".parse::<Levels>();
        assert_eq!(hwloc, "SW2-SW-ND-SK-NM".parse());
        assert!(hwloc.is_ok_and(|levels| levels.contains(Level::All) && !levels.contains(Level::L3)));
        for (text, at, fault) in [
            ("", 0, Fault::Unknown),
            ("NM-XX", 3, Fault::Unknown),
            ("NM-", 3, Fault::Unknown),
            ("NM-ND-numa", 6, Fault::Repeated),
            ("L4", 0, Fault::Unknown),
            ("NM-ALL", 3, Fault::Unknown),
        ] {
            assert_eq!(text.parse::<Levels>(), Err(Malformed { at, fault }), "{text}");
        }
    }

    #[test]
    fn sets_of_levels() {
        let some: Levels = [Level::Numa, Level::Node].into_iter().collect();
        assert!(some.iter().eq([Level::Numa, Level::Node, Level::All]));
        assert_eq!(some.without(Level::Numa).without(Level::Node).without(Level::All), Levels::NONE);
        assert_eq!(Levels::EVERY.intersection(some).union(Levels::NONE.with(Level::L2)), some.with(Level::L2));
    }

    #[test]
    fn the_papers_locality_string() {
        let text = "SK1:L31:L218:L118:CR18:NM1";
        let of_18: Locality = text.parse().unwrap();
        let units = [Level::Package, Level::L3, Level::L2, Level::Numa].map(|level| of_18.unit(level));
        assert_eq!(units, [Some(1), Some(1), Some(18), Some(1)]);
        assert_eq!((of_18.l1(), of_18.core(), of_18.unit(Level::Node)), (Some(18), Some(18), None));
        assert_eq!(of_18.to_string(), text);
        assert_eq!("".parse(), Ok(Locality::NOWHERE));
        assert_eq!(Locality::NOWHERE.to_string(), "");
    }

    #[test]
    fn locality_strings_of_pmix() {
        let of = |text: &str| text.parse::<Locality>().unwrap();
        let core = of("NM0:SK0:L30:L22:L12:CR2:HT4-5");
        assert_eq!(core, of("SK0:L30:L22:L12:CR2:NM0"));
        let bound_to_numa = of("NM1:SK0:L30:L24-7:L14-7:CR4,6-7:HT8-15");
        assert_eq!(bound_to_numa.to_string(), "SK0:L30:NM1");
        assert_eq!(bound_to_numa.core(), None);
    }

    #[test]
    fn bad_locality_strings() {
        for (text, at, fault) in [
            ("SK1:", 4, Fault::Unknown),
            ("SK1:X", 4, Fault::Unknown),
            ("SK1:QQ2", 4, Fault::Unknown),
            ("é€", 0, Fault::Unknown),
            ("SK1:SK1", 4, Fault::Repeated),
            ("HT1:HT2", 4, Fault::Repeated),
            ("SK", 0, Fault::Number),
            ("NM1:SK+1", 4, Fault::Number),
            ("SK1-", 0, Fault::Number),
            ("SK1,,2", 0, Fault::Number),
            ("SK4294967295", 0, Fault::Large),
            ("SK99999999999", 0, Fault::Large),
            ("SK3-1", 0, Fault::Backwards),
        ] {
            assert_eq!(text.parse::<Locality>(), Err(Malformed { at, fault }), "{text}");
        }
    }

    #[test]
    fn units_inside_a_node_are_the_nodes() {
        let on = |node| Locality::NOWHERE.with(Level::L3, 5).with(Level::Node, node).with(Level::Switch1, 7);
        assert_ne!(on(0).key(Level::L3), on(1).key(Level::L3));
        assert_eq!(on(0).key(Level::Switch1), on(1).key(Level::Switch1));
        assert_eq!(on(0).key(Level::All), Locality::NOWHERE.key(Level::All));
        assert_eq!(Locality::NOWHERE.with(Level::L3, 5).key(Level::L3), None);
        assert_eq!(on(0).with(Level::All, 9), on(0));
    }
}

//! Where the lines of the segment are, and what an access of one costs.
//!
//! A line is in memory, or changed in one core's cache, or unchanged in those of several. A core that has it reads it at once; another
//! one waits until the line has served those that asked before, and for the transfer from the nearest core that has it. A core
//! that writes goes on at once, since its store waits in a buffer, but the line can't be read before all other copies are given
//! up, nor before what the core stored earlier. A core [keeps](Kept) what its caches have room for; the rest goes to memory.
//!
//! Memory that a rank lends has lines, too, behind those of the segment. They are counted from its first byte, so that a run does
//! not depend on addresses. Other private memory is kept by pages, and comes from memory when it is not kept.

use super::kept::{Item, Kept, PAGE};
use super::machine::{Distance, MOST, Machine};
use super::way::Way;
use crate::Time;

/// Bytes of a line.
pub(super) const LINE: u64 = 64;

/// Bytes that a core's buffer of stores takes at once: those of two lines. A longer copy waits for its lines.
pub(super) const BUFFERED: u64 = 2 * LINE;

const NOBODY: u16 = u16::MAX;

/// A bit for each core.
type Cores = [u64; MOST as usize / 64];

/// The cores from `first` on.
fn cores(first: usize, count: usize) -> Cores {
    std::array::from_fn(|word| {
        (0..64).filter(|bit| (first..first + count).contains(&(word * 64 + bit))).fold(0, |bits, bit| bits | 1 << bit)
    })
}

/// The first core of `bits`, or the last one.
fn one_of(bits: Cores, last: bool) -> Option<usize> {
    let in_word = |at: usize| match bits[at] {
        0 => None,
        word if last => Some(at * 64 + 63 - word.leading_zeros() as usize),
        word => Some(at * 64 + word.trailing_zeros() as usize),
    };
    if last { (0..bits.len()).rev().find_map(in_word) } else { (0..bits.len()).find_map(in_word) }
}

#[derive(Clone, Copy, Debug)]
struct Line {
    /// The core that has changed it; or nobody.
    owner: u16,
    /// How many lines that core had written then.
    age: u32,
    /// When another core gets it from the owner, which can change it until then.
    shared: Time,
    /// A bit for each core that has it.
    holders: Cores,
    /// When it can serve the next request.
    free: Time,
    /// When its owner has it.
    here: Time,
}

const UNUSED: Line = Line {
    owner: NOBODY,
    age: 0,
    shared: Time::NEVER,
    holders: [0; MOST as usize / 64],
    free: Time::ZERO,
    here: Time::ZERO,
};

impl Line {
    const fn holds(&self, core: usize) -> bool {
        self.holders[core / 64] >> (core % 64) & 1 == 1
    }

    /// Can this core change it at `now`?
    fn owned(&self, core: usize, now: Time) -> bool {
        self.owner == core as u16 && now < self.shared
    }

    const fn add(&mut self, core: usize) {
        self.holders[core / 64] |= 1 << (core % 64);
    }

    const fn remove(&mut self, core: usize) {
        self.holders[core / 64] &= !(1 << (core % 64));
    }

    /// All cores that have it, but for this one.
    fn others(&self, core: usize) -> impl Iterator<Item = usize> {
        let words = self.holders.into_iter().enumerate();
        words
            .flat_map(|(at, word)| {
                std::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1)))
                    .take_while(|left| *left != 0)
                    .map(move |left| at * 64 + left.trailing_zeros() as usize)
            })
            .filter(move |&other| other != core)
    }
}

/// Lines that came from each place in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// From a core of the same group.
    pub group: u64,
    /// From another group of the package.
    pub package: u64,
    /// From another package.
    pub far: u64,
    /// From memory.
    pub memory: u64,
}

/// Private memory of a core's rank that it has lent at least once.
#[derive(Clone, Copy, Debug)]
struct Lent {
    /// The address of its first byte.
    at: usize,
    len: u64,
    /// Its first line.
    line: usize,
}

/// All caches of a machine.
#[derive(Debug)]
pub(super) struct Caches {
    machine: Machine,
    /// Those of the segment, then those of lent memory.
    lines: Vec<Line>,
    /// By core.
    lent: Vec<Vec<Lent>>,
    /// By core: those of its group, and those of its package.
    near: Vec<[Cores; 2]>,
    /// By core: the line that follows those that it has brought to copy them.
    next: Vec<usize>,
    /// By core: lines that it has written, counted in a circle.
    written: Vec<u32>,
    /// What a core keeps.
    kept: Vec<Kept>,
    /// By package: the link to the others, and memory.
    links: Vec<Way>,
    memories: Vec<Way>,
    /// By group: what comes into it.
    ports: Vec<Way>,
    pub(super) traffic: Traffic,
}

/// What a load does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// When the core goes on.
    pub(super) on: Time,
    /// When it has the word.
    pub(super) done: Time,
    /// When the word had the value that the core gets: where another core is about to write the line, not before it has done so.
    pub(super) seen: Time,
    /// It had to get the line.
    pub(super) missed: bool,
}

/// From where a line comes.
#[derive(Clone, Copy, Debug)]
enum Source {
    Core(usize),
    Memory,
}

impl Caches {
    pub(super) fn new(machine: &Machine, bytes: u64) -> Self {
        let lines = vec![UNUSED; bytes.div_ceil(LINE) as usize];
        let lent = vec![Vec::new(); MOST as usize];
        let near = (0..MOST as usize).map(|core| {
            let (group, package) = (machine.cores as usize, machine.cores as usize * machine.groups as usize);
            [group, package].map(|count| cores(core / count * count, count))
        });
        let kept = (0..MOST).map(|_| Kept::new(machine.cache)).collect();
        let of_packages = |each| vec![Way::new(each); machine.packages as usize];
        let (links, memories) = (of_packages(machine.link), of_packages(machine.channels));
        let ports = vec![Way::new(machine.port); machine.groups as usize * machine.packages as usize];
        let (near, next) = (near.collect(), vec![usize::MAX; MOST as usize]);
        Self {
            machine: machine.clone(),
            lines,
            lent,
            near,
            next,
            written: vec![0; MOST as usize],
            kept,
            links,
            memories,
            ports,
            traffic: Traffic::default(),
        }
    }

    pub(super) const fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The line of a byte, as long as there is one.
    const fn index(&self, offset: u64) -> usize {
        let last = self.lines.len() - 1;
        let at = (offset / LINE) as usize;
        if at < last { at } else { last }
    }

    fn cost(&self, core: usize, source: Source) -> Distance {
        match source {
            Source::Core(other) => *self.machine.between(core, other),
            Source::Memory => self.machine.memory,
        }
    }

    fn count(&mut self, core: usize, source: Source) {
        let traffic = &mut self.traffic;
        *match source {
            Source::Memory => &mut traffic.memory,
            Source::Core(other) if self.machine.group_of(core) == self.machine.group_of(other) => &mut traffic.group,
            Source::Core(other) if self.machine.package_of(core) == self.machine.package_of(other) => {
                &mut traffic.package
            }
            Source::Core(_) => &mut traffic.far,
        } += 1;
    }

    /// A core writes into a line that it has taken.
    fn wrote(&mut self, core: usize, line: usize) {
        self.written[core] = self.written[core].wrapping_add(1);
        self.lines[line].age = self.written[core];
    }

    /// Does only the core that has changed this line have it, and in its first-level cache? Half of that holds lines that it has
    /// written: a copy brings as many others there.
    fn is_fresh(&self, line: usize) -> bool {
        let Line { owner, age, holders, .. } = self.lines[line];
        let owner = usize::from(owner);
        let since = self.written.get(owner).map(|written| u64::from(written.wrapping_sub(age)));
        let alone = |word: usize| if word == owner / 64 { 1 << (owner % 64) } else { 0 };
        since.is_some_and(|since| since < self.machine.first / 2 / LINE) && holders == std::array::from_fn(alone)
    }

    /// When a line that may go at `at` has passed what cores share on its way.
    fn passed(&mut self, core: usize, source: Source, at: Time) -> Time {
        let (group, package) = (self.machine.group_of(core), self.machine.package_of(core));
        let at = match source {
            Source::Memory => self.memories[package].pass(at),
            Source::Core(other) if self.machine.group_of(other) == group => return at,
            Source::Core(other) => match self.machine.package_of(other) {
                from if from == package => at,
                from => self.links[from].pass(at),
            },
        };
        self.ports[group].pass(at)
    }

    /// A core has a line from now on, and no other one, if it `takes` it.
    fn has(&mut self, core: usize, line: usize, takes: Option<Line>, now: Time) {
        let before = self.lines[line];
        if let Some(taken) = takes {
            before.others(core).for_each(|other| self.kept[other].went());
            self.lines[line] = taken;
        }
        self.lines[line].add(core);
        if !before.holds(core) {
            self.kept[core].came(line);
            self.make_room(core, now);
        }
    }

    /// What a core has no room for goes; what it has changed goes to memory.
    fn make_room(&mut self, core: usize, now: Time) {
        let memory = &mut self.memories[self.machine.package_of(core)];
        let kept = &mut self.kept[core];
        while let Some(oldest) = kept.oldest() {
            match oldest {
                Item::Line(line) => {
                    let line = &mut self.lines[line as usize];
                    if !line.holds(core) {
                        continue;
                    }
                    if line.owner == core as u16 {
                        line.owner = NOBODY;
                        memory.pass(now);
                    }
                    line.remove(core);
                    kept.went();
                }
                Item::Page(page) if kept.drops(page) => {
                    (0..Kept::LINES).for_each(|_| {
                        memory.pass(now);
                    });
                }
                Item::Page(_) => {}
            }
        }
        kept.clear(|line| self.lines[line as usize].holds(core));
    }

    /// The nearest core that has the line; the farthest, if `last`.
    fn source(&self, line: usize, core: usize, last: bool) -> Source {
        let mut others = self.lines[line].holders;
        others[core / 64] &= !(1 << (core % 64));
        let [group, package] = &self.near[core];
        // One of each distance is as good as any other, but the first, or the last, is the same in each run.
        let within = std::array::from_fn(|at| others[at] & group[at]);
        let beside = std::array::from_fn(|at| others[at] & package[at] & !group[at]);
        let beyond = std::array::from_fn(|at| others[at] & !package[at]);
        let of =
            |bits: Cores, distance: &Distance| one_of(bits, last).map(|other| (Time::from_ns(distance.latency), other));
        let Machine { group, package, far, .. } = &self.machine;
        let found = [of(within, group), of(beside, package), of(beyond, far)].into_iter().flatten();
        let found = if last { found.max() } else { found.min() };
        found.map_or(Source::Memory, |(_, other)| Source::Core(other))
    }

    /// A core reads a word at `now`; if it `overlaps`, the core goes on before it has the line.
    pub(super) fn load(&mut self, core: usize, offset: u64, now: Time, overlaps: bool) -> Load {
        let line = self.index(offset);
        let entry = self.lines[line];
        let comes = ![core as u16, NOBODY].contains(&entry.owner) && now < entry.shared;
        if entry.holds(core) && !comes {
            let on = now + Time::from_ns(self.machine.hit);
            return Load { on, done: on, seen: now, missed: false };
        }
        let seen = now.max(entry.here);
        // What is copied after it waits for it.
        self.next[core] = usize::MAX;
        // A copy for which the core has asked while it waited is on its way.
        let (start, cost) = if entry.holds(core) {
            (entry.shared, *self.machine.between(core, entry.owner.into()))
        } else {
            self.fetch(core, line, now)
        };
        let done = start + Time::from_ns(cost.latency);
        Load { on: if overlaps { start + Time::from_ns(cost.stream) } else { done }, done, seen, missed: true }
    }

    /// A core that does not have the line reads it. Returns when the transfer begins, and what it costs.
    fn fetch(&mut self, core: usize, line: usize, now: Time) -> (Time, Distance) {
        let source = self.source(line, core, false);
        let cost = self.cost(core, source);
        let start = self.passed(core, source, now.max(self.lines[line].free));
        self.count(core, source);
        let entry = &mut self.lines[line];
        entry.free = start + Time::from_ns(cost.busy);
        entry.shared = entry.shared.min(start);
        self.has(core, line, None, now);
        (start, cost)
    }

    /// A core takes the line for itself, to write it; returns when it has it, if it is asked for at `now`.
    fn own(&mut self, core: usize, line: usize, now: Time, takes: impl Fn(Distance) -> f64) -> Time {
        if self.lines[line].owned(core, now) {
            return now.max(self.lines[line].here) + Time::from_ns(self.machine.hit);
        }
        let source = self.source(line, core, true);
        let has = self.lines[line].holds(core);
        let alone = has && matches!(source, Source::Memory);
        let done = if alone {
            now + Time::from_ns(self.machine.hit)
        } else {
            let cost = self.cost(core, source);
            let free = now.max(self.lines[line].free);
            // One that has the line gets no bytes: the others give theirs up.
            let start = if has { free } else { self.passed(core, source, free) };
            self.count(core, source);
            start + Time::from_ns(takes(cost))
        };
        self.has(core, line, Some(Line { owner: core as u16, here: done, ..UNUSED }), now);
        done
    }

    /// A core stores a word at `now`; what it has stored before can be read at `drained`. Returns when it goes on, and when the
    /// word can be read.
    pub(super) fn store(&mut self, core: usize, offset: u64, now: Time, drained: Time) -> (Time, Time) {
        let seen = self.written(core, self.index(offset), now, drained);
        (now + Time::from_ns(self.machine.hit), seen)
    }

    /// A core writes into a line at `now`; returns when that can be read.
    fn written(&mut self, core: usize, line: usize, now: Time, drained: Time) -> Time {
        let seen = self.own(core, line, now, |cost| cost.latency).max(drained);
        (self.lines[line].free, self.lines[line].here) = (seen, seen);
        self.wrote(core, line);
        seen
    }

    /// A core changes a word atomically; returns when it has done so.
    pub(super) fn exchange(&mut self, core: usize, offset: u64, now: Time, drained: Time) -> Time {
        let line = self.index(offset);
        let done = self.own(core, line, now.max(drained), |cost| cost.latency) + Time::from_ns(self.machine.atomic);
        self.lines[line].free = done;
        self.wrote(core, line);
        done
    }

    /// A core writes so few bytes that its buffer takes them all; as [`store`](Self::store).
    pub(super) fn buffer(&mut self, core: usize, offset: u64, len: u64, now: Time, drained: Time) -> (Time, Time) {
        let mut seen = drained;
        for line in self.index(offset)..=self.index(offset + len.max(1) - 1) {
            seen = self.written(core, line, now, seen);
        }
        (now + Time::from_ns(self.machine.hit + len as f64 / self.machine.copy), seen)
    }

    /// A core reads or writes `len` bytes one after the other; returns when it has done so. The first line costs its latency, unless it
    /// follows those of the copy before, and no word was brought between them.
    pub(super) fn stream(&mut self, core: usize, offset: u64, len: u64, now: Time, writes: bool, rate: f64) -> Time {
        let mut at = now;
        if len == 0 {
            return at;
        }
        let (begin, last) = (self.index(offset), self.index(offset + (len - 1)));
        let (mut first, each) = (begin != self.next[core] && begin + 1 != self.next[core], LINE as f64 / rate);
        for line in begin..=last {
            let here = self.lines[line];
            let has = if writes { here.owned(core, at) } else { here.holds(core) };
            let whole = !has && std::mem::take(&mut first);
            let times = if !writes && !has && self.is_fresh(line) { self.machine.fresh } else { 1.0 };
            let takes = |cost: Distance| if whole { cost.latency } else { (times * cost.stream).max(each) };
            at = match (has, writes) {
                (true, _) => at + Time::from_ns(each),
                (false, true) => {
                    let done = self.own(core, line, at, takes);
                    self.lines[line].free = done;
                    done
                }
                (false, false) => {
                    let (start, cost) = self.fetch(core, line, at);
                    start + Time::from_ns(takes(cost))
                }
            };
            if writes {
                self.wrote(core, line);
            }
        }
        self.next[core] = if first { usize::MAX } else { last + 1 };
        at
    }

    /// A core has these lines, changed, from `now` on.
    pub(super) fn place(&mut self, core: usize, offset: u64, len: u64, now: Time) {
        if len == 0 {
            return;
        }
        for line in self.index(offset)..=self.index(offset + (len - 1)) {
            self.has(core, line, Some(Line { owner: core as u16, here: now, free: now, ..UNUSED }), now);
            self.wrote(core, line);
        }
    }

    /// Where `len` bytes at this address lie among the lines, if they are in memory that this core has lent.
    pub(super) fn lent(&self, core: usize, at: usize, len: u64) -> Option<u64> {
        let holds = |lent: &&Lent| lent.at <= at && at as u64 + len <= lent.at as u64 + lent.len;
        self.lent[core].iter().find(holds).map(|lent| lent.line as u64 * LINE + (at - lent.at) as u64)
    }

    /// A core lends `len` bytes of its private memory, which it has changed, and has in its cache.
    pub(super) fn lend(&mut self, core: usize, at: usize, len: u64, now: Time) {
        let offset = self.lent(core, at, len).unwrap_or_else(|| {
            // What it overlaps is not lent any more.
            self.lent[core].retain(|lent| lent.at as u64 + lent.len <= at as u64 || at as u64 + len <= lent.at as u64);
            let line = self.lines.len();
            self.lines.resize(line + len.div_ceil(LINE) as usize, UNUSED);
            self.lent[core].push(Lent { at, len, line });
            line as u64 * LINE
        });
        self.place(core, offset, len, now);
    }

    /// A core reads `len` bytes at this address of its private memory, or writes them; returns when it has done so, but for the copy
    /// that uses them. It costs nothing where the core keeps them, and others don't have what was lent of them.
    pub(super) fn private(&mut self, core: usize, at: usize, len: u64, now: Time, writes: bool) -> Time {
        if let Some(offset) = self.lent(core, at, len) {
            return self.stream(core, offset, len, now, writes, f64::INFINITY);
        }
        let (mut when, mut from, end) = (now, at, at + len as usize);
        while from < end {
            let page = from / PAGE;
            let to = end.min((page + 1) * PAGE);
            if !self.kept[core].uses(page, writes) {
                for _ in 0..(to - from).div_ceil(LINE as usize) {
                    when = self.passed(core, Source::Memory, when) + Time::from_ns(self.machine.memory.stream);
                    self.count(core, Source::Memory);
                }
            }
            self.make_room(core, when);
            from = to;
        }
        when
    }

    /// A core asks for these lines, to write them, and does not wait; returns when it has them.
    pub(super) fn claim(&mut self, core: usize, offset: u64, len: u64, now: Time) -> Time {
        let mut last = now;
        for line in self.index(offset)..=self.index(offset + len.max(1) - 1) {
            last = last.max(self.own(core, line, now, |cost| cost.latency));
            self.lines[line].free = self.lines[line].free.max(self.lines[line].here);
        }
        last
    }

    /// A core that waits for a word of this line, which was stored, reads it again, and goes on waiting.
    pub(super) fn look_again(&mut self, core: usize, offset: u64, now: Time) {
        self.load(core, offset, now, false);
    }
}

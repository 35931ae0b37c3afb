//! Where the lines of the segment are, and what an access of one costs.
//!
//! A line is in memory, or changed in one core's cache, or unchanged in those of several. A core that has it reads it at once; another
//! one waits until the line has served those that asked before, and for the transfer from the nearest core that has it. A core
//! that writes goes on at once, since its store waits in a buffer, but the line can't be read before all other copies are given
//! up, nor before what the core stored earlier. Caches are as large as need be.
//!
//! Memory that a rank lends has lines, too, behind those of the segment. They are counted from its first byte, so that a run does
//! not depend on addresses. Other private memory costs the same wherever it is.

use super::machine::{Distance, MOST, Machine};
use crate::Time;
use std::collections::HashMap;

/// Bytes of a line.
pub(super) const LINE: u64 = 64;

/// Bytes that a core's buffer of stores takes at once: those of two lines. A longer copy waits for its lines.
pub(super) const BUFFERED: u64 = 2 * LINE;

/// The time, in nanoseconds, in which a link takes as many lines as it can.
const SPAN: f64 = 1_000.0;

const NOBODY: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
struct Line {
    /// The core that has changed it; or nobody.
    owner: u16,
    /// When another core gets it from the owner, which can change it until then.
    shared: Time,
    /// A bit for each core that has it.
    holders: [u64; MOST as usize / 64],
    /// When it can serve the next request.
    free: Time,
    /// When its owner has it.
    here: Time,
}

const FRESH: Line =
    Line { owner: NOBODY, shared: Time::NEVER, holders: [0; MOST as usize / 64], free: Time::ZERO, here: Time::ZERO };

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
    /// By package: how many lines leave it in each [`SPAN`]. Cores that copy are ahead of others, so a link can't just be busy until a
    /// moment.
    links: Vec<HashMap<u64, u32>>,
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
        let lines = vec![FRESH; bytes.div_ceil(LINE) as usize];
        let lent = vec![Vec::new(); MOST as usize];
        let links = vec![HashMap::new(); machine.packages as usize];
        Self { machine: machine.clone(), lines, lent, links, traffic: Traffic::default() }
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

    /// When the link between two packages has brought a line that may go at `at`.
    fn linked(&mut self, core: usize, source: Source, at: Time) -> Time {
        let Source::Core(other) = source else { return at };
        let (to, from) = (self.machine.package_of(core), self.machine.package_of(other));
        if to == from {
            return at;
        }
        // A cast of a float saturates.
        let most = (SPAN / self.machine.link).max(1.0) as u32;
        let mut span = (at.ns() / SPAN) as u64;
        loop {
            let taken = self.links[from].entry(span).or_default();
            if *taken < most {
                *taken += 1;
                return at.max(Time::from_ns(span as f64 * SPAN));
            }
            span += 1;
        }
    }

    /// The nearest core that has the line; the farthest, if `last`.
    fn source(&self, line: usize, core: usize, last: bool) -> Source {
        let latency = |other: &usize| Time::from_ns(self.machine.between(core, *other).latency);
        let others = self.lines[line].others(core);
        let found = if last { others.max_by_key(latency) } else { others.min_by_key(latency) };
        found.map_or(Source::Memory, Source::Core)
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
        let start = self.linked(core, source, now.max(self.lines[line].free));
        self.count(core, source);
        let entry = &mut self.lines[line];
        entry.free = start + Time::from_ns(cost.busy);
        entry.shared = entry.shared.min(start);
        entry.add(core);
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
            let start = self.linked(core, source, now.max(self.lines[line].free));
            self.count(core, source);
            start + Time::from_ns(takes(cost))
        };
        self.lines[line] = Line { owner: core as u16, here: done, ..FRESH };
        self.lines[line].add(core);
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
        seen
    }

    /// A core changes a word atomically; returns when it has done so.
    pub(super) fn exchange(&mut self, core: usize, offset: u64, now: Time, drained: Time) -> Time {
        let line = self.index(offset);
        let done = self.own(core, line, now.max(drained), |cost| cost.latency) + Time::from_ns(self.machine.atomic);
        self.lines[line].free = done;
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

    /// A core reads or writes `len` bytes one after the other; returns when it has done so. The first line costs its latency.
    pub(super) fn stream(&mut self, core: usize, offset: u64, len: u64, now: Time, writes: bool, rate: f64) -> Time {
        let mut at = now;
        if len == 0 {
            return at;
        }
        let (mut first, each) = (true, LINE as f64 / rate);
        for line in self.index(offset)..=self.index(offset + (len - 1)) {
            let here = self.lines[line];
            let has = if writes { here.owned(core, at) } else { here.holds(core) };
            if has {
                at = at + Time::from_ns(each);
                continue;
            }
            let whole = std::mem::take(&mut first);
            let takes = |cost: Distance| if whole { cost.latency } else { cost.stream.max(each) };
            if writes {
                at = self.own(core, line, at, takes);
                self.lines[line].free = at;
            } else {
                let (start, cost) = self.fetch(core, line, at);
                at = start + Time::from_ns(takes(cost));
            }
        }
        at
    }

    /// A core has these lines, changed, from `now` on.
    pub(super) fn place(&mut self, core: usize, offset: u64, len: u64, now: Time) {
        if len == 0 {
            return;
        }
        for line in self.index(offset)..=self.index(offset + (len - 1)) {
            self.lines[line] = Line { owner: core as u16, here: now, free: now, ..FRESH };
            self.lines[line].add(core);
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
            self.lines.resize(line + len.div_ceil(LINE) as usize, FRESH);
            self.lent[core].push(Lent { at, len, line });
            line as u64 * LINE
        });
        self.place(core, offset, len, now);
    }

    /// A core writes `len` bytes at this address of its private memory; returns when it has done so. It costs nothing where others
    /// don't have what was lent of it.
    pub(super) fn keep(&mut self, core: usize, at: usize, len: u64, now: Time) -> Time {
        self.lent(core, at, len).map_or(now, |offset| self.stream(core, offset, len, now, true, f64::INFINITY))
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

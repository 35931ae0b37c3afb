//! Open MPI's `coll/xhc`: groups of ranks by place, and of groups. Each group has a leader for the call, a word in which the leader
//! says how much of its data is ready, and an acknowledgement of each member.
//!
//! A broadcast's data is beside the leader's word (up to [`BESIDE`] bytes), in a buffer of the leader (up to [`BUFFERED`]), or
//! where it lies: members read the leader's memory, a chunk at a time, and lead their own groups with what they have. Groups are
//! packages, as the defaults `numa,socket` say of machines whose packages are one NUMA node.
//!
//! An allreduce folds in groups by level-3 cache, package and node (`l3,numa,socket`), and broadcasts the result of rank 0. Short
//! operands are folded by the leader; of longer ones each member folds a part of each area straight into the leader's memory,
//! the leader in the first area and in the topmost group only.

mod levels;

use super::Done;
use super::process::Process;
use crate::segment::Machine;
use levels::{Area, Level, areas};
use std::ops::Range;
use unisono_kernel::Rank;
use unisono_kernel::machine::poll::Until;
use unisono_kernel::op::Op;
use unisono_kernel::region::{Cico, Extent, FlagId, Params};

/// Bytes that fit in the line of a word.
const BESIDE: usize = 40;

/// The `cico_max` of broadcasts, and of allreduces.
const BUFFERED: usize = 256;
const BUFFERED_REDUCED: usize = 4096;

/// Bytes of a chunk.
const CHUNK: usize = 16 << 10;

/// Words of a rank: for each kind of call and level, those of [`Word`].
const WORDS: u64 = 8;
const LEVELS: u64 = 4;

/// A word of a group, in the area of the group's lowest rank, or of a member.
#[derive(Clone, Copy)]
enum Word {
    /// The call, and the bytes that are ready of the leader's data.
    Ready,
    /// The last call that all members have acknowledged.
    Over,
    /// A member's acknowledgement.
    Acknowledged,
    /// A member has come, and with short operands where its operand lies.
    Come,
    /// Bytes of a member's operand that are ready, and of the result of those that it folds.
    Operand,
    Folded,
}

#[derive(Clone, Copy)]
enum Kind {
    Barrier,
    Bcast,
    Allreduce,
}

pub(super) fn params(ranks: u32, bytes: u64) -> Params {
    Params {
        lines: 128,
        queue_slots: 1,
        queue_fragment: bytes.max(1).next_multiple_of(64),
        // A buffer for short data at each level, and one for broadcasts.
        cico: Some(Cico { slots: 8, fragment: BUFFERED_REDUCED as u64, sets: 1 }),
        ..Params::new(ranks)
    }
}

/// How data gets to a member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Beside,
    Buffered,
    Single,
}

impl Method {
    const fn of(bytes: usize, buffered: usize) -> Self {
        if bytes <= BESIDE {
            Self::Beside
        } else if bytes <= buffered {
            Self::Buffered
        } else {
            Self::Single
        }
    }
}

#[derive(Debug)]
pub(super) struct Xhc {
    /// By kind of call: the groups of this rank's place, from the smallest to that of all.
    levels: [Vec<Level>; 3],
    calls: [u64; 3],
}

/// Of which call, and how many bytes.
const fn mark(call: u64, bytes: usize) -> u64 {
    call << 32 | bytes as u64
}

const fn bytes_of(mark: u64) -> usize {
    (mark & 0xffff_ffff) as usize
}

impl Xhc {
    pub(super) fn new(me: &Process, machine: &Machine, flat: bool) -> Self {
        let group = machine.cores;
        let package = group.saturating_mul(machine.groups);
        let by = |parts: &[u32]| Level::all(me.rank, me.size(), if flat { &[] } else { parts });
        Self { levels: [by(&[package]), by(&[package]), by(&[group, package])], calls: [0; 3] }
    }

    fn word(me: &Process, kind: Kind, level: usize, rank: Rank, word: Word) -> FlagId {
        me.layout.line(rank, (kind as u64 * LEVELS + level as u64) * WORDS + word as u64)
    }

    /// What lies beside a word.
    fn beside(me: &Process, kind: Kind, level: usize, rank: Rank, word: Word, bytes: usize) -> Extent {
        me.layout.line_body(rank, (kind as u64 * LEVELS + level as u64) * WORDS + word as u64, bytes as u64)
    }

    /// A rank's buffer for short data: at a level of an allreduce, and the last one for broadcasts.
    fn buffer(me: &Process, rank: Rank, slot: usize) -> Extent {
        me.layout.fragment(rank, slot as u32)
    }

    /// A rank's own memory.
    fn memory(me: &Process, rank: Rank, range: &Range<usize>) -> Extent {
        me.layout.slot(rank, 0).part(range.start as u64, range.len() as u64)
    }

    fn begin(&mut self, kind: Kind) -> (Vec<Level>, u64) {
        self.calls[kind as usize] += 1;
        (self.levels[kind as usize].clone(), self.calls[kind as usize])
    }

    pub(super) fn barrier(&mut self, me: &Process) -> Done {
        let (levels, call) = self.begin(Kind::Barrier);
        let led = Level::led(&levels, me.rank, 0);
        let word = |level: usize, rank, word| Self::word(me, Kind::Barrier, level, rank, word);
        for (at, level) in levels.iter().enumerate().take(led + 1) {
            me.store(word(at, level.mine, Word::Come), call);
            if at < led {
                for peer in level.others() {
                    me.reaches(word(at, peer, Word::Come), call, peer)?;
                }
            }
        }
        if let Some(level) = levels.get(led) {
            me.reaches(word(led, level.first(), Word::Over), call, level.first())?;
        }
        for (at, level) in levels.iter().enumerate().take(led) {
            me.store(word(at, level.first(), Word::Over), call);
        }
        Ok(())
    }

    pub(super) fn bcast(&mut self, me: &Process, bytes: &mut [u8], root: Rank) -> Done {
        let broadcast = Broadcast::begin(self, me, bytes.len(), root);
        if me.rank == root {
            broadcast.give(bytes);
            broadcast.open()?;
            broadcast.tell(bytes, bytes.len());
        } else {
            broadcast.open()?;
            broadcast.receive(bytes)?;
        }
        broadcast.acknowledge()
    }

    pub(super) fn allreduce(&mut self, me: &Process, bytes: &mut [u8], op: &Op) -> Done {
        let (levels, call) = self.begin(Kind::Allreduce);
        let broadcast = Broadcast::begin(self, me, bytes.len(), 0);
        if me.rank == 0 {
            broadcast.open()?;
        }
        match Method::of(bytes.len(), BUFFERED_REDUCED) {
            Method::Single => {
                me.has(Self::memory(me, me.rank, &(0..bytes.len())), bytes);
                let mut folding = Folding::new(me, &levels, call, bytes.len(), op, &broadcast);
                folding.advance(0, bytes.len())?;
                me.look(Self::memory(me, me.rank, &(0..bytes.len())), bytes);
            }
            method => {
                fold_short(me, &levels, call, bytes, op, method)?;
                if me.rank == 0 {
                    broadcast.give(bytes);
                    broadcast.tell(bytes, bytes.len());
                }
            }
        }
        if me.rank != 0 {
            broadcast.open()?;
            broadcast.receive(bytes)?;
        }
        broadcast.acknowledge()
    }
}

/// Leaders fold what members have put beside their words, or into buffers.
fn fold_short(me: &Process, levels: &[Level], call: u64, bytes: &mut [u8], op: &Op, method: Method) -> Done {
    let len = bytes.len();
    let word = |level: usize, rank| Xhc::word(me, Kind::Allreduce, level, rank, Word::Come);
    let place = |level: usize, rank| match method {
        Method::Beside => Xhc::beside(me, Kind::Allreduce, level, rank, Word::Come, len),
        _ => Xhc::buffer(me, rank, level),
    };
    let led = Level::led(levels, me.rank, 0);
    for (at, level) in levels.iter().enumerate().take(led) {
        for peer in level.others() {
            me.reaches(word(at, peer), call, peer)?;
            me.fold(place(at, peer), bytes, op);
        }
    }
    if let Some(level) = levels.get(led) {
        me.write(place(led, level.mine), bytes);
        me.store(word(led, level.mine), call);
    }
    Ok(())
}

/// A broadcast that has begun.
struct Broadcast<'p> {
    me: &'p Process,
    levels: Vec<Level>,
    call: u64,
    /// Levels at which this rank leads.
    led: usize,
    root: Rank,
    all: usize,
    method: Method,
}

/// The buffer of broadcasts.
const OF_BROADCASTS: usize = 7;

impl<'p> Broadcast<'p> {
    fn begin(xhc: &mut Xhc, me: &'p Process, all: usize, root: Rank) -> Self {
        let (levels, call) = xhc.begin(Kind::Bcast);
        let led = Level::led(&levels, me.rank, root);
        Self { me, led, levels, call, root, all, method: Method::of(all, BUFFERED) }
    }

    fn word(&self, level: usize, rank: Rank, word: Word) -> FlagId {
        Xhc::word(self.me, Kind::Bcast, level, rank, word)
    }

    /// The root puts its data where members read it.
    fn give(&self, bytes: &[u8]) {
        match self.method {
            Method::Single => self.me.has(Xhc::memory(self.me, self.me.rank, &(0..self.all)), bytes),
            Method::Buffered => self.me.write(Xhc::buffer(self.me, self.me.rank, OF_BROADCASTS), bytes),
            Method::Beside => {}
        }
    }

    /// A leader waits until the call before is over in its groups.
    fn open(&self) -> Done {
        for (at, level) in self.levels.iter().enumerate().take(self.led).rev() {
            self.me.reaches(self.word(at, level.first(), Word::Over), self.call - 1, level.first())?;
        }
        Ok(())
    }

    /// A leader tells its groups that the first `ready` bytes are.
    fn tell(&self, bytes: &[u8], ready: usize) {
        for (at, level) in self.levels.iter().enumerate().take(self.led).rev() {
            if self.method == Method::Beside {
                let place = Xhc::beside(self.me, Kind::Bcast, at, level.first(), Word::Ready, self.all);
                self.me.write(place, bytes);
            }
            self.me.store(self.word(at, level.first(), Word::Ready), mark(self.call, ready));
        }
    }

    fn receive(&self, bytes: &mut [u8]) -> Done {
        let Some(level) = self.levels.get(self.led) else { return Ok(()) };
        let leader = level.leader(self.root);
        let ready = self.word(self.led, level.first(), Word::Ready);
        let mut done = 0;
        loop {
            let need = if self.method == Method::Single { self.all.min(done + CHUNK) } else { self.all };
            let there = bytes_of(self.me.wait(ready, Until::AtLeast(mark(self.call, need)), leader)?).min(self.all);
            // Who leads nobody copies all at once.
            let range = done..if self.led == 0 { there.max(need) } else { need };
            let part = &mut bytes[range.clone()];
            match self.method {
                Method::Beside => {
                    let place = Xhc::beside(self.me, Kind::Bcast, self.led, level.first(), Word::Ready, self.all);
                    self.me.read(place, part);
                }
                Method::Buffered => {
                    self.me.read(Xhc::buffer(self.me, leader, OF_BROADCASTS), part);
                    if self.led > 0 {
                        self.me.write(Xhc::buffer(self.me, self.me.rank, OF_BROADCASTS), part);
                    }
                }
                Method::Single => {
                    self.me.read(Xhc::memory(self.me, leader, &range), part);
                    self.me.has(Xhc::memory(self.me, self.me.rank, &range), part);
                }
            }
            done = range.end;
            self.tell(bytes, done);
            if done == self.all {
                return Ok(());
            }
        }
    }

    /// Members acknowledge, and a leader waits for all of its members.
    fn acknowledge(&self) -> Done {
        for (at, level) in self.levels.iter().enumerate().take(self.led + 1) {
            self.me.store(self.word(at, level.mine, Word::Acknowledged), self.call);
        }
        for (at, level) in self.levels.iter().enumerate().take(self.led) {
            for peer in level.others() {
                self.me.reaches(self.word(at, peer, Word::Acknowledged), self.call, peer)?;
            }
            self.me.store(self.word(at, level.first(), Word::Over), self.call);
        }
        Ok(())
    }
}

/// A long reduction, area by area.
struct Folding<'a> {
    me: &'a Process,
    levels: &'a [Level],
    call: u64,
    op: &'a Op,
    broadcast: &'a Broadcast<'a>,
    /// By level: the areas, and how many are folded.
    areas: Vec<(Vec<Area>, usize)>,
    led: usize,
}

impl<'a> Folding<'a> {
    fn new(
        me: &'a Process,
        levels: &'a [Level],
        call: u64,
        all: usize,
        op: &'a Op,
        broadcast: &'a Broadcast<'a>,
    ) -> Self {
        let each = |(at, level): (usize, &Level)| (areas(all, level.members.len(), at + 1 == levels.len()), 0);
        let led = Level::led(levels, me.rank, 0);
        Self { me, levels, call, op, broadcast, areas: levels.iter().enumerate().map(each).collect(), led }
    }

    fn word(&self, level: usize, rank: Rank, word: Word) -> FlagId {
        Xhc::word(self.me, Kind::Allreduce, level, rank, word)
    }

    /// The first `ready` bytes of this rank's operand at this level are ready.
    fn advance(&mut self, at: usize, ready: usize) -> Done {
        let Some(level) = self.levels.get(at) else {
            self.broadcast.tell(&[], ready);
            return Ok(());
        };
        self.me.store(self.word(at, level.mine, Word::Operand), mark(self.call, ready));
        while let Some(area) = self.areas[at].0.get(self.areas[at].1).copied().filter(|area| area.end <= ready) {
            self.areas[at].1 += 1;
            let place = level.members.iter().position(|&member| member == level.mine).unwrap_or(0);
            let part = area.part(place);
            if !part.is_empty() {
                self.fold(at, part)?;
            }
            self.me.store(self.word(at, level.mine, Word::Folded), mark(self.call, area.end));
            if at < self.led {
                for &peer in level.members.iter().filter(|&&peer| peer != level.mine) {
                    self.me.reaches(self.word(at, peer, Word::Folded), mark(self.call, area.end), peer)?;
                }
                self.advance(at + 1, area.end)?;
            }
        }
        Ok(())
    }

    /// Folds all members' operands in this range into the leader's memory.
    fn fold(&self, at: usize, range: Range<usize>) -> Done {
        let (me, level) = (self.me, &self.levels[at]);
        for peer in level.others() {
            me.reaches(self.word(at, peer, Word::Operand), mark(self.call, range.end), peer)?;
        }
        let mut result = vec![0; range.len()];
        let mut members = level.members.iter();
        if let Some(&first) = members.next() {
            me.read(Xhc::memory(me, first, &range), &mut result);
        }
        for &member in members {
            me.fold(Xhc::memory(me, member, &range), &mut result, self.op);
        }
        me.write(Xhc::memory(me, level.first(), &range), &result);
        Ok(())
    }
}

//! Paper P2's three operations as the print has them, defect by defect: straight-line code per process over
//! plain shared words. With no defect it is the mended algorithm.
//!
//! Fig. 1 prints scatterv. Gatherv and allgatherv are prose: "the inverse" of it, and a gatherv that all receive
//! and whose sets process 0 opens. So one loop is all three, and they take over what Fig. 1 has wrong. A
//! root's own block, which no queue carries, and the datatype's size, which is 1, are left out.

use super::What::{self, Allgather, Gather, Scatter};
use super::turns::{Fault, Firsts, P, Schedule, Turns};
use Defect::*;
use std::sync::{Arc, Mutex};

/// Slots of a queue, sets, bytes of a fragment.
pub(crate) const S: usize = 2;
pub(crate) const W: usize = 2;
pub(crate) const F: usize = 4;

/// One call: the root, and the bytes of each rank's block.
pub(crate) type Call = (usize, [usize; P]);

/// The defects of the print, and what it leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// The wait on `rootready` is inverted.
    InvertedRootready,
    /// The wait on `ctrl` or `ctrlall` is inverted.
    InvertedCtrl,
    /// The reader clears `counts[rank]`, not `rootready[rank]`.
    ClearsCounts,
    /// A rank that is not the root uses `scounts` before it is told them: they are zeros then.
    Untold,
    /// A process leaves when its own block has gone through, or all blocks that it has to send.
    EndsEarly,
    /// The root's own block counts in the number of sets, yet the root leaves when all others have theirs.
    OwnBlock,
    /// No set is opened for no bytes.
    NoSet,
    /// A rank without bytes does not consume `rootready`.
    Unconsumed,
    /// `p·sizeof(scounts)` bytes of counts are copied, the size being a pointer's: two ints.
    WideCopy,
    /// Totals are ints; here of eight bits, so that a test reaches their end.
    NarrowTotals,
    /// `op` starts at 1: the minus is lost.
    LostMinus,
    /// `op` starts at 0, as zeroed memory does.
    ZeroedOp,
    /// A reader clears `ctrl` after its own decrement.
    LateClear,
    /// No process clears `ctrl` or `ctrlall`.
    NeverClears,
    /// All processes read in the order 0 … p−1.
    FromZero,
}

/// An operation with all defects of the print that concern it.
pub(crate) const fn as_printed(what: What) -> &'static [Defect] {
    const ROOTED: [Defect; 11] = [
        InvertedRootready,
        InvertedCtrl,
        ClearsCounts,
        Untold,
        EndsEarly,
        OwnBlock,
        NoSet,
        Unconsumed,
        WideCopy,
        NarrowTotals,
        LostMinus,
    ];
    match what {
        Allgather => &[InvertedCtrl, EndsEarly, NoSet, NarrowTotals, LostMinus, NeverClears, FromZero],
        Scatter | Gather => &ROOTED,
    }
}

/// A set's words. After the counts comes the rest of their page.
#[derive(Clone, Copy, Debug)]
struct Set {
    op: i64,
    nproc: i64,
    counts: [usize; 2 * P],
    rootready: [bool; P],
}

/// The shared words. `ctrl` and `ctrlall` are one: of an owner's slot, by reader; rooted operations use the first.
#[derive(Debug)]
struct World {
    sets: [Set; W],
    ctrl: [[[usize; P]; S]; P],
    queue: [[[u8; F]; S]; P],
}

/// A block's way through its owner's queue.
#[derive(Debug)]
struct Lane {
    owner: usize,
    bytes: usize,
    done: usize,
    data: Vec<u8>,
}

/// The value of the memory after a process's own counts.
const GUARD: [usize; P] = [0xA5; P];

struct Process<'w> {
    rank: usize,
    turns: &'w Turns,
    world: &'w Mutex<World>,
    local_op: i64,
    what: What,
    defects: &'w [Defect],
    /// Owners and slots whose words are still to be cleared.
    late: Vec<(usize, usize)>,
}

impl Process<'_> {
    fn has(&self, defect: Defect) -> bool {
        self.defects.contains(&defect)
    }

    /// One access.
    fn access<A>(&self, access: impl FnOnce(&mut World) -> A) -> A {
        self.turns.turn(self.rank);
        access(&mut self.world.lock().unwrap())
    }

    fn wait(&self, until: impl Fn(&World) -> bool) -> Result<(), Fault> {
        self.turns.wait(self.rank, || until(&self.world.lock().unwrap()))
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (me, first) = (self.rank, if self.has(FromZero) { 0 } else { self.rank });
        (0..P).map(move |i| (first + i) % P).filter(move |&i| i != me)
    }

    /// Sets that blocks of these lengths take.
    fn nops(&self, root: usize, counts: &[usize]) -> usize {
        let queued = |&i: &usize| self.what == Allgather || self.has(OwnBlock) || i != root;
        let most = (0..P).filter(queued).map(|i| counts[i]).max().unwrap();
        let most = if self.has(NarrowTotals) { usize::try_from(most as i8).unwrap_or(0) } else { most };
        most.div_ceil(F * S / W)
    }

    /// The same, but at least one.
    fn at_least_one(&self, nops: usize) -> usize {
        nops.max(usize::from(!self.has(NoSet)))
    }

    fn k(&self) -> usize {
        self.local_op as usize % W
    }

    fn slots(&self) -> std::ops::Range<usize> {
        self.k() * S / W..(self.k() + 1) * S / W
    }

    /// Ints of the counts that a copy takes with it.
    fn ints(&self) -> usize {
        if self.has(WideCopy) { 2 * P } else { P }
    }

    fn open(&self) -> Result<(), Fault> {
        let k = self.k();
        self.wait(|world| world.sets[k].nproc <= 0)?;
        self.access(|world| world.sets[k].nproc = P as i64);
        self.access(|world| world.sets[k].op = self.local_op);
        Ok(())
    }

    fn tell(&self, counts: &[usize; P]) {
        let (k, ints) = (self.k(), self.ints());
        // Behind the root's own array lies something else.
        let memory = [*counts, [7; P]].concat();
        self.access(|world| world.sets[k].counts[..ints].copy_from_slice(&memory[..ints]));
        for i in self.others() {
            self.access(|world| world.sets[k].rootready[i] = true);
        }
    }

    fn hear(&self) -> Result<[usize; 2 * P], Fault> {
        let (k, me, ints) = (self.k(), self.rank, self.ints());
        self.wait(|world| world.sets[k].rootready[me] != self.has(InvertedRootready))?;
        let mut memory = [0; 2 * P];
        memory[P..].copy_from_slice(&GUARD);
        self.access(|world| memory[..ints].copy_from_slice(&world.sets[k].counts[..ints]));
        if self.has(ClearsCounts) {
            self.access(|world| world.sets[k].counts[me] = 0);
        } else {
            self.access(|world| world.sets[k].rootready[me] = false);
        }
        Ok(memory)
    }

    fn fill(&self, slot: usize, lane: &mut Lane) {
        let (owner, from) = (lane.owner, lane.done);
        let size = F.min(lane.bytes - from);
        self.access(|world| world.queue[owner][slot][..size].copy_from_slice(&lane.data[from..from + size]));
        lane.done += size;
        let readers = if self.what == Allgather { self.others().collect() } else { vec![0] };
        for reader in readers {
            self.access(|world| world.ctrl[owner][slot][reader] = size);
        }
    }

    fn drain(&mut self, slot: usize, lane: &mut Lane) -> Result<(), Fault> {
        let (owner, reader) = (lane.owner, self.column());
        self.wait(|world| (world.ctrl[owner][slot][reader] != 0) != self.has(InvertedCtrl))?;
        self.turns.reads(self.rank, owner);
        let fragment = self.access(|world| world.queue[owner][slot][..world.ctrl[owner][slot][reader]].to_vec());
        lane.done += fragment.len();
        lane.data.extend(fragment);
        if self.has(LateClear) {
            self.late.push((owner, slot));
        } else if !self.has(NeverClears) {
            self.access(|world| world.ctrl[owner][slot][reader] = 0);
        }
        Ok(())
    }

    /// The index of this process's word, among the words of a slot.
    fn column(&self) -> usize {
        if self.what == Allgather { self.rank } else { 0 }
    }

    fn leave(&mut self) {
        let k = self.k();
        self.access(|world| world.sets[k].nproc -= 1);
        for (owner, slot) in std::mem::take(&mut self.late) {
            self.access(|world| world.ctrl[owner][slot][self.column()] = 0);
        }
        self.local_op += 1;
    }

    fn call(&mut self, number: usize, (root, counts): Call) -> Result<(), Fault> {
        let me = self.rank;
        let block = |rank: usize| (0..counts[rank]).map(|at| byte(number, rank, at)).collect::<Vec<u8>>();
        let lane = |owner: usize, data| Lane { owner, bytes: counts[owner], done: 0, data };
        let own = || vec![me];
        let others = || self.others().collect();
        let (fills, drains): (Vec<usize>, Vec<usize>) = match (self.what, me == root) {
            (Allgather, _) => (own(), others()),
            (Scatter, true) => (others(), vec![]),
            (Scatter, false) => (vec![], own()),
            (Gather, true) => (vec![], others()),
            (Gather, false) => (own(), vec![]),
        };
        let mut fills: Vec<Lane> = fills.into_iter().map(|owner| lane(owner, block(owner))).collect();
        let mut drains: Vec<Lane> = drains.into_iter().map(|owner| lane(owner, Vec::new())).collect();
        let opens = me == if self.what == Allgather { 0 } else { root };
        let mut told = [[0; P], GUARD].concat();
        let mut nops = if opens || self.what == Allgather {
            self.at_least_one(self.nops(root, &counts))
        } else if self.has(Untold) {
            self.nops(root, &told)
        } else {
            1
        };
        let owes = |lanes: &[Lane]| lanes.iter().any(|lane| lane.done < lane.bytes);
        let leaves = self.has(EndsEarly) || self.has(OwnBlock) && opens;
        let mut first = true;
        while nops > 0 && (!leaves || owes(if fills.is_empty() { &drains } else { &fills })) {
            if opens {
                self.open()?;
            } else {
                let (k, op) = (self.k(), self.local_op);
                self.wait(|world| world.sets[k].op == op)?;
            }
            if first && self.what != Allgather {
                if opens {
                    self.tell(&counts);
                } else if !self.has(Unconsumed) || counts[me] > 0 {
                    told = self.hear()?.to_vec();
                    nops = self.at_least_one(self.nops(root, &told));
                }
            }
            (first, nops) = (false, nops.saturating_sub(1));
            for slot in self.slots() {
                fills.iter_mut().filter(|lane| lane.done < lane.bytes).for_each(|lane| self.fill(slot, lane));
            }
            for slot in self.slots() {
                drains.iter_mut().filter(|lane| lane.done < lane.bytes).try_for_each(|lane| self.drain(slot, lane))?;
            }
            self.leave();
        }
        match () {
            () if told[P..] != GUARD => Err(Fault::Overrun),
            () if drains.iter().any(|lane| lane.data != block(lane.owner)) => Err(Fault::Wrong),
            () => Ok(()),
        }
    }
}

/// Byte `at` of block `rank` in a call.
pub(crate) fn byte(call: usize, rank: usize, at: usize) -> u8 {
    (call * 61 + rank * 29 + at * 3 + 1) as u8
}

/// Runs the calls with these defects.
pub(crate) fn run(what: What, calls: &[Call], schedule: Schedule, defects: &[Defect]) -> Result<Firsts, Fault> {
    let op = match defects {
        _ if defects.contains(&LostMinus) => 1,
        _ if defects.contains(&ZeroedOp) => 0,
        _ => -1,
    };
    let set = Set { op, nproc: 0, counts: [0; 2 * P], rootready: [false; P] };
    let world = Mutex::new(World { sets: [set; W], ctrl: [[[0; P]; S]; P], queue: [[[0; F]; S]; P] });
    Turns::run(schedule, |turns: &Arc<Turns>, rank| {
        let mut process = Process { rank, turns, world: &world, local_op: 0, what, defects, late: Vec::new() };
        // A process with wrong data does not know it: it goes on.
        let mut answer = Ok(());
        for (number, &call) in calls.iter().enumerate() {
            match process.call(number, call) {
                Err(Fault::Deadlock) => return Err(Fault::Deadlock),
                other => answer = answer.and(other),
            }
        }
        answer
    })
}

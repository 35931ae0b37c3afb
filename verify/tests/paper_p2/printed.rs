//! Paper P2's scatterv as its pseudocode prints it, defect by defect: straight-line code per process over
//! plain shared words, with deadlocks found. With no defect it is the mended algorithm.

use std::sync::{Condvar, Mutex};

/// Processes, slots of a queue, sets, bytes of a fragment.
pub(crate) const P: usize = 3;
pub(crate) const S: usize = 2;
pub(crate) const W: usize = 2;
pub(crate) const F: usize = 4;

/// One call: the root, and the bytes of everyone's block.
pub(crate) type Call = (usize, [usize; P]);

/// What the print has wrong (PAPERS.md, P2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Defects {
    /// The waits on `rootready` are inverted.
    pub(crate) inverted_rootready: bool,
    /// The waits on `ctrl` are inverted.
    pub(crate) inverted_ctrl: bool,
    /// The reader clears `counts[rank]`, not `rootready[rank]`.
    pub(crate) clears_counts: bool,
    /// Who is not the root uses `scounts` before it is told them.
    pub(crate) untold: bool,
    /// A process whose block has ended leaves the loop.
    pub(crate) ends_early: bool,
    /// No set is opened for no bytes.
    pub(crate) no_set: bool,
    /// Who receives nothing does not consume `rootready`.
    pub(crate) unconsumed: bool,
    /// `op` starts at 1: the print lost a minus.
    pub(crate) lost_minus: bool,
}

/// A set's words.
#[derive(Clone, Copy, Debug, Default)]
struct Set {
    op: i64,
    nproc: i64,
    counts: [usize; P],
    rootready: [bool; P],
}

#[derive(Debug)]
struct World {
    sets: [Set; W],
    ctrl: [[usize; S]; P],
    queue: [[[u8; F]; S]; P],
    /// Who has looked since the last change, and must wait.
    blocked: [bool; P],
    ended: [bool; P],
    deadlock: bool,
}

/// Nobody can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadlock;

struct Process<'w> {
    rank: usize,
    world: &'w Mutex<World>,
    changed: &'w Condvar,
    local_op: i64,
    defects: Defects,
}

impl Process<'_> {
    fn change(&self, change: impl FnOnce(&mut World)) {
        let mut world = self.world.lock().unwrap();
        change(&mut world);
        world.blocked = [false; P];
        self.changed.notify_all();
    }

    fn wait(&self, until: impl Fn(&World) -> bool) -> Result<(), Deadlock> {
        let mut world = self.world.lock().unwrap();
        while !until(&world) {
            world.blocked[self.rank] = true;
            world.deadlock |= (0..P).all(|rank| world.blocked[rank] || world.ended[rank]);
            self.changed.notify_all();
            if world.deadlock {
                return Err(Deadlock);
            }
            world = self.changed.wait(world).unwrap();
        }
        world.blocked[self.rank] = false;
        Ok(())
    }

    /// Gives all others the time that they need until they wait: the unluckiest schedule for a stale word.
    fn settle(&self) {
        let mut world = self.world.lock().unwrap();
        while !(0..P).all(|rank| rank == self.rank || world.blocked[rank] || world.ended[rank]) {
            world = self.changed.wait(world).unwrap();
        }
    }

    fn sets(&self, root: usize, counts: &[usize; P]) -> usize {
        let most = (0..P).filter(|&i| i != root).map(|i| counts[i]).max().unwrap();
        most.div_ceil(F * S / W).max(usize::from(!self.defects.no_set))
    }

    /// Sets that this process runs.
    fn own_sets(&self, sets: usize, bytes: usize) -> usize {
        if self.defects.ends_early { sets.min(bytes.div_ceil(F * S / W).max(1)) } else { sets }
    }

    fn slots(&self, set: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (k, per_set) = (self.local_op as usize % W, S / W);
        (0..per_set).map(move |i| (k * per_set + i, (set * per_set + i) * F))
    }

    fn leave(&mut self) {
        let k = self.local_op as usize % W;
        self.change(|world| world.sets[k].nproc -= 1);
        self.local_op += 1;
    }

    fn root(&mut self, counts: &[usize; P], block: impl Fn(usize) -> Vec<u8>) -> Result<(), Deadlock> {
        let me = self.rank;
        let sets = self.sets(me, counts);
        for set in 0..self.own_sets(sets, if self.defects.ends_early { counts[me] } else { usize::MAX }) {
            let (k, op) = (self.local_op as usize % W, self.local_op);
            self.settle();
            self.wait(|world| world.sets[k].nproc == 0)?;
            self.change(|world| (world.sets[k].nproc, world.sets[k].op) = (P as i64, op));
            if set == 0 {
                self.settle();
                self.change(|world| {
                    world.sets[k].counts = *counts;
                    (0..P).filter(|&i| i != me).for_each(|i| world.sets[k].rootready[i] = true);
                });
            }
            for (slot, from) in self.slots(set) {
                for i in (0..P).filter(|&i| i != me && from < counts[i]) {
                    let size = F.min(counts[i] - from);
                    self.change(|world| {
                        world.queue[i][slot][..size].copy_from_slice(&block(i)[from..from + size]);
                        world.ctrl[i][slot] = size;
                    });
                }
            }
            self.leave();
        }
        Ok(())
    }

    fn other(&mut self, root: usize, rcount: usize) -> Result<Vec<u8>, Deadlock> {
        let (me, defects) = (self.rank, self.defects);
        let mut block = Vec::new();
        let (mut set, mut sets) = (0, if defects.untold { self.sets(root, &[0; P]) } else { 1 });
        while set < self.own_sets(sets, rcount) {
            let (k, op) = (self.local_op as usize % W, self.local_op);
            self.wait(|world| world.sets[k].op == op)?;
            if set == 0 && !(defects.unconsumed && rcount == 0) {
                self.wait(|world| world.sets[k].rootready[me] != defects.inverted_rootready)?;
                let counts = self.world.lock().unwrap().sets[k].counts;
                self.change(|world| {
                    if defects.clears_counts {
                        world.sets[k].counts[me] = 0;
                    } else {
                        world.sets[k].rootready[me] = false;
                    }
                });
                if !defects.untold {
                    sets = self.sets(root, &counts);
                }
            }
            for (slot, _) in self.slots(set).filter(|&(_, from)| from < rcount) {
                self.wait(|world| (world.ctrl[me][slot] != 0) != defects.inverted_ctrl)?;
                self.change(|world| {
                    let size = std::mem::take(&mut world.ctrl[me][slot]);
                    block.extend_from_slice(&world.queue[me][slot][..size]);
                });
            }
            self.leave();
            set += 1;
        }
        Ok(block)
    }
}

/// Byte `at` of block `rank` in a call.
pub(crate) fn byte(call: usize, rank: usize, at: usize) -> u8 {
    (call * 61 + rank * 29 + at * 3 + 1) as u8
}

/// Runs the calls; do all ranks receive the right blocks?
pub(crate) fn run(calls: &[Call], defects: Defects) -> Result<bool, Deadlock> {
    let set = Set { op: if defects.lost_minus { 1 } else { -1 }, ..Set::default() };
    let world = Mutex::new(World {
        sets: [set; W],
        ctrl: [[0; S]; P],
        queue: [[[0; F]; S]; P],
        blocked: [false; P],
        ended: [false; P],
        deadlock: false,
    });
    let changed = Condvar::new();
    let body = |rank: usize| -> Result<bool, Deadlock> {
        let mut process = Process { rank, world: &world, changed: &changed, local_op: 0, defects };
        let mut right = true;
        for (number, &(root, counts)) in calls.iter().enumerate() {
            let block = |rank| (0..counts[rank]).map(|at| byte(number, rank, at)).collect::<Vec<u8>>();
            if rank == root {
                process.root(&counts, block)?;
            } else {
                right &= process.other(root, counts[rank])? == block(rank);
            }
        }
        Ok(right)
    };
    std::thread::scope(|scope| {
        let body = &body;
        let (world, changed) = (&world, &changed);
        let run = move |rank: usize| {
            let answer = body(rank);
            let mut world = world.lock().unwrap();
            world.ended[rank] = true;
            // Who still waits has looked since the last change.
            let all = (0..P).all(|rank| world.blocked[rank] || world.ended[rank]);
            world.deadlock |= all && !world.ended.iter().all(|&ended| ended);
            changed.notify_all();
            answer
        };
        let threads: Vec<_> = (0..P).map(|rank| scope.spawn(move || run(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).try_fold(true, |all, one| Ok(all & one?))
    })
}

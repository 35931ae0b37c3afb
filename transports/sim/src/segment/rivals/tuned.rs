//! Open MPI's `coll/tuned`, over [messages](super::messages): broadcast by a binomial tree, in segments; allreduce by recursive
//! doubling below 10,000 bytes, else by a ring (`ompi/mca/coll/base`, coll_base_bcast.c and coll_base_allreduce.c); barrier by
//! dissemination (Bruck's, coll_base_barrier.c).

use super::Done;
use super::messages::{self, Messages};
use super::process::Process;
use std::ops::Range;
use unisono_kernel::Rank;
use unisono_kernel::op::Op;
use unisono_kernel::region::{Extent, Params};

/// The eager limit of `btl/sm`.
const EAGER: usize = 4096;

/// Bytes of a segment of a broadcast.
const SEGMENT: usize = 32 << 10;

/// Allreduces of so many bytes go by a ring.
const RING: usize = 10_000;

/// Bytes of an element.
const ELEMENT: usize = 8;

pub(super) fn params(ranks: u32, bytes: u64) -> Params {
    Params {
        lines: 2,
        queue_slots: 1,
        queue_fragment: bytes.max(1).next_multiple_of(64),
        cico: Some(messages::shape(EAGER as u64)),
        ..Params::new(ranks)
    }
}

#[derive(Debug)]
pub(super) struct Tuned {
    messages: Messages,
}

impl Tuned {
    pub(super) fn new(me: &Process) -> Self {
        Self { messages: Messages::new(me, EAGER) }
    }

    /// This rank's buffer, or a range of it.
    fn buffer(me: &Process, range: &Range<usize>) -> Extent {
        me.layout.slot(me.rank, 0).part(range.start as u64, range.len() as u64)
    }

    pub(super) fn barrier(&mut self, me: &Process) -> Done {
        let (rank, size) = (me.rank, me.size());
        for round in 0..me.layout.rounds() {
            let distance = 1 << round;
            self.messages.send(me, (rank + distance) % size, &[], 0..0)?;
            self.messages.receive(me, (rank + size - distance) % size, &mut [], 0..0)?;
        }
        Ok(())
    }

    pub(super) fn bcast(&mut self, me: &Process, bytes: &mut [u8], root: Rank) -> Done {
        let (size, all) = (me.size(), bytes.len());
        let virtual_rank = (me.rank + size - root) % size;
        let real = |virtual_rank: u32| (virtual_rank + root) % size;
        // The lowest bit that is set says who the parent is, and those below it who the children are.
        let low = if virtual_rank == 0 { me.layout.rounds() } else { virtual_rank.trailing_zeros() };
        let parent = (virtual_rank != 0).then(|| real(virtual_rank & (virtual_rank - 1)));
        let children: Vec<Rank> =
            (0..low).rev().map(|bit| virtual_rank | 1 << bit).filter(|&child| child < size).map(real).collect();
        if parent.is_none() {
            me.has(Self::buffer(me, &(0..all)), bytes);
        }
        let mut start = 0;
        loop {
            let range = start..all.min(start + SEGMENT);
            if let Some(parent) = parent {
                self.messages.receive(me, parent, &mut bytes[range.clone()], range.clone())?;
                me.has(Self::buffer(me, &range), &bytes[range.clone()]);
            }
            for &child in &children {
                self.messages.send(me, child, bytes, range.clone())?;
            }
            start = range.end;
            if start == all {
                break;
            }
        }
        children.iter().try_for_each(|&child| self.messages.sent_all(me, child, all))
    }

    pub(super) fn allreduce(&mut self, me: &Process, bytes: &mut [u8], op: &Op) -> Done {
        me.has(Self::buffer(me, &(0..bytes.len())), bytes);
        if bytes.len() < RING || bytes.len() / ELEMENT < me.size() as usize {
            self.doubling(me, bytes, op)
        } else {
            self.ring(me, bytes, op)
        }
    }

    /// Both partners send what they have folded so far, and fold what they get.
    fn meet(&mut self, me: &Process, peer: Rank, bytes: &mut [u8], op: &Op) -> Done {
        let all = 0..bytes.len();
        let mut theirs = vec![0; bytes.len()];
        self.messages.send(me, peer, bytes, all.clone())?;
        self.messages.receive(me, peer, &mut theirs, all.clone())?;
        self.messages.sent_all(me, peer, bytes.len())?;
        me.fold_private(&theirs, bytes, op);
        me.has(Self::buffer(me, &all), bytes);
        Ok(())
    }

    fn doubling(&mut self, me: &Process, bytes: &mut [u8], op: &Op) -> Done {
        let (rank, size, all) = (me.rank, me.size(), 0..bytes.len());
        let power = if size.is_power_of_two() { size } else { size.next_power_of_two() / 2 };
        let beyond = size - power;
        // Of the first 2·`beyond` ranks the even ones give their operands to the odd ones, and get the result at the end.
        let place = if rank >= 2 * beyond {
            rank - beyond
        } else if rank.is_multiple_of(2) {
            self.messages.send(me, rank + 1, bytes, all.clone())?;
            self.messages.sent_all(me, rank + 1, bytes.len())?;
            return self.messages.receive(me, rank + 1, bytes, all);
        } else {
            let mut theirs = vec![0; bytes.len()];
            self.messages.receive(me, rank - 1, &mut theirs, all.clone())?;
            me.fold_private(&theirs, bytes, op);
            me.has(Self::buffer(me, &all), bytes);
            rank / 2
        };
        for bit in 0..power.trailing_zeros() {
            let peer = place ^ 1 << bit;
            let peer = if peer < beyond { 2 * peer + 1 } else { peer + beyond };
            self.meet(me, peer, bytes, op)?;
        }
        if rank < 2 * beyond {
            self.messages.send(me, rank - 1, bytes, all)?;
            self.messages.sent_all(me, rank - 1, bytes.len())?;
        }
        Ok(())
    }

    /// In p − 1 steps each block is folded on its way round, in p − 1 further ones it goes round once more.
    fn ring(&mut self, me: &Process, bytes: &mut [u8], op: &Op) -> Done {
        let (rank, size) = (me.rank as usize, me.size() as usize);
        let (next, before) = (((rank + 1) % size) as Rank, ((rank + size - 1) % size) as Rank);
        let elements = bytes.len() / ELEMENT;
        let begin = |block: usize| elements * block / size * ELEMENT;
        let block = |block: usize| begin(block)..begin(block + 1);
        for step in 0..2 * (size - 1) {
            let (gives, gets) = ((rank + 2 * size - step) % size, (rank + 2 * size - step - 1) % size);
            let (gives, gets) = (block(gives), block(gets));
            self.messages.send(me, next, bytes, gives.clone())?;
            if step < size - 1 {
                let mut theirs = vec![0; gets.len()];
                self.messages.receive(me, before, &mut theirs, gets.clone())?;
                me.fold_private(&theirs, &mut bytes[gets.clone()], op);
            } else {
                self.messages.receive(me, before, &mut bytes[gets.clone()], gets.clone())?;
            }
            self.messages.sent_all(me, next, gives.len())?;
            me.has(Self::buffer(me, &gets), &bytes[gets.clone()]);
        }
        Ok(())
    }
}

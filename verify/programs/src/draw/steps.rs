//! Draws steps: which calls are in flight together, and which rank makes a step earlier or later than others.

use super::{Budget, Draw, Open, Random};
use crate::legal::REQUESTS;
use crate::program::{Name, Step, Verb};

impl Draw {
    pub(super) fn make(&mut self) {
        let (comm, parent) = (self.groups.len(), self.comm());
        self.leave(parent);
        let size = self.groups[parent].len();
        let split = self.random.chance(50);
        let (name, numbers) = if split {
            let colors = 1 + self.random.below(3);
            let color = |random: &mut Random| random.below(colors + 1) as i64 - 1;
            let mut numbers = Vec::new();
            for rank in 0..size {
                // The first rank has the first color, so that the communicator has a member.
                let color = if rank == 0 { 0 } else { color(&mut self.random) };
                numbers.push(if color < 0 { -1 } else { comm as i64 + color });
                numbers.push(self.random.below(5) as i64 - 2);
            }
            (Name::Split, numbers)
        } else {
            (Name::Dup, vec![comm as i64])
        };
        let call = self.plain(parent, name, numbers);
        let made = self.program.calls[call].makes();
        for _ in 0..made.len() {
            let segment = if self.budget.segments { self.segment() } else { self.unchosen() };
            self.program.segments.push(segment);
        }
        // Colors that no rank has leave no gaps.
        let numbers = &mut self.program.calls[call].numbers;
        if split {
            for color in numbers.iter_mut().step_by(2).filter(|color| **color >= 0) {
                let place = made.iter().position(|&comm| comm as i64 == *color).unwrap_or(0);
                *color = (comm + place) as i64;
            }
        }
        self.groups = self.program.groups();
        self.push(Verb::Run, call as u64);
    }

    pub(super) fn free(&mut self) {
        let comm = self.comm();
        if comm > 0 {
            self.leave(comm);
            // Nothing is started on a freed communicator.
            let starts = |draw: &Self, open: &Open| draw.program.calls[open.call].comm == comm && open.starts > Some(0);
            while let Some(at) = self.open.iter().position(|open| starts(self, open)) {
                self.complete(at, true);
            }
            let call = self.plain(comm, Name::Free, Vec::new());
            self.push(Verb::Run, call as u64);
            self.freed.push(comm);
        }
    }

    /// Rooted calls of one root, while a rank sleeps: ranks that only send, or only receive, run ahead.
    pub(super) fn ahead(&mut self) -> usize {
        let comm = self.comm();
        let root = self.random.below(self.groups[comm].len() as u64) as u32;
        let calls = 2 + self.random.below(if self.budget.tiny { 2 } else { 7 });
        if self.budget.pause > 0 {
            self.pause();
        }
        for _ in 0..calls {
            let call = self.call(comm, Some(root));
            self.push(Verb::Run, call as u64);
        }
        calls as usize
    }

    pub(super) fn enter(&mut self, call: usize) {
        let comm = self.program.calls[call].comm;
        self.settle();
        let requests = self.open.iter().filter(|open| self.program.calls[open.call].comm == comm).count();
        let full = requests + 1 >= REQUESTS;
        match self.random.below(10) {
            0..=4 => self.push(Verb::Run, call as u64),
            _ if full || !self.budget.requests => self.push(Verb::Run, call as u64),
            5..=7 => {
                self.push(Verb::Start, call as u64);
                self.begin(Open { call, starts: None, active: true });
            }
            _ => {
                self.push(Verb::Init, call as u64);
                let starts = Some(1 + self.random.below(4));
                self.begin(Open { call, starts, active: false });
            }
        }
    }

    fn begin(&mut self, open: Open) {
        let comm = self.program.calls[open.call].comm;
        for &rank in &self.groups[comm] {
            let scopes = &mut self.scopes[rank as usize];
            if !scopes.contains(&comm) {
                scopes.push(comm);
            }
        }
        self.open.push(open);
    }

    /// Draws a step for a call that is in flight.
    pub(super) fn go_on(&mut self) {
        if self.open.is_empty() {
            return;
        }
        if self.random.chance(10) {
            return self.wait_all();
        }
        let at = self.random.below(self.open.len() as u64) as usize;
        let open = &mut self.open[at];
        if !open.active {
            (open.active, open.starts) = (true, open.starts.map(|starts| starts.saturating_sub(1)));
            let call = open.call as u64;
            return self.push(Verb::Start, call);
        }
        if self.random.chance(40) {
            let (call, tests) = (self.open[at].call as u64, 1 + self.random.below(3));
            (0..tests).for_each(|_| self.push(Verb::Test, call));
            return;
        }
        self.complete(at, false);
    }

    /// Completes an active call; and all of its further starts, if nothing may be left.
    fn complete(&mut self, at: usize, all: bool) {
        let Open { call, starts, active } = self.open[at];
        let verb = if self.random.chance(40) { Verb::Poll } else { Verb::Wait };
        if active {
            self.push(verb, call as u64);
        }
        let mut left = starts;
        while let (true, Some(more @ 1..)) = (all, left) {
            self.push(Verb::Start, call as u64);
            self.push(verb, call as u64);
            left = Some(more - 1);
        }
        match left {
            Some(1..) => self.open[at] = Open { call, starts: left, active: false },
            Some(0) => {
                self.push(Verb::Free, call as u64);
                self.open.remove(at);
            }
            None => {
                self.open.remove(at);
            }
        }
    }

    /// Each rank waits for all of its calls in flight.
    fn wait_all(&mut self) {
        let active: Vec<_> = self.open.iter().filter(|open| open.active).map(|open| open.call).collect();
        for rank in 0..self.program.ranks {
            let is_member = |call: &&usize| self.groups[self.program.calls[**call].comm].contains(&rank);
            let mut numbers: Vec<_> = active.iter().filter(is_member).map(|&call| call as u64).collect();
            if !numbers.is_empty() {
                numbers.sort_by_key(|_| self.random.next());
                self.program.steps.push(Step { who: Some(rank), verb: Verb::WaitAll, numbers });
            }
        }
        let ended: Vec<_> = self.open.iter().filter(|open| open.active && open.starts == Some(0)).copied().collect();
        for open in ended {
            self.push(Verb::Free, open.call as u64);
        }
        self.open.retain(|open| !open.active || open.starts.is_some_and(|starts| starts > 0));
        self.open.iter_mut().for_each(|open| open.active = false);
    }

    /// Completes all requests.
    pub(super) fn finish(&mut self) {
        while !self.open.is_empty() {
            self.complete(0, true);
        }
    }

    /// Closes the scopes that are no longer needed, the innermost first, as every rank does at its next step.
    fn settle(&mut self) {
        let comms: Vec<_> = self.open.iter().map(|open| self.program.calls[open.call].comm).collect();
        for scopes in &mut self.scopes {
            while scopes.pop_if(|inner| !comms.contains(inner)).is_some() {}
        }
    }

    /// Closes a communicator's scopes before others are made from it, or it is freed; where its requests may go on, not always.
    fn leave(&mut self, comm: usize) {
        if !self.budget.handles || self.random.chance(40) {
            self.close(comm);
        }
    }

    /// Closes a communicator's scopes, which needs that those that were opened after them are closed.
    fn close(&mut self, comm: usize) {
        loop {
            self.settle();
            let inside = |scopes: &Vec<usize>| Some(scopes[scopes.iter().position(|&open| open == comm)?..].to_vec());
            let Some(inside) = self.scopes.iter().find_map(inside) else { break };
            let is_inside = |open: &Open| inside.contains(&self.program.calls[open.call].comm);
            let Some(at) = self.open.iter().position(is_inside) else { break };
            self.complete(at, true);
        }
    }

    /// Moves one rank's part of a step, if the program stays legal.
    pub(super) fn shift(&mut self) {
        if self.program.steps.is_empty() {
            return;
        }
        let from = self.random.below(self.program.steps.len() as u64) as usize;
        let mut step = self.program.steps[from].clone();
        let mut moved = self.program.clone();
        moved.steps.remove(from);
        let mut from = from;
        if step.who.is_none() {
            let ranks: Vec<_> = (0..moved.ranks).filter(|&rank| moved.is_for(&self.groups, &step, rank)).collect();
            let who = *self.random.of(&ranks);
            for rank in ranks.into_iter().filter(|&rank| rank != who) {
                moved.steps.insert(from, Step { who: Some(rank), ..step.clone() });
                from += 1;
            }
            step.who = Some(who);
        }
        let far = self.random.below(16) as usize;
        let to = if self.random.chance(65) { from + 1 + far } else { from.saturating_sub(1 + far) };
        moved.steps.insert(to.min(moved.steps.len()), step);
        let Budget { moving, handles, .. } = self.budget;
        let fits = if moving { moved.check().is_ok() } else { moved.ends_unmoved() };
        if fits && (handles || moved.fits_scopes().is_ok()) {
            self.program = moved;
        }
    }
}

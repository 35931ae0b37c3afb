//! The values that a process might have seen instead: with each of them it must make the same accesses.

use super::super::access::{Access, Word};
use super::super::process::{Model, Next, Position};
use super::{Done, Run};
use std::collections::BTreeMap;
use std::time::Instant;
use unisono_kernel::machine::poll::Until;

/// With at most so many processes, looks that follow one another see all combinations of values,
const ALL_COMBINATIONS: usize = 2;
/// of a process that has at most so many.
const MOST_COMBINATIONS: u64 = 1 << 9;

/// The values of flags, by offset, that a process knows in addition to those of the run.
type Known = BTreeMap<u64, u64>;
/// Which values the looks see that follow one another here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Eye {
    Any,
    Least,
    Last,
}
/// A place at which a process may be.
type Place = (Position, Eye);
/// The values that it knows there at least.
type Places = BTreeMap<Place, Known>;

fn merge(places: &mut Places, place: Place, known: Known) {
    match places.get_mut(&place) {
        None => {
            places.insert(place, known);
        }
        Some(own) => {
            own.retain(|word, _| known.contains_key(word));
            own.iter_mut().for_each(|(word, value)| *value = (*value).min(known[word]));
        }
    }
}

/// A value that is too small for a process that waits for this.
const fn little(until: Option<Until>) -> u64 {
    match until {
        Some(Until::Equals(value)) => !value,
        _ => 0,
    }
}

impl<M: Model> Run<'_, M> {
    /// Runs each process alone, with all values that it might have seen instead.
    pub(super) fn alternatives(&mut self) -> Result<(), String> {
        for rank in self.ranks() {
            let mut trace = std::mem::take(&mut self.traces[rank as usize]);
            let values = trace.iter().map(|done| 1 + done.later.len() as u64);
            let combinations = values.fold(1, u64::saturating_mul);
            self.all_combinations = self.clocks.len() <= ALL_COMBINATIONS && combinations <= MOST_COMBINATIONS;
            if !self.all_combinations {
                self.forget_what_changes_nothing(&mut trace);
            }
            let result = self.alternatives_of(&trace);
            self.traces[rank as usize] = trace;
            result.map_err(|fault| format!("rank {rank}, had it seen something else: {fault}"))?;
        }
        Ok(())
    }

    /// Drops the later values of looks that follow one another, if seeing all of them, and nothing else
    /// out of turn, leads to the same accesses and back to the same place.
    fn forget_what_changes_nothing(&mut self, trace: &mut [Done]) {
        let mut begin = 0;
        while begin < trace.len() {
            let looks = trace[begin..].iter().take_while(|done| done.until.is_some()).count();
            if looks > 0 && self.changes_nothing(&trace[begin..], looks) {
                trace[begin..begin + looks].iter_mut().for_each(|look| look.later.clear());
            }
            begin += looks.max(1);
        }
    }

    fn changes_nothing(&mut self, trace: &[Done], looks: usize) -> bool {
        let mut position = trace[0].from;
        for (at, done) in trace.iter().enumerate() {
            if at >= looks && position == done.from {
                return true;
            }
            if !matches!(self.processes.node(position).next, Next::Access(access) if access == done.access) {
                return false;
            }
            let last = done.later.iter().max().filter(|_| at < looks);
            position = self.processes.step(position, *last.unwrap_or(&done.answer));
        }
        matches!(self.processes.node(position).next, Next::Finished)
    }

    fn alternatives_of(&mut self, trace: &[Done]) -> Result<(), String> {
        let Some(first) = trace.first() else { return Ok(()) };
        let mut places = Places::from([((first.from, Eye::Any), Known::new())]);
        for at in 0..trace.len() {
            let mut behind = Places::new();
            if !self.all_combinations {
                places = self.alike(trace, at, places);
            }
            for (place, known) in places {
                self.outcome.states += 1;
                let late = || self.limits.until.is_some_and(|until| Instant::now() >= until);
                if self.outcome.states >= self.limits.states || self.outcome.states.is_multiple_of(1024) && late() {
                    self.given_up = true;
                    return Err("given up".into());
                }
                self.alternatives_at(&trace[..=at], place, known, &mut behind)?;
            }
            places = behind;
        }
        let finished = |(position, _): &Place| matches!(self.processes.node(*position).next, Next::Finished);
        if places.keys().all(finished) { Ok(()) } else { Err("it makes accesses that it did not make".into()) }
    }

    /// Of the places before the first of some looks, keeps one of all that would wait in the same way: what a machine
    /// keeps from earlier looks shows in the events for which it waits.
    fn alike(&mut self, trace: &[Done], at: usize, places: Places) -> Places {
        let look = |at: usize| trace.get(at).is_some_and(|done| done.until.is_some());
        let (true, Access::Load(word)) = (look(at) && !at.checked_sub(1).is_some_and(look), trace[at].access) else {
            return places;
        };
        let (mut first, mut alike) = (BTreeMap::new(), Places::new());
        for ((position, eye), known) in places {
            let mut place = position;
            if matches!(self.processes.node(position).next, Next::Access(access) if access == trace[at].access) {
                let waiting = self.processes.step(position, little(trace[at].until));
                if self.waits(waiting, word) == trace[at].until {
                    place = *first.entry(waiting).or_insert(position);
                }
            }
            merge(&mut alike, (place, eye), known);
        }
        alike
    }

    /// The places that a process at `position` may reach by the last access of this trace.
    fn alternatives_at(
        &mut self,
        trace: &[Done],
        (position, eye): Place,
        known: Known,
        behind: &mut Places,
    ) -> Result<(), String> {
        let Some((done, before)) = trace.split_last() else { return Ok(()) };
        let same = matches!(self.processes.node(position).next, Next::Access(access) if access == done.access);
        let (Some(until), Access::Load(word)) = (done.until, done.access) else {
            if !same {
                return Err("it makes another access".into());
            }
            let to = self.go(position, done.answer)?;
            merge(behind, (to, Eye::Any), known.clone());
            if let Access::Add(..) = done.access {
                // Additions commute: the answer may be that after any of them.
                for answer in [0, !done.answer] {
                    let to = self.go(position, answer)?;
                    merge(behind, (to, Eye::Any), known.clone());
                }
            }
            return Ok(());
        };
        if !same {
            let enough = |bound| known.get(&word.offset).is_some_and(|seen| *seen >= bound);
            if !matches!(until, Until::AtLeast(bound) if enough(bound)) {
                return Err("it leaves out a look whose outcome it can't know".into());
            }
            merge(behind, (position, eye), known);
            return Ok(());
        }
        let mut looking = self.too_little(before, (position, &known), word, until)?;
        merge(&mut looking, (position, eye), known);
        for (place, known) in looking {
            self.see(done, place, &known, behind)?;
        }
        Ok(())
    }

    /// The place at which a process looks at `word` again after it saw too small a value at `position`: it must wait
    /// for the same value, whichever small value it saw, and a poll in between must change nothing.
    fn too_little(
        &mut self,
        before: &[Done],
        (position, known): (Position, &Known),
        word: Word,
        until: Until,
    ) -> Result<Places, String> {
        let stores = self.words.get(&word.offset).map_or(&[][..], |history| &history.stores);
        let little: Vec<u64> = match until {
            Until::AtLeast(bound) => {
                let earlier = stores.iter().map(|(value, ..)| *value).filter(|value| *value < bound);
                earlier.chain([0, bound - 1]).collect()
            }
            Until::Equals(value) => vec![!value, value + 1],
            Until::Nonzero => vec![0],
        };
        let waiting = self.processes.step(position, little[0]);
        if self.waits(waiting, word) != Some(until) {
            return Err("it goes on before the awaited event".into());
        }
        let again = self.look_again(before, (waiting, known), word)?;
        for value in little {
            for place in again.keys().map(|place| place.0).chain([position]) {
                if self.processes.step(place, value) != waiting {
                    return Err("a poll without the awaited event changes something".into());
                }
            }
        }
        Ok(again)
    }

    /// The places before the next look at `word` of a process that waits for it: a poll may repeat the
    /// looks that came right before.
    fn look_again(
        &mut self,
        before: &[Done],
        (waiting, known): (Position, &Known),
        word: Word,
    ) -> Result<Places, String> {
        let (mut places, mut found) = (Places::from([((waiting, Eye::Any), known.clone())]), Places::new());
        while let Some((place, known)) = places.pop_first() {
            let Next::Access(next) = self.processes.node(place.0).next else {
                return Err("a wait leads nowhere".into());
            };
            if next == Access::Load(word) {
                merge(&mut found, place, known);
                continue;
            }
            let mut looks = before.iter().rev().take_while(|done| done.until.is_some());
            let Some(look) = looks.find(|done| done.access == next) else {
                return Err("a poll without the awaited event does more than look".into());
            };
            self.see(look, place, &known, &mut places)?;
        }
        Ok(found)
    }

    /// The places to which a look leads, with the value that it saw or any later one.
    fn see(&mut self, look: &Done, (position, eye): Place, known: &Known, behind: &mut Places) -> Result<(), String> {
        let Access::Load(word) = look.access else { return Ok(()) };
        let all = self.all_combinations;
        if eye != Eye::Last || look.later.is_empty() {
            let to = self.go(position, look.answer)?;
            if look.until.is_some() && self.waits(to, word) == look.until {
                return Err("an idle poll in spite of the awaited event".into());
            }
            let eye = if all || look.later.is_empty() { eye } else { Eye::Least };
            merge(behind, (to, eye), known.clone());
        }
        let last = look.later.iter().max();
        for &value in look.later.iter().filter(|value| all || eye != Eye::Least && Some(*value) == last) {
            let to = self.go(position, value)?;
            let mut known = known.clone();
            known.insert(word.offset, value);
            merge(behind, (to, if all { eye } else { Eye::Last }), known);
        }
        Ok(())
    }

    fn go(&mut self, position: Position, answer: u64) -> Result<Position, String> {
        let to = self.processes.step(position, answer);
        match &self.processes.node(to).next {
            Next::Failed(fault) => Err(fault.clone()),
            _ => Ok(to),
        }
    }
}

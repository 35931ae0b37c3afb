//! Shrinks a program that fails to a short one that fails in the same way.
//!
//! All ways to make a program smaller are tried, from coarse to fine, again and again: fewer calls, fewer ranks, fewer
//! steps, blocking calls, smaller counts, plain datatypes and algorithms, counters from zero. A change after which the
//! program is not [legal](Program::check), or no longer fails, is undone.

use crate::judge::BEREFT;
use crate::program::{Name, Op, Program, Segment, Step, Verb};
use std::collections::BTreeSet;
use std::time::Instant;

/// The smallest program found that fails as `program` does. `fails` is asked of legal programs alone, of those that need no
/// moving if `program` needs none, and that fit scopes if it does; `None`: the time is up.
pub fn shrink(program: Program, mut fails: impl FnMut(&Program) -> Option<bool>) -> Program {
    let (unmoved, scopes) = (program.ends_unmoved(), program.fits_scopes().is_ok());
    let legal = |program: &Program| {
        program.check().is_ok() && (!unmoved || program.ends_unmoved()) && (!scopes || program.fits_scopes().is_ok())
    };
    let mut best = program;
    loop {
        let before = size(&best);
        for pass in [calls, ranks, steps, blocking, numbers, plain] {
            let mut at = 0;
            // A pass has so many attempts; what it took away is not there for the next one, so the place stays.
            while let Some(attempt) = pass(&best, at) {
                let smaller = attempt.filter(|smaller| size(smaller) < size(&best) && legal(smaller));
                match smaller.as_ref().map(&mut fails) {
                    Some(None) => return best,
                    Some(Some(true)) => best = smaller.unwrap_or(best),
                    _ => at += 1,
                }
            }
        }
        if size(&best) >= before {
            return best;
        }
    }
}

/// [`shrink`] of a program that was run and failed with `words`: `run` is asked up to `tries` times for each attempt, until
/// `until`. Returns the words of the last failure, too.
pub fn shrink_by_running(
    program: Program,
    words: String,
    (tries, until): (u32, Instant),
    mut run: impl FnMut(&Program) -> Result<(), String>,
) -> (Program, String) {
    let (wanted, mut last) = (kinds(&words), words);
    let short = shrink(program, |program| {
        for _ in 0..tries {
            if Instant::now() > until {
                return None;
            }
            if let Err(words) = run(program)
                && !kinds(&words).is_disjoint(&wanted)
            {
                last = words;
                return Some(true);
            }
        }
        Some(false)
    });
    (short, last)
}

/// The kind of a failure, without ranks and numbers, so that one fault is not taken for another one.
fn kinds(words: &str) -> BTreeSet<String> {
    let kind = |line: &str| {
        let what = line.rsplit(": ").next().unwrap_or(line);
        what.chars().filter(|letter| !letter.is_ascii_digit()).collect::<String>()
    };
    let mut kinds: BTreeSet<_> = words.lines().map(kind).collect();
    // A rank that was told of a death reports it because of another rank's fault.
    if kinds.len() > 1 {
        kinds.remove(BEREFT);
    }
    kinds
}

/// The parts that shrink: ranks, calls, steps, then their arguments.
fn size(program: &Program) -> (u32, usize, usize, u64) {
    let of_call = |call: &crate::Call| {
        let plain = u64::from(call.algorithm == "auto") + u64::from(!call.in_place) + u64::from(call.order == 0);
        let numbers = if call.name.manages() { &[] } else { call.numbers.as_slice() };
        let counts: u64 = numbers.iter().map(|&count| 4 * count as u64 * call.element).sum();
        counts + 10 * (3 - plain) + 10 * call.shapes.len() as u64 + u64::from(call.root) + call.element
    };
    let of_step = |step: &Step| match step.verb {
        Verb::Sleep | Verb::Spin => step.numbers[0],
        Verb::Run => 0,
        _ => 1,
    };
    let of_segment = |segment: &Segment| {
        segment.base.iter().filter(|count| **count > 0).count() as u64 + u64::from(segment.papers.is_some())
    };
    let calls: u64 = program.calls.iter().map(of_call).sum();
    let steps: u64 = program.steps.iter().map(of_step).sum();
    let segments: u64 = program.segments.iter().map(of_segment).sum();
    (program.ranks, program.calls.len(), program.steps.len(), calls + steps + segments)
}

/// The stretch of `all` things that attempt `at` takes away: halves, quarters, ... , single ones. `None`: no attempt is left.
fn stretch(all: usize, at: usize) -> Option<std::ops::Range<usize>> {
    let (mut parts, mut at) = (2, at);
    loop {
        let length = all.div_ceil(parts).max(1);
        let count = all.div_ceil(length);
        if at < count {
            return Some(at * length..((at + 1) * length).min(all));
        }
        if length == 1 {
            return None;
        }
        (at, parts) = (at - count, parts * 2);
    }
}

fn calls(program: &Program, at: usize) -> Option<Option<Program>> {
    let dropped = stretch(program.calls.len(), at)?.collect();
    Some(Some(without_calls(program, dropped)))
}

fn ranks(program: &Program, at: usize) -> Option<Option<Program>> {
    let rank = program.ranks.checked_sub(at as u32 + 1)?;
    Some((program.ranks > 1).then(|| without_rank(program, rank)))
}

fn steps(program: &Program, at: usize) -> Option<Option<Program>> {
    let dropped = stretch(program.steps.len(), at)?;
    let mut smaller = program.clone();
    smaller.steps.drain(dropped);
    Some(Some(smaller))
}

/// A call that is blocking everywhere, or a persistent one that is nonblocking, at the place of its first step; or the same
/// step of single ranks, made by all at once; or a start fewer.
fn blocking(program: &Program, at: usize) -> Option<Option<Program>> {
    let (call, how) = (at / 4, at % 4);
    let number = program.calls.get(call).map(|_| call as u64)?;
    let is_of = |step: &Step| step.verb.calls() && step.numbers == [number];
    let first = program.steps.iter().position(is_of);
    let Some(first) = first else { return Some(None) };
    let step = |verb| Step { who: None, verb, numbers: vec![number] };
    let mut smaller = program.clone();
    let keep = |step: &Step| !is_of(step);
    match how {
        0 | 1 => {
            smaller.steps.retain(keep);
            smaller.steps.iter_mut().for_each(|step| {
                if step.verb == Verb::WaitAll {
                    step.numbers.retain(|&call| call != number);
                }
            });
            smaller.steps.retain(|step| !step.numbers.is_empty());
            let first = first.min(smaller.steps.len());
            let new = if how == 0 { vec![step(Verb::Run)] } else { vec![step(Verb::Start), step(Verb::Wait)] };
            smaller.steps.splice(first..first, new);
        }
        2 => {
            // All ranks start together.
            let start = program.steps.iter().position(|step| is_of(step) && step.verb == Verb::Start)?;
            smaller.steps.retain(|step| !(is_of(step) && step.verb == Verb::Start));
            smaller.steps.insert(start.min(smaller.steps.len()), step(Verb::Start));
        }
        _ => {
            // One round fewer of a persistent call: the last start of each rank, and the wait for it.
            for verbs in [[Verb::Start, Verb::Start], [Verb::Wait, Verb::Poll]] {
                for rank in 0..program.ranks {
                    let mine = |step: &Step| is_of(step) && verbs.contains(&step.verb) && step.who == Some(rank);
                    if let Some(last) = smaller.steps.iter().rposition(mine) {
                        smaller.steps.remove(last);
                    }
                }
                let all = |step: &Step| is_of(step) && verbs.contains(&step.verb) && step.who.is_none();
                if let Some(last) = smaller.steps.iter().rposition(all) {
                    smaller.steps.remove(last);
                }
            }
        }
    }
    Some(Some(smaller))
}

/// Smaller counts and pauses.
fn numbers(program: &Program, at: usize) -> Option<Option<Program>> {
    const TO: [fn(i64) -> i64; 6] = [|_| 0, |n| n / 2, |n| n - n / 4, |n| n - 8, |n| n - 1, |n| n.min(1)];
    let (mut place, how) = (at / TO.len(), TO[at % TO.len()]);
    let mut smaller = program.clone();
    for call in smaller.calls.iter_mut().filter(|call| !call.name.manages()) {
        if let Some(count) = call.numbers.get_mut(place) {
            *count = how(*count).max(0);
            let value = *count;
            let size = call.numbers.len().isqrt();
            // In place, two ranks send each other as much.
            if call.in_place && matches!(call.name, Name::Alltoallv | Name::Alltoallw) {
                call.numbers[place % size * size + place / size] = value;
            }
            return Some(Some(smaller));
        }
        place -= call.numbers.len();
    }
    let mut pauses = smaller.steps.iter_mut().filter(|step| matches!(step.verb, Verb::Sleep | Verb::Spin));
    let pause = pauses.nth(place)?;
    pause.numbers[0] = how(pause.numbers[0] as i64).max(1) as u64;
    Some(Some(smaller))
}

/// Changes that make a call or a segment plainer.
fn plain(program: &Program, at: usize) -> Option<Option<Program>> {
    let mut smaller = program.clone();
    let (place, how) = (at / 8, at % 8);
    if let Some(call) = smaller.calls.get_mut(place) {
        match how {
            0 => call.shapes.clear(),
            1 => call.in_place = false,
            2 => call.algorithm = "auto".into(),
            3 => call.order = 0,
            4 => call.root = 0,
            5 if call.op != Op::None => (call.op, call.element) = (Op::Sum8, 1),
            // The same bytes in elements of one.
            5 => {
                call.numbers.iter_mut().for_each(|count| *count *= call.element as i64);
                call.element = 1;
                call.shapes.clear();
            }
            6 => call.element = call.element.div_ceil(2),
            _ => drop(call.shapes.pop()),
        }
        return Some(Some(smaller));
    }
    let segment = smaller.segments.get_mut(place - smaller.calls.len())?;
    match how {
        0..4 => segment.base[how] = 0,
        4 => segment.papers = None,
        5 => *segment = Segment::default(),
        _ => return Some(None),
    }
    Some(Some(smaller))
}

/// Without these calls, the communicators that they make, and all calls on those.
fn without_calls(program: &Program, mut dropped: BTreeSet<usize>) -> Program {
    let comms = program.groups().len();
    let mut gone = BTreeSet::new();
    for (number, call) in program.calls.iter().enumerate() {
        if gone.contains(&call.comm) {
            dropped.insert(number);
        }
        if dropped.contains(&number) {
            gone.extend(call.makes());
        }
    }
    let new = |numbers: &BTreeSet<usize>, old: usize| old - numbers.range(..old).count();
    let mut smaller = program.clone();
    smaller.segments = (0..comms).filter(|comm| !gone.contains(comm)).map(|comm| program.segment(comm)).collect();
    let kept = program.calls.iter().enumerate().filter(|(number, _)| !dropped.contains(number));
    smaller.calls = kept.map(|(_, call)| call.clone()).collect();
    for call in &mut smaller.calls {
        call.comm = new(&gone, call.comm);
        let step = match call.name {
            Name::Dup => 1,
            Name::Split => 2,
            _ => continue,
        };
        for comm in call.numbers.iter_mut().step_by(step).filter(|comm| **comm >= 0) {
            *comm = new(&gone, *comm as usize) as i64;
        }
    }
    for step in smaller.steps.iter_mut().filter(|step| step.verb.calls()) {
        step.numbers.retain(|call| !dropped.contains(&(*call as usize)));
        step.numbers.iter_mut().for_each(|call| *call = new(&dropped, *call as usize) as u64);
    }
    smaller.steps.retain(|step| !step.numbers.is_empty());
    smaller
}

/// Without this rank, and communicators of it alone.
fn without_rank(program: &Program, rank: u32) -> Program {
    let groups = program.groups();
    let alone: BTreeSet<usize> =
        (0..program.calls.len()).filter(|&call| groups[program.calls[call].comm] == [rank]).collect();
    let mut smaller = program.clone();
    smaller.ranks -= 1;
    for call in &mut smaller.calls {
        let group = &groups[call.comm];
        let Some(place) = group.iter().position(|&member| member == rank) else { continue };
        let size = group.len();
        let at = |index: usize| match call.name {
            Name::Split => index / 2 == place,
            name if name.counts(size) == Some(size) && name.varies() => index == place,
            Name::Alltoallv | Name::Alltoallw => index / size == place || index % size == place,
            _ => false,
        };
        let kept = call.numbers.iter().enumerate().filter(|(index, _)| !at(*index));
        call.numbers = kept.map(|(_, number)| *number).collect();
        let place = place as u32;
        if call.root >= place {
            call.root = call.root.saturating_sub(1);
        }
        call.shapes.retain(|shape| shape.0 != place);
        call.shapes.iter_mut().filter(|shape| shape.0 > place).for_each(|shape| shape.0 -= 1);
    }
    smaller.steps.retain(|step| step.who != Some(rank));
    for who in smaller.steps.iter_mut().filter_map(|step| step.who.as_mut()).filter(|who| **who > rank) {
        *who -= 1;
    }
    // A communicator of this rank alone has no number among the colors any more.
    without_calls(&smaller, alone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Budget;

    /// A fault of the kind "a call of this name that is not blocking, of two ranks or more".
    #[test]
    fn a_long_program_becomes_the_one_call_that_fails() {
        for (seed, name) in (0..40).zip([Name::Gatherv, Name::Allreduce, Name::Alltoallw, Name::Scan].iter().cycle()) {
            let program = Program::draw(seed, &Budget::new(5));
            let fails = |program: &Program| {
                let started =
                    |step: &Step| step.verb == Verb::Start && program.calls[step.numbers[0] as usize].name == *name;
                let groups = program.groups();
                program.ranks > 1
                    && program
                        .steps
                        .iter()
                        .any(|step| started(step) && groups[program.calls[step.numbers[0] as usize].comm].len() > 1)
            };
            if !fails(&program) {
                continue;
            }
            let short = shrink(program, |program| Some(fails(program)));
            assert_eq!(short.check(), Ok(()));
            // The communicator may have to be made first.
            assert!(fails(&short) && short.ranks == 2 && short.calls.len() <= 3, "seed {seed}\n{short}");
            let one = short.calls.iter().find(|call| call.name == *name).unwrap();
            assert!(one.numbers.iter().all(|&count| count == 0) && one.shapes.is_empty(), "seed {seed}\n{short}");
        }
    }

    #[test]
    fn there_may_be_no_time() {
        let program = Program::draw(1, &Budget::new(3));
        assert_eq!(shrink(program.clone(), |_| None), program);
    }
}

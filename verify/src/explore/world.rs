//! The shared world: the segment's words and the processes' positions, with fingerprint and undo.

use super::access::{Access, Class, Span, Word};
use super::hash::mix;
use super::payload::{Payloads, Token};
use super::process::{Awaited, Position, Segment};
use crate::shadow::promises::{Cells, Promises};
use unisono_kernel::Rank;
use unisono_kernel::machine::poll::{Source, Until};
use unisono_kernel::region::Layout;

/// Words of a layout.
pub type Words = fn(&Layout, Word) -> bool;

/// A fault that is put into the world on purpose, to show that the search finds it.
#[derive(Clone, Copy, Debug, Default)]
pub enum Mutation {
    /// None: the world as it is.
    #[default]
    None,
    /// Loads of these words return this value, whatever was stored.
    Forge(Words, u64),
    /// Stores and additions to these words are lost: those of this value, or all.
    Lose(Words, Option<u64>),
    /// A process that waits for these words is never woken.
    Deafen(Words),
}

/// A segment's place in the world.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Bytes before it.
    pub(crate) begin: u64,
    pub(crate) layout: Layout,
    /// Bytes that each member can lend, behind the layout's.
    lent: u64,
    group: Vec<Rank>,
    promises: Promises,
    /// The first cell of the shadow's records.
    promised: usize,
}

/// The shared memory, and the position of every process.
#[derive(Clone, Debug)]
pub(crate) struct World {
    parts: Vec<Part>,
    mutation: Mutation,
    /// The segments' words, then one position per rank, then the shadow's records.
    cells: Vec<u64>,
    words: usize,
    ranks: Rank,
    fingerprint: u128,
    undo: Vec<(usize, u64)>,
}

impl World {
    /// Fresh segments; all ranks at position 0.
    pub(crate) fn new(segments: Vec<Segment>, mutation: Mutation) -> Self {
        let bytes: u64 = segments.iter().map(Segment::bytes).sum();
        let ranks = segments.iter().flat_map(|segment| &segment.group).max().map_or(0, |most| most + 1);
        let words = (bytes / 8) as usize;
        let (cells, parts) = (vec![0; words + ranks as usize], Vec::new());
        let mut world = Self { parts, mutation, cells, words, ranks, fingerprint: 0, undo: Vec::new() };
        let mut begin = 0;
        for segment in segments {
            let bytes = segment.bytes();
            let Segment { layout, base, group, lent } = segment;
            let (promises, promised) = (Promises::new(layout), world.cells.len());
            world.cells.resize(promised + promises.cells(), 0);
            let count = begin + layout.central_count().offset();
            world.cells[(count / 8) as usize] = base.arrivals(layout.ranks());
            promises.begin(&mut Promised(&mut world, promised), base);
            world.parts.push(Part { begin, layout, lent, group, promises, promised });
            begin += bytes;
        }
        world
    }

    /// The segments.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Number of processes.
    pub(crate) const fn ranks(&self) -> Rank {
        self.ranks
    }

    /// The segment in which an offset lies.
    #[inline]
    fn part(&self, offset: u64) -> &Part {
        let behind = self.parts.iter().skip(1).take_while(|part| part.begin <= offset).count();
        &self.parts[behind]
    }

    /// Is the word one of these, by its name in its segment?
    fn is_of(&self, words: Words, word: Word) -> bool {
        let part = self.part(word.offset);
        words(&part.layout, Word { offset: word.offset - part.begin, ..word })
    }

    /// The fingerprint of this state.
    pub(crate) const fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// A mark to go back to.
    pub(crate) const fn mark(&self) -> usize {
        self.undo.len()
    }

    /// Back to a mark.
    pub(crate) fn back(&mut self, mark: usize) {
        while self.undo.len() > mark {
            if let Some((cell, value)) = self.undo.pop() {
                self.replace(cell, value);
            }
        }
    }

    /// A rank's position.
    #[inline]
    pub(crate) fn position(&self, rank: Rank) -> Position {
        self.cells[self.words + rank as usize] as Position
    }

    /// Moves a rank to a position.
    pub(crate) fn place(&mut self, rank: Rank, position: Position) {
        self.set(self.words + rank as usize, position.into());
    }

    /// The value that a load of `word` returns.
    #[inline]
    pub(crate) fn load(&self, word: Word) -> u64 {
        match self.mutation {
            Mutation::Forge(words, value) if self.is_of(words, word) => value,
            _ => self.cell(word),
        }
    }

    /// The value that is stored, without mutations.
    pub(crate) fn cell(&self, word: Word) -> u64 {
        self.cells[(word.offset / 8) as usize]
    }

    /// Does a mutation forge the loads of `word`?
    pub(crate) fn forges(&self, word: Word) -> bool {
        matches!(self.mutation, Mutation::Forge(words, _) if self.is_of(words, word))
    }

    /// The word for which an event waits, and its value; none for a message.
    pub(crate) fn awaited(&self, segment: usize, source: Source) -> Option<(Word, Until)> {
        let (class, offset, until) = match source {
            Source::Flag(id, until) => (Class::Flag, id.offset(), until),
            Source::Mail(id, until) => (Class::Mail, id.offset(), until),
            Source::Counter(id, until) => (Class::Counter, id.offset(), until),
            Source::Message(_) => return None,
        };
        Some((Word { class, offset: self.parts[segment].begin + offset }, until))
    }

    /// Has one of the awaited words reached its value?
    pub(crate) fn holds(&self, awaits: &[Awaited]) -> bool {
        let mut events = awaits.iter().flat_map(|(segment, on)| on.iter().map(|event| (*segment, event.source)));
        events
            .any(|(segment, source)| self.awaited(segment, source).is_some_and(|(word, until)| self.wakes(word, until)))
    }

    /// Is a process that waits for this woken now?
    pub(crate) fn wakes(&self, word: Word, until: Until) -> bool {
        let deaf = matches!(self.mutation, Mutation::Deafen(words) if self.is_of(words, word));
        !deaf && until.holds(self.load(word))
    }

    fn loses(&self, word: Word, value: u64) -> bool {
        matches!(self.mutation, Mutation::Lose(words, only) if only.is_none_or(|only| only == value) && self.is_of(words, word))
    }

    /// Makes an access; its answer, or the rule of its word that it breaks.
    pub(crate) fn apply(&mut self, rank: Rank, access: Access, payloads: &mut Payloads) -> Result<u64, String> {
        match access {
            Access::Load(word) => return self.look(rank, word),
            Access::Store(word, value) => self.store(rank, word, value)?,
            Access::Add(word, n) => {
                let before = self.load(word);
                self.promise(rank, word.offset, |promises, cells, rank, at| promises.leave(cells, rank, at));
                if !self.loses(word, n) {
                    self.set((word.offset / 8) as usize, before.wrapping_add(n));
                }
                return Ok(before);
            }
            Access::Claim(word, from, to) => {
                let before = self.load(word);
                if before == from {
                    self.set((word.offset / 8) as usize, to);
                }
                return Ok(before);
            }
            Access::BeginWrite(at) => self.touch(rank, at.offset, true)?,
            Access::BeginRead(at) => self.touch(rank, at.offset, false)?,
            Access::EndWrite(at, token) => self.copy_in(at, payloads.bytes(token)),
            Access::EndRead(at) => return Ok(self.copy_out(at, payloads).0),
        }
        Ok(0)
    }

    /// The value that `rank` loads from `word`, or the rule that the load breaks.
    pub(crate) fn look(&mut self, rank: Rank, word: Word) -> Result<u64, String> {
        if word.class == Class::Counter {
            self.touch(rank, word.offset, false)?;
        }
        Ok(self.load(word))
    }

    fn touch(&mut self, rank: Rank, offset: u64, writes: bool) -> Result<(), String> {
        let Part { begin, layout, lent, .. } = self.part(offset);
        let lender = (offset - begin).checked_sub(layout.bytes()).and_then(|behind| behind.checked_div(*lent));
        let touched = self.promise(rank, offset, |promises, cells, rank, at| match lender {
            None => promises.touch(cells, rank, at, writes),
            Some(lender) if writes => promises.write_loan(cells, rank, lender as Rank),
            Some(lender) => promises.read_loan(cells, rank, lender as Rank),
        });
        touched.map_err(|breach| breach.to_string())
    }

    /// Checks an access of `rank` at this offset by the shadow's rules.
    fn promise<A>(
        &mut self,
        rank: Rank,
        offset: u64,
        ask: impl FnOnce(Promises, &mut Promised<'_>, Rank, u64) -> A,
    ) -> A {
        let Part { begin, promises, promised, ref group, .. } = *self.part(offset);
        let place = seat(group, rank);
        ask(promises, &mut Promised(self, promised), place, offset - begin)
    }

    fn store(&mut self, rank: Rank, word: Word, value: u64) -> Result<(), String> {
        let cell = (word.offset / 8) as usize;
        let before = self.cells[cell];
        if word.class == Class::Flag {
            let Part { begin, layout, ref group, .. } = *self.part(word.offset);
            let owner = (0..layout.ranks()).find(|&rank| {
                let own = layout.own_pages(rank);
                (own.offset()..own.offset() + own.len()).contains(&(word.offset - begin))
            });
            if let Some(owner) = owner.filter(|&owner| owner != seat(group, rank)) {
                return Err(format!("a flag of rank {owner} has a second writer"));
            }
            if value < before {
                return Err(format!("a flag shrinks from {before}"));
            }
        }
        let kept = self.promise(rank, word.offset, |promises, cells, rank, at| match word.class {
            Class::Flag => promises.store(cells, rank, at, value),
            Class::Mail => promises.put(cells, rank, at, (before, value)),
            Class::Counter => promises.count(cells, rank, at, value),
        });
        kept.map_err(|breach| breach.to_string())?;
        if !self.loses(word, value) {
            self.set(cell, value);
        }
        Ok(())
    }

    fn copy_in(&mut self, at: Span, bytes: &[u8]) {
        let mut offset = at.offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (cell, start) = ((offset / 8) as usize, (offset % 8) as usize);
            let (part, behind) = rest.split_at(rest.len().min(8 - start));
            let mut word = self.cells[cell].to_le_bytes();
            word[start..start + part.len()].copy_from_slice(part);
            self.set(cell, u64::from_le_bytes(word));
            offset += part.len() as u64;
            rest = behind;
        }
    }

    fn copy_out(&self, at: Span, payloads: &mut Payloads) -> Token {
        let byte = |offset: u64| (self.cells[(offset / 8) as usize] >> (offset % 8 * 8)) as u8;
        let bytes: Vec<u8> = (at.offset..at.end()).map(byte).collect();
        payloads.token(&bytes)
    }

    #[inline]
    fn set(&mut self, cell: usize, value: u64) {
        let before = self.replace(cell, value);
        if before != value {
            self.undo.push((cell, before));
        }
    }

    fn replace(&mut self, cell: usize, value: u64) -> u64 {
        let before = core::mem::replace(&mut self.cells[cell], value);
        self.fingerprint ^= mix(cell, before) ^ mix(cell, value);
        before
    }
}

/// A rank's place among a segment's members.
fn seat(group: &[Rank], rank: Rank) -> Rank {
    group.iter().position(|&member| member == rank).unwrap_or(0) as Rank
}

/// The cells of a world with the shadow's records, from the first one on.
struct Promised<'w>(&'w mut World, usize);

impl Cells for Promised<'_> {
    fn get(&self, cell: usize) -> u64 {
        self.0.cells[self.1 + cell]
    }
    fn set(&mut self, cell: usize, value: u64) {
        self.0.set(self.1 + cell, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_kernel::region::{Base, FlagId, Params};

    fn world(layout: Layout) -> World {
        let segment = Segment { layout, base: Base::default(), group: (0..layout.ranks()).collect(), lent: 64 };
        World::new(vec![segment], Mutation::None)
    }

    #[test]
    fn words_have_rules() {
        let layout = Layout::new(Params::new(2).with_cico()).unwrap();
        let (mut world, mut payloads) = (world(layout), Payloads::default());
        let flag = Word { class: Class::Flag, offset: layout.done(1).offset() };
        let mail = Word { class: Class::Mail, offset: layout.control(1, 0).offset() };
        let mut store = |rank, word, value| world.apply(rank, Access::Store(word, value), &mut payloads);
        assert_eq!(store(1, flag, 5), Ok(0));
        assert!(store(0, flag, 6).unwrap_err().contains("second writer"));
        assert!(store(1, flag, 4).unwrap_err().contains("shrinks"));
        assert!(store(1, mail, 0).unwrap_err().contains("empty"));
        assert_eq!(store(0, mail, 7), Ok(0));
        assert!(store(0, mail, 7).unwrap_err().contains("not taken"));
    }

    /// A rank may fold into its own fragment while others have not released it, if it has read it, and not released it itself.
    #[test]
    fn a_fold_into_what_is_published_has_rules() {
        let layout = Layout::new(Params::new(2)).unwrap();
        let (mut world, mut payloads) = (world(layout), Payloads::default());
        let at = Span { offset: layout.slot(0, 0).offset(), len: 16 };
        let (write, read) = (Access::BeginWrite(at), Access::BeginRead(at));
        let store = |word: FlagId, value| Access::Store(Word { class: Class::Flag, offset: word.offset() }, value);
        let pending = || Err("S2: rank 1 has not released what is there".into());
        let steps = [
            (0, write, Ok(0)),
            (0, store(layout.ready(0), 1), Ok(0)),
            (0, write, pending()),
            (0, read, Ok(0)),
            (0, write, Ok(0)),
            (0, store(layout.acked(0), 1), Ok(0)),
            (0, write, pending()),
            (1, store(layout.acked(1), 1), Ok(0)),
            (0, write, Ok(0)),
        ];
        for (index, (rank, access, outcome)) in steps.into_iter().enumerate() {
            assert_eq!(world.apply(rank, access, &mut payloads), outcome, "step {index}");
        }
    }

    #[test]
    fn what_a_rank_lends_has_rules() {
        let layout = Layout::new(Params::new(2)).unwrap();
        let (mut world, mut payloads) = (world(layout), Payloads::default());
        // What rank 0 lends comes first behind the segment.
        let (at, flag) = (Span { offset: layout.bytes() + 8, len: 16 }, |offset| Word { class: Class::Flag, offset });
        let (read, write) = (Access::BeginRead(at), Access::BeginWrite(at));
        let store = |word: FlagId, value| Access::Store(flag(word.offset()), value);
        let fault = |rule: &str| Err(rule.into());
        let steps = [
            (1, read, fault("S3: nothing is lent there")),
            (1, write, fault("S2: rank 0 lends these bytes, and no other rank writes them")),
            (0, write, Ok(0)),
            (1, read, fault("S3: nothing is published there")),
            (0, store(layout.line(0, 1), 1), Ok(0)),
            (0, write, fault("S2: it lends these bytes now")),
            (1, write, fault("S2: rank 0 lends these bytes, and no other rank writes them")),
            (0, store(layout.acked(0), 1), Ok(0)),
            (1, read, Ok(0)),
            (0, store(layout.done(0), 1), fault("S2: rank 1 has not released what it reads of the loan")),
            (1, store(layout.acked(1), 1), Ok(0)),
            (0, store(layout.done(0), 1), Ok(0)),
            (1, read, fault("S3: nothing is lent there")),
            (0, write, Ok(0)),
            // The next operation.
            (0, write, Ok(0)),
            (0, store(layout.line(0, 2), 2), Ok(0)),
            (1, store(layout.acked(1), 2), Ok(0)),
            (1, read, Ok(0)),
            (0, store(layout.acked(0), 2), Ok(0)),
            (0, store(layout.done(0), 2), fault("S3: rank 1 has read of the loan when it had released it")),
            (1, store(layout.done(1), 2), Ok(0)),
            (1, read, fault("S3: it has released what is there")),
        ];
        for (index, (rank, access, outcome)) in steps.into_iter().enumerate() {
            assert_eq!(world.apply(rank, access, &mut payloads), outcome, "step {index}");
        }
    }

    #[test]
    fn going_back_restores_cells_and_fingerprint() {
        let layout = Layout::new(Params::new(2)).unwrap();
        let (mut world, mut payloads) = (world(layout), Payloads::default());
        world.place(0, 3);
        let (mark, before, cells) = (world.mark(), world.fingerprint(), world.cells.clone());
        let (at, token) = (Span::of(0, layout.slot(1, 0).part(3, 18)), payloads.token(&[9; 18]));
        assert_eq!(world.apply(1, Access::EndWrite(at, token), &mut payloads), Ok(0));
        assert_eq!(world.apply(0, Access::EndRead(at), &mut payloads), Ok(token.0));
        world.place(0, 4);
        assert_ne!(world.fingerprint(), before);
        world.back(mark);
        assert_eq!((world.fingerprint(), &world.cells), (before, &cells));
    }
}

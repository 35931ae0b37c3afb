//! The processes that have not yet received a line or taken a slot: rules S2 and S3.
//!
//! The contents of a line or slot have a number, by which readers release them: the number of a line, posted or of a partial
//! result, is its operation (`done`), a slot's the clock of its fragment (`acked`), a mailbox slot's the number of message and fragment, plus
//! one (the receiver's `acked`). The writer's next publication tells the number: `ready` is the clock after the
//! fragment, `sequence` the number itself, a line has its operation, and the slot written before it holds the first
//! fragment. Each fragment is published before the next one is written, whichever lap its writer takes. A writer that has
//! read its own fragment, and not released it, may fold into it.
//!
//! The contents of a set of the [papers'](super::papers) queues are released with the set: their number is how often
//! the set was opened, by a store to `set_readers`; a process that subtracts there releases all of them. Each reader is
//! told by a word of its own, which is set by the rank that has written the data or was told of them before, as in P1's
//! trees.
//!
//! What a rank lends has the number of its operation, which its line publishes. Its readers release it by `acked` at
//! the operation's end on the fragment clock: the lender's own `acked` when it publishes `done`.
//!
//! All this is arithmetic over a few cells, which the explorer hashes and restores with the rest of its world.

use super::papers::{LEFT, OPENED, OPENER, Paper, Papers};
use std::fmt;
use unisono_kernel::Rank;
use unisono_kernel::region::{Base, LINE, Layout, Pair};

/// The cells of the records.
pub(crate) trait Cells {
    /// The value of a cell.
    fn get(&self, cell: usize) -> u64;
    /// Sets a cell.
    fn set(&mut self, cell: usize, value: u64);
}

impl Cells for Vec<u64> {
    fn get(&self, cell: usize) -> u64 {
        self[cell]
    }
    fn set(&mut self, cell: usize, value: u64) {
        self[cell] = value;
    }
}

/// A broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// S2: this rank has not released the contents of the place.
    Pending(Rank),
    /// S2: this rank writes there, and has not published it.
    Unpublished(Rank),
    /// S3: nothing is published there.
    Nothing,
    /// S3: the reader has released the contents.
    Released,
    /// S2: a control word is set over this value, which was not taken.
    Untaken(u64),
    /// S3: an empty control word is taken.
    Empty,
    /// S3: nothing is lent there.
    Unlent,
    /// S2: the writer lends these bytes now.
    Lends,
    /// S2: this rank lends the bytes that another one writes.
    Lent(Rank),
    /// S2: this rank has read a loan, has not released it, and the loan ends.
    Reads(Rank),
    /// S3: this rank has read a loan that it had released.
    ReadOn(Rank),
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending(rank) => write!(f, "S2: rank {rank} has not released what is there"),
            Self::Unpublished(rank) => write!(f, "S2: rank {rank} has written there, and not published it"),
            Self::Nothing => write!(f, "S3: nothing is published there"),
            Self::Released => write!(f, "S3: it has released what is there"),
            Self::Untaken(value) => write!(f, "S2: a mailword holds {value}, not taken yet"),
            Self::Empty => write!(f, "S3: an empty mailword is cleared"),
            Self::Unlent => write!(f, "S3: nothing is lent there"),
            Self::Lends => write!(f, "S2: it lends these bytes now"),
            Self::Lent(rank) => write!(f, "S2: rank {rank} lends these bytes, and no other rank writes them"),
            Self::Reads(rank) => write!(f, "S2: rank {rank} has not released what it reads of the loan"),
            Self::ReadOn(rank) => write!(f, "S3: rank {rank} has read of the loan when it had released it"),
        }
    }
}

/// The contents of a line or slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Nothing,
    Unpublished {
        writer: Rank,
    },
    /// `read`: its writer has read it, and so may fold into it until it releases it itself.
    Published {
        writer: Rank,
        number: u64,
        read: bool,
    },
}

/// What a rank lends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lends {
    Nothing,
    /// Memory that no line has announced yet.
    Unpublished,
    /// Memory that the line of this operation has announced.
    Published {
        operation: u64,
    },
    /// The operation has ended, and the lender has not written the memory since.
    Ended,
}

/// A line or a slot of a rank, a slot of a mailbox, or data in a set of the papers' queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Line(Rank, u64),
    Slot(Rank, u64),
    /// The line of a partial result: by turn, then by round.
    Partial(Rank, u64),
    Mail(Mail),
    Paper(Paper),
}

/// A slot of the mailbox from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mail {
    from: Rank,
    to: Rank,
    message: u64,
    slot: u64,
}

/// Cells of a rank before those of its lines and slots: the value that it has published, and its `acked` at the end of
/// its last operation.
const TAKEN: usize = 0;
const DONE: usize = 1;
const BEGAN: usize = 2;
const OWN: usize = 3;
/// Cells of a line or slot.
const UNIT: usize = 2;
/// The rules S2 and S3 for the members of a layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promises {
    layout: Layout,
}

impl Promises {
    pub(crate) const fn new(layout: Layout) -> Self {
        Self { layout }
    }

    fn lines(&self) -> u64 {
        self.layout.params().lines.into()
    }

    fn slots(&self) -> u64 {
        self.layout.params().queue_slots.into()
    }

    const fn own(&self, rank: Rank) -> usize {
        let params = self.layout.params();
        let partials = 2 * self.layout.rounds() as usize;
        rank as usize * (OWN + UNIT * (params.lines as usize + params.queue_slots as usize + partials))
    }

    /// The mailboxes' cells: for each message of each pair the receiver's `acked`, then those of its slots.
    const fn mail(&self, Mail { from, to, message, slot: _ }: Mail) -> usize {
        let (messages, slots) = match self.layout.params().mailboxes {
            Some(shape) => (shape.messages as usize, shape.slots as usize),
            None => (0, 0),
        };
        let pair = (from * self.layout.ranks() + to) as usize;
        self.own(self.layout.ranks()) + (pair * messages + message as usize) * (1 + UNIT * slots)
    }

    /// All slots of mailboxes.
    fn mails(&self) -> impl Iterator<Item = (Mail, Pair)> + use<> {
        let layout = self.layout;
        let ranks = if layout.params().mailboxes.is_some() { layout.ranks() } else { 0 };
        let pairs = (0..ranks).flat_map(move |from| (0..ranks).map(move |to| (from, to)));
        pairs.filter_map(move |(from, to)| Some((from, to, layout.mailbox(from, to)?))).flat_map(|(from, to, pair)| {
            let (messages, slots) = (u64::from(pair.shape().messages), u64::from(pair.shape().slots));
            let each = (0..messages).flat_map(move |message| (0..slots).map(move |slot| (message, slot)));
            each.map(move |(message, slot)| (Mail { from, to, message, slot }, pair))
        })
    }

    /// The papers' cells, after all others.
    const fn papers(&self) -> Papers {
        let begin = self.mail(Mail { from: self.layout.ranks(), to: 0, message: 0, slot: 0 });
        Papers::new(self.layout, begin, UNIT)
    }

    /// The cells of the set to which the data belong.
    const fn set(&self, paper: Paper) -> usize {
        self.papers().set(self.papers().set_of(paper))
    }

    /// The cells of what `lender` lends, after all others: whether it lends something; then for each rank, what it had
    /// published as `acked` when it read there last, plus one.
    const fn loan(&self, lender: Rank) -> usize {
        let ranks = self.layout.ranks() as usize;
        self.papers().end() + lender as usize * (1 + ranks)
    }

    /// The number of cells, which are zero at first.
    pub(crate) const fn cells(&self) -> usize {
        self.loan(self.layout.ranks())
    }

    /// Lets all ranks begin at `base`.
    pub(crate) fn begin(&self, cells: &mut impl Cells, base: Base) {
        for own in (0..self.layout.ranks()).map(|rank| self.own(rank)) {
            cells.set(own + TAKEN, base.clock);
            cells.set(own + DONE, base.operation);
            cells.set(own + BEGAN, base.clock);
        }
    }

    fn cell(&self, unit: Unit) -> usize {
        let (rank, index) = match unit {
            Unit::Line(rank, index) => (rank, index),
            Unit::Slot(rank, index) => (rank, self.lines() + index),
            Unit::Partial(rank, index) => (rank, self.lines() + self.slots() + index),
            Unit::Mail(mail) => return self.mail(mail) + 1 + UNIT * mail.slot as usize,
            Unit::Paper(paper) => return self.papers().cell(paper),
        };
        self.own(rank) + OWN + UNIT * index as usize
    }

    fn holds(&self, cells: &impl Cells, unit: Unit) -> Holds {
        let cell = self.cell(unit);
        let Some(code) = cells.get(cell).checked_sub(1) else { return Holds::Nothing };
        let writer = (code / 3) as Rank;
        match code % 3 {
            0 => Holds::Unpublished { writer },
            kind => Holds::Published { writer, number: cells.get(cell + 1), read: kind == 2 },
        }
    }

    fn hold(&self, cells: &mut impl Cells, unit: Unit, holds: Holds) {
        let (code, number) = match holds {
            Holds::Nothing => (0, 0),
            Holds::Unpublished { writer } => (3 * u64::from(writer) + 1, 0),
            Holds::Published { writer, number, read } => (3 * u64::from(writer) + 2 + u64::from(read), number),
        };
        let cell = self.cell(unit);
        cells.set(cell, code);
        cells.set(cell + 1, number);
    }

    /// The line, slot or set to which the bytes or the counter at this offset belong.
    fn unit(&self, offset: u64) -> Option<Unit> {
        let first = self.layout.own_pages(0);
        if offset < first.offset() {
            return self.papers().counter(offset).map(Unit::Paper);
        }
        let rank = (offset - first.offset()) / first.len();
        let rank = (rank < self.layout.ranks().into()).then_some(rank as Rank)?;
        let index = |first: u64, each: u64, count: u64| {
            offset.checked_sub(first).map(|behind| behind / each).filter(|&index| index < count)
        };
        let slot = index(self.layout.slot(rank, 0).offset(), self.layout.params().queue_fragment, self.slots());
        let line = || index(self.layout.line(rank, 0).offset(), LINE, self.lines());
        let partials = (self.layout.partial_stride(), 2 * u64::from(self.layout.rounds()));
        let partial = || index(self.layout.partial(rank, false, 0).offset(), partials.0, partials.1);
        let mail = || {
            let holds = |(Mail { message, slot, .. }, pair): &(Mail, Pair)| {
                let payload = pair.payload(*message, *slot);
                (pair.sequence(*message, *slot).offset()..payload.offset() + payload.len()).contains(&offset)
            };
            self.mails().find(holds).map(|(mail, _)| Unit::Mail(mail))
        };
        let fragment = || self.papers().fragment(rank, offset).map(Unit::Paper);
        let slot = slot.map(|index| Unit::Slot(rank, index));
        let line = || line().map(|index| Unit::Line(rank, index));
        let partial = || partial().map(|index| Unit::Partial(rank, index));
        slot.or_else(line).or_else(partial).or_else(fragment).or_else(mail)
    }

    fn lends(&self, cells: &impl Cells, lender: Rank) -> Lends {
        match cells.get(self.loan(lender)) {
            0 => Lends::Nothing,
            1 => Lends::Unpublished,
            u64::MAX => Lends::Ended,
            code => Lends::Published { operation: code - 1 },
        }
    }

    fn lend(&self, cells: &mut impl Cells, lender: Rank, lends: Lends) {
        let code = match lends {
            Lends::Nothing => 0,
            Lends::Unpublished => 1,
            Lends::Ended => u64::MAX,
            // Operations count from 1.
            Lends::Published { operation } => operation + 1,
        };
        cells.set(self.loan(lender), code);
    }

    /// `rank` writes all that `lender` lends: the lender itself does when it lends it, and when its operation has
    /// ended.
    pub(crate) fn write_loan(&self, cells: &mut impl Cells, rank: Rank, lender: Rank) -> Result<(), Breach> {
        let next = match self.lends(cells, lender) {
            _ if rank != lender => return Err(Breach::Lent(lender)),
            Lends::Published { .. } => return Err(Breach::Lends),
            Lends::Nothing | Lends::Unpublished => Lends::Unpublished,
            Lends::Ended => Lends::Nothing,
        };
        self.lend(cells, lender, next);
        Ok(())
    }

    /// `rank` reads what `lender` lends.
    pub(crate) fn read_loan(&self, cells: &mut impl Cells, rank: Rank, lender: Rank) -> Result<(), Breach> {
        let own = self.own(rank);
        match self.lends(cells, lender) {
            Lends::Nothing | Lends::Ended => Err(Breach::Unlent),
            Lends::Unpublished => Err(Breach::Nothing),
            Lends::Published { operation } if cells.get(own + DONE) >= operation => Err(Breach::Released),
            Lends::Published { .. } => {
                cells.set(self.loan(lender) + 1 + rank as usize, cells.get(own + TAKEN) + 1);
                Ok(())
            }
        }
    }

    /// `lender` ends its operation, for which it has published its `acked`.
    fn end_loan(&self, cells: &mut impl Cells, lender: Rank) -> Result<(), Breach> {
        match self.lends(cells, lender) {
            Lends::Published { .. } => {}
            // No line has announced it: the rank has asked whether it can lend this memory, as the root of a gather does.
            Lends::Unpublished => {
                self.lend(cells, lender, Lends::Ended);
                return Ok(());
            }
            Lends::Nothing | Lends::Ended => return Ok(()),
        }
        let end = cells.get(self.own(lender) + TAKEN);
        for reader in 0..self.layout.ranks() {
            let read = self.loan(lender) + 1 + reader as usize;
            match cells.get(read) {
                0 => continue,
                after if after > end => return Err(Breach::ReadOn(reader)),
                _ if cells.get(self.own(reader) + TAKEN) < end => return Err(Breach::Reads(reader)),
                _ => cells.set(read, 0),
            }
        }
        self.lend(cells, lender, Lends::Ended);
        Ok(())
    }

    /// `rank` stores `value` to the flag at `offset`.
    pub(crate) fn store(&self, cells: &mut impl Cells, rank: Rank, offset: u64, value: u64) -> Result<(), Breach> {
        let own = self.own(rank);
        if offset == self.layout.acked(rank).offset() {
            cells.set(own + TAKEN, value);
        } else if offset == self.layout.done(rank).offset() {
            self.end_loan(cells, rank)?;
            cells.set(own + DONE, value);
            // At its end an operation has taken all of its steps.
            cells.set(own + BEGAN, cells.get(own + TAKEN));
        } else if offset == self.layout.ready(rank).offset() {
            self.publish(cells, rank, value.saturating_sub(1));
        } else if offset == self.layout.line(rank, value).offset() {
            let line = Unit::Line(rank, value & (self.lines() - 1));
            if self.holds(cells, line) == (Holds::Unpublished { writer: rank }) {
                self.hold(cells, line, Holds::Published { writer: rank, number: value, read: false });
            }
            if self.lends(cells, rank) == Lends::Unpublished {
                self.lend(cells, rank, Lends::Published { operation: value });
            }
            self.publish(cells, rank, cells.get(own + BEGAN));
        } else if let Some(Unit::Partial(of, index)) = self.unit(offset) {
            let unit = Unit::Partial(of, index);
            if self.holds(cells, unit) == (Holds::Unpublished { writer: rank }) {
                self.hold(cells, unit, Holds::Published { writer: rank, number: value, read: false });
            }
        } else if let Some(set) = self.papers().opens(offset) {
            for reader in 0..self.layout.ranks() {
                self.tell(cells, Paper::Head(set), rank, reader);
                self.tell(cells, Paper::Counts(set), rank, reader);
            }
        } else {
            self.store_mail(cells, rank, offset, value);
        }
        Ok(())
    }

    /// `rank` stores `value` to the counter at `offset`. To a set's readers: it opens the set.
    pub(crate) fn count(&self, cells: &mut impl Cells, rank: Rank, offset: u64, value: u64) -> Result<(), Breach> {
        let Some(set) = self.papers().readers(offset) else { return self.touch(cells, rank, offset, true) };
        let (set, ranks) = (self.papers().set(set), self.layout.ranks());
        let opened = cells.get(set + OPENED);
        if let Some(reader) = (0..ranks).find(|&reader| cells.get(set + LEFT + reader as usize) < opened) {
            return Err(Breach::Pending(reader));
        }
        cells.set(set + OPENED, opened + 1);
        cells.set(set + OPENER, rank.into());
        if value < ranks.into() {
            // P1's root does not count itself: it has nothing to leave.
            cells.set(set + LEFT + rank as usize, opened + 1);
        }
        Ok(())
    }

    /// `rank` subtracts from the counter at `offset`. From a set's readers: it leaves the set.
    pub(crate) fn leave(&self, cells: &mut impl Cells, rank: Rank, offset: u64) {
        if let Some(set) = self.papers().readers(offset).map(|set| self.papers().set(set)) {
            cells.set(set + LEFT + rank as usize, cells.get(set + OPENED));
        }
    }

    /// `rank` sets the mailword at `offset`, or clears it; given are the old and the new value.
    pub(crate) fn put(
        &self,
        cells: &mut impl Cells,
        rank: Rank,
        offset: u64,
        change: (u64, u64),
    ) -> Result<(), Breach> {
        match change {
            (0, 0) => return Err(Breach::Empty),
            (_, 0) => return Ok(()),
            (1.., _) => return Err(Breach::Untaken(change.0)),
            (0, _) => {}
        }
        let papers = self.papers();
        for (paper, reader) in papers.tells(rank, offset, |set| cells.get(papers.set(set) + OPENER) as Rank) {
            self.tell(cells, paper, rank, reader);
        }
        Ok(())
    }

    /// `rank` publishes the data to `reader`, if it has written them in this use of the set, or was told of them.
    fn tell(&self, cells: &mut impl Cells, paper: Paper, rank: Rank, reader: Rank) {
        let (unit, now) = (Unit::Paper(paper), cells.get(self.set(paper) + OPENED));
        if self.holds(cells, unit) == (Holds::Unpublished { writer: rank }) {
            self.hold(cells, unit, Holds::Published { writer: rank, number: now, read: false });
        }
        if let Holds::Published { writer, number, .. } = self.holds(cells, unit)
            && number == now
            && (writer == rank || self.is_told(cells, unit, rank, now))
        {
            cells.set(self.cell(unit) + UNIT + reader as usize, now);
        }
    }

    /// Was `reader` told of the data with this number there?
    fn is_told(&self, cells: &impl Cells, unit: Unit, reader: Rank, number: u64) -> bool {
        !matches!(unit, Unit::Paper(_)) || cells.get(self.cell(unit) + UNIT + reader as usize) == number
    }

    /// `rank` stores `value` to the mailbox's word at `offset`.
    fn store_mail(&self, cells: &mut impl Cells, rank: Rank, offset: u64, value: u64) {
        for (mail @ Mail { from, to, message, slot }, pair) in self.mails() {
            let unit = Unit::Mail(mail);
            if from == rank && offset == pair.sequence(message, slot).offset() {
                if self.holds(cells, unit) == (Holds::Unpublished { writer: rank }) {
                    self.hold(cells, unit, Holds::Published { writer: rank, number: value, read: false });
                }
            } else if to == rank && offset == pair.acked(message).offset() {
                cells.set(self.mail(mail), value);
            }
        }
    }

    /// Publishes what `rank` has written to a slot: the fragment of clock `number`.
    fn publish(&self, cells: &mut impl Cells, rank: Rank, number: u64) {
        for (owner, index) in (0..self.layout.ranks()).flat_map(|owner| (0..self.slots()).map(move |at| (owner, at))) {
            let slot = Unit::Slot(owner, index);
            if self.holds(cells, slot) == (Holds::Unpublished { writer: rank }) {
                self.hold(cells, slot, Holds::Published { writer: rank, number, read: false });
            }
        }
    }

    /// `rank` reads or writes bytes from this offset on.
    pub(crate) fn touch(&self, cells: &mut impl Cells, rank: Rank, offset: u64, writes: bool) -> Result<(), Breach> {
        let Some(unit) = self.unit(offset) else { return Ok(()) };
        let holds = self.holds(cells, unit);
        if !writes {
            return match holds {
                Holds::Published { number, .. } if self.released(cells, unit, rank, number) => Err(Breach::Released),
                Holds::Published { number, .. } if !self.is_told(cells, unit, rank, number) => Err(Breach::Nothing),
                Holds::Published { writer, number, .. } => {
                    if writer == rank && matches!(unit, Unit::Slot(..)) {
                        self.hold(cells, unit, Holds::Published { writer, number, read: true });
                    }
                    Ok(())
                }
                // Only its writer knows what is there.
                Holds::Unpublished { writer } if writer == rank => Ok(()),
                Holds::Nothing | Holds::Unpublished { .. } => Err(Breach::Nothing),
            };
        }
        match holds {
            // It folds into the fragment that it has posted and read, and not acknowledged itself.
            Holds::Published { writer, number, read: true }
                if writer == rank && !self.released(cells, unit, rank, number) =>
            {
                return Ok(());
            }
            Holds::Unpublished { writer } if writer != rank => return Err(Breach::Unpublished(writer)),
            Holds::Published { writer, number, .. } => {
                let readers = match unit {
                    // What another process has put into a queue is for its owner.
                    Unit::Slot(owner, _) if owner != writer => owner..owner + 1,
                    Unit::Mail(Mail { to, .. }) => to..to + 1,
                    _ => 0..self.layout.ranks(),
                };
                let mut others = readers.filter(|&reader| reader != rank);
                if let Some(reader) = others.find(|&reader| !self.released(cells, unit, reader, number)) {
                    return Err(Breach::Pending(reader));
                }
            }
            Holds::Nothing | Holds::Unpublished { .. } => {}
        }
        self.hold(cells, unit, Holds::Unpublished { writer: rank });
        Ok(())
    }

    /// Has `reader` released the contents with this number there?
    fn released(&self, cells: &impl Cells, unit: Unit, reader: Rank, number: u64) -> bool {
        match unit {
            Unit::Line(..) | Unit::Partial(..) => cells.get(self.own(reader) + DONE) >= number,
            Unit::Slot(..) => cells.get(self.own(reader) + TAKEN) > number,
            Unit::Mail(mail) => cells.get(self.mail(mail)) >= number,
            Unit::Paper(paper) => cells.get(self.set(paper) + LEFT + reader as usize) >= number,
        }
    }
}

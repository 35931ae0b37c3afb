//! Broadcast of larger messages through the root's queue, whose words only grow (ours).
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | the root's posted line | root | all | the message's length; published data: the first fragment |
//! | `ready(root)` | root | all | published: all fragments below this clock; used from the second one on |
//! | `acked(r)` | r | the root, when its queue is full | r needs no fragment below this clock any more |
//! | `done(r)` | r | ranks that reuse a line | the last operation that r has finished |
//!
//! The *fragment clock* counts the queue fragments of all operations. Since all ranks know every
//! length, all compute the same clock. Fragment c lies in slot c mod S of the root's queue, which is free
//! once all ranks have taken fragment c − S; S is the root's [lap](crate::shm::engine::laps). No word is ever reset.
//!
//! A root that [lends](crate::shm::engine::loans) its message posts its line alone, and others copy from where the message
//! lies. Fragments follow only if a rank wants them. It does not lend what the operation before has received: writing
//! again what others have read from there takes longer than a copy through slots (docs/explanation/parameters.md).
//!
//! ```text
//! root    in 0 | in 1 | in 2 | in 3 ...            (in: copy to the slot, then publish `ready`)
//! others         out 0 | out 1 | out 2 | out 3     (out: copy from the slot, then publish `acked`)
//! ```

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::datatype::Data;
use crate::error::{PollError, Refusal};
use crate::machine::poll::{Poll, Until, WaitSet};
use crate::machine::{Operation, over};
use crate::region::{Flag, Lap, Params, Region};
use crate::shm::engine::copy::{Part, copy_in, copy_out, copy_out_past_caches};
use crate::shm::engine::laps;
use crate::shm::engine::line::{self, Body, Heading};
use crate::shm::engine::loans::{Borrowers, Lent, Loans, NO_LOAN, WORDS};
use crate::shm::engine::pieces::fetch;

/// One process's part of a broadcast.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Queue<'a> {
    operation: u64,
    root: Rank,
    data: Data<'a>,
    /// Bytes in one fragment of this message.
    fragment: u64,
    /// Fragments of this message.
    count: u64,
    /// The fragment clock at this message's first fragment.
    base: u64,
    /// Do the copies out bypass the caches?
    past_caches: bool,
    loans: Loans,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Root: posts its line.
    Enter,
    /// Root: the message is lent; it hears from the readers.
    Lend,
    /// Root: copies fragment `next` in.
    Fill {
        next: u64,
    },
    /// Others: wait for the root's line.
    Receive,
    /// Others: copy fragment `next` out of the queue, which the root passes through in such a `lap`.
    Drain {
        next: u64,
        lap: Lap,
    },
    /// Root: others may still read what it has lent.
    Return,
    Done,
}

/// Bytes of one fragment of a message of `bytes`: a slot's, but shorter messages are cut into four, so
/// that copying in and copying out overlap. All ranks know the arguments, so all compute the same.
fn fragment_bytes(bytes: u64, params: &Params) -> u64 {
    (bytes / 4).next_multiple_of(64).clamp(params.queue_fragment.min(LEAST), params.queue_fragment)
}

/// Bytes of the shortest fragment: a shorter one costs more in notification than it gains in overlap. Fewer than where each rank writes:
/// readers here have nothing else to do while the root copies (docs/explanation/parameters.md).
const LEAST: u64 = 4096;

/// Most bytes that the copies out of all ranks write together through the caches: more would evict each other, and the
/// queue (docs/explanation/parameters.md).
const CACHED: u64 = 8 << 20;

impl<'a> Queue<'a> {
    /// The part of `me`: `data` goes from `root` to all ranks.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator.
    pub fn new(me: &Member, data: Data<'a>, root: Rank) -> Result<Self, Refusal> {
        me.check_root(root)?;
        let fragment = fragment_bytes(data.len(), me.layout().params()).min(data.len().max(1));
        // The usual short message is one fragment, and nothing is divided.
        let count = if data.len() > fragment { data.len().div_ceil(fragment) } else { u64::from(!data.is_empty()) };
        let past_caches = data.len().saturating_mul(u64::from(me.size() - 1)) > CACHED;
        Ok(Self {
            operation: 0,
            root,
            data,
            fragment,
            count,
            base: 0,
            past_caches,
            loans: Loans::NONE,
            state: State::Done,
        })
    }

    /// The packed bytes of fragment `k`.
    #[inline]
    fn cut(&self, k: u64) -> Part {
        let from = k * self.fragment;
        Part { from, len: self.fragment.min(self.data.len() - from) }
    }

    /// Root: copies fragments in, from `next` on, and publishes each. Returns what to wait for, or `None` after the
    /// last.
    fn fill<R: Region>(&mut self, region: &R, me: &mut Member, mut next: u64) -> Option<WaitSet> {
        let layout = *me.layout();
        loop {
            let clock = self.base + next;
            if next < self.count
                && let Err(wait) = me.take_slot(region, self.operation, clock)
            {
                self.state = State::Fill { next };
                return Some(wait);
            }
            if next < self.count {
                let Part { from, len } = self.cut(next);
                // SAFETY: R10 (S2), all ranks have taken the slot's last fragment; the caller may read the data.
                unsafe {
                    copy_in(
                        region,
                        layout.in_slot(self.root, clock, self.fragment, me.lap()).part(0, len),
                        &self.data,
                        from,
                    )
                };
            }
            if next > 0 || self.loans.lends() {
                // publishes: fragment `next`, read after ready > clock
                region.publish(layout.ready(self.root), clock + 1);
            } else {
                // The line publishes the first fragment, too: readers wait for one word only.
                self.post(region, me, NO_LOAN);
            }
            next += 1;
            if next >= self.count {
                return None;
            }
        }
    }

    /// Root: posts its line, with the words of a loan.
    fn post<R: Region>(&self, region: &R, me: &Member, words: [u64; WORDS]) {
        let heading = Heading { kind: Kind::Bcast, bytes: self.data.len() };
        laps::post(region, me, self.operation, heading, words);
    }

    /// Others: takes the message where the root has lent it. Returns false if it comes in fragments.
    ///
    /// # Errors
    /// As [`Loans::refuse`].
    fn fetch<R: Region>(&mut self, region: &R, me: &Member) -> Result<bool, PollError> {
        let Some(loan) = self.loans.of(region, me, self.operation, self.root) else { return Ok(false) };
        let lent = Lent { lender: self.root, loan, from: 0 };
        // SAFETY: S3, received; the root writes its memory only after our `acked`; the caller may write the data.
        match unsafe { fetch(region, &lent, &self.data, Part::first(self.data.len())) } {
            Ok(()) => self.loans.accept(region, me, self.operation, false),
            Err(unreadable) => self.loans.refuse(region, me, self.operation, self.root, unreadable)?,
        }
        Ok(!self.loans.wants())
    }

    /// Others: copies out all fragments that are published, from `next` on, of a root whose queue it passes through in such a `lap`. Returns what
    /// to wait for, or `None` after the last.
    fn drain<R: Region>(
        &mut self,
        region: &R,
        me: &mut Member,
        mut next: u64,
        lap: Lap,
    ) -> Result<Option<WaitSet>, PollError> {
        let layout = *me.layout();
        while next < self.count {
            let clock = self.base + next;
            let published = if next == 0 && !self.loans.wants() {
                // The line, which was received, has published the first fragment.
                clock + 1
            } else {
                // pairs with: fill
                let ready = region.flag(layout.ready(self.root)).load_acquire();
                if !ready.at_least(clock + 1) {
                    self.state = State::Drain { next, lap };
                    let until = Until::AtLeast(clock + 1);
                    return Ok(Some(WaitSet::flag(layout.ready(self.root), until, self.root, self.operation)));
                }
                // The root may already be in a later operation, which has published more.
                ready.capped(self.base + self.count)
            };
            while self.base + next < published {
                let Part { from, len } = self.cut(next);
                let slot = layout.in_slot(self.root, self.base + next, self.fragment, lap).part(0, len);
                if self.past_caches {
                    // SAFETY: S3, published, and reused only after our `acked`; the caller may write the data.
                    unsafe { copy_out_past_caches(region, slot, &self.data, from) };
                } else {
                    // SAFETY: as above.
                    unsafe { copy_out(region, slot, &self.data, from) };
                }
                next += 1;
                me.acknowledge(region, self.base + next);
            }
        }
        Ok(None)
    }
}

impl Operation for Queue<'_> {
    fn start(&mut self, me: &mut Member) {
        (self.operation, self.base) = (me.begin(Kind::Bcast), me.take_clock(self.count, self.data.len()));
        self.state = if me.rank() == self.root {
            State::Enter
        } else {
            me.receives(self.data.start().addr());
            State::Receive
        };
        self.loans = Loans::NONE;
    }

    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        let end = self.base + self.count;
        loop {
            let wait = match self.state {
                State::Enter => match me.line_free(region, self.operation) {
                    Err(wait) => Some(wait),
                    Ok(()) => {
                        self.state = State::Fill { next: 0 };
                        me.choose_lap(region, self.operation, self.base);
                        let lends = me.size() > 1 && !me.sends_on(self.data.start().addr());
                        let memory = if lends { self.data.as_contiguous() } else { None };
                        if let Some(words) = self.loans.offer(region, Kind::Bcast, memory, None) {
                            self.post(region, me, words);
                            self.state = State::Lend;
                        }
                        continue;
                    }
                },
                State::Lend => match self.loans.ask(region, me, self.operation, Borrowers::Others) {
                    Err(wait) => Some(wait),
                    Ok(wanted) => {
                        self.state = if wanted { State::Fill { next: 0 } } else { State::Return };
                        continue;
                    }
                },
                State::Fill { next } => {
                    let wait = self.fill(region, me, next);
                    if wait.is_none() && self.loans.lends() {
                        self.state = State::Return;
                        continue;
                    }
                    wait
                }
                State::Return => self.loans.returned(region, me, self.operation, Borrowers::Others, end).err(),
                State::Receive => {
                    let (heading, mut body) = (Heading { kind: Kind::Bcast, bytes: self.data.len() }, Body::new());
                    if let Err(halt) = line::receive(region, me, self.root, self.operation, heading, &mut body, 0) {
                        return halt.into();
                    }
                    if self.fetch(region, me)? {
                        None
                    } else {
                        self.state = State::Drain { next: 0, lap: laps::of(region, me, self.operation, self.root) };
                        continue;
                    }
                }
                State::Drain { next, lap } => self.drain(region, me, next, lap)?,
                State::Done => return over(self.operation),
            };
            if let Some(wait) = wait {
                return Ok(Poll::Wait(wait));
            }
            if me.rank() == self.root || self.loans.has_answered() {
                // The root acknowledges its own fragments, too: a later root waits for all ranks.
                me.acknowledge(region, end);
            }
            me.finish(region, self.operation);
            self.state = State::Done;
            return Ok(Poll::Done);
        }
    }
}

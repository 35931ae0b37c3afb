//! Broadcast of larger messages through the root's monotone queue (ours).
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | the root's posted line | root | all | the message's length; published data: the first fragment |
//! | `ready(root)` | root | all | fragments published, on the fragment clock, from the second on |
//! | `acked(r)` | r | the root, when its queue is full | fragments that r is done with, on the clock |
//! | `done(r)` | r | who reuses a line | the last operation finished |
//!
//! The *fragment clock* counts the queue fragments of all operations; since all know every
//! length, all agree on it. Fragment c lies in slot c mod S of the root's queue, which is free
//! once everyone has taken fragment c − S. No word is ever reset.
//!
//! ```text
//! root    in 0 | in 1 | in 2 | in 3 ...            (in: copy to slot, then publish)
//! others         out 0 | out 1 | out 2 | out 3     (out: copy from slot, then publish taken)
//! ```

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::datatype::Data;
use crate::error::{PollError, Refusal};
use crate::machine::poll::{Poll, Until, WaitSet};
use crate::machine::{Operation, over};
use crate::region::layout::Params;
use crate::region::{Flag, Region};
use crate::shm::engine::copy::{copy_in, copy_out, copy_out_past_caches};
use crate::shm::engine::line::{self, Body};

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Queue<'a> {
    operation: u64,
    root: Rank,
    data: Data<'a>,
    /// Bytes in one fragment of this message.
    fragment: u64,
    /// Fragments of this message.
    count: u64,
    /// The clock at this message's first fragment.
    base: u64,
    /// Do the copies out go past the caches?
    past_caches: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Root: copies fragment `next` in.
    Fill {
        next: u64,
    },
    /// Others: listens for the root's line.
    Receive,
    /// Others: copies fragment `next` out.
    Drain {
        next: u64,
    },
    Done,
}

/// Bytes in one fragment of a message of `bytes`: a slot's, but short messages are cut in four, so
/// that copying in and out overlap. A pure function of what all ranks know.
fn fragment_bytes(bytes: u64, params: &Params) -> u64 {
    (bytes / 4).next_multiple_of(64).clamp(params.queue_fragment.min(LEAST), params.queue_fragment)
}

/// A fragment below this costs more in notification than it gains in overlap (docs/explanation/parameters.md).
const LEAST: u64 = 4096;

/// Bytes that all copies out write together: more than this would only push each other, and the
/// queue, out of the caches (docs/explanation/parameters.md).
const CACHED: u64 = 8 << 20;

impl<'a> Queue<'a> {
    /// The part of `me`: `data` goes from `root` to everyone.
    ///
    /// # Errors
    /// `root` is no rank.
    pub fn new(me: &Member, data: Data<'a>, root: Rank) -> Result<Self, Refusal> {
        me.check_root(root)?;
        let fragment = fragment_bytes(data.len(), me.layout().params());
        let count = data.len().div_ceil(fragment);
        let past_caches = data.len().saturating_mul(u64::from(me.size() - 1)) > CACHED;
        Ok(Self { operation: 0, root, data, fragment, count, base: 0, past_caches, state: State::Done })
    }

    /// Packed bytes of fragment `k`: first, and length.
    #[inline]
    fn cut(&self, k: u64) -> (u64, u64) {
        let from = k * self.fragment;
        (from, self.fragment.min(self.data.len() - from))
    }

    fn fill<R: Region>(&mut self, region: &R, me: &mut Member, mut next: u64) -> Option<WaitSet> {
        let layout = *me.layout();
        loop {
            let clock = self.base + next;
            let free = match next {
                0 => me.line_free(region, self.operation),
                _ => Ok(()),
            };
            let free = free
                .and_then(|()| if next < self.count { me.take_slot(region, self.operation, clock) } else { Ok(()) });
            if let Err(wait) = free {
                self.state = State::Fill { next };
                return Some(wait);
            }
            if next < self.count {
                let (from, len) = self.cut(next);
                // SAFETY: R10 (S2), everyone has taken the slot's last fragment; the data is the caller's to read.
                unsafe { copy_in(region, layout.slot(self.root, clock).part(0, len), &self.data, from) };
            }
            if next > 0 {
                // publishes: fragment `next`, read after ready > clock
                region.publish(layout.ready(self.root), clock + 1);
            } else {
                // The first fragment travels with the announcement: one line transfer for both.
                let message = (Kind::Bcast, self.data.len());
                line::publish(region, me, self.operation, message, &mut Body::new(), 0);
            }
            next += 1;
            if next >= self.count {
                return None;
            }
        }
    }

    fn drain<R: Region>(&mut self, region: &R, me: &mut Member, mut next: u64) -> Result<Option<WaitSet>, PollError> {
        let layout = *me.layout();
        while next < self.count {
            let clock = self.base + next;
            let published = if next == 0 {
                // The line was received: it published the first fragment.
                clock + 1
            } else {
                // pairs with: fill
                let ready = region.flag(layout.ready(self.root)).load_acquire();
                if !ready.at_least(clock + 1) {
                    self.state = State::Drain { next };
                    let until = Until::AtLeast(clock + 1);
                    return Ok(Some(WaitSet::flag(layout.ready(self.root), until, self.root, self.operation)));
                }
                // The root may be far ahead, in a later operation that left slots alone.
                ready.capped(self.base + self.count)
            };
            while self.base + next < published {
                let (from, len) = self.cut(next);
                let slot = layout.slot(self.root, self.base + next).part(0, len);
                if self.past_caches {
                    // SAFETY: S3, published, and reused only after our `acked`; the data is ours to write.
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
        (self.operation, self.base) = (me.begin(Kind::Bcast), me.take_clock(self.count));
        self.state = if me.rank() == self.root { State::Fill { next: 0 } } else { State::Receive };
    }

    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        if self.state == State::Receive {
            let message = (Kind::Bcast, self.data.len());
            if let Some(wait) = line::receive(region, me, self.root, self.operation, message, &mut Body::new(), 0)? {
                return Ok(Poll::Wait(wait));
            }
            self.state = State::Drain { next: 0 };
        }
        let wait = match self.state {
            State::Fill { next } => {
                let wait = self.fill(region, me, next);
                if wait.is_none() {
                    // The root is done with its own fragments too: the next root asks everyone.
                    me.acknowledge(region, self.base + self.count);
                }
                wait
            }
            State::Drain { next } => self.drain(region, me, next)?,
            State::Receive | State::Done => return over(self.operation),
        };
        if let Some(wait) = wait {
            return Ok(Poll::Wait(wait));
        }
        me.finish(region, self.operation);
        self.state = State::Done;
        Ok(Poll::Done)
    }
}

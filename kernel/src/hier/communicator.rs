//! A communicator over several nodes: a segment in each node, messages between nodes.
//!
//! The host brings both, and what [`Host`] names; this file runs the collectives on it, and says how they end. After an error
//! all ranks have one, on all nodes: a rank that fails writes why into its node's segment and tells the ranks of the other nodes
//! ([`Tell`]).

mod alltoall;
mod blocks;
mod call;
mod row;
mod whole;

pub use call::{Call, Lengths, Side};

use super::pipe::refusal;
use super::places::{Built, Placement, Places};
use super::{BySwitch, Levels, Nodes, Ordered, Switches, reduce_scatter};
use crate::Rank;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::{Argument, Bound, Cause, Error, Poison, PollError, Refusal, WaitError};
use crate::machine::Machine;
use crate::machine::drive::Stop;
use crate::machine::p2p::{P2p, Tell};
use crate::machine::poll::{Await, Poll, Source, WaitSet};
use crate::machine::transport::{Observe, Shared, Wait};
use crate::msg::PlanError;
use crate::msg::levels::Way;
use crate::pattern::Seat;
use crate::pattern::bagds::{Table, table_words};
use crate::region::Region;
use crate::table::{Between, By};
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{self, Waker};

/// What a host brings for a communicator over several nodes.
pub trait Host {
    /// A node's shared memory.
    type Region: Region;
    /// Messages among all ranks.
    type Messages: Tell;
    /// How a process waits: for words of its node, and for messages. A bound of time is half of what a rank may take: the
    /// communicator asks again for a rank that may itself wait. A wait that ends with [`WaitError::Died`] names a rank of the node
    /// by its rank there.
    type Wait: Wait<Levels<Self::Region, Self::Messages>>;
    /// Memory for the lists of ranks and nodes.
    type Places: Places;
    /// Working memory.
    type Scratch: Scratch;
}

/// Working memory of the calls of a communicator: a host with a heap keeps what grows, a host without gives a slice. A call's machine
/// lies there, too: 1 to 2 KB, over levels of switches up to 6.
pub trait Scratch {
    /// `bytes` bytes or more, which are the communicator's until it asks again; `None` where there are not so many. They lie
    /// where they are until then, and after an error for as long as messages may read them.
    fn room(&mut self, bytes: u64) -> Option<&mut [u8]>;
}

impl Scratch for &mut [u8] {
    fn room(&mut self, bytes: u64) -> Option<&mut [u8]> {
        (self.len() as u64 >= bytes).then_some(&mut **self)
    }
}

/// One process's communicator over several nodes. All its ranks make the same calls in the same order. Buffers are raw: messages may
/// still read one after an error.
///
/// A call fails with [`Error::Refused`] where this process's own argument is refused, and all ranks are told. Where
/// [`Host::Scratch`] has too little memory the argument is [`Argument::Scratch`], and all ranks are told that this one died. A rank
/// in a [`Poison`] is a rank of this communicator.
pub struct Communicator<H: Host> {
    engine: Engine<H>,
    places: H::Places,
    algorithms: Between,
    /// Number of ranks, and of nodes.
    size: usize,
    nodes: usize,
    built: Built,
}

impl<H: Host> fmt::Debug for Communicator<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Communicator");
        text.field("rank", &self.rank()).field("size", &self.size).field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

/// What runs machines.
struct Engine<H: Host> {
    levels: Levels<H::Region, H::Messages>,
    wait: H::Wait,
    scratch: H::Scratch,
    /// Calls whose leaders' algorithm was over levels.
    over_levels: u64,
    /// Does the present call wait? Else its future is pending where it would.
    waits: bool,
}

/// Why a call ended early. Ranks are named as [`Levels`] does.
enum End {
    /// The communicator was poisoned before.
    Poisoned(Poison),
    /// This process refuses an argument of its own.
    Refused(Refusal),
    /// There is not so much working memory.
    Memory(u64),
    /// A poll or a wait failed.
    Stopped(Stop),
    /// What rank `peer` of the communicator says does not fit what this process says.
    Disagree { peer: Rank, refusal: Refusal },
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// The algorithms that are chosen here apply to all operations that commute.
impl From<PlanError> for End {
    fn from(error: PlanError) -> Self {
        Self::Refused(refusal(error))
    }
}

impl<H: Host> Engine<H> {
    /// The leaders' algorithm of a call, which is counted.
    const fn by<A: Copy>(&mut self, way: By<A>) -> By<A> {
        self.over_levels += matches!(way, Way::Levels(_)) as u64;
        way
    }

    /// The nodes by their switches, where the leaders' messages of a call go over these; the call is counted then.
    fn over<'s, A: Copy>(&mut self, way: By<A>, by_switch: &'s Option<Ordered<'_>>) -> BySwitch<'s> {
        let by_switch = by_switch.as_ref().filter(|_| matches!(self.by(way), Way::Levels(_)));
        by_switch.map(Ordered::line)
    }

    /// So much working memory.
    fn scratch(&mut self, bytes: u64) -> Result<Buf, End> {
        self.scratch.room(bytes).map(Buf::of_mut).ok_or(End::Memory(bytes))
    }

    /// Makes the machine of the next operation, in `scratch` bytes of working memory, and runs it. Returns that memory.
    ///
    /// The machine lies in working memory, too: a future that held it would be as large, and futures that run futures are copied
    /// when they are made.
    async fn run<M: Machine<Levels<H::Region, H::Messages>>>(
        &mut self,
        scratch: u64,
        make: impl FnOnce(&mut Member, Buf) -> Result<M, Refusal>,
    ) -> Result<Buf, End> {
        const { assert!(!core::mem::needs_drop::<M>(), "it is not dropped") };
        if let Some(poison) = self.levels.poison() {
            return Err(End::Poisoned(poison));
        }
        let memory = self.scratch(scratch.saturating_add(room_for::<M>() as u64))?;
        let (place, scratch) = place_in::<M>(memory);
        let machine = make(self.levels.shared().1, scratch)?;
        // SAFETY: `place_in`: aligned, in memory that is the communicator's until it asks again, which is after the machine's end;
        // nothing else uses this part.
        unsafe { place.write(machine) };
        // SAFETY: as above, and written.
        let machine = unsafe { &mut *place };
        self.drive(machine).await.map(|()| scratch).map_err(End::Stopped)
    }

    /// As [`crate::machine::drive::run`], but a rank that is late may itself wait for one that never came: a process that waits
    /// for the latter must name it first. So the bound of time is asked for in halves: see [`Self::halves`].
    async fn drive(&mut self, machine: &mut impl Machine<Levels<H::Region, H::Messages>>) -> Result<(), Stop> {
        let (mut halves, mut before, inside) = (1, None, self.levels.comm.member().size());
        while let Poll::Wait(on) = machine.poll(&mut self.levels).map_err(Stop::Poll)? {
            match self.pause(&on).await.map_err(|error| numbered(error, &on, inside)) {
                // A wait has ended; after a look, it may go on.
                Ok(()) if self.waits || before != Some(on) => halves = 1,
                Ok(()) => {}
                Err(WaitError::Late(number)) if halves < self.halves(number) => {
                    halves += 1;
                    // Says that this rank waits, and asks for news.
                    self.levels.compare().map_err(Stop::Wait)?;
                }
                Err(error) => return Err(Stop::Wait(error)),
            }
            before = Some(on);
        }
        Ok(())
    }

    /// Waits; or looks, and is pending once.
    async fn pause(&mut self, on: &WaitSet) -> Result<(), WaitError> {
        if self.waits {
            self.levels.idle();
            return self.wait.wait(&mut self.levels, on);
        }
        self.wait.look(&mut self.levels, on)?;
        let mut looked = false;
        poll_fn(|_| if core::mem::replace(&mut looked, true) { task::Poll::Ready(Ok(())) } else { task::Poll::Pending })
            .await
    }

    /// Halves of the bound after which a rank is given up. A rank of this node says whether it waits; one of another node may
    /// wait for its node.
    fn halves(&self, number: Rank) -> u32 {
        if number >= self.levels.comm.member().size() {
            3
        } else if self.levels.comm.waits(number) {
            4
        } else {
            2
        }
    }
}

/// Bytes of working memory for a machine, wherever that begins: whole lines, so that what comes after is aligned as that is.
const fn room_for<M>() -> usize {
    (size_of::<M>() + align_of::<M>()).next_multiple_of(64)
}

/// The place of a machine in working memory that has room for it, and the rest.
fn place_in<M>(memory: Buf) -> (*mut M, Buf) {
    let (base, room) = (memory.ptr(), room_for::<M>());
    let before = base.addr().next_multiple_of(align_of::<M>()) - base.addr();
    (base.wrapping_add(before).cast(), Buf::new(base.wrapping_add(room), memory.len().saturating_sub(room)))
}

/// A rank that is late by the number that [`Levels`] gives it, where the node has `inside` ranks: a wait policy names a rank of
/// the node that a word of the segment is awaited from, and a rank of all that a message is awaited from.
const fn numbered(error: WaitError, on: &WaitSet, inside: u32) -> WaitError {
    match (error, on.first()) {
        (WaitError::Late(rank), Await { source: Source::Message(_), peer: Some(_), .. }) => {
            WaitError::Late(inside.saturating_add(rank))
        }
        _ => error,
    }
}

/// A rank of the communicator, by its number in poison; `inside` are the ranks of this node.
fn rank_of(inside: &[Rank], number: Rank) -> Rank {
    let other = number.saturating_sub(inside.len() as Rank);
    inside.get(number as usize).copied().unwrap_or(other)
}

impl<H: Host> Communicator<H> {
    /// Of the ranks that `levels.messages` connects, where rank r is on node `nodes[r]`. Nodes are numbered in the order of their
    /// first ranks; those of a node share the segment of `levels.comm`, in the order of their ranks. `algorithms` are for as many
    /// nodes, and the same on all ranks.
    ///
    /// # Errors
    /// The nodes are numbered otherwise; they are not those of the messages' ranks, or of the segment's; `places` is too short.
    pub fn new(
        levels: Levels<H::Region, H::Messages>,
        wait: H::Wait,
        mut places: H::Places,
        scratch: H::Scratch,
        nodes: &[u32],
        algorithms: Between,
    ) -> Result<Self, Refusal> {
        let (me, size) = (levels.messages.rank(), nodes.len());
        Refusal::check(Argument::Ranks, size as u64, Bound::Equals(levels.messages.size().into()))?;
        let count = places.lists().fill(nodes)? as usize;
        let placement = Placement::new(places.lists(), size, count, me, Built::default())?;
        let (inside, rank) = (placement.inside().len() as u64, placement.nodes.home().rank);
        Refusal::check(Argument::Ranks, levels.comm.member().size().into(), Bound::Equals(inside))?;
        Refusal::check(Argument::Rank, levels.comm.member().rank().into(), Bound::Equals(rank.into()))?;
        let engine = Engine { levels, wait, scratch, over_levels: 0, waits: true };
        Ok(Self { engine, places, algorithms, size, nodes: count, built: Built::default() })
    }

    /// The same, where node n is connected to switch `switches[n]`, the same on all ranks: `algorithms` are for
    /// [`Switches::levels`] of these, and may be over levels.
    ///
    /// # Errors
    /// There is not one switch for each node; they are not numbered in the order of their first nodes; the places are too
    /// short.
    pub fn over(mut self, switches: &[u32]) -> Result<Self, Refusal> {
        Refusal::check(Argument::Ranks, switches.len() as u64, Bound::Equals(self.nodes as u64))?;
        let lists = self.places.lists();
        self.built.switches = Switches::build(switches, lists.places, lists.by_switch, lists.line)?.is_some();
        Ok(self)
    }

    /// The same with the stages of BAGDS (paper P5), on all ranks or on none: `algorithms` that
    /// [need them](Between::needs_stages) are refused else, when they are called. `work` has
    /// [`work_words`](crate::pattern::bagds::work_words) for the number of nodes.
    ///
    /// # Errors
    /// `work`, or the place for the stages, is too short.
    pub fn in_stages(mut self, work: &mut [u64]) -> Result<Self, Refusal> {
        let me = self.rank();
        let count = self.nodes as u32;
        let node = Placement::new(self.places.lists(), self.size, self.nodes, me, self.built)?.nodes.home().node;
        let table = Table::new(Seat::new(node, count)?, work, self.places.lists().stages)?;
        self.built.stages = Some(table_words(count, table.stages()));
        Ok(self)
    }

    /// This process.
    pub fn rank(&self) -> Rank {
        self.engine.levels.messages.rank()
    }

    /// Number of processes.
    pub const fn size(&self) -> u32 {
        self.size as u32
    }

    /// The node's segment and the messages.
    pub const fn levels(&self) -> &Levels<H::Region, H::Messages> {
        &self.engine.levels
    }

    /// Why the communicator has failed, if it has: on this node, or on another one whose ranks have told this one. Takes all that
    /// they have told so far.
    pub fn failure(&mut self) -> Option<Poison> {
        while self.engine.levels.hear().is_some() {}
        let poison = self.engine.levels.poison()?;
        Some(self.named(poison))
    }

    /// The number of calls in which leaders' messages went over the levels of the network ([`Self::over`]).
    pub const fn over_levels(&self) -> u64 {
        self.engine.over_levels
    }

    /// May a reduce_scatter of so many bytes be one call ([`Call::ReduceScatter`]), and does it take less than a reduce and a scatter?
    /// Where nodes are on several switches, these may go over them, and it may not. All ranks answer alike.
    pub fn reduce_scatters(&mut self, bytes: u64) -> bool {
        let pays = reduce_scatter::pays(self.nodes as u32, bytes);
        let fits = |nodes: Nodes<'_>| nodes.in_order() && nodes.by_switch().is_none();
        pays && self.runner().is_ok_and(|runner| fits(runner.placement.nodes))
    }

    /// The working memory.
    pub const fn scratch(&self) -> &H::Scratch {
        &self.engine.scratch
    }

    /// This process takes part in nothing any more: all ranks learn why.
    pub fn poison(&mut self, cause: Cause) {
        let me = self.engine.levels.comm.member();
        let mine = Poison { rank: me.rank(), operation: me.operation() + 1, cause };
        let counts = self.engine.levels.comm.poison_with(mine);
        self.tell(counts);
    }

    /// Refuses a collective call for an argument that the host checked itself, and tells all ranks, unless the communicator has
    /// failed before.
    pub fn refuse(&mut self, refusal: Refusal) -> Error {
        if self.engine.levels.poison().is_none() {
            self.poison(Cause::Refused(refusal));
        }
        Error::Refused(refusal)
    }

    /// The lists, and what runs machines.
    fn runner(&mut self) -> Result<Runner<'_, H>, Refusal> {
        let me = self.rank();
        let Self { engine, places, algorithms, size, nodes, built } = self;
        Ok(Runner { engine, algorithms, placement: Placement::new(places.lists(), *size, *nodes, me, *built)? })
    }

    /// The error of a call that ended early. Ranks that do not know of it are told.
    #[cold]
    fn end(&mut self, end: End) -> Error {
        match end {
            End::Poisoned(poison) => Error::Poisoned(self.named(poison)),
            End::Refused(refusal) => self.refuse(refusal),
            End::Memory(bytes) => {
                // The others must not wait for this rank.
                self.poison(Cause::Died);
                Error::Refused(Refusal::new(Argument::Scratch, 0, Bound::AtLeast(bytes)))
            }
            End::Stopped(stop) => self.fail(stop),
            End::Disagree { peer, refusal } => {
                self.poison(Cause::Refused(refusal));
                Error::Poll(PollError::Mismatch { peer, refusal })
            }
        }
    }

    /// The error of a call whose machine or wait failed. Where this rank was told of the failure, so were the others.
    fn fail(&mut self, stop: Stop) -> Error {
        let told = matches!(stop, Stop::Wait(WaitError::Poisoned(_)));
        let error = match self.engine.levels.comm.fail(stop) {
            Error::Poisoned(poison) => Error::Poisoned(self.named(poison)),
            Error::Poll(PollError::Mismatch { peer, refusal }) => {
                Error::Poll(PollError::Mismatch { peer: self.rank_of(peer), refusal })
            }
            Error::Poll(PollError::Overrun { peer, expected, found }) => {
                Error::Poll(PollError::Overrun { peer: self.rank_of(peer), expected, found })
            }
            other => other,
        };
        if let Some(poison) = self.engine.levels.poison()
            && !told
        {
            self.tell(poison);
        }
        self.engine.levels.messages.give_up();
        error
    }

    /// Tells the other nodes; this one's ranks look at their segment.
    fn tell(&mut self, poison: Poison) {
        let poison = self.named(poison);
        if let Ok(Runner { engine, placement, .. }) = self.runner() {
            engine.levels.messages.tell(placement.outside(), poison);
        }
    }

    /// The rank of the communicator that has this number in poison.
    fn rank_of(&mut self, number: Rank) -> Rank {
        self.runner().map_or(number, |call| rank_of(call.placement.inside(), number))
    }

    fn named(&mut self, poison: Poison) -> Poison {
        Poison { rank: self.rank_of(poison.rank), ..poison }
    }

    /// Runs a call until it is complete here.
    ///
    /// # Errors
    /// `root` is not below the size; there is not one block for each rank, or blocks are too long; an operand is not a whole number of
    /// elements, or has another length than the result; the operation does not commute, and the ranks of a node do not follow one
    /// another; at the root of a gatherv or scatterv, a rank's block has another length there; blocks overlap that an alltoallv receives
    /// from ranks of this node; the communicator fails, or has failed.
    ///
    /// # Safety
    /// See [`Call`].
    pub unsafe fn run(&mut self, call: Call<'_>) -> Result<(), Error> {
        self.engine.waits = true;
        // SAFETY: the caller's promise.
        let mut running = pin!(unsafe { self.finish(call) });
        loop {
            // What waits inside is never pending.
            if let task::Poll::Ready(end) = running.as_mut().poll(&mut task::Context::from_waker(Waker::noop())) {
                return end;
            }
        }
    }

    /// The same as a future: it begins when it is polled first, and each poll moves it as far as it goes. Nothing wakes it: who polls
    /// it does so again until it is ready. Until then the communicator makes no other call.
    ///
    /// # Errors
    /// As [`Self::run`].
    ///
    /// # Safety
    /// As [`Self::run`]. A future that was polled is polled until it is ready, or stays where it is as after an error: other ranks wait for
    /// this one then, which [`Self::poison`] ends.
    pub async unsafe fn start(&mut self, call: Call<'_>) -> Result<(), Error> {
        self.engine.waits = false;
        // SAFETY: the caller's promise.
        unsafe { self.finish(call) }.await
    }

    /// # Safety
    /// As [`Self::start`].
    async unsafe fn finish(&mut self, call: Call<'_>) -> Result<(), Error> {
        let end = match self.runner() {
            // SAFETY: the caller's promise.
            Ok(runner) => unsafe { runner.run(call) }.await,
            Err(refusal) => Err(End::Refused(refusal)),
        };
        end.map_err(|end| self.end(end))
    }

    /// [`Call::Barrier`].
    ///
    /// # Errors
    /// The communicator fails, or has failed.
    pub fn barrier(&mut self) -> Result<(), Error> {
        // SAFETY: it has no buffers.
        unsafe { self.run(Call::Barrier) }
    }
}

/// Runs one call: what that uses.
struct Runner<'c, H: Host> {
    engine: &'c mut Engine<H>,
    algorithms: &'c Between,
    placement: Placement<'c>,
}

impl<H: Host> Runner<'_, H> {
    /// # Safety
    /// As [`Communicator::start`].
    async unsafe fn run(self, call: Call<'_>) -> Result<(), End> {
        match call {
            Call::Barrier => self.barrier().await,
            // SAFETY: the caller's promise: here, and of all below.
            Call::Bcast { buffer, root } => unsafe { self.bcast(buffer, root) }.await,
            // SAFETY: as above.
            Call::Reduce { send, receive, op, root } => unsafe { self.reduce(send, receive, op, root) }.await,
            // SAFETY: as above.
            Call::Allreduce { send, receive, op } => unsafe { self.allreduce(send, receive, op) }.await,
            // SAFETY: as above.
            Call::Scan { send, receive, op, exclusive } => unsafe { self.scan(send, receive, op, exclusive) }.await,
            // SAFETY: as above.
            Call::Allgather { send, receive, block } => unsafe { self.allgather(send, receive, block) }.await,
            // SAFETY: as above.
            Call::Allgatherv { send, receive } => unsafe { self.allgatherv(send, receive) }.await,
            // SAFETY: as above.
            Call::Gather { send, receive, block, root } => unsafe { self.gather(send, receive, block, root) }.await,
            // SAFETY: as above.
            Call::Gatherv { send, receive, root } => unsafe { self.gatherv(send, receive, root) }.await,
            // SAFETY: as above.
            Call::Scatter { send, receive, block, root } => unsafe { self.scatter(send, receive, block, root) }.await,
            // SAFETY: as above.
            Call::Scatterv { send, receive, root } => unsafe { self.scatterv(send, receive, root) }.await,
            Call::ReduceScatter { send, receive, lengths, op } => {
                // SAFETY: as above.
                unsafe { self.reduce_scatter(send, receive, lengths, op) }.await
            }
            // SAFETY: as above.
            Call::Alltoall { send, receive, block } => unsafe { self.alltoall(send, receive, block) }.await,
            // SAFETY: as above.
            Call::Alltoallv { send, receive } => unsafe { self.alltoallv(send, receive) }.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::poll::{Slot, Until};
    use crate::region::FlagId;

    #[test]
    fn who_is_late_is_named_by_node_or_by_all() {
        let on = |source, peer| WaitSet::one(Await { source, peer, operation: 1, stage: 0 });
        let message = on(Source::Message(Slot(0)), Some(2));
        assert_eq!(numbered(WaitError::Late(2), &message, 3), WaitError::Late(5));
        assert_eq!(numbered(WaitError::Abandoned, &message, 3), WaitError::Abandoned);
        let word = on(Source::Flag(FlagId(0), Until::AtLeast(1)), Some(2));
        assert_eq!(numbered(WaitError::Late(2), &word, 3), WaitError::Late(2));
        // Ranks 1, 3 and 6 of the communicator are on this node.
        assert_eq!([0, 2, 3, 5].map(|number| rank_of(&[1, 3, 6], number)), [1, 6, 0, 2]);
    }
}

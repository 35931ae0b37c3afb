//! The rules on which the plans of all ranks of one operation must agree. They are checked on the plans alone: no
//! memory, no interleaving, any number of ranks. The machine relies on each rule. With a plan that breaks one, a rank
//! overwrites a fragment, waits for ever, or leaves bytes behind.
//!
//! | rule | |
//! |---|---|
//! | alike | all ranks have the same medium and the same advance, and no rank has more steps than that |
//! | posted | a fragment that is taken was posted, at the same place, in the step that its reader waits for |
//! | in time | a fragment is taken from a slot of the same step or a later one: `acked` has not passed it |
//! | taken | a fragment that is posted for one rank is taken by it, in the same step |
//! | received | a reader receives a writer's line when it takes from the writer for the first time |
//! | onward | the next step is a later one, and nothing is taken in the steps between |
//! | follows | a fragment waits only for steps up to its own |
//! | nothing | a rank whose `takes_any` is false takes nothing |
//! | alone | in a rooted operation only the root posts after step 0, for one reader in each step |

use super::cut::Medium;
use super::exchange::{Exchange, Plan, ToAll};
use super::pairs::Pairs;
use super::pairwise::Blockwise;
use super::pieces::Pair;
use super::steps::{Clock, Engine, Steps};
use crate::Rank;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::buffer::Buf;
use crate::data::datatype::{Data, Datatype};
use crate::error::Refusal;
use crate::machine::Operation;
use crate::op::{Op, User};
use crate::region::{Extent, Layout, Params};
use crate::shm::allgather::exchange::allgather;
use crate::shm::allreduce::groups::Grouped;
use crate::shm::allreduce::slices::Slices;
use crate::shm::alltoall::pairwise::{alltoall, alltoallv};
use crate::shm::gather::exchange::Gather;
use crate::shm::gather::posted;
use crate::shm::reduce;
use crate::shm::reduce::exchange::Reduce;
use crate::shm::reduce_scatter::{self, exchange::ReduceScatter};
use crate::shm::scan::exchange::{exscan, scan};
use crate::shm::scatter;
use core::ffi::c_void;
use std::format;
use std::string::String;
use std::vec::Vec;

/// Pseudo-random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 33) % n
    }
}

/// Memory that is never read or written.
fn nowhere(bytes: u64) -> Buf {
    Buf::new(core::ptr::without_provenance_mut(4096), bytes as usize)
}

fn data(bytes: u64) -> Data<'static> {
    // SAFETY: plans are built and queried, never run: the memory is not accessed.
    unsafe { Data::from_raw(nowhere(bytes), bytes, Datatype::BYTE) }.unwrap()
}

/// Blocks of these lengths, one after the other.
fn blocks(counts: Vec<u64>) -> Blocks<'static> {
    let places: Vec<u64> = counts.iter().scan(0, |at, count| Some(core::mem::replace(at, *at + count))).collect();
    let memory = nowhere(counts.iter().sum());
    // SAFETY: as above. A test may leak its lists.
    unsafe { Blocks::vary(memory, counts.leak(), places.leak(), Datatype::BYTE) }.unwrap()
}

/// What the rules ask of an engine; no data moves.
trait Asked: Engine {
    fn partner(&self, _: u64) -> Option<Rank> {
        None
    }

    fn peer(&self, me: Rank, size: u32, index: u32) -> Rank;

    fn takes(&self, step: u64, peer: Rank) -> bool;

    /// Is a line received in `step`? `any`: this process has taken from another one before.
    fn receives(&self, step: u64, any: bool) -> bool;

    fn receive(&mut self, peer: Rank, announced: u64) -> bool;

    fn announced(&self) -> u64;

    fn in_line(&self, me: &Member, step: u64, writer: Rank) -> bool;

    fn place(&self, me: &Member, clock: &Clock, step: u64, pair: Pair) -> Extent;

    fn is_rooted(&self) -> bool {
        false
    }
}

impl<P: Plan> Asked for ToAll<P> {
    fn peer(&self, me: Rank, size: u32, index: u32) -> Rank {
        self.plan.order().peer(me, size, index)
    }

    fn takes(&self, step: u64, peer: Rank) -> bool {
        self.plan.takes(step, peer)
    }

    fn receives(&self, _: u64, any: bool) -> bool {
        !any
    }

    fn receive(&mut self, peer: Rank, announced: u64) -> bool {
        self.plan.expected(peer) == announced
    }

    fn announced(&self) -> u64 {
        self.plan.announced()
    }

    fn in_line(&self, me: &Member, step: u64, writer: Rank) -> bool {
        self.in_line(me, step, writer)
    }

    fn place(&self, me: &Member, clock: &Clock, step: u64, pair: Pair) -> Extent {
        self.place(me, clock, step, pair.writer, || me.lap())
    }
}

impl Asked for Blockwise<'_> {
    fn partner(&self, step: u64) -> Option<Rank> {
        self.pairs.partner(step)
    }

    fn peer(&self, me: Rank, size: u32, index: u32) -> Rank {
        (me + index) % size
    }

    fn takes(&self, step: u64, peer: Rank) -> bool {
        self.takes_of(step, peer)
    }

    fn receives(&self, step: u64, _: bool) -> bool {
        self.pairs.receives(step)
    }

    fn receive(&mut self, peer: Rank, announced: u64) -> bool {
        self.pairs.received(peer, announced).is_ok()
    }

    fn announced(&self) -> u64 {
        self.pairs.announced()
    }

    fn in_line(&self, _: &Member, step: u64, writer: Rank) -> bool {
        !self.pairs.in_slot(step, writer)
    }

    fn place(&self, me: &Member, clock: &Clock, step: u64, pair: Pair) -> Extent {
        self.place(me, clock, step, pair, || me.lap())
    }

    fn is_rooted(&self) -> bool {
        self.is_rooted()
    }
}

/// Checks all rules for one operation of all ranks.
fn check<E: Asked>(what: &str, layout: Layout, make: impl Fn(&Member) -> Result<Steps<E>, Refusal>) {
    let members: Vec<Member> = (0..layout.ranks()).map(|rank| Member::new(layout, rank).unwrap()).collect();
    let mut all: Vec<Steps<E>> = members.iter().map(|me| make(me).unwrap().started(&mut me.clone())).collect();
    let fail = |rule: &str, detail: String| panic!("{what} of {} ranks: {rule}: {detail}", layout.ranks());
    let advance = all[0].clock.advance();
    for (rank, one) in all.iter().enumerate() {
        let steps = one.engine.steps();
        if one.clock.advance() != advance || steps > advance.max(1) || steps == 0 {
            fail("alike", format!("rank {rank} has {steps} steps, advance {}", one.clock.advance()));
        }
    }
    let posts = |all: &[Steps<E>], writer: Rank, step| {
        let engine = &all[writer as usize].engine;
        step < engine.steps() && engine.posts(step).is_some()
    };
    let announced: Vec<u64> = all.iter().map(|one| one.engine.announced()).collect();
    // What was taken: reader, writer, step.
    let mut taken = Vec::new();
    for me in 0..layout.ranks() {
        let (mut step, mut any) = (0, false);
        let mut known = Vec::new();
        while step < all[me as usize].engine.steps() {
            let partner = all[me as usize].engine.partner(step);
            let before = taken.len();
            for index in 0..if partner.is_some() { 1 } else { layout.ranks() } {
                let Steps { engine, clock, .. } = &mut all[me as usize];
                let clock = *clock;
                let peer = partner.unwrap_or_else(|| engine.peer(me, layout.ranks(), index));
                if peer == me || !engine.takes(step, peer) {
                    continue;
                }
                if !engine.takes_any() {
                    fail("nothing", format!("rank {me} takes from {peer} in step {step}"));
                }
                if engine.receives(step, any) {
                    assert!(engine.receive(peer, announced[peer as usize]));
                    known.push(peer);
                } else if !known.contains(&peer) {
                    fail("received", format!("rank {me} takes from {peer} in step {step}"));
                }
                if engine.in_line(&members[me as usize], step, peer) && step > 0 {
                    fail("in time", format!("rank {me} takes the line of {peer} in step {step}"));
                }
                let pair = Pair { writer: peer, reader: me };
                let place = engine.place(&members[me as usize], &clock, step, pair);
                let theirs = &all[peer as usize];
                let for_me = theirs.engine.partner(step).is_none_or(|reader| reader == me);
                let written = theirs.engine.place(&members[peer as usize], &theirs.clock, step, pair);
                if !posts(&all, peer, step) || !for_me || written != place {
                    fail("posted", format!("rank {me} takes {place:?} from {peer} in step {step}"));
                }
                taken.push((me, peer, step));
            }
            any |= taken.len() > before;
            let engine = &all[me as usize].engine;
            let next = engine.next(step).min(engine.steps());
            let between = |step| {
                let met = |peer: &Rank| engine.partner(step).is_none_or(|partner| partner == *peer);
                (0..layout.ranks()).filter(met).find(|&peer| peer != me && engine.takes(step, peer))
            };
            if let Some(peer) = (step + 1..next).find_map(between) {
                fail("onward", format!("rank {me} goes from step {step} to {next}, and takes from {peer} between"));
            }
            if next <= step {
                fail("onward", format!("rank {me} goes from step {step} to {next}"));
            }
            step = next;
        }
    }
    let mut writers = 0;
    for me in 0..layout.ranks() {
        let engine = &all[me as usize].engine;
        let posted = (0..engine.steps()).filter_map(|step| Some((step, engine.posts(step)?))).collect::<Vec<_>>();
        for &(step, after) in &posted {
            if after > step {
                fail("follows", format!("rank {me} posts step {step} after {after}"));
            }
            if let Some(reader) = engine.partner(step)
                && !taken.contains(&(reader, me, step))
            {
                fail("taken", format!("rank {me} posts step {step} for {reader}"));
            }
        }
        let later = posted.iter().filter(|&&(step, _)| step > 0);
        if engine.is_rooted() && later.clone().any(|&(step, _)| engine.partner(step).is_none()) {
            fail("alone", format!("rank {me} posts for all"));
        }
        writers += u32::from(engine.is_rooted() && later.count() > 0);
    }
    if writers > 1 {
        fail("alone", format!("{writers} processes post"));
    }
}

unsafe extern "C-unwind" fn none(_: *const c_void, _: *mut c_void, _: u64, _: *mut c_void) {}

/// An op on elements of `element` bytes.
fn op(element: u64, commutative: bool) -> Op {
    // SAFETY: never called.
    Op::User(unsafe { User::new(none, core::ptr::null_mut(), element, commutative) })
}

/// A random length: around the bounds of lines, slots and their pieces, often 0.
fn length(random: &mut Random, params: &Params) -> u64 {
    let (slot, p) = (params.queue_fragment, u64::from(params.ranks));
    let bounds =
        [0, 0, 0, 8, 16, 48, 112 / p, 112, slot / p, slot, 2 * slot, slot * u64::from(params.queue_slots), 4096, 9000];
    let at = bounds[random.below(bounds.len() as u64) as usize];
    (at + random.below(3) * 8).saturating_sub(random.below(2) * 8).min(40 * slot)
}

fn all_collectives(params: Params, random: &mut Random) {
    let layout = Layout::new(params).unwrap();
    let p = params.ranks as usize;
    let root = random.below(p as u64) as Rank;
    let mut lengths = |n: usize| (0..n).map(|_| length(random, &params)).collect::<Vec<u64>>();
    let (table, each, equal) = (lengths(p * p), lengths(p), lengths(1)[0]);
    let is_root = |me: &Member| me.rank() == root;
    let row = |rank: Rank| (0..p).map(|to| table[rank as usize * p + to]).collect::<Vec<u64>>();
    let column = |rank: Rank| (0..p).map(|from| table[from * p + rank as usize]).collect::<Vec<u64>>();
    let both = |rank: Rank| {
        let place = |to: usize| (rank as usize).min(to) * p + (rank as usize).max(to);
        (0..p).map(|to| table[place(to)]).collect::<Vec<u64>>()
    };
    check("gather", layout, |me| {
        Gather::equal(me, Some(data(equal)), is_root(me).then(|| blocks(std::vec![equal; p])), root)
    });
    check("gatherv", layout, |me| {
        let own = data(each[me.rank() as usize]);
        Gather::vary(me, Some(own), is_root(me).then(|| blocks(each.clone())), root)
    });
    check("scatter", layout, |me| {
        scatter::pairwise::scatter(me, is_root(me).then(|| blocks(std::vec![equal; p])), Some(data(equal)), root)
    });
    check("scatterv", layout, |me| {
        let own = data(each[me.rank() as usize]);
        scatter::pairwise::scatterv(me, is_root(me).then(|| blocks(each.clone())), Some(own), root)
    });
    check("allgatherv", layout, |me| allgather(me, Some(data(each[me.rank() as usize])), blocks(each.clone())));
    check("alltoall", layout, |me| alltoall(me, Some(blocks(std::vec![equal; p])), blocks(std::vec![equal; p])));
    check("alltoallv", layout, |me| alltoallv(me, Some(blocks(row(me.rank()))), blocks(column(me.rank()))));
    check("alltoallv in place", layout, |me| alltoallv(me, None, blocks(both(me.rank()))));
    for commutative in [true, false] {
        let element = [8, 8, params.queue_fragment.min(4096)][random.below(3) as usize];
        let op = op(element, commutative);
        let whole = |bytes: u64| bytes - bytes % element;
        let vector = whole(equal * p as u64);
        check("reduce", layout, |me| Reduce::to_root(me, data(vector), is_root(me).then(|| data(vector)), op, root));
        if reduce::slices::Slices::applies(&Member::new(layout, 0).unwrap(), &op) {
            check("reduce by slices", layout, |me| {
                reduce::slices::Slices::new(me, data(vector), is_root(me).then(|| data(vector)), op, root)
            });
        }
        if reduce::groups::Grouped::applies(&Member::new(layout, 0).unwrap(), &op) {
            check("reduce by groups", layout, |me| {
                reduce::groups::Grouped::new(me, data(vector), is_root(me).then(|| data(vector)), op, root)
            });
        }
        check("allreduce", layout, |me| Reduce::to_all(me, data(vector), data(vector), op));
        check("slices", layout, |me| Slices::new(me, data(vector), data(vector), op));
        if Grouped::applies(&Member::new(layout, 0).unwrap(), &op) {
            check("groups", layout, |me| Grouped::new(me, data(vector), data(vector), op));
        }
        check("scan", layout, |me| scan(me, data(vector), data(vector), op));
        check("exscan", layout, |me| exscan(me, data(vector), data(vector), op));
        let parts: Vec<u64> = each.iter().map(|bytes| whole(*bytes)).collect();
        check("reduce_scatter", layout, |me| {
            ReduceScatter::new(me, blocks(parts.clone()), data(parts[me.rank() as usize]), op)
        });
        if reduce_scatter::groups::Grouped::applies(&Member::new(layout, 0).unwrap(), &op) {
            check("reduce_scatter by groups", layout, |me| {
                reduce_scatter::groups::Grouped::new(me, blocks(parts.clone()), data(parts[me.rank() as usize]), op)
            });
        }
    }
}

fn plans_agree(ranks: impl Iterator<Item = u32>) {
    let mut random = Random(1);
    for ranks in ranks {
        for queue_slots in [1, 2, 4, 16] {
            for queue_fragment in [64, 256, 4096, 32 << 10] {
                let params = Params { queue_slots, queue_fragment, lines: 2, ..Params::new(ranks) };
                for _ in 0..if ranks < 10 { 8 } else { 1 } {
                    all_collectives(params, &mut random);
                }
            }
        }
    }
}

#[test]
fn plans_agree_among_few() {
    plans_agree(1..=3);
}

#[test]
fn plans_agree_among_many() {
    plans_agree((4..=9).chain([16, 17, 33]));
}

#[test]
fn lengths_that_all_know_are_compared() {
    fn compared<E: Asked>(steps: Result<Steps<E>, Refusal>, bytes: u64) {
        let mut engine = steps.unwrap().engine;
        assert_eq!((engine.announced(), engine.receive(1, bytes), engine.receive(1, bytes + 8)), (bytes, true, false));
    }
    let [me, four] = [3, 4].map(|ranks| Member::new(Layout::new(Params::new(ranks)).unwrap(), 0).unwrap());
    for bytes in [24, 240_000] {
        let op = op(8, true);
        compared(Reduce::to_all(&me, data(bytes), data(bytes), op), bytes);
        compared(scan(&me, data(bytes), data(bytes), op), bytes);
        compared(ReduceScatter::new(&me, blocks(std::vec![bytes; 3]), data(bytes), op), bytes);
        compared(Slices::new(&me, data(bytes), data(bytes), op), bytes);
        compared(reduce::slices::Slices::new(&me, data(bytes), Some(data(bytes)), op, 0), bytes);
        compared(reduce::groups::Grouped::new(&four, data(bytes), Some(data(bytes)), op, 0), bytes);
        compared(Grouped::new(&four, data(bytes), data(bytes), op), bytes);
        compared(reduce_scatter::groups::Grouped::new(&four, blocks(std::vec![bytes; 4]), data(bytes), op), bytes);
        compared(alltoall(&me, Some(blocks(std::vec![bytes; 3])), blocks(std::vec![bytes; 3])), bytes);
    }
}

#[test]
fn short_blocks_of_a_gatherv_travel_in_lines() {
    let lines = |me: &Member, counts| {
        let all: Exchange<Gather<'_>> = Gather::vary(me, Some(data(100)), Some(blocks(counts)), 0).unwrap();
        [0, 1, 2].map(|writer| all.engine.in_line(me, 0, writer))
    };
    let params = Params { queue_slots: 4, queue_fragment: 64, ..Params::new(3) };
    let me = Member::new(Layout::new(params).unwrap(), 0).unwrap();
    let roomy = Member::new(Layout::new(Params { queue_fragment: 128, ..params }).unwrap(), 0).unwrap();
    assert_eq!(lines(&roomy, std::vec![100, 113, 0]), [true, false, true]);
    assert_eq!(lines(&me, std::vec![100, 65, 64]), [false, false, true], "a line has all of a message, or none of it");
    // The machine that takes lines alone has the same rule, for its own block and for those that a root takes.
    let posted = |me: &Member, counts, root| posted::all_fit(me, Some(&data(64)), Some(&blocks(counts)), root);
    assert_eq!([100, 113].map(|bytes| posted::fits(&roomy, bytes)), [true, false]);
    assert_eq!([64, 65].map(|bytes| posted::fits(&me, bytes)), [true, false]);
    let of = |bytes| std::vec![64, bytes, 0];
    assert_eq!([64, 65].map(|bytes| posted(&me, of(bytes), 0)), [true, false]);
    assert!(posted(&me, of(65), 1), "only the root's blocks count");
    let all: Exchange<Gather<'_>> =
        Gather::vary(&me, Some(data(100)), Some(blocks(std::vec![100, 113, 0])), 0).unwrap();
    assert_eq!([0, 1].map(|writer| all.engine.in_line(&me, 1, writer)), [false; 2], "only step 0 lies in lines");
    assert_eq!((all.engine.posts(0), all.engine.takes_any()), (None, true));
    let one = Gather::equal(&me, Some(data(200)), None, 1).unwrap();
    assert_eq!(one.engine.medium, Medium::Queues);
    assert_eq!((one.engine.in_line(&me, 0, 0), one.engine.posts(0), one.engine.takes_any()), (false, Some(0), false));
    assert_eq!([1, 3, 4].map(|step| one.engine.posts(step)), [Some(0), Some(0), None]);
}

#[test]
fn an_alltoallv_on_lines_alone_has_the_rule_of_pairwise_ones() {
    for (ranks, slot) in [(2, 64), (2, 128), (2, 8192), (3, 64), (3, 256), (5, 64), (5, 512), (9, 8192)] {
        let params = Params { queue_slots: 4, queue_fragment: slot, ..Params::new(ranks) };
        let me = Member::new(Layout::new(params).unwrap(), 0).unwrap();
        for (sent, received) in (0..120).flat_map(|bytes| [(bytes, 0), (0, bytes), (bytes, bytes)]) {
            let pairwise = Pairs::unknown(&me, sent, received).is_ok_and(|pairs| pairs.all_in_lines());
            let send = blocks(std::vec![sent; ranks as usize]);
            let alone = crate::shm::alltoall::lengths(&me, Some(&send), received).is_some();
            assert_eq!(alone, pairwise, "{sent} and {received} bytes among {ranks}, slots of {slot}");
        }
    }
}

#[test]
fn a_root_that_posts_alone_continues_in_the_readers_queues() {
    let layout = Layout::new(Params { queue_slots: 2, queue_fragment: 64, ..Params::new(3) }).unwrap();
    let mut me = Member::new(layout, 0).unwrap();
    me.take_clock(5, 100);
    let all = scatter::pairwise::scatter(&me, Some(blocks(std::vec![640; 3])), Some(data(640)), 0);
    let all = all.unwrap().started(&mut me);
    let Steps { engine, clock, .. } = &all;
    assert_eq!((engine.is_rooted(), engine.pairs.rounds(), clock.at(0)), (true, 3, 5));
    for step in 1..engine.steps() {
        let reader = engine.partner(step).unwrap();
        let queue = if step < 2 { 0 } else { reader };
        let place = Asked::place(engine, &me, clock, step, Pair { writer: 0, reader });
        assert_eq!(place, layout.slot(queue, 5 + step), "step {step}");
        assert_eq!(engine.in_readers_queue(step, me.lap().slots), (step >= 2).then_some(6));
    }
}

//! What the plans of all processes of one operation must agree on, read on paper: no memory, no interleaving, any number
//! of processes. The machine relies on each of these rules; a plan that breaks one overwrites, waits for ever, or leaves
//! bytes where they are.
//!
//! | rule | |
//! |---|---|
//! | alike | all have the same way and the same advance, and no process has more ticks |
//! | posted | what is taken was posted, at the same place, in the tick that its reader waits for |
//! | in time | what is taken in a tick lies in a slot of that tick or a later one: `taken` has not passed it |
//! | taken | what is posted for one process is taken by it, in the same tick |
//! | heard | the line is heard when its writer is first taken from |
//! | onward | the next tick is a later one, and nothing is taken in those between |
//! | follows | a fragment waits for ticks up to its own only |
//! | nothing | who takes nothing takes nothing |
//! | alone | where one process alone posts, for one reader in each tick, no other does |

use super::*;
use crate::blocks::Blocks;
use crate::buffer::Buf;
use crate::datatype::{Data, Datatype};
use crate::op::{Op, User};
use crate::region::{Layout, Params};
use crate::shm::allgather::exchange::allgather;
use crate::shm::allreduce::slices::Slices;
use crate::shm::alltoall::exchange::Alltoall;
use crate::shm::gather::exchange::Gather;
use crate::shm::reduce::exchange::Reduce;
use crate::shm::reduce_scatter::exchange::ReduceScatter;
use crate::shm::scatter::exchange::Scatter;
use core::ffi::c_void;
use std::format;
use std::string::String;
use std::vec::Vec;

/// Numbers that a seed gives.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 33) % n
    }
}

/// Memory that nobody reads or writes.
fn nowhere(bytes: u64) -> Buf {
    Buf::new(core::ptr::without_provenance_mut(4096), bytes as usize)
}

fn data(bytes: u64) -> Data<'static> {
    // SAFETY: plans are made and asked, never run: the memory is not accessed.
    unsafe { Data::from_raw(nowhere(bytes), bytes, Datatype::BYTE) }.unwrap()
}

/// Blocks of these lengths, one behind the other.
fn blocks(counts: Vec<u64>) -> Blocks<'static> {
    let places: Vec<u64> = counts.iter().scan(0, |at, count| Some(core::mem::replace(at, *at + count))).collect();
    let memory = nowhere(counts.iter().sum());
    // SAFETY: as above. A test may leak its lists.
    unsafe { Blocks::vary(memory, counts.leak(), places.leak(), Datatype::BYTE) }.unwrap()
}

/// Asks all plans of one operation all that the machine asks.
fn check<P: Plan>(what: &str, layout: Layout, make: impl Fn(&mut Member) -> Result<Exchange<P>, Refusal>) {
    let mut members: Vec<Member> = (0..layout.ranks()).map(|rank| Member::new(layout, rank).unwrap()).collect();
    let mut all: Vec<Exchange<P>> = members.iter_mut().map(|me| make(me).unwrap()).collect();
    let fail = |rule: &str, detail: String| panic!("{what} of {} ranks: {rule}: {detail}", layout.ranks());
    let (way, advance) = (all[0].way, all[0].advance);
    for (rank, one) in all.iter().enumerate() {
        let fits = one.plan.ticks() <= if way == Way::Queues { advance } else { 1 };
        if one.way != way || one.advance != advance || !fits || one.plan.ticks() == 0 {
            fail("alike", format!("rank {rank} has {} ticks, advance {}", one.plan.ticks(), one.advance));
        }
    }
    let posts = |all: &[Exchange<P>], writer: Rank, tick| {
        let plan = &all[writer as usize].plan;
        tick < plan.ticks() && plan.posts(tick)
    };
    let announced: Vec<u64> = all.iter().map(|one| one.plan.announced()).collect();
    // What each reader takes: writer, tick.
    let mut taken = Vec::new();
    for me in 0..layout.ranks() {
        let mut tick = 0;
        let mut known = Vec::new();
        while tick < all[me as usize].plan.ticks() {
            let partner = all[me as usize].plan.partner(tick);
            let turns = if partner.is_some() { 1 } else { layout.ranks() };
            for index in 0..turns {
                let one = &mut all[me as usize];
                let peer = partner.unwrap_or_else(|| one.plan.turn(me, layout.ranks(), index));
                if !one.plan.takes(tick, peer) {
                    continue;
                }
                if peer == me {
                    continue;
                }
                if !one.plan.takes_any() {
                    fail("nothing", format!("rank {me} takes from {peer} in tick {tick}"));
                }
                if one.plan.hears(tick) {
                    one.plan.heard(peer, announced[peer as usize]).unwrap();
                    known.push(peer);
                } else if !known.contains(&peer) {
                    fail("heard", format!("rank {me} takes from {peer} in tick {tick}"));
                }
                let at = one.slot(tick, peer);
                let place = one.place(&members[me as usize], tick, (peer, me));
                let slot = at.unwrap_or(0);
                if at.is_some_and(|slot| slot < tick) {
                    fail("in time", format!("rank {me} takes the slot of tick {slot} from {peer} in tick {tick}"));
                }
                let theirs = &all[peer as usize];
                let for_me = theirs.plan.partner(slot).is_none_or(|reader| reader == me);
                let written = theirs.place(&members[peer as usize], slot, (peer, me));
                if !posts(&all, peer, slot) || !for_me || written != place {
                    fail("posted", format!("rank {me} takes {place:?} of tick {slot} from {peer} in tick {tick}"));
                }
                taken.push((me, peer, slot));
            }
            let plan = &all[me as usize].plan;
            let next = plan.next(tick).min(plan.ticks());
            let between = |tick| {
                let met = |peer: &Rank| plan.partner(tick).is_none_or(|partner| partner == *peer);
                (0..layout.ranks()).filter(met).find(|&peer| peer != me && plan.takes(tick, peer))
            };
            if let Some(peer) = (tick + 1..next).find_map(between) {
                fail("onward", format!("rank {me} goes from tick {tick} to {next}, and takes from {peer} between"));
            }
            if next <= tick {
                fail("onward", format!("rank {me} goes from tick {tick} to {next}"));
            }
            tick = next;
        }
    }
    let mut writers = 0;
    for me in 0..layout.ranks() {
        let plan = &all[me as usize].plan;
        let posted = (0..plan.ticks()).filter(|&tick| plan.posts(tick)).collect::<Vec<_>>();
        for &tick in &posted {
            if plan.follows(tick) > tick {
                fail("follows", format!("rank {me} posts tick {tick} after {}", plan.follows(tick)));
            }
            if let Some(reader) = plan.partner(tick)
                && !taken.contains(&(reader, me, tick))
            {
                fail("taken", format!("rank {me} posts tick {tick} for {reader}"));
            }
        }
        let behind = posted.iter().filter(|&&tick| tick > 0);
        if plan.alone().is_some() && behind.clone().any(|&tick| plan.partner(tick).is_none()) {
            fail("alone", format!("rank {me} posts for all"));
        }
        writers += u32::from(plan.alone().is_some() && behind.count() > 0);
    }
    if writers > 1 {
        fail("alone", format!("{writers} processes post"));
    }
}

unsafe extern "C-unwind" fn none(_: *const c_void, _: *mut c_void, _: u64, _: *mut c_void) {}

/// An operation on elements of so many bytes.
fn op(element: u64, commutative: bool) -> Op {
    // SAFETY: never called.
    Op::User(unsafe { User::new(none, core::ptr::null_mut(), element, commutative) })
}

/// Lengths at the bounds of lines, slots and their pieces, and many that are nothing.
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
        Scatter::equal(me, is_root(me).then(|| blocks(std::vec![equal; p])), Some(data(equal)), root)
    });
    check("scatterv", layout, |me| {
        let own = data(each[me.rank() as usize]);
        Scatter::vary(me, is_root(me).then(|| blocks(each.clone())), Some(own), root)
    });
    check("allgatherv", layout, |me| allgather(me, Some(data(each[me.rank() as usize])), blocks(each.clone())));
    check("alltoall", layout, |me| Alltoall::equal(me, Some(blocks(std::vec![equal; p])), blocks(std::vec![equal; p])));
    check("alltoallv", layout, |me| Alltoall::vary(me, Some(blocks(row(me.rank()))), blocks(column(me.rank()))));
    check("alltoallv in place", layout, |me| Alltoall::vary(me, None, blocks(both(me.rank()))));
    for commutative in [true, false] {
        let element = [8, 8, params.queue_fragment.min(4096)][random.below(3) as usize];
        let op = op(element, commutative);
        let whole = |bytes: u64| bytes - bytes % element;
        let vector = whole(equal * p as u64);
        check("reduce", layout, |me| Reduce::to_root(me, data(vector), is_root(me).then(|| data(vector)), op, root));
        check("allreduce", layout, |me| Reduce::to_all(me, data(vector), data(vector), op));
        check("slices", layout, |me| Slices::new(me, data(vector), data(vector), op));
        check("scan", layout, |me| Reduce::scan(me, data(vector), data(vector), op));
        check("exscan", layout, |me| Reduce::exscan(me, data(vector), data(vector), op));
        let parts: Vec<u64> = each.iter().map(|bytes| whole(*bytes)).collect();
        check("reduce_scatter", layout, |me| {
            ReduceScatter::new(me, blocks(parts.clone()), data(parts[me.rank() as usize]), op)
        });
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
    fn compared<P: Plan>(exchange: Result<Exchange<P>, Refusal>, bytes: u64) {
        let mut plan = exchange.unwrap().plan;
        assert_eq!((plan.announced(), plan.heard(1, bytes)), (bytes, Ok(())));
        let refusal = Refusal::new(Argument::Bytes, bytes, Bound::Equals(bytes + 8));
        assert_eq!(plan.heard(1, bytes + 8), Err(PollError::Mismatch { peer: 1, refusal }));
    }
    let me = Member::new(Layout::new(Params::new(3)).unwrap(), 0).unwrap();
    for bytes in [24, 240_000] {
        let op = op(8, true);
        compared(Reduce::to_all(&me, data(bytes), data(bytes), op), bytes);
        compared(Reduce::scan(&me, data(bytes), data(bytes), op), bytes);
        compared(ReduceScatter::new(&me, blocks(std::vec![bytes; 3]), data(bytes), op), bytes);
        compared(Slices::new(&me, data(bytes), data(bytes), op), bytes);
        compared(Alltoall::equal(&me, Some(blocks(std::vec![bytes; 3])), blocks(std::vec![bytes; 3])), bytes);
    }
}

#[test]
fn short_blocks_of_a_gatherv_travel_in_lines() {
    let params = Params { queue_slots: 4, queue_fragment: 64, ..Params::new(3) };
    let me = Member::new(Layout::new(params).unwrap(), 0).unwrap();
    let counts = std::vec![100, 113, 0];
    let plan = Gather::vary(&me, Some(data(100)), Some(blocks(counts)), 0).unwrap().plan;
    assert_eq!([0, 1, 2].map(|writer| plan.slot(0, writer)), [None, Some(0), None]);
    assert_eq!([0, 1].map(|writer| plan.slot(1, writer)), [Some(1); 2], "what does not fit into the first fragment");
    assert_eq!((plan.posts(0), plan.takes_any()), (false, true));
    let plan = Gather::equal(&me, Some(data(200)), None, 1).unwrap().plan;
    assert_eq!((plan.slot(0, 0), plan.posts(0), plan.takes_any()), (Some(0), true, false));
    assert_eq!([1, 3, 4].map(|tick| plan.posts(tick)), [true, true, false]);
}

#[test]
fn who_posts_alone_goes_on_in_the_readers_queues() {
    let layout = Layout::new(Params { queue_slots: 2, queue_fragment: 64, ..Params::new(3) }).unwrap();
    let mut me = Member::new(layout, 0).unwrap();
    me.take_clock(5);
    let scatter = Scatter::equal(&me, Some(blocks(std::vec![640; 3])), Some(data(640)), 0).unwrap().started(&mut me);
    assert_eq!((scatter.plan.alone(), scatter.base), (Some(3), 5));
    for tick in 1..scatter.plan.ticks() {
        let reader = scatter.plan.partner(tick).unwrap();
        let queue = if tick < 2 { 0 } else { reader };
        assert_eq!(scatter.place(&me, tick, (0, reader)), layout.slot(queue, 5 + tick), "tick {tick}");
        assert_eq!(scatter.beyond(&me, tick), (tick >= 2).then_some(6));
    }
}

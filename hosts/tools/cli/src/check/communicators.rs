//! Random trees of communicators: each vertex comes from another one by dup, split or a group, and runs collectives that are
//! checked; in the end no memory is leased.

use super::Tally;
use crate::error::Failure;
use rand::{RngExt, SeedableRng};
use rand_xorshift::XorShiftRng;
use unisono_kernel::op::Op;
use unisono_posix::Intracomm;

/// Trees, and steps of each.
const TREES: u64 = 4;
const STEPS: u64 = 40;

/// A communicator: its members, by rank, as ranks of the first communicator; all ranks know them. And this rank's
/// handle, if it is a member.
struct Vertex {
    members: Vec<u32>,
    comm: Option<Intracomm>,
}

/// How a communicator is made from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    Dup,
    Split,
    Group,
}

/// Draws how the next communicator is made from one with `members`, and its members in their order.
fn draw(members: &[u32], random: &mut XorShiftRng) -> (Maker, Vec<u32>) {
    let (maker, pick) = (random.random_range(0..3u64), random.random_range(0..1u64 << 32));
    let mut chosen: Vec<u32> = members.iter().copied().filter(|world| pick >> (world % 32) & 1 == 1).collect();
    if chosen.is_empty() || maker == 0 {
        return (Maker::Dup, members.into());
    }
    if pick & 3 == 3 {
        chosen.reverse();
    }
    (if maker == 1 { Maker::Split } else { Maker::Group }, chosen)
}

/// Makes a communicator of the ranks `chosen` from `parent`, whose members are `members`; nothing if this rank is not
/// in it. All ranks of `parent` call, or for a group all ranks that are chosen.
fn make(
    parent: &mut Intracomm,
    me: u32,
    maker: Maker,
    members: &[u32],
    chosen: &[u32],
) -> Result<Option<Intracomm>, Failure> {
    let place = |world: &u32| members.iter().position(|other| other == world).unwrap_or(0) as u32;
    let at = chosen.iter().position(|&world| world == me);
    Ok(match (maker, at) {
        (Maker::Dup, _) => Some(parent.dup()?),
        (Maker::Split, at) => parent.split(at.map(|_| 6), at.unwrap_or(0) as i64)?,
        (Maker::Group, Some(_)) => Some(parent.create_group(&chosen.iter().map(place).collect::<Vec<_>>(), 1)?),
        (Maker::Group, None) => None,
    })
}

/// Runs a few collectives among `members`, through lines and queues; are all results right?
pub(super) fn run(comm: &mut Intracomm, members: &[u32], seed: u64) -> Result<bool, Failure> {
    let mut right = comm.place().members() == members;
    let sum: u64 = members.iter().map(|&world| u64::from(world) * seed).sum();
    let mine = members.get(comm.rank() as usize).copied().unwrap_or(u32::MAX);
    let mut word = (u64::from(mine) * seed).to_ne_bytes();
    comm.allreduce_in_place(&mut word, Op::SUM_U64)?;
    right &= u64::from_ne_bytes(word) == sum;
    for (root, bytes) in [(0, 13), (comm.size() - 1, 90_000)] {
        let expected: Vec<u8> = (0..bytes).map(|i: u64| (i * 3 + seed + u64::from(root)) as u8).collect();
        let mut data = if comm.rank() == root { expected.clone() } else { vec![0; bytes as usize] };
        comm.bcast(&mut data, root)?;
        right &= data == expected;
    }
    comm.barrier()?;
    Ok(right)
}

pub(super) fn check(world: &mut Intracomm, tally: &mut Tally) -> Result<(), Failure> {
    let me = world.rank();
    let everyone: Vec<u32> = (0..world.size()).collect();
    for tree in 0..TREES {
        let mut random = XorShiftRng::seed_from_u64(tree);
        let mut live: Vec<Vertex> = Vec::new();
        for step in 0..STEPS {
            let at = random.random_range(0..=live.len());
            if random.random_range(0..4) == 0 && at < live.len() {
                drop(live.swap_remove(at));
                continue;
            }
            let members = live.get(at).map_or(everyone.clone(), |vertex| vertex.members.clone());
            let (maker, chosen) = draw(&members, &mut random);
            let parent = live.get_mut(at).map_or(Some(&mut *world), |vertex| vertex.comm.as_mut());
            let mut comm = match parent {
                Some(parent) => make(parent, me, maker, &members, &chosen)?,
                None => None,
            };
            let mut right = comm.is_some() == chosen.contains(&me);
            if let Some(comm) = &mut comm {
                right &= run(comm, &chosen, step + 1)?;
            }
            let name = match maker {
                Maker::Dup => "dup",
                Maker::Split => "split",
                Maker::Group => "create_group",
            };
            tally.case(format!("tree {tree}, step {step}: {name} of {members:?} is {chosen:?}"), right);
            live.push(Vertex { members: chosen, comm });
        }
        drop(live);
        world.barrier()?;
        let leased = world.place().usage().leased;
        tally.case(format!("tree {tree}: bytes leased in the end are 0"), leased == 0);
        world.barrier()?;
    }
    Ok(())
}

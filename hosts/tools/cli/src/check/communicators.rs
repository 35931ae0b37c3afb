//! Random trees of communicators: each vertex comes from another one by dup, split or a group, and runs collectives that are
//! checked; in the end nothing is leased.

use super::Tally;
use crate::error::Failure;
use rand::{RngExt, SeedableRng};
use rand_xorshift::XorShiftRng;
use unisono_kernel::op::Op;
use unisono_posix::Intracomm;

/// Trees, and steps of each.
const TREES: u64 = 4;
const STEPS: u64 = 40;

/// What all ranks know alike of a communicator: its members; and this rank's handle, if it is one.
struct Vertex {
    members: Vec<u32>,
    comm: Option<Intracomm>,
}

/// Who follows from `members`, in order, and how: a dup, a part of a split, a group.
fn follow(members: &[u32], random: &mut XorShiftRng) -> (u64, Vec<u32>) {
    let (way, pick) = (random.random_range(0..3), random.random_range(0..1u64 << 32));
    let mut chosen: Vec<u32> = members.iter().copied().filter(|world| pick >> (world % 32) & 1 == 1).collect();
    if chosen.is_empty() || way == 0 {
        return (0, members.into());
    }
    if pick & 3 == 3 {
        chosen.reverse();
    }
    (way, chosen)
}

/// The new communicator, if this rank is in it; all of `parent` call, or of the group.
fn make(
    parent: &mut Intracomm,
    me: u32,
    way: u64,
    (members, chosen): (&[u32], &[u32]),
) -> Result<Option<Intracomm>, Failure> {
    let place = |world: &u32| members.iter().position(|other| other == world).unwrap_or(0) as u32;
    let at = chosen.iter().position(|&world| world == me);
    Ok(match (way, at) {
        (0, _) => Some(parent.dup()?),
        (1, at) => parent.split(at.map(|_| 6), at.unwrap_or(0) as i64)?,
        (_, Some(_)) => Some(parent.create_group(&chosen.iter().map(place).collect::<Vec<_>>(), 1)?),
        (_, None) => None,
    })
}

/// A few collectives among `members`, through lines and queues.
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
            let (way, chosen) = follow(&members, &mut random);
            let parent = live.get_mut(at).map_or(Some(&mut *world), |vertex| vertex.comm.as_mut());
            let mut comm = match parent {
                Some(parent) => make(parent, me, way, (&members, &chosen))?,
                None => None,
            };
            let mut right = comm.is_some() == chosen.contains(&me);
            if let Some(comm) = &mut comm {
                right &= run(comm, &chosen, step + 1)?;
            }
            let name = ["dup", "split", "create_group"][way as usize];
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

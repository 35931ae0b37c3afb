//! Communicators that are made from others: bodies of ranks, and the tests that start them.

use super::Scene;
use super::body::{Failure, argument, die, launched, say};
use rand::{RngExt, SeedableRng};
use rand_xorshift::XorShiftRng;

use unisono_kernel::Rank;
use unisono_kernel::op::Op;
use unisono_kernel::region::Params;
use unisono_posix::arena::{Plan, Queues};
use unisono_posix::launch::Exit;
use unisono_posix::{Intracomm, Limit, Options, Placement, PosixError, join};

pub(super) type Done = Result<(), Failure>;

pub(super) fn joined(arena: Option<u64>) -> Result<Intracomm, Failure> {
    Ok(join(&mut launched()?, Params::new, &Options { arena, ..Options::default() })?.communicator)
}

/// A few collectives on a communicator of these processes, with every root: short ones, and one through the queues.
pub(super) fn verify(comm: &mut Intracomm, seed: u64, members: &[u32]) -> Result<(), PosixError> {
    assert_eq!(comm.place().members(), members);
    let sum: u64 = members.iter().map(|&world| u64::from(world) + seed).sum();
    let mut mine = (u64::from(members[comm.rank() as usize]) + seed).to_ne_bytes();
    comm.allreduce_in_place(&mut mine, Op::SUM_U64)?;
    assert_eq!(u64::from_ne_bytes(mine), sum);
    for root in 0..comm.size() {
        let bytes = [5, 120, 9000][(seed + u64::from(root)) as usize % 3];
        let expected: Vec<u8> = (0..bytes).map(|i| (i + seed as usize * 3 + root as usize) as u8).collect();
        let mut data = if comm.rank() == root { expected.clone() } else { vec![0; bytes] };
        comm.bcast(&mut data, root)?;
        assert!(data == expected, "{bytes} bytes from {root}");
    }
    comm.barrier().map_err(PosixError::from)
}

/// Communicators of all kinds, used and freed in turn, so that later ones get memory that other processes had before: where
/// this rank's pages are in each. The first user of a rank's part is not always that rank: a root writes nothing there, but
/// reads, and so do others who wait for it.
pub(super) fn placed() -> Done {
    let mut world = joined(None)?;
    let (me, size) = (world.rank(), world.size());
    let (mut sum, mut communicators) = (Placement::default(), 0);
    for round in 0..6_u64 {
        let everyone: Vec<u32> = (0..size).collect();
        let mut dup = world.dup()?;
        verify(&mut dup, round, &everyone)?;
        // Neighbours, then those half of the ranks apart, then turned around.
        let color = |rank: u32| [rank / 2, rank % (size / 2)][(round % 2) as usize];
        let key = |rank: u32| if round % 3 == 2 { -i64::from(rank) } else { 0 };
        let mut members: Vec<u32> = (0..size).filter(|&rank| color(rank) == color(me)).collect();
        members.sort_by_key(|&rank| key(rank));
        let mut split = world.split(Some(color(me)), key(me))?.ok_or("no color")?;
        verify(&mut split, round, &members)?;
        let mut group = world.create_group(&members, round as u32)?;
        verify(&mut group, round, &members)?;
        for comm in [&mut dup, &mut split, &mut group] {
            for root in 0..comm.size() {
                let mut long = vec![if comm.rank() == root { 7 } else { 0 }; 200_000];
                comm.bcast(&mut long, root)?;
                assert!(long.iter().all(|byte| *byte == 7));
            }
            let found = comm.place().placement().ok_or("the first segment")?;
            let Placement { checked, misplaced, unknown, node, .. } = found;
            assert!(checked > 0);
            (sum.rank, sum.node) = (me, node);
            sum.checked += checked;
            sum.misplaced.extend(misplaced);
            sum.unknown += unknown;
            communicators += 1;
        }
    }
    say("slices", format!("{communicators} communicators, {sum}"));
    Ok(())
}

/// After all ranks have freed all their communicators: nothing is leased.
pub(super) fn nothing_is_leased(world: &mut Intracomm) -> Done {
    world.barrier()?;
    let usage = world.place().usage();
    assert_eq!(usage.leased, 0, "{usage:?}");
    world.barrier()?;
    Ok(())
}

/// The members of a communicator, known to all ranks, and this rank's handle, if it is a member.
struct Vertex {
    members: Vec<u32>,
    comm: Option<Intracomm>,
}

/// The items in an order of this rank's own.
pub(super) fn shuffled<A>(mut items: Vec<A>, random: &mut XorShiftRng) -> Vec<A> {
    for i in (1..items.len()).rev() {
        items.swap(i, random.random_range(0..=i));
    }
    items
}

/// A random tree of communicators, the same on all ranks; each rank frees them in an order of its own.
pub(super) fn tree() -> Done {
    let seed: u64 = argument().parse()?;
    let mut world = joined(Some(48 << 20))?;
    let me = world.rank();
    let (mut random, mut own) =
        (XorShiftRng::seed_from_u64(seed), XorShiftRng::seed_from_u64(seed ^ u64::from(me) << 32 | 1));
    let everyone: Vec<u32> = (0..world.size()).collect();
    let mut live = vec![];
    for step in 0..60u64 {
        let at = random.random_range(0..=live.len());
        let (color, flip, pick) =
            (random.random_range(1..=3), random.random_range(0..2) == 1, random.random_range(0..1u64 << 16));
        let action = random.random_range(0..6);
        let members = live.get(at).map_or(everyone.clone(), |vertex: &Vertex| vertex.members.clone());
        let parent = live.get_mut(at).map_or(Some(&mut world), |vertex| vertex.comm.as_mut());
        match action {
            0 => {
                let comm = parent.map(Intracomm::dup).transpose()?;
                live.push(Vertex { members, comm });
            }
            1 => {
                // The last of the values means no color.
                let of = |world: u32| Some(world % (color + 1)).filter(|&mine| mine < color);
                let key = |world: u32| if flip { -i64::from(world / 2) } else { 7 };
                let part = match parent {
                    Some(parent) => parent.split(of(me), key(me))?,
                    None => None,
                };
                assert_eq!(part.is_some(), of(me).is_some() && members.contains(&me));
                let mut comm = part;
                for color in 0..color {
                    let mut members: Vec<u32> = members.iter().copied().filter(|&w| of(w) == Some(color)).collect();
                    members.sort_by_key(|&world| key(world));
                    if !members.is_empty() {
                        let comm = if members.contains(&me) { comm.take() } else { None };
                        live.push(Vertex { members, comm });
                    }
                }
            }
            2 => {
                let ranks: Vec<Rank> = (0..members.len() as Rank).filter(|rank| pick >> rank & 1 == 1).collect();
                let ranks = if flip { ranks.into_iter().rev().collect() } else { ranks };
                let members: Vec<u32> = ranks.iter().map(|&rank| members[rank as usize]).collect();
                let mine = members.contains(&me);
                let comm =
                    parent.filter(|_| mine).map(|parent| parent.create_group(&ranks, step as u32)).transpose()?;
                if !members.is_empty() {
                    live.push(Vertex { members, comm });
                }
            }
            3 => {
                if at < live.len() {
                    drop(live.swap_remove(at));
                }
            }
            _ => {
                if let Some(parent) = parent {
                    verify(parent, step, &members)?;
                }
            }
        }
    }
    let live = shuffled(live, &mut own);
    drop(live);
    nothing_is_leased(&mut world)?;
    say("warm", world.place().usage().warm);
    Ok(())
}

/// Number of this library's maps in this process.
fn maps() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().filter(|line| line.contains("/memfd:unisono")).count()
}

/// Thousands of communicators are made and freed: none maps anything, and later ones continue the counts of earlier
/// ones.
pub(super) fn thousands() -> Done {
    let mut world = joined(Some(64 << 20))?;
    let everyone: Vec<u32> = (0..world.size()).collect();
    let (before, mut resumed) = (maps(), 0);
    for round in 0..1500 {
        let mut comm = world.dup()?;
        resumed += u32::from(comm.place().plan().2.operation > 0);
        if round % 8 == 0 {
            verify(&mut comm, round, &everyone)?;
        }
        comm.free();
        let color = world.rank() % 2;
        let mut half = world.split(Some(color), 0)?.expect("a color");
        resumed += u32::from(half.place().plan().2.operation > 0);
        if round % 8 == 3 {
            let members: Vec<u32> = everyone.iter().copied().filter(|world| world % 2 == color).collect();
            verify(&mut half, round, &members)?;
        }
        if round % 32 == 0 {
            world.barrier()?;
        }
    }
    assert_eq!(maps(), before);
    nothing_is_leased(&mut world)?;
    say("resumed", resumed);
    Ok(())
}

/// Makes communicators until no arena has room; then one is freed, and one more fits.
pub(super) fn full() -> Done {
    let small = Plan::new(2, Queues::Small).unwrap().bytes();
    let mut world = joined(Some(3 * small + 5000))?;
    let everyone = [0, 1];
    let mut live = Vec::new();
    let error = loop {
        match world.dup() {
            Ok(comm) => live.push(comm),
            Err(error) => break error,
        }
    };
    // A large slice does not fit at all; three small ones fit each arena.
    assert_eq!(live.len(), 6);
    let is_full = |error: PosixError| match error {
        PosixError::Space { needed, available, limit: Limit::Arena } => {
            assert!(needed == small && available < needed, "{needed} {available}");
        }
        other => panic!("{other}"),
    };
    is_full(error);
    is_full(world.split(Some(0), 0).unwrap_err());
    is_full(world.create_group(&[1, 0], 3).unwrap_err());
    verify(&mut world, 1, &everyone)?;
    for comm in &mut live {
        verify(comm, 2, &everyone)?;
    }
    // A renewal needs memory before it gives its own back.
    live[0].bcast(&mut [0], 9).unwrap_err();
    is_full(live[0].renew().unwrap_err());
    drop(live.swap_remove(3));
    world.barrier()?;
    live[0].renew()?;
    verify(&mut live[0], 4, &everyone)?;
    live.push(world.dup()?);
    for round in 0..4 {
        drop(live.swap_remove(round));
        world.barrier()?;
        live.push(if round % 2 == 0 { world.dup()? } else { world.split(Some(5), 0)?.expect("a color") });
        verify(live.last_mut().expect("pushed"), 3, &everyone)?;
        is_full(world.dup().unwrap_err());
    }
    live.clear();
    nothing_is_leased(&mut world)?;
    // Communicators of one rank each: slices of other sizes replace warm ones.
    let parts: Vec<_> = (0..4).map(|_| world.split(Some(world.rank()), 0)).collect::<Result<_, _>>()?;
    drop(parts);
    nothing_is_leased(&mut world)
}

/// Groups that only their members make: disjoint ones, the same again and again, and with members that call late.
pub(super) fn groups() -> Done {
    let mut world = joined(None)?;
    let (me, size) = (world.rank(), world.size());
    assert!(size >= 4);
    let half: Vec<u32> = (0..size).filter(|rank| rank % 2 == me % 2).collect();
    let mut kept = Vec::new();
    for round in 0..40 {
        if me == size - 1 && round == 20 {
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
        let mut comm = world.create_group(&half, 7)?;
        if round % 4 == 0 {
            verify(&mut comm, round, &half)?;
            kept.push(comm);
        }
    }
    drop(kept);
    // Rank 0 is in all groups; its announcement lines run out if the others are slow.
    for round in 0..60 {
        for other in 1..size {
            if me == 0 || me == other {
                let pair = world.create_group(&[0, other], round)?;
                assert_eq!(pair.size(), 2);
            }
        }
    }
    for wrong in [&[][..], &[0, 0], &[me, size], &[(me + 1) % size]] {
        let error = world.create_group(wrong, 0).unwrap_err().to_string();
        assert!(error.starts_with(&format!("group is \"{wrong:?}\", must be distinct ranks")), "{error}");
    }
    // Each rank alone, and no color at all.
    let mut alone = world.split(Some(me), 0)?.expect("a color");
    verify(&mut alone, 1, &[me])?;
    drop(alone);
    assert!(world.split(None, 0)?.is_none());
    verify(&mut world, 2, &(0..size).collect::<Vec<_>>())?;
    let mut of_group = world.create_group(&half, 8)?;
    let mut nested = of_group.create_group(&[of_group.rank()], 8)?;
    verify(&mut nested, 1, &[me])?;
    drop((of_group, nested));
    nothing_is_leased(&mut world)?;
    // Two communicators whose kernel parts were swapped: dropping one gives back no memory that the other one uses.
    let everyone: Vec<u32> = (0..size).collect();
    let (mut one, mut other) = (world.dup()?, world.dup()?);
    verify(&mut one, 3, &everyone)?;
    core::mem::swap(&mut *one, &mut *other);
    drop(one);
    world.barrier()?;
    let mut third = world.dup()?;
    for seed in 0..5 {
        verify(&mut third, seed, &everyone)?;
        verify(&mut other, seed + 7, &everyone)?;
    }
    let theirs = [other.place().bytes(), third.place().bytes()].into_iter().sum::<u64>();
    let leased = |world: &Intracomm| world.place().usage().leased;
    let mut all = leased(&world).to_ne_bytes();
    world.allreduce_in_place(&mut all, Op::SUM_U64)?;
    assert!(u64::from_ne_bytes(all) >= theirs + other.place().bytes(), "one of three slices was given back");
    drop((other, third));
    nothing_is_leased(&mut world)
}

/// Rank 1 dies while communicators are made (argument: by which call). The others get an error that names it, and make
/// a group of the survivors.
pub(super) fn bereft() -> Done {
    let (kind, mut world) = (argument(), joined(None)?);
    let (me, everyone) = (world.rank(), (0..world.size()).collect::<Vec<u32>>());
    let make = |world: &mut Intracomm| match kind.as_str() {
        "dup" => world.dup(),
        "split" => world.split(Some(3), 0).map(|part| part.expect("a color")),
        _ => world.create_group(&everyone, 3),
    };
    // Communicators that live when it dies.
    let mut held: Vec<Intracomm> = (0..6).map(|_| make(&mut world)).collect::<Result<_, _>>()?;
    let mut round = 0u64;
    let error = loop {
        if me == 1 && round == 10 {
            die();
        }
        round += 1;
        match make(&mut world).and_then(|mut comm| verify(&mut comm, round, &everyone)) {
            Ok(()) => {}
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("rank 1 died"), "{error}");
    for comm in &mut held {
        for error in [verify(comm, 0, &everyone), comm.renew()] {
            let error = error.unwrap_err().to_string();
            assert!(error.contains("rank 1 died"), "{error}");
        }
    }
    drop(held);
    let survivors: Vec<u32> = everyone.iter().copied().filter(|&rank| rank != 1).collect();
    let mut shrunk = world.create_group(&survivors, 1)?;
    verify(&mut shrunk, 5, &survivors)?;
    // All survivors have freed their communicators; the dead rank counts as having left. Memory that was offered in a
    // split that failed stays in use.
    let mut again = shrunk.dup()?;
    verify(&mut again, 6, &survivors)?;
    drop(again);
    shrunk.barrier()?;
    say("leased", shrunk.place().usage().leased);
    say("own", shrunk.place().bytes());
    shrunk.barrier()?;
    Ok(())
}

/// The error texts of the ranks that failed.
pub(super) fn complaints(scene: &Scene, ranks: u32) -> String {
    let read = |topic, rank| std::fs::read_to_string(scene.directory.join(format!("{topic}-{rank}")));
    (0..ranks).flat_map(|rank| ["error", "panic"].map(|topic| read(topic, rank).unwrap_or_default())).collect()
}

pub(super) fn succeeds(body: &str, argument: &str, ranks: u32) -> Scene {
    let scene = Scene::new(&format!("{body}-{ranks}-{argument}"));
    let outcome = scene.run(body, argument, ranks);
    assert!(
        outcome.success(),
        "{outcome}
{}",
        complaints(&scene, ranks)
    );
    scene
}

#[test]
fn a_random_tree_of_communicators_is_right_and_sums_to_zero() {
    for (ranks, seeds) in [(1, 2), (2, 6), (3, 6), (5, 6)] {
        (0..seeds).for_each(|seed| drop(succeeds("tree", &seed.to_string(), ranks)));
    }
}

#[test]
fn thousands_of_communicators_map_nothing_and_continue_on_warm_memory() {
    for ranks in [2, 5] {
        let scene = succeeds("thousands", "", ranks);
        for rank in 0..ranks {
            let resumed: u32 = scene.said(rank, "resumed").parse().unwrap();
            assert!(resumed > 2000, "rank {rank}: {resumed} of 3000");
        }
    }
}

#[test]
fn full_arenas_are_named_and_harm_nothing() {
    drop(succeeds("full", "", 2));
}

#[test]
fn groups_are_made_by_their_members_alone() {
    drop(succeeds("groups", "", 5));
}

#[test]
fn a_member_that_dies_ends_creations_and_its_memory_comes_back() {
    for kind in ["dup", "split", "group"] {
        let scene = Scene::new(&format!("bereft-{kind}"));
        let outcome = scene.run("bereft", kind, 3);
        assert_eq!(
            outcome.exits,
            [Exit::Code(0), Exit::Signal(9), Exit::Code(0)],
            "{outcome}\n{}",
            complaints(&scene, 3)
        );
        if kind != "split" {
            let leased = [0, 2].map(|rank| scene.said(rank, "leased").parse::<u64>().unwrap());
            // The survivors' own communicator.
            let own: u64 = scene.said(0, "own").parse().unwrap();
            assert_eq!(leased.iter().sum::<u64>(), own, "{kind}");
        }
    }
}

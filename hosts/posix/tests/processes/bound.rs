//! How long after a kill each survivor has its error: measured, and compared with a bound.
//!
//! It depends on how fast the machine is and on what else runs there, so the fast tests do not include it: `make soak`
//! runs it. Environment: `UNISONO_KILLS`, kills for each number of ranks; `UNISONO_BOUND_MS`, the bound, 0 to print the
//! times without one (an emulated machine).

use super::death::error;
use super::{Scene, kill, now};
use rand::{RngExt, SeedableRng};
use rand_xorshift::XorShiftRng;
use std::time::Duration;
use unisono_posix::launch::Exit;

fn setting(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name} is {value:?}, must be a number")))
}

/// Kills a random one of `ranks` ranks at a random moment of a mix of collectives. Returns the nanoseconds from just
/// before the kill to each survivor's error, which must name the victim.
fn one_kill(ranks: u32, random: &mut XorShiftRng) -> Vec<u64> {
    let scene = Scene::new(&format!("bound-{ranks}"));
    let running = scene.spawn("mix", ranks);
    (0..ranks).for_each(|rank| drop(scene.said(rank, "joined")));
    let victim = random.random_range(0..ranks);
    std::thread::sleep(Duration::from_micros(random.random_range(0..20_000)));
    let pid = running.pids()[victim as usize];
    let killed = now();
    kill(pid);
    let outcome = running.wait().unwrap();
    assert_eq!(outcome.exits[victim as usize], Exit::Signal(9), "{outcome}");
    assert_eq!(outcome.killed, [], "{outcome}");
    let after = |rank| {
        let (time, text) = error(&scene, rank);
        assert!(text.starts_with(&format!("rank {victim} died")), "rank {rank}, rank {victim} killed: {text}");
        time.checked_sub(killed).expect("the error comes after the kill")
    };
    (0..ranks).filter(|&rank| rank != victim).map(after).collect()
}

#[test]
#[ignore = "measures time: make soak runs it"]
fn a_killed_rank_is_named_within_the_bound() {
    let (kills, bound) = (setting("UNISONO_KILLS", 50).max(1), setting("UNISONO_BOUND_MS", 100));
    let mut random = XorShiftRng::seed_from_u64(now());
    let mut slow = Vec::new();
    for ranks in [2, 4, 8] {
        let mut times: Vec<u64> = (0..kills).flat_map(|_| one_kill(ranks, &mut random)).collect();
        times.sort_unstable();
        let last = times.len() - 1;
        let [median, p99, most] = [last / 2, last * 99 / 100, last].map(|at| times[at] as f64 / 1e6);
        println!(
            "p = {ranks}: {kills} kills, each named by all {} survivors after {median:.1} ms (median), {p99:.1} ms (p99), \
             {most:.1} ms (max)",
            ranks - 1
        );
        slow.extend(times.into_iter().filter(|&ns| bound > 0 && ns >= bound * 1_000_000).map(|ns| (ranks, ns)));
    }
    assert!(slow.is_empty(), "not within {bound} ms (ranks, ns): {slow:?}");
}

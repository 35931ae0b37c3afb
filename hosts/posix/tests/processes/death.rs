//! A process dies at some moment: the error of all others names it, and nothing is left behind.

use super::{Scene, eventually, kill, mappers, now, runs, shared_files};
use unisono_posix::launch::Exit;

/// The time and the text of a rank's error.
pub(super) fn error(scene: &Scene, rank: u32) -> (u64, String) {
    let said = scene.said(rank, "error");
    let (time, text) = said.split_once(' ').unwrap();
    (time.parse().unwrap(), text.to_owned())
}

#[test]
fn a_rank_killed_in_mid_loop_is_named_by_all_others_and_nothing_is_left() {
    let before = shared_files();
    for ranks in [2, 3, 5] {
        let victim = ranks - 2;
        let scene = Scene::new(&format!("killed-{ranks}"));
        let running = scene.spawn("endless", ranks);
        let pids = running.pids().to_vec();
        (0..ranks).for_each(|rank| drop(scene.said(rank, "joined")));
        let inode = scene.said(0, "inode");
        assert_eq!(mappers(&inode).len(), ranks as usize);
        std::thread::sleep(std::time::Duration::from_millis(50));
        let killed = now();
        kill(pids[victim as usize]);
        let outcome = running.wait().unwrap();
        assert_eq!(outcome.exits[victim as usize], Exit::Signal(9), "{outcome}");
        assert_eq!(outcome.first, Some(victim), "{outcome}");
        assert_eq!(outcome.killed, [], "{outcome}");
        for rank in (0..ranks).filter(|&rank| rank != victim) {
            let (time, text) = error(&scene, rank);
            let after = time.saturating_sub(killed);
            println!("{ranks} ranks: rank {rank} after {:.1} ms: {text}", after as f64 / 1e6);
            assert!(text.starts_with(&format!("rank {victim} died")), "rank {rank}: {text}");
            assert!(after < 2_000_000_000, "rank {rank} took {after} ns");
            assert_eq!(outcome.exits[rank as usize], Exit::Code(3));
        }
        assert_eq!(mappers(&inode), [""; 0]);
        assert!(pids.iter().all(|&pid| !runs(pid)));
    }
    // Other programs may make files meanwhile; this library's files never have a name here.
    eventually("/dev/shm has no new files", || shared_files().iter().all(|name| before.contains(name)));
}

/// More ranks than a process has descriptors for; several die at once, some of them neighbours, among them the one after rank 0, which
/// rank 0 has looked at in the start-up. All others name one of them.
#[test]
fn of_many_ranks_several_that_are_killed_at_once_are_noticed_by_all_others() {
    const RANKS: u32 = 64;
    for victims in [&[40][..], &[1, 2, 3, 17, 18, 19, 63]] {
        let scene = Scene::new(&format!("many-{}", victims.len()));
        let running = scene.spawn("endless", RANKS);
        let pids = running.pids().to_vec();
        (0..RANKS).for_each(|rank| drop(scene.said(rank, "joined")));
        victims.iter().for_each(|&victim: &u32| kill(pids[victim as usize]));
        let outcome = running.wait().unwrap();
        assert_eq!(outcome.killed, [], "{outcome}");
        for rank in (0..RANKS).filter(|rank| !victims.contains(rank)) {
            let (_, text) = error(&scene, rank);
            let named = |victim: &u32| text.starts_with(&format!("rank {victim} died"));
            assert!(victims.iter().any(named), "rank {rank}: {text}");
            assert_eq!(outcome.exits[rank as usize], Exit::Code(3));
        }
        assert!(pids.iter().all(|&pid| !runs(pid)));
    }
}

/// Nobody else looks: the others compute.
#[test]
fn one_rank_that_waits_for_no_peer_in_particular_looks_at_all_in_turn() {
    for (ranks, victim) in [(3, 2), (40, 1), (40, 39)] {
        let scene = Scene::new(&format!("alone-{ranks}-{victim}"));
        let running = scene.spawn("alone", ranks);
        let pids = running.pids().to_vec();
        (0..ranks).for_each(|rank| drop(scene.said(rank, "joined")));
        let killed = now();
        kill(pids[victim as usize]);
        let (time, text) = error(&scene, 0);
        assert!(text.starts_with(&format!("rank {victim} died")), "{text}");
        let after = time.saturating_sub(killed);
        println!("{ranks} ranks: rank 0 knows of rank {victim} after {:.1} ms", after as f64 / 1e6);
        assert!(after < 2_000_000_000, "rank 0 took {after} ns");
        assert_eq!(running.wait().unwrap().killed, []);
    }
}

/// That a look fails for lack of descriptors is not taken for a death.
#[test]
fn a_process_without_descriptors_waits_on() {
    for left in ["0", "1", "2"] {
        let outcome = Scene::new(&format!("exhausted-{left}")).run("exhausted", left, 5);
        assert!(outcome.success(), "{left}: {outcome}");
    }
}

/// Both a rank that waits for the victim's message and one that waits for another rank's name the victim.
#[test]
fn a_rank_killed_among_messages_is_named_by_all_others() {
    for ranks in [2, 4] {
        let scene = Scene::new(&format!("letters-{ranks}"));
        let running = scene.spawn("letters", ranks);
        let victim = running.pids()[1];
        (0..ranks).for_each(|rank| drop(scene.said(rank, "joined")));
        std::thread::sleep(std::time::Duration::from_millis(50));
        kill(victim);
        let outcome = running.wait().unwrap();
        assert_eq!(outcome.first, Some(1), "{outcome}");
        for rank in (0..ranks).filter(|&rank| rank != 1) {
            let (_, text) = error(&scene, rank);
            assert!(text.starts_with("rank 1 died"), "rank {rank}: {text}");
        }
    }
}

#[test]
fn a_rank_that_dies_before_the_start_up_is_named() {
    let scene = Scene::new("dies-before");
    let outcome = scene.run("dies-before", "", 4);
    for rank in [0, 1, 3] {
        assert_eq!(error(&scene, rank).1, "rank 2: was killed by signal 9 (SIGKILL) in the start-up");
    }
    assert!(outcome.to_string().starts_with("rank 2 was killed by signal 9 (SIGKILL)"), "{outcome}");
}

#[test]
fn a_rank_that_dies_at_any_step_of_the_start_up_is_named() {
    for victim in [0, 1] {
        for step in 0..5 {
            let scene = Scene::new(&format!("dies-{victim}-{step}"));
            let outcome = scene.run("dies-at", &format!("{victim} {step}"), 3);
            for rank in (0..3).filter(|&rank| rank != victim) {
                let (_, text) = error(&scene, rank);
                assert!(text.starts_with(&format!("rank {victim}")), "{victim} at step {step}: rank {rank}: {text}");
                assert_eq!(outcome.exits[rank as usize], Exit::Code(3));
            }
            assert_eq!(outcome.first, Some(victim));
        }
    }
}

#[test]
fn a_rank_that_does_not_come_is_named_when_the_bound_is_over() {
    for barrier in ["dissemination", "doubling", "central", "combining"] {
        let scene = Scene::new(&format!("late-{barrier}"));
        scene.run("late", barrier, 3);
        for rank in [0, 2] {
            let (_, text) = error(&scene, rank);
            assert!(text.starts_with("rank 1 was late"), "{barrier}: rank {rank}: {text}");
        }
    }
}

#[test]
fn dropping_the_launch_kills_the_ranks() {
    let scene = Scene::new("dropped");
    let running = scene.spawn("endless", 3);
    let pids = running.pids().to_vec();
    (0..3).for_each(|rank| drop(scene.said(rank, "joined")));
    drop(running);
    assert!(pids.iter().all(|&pid| !runs(pid)));
    assert_eq!(mappers(&scene.said(0, "inode")), [""; 0]);
}

#[test]
fn a_killed_launcher_takes_its_ranks_along() {
    let scene = Scene::new("launcher");
    let running = scene.spawn("launcher", 1);
    let pids: Vec<u32> = scene.said(0, "pids").split(' ').map(|pid| pid.parse().unwrap()).collect();
    (0..3).for_each(|rank| drop(scene.said(rank, "joined")));
    let inode = scene.said(0, "inode");
    assert!(pids.iter().all(|&pid| runs(pid)));
    kill(running.pids()[0]);
    let outcome = running.wait().unwrap();
    assert_eq!(outcome.exits, [Exit::Signal(9)]);
    eventually("the ranks end", || !pids.iter().any(|&pid| runs(pid)));
    eventually("the segment is gone", || mappers(&inode).is_empty());
}

#[test]
fn kills_at_any_moment_leave_no_rank_waiting() {
    // From the exec through the start-up into the loop: each survivor ends with an error.
    for round in 0..24u64 {
        let scene = Scene::new(&format!("moment-{round}"));
        let running = scene.spawn("endless", 3);
        let pids = running.pids().to_vec();
        std::thread::sleep(std::time::Duration::from_micros(700 * round));
        let victim = (round % 3) as usize;
        kill(pids[victim]);
        let outcome = running.wait().unwrap();
        assert_eq!(outcome.killed, [], "round {round}: {outcome}");
        assert_eq!(outcome.exits[victim], Exit::Signal(9));
        for rank in (0..3).filter(|&rank| rank != victim) {
            assert_eq!(outcome.exits[rank], Exit::Code(3), "round {round}: {outcome}");
            let (_, text) = error(&scene, rank as u32);
            assert!(text.starts_with(&format!("rank {victim}")), "round {round}: rank {rank}: {text}");
        }
        assert!(pids.iter().all(|&pid| !runs(pid)));
    }
}

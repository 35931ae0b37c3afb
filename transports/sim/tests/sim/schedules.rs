//! Seeded schedules: the same seed gives the same run; messages of a channel keep their order; ranks stop, are slow,
//! or wait for each other.

use crate::scripts::{Act, Script, network, run};
use std::rc::Rc;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::PollError;
use unisono_kernel::machine::p2p::{P2p, P2pError};
use unisono_kernel::msg::bcast::binomial::Binomial;
use unisono_sim::{Dropped, Endpoint, Fate, Outcome, Placement, Schedule, Topology, World};

fn delayed(seed: u64) -> Schedule {
    Schedule { seed, delay: 100.0, skew: 50.0, ..Schedule::default() }
}

/// A binomial broadcast of a byte from `root`, a rank per node.
fn broadcast(ranks: u32, root: u32, schedule: Schedule) -> (Outcome, Vec<[u8; 1]>) {
    let placement = Placement::blocks(ranks, ranks).unwrap();
    let world = World::new(network(Topology::Crossbar), placement, schedule).unwrap();
    let mut data = vec![[0; 1]; ranks as usize];
    data[root as usize] = [7];
    let mut ranks: Vec<_> = (world.endpoints().into_iter().zip(&mut data).zip(0..))
        // SAFETY: `data` outlives the run.
        .map(|((end, byte), rank)| (end, unsafe { Binomial::new(rank, ranks, Buf::of_mut(byte), root, 1) }.unwrap()))
        .collect();
    (world.run(&mut ranks), data)
}

#[test]
fn a_seed_is_a_run() {
    let run = |seed| broadcast(17, 3, Schedule { stragglers: 4, slowdown: 10.0, ..delayed(seed) });
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed));
    }
    let mut lasts: Vec<_> = (0..20).map(|seed| run(seed).0.last().unwrap()).collect();
    lasts.sort_unstable();
    lasts.dedup();
    assert!(lasts.len() > 15, "seeds differ: {lasts:?}");
}

#[test]
fn messages_of_one_channel_stay_in_order_and_those_of_two_do_not() {
    const COUNT: u64 = 12;
    let mut overtaken = 0;
    for seed in 0..200 {
        // Rank 0 posts receives from 1 with tags 1 … 12 and one from 2; when 1's last message is there, all before it
        // must be.
        let posts = (1..=COUNT).map(|tag| Act::Post(1, tag, 1)).chain([Act::Post(2, 99, 1), Act::Receive(1, 0, 1)]);
        let receiver = Script::new(posts.chain((0..=COUNT as usize).map(Act::Test)));
        let sender = Script::new((1..=COUNT).chain([0]).map(|tag| Act::Send(0, tag, 1, tag as u8)));
        let other = Script::new([Act::Send(0, 99, 1, 99)]);
        let mut scripts = vec![receiver, sender, other];
        let outcome = run(network(Topology::Crossbar), delayed(seed), &mut scripts);
        outcome.last().unwrap();
        let (of_one_channel, other) = scripts[0].complete.split_at(COUNT as usize);
        assert!(of_one_channel.iter().all(|complete| *complete), "seed {seed}: {of_one_channel:?}");
        overtaken += u32::from(!other[0]);
    }
    assert!(overtaken > 0 && overtaken < 200, "{overtaken} of 200");
}

#[test]
fn equal_tags_match_in_the_order_of_posting() {
    for seed in 0..50 {
        let values = 1..=9u8;
        let sender = Script::new(values.clone().map(|value| Act::Send(1, 5, 1, value)));
        let receiver = Script::new(values.clone().map(|_| Act::Receive(0, 5, 1)));
        let mut scripts = vec![sender, receiver];
        run(network(Topology::Star), delayed(seed), &mut scripts).last().unwrap();
        assert_eq!(scripts[1].received(), values.collect::<Vec<_>>());
    }
}

#[test]
fn a_rank_that_has_stopped_is_named_as_the_cause() {
    // 0 → 4, 2, 1; 4 → 6, 5; 6 → 7; 2 → 3. Without 4 the ranks 5, 6, 7 wait.
    let dropped = vec![Dropped { rank: 4, polls: 0 }];
    let (outcome, _) = broadcast(8, 0, Schedule { dropped, ..Schedule::default() });
    let stuck = outcome.last().unwrap_err();
    let waits: Vec<_> = stuck.waits.iter().map(|(rank, on)| (*rank, on.peer.unwrap(), on.operation)).collect();
    assert_eq!(waits, [(5, 4, 1), (6, 4, 1), (7, 6, 1)]);
    assert_eq!(stuck.culprits, [(4, Fate::Dropped)]);
    assert_eq!(
        stuck.to_string(),
        "rank 5 waits for rank 4 in operation 1; rank 6 waits for rank 4 in operation 1; rank 7 waits for rank 6 in \
         operation 1; rank 4 has stopped"
    );
    let done = |rank: usize| matches!(outcome.fates[rank], Fate::Done(_));
    assert!([0, 1, 2, 3].into_iter().all(done));
}

#[test]
fn a_rank_may_stop_in_the_middle() {
    for victim in 0..8 {
        for polls in 0..4 {
            let dropped = vec![Dropped { rank: victim, polls }];
            let (outcome, data) = broadcast(8, 0, Schedule { dropped, ..Schedule::default() });
            for (rank, (fate, byte)) in outcome.fates.iter().zip(data).enumerate() {
                match fate {
                    Fate::Done(_) => assert_eq!(byte, [7], "rank {rank} without {victim} after {polls} polls"),
                    Fate::Waits(_) => {
                        assert_eq!(outcome.last().unwrap_err().culprits, [(victim, Fate::Dropped)]);
                    }
                    fate => assert!(*fate == Fate::Dropped && rank as u32 == victim, "{fate:?}"),
                }
            }
        }
    }
}

#[test]
fn a_circle_of_waits_is_a_deadlock() {
    let to_next = |rank: u32| Script::new([Act::Receive((rank + 1) % 3, 0, 1), Act::Send((rank + 2) % 3, 0, 1, 1)]);
    // Rank 3 waits for the circle and is not in it.
    let mut scripts = vec![to_next(0), to_next(1), to_next(2), Script::new([Act::Receive(0, 0, 1)])];
    let outcome = run(network(Topology::Crossbar), Schedule::default(), &mut scripts);
    let stuck = outcome.last().unwrap_err();
    assert_eq!(stuck.waits.len(), 4);
    let ranks: Vec<_> = stuck.culprits.iter().map(|(rank, _)| *rank).collect();
    assert_eq!(ranks, [0, 1, 2]);
    assert!(stuck.to_string().contains("rank 1 is in a circle of waits"), "{stuck}");
}

#[test]
fn a_rank_that_is_done_while_another_waits_for_it_is_the_cause() {
    let mut scripts = vec![Script::new([]), Script::new([Act::Receive(0, 3, 1)])];
    let outcome = run(network(Topology::Crossbar), Schedule::default(), &mut scripts);
    let report = outcome.last().unwrap_err().to_string();
    assert_eq!(report, "rank 1 waits for rank 0 in operation 1; rank 0 was done after 0 ns");
}

#[test]
fn after_the_deadline_nothing_happens() {
    let schedule = |deadline| Schedule { stragglers: 2, slowdown: 1000.0, deadline, ..Schedule::default() };
    assert!(broadcast(2, 0, schedule(1e6)).0.last().is_ok());
    // 2000 ns to send, and as many to receive.
    let (outcome, data) = broadcast(2, 0, schedule(1000.0));
    assert_eq!(data[1], [0]);
    let stuck = outcome.last().unwrap_err();
    assert_eq!(stuck.waits.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn lengths_that_differ_fail() {
    let mut scripts = vec![Script::new([Act::Send(1, 0, 3, 1)]), Script::new([Act::Receive(0, 0, 4)])];
    let outcome = run(network(Topology::Crossbar), Schedule::default(), &mut scripts);
    let failed = PollError::Messages { peer: 0, code: P2pError::LENGTH.0 };
    assert_eq!(outcome.fates[1], Fate::Failed(failed));
    assert!(outcome.last().unwrap_err().to_string().contains("rank 1 failed"));
}

#[test]
fn a_group_has_its_own_numbers_and_its_reports_the_worlds() {
    // Ranks 6, 4, 1, 3 are 0 … 3 of a group: 6 → 1, then 6 → 4; 1 → 3. The others have nothing to do.
    let members: Rc<[u32]> = [6, 4, 1, 3].into();
    for dropped in [vec![], vec![Dropped { rank: 1, polls: 0 }]] {
        let schedule = Schedule { dropped: dropped.clone(), ..Schedule::default() };
        let world = World::new(network(Topology::Crossbar), Placement::blocks(7, 7).unwrap(), schedule).unwrap();
        let ends = world.endpoints();
        assert!(ends[0].among(&members).is_none(), "rank 0 is not a member");
        assert!(ends[6].among(&[6, 7].into()).is_none(), "7 is not a rank");
        let mut data = [[0; 1]; 7];
        data[6] = [7];
        let part = |(end, byte): (Endpoint, &mut [u8; 1])| match end.among(&members) {
            Some(end) => {
                // SAFETY: `data` outlives the run.
                let machine = unsafe { Binomial::new(end.rank(), end.size(), Buf::of_mut(byte), 0, 1) };
                (end, Some(machine.unwrap()))
            }
            None => (end, None),
        };
        let mut ranks: Vec<_> = ends.into_iter().zip(&mut data).map(part).collect();
        let outcome = world.run(&mut ranks);
        if dropped.is_empty() {
            outcome.last().unwrap();
            assert_eq!(data.map(|[byte]| byte), [0, 7, 0, 7, 7, 0, 7]);
        } else {
            let stuck = outcome.last().unwrap_err().to_string();
            assert_eq!(stuck, "rank 3 waits for rank 1 in operation 1; rank 1 has stopped");
        }
    }
}

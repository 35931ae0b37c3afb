//! Searches on virtual time: sequences of collectives over messages under seeded schedules, on every topology.
//!
//! A seed gives the number of ranks, their places, the network, the levels in use, the calls with their roots and
//! lengths, delays, late and slow ranks. `SIM_SEEDS` is the number of seeds (1,000), `SIM_RANKS` the number of ranks
//! (by the seed: 1 … 17).

mod calls;
mod mutants;
mod programs;

use calls::{Any, Call, Kind, Memory, Series};
use rand::{RngExt, SeedableRng};
use rand_xorshift::XorShiftRng;
use unisono_kernel::msg::PlanError;
use unisono_kernel::msg::levels::Line;
use unisono_kernel::topology::group::{Groups, Place};
use unisono_kernel::topology::{Level, Levels, Locality};
use unisono_sim::{Dropped, Fate, Link, Network, Nics, Outcome, Placement, Schedule, Topology, World};

/// The case of a seed.
struct Case {
    ranks: u32,
    network: Network,
    placement: Placement,
    localities: Vec<Locality>,
    levels: Levels,
    calls: Vec<Call>,
    schedule: Schedule,
}

/// Makes a call's machine at a rank.
type Maker = for<'a> fn(&Call, Line<'a>, u32, &'a mut Memory) -> Result<Any<'a>, PlanError>;

impl Case {
    fn of(seed: u64, ranks: Option<u32>) -> Self {
        let mut random = XorShiftRng::seed_from_u64(seed);
        let ranks = ranks.unwrap_or_else(|| random.random_range(1..=17));
        let topology = match random.random_range(0..3) {
            0 => Topology::Star,
            1 => Topology::Crossbar,
            _ => Topology::FatTree { nodes_per_leaf: random.random_range(1..=4), uplinks: random.random_range(1..=3) },
        };
        let mut link = || {
            let mut up_to = |most: f64| random.random_range(0.0..=1.0) * most;
            Link {
                latency: up_to(2000.0),
                send: up_to(300.0),
                receive: up_to(300.0),
                gap: up_to(300.0),
                gap_per_byte: up_to(2.0),
            }
        };
        let (socket, nics) = (Some(link()), Nics::default());
        let network = Network { topology, numa: Some(link()), socket, nics, node: link(), leaf: link(), spine: link() };
        let nodes = random.random_range(1..=ranks);
        // Half of the seeds: ranks in blocks, so that groups are runs.
        let placement = match random.random_range(0..2) {
            0 => Placement::blocks(ranks, nodes).unwrap(),
            _ => Placement::new((0..ranks).map(|_| random.random_range(0..nodes)).collect()).unwrap(),
        };
        let placement = placement.with_numa(random.random_range(1..=ranks.min(3))).unwrap();
        let mut locality = |rank| {
            let node = placement.node(rank);
            let place = Locality::NOWHERE.with(Level::Node, node).with(Level::Switch1, node / 3);
            // One in twenty is not bound.
            if random.random_range(0..20) == 0 { place } else { place.with(Level::Numa, placement.numa(rank).unwrap()) }
        };
        let localities = (0..ranks).map(&mut locality).collect();
        let off = random.random_range(0..=u8::MAX);
        let levels = Level::EVERY.into_iter().filter(|&level| off >> level as u8 & 1 == 0).collect();
        let mut call = |operation| {
            let kind = Kind::of(random.random_range(0..1000));
            Call {
                kind,
                algorithm: random.random_range(0..1000),
                root: random.random_range(0..ranks),
                bytes: [0, 1, 8, 100, 3000][random.random_range(0..5)].min(kind.most(ranks)),
                operation,
            }
        };
        let calls = (1..=6).map(&mut call).collect();
        let schedule = Schedule {
            seed,
            delay: random.random_range(0.0..=1.0) * 5000.0,
            skew: random.random_range(0.0..=1.0) * 5000.0,
            stragglers: random.random_range(0..=ranks / 2),
            slowdown: 1.0 + random.random_range(0.0..=1.0) * 50.0,
            ..Schedule::default()
        };
        Self { ranks, network, placement, localities, levels, calls, schedule }
    }

    /// Runs the case; returns the outcome, and the memory by rank and call.
    fn run(&self, dropped: Vec<Dropped>, maker: Maker) -> (Outcome, Vec<Vec<Memory>>) {
        let schedule = Schedule { dropped, ..self.schedule.clone() };
        let world = World::new(self.network, self.placement.clone(), schedule).expect("parameters");
        let (mut places, mut order) = (vec![Place::default(); self.localities.len()], vec![0; self.localities.len()]);
        let groups = Groups::build(&self.localities, self.levels, &mut places, &mut order).expect("storage");
        let mut order = vec![0; self.localities.len()];
        let line = Line::build(&groups, &mut order).expect("storage");
        let one = |rank, call: &Call| {
            let (send, receive) = (call.send(rank, self.ranks), call.before(rank, self.ranks));
            Memory { send, receive, scratch: Vec::new() }
        };
        let of = |rank| self.calls.iter().map(|call| one(rank, call)).collect();
        let mut memory: Vec<Vec<Memory>> = (0..self.ranks).map(of).collect();
        let mut ranks = Vec::new();
        for ((end, rank), memory) in world.endpoints().into_iter().zip(0..).zip(&mut memory) {
            let machine = |(call, memory): (&Call, _)| maker(call, line, rank, memory).expect("arguments");
            ranks.push((end, Series(self.calls.iter().zip(memory).map(machine).collect())));
        }
        let outcome = world.run(&mut ranks);
        drop(ranks);
        (outcome, memory)
    }

    /// Does this rank have all results?
    fn holds(&self, rank: usize, memory: &[Memory]) -> bool {
        let right = |(call, memory): (&Call, &Memory)| memory.receive == call.after(rank as u32, self.ranks);
        self.calls.iter().zip(memory).all(right)
    }

    /// Does every rank have all results?
    fn all_hold(&self, memory: &[Vec<Memory>]) -> bool {
        memory.iter().enumerate().all(|(rank, memory)| self.holds(rank, memory))
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|e| panic!("{variable}: {text:?}: {e}")))
}

fn seeds() -> std::ops::Range<u64> {
    0..number("SIM_SEEDS").unwrap_or(1000)
}

fn ranks() -> Option<u32> {
    number("SIM_RANKS").map(|ranks| ranks as u32)
}

#[test]
fn every_schedule_ends_with_the_same_results() {
    for seed in seeds() {
        let case = Case::of(seed, ranks());
        let (outcome, memory) = case.run(Vec::new(), Call::machine);
        if let Err(stuck) = outcome.last() {
            panic!("seed {seed}: {stuck}");
        }
        let wrong = memory.iter().enumerate().position(|(rank, memory)| !case.holds(rank, memory));
        assert_eq!(wrong, None, "seed {seed}: a rank with wrong data: {:?}", case.calls);
    }
}

#[test]
fn whoever_waits_for_a_rank_that_stopped_names_it() {
    for seed in seeds() {
        let case = Case::of(seed, ranks());
        let victim = (seed % u64::from(case.ranks)) as u32;
        let (outcome, memory) = case.run(vec![Dropped { rank: victim, polls: seed / 17 % 12 }], Call::machine);
        for (rank, fate) in outcome.fates.iter().enumerate() {
            match fate {
                Fate::Done(_) => assert!(case.holds(rank, &memory[rank]), "seed {seed}: rank {rank}"),
                Fate::Waits(_) => {
                    let culprits = outcome.last().expect_err("a rank waits").culprits;
                    assert_eq!(culprits, [(victim, Fate::Dropped)], "seed {seed}");
                }
                Fate::Dropped => assert_eq!(rank as u32, victim, "seed {seed}"),
                fate => panic!("seed {seed}: rank {rank}: {fate:?}"),
            }
        }
    }
}

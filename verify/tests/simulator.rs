//! Searches on virtual time: sequences of collectives over messages under seeded schedules, on every topology.
//!
//! A seed gives the number of ranks, who runs where, the network, the calls with their roots and lengths, delays, late and
//! slow ranks. `SIM_SEEDS` is how many seeds (1,000), `SIM_RANKS` the number of ranks (by the seed: 1 … 17).

use rand::{RngExt, SeedableRng};
use rand_xorshift::XorShiftRng;
use std::collections::VecDeque;
use unisono_kernel::buffer::Buf;
use unisono_kernel::error::{PollError, Refusal};
use unisono_kernel::machine::Machine;
use unisono_kernel::msg::bcast::binomial::Binomial;
use unisono_kernel::p2p::{P2p, P2pError, Tag};
use unisono_kernel::pattern::tree::{Position, Tree};
use unisono_kernel::step::{Await, Awaits, Slot, Source, Step};
use unisono_sim::{Dropped, Endpoint, Fate, Link, Network, Outcome, Placement, Schedule, Topology, World};

type Any = Box<dyn Machine<Endpoint>>;

/// A call as all ranks make it, with its number: the messages' tag.
#[derive(Clone, Copy, Debug)]
struct Call {
    root: u32,
    bytes: usize,
    operation: u64,
    maker: usize,
}

/// Makes the machine of `rank` among `size`.
type Maker = unsafe fn(u32, u32, Buf, Call) -> Result<Any, Refusal>;

/// All broadcasts over messages; the buffer is the rank's own and outlives the run.
const BCASTS: [Maker; 1] = [
    // SAFETY: the caller's promise, passed on.
    |rank, size, buf, call| Ok(Box::new(unsafe { Binomial::new(rank, size, buf, call.root, call.operation) }?)),
];

/// One call after the other, without a pause.
struct Series(VecDeque<Any>);

impl Machine<Endpoint> for Series {
    fn poll(&mut self, end: &mut Endpoint) -> Result<Step, PollError> {
        while let Some(machine) = self.0.front_mut() {
            if let wait @ Step::Wait(_) = machine.poll(end)? {
                return Ok(wait);
            }
            self.0.pop_front();
        }
        Ok(Step::Done)
    }
}

/// What a seed stands for.
struct Case {
    seed: u64,
    ranks: u32,
    network: Network,
    placement: Placement,
    calls: Vec<Call>,
    schedule: Schedule,
}

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
        let network = Network { topology, numa: None, node: link(), leaf: link(), spine: link() };
        let nodes = random.random_range(1..=ranks);
        let placement = Placement::new((0..ranks).map(|_| random.random_range(0..nodes)).collect()).unwrap();
        let mut call = |operation| Call {
            root: random.random_range(0..ranks),
            bytes: [0, 1, 8, 100, 3000][random.random_range(0..5)],
            operation,
            maker: random.random_range(0..1000),
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
        Self { seed, ranks, network, placement, calls, schedule }
    }

    /// Byte `at` of the message of a call.
    fn byte(&self, call: &Call, at: usize) -> u8 {
        (self.seed as usize + 31 * call.operation as usize + 7 * at) as u8 | 1
    }

    /// Runs it; answers what became of the ranks, and of their buffers by rank and call.
    fn run(&self, dropped: Vec<Dropped>, makers: &[Maker]) -> (Outcome, Vec<Vec<Vec<u8>>>) {
        let schedule = Schedule { dropped, ..self.schedule.clone() };
        let world = World::new(self.network, self.placement.clone(), schedule).expect("parameters");
        let message = |rank, call: &Call| -> Vec<u8> {
            (0..call.bytes).map(|at| if rank == call.root { self.byte(call, at) } else { 0 }).collect()
        };
        let buffers = |rank| self.calls.iter().map(|call| message(rank, call)).collect();
        let mut memory: Vec<Vec<Vec<u8>>> = (0..self.ranks).map(buffers).collect();
        let mut ranks = Vec::new();
        for ((end, rank), buffers) in world.endpoints().into_iter().zip(0..).zip(&mut memory) {
            let machine = |(call, buffer): (&Call, &mut Vec<u8>)| {
                // SAFETY: `memory` outlives the run.
                unsafe { makers[call.maker % makers.len()](rank, self.ranks, Buf::of_mut(buffer), *call) }
                    .expect("arguments")
            };
            ranks.push((end, Series(self.calls.iter().zip(buffers).map(machine).collect())));
        }
        (world.run(&mut ranks), memory)
    }

    /// Did this rank receive what the roots sent?
    fn holds(&self, buffers: &[Vec<u8>]) -> bool {
        let right = |(call, buffer): (&Call, &Vec<u8>)| (0..call.bytes).all(|at| buffer[at] == self.byte(call, at));
        self.calls.iter().zip(buffers).all(right)
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
        let (outcome, memory) = case.run(Vec::new(), &BCASTS);
        if let Err(stuck) = outcome.last() {
            panic!("seed {seed}: {stuck}");
        }
        let wrong = memory.iter().position(|buffers| !case.holds(buffers));
        assert_eq!(wrong, None, "seed {seed}: a rank with wrong data");
    }
}

#[test]
fn whoever_waits_for_a_rank_that_stopped_names_it() {
    for seed in seeds() {
        let case = Case::of(seed, ranks());
        let victim = (seed % u64::from(case.ranks)) as u32;
        let (outcome, memory) = case.run(vec![Dropped { rank: victim, polls: seed / 17 % 12 }], &BCASTS);
        for (rank, fate) in outcome.fates.iter().enumerate() {
            match fate {
                Fate::Done(_) => assert!(case.holds(&memory[rank]), "seed {seed}: rank {rank}"),
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

/// The mutant: passes a message on before it has come.
struct Hasty {
    tree: Position,
    tag: Tag,
    buf: Buf,
    receive: Option<(Slot, u32)>,
    sends: VecDeque<(Slot, u32)>,
    posted: bool,
}

impl Machine<Endpoint> for Hasty {
    fn poll(&mut self, end: &mut Endpoint) -> Result<Step, PollError> {
        let failed = |peer| move |P2pError(code)| PollError::Messages { peer, code };
        if !self.posted {
            self.posted = true;
            if let Some(from) = self.tree.parent() {
                // SAFETY: the case's memory outlives the run; that the sends read it too is the mutant's mistake.
                let slot = unsafe { end.post_recv(from, self.tag, self.buf) };
                self.receive = Some((slot.map_err(failed(from))?, from));
            }
            for to in self.tree.children() {
                // SAFETY: as above.
                let slot = unsafe { end.post_send(to, self.tag, self.buf) };
                self.sends.push_back((slot.map_err(failed(to))?, to));
            }
        }
        while let Some((slot, peer)) = self.sends.front().copied().or(self.receive) {
            if !end.test(slot).map_err(failed(peer))? {
                let source = Source::Message(slot);
                return Ok(Step::Wait(Awaits::one(Await { source, peer: Some(peer), operation: self.tag.0 })));
            }
            if self.sends.pop_front().is_none() {
                self.receive = None;
            }
        }
        Ok(Step::Done)
    }
}

#[test]
fn a_machine_that_does_not_wait_is_found() {
    let hasty: Maker = |rank, size, buf, call| {
        let tree = Tree::BINOMIAL.position(rank, call.root, size);
        let tag = Tag(call.operation);
        Ok(Box::new(Hasty { tree, tag, buf, receive: None, sends: VecDeque::new(), posted: false }))
    };
    let wrong = (0..50).filter(|&seed| {
        let case = Case::of(seed, Some(9));
        let (outcome, memory) = case.run(Vec::new(), &[hasty]);
        assert!(outcome.last().is_ok(), "seed {seed}");
        !memory.iter().all(|buffers| case.holds(buffers))
    });
    assert_eq!(wrong.count(), 50);
}

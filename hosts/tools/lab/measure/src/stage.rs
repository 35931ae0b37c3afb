//! Where scripts run: between threads, or on virtual time.

use crate::MeasureError;
use crate::script::{Act, Clock, Script};
use std::sync::Barrier;
use std::time::Instant;
use unisono_kernel::Rank;
use unisono_kernel::error::PollError;
use unisono_kernel::machine::Machine;
use unisono_kernel::machine::poll::Poll;
use unisono_kernel::machine::transport::Messages;
use unisono_local::{Mailbox, Mailboxes};
use unisono_sim::{Endpoint, Network, Placement, Schedule, Time, World};

/// Runs a script on each rank, all at once.
pub trait Stage {
    /// Runs the scripts; returns the times that each rank noted.
    ///
    /// # Errors
    /// A message fails, or a rank does not reach the end of its script.
    fn run(&mut self, scripts: Vec<Vec<Act>>) -> Result<Vec<Vec<f64>>, MeasureError>;
}

impl<S: Stage + ?Sized> Stage for &mut S {
    fn run(&mut self, scripts: Vec<Vec<Act>>) -> Result<Vec<Vec<f64>>, MeasureError> {
        (**self).run(scripts)
    }
}

/// Threads with mailboxes; each spins, and yields where there are more than cores. One clock for all.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    begin: Instant,
}

impl Default for Threads {
    fn default() -> Self {
        Self { begin: Instant::now() }
    }
}

/// The number of looks at an awaited message before the core is yielded to other ranks, which may be the awaited ones.
const SPINS: u32 = 1000;

struct Thread {
    mailbox: Mailbox,
    begin: Instant,
}

impl Messages for Thread {
    type P2p = Mailbox;
    fn messages(&mut self) -> &mut Mailbox {
        &mut self.mailbox
    }
}

impl Clock for Thread {
    fn now(&self) -> f64 {
        self.begin.elapsed().as_nanos() as f64
    }

    fn work(&mut self, ns: f64) {
        let until = self.now() + ns;
        while self.now() < until {
            core::hint::spin_loop();
        }
    }
}

impl Stage for Threads {
    fn run(&mut self, scripts: Vec<Vec<Act>>) -> Result<Vec<Vec<f64>>, MeasureError> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let (crowded, begin) = (scripts.len() > cores, self.begin);
        let mailboxes = Mailboxes::connect(scripts.len() as u32);
        let together = Barrier::new(scripts.len());
        std::thread::scope(|scope| {
            let threads: Vec<_> = mailboxes
                .into_iter()
                .zip(scripts)
                .map(|(mailbox, acts)| {
                    let together = &together;
                    scope.spawn(move || {
                        let (mut thread, mut script) = (Thread { mailbox, begin }, Script::new(acts));
                        together.wait();
                        let mut spins = 0;
                        loop {
                            match script.poll(&mut thread) {
                                Ok(Poll::Done) => break Ok(script.into_notes()),
                                Ok(Poll::Wait(_)) if crowded || spins >= SPINS => {
                                    spins = 0;
                                    std::thread::yield_now();
                                }
                                Ok(Poll::Wait(_)) => spins += 1,
                                Err(error) => break Err(error),
                            }
                        }
                    })
                })
                .collect();
            let joined: Vec<_> = threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            let one = |(rank, answer): (Rank, std::thread::Result<Result<Vec<f64>, PollError>>)| match answer {
                Ok(notes) => notes.map_err(|error| MeasureError::Poll(rank, error)),
                Err(_) => Err(MeasureError::Panicked(rank)),
            };
            (0..).zip(joined).map(one).collect()
        })
    }
}

/// The simulator, a node per rank.
#[derive(Clone, Debug)]
pub struct Simulated {
    network: Network,
    /// Seed, delays and so on; each run takes the next seed.
    schedule: Schedule,
    /// The time at which the next run begins: clocks go on.
    begin: f64,
}

impl Simulated {
    /// A network; a schedule with a delay makes it noisy.
    pub const fn new(network: Network, schedule: Schedule) -> Self {
        Self { network, schedule, begin: 0.0 }
    }
}

/// A rank's endpoint of the simulated network, and the time at which its run began.
struct Virtual(Endpoint, f64);

impl Messages for Virtual {
    type P2p = Endpoint;
    fn messages(&mut self) -> &mut Endpoint {
        &mut self.0
    }
}

impl Clock for Virtual {
    fn now(&self) -> f64 {
        self.1 + self.0.now().ns()
    }

    fn work(&mut self, ns: f64) {
        self.0.work(Time::from_ns(ns));
    }
}

impl Stage for Simulated {
    fn run(&mut self, scripts: Vec<Vec<Act>>) -> Result<Vec<Vec<f64>>, MeasureError> {
        let stuck = |what: &dyn std::fmt::Display| MeasureError::Stuck(what.to_string());
        let ranks = scripts.len() as u32;
        let placement = Placement::blocks(ranks, ranks).map_err(|e| stuck(&e))?;
        let world = World::new(self.network, placement, self.schedule.clone()).map_err(|e| stuck(&e))?;
        self.schedule.seed = self.schedule.seed.wrapping_add(1);
        let ends = world.endpoints().into_iter().map(|end| Virtual(end, self.begin));
        let mut ranks: Vec<_> = ends.zip(scripts.into_iter().map(Script::new)).collect();
        world.run(&mut ranks).last().map_err(|e| stuck(&e))?;
        self.begin = ranks.iter().map(|(end, _)| end.now()).fold(self.begin, f64::max);
        Ok(ranks.into_iter().map(|(_, script)| script.into_notes()).collect())
    }
}

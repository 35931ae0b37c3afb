//! `unisono measure`: the parameters of the papers' models, measured, and models beside measurements
//! (docs/explanation/papers.md).

pub(crate) mod args;
mod barriers;
pub(crate) mod caches;
pub(crate) mod logp;
pub(crate) mod mpi;
mod network;
pub(crate) mod queue;
pub(crate) mod skew;

use crate::error::Failure;
use crate::job::Job;
use crate::sim;
use crate::team;
use args::{Measure, Meet, Simulator, What};
use unisono_sim::{Network, Schedule};

pub(crate) fn run(args: &Measure) -> Result<(), Failure> {
    match &args.what {
        What::Logp(args) => logp::run(args),
        What::Barriers(args) => barriers::run(args),
        What::Network(args) => network::run(args),
        What::Skew(args) if args.over == Meet::Mpi => skew::over_mpi(args),
        What::Skew(args) => team::launch(args.ranks, args.bind, Vec::new(), &Job::Skew(args.clone())),
        What::Caches(args) => team::launch(2, args.bind, Vec::new(), &Job::Caches(args.clone())),
        What::Queue(args) => {
            queue::check(args)?;
            team::launch(args.ranks, args.bind, Vec::new(), &Job::Queue(args.clone()))
        }
    }
}

impl Simulator {
    /// The network, and the first run's schedule.
    fn parts(&self) -> Result<(Network, Schedule), Failure> {
        let network = sim::network(sim::topology(self.network, 16, 8), self.parameters.as_deref())?;
        Ok((network, Schedule { seed: self.seed, delay: self.delay, ..Schedule::default() }))
    }
}

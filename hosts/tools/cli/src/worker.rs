//! A rank that is a process of this program.

use crate::error::Failure;
use crate::job::Job;
use crate::team::Team;
use crate::{bench, check, demo, doctor, measure, topo, tune};

/// Runs the rank's job.
pub(crate) fn work() -> Result<(), Failure> {
    let (mut team, job) = Team::from_env()?;
    let rank = team.rank();
    let answer = match job {
        Job::Demo(args) => demo::work(&mut team, &args),
        Job::Doctor(args) => doctor::work(&mut team, &args),
        Job::Bench(args) => bench::work(&mut team, &args),
        Job::Check(args) => check::work(&mut team, &args),
        Job::Programs(args) => check::random::work(&mut team, &args),
        Job::Topo(args) => topo::work(&mut team, &args),
        Job::Skew(args) => measure::skew::work(&mut team, &args),
        Job::Caches(args) => measure::caches::work(&mut team, &args),
        Job::Queue(args) => measure::queue::work(&mut team, &args),
        Job::Tune(work) => tune::work(&mut team, &work),
    };
    answer.map_err(|failure| match failure {
        Failure::Silent(code) => Failure::Silent(code),
        failure => Failure::Words(format!("rank {rank}: {failure}")),
    })
}

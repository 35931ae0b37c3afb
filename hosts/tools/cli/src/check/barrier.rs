//! Barriers: every algorithm.

use super::{Caller, Tally};
use crate::bench::clock;
use crate::error::Failure;
use crate::team::Team;
use unisono_kernel::algorithm::BarrierAlgorithm;
use unisono_kernel::call::Call;

const BARRIERS: [&str; 6] = ["posted", "dissemination", "doubling", "central", "combining", "combining-2"];

/// No rank leaves a barrier before all ranks have entered it, by the common clock.
pub(super) fn check(team: &mut Team, comm: &mut Caller<'_>, tally: &mut Tally) -> Result<(), Failure> {
    const ROUNDS: usize = 200;
    for name in BARRIERS {
        let algorithm =
            BarrierAlgorithm::from_name(name).ok_or_else(|| Failure::Words(format!("no algorithm {name}")))?;
        let mut times = Vec::new();
        for round in 0..ROUNDS {
            if round % comm.size() as usize == comm.rank() as usize {
                std::thread::yield_now();
            }
            let enter = clock::now();
            comm.run(Call::Barrier { algorithm })?;
            times.push((enter, clock::now()));
        }
        let all = team.gather(&times)?;
        let right = (0..ROUNDS).all(|i| {
            let last_in = all.iter().map(|rank| rank[i].0).max();
            let first_out = all.iter().map(|rank| rank[i].1).min();
            last_in <= first_out
        });
        tally.case(format!("barrier {name}, {ROUNDS} times"), right);
    }
    Ok(())
}

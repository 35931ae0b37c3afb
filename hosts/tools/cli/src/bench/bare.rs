//! A segment for loops that are written by hand, without the kernel's machines.

use crate::error::Failure;
use crate::team::Team;
use unisono_kernel::error::Error;
use unisono_kernel::machine::poll::{Await, Source, Until, WaitSet};
use unisono_kernel::machine::transport::Transport;
use unisono_kernel::machine::wait::Relax;
use unisono_kernel::region::{Flag, FlagId, Layout, Params, Region, state};
use unisono_posix::{Joined, Posix};

pub(super) type View = <Posix as Transport>::Region;

/// One rank's view of it.
#[derive(Debug)]
pub(super) struct Bare {
    pub(super) joined: Joined,
    pub(super) region: View,
    pub(super) layout: Layout,
    pub(super) rank: u32,
}

impl Bare {
    pub(super) fn join(team: &mut Team, params: Params) -> Result<Self, Failure> {
        let joined = team.join(params)?;
        let comm = joined.communicator.comm();
        let (region, layout, rank) = (comm.region().clone(), *comm.member().layout(), comm.member().rank());
        Ok(Self { joined, region, layout, rank })
    }

    /// Waits as [`SpinThen`](unisono_kernel::machine::wait::SpinThen) does.
    #[inline]
    pub(super) fn wait(&mut self, flag: FlagId, bound: u64, peer: u32) -> Result<(), Error> {
        let wait = self.joined.communicator.wait_policy();
        let ready = |region: &View| region.flag(flag).load_acquire().at_least(bound);
        if ready(&self.region) {
            return Ok(());
        }
        for _ in 0..wait.eager {
            if ready(&self.region) {
                return Ok(());
            }
        }
        let source = Source::Flag(flag, Until::AtLeast(bound));
        let on = WaitSet::one(Await { source, peer: Some(peer), operation: bound, stage: 0 });
        wait.host.begin();
        loop {
            for _ in 0..wait.patient {
                if ready(&self.region) {
                    return Ok(());
                }
                core::hint::spin_loop();
            }
            if let Some(poison) = state::look(&self.region, &self.layout) {
                return Err(Error::Poisoned(poison));
            }
            let relaxed = wait.host.relax(&on);
            // A peer that has stored the last word may have ended since: no `done` says that it had finished.
            if ready(&self.region) {
                return Ok(());
            }
            relaxed.map_err(|_| Error::Abandoned)?;
        }
    }
}

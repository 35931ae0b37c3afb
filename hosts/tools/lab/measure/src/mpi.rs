//! Scripts on the ranks of an MPI job: each process makes the same measurement, runs its own script, and receives the
//! times that all ranks noted. So all ranks find the same values, and decide alike.

use crate::script::{Act, Clock, Script};
use crate::{MeasureError, Stage};
use std::ffi::CStr;
use std::time::{Duration, Instant};
use unisono_kernel::error::{Poison, WaitError};
use unisono_kernel::machine::drive;
use unisono_kernel::machine::p2p::P2p;
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::machine::transport::{Messages, Observe};
use unisono_kernel::machine::wait::{Relax, SpinThen};
use unisono_kernel::msg::parts::Parts;
use unisono_kernel::msg::{allgather, barrier};
use unisono_kernel::pattern::Seat;
use unisono_mpi::Bounded;
use unisono_mpi::attach::{AttachError, Library, Team};
use unisono_mpi::messages::Endpoint;
use unisono_mpi::program::Mpi;

/// This process among the ranks of `MPI_COMM_WORLD`.
#[derive(Debug)]
pub struct Job {
    mpi: Mpi,
    /// Dropped before the MPI is finalised.
    team: Option<Team>,
    begin: Instant,
    /// More ranks than cores: a rank that waits yields its core.
    crowded: bool,
}

/// The longest time that a rank waits for another one.
const BOUND: Duration = Duration::from_secs(60);

impl Job {
    /// Starts the MPI whose library is `mpi`; `unisono` is ours for it, if none is preloaded. Collective.
    ///
    /// # Errors
    /// The loader's; the MPI's.
    ///
    /// # Safety
    /// The files are Unisono's and the MPI's libraries; nothing else starts an MPI in this process.
    pub unsafe fn start(unisono: &CStr, mpi: &CStr) -> Result<Self, AttachError> {
        // SAFETY: the caller's promise.
        let mpi = unsafe { Mpi::load(mpi) }?;
        // SAFETY: the caller's promise.
        let library = unsafe { Library::of_process() }.or_else(|_| unsafe { Library::load(unisono) })?;
        // SAFETY: once, by the caller's promise.
        let world = unsafe { mpi.init() }?;
        // SAFETY: MPI's handle; one thread; the team is dropped before the MPI is finalised.
        let mut team = Team::new(unsafe { library.connect(world) }?);
        team.set_timeout(Some(BOUND));
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let crowded = team.messages().size() as usize > cores;
        Ok(Self { mpi, team: Some(team), begin: Instant::now(), crowded })
    }

    /// This process's rank.
    pub fn rank(&self) -> u32 {
        self.team.as_ref().map_or(0, |team| team.messages().rank())
    }

    /// Number of ranks.
    pub fn size(&self) -> u32 {
        self.team.as_ref().map_or(1, |team| team.messages().size())
    }

    /// The MPI's name and version, as it says them.
    pub fn mpi(&self) -> String {
        self.mpi.version()
    }

    /// Times barriers among the first `ranks` ranks: in each of `repetitions` all ranks pause, then meet, and the first ones
    /// are timed. Returns the nanoseconds that the slowest rank of each took, the same on all ranks. Collective.
    ///
    /// # Errors
    /// `ranks` is 0, or more than the job's; a message fails, or a rank is late.
    pub fn barriers(
        &mut self,
        algorithm: barrier::Algorithm,
        ranks: u32,
        repetitions: usize,
        pause: Duration,
    ) -> Result<Vec<f64>, MeasureError> {
        let (me, size) = (self.rank(), self.size());
        if ranks > size {
            return Err(MeasureError::Ranks { wanted: ranks, are: size });
        }
        let Some(team) = &mut self.team else { return Ok(Vec::new()) };
        let all = Seat::new(me, size).map_err(failed)?;
        // The others have an operation of their own, of one rank: so all count alike.
        let seat = if me < ranks { Seat::new(me, ranks) } else { Seat::new(0, 1) }.map_err(failed)?;
        let mut mine = Vec::new();
        for _ in 0..repetitions {
            std::thread::sleep(pause);
            let together = barrier::plan(all, barrier::Algorithm::Dissemination).map_err(failed)?;
            // SAFETY: no data; so below.
            unsafe { team.run(together, &[], &mut []) }.map_err(failed)?;
            let (plan, begin) = (barrier::plan(seat, algorithm).map_err(failed)?, Instant::now());
            // SAFETY: as above.
            unsafe { team.run(plan, &[], &mut []) }.map_err(failed)?;
            mine.extend((begin.elapsed().as_nanos() as f64).to_ne_bytes());
        }
        let times = Self::all(team, all, mine)?;
        let of = |rank: usize, at: usize| times.get(rank * repetitions + at).copied().unwrap_or(0.0);
        Ok((0..repetitions).map(|at| (0..ranks as usize).map(|rank| of(rank, at)).fold(0.0, f64::max)).collect())
    }

    /// The numbers of all ranks, one rank's after the other's: everyone brings as many.
    fn all(team: &mut Team, seat: Seat, mine: Vec<u8>) -> Result<Vec<f64>, MeasureError> {
        let mut all = vec![0; mine.len() * seat.size() as usize];
        let parts = Parts::equal(seat.size(), mine.len() as u64).map_err(failed)?;
        let plan = allgather::plan(seat, parts, false, allgather::Algorithm::Ring, None).map_err(failed)?;
        // SAFETY: where it fails, the buffers live until the team is dropped: the job can't go on, see below.
        let gathered = unsafe { team.run(plan, &mine, &mut all) };
        if let Err(error) = gathered {
            // A message may still be in flight to or from the buffers.
            std::mem::forget((mine, all));
            return Err(failed(error));
        }
        let (words, _) = all.as_chunks();
        Ok(words.iter().map(|word| f64::from_ne_bytes(*word)).collect())
    }

    /// Ends the MPI. Collective.
    ///
    /// # Errors
    /// The MPI's.
    pub fn finalize(mut self) -> Result<(), AttachError> {
        drop(self.team.take());
        // SAFETY: once, since `self` is gone; the team, the only one, is dropped.
        unsafe { self.mpi.finalize() }
    }
}

/// The endpoint of the MPI's messages, with the process's clock.
struct Rank<'a> {
    endpoint: &'a mut Endpoint,
    begin: Instant,
    crowded: bool,
}

impl Messages for Rank<'_> {
    type P2p = Endpoint;
    fn messages(&mut self) -> &mut Endpoint {
        self.endpoint
    }
}

impl Observe for Rank<'_> {
    fn ready(&mut self, on: &WaitSet) -> bool {
        self.endpoint.ready(on)
    }

    fn poison(&self) -> Option<Poison> {
        None
    }

    fn compare(&mut self) -> Result<(), WaitError> {
        Ok(())
    }
}

impl Clock for Rank<'_> {
    fn now(&self) -> f64 {
        self.begin.elapsed().as_nanos() as f64
    }

    fn work(&mut self, ns: f64) {
        let until = self.now() + ns;
        while self.now() < until {
            if self.crowded {
                std::thread::yield_now();
            } else {
                core::hint::spin_loop();
            }
        }
    }
}

/// Yields the core where ranks share it. The test of a message makes the MPI's progress.
#[derive(Debug)]
struct Waiting {
    crowded: bool,
}

impl Relax for Waiting {
    fn relax(&mut self, _: &WaitSet) -> Result<(), WaitError> {
        if self.crowded {
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// The text of an error.
fn failed(error: impl std::fmt::Display) -> MeasureError {
    MeasureError::Job(error.to_string())
}

impl Stage for Job {
    fn run(&mut self, scripts: Vec<Vec<Act>>) -> Result<Vec<Vec<f64>>, MeasureError> {
        let (me, size) = (self.rank(), self.size());
        if scripts.len() > size as usize {
            return Err(MeasureError::Ranks { wanted: scripts.len() as u32, are: size });
        }
        let Some(team) = &mut self.team else { return Ok(Vec::new()) };
        let seat = Seat::new(me, size).map_err(failed)?;
        let together = barrier::plan(seat, barrier::Algorithm::Dissemination).map_err(failed)?;
        // SAFETY: no data.
        unsafe { team.run(together, &[], &mut []) }.map_err(failed)?;

        let notes = |script: &Vec<Act>| script.iter().filter(|act| matches!(act, Act::Note)).count();
        let counts: Vec<usize> = scripts.iter().map(notes).collect();
        let mut script = Script::new(scripts.into_iter().nth(me as usize).unwrap_or_default());
        let mut rank = Rank { endpoint: team.messages_mut(), begin: self.begin, crowded: self.crowded };
        let host = Bounded::new(Waiting { crowded: self.crowded }, Some(BOUND));
        let mut wait = SpinThen::new(1000, 0, host);
        drive::run(&mut script, &mut rank, &mut wait).map_err(|stop| failed(AttachError::from(stop)))?;

        // All ranks know how many notes each has; blocks have the length of the longest.
        let block = 8 * counts.iter().copied().max().unwrap_or(0);
        let mut mine: Vec<u8> = script.into_notes().into_iter().flat_map(f64::to_ne_bytes).collect();
        mine.resize(block, 0);
        let all = Self::all(team, seat, mine)?;
        let numbers = |(numbers, count): (&[f64], usize)| numbers.iter().take(count).copied().collect();
        Ok(all.chunks((block / 8).max(1)).zip(counts).map(numbers).collect())
    }
}

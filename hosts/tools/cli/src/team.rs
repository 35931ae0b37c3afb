//! Ranks that this program starts, as processes of this program or of another one, and what connects them.
//!
//! The launcher's process only starts the ranks and names those that failed; rank 0 prints for the user.

use crate::args::BindTo;
use crate::error::Failure;
use crate::job::Job;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::fmt;
use std::time::Duration;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::region::{Base, Params};
use unisono_posix::bootstrap::{Bootstrap, Launched};
use unisono_posix::launch::{Launch, Outcome};
use unisono_posix::lending::LendFrom;
use unisono_posix::{Joined, Options, Policy};

/// The job, in JSON.
const VARIABLE: &str = "UNISONO_JOB";

/// How long survivors of a failed rank may take to report their errors.
const GRACE: Duration = Duration::from_secs(2);

/// Variables of the ranks' environment.
type Variables = Vec<(OsString, OsString)>;

/// Starts `ranks` ranks of a job and waits for them.
pub(crate) fn launch(ranks: u32, bind: BindTo, env: Variables, job: &Job) -> Result<(), Failure> {
    let outcome = launch_for(ranks, bind, env, job, GRACE)?;
    if outcome.success() { Ok(()) } else { Err(Failure::Words(outcome.to_string())) }
}

/// The same, with the time that survivors have; how the ranks ended.
pub(crate) fn launch_for(
    ranks: u32,
    bind: BindTo,
    mut env: Variables,
    job: &Job,
    grace: Duration,
) -> Result<Outcome, Failure> {
    Refusal::check(Argument::Ranks, ranks.into(), Bound::AtLeast(1))?;
    let program = std::env::current_exe().map_err(|e| Failure::Words(format!("own path: {e}")))?.into();
    env.push((VARIABLE.into(), serde_json::to_string(job)?.into()));
    Ok(Launch { ranks, bind: bind.into(), program, args: vec!["worker".into()], env, grace }.run()?)
}

/// Starts `ranks` copies of a program and waits for them; an error names the ranks that failed.
pub(crate) fn start(
    ranks: u32,
    bind: BindTo,
    program: OsString,
    args: Vec<OsString>,
    env: Variables,
) -> Result<(), Failure> {
    let outcome = Launch { ranks, bind: bind.into(), program, args, env, grace: GRACE }.run()?;
    if outcome.success() { Ok(()) } else { Err(Failure::Words(outcome.to_string())) }
}

/// A rank's connections: the bootstrap that started it, for joining and for reports.
#[derive(Debug)]
pub(crate) struct Team {
    bootstrap: Launched,
    joined: bool,
}

impl Team {
    /// The team of a rank that [`launch`] has started, and its job.
    pub(crate) fn from_env() -> Result<(Self, Job), Failure> {
        let missing = || {
            let commands = "`unisono demo`, `bench`, `check`, `topo`, `tune`, `doctor` or `measure`";
            Failure::Words(format!("worker: to be started by {commands}"))
        };
        let job = std::env::var(VARIABLE).map_err(|_| missing())?;
        let bootstrap = Launched::from_env()?.ok_or_else(missing)?;
        Ok((Self { bootstrap, joined: false }, serde_json::from_str(&job)?))
    }

    pub(crate) fn rank(&self) -> u32 {
        self.bootstrap.rank()
    }

    pub(crate) fn size(&self) -> u32 {
        self.bootstrap.size()
    }

    /// A new segment with a communicator on it.
    pub(crate) fn join(&mut self, params: Params) -> Result<Joined, Failure> {
        self.join_from(params, None, Base::default())
    }

    /// The same, where messages from this length on are lent, and pages are bound by this policy.
    pub(crate) fn join_lending(&mut self, params: Params, from: LendFrom, policy: Policy) -> Result<Joined, Failure> {
        self.join_with(params, Options { lend_from: Some(from), policy, ..Options::default() })
    }

    /// The same, with a bound on each wait, and with the counts from which its operations start.
    pub(crate) fn join_from(
        &mut self,
        params: Params,
        timeout: Option<Duration>,
        begin: Base,
    ) -> Result<Joined, Failure> {
        self.join_with(params, Options { timeout, begin, ..Options::default() })
    }

    fn join_with(&mut self, params: Params, options: Options) -> Result<Joined, Failure> {
        // If huge pages can't be had for the first segment, they can't for others: the line is printed once.
        let log = if self.joined { None } else { Some(say as fn(fmt::Arguments<'_>)) };
        self.joined = true;
        let options = Options { log, ..options };
        Ok(unisono_posix::join(&mut self.bootstrap, |ranks| Params { ranks, ..params }, &options)?)
    }

    /// The values of all ranks, by rank. For reports: it is slow, and does not use Unisono's collectives.
    pub(crate) fn gather<V: Serialize + DeserializeOwned>(&mut self, mine: &V) -> Result<Vec<V>, Failure> {
        let all = self.bootstrap.allgather(&serde_json::to_vec(mine)?)?;
        all.iter().map(|bytes| Ok(serde_json::from_slice(bytes)?)).collect()
    }
}

fn say(line: fmt::Arguments<'_>) {
    eprintln!("unisono: {line}");
}

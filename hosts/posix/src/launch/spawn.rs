//! Starting the processes.

use super::{Bind, Launch};
use crate::binding::{self, PuSet};
use crate::bootstrap::variables::{BOOTSTRAP_FD, RANK, SIZE};
use crate::error::PosixError;
use crate::sys;
use crate::topology::Topology;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Starts all processes; returns each with the launcher's end of its socket.
///
/// On an error those that run already are killed and waited for.
pub(super) fn spawn(launch: &Launch) -> Result<Vec<(Child, UnixStream)>, PosixError> {
    let places = places(launch.bind)?;
    let mut children = Vec::new();
    for rank in 0..launch.ranks {
        let place = if places.is_empty() { None } else { places.get(rank as usize % places.len()) };
        match one(launch, rank, place) {
            Ok(child) => children.push(child),
            Err(error) => {
                for (mut child, _) in children {
                    // It may have ended by itself.
                    let _ = child.kill();
                    let _ = child.wait();
                }
                return Err(error);
            }
        }
    }
    Ok(children)
}

fn one(launch: &Launch, rank: u32, place: Option<&PuSet>) -> Result<(Child, UnixStream), PosixError> {
    let what = |call, error: std::io::Error| {
        PosixError::io(call, &error, format!("start rank {rank} of {:?}", launch.program))
    };
    let (ours, theirs) = UnixStream::pair().map_err(|e| what("socketpair", e))?;
    ours.set_nonblocking(true).map_err(|e| what("fcntl", e))?;
    let (fd, parent) = (theirs.as_raw_fd(), std::process::id());
    let place = place.cloned();
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).envs(launch.env.iter().map(|(name, value)| (name, value)));
    command.env(RANK, rank.to_string()).env(SIZE, launch.ranks.to_string()).env(BOOTSTRAP_FD, fd.to_string());
    let prepare = move || {
        sys::die_with_parent(parent)?;
        if let Some(place) = &place {
            sys::set_affinity(place.words())?;
        }
        sys::keep_on_exec(&theirs)
    };
    // SAFETY: between fork and exec `prepare` makes system calls on values made before; it neither allocates nor locks.
    unsafe { command.pre_exec(prepare) };
    let child = command.spawn().map_err(|e| what("exec", e))?;
    Ok((child, ours))
}

/// The places of this machine to which ranks are bound round-robin; empty: no binding.
fn places(bind: Bind) -> Result<Vec<PuSet>, PosixError> {
    let allowed = if bind == Bind::None { PuSet::default() } else { binding::affinity()? };
    let cores = if bind == Bind::Core { Topology::read().cores() } else { Vec::new() };
    let nodes: Vec<_> = binding::nodes().into_iter().map(|(_, pus)| pus).collect();
    Ok(bind.places(&cores, &nodes, &allowed))
}

//! What is measured: a collective, an algorithm, a size.

use super::buffers::{fill, holds};
use crate::args::Collective;
use crate::error::Failure;
use crate::job::Team;
use std::fmt;
use unisono_kernel::Rank;
use unisono_kernel::datatype::Data;
use unisono_kernel::driver::Communicator;
use unisono_kernel::error::Error;
use unisono_kernel::op::Op;
use unisono_kernel::select::{BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::shm::{allreduce, bcast};
use unisono_posix::{Joined, Posix};

/// One cell of a table.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    kind: Kind,
    name: String,
    pub(crate) bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bcast(BcastAlgorithm),
    Barrier(BarrierAlgorithm),
    Allreduce,
    /// An allreduce without the kernel's machines, to compare with: does it keep their promises?
    HandWritten {
        promises: bool,
    },
}

const BCASTS: [&str; 6] = ["posted", "queue", "cico-flat", "cico-chain", "cico-binary", "cico-binomial"];
const BARRIERS: [&str; 3] = ["dissemination", "central", "combining"];

impl Subject {
    /// The subjects that a name stands for; `all` stands for every algorithm that carries `bytes`.
    pub(crate) fn by_name(collective: Collective, name: &str, bytes: u64) -> Result<Vec<Self>, Failure> {
        let names: Vec<&str> = match (collective, name) {
            (Collective::Bcast, "all") => {
                BCASTS.into_iter().filter(|&n| n != "posted" || bytes <= bcast::posted::MOST).collect()
            }
            (Collective::Barrier, "all") => BARRIERS.into(),
            (Collective::Allreduce, "all") if bytes == 8 => vec!["posted", "hand-written", "sketch"],
            _ => vec![name],
        };
        names.into_iter().map(|name| Self::one(collective, name, bytes)).collect()
    }

    fn one(collective: Collective, name: &str, bytes: u64) -> Result<Self, Failure> {
        let unknown = || Failure::Words(format!("no algorithm {name:?} for {collective:?}: see --help"));
        let kind = match collective {
            Collective::Bcast => Kind::Bcast(BcastAlgorithm::from_name(name).ok_or_else(unknown)?.resolve(bytes)),
            Collective::Barrier => Kind::Barrier(BarrierAlgorithm::from_name(name).ok_or_else(unknown)?),
            Collective::Allreduce if ["hand-written", "sketch"].contains(&name) && bytes == 8 => {
                Kind::HandWritten { promises: name == "hand-written" }
            }
            Collective::Allreduce if ["auto", "all", "posted"].contains(&name) => Kind::Allreduce,
            Collective::Allreduce => return Err(unknown()),
        };
        if kind == Kind::Allreduce && (bytes > allreduce::posted::MOST || !bytes.is_multiple_of(8)) {
            let most = allreduce::posted::MOST;
            return Err(Failure::Words(format!(
                "bytes is {bytes}: an allreduce of f64 takes multiples of 8 up to {most}"
            )));
        }
        let name = match (kind, name) {
            (Kind::Bcast(BcastAlgorithm::Posted) | Kind::Allreduce, "auto" | "all") => "posted",
            (Kind::Bcast(BcastAlgorithm::Queue), "auto") => "queue",
            (Kind::Barrier(_), "auto") => "dissemination",
            (_, name) => name,
        };
        Ok(Self { kind, name: name.into(), bytes: if collective == Collective::Barrier { 0 } else { bytes } })
    }

    pub(crate) const fn collective(&self) -> &'static str {
        match self.kind {
            Kind::Bcast(_) => "bcast",
            Kind::Barrier(_) => "barrier",
            Kind::Allreduce | Kind::HandWritten { .. } => "allreduce",
        }
    }

    pub(crate) fn algorithm(&self) -> String {
        self.name.clone()
    }

    pub(crate) fn is_default(&self) -> bool {
        match self.kind {
            Kind::Bcast(algorithm) => algorithm == BcastAlgorithm::Auto.resolve(self.bytes),
            Kind::Barrier(algorithm) => algorithm == BarrierAlgorithm::default(),
            Kind::Allreduce => true,
            Kind::HandWritten { .. } => false,
        }
    }

    /// Is there a root whose start opens the window?
    pub(crate) const fn rooted(&self) -> bool {
        matches!(self.kind, Kind::Bcast(_))
    }

    /// Is it written by hand, and does it keep the kernel's promises?
    pub(crate) const fn is_hand_written(&self) -> Option<bool> {
        match self.kind {
            Kind::HandWritten { promises } => Some(promises),
            _ => None,
        }
    }

    /// One operation on `buffer`.
    #[inline]
    pub(crate) fn call(&self, comm: &mut Communicator<Posix>, buffer: &mut [u8], root: Rank) -> Result<(), Error> {
        match self.kind {
            Kind::Bcast(algorithm) => comm.bcast_with(Data::bytes_mut(buffer), root, algorithm),
            Kind::Barrier(algorithm) => comm.barrier_with(algorithm),
            Kind::Allreduce | Kind::HandWritten { .. } => comm.allreduce_in_place(buffer, Op::SumF64),
        }
    }

    /// Runs the subject from every root with data that is checked.
    pub(crate) fn verify(
        &self,
        team: &mut Team,
        joined: &mut Joined,
        mut call: impl FnMut(&mut Communicator<Posix>, &mut [u8], Rank) -> Result<(), Error>,
    ) -> Result<(), Failure> {
        let (rank, size) = (team.rank(), team.size());
        let mut buffer = vec![0; self.bytes as usize];
        for root in 0..size {
            let right = match self.kind {
                Kind::Bcast(_) => {
                    fill(&mut buffer, if rank == root { 7 } else { 8 });
                    call(&mut joined.communicator, &mut buffer, root)?;
                    holds(&buffer, 7)
                }
                Kind::Barrier(_) => {
                    call(&mut joined.communicator, &mut buffer, root)?;
                    true
                }
                Kind::Allreduce | Kind::HandWritten { .. } => {
                    buffer.as_chunks_mut().0.iter_mut().for_each(|x| *x = f64::from(rank + root).to_ne_bytes());
                    call(&mut joined.communicator, &mut buffer, root)?;
                    let sum: f64 = (0..size).map(|r| f64::from(r + root)).sum();
                    buffer.as_chunks().0.iter().all(|x| *x == sum.to_ne_bytes())
                }
            };
            if !right {
                return Err(Failure::Words(format!("{self}: wrong result from root {root}")));
            }
        }
        Ok(())
    }

    /// Does its outcome depend on what the root's buffers hold?
    pub(crate) const fn carries_pattern(&self) -> bool {
        self.rooted()
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} B", self.collective(), self.name, self.bytes)
    }
}

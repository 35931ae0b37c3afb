//! One rank makes a mistake: every rank gets an error that names the argument, at this or the next operation. Then all
//! renew the communicator, and the results on it are right.

use super::{Tally, communicators, params};
use crate::error::Failure;
use crate::team::Team;
use unisono_kernel::Rank;
use unisono_kernel::algorithm::{AllreduceAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::{Argument, Cause, Error, PollError, Refusal};
use unisono_kernel::op::Op;
use unisono_posix::Posix;

/// Bytes of a block or an operand: queues carry it, and several times as much.
const BYTES: usize = 1200;
/// What the rank at fault passes instead.
const OTHER: usize = 800;

/// The mistake of the last rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// A root that is not a rank of the communicator.
    Root,
    /// Blocks or an operand of another length.
    Length,
    /// Two blocks of its receive side share a byte. It is the root.
    Overlap,
    /// Another collective.
    Other,
}

impl Mistake {
    const fn argument(self) -> Argument {
        match self {
            Self::Root => Argument::Root,
            Self::Length => Argument::Bytes,
            Self::Overlap => Argument::Displacements,
            Self::Other => Argument::Collective,
        }
    }
}

use Mistake::{Length, Other, Overlap, Root};

const CALLS: [(&str, &[Mistake]); 24] = [
    ("bcast auto", &[Root, Length, Other]),
    ("bcast queue", &[Root, Length, Other]),
    ("bcast cico-binary", &[Root, Length, Other]),
    ("gather exchange", &[Root, Length, Other]),
    ("gather cico", &[Root, Length, Other]),
    ("gatherv exchange", &[Root, Length, Overlap, Other]),
    ("gatherv cico", &[Root, Length, Overlap, Other]),
    ("scatter exchange", &[Root, Length, Other]),
    ("scatter cico", &[Root, Length, Other]),
    ("scatterv exchange", &[Root, Length, Other]),
    ("scatterv cico", &[Root, Length, Other]),
    ("allgather exchange", &[Length, Other]),
    ("allgather cico", &[Length, Other]),
    ("allgatherv exchange", &[Length, Overlap, Other]),
    ("allgatherv cico", &[Length, Overlap, Other]),
    ("alltoall", &[Length, Other]),
    ("alltoallv", &[Length, Overlap, Other]),
    ("reduce", &[Root, Length, Other]),
    ("allreduce exchange", &[Length, Other]),
    ("allreduce slices", &[Length, Other]),
    ("reduce_scatter", &[Length, Other]),
    ("reduce_scatter_block", &[Length, Other]),
    ("scan", &[Length, Other]),
    ("exscan", &[Length, Other]),
];

pub(super) fn check(team: &mut Team, tally: &mut Tally) -> Result<(), Failure> {
    let (rank, size) = (team.rank(), team.size());
    if size < 2 {
        return Ok(());
    }
    let culprit = size - 1;
    let everyone: Vec<_> = (0..size).collect();
    for (name, mistakes) in CALLS {
        for &mistake in mistakes {
            let others: &[&str] = match mistake {
                Other if name.starts_with("allreduce") => &["scan", "barrier"],
                Other => &["allreduce exchange", "barrier"],
                _ => &[name],
            };
            for &other in others {
                let mut comm = team.join(params(size))?.communicator;
                let mine = (rank == culprit).then_some(mistake);
                let root = if mistake == Overlap { culprit } else { 0 };
                let first = call(&mut comm, if rank == culprit { other } else { name }, root, mine);
                let answer = first.and_then(|()| comm.barrier());
                let right = refusal(answer).is_some_and(|refusal| refusal.argument == mistake.argument());
                let what = if other == name { String::new() } else { format!(": {other}") };
                let what = format!("{name}: {} of rank {culprit} is wrong{what}", mistake.argument().name());
                let renewed = comm.renew().is_ok() && communicators::run(&mut comm, &everyone, 5)?;
                tally.case(format!("{what}; renewed"), renewed);
                tally.case(what, right);
            }
        }
    }
    Ok(())
}

/// The argument for which an operation was refused.
fn refusal(answer: Result<(), Error>) -> Option<Refusal> {
    match answer.err()? {
        Error::Refused(refusal) | Error::Poll(PollError::Mismatch { refusal, .. }) => Some(refusal),
        Error::Poisoned(poison) => match poison.cause {
            Cause::Refused(refusal) => Some(refusal),
            _ => None,
        },
        _ => None,
    }
}

/// One call, with or without a mistake.
fn call(comm: &mut Communicator<Posix>, name: &str, root: Rank, mistake: Option<Mistake>) -> Result<(), Error> {
    let (ranks, me) = (comm.size(), comm.rank());
    let bytes = if mistake == Some(Length) { OTHER } else { BYTES };
    let root = if mistake == Some(Root) { ranks } else { root };
    let step = if mistake == Some(Overlap) { bytes - 1 } else { bytes };
    let (counts, places): (Vec<u64>, Vec<u64>) =
        (0..u64::from(ranks)).map(|rank| (bytes as u64, rank * step as u64)).unzip();
    let (mut from, mut to) = (vec![1; bytes * ranks as usize], vec![0; bytes * ranks as usize]);
    let (mut send, mut receive) = (vec![1; bytes], vec![0; bytes]);
    let (send, receive) = (Data::bytes_mut(&mut send), Data::bytes_mut(&mut receive));
    let equal = |memory: &mut [u8]| {
        // SAFETY: both vectors live until the call ends.
        unsafe { Blocks::equal(Buf::of_mut(memory), ranks, bytes as u64, Datatype::BYTE) }
    };
    let vary = |memory: &mut [u8]| {
        // SAFETY: as above.
        unsafe { Blocks::vary(Buf::of_mut(memory), &counts, &places, Datatype::BYTE) }
    };
    let (even, into) = (equal(&mut from)?, equal(&mut to)?);
    let (uneven, apart) = (vary(&mut from)?, vary(&mut to)?);
    let at_root = |blocks| (me == root).then_some(blocks);
    let op = Op::SUM_F64;
    match name {
        "alltoall" => comm.alltoall(Some(even), into),
        "alltoallv" => comm.alltoallv(Some(uneven), apart),
        "reduce" => comm.reduce(send, (me == root).then_some(receive), op, root),
        "reduce_scatter" => comm.reduce_scatter(uneven, receive, op),
        "reduce_scatter_block" => comm.reduce_scatter(even, receive, op),
        "scan" => comm.scan(send, receive, op),
        "exscan" => comm.exscan(send, receive, op),
        _ => match name.split_once(' ') {
            Some(("bcast", name)) => comm
                .run(&Call::Bcast { data: send, root, algorithm: BcastAlgorithm::from_name(name).unwrap_or_default() })
                .map(drop),
            Some(("allreduce", name)) => comm
                .run(&Call::Allreduce {
                    send,
                    receive,
                    op,
                    algorithm: AllreduceAlgorithm::from_name(name).unwrap_or_default(),
                })
                .map(drop),
            Some((name, algorithm)) => {
                let algorithm = MoveAlgorithm::from_name(algorithm).unwrap_or_default();
                match name {
                    "gather" => {
                        comm.run(&Call::Gather { send: Some(send), receive: at_root(into), root, algorithm }).map(drop)
                    }
                    "gatherv" => comm
                        .run(&Call::Gatherv { send: Some(send), receive: at_root(apart), root, algorithm })
                        .map(drop),
                    "scatter" => comm
                        .run(&Call::Scatter { send: at_root(even), receive: Some(receive), root, algorithm })
                        .map(drop),
                    "scatterv" => comm
                        .run(&Call::Scatterv { send: at_root(uneven), receive: Some(receive), root, algorithm })
                        .map(drop),
                    "allgather" => comm.run(&Call::Allgather { send: Some(send), receive: into, algorithm }).map(drop),
                    _ => comm.run(&Call::Allgather { send: Some(send), receive: apart, algorithm }).map(drop),
                }
            }
            None => comm.run(&Call::Barrier { algorithm: BarrierAlgorithm::Posted }).map(drop),
        },
    }
}

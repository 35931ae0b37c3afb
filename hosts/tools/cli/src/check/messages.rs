//! Every algorithm over messages, through mailboxes of the segment: short and long messages, with the first and the
//! last rank as root.

use super::Tally;
use super::operands::Fold;
use crate::bench::clock;
use crate::error::Failure;
use crate::team::Team;
use unisono_kernel::Rank;
use unisono_kernel::comm::Comm;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::hier::Levels;
use unisono_kernel::machine::drive;
use unisono_kernel::machine::transport::{Observe, Wait};
use unisono_kernel::msg::{
    Algorithm, Memory, Parts, PlanError, Rounds, Schedule, allgather, allreduce, alltoall, barrier, bcast, gather,
    reduce, reduce_scatter, scan, scatter,
};
use unisono_kernel::pattern::Seat;
use unisono_kernel::pattern::bagds::{Table, stages, table_words, work_words};
use unisono_kernel::region::Region;
use unisono_posix::Joined;
use unisono_shm::{Mailbox, Peer, Post};

/// The numbers in names of algorithms that have one: arities, and bytes of segments that are not a multiple of an
/// element.
const NUMBERS: [(&str, &[u64]); 4] =
    [("combining", &[2]), ("knomial", &[2, 3]), ("chain", &[3000]), ("segmented-ring", &[1024])];

/// Bytes of a block or an operand: it fits a slot, fills all of them, or fills them several times.
const SIZES: [usize; 4] = [0, 16, 4000, 40_000];

/// Every algorithm's name; where names have a number, one name for each number in [`NUMBERS`].
fn names() -> Vec<String> {
    let mut all = Vec::new();
    for (collective, names) in Algorithm::NAMES {
        for (name, numbered) in *names {
            let numbers = NUMBERS.iter().find(|(known, _)| known == name).map_or(&[8192][..], |(_, numbers)| numbers);
            match numbered {
                true => all.extend(numbers.iter().map(|number| format!("{collective}/{name}-{number}"))),
                false => all.push(format!("{collective}/{name}")),
            }
        }
    }
    all
}

pub(super) fn check(team: &mut Team, joined: &mut Joined, tally: &mut Tally) -> Result<(), Failure> {
    let (rank, layout, region) = (joined.communicator.rank(), *joined.segment.layout(), joined.segment.region());
    let peers = vec![Peer::default(); layout.ranks() as usize];
    let x = Levels {
        comm: Comm::new(region.clone(), layout, rank)?,
        messages: Mailbox::new(region, Post::new(layout, rank, peers)?),
    };
    let seat = Seat::new(rank, layout.ranks())?;
    let mut messages = Messages { x, wait: joined.communicator.wait_policy(), seat, operation: 0 };
    for name in names() {
        let algorithm = Algorithm::from_name(&name).ok_or_else(|| Failure::Words(format!("no algorithm {name}")))?;
        if let Algorithm::Barrier(algorithm) = algorithm {
            let right = messages.barriers(team, algorithm)?;
            tally.case(format!("messages {name}"), right);
            continue;
        }
        for (root, bytes) in [0, seat.size() - 1].into_iter().flat_map(|root| SIZES.map(|bytes| (root, bytes))) {
            if let Some(right) = messages.case(algorithm, bytes, root)? {
                tally.case(format!("messages {name} root {root} {bytes} B"), right);
            }
        }
    }
    Ok(())
}

struct Messages<'w, R, W> {
    x: Levels<R, Mailbox<R, Vec<Peer>>>,
    wait: &'w mut W,
    seat: Seat,
    operation: u64,
}

/// The data of the block from one rank to another.
fn block(from: Rank, to: Rank, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (from as usize * 59 + to as usize * 31 + at * 7 + (at >> 8)) as u8).collect()
}

/// An operation that does not commute, if the algorithm takes it.
const fn ordered_if(applies: bool) -> Fold {
    if applies { Fold::Maps } else { Fold::SumI64 }
}

impl<R: Region, W> Messages<'_, R, W>
where
    Levels<R, Mailbox<R, Vec<Peer>>>: Observe,
    W: Wait<Levels<R, Mailbox<R, Vec<Peer>>>>,
{
    fn run<S: Schedule>(&mut self, plan: S, send: &[u8], receive: &mut [u8]) -> Result<(), Failure> {
        self.operation += 1;
        let mut scratch = vec![0; plan.bytes().scratch as usize];
        let memory = Memory { send: Buf::of(send), receive: Buf::of_mut(receive), scratch: Buf::of_mut(&mut scratch) };
        // SAFETY: the buffers outlive the machine; a rank that fails here ends, and posts and tests no more.
        let mut machine = unsafe { Rounds::of(plan, memory, self.operation) }?;
        drive::run(&mut machine, &mut self.x, self.wait).map_err(|stop| Failure::Call(self.x.comm.fail(stop)))
    }

    /// No rank leaves before all ranks have entered, by the common clock.
    fn barriers(&mut self, team: &mut Team, algorithm: barrier::Algorithm) -> Result<bool, Failure> {
        const ROUNDS: usize = 50;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let enter = clock::now();
            self.run(barrier::plan(self.seat, algorithm)?, &[], &mut [])?;
            times.push((enter, clock::now()));
        }
        let all = team.gather(&times)?;
        Ok((0..ROUNDS).all(|i| all.iter().map(|rank| rank[i].0).max() <= all.iter().map(|rank| rank[i].1).min()))
    }

    /// Makes one call; is its result right? `None`: the algorithm does not apply.
    fn case(&mut self, algorithm: Algorithm, bytes: usize, root: Rank) -> Result<Option<bool>, Failure> {
        let (seat, me, size) = (self.seat, self.seat.rank(), self.seat.size());
        let parts = Parts::equal(size, bytes as u64)?;
        let all = |block: &dyn Fn(Rank) -> Vec<u8>| (0..size).flat_map(block).collect::<Vec<u8>>();
        let row = bytes * size as usize;
        let (send, mut receive, wanted, ran);
        /// The plan; `None` where the algorithm does not apply.
        macro_rules! run {
            ($plan:expr) => {
                match $plan {
                    Ok(plan) => {
                        ran = true;
                        self.run(plan, &send, &mut receive)?;
                    }
                    Err(PlanError::Inapplicable { .. }) => ran = false,
                    Err(error) => return Err(error.into()),
                }
            };
        }
        match algorithm {
            Algorithm::Barrier(_) => return Ok(None),
            Algorithm::Bcast(algorithm) => {
                (send, wanted) = (Vec::new(), block(root, root, bytes));
                receive = if me == root { wanted.clone() } else { vec![0; bytes] };
                run!(bcast::plan(seat, bytes as u64, root, algorithm).map_err(PlanError::from));
            }
            Algorithm::Gather(algorithm) => {
                send = block(me, root, bytes);
                wanted = if me == root { all(&|from| block(from, root, bytes)) } else { Vec::new() };
                receive = vec![0; wanted.len()];
                run!(gather::plan(seat, bytes as u64, parts, root, false, algorithm));
            }
            Algorithm::Scatter(algorithm) => {
                send = if me == root { all(&|to| block(root, to, bytes)) } else { Vec::new() };
                (wanted, receive) = (block(root, me, bytes), vec![0; bytes]);
                run!(scatter::plan(seat, bytes as u64, parts, root, false, algorithm));
            }
            Algorithm::Allgather(algorithm) => {
                let mut work = vec![0; work_words(size)];
                let mut words = vec![0; table_words(size, stages(size, &mut work)?)];
                let table = Table::new(seat, &mut work, &mut words)?;
                (send, wanted, receive) = (block(me, me, bytes), all(&|from| block(from, from, bytes)), vec![0; row]);
                run!(allgather::plan(seat, parts, false, algorithm, Some(table)));
            }
            Algorithm::Alltoall(algorithm) => {
                send = all(&|to| block(me, to, bytes));
                (wanted, receive) = (all(&|from| block(from, me, bytes)), vec![0; row]);
                run!(alltoall::plan(seat, Some(parts), parts, algorithm));
            }
            Algorithm::Reduce(algorithm) => {
                let (fold, words) = (Fold::Maps, bytes / 8);
                send = fold.operand(bytes, me as usize, words);
                wanted = if me == root { fold.result(bytes, size as usize, words) } else { Vec::new() };
                receive = vec![0; wanted.len()];
                run!(reduce::plan(seat, bytes as u64, fold.op()?, root, false, algorithm).map_err(PlanError::from));
            }
            Algorithm::Allreduce(algorithm) => {
                let fold = ordered_if(algorithm.applicable(&Fold::Maps.op()?).is_ok());
                send = fold.operand(bytes, me as usize, bytes / 8);
                (wanted, receive) = (fold.result(bytes, size as usize, bytes / 8), vec![0; bytes]);
                run!(allreduce::plan(seat, bytes as u64, fold.op()?, false, algorithm));
            }
            Algorithm::ReduceScatter(algorithm) => {
                let (fold, words) = (ordered_if(algorithm.applicable(&Fold::Maps.op()?).is_ok()), row / 8);
                send = fold.operand(bytes, me as usize, words);
                let own = me as usize * bytes..(me as usize + 1) * bytes;
                (wanted, receive) = (fold.result(bytes, size as usize, words)[own].to_vec(), vec![0; bytes]);
                run!(reduce_scatter::plan(seat, parts, fold.op()?, false, algorithm));
            }
            Algorithm::Scan(algorithm) => {
                let (fold, words) = (Fold::Maps, bytes / 8);
                send = fold.operand(bytes, me as usize, words);
                (wanted, receive) = (fold.result(bytes, me as usize + 1, words), vec![0; bytes]);
                run!(scan::plan(seat, bytes as u64, fold.op()?, false, false, algorithm).map_err(PlanError::from));
            }
        }
        Ok(ran.then(|| receive == wanted))
    }
}

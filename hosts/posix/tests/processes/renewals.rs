//! Refusals, and how processes continue after them: a body of ranks, and the test that starts it.

use super::body::{argument, say};
use super::communicators::{Done, joined, shuffled, succeeds, verify};
use rand::{RngExt, SeedableRng};
use rand_xorshift::XorShiftRng;
use unisono_kernel::algorithm::{AllreduceAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::{Argument, Bound, Cause, Error, Refusal};
use unisono_kernel::op::Op;
use unisono_posix::Posix;

/// A random call, the same on all ranks of a communicator.
#[derive(Clone, Copy, Debug)]
struct Draw {
    which: u32,
    form: u32,
    bytes: usize,
}

/// Runs a call; `form`: 0 blocking, 1 nonblocking, 2 persistent.
fn run(comm: &mut Communicator<Posix>, form: u32, call: Call<'_>) -> Result<(), Error> {
    match form {
        0 => comm.run(&call).map(drop),
        1 => comm.scope(|scope| {
            let request = scope.start(call)?;
            scope.wait(request)
        }),
        _ => comm.scope(|scope| {
            let persistent = scope.init(call)?;
            for _ in 0..2 {
                let _ = scope.restart(persistent)?;
                scope.wait_persistent(persistent)?;
            }
            scope.free(persistent)
        }),
    }
}

impl Draw {
    /// The refusal of the call with a wrong argument.
    fn refusal(self, size: u32) -> Refusal {
        let (bytes, size) = (self.bytes as u64, u64::from(size));
        match self.which {
            0 => Refusal::new(Argument::Arity, 0, Bound::AtLeast(1)),
            1 | 2 => Refusal::new(Argument::Root, size + 2, Bound::Below(size)),
            3 => Refusal::new(Argument::Ranks, size + 1, Bound::Equals(size)),
            _ => Refusal::new(Argument::Bytes, bytes + 3, Bound::MultipleOf(8)),
        }
    }

    fn call(self, comm: &mut Communicator<Posix>, wrong: bool) -> Result<(), Error> {
        let (size, Self { which, form, bytes }) = (comm.size(), self);
        let root = if wrong { size + 2 } else { size - 1 };
        let (ranks, odd) = (size + u32::from(wrong && which == 3), if wrong && which == 4 { 3 } else { 0 });
        let (mut send, mut receive) = (vec![1; bytes + odd], vec![0; bytes + odd]);
        let mut all = vec![0; bytes * ranks as usize];
        let blocks = Blocks::equal_mut(&mut all, ranks, bytes as u64, Datatype::BYTE)?;
        let (send, receive) = (Data::bytes_mut(&mut send), Data::bytes_mut(&mut receive));
        let (moves, is_root) = (MoveAlgorithm::Auto, comm.rank() == root);
        let call = match which {
            0 => Call::Barrier { algorithm: BarrierAlgorithm::Combining(if wrong { 0 } else { 2 }) },
            1 => Call::Bcast { data: send, root, algorithm: BcastAlgorithm::Auto },
            2 => Call::Gather { send: Some(send), receive: is_root.then_some(blocks), root, algorithm: moves },
            3 => Call::Allgather { send: Some(send), receive: blocks, algorithm: moves },
            _ => Call::Allreduce { send, receive, op: Op::SUM_I64, algorithm: AllreduceAlgorithm::Auto },
        };
        run(comm, form, call)
    }
}

/// Random sequences of collectives on three communicators, one of them that of all processes. Sometimes an argument of
/// one rank is refused: all ranks get the error, renew the communicator, and continue. Argument: the seed.
pub(super) fn renewals() -> Done {
    let seed: u64 = argument().parse()?;
    let mut world = joined(Some(48 << 20))?;
    let mut beside = world.dup()?;
    let me = world.rank();
    let (mut random, mut own) =
        (XorShiftRng::seed_from_u64(seed), XorShiftRng::seed_from_u64(seed ^ u64::from(me) << 32 | 1));
    let everyone: Vec<u32> = (0..world.size()).collect();
    let half: Vec<u32> = everyone.iter().copied().filter(|world| world % 2 == me % 2).collect();
    let (dup, part) = (world.dup()?, world.split(Some(me % 2), 0)?.expect("a color"));
    let mut live = vec![(everyone.clone(), dup), (half, part), (everyone, world)];
    let mut renewals = 0;
    for step in 0..120u64 {
        let (members, comm) = &mut live[random.random_range(0..3)];
        let (which, form) = (random.random_range(0..5), random.random_range(0..3));
        let draw = Draw { which, form, bytes: [8, 400, 40_000][random.random_range(0..3)] };
        let (wrong, culprit) = (random.random_range(0..3) == 0, random.random_range(0..64u32) % comm.size());
        if !wrong {
            draw.call(comm, false)?;
            verify(comm, step, members)?;
            continue;
        }
        // The refused rank may return while others are still in the call before. A barrier on another communicator
        // prevents that.
        beside.barrier()?;
        let is_culprit = comm.rank() == culprit;
        let first = draw.call(comm, is_culprit);
        let error =
            first.and_then(|()| comm.barrier()).expect_err("no rank leaves a barrier that one rank never enters");
        let told = match error {
            Error::Refused(refusal) => Some((comm.rank(), refusal)),
            Error::Poisoned(poison) => match poison.cause {
                Cause::Refused(refusal) => Some((poison.rank, refusal)),
                _ => None,
            },
            _ => None,
        };
        assert_eq!(told, Some((culprit, draw.refusal(comm.size()))), "step {step}, {draw:?}: {error}");
        comm.renew()?;
        renewals += 1;
        verify(comm, step, members)?;
    }
    drop(shuffled(live, &mut own));
    // All ranks have freed all communicators but this one.
    beside.barrier()?;
    let mut leased = beside.place().usage().leased.to_ne_bytes();
    beside.allreduce_in_place(&mut leased, Op::SUM_U64)?;
    assert_eq!(u64::from_ne_bytes(leased), beside.place().bytes());
    say("renewals", renewals);
    Ok(())
}

#[test]
fn programs_go_on_after_refusals_and_their_memory_sums_to_zero() {
    for (ranks, seeds) in [(1, 1), (2, 4), (3, 4), (5, 4)] {
        for seed in 0..seeds {
            let scene = succeeds("renewals", &seed.to_string(), ranks);
            let renewals = |rank| scene.said(rank, "renewals").parse::<u32>().unwrap();
            assert!(renewals(0) > 15 && (1..ranks).all(|rank| renewals(rank) == renewals(0)));
        }
    }
}

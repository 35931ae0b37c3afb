//! Programs that are wrong: ranks that call different collectives, operations that unwind. Every rank gets an error,
//! and none hangs.

use crate::common::{bounded, refusal};
use core::ffi::c_void;
use unisono_kernel::algorithm::{AllreduceAlgorithm, BarrierAlgorithm, BcastAlgorithm, ReduceAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::comm::{Comm, Communicator};
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::{Argument, Bound, Cause, Error, PollError, Refusal};
use unisono_kernel::machine::poll::Poll;
use unisono_kernel::machine::transport::Observe;
use unisono_kernel::machine::{Machine, Operation};
use unisono_kernel::op::{Op, User};
use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::region::{Base, Params};
use unisono_kernel::shm::barrier::dissemination::Dissemination;
use unisono_kernel::shm::bcast::posted::Posted;
use unisono_kernel::shm::reduce::exchange::Reduce;
use unisono_local::{Local, Segment};

/// Collectives to be mixed up: each by its number.
const COLLECTIVES: usize = 17;

fn collective(comm: &mut Communicator<Local>, which: usize, root: u32) -> Result<(), Error> {
    let size = comm.size();
    let (mut small, mut large) = ([0u8; 8], vec![0u8; 200_000]);
    let (mut one, mut all) = (vec![0u8; 8], vec![0u8; 8 * size as usize]);
    let is_root = comm.rank() == root;
    let own = Data::bytes_mut(&mut one);
    let blocks = Blocks::equal_mut(&mut all, size, 8, Datatype::BYTE).unwrap();
    match which {
        0 => comm.run(&Call::Barrier { algorithm: BarrierAlgorithm::Dissemination }).map(drop),
        1 => comm.run(&Call::Barrier { algorithm: BarrierAlgorithm::Central }).map(drop),
        2 => comm.run(&Call::Barrier { algorithm: BarrierAlgorithm::Combining(2) }).map(drop),
        3 => comm
            .run(&Call::Bcast { data: Data::bytes_mut(&mut small), root, algorithm: BcastAlgorithm::Posted })
            .map(drop),
        4 => comm
            .run(&Call::Bcast { data: Data::bytes_mut(&mut large), root, algorithm: BcastAlgorithm::Queue })
            .map(drop),
        5 => comm
            .run(&Call::Bcast {
                data: Data::bytes_mut(&mut small),
                root,
                algorithm: BcastAlgorithm::Cico(Tree::BINARY),
            })
            .map(drop),
        6 => comm.allreduce_in_place(&mut small, Op::SUM_I64),
        7 => comm.allreduce_in_place(&mut large, Op::SUM_I64),
        8 => comm.gather(Some(own), Some(blocks), root),
        9 => comm.gatherv(Some(own), Some(blocks), root),
        10 => comm.scatter(is_root.then_some(blocks), Some(own), root),
        11 => comm.allgather(Some(own), blocks),
        12 => comm.alltoall(None, blocks),
        13 => comm.reduce(own, is_root.then_some(own), Op::SUM_I64, root),
        14 => comm.reduce_scatter(blocks, own, Op::SUM_I64),
        15 => comm.scan(own, own, Op::SUM_I64),
        _ => comm.run(&Call::Barrier { algorithm: BarrierAlgorithm::Posted }).map(drop),
    }
}

/// The operations' numbers in the lines of [`collective`]'s calls.
const KINDS: [u64; COLLECTIVES] = [11, 11, 11, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 11];

/// [`collective`]'s broadcast of paper P1: it has no lines.
const WITHOUT_LINES: usize = 5;

/// Collectives in which some ranks only post: the rooted ones, and a scan (its first rank).
fn may_only_post(which: usize) -> bool {
    [1, 3, 4, 7, 9].contains(&KINDS[which])
}

#[test]
fn ranks_in_different_collectives_are_told_so() {
    for (theirs, kind) in KINDS.into_iter().enumerate() {
        for mine in (0..COLLECTIVES).filter(|&mine| KINDS[mine] != kind) {
            for odd in [0, 2] {
                for root in [0, 2] {
                    let what = format!("rank {odd} makes {mine}, the others {theirs}, root {root}");
                    let errors = bounded(move || {
                        unisono_local::run(Params::new(3).with_cico(), |mut comm| {
                            let which = if comm.rank() == odd { mine } else { theirs };
                            // Who is slow to leave the barrier may be told there already.
                            let first = comm.barrier().and_then(|()| collective(&mut comm, which, root));
                            // Who has not noticed is told at the next one.
                            first.and_then(|()| comm.barrier()).and_then(|()| comm.barrier())
                        })
                        .unwrap()
                    });
                    // Where no rank waits for another, the next barrier tells what was mixed up before it.
                    let later = may_only_post(mine) && may_only_post(theirs)
                        || mine == WITHOUT_LINES
                        || theirs == WITHOUT_LINES;
                    for error in errors {
                        let found = error.err().and_then(refusal).map(|refusal| refusal.argument);
                        let earlier = later && found == Some(Argument::EarlierCollective);
                        assert!(earlier || found == Some(Argument::Collective), "{what}: {found:?}");
                    }
                }
            }
        }
    }
}

/// The collectives that follow those that were mixed up.
#[derive(Clone, Copy, Debug)]
enum Next {
    Allreduce,
    LongAllreduce,
    Bcast,
    LongBcast,
    Gather,
    BarriersThenAllreduce,
}

impl Next {
    const ALL: [Self; 6] =
        [Self::Allreduce, Self::LongAllreduce, Self::Bcast, Self::LongBcast, Self::Gather, Self::BarriersThenAllreduce];

    fn call(self, comm: &mut Communicator<Local>) -> Result<(), Error> {
        let (posted, queue) = (BcastAlgorithm::Posted, BcastAlgorithm::Queue);
        let mut data = vec![1; 40_000];
        match self {
            Self::Allreduce => comm.allreduce_in_place(&mut data[..8], Op::SUM_I64),
            Self::LongAllreduce => comm.allreduce_in_place(&mut data, Op::SUM_I64),
            Self::Bcast => {
                comm.run(&Call::Bcast { data: Data::bytes_mut(&mut data[..8]), root: 0, algorithm: posted }).map(drop)
            }
            Self::LongBcast => {
                comm.run(&Call::Bcast { data: Data::bytes_mut(&mut data), root: 0, algorithm: queue }).map(drop)
            }
            Self::Gather => collective(comm, 8, 0),
            Self::BarriersThenAllreduce => {
                [
                    BarrierAlgorithm::Dissemination,
                    BarrierAlgorithm::Doubling,
                    BarrierAlgorithm::Central,
                    BarrierAlgorithm::Combining(2),
                ]
                .into_iter()
                .try_for_each(|barrier| comm.run(&Call::Barrier { algorithm: barrier }).map(drop))?;
                comm.allreduce_in_place(&mut data[..8], Op::SUM_I64)
            }
        }
    }
}

/// All ranks' errors where rank `odd` makes `mine` and the others `theirs`, and then all make `next`; and whether
/// any rank noticed before that.
fn mixed_up((ranks, odd): (u32, u32), root: u32, [mine, theirs]: [usize; 2], next: Next) -> Vec<(bool, Option<Error>)> {
    bounded(move || {
        unisono_local::run(Params::new(ranks).with_cico(), |mut comm| {
            let which = if comm.rank() == odd { mine } else { theirs };
            let first = comm.barrier().and_then(|()| collective(&mut comm, which, root));
            let early = first.is_err();
            // Who has not noticed is told by the next barrier but one.
            let rest = first.and_then(|()| next.call(&mut comm));
            (early, rest.and_then(|()| comm.barrier()).and_then(|()| comm.barrier()).err())
        })
        .unwrap()
    })
}

#[test]
fn collectives_mixed_up_where_nobody_waits_are_told_of_at_the_next_line() {
    let posting = || (0..COLLECTIVES).filter(|&which| may_only_post(which));
    let [mut unnoticed, mut named, mut unnamed] = [0; 3];
    for (mine, theirs) in posting().flat_map(|mine| posting().map(move |theirs| (mine, theirs))) {
        let kinds = [KINDS[mine], KINDS[theirs]];
        if kinds[0] == kinds[1] {
            continue;
        }
        for (ranks, odd, root) in [(2, 0, 0), (2, 1, 0), (2, 0, 1), (3, 2, 0), (3, 0, 0), (3, 2, 2), (4, 1, 3)] {
            for next in Next::ALL {
                let what = format!("rank {odd} of {ranks} makes {mine}, others {theirs}, root {root}, then {next:?}");
                let found = mixed_up((ranks, odd), root, [mine, theirs], next);
                let early = found.iter().any(|&(early, _)| early);
                unnoticed += u32::from(!early);
                let mut noticed = 0;
                for (rank, (_, error)) in (0..).zip(found) {
                    let error = error.unwrap_or_else(|| panic!("{what}: rank {rank} was not told"));
                    let Refusal { argument, value, bound } = refusal(error).unwrap();
                    let Bound::Equals(bound) = bound else { panic!("{what}: {bound:?}") };
                    match argument {
                        Argument::Collective => {}
                        Argument::EarlierCollective if (value, bound) == (0, 0) => {
                            // Only a rank that has posted a line in it says how it differs.
                            let one_posts = ranks > 2 && [1, 4].contains(&kinds[1]);
                            assert!(one_posts || [mine, theirs].contains(&WITHOUT_LINES), "{what}: {error}");
                            assert!(error.to_string().ends_with(": earlier collectives differ"), "{what}: {error}");
                            unnamed += 1;
                        }
                        Argument::EarlierCollective => {
                            assert!(
                                value != bound && kinds.contains(&value) && kinds.contains(&bound),
                                "{what}: {error}"
                            );
                            assert!(error.to_string().contains("an earlier collective is "), "{what}: {error}");
                            named += 1;
                        }
                        _ => panic!("{what}: {error}"),
                    }
                    if let Error::Poll(PollError::Mismatch { peer, .. }) = error {
                        assert!(peer < ranks && (rank == odd) != (peer == odd), "{what}: rank {rank}: {error}");
                        // The value is what this process has called.
                        let mine = kinds[usize::from(rank != odd)];
                        assert!(argument == Argument::Collective || [0, mine].contains(&value), "{what}: {error}");
                        noticed += 1;
                    }
                }
                assert!(noticed > 0, "{what}: no error names a rank");
            }
        }
    }
    println!("{unnoticed} not noticed at once; then told of by name {named} times, without {unnamed} times");
    assert!(unnoticed > 100 && named > unnamed && unnamed > 0);
}

/// A difference is not forgotten: not after many operations whose lines it has left, nor where two have changed places.
#[test]
fn differences_that_lie_far_back() {
    for (places, barriers) in [(vec![3, 8], 200), (vec![8, 3, 3], 0), (vec![3, 8, 8], 17), (vec![8], 60_000)] {
        let found = bounded(move || {
            unisono_local::run(Params::new(2), |mut comm| {
                // Rank 0 broadcasts to no rank, rank 1 gathers nothing: or the other way round, in the other order.
                let mut calls = places.clone();
                if comm.rank() == 1 {
                    calls.iter_mut().for_each(|which| *which = 11 - *which);
                }
                let own = comm.rank();
                for which in calls {
                    // The root of a broadcast, and the other ranks of a gather, wait for no rank.
                    collective(&mut comm, which, if which == 3 { own } else { 1 - own }).unwrap();
                }
                // No rank sees the other's lines in them.
                let barrier = Call::Barrier { algorithm: BarrierAlgorithm::Dissemination };
                for _ in 0..barriers {
                    comm.run(&barrier).unwrap();
                }
                let mut data = [0; 8];
                comm.allreduce_in_place(&mut data, Op::SUM_I64).unwrap_err()
            })
            .unwrap()
        });
        for error in found {
            assert_eq!(refusal(error).map(|refusal| refusal.argument), Some(Argument::EarlierCollective), "{error}");
        }
    }
}

/// A rank that has more operations in flight than records are kept of publishes that, and no rank takes it for a
/// difference.
#[test]
fn more_operations_under_way_than_are_remembered() {
    const CALLS: usize = 40;
    for ahead in [0, 1] {
        let segment = Segment::new(Params::new(2)).unwrap();
        let mut comms = [0, 1].map(|rank| Comm::new(segment.clone(), *segment.layout(), rank).unwrap());
        let mut data = [[[7u8; 8]; CALLS], [[0; 8]; CALLS]];
        let [mut sent, mut received] = data.each_mut().map(|memory| memory.iter_mut());
        let mut make = |comms: &mut [Comm<Segment>; 2], rank: usize| {
            let memory = if rank == 0 { &mut sent } else { &mut received }.next().unwrap();
            Posted::new(comms[rank].member(), Data::bytes_mut(memory), 0).unwrap().started(comms[rank].member_mut())
        };
        let made: Vec<_> = (0..CALLS).map(|_| make(&mut comms, ahead)).collect();
        for mut early in made {
            let mut late = make(&mut comms, 1 - ahead);
            let [root, other] = if ahead == 0 { [&mut early, &mut late] } else { [&mut late, &mut early] };
            assert_eq!(root.poll(&mut comms[0]), Ok(Poll::Done));
            assert_eq!(other.poll(&mut comms[1]), Ok(Poll::Done));
        }
        assert_eq!(data[1], [[7; 8]; CALLS]);
    }
}

unsafe extern "C-unwind" fn unwinds(_: *const c_void, _: *mut c_void, _: u64, _: *mut c_void) {
    std::panic::resume_unwind(Box::new("the operation unwinds"));
}

#[test]
fn an_operation_that_unwinds_leaves_nobody_waiting() {
    for bytes in [8, 40_000] {
        let errors = bounded(move || {
            unisono_local::run(Params::new(3), |mut comm| {
                let op = if comm.rank() == 1 {
                    // SAFETY: the function touches nothing.
                    Op::User(unsafe { User::new(unwinds, core::ptr::null_mut(), 8, false) })
                } else {
                    Op::SUM_I64
                };
                let mut data = vec![0; bytes];
                let call = std::panic::AssertUnwindSafe(|| comm.allreduce_in_place(&mut data, op));
                let unwound = std::panic::catch_unwind(call).is_err();
                assert_eq!(unwound, comm.rank() == 1);
                comm.barrier().and_then(|()| comm.barrier()).unwrap_err()
            })
            .unwrap()
        });
        for error in errors {
            let Error::Poisoned(poison) = error else { panic!("{error}") };
            assert_eq!((poison.rank, poison.cause), (1, Cause::Fault));
        }
    }
}

/// A rank has published what it called long ago, and has not waited long since: its record is not taken for the present
/// operation, however many there were in between.
#[test]
fn an_old_record_is_not_taken_for_a_new_one() {
    for operations in [16, 1 << 23, 1 << 24, 3 << 24, 1 << 25, 1 << 32, 1 << 40, 1 << 61] {
        let segment = Segment::new(Params::new(2)).unwrap();
        let at = |rank, operation| {
            Comm::resume(segment.clone(), *segment.layout(), rank, Base { operation, ..Base::default() }).unwrap()
        };
        // Rank 1 waits long in a barrier, its operation 8.
        let mut late = at(1, 7);
        let _ = Dissemination::default().started(late.member_mut());
        late.compare().unwrap();
        // Rank 0 waits long in an allreduce, so many operations later; rank 1 is on its way there.
        let mut early = at(0, 7 + operations);
        let (mut send, mut receive) = ([1; 8], [0; 8]);
        let operands = (Data::bytes_mut(&mut send), Data::bytes_mut(&mut receive));
        let reduce = Reduce::to_all(early.member(), operands.0, operands.1, Op::SUM_I64).unwrap();
        let _ = reduce.started(early.member_mut());
        assert_eq!(early.compare(), Ok(()), "after {operations} operations");
        assert!(!early.waits(1), "after {operations} operations");
        // The other way round, rank 1 waits in a later operation.
        assert!(late.waits(0));
    }
}

/// Rank `odd` calls with the second length, all others with the first: every rank is told both.
fn told_apart(
    ranks: u32,
    odd: u32,
    lengths: [usize; 2],
    call: impl Fn(&mut Communicator<Local>, &mut [u8]) -> Result<(), Error> + Send + Sync + 'static,
) {
    let errors = bounded(move || {
        unisono_local::run(Params::new(ranks), |mut comm| {
            let mut data = vec![0; lengths[usize::from(comm.rank() == odd)]];
            call(&mut comm, &mut data)
        })
        .unwrap()
    });
    let [most, other] = lengths.map(|bytes| bytes as u64);
    for (rank, error) in (0..).zip(errors) {
        let found = error.err().and_then(refusal).map(|found| (found.argument, found.value, found.bound));
        let both = [(most, other), (other, most)].map(|(a, b)| Some((Argument::Bytes, a, Bound::Equals(b))));
        assert!(both.contains(&found), "{ranks} ranks, rank {odd} with {other} bytes, rank {rank}: {found:?}");
    }
}

/// Lengths that go by doubling, on lines of either kind, which are not posted lines, beside others and beside some that are too long.
#[test]
fn lengths_in_an_allreduce_by_doubling_and_beyond_are_told_apart() {
    for (ranks, odd) in [(17, 3), (17, 16), (32, 0)] {
        for lengths in [[48, 56], [56, 48], [512, 520], [1024, 1032], [1032, 1024], [8, 2000]] {
            told_apart(ranks, odd, lengths, |comm, data| comm.allreduce_in_place(data, Op::SUM_I64));
        }
    }
}

/// A rank reads the lines of its group and of its column alone: those that share neither with the rank of another length are told by
/// others.
#[test]
fn lengths_in_an_allreduce_by_groups_are_told_apart() {
    for (ranks, odd) in [(4, 0), (4, 3), (6, 2), (9, 4), (12, 7)] {
        for lengths in [[800, 1600], [1600, 800], [8, 16], [800, 0]] {
            told_apart(ranks, odd, lengths, move |comm, data| {
                let data = Data::bytes_mut(data);
                let algorithm = AllreduceAlgorithm::Groups;
                comm.run(&Call::Allreduce { send: data, receive: data, op: Op::SUM_I64, algorithm }).map(drop)
            });
        }
    }
}

#[test]
fn lengths_in_a_reduce_by_slices_are_told_apart() {
    for (ranks, root, odd) in [(2, 0, 1), (3, 1, 1), (3, 2, 0), (5, 0, 4)] {
        for lengths in [[800, 1600], [1600, 800], [8, 16], [800, 0]] {
            told_apart(ranks, odd, lengths, move |comm, data| {
                let send = Data::bytes_mut(data);
                let (receive, algorithm) = ((comm.rank() == root).then_some(send), ReduceAlgorithm::Slices);
                comm.run(&Call::Reduce { send, receive, op: Op::SUM_I64, root, algorithm }).map(drop)
            });
        }
    }
}

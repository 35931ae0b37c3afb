//! Programs that are wrong: ranks that call different collectives, operations that unwind. Everyone is told,
//! and nobody hangs.

mod common;

use common::{bounded, refusal};
use core::ffi::c_void;
use unisono_kernel::blocks::Blocks;
use unisono_kernel::datatype::{Data, Datatype};
use unisono_kernel::driver::Communicator;
use unisono_kernel::error::{Argument, Cause, Error};
use unisono_kernel::op::{Op, User};
use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::region::Params;
use unisono_kernel::select::{BarrierAlgorithm, BcastAlgorithm};
use unisono_local::Local;

/// Collectives to be mixed up: each by its number.
const COLLECTIVES: usize = 16;

fn collective(comm: &mut Communicator<Local>, which: usize, root: u32) -> Result<(), Error> {
    let size = comm.size();
    let (mut small, mut large) = ([0u8; 8], vec![0u8; 200_000]);
    let (mut one, mut all) = (vec![0u8; 8], vec![0u8; 8 * size as usize]);
    let is_root = comm.rank() == root;
    let own = Data::bytes_mut(&mut one);
    let blocks = Blocks::equal_mut(&mut all, size, 8, Datatype::BYTE).unwrap();
    match which {
        0 => comm.barrier_with(BarrierAlgorithm::Dissemination),
        1 => comm.barrier_with(BarrierAlgorithm::Central),
        2 => comm.barrier_with(BarrierAlgorithm::Combining(2)),
        3 => comm.bcast_with(Data::bytes_mut(&mut small), root, BcastAlgorithm::Posted),
        4 => comm.bcast_with(Data::bytes_mut(&mut large), root, BcastAlgorithm::Queue),
        5 => comm.bcast_with(Data::bytes_mut(&mut small), root, BcastAlgorithm::Cico(Tree::BINARY)),
        6 => comm.allreduce_in_place(&mut small, Op::SUM_I64),
        7 => comm.allreduce_in_place(&mut large, Op::SUM_I64),
        8 => comm.gather(Some(own), Some(blocks), root),
        9 => comm.gatherv(Some(own), Some(blocks), root),
        10 => comm.scatter(is_root.then_some(blocks), Some(own), root),
        11 => comm.allgather(Some(own), blocks),
        12 => comm.alltoall(None, blocks),
        13 => comm.reduce(own, is_root.then_some(own), Op::SUM_I64, root),
        14 => comm.reduce_scatter(blocks, own, Op::SUM_I64),
        _ => comm.scan(own, own, Op::SUM_I64),
    }
}

/// The numbers that the lines of [`collective`]'s calls bear.
const KINDS: [u64; COLLECTIVES] = [11, 11, 11, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9];

#[test]
fn ranks_in_different_collectives_are_told_so() {
    for (theirs, kind) in KINDS.into_iter().enumerate() {
        for mine in (0..COLLECTIVES).filter(|&mine| KINDS[mine] != kind) {
            for odd in [0, 2] {
                for root in [0, 2] {
                    let what = format!("rank {odd} makes {mine}, the others {theirs}, root {root}");
                    let errors = bounded(move || {
                        unisono_local::run(Params::new(3).with_cico(), |mut comm| {
                            comm.barrier().unwrap();
                            let which = if comm.rank() == odd { mine } else { theirs };
                            let first = collective(&mut comm, which, root);
                            // Who has not noticed is told at the next one.
                            first.and_then(|()| comm.barrier()).and_then(|()| comm.barrier())
                        })
                        .unwrap()
                    });
                    // Where nobody waits for anybody, nobody hangs, and nobody can know.
                    let rooted = |which: usize| [1, 3, 4, 7, 9].contains(&KINDS[which]);
                    if errors.iter().all(Result::is_ok) {
                        assert!(rooted(mine) && rooted(theirs), "{what}: not noticed");
                        continue;
                    }
                    for error in errors {
                        let refusal = error.err().and_then(refusal);
                        assert_eq!(refusal.map(|refusal| refusal.argument), Some(Argument::Collective), "{what}");
                    }
                }
            }
        }
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

//! All ranks get the same bits of an allreduce.

use super::{User, outcome, seat, sizes};
use std::ffi::c_void;
use unisono_kernel::msg::allreduce;
use unisono_kernel::op::{Op, User as Function};
use unisono_verify::cases::reductions::to_bytes;
use unisono_verify::network::Mode;
use unisono_verify::oracle::mix;

/// Depends on the order and the grouping of its operands.
unsafe extern "C-unwind" fn scramble(left: *const c_void, right: *mut c_void, count: u64, _: *mut c_void) {
    let (left, right) = (left.cast::<u64>(), right.cast::<u64>());
    for i in 0..count as usize {
        // SAFETY: the kernel's contract: `count` aligned elements.
        let l = unsafe { left.wrapping_add(i).read() };
        // SAFETY: as above.
        let r = unsafe { right.wrapping_add(i).read() };
        // SAFETY: as above, writable.
        unsafe { right.wrapping_add(i).write(mix(l) ^ r.rotate_left(7)) };
    }
}

/// Sums that depend on their order, and a user's operation that says it commutes although its bits don't.
#[test]
fn allreduces_give_all_ranks_the_same_bits() {
    use allreduce::Algorithm::{Doubling, Rabenseifner, Ring, SegmentedRing};
    // SAFETY: `scramble` reads and writes `count` elements of its arrays and nothing else.
    let scrambled = Op::User(unsafe { Function::new(scramble, std::ptr::null_mut(), 8, true) });
    for size in sizes() {
        for algorithm in [Doubling, Ring, SegmentedRing(16), Rabenseifner] {
            for op in [Op::SUM_F64, scrambled] {
                let word = |at: u64| (f64::from(mix(at) as i32) * 2f64.powi((mix(at) >> 32) as i32 % 60)).to_bits();
                let user = |rank: u32| {
                    let words: Vec<u64> = (0..40).map(|at| word(u64::from(rank) << 32 | at)).collect();
                    User { send: to_bytes(&words), receive: vec![0; 320] }
                };
                let plan = |rank| allreduce::plan(seat(rank, size), 320, op, false, algorithm).unwrap();
                let name = format!("allreduce {algorithm:?} p={size} {op}");
                let plans: Vec<_> = (0..size).map(plan).collect();
                let users: Vec<_> = (0..size).map(user).collect();
                let results = outcome(&name, &plans, &users, Mode::Rendezvous).unwrap();
                assert!(results.iter().all(|user| user.receive == results[0].receive), "{name}");
            }
        }
    }
}

//! Broadcasts: every algorithm × [root](roots) × size, bytes to bytes and vector to indexed.

use super::{Caller, FRAGMENT, SLOTS, Tally, roots};
use crate::error::Failure;
use unisono_kernel::Rank;
use unisono_kernel::algorithm::BcastAlgorithm;
use unisono_kernel::call::Call;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::shm::bcast::posted;

const BCASTS: [&str; 10] = [
    "auto",
    "posted",
    "groups",
    "queue",
    "cico-flat",
    "cico-chain",
    "cico-binary",
    "cico-binomial",
    "cico-kary-3",
    "cico-knomial-3",
];

/// Byte `at` of the message of case `case`.
fn pattern(case: usize, at: usize) -> u8 {
    (case.wrapping_mul(31) ^ at.wrapping_mul(7) ^ (at >> 8)) as u8
}

pub(super) fn check(comm: &mut Caller<'_>, tally: &mut Tally) -> Result<(), Failure> {
    let b = FRAGMENT * u64::from(SLOTS);
    let f = FRAGMENT;
    let sizes = [0, 1, 8, posted::MOST, posted::MOST + 1, f - 1, f, f + 1, b - 1, b, b + 1, 3 * b + 5];
    for name in BCASTS {
        let algorithm =
            BcastAlgorithm::from_name(name).ok_or_else(|| Failure::Words(format!("no algorithm {name}")))?;
        for root in roots(comm.size()) {
            for bytes in sizes {
                if matches!(algorithm, BcastAlgorithm::Posted | BcastAlgorithm::Groups) && bytes > posted::MOST {
                    continue;
                }
                for typed in [false, true] {
                    let right = bcast(comm, algorithm, root, bytes, typed, tally.cases.len())?;
                    let types = if typed { "vector to indexed" } else { "bytes" };
                    tally.case(format!("bcast {name} root {root} {bytes} B {types}"), right);
                }
            }
        }
    }
    Ok(())
}

/// One broadcast. If it is typed: every third byte at the root, pairs of bytes in reverse order elsewhere.
fn bcast(
    comm: &mut Caller<'_>,
    algorithm: BcastAlgorithm,
    root: Rank,
    bytes: u64,
    typed: bool,
    case: usize,
) -> Result<bool, Failure> {
    const HOLE: u8 = 0xa5;
    let n = bytes as usize;
    let at_root = comm.rank() == root;
    let displacements: Vec<u64> = (0..bytes).rev().map(|i| 2 * i).collect();
    let (room, datatype) = match (typed, at_root) {
        (false, _) => (n, Datatype::BYTE),
        (true, true) => (3 * n, Datatype::Vector { blocks: bytes, block: 1, stride: 3 }),
        (true, false) => (2 * n, Datatype::Indexed { block: 1, displacements: &displacements }),
    };
    let place = |i: usize| match (typed, at_root) {
        (false, _) => i,
        (true, true) => 3 * i,
        (true, false) => displacements[i] as usize,
    };
    let mut memory = vec![HOLE; room];
    if at_root {
        (0..n).for_each(|i| memory[place(i)] = pattern(case, i));
    }
    let mut wanted = vec![HOLE; room];
    (0..n).for_each(|i| wanted[place(i)] = pattern(case, i));
    let count = if typed { 1 } else { bytes };
    let data = Data::typed(&mut memory, count, datatype)?;
    comm.run(Call::Bcast { data, root, algorithm })?;
    Ok(memory == wanted)
}

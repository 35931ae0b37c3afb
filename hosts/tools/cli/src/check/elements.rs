//! Every predefined operation on every type of element that it is defined for, by each allreduce: folded
//! from the segment by the instructions that the host chose, against the plain fold of private memory.

use super::{Caller, Tally};
use crate::error::Failure;
use unisono_kernel::algorithm::AllreduceAlgorithm;
use unisono_kernel::call::Call;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::op::{Element, Op, Operation};

/// Bytes of an operand: several widths of a vector register, and a rest.
const BYTES: usize = 1040;
/// Bytes of an operand that fits a posted line.
const FEW: usize = 48;

const ALGORITHMS: [(AllreduceAlgorithm, &str, usize); 6] = [
    (AllreduceAlgorithm::Posted, "posted", FEW),
    (AllreduceAlgorithm::Doubling, "doubling", FEW),
    (AllreduceAlgorithm::Doubling, "doubling", BYTES),
    (AllreduceAlgorithm::Exchange, "exchange", BYTES),
    (AllreduceAlgorithm::Slices, "slices", BYTES),
    (AllreduceAlgorithm::Groups, "groups", BYTES),
];

pub(super) fn check(comm: &mut Caller<'_>, tally: &mut Tally) -> Result<(), Failure> {
    for (&operation, &element) in Operation::ALL.iter().flat_map(|o| Element::ALL.iter().map(move |e| (o, e))) {
        let Ok(op) = Op::new(operation, element) else { continue };
        for (algorithm, name, bytes) in ALGORITHMS {
            let mut mine = operand(element, comm.rank(), bytes);
            let data = Data::bytes_mut(&mut mine);
            comm.run(Call::Allreduce { send: data, receive: data, op, algorithm })?;
            let wanted = folded(op, element, comm.size(), bytes);
            tally.case(format!("allreduce {name} {op} {bytes} B in place"), mine == wanted);
        }
    }
    Ok(())
}

/// All ranks' operands, folded.
fn folded(op: Op, element: Element, ranks: u32, bytes: usize) -> Vec<u8> {
    let mut sum = operand(element, ranks - 1, bytes);
    for rank in (0..ranks - 1).rev() {
        let left = operand(element, rank, bytes);
        // SAFETY: both vectors hold the whole elements of `bytes` bytes, and are ours.
        unsafe { op.fold_raw(left.as_ptr(), sum.as_mut_ptr(), op.whole(bytes as u64)) };
    }
    sum
}

/// The operand of `rank`: whole numbers so small that all results are exact.
fn operand(element: Element, rank: u32, bytes: usize) -> Vec<u8> {
    let size = element.bytes() as usize;
    let one = |at: usize| {
        // 0, 1 and 2, so that each rank's pattern is its own.
        let value = ((at + 1) * (rank as usize + 1) % 7 % 3) as u8;
        let mut to = vec![0; size];
        let mut put = |at: usize, bytes: &[u8]| to[at..at + bytes.len()].copy_from_slice(bytes);
        let (small, real, index) = (i64::from(value), f64::from(value), rank as i32);
        match element {
            Element::F32 => put(0, &(real as f32).to_ne_bytes()),
            Element::F64 => put(0, &real.to_ne_bytes()),
            Element::ComplexF32 => {
                put(0, &(real as f32).to_ne_bytes());
                put(4, &1f32.to_ne_bytes());
            }
            Element::ComplexF64 => {
                put(0, &real.to_ne_bytes());
                put(8, &1f64.to_ne_bytes());
            }
            Element::FloatInt => {
                put(0, &(real as f32).to_ne_bytes());
                put(4, &index.to_ne_bytes());
            }
            Element::DoubleInt => {
                put(0, &real.to_ne_bytes());
                put(8, &index.to_ne_bytes());
            }
            Element::LongInt => {
                put(0, &small.to_ne_bytes());
                put(8, &index.to_ne_bytes());
            }
            Element::TwoInt => {
                put(0, &i32::from(value).to_ne_bytes());
                put(4, &index.to_ne_bytes());
            }
            Element::ShortInt => {
                put(0, &i16::from(value).to_ne_bytes());
                put(4, &index.to_ne_bytes());
            }
            Element::TwoLong => {
                put(0, &small.to_ne_bytes());
                put(8, &i64::from(index).to_ne_bytes());
            }
            Element::Bool => put(0, &[value.min(1)]),
            // Integers of any width wrap: all bytes count.
            _ => put(0, &(small + 3).wrapping_mul(0x0103_0709_0b0d_1115).to_ne_bytes()[..size]),
        }
        to
    };
    (0..bytes / size).flat_map(one).collect()
}

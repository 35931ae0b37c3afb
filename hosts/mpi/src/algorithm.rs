//! What runs a call, for statistics: numbers of `shim/unisono_mpi.h`.

use core::ffi::c_int;
use unisono::comm::Handle;
use unisono_kernel::select::{AllreduceAlgorithm, BarrierAlgorithm, BcastAlgorithm};

/// An algorithm's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Number {
    /// What all other collectives run by.
    Exchange = 0,
    /// Posted lines.
    Posted = 1,
    /// The monotone queue.
    Queue = 2,
    /// Slices.
    Slices = 3,
    /// Dissemination.
    Dissemination = 4,
    /// The central counter.
    Central = 5,
    /// The combining tree.
    Combining = 6,
}

/// That of a barrier.
///
/// # Safety
/// `comm` comes from [`crate::unisono_mpi_settle`], and was not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_barrier_algorithm(comm: *const Handle) -> c_int {
    // SAFETY: the caller's promise.
    let number = match unsafe { &*comm }.chooser().barrier_by(BarrierAlgorithm::Auto) {
        BarrierAlgorithm::Posted => Number::Posted,
        BarrierAlgorithm::Central => Number::Central,
        BarrierAlgorithm::Combining(_) => Number::Combining,
        BarrierAlgorithm::Auto | BarrierAlgorithm::Dissemination => Number::Dissemination,
    };
    number as c_int
}

/// That of a broadcast of `bytes`.
///
/// # Safety
/// As [`unisono_mpi_barrier_algorithm`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_bcast_algorithm(comm: *const Handle, bytes: u64) -> c_int {
    // SAFETY: the caller's promise.
    let number = match unsafe { &*comm }.chooser().bcast_by(BcastAlgorithm::Auto, bytes) {
        BcastAlgorithm::Posted => Number::Posted,
        _ => Number::Queue,
    };
    number as c_int
}

/// That of an allreduce of `bytes`; the operations that the shim takes over commute.
///
/// # Safety
/// As [`unisono_mpi_barrier_algorithm`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_allreduce_algorithm(comm: *const Handle, bytes: u64) -> c_int {
    // SAFETY: the caller's promise.
    let number = match unsafe { &*comm }.chooser().allreduce_by(AllreduceAlgorithm::Auto, bytes, true) {
        AllreduceAlgorithm::Posted => Number::Posted,
        AllreduceAlgorithm::Slices => Number::Slices,
        AllreduceAlgorithm::Auto | AllreduceAlgorithm::Exchange => Number::Exchange,
    };
    number as c_int
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_header() {
        let header = include_str!("../shim/unisono_mpi.h");
        let names = header.lines().skip_while(|line| *line != "    UNISONO_MPI_EXCHANGE,");
        let names: Vec<_> = names.map(|line| line.trim().trim_end_matches(',')).take(9).collect();
        for (number, name) in [
            (Number::Exchange, "EXCHANGE"),
            (Number::Posted, "POSTED"),
            (Number::Queue, "QUEUE"),
            (Number::Slices, "SLICES"),
            (Number::Dissemination, "DISSEMINATION"),
            (Number::Central, "CENTRAL"),
            (Number::Combining, "COMBINING"),
        ] {
            assert_eq!(names[number as usize].strip_prefix("UNISONO_MPI_"), Some(name));
        }
        assert!(names[8].starts_with("UNISONO_MPI_ALGORITHMS"));
    }
}

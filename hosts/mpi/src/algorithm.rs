//! What runs a call, for statistics: numbers of `shim/unisono_mpi.h`.

use core::ffi::c_int;
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
}

/// That of a barrier of `ranks`.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_mpi_barrier_algorithm(ranks: u32) -> c_int {
    let number = match BarrierAlgorithm::Auto.resolve(ranks) {
        BarrierAlgorithm::Posted => Number::Posted,
        _ => Number::Dissemination,
    };
    number as c_int
}

/// That of a broadcast of `bytes`.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_mpi_bcast_algorithm(bytes: u64) -> c_int {
    let number = match BcastAlgorithm::Auto.resolve(bytes) {
        BcastAlgorithm::Posted => Number::Posted,
        _ => Number::Queue,
    };
    number as c_int
}

/// That of an allreduce of `bytes` of `ranks`.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_mpi_allreduce_algorithm(bytes: u64, ranks: u32) -> c_int {
    let number = match AllreduceAlgorithm::Auto.resolve(bytes, ranks) {
        AllreduceAlgorithm::Posted => Number::Posted,
        AllreduceAlgorithm::Slices => Number::Slices,
        _ => Number::Exchange,
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
        let names: Vec<_> = names.map(|line| line.trim().trim_end_matches(',')).take(7).collect();
        let of = |number: c_int| names[number as usize];
        assert_eq!(of(unisono_mpi_bcast_algorithm(8)), "UNISONO_MPI_POSTED");
        assert_eq!(of(unisono_mpi_bcast_algorithm(1 << 20)), "UNISONO_MPI_QUEUE");
        assert_eq!(of(unisono_mpi_allreduce_algorithm(1 << 20, 2)), "UNISONO_MPI_EXCHANGE");
        assert_eq!(of(unisono_mpi_allreduce_algorithm(1 << 20, 8)), "UNISONO_MPI_SLICES");
        assert_eq!(of(unisono_mpi_barrier_algorithm(2)), "UNISONO_MPI_DISSEMINATION");
        assert!(names[6].starts_with("UNISONO_MPI_ALGORITHMS"));
    }
}

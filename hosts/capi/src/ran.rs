//! Which algorithm ran a call.

use crate::comm::Handle;
use crate::error::{Failure, answer};
use core::ffi::{CStr, c_char, c_int};
use unisono_kernel::algorithm::{
    AllreduceAlgorithm, AlltoallAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm, ReduceAlgorithm,
    ReduceScatterAlgorithm, ScanAlgorithm,
};
use unisono_kernel::table::Choice;

/// The algorithm that ran a call, as the header numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Ran {
    /// No call yet.
    Nothing = 0,
    /// Posted lines.
    Posted = 1,
    /// The queue.
    Queue = 2,
    /// Exchange.
    Exchange = 3,
    /// Slices.
    Slices = 4,
    /// The queues of papers P1 and P2.
    Cico = 5,
    /// Dissemination.
    Dissemination = 6,
    /// The central counter.
    Central = 7,
    /// The combining tree.
    Combining = 8,
    /// Recursive doubling.
    Doubling = 9,
    /// A tree of posted lines.
    Tree = 10,
    /// Groups.
    Groups = 11,
}

impl Ran {
    /// All, by number.
    pub const ALL: [Self; 12] = [
        Self::Nothing,
        Self::Posted,
        Self::Queue,
        Self::Exchange,
        Self::Slices,
        Self::Cico,
        Self::Dissemination,
        Self::Central,
        Self::Combining,
        Self::Doubling,
        Self::Tree,
        Self::Groups,
    ];

    /// The algorithm of a choice for a call over a segment.
    #[inline(always)]
    pub(crate) const fn of(plan: Choice) -> Self {
        match plan {
            Choice::Barrier(BarrierAlgorithm::Posted)
            | Choice::Bcast(BcastAlgorithm::Posted)
            | Choice::Allreduce(AllreduceAlgorithm::Posted) => Self::Posted,
            Choice::Bcast(BcastAlgorithm::Cico(_)) | Choice::Move(MoveAlgorithm::Cico) => Self::Cico,
            Choice::Bcast(BcastAlgorithm::Groups)
            | Choice::Allreduce(AllreduceAlgorithm::Groups)
            | Choice::Alltoall(AlltoallAlgorithm::Groups)
            | Choice::Move(MoveAlgorithm::Groups)
            | Choice::Reduce(ReduceAlgorithm::Groups)
            | Choice::ReduceScatter(ReduceScatterAlgorithm::Groups)
            | Choice::Scan(ScanAlgorithm::Groups) => Self::Groups,
            Choice::Bcast(_) => Self::Queue,
            Choice::Allreduce(AllreduceAlgorithm::Slices) | Choice::Reduce(ReduceAlgorithm::Slices) => Self::Slices,
            Choice::Barrier(BarrierAlgorithm::Doubling)
            | Choice::Allreduce(AllreduceAlgorithm::Doubling)
            | Choice::Scan(ScanAlgorithm::Doubling) => Self::Doubling,
            Choice::Reduce(ReduceAlgorithm::Tree) => Self::Tree,
            Choice::Barrier(BarrierAlgorithm::Central) => Self::Central,
            Choice::Barrier(BarrierAlgorithm::Combining(_)) => Self::Combining,
            Choice::Barrier(_) => Self::Dissemination,
            Choice::Allreduce(_)
            | Choice::Alltoall(_)
            | Choice::Reduce(_)
            | Choice::ReduceScatter(_)
            | Choice::Scan(_)
            | Choice::Move(_)
            | Choice::Exchange
            | Choice::Messages(_)
            | Choice::Levels(_)
            // A call that is left to an MPI does not come here.
            | Choice::Mpi => Self::Exchange,
        }
    }

    /// The name in decision tables.
    pub const fn name(self) -> &'static CStr {
        match self {
            Self::Nothing => c"none",
            Self::Posted => c"posted",
            Self::Queue => c"queue",
            Self::Exchange => c"exchange",
            Self::Slices => c"slices",
            Self::Cico => c"cico",
            Self::Dissemination => c"dissemination",
            Self::Central => c"central",
            Self::Combining => c"combining",
            Self::Doubling => c"doubling",
            Self::Tree => c"tree",
            Self::Groups => c"groups",
        }
    }
}

/// Returns the algorithm that ran the last successful blocking call on `comm`, or a negative error number.
///
/// # Safety
/// `comm` is null, or comes from this library and was not freed.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_ran(comm: *const Handle) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { comm.as_ref() } {
        Some(handle) => handle.ran() as c_int,
        None => answer(Err(Failure::Null("comm"))),
    }
}

/// An algorithm's name; "unknown" for other numbers. Never null, not to be freed.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn unisono_algorithm_name(algorithm: c_int) -> *const c_char {
    let ran = usize::try_from(algorithm).ok().and_then(|at| Ran::ALL.get(at));
    ran.map_or(c"unknown", |ran| ran.name()).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_kernel::table::{Collective, Over};

    #[test]
    fn numbers_are_those_of_the_header() {
        let header = include_str!("../include/unisono.h");
        for (at, ran) in (0..).zip(Ran::ALL) {
            assert_eq!(ran as c_int, at);
            let name = ran.name().to_str().unwrap().to_uppercase();
            assert!(header.contains(&format!("UNISONO_ALGORITHM_{name} = {at},")), "{name} is {at}");
        }
    }

    #[test]
    fn names_are_those_of_the_choices() {
        let named = |collective, names: &[&str]| {
            for name in names {
                let choice = Choice::from_name(Over::Segment, collective, name).unwrap();
                let ran = Ran::of(choice).name().to_str().unwrap();
                assert_eq!(name.split('-').next(), Some(ran), "{collective} by {name}");
            }
        };
        named(Collective::Barrier, &["posted", "dissemination", "doubling", "central", "combining-3"]);
        named(Collective::Bcast, &["posted", "groups", "queue", "cico-flat"]);
        named(Collective::Allreduce, &["posted", "doubling", "exchange", "slices", "groups"]);
        named(Collective::Reduce, &["tree", "exchange", "slices", "groups"]);
        named(Collective::ReduceScatter, &["exchange", "groups"]);
        named(Collective::Scatter, &["exchange", "cico"]);
        named(Collective::Gather, &["exchange", "cico", "groups"]);
        named(Collective::Allgather, &["exchange", "cico", "groups"]);
        named(Collective::Scan, &["doubling", "exchange", "groups"]);
        named(Collective::Exscan, &["doubling", "exchange", "groups"]);
    }
}

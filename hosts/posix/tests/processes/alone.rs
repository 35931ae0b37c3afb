//! The start-up of a process that is alone. These are no unit tests, for which all machines would be compiled once more.

use unisono_kernel::op::Op;
use unisono_kernel::region::{Base, Params};
use unisono_posix::bootstrap::Alone;
use unisono_posix::segment::SEALS;
use unisono_posix::watch::Liveness;
use unisono_posix::{Intracomm, Options, PosixError, join, page};

#[test]
fn one_process_alone_joins_and_calls() {
    let plan = |ranks| Params::new(ranks).with_cico();
    let mut joined = join(&mut Alone, plan, &Options::default()).unwrap();
    assert_eq!(joined.segment.seals().unwrap(), SEALS);
    assert_eq!(joined.placement.checked * page(), joined.segment.layout().first_bytes());
    assert_eq!(joined.placements, [joined.placement.summary()]);
    assert_eq!(joined.liveness, Liveness::Watched);
    assert_eq!(joined.processes().localities().len(), 1);
    let mut eight = 5i64.to_ne_bytes();
    joined.communicator.bcast(&mut eight, 0).unwrap();
    joined.communicator.barrier().unwrap();
    joined.communicator.allreduce_in_place(&mut eight, Op::SUM_I64).unwrap();
    assert_eq!(i64::from_ne_bytes(eight), 5);
}

#[test]
fn a_plan_for_other_ranks_is_refused() {
    let options = Options { params: Some(Params::new(4)), ..Options::default() };
    let error = join(&mut Alone, Params::new, &options).unwrap_err();
    assert_eq!(error.to_string(), "ranks is 1, must be 4");
}

#[test]
fn absurd_sizes_are_refused_before_anything_is_mapped() {
    let plan = |ranks| Params { queue_slots: 1 << 20, queue_fragment: 1 << 40, ..Params::new(ranks) };
    let error = join(&mut Alone, plan, &Options::default()).unwrap_err();
    assert!(matches!(error, PosixError::Space { needed, .. } if needed > 1 << 60), "{error}");
}

/// Communicators on fresh memory start like the first one; one on warm memory continues its counts.
#[test]
fn communicators_that_are_made_begin_there_too() {
    let begin = Base { operation: (1 << 16) - 3, clock: (1 << 24) - 2, sets: 5, centrals: 6 };
    let made = Base { centrals: 0, ..begin };
    let mut joined = join(&mut Alone, Params::new, &Options { begin, ..Options::default() }).unwrap();
    let base = |made: &Intracomm| made.place().plan().2;
    assert_eq!(base(&joined.communicator), begin);
    let mut dup = joined.communicator.dup().unwrap();
    let mut split = dup.split(Some(1), 0).unwrap().unwrap();
    let group = split.create_group(&[0], 1).unwrap();
    assert_eq!([&dup, &split, &group].map(base), [made; 3]);
    for _ in 0..5 {
        split.barrier().unwrap();
    }
    split.free();
    let warm = dup.dup().unwrap();
    assert!(base(&warm).operation >= made.operation + 5, "{warm:?}");
}

//! Tests: the algorithms that are chosen over messages can be planned.

use super::*;
use crate::error::Refusal;
use crate::msg::{
    Algorithm, Parts, PlanError, allgather, allreduce, alltoall, barrier, bcast, gather, reduce, reduce_scatter, scan,
    scatter,
};
use crate::op::{Op, User};
use crate::pattern::Seat;
use core::ffi::c_void;

/// Plans a rank's part by an algorithm; with unequal blocks if the collective has them.
fn plan(ask: &Ask, rank: u32, algorithm: Algorithm, op: Op) -> Result<(), PlanError> {
    let (seat, bytes) = (Seat::new(rank, ask.site.ranks)?, ask.bytes / 8 * 8);
    let counts: std::vec::Vec<u64> = (0..ask.site.ranks.into()).collect();
    let starts: std::vec::Vec<u64> = counts.iter().map(|at| at * u64::from(ask.site.ranks)).collect();
    let unequal = matches!(ask.collective, Collective::Gatherv | Collective::Scatterv | Collective::Alltoallv);
    let parts =
        if unequal { Parts::vary(ask.site.ranks, &counts, &starts, 1)? } else { Parts::equal(ask.site.ranks, bytes)? };
    let own = parts.len(rank);
    match algorithm {
        Algorithm::Barrier(algorithm) => barrier::plan(seat, algorithm).map(|_| ())?,
        Algorithm::Bcast(algorithm) => bcast::plan(seat, bytes, 0, algorithm).map(|_| ())?,
        Algorithm::Reduce(algorithm) => reduce::plan(seat, bytes, op, 0, false, algorithm).map(|_| ())?,
        Algorithm::Allreduce(algorithm) => allreduce::plan(seat, bytes, op, false, algorithm).map(|_| ())?,
        Algorithm::Gather(algorithm) => gather::plan(seat, own, parts, 0, false, algorithm).map(|_| ())?,
        Algorithm::Scatter(algorithm) => scatter::plan(seat, own, parts, 0, false, algorithm).map(|_| ())?,
        Algorithm::Allgather(algorithm) => allgather::plan(seat, parts, false, algorithm, None).map(|_| ())?,
        Algorithm::Alltoall(algorithm) => alltoall::plan(seat, Some(parts), parts, algorithm).map(|_| ())?,
        Algorithm::ReduceScatter(algorithm) => reduce_scatter::plan(seat, parts, op, false, algorithm).map(|_| ())?,
        Algorithm::Scan(algorithm) => {
            let exclusive = ask.collective == Collective::Exscan;
            scan::plan(seat, bytes, op, false, exclusive, algorithm).map(|_| ())?;
        }
    }
    Ok(())
}

unsafe extern "C-unwind" fn first(_: *const c_void, _: *mut c_void, _: u64, _: *mut c_void) {}

/// `applies` agrees with the planners, for every algorithm that has a name and every number of processes up to 17.
#[test]
fn what_applies_can_be_planned_and_what_does_not_is_refused() -> Result<(), Refusal> {
    // SAFETY: the function touches nothing.
    let ordered: Op = unsafe { User::new(first, core::ptr::null_mut(), 8, false) }.into();
    let mut planned = 0;
    for (collective, algorithm) in tests::plans() {
        let Choice::Messages(algorithm) = algorithm else { continue };
        for (ranks, bytes, commutative) in
            (1..=17).flat_map(|ranks| [(ranks, 0, true), (ranks, 64, false), (ranks, 1 << 20, true)])
        {
            let ask = Ask { over: Over::Messages, collective, bytes, commutative, site: Site::flat(ranks) };
            let op = if commutative { Op::SUM_F64 } else { ordered };
            let applies = Choice::Messages(algorithm).applies(&ask);
            for rank in [0, ranks - 1] {
                match (plan(&ask, rank, algorithm, op), applies) {
                    (Ok(()), Ok(())) => planned += 1,
                    (Err(PlanError::Inapplicable { needs, .. }), Err(why)) => assert_eq!(Unfit::Needs(needs), why),
                    (planned, applies) => panic!("{algorithm} for {ask:?}: {planned:?}, but {applies:?}"),
                }
            }
        }
    }
    assert!(planned > 3000, "{planned}");
    Ok(())
}

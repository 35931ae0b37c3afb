//! What one member concludes from another's words: that it has left, that it waits, that it is late, and at which
//! operation it ended.

use unisono_kernel::Rank;
use unisono_kernel::algorithm::{BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::call::any::Any;
use unisono_kernel::comm::Comm;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::error::{Cause, Poison};
use unisono_kernel::machine::poll::Poll;
use unisono_kernel::machine::transport::Observe;
use unisono_kernel::machine::{Machine, Operation};
use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::region::lease::{ended_alike, first_present, leave};
use unisono_kernel::region::{Base, Params};
use unisono_local::Segment;

fn members(ranks: u32) -> Vec<Comm<Segment>> {
    let segment = Segment::new(Params { page: 256, ..Params::new(ranks) }).unwrap();
    (0..ranks).map(|rank| Comm::new(segment.clone(), *segment.layout(), rank).unwrap()).collect()
}

fn started<'a>(comm: &mut Comm<Segment>, call: &Call<'a>) -> Any<'a> {
    call.build(comm.member()).unwrap().started(comm.member_mut())
}

fn barrier(comm: &mut Comm<Segment>) -> Any<'static> {
    started(comm, &Call::Barrier { algorithm: BarrierAlgorithm::Posted })
}

fn died(rank: Rank) -> Poison {
    Poison { rank, operation: 1, cause: Cause::Died }
}

#[test]
fn a_term_has_ended_alike_only_if_all_ranks_say_so_and_none_has_poisoned_it() {
    let members = members(3);
    let (region, layout) = (members[0].region(), *members[0].member().layout());
    let end = Base { operation: 7, clock: 5, ..Base::default() };
    for rank in 0..3 {
        assert_eq!(first_present(region, &layout, 2, 0), Some(rank));
        assert_eq!(first_present(region, &layout, 2, 1), Some(rank.max(1)));
        assert!(!ended_alike(region, &layout, 2, end));
        leave(region, &layout, rank, 2, Some(end));
    }
    assert_eq!(first_present(region, &layout, 2, 0), None);
    assert_eq!(first_present(region, &layout, 3, 0), Some(0));
    assert!(ended_alike(region, &layout, 2, end));
    assert!(!ended_alike(region, &layout, 1, end));
    assert!(!ended_alike(region, &layout, 2, Base { operation: 8, ..end }));
    leave(region, &layout, 1, 2, None);
    assert!(!ended_alike(region, &layout, 2, end), "one rank has not finished an operation that it started");
    leave(region, &layout, 1, 2, Some(end));
    assert!(ended_alike(region, &layout, 2, end));
    members[0].poison_with(died(2));
    assert!(!ended_alike(region, &layout, 2, end), "it is poisoned");
}

#[test]
fn a_rank_that_has_told_of_this_operation_or_a_later_one_waits() {
    let mut members = members(2);
    let [me, peer] = &mut members[..] else { unreachable!() };
    for _ in 0..2 {
        barrier(me);
    }
    for told in [false, true, true] {
        assert_eq!(me.waits(1), peer.member().operation() >= 2, "before it tells");
        barrier(peer);
        peer.compare().unwrap();
        assert_eq!(me.waits(1), told, "it told of operation {}", peer.member().operation());
    }
    assert!(!peer.waits(0), "nothing was told yet");
    assert!(!me.waits(2), "no such rank");
}

#[test]
fn the_rank_that_has_finished_least_is_late_unless_it_waits_itself() {
    let mut members = members(3);
    assert_eq!(members[2].late(None), 0);
    assert_eq!(members[2].late(Some(1)), 1);
    let mut barriers: Vec<_> = members.iter_mut().map(barrier).collect();
    // The last rank to enter, and one that is polled again after it, find all lines posted.
    for (rank, finishes) in [(0, false), (2, false), (1, true), (0, true)] {
        let step = barriers[rank].poll(&mut members[rank]).unwrap();
        assert_eq!(step == Poll::Done, finishes, "rank {rank}");
    }
    assert_eq!([0, 1].map(|rank| members[rank].late(None)), [2, 2]);
    // Rank 2 says that it waits: then another rank is late.
    barrier(&mut members[2]);
    members[2].compare().unwrap();
    assert_eq!([members[0].late(Some(2)), members[1].late(None)], [1, 0]);
}

#[test]
fn a_communicator_ends_where_it_has_finished_all_operations_and_is_not_poisoned() {
    let mut members = members(1);
    let me = &mut members[0];
    assert_eq!(me.end(), Some(Base::default()));
    let mut begun = barrier(me);
    assert_eq!(me.end(), None, "an operation is in flight");
    assert_eq!(begun.poll(me), Ok(Poll::Done));
    assert_eq!(me.end(), Some(Base { operation: 1, ..Base::default() }));
    me.poison_with(died(0));
    assert_eq!(me.end(), None, "it is poisoned");
}

#[test]
fn who_waits_in_a_broadcast_has_not_finished_it() {
    const LONG: usize = 1 << 20;
    let cico = BcastAlgorithm::Cico(Tree::BINARY);
    let cases = [
        (BcastAlgorithm::Posted, 64),
        (BcastAlgorithm::Queue, 64),
        (cico, 64),
        (BcastAlgorithm::Queue, LONG),
        (cico, LONG),
    ];
    for (algorithm, bytes) in cases {
        let segment = Segment::new(Params::new(2).with_cico()).unwrap();
        let comm = |rank| Comm::new(segment.clone(), *segment.layout(), rank).unwrap();
        let (mut root, mut other) = (comm(0), comm(1));
        let (mut given, mut taken) = (vec![7; bytes], vec![0; bytes]);
        let bcast = |data| Call::Bcast { data, root: 0, algorithm };
        let mut to = started(&mut other, &bcast(Data::bytes_mut(&mut taken)));
        let mut from = started(&mut root, &bcast(Data::bytes_mut(&mut given)));
        let mut waits = 0;
        while to.poll(&mut other) != Ok(Poll::Done) {
            assert_eq!(other.end(), None, "{algorithm:?}");
            waits += 1;
            assert!(waits < 1000 && from.poll(&mut root).is_ok(), "{algorithm:?}");
        }
        assert_eq!(from.poll(&mut root), Ok(Poll::Done), "{algorithm:?}");
        assert!(waits == 1 || bytes == LONG && waits > 1, "{algorithm:?}: {waits}");
        assert!(root.end().is_some() && root.end() == other.end(), "{algorithm:?}");
        assert!(taken == given, "{algorithm:?}");
    }
}

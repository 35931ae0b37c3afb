//! An operation of any algorithm that was built and not started fails when it is polled, and does not change the
//! member.

use unisono_kernel::algorithm::{
    AllreduceAlgorithm, AlltoallAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm, ReduceAlgorithm,
};
use unisono_kernel::call::Call;
use unisono_kernel::comm::Comm;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::PollError;
use unisono_kernel::machine::Machine;
use unisono_kernel::op::Op;
use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::region::Params;
use unisono_local::Segment;

#[test]
fn what_was_not_started_is_not_done() {
    let (mut one, mut two, mut four) = ([0; 8], [0; 8], [0; 16]);
    let (send, receive, op) = (Data::bytes_mut(&mut one), Data::bytes_mut(&mut two), Op::SUM_I64);
    let blocks = Blocks::equal_mut(&mut four, 2, 8, Datatype::BYTE).unwrap();
    let mut calls = Vec::new();
    for algorithm in ["posted", "dissemination", "doubling", "central", "combining"] {
        calls.push(Call::Barrier { algorithm: BarrierAlgorithm::from_name(algorithm).unwrap() });
    }
    for algorithm in
        [BcastAlgorithm::Posted, BcastAlgorithm::Groups, BcastAlgorithm::Queue, BcastAlgorithm::Cico(Tree::Flat)]
    {
        calls.push(Call::Bcast { data: send, root: 0, algorithm });
    }
    for algorithm in [
        AllreduceAlgorithm::Posted,
        AllreduceAlgorithm::Doubling,
        AllreduceAlgorithm::Exchange,
        AllreduceAlgorithm::Slices,
        AllreduceAlgorithm::Groups,
    ] {
        calls.push(Call::Allreduce { send, receive, op, algorithm });
    }
    for algorithm in
        [ReduceAlgorithm::Exchange, ReduceAlgorithm::Slices, ReduceAlgorithm::Groups, ReduceAlgorithm::Tree]
    {
        calls.push(Call::Reduce { send, receive: Some(receive), op, root: 0, algorithm });
    }
    for algorithm in [MoveAlgorithm::Exchange, MoveAlgorithm::Cico] {
        calls.push(Call::Gather { send: Some(send), receive: Some(blocks), root: 0, algorithm });
        calls.push(Call::Scatter { send: Some(blocks), receive: Some(receive), root: 0, algorithm });
        calls.push(Call::Allgather { send: Some(send), receive: blocks, algorithm });
    }
    calls.push(Call::Alltoall { send: None, receive: blocks, algorithm: AlltoallAlgorithm::Auto });
    for call in calls {
        let segment = Segment::new(Params::new(2).with_cico()).unwrap();
        let mut comm = Comm::new(segment.clone(), *segment.layout(), 0).unwrap();
        let before = comm.member().clone();
        let mut built = call.build(comm.member()).unwrap();
        assert_eq!(built.poll(&mut comm), Err(PollError::NotStarted), "{call:?}");
        assert_eq!(*comm.member(), before, "{call:?}");
    }
}

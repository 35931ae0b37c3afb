//! What a root does with its own data while it waits for others: it copies its long block for itself, or its operand.

use unisono_kernel::algorithm::{MoveAlgorithm, ReduceAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::comm::Comm;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::machine::poll::Poll;
use unisono_kernel::machine::{Machine, Operation};
use unisono_kernel::op::Op;
use unisono_kernel::region::Params;
use unisono_local::Segment;

const BYTES: usize = 100_000;

/// What the root has after one poll of this call, in which the other rank takes no part: its block, and that of the other.
fn polled(call: impl for<'a> FnOnce(&'a mut [u8], &'a mut [u8]) -> Call<'a>) -> [Vec<u8>; 2] {
    let params = Params { page: 256, queue_slots: 2, queue_fragment: 4096, ..Params::new(2) };
    let segment = Segment::new(params).unwrap();
    let mut comm = Comm::new(segment.clone(), *segment.layout(), 0).unwrap();
    let (mut all, mut own) = ([vec![1; BYTES], vec![2; BYTES]].concat(), vec![7; BYTES]);
    let mut machine = call(&mut all, &mut own).build(comm.member()).unwrap().started(comm.member_mut());
    assert!(matches!(machine.poll(&mut comm), Ok(Poll::Wait(_))), "the other rank has not come");
    [all, own]
}

#[test]
fn of_a_gather() {
    let algorithm = MoveAlgorithm::Auto;
    let [all, own] = polled(|all, own| {
        let receive = Some(Blocks::equal_mut(all, 2, BYTES as u64, Datatype::BYTE).unwrap());
        Call::Gather { send: Some(Data::bytes_mut(own)), receive, root: 0, algorithm }
    });
    assert_eq!(all, [own, vec![2; BYTES]].concat());
}

#[test]
fn of_a_scatter() {
    let algorithm = MoveAlgorithm::Auto;
    let [all, own] = polled(|all, own| {
        let send = Some(Blocks::equal_mut(all, 2, BYTES as u64, Datatype::BYTE).unwrap());
        Call::Scatter { send, receive: Some(Data::bytes_mut(own)), root: 0, algorithm }
    });
    assert_eq!((&own, all), (&vec![1; BYTES], [own.clone(), vec![2; BYTES]].concat()));
}

#[test]
fn of_a_reduce() {
    // What the other rank's operand is folded into: the result's first fragment, 4096 bytes.
    let [all, own] = polled(|all, own| {
        let (receive, _) = all.split_at_mut(BYTES);
        let (send, receive) = (Data::bytes_mut(own), Some(Data::bytes_mut(receive)));
        Call::Reduce { send, receive, op: Op::SUM_U64, root: 0, algorithm: ReduceAlgorithm::Auto }
    });
    assert_eq!((&all[..4096], &all[4096..BYTES]), (&own[..4096], &*vec![1; BYTES - 4096]));
}

//! Each blocking method of a communicator does what its name says: three ranks, with data that differs on each.

use unisono_kernel::Rank;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::Error;
use unisono_kernel::op::{Element, Op, Operation};
use unisono_kernel::region::Params;
use unisono_kernel::shm::barrier::central::Central;
use unisono_local::Local;

const RANKS: u32 = 3;
const BYTES: Datatype<'static> = Datatype::Contiguous { bytes: 1 };

/// A block of one byte for each rank.
fn each(memory: &mut [u8]) -> Blocks<'_> {
    Blocks::equal_mut(memory, RANKS, 1, BYTES).unwrap()
}

/// Blocks of one, two and three bytes, one after another.
fn growing(memory: &mut [u8]) -> Blocks<'_> {
    Blocks::vary_mut(memory, &[1, 2, 3], &[0, 1, 3], BYTES).unwrap()
}

/// Sums of bytes.
fn sum() -> Op {
    Op::new(Operation::Sum, Element::U8).unwrap()
}

/// What each rank finds in its memory after `call`. Before, it is nines.
fn found(call: impl Fn(&mut Communicator<Local>, u8, &mut [u8]) -> Result<(), Error> + Send + Sync) -> Vec<Vec<u8>> {
    unisono_local::run(Params::new(RANKS), |mut comm| {
        let mut memory = vec![9; 6];
        let me = comm.rank() as u8;
        call(&mut comm, me, &mut memory).unwrap();
        memory
    })
    .unwrap()
}

/// What rank `me` sends to all: 1, 2 or 3 bytes.
fn own(me: u8) -> Vec<u8> {
    vec![10 + me; 1 + usize::from(me)]
}

#[test]
fn data_is_moved() {
    let root: Rank = 2;
    let untouched = vec![9; 6];
    let bcast = found(|comm, me, memory| {
        memory.fill(me);
        comm.bcast(memory, root)
    });
    assert_eq!(bcast, vec![vec![2; 6]; 3]);
    let gather = found(|comm, me, memory| comm.gather(Some(Data::bytes_mut(&mut [me + 1])), Some(each(memory)), root));
    assert_eq!(gather, [untouched.clone(), untouched.clone(), vec![1, 2, 3, 9, 9, 9]]);
    let gatherv =
        found(|comm, me, memory| comm.gatherv(Some(Data::bytes_mut(&mut own(me))), Some(growing(memory)), root));
    assert_eq!(gatherv, [untouched.clone(), untouched, vec![10, 11, 11, 12, 12, 12]]);
    let scatter = found(|comm, me, memory| {
        comm.scatter(Some(each(&mut [me, 10 + me, 20 + me])), Some(Data::bytes_mut(&mut memory[1..2])), root)
    });
    assert_eq!(scatter.concat()[..], [9, 2, 9, 9, 9, 9, 9, 12, 9, 9, 9, 9, 9, 22, 9, 9, 9, 9]);
    let scatterv = found(|comm, me, memory| {
        let len = 1 + usize::from(me);
        comm.scatterv(Some(growing(&mut [1, 2, 3, 4, 5, me])), Some(Data::bytes_mut(&mut memory[..len])), root)
    });
    assert_eq!(scatterv, [vec![1, 9, 9, 9, 9, 9], vec![2, 3, 9, 9, 9, 9], vec![4, 5, 2, 9, 9, 9]]);
    let allgather = found(|comm, me, memory| comm.allgather(Some(Data::bytes_mut(&mut [me + 1])), each(memory)));
    assert_eq!(allgather, vec![vec![1, 2, 3, 9, 9, 9]; 3]);
    let alltoall = found(|comm, me, memory| comm.alltoall(Some(each(&mut [me, 10 + me, 20 + me])), each(memory)));
    assert_eq!(alltoall, [[0, 1, 2, 9, 9, 9], [10, 11, 12, 9, 9, 9], [20, 21, 22, 9, 9, 9]]);
    let alltoallv = found(|comm, me, memory| {
        // Rank r receives r + 1 bytes from each.
        let (count, mut send) = (u64::from(me) + 1, [me, 10 + me, 10 + me, 20 + me, 20 + me, 20 + me]);
        let mut receive = [9; 9];
        let (counts, places) = ([count; 3], [0, count, 2 * count]);
        let into = Blocks::vary_mut(&mut receive, &counts, &places, BYTES).unwrap();
        comm.alltoallv(Some(growing(&mut send)), into)?;
        memory.copy_from_slice(&receive[..6]);
        Ok(())
    });
    assert_eq!(alltoallv, [[0, 1, 2, 9, 9, 9], [10, 10, 11, 11, 12, 12], [20, 20, 20, 21, 21, 21]]);
}

#[test]
fn data_is_reduced() {
    let reduce = found(|comm, me, memory| {
        comm.reduce(Data::bytes_mut(&mut [me + 1, me]), Some(Data::bytes_mut(&mut memory[..2])), sum(), 1)
    });
    assert_eq!(reduce, [[9; 6], [6, 3, 9, 9, 9, 9], [9; 6]]);
    let allreduce = found(|comm, me, memory| comm.allreduce(&[me + 1, me], &mut memory[..2], sum()));
    assert_eq!(allreduce, [[6, 3, 9, 9, 9, 9]; 3]);
    let in_place = found(|comm, me, memory| {
        memory.fill(me + 1);
        comm.allreduce_in_place(memory, sum())
    });
    assert_eq!(in_place, [[6; 6]; 3]);
    let reduce_scatter = found(|comm, me, memory| {
        let mut send = [me, 10 + me, 20 + me];
        comm.reduce_scatter(each(&mut send), Data::bytes_mut(&mut memory[..1]), sum())
    });
    assert_eq!(reduce_scatter, [[3, 9, 9, 9, 9, 9], [33, 9, 9, 9, 9, 9], [63, 9, 9, 9, 9, 9]]);
    let scan =
        found(|comm, me, memory| comm.scan(Data::bytes_mut(&mut [me + 1]), Data::bytes_mut(&mut memory[..1]), sum()));
    assert_eq!(scan, [[1, 9, 9, 9, 9, 9], [3, 9, 9, 9, 9, 9], [6, 9, 9, 9, 9, 9]]);
    let exscan =
        found(|comm, me, memory| comm.exscan(Data::bytes_mut(&mut [me + 1]), Data::bytes_mut(&mut memory[..1]), sum()));
    assert_eq!(exscan, [[9, 9, 9, 9, 9, 9], [1, 9, 9, 9, 9, 9], [3, 9, 9, 9, 9, 9]]);
}

/// `call` runs a machine of the caller's to its end: no rank leaves a barrier before the last one has entered.
#[test]
fn a_machine_is_run_to_its_end() {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    let entered = AtomicU32::new(0);
    let seen = unisono_local::run(Params::new(RANKS), |mut comm| {
        entered.fetch_add(1, SeqCst);
        comm.call(|_| Ok(Central::default())).unwrap();
        entered.load(SeqCst)
    })
    .unwrap();
    assert_eq!(seen, [RANKS; 3]);
}

//! Several operations one after the other between threads, on mailboxes: tags keep them apart.

use super::{Net, bytes, seat};
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::machine::Machine;
use unisono_kernel::machine::poll::Poll;
use unisono_kernel::msg::{Memory, Rounds, Schedule, allreduce, bcast};
use unisono_kernel::op::Op;
use unisono_local::Mailboxes;

fn finish<S: Schedule>(plan: S, net: &mut Net, send: &[u8], receive: &mut [u8], operation: u64) {
    let mut scratch = vec![0; plan.bytes().scratch as usize];
    let memory = Memory { send: Buf::of(send), receive: Buf::of_mut(receive), scratch: Buf::of_mut(&mut scratch) };
    // SAFETY: the buffers outlive the machine, which ends below.
    let mut machine = unsafe { Rounds::of(plan, memory, operation) }.expect("enough memory");
    while let Poll::Wait(_) = machine.poll(net).expect("a poll that fails") {
        std::thread::yield_now();
    }
}

#[test]
fn operations_in_a_row() {
    for size in [2, 5, 8] {
        std::thread::scope(|scope| {
            for (mailbox, rank) in Mailboxes::connect(size).into_iter().zip(0..) {
                scope.spawn(move || {
                    let (mut net, me) = (Net(mailbox), seat(rank, size));
                    for operation in 0..20u64 {
                        let root = operation as u32 % size;
                        let mut data = bytes(rank, 100);
                        let algorithm = [bcast::Algorithm::Chain(16), bcast::Algorithm::Flat][operation as usize % 2];
                        let plan = bcast::plan(me, 100, root, algorithm).unwrap();
                        finish(plan, &mut net, &[], &mut data, 2 * operation);
                        assert_eq!(data, bytes(root, 100));
                        let (send, mut sum) = ([u64::from(rank), 1].map(u64::to_ne_bytes), [0; 16]);
                        let algorithm = [allreduce::Algorithm::Doubling, allreduce::Algorithm::Ring];
                        let plan = allreduce::plan(me, 16, Op::SUM_U64, false, algorithm[operation as usize % 2]);
                        finish(plan.unwrap(), &mut net, send.as_flattened(), &mut sum, 2 * operation + 1);
                        let all = [u64::from(size * (size - 1) / 2), size.into()].map(u64::to_ne_bytes);
                        assert_eq!(sum, all.as_flattened());
                    }
                });
            }
        });
    }
}

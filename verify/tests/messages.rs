//! A machine over messages between threads: the binomial broadcast.

mod common;

use common::bounded;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::machine::Machine;
use unisono_kernel::machine::poll::Poll;
use unisono_kernel::machine::transport::Messages;
use unisono_kernel::msg::bcast::binomial::Binomial;
use unisono_local::{Mailbox, Mailboxes};

/// A context with messages only, which is all that `Binomial` needs.
struct Net(Mailbox);

impl Messages for Net {
    type P2p = Mailbox;
    fn messages(&mut self) -> &mut Mailbox {
        &mut self.0
    }
}

fn finish<X: ?Sized>(machine: &mut impl Machine<X>, x: &mut X) {
    while let Poll::Wait(_) = machine.poll(x).expect("a poll that fails") {
        std::thread::yield_now();
    }
}

#[test]
fn binomial_broadcast_over_mailboxes() {
    bounded(|| {
        for size in 1..=17 {
            let boxes = Mailboxes::connect(size);
            std::thread::scope(|scope| {
                for (mailbox, rank) in boxes.into_iter().zip(0..) {
                    scope.spawn(move || {
                        let mut net = Net(mailbox);
                        for root in 0..size {
                            // Two operations per root are under way on different ranks at once.
                            for (operation, bytes) in [(2 * root, 0), (2 * root + 1, 100)] {
                                let sent: Vec<u8> = (0..bytes).map(|i| (i + root * 3 + size) as u8).collect();
                                let mut data = if rank == root { sent.clone() } else { vec![0; bytes as usize] };
                                let buffer = Buf::of_mut(&mut data);
                                // SAFETY: `data` is this thread's, and outlives the machine, which ends below.
                                let machine = unsafe { Binomial::new(rank, size, buffer, root, operation.into()) };
                                finish(&mut machine.unwrap(), &mut net);
                                assert_eq!(data, sent, "p={size} root={root} rank={rank}");
                            }
                        }
                    });
                }
            });
        }
    });
}

#[test]
fn binomial_refuses_ranks_and_roots() {
    for (rank, root, argument, value) in [(3, 0, Argument::Rank, 3), (0, 3, Argument::Root, 3)] {
        // SAFETY: an empty buffer.
        let refused = unsafe { Binomial::new(rank, 3, Buf::of_mut(&mut []), root, 1) };
        assert_eq!(refused, Err(Refusal::new(argument, value, Bound::Below(3))));
    }
}

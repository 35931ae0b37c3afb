//! Machines over messages, and over messages between segments: the binomial broadcast, the one of two levels.

mod common;

use common::bounded;
use unisono_kernel::buffer::Buf;
use unisono_kernel::comm::Comm;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::hier::bcast::{Nodes, two_level};
use unisono_kernel::machine::Machine;
use unisono_kernel::msg::bcast::binomial::Binomial;
use unisono_kernel::region::Params;
use unisono_kernel::select::BcastAlgorithm;
use unisono_kernel::step::Step;
use unisono_kernel::transport::{Messages, Shared};
use unisono_local::{Levels, Mailbox, Mailboxes, Segment};

/// Only messages: what `Binomial` needs.
struct Net(Mailbox);

impl Messages for Net {
    type P2p = Mailbox;
    fn messages(&mut self) -> &mut Mailbox {
        &mut self.0
    }
}

fn finish<X: ?Sized>(machine: &mut impl Machine<X>, x: &mut X) {
    while let Step::Wait(_) = machine.poll(x).expect("a poll that fails") {
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

#[test]
fn two_levels() {
    bounded(|| {
        for (nodes, per_node) in [(2u32, 2u32), (3, 2), (4, 3), (1, 3), (3, 1)] {
            let params = Params { lines: 2, queue_slots: 2, queue_fragment: 64, ..Params::new(per_node) };
            for root in 0..nodes * per_node {
                for bytes in [0, 8, 300] {
                    two_level_case(nodes, params, root, bytes);
                }
            }
        }
    });
}

/// Three broadcasts from one root. Mailboxes are fresh: there is one per node, and it is the leader's.
fn two_level_case(nodes: u32, params: Params, root: u32, bytes: usize) {
    let per_node = params.ranks;
    std::thread::scope(|scope| {
        for (mailbox, node) in Mailboxes::connect(nodes).into_iter().zip(0..nodes) {
            let segment = Segment::new(params).unwrap();
            let leader = if node == root / per_node { root % per_node } else { 0 };
            let mut net = Some(mailbox);
            for rank in 0..per_node {
                // Who does not lead gets a network of its own, and never uses it.
                let mailbox = if rank == leader { net.take() } else { Mailboxes::connect(1).pop() };
                let comm = Comm::new(segment.clone(), *segment.layout(), rank).unwrap();
                let mut x = Levels { comm, mailbox: mailbox.expect("one leader") };
                scope.spawn(move || {
                    let sent: Vec<u8> = (0..bytes).map(|i| (i as u32 + root * 5 + 1) as u8).collect();
                    for algorithm in [BcastAlgorithm::Auto, BcastAlgorithm::Queue, BcastAlgorithm::Auto] {
                        let is_root = node * per_node + rank == root;
                        let mut data = if is_root { sent.clone() } else { vec![0; bytes] };
                        let (nodes, buffer) = (Nodes { nodes, node }, Buf::of_mut(&mut data));
                        let me = x.shared().1;
                        // SAFETY: `data` is this thread's, and outlives the machine, which ends below.
                        let machine = unsafe { two_level(me, nodes, buffer, root, algorithm) };
                        finish(&mut machine.unwrap(), &mut x);
                        assert_eq!(data, sent, "{nodes:?} root={root} rank={rank}");
                    }
                });
            }
        }
    });
}

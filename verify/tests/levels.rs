//! Compositions over two levels, between threads: every placement, root, length, in place, order.

mod common;

use common::bounded;
use unisono_kernel::buffer::Buf;
use unisono_kernel::comm::Comm;
use unisono_kernel::hier::{Home, Levels, Nodes, allreduce, barrier, bcast, reduce};
use unisono_kernel::machine::Machine;
use unisono_kernel::msg::{self, Memory, Needs, PlanError};
use unisono_kernel::region::Params;
use unisono_kernel::select::{BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::step::Step;
use unisono_kernel::transport::Shared;
use unisono_local::{Mailbox, Mailboxes, Segment};
use unisono_verify::cases::{bytes, to_bytes};
use unisono_verify::oracle::{Fold, mix};

/// The node of each rank: blocks, equal and not; round robin; any.
const PLACEMENTS: [&[u32]; 8] = [
    &[0, 0, 1, 1],
    &[0, 0, 0, 1],
    &[0, 1, 1, 1, 2, 2],
    &[0, 1, 0, 1],
    &[0, 1, 2, 0, 1, 2, 0],
    &[0, 1, 1, 0, 2, 0],
    &[0, 0, 0],
    &[0, 1, 2],
];

fn homes(placement: &[u32]) -> (Vec<Home>, Vec<u32>) {
    let rank_of = |at: usize| placement[..at].iter().filter(|node| **node == placement[at]).count() as u32;
    let homes: Vec<_> = (0..placement.len()).map(|at| Home { node: placement[at], rank: rank_of(at) }).collect();
    let leaders = (0..).zip(&homes).filter(|(_, home)| home.rank == 0).map(|(rank, _)| rank).collect();
    (homes, leaders)
}

/// One rank.
struct Member<'n> {
    x: Levels<Segment, Mailbox>,
    nodes: Nodes<'n>,
    rank: u32,
    scratch: Vec<u8>,
}

impl Member<'_> {
    fn finish(&mut self, mut machine: impl Machine<Levels<Segment, Mailbox>>) {
        while let Step::Wait(_) = machine.poll(&mut self.x).expect("a poll that fails") {
            std::thread::yield_now();
        }
    }

    fn size(&self) -> u32 {
        self.nodes.size()
    }
}

/// Runs `body` on a thread per rank of each placement; segments are so small that all queues turn over.
fn everywhere(body: impl Fn(&mut Member<'_>) + Sync + Send + Copy + 'static) {
    bounded(move || {
        for placement in PLACEMENTS {
            let (homes, leaders) = homes(placement);
            let per_node = |node| homes.iter().filter(|home| home.node == node).count() as u32;
            let segment = |node| {
                Segment::new(Params { lines: 2, queue_slots: 2, queue_fragment: 64, ..Params::new(per_node(node)) })
            };
            let segments: Vec<_> = (0..leaders.len() as u32).map(|node| segment(node).unwrap()).collect();
            std::thread::scope(|scope| {
                for (messages, rank) in Mailboxes::connect(homes.len() as u32).into_iter().zip(0..) {
                    let nodes = Nodes::new(&homes, &leaders, rank).unwrap();
                    let segment = segments[nodes.home().node as usize].clone();
                    let layout = *segment.layout();
                    let comm = Comm::new(segment, layout, nodes.home().rank).unwrap();
                    scope.spawn(move || {
                        body(&mut Member { x: Levels { comm, messages }, nodes, rank, scratch: Vec::new() });
                    });
                }
            });
        }
    });
}

const LENGTHS: [u64; 4] = [0, 1, 8, 300];

#[test]
fn broadcasts() {
    use msg::bcast::Algorithm::{Knomial, ScatterAllgather};
    everywhere(|me| {
        for root in 0..me.size() {
            for (len, outside) in LENGTHS.into_iter().flat_map(|len| [(len, Knomial(2)), (len, ScatterAllgather)]) {
                let mut data = bytes(me.rank, len);
                let (nodes, buffer) = (me.nodes, Buf::of_mut(&mut data));
                let how = (outside, BcastAlgorithm::Auto);
                // SAFETY: `data` is this thread's, and outlives the machine, which ends below.
                let machine = unsafe { bcast::machine(me.x.shared().1, nodes, buffer, root, how) };
                me.finish(machine.unwrap());
                assert_eq!(data, bytes(root, len), "{nodes:?} root={root}");
            }
        }
    });
}

/// Nobody leaves a barrier before all have come: each rank's broadcast of a count comes after.
#[test]
fn barriers() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COME: AtomicU32 = AtomicU32::new(0);
    everywhere(|me| {
        for time in 1..=20 {
            let before = COME.fetch_add(1, Ordering::SeqCst);
            let outside = [msg::barrier::Algorithm::Dissemination, msg::barrier::Algorithm::Tournament][time % 2];
            let nodes = me.nodes;
            let machine = barrier::machine(me.x.shared().1, nodes, (outside, BarrierAlgorithm::Auto)).unwrap();
            me.finish(machine);
            let size = me.size();
            // Of this placement, at least so many have come since this one did in the round before.
            assert!(COME.load(Ordering::SeqCst) >= before / size * size + size, "{nodes:?}");
            let machine = barrier::machine(me.x.shared().1, nodes, (outside, BarrierAlgorithm::Auto)).unwrap();
            me.finish(machine);
            if me.rank == 0 && time == 20 {
                COME.store(0, Ordering::SeqCst);
            }
        }
    });
}

fn operand(fold: Fold, rank: u32, elements: u64) -> Vec<u64> {
    let words = elements * fold.element() as u64 / 8;
    let word = |at| mix(u64::from(rank) << 32 ^ at);
    match fold {
        Fold::SumF64 => (0..words).map(|at| f64::from(word(at) as u16).to_bits()).collect(),
        _ => (0..words).map(word).collect(),
    }
}

fn folded(fold: Fold, ranks: u32, elements: u64) -> Vec<u8> {
    let mut result = operand(fold, 0, elements);
    (1..ranks).for_each(|rank| fold.apply(&mut result, &operand(fold, rank, elements)));
    to_bytes(&result)
}

/// What of a rank's operand is input, and what its result: the same memory in place.
fn sides(operand: &mut [u8], result: &mut [u8], in_place: bool) -> (Buf, Buf) {
    if !in_place {
        return (Buf::of(operand), Buf::of_mut(result));
    }
    result.copy_from_slice(operand);
    let both = Buf::of_mut(result);
    (both, both)
}

/// Each kind of fold, with each length, in place and not.
fn folds() -> impl Iterator<Item = (Fold, u64, bool)> {
    let folds = [Fold::SumI64, Fold::Affine, Fold::SumF64].into_iter();
    let lengths = folds.flat_map(|fold| [0, 1, 5, 70].map(|elements| (fold, elements)));
    lengths.flat_map(|(fold, elements)| [(fold, elements, false), (fold, elements, true)])
}

#[test]
fn allreduces() {
    use msg::allreduce::Algorithm::{Doubling, Rabenseifner, Ring};
    everywhere(|me| {
        for (fold, elements, in_place) in folds() {
            for outside in [Doubling, Rabenseifner, Ring] {
                let mut operand = to_bytes(&operand(fold, me.rank, elements));
                let (len, op) = (operand.len() as u64, fold.op());
                let plan = match allreduce::plan(me.nodes, len, op, outside) {
                    Ok(plan) => plan,
                    Err(PlanError::Inapplicable { needs: Needs::Commutative, .. }) => {
                        assert!(fold == Fold::Affine && (outside == Ring || !me.nodes.in_order()));
                        continue;
                    }
                    Err(other) => panic!("{other}"),
                };
                let mut result = vec![0x55; operand.len()];
                me.scratch.resize(plan.scratch() as usize, 0);
                let scratch = Buf::of_mut(&mut me.scratch);
                let (send, receive) = sides(&mut operand, &mut result, in_place);
                // SAFETY: this thread's memory, which outlives the machine: it ends below.
                let machine = unsafe { plan.machine(me.x.shared().1, send, receive, scratch) }.unwrap();
                me.finish(machine);
                let wanted = folded(fold, me.size(), elements);
                assert!(result == wanted, "{:?} {fold:?} {elements} {outside:?} {in_place}", me.nodes);
            }
        }
    });
}

#[test]
fn reduces() {
    use msg::reduce::Algorithm::{Knomial, ScatterGather};
    everywhere(|me| {
        for root in 0..me.size() {
            for ((fold, elements, in_place), outside) in
                folds().flat_map(|case| [(case, Knomial(2)), (case, ScatterGather)])
            {
                let mut operand = to_bytes(&operand(fold, me.rank, elements));
                let (len, op) = (operand.len() as u64, fold.op());
                let plan = match reduce::plan(me.nodes, len, op, root, outside) {
                    Ok(plan) => plan,
                    Err(PlanError::Inapplicable { needs: Needs::Commutative, .. }) => {
                        assert!(fold == Fold::Affine && !me.nodes.in_order());
                        continue;
                    }
                    Err(other) => panic!("{other}"),
                };
                let mut result = vec![0x55; operand.len()];
                me.scratch.resize(plan.scratch() as usize, 0);
                let scratch = Buf::of_mut(&mut me.scratch);
                let (send, receive) = match me.rank == root {
                    true => sides(&mut operand, &mut result, in_place),
                    false => (Buf::of(&operand), Memory::NOTHING),
                };
                // SAFETY: this thread's memory, which outlives the machine: it ends below.
                let machine = unsafe { plan.machine(me.x.shared().1, send, receive, scratch) }.unwrap();
                me.finish(machine);
                let wanted = if me.rank == root { folded(fold, me.size(), elements) } else { vec![0x55; len as usize] };
                assert!(result == wanted, "{:?} root={root} {fold:?} {elements} {in_place}", me.nodes);
            }
        }
    });
}

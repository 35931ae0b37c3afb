//! Every collective on threads against the sequential oracle: random sequences, and every root,
//! tree and edge size in turn.

use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use unisono_kernel::algorithm::{BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::call::scope::ACTIVE;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::error::Error;
use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::region::{Cico, Params};
use unisono_kernel::shm::papers::allgather::P2Allgather;
use unisono_kernel::shm::papers::gather::P2Gather;
use unisono_kernel::shm::papers::scatter::P2Scatter;
use unisono_local::Local;
use unisono_verify::oracle::blocks::{Direction, Spread};
use unisono_verify::oracle::{Fold, Operation, Plan, Shape};

/// Runs `body`; a body that never returns fails the test instead of hanging it.
fn bounded<A: Send + 'static>(body: impl FnOnce() -> A + Send + 'static) -> A {
    let (send, receive) = channel();
    let thread = std::thread::spawn(move || drop(send.send(body())));
    match receive.recv_timeout(Duration::from_secs(300)) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => panic!("hangs: some rank never returned"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!(),
        },
    }
}

const TREES: [Tree; 11] = [
    Tree::Flat,
    Tree::Chain,
    Tree::Kary(1),
    Tree::Kary(2),
    Tree::Kary(3),
    Tree::Kary(4),
    Tree::Kary(5),
    Tree::Knomial(2),
    Tree::Knomial(3),
    Tree::Knomial(4),
    Tree::Knomial(5),
];

/// 0, 1, f−1, f, f+1, b, b+1, several b.
fn edges(f: usize, b: usize) -> [usize; 9] {
    [0, 1, f - 1, f, f + 1, b, b + 1, 2 * b, 3 * b + f / 2 + 1]
}

fn sizes(params: &Params, algorithm: BcastAlgorithm) -> Vec<usize> {
    match algorithm {
        BcastAlgorithm::Cico(_) => {
            let cico = params.cico.expect("the segment has P1's queues");
            edges(cico.fragment as usize, (cico.fragment * u64::from(cico.slots)) as usize).into()
        }
        BcastAlgorithm::Posted | BcastAlgorithm::Groups => vec![0, 1, 7, 8, 9, 48, 49, 111, 112],
        _ => {
            let f = params.queue_fragment as usize;
            edges(f, f * params.queue_slots as usize).into()
        }
    }
}

/// Numbers from which an operation is derived, so that shrunk values stay valid.
type Choice = (u8, u32, u8, u64);

fn operation(params: &Params, (what, root, size, seed): Choice) -> Operation {
    let tree = TREES[seed as usize % TREES.len()];
    let algorithm = match what % 11 {
        0 if seed & 1 == 1 => BcastAlgorithm::Groups,
        0 => BcastAlgorithm::Posted,
        1 => BcastAlgorithm::Queue,
        2 | 3 => BcastAlgorithm::Cico(tree),
        4 => BcastAlgorithm::Auto,
        5 => {
            return Operation::Barrier(match seed % 6 {
                0 => BarrierAlgorithm::Dissemination,
                1 => BarrierAlgorithm::Central,
                2 => BarrierAlgorithm::Doubling,
                k => BarrierAlgorithm::Combining(k as u32 - 2),
            });
        }
        8.. => {
            let direction = [Direction::Scatter, Direction::Gather, Direction::Allgather][usize::from(what % 11) - 8];
            let sizes = sizes(params, BcastAlgorithm::Cico(tree));
            let most = sizes[usize::from(size) % sizes.len()];
            let (in_place, equal) = (seed >> 8 & 1 == 1, seed >> 9 & 3 == 3);
            return Operation::Spread(Spread { direction, root: root % params.ranks, in_place, most, equal, seed });
        }
        _ => {
            let fold = [Fold::SumF64, Fold::SumI64, Fold::Affine][root as usize % 3];
            let count = usize::from(size) % (48 / fold.element() + 1);
            return Operation::Allreduce { fold, count, in_place: seed.is_multiple_of(2) };
        }
    };
    let sizes = sizes(params, algorithm);
    Operation::Bcast { root: root % params.ranks, algorithm, bytes: sizes[usize::from(size) % sizes.len()], seed }
}

fn params() -> impl Strategy<Value = Params> {
    let queues = (0u32..3, 0u32..3, 1u64..3, 1u64..20);
    let cico = prop_oneof![Just((1, 1)), Just((4, 1)), Just((4, 2)), Just((4, 4)), Just((6, 3)), Just((6, 6))];
    (1u32..=17, queues, cico).prop_map(|(ranks, (lines, slots, fragment, f), (s, q))| Params {
        ranks,
        page: 256,
        lines: 2 << lines,
        queue_slots: 1 << slots,
        queue_fragment: 64 * fragment,
        cico: Some(Cico { slots: s, fragment: f, sets: q }),
        mailboxes: None,
        // Short reductions keep the order of ranks then, as the oracle does, whatever their number.
        crowded: true,
    })
}

type Memory = Vec<Vec<u8>>;

/// One rank's call of a collective on blocks.
fn make(ranks: u32, spread: &Spread, c: &mut Communicator<Local>, memory: &mut [u8]) -> Result<(), Error> {
    let part = spread.of(ranks, c.rank());
    let (mut blocks, mut data) = (None, None);
    // Two parts of one piece of memory: the borrow checker can't see that they are apart.
    let all = Buf::of_mut(memory);
    for half in [false, true] {
        // SAFETY: the parts lie apart in the memory, which outlives the call.
        let memory = unsafe { std::slice::from_raw_parts_mut(all.ptr(), all.len()) };
        if half { data = part.data(memory) } else { blocks = part.blocks(memory) }
    }
    match spread.direction {
        Direction::Scatter => c.call(|me| P2Scatter::new(me, blocks, data, spread.root)),
        Direction::Gather => c.call(|me| P2Gather::new(me, data, blocks, spread.root)),
        Direction::Allgather => c.call(|me| P2Allgather::new(me, data, blocks.expect("all ranks have them"))),
    }
}

/// One rank's blocking calls.
fn blocking(plan: &Plan, c: &mut Communicator<Local>) -> Memory {
    let rank = c.rank();
    let call = |(index, &operation): (usize, &Operation)| {
        let mut memory = plan.before(rank, index);
        match operation {
            Operation::Barrier(algorithm) => c.run(&Call::Barrier { algorithm }).map(drop),
            Operation::Spread(spread) => make(plan.ranks, &spread, c, &mut memory),
            Operation::Bcast { root, algorithm, bytes, seed } => {
                let shape = Shape::of(seed, rank, bytes);
                let data = Data::typed(&mut memory, shape.count as u64, shape.datatype()).unwrap();
                c.run(&Call::Bcast { data, root, algorithm }).map(drop)
            }
            Operation::Allreduce { fold, in_place: true, .. } => c.allreduce_in_place(&mut memory, fold.op()),
            Operation::Allreduce { fold, count, .. } => {
                let (send, receive) = memory.split_at_mut(count * fold.element());
                c.allreduce(send, receive, fold.op())
            }
        }
        .unwrap_or_else(|e| panic!("rank {rank}, operation {index} {operation:?}: {e}"));
        memory
    };
    plan.operations.iter().enumerate().map(call).collect()
}

/// The same operations, up to [`ACTIVE`] of them in flight.
fn nonblocking(plan: &Plan, c: &mut Communicator<Local>) -> Memory {
    let rank = c.rank();
    let mut memories: Memory = (0..plan.operations.len()).map(|index| plan.before(rank, index)).collect();
    let shape = |operation: &Operation| match *operation {
        Operation::Bcast { bytes, seed, .. } => Shape::of(seed, rank, bytes),
        _ => Shape::of(0, 0, 0),
    };
    let shapes: Vec<Shape> = plan.operations.iter().map(shape).collect();
    c.scope(|scope| {
        let mut flying = VecDeque::new();
        for ((operation, memory), shape) in plan.operations.iter().zip(&mut memories).zip(&shapes) {
            if flying.len() == ACTIVE {
                let oldest = flying.pop_front().expect("there are several");
                scope.wait(oldest)?;
                assert!(scope.test(oldest)?);
            }
            flying.push_back(match *operation {
                Operation::Barrier(algorithm) => scope.start_barrier(algorithm)?,
                Operation::Bcast { root, algorithm, .. } => {
                    let data = Data::typed(memory, shape.count as u64, shape.datatype())?;
                    scope.start_bcast(data, root, algorithm)?
                }
                Operation::Spread(_) => continue,
                Operation::Allreduce { fold, count, .. } => {
                    let (send, receive) = memory.split_at_mut(count * fold.element());
                    scope.start_allreduce(send, receive, fold.op())?
                }
            });
        }
        Ok(())
    })
    .unwrap_or_else(|e| panic!("rank {rank}: {e}"));
    memories
}

fn check(params: Params, plan: Plan, run: fn(&Plan, &mut Communicator<Local>) -> Memory) {
    let found = {
        let plan = plan.clone();
        bounded(move || unisono_local::run(params, |mut c| run(&plan, &mut c)).unwrap())
    };
    for (rank, memories) in (0..).zip(&found) {
        for (index, memory) in memories.iter().enumerate() {
            let operation = plan.operations[index];
            assert_eq!(*memory, plan.after(rank, index), "rank {rank}, operation {index} {operation:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, max_shrink_iters: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn sequences_of_blocking_calls(params in params(), choices in prop::collection::vec(any::<Choice>(), 1..60)) {
        let operations = choices.into_iter().map(|choice| operation(&params, choice)).collect();
        check(params, Plan { ranks: params.ranks, operations }, blocking);
    }

    #[test]
    fn sequences_of_nonblocking_calls(params in params(), choices in prop::collection::vec(any::<Choice>(), 1..60)) {
        let mut operations: Vec<_> = choices.into_iter().map(|choice| operation(&params, choice)).collect();
        // A scope does not start these yet.
        operations.retain(|operation| !matches!(operation, Operation::Spread(_)));
        for operation in &mut operations {
            if let Operation::Allreduce { in_place, .. } = operation {
                // A scope's allreduce has two buffers.
                *in_place = false;
            }
        }
        check(params, Plan { ranks: params.ranks, operations }, nonblocking);
    }
}

/// One communicator per p and shape of queues; on it every algorithm and tree, every root, every edge size.
#[test]
fn every_root_tree_and_size() {
    for ranks in 1..=17 {
        let (slots, sets, fragment) = [(4, 2, 5), (3, 3, 8), (2, 1, 3)][ranks as usize % 3];
        let params = Params {
            ranks,
            page: 256,
            lines: 4,
            queue_slots: 1 << (ranks % 3),
            queue_fragment: 64,
            cico: Some(Cico { slots, fragment, sets }),
            mailboxes: None,
            // Short reductions keep the order of ranks then, as the oracle does, whatever their number.
            crowded: true,
        };
        let algorithms = TREES.map(BcastAlgorithm::Cico).into_iter();
        let algorithms = algorithms.chain([
            BcastAlgorithm::Posted,
            BcastAlgorithm::Groups,
            BcastAlgorithm::Queue,
            BcastAlgorithm::Auto,
        ]);
        let mut operations = Vec::new();
        for algorithm in algorithms {
            for root in 0..ranks {
                for (bytes, seed) in sizes(&params, algorithm).into_iter().zip(u64::from(root)..) {
                    operations.push(Operation::Bcast { root, algorithm, bytes, seed });
                }
            }
        }
        check(params, Plan { ranks, operations }, blocking);
    }
}

/// Every p, collective on blocks, root and edge of a fragment, a set or a queue; in place and not.
#[test]
fn every_root_and_size_of_blocks() {
    for ranks in 1..=9 {
        let (slots, sets, fragment) = [(4, 2, 5), (3, 3, 8), (2, 1, 3), (1, 1, 7)][ranks as usize % 4];
        let params = Params { page: 256, cico: Some(Cico { slots, fragment, sets }), ..Params::new(ranks) };
        let mut operations = Vec::new();
        for root in 0..ranks {
            for (most, seed) in sizes(&params, BcastAlgorithm::Cico(Tree::Flat)).into_iter().zip(u64::from(root)..) {
                for direction in [Direction::Scatter, Direction::Gather, Direction::Allgather] {
                    for (in_place, equal) in [(false, false), (true, false), (false, true), (true, true)] {
                        let seed = seed * 4 + u64::from(in_place);
                        operations.push(Operation::Spread(Spread { direction, root, in_place, most, equal, seed }));
                    }
                }
            }
        }
        check(params, Plan { ranks, operations }, blocking);
    }
}

/// Every p, barrier, fold and count.
#[test]
fn every_barrier_and_fold() {
    for ranks in 1..=17 {
        let params = Params { lines: 2, ..Params::new(ranks).with_crowded(true) };
        let barriers = (1..=5).map(BarrierAlgorithm::Combining);
        let barriers =
            barriers.chain([BarrierAlgorithm::Dissemination, BarrierAlgorithm::Doubling, BarrierAlgorithm::Central]);
        let mut operations: Vec<_> = barriers.map(Operation::Barrier).collect();
        for fold in [Fold::SumF64, Fold::SumI64, Fold::Affine] {
            for count in 0..=48 / fold.element() {
                operations.extend([false, true].map(|in_place| Operation::Allreduce { fold, count, in_place }));
            }
        }
        check(params, Plan { ranks, operations }, blocking);
    }
}

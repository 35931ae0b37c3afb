//! Compositions over two levels, between threads: every placement, root, length, in place, order.

mod common;

use common::bounded;
use unisono_kernel::algorithm::{BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::comm::Comm;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::Datatype;
use unisono_kernel::hier::{
    Home, Levels, Nodes, Ordered, Rows, Spans, Switches, allgather, allreduce, alltoall, alltoallv, barrier, bcast,
    gather, reduce, reduce_scatter, scatter,
};
use unisono_kernel::machine::Machine;
use unisono_kernel::machine::poll::Poll;
use unisono_kernel::machine::transport::Shared;
use unisono_kernel::msg::levels::{self, Way};
use unisono_kernel::msg::{self, Memory, Needs, Parts, PlanError};
use unisono_kernel::pattern::Seat;
use unisono_kernel::pattern::bagds::{self, Table};
use unisono_kernel::region::{Counter, Params, Word};
use unisono_kernel::table::By;
use unisono_kernel::topology::group::Place;
use unisono_local::{Mailbox, Mailboxes, Segment};
use unisono_verify::cases::bytes;
use unisono_verify::cases::{FOLDS, folded, operand, to_bytes};
use unisono_verify::oracle::{Fold, mix};

/// The node of each rank: blocks, equal and not; round robin; any. And the switch of each node, where there are several, and
/// fewer than nodes.
const PLACEMENTS: [(&[u32], &[u32]); 12] = [
    (&[0, 0, 1, 1], &[]),
    (&[0, 0, 0, 1], &[]),
    (&[0, 1, 1, 1, 2, 2], &[]),
    (&[0, 1, 0, 1], &[]),
    (&[0, 1, 2, 0, 1, 2, 0], &[0, 0, 1]),
    (&[0, 1, 1, 0, 2, 0], &[0, 1, 0]),
    (&[0, 0, 0], &[]),
    (&[0, 1, 2], &[]),
    (&[0, 0, 1, 2, 2], &[0, 1, 1]),
    (&[0, 1, 2, 3, 4, 5, 1, 4], &[0, 1, 0, 2, 1, 0]),
    (&[0, 0, 1, 1, 2, 2, 3, 3], &[0, 0, 1, 1]),
    (&[0, 1, 2, 2, 0, 1], &[0, 1, 0]),
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
    /// Are there several switches?
    switched: bool,
    homes: &'n [Home],
    rank: u32,
    scratch: Vec<u8>,
}

impl Member<'_> {
    fn finish(&mut self, mut machine: impl Machine<Levels<Segment, Mailbox>>) {
        while let Poll::Wait(_) = machine.poll(&mut self.x).expect("a poll that fails") {
            std::thread::yield_now();
        }
    }

    fn size(&self) -> u32 {
        self.nodes.size()
    }

    /// Algorithms among all leaders alike; and those of these names over switches, where there are some.
    fn ways<A: Copy>(&self, flat: &[A], over: &[&str]) -> Vec<By<A>> {
        let named = |name: &&str| Way::Levels(levels::Algorithm::from_name(name).unwrap());
        let over = over.iter().filter(|_| self.switched).map(named);
        flat.iter().copied().map(Way::Flat).chain(over).collect()
    }
}

/// Runs `body` on a thread per rank of each placement; segments are so small that all queues turn over.
fn everywhere(body: impl Fn(&mut Member<'_>) + Sync + Send + Copy + 'static) {
    bounded(move || {
        for (placement, switches) in PLACEMENTS {
            let (homes, leaders) = homes(placement);
            let (mut places, mut order) = (vec![Place::default(); switches.len()], vec![0; switches.len()]);
            let mut line = order.clone();
            let several = !switches.is_empty();
            let switches = Switches::build(switches, &mut places, &mut order, &mut line).unwrap();
            assert_eq!(switches.is_some(), several);
            let per_node = |node| homes.iter().filter(|home| home.node == node).count() as u32;
            let segment = |node| {
                Segment::new(Params { lines: 2, queue_slots: 2, queue_fragment: 64, ..Params::new(per_node(node)) })
            };
            let segments: Vec<_> = (0..leaders.len() as u32).map(|node| segment(node).unwrap()).collect();
            std::thread::scope(|scope| {
                for (messages, rank) in Mailboxes::connect(homes.len() as u32).into_iter().zip(0..) {
                    let nodes = Nodes::new(&homes, &leaders, rank).unwrap().over(switches);
                    let count = nodes.count();
                    let segment = segments[nodes.home().node as usize].clone();
                    let (layout, homes) = (*segment.layout(), homes.as_slice());
                    let comm = Comm::new(segment, layout, nodes.home().rank).unwrap();
                    scope.spawn(move || {
                        let mut work = vec![0; bagds::work_words(count)];
                        let mut stages = vec![0; bagds::table_words(count, bagds::stages(count, &mut work).unwrap())];
                        let seat = Seat::new(nodes.home().node, count).unwrap();
                        let nodes = nodes.in_stages(Some(Table::new(seat, &mut work, &mut stages).unwrap()));
                        let (x, switched) = (Levels { comm, messages }, switches.is_some());
                        body(&mut Member { x, nodes, switched, homes, rank, scratch: Vec::new() });
                    });
                }
            });
        }
    });
}

const LENGTHS: [u64; 4] = [0, 1, 8, 300];

/// Bytes of a segment: one or few elements, some of them, all.
const SEGMENTS: [u64; 3] = [1, 100, 1 << 18];

#[test]
fn broadcasts() {
    use msg::bcast::Algorithm::{Knomial, ScatterAllgather};
    everywhere(|me| {
        let ways = me.ways(
            &[Knomial(2), ScatterAllgather],
            &["levels/flat:chain", "levels-50/kary-3", "levels/slices", "levels0-50/flat"],
        );
        for root in 0..me.size() {
            for (len, &outside) in LENGTHS.into_iter().flat_map(|len| ways.iter().map(move |way| (len, way))) {
                for segment in SEGMENTS {
                    let algorithms = bcast::Algorithms { between: outside, inside: BcastAlgorithm::Auto, segment };
                    let mut data = bytes(me.rank, len);
                    let (nodes, buffer) = (me.nodes, Buf::of_mut(&mut data));
                    // SAFETY: `data` is this thread's, and outlives the machine, which ends below.
                    let machine = unsafe { bcast::machine(me.x.shared().1, nodes, buffer, root, algorithms) };
                    me.finish(machine.unwrap());
                    assert_eq!(data, bytes(root, len), "{nodes:?} root={root} {segment}");
                }
            }
        }
    });
}

/// No rank leaves a barrier before all have entered: each rank's broadcast of a count comes after.
#[test]
fn barriers() {
    static COME: Word = Word::zero();
    everywhere(|me| {
        let ways = [msg::barrier::Algorithm::Dissemination, msg::barrier::Algorithm::Tournament];
        let ways = me.ways(&ways, &["levels", "levels/flat:chain"]);
        for time in 1..=20 {
            let before = COME.fetch_add(1).unchecked();
            let outside = ways[time % ways.len()];
            let nodes = me.nodes;
            let algorithms = barrier::Algorithms { between: outside, inside: BarrierAlgorithm::Auto };
            let machine = barrier::machine(me.x.shared().1, nodes, algorithms).unwrap();
            me.finish(machine);
            let size = u64::from(me.size());
            // Of this placement, at least so many have come since this one did in the round before.
            assert!(Counter::load_acquire(&COME).at_least(before / size * size + size), "{nodes:?}");
            let machine = barrier::machine(me.x.shared().1, nodes, algorithms).unwrap();
            me.finish(machine);
            if me.rank == 0 && time == 20 {
                Counter::store_release(&COME, 0);
            }
        }
    });
}

/// An algorithm with each size of segments.
fn with_segments<A: Copy>(algorithm: A) -> impl Iterator<Item = (A, u64)> {
    SEGMENTS.into_iter().map(move |segment| (algorithm, segment))
}

/// A rank's input and its result area; in place they are the same memory.
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
    let lengths = FOLDS.into_iter().flat_map(|fold| [0, 1, 5, 70].map(|elements| (fold, elements)));
    lengths.flat_map(|(fold, elements)| [(fold, elements, false), (fold, elements, true)])
}

#[test]
fn allreduces() {
    use msg::allreduce::Algorithm::{Doubling, Rabenseifner, Ring};
    const OVER: [&str; 4] =
        ["levels", "levels/flat:halves+rabenseifner", "levels-40/chain", "levels/knomial-3+doubling"];
    everywhere(|me| {
        let ways = me.ways(&[Doubling, Rabenseifner, Ring], &OVER);
        for (fold, elements, in_place) in folds() {
            for (outside, segment) in ways.iter().copied().flat_map(with_segments) {
                let mut operand = to_bytes(&operand(fold, me.rank, elements));
                let (len, op) = (operand.len() as u64, fold.op());
                let plan = match allreduce::plan(me.nodes, len, op, allreduce::Algorithms { between: outside, segment })
                {
                    Ok(plan) => plan,
                    Err(PlanError::Inapplicable { needs: Needs::Commutative, .. }) => {
                        assert!(fold == Fold::Affine && (outside == Way::Flat(Ring) || !me.nodes.in_order()));
                        continue;
                    }
                    Err(PlanError::OverLevels(needs)) => {
                        assert!(fold == Fold::Affine && matches!(outside, Way::Levels(_)), "{needs:?}");
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
                let wanted = folded(fold, 0..me.size(), elements);
                assert!(result == wanted, "{:?} {fold:?} {elements} {outside:?} {in_place} {segment}", me.nodes);
            }
        }
    });
}

#[test]
fn reduce_scatters() {
    everywhere(|me| {
        for (fold, unequal) in FOLDS.into_iter().flat_map(|fold| [(fold, false), (fold, true)]) {
            // Elements of each rank's block: some have none.
            let elements = |rank: u32| if unequal { mix(rank.into()) % 7 } else { 3 };
            let all = (0..me.size()).map(elements).sum();
            let (mut operand, op) = (to_bytes(&operand(fold, me.rank, all)), fold.op());
            let row = Row::of(me.homes, me.nodes.home().node, |rank| elements(rank as u32) * op.element());
            let plan = match reduce_scatter::plan(me.nodes, row.rows(&me.nodes), op) {
                Ok(plan) => plan,
                Err(PlanError::Refused(refusal)) => {
                    assert!(!me.nodes.in_order(), "{refusal}");
                    continue;
                }
                Err(other) => panic!("{other}"),
            };
            let (wanted, own) = (folded(fold, 0..me.size(), all), row.place(me.rank));
            for in_place in [false, true] {
                let mut result = vec![0x55; own.len()];
                me.scratch.resize(plan.scratch() as usize, 0);
                let scratch = Buf::of_mut(&mut me.scratch);
                let send = Buf::of_mut(&mut operand);
                let begin = Buf::new(send.ptr(), own.len());
                let receive = if in_place { begin } else { Buf::of_mut(&mut result) };
                // SAFETY: this thread's memory, which outlives the machine: it ends below.
                let machine = unsafe { plan.machine(me.x.shared().1, send, receive, scratch) }.unwrap();
                me.finish(machine);
                let got = if in_place { &operand[..own.len()] } else { &result[..] };
                assert!(*got == wanted[own.clone()], "{:?} {fold:?} {unequal} {in_place}", me.nodes);
            }
        }
    });
}

#[test]
fn reduces() {
    use msg::reduce::Algorithm::{Knomial, ScatterGather};
    everywhere(|me| {
        let ways = me.ways(
            &[Knomial(2), ScatterGather],
            &["levels/chain:flat", "levels-40/binomial", "levels/flat:slices", "levels0/flat"],
        );
        for root in 0..me.size() {
            for ((fold, elements, in_place), (outside, segment)) in folds()
                .flat_map(|case| ways.iter().copied().flat_map(with_segments).map(move |algorithms| (case, algorithms)))
            {
                let mut operand = to_bytes(&operand(fold, me.rank, elements));
                let (len, op) = (operand.len() as u64, fold.op());
                let plan = match reduce::plan(me.nodes, len, op, root, reduce::Algorithms { between: outside, segment })
                {
                    Ok(plan) => plan,
                    Err(PlanError::Inapplicable { needs: Needs::Commutative, .. }) => {
                        assert!(fold == Fold::Affine && !me.nodes.in_order());
                        continue;
                    }
                    Err(PlanError::OverLevels(needs)) => {
                        assert!(fold == Fold::Affine && matches!(outside, Way::Levels(_)), "{needs:?}");
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
                let wanted =
                    if me.rank == root { folded(fold, 0..me.size(), elements) } else { vec![0x55; len as usize] };
                assert!(result == wanted, "{:?} root={root} {fold:?} {elements} {in_place}", me.nodes);
            }
        }
    });
}

/// The blocks of all ranks: in a row, node by node.
struct Row {
    lengths: Vec<u64>,
    inside: (Vec<u64>, Vec<u64>),
    between: (Vec<u64>, Vec<u64>),
    /// By rank: the displacement of its block.
    at: Vec<usize>,
    bytes: usize,
}

fn starts(lengths: &[u64]) -> Vec<u64> {
    lengths.iter().scan(0, |sum, len| Some(std::mem::replace(sum, *sum + len))).collect()
}

fn spans((lengths, starts): &(Vec<u64>, Vec<u64>)) -> Spans<'_> {
    Spans { lengths, starts }
}

impl Row {
    /// Blocks of different lengths, or of one length.
    fn new(homes: &[Home], node: u32, equal: Option<u64>) -> Self {
        Self::of(homes, node, |rank| equal.unwrap_or(mix(rank as u64) % 90))
    }

    /// Blocks of such lengths.
    fn of(homes: &[Home], node: u32, length: impl Fn(usize) -> u64 + Copy) -> Self {
        let lengths: Vec<u64> = (0..homes.len()).map(length).collect();
        let of = |node: u32| (0..homes.len()).filter(move |&rank| homes[rank].node == node);
        let inside: Vec<u64> = of(node).map(length).collect();
        let nodes = 0..=homes.iter().map(|home| home.node).max().unwrap();
        let between: Vec<u64> = nodes.clone().map(|node| of(node).map(length).sum()).collect();
        let mut at = vec![0; homes.len()];
        let mut bytes = 0;
        for rank in nodes.flat_map(of) {
            at[rank] = bytes;
            bytes += lengths[rank] as usize;
        }
        let (inside, between) = ((inside.clone(), starts(&inside)), (between.clone(), starts(&between)));
        Self { lengths, inside, between, at, bytes }
    }

    fn rows(&self, nodes: &Nodes<'_>) -> Rows<'_> {
        Rows::new(nodes, spans(&self.inside), spans(&self.between)).unwrap()
    }

    fn block(&self, rank: u32) -> Vec<u8> {
        bytes(rank, self.lengths[rank as usize])
    }

    fn place(&self, rank: u32) -> std::ops::Range<usize> {
        let at = self.at[rank as usize];
        at..at + self.lengths[rank as usize] as usize
    }

    fn full(&self) -> Vec<u8> {
        let mut row = vec![0x55; self.bytes];
        (0..self.at.len() as u32).for_each(|rank| row[self.place(rank)].copy_from_slice(&self.block(rank)));
        row
    }
}

const EQUAL: [Option<u64>; 4] = [Some(0), Some(8), Some(90), None];

#[test]
fn allgathers() {
    use msg::allgather::Algorithm::{Bagds, Bruck, Ring};
    everywhere(|me| {
        let (homes, by_switch) = (me.homes.to_vec(), me.nodes.by_switch());
        let ways = me.ways(&[Bruck, Ring, Bagds], &["levels", "levels/chain", "levels/slices"]);
        for (equal, (&outside, in_place)) in EQUAL
            .iter()
            .flat_map(|&equal| ways.iter().flat_map(|way| [(way, false), (way, true)]).map(move |it| (equal, it)))
        {
            let row = Row::new(&homes, me.nodes.home().node, equal);
            let over = by_switch.as_ref().map(Ordered::line);
            let outside = match outside {
                Way::Flat(by) => Way::Flat(by),
                Way::Levels(by) => Way::Levels(allgather::Over(by, over)),
            };
            let plan = allgather::plan(me.nodes, row.rows(&me.nodes), outside).unwrap();
            let (mut send, mut all) = (row.block(me.rank), vec![0x55; row.bytes]);
            let mut own = Some(Buf::of_mut(&mut send));
            if in_place {
                all[row.place(me.rank)].copy_from_slice(&row.block(me.rank));
                let leads = me.nodes.led().seat().is_some();
                own = (!leads).then(|| Buf::of_mut(&mut all[row.place(me.rank)]));
            }
            let mut scratch = vec![0; plan.scratch() as usize];
            // SAFETY: this thread's memory, which outlives the machine: it ends below.
            let machine =
                unsafe { plan.machine(me.x.shared().1, own, Buf::of_mut(&mut all), Buf::of_mut(&mut scratch)) };
            me.finish(machine.unwrap());
            assert!(all == row.full(), "{:?} {equal:?} {outside:?} {in_place}", me.nodes);
        }
    });
}

#[test]
fn gathers_and_scatters() {
    everywhere(|me| {
        let (homes, by_switch) = (me.homes.to_vec(), me.nodes.by_switch());
        let ways = [None, by_switch.as_ref().map(Ordered::line)];
        for (root, over) in (0..me.size()).flat_map(|root| ways.map(|over| (root, over))) {
            for (equal, in_place) in EQUAL.iter().flat_map(|&equal| [(equal, false), (equal, true)]) {
                let row = Row::new(&homes, me.nodes.home().node, equal);
                let (rows, is_root) = (row.rows(&me.nodes), me.rank == root);
                let plan = gather::plan(me.nodes, rows, root, over).unwrap();
                let mut all = if is_root { vec![0x55; row.bytes] } else { Vec::new() };
                let (block, mut scratch) = (row.block(me.rank), vec![0; plan.scratch() as usize]);
                let stays = is_root && in_place;
                if stays {
                    all[row.place(me.rank)].copy_from_slice(&block);
                }
                let own = (!stays).then(|| Buf::of(&block));
                // SAFETY: this thread's memory, which outlives the machine: it ends below.
                let machine =
                    unsafe { plan.machine(me.x.shared().1, own, Buf::of_mut(&mut all), Buf::of_mut(&mut scratch)) };
                me.finish(machine.unwrap());
                assert!(!is_root || all == row.full(), "{:?} root={root} {equal:?} {in_place}", me.nodes);

                let plan = scatter::plan(me.nodes, rows, root, over).unwrap();
                let mut got = vec![0x55; block.len()];
                let mut scratch = vec![0; plan.scratch() as usize];
                let own = (!stays).then(|| Buf::of_mut(&mut got));
                // SAFETY: this thread's memory, which outlives the machine: it ends below.
                let machine = unsafe { plan.machine(me.x.shared().1, Buf::of(&all), own, Buf::of_mut(&mut scratch)) };
                me.finish(machine.unwrap());
                assert!(stays || got == block, "{:?} root={root} {equal:?} {in_place}", me.nodes);
            }
        }
    });
}

/// Where only the root knows all lengths, the lengths travel first, then the blocks; each process is given only the
/// lengths that it may know.
#[test]
fn gathervs_and_scattervs() {
    everywhere(|me| {
        let (homes, home) = (me.homes.to_vec(), me.nodes.home());
        for (root, in_place) in (0..me.size()).flat_map(|root| [(root, false), (root, true)]) {
            let (is_root, led) = (me.rank == root, me.nodes.led_by(root).unwrap());
            let stays = is_root && in_place;
            let all = Row::new(&homes, home.node, None);
            // What this process may know.
            let (mut inside, mut between) = (Default::default(), (vec![0; all.between.0.len()], all.between.1.clone()));
            if is_root {
                between.0.clone_from(&all.between.0);
            }
            if led.seat().is_some() {
                inside = all.inside.clone();
                between.0[home.node as usize] = all.between.0[home.node as usize];
            }
            let rows = Rows::told(&me.nodes, spans(&inside), spans(&between)).unwrap();

            let eight = Row::new(&homes, home.node, Some(8));
            let mut lengths = vec![0; if is_root { eight.bytes } else { 0 }];
            let own = all.lengths[me.rank as usize].to_ne_bytes();
            let plan = gather::plan(me.nodes, eight.rows(&me.nodes), root, None).unwrap();
            let mut scratch = vec![0; plan.scratch() as usize];
            // SAFETY: this thread's memory, which outlives the machine: it ends below; so of all others.
            let machine = unsafe {
                let (send, row, scratch) = (Buf::of(&own), Buf::of_mut(&mut lengths), Buf::of_mut(&mut scratch));
                plan.machine(me.x.shared().1, Some(send), row, scratch)
            };
            me.finish(machine.unwrap());
            if led.seat().is_some() && !is_root {
                let told: Vec<u8> = all.inside.0.iter().flat_map(|len| len.to_ne_bytes()).collect();
                assert!(scratch.starts_with(&told), "{:?} root={root}: a leader is not told lengths", me.nodes);
            }
            for rank in (0..me.size()).filter(|_| is_root) {
                assert_eq!(lengths[eight.place(rank)], all.lengths[rank as usize].to_ne_bytes());
            }

            let plan = gather::plan(me.nodes, rows, root, None).unwrap();
            let mut blocks = if is_root { vec![0x55; all.bytes] } else { Vec::new() };
            let (block, mut scratch) = (all.block(me.rank), vec![0; plan.scratch() as usize]);
            if stays {
                blocks[all.place(me.rank)].copy_from_slice(&block);
            }
            let own = (!stays).then(|| Buf::of(&block));
            // SAFETY: as above.
            let machine =
                unsafe { plan.machine(me.x.shared().1, own, Buf::of_mut(&mut blocks), Buf::of_mut(&mut scratch)) };
            me.finish(machine.unwrap());
            assert!(!is_root || blocks == all.full(), "{:?} root={root} {in_place}", me.nodes);

            let by_switch = me.nodes.by_switch();
            if let Some(over) = &by_switch {
                let refused = scatter::plan(me.nodes, rows, root, Some(over.line()));
                assert!(led.seat().is_none() || refused.is_err(), "who does not know all lengths goes over switches");
            }
            let plan = scatter::plan(me.nodes, rows, root, None).unwrap();
            let (mut got, mut scratch) = (vec![0x55; block.len()], vec![0; plan.scratch() as usize]);
            let own = (!stays).then(|| Buf::of_mut(&mut got));
            // SAFETY: as above.
            let machine = unsafe { plan.machine(me.x.shared().1, Buf::of(&blocks), own, Buf::of_mut(&mut scratch)) };
            me.finish(machine.unwrap());
            assert!(stays || got == block, "{:?} root={root} {in_place}", me.nodes);
        }
    });
}

/// The block that goes from one rank to another.
fn between(from: u32, to: u32, len: u64) -> Vec<u8> {
    bytes(1000 * from + to, len)
}

/// Blocks of these lengths, one for each rank, with gaps below `gaps` between them; `block` gives the data of each.
fn laid_out(lengths: &[u64], gaps: usize, block: impl Fn(u32, u64) -> Vec<u8>) -> (Vec<u64>, Vec<u8>) {
    let (mut starts, mut memory) = (Vec::new(), Vec::new());
    for (rank, &len) in (0..).zip(lengths) {
        memory.resize(memory.len() + rank as usize % gaps, 0x66);
        starts.push(memory.len() as u64);
        memory.extend(block(rank, len));
    }
    (starts, memory)
}

#[test]
fn alltoalls_between_ranks() {
    everywhere(|me| {
        // In place needs lengths that are the same both ways.
        let symmetric = |a: u32, b: u32| mix(u64::from(a.min(b) * 100 + a.max(b))) % 200;
        let any = |a: u32, b: u32| if (a + b).is_multiple_of(4) { 0 } else { mix(u64::from(a * 100 + b)) % 200 };
        let (rank, homes) = (me.rank, me.homes);
        for (in_place, equal) in [(false, false), (true, false), (false, true), (true, true)] {
            let len = |a, b| match (equal, in_place) {
                (true, _) => 90,
                (false, true) => symmetric(a, b),
                (false, false) => any(a, b),
            };
            let (sent, got): (Vec<u64>, Vec<u64>) = (0..me.size()).map(|r| (len(rank, r), len(r, rank))).unzip();
            let gaps = if equal { 1 } else { 3 };
            let (mut from, send) = laid_out(&sent, gaps, |to, len| between(rank, to, len));
            let (to, wanted) = laid_out(&got, gaps, |from, len| between(from, rank, len));
            let mut receive = match in_place {
                true => send.clone(),
                false => laid_out(&got, gaps, |_, len| vec![0x55; len as usize]).1,
            };
            if in_place {
                from.clone_from(&to);
            }
            let near = |list: &[u64]| -> Vec<u64> {
                let here = |rank: &usize| homes[*rank].node == homes[me.rank as usize].node;
                (0..homes.len()).filter(here).map(|rank| list[rank]).collect()
            };
            let lists = [&sent, &from, &got, &to].map(|list| near(list));
            let parts = |counts, starts| match equal {
                true => Parts::equal(me.nodes.size(), 90).unwrap(),
                false => Parts::vary(me.nodes.size(), counts, starts, 1).unwrap(),
            };
            let out = (!in_place).then(|| parts(&sent, &from));
            let plan = alltoallv::plan(me.nodes, out, parts(&got, &to)).unwrap();
            let mut scratch = vec![0; plan.scratch() as usize];
            let (source, target) = ((!in_place).then(|| Buf::of(&send)), Buf::of_mut(&mut receive));
            // SAFETY: this thread's memory, which outlives the machine: it ends below; so of all others.
            let inward = unsafe { Blocks::vary(target, &lists[2], &lists[3], Datatype::BYTE) }.unwrap();
            let outward = source.map(|source| {
                // SAFETY: as above; only read.
                unsafe { Blocks::vary(source, &lists[0], &lists[1], Datatype::BYTE) }.unwrap()
            });
            let (near, scratch) = (alltoallv::Near { send: outward, receive: inward }, Buf::of_mut(&mut scratch));
            // SAFETY: as above.
            let machine = unsafe { plan.machine(me.x.shared().1, source, target, near, scratch) };
            me.finish(machine.unwrap());
            assert!(receive == wanted, "{:?} {in_place} {equal}", me.nodes);
        }
    });
}

#[test]
fn alltoalls_through_leaders() {
    everywhere(|me| {
        let (rank, size) = (me.rank, me.size());
        let mut order: Vec<u32> = (0..size).collect();
        order.sort_by_key(|&rank| me.homes[rank as usize].node);
        let per_node = |node| me.homes.iter().filter(|home| home.node == node).count() as u64;
        let ranks: Vec<u64> = (0..me.nodes.count()).map(per_node).collect();
        let starts = starts(&ranks);
        let by_switch = me.nodes.by_switch();
        let alike = ranks.iter().all(|count| *count == ranks[0]);
        let ways = [None, by_switch.as_ref().map(Ordered::line)];
        let cases = [0, 1, 8, 90].into_iter().flat_map(|block| [(block, false), (block, true)]);
        for ((block, in_place), over) in cases.flat_map(|case| ways.map(|over| (case, over))) {
            let vector = |of: &dyn Fn(u32) -> Vec<u8>| -> Vec<u8> { order.iter().flat_map(|&peer| of(peer)).collect() };
            let mut send = vector(&|to| between(rank, to, block));
            let wanted = vector(&|from| between(from, rank, block));
            let mut receive = vec![0x55; send.len()];
            let (from, to) = match in_place {
                true => (Buf::of_mut(&mut send), Buf::of_mut(&mut send)),
                false => (Buf::of(&send), Buf::of_mut(&mut receive)),
            };
            let plan = alltoall::plan(me.nodes, Spans { lengths: &ranks, starts: &starts }, block, over);
            if over.is_some() && !alike {
                assert!(
                    me.nodes.led().seat().is_none() || plan.is_err(),
                    "nodes of different lengths go over switches"
                );
                continue;
            }
            let plan = plan.unwrap();
            let mut scratch = vec![0; plan.scratch() as usize];
            // SAFETY: this thread's memory, which outlives the machine: it ends below.
            let machine = unsafe { plan.machine(me.x.shared().1, from, to, Buf::of_mut(&mut scratch)) };
            me.finish(machine.unwrap());
            assert!(if in_place { send == wanted } else { receive == wanted }, "{:?} {block} {in_place}", me.nodes);
        }
    });
}

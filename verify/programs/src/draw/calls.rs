//! Draws calls: data, datatypes, algorithms, and segments.

use super::{Draw, Random};
use crate::program::{Call, MOST, Name, Op, Segment, Shape, Side};
use unisono_kernel::region::Base;

impl Draw {
    /// Draws a call; with this root, if one is given.
    pub(super) fn call(&mut self, comm: usize, root: Option<u32>) -> usize {
        use Name::*;
        let size = self.groups[comm].len() as u32;
        let name = loop {
            let name = *self.random.of(Name::COLLECTIVES);
            // Collectives in which each pair has a length of its own are drawn more often.
            let name = if self.random.chance(15) { Alltoallv } else { name };
            if root.is_none() || name.rooted() {
                break name;
            }
        };
        let op = match name.folds() {
            false => Op::None,
            true => *self.random.of(&[Op::Sum8, Op::Sum64, Op::Xor64, Op::Max64, Op::Add, Op::Affine, Op::Affine]),
        };
        let (user, slot) = (matches!(op, Op::Add | Op::Affine), self.program.segment(comm).fragment);
        let tiny = self.budget.tiny;
        let mut element = match op.element() {
            Some(element) => element,
            None if name == Barrier => 1,
            None => match self.random.below(12) {
                0 if user => MOST.min(slot),
                1 if user => self.random.below(MOST.min(slot)) + 1,
                2 => self.random.below(64) + 1,
                3..6 => *self.random.of(&[2, 3, 4, 6, 8, 12, 16, 24]),
                6 => *self
                    .random
                    .of(&[100, 512, 1000, 4096].map(|bytes: u64| if user || tiny { bytes.min(slot) } else { bytes })),
                _ => 1,
            },
        };
        let counts = name.counts(size as usize).unwrap_or(0);
        let each = self.budget.bytes / if name.rooted() && !name.varies() { 1 } else { u64::from(size) };
        let zeros = if counts > 1 { *self.random.of(&[0, 30, 60, 90]) } else { 10 };
        let mut numbers = Vec::new();
        for _ in 0..counts {
            let bytes = if self.random.chance(zeros) { 0 } else { self.bytes(comm, each) };
            let up = self.random.chance(30) && bytes > 0;
            numbers.push((bytes / element + u64::from(up && bytes % element > 0)) as i64);
        }
        // Elements longer than a slot can't be folded.
        if user && slot < MOST && numbers.iter().all(|&count| count == 0) {
            element = slot + 1 + self.random.below(MOST - slot);
        }
        let in_place = name.may_be_in_place() && self.random.chance(20);
        if in_place && matches!(name, Alltoallv | Alltoallw) {
            let size = size as usize;
            (0..size).for_each(|i| (0..i).for_each(|j| numbers[i * size + j] = numbers[j * size + i]));
        }
        let call = self.plain(comm, name, numbers);
        let root = root.unwrap_or_else(|| self.random.below(size.into()) as u32);
        let order = *self.random.of(&[0, 0, 1, 2]);
        let shapes = if name.folds() || name == Barrier { Vec::new() } else { self.shapes(size, name, element) };
        let algorithm = self.algorithm(call);
        let root = if name.rooted() { root } else { 0 };
        let one = &mut self.program.calls[call];
        (one.root, one.in_place, one.op, one.element, one.order) = (root, in_place, op, element, order);
        (one.shapes, one.algorithm) = (shapes, algorithm);
        if self.program.check_call(&self.program.calls[call], size).is_err() {
            self.program.calls[call].algorithm = "auto".into();
        }
        call
    }

    /// The segment of a communicator whose memory can't be chosen. Between processes its counts begin where the first
    /// communicator's do, except for central barriers.
    pub(super) fn unchosen(&self) -> Segment {
        let [operation, clock, sets, _] = self.program.segment(0).base;
        Segment { base: [operation, clock, sets, 0], ..Segment::default() }
    }

    /// A number of bytes around a bound in the code.
    fn bytes(&mut self, comm: usize, most: u64) -> u64 {
        let Segment { slots, fragment, papers, .. } = self.program.segment(comm);
        let queue = u64::from(slots) * fragment;
        // So many of small slots are enough.
        let most = most.min(if self.budget.tiny { 5 } else { 256 } * fragment);
        let paper = papers.map_or(1024, |papers| papers.1);
        let bounds =
            [8, 48, 64, 104, 112, 128, 1024, 4096, 1 << 14, 1 << 18, fragment, queue / 2, queue, 3 * fragment, paper];
        let random = &mut self.random;
        let bytes = match random.below(8) {
            0 => random.below(130),
            1 => random.below(9),
            2 => random.below(most + 1),
            3 => random.of(&bounds) * (1 + random.below(5)),
            _ => *random.of(&bounds),
        };
        (bytes + random.of(&[0, 0, 1, 8, 16])).saturating_sub(*random.of(&[0, 0, 1, 8, 9])).min(most)
    }

    fn shapes(&mut self, size: u32, name: Name, element: u64) -> Vec<(u32, Side, Shape)> {
        let (random, mut shapes) = (&mut self.random, Vec::new());
        if random.chance(50) {
            return shapes;
        }
        let divisors: Vec<u64> = (1..=element).filter(|&block| element.is_multiple_of(block)).collect();
        for rank in 0..size {
            for side in [Side::Send, Side::Receive] {
                let (block, gap) = (*random.of(&divisors), random.below(6));
                let shape = match random.below(5) {
                    0 => Shape::Vector { block, gap },
                    1 => Shape::Backwards { block, gap },
                    2 => Shape::Struct { block: random.below(element), gap },
                    _ => continue,
                };
                if side == Side::Send || name != Name::Bcast {
                    shapes.push((rank, side, shape));
                }
            }
        }
        shapes
    }

    fn algorithm(&mut self, call: usize) -> String {
        use Name::*;
        let call = &self.program.calls[call];
        let names: &[&str] = match call.name {
            _ if !self.budget.algorithms => &["auto"],
            Barrier => {
                &["auto", "posted", "dissemination", "doubling", "central", "combining-1", "combining-2", "combining-3"]
            }
            Bcast => &["auto", "posted", "groups", "queue", "cico-flat", "cico-chain", "cico-binomial", "cico-kary-3"],
            Gatherv | Scatter | Scatterv => &["auto", "exchange", "cico"],
            Gather | Allgather | Allgatherv => &["auto", "exchange", "cico", "groups", "groups"],
            Alltoall | ReduceScatter | ReduceScatterBlock => &["auto", "exchange", "groups", "groups"],
            Scan | Exscan => &["auto", "doubling", "groups", "groups"],
            Reduce => &["auto", "tree", "slices", "slices", "groups", "groups"],
            Allreduce => &["auto", "auto", "posted", "doubling", "slices", "groups", "groups"],
            _ => &["auto"],
        };
        if self.random.chance(50) { "auto".into() } else { (*self.random.of(names)).into() }
    }

    /// A call without buffers.
    pub(super) fn plain(&mut self, comm: usize, name: Name, numbers: Vec<i64>) -> usize {
        self.program.calls.push(Call {
            comm,
            name,
            algorithm: "auto".into(),
            root: 0,
            in_place: false,
            op: Op::None,
            element: 1,
            order: 0,
            numbers,
            shapes: Vec::new(),
        });
        self.program.calls.len() - 1
    }

    pub(super) fn segment(&mut self) -> Segment {
        let random = &mut self.random;
        /// The numbers of lines, slots and bytes of a slot; of the papers' slots, and their bytes.
        type Sizes<'a> = (&'a [u32], &'a [u32], &'a [u64], &'a [u32], &'a [u64]);
        let (lines, slots, fragments, papers, parts): Sizes<'_> = match self.budget.tiny {
            true => (&[2, 4], &[1, 2, 2, 4, 4], &[64, 64, 128, 192], &[1, 2, 2], &[8, 24, 64]),
            false => (
                &[2, 4, 8, 64],
                &[1, 2, 2, 4, 4, 8, 16],
                &[64, 256, 512, 1024, 4096, 4096, 8192, 32 << 10],
                &[1, 2, 4, 8],
                &[64, 100, 1024, 4096],
            ),
        };
        let (lines, slots, fragment) = (*random.of(lines), *random.of(slots), *random.of(fragments));
        let papers = (self.budget.algorithms && random.chance(50)).then(|| {
            let (slots, fragment) = (*random.of(papers), *random.of(parts));
            (slots, fragment, (*random.of(&[1, 2, 4])).min(slots))
        });
        let mut base = [0; 4];
        if self.budget.wraps && random.chance(50) {
            for count in &mut base {
                let near = |random: &mut Random, bits: u32| (1u64 << bits) - 1 - random.below(12);
                *count = match *random.of(&[0, 8, 16, 24, 32, 40, 62]) {
                    0 => random.below(100),
                    bits => near(random, bits),
                };
            }
            base[3] = base[3].min(Base::MOST_CENTRALS - 1);
        }
        Segment { lines, slots, fragment, papers, base }
    }
}

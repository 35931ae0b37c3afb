//! Each collective of a rank, compared with what must be received.

use super::*;

impl Seat<'_> {
    pub(super) fn size(&self) -> u32 {
        self.nodes.len() as u32
    }

    pub(super) fn ranks(&self) -> std::ops::Range<Rank> {
        0..self.size()
    }

    /// Makes a call, and waits until it is complete.
    pub(super) fn made(&self, call: impl FnOnce(*mut *mut Started) -> c_int) {
        let mut request = null_mut();
        fine(call(if self.starts { &raw mut request } else { null_mut() }));
        let mut done = c_int::from(!self.starts);
        while done == 0 {
            // SAFETY: a request of ours, or null.
            fine(unsafe { unisono_mpi_levels_test(&raw mut request, &raw mut done) });
            std::thread::yield_now();
        }
        assert!(request.is_null());
    }

    pub(super) fn barrier(&self, round: u32) {
        self.came.fetch_add(1);
        // SAFETY: a communicator; so of all below, with buffers of so many bytes.
        self.made(|request| unsafe { unisono_mpi_levels_barrier(self.levels, request) });
        let all = u64::from((round + 1) * self.size());
        assert!(Counter::load_acquire(self.came).at_least(all), "somebody has not come");
    }

    pub(super) fn bcast(&self, len: u64, root: Rank) {
        let mut buffer = if self.me == root { bytes_of(root, root, len) } else { vec![0; len as usize] };
        // SAFETY: see `barrier`.
        self.made(|request| unsafe {
            unisono_mpi_levels_bcast(self.levels, buffer.as_mut_ptr().cast(), len, root, request)
        });
        assert!(buffer == bytes_of(root, root, len), "{len} bytes of {root}");
    }

    pub(super) fn reduce(&self, count: usize, root: Option<Rank>, in_place: bool) {
        let mine = numbers(self.me, count);
        let is_root = root.is_none_or(|root| self.me == root);
        let mut result = if in_place && is_root { mine.clone() } else { vec![7; count] };
        let send = if in_place && is_root { HERE.cast_const() } else { mine.as_ptr().cast() };
        let (receive, op) = (result.as_mut_ptr().cast(), without_provenance(SUM));
        self.made(|request| match root {
            Some(root) => {
                let receive = if is_root { receive } else { HERE };
                // SAFETY: see `barrier`.
                unsafe { unisono_mpi_levels_reduce(self.levels, send, receive, count as u64, U64, op, root, request) }
            }
            // SAFETY: see `barrier`.
            None => unsafe { unisono_mpi_levels_allreduce(self.levels, send, receive, count as u64, U64, op, request) },
        });
        let sum = |at| self.ranks().map(|rank| number(rank, at)).sum::<u64>();
        let expected: Vec<_> = (0..count).map(|at| if is_root { sum(at) } else { 7 }).collect();
        assert!(result == expected, "{count} numbers to {root:?}");
        assert!(mine == numbers(self.me, count), "the operand is as before");
    }

    pub(super) fn scan(&self, count: usize, in_place: bool, exclusive: bool) {
        let mine = numbers(self.me, count);
        let mut result = if in_place { mine.clone() } else { vec![7; count] };
        let send = if in_place { HERE.cast_const() } else { mine.as_ptr().cast() };
        let (receive, op, levels) = (result.as_mut_ptr().cast(), without_provenance(SUM), self.levels);
        self.made(|request| match exclusive {
            // SAFETY: see `barrier`.
            true => unsafe { unisono_mpi_levels_exscan(levels, send, receive, count as u64, U64, op, request) },
            // SAFETY: see `barrier`.
            false => unsafe { unisono_mpi_levels_scan(levels, send, receive, count as u64, U64, op, request) },
        });
        let ranks = 0..self.me + u32::from(!exclusive);
        let sum = |at| ranks.clone().map(|rank| number(rank, at)).sum::<u64>();
        let untouched = |at: usize| if in_place { mine[at] } else { 7 };
        let expected: Vec<_> = (0..count).map(|at| if ranks.is_empty() { untouched(at) } else { sum(at) }).collect();
        assert!(result == expected, "{count} numbers, {in_place}, {exclusive}");
        assert!(mine == numbers(self.me, count), "the operand is as before");
    }

    pub(super) fn reduce_scatter(&self, counts: &[u64], in_place: bool, equal: bool) {
        let (me, all) = (self.me as usize, counts.iter().sum::<u64>() as usize);
        let (own, before) = (counts[me] as usize, counts[..me].iter().sum::<u64>() as usize);
        let mine = numbers(self.me, all);
        let mut result = if in_place { mine.clone() } else { vec![7; own + 1] };
        let send = if in_place { HERE.cast_const() } else { mine.as_ptr().cast() };
        let (receive, op, levels) = (result.as_mut_ptr().cast(), without_provenance(SUM), self.levels);
        self.made(|request| match equal {
            // SAFETY: see `barrier`.
            true => unsafe {
                unisono_mpi_levels_reduce_scatter_block(levels, send, receive, own as u64, U64, op, request)
            },
            // SAFETY: see `barrier`.
            false => unsafe {
                unisono_mpi_levels_reduce_scatter(levels, send, receive, counts.as_ptr(), U64, op, request)
            },
        });
        let sum = |at| self.ranks().map(|rank| number(rank, before + at)).sum::<u64>();
        assert!(result[..own] == (0..own).map(sum).collect::<Vec<_>>(), "{counts:?}, {in_place}, {equal}");
        assert!(in_place || result[own] == 7, "nothing after the block");
        assert!(mine == numbers(self.me, all), "the operand is as before");
    }

    pub(super) fn allgather(&self, counts: Vec<u64>, lie: Lie, in_place: bool, equal: bool) {
        let own = counts[self.me as usize];
        let (mine, mut all) = (bytes_of(self.me, 0, own), Blocks::new(counts, lie));
        if in_place {
            all.set(self.me, &mine);
        }
        let (levels, to) = (self.levels, all.to());
        let send = if in_place { HERE.cast_const() } else { mine.as_ptr().cast() };
        let (counts, starts) = (all.counts.as_ptr(), all.starts.as_ptr());
        self.made(|request| match equal {
            // SAFETY: see `barrier`.
            true => unsafe { unisono_mpi_levels_allgather(levels, send, to, own, request) },
            // SAFETY: see `barrier`.
            false => unsafe { unisono_mpi_levels_allgatherv(levels, send, own, to, counts, starts, request) },
        });
        assert!(all.memory == all.with(|rank, len| bytes_of(rank, 0, len)), "{:?} {lie:?} {in_place}", all.counts);
    }

    pub(super) fn gather(&self, counts: Vec<u64>, lie: Lie, root: Rank, in_place: bool, equal: bool) {
        let (own, is_root, levels) = (counts[self.me as usize], self.me == root, self.levels);
        let (mine, mut all) = (bytes_of(self.me, root, own), Blocks::new(counts, lie));
        let stays = is_root && in_place;
        if stays {
            all.set(self.me, &mine);
        }
        let send = if stays { HERE.cast_const() } else { mine.as_ptr().cast() };
        let to = if is_root { all.to() } else { HERE };
        let (counts, starts) = if is_root { (all.counts.as_ptr(), all.starts.as_ptr()) } else { (null(), null()) };
        self.made(|request| match equal {
            // SAFETY: see `barrier`.
            true => unsafe { unisono_mpi_levels_gather(levels, send, to, own, root, request) },
            // SAFETY: see `barrier`.
            false => unsafe { unisono_mpi_levels_gatherv(levels, send, own, to, counts, starts, root, request) },
        });
        if is_root {
            assert!(all.memory == all.with(|rank, len| bytes_of(rank, root, len)), "{:?} {lie:?}", all.counts);
        }
        assert!(mine == bytes_of(self.me, root, own), "what is sent is as before");
    }

    pub(super) fn scatter(&self, counts: Vec<u64>, lie: Lie, root: Rank, in_place: bool, equal: bool) {
        let (own, is_root, levels) = (counts[self.me as usize], self.me == root, self.levels);
        let mut all = Blocks::new(counts, lie);
        for (rank, len) in (0..).zip(all.counts.clone()) {
            all.set(rank, &bytes_of(root, rank, len));
        }
        let (before, stays) = (all.memory.clone(), is_root && in_place);
        let mut mine = vec![UNTOUCHED; own as usize];
        let receive = if stays { HERE } else { mine.as_mut_ptr().cast() };
        let from = if is_root { all.to().cast_const() } else { HERE.cast_const() };
        let (counts, starts) = if is_root { (all.counts.as_ptr(), all.starts.as_ptr()) } else { (null(), null()) };
        self.made(|request| match equal {
            // SAFETY: see `barrier`.
            true => unsafe { unisono_mpi_levels_scatter(levels, from, receive, own, root, request) },
            // SAFETY: see `barrier`.
            false => unsafe { unisono_mpi_levels_scatterv(levels, from, counts, starts, receive, own, root, request) },
        });
        let expected = if stays { vec![UNTOUCHED; own as usize] } else { bytes_of(root, self.me, own) };
        assert!(mine == expected, "{:?} {lie:?} of {root}", all.counts);
        assert!(all.memory == before, "what is sent is as before");
    }

    pub(super) fn alltoall(&self, block: u64, in_place: bool) {
        let counts = vec![block; self.nodes.len()];
        let (mut from, mut to) = (Blocks::new(counts.clone(), Lie::Row), Blocks::new(counts, Lie::Row));
        let side = if in_place { &mut to } else { &mut from };
        self.ranks().for_each(|rank| side.set(rank, &bytes_of(self.me, rank, block)));
        let send = if in_place { HERE.cast_const() } else { from.to().cast_const() };
        // SAFETY: see `barrier`.
        self.made(|request| unsafe { unisono_mpi_levels_alltoall(self.levels, send, to.to(), block, request) });
        assert!(to.memory == to.with(|rank, len| bytes_of(rank, self.me, len)), "{block} {in_place}");
    }

    /// In place what two exchange is as long both ways.
    pub(super) fn alltoallv(&self, most: u64, lies: [Lie; 2], in_place: bool) {
        let len = |from: Rank, to: Rank| match in_place {
            true => share(from + to, most),
            false => share(from + 2 * to, most) + u64::from(from > to),
        };
        let mut from = Blocks::new(self.ranks().map(|rank| len(self.me, rank)).collect(), lies[0]);
        let mut to = Blocks::new(self.ranks().map(|rank| len(rank, self.me)).collect(), lies[1]);
        let side = if in_place { &mut to } else { &mut from };
        self.ranks().for_each(|rank| side.set(rank, &bytes_of(self.me, rank, len(self.me, rank))));
        let (send, receive) = (if in_place { HERE } else { from.to() }, to.to());
        let [sent, received] = [&from, &to].map(|side| (side.counts.as_ptr(), side.starts.as_ptr()));
        let sent = if in_place { (null(), null()) } else { sent };
        // SAFETY: see `barrier`.
        self.made(|request| unsafe {
            unisono_mpi_levels_alltoallv(self.levels, send, sent.0, sent.1, receive, received.0, received.1, request)
        });
        assert!(to.memory == to.with(|rank, len| bytes_of(rank, self.me, len)), "{most} {lies:?} {in_place}");
    }

    pub(super) fn every_collective(&self, most: u64) {
        let equal = || vec![most; self.nodes.len()];
        let unequal = || self.ranks().map(|rank| share(rank, most)).collect::<Vec<_>>();
        for root in self.ranks() {
            self.bcast(most, root);
            self.reduce(most as usize / 8, Some(root), root % 2 == 0);
            self.gather(equal(), Lie::Row, root, root % 2 == 1, true);
            self.scatter(equal(), Lie::Row, root, root % 2 == 1, true);
            for lie in [Lie::Row, Lie::Gaps, Lie::Backwards] {
                self.gather(unequal(), lie, root, root % 2 == 0, false);
                self.scatter(unequal(), lie, root, root % 2 == 0, false);
            }
        }
        for in_place in [false, true] {
            self.reduce(most as usize / 8, None, in_place);
            self.scan(most as usize / 8, in_place, false);
            self.scan(most as usize / 8, in_place, true);
            self.reduce_scatter(&vec![most / 8; self.nodes.len()], in_place, true);
            self.reduce_scatter(&unequal().iter().map(|bytes| bytes / 8).collect::<Vec<_>>(), in_place, false);
            self.allgather(equal(), Lie::Row, in_place, true);
            self.alltoall(most, in_place);
            for lie in [Lie::Row, Lie::Gaps, Lie::Backwards] {
                self.allgather(unequal(), lie, in_place, false);
                self.alltoallv(most, [lie, Lie::Gaps], in_place);
                self.alltoallv(most, [Lie::Backwards, lie], in_place);
            }
        }
    }
}

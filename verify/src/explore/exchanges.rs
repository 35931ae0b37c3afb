//! The exchange operations: all collectives that move blocks or reduce through posted lines and the queues.

use unisono_kernel::Rank;
use unisono_kernel::call::any::Any;
use unisono_kernel::comm::Member;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::Refusal;
use unisono_kernel::op::Op;
use unisono_kernel::region::layout::LINE_PAYLOAD;
use unisono_kernel::shm::allgather::exchange::allgather;
use unisono_kernel::shm::allgather::groups;
use unisono_kernel::shm::allreduce::slices::Slices;
use unisono_kernel::shm::alltoall::groups::Grouped;
use unisono_kernel::shm::alltoall::{alltoall, alltoallv};
use unisono_kernel::shm::gather::{self, exchange::Gather};
use unisono_kernel::shm::reduce::exchange::Reduce;
use unisono_kernel::shm::reduce::posted::Posted;
use unisono_kernel::shm::reduce_scatter::{self, exchange::ReduceScatter};
use unisono_kernel::shm::scan::exchange::scan;
use unisono_kernel::shm::scatter::{scatter, scatterv};

/// A collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// Blocks to the root; lengths that only the root knows.
    Gatherv,
    /// Blocks from the root; lengths that only the root knows.
    Scatterv,
    /// Equal blocks from the root.
    Scatter,
    /// Blocks to all.
    Allgather,
    /// The same by groups, of blocks of so many words as an operation has fragments; not one of [`Self::ALL`], as below.
    GroupedAllgather,
    /// The same, columns first, as long blocks go.
    ColumnsAllgather,
    /// Blocks of one length to a root, by groups; the same.
    GroupedGather,
    /// Blocks from all to all, in place.
    Alltoall,
    /// The same by groups, of blocks of so many words as an operation has fragments; among four ranks, of two groups of two. Not one
    /// of [`Self::ALL`], since two ranks are no groups.
    GroupedAlltoall,
    /// The same with lengths that only two ranks know; only those between ranks 0 and 1 are long.
    Alltoallv,
    /// The same, not in place: long from every second rank to the next one; short (side by side) the other way, and
    /// between others.
    Unequal,
    /// A fold to the root.
    Reduce,
    /// A fold to all, which every process computes, in place.
    Allreduce,
    /// A fold to all, by slices.
    Slices,
    /// A fold of a block each.
    ReduceScatter,
    /// The same by groups, as of an alltoall; of sums.
    GroupedReduceScatter,
    /// A fold of the lower ranks' and the process's own operand.
    Scan,
}

impl Collective {
    /// All collectives, and whether they have a root.
    pub const ALL: [(Self, bool); 12] = [
        (Self::Gatherv, true),
        (Self::Scatterv, true),
        (Self::Scatter, true),
        (Self::Allgather, false),
        (Self::Alltoall, false),
        (Self::Alltoallv, false),
        (Self::Unequal, false),
        (Self::Reduce, true),
        (Self::Allreduce, false),
        (Self::Slices, false),
        (Self::ReduceScatter, false),
        (Self::Scan, false),
    ];
}

/// An operation: the collective, its root (0 where it has none), and the number of its fragments; 0: in lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The collective.
    pub collective: Collective,
    /// The root.
    pub root: Rank,
    /// Fragments of a message in the queue; 0: in lines, where the collective can.
    pub fragments: usize,
}

/// `left ∘ right` of an operation that does not commute, and is not associative either: the order shows.
pub(crate) type Fold = fn(u64, u64) -> u64;

impl Exchange {
    /// Words of a block (of the whole vector in a reduction).
    fn words(&self, ranks: u32, slot: usize) -> usize {
        use Collective::{Alltoall, Alltoallv, Gatherv, ReduceScatter, Scatter, Scatterv, Slices, Unequal};
        const LINE: usize = LINE_PAYLOAD as usize / 8;
        let (all, others) = (ranks as usize, (ranks as usize - 1).max(1));
        // Words of one of the pieces in a slot.
        let piece = |pieces| {
            let stride = slot / pieces;
            (stride - stride % if stride < 64 { 16 } else { 64 }) / 8
        };
        match (self.collective, self.fragments) {
            (
                Collective::GroupedGather
                | Collective::GroupedAllgather
                | Collective::ColumnsAllgather
                | Collective::GroupedAlltoall,
                n,
            ) => n,
            (Slices, n) => all * piece(all) * n.max(1) - 1,
            (_, 0) => 1,
            // One word more than fits a line, then than fits side by side; longer blocks go pairwise. Where lengths
            // are not known to all, a header comes first: side by side, or one word in a line.
            (Scatterv | Alltoallv | Unequal, 1) => LINE / others,
            (Scatterv | Alltoallv | Unequal, n) => ((n - 1) * (slot / 8) + 1).max(LINE / others),
            (Scatter | Alltoall, 1) => LINE / others + 1,
            (Scatter | Alltoall, n) => ((n - 2) * (slot / 8) + piece(others) + 1).max(LINE / others + 1),
            (Gatherv, n) => ((n - 1) * (slot / 8) + 1).max(LINE + 1),
            (ReduceScatter, n) => (n * piece(all)).max(LINE / all + 1),
            // The last piece is shorter, where pieces have more than a word.
            (Collective::GroupedReduceScatter, n) => n * piece(all) - usize::from(piece(all) > 1),
            (_, n) => (n - 1) * (slot / 8) + LINE + 1,
        }
    }

    /// Is it a reduction on posted lines?
    fn is_posted(&self) -> bool {
        self.fragments == 0 && matches!(self.collective, Collective::Reduce | Collective::Allreduce | Collective::Scan)
    }

    /// Words of a process's block: those whose lengths only the root knows differ.
    fn own(&self, ranks: u32, slot: usize, rank: Rank) -> usize {
        let words = self.words(ranks, slot);
        match self.collective {
            Collective::Gatherv | Collective::Scatterv if rank == (self.root + 1) % ranks => words,
            Collective::Gatherv | Collective::Scatterv => (rank % 2) as usize,
            _ => words,
        }
    }

    /// Words of the block from `from` to `to`, where each pair has a length of its own.
    fn between(&self, ranks: u32, slot: usize, from: Rank, to: Rank) -> usize {
        let long = match self.collective {
            Collective::Alltoallv if from + to != 1 => return ((from + to) % 2) as usize,
            Collective::Unequal => from.is_multiple_of(2) && to == (from + 1) % ranks,
            _ => true,
        };
        let (words, side_by_side) = (self.words(ranks, slot), Self { fragments: 1, ..*self }.words(ranks, slot));
        if long { words } else { words.min([0, side_by_side, 1][(from + 2 * to) as usize % 3]) }
    }

    /// Bytes of user memory of one process: its send buffer, then its receive buffer.
    pub(crate) fn memory(&self, ranks: u32, slot: usize) -> usize {
        2 * 8 * ranks as usize * self.words(ranks, slot)
    }

    /// A process's user memory before or after the operation; `word(r, k)` is the k-th word that rank r sends.
    pub(crate) fn fill(
        &self,
        ranks: u32,
        slot: usize,
        rank: Rank,
        done: bool,
        word: impl Fn(Rank, usize) -> u64,
        fold: Fold,
    ) -> Vec<u8> {
        let (n, p, me) = (self.words(ranks, slot), ranks as usize, rank as usize);
        let mut send: Vec<Option<u64>> = (0..n * p).map(|k| Some(word(rank, k))).collect();
        let mut receive = vec![None; n * p];
        let fold = if self.collective == Collective::GroupedReduceScatter { u64::wrapping_add } else { fold };
        // On posted lines from rank 0 up, but of a scan; else from the highest rank down.
        let folded = |k, highest: Rank| {
            if self.is_posted() && self.collective != Collective::Scan {
                (1..=highest).fold(word(0, k), |sum, rank| fold(sum, word(rank, k)))
            } else {
                (0..highest).rev().fold(word(highest, k), |sum, rank| fold(word(rank, k), sum))
            }
        };
        let len = |rank: usize| self.own(ranks, slot, rank as Rank);
        let last = ranks - 1;
        match self.collective {
            Collective::Gatherv | Collective::GroupedGather if rank == self.root => {
                (0..p).for_each(|r| (0..len(r)).for_each(|k| receive[r * n + k] = Some(word(r as Rank, k))));
            }
            Collective::Allgather | Collective::GroupedAllgather | Collective::ColumnsAllgather => {
                (0..n * p).for_each(|k| receive[k] = Some(word((k / n) as Rank, k % n)))
            }
            Collective::Scatterv | Collective::Scatter => {
                (0..len(me)).for_each(|k| receive[k] = Some(word(self.root, me * n + k)));
            }
            Collective::Alltoall | Collective::GroupedAlltoall => {
                (0..n * p).for_each(|k| receive[k] = Some(word((k / n) as Rank, me * n + k % n)));
            }
            Collective::Alltoallv | Collective::Unequal => {
                if self.collective == Collective::Alltoallv {
                    receive.copy_from_slice(&send);
                }
                (0..p).for_each(|r| {
                    let len = self.between(ranks, slot, r as Rank, rank);
                    (0..len).for_each(|k| receive[r * n + k] = Some(word(r as Rank, me * n + k)));
                });
            }
            Collective::Reduce if rank == self.root => (0..n).for_each(|k| receive[k] = Some(folded(k, last))),
            Collective::Allreduce | Collective::Slices => {
                (0..n).for_each(|k| receive[k] = Some(folded(k, last)));
            }
            Collective::ReduceScatter | Collective::GroupedReduceScatter => {
                (0..n).for_each(|k| receive[k] = Some(folded(me * n + k, last)))
            }
            Collective::Scan => (0..n).for_each(|k| receive[k] = Some(folded(k, rank))),
            Collective::Gatherv | Collective::GroupedGather | Collective::Reduce => {}
        }
        // In place, the received data overwrites the sent data.
        if matches!(
            self.collective,
            Collective::Alltoall | Collective::GroupedAlltoall | Collective::Alltoallv | Collective::Allreduce
        ) {
            let sent = std::mem::replace(&mut send, vec![None; n * p]);
            receive = if done { receive } else { sent };
            if self.collective == Collective::Allreduce {
                receive.truncate(n);
                receive.resize(n * p, None);
            }
        } else if !done {
            receive.fill(None);
        }
        send.into_iter().chain(receive).flat_map(|word| word.unwrap_or(BLANK).to_le_bytes()).collect()
    }

    /// The process's machine, on user memory at `memory`.
    pub(crate) fn machine(&self, me: &Member, slot: usize, memory: *mut u8, op: Op) -> Result<Any<'static>, Refusal> {
        let (ranks, rank, root) = (me.size(), me.rank(), self.root);
        let n = 8 * self.words(ranks, slot);
        let behind = memory.wrapping_add(n * ranks as usize);
        let data = |at: *mut u8, words: usize| {
            // SAFETY: the memory is as long as `memory`, lives as long as the model, and one poll at a time touches it.
            unsafe { Data::from_raw(Buf::new(at, 8 * words), 8 * words as u64, Datatype::BYTE) }
        };
        let blocks = |at: *mut u8| {
            // SAFETY: as above.
            unsafe { Blocks::equal(Buf::new(at, n * ranks as usize), ranks, n as u64, Datatype::BYTE) }
        };
        let vary = |at: *mut u8, words: &dyn Fn(Rank) -> usize| {
            let counts = (0..ranks).map(|peer| 8 * words(peer) as u64).collect();
            let places = (0..u64::from(ranks)).map(|rank| rank * n as u64).collect();
            let (counts, places) = (super::payload::forever(counts), super::payload::forever(places));
            // SAFETY: as above.
            unsafe { Blocks::vary(Buf::new(at, n * ranks as usize), counts, places, Datatype::BYTE) }
        };
        let of_each = |peer| self.own(ranks, slot, peer);
        let to_each = |peer| self.between(ranks, slot, rank, peer);
        let from_each = |peer| self.between(ranks, slot, peer, rank);
        let (words, own) = (n / 8, of_each(rank));
        let (send, receive) = (data(memory, words)?, data(behind, words)?);
        Ok(match self.collective {
            Collective::Gatherv => {
                let (send, receive) = (Some(data(memory, own)?), Some(vary(behind, &of_each)?));
                if gather::posted::all_fit(me, send.as_ref(), receive.as_ref(), root) {
                    gather::posted::Posted::gatherv(me, send, receive, root)?.into()
                } else {
                    Gather::vary(me, send, receive, root)?.into()
                }
            }
            Collective::Scatterv => scatterv(me, Some(vary(memory, &of_each)?), Some(data(behind, own)?), root)?.into(),
            Collective::Scatter => scatter(me, Some(blocks(memory)?), Some(receive), root)?.into(),
            Collective::GroupedGather => {
                gather::groups::Grouped::new(me, Some(send), Some(blocks(behind)?), root)?.into()
            }
            Collective::Allgather if n as u64 <= gather::posted::MOST => {
                gather::posted::Posted::allgather(me, Some(send), blocks(behind)?)?.into()
            }
            Collective::Allgather => allgather(me, Some(send), blocks(behind)?)?.into(),
            Collective::GroupedAllgather => groups::Grouped::new(me, Some(send), blocks(behind)?)?.into(),
            Collective::ColumnsAllgather => groups::Grouped::with_rows(me, Some(send), blocks(behind)?, 0)?.into(),
            Collective::Alltoall => alltoall(me, None, blocks(behind)?)?.into(),
            Collective::GroupedAlltoall => Grouped::new(me, None, blocks(behind)?)?.into(),
            Collective::Alltoallv => alltoallv(me, None, vary(behind, &from_each)?)?.into(),
            Collective::Unequal => {
                let (send, receive) = (vary(memory, &to_each)?, vary(behind, &from_each)?);
                alltoallv(me, Some(send), receive)?.into()
            }
            Collective::Reduce if self.is_posted() => Posted::to_root(me, send, Some(receive), op, root)?.into(),
            Collective::Reduce => Reduce::to_root(me, send, Some(receive), op, root)?.into(),
            Collective::Allreduce if self.is_posted() => Posted::to_all(me, receive, receive, op)?.into(),
            Collective::Allreduce => Reduce::to_all(me, receive, receive, op)?.into(),
            Collective::Slices => Slices::new(me, send, receive, op)?.into(),
            Collective::ReduceScatter => ReduceScatter::new(me, blocks(memory)?, receive, op)?.into(),
            Collective::GroupedReduceScatter => {
                reduce_scatter::groups::Grouped::new(me, blocks(memory)?, receive, Op::SUM_U64)?.into()
            }
            Collective::Scan if self.is_posted() => Posted::scan(me, send, receive, op)?.into(),
            Collective::Scan => scan(me, send, receive, op)?.into(),
        })
    }

    /// The operation's name, a part of the program's name.
    pub(crate) fn name(&self) -> String {
        let rooted = self.collective == Collective::GroupedGather
            || Collective::ALL.iter().any(|&(one, rooted)| one == self.collective && rooted);
        let name = format!("exchange-{:?}-{}", self.collective, self.fragments).to_lowercase();
        if rooted { format!("{name}:{}", self.root) } else { name }
    }
}

/// A word of memory where nothing has been received yet.
const BLANK: u64 = 0xEEEE_EEEE_EEEE_EEEE;

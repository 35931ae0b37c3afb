//! Ranks that lend their memory, or not, and can read what others lend, or not, and whose queues have laps of this or that
//! length: a seed says so for each loan, for each rank and way, and for each operation.
//!
//! A loan ends when its lender publishes `done`. Whoever reads it later fails, and so the run; where a hostile peer may have
//! written the loan, it is unreadable instead.

use crate::draw::Random;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use unisono_kernel::Rank;
use unisono_kernel::collective::Kind;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::op::Op;
use unisono_kernel::region::{FlagId, Lap, Layout, Loan, Region, Unreadable};

/// Ways to reach memory. A rank can go a way or not: it reads all loans of a way, or none.
const WAYS: u64 = 8;

/// What each rank of each communicator lends now.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<Mutex<HashMap<Whose, Loans>>>);

/// A communicator, and a rank of it.
type Whose = (usize, Rank);
/// Addresses and lengths.
type Loans = Vec<(usize, usize)>;

impl Ledger {
    fn with<A>(&self, whose: Whose, act: impl FnOnce(&mut Loans) -> A) -> A {
        act(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(whose).or_default())
    }
}

/// A rank's view of a communicator's segment, in which memory is lent.
#[derive(Clone, Debug)]
pub struct Lending<R> {
    region: R,
    ledger: Ledger,
    comm: usize,
    rank: Rank,
    done: FlagId,
    seed: Option<u64>,
    /// May a hostile peer write the words of a loan?
    hostile: bool,
    /// How often memory was offered: the next loan's number.
    offered: Arc<AtomicU64>,
}

impl<R: Region> Lending<R> {
    /// The view of `rank`. All views of a run have one ledger; `seed` says what is lent and what can be read: without one,
    /// nothing.
    pub fn new(region: R, layout: &Layout, ledger: &Ledger, (comm, rank): (usize, Rank), seed: Option<u64>) -> Self {
        let (ledger, done) = (ledger.clone(), layout.done(rank));
        Self { region, ledger, comm, rank, done, seed, hostile: false, offered: Arc::default() }
    }

    /// The same view, where a hostile peer may write the words of a loan.
    #[must_use]
    pub fn among_hostile(self) -> Self {
        Self { hostile: true, ..self }
    }

    /// One of `of` cases, which follows from the seed, this rank and a number; 0 without a seed.
    fn draw(&self, number: u64, of: u64) -> u64 {
        let number = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.seed.map_or(0, |seed| Random::new(seed ^ u64::from(self.rank) << 32 ^ number).below(of))
    }

    /// Can this rank read the loan? If so: where its bytes from `from` on lie.
    fn source(&self, lender: Rank, loan: Loan, from: u64, len: usize) -> Result<*mut u8, Unreadable> {
        if self.draw(loan.way.get(), 4) == 0 {
            return Err(Unreadable { changed: false });
        }
        let at = loan.at.wrapping_add(from) as usize;
        let lies = |&(begin, bytes): &(usize, usize)| at >= begin && len <= bytes && at - begin <= bytes - len;
        let is_lent = self.ledger.with((self.comm, lender), |lent| lent.iter().any(lies));
        if !is_lent {
            assert!(self.hostile, "rank {} reads what rank {lender} does not lend", self.rank);
            // A fold in pieces may have changed its result by then.
            return Err(Unreadable { changed: self.draw(loan.at, 2) > 0 });
        }
        Ok(std::ptr::with_exposed_provenance_mut(at))
    }
}

// SAFETY: forwards to an implementation that keeps the contract. Memory that is lent is this process's; its lender's operation
// has not ended (`source`), so it is readable, and the lender does not write it.
unsafe impl<R: Region> Region for Lending<R> {
    unisono_kernel::forward_region!(R, |this| &this.region; own loans, laps and publish);

    fn lap(&self, operation: u64) -> Lap {
        let drawn = self.draw(!operation, 12);
        if self.seed.is_some() { Lap { slots: 1 << (drawn / 2), narrow: drawn.is_multiple_of(2) } } else { Lap::ALL }
    }

    fn publish(&self, id: FlagId, value: u64) {
        if id == self.done {
            self.ledger.with((self.comm, self.rank), Vec::clear);
        }
        self.region.publish(id, value);
    }

    fn lend(&self, memory: Buf, _: Kind) -> Option<Loan> {
        let (at, number) = (memory.ptr().expose_provenance(), 1 + self.offered.fetch_add(1, Relaxed));
        if memory.is_empty() || self.draw(number, 3) == 0 {
            return None;
        }
        // Loans that follow each other often go the same way.
        let way = NonZeroU64::MIN.saturating_add(self.draw(number / 4, WAYS));
        self.ledger.with((self.comm, self.rank), |lent| lent.push((at, memory.len())));
        Some(Loan { way, at: at as u64 })
    }

    fn borrows(&self) -> bool {
        self.draw(0, 4) > 0
    }

    fn is_mapped(&self, _: Rank, loan: Loan, _: u64, _: u64) -> bool {
        loan.way.get().is_multiple_of(2)
    }

    unsafe fn fetch(&self, lender: Rank, loan: Loan, from: u64, dst: Buf) -> Result<(), Unreadable> {
        let source = self.source(lender, loan, from, dst.len())?;
        // SAFETY: lent now; `dst` by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(source, dst.ptr(), dst.len()) };
        Ok(())
    }

    unsafe fn fold_loan(&self, lender: Rank, loan: Loan, from: u64, acc: Buf, op: &Op) -> Result<(), Unreadable> {
        let left = Buf::new(self.source(lender, loan, from, acc.len())?, acc.len());
        // SAFETY: lent now; `acc` by the caller's promise.
        unsafe { self.region.fold_private(left, acc, op) };
        Ok(())
    }
}

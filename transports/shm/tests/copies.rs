//! The copy primitives copy exactly the bytes that were asked for, with any alignment and length.

use core::num::NonZeroU64;
use core::ptr::NonNull;
use unisono_kernel::Rank;
use unisono_kernel::collective::Kind;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Condition, Refusal};
use unisono_kernel::region::{Layout, Loan, Params, Region, Unreadable};
use unisono_shm::{Lenders, Mapped};

const GUARD: u8 = 0xa5;

/// A segment on the heap, aligned to pages. The caller keeps the memory as long as it uses the view.
fn segment(layout: &Layout) -> (Vec<u64>, Mapped) {
    let mut memory = vec![0u64; (layout.bytes() as usize + 4096) / 8];
    let base: *mut u8 = memory.as_mut_ptr().cast();
    let base = base.wrapping_add(base.align_offset(4096));
    // SAFETY: zeroed, aligned, large enough; the tests keep `memory` alive and access it only through the view.
    let region = unsafe { Mapped::new(base, layout.bytes()) }.unwrap();
    (memory, region)
}

#[test]
fn what_is_written_is_read() {
    let layout = Layout::new(Params::new(2)).unwrap();
    let (_memory, region) = segment(&layout);
    let lengths = [0, 1, 7, 8, 9, 16, 63, 64, 65, 112, 120, 121, 4095, 4096, 4097, 4160, 5000, 32768];
    for length in lengths {
        for skew in [0, 1, 8, 17, 63] {
            let sent: Vec<u8> = (0..length + skew).map(|i| (i * 7 + length) as u8).collect();
            let at = layout.slot(1, 3).part(0, length as u64);
            // SAFETY: only this thread uses the segment; the slice is readable.
            unsafe { region.write(at, Buf::of(&sent[skew..])) };
            for past_caches in [false, true] {
                let mut got = vec![GUARD; skew + length + 64];
                let dst = Buf::of_mut(&mut got[skew..skew + length]);
                if past_caches {
                    // SAFETY: as above; the slice is writable.
                    unsafe { region.read_past_caches(at, dst) };
                } else {
                    // SAFETY: as above; the slice is writable.
                    unsafe { region.read(at, dst) };
                }
                assert_eq!(got[skew..skew + length], sent[skew..], "{length} bytes at {skew}, {past_caches}");
                assert!(got[..skew].iter().chain(&got[skew + length..]).all(|&byte| byte == GUARD));
            }
        }
    }
}

/// Those that do not overlap are as many as reach the second turn, in which they go past the caches (`long_copies.rs`): 20 of 2 MiB.
#[test]
fn long_private_copies_may_overlap() {
    let layout = Layout::new(Params::new(1)).unwrap();
    let (_memory, region) = segment(&layout);
    let long = if cfg!(miri) { 4096 } else { 2 << 20 };
    let mut bytes: Vec<u8> = (0..2 * long + 64).map(|i| (i ^ (i >> 8)) as u8).collect();
    for round in 0..60 {
        let (from, to) = if round % 3 == 0 { (0, 64) } else { (round % 2 * 64, long + 64 * (1 - round % 2)) };
        let mut expected = bytes.clone();
        expected.copy_within(from..from + long, to);
        let whole = bytes.as_mut_ptr();
        let part = |at: usize| Buf::new(whole.wrapping_add(at), long);
        // SAFETY: both lie inside; nobody else uses them.
        unsafe { region.copy_private(part(from), part(to)) };
        assert!(bytes == expected, "round {round}");
    }
}

#[test]
fn nothing_beyond_the_segment_is_touched() {
    let layout = Layout::new(Params::new(2)).unwrap();
    let (_memory, region) = segment(&layout);
    // A layout of more ranks names words and extents that this segment does not have.
    let larger = Layout::new(Params::new(64)).unwrap();
    let mut bytes = [GUARD; 256];
    // SAFETY: the slice is writable; the extent is outside, so nothing is copied.
    unsafe { region.read(larger.slot(63, 0), Buf::of_mut(&mut bytes)) };
    // SAFETY: likewise.
    unsafe { region.read_past_caches(larger.slot(63, 0), Buf::of_mut(&mut bytes)) };
    // SAFETY: likewise, readable.
    unsafe { region.write(larger.slot(63, 0), Buf::of(&bytes)) };
    assert_eq!(bytes, [GUARD; 256]);
    use unisono_kernel::region::Flag;
    region.publish(larger.done(63), 1);
    assert!(region.flag(layout.done(1)).load_acquire().is(0));
    // SAFETY: null and misaligned addresses are refused before they are used.
    let refused = unsafe { Mapped::new(std::ptr::null_mut(), 4096) };
    assert_eq!(refused.err(), Some(Refusal::not(Argument::Address, Condition::NotNull)));
    // SAFETY: as above.
    let refused = unsafe { Mapped::new(region.base().wrapping_add(8), 4096) };
    assert!(refused.is_err());
}

/// What rank 1 lends, by its offset: mapped here, or read by a call that reads no more than there is.
struct Lent {
    numbers: Vec<u64>,
    maps: bool,
}

impl Lent {
    fn place(&self, loan: Loan, from: u64, len: usize) -> Option<NonNull<u8>> {
        let at = (loan.at + from) as usize;
        let inside = at + len <= 8 * self.numbers.len();
        NonNull::new(self.numbers.as_ptr().cast_mut().cast::<u8>().wrapping_add(at)).filter(|_| inside)
    }
}

// SAFETY: both stay inside the vector, which lives as long as this.
unsafe impl Lenders for Lent {
    fn lend(&self, _: Buf, _: Kind) -> Option<Loan> {
        None
    }
    fn answered(&self, _: bool) {}
    fn borrows(&self) -> bool {
        true
    }
    fn mapped(&self, _: Rank, loan: Loan, from: u64, len: usize) -> Option<NonNull<u8>> {
        self.place(loan, from, len).filter(|_| self.maps)
    }
    unsafe fn read(&self, _: Rank, loan: Loan, from: u64, dst: Buf) -> Result<(), Unreadable> {
        let place = self.place(loan, from, dst.len()).ok_or(Unreadable { changed: false })?;
        // SAFETY: inside; `dst` by the caller's promise.
        unsafe { core::ptr::copy_nonoverlapping(place.as_ptr(), dst.ptr(), dst.len()) };
        Ok(())
    }
}

#[test]
fn what_is_lent_is_read_the_way_that_is_there() {
    let layout = Layout::new(Params::new(2)).unwrap();
    let (_memory, region) = segment(&layout);
    let (most, skip) = (5000, 3);
    let numbers: Vec<u64> = (0..most + skip).map(|i| i << 20).collect();
    for maps in [true, false] {
        let lent = Lent { numbers: numbers.clone(), maps };
        // SAFETY: it lives longer than the view.
        let region = unsafe { region.clone().with_lenders(NonNull::from(&lent as &dyn Lenders)) };
        let loan = Loan { way: NonZeroU64::MIN, at: 8 };
        for count in [0, 1, 511, 512, 513, 4097, most] {
            let (mut copy, bytes) = (vec![u64::MAX; count as usize + 8], 8 * count);
            let fetch = |from, to: &mut [u64]| {
                // SAFETY: the vector has room for them; nobody else uses it.
                unsafe { region.fetch(1, loan, from, Buf::new(to.as_mut_ptr().cast(), bytes as usize)) }
            };
            let from = 8 * (skip - 1);
            assert_eq!(region.is_mapped(1, loan, from, bytes), maps);
            assert_eq!(fetch(from, &mut copy), Ok(()));
            assert_eq!(copy[..count as usize], numbers[skip as usize..(skip + count) as usize], "mapped: {maps}");
            assert!(copy[count as usize..].iter().all(|&beyond| beyond == u64::MAX), "{count}");
            let beyond = 8 * (most + skip);
            assert!(!region.is_mapped(1, loan, beyond, bytes) || count == 0, "beyond what is lent: {count}, {maps}");
            assert!(fetch(beyond, &mut copy).is_err() || count == 0, "beyond what is lent: {count}, {maps}");
        }
    }
}

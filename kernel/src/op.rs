//! Reduction operations (MPI 4.1, 7.9).

use crate::datatype::Data;
use crate::error::{Argument, Bound, Refusal};
use core::ffi::c_void;
use core::hash::{Hash, Hasher};

/// The signature of a user's operation: folds `count` elements of `left` into `right`:
/// `right[i] = left[i] ∘ right[i]`, as MPI_User_function. It must not unwind or jump.
pub type UserFunction = unsafe extern "C" fn(left: *const c_void, right: *mut c_void, count: u64, context: *mut c_void);

/// A user's operation.
#[derive(Clone, Copy, Debug)]
pub struct User {
    function: UserFunction,
    context: *mut c_void,
    element: u64,
    commutative: bool,
}

impl User {
    /// An operation on elements of `element` bytes. Its operands are aligned to 16 bytes at their
    /// first element.
    ///
    /// # Safety
    /// `function` may be called with `context` on any two arrays of up to `count` elements, as long
    /// as an operation with it is active; it does not unwind, jump, or touch anything else of ours.
    pub const unsafe fn new(function: UserFunction, context: *mut c_void, element: u64, commutative: bool) -> Self {
        Self { function, context, element, commutative }
    }
}

impl PartialEq for User {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::fn_addr_eq(self.function, other.function)
            && (self.context, self.element, self.commutative) == (other.context, other.element, other.commutative)
    }
}
impl Eq for User {}
impl Hash for User {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.function as usize, self.context, self.element, self.commutative).hash(state);
    }
}

// SAFETY: the function pointer and context are addresses; `User::new`'s contract covers calls from the thread that polls.
unsafe impl Send for User {}

/// What a reduction does with two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Op {
    /// Sum of `f64`.
    SumF64,
    /// Sum of `i64`, wrapping.
    SumI64,
    /// A user's operation.
    User(User),
}

/// Operands of a small reduction: aligned, private, room for a posted line's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, align(16))]
pub struct Operand(pub [u64; WORDS]);

/// Words of an [`Operand`].
pub const WORDS: usize = 14;

impl Operand {
    /// All zero.
    pub const ZERO: Self = Self([0; WORDS]);
}

impl Op {
    /// Bytes of one element.
    #[inline]
    pub const fn element(&self) -> u64 {
        match self {
            Self::SumF64 | Self::SumI64 => 8,
            Self::User(user) => user.element,
        }
    }

    /// May operands be exchanged?
    pub const fn commutative(&self) -> bool {
        match self {
            Self::SumF64 | Self::SumI64 => true,
            Self::User(user) => user.commutative,
        }
    }

    /// Number of elements in `bytes`.
    ///
    /// # Errors
    /// `bytes` is no multiple of the element, or the element is empty.
    #[inline]
    pub(crate) fn count(&self, bytes: u64) -> Result<u64, Refusal> {
        // Predefined elements are powers of two: no division on the hot path.
        let count = match self {
            Self::SumF64 | Self::SumI64 if bytes & 7 == 0 => Some(bytes >> 3),
            Self::User(user) if user.element != 0 && bytes.is_multiple_of(user.element) => Some(bytes / user.element),
            _ => None,
        };
        count.ok_or(Refusal::new(Argument::Bytes, bytes, Bound::MultipleOf(self.element())))
    }

    /// `left = left ∘ right` for the first `count` elements; the order of operands is kept.
    #[inline]
    pub(crate) fn fold(&self, left: &mut Operand, right: &Operand, count: u64) {
        let n = (count as usize).min(WORDS);
        match self {
            Self::SumF64 => {
                for (l, r) in left.0[..n].iter_mut().zip(&right.0[..n]) {
                    *l = (f64::from_bits(*l) + f64::from_bits(*r)).to_bits();
                }
            }
            Self::SumI64 => {
                for (l, r) in left.0[..n].iter_mut().zip(&right.0[..n]) {
                    *l = l.wrapping_add(*r);
                }
            }
            Self::User(user) => {
                // MPI folds into the right operand; ours goes on to the right, so swap roles afterwards.
                let mut into = *right;
                let from: *const Operand = left;
                let to: *mut Operand = &raw mut into;
                // SAFETY: `User::new`'s contract; both arrays hold `count` elements (`Op::count` of at most an operand's bytes).
                unsafe { (user.function)(from.cast(), to.cast(), count, user.context) };
                *left = into;
            }
        }
    }
}

/// Copies a few bytes between private buffers; whole words where it can, to stay clear of a call.
#[inline]
unsafe fn copy_private(from: *const u8, to: *mut u8, len: usize) {
    if len == 8 {
        // SAFETY: the caller's promise: 8 readable bytes.
        let word = unsafe { from.cast::<u64>().read_unaligned() };
        // SAFETY: the caller's promise: 8 writable bytes.
        unsafe { to.cast::<u64>().write_unaligned(word) };
    } else {
        // SAFETY: the caller's promise; user memory and an operand of ours do not overlap.
        unsafe { core::ptr::copy_nonoverlapping(from, to, len) };
    }
}

impl Operand {
    /// The packed bytes of `data` (at most an operand's), the rest zero.
    #[inline]
    pub(crate) fn gather(data: &Data<'_>) -> Self {
        let mut operand = Self::ZERO;
        let base: *mut u8 = (&raw mut operand).cast();
        for (at, run) in data.runs(0, size_of::<Self>() as u64) {
            // SAFETY: `runs` ends at the operand's size, so `at + run.len()` lies inside; the run is the caller's to read.
            unsafe { copy_private(run.ptr(), base.wrapping_add(at as usize), run.len()) };
        }
        operand
    }

    /// Unpacks the operand's first bytes to `data`.
    #[inline]
    pub(crate) fn scatter(&self, data: &Data<'_>) {
        let base: *const u8 = (&raw const *self).cast();
        for (at, run) in data.runs(0, size_of::<Self>() as u64) {
            // SAFETY: as in `gather`; the run is the caller's to write.
            unsafe { copy_private(base.wrapping_add(at as usize), run.ptr(), run.len()) };
        }
    }
}

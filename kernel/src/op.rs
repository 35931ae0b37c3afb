//! Reduction operations (MPI 4.1, 7.9).

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

/// Most words of an operand of a small reduction: what fits the first 64 bytes of a posted line.
pub const WORDS: usize = 6;

/// Operands as a user's function sees them: aligned.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Aligned([u64; WORDS]);

impl Aligned {
    fn of(words: &[u64]) -> Self {
        let mut aligned = Self([0; WORDS]);
        aligned.0.iter_mut().zip(words).for_each(|(to, from)| *to = *from);
        aligned
    }
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

    /// `left = left ∘ right` for `count` elements in words, [`WORDS`] at most; the order of operands is kept.
    #[inline]
    pub(crate) fn fold(&self, left: &mut [u64], right: &[u64], count: u64) {
        match self {
            Self::SumF64 => {
                for (l, r) in left.iter_mut().zip(right) {
                    *l = (f64::from_bits(*l) + f64::from_bits(*r)).to_bits();
                }
            }
            Self::SumI64 => {
                for (l, r) in left.iter_mut().zip(right) {
                    *l = l.wrapping_add(*r);
                }
            }
            Self::User(user) => {
                // MPI folds into the right operand; here the left one goes on.
                let (from, mut into) = (Aligned::of(left), Aligned::of(right));
                let (from, to): (*const Aligned, *mut Aligned) = (&raw const from, &raw mut into);
                // SAFETY: `User::new`'s contract; both hold `count` elements: `Op::count` of at most `WORDS` words.
                unsafe { (user.function)(from.cast(), to.cast(), count, user.context) };
                left.iter_mut().zip(into.0).for_each(|(to, from)| *to = from);
            }
        }
    }
}

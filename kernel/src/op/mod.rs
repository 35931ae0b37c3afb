//! Reduction operations (MPI 4.1, 7.9): a predefined operation on elements of a type, or a user's own.
//!
//! Folds keep the order of their operands. Predefined operations on the same operands give the same
//! bits wherever they are computed, except that a sum or product that is NaN may be any NaN.

mod element;
mod loops;
mod user;

use crate::error::{Argument, Bound, Refusal};
use core::fmt;
use loops::Operands;

pub use element::{Element, Operation};
pub use user::{MOST as USER_MOST, User, UserFunction};

/// A predefined operation, on elements of a type that it is defined for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Predefined {
    operation: Operation,
    element: Element,
}

impl Predefined {
    const SUM_F64: Self = Self { operation: Operation::Sum, element: Element::F64 };
    const SUM_I64: Self = Self { operation: Operation::Sum, element: Element::I64 };

    /// The operation.
    pub const fn operation(self) -> Operation {
        self.operation
    }

    /// The type of its elements.
    pub const fn element(self) -> Element {
        self.element
    }

    /// `right[i] = left[i] ∘ right[i]` for the whole elements in `bytes`, of any alignment. It is inlined, for
    /// hosts that compile it for several instruction sets, and fold straight from a segment. Another process
    /// may change `left` meanwhile: then results are wrong, and nothing else is.
    ///
    /// # Safety
    /// `left` holds `bytes` readable bytes, `right` as many writable, private ones.
    #[inline(always)]
    pub unsafe fn fold_inline(self, left: *const u8, right: *mut u8, bytes: usize) {
        let shift = self.element.shift();
        // SAFETY: the caller's promise, cut to whole elements.
        let operands = unsafe { Operands::new(left, right, bytes >> shift << shift) };
        loops::fold(self.operation, self.element, operands);
    }
}

/// The op of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A predefined operation; made by [`Op::new`].
    Predefined(Predefined),
    /// A user's operation.
    User(User),
}

macro_rules! constants {
    ($($(#[$meta:meta])* $name:ident = $operation:ident, $element:ident;)*) => {
        /// The ops that are used most.
        impl Op {
            $($(#[$meta])* pub const $name: Self =
                Self::Predefined(Predefined { operation: Operation::$operation, element: Element::$element });)*
        }

        #[cfg(test)]
        const CONSTANTS: &[(Op, Operation, Element)] = &[$((Op::$name, Operation::$operation, Element::$element)),*];
    };
}
constants! {
    /// Sum of `i32`, wrapping.
    SUM_I32 = Sum, I32;
    /// Sum of `i64`, wrapping.
    SUM_I64 = Sum, I64;
    /// Sum of `u64`, wrapping.
    SUM_U64 = Sum, U64;
    /// Sum of `f32`.
    SUM_F32 = Sum, F32;
    /// Sum of `f64`.
    SUM_F64 = Sum, F64;
    /// Product of `f64`.
    PROD_F64 = Prod, F64;
    /// Minimum of `i64`.
    MIN_I64 = Min, I64;
    /// Maximum of `i64`.
    MAX_I64 = Max, I64;
    /// Minimum of `u64`.
    MIN_U64 = Min, U64;
    /// Maximum of `u64`.
    MAX_U64 = Max, U64;
    /// Minimum of `f64`.
    MIN_F64 = Min, F64;
    /// Maximum of `f64`.
    MAX_F64 = Max, F64;
    /// Bitwise and of `u64`.
    BAND_U64 = Band, U64;
    /// Bitwise or of `u64`.
    BOR_U64 = Bor, U64;
    /// Bitwise exclusive or of `u64`.
    BXOR_U64 = Bxor, U64;
}

/// Most words of an operand of a small reduction: as many as fit a posted line.
pub const WORDS: usize = 14;

/// An operand in words, aligned for a user's function.
#[repr(C, align(16))]
struct Aligned([u64; WORDS]);

impl Op {
    /// `operation` on elements of type `element`.
    ///
    /// # Errors
    /// MPI does not define it: the element is not one of [`Operation::elements`].
    #[inline(always)]
    pub const fn new(operation: Operation, element: Element) -> Result<Self, Refusal> {
        let ((first, last), number) = (operation.elements(), element.number());
        if number < first.number() {
            Err(Refusal::new(Argument::Datatype, number, Bound::AtLeast(first.number())))
        } else if number > last.number() {
            Err(Refusal::new(Argument::Datatype, number, Bound::AtMost(last.number())))
        } else {
            Ok(Self::Predefined(Predefined { operation, element }))
        }
    }

    /// Bytes of one element.
    #[inline]
    pub const fn element(&self) -> u64 {
        match self {
            Self::Predefined(predefined) => predefined.element.bytes(),
            Self::User(user) => user.element(),
        }
    }

    /// Does it commute?
    pub const fn commutative(&self) -> bool {
        match self {
            Self::Predefined(_) => true,
            Self::User(user) => user.commutative(),
        }
    }

    /// Number of elements in `bytes`.
    ///
    /// # Errors
    /// `bytes` is not a multiple of the element, or the element has no bytes or more than [`USER_MOST`].
    #[inline(always)]
    pub(crate) fn count(&self, bytes: u64) -> Result<u64, Refusal> {
        match self {
            Self::Predefined(Predefined { element, .. }) => {
                // Predefined elements are powers of two: no division on the hot path.
                let shift = element.shift();
                if bytes >> shift << shift == bytes { Ok(bytes >> shift) } else { Err(self.not_whole(bytes)) }
            }
            Self::User(_) => self.count_of_user(bytes),
        }
    }

    #[inline(never)]
    fn count_of_user(&self, bytes: u64) -> Result<u64, Refusal> {
        let element = Refusal::check(Argument::Extent, self.element(), Bound::AtMost(USER_MOST as u64))?;
        Refusal::check(Argument::Extent, element, Bound::AtLeast(1))?;
        if bytes.is_multiple_of(element) { Ok(bytes / element) } else { Err(self.not_whole(bytes)) }
    }

    /// The refusal of a length that is not a whole number of elements.
    #[cold]
    fn not_whole(&self, bytes: u64) -> Refusal {
        Refusal::new(Argument::Bytes, bytes, Bound::MultipleOf(self.element()))
    }

    /// Number of whole elements in `bytes`; 0 for an element of no bytes.
    #[inline]
    pub const fn whole(&self, bytes: u64) -> u64 {
        match self {
            Self::Predefined(predefined) => bytes >> predefined.element.shift(),
            Self::User(user) => match bytes.checked_div(user.element()) {
                Some(count) => count,
                None => 0,
            },
        }
    }

    /// `right[i] = left[i] ∘ right[i]` for `count` elements of two private operands, of any alignment.
    ///
    /// # Safety
    /// `left` holds `count` readable elements, `right` as many writable ones; nothing else writes them now.
    /// They are the same memory or don't overlap. `User::new`'s promise holds.
    #[inline(never)]
    pub unsafe fn fold_raw(&self, left: *const u8, right: *mut u8, count: u64) {
        match self {
            Self::Predefined(predefined) => {
                let bytes = (count << predefined.element.shift()) as usize;
                // SAFETY: the caller's promise.
                unsafe { predefined.fold_inline(left, right, bytes) }
            }
            // SAFETY: as above.
            Self::User(user) => unsafe { user.fold(left, right, count) },
        }
    }

    /// `left = left ∘ right` for `count` elements in words, [`WORDS`] at most; the order of operands is kept.
    #[inline]
    pub(crate) fn fold(&self, left: &mut [u64], right: &[u64], count: u64) {
        match self {
            Self::Predefined(Predefined::SUM_F64) => {
                for (l, r) in left.iter_mut().zip(right) {
                    *l = (f64::from_bits(*l) + f64::from_bits(*r)).to_bits();
                }
            }
            Self::Predefined(Predefined::SUM_I64) => {
                for (l, r) in left.iter_mut().zip(right) {
                    *l = l.wrapping_add(*r);
                }
            }
            _ => self.fold_words(left, right, count),
        }
    }

    /// [`Self::fold`] for any op.
    #[inline(never)]
    fn fold_words(&self, left: &mut [u64], right: &[u64], count: u64) {
        // MPI folds into the right operand; here the result goes to the left one.
        let mut folded = Aligned([0; WORDS]);
        folded.0.iter_mut().zip(right).for_each(|(to, from)| *to = *from);
        debug_assert!(count * self.element() <= 8 * left.len() as u64 && left.len() <= WORDS);
        // SAFETY: `Op::count` elements lie in `left`'s words, and these are `WORDS` at most.
        unsafe { self.fold_raw(left.as_ptr().cast(), folded.0.as_mut_ptr().cast(), count) };
        left.iter_mut().zip(folded.0).for_each(|(to, from)| *to = from);
    }
}

impl From<Predefined> for Op {
    fn from(predefined: Predefined) -> Self {
        Self::Predefined(predefined)
    }
}

impl From<User> for Op {
    fn from(user: User) -> Self {
        Self::User(user)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Predefined(Predefined { operation, element }) => write!(f, "{operation} of {element}"),
            Self::User(user) => write!(f, "user's operation on {} bytes", user.element()),
        }
    }
}

#[cfg(test)]
mod tests;

//! The loops of the predefined operations: `right[i] = left[i] ∘ right[i]`, for operands of any alignment.
//!
//! Everything here is inlined into its caller, so that a host can compile it once per instruction set.
//! No control flow and no address depends on a value: elements that a peer overwrites meanwhile
//! give wrong results, and nothing worse.

use super::element::{Element, Operation};
use core::mem::offset_of;

/// Two arrays of numbers, of equal length.
#[derive(Clone, Copy)]
pub(super) struct Operands {
    left: *const u8,
    right: *mut u8,
    bytes: usize,
}

impl Operands {
    /// # Safety
    /// `bytes` readable bytes at `left`, and writable ones at `right`, for as long as this is used.
    #[inline(always)]
    pub(super) const unsafe fn new(left: *const u8, right: *mut u8, bytes: usize) -> Self {
        Self { left, right, bytes }
    }

    /// `right[i] = f(left[i], right[i])`. `T` is a number or an array of numbers: any bits are a valid value.
    #[inline(always)]
    fn each<T: Copy>(self, f: impl Fn(T, T) -> T) {
        let (left, right) = (self.left.cast::<T>(), self.right.cast::<T>());
        for i in 0..self.bytes / size_of::<T>() {
            // SAFETY: element `i` lies inside `bytes` (`new`).
            let l = unsafe { left.add(i) };
            // SAFETY: as above.
            let r = unsafe { right.add(i) };
            // SAFETY: readable; no alignment is needed.
            let (from, to) = (unsafe { l.read_unaligned() }, unsafe { r.read_unaligned() });
            // SAFETY: writable; no alignment is needed.
            unsafe { r.write_unaligned(f(from, to)) };
        }
    }

    /// Keeps the pair that is `before` the other; of equals, the one with the lower index. Padding stays as it is.
    #[inline(always)]
    fn locate<V: Copy, I: Copy + Ord>(self, before: impl Fn(V, V) -> bool) {
        let index = offset_of!(Pair<V, I>, index);
        for i in 0..self.bytes / size_of::<Pair<V, I>>() {
            let at = i * size_of::<Pair<V, I>>();
            let (l, r) = (self.left.wrapping_add(at), self.right.wrapping_add(at));
            let (from, to) = (l.wrapping_add(index).cast::<I>(), r.wrapping_add(index).cast::<I>());
            // SAFETY: a value lies at the start of pair `i`, inside `bytes` (`new`).
            let values = (unsafe { l.cast::<V>().read_unaligned() }, unsafe { r.cast::<V>().read_unaligned() });
            // SAFETY: as above; its index follows the value.
            let indices = (unsafe { from.read_unaligned() }, unsafe { to.read_unaligned() });
            let tied = !before(values.1, values.0) & (indices.0 < indices.1);
            let take = before(values.0, values.1) | tied;
            // SAFETY: writable; no alignment is needed.
            unsafe { r.cast::<V>().write_unaligned(if take { values.0 } else { values.1 }) };
            // SAFETY: as above.
            unsafe { to.write_unaligned(if take { indices.0 } else { indices.1 }) };
        }
    }
}

/// A value and its index, as C lays them out.
#[repr(C)]
struct Pair<V, I> {
    value: V,
    index: I,
}

/// Folds by one operation on integers of one width. `$ordered` is the type whose order minimum and maximum use,
/// `$unsigned` the unsigned type of this width.
macro_rules! integers {
    ($operands:expr, $operation:expr, $ordered:ident, $unsigned:ident) => {
        match $operation {
            Operation::Sum => $operands.each($unsigned::wrapping_add),
            Operation::Prod => $operands.each($unsigned::wrapping_mul),
            Operation::Min => $operands.each(<$ordered as Ord>::min),
            Operation::Max => $operands.each(<$ordered as Ord>::max),
            Operation::Land => $operands.each(|l: $unsigned, r| ((l != 0) & (r != 0)).into()),
            Operation::Lor => $operands.each(|l: $unsigned, r| ((l | r) != 0).into()),
            Operation::Lxor => $operands.each(|l: $unsigned, r| ((l != 0) ^ (r != 0)).into()),
            _ => {}
        }
    };
}

/// Folds by one operation on floats.
macro_rules! floats {
    ($operands:expr, $operation:expr, $float:ident) => {
        match $operation {
            Operation::Sum => $operands.each(|l: $float, r| l + r),
            Operation::Prod => $operands.each(|l: $float, r| l * r),
            Operation::Min => $operands.each(<$float as Float>::minimum),
            Operation::Max => $operands.each(<$float as Float>::maximum),
            _ => {}
        }
    };
}

/// Folds by one operation on complex numbers. The product is the plain formula, without C's special treatment of
/// infinities.
macro_rules! complex {
    ($operands:expr, $operation:expr, $float:ident) => {
        match $operation {
            Operation::Sum => $operands.each(|l: $float, r| l + r),
            Operation::Prod => {
                $operands.each(|[a, b]: [$float; 2], [c, d]: [$float; 2]| [a * c - b * d, a * d + b * c])
            }
            _ => {}
        }
    };
}

/// Folds by one operation on pairs of a float and its index.
macro_rules! float_pairs {
    ($operands:expr, $operation:expr, $float:ident) => {
        match $operation {
            Operation::Minloc => $operands.locate::<$float, i32>(|a, b| (a < b) | (a.is_nan() & !b.is_nan())),
            Operation::Maxloc => $operands.locate::<$float, i32>(|a, b| (a > b) | (a.is_nan() & !b.is_nan())),
            _ => {}
        }
    };
}

/// Folds by one operation on pairs of an integer and its index.
macro_rules! integer_pairs {
    ($operands:expr, $operation:expr, $value:ident, $index:ident) => {
        match $operation {
            Operation::Minloc => $operands.locate::<$value, $index>(|a, b| a < b),
            Operation::Maxloc => $operands.locate::<$value, $index>(|a, b| a > b),
            _ => {}
        }
    };
}

/// `right[i] = left[i] ∘ right[i]`, as far as the operation is defined for the element.
#[inline(always)]
pub(super) fn fold(operation: Operation, element: Element, operands: Operands) {
    match (operation, element) {
        // Bitwise operations don't depend on the width.
        (Operation::Band, _) => operands.each(|l: u8, r| l & r),
        (Operation::Bor, _) => operands.each(|l: u8, r| l | r),
        (Operation::Bxor, _) => operands.each(|l: u8, r| l ^ r),
        (_, Element::Bool | Element::U8) => integers!(operands, operation, u8, u8),
        (_, Element::U16) => integers!(operands, operation, u16, u16),
        (_, Element::U32) => integers!(operands, operation, u32, u32),
        (_, Element::U64) => integers!(operands, operation, u64, u64),
        (_, Element::I8) => integers!(operands, operation, i8, u8),
        (_, Element::I16) => integers!(operands, operation, i16, u16),
        (_, Element::I32) => integers!(operands, operation, i32, u32),
        (_, Element::I64) => integers!(operands, operation, i64, u64),
        (_, Element::F32) => floats!(operands, operation, f32),
        (_, Element::F64) => floats!(operands, operation, f64),
        (_, Element::ComplexF32) => complex!(operands, operation, f32),
        (_, Element::ComplexF64) => complex!(operands, operation, f64),
        (_, Element::FloatInt) => float_pairs!(operands, operation, f32),
        (_, Element::DoubleInt) => float_pairs!(operands, operation, f64),
        (_, Element::LongInt) => integer_pairs!(operands, operation, i64, i32),
        (_, Element::TwoInt) => integer_pairs!(operands, operation, i32, i32),
        (_, Element::ShortInt) => integer_pairs!(operands, operation, i16, i32),
        (_, Element::TwoLong) => integer_pairs!(operands, operation, i64, i64),
    }
}

/// IEEE 754-2019's `minimum` and `maximum`, with the same NaN always: exchanging the operands does not change a bit.
trait Float: Sized {
    fn minimum(self, other: Self) -> Self;
    fn maximum(self, other: Self) -> Self;
}

macro_rules! impl_float {
    ($float:ident, $nan:literal) => {
        impl Float for $float {
            #[inline(always)]
            fn minimum(self, other: Self) -> Self {
                let less = if self < other { self } else { other };
                // Of zeros, the negative one.
                let least = if self == other { Self::from_bits(self.to_bits() | other.to_bits()) } else { less };
                if self.is_nan() | other.is_nan() { Self::from_bits($nan) } else { least }
            }

            #[inline(always)]
            fn maximum(self, other: Self) -> Self {
                let more = if self > other { self } else { other };
                let most = if self == other { Self::from_bits(self.to_bits() & other.to_bits()) } else { more };
                if self.is_nan() | other.is_nan() { Self::from_bits($nan) } else { most }
            }
        }
    };
}
impl_float!(f32, 0x7fc0_0000);
impl_float!(f64, 0x7ff8_0000_0000_0000);

//! Predefined operations and element types of reductions, and which pairs of them MPI defines (MPI 4.1, 7.9.2).

use core::fmt;

macro_rules! names {
    ($(#[$about:meta])* $type:ident from $first:literal { $($(#[$meta:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum $type {
            $($(#[$meta])* $variant,)*
        }

        impl $type {
            /// All of them, by number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The number, which C callers pass and refusals name.
            pub const fn number(self) -> u64 {
                self as u64 + $first
            }

            /// The one with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|each| each.name() == name)
            }

            /// The one with this number.
            #[inline(always)]
            pub fn from_number(number: u64) -> Option<Self> {
                // A number below the first one wraps, and is none either.
                usize::try_from(number.wrapping_sub($first)).ok().and_then(|at| Self::ALL.get(at)).copied()
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

names! {
    /// A predefined operation.
    Operation from 1 {
        /// Sum; integers wrap.
        Sum = "sum",
        /// Product; integers wrap.
        Prod = "prod",
        /// Minimum. For floats −0 is less than +0, and the result is NaN if either is, always with the same bits.
        Min = "min",
        /// Maximum; zeros and NaN as in [`Operation::Min`].
        Max = "max",
        /// Logical and: 1 if both are nonzero, else 0.
        Land = "land",
        /// Logical or: 1 if either is nonzero, else 0.
        Lor = "lor",
        /// Logical exclusive or: 1 if exactly one is nonzero, else 0.
        Lxor = "lxor",
        /// Bitwise and.
        Band = "band",
        /// Bitwise or.
        Bor = "bor",
        /// Bitwise exclusive or.
        Bxor = "bxor",
        /// The least value and its index; of equal values the lowest index. NaN counts as the least.
        Minloc = "minloc",
        /// The greatest value and its index; of equal values the lowest index. NaN counts as the greatest.
        Maxloc = "maxloc",
    }
}

names! {
    /// A predefined type of element. Pairs have the layout of a C compiler with 64-bit `long`.
    /// The types are in such an order that each operation is defined for a range of them ([`Operation::elements`]).
    Element from 1 {
        /// One byte, zero or not (C's `_Bool`).
        Bool = "bool",
        /// 8 bits, signed.
        I8 = "i8",
        /// 16 bits, signed.
        I16 = "i16",
        /// 32 bits, signed.
        I32 = "i32",
        /// 64 bits, signed.
        I64 = "i64",
        /// 8 bits, unsigned.
        U8 = "u8",
        /// 16 bits, unsigned.
        U16 = "u16",
        /// 32 bits, unsigned.
        U32 = "u32",
        /// 64 bits, unsigned.
        U64 = "u64",
        /// Single precision.
        F32 = "f32",
        /// Double precision.
        F64 = "f64",
        /// Two `f32`: real, imaginary.
        ComplexF32 = "complex_f32",
        /// Two `f64`: real, imaginary.
        ComplexF64 = "complex_f64",
        /// `f32` and its `i32` index.
        FloatInt = "float_int",
        /// `f64` and its `i32` index; 16 bytes, the last four are padding.
        DoubleInt = "double_int",
        /// `i64` and its `i32` index; 16 bytes, the last four are padding.
        LongInt = "long_int",
        /// `i32` and its `i32` index.
        TwoInt = "2int",
        /// `i16` and its `i32` index; 8 bytes, the third and fourth are padding.
        ShortInt = "short_int",
        /// `i64` and its `i64` index.
        TwoLong = "2i64",
    }
}

impl Element {
    /// Bytes of one element, padding included.
    #[inline]
    pub const fn bytes(self) -> u64 {
        1 << self.shift()
    }

    /// The power of two that is the size: log2 of the element's bytes.
    #[inline]
    pub(super) const fn shift(self) -> u32 {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 0,
            Self::I16 | Self::U16 => 1,
            Self::I32 | Self::U32 | Self::F32 => 2,
            Self::I64 | Self::U64 | Self::F64 => 3,
            Self::ComplexF32 | Self::FloatInt | Self::TwoInt | Self::ShortInt => 3,
            Self::ComplexF64 | Self::DoubleInt | Self::LongInt | Self::TwoLong => 4,
        }
    }
}

impl Operation {
    /// The first and the last type of element that this operation is defined for, by number.
    pub const fn elements(self) -> (Element, Element) {
        match self {
            Self::Sum | Self::Prod => (Element::I8, Element::ComplexF64),
            Self::Min | Self::Max => (Element::I8, Element::F64),
            Self::Land | Self::Lor | Self::Lxor => (Element::Bool, Element::U64),
            Self::Band | Self::Bor | Self::Bxor => (Element::I8, Element::U64),
            Self::Minloc | Self::Maxloc => (Element::FloatInt, Element::TwoLong),
        }
    }
}

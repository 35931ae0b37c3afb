//! What can be folded, and how: operations, element types, and which pairs of them MPI defines (MPI 4.1, 7.9.2).

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

            /// The name, as users write it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The number, as refusals name it.
            pub const fn number(self) -> u64 {
                self as u64 + $first
            }

            /// The one with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|each| each.name() == name)
            }

            /// The one with this number.
            pub fn from_number(number: u64) -> Option<Self> {
                Self::ALL.iter().copied().find(|each| each.number() == number)
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
        /// Minimum. Of floats: −0 is less than +0, and NaN if either is NaN, always of the same bits.
        Min = "min",
        /// Maximum; zeros and NaN as in [`Operation::Min`].
        Max = "max",
        /// Are both nonzero? 1 or 0.
        Land = "land",
        /// Is either nonzero? 1 or 0.
        Lor = "lor",
        /// Is exactly one nonzero? 1 or 0.
        Lxor = "lxor",
        /// Bits of both.
        Band = "band",
        /// Bits of either.
        Bor = "bor",
        /// Bits of exactly one.
        Bxor = "bxor",
        /// The least value with its index, the lowest of them where values are equal. NaN counts as the least.
        Minloc = "minloc",
        /// The greatest value with its index, the lowest of them where values are equal. NaN counts as the greatest.
        Maxloc = "maxloc",
    }
}

names! {
    /// A predefined type of element. Pairs lie as a C compiler with 64-bit `long` lays them out.
    /// Their order is such that each operation is defined for a range of them ([`Operation::elements`]).
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
        /// 8 bits.
        U8 = "u8",
        /// 16 bits.
        U16 = "u16",
        /// 32 bits.
        U32 = "u32",
        /// 64 bits.
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

    /// Every size is a power of two: this one.
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

//! Names of algorithms, and the reasons why an algorithm does not apply.

use crate::error::Refusal;
use core::fmt;

/// An algorithm with a name for users. If it has a parameter, a number is part of the name: `knomial-4`.
pub trait Named: Copy + Sized + 'static {
    /// The collective's name.
    const COLLECTIVE: &'static str;

    /// All names without their numbers, and whether a number follows.
    const NAMES: &'static [(&'static str, bool)];

    /// The algorithm of this name; `None` for unknown names.
    fn from_name(name: &str) -> Option<Self>;

    /// The name without its number, and the number.
    fn name(self) -> (&'static str, Option<u64>);
}

/// Defines the algorithms of a collective as an enum. `Variant = "name"` has no parameter;
/// `Variant(parameter: type from least) = "name"` has one, which is `least` at least, and is called `name-NUMBER`.
/// After them there may be a second name for one of them: `"name" is Variant(number)`.
macro_rules! named {
    (
        $(#[$outer:meta])*
        $name:ident of $collective:literal {
            $($(#[$doc:meta])* $variant:ident $(($number:ident: $type:ident from $least:literal))? = $text:literal,)*
        }
        $($alias:literal is $aliased:ident($with:literal))?
    ) => {
        $(#[$outer])*
        ///
        #[doc = concat!("Names:" $(, " `", $text, $("-", stringify!($number),)? "`")*)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant $(($type))?,)*
        }

        impl $crate::msg::Named for $name {
            const COLLECTIVE: &'static str = $collective;

            const NAMES: &'static [(&'static str, bool)] = &[$(($text, named!(@number $($least)?)),)*];

            fn from_name(name: &str) -> Option<Self> {
                $(if name == $alias {
                    return Some(Self::$aliased($with));
                })?
                None$(.or_else(|| named!(@parse name, $text, $variant $($type from $least)?)))*
            }

            fn name(self) -> (&'static str, Option<u64>) {
                match self {
                    $(Self::$variant $(($number))? => ($text, None$(.or(Some($number.into())))?),)*
                }
            }
        }
    };
    (@number) => { false };
    (@number $least:literal) => { true };
    (@parse $name:ident, $text:literal, $variant:ident) => {
        ($name == $text).then_some(Self::$variant)
    };
    (@parse $name:ident, $text:literal, $variant:ident $type:ident from $least:literal) => {
        $crate::msg::named::number::<$type>($name, $text, $least).map(Self::$variant)
    };
}
pub(super) use named;

/// The number in `name`, if `name` is `text-NUMBER` and the number is at least `least`.
pub(super) fn number<N: core::str::FromStr + PartialOrd>(name: &str, text: &str, least: N) -> Option<N> {
    name.strip_prefix(text)?.strip_prefix('-')?.parse().ok().filter(|number| *number >= least)
}

/// The full name of an algorithm, such as `bcast/knomial-4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// The collective's name.
    pub collective: &'static str,
    /// The algorithm's name, without its number.
    pub algorithm: &'static str,
    /// The number in its name.
    pub number: Option<u64>,
}

impl Label {
    /// The full name of an algorithm.
    pub fn of<A: Named>(algorithm: A) -> Self {
        let (algorithm, number) = algorithm.name();
        Self { collective: A::COLLECTIVE, algorithm, number }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collective, algorithm, number } = self;
        match number {
            None => write!(f, "{collective}/{algorithm}"),
            Some(number) => write!(f, "{collective}/{algorithm}-{number}"),
        }
    }
}

/// What an algorithm needs and a call does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Needs {
    /// An op that commutes.
    Commutative,
    /// A number of ranks that is a power of two; this is the call's number.
    PowerOfTwo(u32),
    /// Blocks of one length, one after the other.
    EqualBlocks,
    /// A table of stages ([`crate::pattern::bagds::Table`]).
    Table,
    /// A tree as the shape of every level.
    Trees,
    /// Groups that are runs of consecutive ranks.
    Runs,
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commutative => f.write_str("an operation that commutes"),
            Self::PowerOfTwo(ranks) => write!(f, "a power of two of ranks, which {ranks} is not"),
            Self::EqualBlocks => f.write_str("blocks of one length"),
            Self::Table => f.write_str("a table of stages"),
            Self::Trees => f.write_str("trees on all levels, not slices"),
            Self::Runs => f.write_str("groups that are runs of ranks: the operation has an order"),
        }
    }
}

/// Why a plan was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlanError {
    /// An argument was refused.
    Refused(Refusal),
    /// The algorithm that was asked for does not apply.
    Inapplicable {
        /// The algorithm.
        algorithm: Label,
        /// What it needs.
        needs: Needs,
    },
    /// The composition over levels that was asked for does not apply.
    OverLevels(Needs),
}

impl From<Refusal> for PlanError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl PlanError {
    /// Makes the error of `algorithm` from what it needs.
    pub(crate) fn of<A: Named>(algorithm: A) -> impl Fn(Needs) -> Self {
        let algorithm = Label::of(algorithm);
        move |needs| Self::Inapplicable { algorithm, needs }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Inapplicable { algorithm, needs } => write!(f, "{algorithm} needs {needs}"),
            Self::OverLevels(needs) => write!(f, "an algorithm over these levels needs {needs}"),
        }
    }
}

impl core::error::Error for PlanError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msg::allgather;
    use std::string::ToString;

    #[test]
    fn an_algorithm_that_does_not_apply_is_named() {
        let algorithm = Label::of(allgather::Algorithm::Doubling);
        let error = PlanError::Inapplicable { algorithm, needs: Needs::PowerOfTwo(6) };
        assert_eq!(error.to_string(), "allgather/doubling needs a power of two of ranks, which 6 is not");
    }
}

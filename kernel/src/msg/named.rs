//! Names of algorithms, and why one does not apply.

use crate::error::Refusal;
use core::fmt;

/// An algorithm that users name, with a number where it has a parameter: `knomial-4`.
pub trait Named: Copy + Sized + 'static {
    /// The collective's name.
    const COLLECTIVE: &'static str;

    /// All names, and whether a number stands behind.
    const NAMES: &'static [(&'static str, bool)];

    /// What a name stands for; none for unknown names.
    fn from_name(name: &str) -> Option<Self>;

    /// The name, and the number behind it.
    fn name(self) -> (&'static str, Option<u64>);
}

/// The algorithms of a collective, each with its name, and the least of its parameter if it has one:
/// `Variant = "name"`, or `Variant(parameter: type from least) = "name"`, which is called `name-NUMBER`. Behind them,
/// another name for one: `"name" is Variant(number)`.
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

/// The number in `name`, which is `text-NUMBER`, if it is `least` at least.
pub(super) fn number<N: core::str::FromStr + PartialOrd>(name: &str, text: &str, least: N) -> Option<N> {
    name.strip_prefix(text)?.strip_prefix('-')?.parse().ok().filter(|number| *number >= least)
}

/// What an algorithm is called: `bcast/knomial-4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// The collective.
    pub collective: &'static str,
    /// The algorithm.
    pub algorithm: &'static str,
    /// The number behind its name.
    pub number: Option<u64>,
}

impl Label {
    /// That of an algorithm.
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

/// What an algorithm needs that a call has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Needs {
    /// An operation that commutes.
    Commutative,
    /// A power of two of processes; there are so many.
    PowerOfTwo(u32),
    /// Blocks of one length, in a row.
    EqualBlocks,
    /// A table of stages.
    Table,
    /// Trees on all levels.
    Trees,
    /// Groups that are runs of ranks.
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
        /// Which.
        algorithm: Label,
        /// Why.
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
    /// `needs` of `algorithm`.
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

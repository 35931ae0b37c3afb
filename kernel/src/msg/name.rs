//! Names of algorithms, and why one does not apply.

use super::{allgather, allreduce, alltoall, barrier, bcast, gather, reduce, reduce_scatter, scan, scatter};
use crate::error::Refusal;
use core::fmt;

/// An algorithm that users name, with a number where it has a parameter: `knomial-4`.
pub trait Named: Copy + Sized + 'static {
    /// All names, and whether a number stands behind.
    const NAMES: &'static [(&'static str, bool)];

    /// What a name stands for; none for unknown names.
    fn from_name(name: &str) -> Option<Self>;

    /// The name, and the number behind it.
    fn name(self) -> (&'static str, Option<u64>);
}

/// A collective's algorithms, each with its name, and the least of its parameter if it has one:
/// `Variant = "name"`, or `Variant(parameter: type from least) = "name"`, which is called `name-NUMBER`. Behind them,
/// another name for one: `"name" is Variant(number)`.
macro_rules! named {
    (
        $(#[$outer:meta])*
        $name:ident {
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
        $crate::msg::name::number::<$type>($name, $text, $least).map(Self::$variant)
    };
}
pub(super) use named;

/// The number in `name`, which is `text-NUMBER`, if it is `least` at least.
pub(super) fn number<N: core::str::FromStr + PartialOrd>(name: &str, text: &str, least: N) -> Option<N> {
    name.strip_prefix(text)?.strip_prefix('-')?.parse().ok().filter(|number| *number >= least)
}

/// [`Algorithm`], from its variants: the collective's name and its module.
macro_rules! algorithms {
    ($($(#[$doc:meta])* $variant:ident($module:ident) = $name:literal,)*) => {
        /// An algorithm of any collective over messages: for who keeps several of them, and for messages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Algorithm {
            $($(#[$doc])* $variant($module::Algorithm),)*
        }

        impl Algorithm {
            /// What `COLLECTIVE/ALGORITHM` stands for, as `bcast/knomial-4`; none for unknown names.
            pub fn from_name(name: &str) -> Option<Self> {
                let (collective, algorithm) = name.split_once('/')?;
                Self::of(collective, algorithm)
            }

            /// The algorithm of a collective that has this name.
            pub fn of(collective: &str, algorithm: &str) -> Option<Self> {
                match collective {
                    $($name => $module::Algorithm::from_name(algorithm).map(Self::$variant),)*
                    _ => None,
                }
            }

            /// Each collective's name, and the names of its algorithms, with whether a number stands behind.
            pub const NAMES: &'static [(&'static str, &'static [(&'static str, bool)])] =
                &[$(($name, <$module::Algorithm as Named>::NAMES),)*];

            /// The collective, and the algorithm's name with the number behind it.
            pub fn parts(self) -> (&'static str, (&'static str, Option<u64>)) {
                match self {
                    $(Self::$variant(algorithm) => ($name, algorithm.name()),)*
                }
            }
        }

        $(impl From<$module::Algorithm> for Algorithm {
            fn from(algorithm: $module::Algorithm) -> Self {
                Self::$variant(algorithm)
            }
        })*
    };
}

algorithms! {
    /// Barrier.
    Barrier(barrier) = "barrier",
    /// Broadcast.
    Bcast(bcast) = "bcast",
    /// Reduce.
    Reduce(reduce) = "reduce",
    /// Allreduce.
    Allreduce(allreduce) = "allreduce",
    /// Gather, gatherv.
    Gather(gather) = "gather",
    /// Scatter, scatterv.
    Scatter(scatter) = "scatter",
    /// Allgather, allgatherv.
    Allgather(allgather) = "allgather",
    /// Alltoall, alltoallv.
    Alltoall(alltoall) = "alltoall",
    /// Reduce_scatter.
    ReduceScatter(reduce_scatter) = "reduce_scatter",
    /// Scan and exscan.
    Scan(scan) = "scan",
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            (collective, (name, None)) => write!(f, "{collective}/{name}"),
            (collective, (name, Some(number))) => write!(f, "{collective}/{name}-{number}"),
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
        algorithm: Algorithm,
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
    pub(super) fn of<A: Into<Algorithm>>(algorithm: A) -> impl FnOnce(Needs) -> Self {
        let algorithm = algorithm.into();
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
    use std::format;
    use std::string::ToString;

    #[test]
    fn names_are_what_they_print() {
        let mut all = 0;
        for (collective, names) in Algorithm::NAMES {
            for (name, numbered) in *names {
                let name = if *numbered { format!("{collective}/{name}-8192") } else { format!("{collective}/{name}") };
                assert_eq!(Algorithm::from_name(&name).map(|algorithm| algorithm.to_string()), Some(name));
                all += 1;
            }
        }
        assert_eq!(all, 34);
        assert_eq!(bcast::Algorithm::from_name("binomial"), Some(bcast::Algorithm::Knomial(2)));
        assert_eq!(reduce::Algorithm::from_name("binomial"), Some(reduce::Algorithm::Knomial(2)));
        for bad in ["", "bcast", "bcast/", "bcast/knomial-1", "bcast/chain-0", "barrier/combining-0", "Bcast/flat"] {
            assert_eq!(Algorithm::from_name(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_algorithm_that_does_not_apply_is_named() {
        let algorithm = Algorithm::Allgather(allgather::Algorithm::Doubling);
        let error = PlanError::Inapplicable { algorithm, needs: Needs::PowerOfTwo(6) };
        assert_eq!(error.to_string(), "allgather/doubling needs a power of two of ranks, which 6 is not");
    }
}

//! All algorithms over messages, by name.

use super::named::{Label, Named};
use super::{allgather, allreduce, alltoall, barrier, bcast, gather, reduce, reduce_scatter, scan, scatter};
use core::fmt;

/// Defines [`Algorithm`] from its variants, each with the collective's module.
macro_rules! algorithms {
    ($($(#[$doc:meta])* $variant:ident($module:ident),)*) => {
        /// An algorithm of any collective over messages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Algorithm {
            $($(#[$doc])* $variant($module::Algorithm),)*
        }

        impl Algorithm {
            /// The algorithm with the name `COLLECTIVE/ALGORITHM`, such as `bcast/knomial-4`; `None` for unknown names.
            pub fn from_name(name: &str) -> Option<Self> {
                let (collective, algorithm) = name.split_once('/')?;
                Self::of(collective, algorithm)
            }

            /// The algorithm of a collective that has this name; `None` for unknown names.
            pub fn of(collective: &str, algorithm: &str) -> Option<Self> {
                $(if collective == $module::Algorithm::COLLECTIVE {
                    return $module::Algorithm::from_name(algorithm).map(Self::$variant);
                })*
                None
            }

            /// Each collective's name, and [`Named::NAMES`] of its algorithms.
            pub const NAMES: &'static [(&'static str, &'static [(&'static str, bool)])] =
                &[$(($module::Algorithm::COLLECTIVE, $module::Algorithm::NAMES),)*];

            /// Its full name.
            pub fn label(self) -> Label {
                match self {
                    $(Self::$variant(algorithm) => Label::of(algorithm),)*
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
    Barrier(barrier),
    /// Broadcast.
    Bcast(bcast),
    /// Reduce.
    Reduce(reduce),
    /// Allreduce.
    Allreduce(allreduce),
    /// Gather, gatherv.
    Gather(gather),
    /// Scatter, scatterv.
    Scatter(scatter),
    /// Allgather, allgatherv.
    Allgather(allgather),
    /// Alltoall, alltoallv.
    Alltoall(alltoall),
    /// Reduce_scatter.
    ReduceScatter(reduce_scatter),
    /// Scan and exscan.
    Scan(scan),
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.label().fmt(f)
    }
}

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
        assert_eq!(all, 35);
        assert_eq!(bcast::Algorithm::from_name("binomial"), Some(bcast::Algorithm::Knomial(2)));
        assert_eq!(reduce::Algorithm::from_name("binomial"), Some(reduce::Algorithm::Knomial(2)));
        for bad in ["", "bcast", "bcast/", "bcast/knomial-1", "bcast/chain-0", "barrier/combining-0", "Bcast/flat"] {
            assert_eq!(Algorithm::from_name(bad), None, "{bad}");
        }
    }
}

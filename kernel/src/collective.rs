//! Which collectives there are: by number in a segment, and by name in tables and errors.

use core::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $name:literal;)*) => {
        /// A collective by number, as the heads of lines and errors have it. Collectives that match each other between
        /// ranks, such as gather and gatherv, share a number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind = $number,)*
        }

        impl Kind {
            /// All of them.
            #[cfg(test)]
            pub(crate) const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];

            /// The collective of this number, as MPI calls it.
            pub(crate) const fn name(number: u64) -> &'static str {
                match number {
                    0 => "?",
                    $($number => $name,)*
                    _ => "unknown",
                }
            }
        }
    };
}

// Numbers are fixed for good: a segment has them. New ones go to the end.
kinds! {
    /// MPI_Bcast.
    Bcast = 1, "bcast";
    /// MPI_Allreduce.
    Allreduce = 2, "allreduce";
    /// MPI_Gather, MPI_Gatherv.
    Gather = 3, "gather";
    /// MPI_Scatter, MPI_Scatterv.
    Scatter = 4, "scatter";
    /// MPI_Allgather, MPI_Allgatherv.
    Allgather = 5, "allgather";
    /// MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw.
    Alltoall = 6, "alltoall";
    /// MPI_Reduce.
    Reduce = 7, "reduce";
    /// MPI_Reduce_scatter, MPI_Reduce_scatter_block.
    ReduceScatter = 8, "reduce_scatter";
    /// MPI_Scan.
    Scan = 9, "scan";
    /// MPI_Exscan.
    Exscan = 10, "exscan";
    /// MPI_Barrier.
    Barrier = 11, "barrier";
}

/// What each rank knows of the bytes of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bytes {
    /// There are none.
    None,
    /// All ranks know the same number.
    Alike,
    /// Blocks may be unequal, and each rank knows its own.
    Own,
}

/// Whether a collective applies an op.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Applies {
    Op,
    Nothing,
}

macro_rules! collectives {
    ($($(#[$doc:meta])* $collective:ident: $name:literal, $family:literal, Bytes::$bytes:ident, Applies::$applies:ident;)*) => {
        /// A collective, as decision tables name it. Variants in which ranks don't know each other's lengths have a
        /// name of their own: for them no algorithm can be chosen by bytes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Collective {
            $($(#[$doc])* $collective,)*
        }

        impl Collective {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$collective),*];

            /// MPI's name, without its prefix.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$collective => $name,)* }
            }

            /// Its name among the algorithms over messages.
            pub(crate) const fn family(self) -> &'static str {
                match self { $(Self::$collective => $family,)* }
            }

            /// Do all ranks know the bytes? A barrier has none, and of unequal blocks a rank may know its own alone.
            pub const fn has_bytes(self) -> bool {
                matches!(match self { $(Self::$collective => Bytes::$bytes,)* }, Bytes::Alike)
            }

            /// Is it a reduction? Its op may not commute.
            pub const fn folds(self) -> bool {
                matches!(match self { $(Self::$collective => Applies::$applies,)* }, Applies::Op)
            }
        }
    };
}

// The one list of the collectives: its name, its family among the algorithms over messages, what ranks know of its bytes, and
// whether it applies an op. Which machine runs it stands in `call/visit.rs`, which algorithm by default in `table/`.
collectives! {
    /// MPI 4.1, 7.3.
    Barrier: "barrier", "barrier", Bytes::None, Applies::Nothing;
    /// MPI 4.1, 7.4.
    Bcast: "bcast", "bcast", Bytes::Alike, Applies::Nothing;
    /// MPI 4.1, 7.5; bytes of a block.
    Gather: "gather", "gather", Bytes::Alike, Applies::Nothing;
    /// MPI 4.1, 7.5.
    Gatherv: "gatherv", "gather", Bytes::Own, Applies::Nothing;
    /// MPI 4.1, 7.6; bytes of a block.
    Scatter: "scatter", "scatter", Bytes::Alike, Applies::Nothing;
    /// MPI 4.1, 7.6.
    Scatterv: "scatterv", "scatter", Bytes::Own, Applies::Nothing;
    /// MPI 4.1, 7.7, with equal blocks or not; bytes of the longest block.
    Allgather: "allgather", "allgather", Bytes::Alike, Applies::Nothing;
    /// MPI 4.1, 7.8; bytes of a block.
    Alltoall: "alltoall", "alltoall", Bytes::Alike, Applies::Nothing;
    /// MPI 4.1, 7.8.
    Alltoallv: "alltoallv", "alltoall", Bytes::Own, Applies::Nothing;
    /// MPI 4.1, 7.9.1.
    Reduce: "reduce", "reduce", Bytes::Alike, Applies::Op;
    /// MPI 4.1, 7.9.6.
    Allreduce: "allreduce", "allreduce", Bytes::Alike, Applies::Op;
    /// MPI 4.1, 7.10; bytes of the whole vector, of unequal blocks as if all were as long as the longest.
    ReduceScatter: "reduce_scatter", "reduce_scatter", Bytes::Alike, Applies::Op;
    /// MPI 4.1, 7.11.1.
    Scan: "scan", "scan", Bytes::Alike, Applies::Op;
    /// MPI 4.1, 7.11.2.
    Exscan: "exscan", "scan", Bytes::Alike, Applies::Op;
}

impl Collective {
    /// The collective of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|collective| collective.name() == name)
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_names() {
        for (at, kind) in (1..).zip(Kind::ALL) {
            assert_eq!(kind as u64, at, "{kind:?}");
        }
        assert_eq!([1, 8, 11].map(Kind::name), ["bcast", "reduce_scatter", "barrier"]);
        assert_eq!([0, 12, u64::MAX].map(Kind::name), ["?", "unknown", "unknown"]);
    }
}

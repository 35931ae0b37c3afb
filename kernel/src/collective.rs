//! The collectives: by number in a segment, and by name in tables and errors.

use core::fmt;

/// A collective by number, as the heads of lines and errors have it. Collectives that match each other between ranks,
/// such as gather and gatherv, share a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// MPI_Bcast.
    Bcast = 1,
    /// MPI_Allreduce.
    Allreduce = 2,
    /// MPI_Gather, MPI_Gatherv.
    Gather = 3,
    /// MPI_Scatter, MPI_Scatterv.
    Scatter = 4,
    /// MPI_Allgather, MPI_Allgatherv.
    Allgather = 5,
    /// MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw.
    Alltoall = 6,
    /// MPI_Reduce.
    Reduce = 7,
    /// MPI_Reduce_scatter, MPI_Reduce_scatter_block.
    ReduceScatter = 8,
    /// MPI_Scan.
    Scan = 9,
    /// MPI_Exscan.
    Exscan = 10,
    /// MPI_Barrier.
    Barrier = 11,
}

impl Kind {
    /// The collective of this number, as MPI calls it.
    pub(crate) const fn name(number: u64) -> &'static str {
        const NAMES: [&str; 12] = [
            "?",
            "bcast",
            "allreduce",
            "gather",
            "scatter",
            "allgather",
            "alltoall",
            "reduce",
            "reduce_scatter",
            "scan",
            "exscan",
            "barrier",
        ];
        if number < NAMES.len() as u64 { NAMES[number as usize] } else { "unknown" }
    }
}

/// A collective, as decision tables name it. Variants in which ranks don't know each other's lengths have a name of
/// their own: for them no algorithm can be chosen by bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// MPI 4.1, 7.3.
    Barrier,
    /// MPI 4.1, 7.4.
    Bcast,
    /// MPI 4.1, 7.5; bytes of a block.
    Gather,
    /// MPI 4.1, 7.5.
    Gatherv,
    /// MPI 4.1, 7.6; bytes of a block.
    Scatter,
    /// MPI 4.1, 7.6.
    Scatterv,
    /// MPI 4.1, 7.7, with equal blocks or not; bytes of the longest block.
    Allgather,
    /// MPI 4.1, 7.8; bytes of a block.
    Alltoall,
    /// MPI 4.1, 7.8.
    Alltoallv,
    /// MPI 4.1, 7.9.1.
    Reduce,
    /// MPI 4.1, 7.9.6.
    Allreduce,
    /// MPI 4.1, 7.10; bytes of the whole vector.
    ReduceScatter,
    /// MPI 4.1, 7.11.1.
    Scan,
    /// MPI 4.1, 7.11.2.
    Exscan,
}

impl Collective {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Barrier,
        Self::Bcast,
        Self::Gather,
        Self::Gatherv,
        Self::Scatter,
        Self::Scatterv,
        Self::Allgather,
        Self::Alltoall,
        Self::Alltoallv,
        Self::Reduce,
        Self::Allreduce,
        Self::ReduceScatter,
        Self::Scan,
        Self::Exscan,
    ];

    /// MPI's name, without its prefix.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Bcast => "bcast",
            Self::Gather => "gather",
            Self::Gatherv => "gatherv",
            Self::Scatter => "scatter",
            Self::Scatterv => "scatterv",
            Self::Allgather => "allgather",
            Self::Alltoall => "alltoall",
            Self::Alltoallv => "alltoallv",
            Self::Reduce => "reduce",
            Self::Allreduce => "allreduce",
            Self::ReduceScatter => "reduce_scatter",
            Self::Scan => "scan",
            Self::Exscan => "exscan",
        }
    }

    /// The collective of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|collective| collective.name() == name)
    }

    /// Do all ranks know the bytes? A barrier has none, and of unequal blocks a rank may know its own alone.
    pub const fn has_bytes(self) -> bool {
        !matches!(self, Self::Barrier | Self::Gatherv | Self::Scatterv | Self::Alltoallv)
    }

    /// Is it a reduction? Its op may not commute.
    pub const fn folds(self) -> bool {
        matches!(self, Self::Reduce | Self::Allreduce | Self::ReduceScatter | Self::Scan | Self::Exscan)
    }

    /// Its name among the algorithms over messages.
    pub(crate) const fn family(self) -> &'static str {
        match self {
            Self::Gatherv => "gather",
            Self::Scatterv => "scatter",
            Self::Alltoallv => "alltoall",
            Self::Exscan => "scan",
            other => other.name(),
        }
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const KINDS: [Kind; 11] = [
        Kind::Bcast,
        Kind::Allreduce,
        Kind::Gather,
        Kind::Scatter,
        Kind::Allgather,
        Kind::Alltoall,
        Kind::Reduce,
        Kind::ReduceScatter,
        Kind::Scan,
        Kind::Exscan,
        Kind::Barrier,
    ];

    #[test]
    fn kinds_have_their_names() {
        let names = KINDS.map(|kind| Kind::name(kind as u64));
        assert_eq!((names[0], names[7], names[10]), ("bcast", "reduce_scatter", "barrier"));
        assert_eq!([0, 12, u64::MAX].map(Kind::name), ["?", "unknown", "unknown"]);
    }
}

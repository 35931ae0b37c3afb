//! The MPIs that Unisono has libraries for: how their programs, their launchers and the ranks of their jobs are recognised.

use clap::ValueEnum;
use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// The names that launchers have; on one machine several of them may be one program.
pub(crate) const LAUNCHERS: [&str; 7] =
    ["mpirun", "mpiexec", "mpirun.openmpi", "mpirun.mpich", "mpiexec.hydra", "orterun", "prterun"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mpi {
    /// Open MPI 4 and 5
    Openmpi,
    /// MPICH 4 and 5, Intel MPI
    Mpich,
    /// MPIs with the handles of the standard's ABI (libmpi_abi)
    Abi,
}

impl Mpi {
    /// Unisono's library for it.
    pub(crate) const fn library(self) -> &'static str {
        match self {
            Self::Openmpi => "libunisono_openmpi.so",
            Self::Mpich => "libunisono_mpich.so",
            Self::Abi => "libunisono_abi.so",
        }
    }

    /// The names that the MPI's own library may have.
    pub(crate) const fn sonames(self) -> &'static [&'static str] {
        match self {
            Self::Openmpi => &["libmpi.so.40"],
            Self::Mpich => &["libmpich.so.12", "libmpi.so.12"],
            Self::Abi => &["libmpi_abi.so.1", "libmpi_abi.so.0"],
        }
    }

    /// The MPI that a program is linked with.
    pub(crate) fn of_program(program: &Path) -> Option<Self> {
        let output = Command::new("ldd").arg(program).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let needs = |name: &&str| text.lines().any(|line| line.trim_start().starts_with(*name));
        // Open MPI's library of the standard's ABI needs its other one.
        [Self::Abi, Self::Openmpi, Self::Mpich].into_iter().find(|mpi| mpi.sonames().iter().any(needs))
    }

    /// The MPI of the launcher that says this of its version.
    pub(crate) fn of_launcher(version: &str) -> Option<Self> {
        let says = |words: &[&str]| words.iter().any(|word| version.contains(word));
        if says(&["Open MPI", "OpenRTE", "PRRTE"]) {
            return Some(Self::Openmpi);
        }
        says(&["HYDRA", "Intel(R) MPI"]).then_some(Self::Mpich)
    }

    /// The MPI whose rank this process is: the library that is preloaded says it, or the variables that launchers set.
    pub(crate) fn of_rank() -> Option<Self> {
        let preloaded = env::var_os(crate::run::PRELOAD).unwrap_or_default();
        // Launchers of other MPIs start its ranks, too.
        if preloaded.to_string_lossy().contains(Self::Abi.library()) {
            return Some(Self::Abi);
        }
        let set = |name: &str| env::var_os(name).is_some();
        if set("OMPI_COMM_WORLD_SIZE") {
            return Some(Self::Openmpi);
        }
        (set("PMI_SIZE") || set("PMI_FD")).then_some(Self::Mpich)
    }
}

/// What a launcher says of its version; nothing, if it says nothing. A program that is not a launcher is not asked.
pub(crate) fn version(launcher: &OsStr) -> String {
    let name = Path::new(launcher).file_name().unwrap_or_default().to_string_lossy();
    if !LAUNCHERS.iter().any(|begin| name.starts_with(begin)) {
        return String::new();
    }
    let output = Command::new(launcher).arg("--version").output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
}

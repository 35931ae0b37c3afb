//! `unisono measure … --over mpi`, `unisono tune --preload`: this program is a rank of an MPI job.

use super::args::Libraries;
use crate::error::Failure;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use unisono_measure::mpi::Job;

/// By launcher: a variable that it sets for its ranks, Unisono's library for its MPI, and the MPI's library.
const LAUNCHERS: [(&str, &str, &str); 3] = [
    ("OMPI_COMM_WORLD_SIZE", "libunisono_openmpi.so", "libmpi.so.40"),
    ("PMI_SIZE", "libunisono_mpich.so", "libmpich.so.12"),
    ("PMI_FD", "libunisono_mpich.so", "libmpich.so.12"),
];

/// Makes a measurement on all ranks. Only rank 0, which prints, gets the result.
pub(crate) fn on<T, E>(
    libraries: &Libraries,
    measure: impl FnOnce(&mut Job) -> Result<T, E>,
) -> Result<Option<T>, Failure>
where
    Failure: From<E>,
{
    let launched = LAUNCHERS.iter().find(|(variable, ..)| std::env::var_os(variable).is_some());
    let none = || Failure::Words("no launcher of an MPI has started this: mpirun -n 2 unisono …".into());
    let (_, unisono, mpi) = launched.ok_or_else(none)?;
    let unisono = libraries.library.clone().unwrap_or_else(|| find(unisono));
    let mpi = libraries.mpi.clone().unwrap_or_else(|| PathBuf::from(mpi));
    // SAFETY: the files are Unisono's and the MPI's, as their names or the user's options say; nothing else here starts
    // an MPI.
    let mut job = unsafe { Job::start(&string(&unisono)?, &string(&mpi)?) }.map_err(words)?;
    let prints = job.rank() == 0;
    let answer = measure(&mut job)?;
    job.finalize().map_err(words)?;
    Ok(prints.then_some(answer))
}

/// Beside this program, or in the library folder of its installation; else where the loader looks.
fn find(name: &str) -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let beside = program.parent().unwrap_or(Path::new("."));
    let places = [beside.join(name), beside.join("../lib").join(name)];
    places.into_iter().find(|path| path.exists()).unwrap_or_else(|| name.into())
}

fn string(path: &Path) -> Result<CString, Failure> {
    CString::new(path.as_os_str().as_bytes()).map_err(words)
}

fn words(error: impl std::fmt::Display) -> Failure {
    Failure::Words(error.to_string())
}

//! `unisono measure … --over mpi`, `unisono tune --preload`: this program is a rank of an MPI job.

use super::args::Libraries;
use crate::error::Failure;
use crate::run::PRELOAD;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use unisono_measure::mpi::Job;

/// By launcher: a variable that it sets for its ranks, Unisono's library for its MPI, and the names that the MPI's library may have;
/// where no folder is known, the loader looks for the first.
const LAUNCHERS: [(&str, &str, &[&str]); 3] = [
    ("OMPI_COMM_WORLD_SIZE", "libunisono_openmpi.so", &["libmpi.so.40"]),
    ("PMI_SIZE", "libunisono_mpich.so", &["libmpich.so.12", "libmpi.so.12"]),
    ("PMI_FD", "libunisono_mpich.so", &["libmpich.so.12", "libmpi.so.12"]),
];

/// The MPI whose handles are those of the standard's ABI: its launcher starts others, too.
const ABI: (&str, &str, &[&str]) = ("", "libunisono_abi.so", &["libmpi_abi.so.1", "libmpi_abi.so.0"]);

fn abi_is_preloaded() -> bool {
    let preloaded = std::env::var_os(PRELOAD).unwrap_or_default();
    preloaded.to_string_lossy().contains(ABI.1)
}

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
    let (_, unisono, mpi) = if abi_is_preloaded() { ABI } else { *launched.ok_or_else(none)? };
    let unisono = libraries.library.clone().unwrap_or_else(|| find(unisono));
    let mpi = libraries.mpi.clone().or_else(|| beside_launcher(mpi)).or_else(|| mpi.first().map(PathBuf::from));
    let mpi = mpi.unwrap_or_default();
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

/// The MPI's library in the installation of the launcher: of the nearest process above this one in whose `../lib` there is one of
/// these names.
fn beside_launcher(names: &[&str]) -> Option<PathBuf> {
    let mut process = std::os::unix::process::parent_id();
    while process > 1 {
        // What belongs to another user does not say which program it is.
        if let Ok(program) = std::fs::read_link(format!("/proc/{process}/exe")) {
            let folder = program.parent()?.join("../lib");
            if let Some(library) = names.iter().map(|name| folder.join(name)).find(|path| path.exists()) {
                return Some(library);
            }
        }
        process = parent_of(process)?;
    }
    None
}

/// The fourth field of `stat`, behind the name in brackets, which may contain anything.
fn parent_of(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn string(path: &Path) -> Result<CString, Failure> {
    CString::new(path.as_os_str().as_bytes()).map_err(words)
}

fn words(error: impl std::fmt::Display) -> Failure {
    Failure::Words(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_parent() {
        assert_eq!(parent_of(std::process::id()), Some(std::os::unix::process::parent_id()));
        assert_eq!(parent_of(u32::MAX), None);
    }

    #[test]
    fn no_library_is_found_beside_programs_that_have_none() {
        assert_eq!(beside_launcher(&["libno-mpi-has-this-name.so.1"]), None);
    }
}

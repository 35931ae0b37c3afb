//! `unisono measure … --over mpi`, `unisono tune --preload`: this program is a rank of an MPI job.

use super::args::Libraries;
use crate::error::Failure;
use crate::mpis::Mpi;
use crate::run::installed;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use unisono_measure::mpi::Job;

/// Makes a measurement on all ranks. Only rank 0, which prints, gets the result.
pub(crate) fn on<T, E>(
    libraries: &Libraries,
    measure: impl FnOnce(&mut Job) -> Result<T, E>,
) -> Result<Option<T>, Failure>
where
    Failure: From<E>,
{
    let none = || Failure::Words("no launcher of an MPI has started this: mpirun -n 2 unisono …".into());
    let mpi = Mpi::of_rank().ok_or_else(none)?;
    // Where no folder is known the loader looks for them.
    let unisono = libraries.library.clone().or_else(|| installed(mpi.library()).ok());
    let unisono = unisono.unwrap_or_else(|| mpi.library().into());
    let names = mpi.sonames();
    let library = libraries.mpi.clone().or_else(|| beside_launcher(names));
    let library = library.unwrap_or_else(|| names.first().copied().unwrap_or_default().into());
    // SAFETY: the files are Unisono's and the MPI's, as their names or the user's options say; nothing else here starts
    // an MPI.
    let mut job = unsafe { Job::start(&string(&unisono)?, &string(&library)?) }.map_err(words)?;
    let prints = job.rank() == 0;
    let answer = measure(&mut job)?;
    job.finalize().map_err(words)?;
    Ok(prints.then_some(answer))
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

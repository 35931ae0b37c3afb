//! The MPIs of this machine, by their launchers in the search path, and Unisono's library for each.

use crate::mpis::{self, LAUNCHERS, Mpi};
use crate::run::installed;
use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;

/// Of each launcher: its MPI and the library that `unisono preload` takes for it, or why there is none.
pub(super) fn found() -> Vec<Result<String, String>> {
    let folders: Vec<PathBuf> = env::var_os("PATH").map_or_else(Vec::new, |path| env::split_paths(&path).collect());
    let mut launchers: Vec<(PathBuf, PathBuf)> = Vec::new();
    for place in LAUNCHERS.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))) {
        // Links to one program, and folders that are named twice.
        if let Ok(program) = place.canonicalize()
            && launchers.iter().all(|(_, other)| *other != program)
        {
            launchers.push((place, program));
        }
    }
    if launchers.is_empty() {
        return vec![Err(format!("no launcher of an MPI in PATH ({})", LAUNCHERS.join(", ")))];
    }
    launchers.iter().map(|(place, _)| library(place.as_os_str())).collect()
}

fn library(launcher: &OsStr) -> Result<String, String> {
    let says = mpis::version(launcher);
    let (place, version) = (launcher.display(), first(&says));
    let mpi = Mpi::of_launcher(&says)
        .ok_or_else(|| format!("{place}: which MPI it is, its --version does not say: {version:?}"))?;
    match installed(mpi.library()) {
        Ok(library) => Ok(format!("{place} ({version}): {} (`unisono preload -- {place} …`)", library.display())),
        Err(places) => {
            Err(format!("{place} ({version}): there is no {places}: hosts/mpi/build.sh or make install makes it"))
        }
    }
}

/// The first line of what a launcher says of its version, and the next one, if the first only begins a list.
fn first(says: &str) -> String {
    let lines =
        says.lines().scan(true, |goes_on, line| goes_on.then(|| (*goes_on = line.trim_end().ends_with(':'), line).1));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_line_or_the_begin_of_a_list() {
        assert_eq!(
            first("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/\n"),
            "mpirun (Open MPI) 4.1.4"
        );
        let hydra =
            "HYDRA build details:\n    Version:                                 4.0.2\n    Release Date: 2022\n";
        assert_eq!(first(hydra), "HYDRA build details: Version: 4.0.2");
        assert_eq!(first(""), "");
    }
}

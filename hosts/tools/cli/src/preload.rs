//! `unisono preload`: starts an MPI's launcher, or a program, with the library for its MPI preloaded.
//!
//! Which MPI it is, the libraries say that the programs in the command need; if none needs one (Python loads it late), the
//! launcher's version says it.

use crate::error::Failure;
use crate::mpis::{self, Mpi};
use crate::out::outln;
use crate::run::{PRELOAD, installed};
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, clap::Args)]
pub(crate) struct Preload {
    /// The MPI, if the command does not show it
    #[arg(long, value_enum, value_name = "MPI")]
    mpi: Option<Mpi>,
    /// Preload libunisono_heap.so, too: the programs' large blocks of memory lie where the other processes read them
    #[arg(long)]
    heap: bool,
    /// Print the command, as a shell reads it, and do not run it
    #[arg(long)]
    print: bool,
    /// The command: an MPI's launcher with its arguments, or the program itself where a batch system starts the ranks
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: Preload) -> Result<(), Failure> {
    let (first, rest) = args.command.split_first().ok_or_else(|| Failure::Words("preload: no command given".into()))?;
    if let Some(own) = rest.iter().find(|word| *word == PRELOAD || word.as_bytes().starts_with(b"LD_PRELOAD=")) {
        let words = format!(
            "preload: the command sets {} itself, so that no library of Unisono would be loaded",
            own.display()
        );
        return Err(Failure::Words(words));
    }
    let version = mpis::version(first);
    let mpi = match args.mpi {
        Some(mpi) => mpi,
        None => needed(&args.command).or_else(|| Mpi::of_launcher(&version)).ok_or_else(|| {
            let words = "preload: the command does not show which MPI it uses: give --mpi openmpi, mpich or abi";
            Failure::Words(words.into())
        })?,
    };
    let mut libraries = OsString::from(installed(mpi.library()).map_err(|places| {
        Failure::Words(format!("preload: there is no {places}: hosts/mpi/build.sh or make install makes it"))
    })?);
    if args.heap {
        libraries.push(":");
        libraries.push(crate::run::library()?);
    }
    if let Some(before) = env::var_os(PRELOAD) {
        libraries.push(":");
        libraries.push(before);
    }
    // Open MPI's launcher passes on to other nodes only what it is told to.
    let mut words = Vec::new();
    if version.contains("Open MPI") {
        for name in std::iter::once(OsString::from(PRELOAD)).chain(settings()) {
            words.extend([OsString::from("-x"), name]);
        }
    }
    words.extend_from_slice(rest);
    let mut environment = vec![(OsString::from(PRELOAD), libraries)];
    if args.heap {
        environment.push(("UNISONO_HEAP".into(), "shared".into()));
    }
    if args.print {
        let set = environment.iter().map(|(name, value)| format!("{}={}", shown(name), shown(value)));
        let line: Vec<_> = set.chain(std::iter::once(first).chain(&words).map(|word| shown(word))).collect();
        outln!("{}", line.join(" "))?;
        return Ok(());
    }
    let error = Command::new(first).args(words).envs(environment).exec();
    Err(Failure::Words(format!("preload: {}: {error}", first.display())))
}

/// The settings of Unisono in the environment.
fn settings() -> impl Iterator<Item = OsString> {
    env::vars_os().map(|(name, _)| name).filter(|name| name.as_bytes().starts_with(b"UNISONO"))
}

/// A word as a shell reads it.
fn shown(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// The MPI that a program in the command is linked with.
fn needed(command: &[OsString]) -> Option<Mpi> {
    command.iter().filter_map(|word| program(word)).find_map(|program| Mpi::of_program(&program))
}

/// The executable that a word of the command names, in the search path or by its place.
fn program(word: &OsStr) -> Option<PathBuf> {
    let elf = |path: &Path| {
        let mut magic = [0; 4];
        let read = std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut magic));
        path.is_file() && read.is_ok() && magic == *b"\x7fELF"
    };
    if word.as_bytes().starts_with(b"-") {
        return None;
    }
    if word.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(word)).filter(|path| elf(path));
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(word)).find(|path| elf(path))
}

//! `unisono preload`, with launchers that print how they are called.

use std::fs::{self, hard_link};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with the program, libraries, and launchers that say this of their version.
fn installed(name: &str, version: &str, libraries: &[&str]) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(fs::remove_dir_all(&home));
    for folder in ["bin", "lib"] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    hard_link(env!("CARGO_BIN_EXE_unisono"), home.join("bin/unisono")).unwrap();
    for library in libraries {
        fs::write(home.join("lib").join(library), "").unwrap();
    }
    let script = format!(
        "#!/bin/sh\n[ \"$*\" != --version ] || {{ echo '{version}'; exit; }}\necho \"$LD_PRELOAD|$UNISONO_HEAP|$*\"\nexit 7\n"
    );
    let launcher = home.join("bin/mpirun");
    fs::write(&launcher, script).unwrap();
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
    home
}

/// Runs `unisono preload` there; only what `settings` names is set of its variables.
fn preload(home: &Path, settings: &[(&str, &str)], words: &[&str]) -> Output {
    let mut command = Command::new(home.join("bin/unisono"));
    command.arg("preload").args(words).env_clear().env("PATH", format!("{}:/usr/bin:/bin", home.join("bin").display()));
    command.envs(settings.iter().copied()).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_launcher_says_which_library_is_preloaded() {
    let libraries = ["libunisono_openmpi.so", "libunisono_mpich.so"];
    for (name, version, library, passes) in [
        ("open-mpi", "mpirun (Open MPI) 5.0.1", libraries[0], true),
        ("mpich", "HYDRA build details:", libraries[1], false),
        ("intel", "Intel(R) MPI Library for Linux* OS, Version 2021.19", libraries[1], false),
    ] {
        let home = installed(name, version, &libraries);
        let output = preload(&home, &[("UNISONO_STATS", "1")], &["--", "mpirun", "-n", "2", "sh", "-c", "two words"]);
        let place = home.join("bin/../lib").join(library);
        let passed = if passes { "-x LD_PRELOAD -x UNISONO_STATS " } else { "" };
        assert_eq!(text(&output.stdout), format!("{}||{passed}-n 2 sh -c two words\n", place.display()), "{name}");
        assert_eq!(output.status.code(), Some(7), "{name}");
    }
}

#[test]
fn what_is_asked_for_comes_first() {
    let home = installed("asked", "HYDRA", &["libunisono_openmpi.so", "libunisono_heap.so"]);
    let lib = home.join("bin/../lib");
    let words = ["--mpi", "openmpi", "--heap", "--print", "--", "mpirun", "it's", "a=b"];
    let output = preload(&home, &[], &words);
    let libraries = format!("{0}/libunisono_openmpi.so:{0}/libunisono_heap.so", lib.display());
    assert_eq!(text(&output.stdout), format!("LD_PRELOAD={libraries} UNISONO_HEAP=shared mpirun 'it'\\''s' a=b\n"));
    assert!(output.status.success());
}

#[test]
fn what_is_missing_is_named() {
    let home = installed("missing", "HYDRA", &[]);
    let said = |words: &[&str]| {
        let output = preload(&home, &[], words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        text(&output.stderr)
    };
    let library = said(&["mpirun", "true"]);
    let (begin, end) =
        ("unisono: preload: there is no ", "libunisono_mpich.so: hosts/mpi/build.sh or make install makes it\n");
    assert!(library.starts_with(begin) && library.ends_with(end), "{library}");
    let unknown = "unisono: preload: the command does not show which MPI it uses: give --mpi openmpi, mpich or abi\n";
    assert_eq!(said(&["sh", "-c", "true"]), unknown);
    let own =
        "unisono: preload: the command sets LD_PRELOAD=x.so itself, so that no library of Unisono would be loaded\n";
    assert_eq!(said(&["--mpi", "mpich", "mpirun", "-x", "LD_PRELOAD=x.so", "true"]), own);
    fs::write(home.join("lib/libunisono_mpich.so"), "").unwrap();
    let absent = said(&["--mpi", "mpich", "/nowhere/mpirun"]);
    assert!(absent.contains("unisono: preload: /nowhere/mpirun: No such file"), "{absent}");
}

//! `make install`: the installed files, and that C programs find them through pkg-config.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use unisono_posix::launch::{Bind, Launch};
// So that Cargo builds the library for this test.
use unisono_posix_c as _;

const HERE: &str = env!("CARGO_MANIFEST_DIR");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs a command, which must succeed; returns its output.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn script(path: &Path, text: &str) {
    fs::write(path, text).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

/// Installs this build as if it were a release; returns the prefix. Commands that would install packages fail.
fn install() -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("install");
    drop(fs::remove_dir_all(&root));
    let [built, path, prefix] = ["built", "path", "prefix"].map(|name| root.join(name));
    for folder in [&built, &path] {
        fs::create_dir_all(folder).expect("a folder");
    }
    let test = std::env::current_exe().expect("the test has a path");
    for name in ["libunisono_c.so", "libunisono_c.a", "libunisono_posix_c.so"] {
        symlink(test.with_file_name(name), built.join(name)).expect("a link");
    }
    // Another crate's, in whose place any library does.
    symlink(test.with_file_name("libunisono_c.so"), built.join("libunisono_heap.so")).expect("a link");
    script(&built.join("unisono"), "#!/bin/sh\n");
    script(&path.join("cargo"), "#!/bin/sh\n");
    for name in ["apt-get", "dpkg", "sudo"] {
        script(&path.join(name), &format!("#!/bin/sh\ntouch {}/asked\nexit 1\n", root.display()));
    }
    let make = || {
        let mut make = Command::new("make");
        make.args(["-C", &format!("{HERE}/../.."), "install", "MPIS="]);
        make.env_remove("MAKEFLAGS").env_remove("DESTDIR").env_remove("STRIPPED");
        make
    };
    assert!(!run(make().arg("-n")).contains("setup"), "it sets the system up");
    let mut make = make();
    make.args([format!("BUILT={}", built.display()), format!("PREFIX={}", prefix.display())]);
    run(make.env("PATH", format!("{}:{}", path.display(), std::env::var("PATH").expect("a path"))));
    assert!(!root.join("asked").exists(), "it asked for packages");
    prefix
}

/// Compiles a program with the flags that pkg-config gives for a library.
fn compile(prefix: &Path, source: &str, library: &str, name: &str, flags: &[&str]) -> PathBuf {
    let mut words = Command::new("pkg-config");
    words.args(flags.iter().filter(|flag| **flag == "-static").map(|_| "--static"));
    words.args(["--cflags", "--libs", library]).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let words = run(&mut words);
    let program = prefix.join(name);
    let mut cc = Command::new("cc");
    cc.args(flags).args(["-std=c11", "-o"]).arg(&program).arg(format!("{HERE}/{source}"));
    run(cc.args(words.split_whitespace()));
    program
}

#[test]
fn what_is_installed_is_found() {
    let prefix = install();
    let lib = prefix.join("lib");
    for library in ["libunisono", "libunisono_posix"] {
        let link = |name: &str| fs::read_link(lib.join(name)).expect("a link").display().to_string();
        let (whole, major) = (format!("{library}.so.{VERSION}"), format!("{library}.so.0"));
        assert_eq!((link(&format!("{library}.so")), link(&major)), (major.clone(), whole.clone()));
        let parts = run(Command::new("readelf").args(["-dSW"]).arg(lib.join(&whole)));
        assert!(parts.contains(&format!("Library soname: [{major}]")), "{parts}");
        assert!(!parts.contains(".symtab") && !parts.contains(".debug"), "{parts}");
        let mut version = Command::new("pkg-config");
        version.args(["--modversion", &library[3..]]).env("PKG_CONFIG_PATH", lib.join("pkgconfig"));
        assert_eq!(run(&mut version).trim(), VERSION);
    }

    assert!(lib.join("libunisono_heap.so").exists());

    let example = "../capi/examples/broadcast.c";
    for flags in [&[][..], &["-static"]] {
        let program = compile(&prefix, example, "unisono", "broadcast", flags);
        let output = run(Command::new(program).env("LD_LIBRARY_PATH", &lib));
        assert_eq!(output.matches("good news from rank 0").count(), 4, "{flags:?}: {output}");
    }

    let program = compile(&prefix, "tests/join.c", "unisono_posix", "join", &[]).into();
    let (args, env) = (vec!["together".into()], vec![("LD_LIBRARY_PATH".into(), lib.into())]);
    let grace = std::time::Duration::from_secs(10);
    let outcome = Launch { ranks: 3, bind: Bind::Core, program, args, env, grace }.run().expect("the ranks start");
    assert!(outcome.success(), "{outcome}");
}

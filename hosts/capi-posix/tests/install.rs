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
    let root = root();
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
    assert!(!run(make("install").arg("-n")).contains("setup"), "it sets the system up");
    run(make("install").args(recipe(&prefix).iter().filter(|word| !word.starts_with("MPICC="))));
    assert!(!root.join("asked").exists(), "it asked for packages");
    prefix
}

/// What Spack's recipe passes to `make install`, by a stand-in for Spack; where there is no Python, what it would be.
fn recipe(prefix: &Path) -> Vec<String> {
    const SPACK: &str = r#"
import sys, types

def nothing(*words, **named): pass

spack, package = types.ModuleType("spack"), types.ModuleType("spack.package")
package.Package = object
package.license = package.version = package.variant = package.depends_on = nothing
package.make = lambda *words: print("\n".join(words))
spack.package = package
sys.modules |= {"spack": spack, "spack.package": package}
recipe = {}
exec(open(sys.argv[1]).read(), recipe)
class Spec(dict):
    mpicc = "mpicc"
recipe["Unisono"]().install(Spec({"+mpi": True, "mpi": Spec()}), sys.argv[2])
"#;
    let recipe = format!("{HERE}/../packaging/spack/packages/unisono/package.py");
    let mut python = Command::new("python3");
    python.args(["-c", SPACK, &recipe]).arg(prefix);
    if python.output().is_err() {
        return vec![format!("PREFIX={}", prefix.display())];
    }
    let words: Vec<_> = run(&mut python).lines().map(str::to_owned).collect();
    let expected = ["install".to_owned(), format!("PREFIX={}", prefix.display()), "MPICC=mpicc abi".to_owned()];
    assert_eq!(words, expected);
    words.into_iter().skip(1).collect()
}

/// `make` for this build, where commands that would install packages fail.
fn make(target: &str) -> Command {
    let mut make = Command::new("make");
    make.args(["-C", &format!("{HERE}/../.."), target, "MPICC=", &format!("BUILT={}", root().join("built").display())]);
    without_settings(&mut make);
    make
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("install")
}

fn without_settings(command: &mut Command) {
    let path = format!("{}:{}", root().join("path").display(), std::env::var("PATH").expect("a path"));
    command.env_remove("MAKEFLAGS").env_remove("DESTDIR").env_remove("STRIPPED").env("PATH", path);
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
    let mut place = Command::new("pkg-config");
    place.args(["--variable=heap", "unisono_preload"]).env("PKG_CONFIG_PATH", lib.join("pkgconfig"));
    assert_eq!(run(&mut place).trim(), lib.join("libunisono_heap.so").display().to_string());
    let module = fs::read_to_string(prefix.join(format!("share/modulefiles/unisono/{VERSION}"))).expect("a modulefile");
    assert!(
        module.starts_with("#%Module1.0\n") && module.contains(&format!("set prefix {}\n", prefix.display())),
        "{module}"
    );

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

    // The same as a package, and nothing is left of it in the end.
    if Command::new("dpkg-deb").arg("--version").output().is_ok() {
        let mut deb = Command::new(format!("{HERE}/../packaging/deb"));
        deb.arg(root().join("deb")).args(["MPICC=", &format!("BUILT={}", root().join("built").display())]);
        without_settings(&mut deb);
        // No test waits for xz.
        deb.env("DPKG_DEB_COMPRESSOR_TYPE", "none");
        let package = run(&mut deb);
        let contents = run(Command::new("dpkg-deb").args(["--contents", package.trim()]));
        let expected =
            ["usr/bin/unisono", "usr/lib/libunisono_posix.so.0", "usr/lib/cmake/unisono/unisono-config.cmake"];
        assert!(expected.iter().all(|file| contents.contains(&format!(" ./{file}"))), "{contents}");
        let name = run(Command::new("dpkg-deb").args(["--field", package.trim(), "Package", "Version"]));
        assert_eq!(name, format!("Package: unisono\nVersion: {VERSION}\n"));
    }
    let own = prefix.join("lib/libother.so");
    fs::write(&own, "").expect("a file");
    run(make("uninstall").arg(format!("PREFIX={}", prefix.display())));
    let mut left = Vec::new();
    let mut folders = vec![prefix.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { left.push(path) }
        }
    }
    left.retain(|path| path.display().to_string().contains("unisono"));
    assert_eq!(left, Vec::<PathBuf>::new());
    assert!(own.exists(), "what others have put there stays");
}

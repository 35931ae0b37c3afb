//! The program where memory is lent: what `doctor` finds, keeps and `explain` shows, and what `run` preloads.

use std::process::Command;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// With a cache of its own. What `doctor` keeps, `explain` shows, and ranks go by.
#[test]
fn doctor_names_the_ways_and_keeps_their_costs() {
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("doctor");
    drop(std::fs::remove_dir_all(&cache));
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_unisono"));
        command.args(words).env("XDG_CACHE_HOME", &cache).env_remove("UNISONO_SINGLE_COPY");
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let explain = ["explain", "alltoall", "--bytes", "200000"];
    let unknown = run(&explain);
    for buffers in ["used again and again", "that change"] {
        let line = format!(
            "  buffers {buffers}: two, through the segment (UNISONO_SINGLE_COPY: off); measured: nothing; `unisono doctor --keep` measures\n"
        );
        assert!(unknown.contains(&line), "{unknown}");
    }
    let small = ["doctor", "--collectives", "alltoall", "--bytes", "8K,64K", "--seconds", "0.1", "--ranks", "2"];
    let said = run(&small);
    let ways = [
        "shared memory",
        "death of a process",
        "lent memory",
        "own blocks",
        "process_vm_readv",
        "take turns",
        "lies on its NUMA node",
    ];
    for way in ways {
        assert_eq!(said.lines().filter(|line| line.contains(way) && line.starts_with(['y', 'n'])).count(), 1, "{said}");
    }
    let launchers = |said: &str| said.lines().filter(|line| line.contains("an MPI's collectives taken over")).count();
    assert!(launchers(&said) >= 1, "{said}");
    // The heap's pages, and why they are not the best ones.
    let heap = said.lines().find(|line| line.contains("lent memory")).unwrap_or_default();
    let ordinary = heap.contains("; ordinary pages as they are used (no transparent huge pages: ");
    assert!(ordinary != heap.ends_with("; transparent huge pages as they are used"), "{heap}");
    assert_eq!(said.lines().filter(|line| line.starts_with("alltoall")).count(), 4, "{said}");
    assert_eq!(std::fs::read_dir(cache.join("unisono")).map(Iterator::count).unwrap_or(0), 0);
    let lines = run(&[&small[..], &["--keep", "--json"]].concat());
    assert_eq!(
        lines.lines().filter(|line| line.starts_with("{\"way\":")).count(),
        ways.len() + launchers(&said),
        "{lines}"
    );
    assert_eq!(lines.lines().filter(|line| line.starts_with("{\"collective\":\"alltoall\"")).count(), 4, "{lines}");
    let kept =
        std::fs::read_dir(cache.join("unisono")).expect("a folder").next().expect("a file").expect("a file").path();
    // Three ranks, and what was kept of two stays.
    let three = run(&[&small[..small.len() - 1], &["3", "--keep", "--json"]].concat());
    assert_eq!(three.lines().filter(|line| line.contains("\"ranks\":3")).count(), 4, "{three}");
    let all = std::fs::read_to_string(&kept).expect("a file");
    assert_eq!(["alltoall 2 ", "alltoall 3 "].map(|of| all.matches(of).count()), [4, 4], "{all}");
    let known = run(&explain);
    assert_eq!(known.matches("measured at 65536 B, 2 ranks, µs: two ").count(), 2, "{known}");
    // Ranks and `explain` go by what is kept.
    std::fs::write(&kept, "unisono copies 3\nalltoall 2 4096 warm 100 50 10\nalltoall 2 4096 cold 100 95 10\n")
        .expect("a file");
    let said = run(&explain);
    for line in [
        "  buffers used again and again: one, by process_vm_readv (UNISONO_SINGLE_COPY: from 4096 B on); measured at 4096 B, 2 ranks, \
         µs: two 0.10, one 0.05, 0.50 of that (it counts below 0.9), lent 0.01\n",
        "  buffers that change: two, through the segment (UNISONO_SINGLE_COPY: off); measured at 4096 B, 2 ranks, µs: two 0.10, one \
         0.10, 0.95 of that (it counts below 0.8), lent 0.01\n",
    ] {
        assert!(said.contains(line), "{said}");
    }
    let lines = run(&[&explain[..], &["--json"]].concat());
    let copies: Vec<&str> = lines.lines().filter(|line| line.starts_with("{\"copies\":\"alltoall\"")).collect();
    let warm = "\"ways\":\"one\",\"one_from\":4096,\"one_below\":null";
    assert!(copies.len() == 2 && copies[0].contains(warm), "{lines}");
}

/// A launcher in PATH is named, with the library for its MPI or why there is none; links to it are not named again.
#[test]
fn doctor_names_the_mpis() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("launchers");
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).expect("a folder");
    let launcher = |name: &str, says: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\necho '{says}'\n")).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it is this test's");
    };
    launcher("mpirun", "mpirun (Open MPI) 9.9.9");
    launcher("mpiexec.hydra", "something else 1.0");
    std::os::unix::fs::symlink("mpirun", folder.join("orterun")).expect("a link");
    let lines = |path: &std::path::Path| {
        let words = ["doctor", "--collectives", "alltoall", "--bytes", "8K", "--seconds", "0.02", "--ranks", "2"];
        let output = Command::new(env!("CARGO_BIN_EXE_unisono")).args(words).env("PATH", path).output();
        let said = text(&output.expect("it starts").stdout);
        let lines: Vec<String> = said.lines().filter(|line| line.contains("taken over")).map(str::to_owned).collect();
        lines
    };
    let two = lines(&folder);
    assert_eq!(two.len(), 2, "{two:?}");
    let mpirun = format!("{} (mpirun (Open MPI) 9.9.9): ", folder.join("mpirun").display());
    assert!(two[0].contains(&mpirun) && two[0].contains("libunisono_openmpi.so"), "{two:?}");
    assert!(two[1].starts_with("no ") && two[1].contains("does not say: \"something else 1.0\""), "{two:?}");
    let none = lines(std::path::Path::new("/nonexistent"));
    assert!(
        none.len() == 1 && none[0].starts_with("no ") && none[0].contains("no launcher of an MPI in PATH"),
        "{none:?}"
    );
}

/// In namespaces of its own the program works as elsewhere, and says what they mean for ranks outside.
#[test]
fn doctor_names_namespaces() {
    let lines = |words: &[&str]| {
        let doctor = ["doctor", "--collectives", "alltoall", "--bytes", "8K", "--seconds", "0.02"];
        let all = [words, &[env!("CARGO_BIN_EXE_unisono")], &doctor].concat();
        let output = Command::new(all[0]).args(&all[1..]).output().expect("it starts");
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        let said = text(&output.stdout);
        let line = |way| said.lines().find(|line| line.contains(way)).expect("a line for the way").to_owned();
        [line("single copy"), line("death of a process")]
    };
    let here = |kind: &str, inode: &str| {
        std::fs::read_link(format!("/proc/self/ns/{kind}")).is_ok_and(|link| link.to_string_lossy().contains(inode))
    };
    let [users, numbers] = lines(&[]);
    assert_eq!(users.ends_with("; the initial user namespace"), here("user", "[4026531837]"), "{users}");
    assert_eq!(numbers.ends_with("; the initial PID namespace"), here("pid", "[4026531836]"), "{numbers}");
    let unshare = ["unshare", "-U", "-r", "-p", "-f", "--mount-proc"];
    let tried = Command::new(unshare[0]).args(&unshare[1..]).arg("true").output().expect("util-linux");
    if !tried.status.success() {
        eprintln!("SKIPPED: {unshare:?}: {}", text(&tried.stderr));
        return;
    }
    let [users, numbers] = lines(&unshare);
    assert!(users.starts_with("yes ") && users.contains("; a user namespace of its own (uid_map: 0 "), "{users}");
    assert!(
        users.ends_with(
            "can't open or read those outside it, whatever capabilities they hold in it, and can't join them"
        )
    );
    assert!(numbers.starts_with("yes ") && numbers.contains("; a PID namespace of its own: "), "{numbers}");
}

/// By a link to the program, next to which the library is or is not. (A copy is busy while a child that another test has
/// forked still has it open for writing.)
#[test]
fn run_preloads_the_library_that_lends() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("preloaded");
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (program, library) = (folder.join("unisono"), folder.join("libunisono_heap.so"));
    std::fs::hard_link(env!("CARGO_BIN_EXE_unisono"), &program).expect("a link");
    let run = |options: &[&str], env: &[(&str, &str)]| {
        let words = ["--", "/bin/sh", "-c", "echo $UNISONO_HEAP $LD_PRELOAD"];
        let mut command = Command::new(&program);
        command.args(["run", "-n", "1"]).args(options).args(words).env_remove("UNISONO_HEAP").env_remove("LD_PRELOAD");
        command.envs(env.iter().copied()).output().expect("it runs")
    };
    let shared = ["--heap", "shared"];
    let output = run(&shared, &[]);
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains(library.to_str().expect("a path")), "{said}");
    // The loader says that it is no library, and goes on.
    std::fs::write(&library, "").expect("a file");
    let expected = format!("shared {}\n", library.display());
    assert_eq!(text(&run(&shared, &[]).stdout), expected);
    assert_eq!(text(&run(&[], &[("UNISONO_HEAP", "shared")]).stdout), expected);
    let beside = run(&shared, &[("UNISONO_HEAP", "off"), ("LD_PRELOAD", "/lib/other.so")]);
    assert_eq!(text(&beside.stdout), format!("shared {}:/lib/other.so\n", library.display()));
    assert_eq!(text(&run(&["--heap", "off"], &[("UNISONO_HEAP", "shared")]).stdout), "off\n");
    assert_eq!(text(&run(&[], &[]).stdout), "\n");
    let wrong = run(&[], &[("UNISONO_HEAP", "yes")]);
    let said = text(&wrong.stderr);
    assert!(!wrong.status.success() && said.contains("UNISONO_HEAP is \"yes\", must be shared or off"), "{said}");
}

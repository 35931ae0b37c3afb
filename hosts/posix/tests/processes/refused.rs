//! Wrong arguments: every rank gets an error that names argument, value and bound; no rank hangs.

use super::Scene;
use std::io::{Seek, SeekFrom, Write};
use std::process::Command;
use unisono_kernel::region::layout::VERSION;
use unisono_kernel::region::{Layout, Params};
use unisono_posix::Segment;
use unisono_posix::launch::{Bind, Exit};
use unisono_posix::segment::Handle;

/// Runs a body that must fail on every rank; returns the ranks' error texts.
fn errors(body: &str, ranks: u32) -> Vec<String> {
    let scene = Scene::new(body);
    let outcome = scene.run(body, "", ranks);
    assert_eq!(outcome.exits, vec![Exit::Code(3); ranks as usize], "{outcome}");
    let text = |rank| scene.said(rank, "error").split_once(' ').unwrap().1.to_owned();
    (0..ranks).map(text).collect()
}

#[test]
fn a_root_out_of_range_is_named_on_all_ranks() {
    let said = errors("root", 3);
    assert_eq!(said[1], "root is 9, must be below 3");
    for rank in [0, 2] {
        assert!(said[rank].starts_with("rank 1 refused operation"), "{}", said[rank]);
        assert!(said[rank].ends_with("root is 9, must be below 3"), "{}", said[rank]);
    }
}

#[test]
fn lengths_that_differ_are_named_everywhere() {
    for text in errors("lengths", 3) {
        assert!(text.contains("bytes is 16, must be 8"), "{text}");
    }
}

#[test]
fn another_plan_on_one_rank_is_named_everywhere() {
    for text in errors("plans", 3) {
        assert!(text.starts_with("rank 1: layout hash is "), "{text}");
    }
}

#[test]
fn absurd_sizes_are_refused_with_needed_and_available_bytes() {
    for text in errors("absurd", 2) {
        let plan = Params { queue_slots: 1 << 20, queue_fragment: 1 << 30, ..Params::new(2) };
        let needed = Layout::new(plan).unwrap().bytes();
        assert!(text.contains(&format!("{needed} bytes of memory are needed, ")), "{text}");
        assert!(text.contains(" are available "), "{text}");
    }
}

#[test]
fn what_can_not_be_launched_is_an_error() {
    let scene = Scene::new("launch");
    let mut launch = scene.launch("", "", 3, Bind::None);
    launch.program = "/nonexistent/program".into();
    let error = launch.clone().run().unwrap_err().to_string();
    assert!(error.starts_with("exec failed to start rank 0 of \"/nonexistent/program\": No such file"), "{error}");
    launch.ranks = 0;
    assert_eq!(launch.run().unwrap_err().to_string(), "ranks is 0, must be at least 1");
}

#[test]
fn a_segment_that_is_not_the_one_announced_is_refused() {
    let layout = Layout::new(Params::new(2)).unwrap();
    let segment = Segment::create(&layout).unwrap();
    let handle = segment.handle().unwrap();
    let refusal = |handle: &Handle, layout: &Layout| Segment::attach(handle, layout).unwrap_err().to_string();
    assert!(Segment::attach(&handle, &layout).is_ok());

    let inode = Handle { inode: handle.inode + 1, ..handle };
    assert!(refusal(&inode, &layout).starts_with("the segment's inode is "));
    let gone = Handle { fd: 1 << 20, ..handle };
    assert!(refusal(&gone, &layout).starts_with("open failed to open the segment /proc/"));
    let larger = Layout::new(Params::new(3)).unwrap();
    assert!(refusal(&handle, &larger).starts_with("segment bytes is "));
    let coarse = Layout::new(Params { page: 2048, ..Params::new(2) }).unwrap();
    assert_eq!(refusal(&handle, &coarse), "page is 2048, must be a multiple of 4096");

    // The header's second word is its version.
    let path = format!("/proc/self/fd/{}", handle.fd);
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(8)).unwrap();
    file.write_all(&99u64.to_ne_bytes()).unwrap();
    assert_eq!(refusal(&handle, &layout), format!("version is 99, must be {VERSION}"));
    assert!(file.set_len(0).is_err(), "sealed");
}

/// Ranks of which rank 1 is in a namespace of its own; the ranks' error texts. `None`, and a line that says so: this system
/// does not allow that.
fn apart(name: &str, unshare: &str) -> Option<Vec<String>> {
    let tried = Command::new("sh").args(["-c", &format!("unshare {unshare} true")]).output().unwrap();
    if !tried.status.success() {
        eprintln!("SKIPPED: unshare {unshare}: {}", String::from_utf8_lossy(&tried.stderr));
        return None;
    }
    let scene = Scene::new(name);
    let mut launch = scene.launch("endless", "", 2, Bind::None);
    let script = format!("[ $UNISONO_RANK = 0 ] || set -- unshare {unshare} \"$@\"; exec \"$@\" > /dev/null 2>&1");
    launch.args[1] = script.into();
    let outcome = launch.run().unwrap();
    assert_eq!(outcome.exits, [Exit::Code(3); 2], "{outcome}");
    Some((0..2).map(|rank| scene.said(rank, "error").split_once(' ').unwrap().1.to_owned()).collect())
}

#[test]
fn a_rank_in_another_namespace_is_named_with_the_namespace() {
    for (unshare, kind) in [("-U -r", "user"), ("-p -f --mount-proc --kill-child", "PID")] {
        for text in apart(kind, unshare).unwrap_or_default() {
            let named = text.starts_with("rank 1: rank 0: ") || text.starts_with("rank 0: ");
            assert!(named && text.ends_with(&format!(": it is in another {kind} namespace")), "{text}");
        }
    }
}

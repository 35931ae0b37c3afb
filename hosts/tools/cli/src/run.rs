//! `unisono run`: N copies of a program.

use crate::args::Run;
use crate::error::Failure;
use crate::team;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_posix::heap::{self, Setting};
use unisono_posix::timeout::TIMEOUT;

/// The library that puts programs' blocks into heaps that others read.
const LIBRARY: &str = "libunisono_heap.so";
/// The loader's list of libraries.
pub(crate) const PRELOAD: &str = "LD_PRELOAD";

pub(crate) fn run(args: Run) -> Result<(), Failure> {
    Refusal::check(Argument::Ranks, args.ranks.into(), Bound::AtLeast(1))?;
    let mut words = args.program.into_iter();
    let program = words.next().ok_or_else(|| Failure::Words("run: no program given".into()))?;
    let bound = args.timeout.map(|seconds| (TIMEOUT.into(), seconds.into()));
    let mut env: Vec<_> = args.memory.variables().into_iter().chain(bound).collect();
    let asked = args.heap.as_deref().and_then(Setting::from_name);
    let asked = asked.map_or_else(Setting::from_env, |asked| Ok(Some(asked)))?;
    if let Some(asked) = asked {
        env.push((heap::VARIABLE.into(), asked.name().into()));
    }
    if asked == Some(Setting::Shared) {
        env.push((PRELOAD.into(), preloaded()?));
    }
    team::start(args.ranks, args.bind, program, words.collect(), env)
}

/// The library that puts programs' blocks into heaps.
pub(crate) fn library() -> Result<PathBuf, Failure> {
    installed(LIBRARY).map_err(|places| Failure::Words(format!("{}=shared needs {places}", heap::VARIABLE)))
}

/// A library to preload: it lies next to this program, or where it is installed. Or both places, in words.
pub(crate) fn installed(name: &str) -> Result<PathBuf, String> {
    let program =
        env::current_exe().map_err(|error| format!("{name} beside this program, whose path is not known: {error}"))?;
    let folder = program.parent().map(PathBuf::from).unwrap_or_default();
    let places = [folder.join(name), folder.join("../lib").join(name)];
    let found = places.iter().find(|place| place.exists()).cloned();
    found.ok_or_else(|| {
        let [beside, installed] = places.map(|place| place.display().to_string());
        format!("{beside} or {installed}")
    })
}

/// The list of libraries to preload, that one first.
fn preloaded() -> Result<OsString, Failure> {
    let mut all = OsString::from(library()?);
    if let Some(before) = env::var_os(PRELOAD) {
        all.push(":");
        all.push(before);
    }
    Ok(all)
}

//! How far the two cores of ranks 0 and 1 are from each other while rows are measured.
//!
//! The host of a virtual machine moves its cores: on to the threads of one physical core, to cores that share a cache, to cores that do
//! not. The time of a cell follows by a factor of up to ten. So round trips of a cache line are surveyed before each round, with naps
//! in which the host may move the cores; those that are near each other in time are a group; and each row is measured while the
//! round trip is that of the chosen group, if the host lets it (`c/line.c`). In the end the group counts in which most rows were
//! measured.

use crate::launch;
use crate::stats::median;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Which group.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cores {
    /// Of the groups below three times the fastest one the one with most readings: on most machines, cores that share a cache
    Near,
    /// The slowest group
    Far,
    /// Rows are measured wherever the cores are
    Any,
}

/// Readings of a group, sorted: each is less than this times the one before.
const APART: f64 = 1.4;
/// Groups are near below this multiple of the fastest one. Threads of a core and cores that share a cache: 50 and 125 ns; cores
/// that share none: 490 ns.
const NEAR: f64 = 3.0;
/// Smaller groups are disturbances.
const LEAST_SHARE: f64 = 0.03;
/// Round trips of a row: from and to these multiples of the group's median.
const WITHIN: (f64, f64) = (0.75, 1.35);
const READINGS: usize = 1500;

/// A group of readings.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Group {
    /// The median, in nanoseconds.
    pub(crate) ns: f64,
    /// Of all readings.
    pub(crate) share: f64,
}

/// What was surveyed, and chosen.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Survey {
    pub(crate) cores: Cores,
    pub(crate) groups: Vec<Group>,
    pub(crate) chosen: Group,
}

impl Survey {
    /// The group of `cores` among readings; none where any will do, or where there are none.
    pub(crate) fn of(cores: Cores, mut readings: Vec<f64>) -> Option<Self> {
        readings.sort_by(f64::total_cmp);
        let count = readings.len() as f64;
        let groups = readings.chunk_by(|a, b| *b < a * APART).filter_map(|group| {
            let share = group.len() as f64 / count;
            Some(Group { ns: median(group.iter().copied())?, share }).filter(|group| group.share >= LEAST_SHARE)
        });
        let groups: Vec<Group> = groups.collect();
        let chosen = match cores {
            Cores::Any => None,
            Cores::Far => groups.last(),
            Cores::Near => {
                let near = groups.iter().filter(|group| group.ns < NEAR * groups[0].ns);
                near.max_by(|a, b| a.share.total_cmp(&b.share))
            }
        };
        chosen.cloned().map(|chosen| Self { cores, groups, chosen })
    }

    /// The round trips at which rows are measured, in nanoseconds.
    pub(crate) fn range(&self) -> (u64, u64) {
        let at = |multiple: f64| (self.chosen.ns * multiple).round() as u64;
        (at(WITHIN.0), at(WITHIN.1))
    }

    /// The most of `rounds` that were measured in one range, by their surveys; all, if there are none.
    pub(crate) fn alike(surveys: &[Self], rounds: u32) -> u32 {
        let of = |one: &Self| surveys.iter().filter(|other| one.has(other.chosen.ns)).count();
        surveys.iter().map(of).max().map_or(rounds, |most| most as u32)
    }

    /// Of surveys, the one in whose range most of these round trips are: the last of several.
    pub(crate) fn of_most(surveys: Vec<Self>, rows: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        surveys.into_iter().max_by_key(|survey| rows.clone().filter(|&ns| survey.has(ns)).count())
    }

    /// Was a row measured there?
    pub(crate) fn has(&self, line_ns: f64) -> bool {
        let (least, most) = self.range();
        (least as f64..=most as f64).contains(&line_ns)
    }
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.groups.iter().map(|group| format!("{:.0} ns ({:.0} %)", group.ns, 100.0 * group.share));
        let (least, most) = self.range();
        let word = if self.cores == Cores::Far { "far" } else { "near" };
        let groups = groups.collect::<Vec<_>>().join(", ");
        write!(
            f,
            "a line's round trip between the cores takes {groups}; rows are measured where they are {word}, {least} to {most} ns"
        )
    }
}

#[derive(Deserialize)]
struct Readings {
    line_ns: Vec<f64>,
}

/// The file through which two ranks measure; removed when dropped.
#[derive(Debug)]
pub(crate) struct File(pub(crate) PathBuf);

impl File {
    /// In shared memory where there is such a folder.
    pub(crate) fn create() -> std::io::Result<Self> {
        let shm = PathBuf::from("/dev/shm");
        let folder = if shm.is_dir() { shm } else { std::env::temp_dir() };
        let path = folder.join(format!("unisono-bench-{}", std::process::id()));
        std::fs::write(&path, [0; 4096])?;
        Ok(Self(path))
    }

    /// Adds the file to a command.
    pub(crate) fn pass(&self, command: &mut Command) {
        command.arg("--line").arg(&self.0);
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // Nothing depends on it any more.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Surveys by `command`, which starts two ranks of the C program.
pub(crate) fn survey(
    mut command: Command,
    file: &File,
    cores: Cores,
    timeout: Duration,
) -> Result<Option<Survey>, String> {
    file.pass(&mut command);
    command.args(["--survey", &READINGS.to_string()]);
    let lines: Vec<serde_json::Value> = launch::lines(command, timeout)?;
    let readings = lines.into_iter().find_map(|line| serde_json::from_value::<Readings>(line).ok());
    Ok(Survey::of(cores, readings.ok_or("no readings")?.line_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 47, 110 and 490 ns, and what was interrupted.
    fn readings() -> Vec<f64> {
        let of = |count: usize, ns: f64| (0..count).map(move |i| ns + (i % 10) as f64);
        of(8, 47.0).chain(of(45, 105.0)).chain(of(40, 488.0)).chain([1000.0, 2000.0, 4000.0]).collect()
    }

    #[test]
    fn near_is_the_fullest_of_those_below_three_times_the_fastest() {
        let near = Survey::of(Cores::Near, readings()).unwrap();
        assert_eq!(near.groups.len(), 3);
        assert_eq!(near.chosen.ns, 109.0);
        assert!(near.has(113.0) && !near.has(47.0) && !near.has(490.0));
        assert_eq!(Survey::of(Cores::Far, readings()).unwrap().chosen.ns, 492.5);
        assert_eq!(Survey::of(Cores::Any, readings()), None);
    }

    #[test]
    fn threads_of_a_core_are_near_if_they_are_so_most_of_the_time() {
        let of = |threads: usize, cores: usize| {
            let readings = std::iter::repeat_n(50.0, threads).chain(std::iter::repeat_n(125.0, cores));
            Survey::of(Cores::Near, readings.collect()).unwrap().chosen.ns
        };
        assert_eq!((of(15, 85), of(85, 15)), (125.0, 50.0));
        // Cores that share no cache are not near, however often the cores are there.
        let near = Survey::of(Cores::Near, [vec![121.0; 8], vec![492.0; 92]].concat()).unwrap();
        assert_eq!(near.chosen.ns, 121.0);
    }

    #[test]
    fn the_group_with_most_rows_counts() {
        let of = |ns: f64| Survey::of(Cores::Near, vec![ns; 9]).unwrap();
        let surveys = vec![of(50.0), of(120.0), of(122.0), of(490.0)];
        let chosen = |rows: &[f64]| Survey::of_most(surveys.clone(), rows.iter().copied()).unwrap().chosen.ns;
        assert_eq!(chosen(&[52.0, 124.0, 126.0, 488.0]), 122.0);
        assert_eq!(chosen(&[52.0, 49.0, 126.0, 488.0]), 50.0);
        assert_eq!(Survey::of_most(Vec::new(), std::iter::empty()), None);
        assert_eq!((Survey::alike(&surveys, 4), Survey::alike(&surveys[..1], 1), Survey::alike(&[], 3)), (2, 1, 3));
    }

    #[test]
    fn cores_that_are_never_moved_are_one_group() {
        let of = |cores| Survey::of(cores, vec![80.0, 81.0, 82.0]).unwrap();
        assert_eq!((of(Cores::Near).chosen.ns, of(Cores::Far).chosen.ns), (81.0, 81.0));
        assert_eq!(Survey::of(Cores::Near, Vec::new()), None);
    }
}

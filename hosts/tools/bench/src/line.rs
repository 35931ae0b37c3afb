//! How far the two cores of ranks 0 and 1 are from each other while rows are measured.
//!
//! The host of a virtual machine moves its cores, and the time of a cell follows by a factor of up to ten. So round trips of a cache line
//! are surveyed before each round, with naps in which the host may move the cores; each row is measured while the round trip is that
//! of the chosen group ([`Group`]), if the host lets it (`c/line.c`). In the end the group counts in which most rows were measured.
//! Ranks that outnumber the cores are where the system puts them: for them nothing is chosen.

use crate::launch;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use unisono_model::groups::Group;

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

const READINGS: usize = 1500;

/// What was surveyed, and chosen.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Survey {
    pub(crate) cores: Cores,
    pub(crate) groups: Vec<Group>,
    pub(crate) chosen: Group,
}

impl Survey {
    /// The group of `cores` among readings; none where any will do, or where there are none.
    pub(crate) fn of(cores: Cores, readings: Vec<f64>) -> Option<Self> {
        let groups = Group::of(readings);
        let chosen = match cores {
            Cores::Any => None,
            Cores::Far => groups.last().copied(),
            Cores::Near => Group::near(&groups),
        };
        chosen.map(|chosen| Self { cores, groups, chosen })
    }

    /// The most of `rounds` that were measured in one range, by their surveys; all, if there are none.
    pub(crate) fn alike(surveys: &[Self], rounds: u32) -> u32 {
        let of = |one: &Self| surveys.iter().filter(|other| one.chosen.has(other.chosen.ns)).count();
        surveys.iter().map(of).max().map_or(rounds, |most| most as u32)
    }

    /// Of surveys, the one in whose range most of these round trips are: the last of several.
    pub(crate) fn of_most(surveys: Vec<Self>, rows: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        surveys.into_iter().max_by_key(|survey| rows.clone().filter(|&ns| survey.chosen.has(ns)).count())
    }
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.groups.iter().map(|group| format!("{:.0} ns ({:.0} %)", group.ns, 100.0 * group.share));
        let (least, most) = self.chosen.range();
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

    #[test]
    fn near_and_far() {
        let of = |cores| Survey::of(cores, [vec![47.0; 8], vec![109.0; 45], vec![490.0; 40]].concat());
        assert_eq!((of(Cores::Near).unwrap().chosen.ns, of(Cores::Far).unwrap().chosen.ns), (109.0, 490.0));
        assert_eq!(of(Cores::Any), None);
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

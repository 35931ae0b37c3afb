//! Runs all configurations in turn, round by round, so that a disturbance hits all of them alike.

use crate::args::Run;
use crate::cells::{cells, preloads, summaries};
use crate::configuration::{ALL, Configuration, OURS};
use crate::error::Failure;
use crate::line::{self, Cores, Survey};
use crate::machine::{self, Machine};
use crate::report::{self, Floor, Member, Report, Row, Sample};
use crate::tools::Programs;
use crate::{floor, launch};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A line that the C program prints.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Row(Row),
    Hello { library: String },
}

/// A configuration during the rounds.
struct Runner {
    configuration: Configuration,
    member: Member,
    /// Numbers of ranks at which it failed: it is not tried again there.
    failed: BTreeSet<u32>,
}

/// Where rows of a round are measured.
struct Place<'a> {
    file: &'a line::File,
    survey: Survey,
}

impl<'a> Place<'a> {
    /// Surveyed by our own library; none where any place will do, or where it can't be found out.
    fn find(args: &Run, programs: &Programs, file: Option<&'a line::File>) -> Option<Self> {
        let ours = ALL.iter().find(|c| args.cores != Cores::Any && c.name == OURS)?;
        let command = ours.command(programs, 2, machine::cores() < 2).ok()?;
        let survey = line::survey(command, file?, args.cores, timeout(args)).ok()??;
        Some(Self { file: file?, survey })
    }
}

/// The results so far.
#[derive(Default)]
struct Found {
    samples: Vec<Sample>,
    floors: Vec<Floor>,
}

/// Compiles, then measures all rounds.
pub(crate) fn measure(args: &Run, out: &Path) -> Result<Report, Failure> {
    let machine = Machine::this();
    let mut folder = std::env::current_exe().map_err(|e| Failure::file("find", Path::new("this program"), &e))?;
    folder.pop();
    let beside = |chosen: &Option<PathBuf>, name| chosen.clone().unwrap_or_else(|| folder.join(name));
    let unisono = beside(&args.unisono, "unisono");
    let library = beside(&args.library, "libunisono_posix_c.so");
    let programs = Programs::compile(out, &unisono, &library, folder, args.mpis.clone());

    let file = line::File::create().ok();
    let mut surveys = Vec::new();
    let chosen = ALL.into_iter().filter(|c| args.configurations.iter().any(|name| name == c.name));
    let mut runners: Vec<Runner> = chosen.map(Runner::new).collect();
    let mut found = Found::default();
    let ranks = args.ranks();
    let steps = (ranks.len() * (runners.len() + 1)) as u64;
    let bar = progress(u64::from(args.rounds()) * steps);
    let (begin, limit) = (Instant::now(), Duration::from_secs(60 * u64::from(args.minutes())));
    let mut rounds = 0;
    // Rounds elsewhere don't count. The time of the next one is estimated by the mean of those so far.
    while Survey::alike(&surveys, rounds) < args.rounds()
        && (rounds == 0 || begin.elapsed() * (rounds + 1) <= limit * rounds)
    {
        let round = rounds;
        bar.inc_length(if round < args.rounds() { 0 } else { steps });
        // The host may have moved the cores for good since the round before.
        let place = Place::find(args, &programs, file.as_ref());
        surveys.extend(place.iter().map(|place| place.survey.clone()));
        for &ranks in &ranks {
            bar.set_message(format!("round {round}, {ranks} ranks: floors"));
            if let Ok(bcasts) = floor::measure(&unisono, ranks, &args.bytes(ranks > machine::cores()), timeout(args)) {
                found.floors.push(Floor { ranks, round, bcasts });
            }
            bar.inc(1);
            for runner in &mut runners {
                bar.set_message(format!("round {round}, {ranks} ranks: {}", runner.member.title));
                runner.run(args, &programs, place.as_ref(), ranks, round, &mut found);
                bar.inc(1);
            }
        }
        // Each round starts with another configuration.
        runners.rotate_left(1);
        rounds += 1;
    }
    bar.finish_and_clear();
    let line = Survey::of_most(surveys, found.samples.iter().filter_map(|sample| sample.row.line_ns));
    let counted = report::counted(&found.samples, line.as_ref());
    let cells = cells(&counted, &found.floors, machine.cores);
    let order = |runner: &Runner| ALL.iter().position(|c| c.name == runner.member.name);
    runners.sort_by_key(order);
    Ok(Report {
        quick: args.quick,
        rounds,
        line,
        members: runners.into_iter().map(|runner| runner.member).collect(),
        summaries: summaries(&cells),
        preloads: preloads(&cells),
        cells,
        floors: found.floors,
        samples: found.samples,
        machine,
    })
}

fn timeout(args: &Run) -> Duration {
    Duration::from_secs(args.timeout.into())
}

impl Runner {
    fn new(configuration: Configuration) -> Self {
        let Configuration { name, title, .. } = configuration;
        let (name, title) = (name.into(), title.into());
        let member = Member { name, title, library: None, commands: Vec::new(), left_out: Vec::new() };
        Self { configuration, member, failed: BTreeSet::new() }
    }

    /// One run of the C program; a failure is noted, and the configuration left out at these ranks.
    fn run(
        &mut self,
        args: &Run,
        programs: &Programs,
        place: Option<&Place<'_>>,
        ranks: u32,
        round: u32,
        found: &mut Found,
    ) {
        let crowded = ranks > machine::cores();
        if !self.configuration.takes_part(crowded) || self.failed.contains(&ranks) {
            return;
        }
        match self.lines(args, programs, place, ranks, crowded) {
            Ok(lines) => lines.into_iter().for_each(|line| match line {
                Line::Row(row) => {
                    found.samples.push(Sample { configuration: self.member.name.clone(), round, row });
                }
                Line::Hello { library } => self.member.library = Some(library),
            }),
            Err(reason) => {
                self.failed.insert(ranks);
                self.member.left_out.push(format!("{ranks} ranks: {reason}"));
                // Its earlier results are not used in a comparison.
                found.samples.retain(|s| s.configuration != self.member.name || s.row.ranks != ranks);
            }
        }
    }

    fn lines(
        &mut self,
        args: &Run,
        programs: &Programs,
        place: Option<&Place<'_>>,
        ranks: u32,
        crowded: bool,
    ) -> Result<Vec<Line>, String> {
        let mut command = self.configuration.command(programs, ranks, crowded)?;
        let words: Vec<_> = [command.get_program()].into_iter().chain(command.get_args()).collect();
        let shown = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        if !self.member.commands.contains(&shown) {
            self.member.commands.push(shown);
        }
        let list = |bytes: Vec<u64>| bytes.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let numbers = [
            ("--budget-ms", args.budget()),
            ("--least", args.least),
            ("--repetitions", args.repetitions),
            ("--crowded", u32::from(crowded)),
        ];
        command.args(["--collectives", &args.collectives.join(",")]);
        command.args(["--bytes", &list(args.bytes(crowded)), "--warm-bytes", &list(args.warm_bytes(crowded))]);
        command.args(["--methods", &args.methods.join(","), "--roots", &args.roots()]);
        for (name, number) in numbers {
            command.args([name, &number.to_string()]);
        }
        // Ranks that outnumber the cores are where the system puts them.
        if let Some(Place { file, survey }) = place.filter(|_| !crowded) {
            file.pass(&mut command);
            let (least, most) = survey.chosen.range();
            command.args(["--line-least", &least.to_string(), "--line-most", &most.to_string()]);
        }
        launch::lines(command, timeout(args))
    }
}

/// A progress bar on standard error.
fn progress(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}");
    ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

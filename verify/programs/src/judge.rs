//! Judges the reports of a program's ranks.

use crate::interpret::{End, Told};
use crate::program::{Program, Verb};
use serde::{Deserialize, Serialize};
use std::fmt;
use unisono_kernel::error::{Cause, Error};

/// The report of a rank that was told of a death.
pub(crate) const BEREFT: &str = "told that a rank died";

/// The end of a rank's program.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Ending {
    /// It made its last step.
    Done,
    /// It was killed.
    Killed,
    /// It was told that a rank died.
    Bereft,
    /// It did not end in time.
    Late,
    /// Another error.
    Failed(String),
}

/// A rank's report, in words.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The end.
    pub end: Ending,
    /// The step at which it ended.
    pub at: usize,
    /// The wrong results.
    pub wrong: Vec<String>,
}

/// Errors that may say that a rank died, or was late.
pub trait Tells: fmt::Display {
    /// The kernel's.
    fn kernel(&self) -> Option<Error>;
}

impl Tells for Error {
    fn kernel(&self) -> Option<Error> {
        Some(*self)
    }
}

impl Report {
    /// The report of an interpreter.
    pub fn of<E: Tells>(told: Told<E>) -> Self {
        let Told { end, at, wrong } = told;
        let end = match end {
            End::Done => Ending::Done,
            End::Killed => Ending::Killed,
            End::Late => Ending::Late,
            End::Unfit(why) => Ending::Failed(why),
            End::Failed(error) => match error.kernel() {
                Some(Error::Poisoned(poison)) if poison.cause == Cause::Died => Ending::Bereft,
                Some(Error::Poisoned(poison)) if poison.cause == Cause::Late => Ending::Late,
                _ => Ending::Failed(error.to_string()),
            },
        };
        Self { end, at, wrong }
    }

    /// The report of a rank that could not start, or crashed.
    pub const fn failed(words: String) -> Self {
        Self { end: Ending::Failed(words), at: 0, wrong: Vec::new() }
    }
}

/// Checks the reports of all ranks.
///
/// # Errors
/// What is wrong, a line for each rank that reports something.
pub fn judge(program: &Program, reports: &[Report]) -> Result<(), String> {
    let killed = program.steps.iter().any(|step| step.verb == Verb::Kill);
    let mut words = Vec::new();
    for (rank, Report { end, at, wrong }) in reports.iter().enumerate() {
        words.extend(wrong.iter().map(|wrong| format!("rank {rank}: {wrong}")));
        let step = program.steps.get(*at).map_or_else(String::new, |step| {
            let who = step.who.map_or_else(|| "*".into(), |who| who.to_string());
            let numbers: Vec<_> = step.numbers.iter().map(u64::to_string).collect();
            format!(" at \"{who} {} {}\"", step.verb.name(), numbers.join(" "))
        });
        match end {
            Ending::Done => {}
            Ending::Killed | Ending::Bereft if killed => {}
            Ending::Killed | Ending::Bereft => words.push(format!("rank {rank}{step}: {BEREFT}")),
            Ending::Late => words.push(format!("rank {rank}{step}: did not end in time")),
            Ending::Failed(error) => words.push(format!("rank {rank}{step}: {error}")),
        }
    }
    if words.is_empty() { Ok(()) } else { Err(words.join("\n")) }
}

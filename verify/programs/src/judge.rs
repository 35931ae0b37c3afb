//! Is what the ranks of a program told right?

use crate::interpret::{End, Told};
use crate::program::{Program, Verb};
use serde::{Deserialize, Serialize};
use std::fmt;
use unisono_kernel::error::{Cause, Error};

/// What a rank says that was told so.
pub(crate) const BEREFT: &str = "told that a rank died";

/// How a rank's program ended.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Ending {
    /// With its last step.
    Done,
    /// It was killed.
    Killed,
    /// It was told that a rank died.
    Bereft,
    /// It did not end in time.
    Late,
    /// With another error.
    Failed(String),
}

/// What a rank told, in words.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How it ended.
    pub end: Ending,
    /// The step at which it did.
    pub at: usize,
    /// Results that were wrong.
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
    /// What an interpreter told.
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

    /// Of a rank that could not begin, or went down.
    pub const fn failed(words: String) -> Self {
        Self { end: Ending::Failed(words), at: 0, wrong: Vec::new() }
    }
}

/// Is it right?
///
/// # Errors
/// What is wrong, a line for each rank that has something to say.
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

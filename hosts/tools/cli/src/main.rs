//! `unisono`: see collectives work, measure them, check them.
// `print!` panics where it can't write; `out`'s macros return an error.
#![deny(clippy::print_stdout)]

mod args;
mod bench;
mod check;
mod command;
mod decide;
mod demo;
mod doctor;
mod error;
mod explain;
mod form;
mod job;
mod measure;
mod model;
mod mpis;
mod near;
mod out;
mod preload;
mod progress;
mod run;
mod sim;
mod team;
mod topo;
mod tune;
mod worker;

use clap::Parser;
use command::{Args, Command};
use error::Failure;
use job::Job;
use std::process::ExitCode;

fn main() -> ExitCode {
    let answer = match Args::parse().command {
        Command::Demo(args) => team::launch(args.ranks, args.bind, args.memory.variables(), &Job::Demo(args)),
        Command::Bench(args) => bench::run(args),
        Command::Check(args) => check::run(args),
        Command::Run(args) => run::run(args),
        Command::Preload(args) => preload::run(args),
        Command::Topo(args) => topo::run(args),
        Command::Model(args) => model::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Doctor(args) => doctor::run(args),
        Command::Explain(args) => explain::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::Worker => worker::work(),
    };
    match answer.and_then(|()| out::finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Silent(code)) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("unisono: {failure}");
            ExitCode::FAILURE
        }
    }
}

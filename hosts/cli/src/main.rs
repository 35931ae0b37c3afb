//! `unisono`: see collectives work, measure them, check them.

mod args;
mod bench;
mod check;
mod decide;
mod demo;
mod error;
mod explain;
mod form;
mod job;
mod measure;
mod model;
mod run;
mod sim;
mod topo;
mod tune;

use args::{Args, Command};
use clap::Parser;
use error::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let answer = match Args::parse().command {
        Command::Demo(args) => job::launch(args.ranks, args.bind, args.memory.variables(), job::Job::Demo(args)),
        Command::Bench(args) => job::launch(args.ranks, args.bind, args.memory.variables(), job::Job::Bench(args)),
        Command::Check(args) => check::run(args),
        Command::Run(args) => run::run(args),
        Command::Topo(args) => topo::run(args),
        Command::Model(args) => model::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::Worker => job::work(),
    };
    match answer {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Silent(code)) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("unisono: {failure}");
            ExitCode::FAILURE
        }
    }
}

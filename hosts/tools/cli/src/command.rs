//! The command line.

use crate::args::{Bench, Check, Demo, Run, Topo};
use crate::doctor::args::Doctor;
use crate::explain::args::Explain;
use crate::measure::args::Measure;
use crate::model::args::Model;
use crate::preload::Preload;
use crate::sim::args::Sim;
use crate::tune::args::Tune;
use clap::{Parser, Subcommand};

/// Collective operations between the processes of a machine: show, run, measure, check.
#[derive(Debug, Parser)]
#[command(name = "unisono", version, about, max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start processes, show where their memory lies, broadcast a file, print a latency table
    Demo(Demo),
    /// Start N copies of a program; each joins the others by Unisono's start-up
    Run(Run),
    /// Start a command of an MPI, such as mpirun with its arguments, whose collectives Unisono takes over
    Preload(Preload),
    /// Measure a collective between real processes, beside the machine's floor
    Bench(Bench),
    /// Check every algorithm against a sequential oracle on real processes
    Check(Check),
    /// Simulate a collective between thousands of ranks: virtual time over LogGP links
    Sim(Sim),
    /// Show the machine's topology, the memory of a communicator, and groups of processes that share units
    Topo(Topo),
    /// Print or plot the papers' figures and tables that follow from formulas
    Model(Model),
    /// Say which algorithm runs a call and why: all candidates with predicted and measured times
    Explain(Explain),
    /// Measure the algorithms; write a decision table, and what was measured
    Tune(Tune),
    /// Say what of Unisono works on this machine, why the rest does not, and what each way to copy between processes costs
    Doctor(Doctor),
    /// Measure the parameters of the papers' models, of a network or a queue; compare the models with measurements
    Measure(Measure),
    /// A rank of `demo`, `bench`, `check`, `topo`, `tune`, `doctor` or `measure`, which the launcher starts
    #[command(hide = true)]
    Worker,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}

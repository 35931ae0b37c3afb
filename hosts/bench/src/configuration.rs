//! Who is compared: a library with its best flags for the number of ranks.

use crate::tools::{Library, Programs};
use std::process::Command;

/// A library with flags.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Configuration {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) library: Library,
    flags: &'static [&'static str],
    /// Takes part where ranks outnumber cores: always, only there, or never there.
    when: When,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Always,
    Crowded,
    Roomy,
}

/// Ours.
pub(crate) const OURS: &str = "unisono";

/// All names, for the command line.
pub(crate) const NAMES: [&str; 5] = [OURS, "ompi", "ompi-sm", "mpich", "mpich-yield"];

/// All configurations, ours first. Stock MPICH never yields: where ranks outnumber cores it takes
/// milliseconds a call, and its configuration with a yield is its best.
pub(crate) const ALL: [Configuration; 5] = [
    Configuration { name: OURS, title: "Unisono", library: Library::Unisono, flags: &[], when: When::Always },
    Configuration { name: "ompi", title: "Open MPI", library: Library::OpenMpi, flags: &[], when: When::Always },
    Configuration {
        name: "ompi-sm",
        title: "Open MPI, coll/sm",
        library: Library::OpenMpi,
        flags: &["--mca", "coll_sm_priority", "100"],
        when: When::Always,
    },
    Configuration { name: "mpich", title: "MPICH", library: Library::Mpich, flags: &[], when: When::Roomy },
    Configuration {
        name: "mpich-yield",
        title: "MPICH, yielding",
        library: Library::Mpich,
        flags: &[],
        when: When::Crowded,
    },
];

impl Configuration {
    /// Does it take part where ranks outnumber cores, or where they do not?
    pub(crate) fn takes_part(&self, crowded: bool) -> bool {
        self.when == When::Always || (self.when == When::Crowded) == crowded
    }

    /// The command that starts `ranks` ranks, without the program's arguments; or what is missing.
    pub(crate) fn command(&self, programs: &Programs, ranks: u32, crowded: bool) -> Result<Command, String> {
        let program = programs.of(self.library)?;
        let n = ranks.to_string();
        let mut command = match self.library {
            Library::Unisono => {
                let mut command = Command::new(programs.unisono());
                command.args(["run", "-n", &n, "--"]);
                command
            }
            Library::OpenMpi => {
                let mut command = Command::new("mpirun.openmpi");
                if programs.root {
                    command.arg("--allow-run-as-root");
                }
                command.args(["-n", &n]).args(self.flags);
                if crowded {
                    command.args(["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]);
                } else {
                    command.args(["--bind-to", "core"]);
                }
                command
            }
            Library::Mpich => {
                let mut command = Command::new("mpirun.mpich");
                command.args(["-n", &n]).args(self.flags);
                if crowded {
                    command.args(["-genv", "LD_PRELOAD"]).arg(programs.shim()?);
                } else {
                    command.args(["-bind-to", "core"]);
                }
                command
            }
        };
        command.arg(program);
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_configurations() {
        assert_eq!(NAMES, ALL.map(|configuration| configuration.name));
    }

    #[test]
    fn mpich_yields_where_ranks_outnumber_cores() {
        let taking = |crowded| ALL.iter().filter(move |c| c.takes_part(crowded)).map(|c| c.name).collect::<Vec<_>>();
        assert_eq!(taking(false), ["unisono", "ompi", "ompi-sm", "mpich"]);
        assert_eq!(taking(true), ["unisono", "ompi", "ompi-sm", "mpich-yield"]);
    }
}

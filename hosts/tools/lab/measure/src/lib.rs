//! Measures a network by messages alone: LogGP's parameters, Hockney's, and a switch's bandwidth when all pairs
//! exchange.
//!
//! | file | what |
//! |---|---|
//! | `script` | the acts of one process, as a machine over any point-to-point layer with a clock |
//! | `stage` | where scripts run: threads, or the simulator, whose known parameters test the method |
//! | `mpi` | where scripts run: the ranks of an MPI job |
//! | `clocks` | one time for ranks that share no clock |
//! | `logp` | L, o_s, o_r, g, G by parametrized round trips (paper P4 measured with Netgauge) |
//! | `network` | t_s and t_w; one pair against all pairs (paper P5) |
//! | `skew` | how far apart in time ranks leave a barrier, and pass a deadline (paper P5) |
//!
//! Times are nanoseconds. Every parameter has an interval of 95 % confidence from repetitions, for any
//! distribution.

pub mod clocks;
mod error;
pub mod logp;
pub mod mpi;
pub mod network;
pub mod script;
pub mod skew;
pub mod stage;

pub use error::MeasureError;
pub use stage::{Simulated, Stage, Threads};

/// Level of confidence of all intervals.
pub const LEVEL: f64 = 0.95;

//! The jobs of ranks that are processes of this program: what a rank is to do, and with which arguments.

use crate::args::{Bench, Check, Demo, Topo};
use crate::check::random::programs::Programs;
use crate::doctor::args::Doctor;
use crate::measure::args::{Caches, Queue, Skew};
use crate::tune::args::Work;
use serde::{Deserialize, Serialize};

/// What the ranks of a job do.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum Job {
    Demo(Demo),
    Doctor(Doctor),
    Bench(Bench),
    Check(Check),
    Programs(Programs),
    Topo(Topo),
    Tune(Work),
    Queue(Queue),
    Skew(Skew),
    Caches(Caches),
}

//! Jobs of the ranks that this program starts of itself: what they are told.

use crate::args::{Bench, Check, Demo, Topo};
use crate::check::random::programs::Programs;
use crate::measure::args::{Queue, Skew};
use crate::tune::args::Work;
use serde::{Deserialize, Serialize};

/// What the ranks do.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) enum Job {
    Demo(Demo),
    Bench(Bench),
    Check(Check),
    Programs(Programs),
    Topo(Topo),
    Tune(Work),
    Queue(Queue),
    Skew(Skew),
}

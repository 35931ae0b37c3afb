//! LogGP's parameters by parametrized round trips, after Netgauge (Hoefler, Lichei, Rehm: Low-overhead LogGP parameter
//! assessment for modern interconnection networks, 2007), which paper P4 measured with.
//!
//! PRTT(n, d, s): a client sends n messages of s bytes, busy for d between two; the server takes all of them, then
//! sends one back.
//!
//! | parameter | from |
//! |---|---|
//! | o_s | (PRTT(n, d, 1) − PRTT(1, 0, 1)) / (n − 1) − d, with d above the round trip, so that nothing else delays the client |
//! | o_r | the time of a receive whose message has been there for long |
//! | L | PRTT(1, 0, 1)/2 − o_s − o_r |
//! | g, G | a straight line through I(s) = (PRTT(n, 0, s) − PRTT(1, 0, s)) / (n − 1) = g + (s − 1)·G |
//!
//! I(s) is max{o_s, o_r, g + (s − 1)·G}: where the processes are slower than the network, short messages do not depend
//! on g. So only lengths count whose I(s) is well above both overheads, and g is where their line meets s = 1. Netgauge
//! takes all lengths, and finds o for g there.
//!
//! A repetition measures everything once; each parameter is the median of the repetitions' values.

use crate::script::Act;
use crate::{LEVEL, MeasureError, Stage};
use unisono_model::ModelError;
use unisono_model::hockney::{Fit, Weight};
use unisono_model::logp::LogP;
use unisono_model::stats::Median;

/// The extent of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Repetitions: at least six, which an interval needs.
    pub repetitions: usize,
    /// Round trips of a repetition, whose median is taken.
    pub trips: usize,
    /// n: messages of a train.
    pub train: usize,
    /// s: lengths for g and G; at least three.
    pub lengths: Vec<usize>,
}

impl Default for Plan {
    fn default() -> Self {
        let lengths = (0..=17).map(|power| 1 << power).collect();
        Self { repetitions: 11, trips: 51, train: 16, lengths }
    }
}

/// LogGP's parameters, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// L.
    pub latency: Median,
    /// o_s.
    pub send: Median,
    /// o_r.
    pub receive: Median,
    /// g.
    pub gap: Median,
    /// G, per byte.
    pub byte_gap: Median,
}

impl Measured {
    /// The parameters for the models; one that noise made negative becomes 0.
    ///
    /// # Errors
    /// A message takes no time at all.
    pub fn logp(&self) -> Result<LogP, MeasureError> {
        let of = |median: Median| median.value.max(0.0);
        let logp = LogP::new(of(self.latency), of(self.send), of(self.receive), of(self.gap))?;
        Ok(logp.with_byte_gap(of(self.byte_gap))?)
    }
}

/// The values of one repetition.
#[derive(Clone, Copy, Debug)]
struct Once {
    latency: f64,
    send: f64,
    receive: f64,
    gap: f64,
    byte_gap: f64,
}

/// Measures between ranks 0, the client, and 1.
///
/// # Errors
/// Too few repetitions, messages or lengths; the stage fails; the network's pace can't be seen
/// ([`MeasureError::Hidden`]).
pub fn measure(stage: &mut impl Stage, plan: &Plan) -> Result<Measured, MeasureError> {
    ModelError::at_least("repetitions", plan.repetitions as u64, LEAST as u64)?;
    ModelError::at_least("round trips", plan.trips as u64, 1)?;
    ModelError::at_least("messages of a train (n)", plan.train as u64, 2)?;
    ModelError::at_least("lengths (s)", plan.lengths.len() as u64, 3)?;
    let mut all = Vec::new();
    let mut hidden = None;
    // On a busy machine some repetitions hide the network's pace: they are made again, at most as often as there are
    // repetitions. The first one warms up.
    for attempt in 0..=2 * plan.repetitions {
        match once(stage, plan) {
            Ok(once) if attempt > 0 => all.push(once),
            Ok(_) => {}
            Err(error @ MeasureError::Hidden { .. }) => hidden = Some(error),
            Err(error) => return Err(error),
        }
        if all.len() == plan.repetitions {
            break;
        }
    }
    if let (true, Some(hidden)) = (all.len() < LEAST, hidden) {
        return Err(hidden);
    }
    let median = |of: fn(&Once) -> f64| {
        // Noise may make an overhead negative.
        let values: Vec<f64> = all.iter().map(|once| of(once).max(0.0)).collect();
        Median::new(&values, LEVEL)
    };
    Ok(Measured {
        latency: median(|once| once.latency)?,
        send: median(|once| once.send)?,
        receive: median(|once| once.receive)?,
        gap: median(|once| once.gap)?,
        byte_gap: median(|once| once.byte_gap)?,
    })
}

fn once(stage: &mut impl Stage, plan: &Plan) -> Result<Once, MeasureError> {
    let trip = prtt(stage, plan.trips, 1, 0.0, 1)?;
    let delay = 2.0 * trip;
    let send = per_message(prtt(stage, plan.trips, plan.train, delay, 1)?, trip, plan.train) - delay;
    let receive = receive(stage, plan.trips, 4.0 * trip)?;
    let busy = send.max(receive);
    let mut points = Vec::new();
    for &length in &plan.lengths {
        let one = prtt(stage, plan.trips, 1, 0.0, length)?;
        let interval = per_message(prtt(stage, plan.trips, plan.train, 0.0, length)?, one, plan.train);
        if interval > ABOVE * busy {
            points.push((length.saturating_sub(1) as f64, interval));
        }
    }
    if points.len() < LENGTHS {
        return Err(MeasureError::Hidden { lengths: points.len(), least: LENGTHS });
    }
    let line = Fit::new(&points, Weight::Relative, LEVEL)?;
    let latency = trip / 2.0 - send - receive;
    Ok(Once { latency, send, receive, gap: line.startup, byte_gap: line.element })
}

/// Repetitions that an interval needs.
const LEAST: usize = 6;
/// Lengths that a line needs.
const LENGTHS: usize = 3;
/// An interval that is longer than a process is busy by this factor is the network's.
const ABOVE: f64 = 1.25;

/// (PRTT(n, d, s) − PRTT(1, 0, s)) / (n − 1).
fn per_message(train: f64, one: f64, n: usize) -> f64 {
    (train - one) / n.saturating_sub(1) as f64
}

/// The median of `trips` PRTT(n, d, s), one after the other.
fn prtt(stage: &mut impl Stage, trips: usize, n: usize, d: f64, s: usize) -> Result<f64, MeasureError> {
    let (mut client, mut server) = meet();
    for _ in 0..trips {
        client.push(Act::Note);
        for message in 0..n {
            if message > 0 && d > 0.0 {
                client.push(Act::Work(d));
            }
            client.push(Act::Send(1, s));
            server.push(Act::Receive(0, s));
        }
        client.extend([Act::Receive(1, s), Act::Note, Act::Flush]);
        server.extend([Act::Send(0, s), Act::Flush]);
    }
    spans(stage.run(vec![client, server])?)
}

/// The median time of `trips` receives whose messages are there: the client works for `long` first.
fn receive(stage: &mut impl Stage, trips: usize, long: f64) -> Result<f64, MeasureError> {
    let (mut client, mut server) = meet();
    for _ in 0..trips {
        client.extend([Act::Send(1, 1), Act::Work(long), Act::Note, Act::Receive(1, 1), Act::Note, Act::Flush]);
        server.extend([Act::Receive(0, 1), Act::Send(0, 1), Act::Flush]);
    }
    spans(stage.run(vec![client, server])?)
}

/// A round trip that is not timed; after it both ranks have started.
fn meet() -> (Vec<Act>, Vec<Act>) {
    (vec![Act::Send(1, 1), Act::Receive(1, 1), Act::Flush], vec![Act::Receive(0, 1), Act::Send(0, 1), Act::Flush])
}

/// The median of the times between the client's notes, in pairs, so that disturbances of some do not count.
fn spans(notes: Vec<Vec<f64>>) -> Result<f64, MeasureError> {
    let client = notes.first().map_or(&[][..], Vec::as_slice);
    let (pairs, _) = client.as_chunks();
    let mut times: Vec<f64> = pairs.iter().map(|[begin, end]| end - begin).collect();
    times.sort_by(f64::total_cmp);
    ModelError::at_least("round trips", times.len() as u64, 1)?;
    let at = |index: usize| times.get(index).copied().unwrap_or(f64::NAN);
    Ok(f64::midpoint(at((times.len() - 1) / 2), at(times.len() / 2)))
}

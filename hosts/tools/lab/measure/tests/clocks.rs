//! Clocks that are wrong by known amounts, in the simulator: what is translated must be the true time, within the bound.

use proptest::prelude::*;
use std::time::Duration;
use unisono_measure::clocks::Aligned;
use unisono_measure::script::Act;
use unisono_measure::{MeasureError, Simulated, Stage, Threads, skew};
use unisono_sim::{Link, Network, Schedule, Topology};

const LINK: Link = Link { latency: 1000.0, send: 200.0, receive: 150.0, gap: 50.0, gap_per_byte: 0.08 };

/// A simulated network; messages are delayed by up to `delay`, each way by itself.
fn network(delay: f64) -> Simulated {
    let network = Network { leaf: LINK, ..Network::new(Topology::Crossbar) };
    Simulated::new(network, Schedule { delay, ..Schedule::default() })
}

/// A stage whose ranks have clocks of their own: rank r's says offset + (1 + drift)·time.
struct Wrong<S> {
    stage: S,
    clocks: Vec<(f64, f64)>,
}

impl<S: Stage> Stage for Wrong<S> {
    fn run(&mut self, mut scripts: Vec<Vec<Act>>) -> Result<Vec<Vec<f64>>, MeasureError> {
        for (script, (offset, drift)) in scripts.iter_mut().zip(&self.clocks) {
            for act in script {
                if let Act::Until(moment) = act {
                    *moment = (*moment - offset) / (1.0 + drift);
                }
            }
        }
        let mut notes = self.stage.run(scripts)?;
        for (notes, (offset, drift)) in notes.iter_mut().zip(&self.clocks) {
            notes.iter_mut().for_each(|note| *note = offset + (1.0 + drift) * *note);
        }
        Ok(notes)
    }
}

/// Every rank works for 1 ms and notes the time, ten times: the same moments on all.
fn moments(stage: &mut impl Stage, ranks: u32) -> Vec<Vec<f64>> {
    stage.run(vec![[Act::Work(1e6), Act::Note].repeat(10); ranks as usize]).unwrap()
}

fn apart(notes: &[Vec<f64>]) -> f64 {
    let of = |at: usize| notes.iter().map(move |notes| notes[at]);
    (0..10).map(|at| of(at).fold(f64::MIN, f64::max) - of(at).fold(f64::MAX, f64::min)).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn wrong_clocks_are_put_right_within_the_bound(
        clocks in proptest::collection::vec((-1e9..1e9, -1e-4..1e-4), 2..6), delay in 0.0..500.0,
    ) {
        let ranks = clocks.len() as u32;
        // Rank 0's time is the one that counts.
        let clocks: Vec<_> = std::iter::once((0.0, 0.0)).chain(clocks.into_iter().skip(1)).collect();
        let mut wrong = Wrong { stage: network(delay), clocks: clocks.clone() };
        let before = apart(&moments(&mut wrong, ranks));
        let mut aligned = Aligned::new(wrong, ranks, 8).unwrap();
        let after = apart(&moments(&mut aligned, ranks));
        // Over 10 ms a clock that is off by 10⁻⁴ loses a microsecond, which the line takes out but for its readings' errors.
        prop_assert!(after <= aligned.bound() + 1.0, "{after} instead of {before}, bound {}", aligned.bound());
        for (reading, (offset, drift)) in aligned.readings().iter().zip(&clocks) {
            let truth = (reading.at - offset) / (1.0 + drift) - reading.at;
            prop_assert!((reading.offset - truth).abs() <= reading.bound + 1.0, "{reading:?}, {truth}");
        }
    }
}

#[test]
fn without_delays_no_error_is_left_but_the_messages_own() {
    // Both ways take as long: the middle of a round trip is the moment itself, but for what noting leaves out.
    let wrong = Wrong { stage: network(0.0), clocks: vec![(0.0, 0.0), (5e8, 0.0), (-3e8, 0.0)] };
    let mut aligned = Aligned::new(wrong, 3, 1).unwrap();
    assert!(apart(&moments(&mut aligned, 3)) <= LINK.send.max(LINK.receive), "{:?}", aligned.readings());
}

#[test]
fn deadlines_let_ranks_go_together_and_barriers_do_not() {
    let clocks = vec![(0.0, 0.0), (1e9, 1e-6), (-1e9, 0.0), (7e8, -1e-6), (3e3, 0.0)];
    let mut aligned = Aligned::new(Wrong { stage: network(2000.0), clocks }, 5, 20).unwrap();
    let found = skew::measure(&mut aligned, 50, Duration::from_micros(100)).unwrap();
    assert!(found.deadline.value <= found.bound, "{found:?}");
    // Delays of up to 2 µs in each of three rounds.
    assert!(found.barrier.value > 500.0, "{found:?}");
}

#[test]
fn threads_share_a_clock_and_readings_say_so() {
    let mut aligned = Aligned::new(Threads::default(), 2, 50).unwrap();
    for reading in aligned.readings() {
        assert!(reading.offset.abs() <= reading.bound, "{reading:?}");
    }
    let found = skew::measure(&mut aligned, 20, Duration::from_micros(50)).unwrap();
    assert!(found.barrier.value >= 0.0 && found.deadline.value >= 0.0, "{found:?}");
}

#[test]
fn too_little_is_an_error_that_names_it() {
    assert_eq!(Aligned::new(network(0.0), 2, 0).unwrap_err().to_string(), "round trips is 0, must be at least 1");
    let mut aligned = Aligned::new(network(0.0), 2, 1).unwrap();
    let few = skew::measure(&mut aligned, 5, Duration::from_micros(1)).unwrap_err();
    assert_eq!(few.to_string(), "repetitions is 5, must be at least 6");
    let none = skew::measure(&mut aligned, 6, Duration::ZERO).unwrap_err();
    assert_eq!(none.to_string(), "nanoseconds between two deadlines is 0, must be at least 1");
}

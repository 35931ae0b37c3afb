//! The simulator as the judge: what is measured there must be what was put in.

use proptest::prelude::*;
use unisono_measure::logp::{Plan, measure};
use unisono_measure::network::{hockney, switch};
use unisono_measure::{MeasureError, Simulated, Threads};
use unisono_model::hockney::Network as Kind;
use unisono_sim::{Link, Network, Schedule, Topology};

fn network(topology: Topology, link: Link) -> Simulated {
    Simulated::new(Network { leaf: link, ..Network::new(topology) }, Schedule::default())
}

fn plan() -> Plan {
    Plan { repetitions: 6, trips: 2, ..Plan::default() }
}

fn gives_back(link: Link) {
    let found = measure(&mut network(Topology::Crossbar, link), &plan()).unwrap();
    let pairs = [
        ("L", link.latency, found.latency.value),
        ("o_s", link.send, found.send.value),
        ("o_r", link.receive, found.receive.value),
        ("g", link.gap, found.gap.value),
        ("G", link.gap_per_byte, found.byte_gap.value),
    ];
    for (name, put_in, found) in pairs {
        // Virtual time counts whole picoseconds.
        assert!((found - put_in).abs() < 1e-3 * put_in + 0.01, "{name}: {found} instead of {put_in} of {link:?}");
    }
}

#[test]
fn the_simulator_gives_back_what_was_put_in() {
    let link = Link { latency: 1000.0, send: 200.0, receive: 150.0, gap: 50.0, gap_per_byte: 0.08 };
    gives_back(link);
    // The network is slower than the processes, also for short messages.
    gives_back(Link { gap: 700.0, ..link });
    // The receiver is the slowest of all.
    gives_back(Link { receive: 2000.0, ..link });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn for_any_parameters(
        latency in 10.0..5000.0, send in 1.0..500.0, receive in 1.0..500.0, gap in 1.0..500.0, per_byte in 0.05..2.0,
    ) {
        gives_back(Link { latency, send, receive, gap, gap_per_byte: per_byte });
    }
}

/// Delays of up to a tenth of the latency: the medians stay near, and the intervals say that there is noise.
#[test]
fn noise_widens_the_intervals() {
    let link = Link { latency: 1000.0, send: 200.0, receive: 150.0, gap: 50.0, gap_per_byte: 0.08 };
    let network = Network { leaf: link, ..Network::new(Topology::Crossbar) };
    let schedule = Schedule { delay: 100.0, ..Schedule::default() };
    let found = measure(&mut Simulated::new(network, schedule), &Plan { repetitions: 11, ..Plan::default() }).unwrap();
    assert!(found.latency.high > found.latency.low);
    // Half a delay on average.
    assert!((found.latency.value - 1050.0).abs() < 50.0, "{found:?}");
    assert!((found.byte_gap.value - 0.08).abs() < 0.008, "{found:?}");
}

#[test]
fn too_little_is_an_error_that_names_it() {
    let link = Network::new(Topology::Crossbar).leaf;
    let of = |plan: Plan| measure(&mut network(Topology::Crossbar, link), &plan).unwrap_err();
    assert_eq!(of(Plan { repetitions: 5, ..plan() }).to_string(), "repetitions is 5, must be at least 6");
    assert_eq!(of(Plan { train: 1, ..plan() }).to_string(), "messages of a train (n) is 1, must be at least 2");
    assert_eq!(of(Plan { lengths: vec![1, 2], ..plan() }).to_string(), "lengths (s) is 2, must be at least 3");
    // Only short messages, and processes slower than the network: its pace can't be seen.
    let hidden = of(Plan { lengths: vec![1, 2, 4, 8], ..plan() });
    assert_eq!(hidden, MeasureError::Hidden { lengths: 0, least: 3 });
}

/// One way takes o_s + L + o_r + (k − 1)·G.
#[test]
fn hockney_from_the_simulator() {
    let link = Link { latency: 1000.0, send: 200.0, receive: 150.0, gap: 50.0, gap_per_byte: 0.08 };
    let fit = hockney(&mut network(Topology::Crossbar, link), &[1, 64, 4096, 65536], 3).unwrap();
    assert!((fit.startup - (1350.0 - 0.08)).abs() < 0.1, "{fit:?}");
    assert!((fit.element - 0.08).abs() < 1e-5, "{fit:?}");
    let few = hockney(&mut network(Topology::Crossbar, link), &[64], 1).unwrap_err();
    assert_eq!(few.to_string(), "samples is 1, must be at least 3");
}

#[test]
fn stars_are_told_from_crossbars() {
    let link = Network::new(Topology::Star).leaf;
    for ranks in [4, 8, 13] {
        for (topology, kind) in [(Topology::Star, Kind::Star), (Topology::Crossbar, Kind::Crossbar)] {
            let verdict = switch(&mut network(topology, link), ranks, 65536, 3, 2).unwrap();
            assert_eq!(verdict.network, Some(kind), "{ranks} ranks: {verdict:?}");
        }
    }
    let few = switch(&mut network(Topology::Star, link), 3, 1, 1, 2).unwrap_err();
    assert_eq!(few.to_string(), "ranks (p) is 3, must be at least 4");
}

/// Between threads numbers depend on the machine, and a busy one may show a gap of 0 or below: each is a number between its
/// bounds, and the parameters made of them are times.
#[test]
fn threads_have_parameters() {
    match measure(&mut Threads::default(), &Plan { repetitions: 6, trips: 5, ..Plan::default() }) {
        Ok(found) => {
            for median in [found.latency, found.send, found.receive, found.gap, found.byte_gap] {
                assert!(median.low <= median.value && median.value <= median.high, "{found:?}");
                assert!(median.low.is_finite() && median.high.is_finite(), "{found:?}");
            }
            assert!(found.logp().unwrap().message() >= 0.0, "{found:?}");
        }
        // A disturbed machine may hide the line: named, not made up.
        Err(error) => assert!(matches!(error, MeasureError::Hidden { .. } | MeasureError::Model(_)), "{error}"),
    }
}

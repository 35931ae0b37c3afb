//! Simulated times beside published ones.

use unisono_kernel::algorithm::BcastAlgorithm;
use unisono_kernel::call::Call;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::error::Error;
use unisono_kernel::region::Params;
use unisono_sim::segment::{Machine, run};

/// The mean over ranks of a broadcast's time, in microseconds, as OSU's benchmarks count it: all begin together, and each takes
/// its own time.
fn broadcast(machine: &Machine, ranks: u32, algorithm: BcastAlgorithm, bytes: usize) -> f64 {
    const WARM: usize = 6;
    let params = Params { lines: 4, ..Params::new(ranks) };
    let all = run(machine, params, |mut communicator, clock| {
        let mut message = vec![communicator.rank() as u8; bytes];
        let mut time = 0.0;
        for _ in 0..=WARM {
            clock.meet();
            let begin = clock.now().ns();
            clock.compute(machine.call);
            communicator.run(&Call::Bcast { data: Data::bytes_mut(&mut message), root: 0, algorithm })?;
            time = clock.now().ns() - begin;
        }
        assert!(message.iter().all(|byte| *byte == 0));
        Ok::<_, Error>(time)
    });
    let all: Vec<f64> = all.unwrap().into_iter().map(Result::unwrap).collect();
    all.iter().sum::<f64>() / all.len() as f64 / 1e3
}

/// XHC's flat broadcast on two Ice Lake Xeons of 24 cores, OSU's mean (medians of its published raw files). Ours moves the same
/// lines: a short message beside its flag, read by all; a longer one in fragments, read by all from the root's memory. (The rules
/// choose groups for the short one, which are faster.)
#[test]
fn a_flat_broadcast_takes_about_as_long_as_was_published() {
    let machine = Machine::named("xeon-24x2").unwrap();
    use BcastAlgorithm::{Posted, Queue};
    for (algorithm, bytes, published, off) in
        [(Posted, 4, 0.46, 0.15), (Queue, 16 << 10, 3.0, 0.15), (Queue, 1 << 20, 167.0, 0.25)]
    {
        let simulated = broadcast(&machine, 48, algorithm, bytes);
        let ratio = simulated / published;
        assert!((ratio - 1.0).abs() <= off, "{bytes} B: {simulated:.2} µs, published {published}");
    }
}

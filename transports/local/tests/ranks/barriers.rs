//! In every barrier each rank waits for all ranks, whichever enters last, each time that the barrier is started.

use unisono_kernel::algorithm::BarrierAlgorithm;
use unisono_kernel::call::Call;
use unisono_kernel::call::any::Any;
use unisono_kernel::comm::Comm;
use unisono_kernel::machine::poll::Poll;
use unisono_kernel::machine::{Machine, Operation};
use unisono_kernel::region::Params;
use unisono_local::Segment;

const ALGORITHMS: [BarrierAlgorithm; 6] = [
    BarrierAlgorithm::Posted,
    BarrierAlgorithm::Dissemination,
    BarrierAlgorithm::Doubling,
    BarrierAlgorithm::Central,
    BarrierAlgorithm::Combining(1),
    BarrierAlgorithm::Combining(2),
];

/// One process: its context, and a barrier that is started again and again.
struct Process(Comm<Segment>, Any<'static>);

impl Process {
    fn is_done(&mut self) -> bool {
        self.1.poll(&mut self.0).unwrap() == Poll::Done
    }

    fn finished(&self) -> bool {
        self.0.end().is_some()
    }
}

#[test]
fn no_rank_leaves_before_the_last_has_entered() {
    for (algorithm, ranks) in ALGORITHMS.into_iter().flat_map(|algorithm| (1..10).map(move |ranks| (algorithm, ranks)))
    {
        let segment = Segment::new(Params { page: 256, ..Params::new(ranks) }).unwrap();
        let process = |rank| {
            let mut comm = Comm::new(segment.clone(), *segment.layout(), rank).unwrap();
            let barrier = Call::Barrier { algorithm }.build(comm.member()).unwrap();
            let barrier = barrier.started(comm.member_mut());
            Process(comm, barrier)
        };
        let mut processes: Vec<_> = (0..ranks).map(process).collect();
        for late in (0..ranks as usize).chain([0]) {
            let name = format!("{algorithm:?}, {ranks} ranks, {late} is late");
            for _ in 0..ranks {
                for rank in (0..ranks as usize).filter(|&rank| rank != late) {
                    assert!(!processes[rank].is_done(), "{name}: {rank} has left");
                }
            }
            assert!(processes.iter().all(|process| !process.finished()), "{name}");
            let sweeps =
                (0..).find(|_| processes.iter_mut().filter_map(|it| (!it.is_done()).then_some(())).count() == 0);
            assert!(sweeps < Some(10), "{name}: {sweeps:?}");
            // Another poll changes nothing.
            assert!(processes.iter_mut().all(|process| process.is_done() && process.finished()), "{name}");
            processes.iter_mut().for_each(|Process(comm, barrier)| barrier.start(comm.member_mut()));
        }
    }
}

//! If a rank's body ends while other ranks wait for it, they get an error that names it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;
use unisono_kernel::algorithm::BarrierAlgorithm;
use unisono_kernel::comm::Communicator;
use unisono_kernel::error::{Cause, Error, Poison};
use unisono_kernel::region::Params;
use unisono_local::Local;

/// What `body` returns. Fails if it does not end within far more time than it needs on any machine.
fn bounded<A: Send + 'static>(body: impl FnOnce() -> A + Send + 'static) -> A {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(body()));
    receive.recv_timeout(Duration::from_secs(20)).expect("it ends")
}

fn looks(communicator: &mut Communicator<Local>) -> Result<(), Error> {
    communicator.scope(|scope| {
        let request = scope.start_barrier(BarrierAlgorithm::default())?;
        while !scope.test(request)? {
            std::thread::yield_now();
        }
        Ok(())
    })
}

fn waits(communicator: &mut Communicator<Local>) -> Result<(), Error> {
    communicator.barrier()
}

fn died(result: Result<(), Error>) -> bool {
    matches!(result, Err(Error::Poisoned(Poison { rank: 1, cause: Cause::Died, .. })))
}

#[test]
fn a_rank_that_returns_early_is_named_to_ranks_that_wait_and_to_ranks_that_test() {
    for ranks in [2, 3, 8] {
        for forever in [waits, looks] {
            let told = bounded(move || {
                unisono_local::run(Params::new(ranks), |mut communicator| {
                    communicator.barrier().unwrap();
                    communicator.rank() == 1 || died(forever(&mut communicator))
                })
                .unwrap()
            });
            assert_eq!(told, vec![true; ranks as usize]);
        }
    }
}

#[test]
fn a_rank_that_panics_is_named_to_the_others_before_the_panic_continues() {
    let (told, panic) = bounded(|| {
        let told = std::sync::Mutex::new(0);
        let run = || {
            unisono_local::run(Params::new(3), |mut communicator| {
                communicator.barrier().unwrap();
                assert_ne!(communicator.rank(), 1, "one gives up");
                *told.lock().unwrap() += u32::from(died(waits(&mut communicator)));
            })
        };
        let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        (told.into_inner().unwrap(), panic.downcast_ref::<String>().cloned())
    });
    assert_eq!(told, 2);
    assert!(panic.unwrap().contains("one gives up"));
}

/// A rank that has finished its part may leave: the root of a broadcast, long before the others enter.
#[test]
fn a_rank_that_is_not_needed_any_more_may_leave() {
    let received = bounded(|| {
        unisono_local::run(Params::new(3), |mut communicator| {
            let mut bytes = if communicator.rank() == 0 { [7; 100] } else { [0; 100] };
            if communicator.rank() > 0 {
                std::thread::sleep(Duration::from_millis(50));
            }
            communicator.bcast(&mut bytes, 0).unwrap();
            bytes
        })
        .unwrap()
    });
    assert_eq!(received, [[7; 100]; 3]);
}

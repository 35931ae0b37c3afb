//! A rank that only tests its requests gets the errors of dead and late peers, as a rank that waits does.

use super::body::{Failure, argument, launched, say};
use super::death::error;
use super::{Scene, kill};
use std::time::Duration;
use unisono_kernel::algorithm::{BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::error::Error;
use unisono_kernel::region::Params;
use unisono_posix::launch::Exit;
use unisono_posix::{Options, Posix, join};

/// Tests an operation that never completes, in one of the forms.
fn look(communicator: &mut Communicator<Posix>, form: &str) -> Result<(), Error> {
    let call = Call::Barrier { algorithm: BarrierAlgorithm::default() };
    communicator.scope(|scope| {
        let request = if form == "persistent" {
            let persistent = scope.init(call)?;
            scope.restart(persistent)?
        } else {
            scope.start(call)?
        };
        while !scope.test(request)? {
            if form == "computing" {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    })
}

/// Rank 1 does not call: it sleeps until it is killed, or until the others' waits have timed out.
pub(super) fn polling() -> Result<(), Failure> {
    let argument = argument();
    let (form, timeout) = argument.split_once(' ').unwrap();
    let timeout = timeout.parse().ok().map(Duration::from_millis);
    let mut communicator =
        join(&mut launched()?, Params::new, &Options { timeout, ..Options::default() })?.communicator;
    if form == "inherited" {
        communicator.set_timeout(Some(Duration::from_millis(300)));
        communicator = communicator.dup()?.split(Some(0), 0)?.expect("a color");
    }
    communicator.barrier()?;
    say("joined", "");
    if communicator.rank() == 1 {
        std::thread::sleep(Duration::from_secs(if argument.ends_with('-') { 60 } else { 2 }));
    }
    Ok(look(&mut communicator, form)?)
}

/// Rank 0 calls the second communicator's barrier before it waits for the first one's broadcast, rank 1 afterwards.
pub(super) fn crossed() -> Result<(), Failure> {
    let options = Options { timeout: Some(Duration::from_secs(10)), ..Options::default() };
    let mut first = join(&mut launched()?, Params::new, &options)?.communicator;
    let (rank, mut second) = (first.rank(), first.dup()?);
    let mut bytes = vec![rank as u8; 4 << 20];
    first.scope(|scope| {
        let request = scope.start_bcast(Data::bytes_mut(&mut bytes), 1, BcastAlgorithm::Auto)?;
        if rank == 1 {
            scope.wait(request)?;
        }
        second.run_among(&Call::Barrier { algorithm: BarrierAlgorithm::default() }, &mut [scope])?;
        scope.wait(request)
    })?;
    assert!(bytes.iter().all(|&byte| byte == 1));
    Ok(())
}

#[test]
fn a_blocking_call_makes_progress_on_the_scopes_that_it_is_given() {
    let outcome = Scene::new("crossed").run("crossed", "", 2);
    assert!(outcome.success(), "{outcome}");
}

#[test]
fn a_rank_killed_while_others_only_look_is_named_by_them() {
    for form in ["nonblocking", "persistent", "computing"] {
        let scene = Scene::new(&format!("polling-killed-{form}"));
        let running = scene.launch("polling", &format!("{form} -"), 3, Default::default()).spawn().unwrap();
        let victim = running.pids()[1];
        (0..3).for_each(|rank| drop(scene.said(rank, "joined")));
        std::thread::sleep(Duration::from_millis(20));
        kill(victim);
        let outcome = running.wait().unwrap();
        assert_eq!(outcome.killed, [], "{form}: {outcome}");
        for rank in [0, 2] {
            assert_eq!(outcome.exits[rank as usize], Exit::Code(3), "{form}: {outcome}");
            let (_, text) = error(&scene, rank);
            assert!(text.starts_with("rank 1 died"), "{form}: rank {rank}: {text}");
        }
    }
}

#[test]
fn a_rank_that_does_not_come_while_others_only_look_is_named_when_the_bound_is_over() {
    for argument in ["nonblocking 300", "persistent 300", "computing 300", "inherited 9999999"] {
        let (form, _) = argument.split_once(' ').unwrap();
        let scene = Scene::new(&format!("polling-late-{form}"));
        let outcome = scene.run("polling", argument, 3);
        for rank in [0, 2] {
            assert_eq!(outcome.exits[rank as usize], Exit::Code(3), "{form}: {outcome}");
            let (_, text) = error(&scene, rank);
            assert!(text.starts_with("rank 1 was late"), "{form}: rank {rank}: {text}");
        }
    }
}

//! Other libraries' algorithms in the simulator: their results, whatever the calls before.

use unisono_kernel::error::WaitError;
use unisono_kernel::op::Op;
use unisono_sim::segment::rivals::Rival;
use unisono_sim::segment::{Machine, run};

/// Two packages of two groups of three cores: groups, and trees, are not full.
fn machine() -> Machine {
    Machine { cores: 3, groups: 2, packages: 2, ..Machine::named("epyc-7r13x2").unwrap() }
}

/// What byte `at` of a broadcast from `root` in this call is.
fn byte(call: usize, root: u32, at: usize) -> u8 {
    (call * 31 + root as usize * 7 + at / 3) as u8
}

/// Runs calls of all kinds, of lengths on both sides of each rival's limits, each rank the root in turn; returns the end's time.
fn calls(rival: Rival, machine: &Machine, ranks: u32) -> Vec<f64> {
    const LENGTHS: [usize; 12] = [0, 8, 40, 48, 56, 256, 264, 4096, 8192, 10_000, 70_000, 150_008];
    let params = rival.params(ranks, 150_008);
    let ends = run(machine, params, |communicator, clock| {
        let (rank, mut member) = (communicator.rank(), rival.join(&communicator, &clock, machine));
        for (call, bytes) in LENGTHS.into_iter().chain(LENGTHS.into_iter().rev()).enumerate() {
            let root = (call as u32 * 5 + 1) % ranks;
            let mut message = vec![0xee; bytes];
            if rank == root {
                message.iter_mut().enumerate().for_each(|(at, to)| *to = byte(call, root, at));
            }
            member.bcast(&mut message, root)?;
            assert!(message.iter().enumerate().all(|(at, is)| *is == byte(call, root, at)), "bcast, {bytes} B");
            let operand = |rank: u32, at: usize| u64::from(rank + 1) * (call as u64 + 3) + at as u64;
            let mut vector: Vec<u8> = (0..bytes / 8).flat_map(|at| operand(rank, at).to_ne_bytes()).collect();
            member.allreduce(&mut vector, &Op::SUM_U64)?;
            for (at, sum) in vector.as_chunks().0.iter().enumerate() {
                let all: u64 = (0..ranks).map(|rank| operand(rank, at)).sum();
                assert_eq!(u64::from_ne_bytes(*sum), all, "{rival}, allreduce, {bytes} B, element {at} on rank {rank}");
            }
            if call % 3 == 0 {
                member.barrier()?;
            }
        }
        Ok::<_, WaitError>(clock.now().ns())
    });
    ends.unwrap().into_iter().collect::<Result<_, _>>().unwrap()
}

#[test]
fn results_are_right_for_any_number_of_ranks_and_root_and_every_run_is_the_same() {
    for rival in Rival::ALL {
        for ranks in [1, 2, 3, 4, 7, 12] {
            let ends = calls(rival, &machine(), ranks);
            assert!(ranks == 1 || ends.iter().all(|end| *end > 0.0), "{rival}");
            if ranks == 7 {
                assert_eq!(ends, calls(rival, &machine(), ranks), "{rival}");
            }
        }
    }
}

#[test]
fn results_are_right_among_many_ranks() {
    let machine = Machine::named("epyc-7r13x2").unwrap();
    for rival in Rival::ALL {
        calls(rival, &machine, 67);
    }
}

#[test]
fn nobody_leaves_a_barrier_before_the_last_one_has_come() {
    for rival in Rival::ALL {
        for late in [0, 4, 10] {
            let ends = run(&machine(), rival.params(11, 8), |communicator, clock| {
                let mut member = rival.join(&communicator, &clock, &machine());
                member.barrier()?;
                if communicator.rank() == late {
                    clock.compute(50_000.0);
                }
                let came = clock.now().ns();
                member.barrier()?;
                Ok::<_, WaitError>((came, clock.now().ns()))
            });
            let ends: Vec<_> = ends.unwrap().into_iter().map(Result::unwrap).collect();
            let last = ends.iter().map(|(came, _)| *came).fold(0.0, f64::max);
            assert!(last >= 50_000.0 && ends.iter().all(|(_, left)| *left >= last), "{rival}, {late}: {ends:?}");
        }
    }
}

#[test]
fn whoever_waits_for_a_rank_that_never_comes_names_it() {
    for rival in Rival::ALL {
        let ends = run(&machine(), rival.params(2, 8), |communicator, clock| {
            let mut member = rival.join(&communicator, &clock, &machine());
            if communicator.rank() == 1 { Ok(()) } else { member.barrier() }
        });
        assert_eq!(ends.unwrap()[0], Err(WaitError::Late(1)), "{rival}");
    }
}

#[test]
fn every_rival_has_a_name() {
    assert!(Rival::ALL.into_iter().all(|rival| Rival::named(rival.name()) == Some(rival)));
    assert_eq!(Rival::named("doubling"), None);
}

//! What a start-up costs each process and all together: descriptors, maps, memory, time; then what one more communicator costs.
//!
//! `cargo run --release -p unisono-posix --example start_up -- 128 [mailboxes]`; with `strace -f -c` in front, all system calls.

use std::error::Error;
use std::time::{Duration, Instant};
use unisono_kernel::op::Op;
use unisono_kernel::region::Params;
use unisono_posix::bootstrap::Launched;
use unisono_posix::launch::{Bind, Launch};
use unisono_posix::{Intracomm, Options, join};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mailboxes = words.iter().any(|word| word == "mailboxes");
    if let Some(mut launched) = Launched::from_env()? {
        return rank(&mut launched, mailboxes);
    }
    let ranks = words.first().ok_or("usage: start_up RANKS [mailboxes]")?.parse()?;
    let (program, args) = (std::env::current_exe()?, words.iter().map(Into::into).collect());
    let begin = Instant::now();
    let launch =
        Launch { ranks, bind: Bind::Core, program: program.into(), args, env: vec![], grace: Duration::from_secs(60) };
    let outcome = launch.run()?;
    println!("from the first process to the last one's end: {:.2} s; {outcome}", begin.elapsed().as_secs_f64());
    Ok(())
}

fn rank(launched: &mut Launched, mailboxes: bool) -> Result<(), Box<dyn Error>> {
    let plan = |ranks| if mailboxes { Params::new(ranks).with_mailboxes() } else { Params::new(ranks) };
    let begin = Instant::now();
    let mut world = join(launched, plan, &Options::default())?.communicator;
    let joined = begin.elapsed().as_micros() as u64;
    let count = |path: &str| std::fs::read_dir(path).map_or(0, |all| all.count() as u64 - 1);
    let maps = std::fs::read_to_string("/proc/self/maps")?.lines().count() as u64;
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let kilobytes = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    let most = [joined, count("/proc/self/fd"), maps];
    let most = most.map(|mine| all(&mut world, mine, Op::MAX_U64));
    let shared = all(&mut world, kilobytes("Pss_Shmem:"), Op::SUM_U64)?;
    // One more communicator, of all ranks, and then two halves.
    let touched = |world: &mut Intracomm| {
        let mine = world.place().usage().touched;
        all(world, mine, Op::SUM_U64)
    };
    let before = touched(&mut world)?;
    let mut dup = world.dup()?;
    for _ in 0..100 {
        all(&mut dup, 1, Op::SUM_U64)?;
    }
    let dupped = touched(&mut world)? - before;
    let [time, descriptors, maps] = most;
    let (time, descriptors, maps) = (time?, descriptors?, maps?);
    if world.rank() == 0 {
        println!(
            "p = {}: the slowest joined in {:.1} ms; at most {descriptors} descriptors and {maps} maps",
            world.size(),
            time as f64 / 1e3
        );
        println!(
            "shared memory touched at the start: {shared} KiB; a dup with 100 short allreduces: {} KiB of {} KiB",
            dupped >> 10,
            dup.place().bytes() >> 10
        );
    }
    Ok(())
}

fn all(comm: &mut Intracomm, mine: u64, op: Op) -> Result<u64, Box<dyn Error>> {
    let mut word = mine.to_ne_bytes();
    comm.allreduce_in_place(&mut word, op)?;
    Ok(u64::from_ne_bytes(word))
}

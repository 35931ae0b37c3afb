//! Every algorithm over messages against what a sequential program computes: p = 1 … 17, roots, lengths, in place,
//! orders.
//!
//! Each case runs on the strict network in one thread, once with eager sends and once with sends that wait for their
//! receives, in another order of deliveries each time; and through the mailboxes of a segment, in slots of a word or
//! two; and its schedules are checked without running them.

mod costs;
mod levels;
mod mailboxes;
mod mutants;
mod paper;
mod refused;
mod same_bits;
mod threads;

use unisono_kernel::data::buffer::Buf;
use unisono_kernel::machine::transport::Messages;
use unisono_kernel::msg::{Memory, Rounds, Schedule, barrier};
use unisono_kernel::pattern::log2_ceil;
use unisono_local::Mailbox;
use unisono_verify::cases::{self, Stage, User, bytes, seat};
use unisono_verify::network::{Mode, run};
use unisono_verify::oracle::mix;

/// Mailboxes alone.
struct Net(Mailbox);

impl Messages for Net {
    type P2p = Mailbox;
    fn messages(&mut self) -> &mut Mailbox {
        &mut self.0
    }
}

/// Numbers of processes.
fn sizes() -> impl Iterator<Item = u32> {
    1..=17
}

/// All cases of a collective: any size gets every length, a few large ones get one.
macro_rules! collectives {
    ($($name:ident: $large:expr,)*) => {
        $(#[test]
        fn $name() {
            sizes().chain($large).for_each(|size| cases::$name(size, &mut Toy));
        })*
    };
}

collectives! {
    barriers: [33, 64, 100],
    broadcasts: [33, 100],
    gathers_and_scatters: [],
    allgathers: [33],
    alltoalls: [],
    reduces: [33],
    allreduces: [33, 100],
    reduce_scatters: [],
    scans: [],
}

/// All ranks of a case on the strict network.
struct Toy;

impl Stage for Toy {
    fn case<S: Schedule>(
        &mut self,
        name: &str,
        size: u32,
        plan: impl Fn(u32) -> S,
        before: impl Fn(u32) -> User,
        after: impl Fn(u32) -> Vec<u8>,
    ) {
        let plans: Vec<_> = (0..size).map(plan).collect();
        check(name, &plans, &(0..size).map(before).collect::<Vec<_>>(), after);
    }
}

#[test]
fn barriers_of_log2_rounds() {
    use barrier::Algorithm::{Bruck, Butterfly, Dissemination};
    for size in sizes().chain([33, 64, 100]) {
        for algorithm in [Dissemination, Bruck, Butterfly] {
            let rounds = |rank| barrier::plan(seat(rank, size), algorithm).expect("a plan").rounds();
            assert!((0..size).all(|rank| rounds(rank) == log2_ceil(size).into()), "{algorithm:?} {size}");
        }
    }
}

/// The layer on which a schedule runs.
#[derive(Clone, Copy, Debug)]
enum Under {
    /// The strict network in one thread.
    Network(Mode),
    /// The mailboxes of a segment.
    Mailboxes,
}

/// Runs one schedule per rank, in memory whose contents are `before`; returns the contents at the end.
fn outcome<S: Schedule>(name: &str, plans: &[S], before: &[User], under: Under) -> Result<Vec<User>, String> {
    let mut memory = before.to_vec();
    let mut scratch: Vec<Vec<u8>> = plans.iter().map(|plan| vec![0xaa; plan.bytes().scratch as usize]).collect();
    let make = |((plan, user), scratch): ((&S, &mut User), &mut Vec<u8>)| {
        let (send, receive) = (Buf::of(&user.send), Buf::of_mut(&mut user.receive));
        let memory = Memory { send, receive, scratch: Buf::of_mut(scratch) };
        // SAFETY: the vectors outlive the machines, which end below, and are touched by nobody else until then.
        unsafe { Rounds::of(plan.clone(), memory, 7) }.unwrap_or_else(|refusal| panic!("{name}: {refusal}"))
    };
    let mut machines: Vec<_> = plans.iter().zip(&mut memory).zip(&mut scratch).map(make).collect();
    let seed = |salt| name.bytes().fold(salt, |seed, byte| mix(seed ^ u64::from(byte)));
    match under {
        Under::Network(mode) => run(&mut machines, mode, seed(mode as u64))?,
        Under::Mailboxes => mailboxes::run(&mut machines, seed(2))?,
    }
    Ok(memory)
}

/// Checks that memory with the contents `before` ends with `after`, and checks the schedules without running them.
fn check<S: Schedule>(name: &str, plans: &[S], before: &[User], after: impl Fn(u32) -> Vec<u8>) {
    paper::check(name, plans);
    let wanted: Vec<_> = (0..plans.len() as u32).map(after).collect();
    for under in [Under::Network(Mode::Eager), Under::Network(Mode::Rendezvous), Under::Mailboxes] {
        let memory = outcome(name, plans, before, under).unwrap_or_else(|fault| panic!("{name} {under:?}: {fault}"));
        for ((rank, user), before) in (0u32..).zip(&memory).zip(before) {
            assert_eq!(user.send, before.send, "{name} {under:?}: the input of rank {rank}");
            assert!(user.receive == wanted[rank as usize], "{name} {under:?}: the result of rank {rank}");
        }
    }
    if plans.len() == 5 {
        mutants::check(name, plans, before, &wanted);
    }
}

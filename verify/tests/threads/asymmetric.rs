//! Calls whose lengths differ from pair to pair, mixed with others, so that slots and lines are reused while a rank
//! is behind.

use std::time::Duration;
use unisono_kernel::Rank;
use unisono_kernel::call::Call;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::Datatype;
use unisono_kernel::region::Params;
use unisono_local::{Local, run};

/// The data that `from` sends to `to` in round `round`.
fn byte(round: usize, from: usize, to: usize, at: usize) -> u8 {
    (round.wrapping_mul(131) ^ from.wrapping_mul(29) ^ to.wrapping_mul(53) ^ at.wrapping_mul(7) ^ (at >> 8)) as u8
}

/// Blocks one after the other.
fn places(counts: &[u64]) -> Vec<u64> {
    counts.iter().scan(0, |at, count| Some(std::mem::replace(at, *at + count))).collect()
}

fn blocks<'a>(memory: &'a mut [u8], counts: &'a [u64], places: &'a [u64]) -> Blocks<'a> {
    // SAFETY: the slice is ours.
    unsafe { Blocks::vary(Buf::of_mut(memory), counts, places, Datatype::BYTE) }.unwrap()
}

/// One rank's memory of an alltoallv in which `count(from, to)` bytes go from one to another.
struct Side {
    counts: Vec<u64>,
    places: Vec<u64>,
    memory: Vec<u8>,
}

impl Side {
    fn new(counts: Vec<u64>, mut fill: impl FnMut(usize, usize) -> u8) -> Self {
        let memory = counts.iter().enumerate().flat_map(|(peer, count)| (0..*count as usize).map(move |at| (peer, at)));
        let memory = memory.map(|(peer, at)| fill(peer, at)).collect();
        Self { places: places(&counts), counts, memory }
    }

    fn blocks(&mut self) -> Blocks<'_> {
        blocks(&mut self.memory, &self.counts, &self.places)
    }
}

/// A rank's send buffer, its receive buffer, and the right result.
fn sides(me: usize, size: usize, round: usize, count: impl Fn(usize, usize) -> u64) -> (Side, Side, Vec<u8>) {
    let send = Side::new((0..size).map(|to| count(me, to)).collect(), |to, at| byte(round, me, to, at));
    let wanted = Side::new((0..size).map(|from| count(from, me)).collect(), |from, at| byte(round, from, me, at));
    let receive = Side::new(wanted.counts.clone(), |_, _| 0xEE);
    (send, receive, wanted.memory)
}

/// A rank that exchanges long blocks is late, while the one that sends it a short block goes on.
#[test]
fn a_short_block_is_taken_before_its_slot_is_reused() {
    let params = Params { queue_slots: 16, queue_fragment: 32 << 10, ..Params::new(2) };
    let ended = run(params, |mut comm: Communicator<Local>| {
        let me = comm.rank() as usize;
        let (mut send, mut receive, wanted) = sides(me, 2, 7, |from, to| match (from, to) {
            (0, 1) => 8192,
            (1, 0) => 1024,
            _ => 0,
        });
        let mut message = vec![if me == 1 { 0x5A } else { 0 }; 1 << 20];
        comm.scope(|scope| {
            let call = Call::Alltoallv { send: Some(send.blocks()), receive: receive.blocks() };
            let request = scope.start(call)?;
            if me == 0 {
                std::thread::sleep(Duration::from_millis(20));
            }
            scope.wait(request)
        })?;
        comm.bcast(&mut message, 1)?;
        assert_eq!(receive.memory, wanted, "rank {me}");
        assert!(message.iter().all(|byte| *byte == 0x5A), "rank {me}");
        Ok::<(), unisono_kernel::error::Error>(())
    });
    assert_eq!(ended.unwrap(), [Ok(()), Ok(())]);
}

/// Random counts per pair, then a broadcast of random length and root; now and then a rank pauses.
#[test]
fn random_counts_and_broadcasts() {
    const COUNTS: [u64; 9] = [0, 8, 100, 1024, 4096, 8192, 9000, 33_000, 40_000];
    for ranks in [2, 3, 5, 8] {
        // In the shortest slots not all have a piece: then all blocks travel in turns.
        for (queue_slots, queue_fragment) in [(16, 32 << 10), (4, 512), (2, 64)] {
            let params = Params { queue_slots, queue_fragment, lines: 4, ..Params::new(ranks) };
            let ended = run(params, |mut comm: Communicator<Local>| {
                let (me, size) = (comm.rank() as usize, ranks as usize);
                let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ u64::from(ranks);
                let mut random = move |below: usize| {
                    state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                    (state >> 33) as usize % below
                };
                for round in 0..if queue_fragment == 64 { 12 } else { 60 } {
                    let table: Vec<u64> = (0..size * size).map(|_| COUNTS[random(COUNTS.len())]).collect();
                    let in_place = random(4) == 0;
                    // In place both directions of a pair are equally long.
                    let count = |from: usize, to: usize| {
                        let (from, to) = if in_place { (from.min(to), from.max(to)) } else { (from, to) };
                        table[from * size + to]
                    };
                    let (mut send, mut receive, wanted) = sides(me, size, round, count);
                    let mut pause = || {
                        if random(2 * size) == me {
                            std::thread::sleep(Duration::from_micros(300));
                        }
                    };
                    pause();
                    let given = if in_place {
                        receive.memory.clone_from(&send.memory);
                        None
                    } else {
                        Some(send.blocks())
                    };
                    comm.alltoallv(given, receive.blocks())?;
                    let mut wanted = wanted;
                    if in_place {
                        let own = receive.places[me] as usize..(receive.places[me] + receive.counts[me]) as usize;
                        wanted[own.clone()].copy_from_slice(&send.memory[own]);
                    }
                    assert!(receive.memory == wanted, "rank {me} of {ranks}, round {round}, slots of {queue_fragment}");
                    pause();
                    let longest = if queue_fragment == 64 { 1 } else { 6 };
                    let (root, len) = (random(size), (COUNTS[random(COUNTS.len())] as usize) << random(longest));
                    let mut message = vec![if me == root { round as u8 } else { 0xEE }; len];
                    comm.bcast(&mut message, root as Rank)?;
                    assert!(message.iter().all(|byte| *byte == round as u8), "rank {me} of {ranks}, round {round}");
                }
                Ok::<(), unisono_kernel::error::Error>(())
            });
            assert!(ended.unwrap().iter().all(Result::is_ok));
        }
    }
}

//! Words of the segment that no member wrote lead to an error or a wait, and nothing is written outside the buffers.

use super::*;
use unisono_kernel::machine::Operation;
use unisono_kernel::region::{Layout, Region};
use unisono_kernel::shm::papers::allgather::P2Allgather;
use unisono_kernel::shm::papers::gather::P2Gather;
use unisono_kernel::shm::papers::scatter::P2Scatter;

/// A rank's machine, by polls.
type Rank<'a> = Box<dyn FnMut() -> Option<Result<Poll, PollError>> + 'a>;

fn rank<'a, M: Machine<Comm<Segment>> + 'a>(mut comm: Comm<Segment>, mut machine: M) -> Rank<'a> {
    let mut over = false;
    Box::new(move || {
        if over {
            return None;
        }
        let answer = machine.poll(&mut comm);
        over = answer.is_err();
        Some(answer)
    })
}

/// Writes `value` to the `index`-th word of the protocols; false: there are no more.
fn forge(segment: &Segment, index: usize, value: u64) -> bool {
    let layout: Layout = *segment.layout();
    let ranks = || 0..P as u32;
    let flags = (0..W as u32).map(|set| layout.set_op(set));
    let counters = (0..W as u32).flat_map(|set| {
        let counts = ranks().map(move |rank| layout.set_count(set, rank));
        [layout.set_bytes(set), layout.set_readers(set), layout.set_typesize(set)].into_iter().chain(counts)
    });
    let slots = || ranks().flat_map(|rank| (0..S as u32).map(move |slot| (rank, slot)));
    let ready = (0..W as u32).flat_map(|set| ranks().map(move |rank| layout.set_rootready(set, rank)));
    let all = slots().flat_map(|(rank, slot)| ranks().map(move |to| layout.control_all(rank, slot, to)));
    let mails = ready.chain(slots().map(|(rank, slot)| layout.control(rank, slot))).chain(all);
    let flags = flags.map(|id| segment.flag(id));
    let counters = counters.map(|id| segment.counter(id));
    let mut words = flags.chain(counters).chain(mails.map(|id| segment.mail(id)));
    words.nth(index).map(|word| word.store_payload(value)).is_some()
}

const GUARD: usize = 64;
const FILL: u8 = 0xA5;

/// One operation of three ranks with one word forged after `before` polls; how many ranks failed.
fn attack(what: usize, index: usize, value: u64, before: usize) -> Option<usize> {
    let counts: [u64; P] = [3, 9, 0];
    let places = one_after_the_other(&counts);
    let total = counts.iter().sum::<u64>() as usize;
    let segment = Segment::new(params(P as u32)).unwrap();
    let mut memories: Vec<Vec<u8>> = (0..P).map(|_| vec![FILL; total + GUARD]).collect();
    let mut owns: Vec<Vec<u8>> = counts.iter().map(|count| vec![FILL; *count as usize + GUARD]).collect();
    let mut failed = 0;
    let known = {
        let mut ranks: Vec<Rank<'_>> = Vec::new();
        for (me, (memory, own)) in (0..).zip(memories.iter_mut().zip(&mut owns)) {
            let mut comm = Comm::new(segment.clone(), *segment.layout(), me).unwrap();
            let all = blocks(&mut memory[..total], &counts, &places).unwrap();
            let own = Some(Data::bytes_mut(&mut own[..counts[me as usize] as usize]));
            let member = comm.member_mut();
            ranks.push(match what {
                0 => {
                    let machine = P2Scatter::new(member, Some(all), own, 0).unwrap().started(member);
                    rank(comm, machine)
                }
                1 => {
                    let machine = P2Gather::new(member, own, Some(all), 0).unwrap().started(member);
                    rank(comm, machine)
                }
                _ => {
                    let machine = P2Allgather::new(member, own, all).unwrap().started(member);
                    rank(comm, machine)
                }
            });
        }
        for poll in 0..before {
            let _ = ranks[poll % P]();
        }
        let known = forge(&segment, index, value);
        for _ in 0..20 {
            failed += ranks.iter_mut().map(|poll| usize::from(matches!(poll(), Some(Err(_))))).sum::<usize>();
        }
        known
    };
    for memory in memories.iter().chain(&owns) {
        assert!(memory[memory.len() - GUARD..].iter().all(|&byte| byte == FILL), "a guard is overwritten");
    }
    known.then_some(failed)
}

#[test]
fn forged_words_cost_an_error_or_wrong_data() {
    let (mut attacks, mut errors) = (0, 0);
    for what in 0..3 {
        for value in [1, 2, 7, 1 << 31, (1 << 32) + 3, 4 << 56, 1 << 63, u64::MAX - 1, u64::MAX] {
            for before in 0..6 {
                for index in 0.. {
                    let Some(failed) = attack(what, index, value, before) else { break };
                    attacks += 1;
                    errors += failed;
                }
            }
        }
    }
    println!("{attacks} attacks, {errors} errors of ranks");
    assert!(attacks > 5000 && errors > 500);
}

//! Checks of schedules without running them: places lie in the memory that was asked for, sends match receives,
//! receives overlap nothing.

use std::collections::BTreeMap;
use unisono_kernel::msg::Schedule;
use unisono_kernel::msg::schedule::{Area, Message, Moment, Place, Work};

fn messages<'a, S: Schedule>(
    round: u64,
    get: impl Fn(u64, u32) -> Option<Message> + 'a,
    _: &S,
) -> impl Iterator<Item = Message> + 'a {
    (0..).map_while(move |index| get(round, index))
}

fn overlap(a: Place, b: Place) -> bool {
    a.area == b.area && a.at < b.at + b.len && b.at < a.at + a.len
}

/// Checks the schedules of all ranks.
pub(crate) fn check<S: Schedule>(name: &str, plans: &[S]) {
    // Lengths of the messages from one rank to another, as the sender and as the receiver says.
    let (mut sent, mut received): (BTreeMap<_, Vec<u64>>, BTreeMap<_, Vec<u64>>) = Default::default();
    for (rank, plan) in (0u32..).zip(plans) {
        let bytes = plan.bytes();
        let inside = |place: Place| {
            let room = match place.area {
                Area::Send => bytes.send,
                Area::Receive => bytes.receive,
                Area::Scratch => bytes.scratch,
            };
            assert!(place.at + place.len <= room || place.len == 0, "{name}: rank {rank}: {place:?} of {bytes:?}");
        };
        for round in 0..plan.rounds() {
            let sends: Vec<_> = messages(round, |r, i| plan.send(r, i), plan).collect();
            let receives: Vec<_> = messages(round, |r, i| plan.receive(r, i), plan).collect();
            for message in &sends {
                assert!(message.peer != rank, "{name}: rank {rank} sends to itself");
                inside(message.place);
                sent.entry((rank, message.peer)).or_default().push(message.place.len);
            }
            for (at, message) in receives.iter().enumerate() {
                inside(message.place);
                assert!(message.place.area != Area::Send || message.place.len == 0, "{name}: rank {rank}");
                received.entry((message.peer, rank)).or_default().push(message.place.len);
                let others = receives.iter().skip(at + 1).chain(&sends);
                let clear = others.clone().all(|other| !overlap(other.place, message.place));
                assert!(clear, "{name}: rank {rank} round {round}");
            }
            for moment in [Moment::Before, Moment::Meanwhile, Moment::After] {
                for work in (0..).map_while(|index| plan.work(round, moment, index)) {
                    let (reads, writes) = match work {
                        Work::Copy { from, to } => (from, to),
                        Work::Fold { left, right } => (left, right),
                    };
                    inside(reads);
                    inside(writes);
                    assert_eq!(reads.len, writes.len, "{name}: rank {rank} round {round} {moment:?}");
                    assert!(!overlap(reads, writes), "{name}: rank {rank} round {round} {work:?}");
                    assert!(writes.area != Area::Send || writes.len == 0, "{name}: rank {rank} writes its input");
                    if moment == Moment::Meanwhile {
                        let free = receives.iter().all(|m| !overlap(m.place, reads) && !overlap(m.place, writes))
                            && sends.iter().all(|message| !overlap(message.place, writes));
                        assert!(free, "{name}: rank {rank} round {round}: work on what travels");
                    }
                }
            }
        }
    }
    assert_eq!(sent, received, "{name}");
}

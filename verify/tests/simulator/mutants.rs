//! Machines with a mistake, which the seeds must find.

use super::Case;
use super::calls::{Call, Kind, Memory};
use std::collections::VecDeque;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::PollError;
use unisono_kernel::machine::Machine;
use unisono_kernel::machine::p2p::{P2p, P2pError, Tag};
use unisono_kernel::machine::poll::{Await, Poll, Slot, Source, WaitSet};
use unisono_kernel::msg::Schedule;
use unisono_kernel::msg::levels::{self, Algorithm};
use unisono_kernel::msg::schedule::{Bytes, Message, Moment, Work};
use unisono_kernel::pattern::tree::{Position, Tree};
use unisono_sim::Endpoint;

/// Seeds of 50 at which `kind` by `maker` ends with wrong data; each ends.
fn wrong(kind: Kind, maker: super::Maker) -> usize {
    let is_wrong = |&seed: &u64| {
        let mut case = Case::of(seed, Some(9));
        case.calls.iter_mut().for_each(|call| call.kind = kind);
        let (outcome, memory) = case.run(Vec::new(), maker);
        assert!(outcome.last().is_ok(), "seed {seed}");
        !case.all_hold(&memory)
    };
    (0..50).filter(is_wrong).count()
}

/// Passes a message on before it has received it.
struct Hasty {
    tree: Position,
    tag: Tag,
    buf: Buf,
    receive: Option<(Slot, u32)>,
    sends: VecDeque<(Slot, u32)>,
    posted: bool,
}

impl Machine<Endpoint> for Hasty {
    fn poll(&mut self, end: &mut Endpoint) -> Result<Poll, PollError> {
        let failed = |peer| move |P2pError(code)| PollError::Messages { peer, code };
        if !self.posted {
            self.posted = true;
            if let Some(from) = self.tree.parent() {
                // SAFETY: the case's memory outlives the run; that the sends read it too is the mutant's mistake.
                let slot = unsafe { end.post_recv(from, self.tag, self.buf) };
                self.receive = Some((slot.map_err(failed(from))?, from));
            }
            for to in self.tree.children() {
                // SAFETY: as above.
                let slot = unsafe { end.post_send(to, self.tag, self.buf) };
                self.sends.push_back((slot.map_err(failed(to))?, to));
            }
        }
        while let Some((slot, peer)) = self.sends.front().copied().or(self.receive) {
            if !end.test(slot).map_err(failed(peer))? {
                let source = Source::Message(slot);
                return Ok(Poll::Wait(WaitSet::one(Await {
                    source,
                    peer: Some(peer),
                    operation: self.tag.0,
                    stage: 0,
                })));
            }
            if self.sends.pop_front().is_none() {
                self.receive = None;
            }
        }
        Ok(Poll::Done)
    }
}

#[test]
fn a_machine_that_does_not_wait_is_found() {
    let hasty: super::Maker = |call, line, rank, memory| {
        let tree = Tree::BINOMIAL.position(rank, call.root, line.groups().ranks());
        let (tag, buf) = (Tag(call.operation), Buf::of_mut(&mut memory.receive));
        Ok(Box::new(Hasty { tree, tag, buf, receive: None, sends: VecDeque::new(), posted: false }))
    };
    assert_eq!(wrong(Kind::Binomial, hasty), 50);
}

/// A schedule that sends a segment in the round in which it is received, not in the next one.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Early<S>(S);

impl<S: Schedule> Schedule for Early<S> {
    fn rounds(&self) -> u64 {
        self.0.rounds()
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let early = u64::from(self.0.receive(0, 0).is_some());
        self.0.send(round + early, index).filter(|_| round + early < self.rounds())
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        self.0.receive(round, index)
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        self.0.work(round, moment, index)
    }

    fn bytes(&self) -> Bytes {
        self.0.bytes()
    }
}

#[test]
fn a_segment_that_is_passed_on_to_the_next_level_too_early_is_found() {
    assert_eq!(wrong(Kind::Bcast, Call::machine), 0);
    let early: super::Maker = |call, line, rank, memory: &mut Memory| {
        let algorithm = Algorithm::from_name("levels-64/chain").expect("a name");
        let plan = levels::bcast::plan(line.groups(), rank, call.bytes as u64, call.root, algorithm)?;
        call.run(Early(plan), memory)
    };
    assert_eq!(wrong(Kind::Bcast, early), 50);
}

//! What the simulator's tests share: ranks that follow a script, and links with small parameters.

use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::PollError;
use unisono_kernel::machine::Machine;
use unisono_kernel::machine::p2p::{P2p, P2pError, Tag};
use unisono_kernel::machine::poll::{Await, Poll, Slot, Source, WaitSet};
use unisono_sim::{Endpoint, Link, Network, Nics, Outcome, Placement, Schedule, Topology, World};

/// What a rank does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Sends and waits: the rank, the tag, the number of bytes, their value.
    Send(u32, u64, usize, u8),
    /// Receives and waits: the rank, the tag, the number of bytes.
    Receive(u32, u64, usize),
    /// Posts a receive and does not wait: the rank, the tag, the number of bytes.
    Post(u32, u64, usize),
    /// Tests the n-th posted receive, and continues whether it is complete or not.
    Test(usize),
}

/// A rank that does one thing after the other.
#[derive(Debug)]
pub(crate) struct Script {
    acts: Vec<Act>,
    at: usize,
    waiting: Option<(Slot, u32)>,
    posted: Vec<(Slot, u32)>,
    buffers: Vec<Vec<u8>>,
    /// What each `Test` returned.
    pub(crate) complete: Vec<bool>,
}

impl Script {
    pub(crate) fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        let acts = acts.into_iter().collect();
        Self { acts, at: 0, waiting: None, posted: Vec::new(), buffers: Vec::new(), complete: Vec::new() }
    }

    /// The first byte of what each receive got, in the order of posting.
    pub(crate) fn received(&self) -> Vec<u8> {
        let receives = self.acts.iter().filter(|act| !matches!(act, Act::Test(_))).zip(&self.buffers);
        receives.filter(|(act, _)| !matches!(act, Act::Send(..))).filter_map(|(_, got)| got.first().copied()).collect()
    }

    fn buffer(&mut self, value: u8, bytes: usize) -> Buf {
        // Each act has its own buffer, which stays where it is until the script is dropped.
        self.buffers.push(vec![value; bytes]);
        Buf::of_mut(self.buffers.last_mut().expect("pushed above"))
    }
}

impl Machine<Endpoint> for Script {
    fn poll(&mut self, end: &mut Endpoint) -> Result<Poll, PollError> {
        let failed = |peer| move |P2pError(code)| PollError::Messages { peer, code };
        loop {
            if let Some((slot, peer)) = self.waiting {
                if !end.test(slot).map_err(failed(peer))? {
                    let on =
                        Await { source: Source::Message(slot), peer: Some(peer), operation: self.at as u64, stage: 0 };
                    return Ok(Poll::Wait(WaitSet::one(on)));
                }
                self.waiting = None;
            }
            let Some(act) = self.acts.get(self.at).copied() else { return Ok(Poll::Done) };
            self.at += 1;
            match act {
                Act::Send(to, tag, bytes, value) => {
                    let buffer = self.buffer(value, bytes);
                    // SAFETY: the buffer is this script's, which outlives the run, and nothing writes it.
                    let slot = unsafe { end.post_send(to, Tag(tag), buffer) };
                    self.waiting = Some((slot.map_err(failed(to))?, to));
                }
                Act::Receive(from, tag, bytes) | Act::Post(from, tag, bytes) => {
                    let buffer = self.buffer(0, bytes);
                    // SAFETY: the buffer is this script's, which outlives the run, and nothing else accesses it.
                    let slot = (unsafe { end.post_recv(from, Tag(tag), buffer) }.map_err(failed(from))?, from);
                    match act {
                        Act::Receive(..) => self.waiting = Some(slot),
                        _ => self.posted.push(slot),
                    }
                }
                Act::Test(which) => {
                    let (slot, peer) = self.posted[which];
                    self.complete.push(end.test(slot).map_err(failed(peer))?);
                }
            }
        }
    }
}

/// L = 1, o_s = 2, o_r = 3, g = 5, G = 0.5: nine bytes pass a port in 4 ns.
pub(crate) const LINK: Link = Link { latency: 1.0, send: 2.0, receive: 3.0, gap: 5.0, gap_per_byte: 0.5 };

/// That link everywhere.
pub(crate) fn network(topology: Topology) -> Network {
    Network { topology, numa: None, socket: None, nics: Nics::default(), node: LINK, leaf: LINK, spine: LINK }
}

/// Runs scripts, with one rank per node.
pub(crate) fn run(network: Network, schedule: Schedule, scripts: &mut Vec<Script>) -> Outcome {
    let ranks = scripts.len() as u32;
    let world = World::new(network, Placement::blocks(ranks, ranks).unwrap(), schedule).unwrap();
    let mut ranks: Vec<_> = world.endpoints().into_iter().zip(scripts.drain(..)).collect();
    let outcome = world.run(&mut ranks);
    scripts.extend(ranks.into_iter().map(|(_, script)| script));
    outcome
}

//! What one process does in a measurement: acts, one after the other, and times that it notes.

use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::PollError;
use unisono_kernel::machine::Machine;
use unisono_kernel::machine::p2p::{P2p, P2pError, Tag};
use unisono_kernel::machine::poll::{Await, Poll, Slot, Source, WaitSet};
use unisono_kernel::machine::transport::Messages;

/// A context with messages and a clock.
pub trait Clock {
    /// Nanoseconds since a fixed moment.
    fn now(&self) -> f64;
    /// Is busy for so many nanoseconds.
    fn work(&mut self, ns: f64);
}

/// One act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    /// Starts a send of so many bytes; does not wait for it.
    Send(Rank, usize),
    /// Receives so many bytes, and waits until they are there.
    Receive(Rank, usize),
    /// Is busy for so many nanoseconds.
    Work(f64),
    /// Is busy until its clock says so.
    Until(f64),
    /// Notes the time.
    Note,
    /// Waits until all of its sends are complete.
    Flush,
}

/// A process that performs a list of acts. Messages have no meaningful content; a process sends from one buffer and
/// receives into another.
#[derive(Debug)]
pub struct Script {
    acts: Vec<Act>,
    at: usize,
    sent: Vec<(Slot, Rank)>,
    receiving: Option<Slot>,
    from: Vec<u8>,
    to: Vec<u8>,
    notes: Vec<f64>,
}

impl Script {
    /// A script of these acts.
    pub fn new(acts: Vec<Act>) -> Self {
        let length = |act: &Act| match *act {
            Act::Send(_, bytes) | Act::Receive(_, bytes) => bytes,
            _ => 0,
        };
        let most = acts.iter().map(length).max().unwrap_or(0);
        Self {
            acts,
            at: 0,
            sent: Vec::new(),
            receiving: None,
            from: vec![1; most],
            to: vec![0; most],
            notes: Vec::new(),
        }
    }

    /// The times that were noted.
    pub fn into_notes(self) -> Vec<f64> {
        self.notes
    }

    /// Waits for the oldest send, if there is one.
    fn flush<P: P2p + ?Sized>(&mut self, layer: &mut P) -> Result<Option<WaitSet>, PollError> {
        while let Some(&(slot, peer)) = self.sent.first() {
            if !layer.test(slot).map_err(failed(peer))? {
                return Ok(Some(self.wait(slot, peer)));
            }
            self.sent.remove(0);
        }
        Ok(None)
    }

    fn wait(&self, slot: Slot, peer: Rank) -> WaitSet {
        WaitSet::one(Await { source: Source::Message(slot), peer: Some(peer), operation: 1, stage: self.at as u64 })
    }
}

fn failed(peer: Rank) -> impl Fn(P2pError) -> PollError {
    move |error| PollError::Messages { peer, code: error.0 }
}

impl<X: Messages + Clock> Machine<X> for Script {
    fn poll(&mut self, x: &mut X) -> Result<Poll, PollError> {
        const TAG: Tag = Tag(1);
        while let Some(&act) = self.acts.get(self.at) {
            match act {
                Act::Send(peer, bytes) => {
                    let buf = Buf::of(self.from.get(..bytes).unwrap_or_default());
                    // SAFETY: the buffer is this script's, is never written, and is freed after the layer has ended:
                    // stages drop scripts last.
                    let slot = unsafe { x.messages().post_send(peer, TAG, buf) }.map_err(failed(peer))?;
                    self.sent.push((slot, peer));
                }
                Act::Receive(peer, bytes) => {
                    let slot = match self.receiving {
                        Some(slot) => slot,
                        None => {
                            let buf = Buf::of_mut(self.to.get_mut(..bytes).unwrap_or_default());
                            // SAFETY: as above; one receive at a time writes the buffer, and nothing reads it.
                            unsafe { x.messages().post_recv(peer, TAG, buf) }.map_err(failed(peer))?
                        }
                    };
                    self.receiving = Some(slot);
                    if !x.messages().test(slot).map_err(failed(peer))? {
                        return Ok(Poll::Wait(self.wait(slot, peer)));
                    }
                    self.receiving = None;
                }
                Act::Work(ns) => x.work(ns),
                Act::Until(moment) => x.work((moment - x.now()).max(0.0)),
                Act::Note => self.notes.push(x.now()),
                Act::Flush => {
                    if let Some(on) = self.flush(x.messages())? {
                        return Ok(Poll::Wait(on));
                    }
                }
            }
            self.at += 1;
        }
        Ok(self.flush(x.messages())?.map_or(Poll::Done, Poll::Wait))
    }
}

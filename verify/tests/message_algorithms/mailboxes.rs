//! The algorithms through mailboxes of a segment: small ones, so that messages wait for slots and for each other.

use super::Net;
use unisono_kernel::machine::Machine;
use unisono_kernel::machine::p2p::P2p;
use unisono_kernel::machine::poll::{Poll, Source};
use unisono_kernel::region::{Mailboxes as Shape, Params};
use unisono_local::Mailboxes;
use unisono_verify::oracle::mix;

/// Mailboxes of one to four messages, in one or two slots of one to three words.
fn params(ranks: u32, seed: u64) -> Params {
    let shape = Shape { messages: 1 << (seed % 3), slots: 1 << (seed >> 8 & 1), fragment: 8 * (1 + (seed >> 16) % 3) };
    Params { page: 256, queue_slots: 1, queue_fragment: 64, mailboxes: Some(shape), ..Params::new(ranks) }
}

/// The most polls without the end of a machine.
const PATIENCE: usize = 100_000;

/// Runs one machine per rank until all are done, in the order that `seed` gives. A process is polled when something that it
/// waits for has happened, and now and then when nothing has: then nothing may change.
pub(crate) fn run<M: Machine<Net> + Clone + PartialEq>(machines: &mut [M], seed: u64) -> Result<(), String> {
    let boxes = Mailboxes::on(params(machines.len() as u32, mix(seed))).map_err(|refusal| refusal.to_string())?;
    let mut nets: Vec<_> = boxes.into_iter().map(Net).collect();
    let mut waits: Vec<Option<Poll>> = vec![None; machines.len()];
    let (mut random, mut idle) = (seed, 0);
    while waits.iter().any(|step| *step != Some(Poll::Done)) {
        random = mix(random);
        let rank = (random >> 16) as usize % machines.len();
        idle += 1;
        if idle > PATIENCE {
            return Err(format!("deadlock: {waits:?}"));
        }
        let ready = match &waits[rank] {
            None => true,
            Some(Poll::Done) => false,
            Some(Poll::Wait(on)) => {
                on.iter().any(|event| matches!(event.source, Source::Message(slot) if nets[rank].0.has_ended(slot)))
            }
        };
        if ready {
            let step = machines[rank].poll(&mut nets[rank]).map_err(|error| format!("rank {rank}: {error}"))?;
            (waits[rank], idle) = (Some(step), 0);
        } else if let (0, Some(wait @ Poll::Wait(_))) = (random % 8, &waits[rank]) {
            let before = machines[rank].clone();
            let step = machines[rank].poll(&mut nets[rank]).map_err(|error| format!("rank {rank}: {error}"))?;
            if step != *wait || machines[rank] != before {
                return Err(format!("a spurious poll of rank {rank}"));
            }
        }
    }
    Ok(())
}

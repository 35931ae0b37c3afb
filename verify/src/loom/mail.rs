//! Messages through mailboxes as a model's body.

use super::seat::{Abandoned, Seat};
use crate::explore::Letter;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::machine::p2p::{P2p, Tag};
use unisono_shm::{Mailbox, Peer, Post};

/// A letter: a message of two words, by default from rank 0 to rank 1.
pub(super) const LETTER: Letter = Letter { from: 0, to: 1, tag: 7, len: 16 };

/// Sends and receives all letters, in reverse order of receives if that is chosen; checks the data.
pub(super) fn letters(seat: &Seat, letters: &[Letter], falling: bool) -> Result<(), Abandoned> {
    let (region, layout, me) = seat.parts();
    let post = Post::new(layout, me, [Peer::default(); 3]).expect("model assertion: there are mailboxes");
    let mut mailbox = Mailbox::new(region, post);
    let content = |at: usize| -> Vec<u8> { (0..letters[at].len).map(|k| (31 * at + k + 1) as u8).collect() };
    let mut memory: Vec<Vec<u8>> = letters.iter().map(|letter| vec![0; letter.len]).collect();
    let mut slots = Vec::new();
    for (at, letter) in letters.iter().enumerate().filter(|(_, letter)| letter.from == me) {
        memory[at] = content(at);
        // SAFETY: `memory` outlives the mailbox's requests; an execution that is given up drops the mailbox with it.
        slots.push(unsafe { mailbox.post_send(letter.to, Tag(letter.tag), Buf::of(&memory[at])) });
    }
    let mut order: Vec<usize> = (0..letters.len()).filter(|&at| letters[at].to == me).collect();
    if falling {
        order.reverse();
    }
    for &at in &order {
        let Letter { from, tag, .. } = letters[at];
        // SAFETY: as above; nothing else touches it until the end.
        slots.push(unsafe { mailbox.post_recv(from, Tag(tag), Buf::of_mut(&mut memory[at])) });
    }
    for slot in slots {
        let slot = slot.expect("model assertion: a post that fits");
        if !mailbox.test(slot).expect("model assertion: a test that does not fail") {
            return Err(Abandoned);
        }
    }
    for at in order {
        assert_eq!(memory[at], content(at), "model assertion: message {at} of rank {me}");
    }
    Ok(())
}

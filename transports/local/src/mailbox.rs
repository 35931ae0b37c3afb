//! Point-to-point messages between threads: a queue of messages per pair of ranks.

use spin::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use unisono_kernel::Rank;
use unisono_kernel::buffer::Buf;
use unisono_kernel::p2p::{P2p, P2pError, Tag};
use unisono_kernel::step::Slot;

/// The peer's rank is not below the size.
pub const NO_SUCH_RANK: P2pError = P2pError(1);
/// The slot is not active.
pub const NO_SUCH_SLOT: P2pError = P2pError(2);

type Message = (Tag, Box<[u8]>);

/// All pairs' queues.
#[derive(Debug)]
pub struct Mailboxes {
    size: u32,
    queues: Vec<Mutex<VecDeque<Message>>>,
}

impl Mailboxes {
    /// Mailboxes among `size` ranks; element `r` of the answer is rank r's.
    pub fn connect(size: u32) -> Vec<Mailbox> {
        let queues = (0..u64::from(size) * u64::from(size)).map(|_| Mutex::default()).collect();
        let all = Arc::new(Self { size, queues });
        (0..size).map(|rank| Mailbox { rank, all: Arc::clone(&all), slots: Vec::new() }).collect()
    }

    fn queue(&self, from: Rank, to: Rank) -> Result<&Mutex<VecDeque<Message>>, P2pError> {
        if from >= self.size || to >= self.size {
            return Err(NO_SUCH_RANK);
        }
        self.queues.get(from as usize * self.size as usize + to as usize).ok_or(NO_SUCH_RANK)
    }
}

#[derive(Clone, Copy, Debug)]
enum Posted {
    Free,
    /// The bytes have been copied: complete at once.
    Sent,
    Receive {
        from: Rank,
        tag: Tag,
        buf: Buf,
    },
}

/// One rank's end.
#[derive(Debug)]
pub struct Mailbox {
    rank: Rank,
    all: Arc<Mailboxes>,
    slots: Vec<Posted>,
}

impl Mailbox {
    fn take_slot(&mut self, posted: Posted) -> Slot {
        let free = self.slots.iter().position(|slot| matches!(slot, Posted::Free)).unwrap_or_else(|| {
            self.slots.push(Posted::Free);
            self.slots.len() - 1
        });
        self.slots[free] = posted;
        Slot(free as u32)
    }
}

impl P2p for Mailbox {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.all.size
    }

    unsafe fn post_send(&mut self, to: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError> {
        let mut copy = vec![0; buf.len()].into_boxed_slice();
        // SAFETY: the caller's promise: `buf` is readable; the copy is as long, and ours.
        unsafe { std::ptr::copy_nonoverlapping(buf.ptr(), copy.as_mut_ptr(), buf.len()) };
        self.all.queue(self.rank, to)?.lock().push_back((tag, copy));
        Ok(self.take_slot(Posted::Sent))
    }

    unsafe fn post_recv(&mut self, from: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError> {
        self.all.queue(from, self.rank)?;
        Ok(self.take_slot(Posted::Receive { from, tag, buf }))
    }

    fn test(&mut self, slot: Slot) -> Result<bool, P2pError> {
        let posted = self.slots.get_mut(slot.0 as usize).ok_or(NO_SUCH_SLOT)?;
        match *posted {
            Posted::Free => return Err(NO_SUCH_SLOT),
            Posted::Sent => {}
            Posted::Receive { from, tag, buf } => {
                let mut queue = self.all.queue(from, self.rank)?.lock();
                let Some(at) = queue.iter().position(|(found, _)| *found == tag) else { return Ok(false) };
                let Some((_, bytes)) = queue.remove(at) else { return Ok(false) };
                if bytes.len() != buf.len() {
                    return Err(P2pError::LENGTH);
                }
                // SAFETY: `post_recv`'s contract: writable and exclusive until now; equally long.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buf.ptr(), bytes.len()) };
            }
        }
        *posted = Posted::Free;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_order_and_their_tags() {
        let mut boxes = Mailboxes::connect(2);
        let (mut b, mut a) = (boxes.pop().unwrap(), boxes.pop().unwrap());
        for (tag, byte) in [(1, 10u8), (2, 20), (1, 11)] {
            // SAFETY: the bytes live through the call, which copies them.
            let slot = unsafe { a.post_send(1, Tag(tag), Buf::of(&[byte])) }.unwrap();
            assert_eq!(a.test(slot), Ok(true));
        }
        for (tag, byte) in [(2, 20), (1, 10), (1, 11)] {
            let mut got = [0u8];
            // SAFETY: `got` outlives the receive, which completes below.
            let slot = unsafe { b.post_recv(0, Tag(tag), Buf::of_mut(&mut got)) }.unwrap();
            assert_eq!(b.test(slot), Ok(true));
            assert_eq!(got, [byte]);
            assert_eq!(b.test(slot), Err(NO_SUCH_SLOT));
        }
    }

    #[test]
    fn wrong_ranks_and_lengths_are_errors() {
        let mut boxes = Mailboxes::connect(1);
        let mut me = boxes.pop().unwrap();
        // SAFETY: the bytes live through the call.
        assert_eq!(unsafe { me.post_send(1, Tag(0), Buf::of(&[1])) }, Err(NO_SUCH_RANK));
        let mut two = [0u8; 2];
        // SAFETY: `two` outlives the receive.
        let slot = unsafe { me.post_recv(0, Tag(0), Buf::of_mut(&mut two)) }.unwrap();
        assert_eq!(me.test(slot), Ok(false));
        // SAFETY: the bytes live through the call.
        let _ = unsafe { me.post_send(0, Tag(0), Buf::of(&[1])) }.unwrap();
        assert_eq!(me.test(slot), Err(P2pError::LENGTH));
    }
}

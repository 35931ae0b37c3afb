//! The launcher's side of the bootstrap: allgathers over one socket per rank.
//!
//! Nothing here blocks: bytes that a rank does not read yet are queued for it, so a rank that is stopped delays only
//! the allgather that needs it. A rank's message is checked against its bound before it is kept.

use crate::bootstrap::{MOST, frame};
use crate::sys;
use rustix::event::{PollFd, PollFlags};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use unisono_kernel::Rank;

/// The connection to one rank.
#[derive(Debug)]
struct Line {
    stream: UnixStream,
    open: bool,
    /// Received bytes of a frame that is not complete yet.
    inbox: Vec<u8>,
    /// The rank's part of the current allgather.
    part: Option<Vec<u8>>,
    /// Frames to send.
    outbox: VecDeque<Rc<[u8]>>,
    /// Bytes of the first of them that are sent.
    sent: usize,
}

/// All ranks' allgathers.
#[derive(Debug)]
pub(super) struct Service {
    lines: Vec<Line>,
    /// The frame of the failure that ended the start-up: the result of every allgather from then on.
    failed: Option<Rc<[u8]>>,
}

impl Service {
    pub(super) fn new(streams: impl Iterator<Item = UnixStream>) -> Self {
        let line =
            |stream| Line { stream, open: true, inbox: Vec::new(), part: None, outbox: VecDeque::new(), sent: 0 };
        Self { lines: streams.map(line).collect(), failed: None }
    }

    /// What to poll for: each open connection with its rank.
    pub(super) fn interests(&self) -> impl Iterator<Item = (Rank, PollFd<'_>)> {
        let open = (0..).zip(&self.lines).filter(|(_, line)| line.open);
        open.map(|(rank, line)| {
            let writes = if line.outbox.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            (rank, PollFd::new(&line.stream, PollFlags::IN | writes))
        })
    }

    /// Receives from a rank and sends to it.
    pub(super) fn serve(&mut self, rank: Rank) {
        if let Some(line) = self.lines.get_mut(rank as usize) {
            line.receive();
            line.send();
        }
    }

    /// Has the rank closed its connection?
    pub(super) fn hung_up(&self, rank: Rank) -> bool {
        self.lines.get(rank as usize).is_none_or(|line| !line.open)
    }

    /// Does a rank wait in an allgather?
    pub(super) fn awaited(&self) -> bool {
        self.lines.iter().any(|line| line.part.is_some())
    }

    /// Has the rank given its part of the current allgather?
    pub(super) fn gave(&self, rank: Rank) -> bool {
        self.lines.get(rank as usize).is_some_and(|line| line.part.is_some())
    }

    /// Ends the start-up: each rank that waits, now or later, learns that `rank` failed.
    pub(super) fn fail(&mut self, rank: Rank, cause: &str) {
        if self.failed.is_none() {
            self.failed = Some(frame::frame(frame::FAILED, &frame::failure(rank, cause)).into());
        }
    }

    /// Sends the result of the allgather, if all parts are there or the start-up has failed.
    pub(super) fn settle(&mut self) {
        let result: Rc<[u8]> = match &self.failed {
            Some(failure) => Rc::clone(failure),
            None if self.lines.iter().all(|line| line.part.is_some()) => {
                let parts = self.lines.iter().filter_map(|line| line.part.as_deref());
                frame::frame(frame::GATHERED, &frame::gathered(parts)).into()
            }
            None => return,
        };
        for line in &mut self.lines {
            if line.part.take().is_some() && line.open {
                line.outbox.push_back(Rc::clone(&result));
                line.send();
            }
        }
    }
}

impl Line {
    fn receive(&mut self) {
        let mut buffer = [0; 1 << 16];
        while self.open {
            match (&self.stream).read(&mut buffer) {
                Ok(0) => self.open = false,
                Ok(count) => {
                    self.inbox.extend_from_slice(&buffer[..count]);
                    self.open = self.take_frame();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.open = false,
            }
        }
    }

    /// Takes a complete frame out of the inbox. False: the rank breaks the protocol (unknown kind, too long, a second
    /// part before the first one's result).
    fn take_frame(&mut self) -> bool {
        let Some(head) = self.inbox.first_chunk() else { return true };
        let (kind, len) = frame::head(head);
        if kind != frame::CONTRIBUTE || len > MOST as u64 || self.part.is_some() {
            return false;
        }
        let end = frame::HEAD + len as usize;
        if self.inbox.len() >= end {
            self.part = Some(self.inbox[frame::HEAD..end].to_vec());
            self.inbox.drain(..end);
        }
        self.part.is_none() || self.inbox.is_empty()
    }

    fn send(&mut self) {
        while let Some(first) = self.outbox.front() {
            let rest = first.get(self.sent..).unwrap_or_default();
            if rest.is_empty() {
                self.outbox.pop_front();
                self.sent = 0;
                continue;
            }
            match sys::send(&self.stream, rest) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.open = false;
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A service and its ranks' ends.
    fn service(size: u32) -> (Service, Vec<UnixStream>) {
        let (ours, theirs): (Vec<_>, Vec<_>) = (0..size).map(|_| UnixStream::pair().unwrap()).unzip();
        for stream in &ours {
            stream.set_nonblocking(true).unwrap();
        }
        (Service::new(ours.into_iter()), theirs)
    }

    fn read_frame(mut stream: &UnixStream) -> (u64, Vec<u8>) {
        let mut head = [0; frame::HEAD];
        stream.read_exact(&mut head).unwrap();
        let (kind, len) = frame::head(&head);
        let mut body = vec![0; len as usize];
        stream.read_exact(&mut body).unwrap();
        (kind, body)
    }

    #[test]
    fn all_ranks_receive_all_parts() {
        let (mut service, mut ranks) = service(3);
        for (rank, stream) in (0..).zip(&mut ranks) {
            stream.write_all(&frame::frame(frame::CONTRIBUTE, &[rank; 5])).unwrap();
            service.settle();
            service.serve(rank.into());
        }
        service.settle();
        for stream in &ranks {
            let (kind, body) = read_frame(stream);
            assert_eq!(kind, frame::GATHERED);
            assert_eq!(frame::parts(&body, 3), Some(vec![vec![0; 5], vec![1; 5], vec![2; 5]]));
        }
        assert!(!service.awaited());
    }

    #[test]
    fn a_failure_is_sent_to_ranks_that_wait_and_to_later_ones() {
        let (mut service, mut ranks) = service(2);
        service.fail(1, "gone");
        for _ in 0..2 {
            ranks[0].write_all(&frame::frame(frame::CONTRIBUTE, b"x")).unwrap();
            service.serve(0);
            service.settle();
            let (kind, body) = read_frame(&ranks[0]);
            assert_eq!((kind, frame::failed(&body)), (frame::FAILED, Some((1, "gone".to_owned()))));
        }
    }

    #[test]
    fn a_rank_that_breaks_the_protocol_is_disconnected() {
        let long = crate::wire::Writer::default().word(frame::CONTRIBUTE).word(u64::MAX).0;
        let twice = frame::frame(frame::CONTRIBUTE, b"x").repeat(2);
        for bytes in [vec![9; 16], long, twice, frame::frame(frame::GATHERED, b"")] {
            let (mut service, mut ranks) = service(1);
            ranks[0].write_all(&bytes).unwrap();
            service.serve(0);
            assert!(service.hung_up(0), "{bytes:?}");
        }
    }
}

//! The bootstrap of a process that this project's launcher started.

use super::variables::{BOOTSTRAP_FD, RANK, SIZE};
use super::{Bootstrap, MOST, frame};
use crate::error::PosixError;
use crate::sys;
use std::io::Read;
use std::os::unix::net::UnixStream;
use unisono_kernel::Rank;
use unisono_kernel::error::{Argument, Bound, Refusal};

/// One end of a socket whose other end the launcher serves.
#[derive(Debug)]
pub struct Launched {
    rank: Rank,
    size: u32,
    stream: UnixStream,
}

impl Launched {
    /// From the variables that the launcher has set; `None` if none of them is set.
    ///
    /// The descriptor is duplicated, and the inherited one is closed when this process executes another program, so
    /// that processes that it starts are not taken for ranks.
    ///
    /// # Errors
    /// A variable is missing or wrong; the descriptor is not a socket, as in a process that a rank has started.
    pub fn from_env() -> Result<Option<Self>, PosixError> {
        if [RANK, SIZE, BOOTSTRAP_FD].iter().all(|name| std::env::var_os(name).is_none()) {
            return Ok(None);
        }
        let (rank, size) = (number(RANK)?, number(SIZE)?);
        Refusal::check(Argument::Rank, rank.into(), Bound::Below(size.into()))?;
        let fd = number(BOOTSTRAP_FD)?;
        let bad = |_| PosixError::Setting {
            name: BOOTSTRAP_FD,
            value: fd.to_string(),
            bound: "an open socket to the launcher (only a process that it started has one)",
        };
        let fd = i32::try_from(fd).map_err(|_| bad(()))?;
        let stream = sys::adopt_socket(fd).map_err(|_| bad(()))?;
        Ok(Some(Self { rank, size, stream }))
    }
}

fn number(name: &'static str) -> Result<u32, PosixError> {
    let value = std::env::var_os(name).unwrap_or_default().to_string_lossy().into_owned();
    value.parse().map_err(|_| PosixError::Setting { name, value, bound: "a number below 2^32, set by the launcher" })
}

impl Bootstrap for Launched {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn allgather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, PosixError> {
        Refusal::check(Argument::Bytes, mine.len() as u64, Bound::AtMost(MOST as u64))?;
        let gone = |error: std::io::Error| PosixError::bootstrap(format!("the launcher is gone: {error}"));
        sys::send_all(&self.stream, &frame::frame(frame::CONTRIBUTE, mine)).map_err(gone)?;
        let mut head = [0; frame::HEAD];
        self.stream.read_exact(&mut head).map_err(gone)?;
        let (kind, len) = frame::head(&head);
        let most = (MOST as u64 + 8) * u64::from(self.size);
        Refusal::check(Argument::Bytes, len, Bound::AtMost(most))?;
        let mut body = Vec::new();
        let read = (&self.stream).take(len).read_to_end(&mut body).map_err(gone)?;
        Refusal::check(Argument::Bytes, read as u64, Bound::Equals(len))?;
        let malformed = || PosixError::bootstrap("the launcher sent a malformed frame");
        match kind {
            frame::GATHERED => frame::parts(&body, self.size).ok_or_else(malformed),
            frame::FAILED => {
                let (rank, cause) = frame::failed(&body).ok_or_else(malformed)?;
                Err(PosixError::Peer { rank, cause })
            }
            _ => Err(malformed()),
        }
    }
}

//! Frames between a launched process and the launcher: kind, length, bytes.
//!
//! | kind | from | bytes |
//! |---|---|---|
//! | `CONTRIBUTE` | process | its part of an allgather, at most [`MOST`](super::MOST) |
//! | `GATHERED` | launcher | all ranks' parts, each with its length, by rank |
//! | `FAILED` | launcher | the rank that failed, and the cause as text |

use crate::wire::{Reader, Writer};
use unisono_kernel::Rank;

pub(crate) const CONTRIBUTE: u64 = 1;
pub(crate) const GATHERED: u64 = 2;
pub(crate) const FAILED: u64 = 3;

/// Bytes of kind and length.
pub(crate) const HEAD: usize = 16;

/// Makes a frame.
pub(crate) fn frame(kind: u64, body: &[u8]) -> Vec<u8> {
    Writer::default().word(kind).bytes(body).0
}

/// Kind and length of a frame.
pub(crate) fn head(bytes: &[u8; HEAD]) -> (u64, u64) {
    let mut reader = Reader(bytes);
    (reader.word().unwrap_or(0), reader.word().unwrap_or(0))
}

/// The body of a `GATHERED` frame.
pub(crate) fn gathered<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    parts.fold(Writer::default(), Writer::bytes).0
}

/// Reads a `GATHERED` body.
pub(crate) fn parts(body: &[u8], size: u32) -> Option<Vec<Vec<u8>>> {
    let mut reader = Reader(body);
    let parts = (0..size).map(|_| reader.bytes().map(<[u8]>::to_vec)).collect();
    if reader.0.is_empty() { parts } else { None }
}

/// The body of a `FAILED` frame.
pub(crate) fn failure(rank: Rank, cause: &str) -> Vec<u8> {
    Writer::default().word(rank.into()).bytes(cause.as_bytes()).0
}

/// Reads a `FAILED` body.
pub(crate) fn failed(body: &[u8]) -> Option<(Rank, String)> {
    let mut reader = Reader(body);
    Some((reader.number()?, String::from_utf8_lossy(reader.bytes()?).into_owned()))
}

//! One step of a start-up: all ranks did their part, or all learn which rank did not, and why.
//!
//! A message is `FINE` and bytes, or `FAILED`, the rank at fault and a text. A rank blames itself, or another that it
//! saw dead. A dead rank is named before all others, because other failures may follow from it: its files went with it.

use super::{Bootstrap, MOST};
use crate::error::PosixError;
use unisono_kernel::Rank;

const FINE: u8 = 0;
const FAILED: u8 = 1;
/// Most bytes of a failure's text.
const TEXT: usize = 4096;

/// Tells all ranks the result of this rank's part; returns all ranks' bytes, by rank.
///
/// # Errors
/// On every rank if one failed: [`PosixError::Peer`] with a dead rank, if a rank reports one; otherwise the rank's own
/// error, or `Peer` with the lowest rank that failed.
pub(crate) fn agree(
    bootstrap: &mut dyn Bootstrap,
    mine: Result<Vec<u8>, PosixError>,
) -> Result<Vec<Vec<u8>>, PosixError> {
    let mine = mine.and_then(|bytes| {
        let len = bytes.len();
        if len < MOST { Ok(bytes) } else { Err(PosixError::bootstrap(format!("a message of {len} bytes is too long"))) }
    });
    let message = match &mine {
        Ok(bytes) => [&[FINE], bytes.as_slice()].concat(),
        Err(PosixError::Peer { rank, cause }) => encode_failure(*rank, cause),
        Err(error) => encode_failure(bootstrap.rank(), &error.to_string()),
    };
    let gathered = match (mine, bootstrap.allgather(&message)) {
        (_, Err(gone @ PosixError::Peer { .. })) => return Err(gone),
        (Err(error), Err(_)) | (Ok(_), Err(error)) => return Err(error),
        (mine, Ok(gathered)) => {
            if let Some(Failure { rank, cause }) = blame(&gathered) {
                return Err(PosixError::Peer { rank, cause });
            }
            mine?;
            gathered
        }
    };
    let (found, size) = (gathered.len(), bootstrap.size());
    if found != size as usize {
        return Err(PosixError::bootstrap(format!("the allgather gave {found} messages for {size} ranks")));
    }
    (0..).zip(gathered).map(|(rank, message)| decode(rank, message)).collect()
}

/// A rank at fault, and why.
struct Failure {
    rank: Rank,
    cause: String,
}

fn encode_failure(rank: Rank, text: &str) -> Vec<u8> {
    let text = text.as_bytes();
    [&[FAILED], &rank.to_le_bytes()[..], &text[..text.len().min(TEXT)]].concat()
}

/// Reads a failure; `None` if the message is not a failure.
fn decode_failure(message: &[u8]) -> Option<Failure> {
    let (rank, text) = message.strip_prefix(&[FAILED])?.split_first_chunk()?;
    Some(Failure { rank: Rank::from_le_bytes(*rank), cause: String::from_utf8_lossy(text).into_owned() })
}

/// The first failure in which a rank names another rank.
fn blame(gathered: &[Vec<u8>]) -> Option<Failure> {
    let failures = (0..).zip(gathered).filter_map(|(sender, message)| Some((sender, decode_failure(message)?)));
    failures.into_iter().find(|(sender, failure)| *sender != failure.rank).map(|(_, failure)| failure)
}

/// The bytes of the message of `rank`, or its failure.
fn decode(rank: Rank, mut message: Vec<u8>) -> Result<Vec<u8>, PosixError> {
    if message.first() == Some(&FINE) {
        message.remove(0);
        return Ok(message);
    }
    let unknown = || Failure { rank, cause: "sent a message that does not belong to a start-up".to_owned() };
    let Failure { rank, cause } = decode_failure(&message).unwrap_or_else(unknown);
    Err(PosixError::Peer { rank, cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns prepared messages of the other ranks.
    struct Scripted(Vec<Vec<u8>>);

    impl Bootstrap for Scripted {
        fn rank(&self) -> Rank {
            0
        }
        fn size(&self) -> u32 {
            self.0.len() as u32
        }
        fn allgather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, PosixError> {
            let mut all = self.0.clone();
            all[0] = mine.to_vec();
            Ok(all)
        }
    }

    #[test]
    fn one_failure_is_an_error_on_all_ranks() {
        let mut peers = Scripted(vec![vec![], b"\0yes".to_vec(), encode_failure(2, "no room")]);
        let error = agree(&mut peers, Ok(vec![])).unwrap_err();
        assert_eq!(error.to_string(), "rank 2: no room");
        let mut fine = Scripted(vec![vec![], b"\0yes".to_vec()]);
        assert_eq!(agree(&mut fine, Ok(b"I".to_vec())), Ok(vec![b"I".to_vec(), b"yes".to_vec()]));
        let mut blames = Scripted(vec![vec![], encode_failure(1, "no file"), encode_failure(0, "gone")]);
        let error = agree(&mut blames, Err(PosixError::bootstrap("mine"))).unwrap_err();
        assert_eq!(error.to_string(), "rank 0: gone");
        let mut garbage = Scripted(vec![vec![], vec![]]);
        assert!(matches!(agree(&mut garbage, Ok(vec![])), Err(PosixError::Peer { rank: 1, .. })));
    }

    /// A bootstrap with a dead rank.
    struct Broken;

    impl Bootstrap for Broken {
        fn rank(&self) -> Rank {
            0
        }
        fn size(&self) -> u32 {
            2
        }
        fn allgather(&mut self, _: &[u8]) -> Result<Vec<Vec<u8>>, PosixError> {
            Err(PosixError::Peer { rank: 1, cause: "gone".to_owned() })
        }
    }

    #[test]
    fn a_dead_rank_is_named_before_failures_that_follow_from_it() {
        for mine in [Ok(vec![]), Err(PosixError::bootstrap("its file is not there"))] {
            assert_eq!(agree(&mut Broken, mine).unwrap_err().to_string(), "rank 1: gone");
        }
    }

    #[test]
    fn ones_own_failure_keeps_its_kind() {
        let mine = PosixError::bootstrap("x");
        assert_eq!(agree(&mut super::super::Alone, Err(mine.clone())), Err(mine));
    }
}

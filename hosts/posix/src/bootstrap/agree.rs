//! One step of a start-up: everyone did its part, or everyone learns who did not and why.

use super::{Bootstrap, MOST};
use crate::error::PosixError;
use unisono_kernel::Rank;

const FINE: u8 = 0;
const FAILED: u8 = 1;
/// Most bytes of a failure's text.
const TEXT: usize = 4096;

/// Tells everyone what this rank's part came to; answers everyone's bytes, by rank.
///
/// # Errors
/// On every rank as soon as one failed: the rank's own error there, elsewhere [`PosixError::Peer`]
/// with the lowest rank that failed. A rank that is gone is named before all others.
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
        Err(error) => {
            let text = error.to_string();
            [&[FAILED], &text.as_bytes()[..text.len().min(TEXT)]].concat()
        }
    };
    let gathered = match (mine, bootstrap.allgather(&message)) {
        // A rank is gone: the cause, also of what failed here (its files went with it).
        (_, Err(gone @ PosixError::Peer { .. })) => return Err(gone),
        (mine, gathered) => mine.and(gathered)?,
    };
    let (found, size) = (gathered.len(), bootstrap.size());
    if found != size as usize {
        return Err(PosixError::bootstrap(format!("the allgather gave {found} messages for {size} ranks")));
    }
    (0..).zip(gathered).map(open).collect()
}

fn open((rank, mut message): (Rank, Vec<u8>)) -> Result<Vec<u8>, PosixError> {
    let cause = match message.first() {
        Some(&FINE) => {
            message.remove(0);
            return Ok(message);
        }
        Some(&FAILED) => String::from_utf8_lossy(&message[1..]).into_owned(),
        _ => "sent a message that is no part of a start-up".to_owned(),
    };
    Err(PosixError::Peer { rank, cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers prepared messages beside one's own.
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
    fn one_failure_is_everyones() {
        let mut peers = Scripted(vec![vec![], b"\0yes".to_vec(), b"\x01no room".to_vec()]);
        let error = agree(&mut peers, Ok(vec![])).unwrap_err();
        assert_eq!(error.to_string(), "rank 2: no room");
        let mut fine = Scripted(vec![vec![], b"\0yes".to_vec()]);
        assert_eq!(agree(&mut fine, Ok(b"I".to_vec())), Ok(vec![b"I".to_vec(), b"yes".to_vec()]));
        let mut garbage = Scripted(vec![vec![], vec![]]);
        assert!(matches!(agree(&mut garbage, Ok(vec![])), Err(PosixError::Peer { rank: 1, .. })));
    }

    /// A bootstrap one of whose ranks is gone.
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
    fn who_is_gone_is_named_before_what_follows_from_it() {
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

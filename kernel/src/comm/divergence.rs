//! Detects ranks that call different collectives: each rank tells the others its last collectives, and compares.

use super::heads::head_of;
use super::history::{Digest, KNOWN, TOLD, length};
use super::member::Member;
use crate::Rank;
use crate::error::{Argument, Bound, Refusal, WaitError};
use crate::region::{Counter, Region};

impl Member {
    /// Tells the other ranks this process's last collectives, and checks whether another process has called a different
    /// one in the same place: such a program would hang.
    ///
    /// # Errors
    /// Another process has.
    #[cold]
    pub(crate) fn compare<R: Region>(&self, region: &R) -> Result<(), WaitError> {
        self.tell(region);
        let mine = self.history().latest();
        for peer in self.peers() {
            let refusal = match self.both_know(region, peer).next() {
                Some((_, Some(refusal))) => Err(refusal),
                _ => match head_of(region, self, peer, self.operation()) {
                    Some(head) => {
                        agree(region, self, (peer, self.operation()), mine, None, head).and(match self.lineless() {
                            // With another length it takes an algorithm with lines.
                            Some(bytes) => Err(Refusal::new(Argument::Bytes, bytes, Bound::Equals(length(head)))),
                            None => Ok(()),
                        })
                    }
                    None => Ok(()),
                },
            };
            refusal.map_err(|refusal| WaitError::Diverged { peer, refusal })?;
        }
        Ok(())
    }

    /// `peer`'s line of `operation` names the same collective, but other ones before it. Returns the first difference
    /// that `peer`'s lines and its record still show.
    #[cold]
    pub(super) fn differ_before<R: Region>(&self, region: &R, peer: Rank, operation: u64) -> Refusal {
        self.tell(region);
        let by_lines = (operation.saturating_sub(KNOWN as u64)..operation).rev().find_map(|at| {
            let mine = self.history().known(at)?;
            let theirs = Digest::of(head_of(region, self, peer, at)?);
            if theirs.same_before(mine) { Self::differ(mine.kind(), theirs.kind()) } else { None }
        });
        let by_record =
            || self.both_know(region, peer).filter(|&(at, _)| at < operation).filter_map(|(_, differ)| differ).last();
        let (value, bound) = by_lines.or_else(by_record).map_or((0, Bound::Equals(0)), |how| (how.value, how.bound));
        Refusal::new(Argument::EarlierCollective, value, bound)
    }

    /// Writes the kinds of this process's last collectives. The operation's word is 0 while the word of kinds changes.
    // publishes: each word the stores before it
    pub(super) fn tell<R: Region>(&self, region: &R) {
        let [operation, kinds] = self.layout().calling(self.rank()).map(|id| region.counter(id));
        operation.store_release(0);
        kinds.store_release(self.history().kinds());
        operation.store_release(self.operation());
    }

    /// What `peer` has told: its operation, and the kinds of its last collectives. `None`: nothing yet, or it is
    /// writing just now.
    // pairs with: tell. A reader that sees kinds of a later `tell` also sees the 0 that was stored before them.
    pub(super) fn told<R: Region>(&self, region: &R, peer: Rank) -> Option<(u64, u64)> {
        let [operation, kinds] = self.layout().calling(peer).map(|id| region.counter(id));
        let before = operation.load_acquire();
        let kinds = kinds.load_acquire().unchecked();
        let after = operation.load_acquire().unchecked();
        (after != 0 && before.is(after)).then_some((after, kinds))
    }

    /// Has `peer` waited long in this process's operation or a later one?
    pub(crate) fn waits<R: Region>(&self, region: &R, peer: Rank) -> bool {
        self.told(region, peer).is_some_and(|(operation, _)| operation >= self.operation())
    }

    /// The operations that `peer` has told of and this process knows, the latest first, and whether their kinds differ.
    pub(super) fn both_know<R: Region>(
        &self,
        region: &R,
        peer: Rank,
    ) -> impl Iterator<Item = (u64, Option<Refusal>)> + use<R> {
        let (operation, mine) = (self.operation(), self.history().kinds());
        let (theirs, kinds) = self.told(region, peer).unwrap_or_default();
        let (behind, ahead) = (operation.saturating_sub(theirs), theirs.saturating_sub(operation));
        let both = TOLD.saturating_sub(behind.saturating_add(ahead));
        let kind = |kinds: u64, back: u64| kinds >> (4 * back) & 15;
        (0..both).map(move |back| {
            let kinds = (kind(mine, behind + back), kind(kinds, ahead + back));
            (operation.saturating_sub(behind + back), Self::differ(kinds.0, kinds.1))
        })
    }

    /// How the kinds of one operation differ; 0: unknown.
    pub(super) fn differ(mine: u64, theirs: u64) -> Option<Refusal> {
        (mine != theirs && mine != 0 && theirs != 0).then_some(Refusal::new(
            Argument::Collective,
            mine,
            Bound::Equals(theirs),
        ))
    }
}

/// Does the head of `peer`'s line in `operation` agree with this process's digest and length, as far as both know?
///
/// Errors: the collectives differ, now or before, or the lengths differ. Checked in this order: where the collectives
/// differ, lengths can't be compared.
#[cold]
pub(crate) fn agree<R: Region>(
    region: &R,
    me: &Member,
    (peer, operation): (Rank, u64),
    mine: Digest,
    bytes: Option<u64>,
    head: u64,
) -> Result<(), Refusal> {
    let theirs = Digest::of(head);
    if theirs.kind() != mine.kind() {
        return Err(Refusal::new(Argument::Collective, mine.kind(), Bound::Equals(theirs.kind())));
    }
    if !theirs.same_before(mine) {
        return Err(me.differ_before(region, peer, operation));
    }
    match bytes {
        Some(bytes) if bytes != length(head) => Err(Refusal::new(Argument::Bytes, bytes, Bound::Equals(length(head)))),
        _ => Ok(()),
    }
}

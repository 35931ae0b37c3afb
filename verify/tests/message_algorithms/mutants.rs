//! Mutants: a schedule without one piece of its work must have another result, or the piece is not needed.

use super::{Under, User, outcome};
use unisono_kernel::msg::Schedule;
use unisono_kernel::msg::schedule::{Area, Bytes, Message, Moment, Place, Work};
use unisono_kernel::op::Op;
use unisono_verify::network::Mode;

/// A schedule that leaves out one piece of work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Mutant<S> {
    plan: S,
    idle: Option<(u64, Moment, u32)>,
}

impl<S: Schedule> Schedule for Mutant<S> {
    fn rounds(&self) -> u64 {
        self.plan.rounds()
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        self.plan.send(round, index)
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        self.plan.receive(round, index)
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let work = self.plan.work(round, moment, index)?;
        let nothing = Work::Copy { from: Place::NOTHING, to: Place::NOTHING };
        Some(if self.idle == Some((round, moment, index)) { nothing } else { work })
    }

    fn bytes(&self) -> Bytes {
        self.plan.bytes()
    }

    fn op(&self) -> Option<Op> {
        self.plan.op()
    }
}

/// The pieces of work that change something: in place, a block may be unpacked to the place where it lies already.
fn pieces<S: Schedule>(plan: &S, before: &[u8], wanted: &[u8]) -> Vec<(u64, Moment, u32)> {
    let moments = [Moment::Before, Moment::Meanwhile, Moment::After];
    let rounds = (0..plan.rounds()).flat_map(|round| moments.map(|moment| (round, moment)));
    let all = rounds.flat_map(|(round, moment)| {
        let works = (0..).map_while(move |index| Some((index, plan.work(round, moment, index)?)));
        works.map(move |(index, work)| ((round, moment, index), work))
    });
    let does = |work: &Work| match *work {
        Work::Copy { to: Place { area: Area::Receive, at, len }, .. } => {
            let bytes = at as usize..(at + len) as usize;
            before[bytes.clone()] != wanted[bytes]
        }
        Work::Copy { to: place, .. } | Work::Fold { right: place, .. } => place.len > 0,
    };
    all.filter(|(_, work)| does(work)).map(|(at, _)| at).collect()
}

/// Copies into working memory that may be left out: BAGDS packs a block where it may lie from an earlier stage; a root
/// that scatters in place packs its own block beside those of others.
fn is_spare(name: &str, piece: (u64, Moment, u32)) -> bool {
    let packs = ["allgather Bagds", "scatter Binomial", "scatter levels"];
    piece.1 == Moment::Before && packs.iter().any(|prefix| name.starts_with(prefix))
}

/// Leaves out each piece of work in turn: the end must not be as `wanted`.
pub(crate) fn check<S: Schedule>(name: &str, plans: &[S], before: &[User], wanted: &[Vec<u8>]) {
    for (rank, plan) in plans.iter().enumerate() {
        for piece in pieces(plan, &before[rank].receive, &wanted[rank]) {
            let mutant = |(at, plan): (usize, &S)| Mutant { plan: plan.clone(), idle: (at == rank).then_some(piece) };
            let mutants: Vec<_> = plans.iter().enumerate().map(mutant).collect();
            let end = outcome(name, &mutants, before, Under::Network(Mode::Eager));
            let same = end.is_ok_and(|users| users.iter().map(|user| &user.receive).eq(wanted));
            assert!(!same || is_spare(name, piece), "{name}: rank {rank} does {piece:?} in vain");
        }
    }
}

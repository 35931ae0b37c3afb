//! The protocols that are modelled, and the orderings that each of them needs.

use super::mail::{LETTER, letters};
use super::region::Lending;
use super::seat::{Abandoned, Seat};
use crate::explore::{Collective, Exchange, Letter, Spread};
use crate::oracle::blocks::Direction;
use Collective::{Allgather, Alltoall, Gatherv, GroupedGather, Reduce, ReduceScatter, Scan, Scatter, Scatterv, Slices};
use unisono_kernel::algorithm::{AllreduceAlgorithm, BarrierAlgorithm, BcastAlgorithm, ScanAlgorithm};
use unisono_kernel::error::{Argument, Bound, Cause, Poison, Refusal};
use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::region::{Base, Cico, Mailboxes, Params};

/// A model.
#[derive(Debug)]
pub struct Protocol {
    /// Its name on the command line.
    pub name: &'static str,
    /// The segment's parameters.
    pub params: Params,
    /// At most this many preemptions, where all would take too long. (None so far: with a bound of
    /// 3 the mixes of three ranks complete no execution.)
    pub preemptions: Option<usize>,
    /// The body that each rank runs.
    pub body: fn(&mut Seat) -> Result<(), Abandoned>,
    /// The mutants that must fail, by name.
    pub needs: &'static [&'static str],
    /// Runs in the long tier only.
    pub long: bool,
}

const fn tiny(ranks: u32) -> Params {
    Params {
        ranks,
        page: 256,
        lines: 2,
        queue_slots: 2,
        queue_fragment: 64,
        cico: None,
        mailboxes: None,
        crowded: false,
    }
}

/// Slots in which two processes post two ticks ahead.
const fn ahead() -> Params {
    Params { queue_slots: 4, ..tiny(2) }
}

const fn one_slot(ranks: u32) -> Params {
    Params { queue_slots: 1, ..tiny(ranks) }
}

const fn with_cico(ranks: u32, slots: u32, sets: u32) -> Params {
    Params { cico: Some(Cico { slots, fragment: 8, sets }), ..tiny(ranks) }
}

/// Mailboxes of words: so many messages, in so many slots each.
const fn mailboxes(ranks: u32, messages: u32, slots: u32) -> Params {
    Params { mailboxes: Some(Mailboxes { messages, slots, fragment: 8 }), ..tiny(ranks) }
}

const fn model(
    name: &'static str,
    params: Params,
    body: fn(&mut Seat) -> Result<(), Abandoned>,
    needs: &'static [&'static str],
) -> Protocol {
    Protocol { name, params, preemptions: None, body, needs, long: false }
}

impl Protocol {
    /// Puts the model into the long tier.
    const fn long(self) -> Self {
        Self { long: true, ..self }
    }
}

const LEFT: &[&str] = &["line.load", "line.store", "left.load", "left.store"];
const LINE: &[&str] = &["line.load", "line.store"];
const REUSED_LINE: &[&str] = &["line.load", "line.store", "done.load", "done.store"];
const PARTIAL: &[&str] = &["partial.load", "partial.store"];
const READY: &[&str] = &["line.load", "line.store", "ready.load", "ready.store"];
const QUEUE: &[&str] = &["line.load", "line.store", "ready.load", "ready.store", "acked.load", "acked.store"];
const LENT: &[&str] = &["line.load", "line.store", "acked.load", "acked.store"];
const CICO: &[&str] = &["set-op.load", "set-op.store", "control.load", "control.store"];
const CICO_REUSED: &[&str] = &[
    "set-op.load",
    "set-op.store",
    "control.load",
    "control.store",
    "set-readers.load",
    "set-readers.rmw-relaxed",
    "set-readers.rmw-acquire",
];
const ROOTED: &[&str] =
    &["set-op.load", "set-op.store", "rootready.load", "rootready.store", "control.load", "control.store"];
const ROOTED_REUSED: &[&str] = &[
    "set-op.load",
    "set-op.store",
    "rootready.load",
    "rootready.store",
    "control.load",
    "control.store",
    "set-readers.load",
    "set-readers.rmw-relaxed",
    "set-readers.rmw-acquire",
];
const PAIRS: &[&str] = &["set-op.load", "set-op.store", "control-all.load", "control-all.store"];
const PAIRS_REUSED: &[&str] = &[
    "set-op.load",
    "set-op.store",
    "control-all.load",
    "control-all.store",
    "set-readers.load",
    "set-readers.rmw-relaxed",
    "set-readers.rmw-acquire",
];
const PAPERS: &[&str] = &[
    "set-op.load",
    "set-op.store",
    "rootready.load",
    "rootready.store",
    "control.load",
    "control.store",
    "control-all.load",
    "control-all.store",
    "set-readers.load",
    "set-readers.rmw-relaxed",
    "set-readers.rmw-acquire",
];
const CENTRAL: &[&str] =
    &["central.load", "central.rmw-relaxed", "central.rmw-acquire", "release.load", "release.store"];
const COMBINING: &[&str] = &["arrive.load", "arrive.store", "release.load", "release.store"];
const ROUNDS: &[&str] = &["round.load", "round.store"];
const MIX: &[&str] = &["line.load", "line.store", "done.load", "done.store", "round.load", "round.store"];

const MAIL: &[&str] = &["mail-sequence.load", "mail-sequence.store"];
const MAIL_REUSED: &[&str] = &["mail-sequence.load", "mail-sequence.store", "mail-acked.load", "mail-acked.store"];

/// All models.
pub static PROTOCOLS: &[Protocol] = &[
    // Rank 0's line 1 carries operations 1, 3 and 5, with rank 1's lines between: those prove that
    // rank 1 has read, so `done` is needed in the next model only.
    model("posted-2-alternating", tiny(2), |s| posted(s, &[0, 1, 0, 1, 0]), LINE),
    model("posted-2-same-root", tiny(2), |s| posted(s, &[0, 0, 0, 0]), REUSED_LINE),
    model("posted-3-changing", tiny(3), |s| posted(s, &[0, 1]), LINE),
    model("posted-3-reuse", tiny(3), |s| posted(s, &[0, 1, 0]), REUSED_LINE),
    model("allreduce-2", tiny(2), |s| allreduces(s, 4), LINE),
    model("allreduce-3", tiny(3), |s| allreduces(s, 1), LINE),
    model("allreduce-3-twice", tiny(3), |s| allreduces(s, 2), LINE).long(),
    // The third allreduce uses the first one's lines again.
    model("doubling-2", tiny(2), |s| doublings(s, 3), PARTIAL),
    model("doubling-3", tiny(3), |s| doublings(s, 1), PARTIAL),
    model("doubling-3-thrice", tiny(3), |s| doublings(s, 3), PARTIAL).long(),
    model("long-doubling-2", tiny(2), |s| long_doublings(s, 3), PARTIAL),
    model("long-doubling-3", tiny(3), |s| long_doublings(s, 1), PARTIAL),
    model("scan-2", tiny(2), |s| scans(s, ScanAlgorithm::Doubling, &[true, false, true]), PARTIAL),
    model("scan-3", tiny(3), |s| scans(s, ScanAlgorithm::Doubling, &[true]), PARTIAL).long(),
    model("groups-bcast-4", tiny(4), |s| s.bcast(0, 8, BcastAlgorithm::Groups), LINE),
    model("groups-scan-3", tiny(3), |s| scans(s, ScanAlgorithm::Groups, &[true]), READY),
    model("groups-gather-4", tiny(4), |s| exchanges(s, GroupedGather, &[0], 1), READY),
    model("tree-2", tiny(2), |s| trees(s, &[0, 0, 0]), REUSED_LINE),
    model("tree-3", tiny(3), |s| trees(s, &[2]), LINE),
    model("queue-2", tiny(2), |s| queue(s, &[0, 1], 150), QUEUE),
    model("queue-2-one-slot", Params { queue_slots: 1, ..tiny(2) }, |s| queue(s, &[0, 1], 100), QUEUE),
    model("queue-3-one-slot", Params { queue_slots: 1, ..tiny(3) }, |s| queue(s, &[0], 100), QUEUE),
    model("cico-2-sets", with_cico(2, 2, 2), |s| cico(s, &[0, 1], 20, Tree::Chain), CICO_REUSED),
    model("cico-2-one-set", with_cico(2, 2, 1), |s| cico(s, &[0, 1], 20, Tree::Chain), CICO_REUSED),
    model("cico-3-chain", with_cico(3, 1, 1), |s| cico(s, &[0], 8, Tree::Chain), CICO),
    model("cico-3-changing", with_cico(3, 1, 1), |s| cico(s, &[0, 1], 8, Tree::Chain), CICO),
    model("cico-3-reuse", with_cico(3, 1, 1), |s| cico(s, &[0], 16, Tree::Chain), CICO_REUSED),
    model("cico-3-flat", with_cico(3, 1, 1), |s| cico(s, &[0], 16, Tree::Flat), CICO_REUSED),
    model("scatterv-2", with_cico(2, 1, 1), |s| spread(s, Direction::Scatter, &[0, 1], 4), ROOTED),
    model("scatterv-2-reuse", with_cico(2, 1, 1), |s| spread(s, Direction::Scatter, &[0], 12), ROOTED_REUSED),
    model("scatterv-3", with_cico(3, 1, 1), |s| spread(s, Direction::Scatter, &[0], 4), ROOTED),
    model("gatherv-2", with_cico(2, 1, 1), |s| spread(s, Direction::Gather, &[0, 1], 4), ROOTED),
    model("gatherv-2-reuse", with_cico(2, 1, 1), |s| spread(s, Direction::Gather, &[0], 12), ROOTED),
    model("gatherv-3", with_cico(3, 1, 1), |s| spread(s, Direction::Gather, &[0], 4), ROOTED),
    model("allgatherv-2", with_cico(2, 1, 1), |s| spread(s, Direction::Allgather, &[0, 0], 4), PAIRS_REUSED),
    model("allgatherv-2-reuse", with_cico(2, 1, 1), |s| spread(s, Direction::Allgather, &[0], 12), PAIRS),
    model("allgatherv-3", with_cico(3, 1, 1), |s| spread(s, Direction::Allgather, &[0], 4), PAIRS),
    model("papers-2", with_cico(2, 1, 1), papers, PAPERS),
    model("exchange-gatherv-2", tiny(2), |s| exchanges(s, Gatherv, &[0], 3), QUEUE),
    model(
        "exchange-gatherv-2-twice",
        Params { queue_slots: 1, ..tiny(2) },
        |s| exchanges(s, Gatherv, &[0, 0], 1),
        QUEUE,
    ),
    model("exchange-gatherv-3", Params { queue_slots: 1, ..tiny(3) }, |s| exchanges(s, Gatherv, &[0], 1), QUEUE),
    model("exchange-gatherv-2-lines", tiny(2), |s| exchanges(s, Gatherv, &[0, 0, 0], 0), REUSED_LINE),
    model(
        "exchange-scatterv-2",
        Params { queue_fragment: 128, ..one_slot(2) },
        |s| exchanges(s, Scatterv, &[0, 0], 2),
        QUEUE,
    ),
    model(
        "exchange-scatterv-3",
        Params { queue_slots: 1, queue_fragment: 128, ..tiny(3) },
        |s| exchanges(s, Scatterv, &[0], 3),
        QUEUE,
    ),
    model(
        "exchange-scatterv-2-roots",
        Params { queue_fragment: 128, ..one_slot(2) },
        |s| exchanges(s, Scatterv, &[0, 1], 2),
        READY,
    ),
    model("exchange-scatterv-2-lines", tiny(2), |s| exchanges(s, Scatterv, &[0, 0, 0], 0), REUSED_LINE),
    model("exchange-scatter-3-lines", tiny(3), |s| exchanges(s, Scatter, &[0, 0, 0], 0), REUSED_LINE),
    model("exchange-reduce-3", Params { queue_slots: 1, ..tiny(3) }, |s| exchanges(s, Reduce, &[0], 1), QUEUE),
    model("exchange-scan-3", tiny(3), |s| exchanges(s, Scan, &[0], 1), READY),
    model("exchange-scan-3-one", Params { queue_slots: 1, ..tiny(3) }, |s| exchanges(s, Scan, &[0], 1), QUEUE),
    model(
        "exchange-reduce-scatter-2",
        Params { queue_slots: 1, ..tiny(2) },
        |s| exchanges(s, ReduceScatter, &[0], 2),
        QUEUE,
    ),
    // A process that takes in every step and then posts tells with `ready` what it has taken: with two slots and two
    // processes `acked` adds nothing.
    model("exchange-allgather-2-lines", tiny(2), |s| exchanges(s, Allgather, &[0, 0, 0], 0), LINE),
    model("exchange-allgather-3-lines", tiny(3), |s| exchanges(s, Allgather, &[0], 0), LINE),
    model("exchange-allgather-2", tiny(2), |s| exchanges(s, Allgather, &[0], 2), READY),
    model(
        "exchange-allgather-2-one",
        Params { queue_slots: 1, ..tiny(2) },
        |s| exchanges(s, Allgather, &[0], 1),
        QUEUE,
    ),
    model("exchange-allgather-2-twice", tiny(2), |s| exchanges(s, Allgather, &[0, 0], 1), READY).long(),
    model("exchange-allgather-3", tiny(3), |s| exchanges(s, Allgather, &[0], 1), READY).long(),
    model("exchange-alltoall-2", tiny(2), |s| exchanges(s, Alltoall, &[0], 3), READY),
    model("exchange-alltoall-2-one", Params { queue_slots: 1, ..tiny(2) }, |s| exchanges(s, Alltoall, &[0], 3), QUEUE),
    model("exchange-slices-2", tiny(2), |s| exchanges(s, Slices, &[0], 1), READY),
    model("exchange-slices-2-one", Params { queue_slots: 1, ..tiny(2) }, |s| exchanges(s, Slices, &[0], 1), QUEUE),
    model("exchange-slices-2-pairs", tiny(2), |s| exchanges(s, Slices, &[0], 2), READY).long(),
    // No allreduce by groups: its four ranks have more than 20 million states in one slot. The explorer has its plan, and the
    // engine's orderings are those of slices.
    model("exchange-mix-2", tiny(2), exchange_mix, QUEUE).long(),
    model("queue-2-laps", tiny(2), |s| laps(s, |s| queue(s, &[0, 0, 1], 100)), QUEUE),
    model("exchange-mix-2-laps", tiny(2), |s| laps(s, exchange_mix), QUEUE),
    // Two ticks are posted before the first one is taken.
    model("exchange-gatherv-2-ahead", ahead(), |s| exchanges(s, Gatherv, &[0], 5), QUEUE),
    model("exchange-allgather-2-ahead", ahead(), |s| exchanges(s, Allgather, &[0], 2), READY),
    model("exchange-slices-2-ahead", ahead(), |s| exchanges(s, Slices, &[0], 1), READY),
    // In a broadcast and an alltoall the answer comes after the last read, and orders it already.
    model("loan-bcast-2", tiny(2), |s| lent(s, |_| ALL, |s| queue(s, &[0, 0], 150)), LINE),
    model("loan-bcast-3", tiny(3), |s| lent(s, |_| ALL, |s| queue(s, &[0], 150)), LINE),
    model("loan-bcast-2-refused", one_slot(2), |s| lent(s, |_| LENDS, |s| queue(s, &[0, 0], 100)), QUEUE),
    model("loan-bcast-3-mixed", one_slot(3), |s| lent(s, one_reads, |s| queue(s, &[0], 100)), QUEUE),
    model("loan-gatherv-2", tiny(2), |s| lent(s, |_| ALL, |s| exchanges(s, Gatherv, &[0, 0], 2)), LENT),
    model("loan-gatherv-3-mixed", one_slot(3), |s| lent(s, one_lends, |s| exchanges(s, Gatherv, &[0], 1)), QUEUE),
    model("loan-reduce-2", tiny(2), |s| lent(s, |_| ALL, |s| exchanges(s, Reduce, &[0, 0], 1)), LENT),
    model("loan-allgather-2", tiny(2), |s| lent(s, |_| ALL, |s| exchanges(s, Allgather, &[0], 1)), LENT),
    model("loan-allgather-2-mixed", one_slot(2), |s| lent(s, one_reads, |s| exchanges(s, Allgather, &[0], 1)), QUEUE),
    model("loan-alltoall-2", tiny(2), |s| lent(s, |_| ALL, |s| exchanges(s, Alltoall, &[0], 3)), LINE),
    model("loan-alltoall-2-mixed", one_slot(2), |s| lent(s, one_reads, |s| exchanges(s, Alltoall, &[0], 3)), QUEUE),
    model("loan-scatter-2-mixed", one_slot(2), |s| lent(s, one_lends, |s| exchanges(s, Scatter, &[0, 1], 2)), QUEUE),
    model("loan-slices-2", tiny(2), |s| lent(s, |_| ALL, |s| exchanges(s, Slices, &[0], 1)), READY),
    model("loan-slices-2-mixed", one_slot(2), |s| lent(s, one_reads, |s| exchanges(s, Slices, &[0], 1)), QUEUE),
    model("central-2", tiny(2), |s| barriers(s, BarrierAlgorithm::Central), CENTRAL),
    model("central-3", tiny(3), |s| barriers(s, BarrierAlgorithm::Central), CENTRAL),
    model("combining-2", tiny(2), |s| barriers(s, BarrierAlgorithm::Combining(1)), COMBINING),
    model("combining-3-chain", tiny(3), |s| barriers(s, BarrierAlgorithm::Combining(1)), COMBINING),
    model("combining-3", tiny(3), |s| barriers(s, BarrierAlgorithm::Combining(2)), COMBINING),
    model("dissemination-2", tiny(2), |s| barriers(s, BarrierAlgorithm::Dissemination), ROUNDS),
    model("dissemination-3", tiny(3), |s| barriers(s, BarrierAlgorithm::Dissemination), ROUNDS),
    model("doubling-barrier-2", tiny(2), |s| barriers(s, BarrierAlgorithm::Doubling), ROUNDS),
    model("doubling-barrier-3", tiny(3), |s| barriers(s, BarrierAlgorithm::Doubling), ROUNDS).long(),
    model("mix-2", tiny(2), mix, MIX),
    model("mix-3-lines", tiny(3), mix_lines, REUSED_LINE).long(),
    model("mix-3-barrier", tiny(3), mix_barrier, &["line.load", "line.store", "round.load", "round.store"]).long(),
    model("near-2-posted", tiny(2), |s| near(s, |s| posted(s, &[0, 0, 0, 0])), REUSED_LINE),
    model("near-2-queue", one_slot(2), |s| near(s, |s| queue(s, &[0, 1], 100)), QUEUE),
    model("near-2-gatherv", tiny(2), |s| near(s, |s| exchanges(s, Gatherv, &[0], 3)), QUEUE),
    model("near-2-cico", with_cico(2, 2, 2), |s| near(s, |s| cico(s, &[0, 1], 20, Tree::Chain)), CICO_REUSED),
    model("near-2-dissemination", tiny(2), |s| near(s, |s| barriers(s, BarrierAlgorithm::Dissemination)), ROUNDS),
    model("lease-2", one_slot(2), |s| terms(s, BcastAlgorithm::Queue, None), LEFT),
    model("lease-2-posted", tiny(2), |s| terms(s, BcastAlgorithm::Posted, None), LEFT),
    model("lease-2-other-ranks", one_slot(2), other_ranks, LINE),
    model("lease-3-posted", tiny(3), |s| terms(s, BcastAlgorithm::Posted, None), LEFT),
    model("mail-2-fragments", mailboxes(2, 1, 1), |s| letters(s, &[LETTER], false), MAIL_REUSED),
    model("mail-2-two-slots", mailboxes(2, 1, 2), |s| letters(s, &[Letter { len: 20, ..LETTER }], false), MAIL_REUSED),
    model("mail-2-messages", mailboxes(2, 1, 1), |s| letters(s, &[SHORT, SHORT], false), MAIL_REUSED),
    model("mail-2-three-messages", mailboxes(2, 2, 1), |s| letters(s, &[SHORT; 3], false), MAIL_REUSED),
    model("mail-2-tags", mailboxes(2, 2, 1), |s| letters(s, &[SHORT, Letter { tag: 8, ..SHORT }], true), MAIL),
    model(
        "mail-2-crossing",
        mailboxes(2, 1, 1),
        |s| letters(s, &[SHORT, Letter { from: 1, to: 0, ..SHORT }], false),
        MAIL,
    ),
    model(
        "mail-3",
        mailboxes(3, 1, 1),
        |s| letters(s, &[Letter { from: 1, to: 0, ..SHORT }, Letter { from: 2, to: 0, ..SHORT }], false),
        MAIL,
    ),
    model("announcement-2", tiny(2), |s| announcements(s, 1), &["announcement.load", "announcement.store"]),
    model("announcement-2-again", tiny(2), |s| announcements(s, 2), &["announcement.load", "announcement.store"]),
    model("poison-2", tiny(2), poison, &["state.rmw-relaxed", "state.rmw-acquire"]),
    model("poison-3", tiny(3), poison, &["state.load", "state.rmw-relaxed", "state.rmw-acquire"]),
];

/// Protocols with a mistake, each of which must fail.
pub static FLAWED: &[Protocol] = &[
    model("lease-2-reused-too-early", one_slot(2), |s| terms(s, BcastAlgorithm::Queue, Some(Flaw::Early)), &[]),
    model("lease-2-posted-reused-too-early", tiny(2), |s| terms(s, BcastAlgorithm::Posted, Some(Flaw::Early)), &[]),
    model("lease-2-old-base", one_slot(2), |s| terms(s, BcastAlgorithm::Queue, Some(Flaw::OldBase)), &[]),
    model("lease-3-old-base", tiny(3), |s| terms(s, BcastAlgorithm::Posted, Some(Flaw::OldBase)), &[]),
];

/// Mutants that no protocol catches, because another pair orders the word already: the kernel's
/// orderings are stronger there than they must be. `(protocol, mutant, why)`.
pub static SPARE: &[(&str, &str, &str)] = &[
    ("central-3", "central.rmw-release", "rank 0's load acquires all arrivals, through the chain of additions"),
    ("cico-3-flat", "set-readers.rmw-release", "the root's load acquires all subtractions, likewise"),
    ("cico-2-one-set", "set-readers.store", "set-op publishes it"),
    ("cico-2-one-set", "set-bytes.store", "set-op publishes it"),
    ("cico-2-one-set", "set-bytes.load", "set-op was acquired before"),
    ("scatterv-3", "typesize.store", "rootready publishes it"),
    ("scatterv-3", "typesize.load", "rootready was acquired before"),
    ("gatherv-3", "count.store", "rootready publishes it"),
    ("allgatherv-3", "count.load", "set-op was acquired before"),
    ("loan-bcast-3-mixed", "answer.store", "the answer is all that it publishes"),
    ("loan-bcast-3-mixed", "answer.load", "the answer is all that it publishes"),
    ("poison-3", "record.store", "the claim publishes it"),
    ("poison-3", "record.load", "the state was acquired before"),
    ("poison-3", "state.rmw-release", "a rank that loses the claim loads the state again"),
];

/// Counts that pass 2¹⁶, 2²⁴ and 2³² in the model's second operation, set or step.
const NEAR: Base = Base { operation: (1 << 24) - 2, clock: (1 << 32) - 1, sets: (1 << 16) - 2, centrals: 0 };

/// The body on a communicator whose counts begin at these values.
fn near(seat: &mut Seat, body: fn(&mut Seat) -> Result<(), Abandoned>) -> Result<(), Abandoned> {
    seat.resume(seat.rank(), NEAR);
    body(seat)
}

fn posted(seat: &mut Seat, roots: &[u32]) -> Result<(), Abandoned> {
    roots.iter().try_for_each(|&root| seat.bcast(root, 8, BcastAlgorithm::Posted))
}

fn allreduces(seat: &mut Seat, times: u32) -> Result<(), Abandoned> {
    (0..times).try_for_each(|_| seat.allreduce(AllreduceAlgorithm::Posted))
}

fn trees(seat: &mut Seat, roots: &[u32]) -> Result<(), Abandoned> {
    roots.iter().try_for_each(|&root| seat.reduce(root))
}

fn doublings(seat: &mut Seat, times: u32) -> Result<(), Abandoned> {
    (0..times).try_for_each(|_| seat.allreduce(AllreduceAlgorithm::Doubling))
}

/// Scans, and exscans where it is not inclusive, one after the other.
fn scans(seat: &mut Seat, algorithm: ScanAlgorithm, inclusive: &[bool]) -> Result<(), Abandoned> {
    inclusive.iter().try_for_each(|&inclusive| seat.scan(inclusive, algorithm))
}

/// Of operands of seven words, one more than a short one has.
fn long_doublings(seat: &mut Seat, times: u32) -> Result<(), Abandoned> {
    (0..times).try_for_each(|_| seat.allreduce_of::<7>(AllreduceAlgorithm::Doubling))
}

fn queue(seat: &mut Seat, roots: &[u32], bytes: usize) -> Result<(), Abandoned> {
    roots.iter().try_for_each(|&root| seat.bcast(root, bytes, BcastAlgorithm::Queue))
}

fn cico(seat: &mut Seat, roots: &[u32], bytes: usize, tree: Tree) -> Result<(), Abandoned> {
    roots.iter().try_for_each(|&root| seat.bcast(root, bytes, BcastAlgorithm::Cico(tree)))
}

fn spread(seat: &mut Seat, direction: Direction, roots: &[u32], bytes: usize) -> Result<(), Abandoned> {
    roots.iter().try_for_each(|&root| seat.spread(Spread { direction, root, bytes }))
}

fn exchanges(seat: &mut Seat, collective: Collective, roots: &[u32], fragments: usize) -> Result<(), Abandoned> {
    roots.iter().try_for_each(|&root| seat.exchange(Exchange { collective, root, fragments }))
}

/// A rank lends, and can read.
const ALL: Lending = Lending { lends: true, reads: true };
/// A rank lends, and can't read.
const LENDS: Lending = Lending { lends: true, reads: false };

/// All lend, but rank 1 can't read.
const fn one_reads(rank: u32) -> Lending {
    Lending { lends: true, reads: rank != 1 }
}

/// All can read, but rank 1 does not lend.
const fn one_lends(rank: u32) -> Lending {
    Lending { lends: rank != 1, reads: true }
}

/// The body on a communicator whose ranks lend each other memory, and write that memory when their operations have ended.
fn lent(
    seat: &mut Seat,
    lending: fn(u32) -> Lending,
    body: fn(&mut Seat) -> Result<(), Abandoned>,
) -> Result<(), Abandoned> {
    seat.set_lending(lending(seat.rank()));
    body(seat)?;
    seat.take_back();
    Ok(())
}

/// The body on queues whose laps have one slot and two in turn.
fn laps(seat: &mut Seat, body: fn(&mut Seat) -> Result<(), Abandoned>) -> Result<(), Abandoned> {
    seat.change_laps();
    body(seat)
}

/// Different operations on the same queues: several writers at once, then one, then the broadcast's.
fn exchange_mix(seat: &mut Seat) -> Result<(), Abandoned> {
    exchanges(seat, Alltoall, &[0], 1)?;
    queue(seat, &[1], 64)?;
    exchanges(seat, Gatherv, &[0], 2)
}

/// Both papers on one set; rank 0 opens it last, over its queue that rank 1 has read.
fn papers(seat: &mut Seat) -> Result<(), Abandoned> {
    cico(seat, &[0], 8, Tree::Flat)?;
    spread(seat, Direction::Scatter, &[0], 4)?;
    spread(seat, Direction::Gather, &[1], 4)?;
    spread(seat, Direction::Allgather, &[0], 4)
}

/// Notes are written before a barrier and read after it, and overwritten after a second one (R13).
fn barriers(seat: &mut Seat, algorithm: BarrierAlgorithm) -> Result<(), Abandoned> {
    seat.write_note(1);
    seat.barrier(algorithm)?;
    seat.check_notes(1);
    seat.barrier(algorithm)?;
    seat.write_note(2);
    Ok(())
}

/// The operations that use posted lines, one after the other: the last one reuses the first one's line, and
/// only `done` tells that it was read.
fn mix(seat: &mut Seat) -> Result<(), Abandoned> {
    seat.write_note(1);
    seat.barrier(BarrierAlgorithm::Dissemination)?;
    seat.check_notes(1);
    seat.bcast(0, 8, BcastAlgorithm::Posted)?;
    mix_lines(seat)
}

fn mix_lines(seat: &mut Seat) -> Result<(), Abandoned> {
    seat.allreduce(AllreduceAlgorithm::Posted)?;
    seat.bcast(0, 8, BcastAlgorithm::Posted)?;
    seat.bcast(0, 8, BcastAlgorithm::Posted)
}

/// A message of one fragment.
const SHORT: Letter = Letter { len: 8, ..LETTER };

/// A barrier between an allreduce and a broadcast that reuses a line: it proves that all have read.
fn mix_barrier(seat: &mut Seat) -> Result<(), Abandoned> {
    seat.bcast(1, 8, BcastAlgorithm::Posted)?;
    seat.allreduce(AllreduceAlgorithm::Posted)?;
    seat.barrier(BarrierAlgorithm::Dissemination)?;
    seat.bcast(0, 8, BcastAlgorithm::Posted)
}

/// A mistake in the reuse of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// The owner does not wait until all have left.
    Early,
    /// The second communicator begins with counts of zero, as on fresh memory.
    OldBase,
}

/// A communicator ends, and another one begins on its memory as soon as its owner, rank 0, knows that all have left:
/// rank 1 may not have read the announcement yet.
fn terms(seat: &mut Seat, algorithm: BcastAlgorithm, flaw: Option<Flaw>) -> Result<(), Abandoned> {
    term(seat, algorithm)?;
    let end = seat.leave(1);
    let free = seat.rank() != 0 || flaw == Some(Flaw::Early) || seat.all_left(1, end);
    follow(seat, free)?;
    seat.resume(seat.rank(), if flaw == Some(Flaw::OldBase) { Base::default() } else { end });
    term(seat, algorithm)
}

/// Broadcasts that use all lines and slots of the memory.
fn term(seat: &mut Seat, algorithm: BcastAlgorithm) -> Result<(), Abandoned> {
    (0..if algorithm == BcastAlgorithm::Posted { 2 } else { 1 }).try_for_each(|_| seat.bcast(0, 40, algorithm))
}

/// The owner tells that the memory is free, if it is; the others wait for that.
fn follow(seat: &Seat, free: bool) -> Result<(), Abandoned> {
    match seat.rank() {
        0 if free => seat.announce(2),
        0 => return Err(Abandoned),
        _ if seat.is_announced(2) => {}
        _ => return Err(Abandoned),
    }
    Ok(())
}

/// As above, but the two processes have exchanged ranks in the second communicator: words have other writers.
fn other_ranks(seat: &mut Seat) -> Result<(), Abandoned> {
    term(seat, BcastAlgorithm::Queue)?;
    let end = seat.leave(1);
    let free = seat.rank() != 0 || seat.all_left(1, end);
    follow(seat, free)?;
    seat.resume(1 - seat.rank(), end);
    term(seat, BcastAlgorithm::Queue)?;
    seat.bcast(1, 40, BcastAlgorithm::Posted)
}

/// Rank 0 writes announcements over one another; rank 1 looks at any moment, finds one of them whole, and sees what
/// happened before it.
fn announcements(seat: &Seat, times: u64) -> Result<(), Abandoned> {
    if seat.rank() == 0 {
        seat.write_note(1);
        (1..=times).for_each(|number| seat.post_announcement(number));
        return Ok(());
    }
    seat.look_at_announcement()?;
    assert_eq!(seat.note(0), 1, "model assertion: what was done before an announcement is seen");
    Ok(())
}

/// Ranks 0 and 1 poison the lease with refusals of their own; all ranks see one of them whole, and the same one.
fn poison(seat: &mut Seat) -> Result<(), Abandoned> {
    let of = |rank: u32| {
        let refusal = Refusal::new(Argument::Root, 70 + u64::from(rank), Bound::Below(u64::from(rank) + 2));
        Poison { rank, operation: 5 + u64::from(rank), cause: Cause::Refused(refusal) }
    };
    let whole = |seen: Poison| assert_eq!(seen, of(seen.rank), "model assertion: a poison is seen whole");
    let counts = if seat.rank() < 2 { seat.poison(of(seat.rank())) } else { seat.look().ok_or(Abandoned)? };
    whole(counts);
    let again = seat.look();
    assert_eq!(again, Some(counts), "model assertion: the first poison stays");
    Ok(())
}

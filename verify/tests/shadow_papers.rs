//! The papers' machines on a shadow: they keep its rules in any interleaving, and mutants of them break one at once.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::op::Op;
use unisono_kernel::region::{
    Base, Cico, Counter, CounterId, Extent, FlagId, Layout, MailId, Mailword, Region, Untrusted,
};
use unisono_local::Segment;
use unisono_programs::judge::judge;
use unisono_programs::{Program, threads};
use unisono_verify::shadow::{Shadow, Shadowed};

/// The fault of all ranks' machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// They leave a set when they take their first word there, and copy its fragment out afterwards.
    LeavesFirst,
    /// They set a word before they copy its fragment in.
    PutsFirst,
    /// They do not wait for the words that publish fragments.
    ReadsFirst,
    /// They do not wait for the words that publish counts.
    CountsFirst,
    /// They open a set without a look at its readers.
    OpensFirst,
}

/// A rank's view of a segment, which puts the fault into its machines' accesses.
struct Faulty {
    view: Rc<View>,
    mails: Box<[OnceCell<Word<MailId>>]>,
    counters: Box<[OnceCell<Word<CounterId>>]>,
}

struct View {
    region: Shadowed<Segment>,
    layout: Layout,
    fault: Fault,
    /// By set: was it left too early?
    left: Vec<Cell<bool>>,
    /// The copy that is made late, and whether its word has been set.
    late: RefCell<Option<(Extent, Vec<u8>)>>,
    put: Cell<bool>,
}

struct Word<I> {
    view: Rc<View>,
    id: I,
}

impl View {
    fn queues(&self) -> Cico {
        self.layout.params().cico.unwrap()
    }

    /// The set of a word that publishes a fragment.
    fn set_of(&self, word: MailId) -> Option<u32> {
        let (Cico { slots, sets, .. }, ranks) = (self.queues(), self.layout.ranks());
        let tells = |slot| {
            let of = |rank| {
                let pairs = (0..ranks).map(move |other| self.layout.control_all(rank, slot, other));
                pairs.chain([self.layout.control(rank, slot)]).any(|control| control == word)
            };
            (0..ranks).any(of)
        };
        (0..slots).find(|&slot| tells(slot)).map(|slot| slot / (slots / sets))
    }

    /// Makes the late copy.
    fn catch_up(&self) {
        if let Some((at, mut bytes)) = self.late.take() {
            // SAFETY: the bytes are ours; what is wrong about the time is what the shadow must find.
            unsafe { self.region.write(at, Buf::of_mut(&mut bytes)) }
        }
        self.put.set(false);
    }

    /// Called before each access.
    fn accessed(&self) -> &Shadowed<Segment> {
        if self.put.get() {
            self.catch_up();
        }
        &self.region
    }
}

impl Mailword for Word<MailId> {
    fn peek_acquire(&self) -> Untrusted<u64> {
        let View { region, fault, .. } = &*self.view;
        let found = region.mail(self.id).peek_acquire();
        match (fault, self.view.set_of(self.id)) {
            (Fault::ReadsFirst, Some(_)) if found.is(0) => Untrusted::new(self.view.queues().fragment),
            (Fault::CountsFirst, None) => Untrusted::new(1),
            _ => found,
        }
    }
    fn put_release(&self, value: u64) {
        self.view.region.mail(self.id).put_release(value);
        self.view.put.set(true);
    }
    fn clear(&self) {
        let View { region, layout, fault, left, .. } = &*self.view;
        if !region.mail(self.id).peek_acquire().is(0) {
            region.mail(self.id).clear();
        }
        if let (Fault::LeavesFirst, Some(set)) = (fault, self.view.set_of(self.id))
            && !left[set as usize].replace(true)
        {
            region.counter(layout.set_readers(set)).fetch_sub(1);
        }
    }
}

impl Word<CounterId> {
    fn word(&self) -> &<Shadowed<Segment> as Region>::Counter {
        self.view.region.counter(self.id)
    }

    /// The set whose readers this word counts.
    fn set(&self) -> Option<u32> {
        (0..self.view.queues().sets).find(|&set| self.view.layout.set_readers(set) == self.id)
    }
}

impl Counter for Word<CounterId> {
    fn load_acquire(&self) -> Untrusted<u64> {
        let found = self.word().load_acquire();
        if self.view.fault == Fault::OpensFirst && self.set().is_some() { Untrusted::new(0) } else { found }
    }
    fn store_release(&self, value: u64) {
        self.word().store_release(value);
    }
    fn fetch_add(&self, n: u64) -> Untrusted<u64> {
        self.word().fetch_add(n)
    }
    fn fetch_sub(&self, n: u64) -> Untrusted<u64> {
        let left = self.set().is_some_and(|set| self.view.left[set as usize].take());
        if left { Untrusted::new(n) } else { self.word().fetch_sub(n) }
    }
    fn claim(&self, from: u64, to: u64) -> Untrusted<u64> {
        self.word().claim(from, to)
    }
}

impl Faulty {
    fn new(region: Shadowed<Segment>, layout: Layout, fault: Fault) -> Self {
        let sets = layout.params().cico.unwrap().sets;
        let left = (0..sets).map(|_| Cell::new(false)).collect();
        let view = Rc::new(View { region, layout, fault, left, late: RefCell::default(), put: Cell::default() });
        let words = layout.bytes() / 8;
        Self {
            view,
            mails: (0..words).map(|_| OnceCell::new()).collect(),
            counters: (0..words).map(|_| OnceCell::new()).collect(),
        }
    }
}

// SAFETY: forwards to a region that keeps the contract; what comes too early or too late is no worse than a peer that
// lies.
unsafe impl Region for Faulty {
    type Flag = <Shadowed<Segment> as Region>::Flag;
    type Mailword = Word<MailId>;
    type Counter = Word<CounterId>;

    fn flag(&self, id: FlagId) -> &Self::Flag {
        self.view.accessed().flag(id)
    }
    fn mail(&self, id: MailId) -> &Word<MailId> {
        self.mails[id.offset() as usize / 8].get_or_init(|| Word { view: self.view.clone(), id })
    }
    fn counter(&self, id: CounterId) -> &Word<CounterId> {
        self.view.accessed();
        self.counters[id.offset() as usize / 8].get_or_init(|| Word { view: self.view.clone(), id })
    }
    unsafe fn write(&self, at: Extent, src: Buf) {
        if self.view.fault == Fault::PutsFirst {
            self.view.catch_up();
            // SAFETY: the caller's promise: `src` is readable.
            let bytes = unsafe { core::slice::from_raw_parts(src.ptr(), src.len()) };
            self.view.late.replace(Some((at, bytes.to_vec())));
        } else {
            // SAFETY: the caller's promise, passed on.
            unsafe { self.view.region.write(at, src) }
        }
    }
    unsafe fn read(&self, at: Extent, dst: Buf) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.view.accessed().read(at, dst) }
    }
    unsafe fn fold(&self, at: Extent, acc: Buf, op: &Op) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.view.accessed().fold(at, acc, op) }
    }
}

/// A collective, its algorithm, and whether it has a root.
type Machine = (&'static str, &'static str, bool);

/// The papers' machines.
const MACHINES: [Machine; 6] = [
    ("bcast", "cico-flat", true),
    ("bcast", "cico-chain", true),
    ("bcast", "cico-binomial", true),
    ("scatterv", "cico", true),
    ("gatherv", "cico", true),
    ("allgatherv", "cico", false),
];

/// Bytes of a fragment.
const FRAGMENT: u64 = 8;
/// Time for a program, which takes milliseconds.
const LIMIT: Duration = Duration::from_secs(20);

/// Six calls of a machine one after the other, of one to five whole fragments, two from each root in turn.
fn program((name, algorithm, rooted): Machine, ranks: u32, (slots, sets): (u32, u32)) -> Program {
    let mut text = format!("ranks {ranks}\nseed 7\nsegment 4 2 64 {slots} {FRAGMENT} {sets} 0 0 0 0\n");
    for call in 0..6 {
        let (root, blocks) = (if rooted { call / 2 % ranks } else { 0 }, if name == "bcast" { 1 } else { ranks });
        let counts = (0..blocks).map(|block| format!(" {}", FRAGMENT * u64::from(1 + (call + block) % 5)));
        text += &format!("call {call} 0 {name} {algorithm} {root} 0 none 1 0{}\n", counts.collect::<String>());
    }
    (0..6).for_each(|call| text += &format!("* run {call}\n"));
    Program::parse(&text).unwrap()
}

/// Runs a program in the interleaving of a seed; the error says what is wrong.
fn run(program: &Program, seed: u64, fault: Fault) -> Result<(), String> {
    let shadow = std::sync::OnceLock::<Shadow>::new();
    let reports =
        threads::run_in_turns_on(program, LIMIT, seed, &|(_, segment, base): (usize, &Segment, Base), rank: Rank| {
            let layout = *segment.layout();
            let shadow = shadow.get_or_init(|| Shadow::new(layout, base));
            Faulty::new(Shadowed::new(segment.clone(), shadow, &layout, rank), layout, fault)
        });
    judge(program, &reports.unwrap())
}

/// Slots and sets.
const QUEUES: [(u32, u32); 4] = [(1, 1), (2, 1), (2, 2), (4, 2)];

#[test]
fn the_papers_machines_keep_the_rules() {
    for machine in MACHINES {
        for (ranks, queues) in (2..=4).flat_map(|ranks| QUEUES.map(|queues| (ranks, queues))) {
            for seed in 0..10 {
                assert_eq!(
                    run(&program(machine, ranks, queues), seed, Fault::None),
                    Ok(()),
                    "{machine:?} {ranks} {queues:?}"
                );
            }
        }
    }
}

/// Each machine with a fault breaks this rule in half of ten interleavings at least, whatever the number of ranks.
fn found(machines: &[Machine], queues: &[(u32, u32)], fault: Fault, rule: &str) {
    for &machine in machines {
        for (ranks, &queues) in (2..=4).flat_map(|ranks| queues.iter().map(move |queues| (ranks, queues))) {
            let program = program(machine, ranks, queues);
            let faults: Vec<_> = (0..10).filter_map(|seed| run(&program, seed, fault).err()).collect();
            let broken = faults.iter().filter(|words| words.contains(rule)).count();
            assert!(broken >= 5, "{fault:?} {machine:?}, {ranks} ranks, {queues:?}: {broken} of {faults:#?}");
        }
    }
}

#[test]
fn who_leaves_a_set_too_soon_is_found_at_its_copy() {
    found(&MACHINES, &QUEUES, Fault::LeavesFirst, "S3: it has released what is there");
}

#[test]
fn who_puts_a_word_before_its_fragment_is_found_by_its_reader() {
    found(&MACHINES, &QUEUES, Fault::PutsFirst, ": S3: ");
}

#[test]
fn who_does_not_wait_for_a_fragment_is_found() {
    found(&MACHINES, &QUEUES, Fault::ReadsFirst, ": S3: ");
}

#[test]
fn who_does_not_wait_for_the_counts_is_found() {
    found(&MACHINES[3..5], &QUEUES, Fault::CountsFirst, ": S3: ");
}

/// In one set: of two ranks with two sets, a root that gathers knows that the other one has left the first.
#[test]
fn who_opens_a_set_too_soon_is_found() {
    found(&MACHINES, &QUEUES[..2], Fault::OpensFirst, ": S2: ");
}

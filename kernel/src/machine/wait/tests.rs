use super::*;
use crate::error::{Cause, Poison};
use crate::machine::p2p::Tag;
use crate::machine::poll::{Await, Slot, Source};
use core::time::Duration;

const POISON: Poison = Poison { rank: 1, operation: 1, cause: Cause::Died };

/// A context whose event has happened or not, and that is poisoned or not.
struct World {
    ready: bool,
    poison: Option<Poison>,
    compared: u32,
}

const TOGGLED: World = World { ready: true, poison: None, compared: 0 };

impl Observe for World {
    fn ready(&mut self, _: &WaitSet) -> bool {
        self.ready
    }
    fn poison(&self) -> Option<Poison> {
        self.poison
    }
    fn compare(&mut self) -> Result<(), WaitError> {
        self.compared += 1;
        Ok(())
    }
}

/// A host that bounds the calls of one wait.
#[derive(Default)]
struct Calls {
    begun: u32,
    since: u32,
    looks: u32,
}

const BOUND: u32 = 2000;

impl Relax for Calls {
    fn begin(&mut self) {
        self.begun += 1;
        self.since = 0;
    }
    fn relax(&mut self, on: &WaitSet) -> Result<(), WaitError> {
        self.glance(on).map(drop)
    }
    fn glance(&mut self, on: &WaitSet) -> Result<u32, WaitError> {
        self.since += 1;
        if self.since > BOUND { Err(on.late()) } else { Ok(self.looks) }
    }
}

fn on(stage: u64) -> WaitSet {
    WaitSet::one(Await { source: Source::Message(Slot(0)), peer: Some(1), operation: Tag(1).0, stage })
}

fn policies() -> [SpinThen<Calls>; 3] {
    let host = Calls::default;
    [SpinThen::spinning(host()), SpinThen::crowded(host()), SpinThen::new(0, 64, host())]
}

/// Waits or looks `times` for what `on` says.
fn again(
    times: u32,
    on: impl Fn(u32) -> WaitSet,
    mut once: impl FnMut(&WaitSet) -> Result<(), WaitError>,
) -> Result<(), WaitError> {
    (0..times).try_for_each(|round| once(&on(round)))
}

const MANY: u32 = RETURNS * (BOUND + 3);

#[test]
fn a_word_that_is_toggled_hides_neither_poison_nor_the_bound() {
    for mut policy in policies() {
        let mut x = TOGGLED;
        assert_eq!(again(MANY, |_| on(1), |on| policy.wait(&mut x, on)), Err(WaitError::Late(1)));
        assert!(x.compared > 0);
    }
    for mut policy in policies() {
        let mut x = World { poison: Some(POISON), ..TOGGLED };
        assert_eq!(again(3 * RETURNS, |_| on(1), |on| policy.wait(&mut x, on)), Err(WaitError::Poisoned(POISON)));
    }
}

#[test]
fn each_event_has_a_bound_of_its_own() {
    for mut policy in policies() {
        let mut x = TOGGLED;
        assert_eq!(again(MANY, |round| on((round / 10).into()), |on| policy.wait(&mut x, on)), Ok(()));
        assert_eq!(again(MANY, |round| on((round / 10).into()), |on| policy.look(&mut x, on)), Ok(()));
    }
}

#[test]
fn looks_end_with_the_errors_of_a_wait() {
    for mut policy in policies() {
        let mut x = World { ready: false, ..TOGGLED };
        assert_eq!(again(MANY, |_| on(1), |on| policy.look(&mut x, on)), Err(WaitError::Late(1)));
        assert!(x.compared > 0);
        // After the error a bound starts anew.
        assert_eq!(again(BOUND, |_| on(1), |on| policy.look(&mut x, on)), Ok(()));
        let mut x = World { poison: Some(POISON), ..x };
        assert_eq!(policy.look(&mut x, &on(1)), Err(WaitError::Poisoned(POISON)));
    }
}

#[test]
fn a_host_says_at_how_many_looks_it_is_asked() {
    let host = Calls { looks: 9, ..Calls::default() };
    let (mut policy, mut x) = (SpinThen::spinning(host), World { ready: false, ..TOGGLED });
    assert_eq!(again(100, |_| on(1), |on| policy.look(&mut x, on)), Ok(()));
    assert_eq!((policy.host.begun, policy.host.since), (1, 10));
    // A wait for the same event starts.
    x.ready = true;
    let mut policy = SpinThen { eager: 0, ..policy };
    assert_eq!(policy.wait(&mut x, &on(1)), Ok(()));
    assert_eq!(policy.host.begun, 2);
}

#[test]
fn a_host_without_a_clock_has_no_bound_and_is_asked_now_and_then() {
    let mut nop = Only::<relax::Loop>::new();
    assert_eq!([None, Some(Duration::ZERO)].map(|most| nop.set_bound(most)), [true, false]);
    assert_eq!(nop.glance(&on(1)), Ok(32));
}

#[test]
fn a_pause_and_a_host_are_what_the_embedder_gives() {
    std::thread_local! {
        static PAUSES: core::cell::Cell<u32> = const { core::cell::Cell::new(0) };
    }
    struct Counted;
    impl RelaxStrategy for Counted {
        fn relax() {
            PAUSES.set(PAUSES.get() + 1);
        }
    }
    // The eager looks have no pause, each patient one has one; the host is asked after three of them.
    let mut policy = SpinThen::new(7, 3, Calls::default()).pausing::<Counted>();
    let mut x = World { ready: false, ..TOGGLED };
    assert_eq!(policy.wait(&mut x, &on(1)), Err(WaitError::Late(1)));
    assert_eq!((PAUSES.replace(0), policy.host.since), (3 * (BOUND + 1), BOUND + 1));
    assert_eq!(Only::<Counted>::new().relax(&on(1)), Ok(()));
    assert_eq!(PAUSES.get(), 1);
    // Another host leaves the numbers of looks and the pause as they are.
    let mut policy = policy.map(|_| Calls { since: BOUND, ..Calls::default() });
    assert_eq!((policy.eager, policy.patient), (7, 3));
    assert!(policy.long(&mut x, &on(1)).is_err());
    assert_eq!(PAUSES.get(), 1 + 3 * (BOUND + 1));
}

#[test]
fn long_looking_compares_now_and_then() {
    let (mut policy, mut x) = (SpinThen::crowded(Calls::default()), World { ready: false, ..TOGGLED });
    let compared = [15, 1, 15, 1, 31, 1].map(|looks| {
        assert_eq!(again(looks, |_| on(1), |on| policy.look(&mut x, on)), Ok(()));
        x.compared
    });
    assert_eq!(compared, [0, 1, 1, 2, 2, 3], "after 16, 32 and 64 looks");
}

#[test]
fn the_context_names_the_late_rank() {
    struct Late;
    impl Observe for Late {
        fn ready(&mut self, _: &WaitSet) -> bool {
            false
        }
        fn poison(&self) -> Option<Poison> {
            None
        }
        fn late(&self, peer: Option<crate::Rank>) -> crate::Rank {
            peer.map_or(7, |peer| peer + 10)
        }
    }
    let any = WaitSet::one(Await { source: Source::Message(Slot(0)), peer: None, operation: 1, stage: 1 });
    for (on, late) in [(on(1), 11), (any, 7)] {
        let mut policy = SpinThen::crowded(Calls { since: BOUND, ..Calls::default() });
        policy.host.begun = 0;
        let waited = (0..=BOUND).find_map(|_| policy.wait(&mut Late, &on).err());
        assert_eq!(waited, Some(WaitError::Late(late)));
    }
}

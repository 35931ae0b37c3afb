//! The words of a segment over loom's atomics, with orderings that can be weakened one at a time.

use ::loom::sync::atomic::{AtomicU64, Ordering};
use std::fmt;
use std::sync::Arc;
use unisono_kernel::region::{Counter, Flag, Mailword, Untrusted};

macro_rules! names {
    ($(#[$about:meta])* $type:ident { $($(#[$meta:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type {
            $($(#[$meta])* $variant,)*
        }

        impl $type {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The weakening's name on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

names! {
    /// A word's function in the layout.
    Role {
        /// `state`: the lease's poison.
        State = "state",
        /// `central_count`.
        Central = "central",
        /// `done`.
        Done = "done",
        /// `left`.
        Left = "left",
        /// `acked`.
        Acked = "acked",
        /// `answer`.
        Answer = "answer",
        /// `ready`.
        Ready = "ready",
        /// `arrive`.
        Arrive = "arrive",
        /// `release`.
        Release = "release",
        /// The words of a refusal record.
        Record = "record",
        /// `round`.
        Round = "round",
        /// The sequence word of a line for a partial result.
        Partial = "partial",
        /// The sequence word of a posted line.
        Line = "line",
        /// `set_op`.
        SetOp = "set-op",
        /// `set_bytes`.
        SetBytes = "set-bytes",
        /// `set_readers`.
        SetReaders = "set-readers",
        /// `set_typesize`.
        Typesize = "typesize",
        /// `set_count`.
        Count = "count",
        /// `set_rootready`.
        RootReady = "rootready",
        /// `control`.
        Control = "control",
        /// `control_all`.
        ControlAll = "control-all",
        /// A mailbox's `sequence`.
        MailSequence = "mail-sequence",
        /// A mailbox's `acked`.
        MailAcked = "mail-acked",
        /// The words of an announcement.
        Announcement = "announcement",
    }
}

names! {
    /// One ordering of one access, made weaker than the kernel's.
    Weak {
        /// Loads (and peeks) are relaxed, not acquire.
        Load = "load",
        /// Stores (and puts) are relaxed, not release.
        Store = "store",
        /// Adds, subs and claims are relaxed, not acquire + release.
        Rmw = "rmw-relaxed",
        /// Adds, subs and claims acquire only.
        RmwAcquire = "rmw-acquire",
        /// Adds, subs and claims release only; a claim that fails is relaxed.
        RmwRelease = "rmw-release",
    }
}

impl Role {
    /// A flag, with one writer; else a mailword or a counter.
    const fn one_writer(self) -> bool {
        use Role::{Central, Control, ControlAll, Count, RootReady, SetBytes, SetReaders, State, Typesize};
        !matches!(
            self,
            Self::Announcement
                | State
                | Central
                | SetBytes
                | SetReaders
                | Typesize
                | Count
                | RootReady
                | Control
                | ControlAll
        )
    }
}

/// One ordering of one role's words weakened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mutant {
    /// The role of the words.
    pub role: Role,
    /// The ordering that is weakened.
    pub weak: Weak,
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.role.name(), self.weak.name())
    }
}

impl Mutant {
    /// Reads what [`fmt::Display`] writes.
    pub fn from_name(name: &str) -> Option<Self> {
        let (role, weak) = name.split_once('.')?;
        Some(Self {
            role: *Role::ALL.iter().find(|r| r.name() == role)?,
            weak: *Weak::ALL.iter().find(|w| w.name() == weak)?,
        })
    }
}

/// A word that loom watches, as one rank sees it. Its orderings are the kernel's, but for a mutant's.
///
/// A flag has a copy per reader, all stored by its writer. Loom 0.7.2 remembers only the last of
/// the loads since a store, so with two readers it loses executions (it does not see that the
/// other reader's load races with the next store): models then complete no execution at all. With
/// copies each load has its own word. A store that reaches readers one after the other adds
/// behaviours, and takes none away: what passes here passes with one word.
#[derive(Debug)]
pub struct Word {
    copies: Arc<[AtomicU64]>,
    mine: usize,
    load: Ordering,
    store: Ordering,
    rmw: Ordering,
    failed: Ordering,
}

impl Word {
    /// A word that starts at zero, as each of `ranks` ranks sees it. To be made inside a model,
    /// before its threads start.
    pub fn new(role: Role, mutant: Option<Mutant>, ranks: u32) -> Vec<Self> {
        use Ordering::{AcqRel, Acquire, Relaxed, Release};
        let weak = mutant.filter(|m| m.role == role).map(|m| m.weak);
        let copies = if role.one_writer() { ranks as usize } else { 1 };
        let copies: Arc<[AtomicU64]> = (0..copies).map(|_| AtomicU64::new(0)).collect();
        let view = |rank| Self {
            mine: rank % copies.len(),
            copies: Arc::clone(&copies),
            load: if weak == Some(Weak::Load) { Relaxed } else { Acquire },
            store: if weak == Some(Weak::Store) { Relaxed } else { Release },
            rmw: match weak {
                Some(Weak::Rmw) => Relaxed,
                Some(Weak::RmwAcquire) => Acquire,
                Some(Weak::RmwRelease) => Release,
                _ => AcqRel,
            },
            failed: if matches!(weak, Some(Weak::Rmw | Weak::RmwRelease)) { Relaxed } else { Acquire },
        };
        (0..ranks as usize).map(view).collect()
    }

    fn mine(&self) -> &AtomicU64 {
        &self.copies[self.mine]
    }
}

impl Flag for Word {
    fn load_acquire(&self) -> Untrusted<u64> {
        Untrusted::new(self.mine().load(self.load))
    }
    fn store_release(&self, value: u64) {
        for copy in &*self.copies {
            copy.store(value, self.store);
        }
    }
}

impl Mailword for Word {
    fn peek_acquire(&self) -> Untrusted<u64> {
        Untrusted::new(self.mine().load(self.load))
    }
    fn put_release(&self, value: u64) {
        self.mine().store(value, self.store);
    }
    /// Relaxed, as in the kernel: it can't be weakened.
    fn clear(&self) {
        self.mine().store(0, Ordering::Relaxed);
    }
}

impl Counter for Word {
    fn load_acquire(&self) -> Untrusted<u64> {
        Untrusted::new(self.mine().load(self.load))
    }
    fn store_release(&self, value: u64) {
        self.mine().store(value, self.store);
    }
    fn fetch_add(&self, n: u64) -> Untrusted<u64> {
        Untrusted::new(self.mine().fetch_add(n, self.rmw))
    }
    fn fetch_sub(&self, n: u64) -> Untrusted<u64> {
        Untrusted::new(self.mine().fetch_sub(n, self.rmw))
    }
    fn claim(&self, from: u64, to: u64) -> Untrusted<u64> {
        match self.mine().compare_exchange(from, to, self.rmw, self.failed) {
            Ok(before) | Err(before) => Untrusted::new(before),
        }
    }
}

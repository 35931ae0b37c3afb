//! Every algorithm over messages on real MPI messages, against the oracle; and errors of messages.
//!
//! ```text
//! mpirun -n 5 mpi-messages LIBUNISONO LIBMPI [--large] [--each N]   on the last rank's stdout: messages: N passed, N failed
//! ```
//! LIBUNISONO is `libunisono_openmpi.so` or `libunisono_mpich.so`, LIBMPI that MPI's library. `--large`: also a message
//! above 2³¹ bytes, between two ranks. `--each`: every N-th case.

use std::ffi::{CString, c_int};
use std::process::exit;
use std::time::Duration;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{PollError, WaitError};
use unisono_kernel::machine::p2p::{P2p, P2pError, Tag};
use unisono_kernel::msg::{Schedule, allreduce, barrier, bcast};
use unisono_kernel::op::Op;
use unisono_mpi::attach::{AttachError, Library, Team};
use unisono_mpi::messages::NO_SUCH_RANK;
use unisono_mpi::program::Mpi;
use unisono_verify::cases::{self, Stage, User, bytes, seat};

/// This rank's share of all checks.
struct Check {
    team: Team,
    /// The number of cases so far; one of so many is run.
    cases: u64,
    each: u64,
    passed: u64,
    failed: u64,
}

impl Check {
    fn rank(&self) -> u32 {
        self.team.messages().rank()
    }

    fn size(&self) -> u32 {
        self.team.messages().size()
    }

    fn count(&mut self, name: &str, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(why) => {
                self.failed += 1;
                eprintln!("rank {}: {name}: {why}", self.rank());
            }
        }
    }

    /// The sums of all ranks.
    fn sums(&mut self) -> [u64; 2] {
        let mine = [self.passed, self.failed].map(u64::to_ne_bytes);
        let mut sums = [[0; 8]; 2];
        let me = seat(self.rank(), self.size());
        let plan = allreduce::plan(me, 16, Op::SUM_U64, false, allreduce::Algorithm::Doubling).expect("a plan");
        // SAFETY: where it fails, the process ends.
        unsafe { self.team.run(plan, mine.as_flattened(), sums.as_flattened_mut()) }.unwrap_or_else(|error| {
            eprintln!("rank {}: {error}", self.rank());
            exit(1)
        });
        sums.map(u64::from_ne_bytes)
    }
}

impl Stage for Check {
    fn lengths(&self) -> &'static [u64] {
        // Longer than a message that the MPIs send at once.
        &[20_000]
    }

    fn case<S: Schedule>(
        &mut self,
        name: &str,
        size: u32,
        plan: impl Fn(u32) -> S,
        before: impl Fn(u32) -> User,
        after: impl Fn(u32) -> Vec<u8>,
    ) {
        assert_eq!(size, self.size());
        self.cases += 1;
        if !self.cases.is_multiple_of(self.each) {
            return;
        }
        let me = self.rank();
        let User { send, mut receive } = before(me);
        // SAFETY: where it fails, the process ends.
        if let Err(error) = unsafe { self.team.run(plan(me), &send, &mut receive) } {
            eprintln!("rank {me}: {name}: {error}");
            exit(1);
        }
        let result = match (send == before(me).send, receive == after(me)) {
            (true, true) => Ok(()),
            (false, _) => Err("the input was changed".into()),
            (_, false) => Err("another result than the oracle's".into()),
        };
        self.count(name, result);
    }
}

/// A team whose waits are bounded; collective.
fn team(library: &Library, world: c_int, bound: Duration) -> Team {
    // SAFETY: MPI's handle, one thread; dropped before MPI_Finalize.
    let endpoint = unsafe { library.connect(world) }.unwrap_or_else(|error| panic!("no team: {error}"));
    let mut team = Team::new(endpoint);
    team.set_timeout(Some(bound));
    team
}

/// Checks that the result is this error.
fn fails_with(result: Result<(), AttachError>, wanted: AttachError) -> Result<(), String> {
    if result == Err(wanted.clone()) { Ok(()) } else { Err(format!("{result:?}, not {wanted:?}")) }
}

/// Errors, each on a team of its own: the rank that gets the error, and the rank that it names.
fn faults(check: &mut Check, connect: impl Fn(Duration) -> Team) {
    let (me, size) = (check.rank(), check.size());
    for (sent, received) in [(10, 5), (5, 10), (1 << 20, 5), (1 << 20, (1 << 20) + 1)] {
        let mut team = connect(Duration::from_secs(30));
        let mut data = bytes(me, if me == 0 { sent } else { received });
        let plan = bcast::plan(seat(me, size), data.len() as u64, 0, bcast::Algorithm::Flat).expect("a plan");
        // SAFETY: the data outlives the team, which is dropped below.
        let result = unsafe { team.run(plan, &[], &mut data) };
        let wanted = AttachError::Poll(PollError::Messages { peer: 0, code: P2pError::LENGTH.0 });
        let name = format!("{sent} bytes for a receive of {received}");
        if me > 0 {
            check.count(&name, fails_with(result, wanted));
        }
        drop(team);
    }
    // No rank sends to the last rank: its wait ends, and the error names rank 0.
    let mut team = connect(Duration::from_millis(200));
    if me == size - 1 {
        let mut data = [0; 8];
        let plan = bcast::plan(seat(me, size), 8, 0, bcast::Algorithm::Flat).expect("a plan");
        // SAFETY: nothing is sent, and the receive is taken back.
        let result = unsafe { team.run(plan, &[], &mut data) };
        check.count("a rank that never sends", fails_with(result, AttachError::Wait(WaitError::Late(0))));
        let plan = barrier::plan(seat(me, size), barrier::Algorithm::Central).expect("a plan");
        // SAFETY: no data.
        let again = unsafe { team.run(plan, &[], &mut []) };
        check.count("a team that failed", fails_with(again, AttachError::Wait(WaitError::Late(0))));
    }
    let mut byte = [0; 1];
    // SAFETY: refused, so nothing holds the byte.
    let posted = unsafe { team.messages_mut().post_recv(size, Tag(0), Buf::of_mut(&mut byte)) };
    check.count(
        "a rank that does not exist",
        if posted == Err(NO_SUCH_RANK) { Ok(()) } else { Err(format!("{posted:?}")) },
    );
}

/// Operations' numbers above the MPI's largest tag: each collective still has a tag of its own.
fn tags(check: &mut Check) {
    let (me, size) = (check.rank(), check.size());
    for tag in [0, 1, (1 << 20) - 1, 1 << 30, (1 << 31) - 1, 1 << 31, u64::from(u32::MAX) + 7, u64::MAX] {
        let (next, before) = ((me + 1) % size, (me + size - 1) % size);
        let (sent, mut got) = ([me as u8, tag as u8], [0; 2]);
        let layer = check.team.messages_mut();
        // SAFETY: the bytes are not touched until both have ended, below.
        let receive = unsafe { layer.post_recv(before, Tag(tag), Buf::of_mut(&mut got)) }.expect("a receive");
        // SAFETY: as above.
        let send = unsafe { layer.post_send(next, Tag(tag), Buf::of(&sent)) }.expect("a send");
        for slot in [receive, send] {
            while !layer.test(slot).expect("a message") {
                std::thread::yield_now();
            }
        }
        let result = if got == [before as u8, tag as u8] { Ok(()) } else { Err(format!("{got:?}")) };
        check.count(&format!("tag {tag}"), result);
    }
}

/// A message with more bytes than a C `int` can count.
fn large(check: &mut Check) {
    const BYTES: u64 = (1 << 31) + 4099;
    let (me, size) = (check.rank(), check.size());
    let value = |at: usize| (at.wrapping_mul(31) >> 7) as u8;
    let mut data = if me > 1 { Vec::new() } else { vec![0; BYTES as usize] };
    if me == 0 {
        data.iter_mut().zip(0..).for_each(|(byte, at)| *byte = value(at));
    }
    if me < 2 {
        let plan = bcast::plan(seat(me, 2), BYTES, 0, bcast::Algorithm::Flat).expect("a plan");
        // SAFETY: where it fails, the process ends.
        unsafe { check.team.run(plan, &[], &mut data) }.unwrap_or_else(|error| {
            eprintln!("rank {me}: {BYTES} bytes: {error}");
            exit(1)
        });
        let wrong = data.iter().zip(0..).position(|(byte, at)| *byte != value(at));
        check.count("2^31 + 4099 bytes", wrong.map_or(Ok(()), |at| Err(format!("byte {at}"))));
    } else {
        let plan = barrier::plan(seat(0, 1), barrier::Algorithm::Central).expect("a plan");
        // SAFETY: no data; alone, it only takes its number.
        unsafe { check.team.run(plan, &[], &mut []) }.unwrap_or_else(|error| panic!("{error} among {size}"));
    }
}

fn main() {
    let arguments: Vec<CString> = std::env::args().skip(1).filter_map(|word| CString::new(word).ok()).collect();
    let [library, mpi, flags @ ..] = arguments.as_slice() else {
        eprintln!("usage: mpi-messages LIBUNISONO LIBMPI [--large] [--each N]");
        exit(2);
    };
    // SAFETY: an MPI's, as the usage says.
    let mpi = unsafe { Mpi::load(mpi) }.unwrap_or_else(|error| panic!("{error}"));
    // SAFETY: Unisono's, as the usage says.
    let library = unsafe { Library::load(library) }.unwrap_or_else(|error| panic!("{error}"));
    // SAFETY: refused before anything is looked at.
    let early = unsafe { library.connect(0) }.err();
    // SAFETY: once.
    let world = unsafe { mpi.init() }.unwrap_or_else(|error| panic!("{error}"));
    let each = flags.iter().skip_while(|flag| flag.as_c_str() != c"--each").nth(1);
    let each = each.and_then(|number| number.to_str().ok()?.parse().ok()).filter(|&each| each > 0).unwrap_or(1);
    let team_of = |bound| team(&library, world, bound);
    let mut check = Check { team: team_of(Duration::from_secs(60)), cases: 0, each, passed: 0, failed: 0 };
    let not_running = Some(AttachError::Messages(P2pError(-2)));
    let result = if early == not_running { Ok(()) } else { Err(format!("{early:?}")) };
    check.count("before MPI_Init", result);
    let size = check.size();
    cases::all(size, &mut check);
    tags(&mut check);
    if size > 1 {
        faults(&mut check, team_of);
    }
    if size > 1 && flags.iter().any(|flag| flag.as_c_str() == c"--large") {
        large(&mut check);
    }
    let [passed, failed] = check.sums();
    if check.rank() == size - 1 {
        println!("messages: {passed} passed, {failed} failed");
    }
    drop(check);
    // SAFETY: all teams are gone.
    unsafe { mpi.finalize() }.unwrap_or_else(|error| panic!("{error}"));
    // SAFETY: refused before anything is looked at.
    let late = unsafe { library.connect(world) }.err();
    if failed > 0 || late != not_running {
        eprintln!("after MPI_Finalize: {late:?}");
        exit(1);
    }
}

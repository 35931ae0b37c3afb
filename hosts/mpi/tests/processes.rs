//! The C functions in real processes, made by fork: this program has no threads.
//!
//! In place of an MPI's collectives they use a board: shared memory in which every rank posts words and reads all
//! ranks'.

use std::ffi::c_int;
use unisono_c::moves::unisono_barrier;
use unisono_c::reductions::unisono_allreduce;
use unisono_kernel::class::Class;
use unisono_kernel::region::{Flag, Word};
use unisono_mpi::offer::Reason;
use unisono_mpi::process::Sums;
use unisono_mpi::{
    unisono_mpi_attach, unisono_mpi_forked, unisono_mpi_offer, unisono_mpi_prepare, unisono_mpi_release,
    unisono_mpi_settle, unisono_mpi_sums,
};
use unisono_posix::sealed::{Map, Sealed};

const RANKS: u32 = 4;
/// Words of one posting.
const WORDS: usize = size_of::<unisono_mpi::offer::Words>() / 8;

/// A rank's view of the board. Postings alternate between two places: a rank that posts n + 2 has read all ranks' n +
/// 1, so all ranks have read all of n.
struct Board<'m> {
    map: &'m Map,
    ranks: u32,
    rank: u32,
    posted: u64,
}

impl Board<'_> {
    fn word(&self, rank: u32, word: usize) -> &Word {
        let place = (self.posted as usize % 2 * RANKS as usize + rank as usize) * (WORDS + 1) + word;
        assert!((place as u64 + 1) * 8 <= self.map.bytes());
        // SAFETY: inside the map, aligned, and accessed by words only.
        unsafe { Word::at(self.map.base().cast::<u64>().wrapping_add(place)) }
    }

    fn allgather(&mut self, mine: [u64; WORDS]) -> Vec<[u64; WORDS]> {
        self.posted += 1;
        for (word, value) in (1..).zip(mine) {
            self.word(self.rank, word).store_payload(value);
        }
        // publishes: the words, to all ranks
        self.word(self.rank, 0).store_release(self.posted);
        let read = |rank| {
            while !Flag::load_acquire(self.word(rank, 0)).at_least(self.posted) {
                std::thread::yield_now();
            }
            std::array::from_fn(|word| self.word(rank, word + 1).load_payload())
        };
        (0..self.ranks).map(read).collect()
    }

    fn max(&mut self, value: c_int) -> c_int {
        let all = self.allgather([value as u64; WORDS]);
        all.into_iter().map(|words| words[0] as c_int).max().unwrap()
    }
}

static PROGRESSED: Word = Word::zero();

extern "C" fn progress(_: c_int) {
    PROGRESSED.store_payload(PROGRESSED.load_payload() + 1);
}

type Lease = *mut unisono_mpi::process::Lease;
type Comm = *mut unisono_c::comm::Handle;

/// A communicator's first use, as in the shim.
fn first_use(board: &mut Board) -> Result<(Lease, Comm), Reason> {
    let (mut mine, mut lease) = ([0; WORDS], std::ptr::null_mut());
    // SAFETY: a local offer.
    unsafe { unisono_mpi_offer(board.ranks, &raw mut mine) };
    let all = board.allgather(mine);
    // SAFETY: an offer for each rank, a local lease, a function that may always be called.
    let reason =
        unsafe { unisono_mpi_attach(all.as_ptr(), board.ranks, board.rank, RANKS, Some(progress), &raw mut lease) };
    let worst = board.max(reason);
    // SAFETY: the lease that was just made.
    let comm = unsafe { unisono_mpi_settle(lease, worst) };
    assert_eq!(comm.is_null(), worst != 0);
    match Reason::ALL[worst as usize] {
        Reason::Attached => Ok((lease, comm)),
        reason => Err(reason),
    }
}

fn sum(comm: Comm, mine: u64) -> u64 {
    const U64: c_int = 9;
    const SUM: usize = 1;
    let mut result = 0u64;
    let (from, to) = ((&raw const mine).cast(), (&raw mut result).cast());
    // SAFETY: nothing else uses the handle; one element each.
    let code = unsafe { unisono_allreduce(comm, from, to, 1, U64, std::ptr::without_provenance(SUM)) };
    assert_eq!(code, 0);
    result
}

fn release(lease: Lease) {
    // SAFETY: the lease was settled, and its communicator is not used any more.
    unsafe { unisono_mpi_release(lease) }
}

fn sums() -> Sums {
    let mut sums = Sums::default();
    // SAFETY: a local struct.
    unsafe { unisono_mpi_sums(&raw mut sums) };
    sums
}

fn fork() -> libc::pid_t {
    // SAFETY: this program has no threads, so the child may do anything.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    pid
}

/// Ends a child without returning to `main`.
fn end(work: impl FnOnce() + std::panic::UnwindSafe) -> ! {
    let code = std::panic::catch_unwind(work).map_or(1, |()| 0);
    // SAFETY: an integer.
    unsafe { libc::_exit(code) }
}

fn wait(pid: libc::pid_t) -> c_int {
    let mut status = 0;
    // SAFETY: a local integer.
    let ended = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(ended, pid);
    status
}

/// Runs `member` in a process for each rank, unless the command line names other tests; all must succeed.
fn processes(what: &str, member: impl Fn(&Map, u32)) {
    let mut names = std::env::args().skip(1).filter(|name| !name.starts_with('-')).peekable();
    if names.peek().is_some() && !names.any(|name| what.contains(&name)) {
        return;
    }
    let map = Sealed::create(1 << 16).unwrap().map().unwrap();
    let children: Vec<_> = (0..RANKS)
        .map(|rank| {
            let pid = fork();
            if pid == 0 {
                // SAFETY: an integer.
                unsafe { libc::alarm(300) };
                let (map, member) = (&map, &member);
                end(std::panic::AssertUnwindSafe(move || member(map, rank)));
            }
            pid
        })
        .collect();
    let failed: Vec<_> = children.into_iter().map(wait).filter(|status| *status != 0).collect();
    assert!(failed.is_empty(), "{what}: {failed:?}");
    println!("{what}: ok");
}

fn world(map: &Map, rank: u32) -> Board<'_> {
    Board { map, ranks: RANKS, rank, posted: 0 }
}

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

fn maps() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().filter(|line| line.contains("unisono")).count()
}

/// Bytes of the arena's pages that exist.
fn resident() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let blocks = stat.split("memfd:unisono").skip(1);
    let pss = blocks.filter_map(|block| block.lines().find_map(|line| line.strip_prefix("Rss:")));
    pss.map(|line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10).sum()
}

fn a_thousand_communicators(map: &Map, rank: u32) {
    const TIMES: u64 = 1000;
    let mut board = world(map, rank);
    let (mut files, mut mapped) = (0, 0);
    for time in 0..TIMES {
        let (lease, comm) = first_use(&mut board).unwrap();
        if (time, rank) == (0, 0) {
            // The others wait long, once.
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        for call in 0..3 {
            assert_eq!(sum(comm, u64::from(rank) + time + call), 6 + 4 * (time + call));
        }
        release(lease);
        if time == 99 {
            (files, mapped) = (count("/proc/self/fd"), maps());
        }
    }
    // All ranks have released before a rank looks.
    board.max(0);
    assert_eq!((files, mapped), (count("/proc/self/fd"), maps()));
    let sums = sums();
    assert_eq!((sums.used, sums.attached, sums.released), (0, TIMES, TIMES));
    assert_eq!(sums.arena, 512 << 20);
    assert!(sums.most_used > 0 && sums.most_used < 32 << 20, "{sums:?}");
    assert!(rank == 0 || sums.waits > 0 && PROGRESSED.load_payload() > 0, "{sums:?}");
    // All have given back their pages.
    board.max(0);
    assert!(resident() < 1 << 20, "{} bytes of freed communicators", resident());
}

fn communicators_live_side_by_side(map: &Map, rank: u32) {
    let mut board = world(map, rank);
    let mut live: Vec<_> = (0..40).map(|_| first_use(&mut board).unwrap()).collect();
    for round in 0..5 {
        for (at, (_, comm)) in (0..).zip(&live) {
            assert_eq!(sum(*comm, at * 10 + u64::from(rank)), 40 * at + 6, "round {round}");
        }
    }
    // Each rank releases in an order of its own.
    while !live.is_empty() {
        let (lease, _) = live.swap_remove((live.len() * 7 + 5 * rank as usize) % live.len());
        release(lease);
    }
    board.max(0);
    assert_eq!(sums().used, 0);
}

fn a_child_of_fork_has_nothing(map: &Map, rank: u32) {
    let mut board = world(map, rank);
    let (lease, comm) = first_use(&mut board).unwrap();
    assert_eq!(sum(comm, 1), 4);
    let child = fork();
    if child == 0 {
        end(std::panic::AssertUnwindSafe(move || {
            unisono_mpi_forked();
            assert_eq!(maps(), 1, "the board alone");
            let (mut offer, mut none) = ([[0; WORDS]; 2], std::ptr::null_mut());
            // SAFETY: a local offer.
            unsafe { unisono_mpi_offer(2, &raw mut offer[0]) };
            offer[1] = offer[0];
            // SAFETY: two local offers and a local lease.
            let reason = unsafe { unisono_mpi_attach(offer.as_ptr(), 2, 0, 2, None, &raw mut none) };
            assert_eq!(reason, Reason::Off as c_int);
            // SAFETY: the lease that was just made.
            assert!(unsafe { unisono_mpi_settle(none, reason) }.is_null());
            release(lease);
            assert_eq!(sums(), Sums::default());
        }));
    }
    assert_eq!(wait(child), 0);
    // The parent's communicator can still be used.
    assert_eq!(sum(comm, 2), 8);
    release(lease);
    board.max(0);
    assert_eq!(sums().used, 0);
}

/// A member ends without releasing: the slice stays in use, and the others continue without it.
fn a_member_that_dies_keeps_its_slice(map: &Map, rank: u32) {
    let mut board = world(map, rank);
    let (lease, comm) = first_use(&mut board).unwrap();
    assert_eq!(sum(comm, 1), 4);
    let all = board.allgather([sums().used; WORDS]);
    assert_eq!(all.iter().filter(|words| words[0] > 0).count(), 1);
    // The others continue without the last rank, and may overwrite words that it would read next.
    board.max(0);
    if rank == RANKS - 1 {
        return;
    }
    board.ranks -= 1;
    release(lease);
    for _ in 0..20 {
        let (lease, comm) = first_use(&mut board).unwrap();
        assert_eq!(sum(comm, 1), 3);
        release(lease);
    }
    board.max(0);
    assert_eq!(sums().used, all[rank as usize][0]);
}

/// One rank's limit of file sizes is smaller than the arena: it is refused, not killed, and all ranks print why, once.
fn a_refusal_is_a_reason_for_all(map: &Map, rank: u32) {
    let (said, stderr) = std::io::pipe().unwrap();
    // SAFETY: local descriptors.
    unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&stderr), 2) };
    drop(stderr);
    if rank == 1 {
        let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
        // SAFETY: a local struct.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
    }
    let mut board = world(map, rank);
    for _ in 0..3 {
        assert_eq!(first_use(&mut board).unwrap_err(), Reason::Refused);
    }
    assert_eq!(sums().used, 0);
    // SAFETY: an integer; the writing end of the pipe is closed.
    unsafe { libc::close(2) };
    let text = std::io::read_to_string(said).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), usize::from(rank == 1), "{text}");
    assert!(rank != 1 || lines[0].contains("must be at most 1048576"), "{text}");
}

fn an_arena_of_its_own_size(map: &Map, rank: u32) {
    let mut board = world(map, rank);
    let mut live = Vec::new();
    let reason = loop {
        match first_use(&mut board) {
            Ok((lease, comm)) => {
                assert_eq!(sum(comm, 1), 4);
                live.push(lease);
            }
            Err(reason) => break reason,
        }
    };
    assert_eq!(reason, Reason::Full);
    assert_eq!(sums().arena, 8 << 20);
    assert!(live.len() > 40, "{}", live.len());
    live.into_iter().for_each(release);
    board.max(0);
    assert_eq!(sums().used, 0);
}

fn what_is_prepared_is_there_before_the_first_communicator(map: &Map, rank: u32) {
    unisono_mpi_prepare();
    assert_eq!((sums().arena, sums().used), (512 << 20, 0));
    let (lease, comm) = first_use(&mut world(map, rank)).unwrap();
    assert_eq!(sum(comm, 1), 4);
    release(lease);
}

fn code_of_a_barrier(comm: Comm) -> c_int {
    // SAFETY: a handle that is in no other use.
    unsafe { unisono_barrier(comm) }
}

/// `UNISONO_TIMEOUT`: a rank that waits for one that never calls gets an error.
fn a_bound_of_the_environment(map: &Map, rank: u32) {
    let mut board = world(map, rank);
    let (lease, comm) = first_use(&mut board).unwrap();
    assert_eq!(code_of_a_barrier(comm), 0);
    let code = if rank == RANKS - 1 { 0 } else { code_of_a_barrier(comm) };
    let all: Vec<_> = board.allgather([code as u64; WORDS]).iter().map(|words| words[0] as c_int).collect();
    let late = Class::Late.number();
    assert!(all[..3].contains(&late) && all[..3].iter().all(|code| *code != 0) && all[3] == 0, "{all:?}");
    assert_ne!(code_of_a_barrier(comm), 0);
    release(lease);
}

/// `UNISONO_RULES`: the last rank has other rules; rank 0 prints that once, and no rank uses rules.
fn rules_of_the_environment(map: &Map, rank: u32) {
    let (said, stderr) = std::io::pipe().unwrap();
    // SAFETY: local descriptors.
    unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&stderr), 2) };
    drop(stderr);
    if rank == RANKS - 1 {
        // SAFETY: this program has no threads.
        unsafe { std::env::set_var("UNISONO_RULES", "shm barrier use dissemination") };
    }
    let mut board = world(map, rank);
    for _ in 0..2 {
        let (lease, comm) = first_use(&mut board).unwrap();
        assert_eq!(code_of_a_barrier(comm), 0);
        release(lease);
    }
    board.max(0);
    // SAFETY: an integer; the writing end of the pipe is closed.
    unsafe { libc::close(2) };
    let text = std::io::read_to_string(said).unwrap();
    let lines = text.lines().filter(|line| line.contains("rank 3 has another decision table than rank 0")).count();
    assert_eq!(lines, usize::from(rank == 0), "{text}");
}

fn switched_off(map: &Map, rank: u32) {
    assert_eq!(first_use(&mut world(map, rank)).unwrap_err(), Reason::Off);
    assert_eq!(sums(), Sums::default());
}

fn main() {
    processes("a thousand communicators", a_thousand_communicators);
    processes("communicators live side by side", communicators_live_side_by_side);
    processes(
        "what is prepared is there before the first communicator",
        what_is_prepared_is_there_before_the_first_communicator,
    );
    processes("a child of fork has nothing", a_child_of_fork_has_nothing);
    processes("a member that dies keeps its slice", a_member_that_dies_keeps_its_slice);
    processes("a refusal is a reason for all", a_refusal_is_a_reason_for_all);
    // SAFETY: this program has no threads.
    unsafe { std::env::set_var("UNISONO_RULES", "shm barrier use central") };
    processes("rules of the environment", rules_of_the_environment);
    // SAFETY: as above.
    unsafe { std::env::set_var("UNISONO_TIMEOUT", "0.3") };
    processes("a bound of the environment", a_bound_of_the_environment);
    // SAFETY: as above.
    unsafe { std::env::remove_var("UNISONO_TIMEOUT") };
    // SAFETY: as above.
    unsafe { std::env::set_var("UNISONO_ARENA", "8M") };
    processes("an arena of its own size", an_arena_of_its_own_size);
    // SAFETY: as above.
    unsafe { std::env::set_var("UNISONO", "off") };
    processes("switched off", switched_off);
}

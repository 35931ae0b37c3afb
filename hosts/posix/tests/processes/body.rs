//! The bodies: what the ranks of each test do.

use super::{ARGUMENT, BODY, DIRECTORY, communicators, lent, now, numa, pages, polling, renewals, thousand, threads};
use rand::{RngExt, SeedableRng};
use rand_xorshift::XorShiftRng;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;
use unisono_kernel::Rank;
use unisono_kernel::algorithm::{BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::comm::Comm;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::error::Error;
use unisono_kernel::hier::Levels;
use unisono_kernel::machine::drive;
use unisono_kernel::msg::{Memory, Parts, Rounds, allgather};
use unisono_kernel::op::Op;
use unisono_kernel::pattern::Seat;
use unisono_kernel::region::Params;
use unisono_posix::binding;
use unisono_posix::bootstrap::{Bootstrap, Launched};
use unisono_posix::launch::{Bind, Launch};
use unisono_posix::pages::{HUGE, Kind, Mapped};
use unisono_posix::sealed::Handle;
use unisono_posix::{Joined, Options, Pages, Policy, PosixError, join};
use unisono_shm::{Mailbox, Peer, Post};

pub(super) type Failure = Box<dyn std::error::Error>;

pub(super) fn argument() -> String {
    std::env::var(ARGUMENT).unwrap_or_default()
}

fn my_rank() -> Rank {
    std::env::var("UNISONO_RANK").ok().and_then(|rank| rank.parse().ok()).unwrap_or(0)
}

/// Writes a text for the test to read: the whole file appears at once.
pub(super) fn say(topic: &str, text: impl Display) {
    let directory = PathBuf::from(std::env::var_os(DIRECTORY).unwrap());
    let rank = my_rank();
    let unfinished = directory.join(format!("unfinished-{rank}"));
    std::fs::write(&unfinished, text.to_string()).unwrap();
    std::fs::rename(unfinished, directory.join(format!("{topic}-{rank}"))).unwrap();
}

/// Runs the body that the environment names, then ends the process.
pub(super) fn run() -> ! {
    std::panic::set_hook(Box::new(|info| say("panic", info)));
    let body = match std::env::var(BODY).unwrap().as_str() {
        "collectives" => collectives,
        "endless" => endless,
        "letters" => letters,
        "mix" => mix,
        "eager" => eager,
        "late" => late,
        "alone" => alone,
        "start-up" => start_up,
        "exhausted" => exhausted,
        "polling" => polling::polling,
        "crossed" => polling::crossed,
        "root" => wrong_root,
        "lengths" => wrong_length,
        "plans" => other_plan,
        "pages" => huge_pages,
        "other-pages" => other_pages,
        "heap-pages" => pages::heap,
        "heap-placed" => numa::heap,
        "absurd" => absurd,
        "dies-before" => dies_before,
        "dies-at" => dies_at,
        "binding" => placed,
        "slices" => communicators::placed,
        "astray" => astray,
        "grandchild" => grandchild,
        "orphan" => orphan,
        "tree" => communicators::tree,
        "thousands" => communicators::thousands,
        "full" => communicators::full,
        "groups" => communicators::groups,
        "bereft" => communicators::bereft,
        "threads" => threads::threads,
        "thousand" => thousand::thousand,
        "renewals" => renewals::renewals,
        "lent-endless" => lent::endless,
        "lent-in-turn" => lent::in_turn,
        "lent-forbidden" => lent::forbidden,
        "launcher" => launcher,
        other => panic!("no body {other}"),
    };
    let code = match body() {
        Ok(()) => 0,
        Err(error) => {
            say("error", format_args!("{} {error}", now()));
            3
        }
    };
    std::process::exit(code)
}

pub(super) fn launched() -> Result<Launched, PosixError> {
    Ok(Launched::from_env()?.expect("no launcher"))
}

fn plan(ranks: u32) -> Params {
    Params::new(ranks).with_cico()
}

fn joined() -> Result<Joined, PosixError> {
    let joined = join(&mut launched()?, plan, &Options::default())?;
    if joined.communicator.rank() == 0 {
        say("inode", joined.segment.handle()?.inode);
    }
    Ok(joined)
}

/// All collectives, all roots, lengths around each change of algorithm; and what the start-up reports.
fn collectives() -> Result<(), Failure> {
    let Joined { mut communicator, segment, placement, placements, pages, liveness, waiting, peers } = joined()?;
    assert_eq!((pages.asked, pages.bytes), (Pages::Default, segment.bytes()));
    assert!(!pages.fell_back(), "{pages}");
    let (rank, size) = (communicator.rank(), communicator.size());
    assert_eq!(segment.seals()?, unisono_posix::segment::SEALS);
    let pages: u64 = placements.iter().map(|summary| summary.checked).sum();
    assert_eq!(pages * 4096, segment.layout().first_bytes());
    assert_eq!(placements[rank as usize], placement.summary());
    say("placement", &placement);
    say("waiting", &waiting);
    say("liveness", liveness);
    assert_eq!(peers.len(), size as usize);
    for (round, bytes) in [0usize, 1, 8, 48, 49, 104, 105, 8191, 8193, 300_000].into_iter().enumerate() {
        for root in 0..size {
            for name in ["auto", "queue", "cico-flat", "cico-chain", "cico-binary", "cico-knomial-3"] {
                let expected: Vec<u8> = (0..bytes).map(|i| (i * 7 + round + root as usize) as u8).collect();
                let mut data = if rank == root { expected.clone() } else { vec![0; bytes] };
                let algorithm = BcastAlgorithm::from_name(name).unwrap();
                communicator.run(&Call::Bcast { data: Data::bytes_mut(&mut data), root, algorithm })?;
                assert!(data == expected, "{name} {bytes} bytes from {root}");
                let mut sum = i64::from(rank + root).to_ne_bytes();
                communicator.allreduce_in_place(&mut sum, Op::SUM_I64)?;
                let all: i64 = (0..size).map(|other| i64::from(other + root)).sum();
                assert_eq!(i64::from_ne_bytes(sum), all);
            }
        }
        for name in ["dissemination", "doubling", "central", "combining"] {
            communicator.run(&Call::Barrier { algorithm: BarrierAlgorithm::from_name(name).unwrap() })?;
        }
    }
    Ok(())
}

/// Messages round a ring, longer than their mailboxes, until something ends them.
fn letters() -> Result<(), Failure> {
    let mut joined = join(&mut launched()?, |ranks| Params::new(ranks).with_mailboxes(), &Options::default())?;
    let (rank, layout, region) = (joined.communicator.rank(), *joined.segment.layout(), joined.segment.region());
    let post = Post::new(layout, rank, vec![Peer::default(); layout.ranks() as usize])?;
    let mut x = Levels { comm: Comm::new(region.clone(), layout, rank)?, messages: Mailbox::new(region, post) };
    let seat = Seat::new(rank, layout.ranks())?;
    let parts = Parts::equal(layout.ranks(), 50_000)?;
    say("joined", "");
    for operation in 1.. {
        let (send, mut receive) = (vec![rank as u8 + 1; 50_000], vec![0; parts.reach() as usize]);
        let memory = Memory { send: Buf::of(&send), receive: Buf::of_mut(&mut receive), scratch: Memory::NOTHING };
        let plan = allgather::plan(seat, parts, false, allgather::Algorithm::Ring, None)?;
        // SAFETY: the vectors outlive the machine; after a failure nothing is posted or tested any more.
        let mut machine = unsafe { Rounds::of(plan, memory, operation) }?;
        drive::run(&mut machine, &mut x, joined.communicator.wait_policy()).map_err(|stop| x.comm.fail(stop))?;
        assert!(receive.chunks(50_000).zip(1..).all(|(block, value)| block.iter().all(|byte| *byte == value)));
    }
    Ok(())
}

/// Collectives until something ends them.
fn endless() -> Result<(), Failure> {
    let mut communicator = joined()?.communicator;
    let mut data = vec![0; 100_000];
    say("joined", "");
    for root in (0..communicator.size()).cycle() {
        communicator.bcast(&mut data, root)?;
        communicator.barrier()?;
        communicator.allreduce_in_place(&mut data[..8], Op::SUM_I64)?;
    }
    Ok(())
}

/// Collectives of all kinds, in an order that all ranks draw alike, until something ends them.
fn mix() -> Result<(), Failure> {
    let mut communicator = joined()?.communicator;
    let bcasts = ["auto", "queue", "cico-flat", "cico-chain", "cico-binary", "cico-knomial-3"];
    let bcasts = bcasts.map(|name| BcastAlgorithm::from_name(name).unwrap());
    let barriers =
        ["dissemination", "doubling", "central", "combining"].map(|name| BarrierAlgorithm::from_name(name).unwrap());
    let sizes = [1, 8, 104, 8193, 300_000];
    let mut data = vec![0; 300_000];
    let mut random = XorShiftRng::seed_from_u64(7);
    communicator.barrier()?;
    say("joined", "");
    loop {
        let algorithm = random.random_range(0..bcasts.len());
        let size = sizes[random.random_range(0..sizes.len())];
        let root = random.random_range(0..communicator.size());
        match random.random_range(0..3) {
            0 => communicator
                .run(&Call::Bcast { data: Data::bytes_mut(&mut data[..size]), root, algorithm: bcasts[algorithm] })
                .map(drop)?,
            1 => communicator.allreduce_in_place(&mut data[..8], Op::SUM_I64)?,
            _ => communicator.run(&Call::Barrier { algorithm: barriers[algorithm % barriers.len()] }).map(drop)?,
        }
    }
}

/// The root ends as soon as its part is done, while rank 2 waits for rank 1, which sleeps.
fn eager() -> Result<(), Failure> {
    let mut communicator = joined()?.communicator;
    let rank = communicator.rank();
    let mut data = if rank == 0 { vec![7; 1000] } else { vec![0; 1000] };
    if rank == 1 {
        std::thread::sleep(Duration::from_millis(300));
    }
    let chain = BcastAlgorithm::from_name("cico-chain").unwrap();
    communicator.run(&Call::Bcast { data: Data::bytes_mut(&mut data), root: 0, algorithm: chain })?;
    assert!(data == [7; 1000]);
    Ok(())
}

/// Rank 1 lives but does not call in time.
fn late() -> Result<(), Failure> {
    let options = Options { timeout: Some(Duration::from_millis(300)), ..Options::default() };
    let mut communicator = join(&mut launched()?, plan, &options)?.communicator;
    if communicator.rank() == 1 {
        std::thread::sleep(Duration::from_secs(1));
    }
    communicator.run(&Call::Barrier { algorithm: BarrierAlgorithm::from_name(&argument()).unwrap() })?;
    Ok(())
}

/// Rank 0 waits in a barrier whose waits name no peer; the others compute.
fn alone() -> Result<(), Failure> {
    let mut communicator = joined()?.communicator;
    say("joined", "");
    if communicator.rank() != 0 {
        std::thread::sleep(Duration::from_secs(4));
    }
    communicator.run(&Call::Barrier { algorithm: BarrierAlgorithm::from_name("central").unwrap() })?;
    Ok(())
}

/// All ranks wait for the last one, and have so many descriptors left.
fn exhausted() -> Result<(), Failure> {
    let mut communicator = joined()?.communicator;
    let mut all = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        all.push(file);
    }
    all.truncate(all.len() - argument().parse::<usize>()?);
    if communicator.rank() + 1 == communicator.size() {
        std::thread::sleep(Duration::from_millis(500));
    }
    communicator.run(&Call::Barrier { algorithm: BarrierAlgorithm::from_name("central").unwrap() })?;
    Ok(())
}

/// Says how many descriptors and maps the process has once it has joined, and the bytes of the segment that exist.
fn start_up() -> Result<(), Failure> {
    let plan = |ranks| Params::new(ranks).with_mailboxes();
    let mut joined = join(&mut launched()?, plan, &Options::default())?;
    let descriptors = std::fs::read_dir("/proc/self/fd")?.count() - 1;
    let maps = std::fs::read_to_string("/proc/self/maps")?.matches("/memfd:unisono").count();
    joined.communicator.barrier()?;
    say("has", format_args!("{descriptors} {maps}"));
    if joined.communicator.rank() == 0 {
        let handle = joined.segment.handle()?;
        let file = std::fs::metadata(format!("/proc/self/fd/{}", handle.fd))?;
        let exists = 512 * std::os::unix::fs::MetadataExt::blocks(&file);
        say("bytes", format_args!("{exists} {} {}", joined.segment.layout().first_bytes(), joined.segment.bytes()));
    }
    Ok(())
}

/// Calls a collective until it fails: an error may come at the next operation.
fn until_it_fails(mut call: impl FnMut() -> Result<(), Error>) -> Result<(), Failure> {
    for _ in 0..1_000_000 {
        call()?;
    }
    Ok(())
}

fn wrong_root() -> Result<(), Failure> {
    let mut communicator = joined()?.communicator;
    communicator.barrier()?;
    let root = if communicator.rank() == 1 { 9 } else { 0 };
    let mut data = [0; 8];
    until_it_fails(|| {
        communicator.bcast(&mut data, root)?;
        communicator.barrier()
    })
}

fn wrong_length() -> Result<(), Failure> {
    let mut communicator = joined()?.communicator;
    let mut data = vec![0; if communicator.rank() == 1 { 16 } else { 8 }];
    until_it_fails(|| {
        communicator.bcast(&mut data, 0)?;
        communicator.barrier()
    })
}

fn other_plan() -> Result<(), Failure> {
    let mut bootstrap = launched()?;
    let lines = if bootstrap.rank() == 1 { 32 } else { 16 };
    let options = Options { params: Some(Params { lines, ..plan(bootstrap.size()) }), ..Options::default() };
    join(&mut bootstrap, plan, &options)?;
    Ok(())
}

/// This process's map of a file, from `/proc/self/smaps`: bytes, bytes in huge pages, and whether the kernel's
/// page size of an area is a huge one.
pub(super) fn smaps(file: Handle) -> (Mapped, bool) {
    let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let device = format!("{:02x}:{:02x}", rustix::fs::major(file.device), rustix::fs::minor(file.device));
    let (mut mapped, mut inside, mut pool) = (Mapped::default(), false, false);
    for line in text.lines() {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let kilobytes = || words[1].parse::<u64>().unwrap() * 1024;
        match words[0] {
            first if !first.ends_with(':') => inside = words[3] == device && words[4] == file.inode.to_string(),
            "KernelPageSize:" if inside => pool |= kilobytes() == HUGE,
            "Rss:" if inside => mapped.bytes += kilobytes(),
            "ShmemPmdMapped:" if inside => mapped.huge += kilobytes(),
            "Shared_Hugetlb:" | "Private_Hugetlb:" if inside => {
                mapped.bytes += kilobytes();
                mapped.huge += kilobytes();
            }
            _ => {}
        }
    }
    (mapped, pool)
}

/// Asks for huge pages and a policy: the report agrees with smaps, and collectives work.
fn huge_pages() -> Result<(), Failure> {
    let log = |line: std::fmt::Arguments<'_>| {
        let text = line.to_string();
        let heaps = text.contains("the heaps");
        say(
            if text.starts_with("mbind") {
                "unbound"
            } else if heaps {
                "heaps"
            } else {
                "log"
            },
            text,
        )
    };
    let options = Options { pages: Pages::Huge, policy: Policy::Preferred, log: Some(log), ..Options::default() };
    let Joined { mut communicator, segment, placement, placements, pages, .. } =
        join(&mut launched()?, Params::new, &options)?;
    let (found, pool) = smaps(segment.handle()?);
    assert_eq!(placement.mapped, Some(found));
    assert_eq!(pages.kind == Kind::Hugetlb, pool);
    assert!(pages.kind != Kind::Hugetlb || found.huge == found.bytes && placement.page == HUGE);
    let sum = |of: fn(&Mapped) -> u64| placements.iter().map(|summary| of(&summary.mapped.unwrap())).sum();
    let all = Mapped { bytes: sum(|mapped| mapped.bytes), huge: sum(|mapped| mapped.huge) };
    assert_eq!(pages.mapped, Some(all));
    assert_eq!(pages.fell_back(), pages.kind == Kind::Ordinary || all.huge < all.bytes);
    assert_eq!(pages.why.is_empty(), pages.kind == Kind::Hugetlb);
    assert_eq!(
        placement.page * placements.iter().map(|summary| summary.checked).sum::<u64>(),
        segment.layout().first_bytes()
    );
    let whole = if pages.kind == Kind::Ordinary { unisono_posix::page() } else { HUGE };
    assert_eq!(segment.layout().params().page, whole);
    segment.populate();
    let mut data = vec![0; 300_000];
    for root in 0..communicator.size() {
        data.fill(if communicator.rank() == root { root as u8 + 1 } else { 0 });
        communicator.bcast(&mut data, root)?;
        assert!(data.iter().all(|&byte| byte == root as u8 + 1));
    }
    say("pages", format_args!("{} {:?} {pages}", pages.fell_back(), pages.kind));
    say("bound", placement.unbound.is_none());
    Ok(())
}

/// Rank 1 asks for other pages.
fn other_pages() -> Result<(), Failure> {
    let mut bootstrap = launched()?;
    let pages = if bootstrap.rank() == 1 { Pages::Huge } else { Pages::Default };
    join(&mut bootstrap, plan, &Options { pages, ..Options::default() })?;
    Ok(())
}

fn absurd() -> Result<(), Failure> {
    let plan = |ranks| Params { queue_slots: 1 << 20, queue_fragment: 1 << 30, ..Params::new(ranks) };
    join(&mut launched()?, plan, &Options::default())?;
    Ok(())
}

pub(super) fn die() -> ! {
    super::kill(std::process::id());
    unreachable!("SIGKILL")
}

/// Rank 2 dies before it sends anything.
fn dies_before() -> Result<(), Failure> {
    if my_rank() == 2 {
        std::thread::sleep(Duration::from_millis(50));
        die();
    }
    joined()?;
    Ok(())
}

/// A bootstrap whose rank dies when it calls its last allgather.
struct Doomed {
    inner: Launched,
    left: Option<u32>,
}

impl Bootstrap for Doomed {
    fn rank(&self) -> Rank {
        self.inner.rank()
    }
    fn size(&self) -> u32 {
        self.inner.size()
    }
    fn allgather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, PosixError> {
        match &mut self.left {
            Some(0) => die(),
            Some(left) => *left -= 1,
            None => {}
        }
        self.inner.allgather(mine)
    }
}

/// Argument: the rank that dies, and at which allgather.
fn dies_at() -> Result<(), Failure> {
    let argument = argument();
    let (victim, step) = argument.split_once(' ').unwrap();
    let inner = launched()?;
    let left = (inner.rank() == victim.parse::<u32>().unwrap()).then(|| step.parse().unwrap());
    let mut communicator = join(&mut Doomed { inner, left }, plan, &Options::default())?.communicator;
    until_it_fails(|| communicator.barrier())
}

fn placed() -> Result<(), Failure> {
    say("pus", binding::affinity()?);
    let joined = joined()?;
    say("placement", &joined.placement);
    say("yields", joined.waiting.yields);
    // Communicators that are made from it say the same.
    let mut world = joined.communicator;
    let dup = world.dup()?;
    let crowded = joined.segment.layout().params().crowded;
    assert_eq!(dup.comm().member().layout().params().crowded, crowded);
    say("crowded", crowded);
    Ok(())
}

/// A bootstrap whose rank moves to another NUMA node as soon as it has told all ranks its own.
struct Astray {
    inner: Launched,
    away: Option<String>,
}

impl Bootstrap for Astray {
    fn rank(&self) -> Rank {
        self.inner.rank()
    }
    fn size(&self) -> u32 {
        self.inner.size()
    }
    fn allgather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, PosixError> {
        let all = self.inner.allgather(mine)?;
        if let Some(how) = self.away.take() {
            let (node, pus) = binding::nodes().swap_remove(0);
            if how == "pus" { binding::bind(&pus)? } else { super::confine_memory(node) }
        }
        Ok(all)
    }
}

/// Rank 1 moves to rank 0's node; argument: its PUs or its memory.
fn astray() -> Result<(), Failure> {
    let inner = launched()?;
    let away = (inner.rank() == 1).then(argument);
    let Joined { placement, placements, .. } = join(&mut Astray { inner, away }, plan, &Options::default())?;
    say("placement", placement);
    say("of-1", placements[1]);
    Ok(())
}

/// A process that a rank starts has the rank's environment, but is not a rank.
fn grandchild() -> Result<(), Failure> {
    let _bootstrap = launched()?;
    let mut command = std::process::Command::new(std::env::current_exe()?);
    let status = command.args(["rank", "--exact", "--ignored"]).env(BODY, "orphan").status()?;
    assert!(status.success());
    Ok(())
}

fn orphan() -> Result<(), Failure> {
    let error = Launched::from_env().expect_err("a grandchild is not a rank");
    assert!(error.to_string().starts_with("UNISONO_BOOTSTRAP_FD is"), "{error}");
    Ok(())
}

/// A launcher that the test kills.
fn launcher() -> Result<(), Failure> {
    let launch = Launch {
        ranks: 3,
        bind: Bind::None,
        program: std::env::current_exe()?.into(),
        args: ["rank", "--exact", "--ignored"].map(Into::into).into(),
        env: vec![(BODY.into(), "endless".into())],
        grace: Duration::from_secs(10),
    };
    let running = launch.spawn()?;
    let pids: Vec<_> = running.pids().iter().map(u32::to_string).collect();
    say("pids", pids.join(" "));
    running.wait()?;
    Ok(())
}

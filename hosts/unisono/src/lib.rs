//! MPI's collective operations for Rust programs: all that a program needs, under one name.
//!
//! | the ranks are | module |
//! |---|---|
//! | threads of this process | [`threads`] |
//! | processes of this machine, which `unisono run` or another launcher starts | [`processes`] |
//! | anything else: memory, messages and waiting are the program's own | [`embed`] |
//!
//! The calls are the same everywhere: those of [`Communicator`]. This crate only re-exports. A runtime that wants fewer
//! dependencies uses `unisono-kernel` (`no_std`, no heap) and only those other crates that it needs.
//!
//! # A sum over ranks
//!
//! ```
//! use unisono::{Error, Op, Params, threads};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // Four ranks, each a thread of this process, run the same body. `run` returns what the bodies return, by rank.
//!     let sums = threads::run(Params::new(4), |mut communicator| {
//!         let mut value = u64::from(communicator.rank() + 1).to_ne_bytes();
//!         communicator.allreduce_in_place(&mut value, Op::SUM_U64)?;
//!         Ok::<_, Error>(u64::from_ne_bytes(value))
//!     })?;
//!     for (rank, sum) in sums.into_iter().enumerate() {
//!         let sum = sum?;
//!         println!("rank {rank} of 4: the sum is {sum}");
//!         assert_eq!(sum, 1 + 2 + 3 + 4);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Blocks of unequal lengths, to a root
//!
//! Rank r sends r + 1 bytes to rank 2, which receives them in the order of ranks (MPI_Gatherv). As in MPI, only the
//! root passes the receive blocks.
//!
//! ```
//! use unisono::{Blocks, Data, Datatype, Error, Params, threads};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! const ROOT: u32 = 2;
//! let received = threads::run(Params::new(3), |mut communicator| {
//!     let rank = communicator.rank();
//!     let mut mine = vec![b'a' + rank as u8; rank as usize + 1];
//!     let mut all = [b'.'; 6];
//!     let (counts, displacements) = ([1, 2, 3], [0, 1, 3]);
//!     let receive = match rank {
//!         ROOT => Some(Blocks::vary_mut(&mut all, &counts, &displacements, Datatype::BYTE)?),
//!         _ => None,
//!     };
//!     communicator.gatherv(Some(Data::bytes_mut(&mut mine)), receive, ROOT)?;
//!     Ok::<_, Error>(all)
//! })?;
//! let received: Vec<_> = received.into_iter().collect::<Result<_, _>>()?;
//! assert_eq!(received, [*b"......", *b"......", *b"abbccc"]);
//! # Ok(())
//! # }
//! ```
//!
//! # Nonblocking operations
//!
//! A [`Scope`] has several operations of a communicator in flight. It ends when all are complete, so that buffers
//! outlive their operations.
//!
//! ```
//! use unisono::{Data, Error, Op, Params, threads};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let results = threads::run(Params::new(2), |mut communicator| {
//!     let rank = communicator.rank();
//!     let (mine, mut largest) = (f64::from(rank).to_ne_bytes(), [0; 8]);
//!     let mut word = if rank == 1 { *b"hello" } else { [0; 5] };
//!     communicator.scope(|scope| {
//!         let first = scope.start_allreduce(&mine, &mut largest, Op::MAX_F64)?;
//!         let second = scope.start_bcast(Data::bytes_mut(&mut word), 1, Default::default())?;
//!         // Work that does not need the results can be done here.
//!         scope.wait(first)?;
//!         scope.wait(second)
//!     })?;
//!     Ok::<_, Error>((f64::from_ne_bytes(largest), word))
//! })?;
//! for result in results {
//!     assert_eq!(result?, (1.0, *b"hello"));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # An error names what was wrong, on every rank
//!
//! ```
//! use unisono::{Params, threads};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let errors = threads::run(Params::new(2), |mut communicator| {
//!     let root = if communicator.rank() == 1 { 7 } else { 0 };
//!     communicator.bcast(&mut [0; 64], root).and_then(|()| communicator.barrier()).unwrap_err().to_string()
//! })?;
//! for error in errors {
//!     assert!(error.contains("root is 7, must be below 2"), "{error}");
//! }
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub use unisono_kernel::Rank;
pub use unisono_kernel::algorithm::{AllreduceAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm};
pub use unisono_kernel::call::Call;
pub use unisono_kernel::call::scope::{Persistent, Request, Scope};
pub use unisono_kernel::comm::Communicator;
pub use unisono_kernel::data::blocks::{Block, Blocks};
pub use unisono_kernel::data::datatype::{Data, Datatype};
pub use unisono_kernel::error::{Error, Refusal};
pub use unisono_kernel::op::{Element, Op, Operation, User, UserFunction};
pub use unisono_kernel::region::Params;

/// Ranks that are threads of this process: the crate `unisono-local`.
pub mod threads {
    pub use unisono_local::{Local, Segment, renew, run, run_on};
}

/// Ranks that are processes of one Linux machine: the crate `unisono-posix`.
///
/// ```no_run
/// use unisono::processes::{Launched, Options, join};
/// use unisono::{Op, Params};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let mut launcher = Launched::from_env()?.ok_or("start me with `unisono run -n RANKS -- ...`")?;
///     let mut joined = join(&mut launcher, Params::new, &Options::default())?;
///     let mut value = u64::from(joined.communicator.rank() + 1).to_ne_bytes();
///     joined.communicator.allreduce_in_place(&mut value, Op::SUM_U64)?;
///     println!("the sum is {}", u64::from_ne_bytes(value));
///     Ok(())
/// }
/// ```
#[cfg(feature = "processes")]
pub mod processes {
    pub use unisono_posix::bootstrap::{Bootstrap, Launched};
    pub use unisono_posix::{
        Allocation, Intracomm, Joined, Options, Pages, Placement, Policy, Posix, PosixError, join,
    };
}

/// For a host of one's own: the traits that a runtime implements for the kernel, and parts that it can reuse.
///
/// Two ranks on the program's own memory, each in its own thread, which waits by yielding:
///
/// ```
/// use unisono::embed::{Layout, Mapped, Only, SpinThen, Transport, Yield, header};
/// use unisono::{Communicator, Op, Params};
///
/// /// This host: memory that is mapped, and threads that yield.
/// enum Mine {}
///
/// impl Transport for Mine {
///     type Region = Mapped;
///     type Wait = SpinThen<Only<Yield>>;
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let layout = Layout::new(Params::new(2))?;
/// // Zeroed memory, aligned to a cache line; between processes it comes from `mmap`.
/// #[derive(Clone, Copy)]
/// #[repr(align(64))]
/// struct Line([u64; 8]);
/// let mut memory = vec![Line([0; 8]); layout.bytes().div_ceil(64) as usize];
/// // SAFETY: the memory outlives both threads, which use it through this view alone.
/// let segment = unsafe { Mapped::new(memory.as_mut_ptr().cast(), layout.bytes()) }?;
/// header::create(&segment, &layout);
/// std::thread::scope(|scope| {
///     for rank in 0..2 {
///         let segment = segment.clone();
///         scope.spawn(move || {
///             // A member checks that the segment has the layout that it expects.
///             header::attach_expecting(&segment, layout.bytes(), &layout).expect("this layout");
///             let wait = SpinThen::crowded(Only::default());
///             let mut communicator = Communicator::<Mine>::new(segment, layout, rank, wait).expect("a rank");
///             let mut value = u64::from(rank + 1).to_ne_bytes();
///             communicator.allreduce_in_place(&mut value, Op::SUM_U64).expect("both take part");
///             assert_eq!(u64::from_ne_bytes(value), 3);
///         });
///     }
/// });
/// # Ok(())
/// # }
/// ```
pub mod embed {
    pub use unisono_kernel::comm::{Comm, Member};
    pub use unisono_kernel::data::buffer::Buf;
    pub use unisono_kernel::error::{PollError, WaitError};
    pub use unisono_kernel::machine::p2p::{P2p, P2pError, Tag};
    pub use unisono_kernel::machine::poll::{Await, Poll, Slot, Source, WaitSet};
    pub use unisono_kernel::machine::transport::{Messages, Observe, Shared, Transport, Wait};
    pub use unisono_kernel::machine::wait::relax::{Loop, RelaxStrategy, Spin, Yield};
    pub use unisono_kernel::machine::wait::{Bound, Only, Relax, SpinThen};
    pub use unisono_kernel::machine::{Machine, Operation};
    pub use unisono_kernel::region::{Layout, Loan, Region, Unreadable, header};
    pub use unisono_kernel::table::Choices;
    pub use unisono_shm::{Lenders, Mailbox, Mapped};
}

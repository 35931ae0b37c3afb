//! A simulator: all ranks in one thread, on virtual time, with LogGP links, a star, a crossbar or a fat tree, seeded
//! schedules, and ranks that stop.
//!
//! It runs the kernel's machines as they are; only time is simulated (docs/explanation/simulator.md). In [`segment`] ranks share
//! memory, and are threads of which one runs at a time.
//!
//! ```
//! use unisono_kernel::data::buffer::Buf;
//! use unisono_kernel::msg::bcast::binomial::Binomial;
//! use unisono_sim::{Network, Placement, Schedule, Topology, World};
//!
//! let mut data = [[7u8; 8], [0; 8], [0; 8]];
//! let world = World::new(Network::new(Topology::Crossbar), Placement::blocks(3, 3)?, Schedule::default())?;
//! let mut ranks = Vec::new();
//! for ((rank, end), bytes) in (0..).zip(world.endpoints()).zip(&mut data) {
//!     // SAFETY: `data` outlives the run.
//!     ranks.push((end, unsafe { Binomial::new(rank, 3, Buf::of_mut(bytes), 0, 1) }?));
//! }
//! let outcome = world.run(&mut ranks);
//! // Rank 0 posts both sends at once. The last rank is done after twice o_s, then 7·G, L and o_r of the second one;
//! // the first message's bytes leave during the second o_s.
//! assert_eq!(outcome.last()?.ns(), 2.0 * 200.0 + 0.56 + 1000.0 + 200.0);
//! assert_eq!(data, [[7; 8]; 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calendar;
mod endpoint;
mod fabric;
mod net;
mod network;
mod outcome;
mod placement;
mod schedule;
pub mod segment;
mod time;
mod world;

pub use endpoint::{Endpoint, NO_SUCH_RANK, NO_SUCH_SLOT};
pub use network::{Class, Link, Network, Nics, Topology, Unfit};
pub use outcome::{Count, Fate, Outcome, Stuck, Traffic};
pub use placement::Placement;
pub use schedule::{Dropped, Schedule};
pub use time::Time;
pub use world::World;

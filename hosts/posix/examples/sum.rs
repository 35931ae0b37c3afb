//! The smallest program between processes: each rank brings its number, and every rank gets the sum.

use unisono_kernel::op::Op;
use unisono_kernel::region::Params;
use unisono_posix::bootstrap::Launched;
use unisono_posix::{Options, join};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut launcher = Launched::from_env()?.ok_or("start me with `unisono run -n RANKS -- ...`")?;
    let mut joined = join(&mut launcher, Params::new, &Options::default())?;
    let communicator = &mut joined.communicator;

    let mut value = u64::from(communicator.rank() + 1).to_ne_bytes();
    communicator.allreduce_in_place(&mut value, Op::SUM_U64)?;
    let sum = u64::from_ne_bytes(value);
    println!("rank {} of {}: the sum is {sum}", communicator.rank(), communicator.size());
    Ok(())
}

//! `unisono run`: N copies of a program.

use crate::args::Run;
use crate::error::Failure;
use crate::team;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_posix::timeout::TIMEOUT;

pub(crate) fn run(args: Run) -> Result<(), Failure> {
    Refusal::check(Argument::Ranks, args.ranks.into(), Bound::AtLeast(1))?;
    let mut words = args.program.into_iter();
    let program = words.next().ok_or_else(|| Failure::Words("run: no program given".into()))?;
    let bound = args.timeout.map(|seconds| (TIMEOUT.into(), seconds.into()));
    let env = args.memory.variables().into_iter().chain(bound).collect();
    team::start(args.ranks, args.bind, program, words.collect(), env)
}

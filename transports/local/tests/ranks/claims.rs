//! A process claims what it writes next when it begins to wait, not only when its operation ends.

use std::cell::RefCell;
use unisono_kernel::algorithm::BcastAlgorithm;
use unisono_kernel::call::Call;
use unisono_kernel::comm::Comm;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::error::WaitError;
use unisono_kernel::machine::Operation;
use unisono_kernel::machine::drive::{Stop, run};
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::machine::transport::{Observe, Wait};
use unisono_kernel::region::{Extent, Params, Region};
use unisono_local::Segment;

/// A view of a segment that takes note of what is claimed.
struct Claims<'a> {
    segment: Segment,
    claimed: &'a RefCell<Vec<Extent>>,
}

// SAFETY: forwards to an implementation that keeps the contract.
unsafe impl Region for Claims<'_> {
    unisono_kernel::forward_region!(Segment, |this| &this.segment; own claims);

    fn claim(&self, at: Extent) {
        self.claimed.borrow_mut().push(at);
    }
}

/// Takes note of what is claimed before the first wait, and gives up.
struct First<'a> {
    claimed: &'a RefCell<Vec<Extent>>,
    seen: Vec<Extent>,
}

impl<X: Observe + ?Sized> Wait<X> for First<'_> {
    fn wait(&mut self, _: &mut X, _: &WaitSet) -> Result<(), WaitError> {
        self.seen = self.claimed.borrow().clone();
        Err(WaitError::Abandoned)
    }
}

#[test]
fn are_made_before_a_process_waits() {
    let segment = Segment::new(Params::new(2)).unwrap();
    let layout = *segment.layout();
    let claimed = RefCell::new(Vec::new());
    let mut comm = Comm::new(Claims { segment, claimed: &claimed }, layout, 1).unwrap();
    let mut data = [0; 8];
    let call = Call::Bcast { data: Data::bytes_mut(&mut data), root: 0, algorithm: BcastAlgorithm::Auto };
    let mut machine = call.build(comm.member()).unwrap().started(comm.member_mut());
    let mut wait = First { claimed: &claimed, seen: Vec::new() };
    let ended = run(&mut machine, &mut comm, &mut wait);
    assert!(matches!(ended, Err(Stop::Wait(WaitError::Abandoned))), "the root has not come: {ended:?}");
    let next = layout.line_body(1, 2, u64::MAX);
    assert!(wait.seen.contains(&next), "the line of its next operation: {:?}", wait.seen);
}

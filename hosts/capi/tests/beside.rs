//! A request is tested by one thread while another one waits in a blocking call on the same communicator.

use core::ptr::null_mut;
use std::alloc::{Layout, alloc_zeroed};
use std::time::{Duration, Instant};
use unisono_c::comm::{Handle, unisono_attach, unisono_create, unisono_free};
use unisono_c::error::UNISONO_OK;
use unisono_c::moves::{unisono_barrier, unisono_ibarrier};
use unisono_c::params::{CParams, unisono_bytes, unisono_params_init};
use unisono_c::request::{Request, test_beside_calls, unisono_wait};

/// The address of a communicator, for another thread.
#[derive(Clone, Copy)]
struct Of(*mut Handle);

// SAFETY: a communicator may be used by any thread.
unsafe impl Send for Of {}

impl Of {
    fn get(self) -> *mut Handle {
        self.0
    }
}

#[test]
fn a_request_is_seen_complete_while_a_call_waits() {
    let mut params = CParams { size: 0, ranks: 0, page: 0, queue_fragment: 0, queue_slots: 0, lines: 0 };
    // SAFETY: a struct of this version.
    assert_eq!(unsafe { unisono_params_init(&raw mut params, size_of::<CParams>(), 2) }, UNISONO_OK);
    let mut bytes = 0;
    // SAFETY: as above.
    assert_eq!(unsafe { unisono_bytes(&raw const params, &raw mut bytes) }, UNISONO_OK);
    let bytes = usize::try_from(bytes).expect("a number of bytes");
    // SAFETY: not of no bytes. It is never freed: a thread may still run if the test fails.
    let memory = unsafe { alloc_zeroed(Layout::from_size_align(bytes, 4096).expect("a layout")) }.cast();
    // SAFETY: zeroed, ours, and used through the library alone.
    assert_eq!(unsafe { unisono_create(memory, bytes, &raw const params) }, UNISONO_OK);
    let [first, second] = [0, 1].map(|rank| {
        let mut comm = null_mut();
        // SAFETY: as above; each rank is attached once.
        assert_eq!(unsafe { unisono_attach(memory, bytes, rank, &raw mut comm) }, UNISONO_OK);
        comm
    });
    let start = |comm| {
        let mut request: *mut Request = null_mut();
        // SAFETY: a communicator that was attached.
        assert_eq!(unsafe { unisono_ibarrier(comm, &raw mut request) }, UNISONO_OK);
        request
    };
    let (mut mine, mut theirs) = (start(first), start(second));
    // SAFETY: its request.
    assert_eq!(unsafe { unisono_wait(&raw mut theirs) }, UNISONO_OK);
    let of = Of(first);
    // SAFETY: it was attached, and is freed below.
    let waits = std::thread::spawn(move || unsafe { unisono_barrier(of.get()) });
    let until = Instant::now() + Duration::from_secs(20);
    // By now it has the communicator; if not, the test below is of less.
    std::thread::sleep(Duration::from_millis(50));
    while {
        // SAFETY: this thread alone tests the request.
        let complete = unsafe { test_beside_calls(&raw mut mine) }.expect("it does not fail");
        !complete && Instant::now() < until
    } {}
    assert!(!waits.is_finished(), "the call waits for the other rank");
    assert!(Instant::now() < until, "it is complete for the thread that tests");
    // SAFETY: it was attached.
    assert_eq!(unsafe { unisono_barrier(second) }, UNISONO_OK);
    assert_eq!(waits.join().expect("it ends"), UNISONO_OK);
    // SAFETY: as above.
    assert!(unsafe { test_beside_calls(&raw mut mine) }.expect("it does not fail") && mine.is_null());
    for comm in [first, second] {
        // SAFETY: attached, and not used any more.
        assert_eq!(unsafe { unisono_free(comm) }, UNISONO_OK);
    }
}

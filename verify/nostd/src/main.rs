//! A program without a standard library, an allocator or a C library, that runs the kernel.
//!
//! Memory is a static array; the program's only thread polls two ranks in turn. The exit
//! status is 0 on success, 1 to 99 for the step that failed, 101 after a panic.
#![no_std]
#![no_main]

mod entry;

use core::cell::UnsafeCell;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::comm::{Comm, Member};
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::Refusal;
use unisono_kernel::machine::{Machine, Operation};
use unisono_kernel::op::Op;
use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::region::{Layout, Params, header, Cico};
use unisono_kernel::algorithm::{BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::shm::reduce::posted::Posted;
use unisono_kernel::machine::poll::Poll;
use unisono_shm::Mapped;

const ROOM: usize = 64 << 10;

/// The segment.
#[repr(C, align(4096))]
struct Arena(UnsafeCell<[u8; ROOM]>);

// SAFETY: the program has one thread.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(UnsafeCell::new([0; ROOM]));

/// The step that went wrong.
type Failure = u8;

type Ranks = [Comm<Mapped>; 2];

/// Makes each rank's machine, then polls both in turn until both are done.
fn together<O: Operation>(
    ranks: &mut Ranks,
    failure: Failure,
    mut build: impl FnMut(&Member, usize) -> Result<O, Refusal>,
) -> Result<(), Failure> {
    let [a, b] = ranks;
    let mut first = build(a.member(), 0).map_err(|_| failure)?.started(a.member_mut());
    let mut second = build(b.member(), 1).map_err(|_| failure)?.started(b.member_mut());
    for _ in 0..10_000 {
        let done = [first.poll(a), second.poll(b)];
        if done == [Ok(Poll::Done), Ok(Poll::Done)] {
            return Ok(());
        }
        if done.iter().any(Result::is_err) {
            return Err(failure + 1);
        }
    }
    Err(failure + 2)
}

/// Broadcasts `BYTES` bytes from each rank.
fn bcast<const BYTES: usize>(ranks: &mut Ranks, failure: Failure, algorithm: BcastAlgorithm) -> Result<(), Failure> {
    for root in 0..2u8 {
        let pattern: [u8; BYTES] = core::array::from_fn(|i| (i * 7 + i / 255) as u8 ^ root);
        let mut buffers = [[0; BYTES]; 2];
        buffers[usize::from(root)] = pattern;
        let base: [*mut u8; 2] = buffers.each_mut().map(|buffer| buffer.as_mut_ptr());
        together(ranks, failure, |me, rank| {
            let buf = Buf::new(base[rank], BYTES);
            // SAFETY: each rank's own buffer, which outlives the machines.
            let data = unsafe { Data::from_raw(buf, BYTES as u64, Datatype::BYTE) }?;
            Call::Bcast { data, root: root.into(), algorithm }.build(me)
        })?;
        if buffers != [pattern; 2] {
            return Err(failure + 3);
        }
    }
    Ok(())
}

fn allreduce(ranks: &mut Ranks, failure: Failure) -> Result<(), Failure> {
    let mut values = [[1.5f64, -2.0, 1e9], [0.25, 7.0, 1.0]];
    let base: [*mut u8; 2] = values.each_mut().map(|v| v.as_mut_ptr().cast());
    together(ranks, failure, |me, rank| {
        // SAFETY: each rank's own values, which outlive the machines.
        let data = unsafe { Data::from_raw(Buf::new(base[rank], 24), 24, Datatype::BYTE) }?;
        Posted::to_all(me, data, data, Op::SUM_F64)
    })?;
    if values == [[1.75, 5.0, 1e9 + 1.0]; 2] { Ok(()) } else { Err(failure + 3) }
}

/// Runs all steps; called by the entry.
fn main() -> Result<(), Failure> {
    let cico = Some(Cico { slots: 4, fragment: 64, sets: 2 });
    let params = Params { queue_slots: 4, queue_fragment: 256, page: 256, cico, ..Params::new(2) };
    let layout = Layout::new(params).map_err(|_| 1)?;
    // SAFETY: the array is zeroed, lives for ever, and is accessed through this view and its copies alone.
    let region = unsafe { Mapped::new(ARENA.0.get().cast(), ROOM as u64) }.map_err(|_| 2)?;
    header::create(&region, &layout);
    let found = header::attach(&region, ROOM as u64).map_err(|_| 3)?;
    let comm = |rank| Comm::new(region.clone(), found, rank).map_err(|_| 4);
    let mut ranks = [comm(0)?, comm(1)?];

    // Many times, so that lines, slots and sets are reused.
    for _ in 0..20 {
        bcast::<0>(&mut ranks, 10, BcastAlgorithm::Posted)?;
        bcast::<8>(&mut ranks, 10, BcastAlgorithm::Posted)?;
        bcast::<112>(&mut ranks, 14, BcastAlgorithm::Auto)?;
        bcast::<3000>(&mut ranks, 18, BcastAlgorithm::Queue)?;
        bcast::<1000>(&mut ranks, 22, BcastAlgorithm::Cico(Tree::BINARY))?;
        together(&mut ranks, 26, |me, _| Call::Barrier { algorithm: BarrierAlgorithm::Dissemination }.build(me))?;
        together(&mut ranks, 30, |me, _| Call::Barrier { algorithm: BarrierAlgorithm::Central }.build(me))?;
        together(&mut ranks, 34, |me, _| Call::Barrier { algorithm: BarrierAlgorithm::Combining(2) }.build(me))?;
        allreduce(&mut ranks, 38)?;
    }
    Ok(())
}

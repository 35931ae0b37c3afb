//! The time of a copy on this machine: one copy in memory, two through slots, and one across address spaces (CMA).
//!
//! Every core copies at once, from and to buffers that rotate over more than the caches.

use crate::args::Copies;
use crate::error::Failure;
use crate::out::outln;
use crate::stats::median;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// Bytes over which the sources rotate, and the destinations, too.
const ROTATED: usize = 64 << 20;
/// Bytes of a slot, and of the slots that are used in turn: a process's queue.
const SLOT: usize = 32 << 10;
const QUEUE: usize = 512 << 10;

/// A way to copy.
#[derive(Clone, Copy)]
enum Path {
    Memory,
    Slots,
    Across,
}

/// A thread's buffers.
struct Buffers {
    from: Vec<u8>,
    to: Vec<u8>,
    queue: Vec<u8>,
}

impl Buffers {
    fn new() -> Self {
        Self { from: vec![1; ROTATED], to: vec![2; ROTATED], queue: vec![3; QUEUE] }
    }

    /// Copies the bytes `at .. at + len`.
    fn copy(&mut self, way: Path, at: usize, len: usize) -> Result<(), Failure> {
        let (from, to) = (&self.from[at..at + len], &mut self.to[at..at + len]);
        match way {
            Path::Memory => to.copy_from_slice(from),
            Path::Slots => {
                for ((from, to), slot) in from.chunks(SLOT).zip(to.chunks_mut(SLOT)).zip((0..QUEUE / SLOT).cycle()) {
                    let slot = &mut self.queue[slot * SLOT..][..from.len()];
                    slot.copy_from_slice(from);
                    to.copy_from_slice(std::hint::black_box(slot));
                }
            }
            Path::Across => across(from, to)?,
        }
        std::hint::black_box(to);
        Ok(())
    }
}

/// One call of `process_vm_readv`, on this process itself: the kernel does the same as for another process.
fn across(from: &[u8], to: &mut [u8]) -> Result<(), Failure> {
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let remote = libc::iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: from.len() };
    let pid = std::process::id().cast_signed();
    // SAFETY: one vector each; the kernel writes `to.len()` bytes of `to`, which is exclusive, and only reads `from`.
    let copied = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    if usize::try_from(copied) == Ok(to.len()) {
        return Ok(());
    }
    Err(Failure::Words(format!(
        "process_vm_readv copied {copied} of {} bytes: {}",
        to.len(),
        std::io::Error::last_os_error()
    )))
}

/// Microseconds of one copy, of `cores` threads at once: the median of some rounds of all threads.
fn time(way: Path, len: usize, cores: usize) -> Result<f64, Failure> {
    const ROUNDS: usize = 7;
    let barrier = Barrier::new(cores);
    let one = || -> Result<Vec<f64>, Failure> {
        let mut buffers = Buffers::new();
        let copies = (ROTATED / len).clamp(1, 4096);
        (0..ROUNDS)
            .map(|_| {
                barrier.wait();
                let begin = Instant::now();
                (0..copies).try_for_each(|k| buffers.copy(way, k * len % (ROTATED - len + 1), len))?;
                Ok(begin.elapsed().as_secs_f64() * 1e6 / copies as f64)
            })
            .collect()
    };
    let all: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Ok(Vec::new()))).collect()
    });
    let times = all.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    median(times).ok_or_else(|| Failure::Words("a thread ended early".into()))
}

/// Measures and prints a line per length.
pub(crate) fn run(args: &Copies) -> Result<String, Failure> {
    let cores = args.cores.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
    outln!(
        "{cores} cores at once, µs: a copy; two, through slots of 32 KiB; one across address spaces (process_vm_readv)"
    )?;
    outln!("{:>10} {:>10} {:>10} {:>10} {:>14}", "bytes", "one", "two", "across", "across ÷ two")?;
    for &bytes in &args.bytes {
        let len = usize::try_from(bytes).unwrap_or(usize::MAX).clamp(1, ROTATED);
        let times = [Path::Memory, Path::Slots, Path::Across].map(|way| time(way, len, cores));
        let [one, two, across] = times.into_iter().collect::<Result<Vec<_>, _>>()?.try_into().unwrap_or([0.0; 3]);
        outln!("{len:>10} {one:>10.2} {two:>10.2} {across:>10.2} {:>14.2}", across / two)?;
    }
    Ok(format!("copies: {} lengths", args.bytes.len()))
}

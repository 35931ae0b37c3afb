//! The heat equation on a square plate, its rows spread over ranks.
//!
//! One edge is kept at 1, the others at 0. In each step a point changes by a fifth of the difference to each of its
//! four neighbours (explicit Euler). Ranks exchange their outermost rows with their neighbours in one alltoallv, whose
//! other blocks are empty. An allreduce finds the largest change: the plate is at rest when that is small. Rank 0
//! gathers the plate and compares it with a sequential run, bit by bit.

mod shared;

use shared::{Failure, bytes, number, rows, split};
use std::process::ExitCode;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::op::Op;
use unisono_posix::Posix;

const USAGE: &str = "usage: unisono run -n RANKS -- heat [POINTS [STEPS]]
  POINTS  inner points along an edge, one for each rank at least; default 64
  STEPS   most steps; default 5000";

/// The part of a difference by which a point changes in a step; the scheme is stable up to 1/4.
const RATE: f64 = 0.2;
/// The largest change of a plate at rest.
const REST: f64 = 1e-5;

fn main() -> ExitCode {
    let Some(words) = shared::words(2, USAGE) else { return ExitCode::FAILURE };
    shared::run("heat", |comm| heat(comm, number(&words, 0, 64)?, number(&words, 1, 5000)?))
}

fn heat(comm: &mut Communicator<Posix>, points: usize, steps: usize) -> Result<(), Failure> {
    let (rank, size) = (comm.rank(), comm.size());
    if points < size as usize {
        return Err(format!("{points} rows for {size} ranks").into());
    }
    let (counts, first) = split(points, size);
    let mut plate = Plate::new(points, first[rank as usize] as usize, counts[rank as usize] as usize);
    let (done, change) = plate.run(steps, |plate, change| {
        let mut largest = [change];
        comm.allreduce_in_place(bytes(&mut largest), Op::MAX_F64)?;
        plate.exchange(comm)?;
        Ok(largest[0])
    })?;

    // Rank 0 gathers the whole plate, without its edges.
    let width = plate.width;
    let mut whole = vec![0.0; if rank == 0 { points * width } else { 0 }];
    let receive = if rank == 0 { Some(rows(&mut whole, width, &counts, &first)?) } else { None };
    comm.gatherv(Some(Data::bytes_mut(bytes(plate.inner()))), receive, 0)?;
    if rank != 0 {
        return Ok(());
    }
    let centre = whole[points / 2 * width + width / 2];
    println!("{points} x {points} points on {size} ranks: {done} steps, last change {change:.2e}, centre {centre:.6}");
    let mut alone = Plate::new(points, 0, points);
    if alone.run(steps, |_, change| Ok(change))? != (done, change) || alone.inner() != whole {
        return Err("the sequential run gives another plate".into());
    }
    println!("the sequential run gives the same plate, bit by bit");
    Ok(())
}

/// Some rows of the plate, with a row of the neighbours above and below, and an edge point left and right.
struct Plate {
    width: usize,
    rows: usize,
    now: Vec<f64>,
    next: Vec<f64>,
}

impl Plate {
    /// `rows` inner rows from row `first` on.
    fn new(points: usize, first: usize, rows: usize) -> Self {
        let width = points + 2;
        let mut now = vec![0.0; (rows + 2) * width];
        if first == 0 {
            now[..width].fill(1.0);
        }
        Self { width, rows, next: now.clone(), now }
    }

    /// The inner rows, without those of neighbours.
    fn inner(&mut self) -> &mut [f64] {
        &mut self.now[self.width..(self.rows + 1) * self.width]
    }

    /// Steps until rest; returns the number of steps and the last change. `agree` takes this part's largest change, and
    /// returns the largest of all ranks.
    fn run(
        &mut self,
        steps: usize,
        mut agree: impl FnMut(&mut Self, f64) -> Result<f64, Failure>,
    ) -> Result<(usize, f64), Failure> {
        let mut last = 0.0;
        for step in 1..=steps {
            let change = self.step();
            last = agree(self, change)?;
            if last < REST {
                return Ok((step, last));
            }
        }
        Ok((steps, last))
    }

    /// Makes one step; returns the largest change of a point.
    fn step(&mut self) -> f64 {
        let width = self.width;
        let mut largest: f64 = 0.0;
        for row in 1..=self.rows {
            for at in row * width + 1..(row + 1) * width - 1 {
                let around = self.now[at - width] + self.now[at - 1] + self.now[at + 1] + self.now[at + width];
                let change = RATE * (around - 4.0 * self.now[at]);
                self.next[at] = self.now[at] + change;
                largest = largest.max(change.abs());
            }
        }
        // The edges never change: they are the same in both.
        let (above, below) = (0..width, (self.rows + 1) * width..(self.rows + 2) * width);
        for edge in [above, below] {
            self.next[edge.clone()].copy_from_slice(&self.now[edge]);
        }
        std::mem::swap(&mut self.now, &mut self.next);
        largest
    }

    /// Sends the outermost inner rows to the neighbours, and receives theirs.
    fn exchange(&mut self, comm: &mut Communicator<Posix>) -> Result<(), Failure> {
        let (rank, size) = (comm.rank() as usize, comm.size() as usize);
        let mut counts = vec![0; size];
        let (mut give, mut take) = (vec![0; size], vec![0; size]);
        if rank > 0 {
            (counts[rank - 1], give[rank - 1], take[rank - 1]) = (1, 1, 0);
        }
        if rank + 1 < size {
            (counts[rank + 1], give[rank + 1], take[rank + 1]) = (1, self.rows as u64, self.rows as u64 + 1);
        }
        let row = Datatype::Contiguous { bytes: 8 * self.width as u64 };
        let memory = Buf::of_mut(bytes(&mut self.now));
        // SAFETY: nothing else uses the plate until the call ends; inner rows are only read.
        let send = unsafe { Blocks::vary(memory, &counts, &give, row) }?;
        // SAFETY: as above; the rows of the neighbours are written, which are not inner rows.
        let receive = unsafe { Blocks::vary(memory, &counts, &take, row) }?;
        comm.alltoallv(Some(send), receive)?;
        Ok(())
    }
}

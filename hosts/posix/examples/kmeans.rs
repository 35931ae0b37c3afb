//! K-means clusters of the rows of a CSV file, the rows spread over ranks.
//!
//! Rank 0 reads and scatters the rows. In each round, every rank assigns its rows to the nearest centre and
//! sums them up; one allreduce of the sums makes the next centres, the same bits on all ranks.
//! The result is gathered and compared with a sequential run.
//!
//! The file by default is `iris.csv`: R. A. Fisher's 150 irises (1936), as scikit-learn 1.9.1 ships
//! them (`sklearn/datasets/data/iris.csv`, unchanged): a head line, then four lengths in cm and the species.

mod shared;

use shared::{Failure, bytes, number, rows, split};
use std::process::ExitCode;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::op::Op;
use unisono_posix::Posix;

const USAGE: &str = "usage: unisono run -n RANKS -- kmeans [CLUSTERS [FILE.csv]]
  CLUSTERS  number of clusters; default 3
  FILE.csv  numbers separated by commas; the last column is a label; default: Fisher's irises";

const IRIS: &str = include_str!("iris.csv");
const ROUNDS: usize = 1000;

fn main() -> ExitCode {
    let Some(words) = shared::words(2, USAGE) else { return ExitCode::FAILURE };
    shared::run("kmeans", |comm| kmeans(comm, number(&words, 0, 3)?, words.get(1)))
}

/// Rows of numbers, one after the other, and a label for each row.
struct Table {
    columns: usize,
    values: Vec<f64>,
    labels: Vec<f64>,
}

impl Table {
    /// Reads numbers separated by commas; a first line with anything else in it is skipped.
    fn read(text: &str) -> Result<Self, Failure> {
        let mut table = Self { columns: 0, values: Vec::new(), labels: Vec::new() };
        for (at, line) in text.lines().enumerate() {
            let row: Result<Vec<f64>, _> = line.split(',').map(|word| word.trim().parse()).collect();
            let row = match row {
                Err(_) if at == 0 => continue,
                row => row.map_err(|e| format!("line {}: {e}", at + 1))?,
            };
            let [features @ .., label] = row.as_slice() else { continue };
            if table.columns != 0 && table.columns != features.len() {
                return Err(format!("line {}: {} columns, not {}", at + 1, row.len(), table.columns + 1).into());
            }
            table.columns = features.len();
            table.values.extend(features);
            table.labels.push(*label);
        }
        if table.columns == 0 { Err("no rows of two columns or more".into()) } else { Ok(table) }
    }
}

fn kmeans(comm: &mut Communicator<Posix>, clusters: usize, file: Option<&String>) -> Result<(), Failure> {
    let (rank, size) = (comm.rank(), comm.size());
    let mut table = None;
    let mut shape = [0.0; 2];
    if rank == 0 {
        let text = file.map(std::fs::read_to_string).transpose().map_err(|e| format!("the file: {e}"))?;
        let read = Table::read(text.as_deref().unwrap_or(IRIS))?;
        shape = [read.labels.len() as f64, read.columns as f64];
        table = Some(read);
    }
    comm.bcast(bytes(&mut shape), 0)?;
    let [count, columns] = shape.map(|n| n as usize);
    if clusters == 0 || clusters > count {
        return Err(format!("{clusters} clusters of {count} rows").into());
    }

    // Every rank gets its rows, and the first centres: rows at equal distances.
    let (counts, first) = split(count, size);
    let mut mine = vec![0.0; counts[rank as usize] as usize * columns];
    let mut centres = vec![0.0; clusters * columns];
    let send = match &mut table {
        Some(Table { values, .. }) => {
            centres = start(values, columns, clusters);
            Some(rows(values, columns, &counts, &first)?)
        }
        None => None,
    };
    comm.scatterv(send, Some(Data::bytes_mut(bytes(&mut mine))), 0)?;
    comm.bcast(bytes(&mut centres), 0)?;

    let allreduce = |sums: &mut [f64]| comm.allreduce_in_place(bytes(sums), Op::SUM_F64).map_err(Failure::from);
    let (mut nearest, rounds) = cluster(&mine, columns, &mut centres, allreduce)?;

    // Rank 0 gathers all assignments.
    let mut all = vec![0.0; if rank == 0 { count } else { 0 }];
    let receive = if rank == 0 { Some(rows(&mut all, 1, &counts, &first)?) } else { None };
    comm.gatherv(Some(Data::bytes_mut(bytes(&mut nearest))), receive, 0)?;
    let Some(table) = table else { return Ok(()) };
    report(&table, &centres, &all, rounds);
    check(&table, &centres, &all)
}

/// The first centres.
fn start(values: &[f64], columns: usize, clusters: usize) -> Vec<f64> {
    let count = values.len() / columns;
    (0..clusters).flat_map(|c| &values[c * count / clusters * columns..][..columns]).copied().collect()
}

/// Rounds until no row changes its cluster; returns each row's cluster and the number of rounds. `sum` adds up the sums
/// of all ranks.
fn cluster(
    values: &[f64],
    columns: usize,
    centres: &mut [f64],
    mut sum: impl FnMut(&mut [f64]) -> Result<(), Failure>,
) -> Result<(Vec<f64>, usize), Failure> {
    let mut nearest = vec![-1.0; values.len() / columns];
    for round in 1..=ROUNDS {
        // For each cluster the sum of its rows and their number; at the end the number of rows that have changed.
        let mut sums = vec![0.0; centres.len() / columns * (columns + 1) + 1];
        for (row, nearest) in values.chunks(columns).zip(&mut nearest) {
            let distance = |centre: &[f64]| centre.iter().zip(row).map(|(c, x)| (c - x) * (c - x)).sum::<f64>();
            let distances = centres.chunks(columns).map(distance).enumerate();
            let best = distances.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(cluster, _)| cluster);
            let of = &mut sums[best * (columns + 1)..][..=columns];
            of.iter_mut().zip(row.iter().chain(&[1.0])).for_each(|(sum, x)| *sum += x);
            if *nearest != best as f64 {
                *nearest = best as f64;
                *sums.last_mut().ok_or("no room")? += 1.0;
            }
        }
        sum(&mut sums)?;
        for (centre, of) in centres.chunks_mut(columns).zip(sums.chunks(columns + 1)) {
            // A cluster that has lost all its rows stays where it was.
            if of[columns] > 0.0 {
                centre.iter_mut().zip(of).for_each(|(c, sum)| *c = sum / of[columns]);
            }
        }
        if sums.last() == Some(&0.0) {
            return Ok((nearest, round));
        }
    }
    Err(format!("rows still change their cluster after {ROUNDS} rounds").into())
}

fn report(table: &Table, centres: &[f64], nearest: &[f64], rounds: usize) {
    println!("{} rows of {} columns, {rounds} rounds", table.labels.len(), table.columns);
    let mut labels = table.labels.clone();
    labels.sort_by(f64::total_cmp);
    labels.dedup();
    for (cluster, centre) in centres.chunks(table.columns).enumerate() {
        let mine: Vec<f64> =
            table.labels.iter().zip(nearest).filter(|(_, c)| **c == cluster as f64).map(|(label, _)| *label).collect();
        let of = |label: &f64| mine.iter().filter(|l| *l == label).count();
        // Many labels are numbers, not classes: only the first ten are counted.
        let found: Vec<_> = labels.iter().take(10).map(|l| format!("{} of label {l}", of(l))).collect();
        println!("cluster {cluster}: {} rows, centre {centre:.3?}: {}", mine.len(), found.join(", "));
    }
}

/// Compares with a sequential run.
fn check(table: &Table, centres: &[f64], nearest: &[f64]) -> Result<(), Failure> {
    let mut alone = start(&table.values, table.columns, centres.len() / table.columns);
    let (right, _) = cluster(&table.values, table.columns, &mut alone, |_| Ok(()))?;
    // Sums in another order differ in their last bits.
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
    if right != nearest || !centres.iter().zip(&alone).all(close) {
        return Err("the sequential run gives other clusters".into());
    }
    println!("the sequential run gives the same clusters");
    Ok(())
}

//! `unisono demo`: real processes, real data, under a minute.

use crate::args::{self, Collective, Method};
use crate::bench::{self, Calls, Contender, Floors, Plan, Subject, Table};
use crate::error::Failure;
use crate::form::Form;
use crate::out::{out, outln};
use crate::progress::progress;
use crate::team::Team;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::time::Instant;
use unisono_kernel::algorithm::BcastAlgorithm;
use unisono_kernel::call::Call;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::region::Params;
use unisono_posix::Joined;
use unisono_posix::topology::Topology;

/// Sizes of the latency table, 8 B to 4 MiB.
const SIZES: [u64; 7] = [8, 64, 1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20];

/// What a rank reports about itself.
#[derive(Debug, Deserialize, Serialize)]
struct Report {
    pid: u32,
    pus: Vec<u32>,
    placement: String,
}

pub(crate) fn work(team: &mut Team, args: &args::Demo) -> Result<(), Failure> {
    let speaker = team.rank() == 0;
    let mut joined = team.join(Params::new(team.size()).with_cico())?;
    introduce(team, &joined)?;
    broadcast_file(team, &mut joined, args)?;
    measure(team, &mut joined)?;
    if speaker {
        outln!("demo: done")?;
    }
    Ok(())
}

fn introduce(team: &mut Team, joined: &Joined) -> Result<(), Failure> {
    let report = Report {
        pid: std::process::id(),
        pus: unisono_posix::binding::affinity()?.iter().collect(),
        placement: joined.placement.to_string(),
    };
    let reports = team.gather(&report)?;
    if team.rank() > 0 {
        return Ok(());
    }
    outln!("Topology\n{}", Topology::read())?;
    let layout = joined.communicator.comm().member().layout();
    outln!(
        "Segment: {}; of which {} bytes per rank; waiting: {}",
        joined.pages,
        layout.own_pages(0).len(),
        joined.waiting
    )?;
    for (rank, report) in reports.iter().enumerate() {
        outln!("  rank {rank}: process {}, processing units {:?}, {}", report.pid, report.pus, report.placement)?;
    }
    Ok(())
}

/// Broadcasts a file from rank 0 and compares every rank's hash with the file's.
fn broadcast_file(team: &mut Team, joined: &mut Joined, args: &args::Demo) -> Result<(), Failure> {
    let own = std::env::current_exe().map_err(|e| Failure::Words(format!("own path: {e}")))?;
    let path = args.file.as_ref().unwrap_or(&own);
    // All ranks learn whether rank 0 could read the file, before any rank waits for its bytes.
    let read = if team.rank() == 0 { Some(std::fs::read(path).map_err(|e| e.to_string())) } else { None };
    let length = read.as_ref().map(|answer| answer.as_ref().map(Vec::len).map_err(Clone::clone));
    let length = match team.gather(&length)?.swap_remove(0) {
        Some(Ok(length)) => length,
        Some(Err(why)) if team.rank() == 0 => return Err(Failure::Words(format!("{}: {why}", path.display()))),
        _ => return Err(Failure::Silent(1)),
    };
    let mut bytes = match read {
        Some(Ok(bytes)) => bytes,
        _ => vec![0; length],
    };
    joined.communicator.barrier()?;
    let begin = Instant::now();
    joined.communicator.run(&Call::Bcast {
        data: Data::bytes_mut(&mut bytes),
        root: 0,
        algorithm: BcastAlgorithm::Auto,
    })?;
    joined.communicator.barrier()?;
    let elapsed = begin.elapsed();
    let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let hashes = team.gather(&hash)?;
    if let Some(rank) = hashes.iter().position(|other| *other != hashes[0]) {
        return Err(Failure::Words(format!("rank {rank} received other bytes than rank 0 sent")));
    }
    if team.rank() == 0 {
        outln!("Broadcast of {} ({length} bytes) in {:.2} ms", path.display(), elapsed.as_secs_f64() * 1e3)?;
        for (rank, hash) in hashes.iter().enumerate() {
            outln!("  rank {rank}: SHA-256 {hash}")?;
        }
    }
    Ok(())
}

fn measure(team: &mut Team, joined: &mut Joined) -> Result<(), Failure> {
    let bar = progress(team.rank() == 0, 1 + SIZES.len() as u64);
    bar.set_message("floors");
    let floors = Floors::measure(team, joined, &SIZES, false)?;
    bar.inc(1);
    let plan = Plan { iterations: None, warm: false, lent: false, calls: Calls::InTurn, budget: 3e8 };
    let mut table = Table::default();
    for bytes in SIZES {
        bar.set_message(format!("{bytes} B"));
        let mut contenders = Vec::new();
        for name in ["auto", "cico-binary"] {
            for subject in Subject::by_name(Collective::Bcast, name, bytes, team.size())? {
                contenders.push(Contender::join(team, joined, subject, Form::Blocking)?);
            }
        }
        for row in bench::measure(team, joined, &floors, &mut contenders, Method::Rate, plan)? {
            table.push(row);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if team.rank() == 0 {
        outln!("Broadcast, both generations (ours: posted, queue; paper P1's: cico)\n{floors}")?;
        out!("{table}")?;
    }
    Ok(())
}

//! Programs between threads: those that once failed, and some hundreds of drawn ones.

use std::path::Path;
use std::time::Duration;
use unisono_programs::draw::Budget;
use unisono_programs::judge::{Ending, Report, judge};
use unisono_programs::program::MOST;
use unisono_programs::{Call, Op, Program, threads};

/// The time for a step, which takes microseconds, on a machine that does much else.
const LIMIT: Duration = Duration::from_secs(20);

fn run(program: &Program) -> Result<(), String> {
    let reports = threads::run(program, LIMIT).map_err(|refusal| refusal.to_string())?;
    judge(program, &reports)
}

/// Programs that once failed; the comment in the first line of each says how.
#[test]
fn what_was_found_passes_now() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("found");
    let mut files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let program = Program::parse(&text).unwrap_or_else(|wrong| panic!("{}: {wrong}", file.display()));
        for _ in 0..3 {
            run(&program).unwrap_or_else(|words| panic!("{}:\n{words}", file.display()));
        }
    }
}

/// Drawn programs of two to six ranks; a failure names the seed.
#[test]
fn drawn_programs_pass() {
    for seed in 0..150 {
        let ranks = 2 + (seed % 5) as u32;
        let kills = seed % 4 == 0;
        let program = Program::draw(seed, &Budget { kills, pause: 100, ..Budget::new(ranks) });
        run(&program).unwrap_or_else(|words| panic!("seed {seed}, {ranks} ranks:\n{words}\n{program}"));
    }
}

/// An element that is folded is longer than a slot: the call is refused, which all ranks are told, whatever else is in
/// flight.
#[test]
fn elements_longer_than_a_slot_are_refused_and_nobody_hangs() {
    let (mut none, mut some) = (0, 0);
    for seed in 0..150 {
        let budget = Budget { calls: 8, bytes: 6000, pause: 0, ..Budget::new(2 + (seed % 3) as u32) };
        let mut program = Program::draw(seed, &budget);
        let is_longer = |call: &Call, slot: u64| call.name.folds() && call.element > slot;
        none += program.calls.iter().filter(|call| is_longer(call, program.segment(call.comm).fragment)).count();
        let slots: Vec<_> = program.calls.iter().map(|call| program.segment(call.comm).fragment).collect();
        // A line may have room for more than a slot of 64 bytes.
        let longer = |(call, slot): &(&mut Call, u64)| {
            matches!(call.op, Op::Add | Op::Affine)
                && call.numbers.iter().any(|&count| count > 0)
                && (128..MOST).contains(slot)
        };
        let Some((call, slot)) = program.calls.iter_mut().zip(slots).find(longer) else { continue };
        call.numbers.iter_mut().for_each(|count| *count = (*count).min(3));
        (call.element, call.algorithm) = (slot + 1 + seed % (MOST - slot), "auto".into());
        let (comm, words) = (call.comm, format!("element is {}, must be at most {slot}", call.element));
        assert!(program.check().unwrap_err().ends_with("longer than a slot"), "seed {seed}");
        let reports = threads::run(&program, LIMIT).unwrap();
        let members = &program.groups()[comm];
        for (rank, report) in reports.iter().enumerate() {
            // A rank that does not take part may find that one that did has ended.
            let told = match &report.end {
                Ending::Failed(error) => error.contains(&words) || error.contains("refused"),
                Ending::Bereft => true,
                Ending::Done => !members.contains(&(rank as u32)),
                Ending::Killed | Ending::Late => false,
            };
            assert!(told && report.wrong.is_empty(), "seed {seed}, rank {rank}: {report:?}\n{program}");
        }
        let refused = |report: &Report| matches!(&report.end, Ending::Failed(error) if error.contains(&words));
        assert!(reports.iter().any(refused), "seed {seed}: {reports:?}\n{program}");
        some += 1;
    }
    assert!(none >= 10 && some >= 30, "{none} {some}");
}

/// The same interleavings each time, down to single accesses to a segment. The programs are short, as handing over
/// takes most of the time.
#[test]
fn drawn_programs_pass_in_turns() {
    for seed in 0..150 {
        let ranks = 2 + (seed % 4) as u32;
        let budget = Budget { calls: 8, bytes: 6000, pause: 20, ..Budget::new(ranks) };
        let program = Program::draw(seed, &budget);
        let turns = |seed| threads::run_in_turns(&program, LIMIT, seed).map_err(|refusal| refusal.to_string());
        let reports = turns(seed).unwrap();
        judge(&program, &reports).unwrap_or_else(|words| panic!("seed {seed}, {ranks} ranks:\n{words}\n{program}"));
    }
}

#[test]
fn one_seed_is_one_interleaving() {
    for seed in 0..20 {
        let program = Program::draw(seed, &Budget { calls: 6, bytes: 2000, ..Budget::new(3) });
        let turns = |seed| {
            let (reports, turns) = threads::run_in_counted_turns(&program, LIMIT, seed).unwrap();
            assert!(reports.iter().all(|report| report.end == Ending::Done), "{reports:?}");
            turns
        };
        assert_eq!(turns(seed), turns(seed));
    }
}

/// A communicator with a request in flight is duplicated and freed: legal, where requests do not borrow it.
#[test]
fn what_no_scope_can_is_legal_and_refused_to_scopes() {
    let calls = "ranks 2\nsegment 4 2 256 0 0 0 0 0 0 0\ncall 0 0 dup auto 0 0 none 1 0 1\ncall 1 1 barrier auto 0 0 none 1 0\n\
                 call 2 1 dup auto 0 0 none 1 0 2\ncall 3 1 free auto 0 0 none 1 0\n";
    let read = |steps: &str| Program::parse(&format!("{calls}* run 0\n{steps}"));
    for (steps, name) in [
        ("* start 1\n* run 2\n* wait 1\n* run 3\n", "2 (dup)"),
        ("* run 2\n* start 1\n* run 3\n* wait 1\n", "3 (free)"),
    ] {
        let program = read(steps).unwrap();
        let why = program.fits_scopes().unwrap_err();
        assert!(why.contains(&format!("call {name} on communicator 1, which the open scope")), "{why}");
        let reports = threads::run(&program, LIMIT).unwrap();
        let words = judge(&program, &reports).unwrap_err();
        assert!(words.lines().count() == 2 && words.lines().all(|line| line.ends_with(&why)), "{words}");
    }
    assert_eq!(read("* start 1\n* wait 1\n* run 2\n* run 3\n").unwrap().fits_scopes(), Ok(()));
    // Nothing is started on what was freed.
    assert!(read("* init 1\n* run 2\n* run 3\n* start 1\n* wait 1\n* free 1\n").is_err());
    assert!(read("* init 1\n* run 2\n* run 3\n* free 1\n").is_ok());
}

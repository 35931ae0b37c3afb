//! The explorer's long tier: all mixes of operations up to a length, from the smallest family to
//! the largest, until the budget is spent. It prints for each family which models were explored and which were cut
//! short.

use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use unisono_kernel::pattern::tree::Tree;
use unisono_programs::draw::Budget;
use unisono_verify::explore::{
    Check, Drawn, Family, Limits, Mutation, Operation, Program, Report, TextCheck, alphabet, drawn, exchanges, explore,
    explore_text, order, order_text, papers, run,
};

const HELP: &str = "\
Explores all interleavings of the real machines, for all mixes of operations.

Usage: explore [--by order|states] [--ranks LOW..HIGH] [--length N] [--only NAME] [--budget SECONDS]
               [--states MOST] [--threads N]
       explore --random SECONDS [--seed S] [--by order|states] [--ranks LOW..HIGH] [--states MOST] [--threads N]

  --by HOW           'states' walks through every state; 'order' makes one run and shows that what
                     happens in it is forced in every other one too [order]
  --ranks LOW..HIGH  numbers of processes, both ends included; one number is both [2..5]
  --length N         operations in a mix, up to this [4]
  --only NAME        only models whose name contains this, as 'posted:0 fold'
  --budget SECONDS   begin and end within this; what is cut is named [600]
  --states MOST      give a model up at this many states, about 40 bytes each [29000000]
  --threads N        models at a time [the cores]
  --random SECONDS   small programs drawn from seeds, until one fails; by order they have blocking calls alone
  --seed S           the first seed [0]

The last line sums up. Exit code: 0 if no model failed, else 1; 2 for bad arguments.";

struct Options {
    by_order: bool,
    random: Option<u64>,
    seed: u64,
    ranks: (u32, u32),
    length: u32,
    only: String,
    budget: u64,
    states: u64,
    threads: usize,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let threads = available_parallelism().map_or(1, usize::from);
        let mut options = Self {
            by_order: true,
            random: None,
            seed: 0,
            ranks: (2, 5),
            length: 4,
            only: String::new(),
            budget: 600,
            states: 29_000_000,
            threads,
        };
        while let Some(name) = arguments.next() {
            if name == "--help" || name == "-h" {
                return Ok(None);
            }
            let value = arguments.next().ok_or(format!("{name} needs a value"))?;
            match name.as_str() {
                "--by" if value == "order" => options.by_order = true,
                "--by" if value == "states" => options.by_order = false,
                "--by" => return Err(format!("--by is {value}, must be order or states")),
                "--ranks" => {
                    let (low, high) = value.split_once("..").unwrap_or((&value, &value));
                    options.ranks = (number(&name, low, 1..=16)?, number(&name, high, 1..=16)?);
                }
                "--length" => options.length = number(&name, &value, 1..=8)?,
                "--only" => options.only = value,
                "--random" => options.random = Some(number(&name, &value, 1..=1 << 20)?),
                "--seed" => options.seed = number(&name, &value, 0..=u64::MAX)?,
                "--budget" => options.budget = number(&name, &value, 1..=1 << 20)?,
                "--states" => options.states = number(&name, &value, 1..=1 << 40)?,
                "--threads" => options.threads = number(&name, &value, 1..=1024)?,
                _ => return Err(format!("{name} is not an option")),
            }
        }
        Ok(Some(options))
    }
}

fn number<N: TryFrom<u64>>(name: &str, value: &str, bounds: std::ops::RangeInclusive<u64>) -> Result<N, String> {
    let refusal = || format!("{name} is {value}, must be from {} to {}", bounds.start(), bounds.end());
    let number = value.parse().ok().filter(|number| bounds.contains(number)).ok_or_else(refusal)?;
    N::try_from(number).map_err(|_| refusal())
}

/// Most fragments of a message: one more than there are slots.
const FRAGMENTS: usize = 3;

/// Slots of the queues in which exchanges post ahead: one step more than the one that is taken.
const AHEAD: u32 = 4;

/// A family, the number of fragments of its long messages, and the number of slots of the queues.
struct Tier {
    family: Family,
    fragments: usize,
    slots: u32,
}

impl Tier {
    /// All mixes of one length, with the papers' queue in so many sets. Mixes of one or two operations also have all
    /// trees (up to three processes), sums in place and paper P2's operations.
    fn new(ranks: u32, length: u32, fragments: usize, sets: u32) -> Self {
        let trees: &[Tree] = match (ranks, length) {
            (..=2, _) => &[Tree::Flat],
            (3, 1..=2) | (_, 1) => &[Tree::Flat, Tree::Chain, Tree::BINARY, Tree::BINOMIAL],
            _ => &[Tree::BINARY],
        };
        let mut alphabet = alphabet(ranks, trees, fragments);
        if length <= 2 {
            alphabet.push(Operation::Sum);
            alphabet.extend(papers(ranks, fragments));
        }
        Self { family: Family { ranks, sets, alphabet, length }, fragments, slots: 2 }
    }

    /// All mixes of exchanges and the queue's broadcasts, in queues in which they post ahead.
    fn ahead(ranks: u32, length: u32, fragments: usize) -> Self {
        let mut alphabet = exchanges(ranks, fragments);
        alphabet.extend((0..ranks).map(|root| Operation::queue(root, fragments)));
        Self { family: Family { ranks, sets: 1, alphabet, length }, fragments, slots: AHEAD }
    }

    /// The mixes that are in no other tier.
    fn models(&self) -> impl Iterator<Item = Program> + '_ {
        let sets = |program: &Program| program.operations.iter().any(Operation::has_sets);
        let cut = |program: &Program| program.operations.iter().any(Operation::is_cut);
        let new = move |program: &Program| {
            self.slots == AHEAD || (self.fragments == 1 || cut(program)) && (self.family.sets == 2 || sets(program))
        };
        self.family.spread().filter(new).map(|program| program.with_slots(self.slots))
    }

    /// An estimate of the number of states, by which models are ordered. The places of one process in one operation
    /// were measured with four processes, those of exchanges that run ahead with two.
    fn cost(&self) -> u64 {
        let Family { ranks, length, sets, .. } = self.family;
        let places = if sets == 1 { [10, 15, 31] } else { [14, 25, 57] }[self.fragments.clamp(1, FRAGMENTS) - 1];
        let places = if self.slots == AHEAD { 90 * self.fragments as u64 } else { places };
        let places: u64 = places * (u64::from(length) + 2) / 3;
        self.family.models().saturating_mul(places.saturating_pow(ranks))
    }
}

fn tiers(options: &Options) -> Report {
    let (low, high) = options.ranks;
    let lengths = |ranks| (1..=options.length).map(move |length| (ranks, length));
    let sizes = |(ranks, length)| (1..=FRAGMENTS).map(move |fragments| (ranks, length, fragments));
    let mut all: Vec<Tier> = (low..=high)
        .flat_map(lengths)
        .flat_map(sizes)
        .flat_map(|(ranks, length, fragments)| [2, 1].map(|sets| Tier::new(ranks, length, fragments, sets)))
        .collect();
    let ahead = (low..=high).flat_map(|ranks| (1..=options.length.min(3)).map(move |length| (ranks, length)));
    all.extend(ahead.flat_map(|(ranks, length)| [3, 5].map(|fragments| Tier::ahead(ranks, length, fragments))));
    all.sort_by_key(Tier::cost);
    let until = Some(Instant::now() + Duration::from_secs(options.budget));
    let check: Check = if options.by_order { order } else { explore };
    let mut total = Report::default();
    for tier in &all {
        let models = tier.models().filter(|program| program.name().contains(&options.only));
        let report = run(check, models, Mutation::None, Limits { states: options.states, until }, options.threads);
        let tried = report.models + report.cut.len() as u64 + report.skipped;
        if tried == 0 {
            continue;
        }
        for failure in report.failures.iter().take(3) {
            println!("{failure}");
        }
        let Family { ranks, sets, length, alphabet } = &tier.family;
        let whole = match report.models {
            0 if report.cut.is_empty() => "NOT BEGUN",
            models if models == tried => "complete",
            _ => "NOT COMPLETE",
        };
        println!(
            "p={ranks} length {length} of {} operations, fragments {}, s={} q={sets}: {whole}, {} of {tried} models",
            alphabet.len(),
            tier.fragments,
            tier.slots,
            report.models
        );
        if report.transitions != 0 {
            let (seconds, (most, name)) = (report.time.as_secs_f64(), &report.largest);
            let Report { states, transitions, .. } = report;
            println!("    {states} states, {transitions} transitions, {seconds:.1} s; largest {most} states: {name}");
        }
        for name in &report.cut {
            println!("    cut short: {name}");
        }
        total.absorb(report);
    }
    total
}

/// Explores drawn programs; by order only those without requests.
fn random(options: &Options, time: Duration) -> Drawn {
    let limits = Limits { states: options.states, until: Some(Instant::now() + time) };
    let (low, high) = options.ranks;
    let ranks = |seed| low + (seed % u64::from(high - low + 1)) as u32;
    let budget = |seed| Budget { requests: !options.by_order, ..Budget::tiny(ranks(seed)) };
    let check: TextCheck = if options.by_order { order_text } else { explore_text };
    let all = drawn(check, budget, options.seed, limits, options.threads);
    all.failure.iter().for_each(|failure| println!("{failure}"));
    all
}

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)) {
        Err(refusal) => {
            eprintln!("explore: {refusal}");
            ExitCode::from(2)
        }
        Ok(None) => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        Ok(Some(options @ Options { random: Some(seconds), .. })) => {
            let all = random(&options, Duration::from_secs(seconds));
            println!("{all}");
            ExitCode::from(u8::from(all.failure.is_some()))
        }
        Ok(Some(options)) => {
            let total = tiers(&options);
            if !total.cut.is_empty() || total.skipped != 0 {
                println!("not complete: {} models cut short, {} not begun", total.cut.len(), total.skipped);
            }
            println!("{total}");
            ExitCode::from(u8::from(!total.failures.is_empty()))
        }
    }
}

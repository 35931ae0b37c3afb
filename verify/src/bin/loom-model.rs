//! Runs one loom model, sound or flawed, or one of its mutants: `loom-model PROTOCOL [MUTANT]`, `loom-model --list`.
//!
//! Exit code 0: no execution failed, and at least one completed on all ranks. A race or wrong data panics.

use std::process::ExitCode;
use std::time::Instant;
use unisono_verify::loom::{FLAWED, Mutant, PROTOCOLS, check};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, mutant) = match *words {
        ["--list"] => {
            list();
            return ExitCode::SUCCESS;
        }
        [name] => (name, None),
        [name, mutant] => (name, Some(mutant)),
        _ => return usage("one protocol, and one mutant at most"),
    };
    let Some(protocol) = PROTOCOLS.iter().chain(FLAWED).find(|p| p.name == name) else {
        return usage(&format!("no protocol {name}"));
    };
    let mutant = match mutant.map(|name| Mutant::from_name(name).ok_or(name)).transpose() {
        Ok(mutant) => mutant,
        Err(name) => return usage(&format!("no mutant {name}")),
    };
    let start = Instant::now();
    let outcome = check(protocol, mutant);
    println!(
        "{name}: executions={} completed={} seconds={:.2}",
        outcome.executions,
        outcome.completed,
        start.elapsed().as_secs_f64()
    );
    if outcome.completed == 0 {
        eprintln!("no execution completed: nothing was checked");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn list() {
    for protocol in PROTOCOLS {
        let bound = protocol.preemptions.map_or("none".into(), |n| n.to_string());
        let tier = if protocol.long { "long" } else { "fast" };
        println!("{} preemptions={bound} tier={tier} mutants: {}", protocol.name, protocol.needs.join(" "));
    }
}

fn usage(complaint: &str) -> ExitCode {
    eprintln!("loom-model: {complaint}\nusage: loom-model PROTOCOL [MUTANT] | loom-model --list");
    ExitCode::from(2)
}

//! `unisono-bench`: the same C program under every MPI that is installed and under Unisono.
//!
//! ```text
//! args            the command line
//! tools           what is installed, and the C program compiled for it (c/, one source for all)
//! configuration   what is compared: a library with its flags, and the command that starts ranks
//! line            how far two cores are from each other, and where rows are measured
//! launch          one run of the program: rows, or the reason why there are none
//! rounds          all configurations in turn, again and again: samples
//! copies          the time of copies here, in memory, through slots, across address spaces
//! floor           what the machine cannot beat, where a formula is known
//! cells           medians over the rounds, ratios pair by pair, geometric means, losing cells
//! report          all of it, in JSON; table for a terminal; page for a browser; digest for docs/
//! out             standard output, where a closed pipe is not an error and a full disk is one
//! ```
//! What is measured and how: docs/reference/measures.md.
// `print!` panics where it can't write; `out`'s macros return an error.
#![deny(clippy::print_stdout)]

mod args;
mod cells;
mod configuration;
mod copies;
mod digest;
mod error;
mod floor;
mod launch;
mod line;
mod machine;
mod out;
mod page;
mod report;
mod rounds;
mod stats;
mod table;
mod tools;

use args::{Args, Command, Page, Run};
use clap::Parser;
use error::Failure;
use out::{out, outln};
use report::Report;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Run(args) => run(&args),
        Command::Page(args) => redraw(&args),
        Command::Copies(args) => copies::run(&args),
    };
    match outcome.and_then(|summary| outln!("{summary}")).and_then(|()| out::finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("unisono-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Measures, writes JSON and page, prints the table.
fn run(args: &Run) -> Result<String, Failure> {
    let out = Path::new(&args.out);
    std::fs::create_dir_all(out).map_err(|e| Failure::file("create", out, &e))?;
    let report = rounds::measure(args, out)?;
    let (json, html) = (out.join("bench.json"), out.join("bench.html"));
    let text = serde_json::to_string_pretty(&report)?;
    std::fs::write(&json, text).map_err(|e| Failure::file("write", &json, &e))?;
    write_page(&report, &html)?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    let digest = digest::Digest { report: &report, command: &format!("unisono-bench {}", words.join(" ")) };
    let markdown = out.join("bench.md");
    std::fs::write(&markdown, digest.to_string()).map_err(|e| Failure::file("write", &markdown, &e))?;
    out!("{}", table::Table(&report))?;
    outln!("data: {}", json.display())?;
    outln!("page: {}", html.display())?;
    outln!("digest: {}", markdown.display())?;
    let verdict = report.verdict();
    if report.ours_failed() { Err(Failure::Words(verdict)) } else { Ok(verdict) }
}

/// Draws the page of a report again.
fn redraw(args: &Page) -> Result<String, Failure> {
    let text = std::fs::read_to_string(&args.report).map_err(|e| Failure::file("read", &args.report, &e))?;
    let report: Report = serde_json::from_str(&text)?;
    let html = args.out.clone().unwrap_or_else(|| args.report.with_extension("html"));
    let plots = write_page(&report, &html)?;
    Ok(format!("page: {} with {plots} plots", html.display()))
}

fn write_page(report: &Report, to: &Path) -> Result<usize, Failure> {
    let page = page::Page::draw(report)?;
    std::fs::write(to, &page.html).map_err(|e| Failure::file("write", to, &e))?;
    Ok(page.plots)
}

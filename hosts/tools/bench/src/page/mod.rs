//! One self-contained HTML page: tables and plots, no script, nothing to fetch.
//!
//! It is well-formed XML too. Its body says in `data-plots` how many plots it has; each is a figure
//! with an id `plot-N`.

use crate::cells::{Cell, Preloaded, VIEWS, View};
use crate::configuration::{NAMES, OURS};
use crate::error::Failure;
use crate::report::{COLLECTIVES, Report, bytes};
use crate::table::list;
use std::fmt::Write;
use unisono_plot::{Frame, RGBColor, Series, Unit, hue};

const STYLE: &str = "
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; color: #1c1c1e }
table { border-collapse: collapse; margin: .6rem 0 } th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #e3e3e6 }
th { background: #f5f5f7 } td:first-child, th:first-child, .text { text-align: left } .lost { color: #b00020; font-weight: 600 }
.best { font-weight: 600 } code { font-size: 85% } figure { display: inline-block; margin: .3rem } summary { cursor: pointer; font-weight: 600; margin: .5rem 0 }
";

/// A drawn page.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) html: String,
    pub(crate) plots: usize,
}

impl Page {
    /// Draws the page.
    pub(crate) fn draw(report: &Report) -> Result<Self, Failure> {
        let mut page = Self { html: String::new(), plots: 0 };
        page.head(report);
        for ranks in report.ranks() {
            page.push(&format!("<h2>{ranks} ranks</h2>\n"));
            for view in VIEWS {
                page.view(report, view, ranks)?;
            }
        }
        let Self { html: inner, plots } = page;
        let html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head><meta charset=\"utf-8\"/>\
             <title>Unisono beside other MPIs</title><style>{STYLE}</style></head>\n<body data-plots=\"{plots}\">\n{inner}</body>\n</html>\n"
        );
        Ok(Self { html, plots })
    }

    fn push(&mut self, text: &str) {
        self.html.push_str(text);
    }

    fn head(&mut self, report: &Report) {
        let machine = &report.machine;
        let place = format!(
            "{}, {}, Linux {}, {} cores, load {}",
            machine.date, machine.processor, machine.kernel, machine.cores, machine.load
        );
        self.push(&format!("<h1>Unisono beside other MPIs</h1>\n<p>{}</p>\n", escape(&place)));
        self.push(&format!("<p>Cores: {}.</p>\n", escape(&report.place())));
        self.push(&format!("<p>{}</p>\n", escape(&report.verdict())));
        self.push("<p>Every result was verified outside the timed part. A time is the median of the rounds' medians; a ratio is Unisono ÷ the best peer, round by round, and of those the median: below 1 Unisono is faster. <b>window</b>: from the first start (rooted: the root's) to the last end of each operation. <b>rate</b>: wall time by iterations of the slowest rank, back to back. Both with buffers that change from call to call, so cold ones. <b>osu</b>: the mean over ranks of each one's time in the call, a barrier between calls, as the OSU micro-benchmarks define it. <b>imb</b>: <b>rate</b>, as the Intel MPI Benchmarks define it. Both with the same buffers in each call, so warm ones.</p>\n");
        self.push("<h2>What was compared</h2>\n<table><tr><th>name</th><th class=\"text\">library</th><th class=\"text\">commands</th></tr>\n");
        for member in &report.members {
            let mut cells: Vec<String> =
                member.commands.iter().map(|command| format!("<code>{}</code>", escape(command))).collect();
            cells.extend(
                member.left_out.iter().map(|why| format!("<span class=\"lost\">left out: {}</span>", escape(why))),
            );
            let library = escape(member.library.as_deref().unwrap_or("-"));
            let (title, commands) = (escape(&member.title), cells.join("<br/>"));
            self.push(&format!(
                "<tr><td>{title}</td><td class=\"text\">{library}</td><td class=\"text\">{commands}</td></tr>\n"
            ));
        }
        self.push("</table>\n<h2>Summary</h2>\n<table><tr><th>ranks</th><th class=\"text\">view</th><th class=\"text\">configuration</th><th>compared</th><th>geometric mean</th><th>of the fastest rounds</th><th>rooted</th><th>all-to-all</th><th class=\"text\">losing cells</th></tr>\n");
        for s in &report.summaries {
            let losing: Vec<String> = s
                .losing
                .iter()
                .map(|l| format!("{} {} {:.2} against {}", l.collective, bytes(l.bytes), l.ratio, l.best_peer))
                .collect();
            self.push(&format!(
                "<tr><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"text lost\">{}</td></tr>\n",
                s.ranks,
                escape(&s.view),
                escape(&s.configuration),
                s.compared,
                number(s.all),
                number(s.fastest),
                number(s.rooted),
                number(s.all_to_all),
                escape(&losing.join("; "))
            ));
        }
        self.push("</table>\n");
        self.preloads(&report.preloads);
    }

    fn preloads(&mut self, preloads: &[Preloaded]) {
        if preloads.is_empty() {
            return;
        }
        self.push("<h2>Unisono preloaded under an MPI: with ÷ without</h2>\n<table><tr><th>ranks</th><th class=\"text\">configuration</th><th class=\"text\">against</th><th>compared</th><th>geometric mean</th><th class=\"text\">slower cells</th></tr>\n");
        for Preloaded { configuration, underlying, ranks, compared, mean, slower } in preloads {
            let names =
                [configuration, underlying].map(|name| format!("<td class=\"text\">{}</td>", escape(name))).concat();
            let (mean, which) = (number(*mean), escape(&list(slower)));
            self.push(&format!(
                "<tr><td>{ranks}</td>{names}<td>{compared}</td><td>{mean}</td><td class=\"text lost\">{which}</td></tr>\n"
            ));
        }
        self.push("</table>\n");
    }

    fn view(&mut self, report: &Report, view: View, ranks: u32) -> Result<(), Failure> {
        let cells: Vec<&Cell> = report.cells.iter().filter(|cell| cell.ranks == ranks && view.has(cell)).collect();
        if cells.is_empty() {
            return Ok(());
        }
        self.push(&format!("<details open=\"open\"><summary>{ranks} ranks, {}</summary>\n", view.name));
        let of_ours = |value: fn(&Cell) -> Option<f64>| -> Vec<Series> {
            let palette = (0..).map(|i| hue(f64::from(i) / COLLECTIVES.len() as f64));
            let lines = COLLECTIVES.iter().zip(palette).map(|(name, color)| {
                let mine = cells.iter().filter(|cell| cell.collective == *name && cell.bytes > 0);
                let points = mine.filter_map(|cell| Some((cell.bytes as f64, value(cell)?))).collect();
                Series { name: (*name).into(), color, bold: false, points }
            });
            lines.filter(|line| !line.points.is_empty()).collect()
        };
        let title = format!("Unisono ÷ best peer, {ranks} ranks, {}", view.name);
        let frame = Frame { title: &title, y: "ratio", unit: Unit::None, level: Some(1.0) };
        self.figure(frame, &of_ours(|cell| cell.ratio))?;
        let title = format!("Unisono ÷ floor, {ranks} ranks, {}", view.name);
        let frame = Frame { title: &title, y: "time ÷ floor", unit: Unit::None, level: Some(1.0) };
        self.figure(frame, &of_ours(|cell| cell.over_floor))?;
        for collective in COLLECTIVES {
            let mine: Vec<&Cell> =
                cells.iter().copied().filter(|c| c.collective == collective && c.bytes > 0).collect();
            let title = format!("{collective}, {ranks} ranks, {}", view.name);
            let frame = Frame { title: &title, y: "time", unit: Unit::Nanoseconds, level: None };
            self.figure(frame, &latencies(&mine))?;
        }
        self.table(&cells);
        self.push("</details>\n");
        Ok(())
    }

    /// A plot with a number of its own, if it has a point.
    fn figure(&mut self, frame: Frame<'_>, series: &[Series]) -> Result<(), Failure> {
        if let Some(svg) = unisono_plot::draw(frame, series).map_err(|e| Failure::Words(e.to_string()))? {
            self.plots += 1;
            let (id, label) = (self.plots, escape(frame.title));
            self.push(&format!("<figure id=\"plot-{id}\" role=\"img\" aria-label=\"{label}\">{svg}</figure>\n"));
        }
        Ok(())
    }

    fn table(&mut self, cells: &[&Cell]) {
        let names: Vec<&str> =
            NAMES.into_iter().filter(|name| cells.iter().any(|cell| cell.times.contains_key(*name))).collect();
        self.push(
            "<details><summary>figures: median / p99 / max µs</summary><table><tr><th>collective</th><th>bytes</th>",
        );
        names.iter().for_each(|name| self.push(&format!("<th>{name}</th>")));
        self.push("<th>ratio</th><th>spread</th><th>floor µs</th><th>÷ floor</th></tr>\n");
        for cell in cells {
            let mut row = format!("<tr><td>{}</td><td>{}</td>", escape(&cell.collective), bytes(cell.bytes));
            for name in &names {
                let best = cell.best_peer.as_deref() == Some(*name);
                let text = match cell.times.get(*name) {
                    Some(t) => {
                        format!("{:.3} / {:.3} / {:.3}", t.p50_ns / 1e3, t.p99_ns / 1e3, t.max_ns / 1e3)
                    }
                    None => "-".into(),
                };
                // Writing to a string does not fail.
                let _ = write!(row, "<td{}>{text}</td>", if best { " class=\"best\"" } else { "" });
            }
            let lost = if cell.ratio.is_some_and(|ratio| ratio > 1.0) { " class=\"lost\"" } else { "" };
            let spread = cell.times.get(OURS).map(|time| time.spread);
            let floor = cell.floor_ns.map(|ns| ns / 1e3);
            let last = [number(spread), number(floor), number(cell.over_floor)];
            let _ = writeln!(row, "<td{lost}>{}</td><td>{}</td></tr>", number(cell.ratio), last.join("</td><td>"));
            self.push(&row);
        }
        self.push("</table></details>\n");
    }
}

/// Nanoseconds of each configuration in the cells of a collective.
fn latencies(cells: &[&Cell]) -> Vec<Series> {
    let line = |(name, color): (&str, RGBColor)| {
        let point = |cell: &&Cell| Some((cell.bytes as f64, cell.times.get(name)?.p50_ns));
        let points = cells.iter().filter_map(point).collect();
        Series { name: name.into(), color, bold: name == OURS, points }
    };
    let colors: [_; NAMES.len()] = [
        (11, 95, 255),
        (0, 170, 220),
        (217, 95, 2),
        (27, 158, 119),
        (166, 54, 3),
        (0, 109, 44),
        (117, 60, 170),
        (117, 60, 170),
        (84, 39, 143),
        (120, 120, 120),
        (240, 160, 90),
        (180, 140, 215),
        (250, 190, 140),
        (210, 180, 235),
        (200, 110, 30),
        (140, 90, 190),
    ];
    NAMES.into_iter().zip(colors.map(|(r, g, b)| RGBColor(r, g, b))).map(line).collect()
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.2}"))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

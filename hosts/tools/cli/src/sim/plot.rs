//! Medians over bytes, a line per algorithm.

use crate::bench::Row;
use crate::error::Failure;
use unisono_plot::{Frame, Series, Unit, hue};

/// The plot as SVG.
pub(crate) fn draw(title: &str, rows: &[Row]) -> Result<String, Failure> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.algorithm.as_str()) {
            names.push(&row.algorithm);
        }
    }
    let line = |(i, name): (usize, &&str)| {
        let mine = rows.iter().filter(|row| row.algorithm == **name && row.bytes > 0);
        let points = mine.map(|row| (row.bytes as f64, row.p50_ns)).collect();
        Series { name: (*name).into(), color: hue(i as f64 / names.len() as f64), bold: i == 0, points }
    };
    let series: Vec<_> = names.iter().enumerate().map(line).collect();
    let svg = unisono_plot::draw(Frame { title, y: "virtual time", unit: Unit::Nanoseconds, level: None }, &series)?;
    svg.ok_or_else(|| Failure::Words("plot: no point with bytes and time above 0".into()))
}

//! A plot of lines over message sizes, both axes logarithmic.

use crate::{BOLD, FONT, LIGHT, PlotError, short, ticks};
use plotters::prelude::*;
use std::error::Error;

/// Width and height in pixels of a plot, and of one that has a line for each collective.
const SIZE: (u32, u32) = (460, 320);
const LARGE: (u32, u32) = (700, 460);
/// Pixels below and beside the axes, for labels.
const BELOW: u32 = 38;
const BESIDE: u32 = 66;
/// Pixels of an axis that a label takes, with the free space beside it.
const LABEL: (u32, u32) = (46, 17);

/// One line of a plot.
#[derive(Clone, Debug)]
pub struct Series {
    /// The line's name in the legend.
    pub name: String,
    /// The color.
    pub color: RGBColor,
    /// Drawn with more weight.
    pub bold: bool,
    /// Bytes against a value, in the plot's unit.
    pub points: Vec<(f64, f64)>,
}

/// The unit of a plot's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Numbers without a unit, such as ratios.
    None,
    /// Times in nanoseconds; labels are in ns, µs, ms or s.
    Nanoseconds,
}

/// The parts of a plot other than its lines.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'t> {
    /// The title above the plot.
    pub title: &'t str,
    /// What the values are, in words.
    pub y: &'t str,
    /// The values' unit.
    pub unit: Unit,
    /// A value to compare with, as a level line; such a plot is larger.
    pub level: Option<f64>,
}

/// Draws the plot; `None` if no point has a logarithm.
///
/// # Errors
/// The renderer's.
pub fn draw(frame: Frame<'_>, series: &[Series]) -> Result<Option<String>, PlotError> {
    let mut svg = String::new();
    match render(&mut svg, frame, series) {
        Ok(true) => Ok(Some(svg)),
        Ok(false) => Ok(None),
        Err(error) => Err(PlotError::new(frame.title, &*error)),
    }
}

/// The color at `turn` (0 to 1) of the color circle, dark enough for white paper.
pub fn hue(turn: f64) -> RGBColor {
    let channel = |shift: f64| {
        let distance = ((turn + shift).fract() * 6.0 - 3.0).abs();
        (200.0 * (distance - 1.0).clamp(0.0, 1.0)) as u8
    };
    RGBColor(channel(0.0), channel(2.0 / 3.0), channel(1.0 / 3.0))
}

/// A number of bytes as people write it.
pub fn bytes(n: u64) -> String {
    match n {
        n if n >= 1 << 20 && n.is_multiple_of(1 << 20) => format!("{} MiB", n >> 20),
        n if n >= 1 << 10 && n.is_multiple_of(1 << 10) => format!("{} KiB", n >> 10),
        n => format!("{n} B"),
    }
}

/// Smallest and largest, with room.
fn span(values: impl Iterator<Item = f64>, room: f64) -> Option<(f64, f64)> {
    let values = values.filter(|value| value.is_finite() && *value > 0.0);
    let (least, most) = values.fold((f64::INFINITY, 0.0), |(least, most), v| (v.min(least), v.max(most)));
    (most > 0.0).then_some((least / room, most * room))
}

fn render(svg: &mut String, frame: Frame<'_>, series: &[Series]) -> Result<bool, Box<dyn Error>> {
    let points = || series.iter().flat_map(|line| line.points.iter().copied());
    let levels = frame.level.into_iter();
    let spans = (span(points().map(|p| p.0), 1.3), span(points().map(|p| p.1).chain(levels), 1.4));
    let ((Some(x), Some(y)), true) = (spans, points().next().is_some()) else { return Ok(false) };
    let size = if frame.level.is_some() { LARGE } else { SIZE };
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    root.fill(&WHITE)?;
    let room = ((size.0 - BESIDE) / LABEL.0, (size.1 - BELOW) / LABEL.1);
    let (along, up) = (ticks::bytes(x, room.0 as usize), ticks::decimals(y, room.1 as usize));
    let value = |y: &f64| match frame.unit {
        Unit::None => short(*y),
        Unit::Nanoseconds => ticks::time(*y),
    };
    let mut chart = ChartBuilder::on(&root)
        .caption(frame.title, (FONT, 15))
        .margin(8)
        .x_label_area_size(BELOW)
        .y_label_area_size(BESIDE)
        .build_cartesian_2d(
            (x.0..x.1).log_scale().with_key_points(along.labelled).with_light_points(along.faint),
            (y.0..y.1).log_scale().with_key_points(up.labelled).with_light_points(up.faint),
        )?;
    chart
        .configure_mesh()
        .light_line_style(LIGHT)
        .bold_line_style(BOLD)
        .x_desc("bytes")
        .y_desc(frame.y)
        .x_label_formatter(&|x| bytes(x.round() as u64))
        .y_label_formatter(&value)
        .label_style((FONT, 11))
        .draw()?;
    if let Some(level) = frame.level {
        chart.draw_series(LineSeries::new([(x.0, level), (x.1, level)], BLACK.stroke_width(1)))?;
    }
    for line in series.iter().filter(|line| !line.points.is_empty()) {
        let style = line.color.stroke_width(if line.bold { 3 } else { 1 });
        let drawn = chart.draw_series(LineSeries::new(line.points.iter().copied(), style))?;
        drawn.label(line.name.clone()).legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
        chart.draw_series(line.points.iter().map(|point| Circle::new(*point, 2, line.color.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .label_font((FONT, 11))
        .draw()?;
    root.present()?;
    drop(chart);
    drop(root);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of a plot of times from 100 ns to 100 µs over 8 bytes to 2 MiB.
    fn texts(unit: Unit) -> Vec<String> {
        let points = [(8.0, 100.0), (4096.0, 900.0), (2097152.0, 1e5)].into();
        let line = Series { name: "one".into(), color: hue(0.0), bold: true, points };
        let svg = draw(Frame { title: "a title", y: "values", unit, level: None }, &[line]);
        let svg = svg.expect("it draws").expect("there are points");
        svg.split("</text>").filter_map(|part| Some(part.rsplit_once('>')?.1.trim().to_owned())).collect()
    }

    #[test]
    fn both_axes_have_labels_in_units() {
        let times = texts(Unit::Nanoseconds);
        let bytes = ["8 B", "64 B", "512 B", "4 KiB", "32 KiB", "256 KiB", "2 MiB"];
        for wanted in bytes.iter().chain(&["100 ns", "500 ns", "1 µs", "20 µs", "100 µs", "values", "bytes"]) {
            assert_eq!(times.iter().filter(|text| text == wanted).count(), 1, "{wanted} in {times:?}");
        }
        let numbers = texts(Unit::None);
        assert!(numbers.iter().any(|text| text == "20000"), "{numbers:?}");
        assert!(!numbers.iter().any(|text| text.ends_with("µs")), "{numbers:?}");
    }

    #[test]
    fn nothing_to_draw_is_no_plot() {
        let empty = Series { name: "one".into(), color: hue(0.0), bold: true, points: vec![(0.0, -1.0)] };
        let frame = Frame { title: "a title", y: "values", unit: Unit::None, level: None };
        assert_eq!(draw(frame, &[empty]), Ok(None));
        assert_eq!(draw(frame, &[]), Ok(None));
    }
}

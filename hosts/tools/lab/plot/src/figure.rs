//! A figure of the papers: lines over linear axes.

use crate::{BOLD, FONT, LIGHT, PlotError, short};
use plotters::prelude::*;
use unisono_model::figure::{Figure, Series};

const SIZE: (u32, u32) = (900, 560);

/// Draws the figure as SVG.
///
/// # Errors
/// The renderer's.
pub fn draw(figure: &Figure) -> Result<String, PlotError> {
    let mut svg = String::new();
    render(&mut svg, figure).map_err(|error| PlotError::new(&figure.title, &*error))?;
    Ok(svg)
}

/// Smallest to largest value, with room above and below, but not below 0.
fn span(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (least, most) = values.fold((f64::INFINITY, 0.0), |(least, most), v| (v.min(least), v.max(most)));
    if least > most {
        return 0.0..1.0;
    }
    let room = ((most - least) * 0.05).max(most * 1e-3).max(f64::MIN_POSITIVE);
    (least - room).max(0.0)..most + room
}

fn render(svg: &mut String, figure: &Figure) -> Result<(), Box<dyn std::error::Error>> {
    let points = |right: bool| {
        let lines = figure.series.iter().filter(move |line| line.right == right);
        lines.flat_map(|line| line.points.iter().copied())
    };
    let x = span(points(false).chain(points(true)).map(|point| point.0));
    let [left, right] = [false, true].map(|side| span(points(side).map(|point| point.1)));
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let two = points(true).next().is_some();
    let mut chart = ChartBuilder::on(&root)
        .caption(&figure.title, (FONT, 18))
        .margin(10)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .right_y_label_area_size(if two { 70 } else { 0 })
        .build_cartesian_2d(x.clone(), left)?
        .set_secondary_coord(x, right);
    chart
        .configure_mesh()
        .light_line_style(LIGHT)
        .bold_line_style(BOLD)
        .x_desc(figure.x)
        .y_desc(figure.y)
        .x_label_formatter(&|value| short(*value))
        .y_label_formatter(&|value| short(*value))
        .label_style((FONT, 12))
        .draw()?;
    if two {
        let names: Vec<&str> = figure.series.iter().filter(|line| line.right).map(|line| line.name.as_str()).collect();
        let name = format!("{}: {}", figure.y, names.join(", "));
        chart
            .configure_secondary_axes()
            .y_desc(name)
            .y_label_formatter(&|value| short(*value))
            .label_style((FONT, 12))
            .draw()?;
    }
    for (index, Series { name, right, points }) in figure.series.iter().enumerate() {
        // Later lines are thinner: of two that coincide, both are seen.
        let later = figure.series.len() - index;
        let style = Palette99::pick(index).stroke_width(1 + later.min(4) as u32);
        let line = LineSeries::new(points.iter().copied(), style);
        let drawn = if *right { chart.draw_secondary_series(line)? } else { chart.draw_series(line)? };
        drawn.label(name.clone()).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperMiddle)
        .background_style(WHITE.mix(0.85))
        .label_font((FONT, 12))
        .draw()?;
    root.present()?;
    drop(chart);
    drop(root);
    Ok(())
}

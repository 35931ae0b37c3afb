//! Groups of ranks: a row per level, the outermost on top; a group spans all ranks below it.

use crate::{FONT, PlotError};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use unisono_kernel::Rank;
use unisono_kernel::topology::group::Groups;

/// Pixels: the drawing's width, a row's height, the margins, a letter's width.
const WIDTH: u32 = 1200;
const ROW: u32 = 44;
const MARGIN: u32 = 8;
const LETTER: i32 = 7;

/// Draws the groups as SVG.
///
/// # Errors
/// The renderer's.
pub fn draw(groups: &Groups<'_>) -> Result<String, PlotError> {
    let mut svg = String::new();
    let rows = groups.levels().len().max(1) as u32;
    let size = (WIDTH + 2 * MARGIN, rows * ROW + 2 * MARGIN);
    render(SVGBackend::with_string(&mut svg, size).into_drawing_area(), groups)
        .map_err(|error| PlotError::new("groups", &*error))?;
    Ok(svg)
}

type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;

fn render(area: Area<'_>, groups: &Groups<'_>) -> Result<(), Box<dyn Error>> {
    area.fill(&WHITE)?;
    if let Some(top) = groups.levels().len().checked_sub(1) {
        span(&area, groups, 0, top, 0)?;
    }
    area.present()?;
    Ok(())
}

/// Draws a group and all groups inside it, from horizontal place `begin` on; returns the place after them.
fn span(area: &Area<'_>, groups: &Groups<'_>, leader: Rank, index: usize, begin: u32) -> Result<u32, Box<dyn Error>> {
    let Some(group) = groups.group(leader, index) else { return Ok(begin + 1) };
    let mut end = begin;
    for member in group.members() {
        end = match index.checked_sub(1) {
            Some(below) => span(area, groups, member, below, end)?,
            None => end + 1,
        };
    }
    let x = |place: u32| (MARGIN + (u64::from(place) * u64::from(WIDTH) / u64::from(groups.ranks())) as u32) as i32;
    let row = groups.levels().len() - 1 - index;
    let top = (MARGIN + row as u32 * ROW) as i32;
    let (left, right) = (x(begin), x(end));
    let corners = [(left, top), (right, top + ROW as i32 - 4)];
    area.draw(&Rectangle::new(corners, Palette99::pick(index).mix(0.35).filled()))?;
    area.draw(&Rectangle::new(corners, BLACK.stroke_width(1)))?;
    let style = (FONT, 12).into_font();
    for (line, text) in (0..).zip([format!("G{} {}", index + 1, group.level()), group.to_string()]) {
        if text.len() as i32 * LETTER < right - left {
            area.draw(&Text::new(text, (left + 4, top + 6 + 16 * line), style.clone()))?;
        }
    }
    Ok(end)
}

//! The programs' drawings, as SVG elements: lines over message sizes, figures of the papers ([`figure`]), groups of
//! ranks ([`groups`]).

pub mod figure;
pub mod groups;
mod sizes;
mod ticks;

use std::error::Error;
use std::fmt;

pub use plotters::style::RGBColor;
pub use sizes::{Frame, Series, Unit, bytes, draw, hue};

const FONT: &str = "sans-serif";

/// The colors of a plot's grid: lines without and with a label.
const LIGHT: RGBColor = RGBColor(240, 240, 240);
const BOLD: RGBColor = RGBColor(222, 222, 222);

/// Why a plot could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlotError {
    /// The plot's title.
    pub title: String,
    /// The renderer's error.
    pub cause: String,
}

impl PlotError {
    fn new(title: &str, cause: &dyn Error) -> Self {
        Self { title: title.into(), cause: cause.to_string() }
    }
}

impl fmt::Display for PlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plot {:?}: {}", self.title, self.cause)
    }
}

impl Error for PlotError {}

/// A label of an axis: 0.25, 3, 20000.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

//! How far a long command is.

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar on the terminal's error stream, for whoever speaks.
pub(crate) fn progress(visible: bool, steps: u64) -> ProgressBar {
    if !visible {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}");
    ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

//! The progress bar of a long command.

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar on standard error, if that is a terminal and `visible` is set, as on rank 0.
pub(crate) fn progress(visible: bool, steps: u64) -> ProgressBar {
    if !visible {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}");
    ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

//! The progress of the data, on standard error, when it is a terminal.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Of an expected number of bytes.
    pub fn new(what: &str, bytes: u64) -> Progress {
        let target = if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(bytes), target);
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, left {eta}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        Progress { bar }
    }

    pub fn add(&self, bytes: usize) {
        self.bar.inc(bytes as u64);
        // An expectation may be too low: sizes on disk are compressed.
        if self.bar.position() > self.bar.length().unwrap_or(0) {
            self.bar.set_length(self.bar.position());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

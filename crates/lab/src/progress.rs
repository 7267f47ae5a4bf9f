//! Progress on standard error: a bar at a terminal, a line per step otherwise.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub struct Progress {
    bar: ProgressBar,
    lines: bool,
}

impl Progress {
    /// For a known number of steps.
    pub fn new(steps: usize) -> Progress {
        let lines = !std::io::stderr().is_terminal();
        let target = if lines { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(steps as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} (left {eta}) {msg}") {
            bar.set_style(style);
        }
        Progress { bar, lines }
    }

    /// Begins a step; the one before it is done.
    pub fn step(&self, what: impl std::fmt::Display) {
        if self.lines {
            eprintln!("[{}/{}] {what}", self.bar.position() + 1, self.bar.length().unwrap_or(0));
        }
        self.bar.set_message(what.to_string());
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

//! The events, as text and as one number: two runs of a seed must agree in it.

use std::collections::VecDeque;
use std::fmt::{Arguments, Write};

/// The events before a failure that are shown.
const TAIL: usize = 40;

pub struct Trace {
    hash: u64,
    verbose: bool,
    tail: VecDeque<String>,
    line: String,
}

impl Trace {
    /// `verbose` prints every event as it happens.
    pub fn new(verbose: bool) -> Trace {
        Trace { hash: 0xcbf2_9ce4_8422_2325, verbose, tail: VecDeque::new(), line: String::new() }
    }

    pub fn event(&mut self, event: Arguments<'_>) {
        let mut line = if self.tail.len() == TAIL { self.tail.pop_front().unwrap_or_default() } else { String::new() };
        line.clear();
        // Writing into a string does not fail.
        let _ = line.write_fmt(event);
        // FNV-1a.
        for byte in line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if self.verbose {
            println!("{line}");
        }
        self.tail.push_back(line);
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The last events.
    pub fn tail(&mut self) -> &str {
        self.line = self.tail.iter().map(|line| format!("    {line}\n")).collect();
        &self.line
    }
}

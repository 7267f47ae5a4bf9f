//! The events, as text and as one number: two runs of a seed must agree in it.

use std::collections::VecDeque;
use std::fmt::Arguments;

/// The events before a failure that are shown.
const TAIL: usize = 40;
/// The shown part of an event.
const SHOWN: usize = 200;

pub struct Trace {
    hash: u64,
    verbose: bool,
    tail: VecDeque<String>,
}

impl Trace {
    /// `verbose` prints every event as it happens.
    pub fn new(verbose: bool) -> Trace {
        Trace { hash: 0xcbf2_9ce4_8422_2325, verbose, tail: VecDeque::new() }
    }

    pub fn event(&mut self, event: Arguments<'_>) {
        let line: String = event.to_string().chars().take(SHOWN).collect();
        // FNV-1a.
        self.hash = line.bytes().fold(self.hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        if self.verbose {
            println!("{line}");
        }
        if self.tail.len() == TAIL {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The last events.
    pub fn tail(&self) -> String {
        self.tail.iter().map(|line| format!("    {line}\n")).collect()
    }
}

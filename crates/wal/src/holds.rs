//! The readers of the log, and the position from which it is kept for each.

use std::collections::BTreeMap;

use melba_types::Lsn;

/// The positions from which the log is kept for readers, whatever recovery needs.
#[derive(Default)]
pub(crate) struct Holds {
    by_reader: BTreeMap<u64, Lsn>,
    next: u64,
}

impl Holds {
    /// Everything from here on is kept.
    pub fn first(&self) -> Lsn {
        self.by_reader.values().copied().min().unwrap_or(Lsn(u64::MAX))
    }
    /// Another reader, who needs everything.
    pub fn add(&mut self) -> u64 {
        self.next += 1;
        self.by_reader.insert(self.next, Lsn(0));
        self.next
    }

    /// A reader needs nothing before `from`.
    pub fn advance(&mut self, reader: u64, from: Lsn) {
        if let Some(held) = self.by_reader.get_mut(&reader) {
            *held = from.max(*held);
        }
    }

    pub fn remove(&mut self, reader: u64) {
        self.by_reader.remove(&reader);
    }
}

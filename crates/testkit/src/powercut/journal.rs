//! The journal that `crates/powercut` writes; its format is described there.

use std::path::Path;

/// The kind of operation; see `crates/powercut/src/journal.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Create,
    Write,
    SetLength,
    Rename,
    Remove,
    MakeFolder,
    SyncBegin,
    SyncEnd,
    SyncFailed,
}

const KINDS: [EntryKind; 9] = [
    EntryKind::Create,
    EntryKind::Write,
    EntryKind::SetLength,
    EntryKind::Rename,
    EntryKind::Remove,
    EntryKind::MakeFolder,
    EntryKind::SyncBegin,
    EntryKind::SyncEnd,
    EntryKind::SyncFailed,
];

/// Lengths of a record's fixed part.
const HEAD: usize = 1 + 2 + 2 + 8 + 4;

/// One operation.
pub struct JournalEntry {
    pub kind: EntryKind,
    pub path: String,
    pub second: String,
    pub number: u64,
    /// Where the data lie in the journal.
    data: std::ops::Range<usize>,
    /// Where the next record begins: the place of a cut after this one.
    pub end: u64,
}

/// All operations of one life of a server, in order.
pub struct Journal {
    bytes: Vec<u8>,
    pub records: Vec<JournalEntry>,
}

impl Journal {
    /// Reads a journal; one that ends in the middle of a record, for its writer was killed, ends before it.
    ///
    /// # Errors
    /// It cannot be read, or is malformed.
    pub fn read(path: &Path) -> Result<Journal, String> {
        let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut records = Vec::new();
        let mut at = 0;
        while let Some(record) = record(&bytes, at)? {
            at = record.end as usize;
            records.push(record);
        }
        Ok(Journal { bytes, records })
    }

    pub fn data(&self, record: &JournalEntry) -> &[u8] {
        &self.bytes[record.data.clone()]
    }
}

fn record(bytes: &[u8], at: usize) -> Result<Option<JournalEntry>, String> {
    let Some(head) = bytes.get(at..at + HEAD) else { return Ok(None) };
    let number = |from: usize, count: usize| head[from..from + count].iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
    let kind = usize::from(head[0]).checked_sub(1).and_then(|n| KINDS.get(n));
    let kind = *kind.ok_or_else(|| format!("the journal has no record at {at}"))?;
    let path = at + HEAD;
    let second = path + number(1, 2) as usize;
    let data = second + number(3, 2) as usize;
    let end = data + number(13, 4) as usize;
    if end > bytes.len() {
        return Ok(None);
    }
    let text = |range: std::ops::Range<usize>| String::from_utf8_lossy(&bytes[range]).into_owned();
    Ok(Some(JournalEntry {
        kind,
        path: text(path..second),
        second: text(second..data),
        number: number(5, 8),
        data: data..end,
        end: end as u64,
    }))
}

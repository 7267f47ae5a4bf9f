//! Reads the log while it is written: for backups, and for archives that follow it.

use melba_types::Lsn;

use crate::error::{Result, WalError};
use crate::format::{FileHeader, WalRecord, file_name, parse_record};
use crate::writer::Wal;

impl Wal {
    /// Keeps the existing log, and what is appended, for a reader: its number. Ends with `release`.
    pub fn hold(&self) -> u64 {
        self.holds.lock().add()
    }

    /// A reader needs nothing before `from` any more.
    pub fn move_hold(&self, reader: u64, from: Lsn) {
        self.holds.lock().advance(reader, from);
    }

    pub fn release(&self, reader: u64) {
        self.holds.lock().remove(reader);
    }

    /// Bytes of records from `from` on, at most `bytes_max` of them: none where nothing more is durable. The last record may be cut.
    ///
    /// # Errors
    /// A file that is missing, for `from` is not held, or cannot be read.
    pub fn read(&self, from: Lsn, bytes_max: usize) -> Result<Vec<u8>> {
        let (start, next) = {
            let files = self.files()?;
            let after = files.starts.partition_point(|s| *s <= from);
            let Some(start) = after.checked_sub(1).map(|at| files.starts[at]) else {
                return Err(WalError::misplaced(&file_name(from), "is not kept any more"));
            };
            (start, files.starts.get(after).copied())
        };
        let end = self.durable().min(next.unwrap_or(Lsn(u64::MAX))).min(Lsn(from.0.saturating_add(bytes_max as u64)));
        if end <= from {
            return Ok(Vec::new());
        }
        let name = file_name(start);
        let io = |e| WalError::io(&name, e);
        let file = self.directory.open(&name).map_err(io)?;
        let mut header = vec![0; file.len().map_err(io)?.min(4 << 10) as usize];
        file.read_at(&mut header, 0).map_err(io)?;
        let Some(Ok(header)) = FileHeader::parse(&header) else {
            return Err(WalError::corrupt(&name, 0, "the header is not one"));
        };
        let mut bytes = vec![0; (end.0 - from.0) as usize];
        file.read_at(&mut bytes, header.bytes as u64 + (from.0 - start.0)).map_err(io)?;
        Ok(bytes)
    }
}

/// Records out of pieces of a log.
pub struct RecordStream {
    /// Where `waiting` begins, from `at` on.
    lsn: Lsn,
    waiting: Vec<u8>,
    at: usize,
}

impl RecordStream {
    /// Of a log from a record that begins at `from` on.
    pub fn new(from: Lsn) -> RecordStream {
        RecordStream { lsn: from, waiting: Vec::new(), at: 0 }
    }

    /// The next bytes of the log.
    pub fn push(&mut self, bytes: &[u8]) {
        self.waiting.drain(..self.at);
        self.at = 0;
        self.waiting.extend_from_slice(bytes);
    }

    /// The next whole record; `None`: more bytes are needed, or the bytes are no record.
    pub fn next_record(&mut self) -> Option<WalRecord<'_>> {
        let record = parse_record(&self.waiting[self.at..], self.lsn)?;
        self.at += (record.end.0 - record.lsn.0) as usize;
        self.lsn = record.end;
        Some(record)
    }

    /// Where the next record would begin.
    pub fn end(&self) -> Lsn {
        self.lsn
    }
}

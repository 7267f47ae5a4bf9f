//! The bytes of log files.
//!
//! ```text
//! file      header (64) | records | end | zeros, or what was there before
//! header    magic "MELBAWAL" (8) | version u32 | crc u32 | start LSN u64 | file length u64 | database u64 | manifest u64 | zeros to 64
//! record    length u32 | crc u32 | LSN u64 | CSN u64 | payload (length bytes)
//! end       ff ff ff ff | crc u32 | LSN u64 | zeros (8)
//! ```
//!
//! All numbers are little-endian, all checksums CRC-32C. A header's covers version and everything behind the checksum; a record's
//! covers the payload, then length, LSN and CSN; an end's covers its other bytes. A record whose CSN is 0 belongs to no commit.
//! The engine defines the payload. An end says that the log continues in the file that begins at its LSN: that file must exist.
//! `file length` is the least length of the file.
//!
//! Version 2 is still read: its header is `magic | version | crc | start LSN | zeros to 32`, and its files have no end.
//!
//! The highest bit of the CSN field says that everything before the record was durable when it was written. So an incomplete
//! record before such a record is damaged, not torn.

use melba_types::{Csn, Lsn};

/// Version in every file's header.
pub const FORMAT_VERSION: u32 = 3;
/// Bytes before a file's first record.
pub const FILE_HEADER_BYTES: usize = 64;
/// The version before, and the bytes of its header.
const OLD_FORMAT_VERSION: u32 = 2;
pub(crate) const OLD_FILE_HEADER_BYTES: usize = 32;
/// Bytes of an end.
pub(crate) const END_BYTES: usize = RECORD_HEADER_BYTES;
/// Bytes before a record's payload.
pub const RECORD_HEADER_BYTES: usize = 24;

pub(crate) const MAGIC: [u8; 8] = *b"MELBAWAL";
/// The greatest CSN that a record can have.
pub const CSN_MAX: u64 = AFTER_SYNC - 1;
/// Bit of the CSN field: everything before the record was durable.
const AFTER_SYNC: u64 = 1 << 63;

/// A record as read back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WalRecord<'a> {
    /// Where it begins.
    pub lsn: Lsn,
    /// Where the next begins.
    pub end: Lsn,
    /// The commit it belongs to, or 0.
    pub csn: Csn,
    /// Everything before it was durable when it was written.
    pub after_sync: bool,
    pub payload: &'a [u8],
}

fn record_crc(payload_crc: u32, length: u32, lsn: Lsn, csn_field: u64) -> u32 {
    let mut tail = [0; 20];
    tail[..4].copy_from_slice(&length.to_le_bytes());
    tail[4..12].copy_from_slice(&lsn.0.to_le_bytes());
    tail[12..].copy_from_slice(&csn_field.to_le_bytes());
    crc32c::crc32c_append(payload_crc, &tail)
}

/// The header of a record.
pub(crate) fn record_header(length: u32, payload_crc: u32, lsn: Lsn, csn: Csn, after_sync: bool) -> [u8; RECORD_HEADER_BYTES] {
    assert!(csn.0 <= CSN_MAX, "commit sequence numbers are used up");
    let csn_field = csn.0 | if after_sync { AFTER_SYNC } else { 0 };
    let mut header = [0; RECORD_HEADER_BYTES];
    header[..4].copy_from_slice(&length.to_le_bytes());
    header[4..8].copy_from_slice(&record_crc(payload_crc, length, lsn, csn_field).to_le_bytes());
    header[8..16].copy_from_slice(&lsn.0.to_le_bytes());
    header[16..].copy_from_slice(&csn_field.to_le_bytes());
    header
}

/// The record at the start of `bytes`; `None` when there is no whole, undamaged one with this LSN.
pub(crate) fn parse_record(bytes: &[u8], lsn: Lsn) -> Option<WalRecord<'_>> {
    let header = bytes.first_chunk::<RECORD_HEADER_BYTES>()?;
    let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
    let (length, crc, csn_field) = (u32_at(0), u32_at(4), u64_at(16));
    if u64_at(8) != lsn.0 {
        return None;
    }
    let payload = bytes.get(RECORD_HEADER_BYTES..RECORD_HEADER_BYTES.checked_add(length as usize)?)?;
    if record_crc(crc32c::crc32c(payload), length, lsn, csn_field) != crc {
        return None;
    }
    let end = Lsn(lsn.0 + (RECORD_HEADER_BYTES + payload.len()) as u64);
    Some(WalRecord { lsn, end, csn: Csn(csn_field & CSN_MAX), after_sync: csn_field & AFTER_SYNC != 0, payload })
}

/// Written behind a file's last record when the log continues in another file, which begins at `lsn`.
pub(crate) fn end_mark(lsn: Lsn) -> [u8; END_BYTES] {
    let mut mark = [0; END_BYTES];
    mark[..4].fill(0xff);
    mark[8..16].copy_from_slice(&lsn.0.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&mark[..4]), &mark[8..]);
    mark[4..8].copy_from_slice(&crc.to_le_bytes());
    mark
}

/// Whether `bytes` begin with an end for this LSN.
pub(crate) fn is_end_mark(bytes: &[u8], lsn: Lsn) -> bool {
    bytes.starts_with(&end_mark(lsn))
}

/// Whether something in `bytes`, of which the first would have this LSN, is a record that was written after a sync, or an end.
/// Everything before it was durable once.
pub(crate) fn has_record_after_sync(bytes: &[u8], lsn: Lsn) -> bool {
    // A record is recognised by its own LSN before its checksum is computed.
    (0..bytes.len().saturating_sub(RECORD_HEADER_BYTES - 1)).any(|at| {
        let lsn = Lsn(lsn.0 + at as u64);
        let is_after_sync = || parse_record(&bytes[at..], lsn).is_some_and(|r| r.after_sync) || is_end_mark(&bytes[at..], lsn);
        bytes[at + 8..at + 16] == lsn.0.to_le_bytes() && is_after_sync()
    })
}

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub start: Lsn,
    /// The file's length when it was begun: it only grows.
    pub len: u64,
    /// The database it belongs to; 0 when it does not say.
    pub database: u64,
    /// The number of the manifest's record that was the last one when it was begun.
    pub manifest: u64,
    /// Where its records begin.
    pub bytes: usize,
}

impl FileHeader {
    pub fn encode(&self) -> [u8; FILE_HEADER_BYTES] {
        let mut header = [0; FILE_HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        for (i, value) in [self.start.0, self.len, self.database, self.manifest].into_iter().enumerate() {
            header[16 + 8 * i..24 + 8 * i].copy_from_slice(&value.to_le_bytes());
        }
        let crc = crc32c::crc32c_append(crc32c::crc32c(&header[8..12]), &header[16..]);
        header[12..16].copy_from_slice(&crc.to_le_bytes());
        header
    }

    /// The header at a file's start; `None` when it is not one, and the version when that is unknown.
    pub fn parse(file: &[u8]) -> Option<Result<FileHeader, u32>> {
        let header = file.first_chunk::<OLD_FILE_HEADER_BYTES>()?;
        let u32_at = |at: usize| u32::from_le_bytes([file[at], file[at + 1], file[at + 2], file[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if header[..8] != MAGIC {
            return None;
        }
        let version_crc = crc32c::crc32c(&header[8..12]);
        match u32_at(8) {
            FORMAT_VERSION => {
                let header = file.first_chunk::<FILE_HEADER_BYTES>()?;
                let is_whole = crc32c::crc32c_append(version_crc, &header[16..]) == u32_at(12);
                let [start, len, database, manifest] = [16, 24, 32, 40].map(u64_at);
                is_whole.then_some(Ok(FileHeader { start: Lsn(start), len, database, manifest, bytes: FILE_HEADER_BYTES }))
            }
            OLD_FORMAT_VERSION => {
                let is_whole = crc32c::crc32c_append(version_crc, &header[16..24]) == u32_at(12);
                let start = Lsn(u64_at(16));
                is_whole.then_some(Ok(FileHeader { start, len: 0, database: 0, manifest: 0, bytes: OLD_FILE_HEADER_BYTES }))
            }
            version => Some(Err(version)),
        }
    }
}

/// The name of the file that begins at `start`.
pub(crate) fn file_name(start: Lsn) -> String {
    format!("{:016x}.wal", start.0)
}

/// The start of a file from its name; `None` for other files.
pub(crate) fn parse_file_name(name: &str) -> Option<Lsn> {
    let digits = name.strip_suffix(".wal")?;
    if digits.len() != 16 {
        return None;
    }
    u64::from_str_radix(digits, 16).ok().map(Lsn)
}

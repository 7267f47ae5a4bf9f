//! The bytes of log files.
//!
//! ```text
//! file      magic "MELBAWAL" (8) | version u32 | crc u32 | start LSN u64 | zeros to 32 | records
//! record    length u32 | crc u32 | LSN u64 | CSN u64 | payload (length bytes)
//! ```
//!
//! All numbers are little-endian, all checksums CRC-32C. A file's covers version and start; a record's covers the payload,
//! then length, LSN and CSN. A record whose CSN is 0 belongs to no commit. What the payload means is the engine's business.
//!
//! The highest bit of the CSN field says that everything before the record was durable when it was written. So where such a record
//! follows one that is not whole, that one is damaged, not torn.

use melba_types::{Csn, Lsn};

/// Version in every file's header.
pub const FORMAT_VERSION: u32 = 2;
/// Bytes before a file's first record.
pub const FILE_HEADER_BYTES: usize = 32;
/// Bytes before a record's payload.
pub const RECORD_HEADER_BYTES: usize = 24;

pub(crate) const MAGIC: [u8; 8] = *b"MELBAWAL";
/// The greatest CSN that a record can have.
pub const CSN_MAX: u64 = AFTER_SYNC - 1;
/// Bit of the CSN field: everything before the record was durable.
const AFTER_SYNC: u64 = 1 << 63;

/// A record as read back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record<'a> {
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
pub(crate) fn parse_record(bytes: &[u8], lsn: Lsn) -> Option<Record<'_>> {
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
    Some(Record { lsn, end, csn: Csn(csn_field & CSN_MAX), after_sync: csn_field & AFTER_SYNC != 0, payload })
}

/// Whether something in `bytes`, of which the first would have this LSN, is a record that was written after a sync. Everything
/// before it was durable once.
pub(crate) fn has_record_after_sync(bytes: &[u8], lsn: Lsn) -> bool {
    // A record is recognised by its own LSN before its checksum is computed.
    (0..bytes.len().saturating_sub(RECORD_HEADER_BYTES - 1)).any(|at| {
        let lsn = Lsn(lsn.0 + at as u64);
        bytes[at + 8..at + 16] == lsn.0.to_le_bytes() && parse_record(&bytes[at..], lsn).is_some_and(|r| r.after_sync)
    })
}

/// The header of a file.
pub(crate) fn file_header(start: Lsn) -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&start.0.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&header[8..12]), &header[16..24]);
    header[12..16].copy_from_slice(&crc.to_le_bytes());
    header
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

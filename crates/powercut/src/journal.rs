//! The journal's records, little-endian:
//!
//! ```text
//! kind: u8 | path: u16 | second path: u16 | number: u64 | data: u32 | the path | the second path | the data
//! ```
//!
//! (lengths of the last three come first). Paths begin below the folder; the path of the folder itself is empty.

use libc::c_int;

use crate::system::{refuse, system};

/// The operation. The number and the data mean:
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Kind {
    Create = 1,
    /// The data, at the offset.
    Write = 2,
    /// The new length.
    SetLength = 3,
    /// To the second path.
    Rename = 4,
    Remove = 5,
    MakeFolder = 6,
    /// The sync's number.
    SyncBegin = 7,
    /// The same number: it has succeeded.
    SyncEnd = 8,
    /// The same number: it has failed, and the disk's state is unknown.
    SyncFailed = 9,
}

/// Appends a record by one call, so that a process that is killed leaves whole ones, or one that is cut short at the end.
pub fn append(journal: c_int, kind: Kind, paths: [&[u8]; 2], number: u64, data: &[u8]) {
    let mut record = Vec::with_capacity(32 + paths[0].len() + paths[1].len() + data.len());
    record.push(kind as u8);
    for path in paths {
        record.extend((path.len() as u16).to_le_bytes());
    }
    record.extend(number.to_le_bytes());
    record.extend((data.len() as u32).to_le_bytes());
    record.extend(paths.concat());
    record.extend(data);
    let mut left = record.as_slice();
    while !left.is_empty() {
        match usize::try_from(system!(SYS_write, journal, left.as_ptr(), left.len())) {
            Ok(taken) => left = &left[taken..],
            Err(_) => refuse("a journal that cannot be written"),
        }
    }
}

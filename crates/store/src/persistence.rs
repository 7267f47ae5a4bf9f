//! What a restart keeps of trees and sequences, and the bytes by which the log and the manifest record it.

use melba_types::Kind;
use melba_types::bytes::{ByteReader, put_u16};

/// What a restart keeps of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Persistence {
    /// Everything that was committed.
    Logged = 0,
    /// Everything after a clean stop, nothing after a crash.
    Unlogged = 1,
    /// Nothing; rows never touch the disk. The tree itself stays.
    Memory = 2,
    /// Not even the tree.
    Temporary = 3,
}

impl Persistence {
    /// Reads its byte; `None`: it is invalid.
    pub fn read(r: &mut ByteReader<'_>) -> Option<Persistence> {
        Some(match r.u8()? {
            0 => Persistence::Logged,
            1 => Persistence::Unlogged,
            2 => Persistence::Memory,
            3 => Persistence::Temporary,
            _ => return None,
        })
    }
}

/// Appends the kinds of a table's columns.
pub fn put_kinds(kinds: &[Kind], out: &mut Vec<u8>) {
    put_u16(kinds.len() as u16, out);
    out.extend(kinds.iter().map(|k| *k as u8));
}

/// The kinds of a table's columns; `None`: they are malformed.
pub fn read_kinds(r: &mut ByteReader<'_>) -> Option<Vec<Kind>> {
    let count = r.u16()?;
    r.take(usize::from(count))?.iter().map(|k| Kind::from_u8(*k)).collect()
}

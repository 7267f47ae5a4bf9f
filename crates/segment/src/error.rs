//! The errors of a segment.

use std::fmt;
use std::io;
use std::sync::Arc;

/// An error of a segment's file. `file` is its name within its directory.
#[derive(Debug)]
pub enum SegmentError {
    /// The file system failed.
    Io { file: Arc<str>, error: io::Error },
    /// The file differs from the bytes that a writer wrote.
    Corrupt { file: Arc<str>, block: BlockName, reason: &'static str },
    /// The file is of a format version that this program does not know.
    Version { file: Arc<str>, found: u32 },
}

/// A part of a segment's file, for error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockName {
    Header,
    Tail,
    Footer,
    /// Data blocks, numbered from 0 in file order.
    Data(u32),
}

impl fmt::Display for BlockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockName::Header => f.write_str("header"),
            BlockName::Tail => f.write_str("tail"),
            BlockName::Footer => f.write_str("footer"),
            BlockName::Data(number) => write!(f, "block {number}"),
        }
    }
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentError::Io { file, error } => write!(f, "could not access file \"{file}\": {error}"),
            SegmentError::Corrupt { file, block, reason } => write!(f, "invalid {block} in file \"{file}\": {reason}"),
            SegmentError::Version { file, found } => write!(f, "file \"{file}\" has unknown format version {found}"),
        }
    }
}

impl std::error::Error for SegmentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SegmentError::Io { error, .. } => Some(error),
            SegmentError::Corrupt { .. } | SegmentError::Version { .. } => None,
        }
    }
}

pub type Result<T> = std::result::Result<T, SegmentError>;

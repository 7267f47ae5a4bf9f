//! A repository's record of a backup: JSON, so that people and other tools can read it.

use serde::{Deserialize, Serialize};

/// Version of the format.
pub const FORMAT: u32 = 1;

/// `backups/TIME.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Backup {
    pub format: u32,
    /// The server's version.
    pub server: String,
    /// When the server's state was requested, and when the last file had been copied: RFC 3339.
    pub began: String,
    pub ended: String,
    pub manifest: Content,
    /// Where recovery begins to read the log.
    pub replay: u64,
    #[serde(flatten)]
    pub part: Part,
    /// Configuration files of the data directory, by name.
    pub configuration: Vec<(String, String)>,
}

impl Backup {
    /// Its own part, and those that it has got later.
    pub fn with<'a>(&'a self, parts: &'a [(String, Part)]) -> impl Iterator<Item = &'a Part> {
        std::iter::once(&self.part).chain(parts.iter().map(|(_, part)| part))
    }
}

/// `backups/TIME/TO.json`, and the same part of a backup itself: a part of the log, and the segments that are needed with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// When the log was durable up to `to`: RFC 3339.
    pub at: String,
    pub from: u64,
    pub to: u64,
    pub log: Vec<LogPiece>,
    pub segments: Vec<Segment>,
}

/// An object's size and CRC-32C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    pub bytes: u64,
    pub crc: u32,
}

impl Content {
    pub fn of(bytes: &[u8]) -> Content {
        Content { bytes: bytes.len() as u64, crc: crc32c::crc32c(bytes) }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LogPiece {
    pub from: u64,
    pub to: u64,
    #[serde(flatten)]
    pub content: Content,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Segment {
    pub file: u64,
    pub footer: u32,
    #[serde(flatten)]
    pub content: Content,
}

impl Segment {
    /// Its name below the database's.
    pub fn key(&self) -> String {
        segment_key(self.file, self.footer)
    }
}

impl LogPiece {
    pub fn key(&self) -> String {
        format!("log/{:016x}-{:016x}", self.from, self.to)
    }
}

pub fn segment_key(file: u64, footer: u32) -> String {
    format!("segments/{file:016x}-{footer:08x}")
}

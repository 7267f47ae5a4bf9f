//! Rows as files: a file per document uncompressed, or a file per row compressed.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::form::{Form, Row, joined, parted, timed};
use crate::Result;

/// Rows of a folder: file systems dislike a million files in one.
const FOLDER_ROWS: u64 = 1000;
const ZLIB_LEVEL: u32 = 6;

/// The compression of a row's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// A file a document.
    Text,
    ZlibBase64,
    Zlib,
    ZlibLzma,
    Lzma(u32),
}

impl Codec {
    pub fn name(self) -> String {
        match self {
            Codec::Text => "files: text".to_owned(),
            Codec::ZlibBase64 => "files: zlib and base64 a row".to_owned(),
            Codec::Zlib => "files: zlib a row".to_owned(),
            Codec::ZlibLzma => "files: zlib, then lzma a row".to_owned(),
            Codec::Lzma(level) => format!("files: lzma level {level} a row"),
        }
    }

    fn encode(self, content: &[u8]) -> Result<Vec<u8>> {
        match self {
            Codec::Text => Ok(content.to_vec()),
            Codec::ZlibBase64 => Ok(BASE64.encode(zlib(content)?).into_bytes()),
            Codec::Zlib => zlib(content),
            Codec::ZlibLzma => lzma(&zlib(content)?, 6),
            Codec::Lzma(level) => lzma(content, level),
        }
    }

    fn decode(self, stored: Vec<u8>) -> Result<Vec<u8>> {
        match self {
            Codec::Text => Ok(stored),
            Codec::ZlibBase64 => unzlib(&BASE64.decode(stored).map_err(|e| e.to_string())?),
            Codec::Zlib => unzlib(&stored),
            Codec::ZlibLzma => unzlib(&unlzma(&stored)?),
            Codec::Lzma(_) => unlzma(&stored),
        }
    }
}

/// A zlib stream.
pub fn zlib(content: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(ZLIB_LEVEL));
    encoder.write_all(content).and_then(|()| encoder.finish()).map_err(|e| e.to_string())
}

/// The content of a zlib stream.
pub fn unzlib(stream: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    flate2::read::ZlibDecoder::new(stream).read_to_end(&mut out).map_err(|e| e.to_string())?;
    Ok(out)
}

fn lzma(content: &[u8], level: u32) -> Result<Vec<u8>> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), level);
    encoder.write_all(content).and_then(|()| encoder.finish()).map_err(|e| e.to_string())
}

fn unlzma(stream: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    liblzma::read::XzDecoder::new(stream).read_to_end(&mut out).map_err(|e| e.to_string())?;
    Ok(out)
}

/// Rows in files below a folder.
pub struct Files {
    folder: PathBuf,
    codec: Codec,
}

impl Files {
    pub fn new(scratch: &Path, codec: Codec) -> Files {
        Files { folder: scratch.join("files"), codec }
    }

    /// A row's folder or file.
    fn path(&self, id: u64) -> PathBuf {
        self.folder.join(format!("{:06}", id / FOLDER_ROWS)).join(format!("{id:09}"))
    }

    fn write(&self, row: &Row) -> std::result::Result<(), String> {
        let path = self.path(row.id);
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        if self.codec == Codec::Text {
            std::fs::create_dir_all(&path).map_err(failed)?;
            let mut each = row.documents.iter().enumerate();
            return each.try_for_each(|(at, document)| std::fs::write(path.join(at.to_string()), document).map_err(failed));
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        std::fs::write(&path, self.codec.encode(&joined(&row.documents))?).map_err(failed)
    }

    fn read_row(&self, id: u64) -> Result<Option<Vec<Vec<u8>>>> {
        let path = self.path(id);
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        if !path.exists() {
            return Ok(None);
        }
        if self.codec != Codec::Text {
            return parted(&self.codec.decode(std::fs::read(&path).map_err(failed)?)?).map(Some);
        }
        let files = (0..).map(|at: usize| path.join(at.to_string())).take_while(|file| file.exists());
        files.map(|file| std::fs::read(file).map_err(failed)).collect::<Result<_>>().map(Some)
    }
}

impl Form for Files {
    fn insert(&mut self, rows: &[Row]) -> Result<Duration> {
        timed(|| rows.iter().try_for_each(|row| self.write(row))).map(|(_, took)| took)
    }

    fn update(&mut self, rows: &[Row]) -> Result<Duration> {
        self.insert(rows)
    }

    fn delete(&mut self, ids: &[u64]) -> Result<Duration> {
        let remove = |path: PathBuf| match self.codec {
            Codec::Text => std::fs::remove_dir_all(path),
            _ => std::fs::remove_file(path),
        };
        timed(|| ids.iter().try_for_each(|id| remove(self.path(*id)).map_err(|e| e.to_string()))).map(|(_, took)| took)
    }

    fn maintain(&mut self) -> Result<Duration> {
        Ok(Duration::ZERO)
    }

    fn read(&mut self, id: u64) -> Result<(Option<Vec<Vec<u8>>>, Duration)> {
        timed(|| self.read_row(id))
    }

    fn bytes(&mut self) -> Result<u64> {
        Ok(allocated_bytes(&self.folder))
    }

    fn remove(&mut self) -> Result<()> {
        std::fs::remove_dir_all(&self.folder).map_err(|e| format!("{}: {e}", self.folder.display()))
    }
}

/// Bytes that the file system has set aside for the files below a folder.
pub fn allocated_bytes(path: &Path) -> u64 {
    let own = std::fs::symlink_metadata(path).map_or(0, |m| if m.is_file() { m.blocks() * 512 } else { 0 });
    own + std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| allocated_bytes(&e.path())).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_by_every_codec() {
        for codec in [Codec::Text, Codec::ZlibBase64, Codec::Zlib, Codec::ZlibLzma, Codec::Lzma(3)] {
            let scratch = tempfile::tempdir().unwrap();
            let mut files = Files::new(scratch.path(), codec);
            let row = |id: u64, text: &str| Row { id, documents: vec![text.repeat(500).into_bytes(), b"two".to_vec()] };
            files.insert(&[row(1, "abc"), row(2000, "def")]).unwrap();
            let full = files.bytes().unwrap();
            assert!(full >= 2 * 4096 || codec != Codec::Text, "blocks are counted: {full}");
            files.update(&[row(1, "xyz")]).unwrap();
            assert_eq!(files.read(1).unwrap().0, Some(row(1, "xyz").documents), "{codec:?}");
            files.delete(&[1]).unwrap();
            assert_eq!(files.read(1).unwrap().0, None);
            assert_eq!(files.read(2000).unwrap().0, Some(row(2000, "def").documents));
            files.remove().unwrap();
            assert!(!scratch.path().join("files").exists());
        }
    }
}

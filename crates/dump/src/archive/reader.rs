//! Reads a dump: walks the headers of all blocks once, then streams by number.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::BLOCK_BYTES;
use super::contents::{Contents, StreamInfo};
use super::format::{BLOCK_HEADER_BYTES, BlockHeader, CONTENTS, END, FILE_HEADER_BYTES, FileHeader};
use super::writer::part_name;
use crate::Result;

/// An opened dump.
pub struct ArchiveReader {
    files: Vec<File>,
    pub contents: Contents,
    /// By stream number.
    streams: HashMap<u32, Stream>,
    /// The end block was found and all it counts.
    whole: bool,
}

/// Where a stream's blocks are.
#[derive(Default)]
struct Stream {
    /// Part and offset of each block's header, by sequence number.
    blocks: Vec<Option<(u32, u64)>>,
    /// The empty block was found.
    ended: bool,
    /// Bytes before compression, as far as there are blocks.
    raw_bytes: u64,
}

impl Stream {
    fn is_whole(&self) -> bool {
        self.ended && self.blocks.iter().all(Option::is_some)
    }
}

impl ArchiveReader {
    /// Opens a file or a folder of parts, as far as they are readable: see [`ArchiveReader::missing`].
    pub fn open(path: &Path) -> Result<ArchiveReader> {
        let paths = match path.is_dir() {
            true => (0..).map(|part| path.join(part_name(part))).take_while(|p| p.exists()).collect(),
            false => vec![path.to_owned()],
        };
        if paths.is_empty() {
            return Err(format!("{} has no {}", path.display(), part_name(0)));
        }
        let mut streams = HashMap::new();
        let mut end = None;
        let mut blocks = 0;
        let mut files = Vec::new();
        let mut dump = None;
        for (part, path) in (0..).zip(&paths) {
            let shown = |e: String| format!("{}: {e}", path.display());
            let file = File::open(path).map_err(|e| shown(e.to_string()))?;
            let header = file_header(&file).map_err(shown)?;
            if header.part != part || *dump.get_or_insert(header.dump) != header.dump {
                return Err(shown("the file belongs to another dump or to another place in it".to_owned()));
            }
            blocks += walk(&file, part, &mut streams, &mut end).map_err(|e| shown(e.to_string()))?;
            files.push(file);
        }
        let mut reader = ArchiveReader { files, contents: Contents::empty(), streams, whole: false };
        if let Some(at) = end {
            let raw = reader.block(at, END, 0)?;
            let counted: Vec<u8> = [(paths.len() as u32).to_le_bytes().as_slice(), &u64::to_le_bytes(blocks)].concat();
            reader.whole = raw == counted;
        }
        let json = reader.blocks(CONTENTS)?.collect::<Result<Vec<_>>>()?.concat();
        reader.contents = serde_json::from_slice(&json).map_err(|e| format!("the dump's contents cannot be read: {e}"))?;
        Ok(reader)
    }

    /// Streams that the dump lacks although its contents list them.
    pub fn missing(&self) -> Vec<&StreamInfo> {
        let is_whole = |number| self.streams.get(&number).is_some_and(Stream::is_whole);
        self.contents.numbered().filter(|(number, _)| !is_whole(*number)).map(|(_, info)| info).collect()
    }

    /// Whether the dump was finished.
    pub fn is_whole(&self) -> bool {
        self.whole && self.missing().is_empty()
    }

    /// Bytes of a stream before compression.
    pub fn raw_bytes(&self, stream: u32) -> u64 {
        self.streams.get(&stream).map_or(0, |s| s.raw_bytes)
    }

    /// The blocks of a whole stream.
    pub fn blocks(&self, stream: u32) -> Result<impl Iterator<Item = Result<Vec<u8>>>> {
        let title = match self.contents.numbered().find(|(number, _)| *number == stream) {
            Some((_, info)) => info.title(),
            None => "its contents".to_owned(),
        };
        let Some(found) = self.streams.get(&stream).filter(|s| s.is_whole()) else {
            return Err(format!("the dump is incomplete, it was interrupted or cut off: it lacks {title}"));
        };
        let checked = move |(sequence, at): (u32, &(u32, u64))| {
            self.block(*at, stream, sequence).map_err(|e| format!("{e}; damaged is {title}"))
        };
        Ok((0..).zip(found.blocks.iter().flatten()).map(checked))
    }

    /// A block's raw bytes, checked.
    fn block(&self, (part, offset): (u32, u64), stream: u32, sequence: u32) -> Result<Vec<u8>> {
        let wrong = |what: &str| format!("block {sequence} of stream {stream} (part {part}, byte {offset}) {what}");
        let file = &self.files[part as usize];
        let mut head = [0; BLOCK_HEADER_BYTES];
        file.read_exact_at(&mut head, offset).map_err(|e| wrong(&e.to_string()))?;
        let header = BlockHeader::decode(&head);
        let mut stored = vec![0; header.stored_bytes as usize];
        file.read_exact_at(&mut stored, offset + BLOCK_HEADER_BYTES as u64).map_err(|e| wrong(&e.to_string()))?;
        if !header.matches(&stored) || header.raw_bytes as usize > BLOCK_BYTES {
            return Err(wrong("is damaged: its checksum does not match"));
        }
        let mut raw = Vec::with_capacity(header.raw_bytes as usize);
        zstd_safe::decompress(&mut raw, &stored).map_err(|e| wrong(zstd_safe::get_error_name(e)))?;
        if raw.len() != header.raw_bytes as usize {
            return Err(wrong("has another length than it says"));
        }
        Ok(raw)
    }
}

impl Contents {
    fn empty() -> Contents {
        let nothing = String::new;
        Contents { server: nothing(), database: nothing(), taken_at: nothing(), entries: Vec::new(), streams: Vec::new() }
    }
}

fn file_header(mut file: &File) -> Result<FileHeader> {
    let mut bytes = [0; FILE_HEADER_BYTES];
    file.read_exact(&mut bytes).map_err(|_| "not a dump made by melba dump".to_owned())?;
    FileHeader::decode(&bytes)
}

/// Notes where the blocks of a file are, up to its end or to where it was cut off; how many there are, without the end block.
fn walk(file: &File, part: u32, streams: &mut HashMap<u32, Stream>, end: &mut Option<(u32, u64)>) -> std::io::Result<u64> {
    let length = file.metadata()?.len();
    let mut reader = BufReader::with_capacity(4096, file);
    let mut at = FILE_HEADER_BYTES as u64;
    reader.seek(SeekFrom::Start(at))?;
    let mut blocks = 0;
    let mut head = [0; BLOCK_HEADER_BYTES];
    while at + BLOCK_HEADER_BYTES as u64 <= length {
        reader.read_exact(&mut head)?;
        let header = BlockHeader::decode(&head);
        let next = at + BLOCK_HEADER_BYTES as u64 + u64::from(header.stored_bytes);
        // More blocks than bytes there cannot be: a damaged number would make us reserve memory for nothing.
        if next > length || u64::from(header.sequence) > length {
            break;
        }
        if header.stream == END {
            *end = Some((part, at));
        } else {
            blocks += 1;
            let stream: &mut Stream = streams.entry(header.stream).or_default();
            let sequence = header.sequence as usize;
            if stream.blocks.len() <= sequence {
                stream.blocks.resize(sequence + 1, None);
            }
            stream.blocks[sequence] = Some((part, at));
            stream.ended |= header.raw_bytes == 0;
            stream.raw_bytes += u64::from(header.raw_bytes);
        }
        reader.seek_relative(i64::from(header.stored_bytes))?;
        at = next;
    }
    Ok(blocks)
}

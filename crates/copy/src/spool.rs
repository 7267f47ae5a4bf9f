//! Input that is needed as a whole, in a temporary file; and files of Parquet as the rows of a COPY FROM.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use melba_engine::{TempBlock, TempFile};
use melba_parquet::{FileReader, Source, Wanted};
use melba_spill::Resources;
use melba_types::{Result, bail, err};
use parking_lot::Mutex;

/// Bytes of a block of the temporary file; input up to this stays in memory.
const BLOCK_BYTES: usize = 256 << 10;

/// Input so far.
#[derive(Default)]
pub(crate) struct Spool {
    file: Option<Arc<TempFile>>,
    blocks: Vec<TempBlock>,
    /// What no block has yet.
    rest: Vec<u8>,
    packed: Vec<u8>,
}

impl Spool {
    /// # Errors
    /// 53400 and 53100 when the temporary file would be too large.
    pub fn feed(&mut self, resources: &Resources, data: &[u8]) -> Result<()> {
        self.rest.extend_from_slice(data);
        if self.rest.len() <= BLOCK_BYTES {
            return Ok(());
        }
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(resources.file()?),
        };
        let whole = self.rest.len() / BLOCK_BYTES * BLOCK_BYTES;
        for block in self.rest[..whole].chunks(BLOCK_BYTES) {
            self.blocks.push(file.append(block, &mut self.packed)?);
        }
        self.rest.drain(..whole);
        Ok(())
    }

    /// The input is whole.
    pub fn finish(self) -> Arc<dyn Source> {
        Arc::new(Spooled { file: self.file, blocks: self.blocks, rest: self.rest, last: Mutex::default() })
    }
}

/// Input as a whole.
struct Spooled {
    file: Option<Arc<TempFile>>,
    blocks: Vec<TempBlock>,
    rest: Vec<u8>,
    last: Mutex<LastBlock>,
}

/// The block that was read last.
#[derive(Default)]
struct LastBlock {
    number: Option<usize>,
    bytes: Vec<u8>,
    packed: Vec<u8>,
}

impl Source for Spooled {
    fn len(&self) -> u64 {
        (self.blocks.len() * BLOCK_BYTES + self.rest.len()) as u64
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut at = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let mut filled = 0;
        while filled < out.len() {
            let (number, start) = (at / BLOCK_BYTES, at % BLOCK_BYTES);
            let mut last = self.last.lock();
            let block = match (self.blocks.get(number), &self.file) {
                (None, _) => &self.rest,
                (Some(_), Some(_)) if last.number == Some(number) => &last.bytes,
                (Some(block), Some(file)) => {
                    let LastBlock { number: read, bytes, packed } = &mut *last;
                    *read = None;
                    file.read(*block, packed, bytes).map_err(io::Error::other)?;
                    *read = Some(number);
                    bytes
                }
                (Some(_), None) => return Err(io::ErrorKind::UnexpectedEof.into()),
            };
            // Beyond the last block there is the rest, which begins where the blocks end.
            let part = if number > self.blocks.len() { None } else { block.get(start..) };
            let part = part.filter(|part| !part.is_empty()).ok_or(io::ErrorKind::UnexpectedEof)?;
            let bytes = part.len().min(out.len() - filled);
            out[filled..filled + bytes].copy_from_slice(&part[..bytes]);
            filled += bytes;
            at += bytes;
        }
        Ok(())
    }

    fn read_ahead(&self) -> usize {
        BLOCK_BYTES
    }
}

/// A file of the server's machine.
pub struct ServerFile {
    pub file: File,
    pub bytes: u64,
}

impl Source for ServerFile {
    fn len(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }
}

/// Which of a file's columns each wanted one is: by name when the file has all names, by position when it has none of them and as many
/// columns. `wanted` has the place 0 everywhere before.
///
/// # Errors
/// 22P04 when it is neither, and for columns of the file that a statement without a list of columns would leave out.
pub(crate) fn match_columns(file: &FileReader, wanted: &mut [Wanted], all: bool) -> Result<()> {
    let names: Vec<&str> = file.columns().iter().map(|c| c.name.as_str()).collect();
    let place = |name: &str| names.iter().position(|known| *known == name);
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| place(name) != Some(*at)) {
        bail!(BAD_COPY_FILE_FORMAT, "the Parquet file has two columns \"{}\"", twice.1);
    }
    let places: Vec<Option<usize>> = wanted.iter().map(|w| place(&w.name)).collect();
    if places.iter().all(Option::is_none) && wanted.len() == names.len() {
        wanted.iter_mut().enumerate().for_each(|(at, w)| w.at = at);
        return Ok(());
    }
    for (w, place) in wanted.iter_mut().zip(&places) {
        w.at = place.ok_or_else(|| {
            err!(BAD_COPY_FILE_FORMAT, "the Parquet file has no column \"{}\"", w.name)
                .hint("List the columns that the file has in the COPY statement.")
        })?;
    }
    match (0..names.len()).find(|at| !wanted.iter().any(|w| w.at == *at)) {
        Some(extra) if all => {
            Err(err!(BAD_COPY_FILE_FORMAT, "the table has no column for column \"{}\" of the Parquet file", names[extra])
                .hint("List the columns to be read in the COPY statement."))
        }
        _ => Ok(()),
    }
}

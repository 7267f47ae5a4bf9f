//! Input that is needed as a whole, in a temporary file; files and objects as input.

use std::io;
use std::sync::Arc;

use melba_engine::{TempBlock, TempFile};
use melba_objects::ObjectReader;
use melba_parquet::FileBytes;
use melba_spill::Resources;
use melba_types::Result;
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
    pub fn finish(self) -> Arc<dyn FileBytes> {
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

impl FileBytes for Spooled {
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

/// An object of an object store.
pub struct StoredObject(pub ObjectReader);

impl FileBytes for StoredObject {
    fn len(&self) -> u64 {
        self.0.bytes()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.0.read(offset..offset + out.len() as u64).map_err(io::Error::other)?;
        if bytes.len() != out.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.copy_from_slice(&bytes);
        Ok(())
    }

    /// An answer takes as long as many bytes.
    fn read_ahead(&self) -> usize {
        1 << 20
    }
}

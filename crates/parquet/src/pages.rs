//! The pages of a column. What their headers say is checked before the decoder takes memory for it.
//!
//! A page takes as much memory as it has bytes uncompressed: no more than its column says to have in the row group, and no more than
//! the server has left. A dictionary has no more values than bytes.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use melba_types::limits;

use crate::source::{Chunks, SourceReader};

/// Bytes that hold the type and both sizes of a page, which come first.
const HEADER_BYTES: u64 = 24;
/// A field of an i32 that follows the one before.
const NEXT_I32: u8 = 0x15;

/// Bytes of the largest page of a column so far.
pub(crate) type LargestPage = Arc<AtomicUsize>;

/// A reader of a column's pages in a row group.
pub(crate) fn open(chunks: &Chunks, chunk: &ColumnChunkMetaData, rows: usize, largest: &LargestPage) -> Result<CheckedPages> {
    let limit = u64::try_from(chunk.uncompressed_size()).unwrap_or(0);
    let bytes = Arc::new(PageBytes { chunks: chunks.clone(), limit, largest: Arc::clone(largest) });
    Ok(CheckedPages { pages: SerializedPageReader::new(bytes, chunk, rows, None)? })
}

/// The bytes of a column. The decoder asks for a reader where the header of a page begins.
struct PageBytes {
    chunks: Chunks,
    /// Bytes of a page at most.
    limit: u64,
    largest: LargestPage,
}

impl Length for PageBytes {
    fn len(&self) -> u64 {
        self.chunks.len()
    }
}

impl ChunkReader for PageBytes {
    type T = SourceReader;

    fn get_read(&self, start: u64) -> Result<SourceReader> {
        let mut header = Vec::new();
        self.chunks
            .get_read(start)?
            .take(HEADER_BYTES)
            .read_to_end(&mut header)
            .map_err(|e| ParquetError::External(Box::new(e)))?;
        let bytes = page_bytes(&header).ok_or_else(|| ParquetError::General("a page has an invalid header".to_owned()))?;
        if bytes > self.limit {
            let limit = self.limit;
            return Err(ParquetError::General(format!("a page of {bytes} bytes is in a column of {limit} bytes")));
        }
        let bytes = bytes as usize;
        // Where others find the errors of reading, too.
        limits::check_request(bytes).map_err(|e| ParquetError::External(Box::new(std::io::Error::other(e))))?;
        self.largest.fetch_max(bytes, Ordering::Relaxed);
        self.chunks.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.chunks.get_bytes(start, length)
    }
}

/// The bytes that a page has uncompressed, by the beginning of its header.
fn page_bytes(header: &[u8]) -> Option<u64> {
    let mut rest = header;
    // Its type comes before.
    field(&mut rest)?;
    u64::try_from(field(&mut rest)?).ok()
}

/// A field of Thrift's compact protocol: an integer, zigzag, seven bits in a byte.
fn field(rest: &mut &[u8]) -> Option<i64> {
    *rest = rest.strip_prefix(&[NEXT_I32])?;
    let mut value = 0_u64;
    for shift in (0..35).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    None
}

/// Pages whose dictionaries fit their bytes.
pub(crate) struct CheckedPages {
    pages: SerializedPageReader<PageBytes>,
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(Page::DictionaryPage { buf, num_values, .. }) = &page
            && *num_values as usize > buf.len()
        {
            let bytes = buf.len();
            return Err(ParquetError::General(format!("a dictionary of {bytes} bytes has {num_values} values")));
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stand_in_headers() {
        // A data page of 150 and of 2^31 - 1 bytes.
        assert_eq!(page_bytes(&[0x15, 0x00, 0x15, 0xac, 0x02, 0x15, 0x02]), Some(150));
        assert_eq!(page_bytes(&[0x15, 0x00, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f]), Some(i32::MAX as u64));
        // Less than none, another field, no end.
        assert_eq!(page_bytes(&[0x15, 0x00, 0x15, 0x01]), None);
        assert_eq!(page_bytes(&[0x15, 0x00, 0x25, 0x02]), None);
        assert_eq!(page_bytes(&[0x15, 0x00, 0x15, 0xff, 0xff]), None);
    }

    #[test]
    fn a_page_is_not_larger_than_its_column() {
        let header: Vec<u8> = [&[0x15, 0x00, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 0x02][..], &[0; 32]].concat();
        let bytes = |limit| PageBytes { chunks: Chunks(Arc::new(header.clone())), limit, largest: LargestPage::default() };
        let error = bytes(1000).get_read(0).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("a page of 2147483647 bytes is in a column of 1000 bytes"), "{error}");
        // No value has so many bytes, whatever the column says.
        assert!(bytes(u64::MAX).get_read(0).is_err());
    }
}

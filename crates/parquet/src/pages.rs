//! The pages of a column. What their headers say is checked before the decoder takes memory for it.
//!
//! A page takes as much memory as it has bytes uncompressed: no more than its column says to have in the row group, and no more than
//! the server has left. A dictionary has no more values than bytes.
//!
//! A small page may stand for many long values: by a dictionary, and by levels that repeat. `Progress` says how many values may be
//! read at once.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescPtr;

use melba_types::{DbError, limits};

use crate::levels;
use crate::source::{Chunks, SourceReader};

/// Bytes that hold the type and both sizes of a page, which come first.
const HEADER_BYTES: u64 = 24;
/// A field of an i32 that follows the one before.
const NEXT_I32: u8 = 0x15;

/// Bytes that the values of a step have, about, unless a single one has more.
const STEP_BYTES: usize = 4 << 20;
/// Values of a page of lists at most. A page of others is read in parts.
const LIST_PAGE_VALUES_MAX: usize = 1 << 24;

/// What is known of the page that a column's decoder reads. The pages know it when they are loaded, the reader asks between steps.
#[derive(Default)]
pub(crate) struct Progress {
    /// Bytes of the largest page so far.
    largest: AtomicUsize,
    /// Bytes of the longest string of the dictionary.
    longest: AtomicUsize,
    /// Bytes that each value of the page may take, at most; 0 when all of them together are no more than `STEP_BYTES`.
    each: AtomicUsize,
    /// Values of the page that were not read, nulls included.
    left: AtomicUsize,
    /// Values of the pages that were loaded since the step began.
    loaded: AtomicUsize,
}

impl Progress {
    /// Bytes that the decoder holds: a page and a dictionary.
    pub fn memory_bytes(&self) -> usize {
        2 * self.largest.load(Ordering::Relaxed)
    }

    /// Forgets the pages of another row group.
    fn restart(&self) {
        [&self.longest, &self.each, &self.left].into_iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    /// A step begins, which may load pages.
    pub fn begin_step(&self) {
        self.loaded.store(0, Ordering::Relaxed);
    }

    /// Values that may be read next, at least 1. A step does not go on to the next page unless it is one value.
    pub fn step(&self) -> usize {
        let left = self.left.load(Ordering::Relaxed);
        match self.each.load(Ordering::Relaxed) {
            0 => left.max(1),
            each => left.min(STEP_BYTES / each).max(1),
        }
    }

    /// So many values were read.
    pub fn read(&self, values: usize) {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(values), Ordering::Relaxed);
    }

    fn load(&self, values: usize, each: usize) {
        self.each.store(each, Ordering::Relaxed);
        self.left.fetch_add(values, Ordering::Relaxed);
        self.loaded.fetch_add(values, Ordering::Relaxed);
    }
}

/// A reader of a column's pages in a row group.
pub(crate) fn open(chunks: &Chunks, chunk: &ColumnChunkMetaData, rows: usize, progress: &Arc<Progress>) -> Result<CheckedPages> {
    let limit = u64::try_from(chunk.uncompressed_size()).unwrap_or(0);
    progress.restart();
    let bytes = Arc::new(PageBytes { chunks: chunks.clone(), limit, progress: Arc::clone(progress) });
    let pages = SerializedPageReader::new(bytes, chunk, rows, None)?;
    Ok(CheckedPages { pages, peeked: None, column: chunk.column_descr_ptr(), progress: Arc::clone(progress) })
}

/// The bytes of a column. The decoder asks for a reader where the header of a page begins.
struct PageBytes {
    chunks: Chunks,
    /// Bytes of a page at most.
    limit: u64,
    progress: Arc<Progress>,
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
        limits::check_request(bytes).map_err(wrapped)?;
        self.progress.largest.fetch_max(bytes, Ordering::Relaxed);
        self.chunks.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.chunks.get_bytes(start, length)
    }
}

/// An error where others find those of reading, too.
pub(crate) fn wrapped(error: DbError) -> ParquetError {
    ParquetError::External(Box::new(std::io::Error::other(error)))
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

/// Pages whose values fit into their bytes.
pub(crate) struct CheckedPages {
    pages: SerializedPageReader<PageBytes>,
    /// A page that was looked at. The decoder would go on behind its header, where `PageBytes` expects one.
    peeked: Option<Page>,
    column: ColumnDescPtr,
    progress: Arc<Progress>,
}

impl CheckedPages {
    fn check(&self, page: &Page) -> Result<()> {
        match page {
            Page::DictionaryPage { buf, num_values, .. } => self.check_dictionary(buf, *num_values as usize),
            Page::DataPage { buf, num_values, encoding, .. } => {
                let mut values = &buf[..];
                for level in [self.column.max_rep_level(), self.column.max_def_level()] {
                    if level > 0 {
                        values = after_levels(values);
                    }
                }
                self.check_values(buf.len(), values, *num_values as usize, *encoding)
            }
            Page::DataPageV2 { buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let levels = (*def_levels_byte_len as usize).saturating_add(*rep_levels_byte_len as usize);
                self.check_values(buf.len(), buf.get(levels..).unwrap_or_default(), *num_values as usize, *encoding)
            }
        }
    }

    fn check_dictionary(&self, bytes: &[u8], values: usize) -> Result<()> {
        let physical = self.column.physical_type();
        let least = if physical == PhysicalType::BYTE_ARRAY { LENGTH_BYTES } else { 1 };
        if values > bytes.len() / least {
            let bytes = bytes.len();
            return Err(ParquetError::General(format!("a dictionary of {bytes} bytes has {values} values")));
        }
        limits::check_request(values.saturating_mul(size_of::<ByteArray>())).map_err(wrapped)?;
        let longest = match physical {
            PhysicalType::BYTE_ARRAY => longest(bytes),
            PhysicalType::FIXED_LEN_BYTE_ARRAY => usize::try_from(self.column.type_length()).unwrap_or(0),
            _ => 0,
        };
        self.progress.longest.store(longest, Ordering::Relaxed);
        Ok(())
    }

    fn check_values(&self, page_bytes: usize, values: &[u8], count: usize, encoding: Encoding) -> Result<()> {
        let each = match encoding {
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => self.progress.longest.load(Ordering::Relaxed),
            // Strings that begin as the one before: a page may stand for any number of bytes.
            Encoding::DELTA_BYTE_ARRAY => {
                return Err(wrapped(DbError::unsupported("reading Parquet columns of the encoding DELTA_BYTE_ARRAY")));
            }
            Encoding::DELTA_LENGTH_BYTE_ARRAY if delta_values(values).is_none_or(|values| values > count as u64) => {
                return Err(ParquetError::General("a page has more values than it says".to_owned()));
            }
            _ if page_bytes > STEP_BYTES => page_bytes,
            _ => 0,
        };
        if encoding == Encoding::DELTA_LENGTH_BYTE_ARRAY {
            limits::check_request(count.saturating_mul(size_of::<i32>())).map_err(wrapped)?;
        }
        if self.column.max_rep_level() > 0 {
            if count > LIST_PAGE_VALUES_MAX || self.progress.loaded.load(Ordering::Relaxed) > levels::VALUES_MAX {
                return Err(wrapped(levels::too_long()));
            }
            // Two levels and a word for each.
            limits::check_request(count.saturating_mul(16)).map_err(wrapped)?;
        }
        self.progress.load(count, each);
        Ok(())
    }
}

/// Bytes of a length before a string, and before levels.
const LENGTH_BYTES: usize = 4;

/// What follows levels, whose length comes before them.
fn after_levels(bytes: &[u8]) -> &[u8] {
    let Some((length, rest)) = bytes.split_first_chunk() else { return &[] };
    rest.get(u32::from_le_bytes(*length) as usize..).unwrap_or_default()
}

/// Bytes of the longest string, each of which has its length before it.
fn longest(mut bytes: &[u8]) -> usize {
    let mut longest = 0;
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = u32::from_le_bytes(*length) as usize;
        longest = longest.max(length.min(rest.len()));
        bytes = rest.get(length..).unwrap_or_default();
    }
    longest
}

/// The number of values at the beginning of differences: after the sizes of blocks.
fn delta_values(mut bytes: &[u8]) -> Option<u64> {
    let mut number = || {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = bytes.split_first()?;
            bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    };
    number()?;
    number()?;
    number()
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        limits::check_interrupt().map_err(wrapped)?;
        let page = match self.peeked.take() {
            Some(page) => Some(page),
            None => self.pages.get_next_page()?,
        };
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        if self.peeked.is_none() {
            self.peeked = self.pages.get_next_page()?;
        }
        Ok(self.peeked.as_ref().map(|page| match page {
            Page::DataPage { num_values, .. } => {
                PageMetadata { num_rows: None, num_levels: Some(*num_values as usize), is_dict: false }
            }
            Page::DataPageV2 { num_values, num_rows, .. } => {
                PageMetadata { num_rows: Some(*num_rows as usize), num_levels: Some(*num_values as usize), is_dict: false }
            }
            Page::DictionaryPage { .. } => PageMetadata { num_rows: None, num_levels: None, is_dict: true },
        }))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        if self.peeked.take().is_some() { Ok(()) } else { self.pages.skip_next_page() }
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
    fn the_longest_string_of_a_dictionary_is_known() {
        assert_eq!(longest(&[1, 0, 0, 0, 7, 3, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0]), 3);
        assert_eq!((longest(&[255, 255, 255, 255, 1]), longest(&[1, 0])), (1, 0));
        assert_eq!((delta_values(&[0x80, 0x01, 0x04, 0x85, 0x01, 9]), delta_values(&[0x80])), (Some(133), None));
    }

    #[test]
    fn a_page_is_not_larger_than_its_column() {
        let header: Vec<u8> = [&[0x15, 0x00, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 0x02][..], &[0; 32]].concat();
        let bytes = |limit| PageBytes { chunks: Chunks(Arc::new(header.clone())), limit, progress: Arc::default() };
        let error = bytes(1000).get_read(0).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("a page of 2147483647 bytes is in a column of 1000 bytes"), "{error}");
        // No value is that long, whatever the column says.
        assert!(bytes(u64::MAX).get_read(0).is_err());
    }
}

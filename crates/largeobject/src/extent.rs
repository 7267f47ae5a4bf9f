//! An extent: up to 64 KB of an object, as they are in memory and as a row of the data tree.
//!
//! Invariants:
//! 1. `bytes` is never longer than `EXTENT_BYTES`; bytes beyond its end read as zeros.
//! 2. A page has only zeros beyond its length; one that is not present has none.

use melba_toast::{Method, ZSTD_LEVEL, frame};
use melba_types::{Column, Datum, DbError, Result, err};

use super::{EXTENT_BYTES, PAGE_BYTES};

/// Pages of an extent.
pub const PAGES: usize = EXTENT_BYTES / PAGE_BYTES;

/// Extents below this are left to the codecs of the segments, which compress many of them together.
const COMPRESSED_BYTES_MIN: usize = 2048;
/// The column that has the bytes, among those of the data tree.
pub const STORED_COLUMN: usize = 2;

/// The method for a value of `default_toast_compression`.
pub fn method_of_setting(name: &str) -> Method {
    Method::from_name(name).unwrap_or(Method::Lz4)
}

/// How many bytes of each page pg_largeobject shows; `ABSENT`: it has no row for the page.
pub type PageLengths = [u16; PAGES];

const ABSENT: u16 = u16::MAX;

/// Up to 64 KB of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    pub bytes: Vec<u8>,
    lengths: PageLengths,
}

impl Default for Extent {
    fn default() -> Extent {
        Extent { bytes: Vec::new(), lengths: [ABSENT; PAGES] }
    }
}

impl Extent {
    /// Writes within the extent; unwritten pages in between stay absent.
    pub fn write(&mut self, at: usize, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let end = at + data.len();
        assert!(end <= EXTENT_BYTES, "a write stays within its extent");
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[at..end].copy_from_slice(data);
        for page in at / PAGE_BYTES..=(end - 1) / PAGE_BYTES {
            let written = (end - page * PAGE_BYTES).min(PAGE_BYTES) as u16;
            let length = &mut self.lengths[page];
            *length = if *length == ABSENT { written } else { written.max(*length) };
        }
    }

    /// Reads into `out`, zeros where nothing is.
    pub fn read(&self, at: usize, out: &mut [u8]) {
        let stored = self.bytes.get(at..).unwrap_or(&[]);
        let stored = &stored[..stored.len().min(out.len())];
        out[..stored.len()].copy_from_slice(stored);
        out[stored.len()..].fill(0);
    }

    /// Makes the extent end at `length`, which is in a page that is present afterwards.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.resize(length, 0);
        let last = length / PAGE_BYTES;
        self.lengths[last + 1..].fill(ABSENT);
        self.lengths[last] = (length % PAGE_BYTES) as u16;
    }

    /// The data of a page that is present.
    pub fn page(&self, page: usize) -> &[u8] {
        let start = page * PAGE_BYTES;
        self.bytes.get(start..start + usize::from(self.lengths[page])).unwrap_or(&[])
    }

    /// Appends the extent as a row of the data tree's columns.
    pub fn push_to(&self, method: Method, columns: &mut [Column]) {
        let plain = self.lengths == plain_lengths(self.bytes.len());
        let lengths = || Datum::bytes(self.lengths.iter().flat_map(|l| l.to_le_bytes()).collect::<Vec<u8>>());
        columns[0].push(if plain { Datum::Null } else { lengths() });
        columns[1].push(Datum::Int4(self.bytes.len() as i32));
        // Merges read dense values uncompressed, and their segments compress them until then.
        let method = Some(method).filter(|method| self.bytes.len() >= COMPRESSED_BYTES_MIN && *method != Method::Dense);
        let mut stored = Vec::with_capacity(self.bytes.len() / 2);
        frame::encode(method, ZSTD_LEVEL, &self.bytes, &mut stored);
        columns[STORED_COLUMN].push(Datum::bytes(stored));
    }

    /// The extent in row `row` of the data tree's columns.
    ///
    /// # Errors
    /// XX001 for a row that `push_to` did not write.
    pub fn of_row(columns: &[Column], row: usize) -> Result<Extent> {
        let lengths = lengths_of_row(columns, row)?;
        let mut bytes = Vec::with_capacity(length_of_row(columns, row));
        let Datum::Bytes(stored) = columns[STORED_COLUMN].get(row) else { return Err(corrupt()) };
        frame::decode(&stored, &mut bytes).map_err(|_| corrupt())?;
        if bytes.len() != length_of_row(columns, row) {
            return Err(corrupt());
        }
        Ok(Extent { bytes, lengths })
    }
}

/// The length of an extent in its row; `usize::MAX` when no extent was written.
fn length_of_row(columns: &[Column], row: usize) -> usize {
    match columns[1].get(row) {
        Datum::Int4(length) => usize::try_from(length).unwrap_or(usize::MAX),
        _ => usize::MAX,
    }
}

/// The lengths of an extent's pages in its row, of which the bytes need not be known.
///
/// # Errors
/// XX001 for a row that `push_to` did not write.
pub fn lengths_of_row(columns: &[Column], row: usize) -> Result<PageLengths> {
    let bytes = length_of_row(columns, row);
    if bytes > EXTENT_BYTES {
        return Err(corrupt());
    }
    let Datum::Bytes(stored) = columns[0].get(row) else { return Ok(plain_lengths(bytes)) };
    let mut lengths = [ABSENT; PAGES];
    for (page, (length, stored)) in lengths.iter_mut().zip(stored.chunks_exact(2)).enumerate() {
        *length = u16::from_le_bytes([stored[0], stored[1]]);
        if *length != ABSENT && page * PAGE_BYTES + usize::from(*length) > bytes {
            return Err(corrupt());
        }
    }
    Ok(lengths)
}

/// The numbers of the pages that are present.
pub fn present(lengths: &PageLengths) -> impl Iterator<Item = usize> {
    (0..PAGES).filter(|page| lengths[*page] != ABSENT)
}

/// The pages of an extent of which every byte up to its end was written.
fn plain_lengths(bytes: usize) -> PageLengths {
    std::array::from_fn(|page| match bytes.saturating_sub(page * PAGE_BYTES) {
        0 => ABSENT,
        length => length.min(PAGE_BYTES) as u16,
    })
}

fn corrupt() -> DbError {
    err!(DATA_CORRUPTED, "an extent of a large object cannot be read")
}

#[cfg(test)]
mod tests {
    use super::super::DATA_KINDS;
    use super::*;

    fn stored(extent: &Extent, method: Method) -> Vec<Column> {
        let mut columns: Vec<Column> = DATA_KINDS.iter().map(|k| Column::with_capacity(*k, 1)).collect();
        extent.push_to(method, &mut columns);
        columns
    }

    #[test]
    fn extents_read_back_with_every_method() {
        let mut text = Extent::default();
        text.write(0, &b"melba toast, sliced thin; ".repeat(2000));
        let mut sparse = Extent::default();
        sparse.write(EXTENT_BYTES - 3, b"end");
        let mut small = Extent::default();
        small.write(5, b"x");
        let mut empty = Extent::default();
        empty.truncate(4096);
        for method in [Method::Lz4, Method::Zstd, Method::Pglz] {
            for extent in [&text, &sparse, &small, &empty, &Extent::default()] {
                let columns = stored(extent, method);
                assert_eq!(&Extent::of_row(&columns, 0).expect("reads back"), extent);
                let length = columns[2].get(0).as_bytes().len();
                assert!(extent.bytes.len() < 10_000 || length < extent.bytes.len() / 10);
            }
        }
        assert_eq!(stored(&small, Method::Lz4)[2].get(0).as_bytes()[0], 0, "small ones are left to the segment");
    }

    #[test]
    fn pages_are_those_that_were_written() {
        let mut extent = Extent::default();
        extent.write(3 * PAGE_BYTES + 1, &[1; PAGE_BYTES]);
        let pages = |extent: &Extent| present(&extent.lengths).map(|p| (p, extent.page(p).len())).collect::<Vec<_>>();
        assert_eq!(pages(&extent), [(3, PAGE_BYTES), (4, 1)]);
        extent.write(6 * PAGE_BYTES, b"x");
        extent.write(4 * PAGE_BYTES + 2, b"y");
        assert_eq!((pages(&extent), extent.page(4)), (vec![(3, PAGE_BYTES), (4, 3), (6, 1)], &[1, 0, b'y'][..]));
        let columns = stored(&extent, Method::Lz4);
        assert_eq!(lengths_of_row(&columns, 0).expect("reads back"), extent.lengths);
        extent.truncate(2 * PAGE_BYTES);
        assert_eq!(pages(&extent), [(2, 0)]);
        let mut read = [7; 4];
        extent.read(2 * PAGE_BYTES - 2, &mut read);
        assert_eq!(read, [0; 4]);
        extent.write(EXTENT_BYTES - 1, b"z");
        assert_eq!(pages(&extent), [(2, 0), (31, PAGE_BYTES)]);
    }

    #[test]
    fn damaged_rows_are_errors() {
        let mut extent = Extent::default();
        extent.write(0, &[b'a'; 5000]);
        let mut columns = stored(&extent, Method::Lz4);
        columns[1] = Column::new(melba_types::ColumnData::Int4(vec![4999]));
        assert!(Extent::of_row(&columns, 0).is_err());
        columns[1] = Column::new(melba_types::ColumnData::Int4(vec![-1]));
        assert!(Extent::of_row(&columns, 0).is_err());
    }
}

//! The columns of a partition that window functions read: in memory, or in pages of a file.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use melba_types::{Batch, ColumnData, Datum, DbError, Result};

use melba_spill::Store;

/// Pages kept: a moving frame reads at its start, at its end, and at the row itself.
const PAGES_MAX: usize = 4;

pub(super) enum Pages<'a> {
    Memory { read: &'a Batch, rows: Range<usize> },
    Stored { paged: RefCell<Paged>, rows: usize },
}

pub(super) struct Paged {
    store: Store,
    /// The pages used last, each with its first row; the oldest is replaced.
    pages: Vec<(usize, Arc<Batch>)>,
    next: usize,
}

impl<'a> Pages<'a> {
    /// Some rows of a batch.
    pub fn memory(read: &'a Batch, rows: Range<usize>) -> Pages<'a> {
        Pages::Memory { read, rows }
    }

    /// A closed store of `rows` rows.
    pub fn stored(store: Store, rows: usize) -> Pages<'static> {
        Pages::Stored { paged: RefCell::new(Paged { store, pages: Vec::new(), next: 0 }), rows }
    }

    pub fn rows(&self) -> usize {
        match self {
            Pages::Memory { rows, .. } => rows.len(),
            Pages::Stored { rows, .. } => *rows,
        }
    }

    pub fn disk_bytes(&self) -> u64 {
        match self {
            Pages::Memory { .. } => 0,
            Pages::Stored { paged, .. } => paged.borrow().store.usage().1,
        }
    }

    pub fn value(&self, row: usize, column: usize) -> Result<Datum> {
        self.with(row, |batch, at| batch.columns[column].get(at))
    }

    /// Whether two rows have the same bytes in a column.
    pub fn same(&self, a: usize, b: usize, column: usize) -> Result<bool> {
        if let Pages::Memory { read, rows } = self {
            return Ok(bytes(read, column, rows.start + a) == bytes(read, column, rows.start + b));
        }
        let first = self.with(a, |batch, at| bytes(batch, column, at).to_vec())?;
        self.with(b, |batch, at| bytes(batch, column, at) == &first[..])
    }

    fn with<T>(&self, row: usize, f: impl FnOnce(&Batch, usize) -> T) -> Result<T> {
        match self {
            Pages::Memory { read, rows } => Ok(f(read, rows.start + row)),
            Pages::Stored { paged, .. } => {
                let (first, page) = paged.borrow_mut().page(row)?;
                Ok(f(&page, row - first))
            }
        }
    }
}

fn bytes(batch: &Batch, column: usize, row: usize) -> &[u8] {
    match &batch.columns[column].data {
        ColumnData::Bytes(v) => v.get(row),
        _ => &[],
    }
}

impl Paged {
    /// The page that has a row, and its first row.
    fn page(&mut self, row: usize) -> Result<(usize, Arc<Batch>)> {
        let has = |(first, page): &&(usize, Arc<Batch>)| (*first..*first + page.rows).contains(&row);
        if let Some((first, page)) = self.pages.iter().find(has) {
            return Ok((*first, Arc::clone(page)));
        }
        let mut place = row as u64;
        let page = self.store.chunk_of(&mut place)?.ok_or_else(|| DbError::internal("a row beyond its partition"))?;
        let found = (place as usize, page);
        if self.pages.len() < PAGES_MAX {
            self.pages.push(found.clone());
        } else {
            self.pages[self.next] = found.clone();
            self.next = (self.next + 1) % PAGES_MAX;
        }
        Ok(found)
    }
}

//! pg_largeobject and pg_largeobject_metadata as relations: their rows are made while the trees are scanned.

use std::ops::RangeInclusive;
use std::sync::Arc;

use melba_catalog::{Catalog, classes, relations};
use melba_engine::{Morsel, ReadView, TableScan, Transaction};
use melba_types::{Column, ColumnData, Datum, Kind, Oid, Result, RowId};

use super::extent::{Extent, PAGES, lengths_of_row, present};
use super::metadata::acl_of;
use super::{Trees, data_row, metadata_row, of_data_row};

/// Which of the two relations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsOf {
    /// (oid, lomowner, lomacl)
    Metadata,
    /// (loid, pageno, data)
    Pages,
}

impl RowsOf {
    pub fn relation(oid: Oid) -> Option<RowsOf> {
        match oid {
            classes::PG_LARGEOBJECT_METADATA => Some(RowsOf::Metadata),
            classes::PG_LARGEOBJECT => Some(RowsOf::Pages),
            _ => None,
        }
    }
}

/// A scan of one of the relations.
pub struct Scan {
    rows: RowsOf,
    scan: TableScan,
    catalog: Arc<Catalog>,
    /// By column of the relation.
    needed: [bool; 3],
}

impl Scan {
    /// `objects`: only rows of these. Columns that are not needed stay empty.
    pub fn open(
        engine: &Arc<Transaction>,
        catalog: &Arc<Catalog>,
        view: ReadView,
        rows: RowsOf,
        objects: RangeInclusive<u32>,
        needed: [bool; 3],
    ) -> Result<Scan> {
        let trees = Trees::of(catalog);
        let (tree, projection): (_, &[usize]) = match rows {
            RowsOf::Metadata if needed[2] => (trees.metadata, &[0, 1]),
            RowsOf::Metadata if needed[1] => (trees.metadata, &[0]),
            RowsOf::Metadata => (trees.metadata, &[]),
            RowsOf::Pages if needed[2] => (trees.data, &[0, 1, 2]),
            RowsOf::Pages => (trees.data, &[0, 1]),
        };
        let (first, last) = (Oid(*objects.start()), Oid(*objects.end()));
        let range = match rows {
            RowsOf::Metadata => Morsel::range(metadata_row(first), RowId(metadata_row(last).0 + 1)),
            RowsOf::Pages => Morsel::range(data_row(first, 0), data_row(last, u64::from(u32::MAX))),
        };
        let missing = [const { Datum::Null }; 3];
        let scan = engine.scan(view, tree, projection, &missing[..projection.len()], &[], Some(range))?;
        Ok(Scan { rows, scan, catalog: catalog.clone(), needed })
    }

    /// The relation's columns for some more rows, and how many those are; `None` at the end.
    pub fn next_rows(&mut self) -> Result<Option<(Vec<Column>, usize)>> {
        let Some(batch) = self.scan.next()? else { return Ok(None) };
        match self.rows {
            RowsOf::Metadata => Ok(Some((self.metadata(&batch.row_ids, &batch.columns), batch.row_ids.len()))),
            RowsOf::Pages => self.pages(&batch.row_ids, &batch.columns).map(Some),
        }
    }

    fn metadata(&self, row_ids: &[RowId], columns: &[Column]) -> Vec<Column> {
        let oids = if self.needed[0] { row_ids.iter().map(|row| row.0 as u32).collect() } else { Vec::new() };
        let owners = match columns.first() {
            Some(column) if self.needed[1] => column.clone(),
            _ => Column::with_capacity(Kind::Oid, 0),
        };
        let mut lists = Column::with_capacity(Kind::Array, 0);
        if let (Some(column), true) = (columns.get(1), self.needed[2]) {
            for row in 0..row_ids.len() {
                lists.push(relations::acl_datum(&acl_of(&column.get(row)), &self.catalog));
            }
        }
        vec![Column::new(ColumnData::Oid(oids)), owners, lists]
    }

    fn pages(&self, row_ids: &[RowId], columns: &[Column]) -> Result<(Vec<Column>, usize)> {
        let (mut oids, mut numbers, mut data) = (Vec::new(), Vec::new(), Column::with_capacity(Kind::Bytes, 0));
        for (row, id) in row_ids.iter().enumerate() {
            let (oid, extent) = of_data_row(*id);
            let content = if self.needed[2] { Some(Extent::of_row(columns, row)?) } else { None };
            for page in present(&lengths_of_row(columns, row)?) {
                oids.push(oid.0);
                numbers.push((extent as usize * PAGES + page) as i32);
                if let Some(content) = &content {
                    data.push(Datum::bytes(content.page(page)));
                }
            }
        }
        let rows = oids.len();
        Ok((vec![Column::new(ColumnData::Oid(oids)), Column::new(ColumnData::Int4(numbers)), data], rows))
    }
}

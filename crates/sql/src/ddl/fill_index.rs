//! Filling a new index from its table's rows.

use melba_catalog::Persistence;
use melba_engine::{IndexBuilder, ReadView};
use melba_types::{Datum, DbError, Oid, Result, RowId};

use super::Ddl;
use crate::execute::ExecContext;
use crate::execute::key::KeyPart;
use crate::table::{IndexPart, IndexTarget, PartSource, TableTarget, error};
use crate::transaction::Tx;

/// Entries from which on a new index gets segments of its own.
const BUILT_ENTRIES_MIN: usize = 20_000;

/// The entries of a new index on their way: into the transaction one by one, or, when they are many, sorted into segments.
struct Entries<'a> {
    tx: &'a Tx,
    index: &'a IndexTarget,
    /// The table's persistence admits segments.
    on_disk: bool,
    few: Vec<(Vec<u8>, RowId)>,
    many: Option<IndexBuilder>,
}

impl Entries<'_> {
    fn add(&mut self, key: &[u8], id: RowId) -> Result<()> {
        if let Some(builder) = &mut self.many {
            return Ok(builder.add(key, id)?);
        }
        self.few.push((key.to_vec(), id));
        if self.on_disk && self.few.len() >= BUILT_ENTRIES_MIN {
            let mut builder = self.tx.engine.build_index(self.index.tree)?;
            for (key, id) in std::mem::take(&mut self.few) {
                builder.add(&key, id)?;
            }
            self.many = Some(builder);
        }
        Ok(())
    }
}

/// The columns of an index without expressions and predicate, and their keys.
fn plain_parts(index: &IndexTarget) -> Option<Vec<(usize, &KeyPart)>> {
    let plain = |part: &IndexPart| match &part.source {
        PartSource::Column(column) => Some(*column),
        PartSource::Expression(_) => None,
    };
    match &index.predicate {
        Some(_) => None,
        None => index.parts.iter().map(|part| plain(part).map(|column| (column, &part.key))).collect(),
    }
}

impl Ddl<'_> {
    /// Puts an entry for every row into a new index.
    ///
    /// # Errors
    /// 23505 when the index is unique and the rows are not.
    pub fn fill_index(&self, oid: Oid) -> Result<()> {
        let index = self.relation(oid)?;
        let table = index.index.as_ref().map_or(Oid::INVALID, |i| i.table);
        let target = self.target(table)?;
        let ctx = self.exec_context();
        let (view, _pin) = self.tx.engine.latest_view();
        let Some(index) = target.indexes.iter().find(|i| i.oid == oid) else {
            return Err(DbError::internal("the new index is not among the table's"));
        };
        let on_disk = matches!(target.relation.persistence, Persistence::Permanent | Persistence::Unlogged);
        let mut entries = Entries { tx: self.tx, index, on_disk, few: Vec::new(), many: None };
        match plain_parts(index) {
            Some(parts) => self.plain_entries(&ctx, &target, &parts, view, &mut entries)?,
            None => self.computed_entries(&ctx, &target, index, view, &mut entries)?,
        }
        let duplicate = match entries.many {
            Some(builder) => {
                let mut failure = None;
                let found = builder.finish(|_, _, row| {
                    index.unique
                        && self.is_duplicate(&ctx, &target, index, view, row).unwrap_or_else(|e| {
                            failure = Some(e);
                            true
                        })
                })?;
                if let Some(failure) = failure {
                    return Err(failure);
                }
                found.map(|d| d.rows.1)
            }
            None => self.insert_entries(&ctx, &target, index, view, entries.few)?,
        };
        let Some(row) = duplicate else { return Ok(()) };
        let values = self.index_values(&ctx, &target, index, view, row)?;
        Err(error::not_unique(&*ctx.session, &target, index, &values))
    }

    /// Keys made of columns: only those are read, and no row is put together.
    fn plain_entries(
        &self,
        ctx: &ExecContext,
        target: &TableTarget,
        parts: &[(usize, &KeyPart)],
        view: ReadView,
        entries: &mut Entries<'_>,
    ) -> Result<()> {
        let mut projection: Vec<usize> = parts.iter().map(|(column, _)| *column).collect();
        projection.sort_unstable();
        projection.dedup();
        let places: Vec<usize> = parts.iter().map(|(column, _)| projection.binary_search(column).unwrap_or_default()).collect();
        let mut scan = self.tx.engine.scan(view, target.tree, &projection, &target.missing, &[], None)?;
        let mut key = Vec::new();
        while let Some(batch) = scan.next()? {
            ctx.check_interrupt()?;
            let mut columns = batch.columns;
            for (column, at) in columns.iter_mut().zip(&projection) {
                if column.is_stored() {
                    *column = ctx.expand_column(column, target.relation.columns[*at].kind)?;
                }
            }
            for (i, id) in batch.row_ids.iter().enumerate() {
                key.clear();
                for ((_, part), place) in parts.iter().zip(&places) {
                    part.encode_at(&columns[*place], i, &mut key);
                }
                entries.add(&key, *id)?;
            }
        }
        Ok(())
    }

    /// Keys with expressions, or of only some rows.
    fn computed_entries(
        &self,
        ctx: &ExecContext,
        target: &TableTarget,
        index: &IndexTarget,
        view: ReadView,
        entries: &mut Entries<'_>,
    ) -> Result<()> {
        let mut rows = self.rows(target.tree, target.relation.columns.len(), &target.missing, view)?;
        let mut key = Vec::new();
        while let Some(batch) = rows.next()? {
            ctx.check_interrupt()?;
            for (id, row) in batch {
                key.clear();
                let row = target.with_plain_keys(ctx, &row)?;
                if index.key(ctx, &row, &mut key)? {
                    entries.add(&key, id)?;
                }
            }
        }
        Ok(())
    }

    /// Sorts and inserts entries; the second row of a duplicate, if there is one.
    fn insert_entries(
        &self,
        ctx: &ExecContext,
        target: &TableTarget,
        index: &IndexTarget,
        view: ReadView,
        mut entries: Vec<(Vec<u8>, RowId)>,
    ) -> Result<Option<RowId>> {
        entries.sort_unstable();
        for pair in entries.windows(2).filter(|pair| index.unique && pair[0].0 == pair[1].0) {
            if self.is_duplicate(ctx, target, index, view, pair[1].1)? {
                return Ok(Some(pair[1].1));
            }
        }
        for (key, id) in &entries {
            self.tx.engine.index_insert(index.tree, key, *id)?;
        }
        Ok(None)
    }

    /// Whether a row whose key is there twice violates uniqueness: nulls do not count as equal, unless they are declared so.
    fn is_duplicate(
        &self,
        ctx: &ExecContext,
        target: &TableTarget,
        index: &IndexTarget,
        view: ReadView,
        row: RowId,
    ) -> Result<bool> {
        let values = self.index_values(ctx, target, index, view, row)?;
        Ok(index.nulls_not_distinct || !values.iter().any(Datum::is_null))
    }

    fn index_values(
        &self,
        ctx: &ExecContext,
        target: &TableTarget,
        index: &IndexTarget,
        view: ReadView,
        row: RowId,
    ) -> Result<Vec<Datum>> {
        let bytes = self.tx.engine.get(view, target.tree, row)?;
        let row = bytes.map(|b| target.decode(&b)).unwrap_or_default();
        index.values(ctx, &target.with_plain_keys(ctx, &row)?)
    }
}

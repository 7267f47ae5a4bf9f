//! Referencing rows: read again in batches; their referenced rows are looked up.
//!
//! Invariant: of all rows without a referenced row, the first one's error is raised, and of its foreign keys the first one's.

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use melba_catalog::Constraint;
use melba_engine::{Held, Morsel, ReadView};
use melba_types::{Column, Datum, DbError, Oid, Result, RowId, SqlState};

use super::events::{RowRange, Runner, refers_with};
use super::foreign_key::check_reference;
use super::target::TableTarget;
use melba_expression::Evaluation;
use melba_expression::key::KeyPart;
use melba_types::BATCH_ROWS;

/// At least this many consecutive rows are read by a scan, fewer by their ids.
const SCAN_ROWS_MIN: u64 = 64;
/// The size of a key in a hash table beyond its bytes, about.
const KEY_OVERHEAD_BYTES: usize = 56;
/// Keys are counted in steps of this many bytes.
const STEP_BYTES: usize = 64 << 10;

/// Keys that were found, with their rows locked: as many as hash_mem allows, for they repeat in most loads.
#[derive(Default)]
pub(super) struct CheckedKeys {
    by_constraint: HashMap<Oid, HashSet<Vec<u8>>>,
    bytes: usize,
    held: Option<Held>,
}

impl CheckedKeys {
    fn has(&self, constraint: Oid, key: &[u8]) -> bool {
        self.by_constraint.get(&constraint).is_some_and(|keys| keys.contains(key))
    }

    fn add(&mut self, ctx: &Evaluation, constraint: Oid, key: &[u8]) {
        self.bytes += key.len() + KEY_OVERHEAD_BYTES;
        let counted = self.held.as_ref().map_or(0, Held::bytes);
        if self.bytes > counted + STEP_BYTES {
            let held = self.held.get_or_insert_with(|| ctx.resources().held());
            if self.bytes > ctx.resources().hash_bytes || !held.try_set(self.bytes) {
                self.clear();
                return;
            }
        }
        self.by_constraint.entry(constraint).or_default().insert(key.to_vec());
    }

    /// To be called when one of them may have been deleted.
    pub fn clear(&mut self) {
        self.by_constraint.clear();
        self.bytes = 0;
        self.held = None;
    }
}

/// A foreign key of the rows that are read.
struct Reference<'a> {
    constraint: &'a Constraint,
    /// The places of its columns among those that are read, and how they are compared.
    parts: Vec<(usize, KeyPart)>,
    /// The key found last.
    last: Vec<u8>,
    key: Vec<u8>,
}

struct Check<'r, 'a> {
    runner: &'r mut Runner<'a>,
    target: &'r TableTarget,
    references: Vec<Reference<'r>>,
    /// Columns that are read.
    projection: Vec<usize>,
    view: ReadView,
}

/// Checks foreign keys of rows that are in the table still.
pub(super) fn check_rows(
    runner: &mut Runner<'_>,
    target: &TableTarget,
    constraints: &[Arc<Constraint>],
    rows: &[RowRange],
) -> Result<()> {
    let mut projection: Vec<usize> = constraints.iter().flat_map(|c| c.columns.iter().map(|n| *n as usize - 1)).collect();
    projection.sort_unstable();
    projection.dedup();
    let part = |column: &i16| {
        let column = *column as usize - 1;
        let at = projection.partition_point(|c| *c < column);
        let column = &target.relation.columns[column];
        (at, KeyPart::equality(runner.ctx.catalog(), (column.ty, column.collation)))
    };
    let references = constraints.iter().map(|constraint| Reference {
        constraint,
        parts: constraint.columns.iter().map(part).collect(),
        last: Vec::new(),
        key: Vec::new(),
    });
    let references = references.collect();
    let (view, _pin) = runner.txn.latest_view();
    let mut check = Check { runner, target, references, projection, view };
    let mut ids = Vec::new();
    for rows in rows {
        if rows.count >= SCAN_ROWS_MIN {
            check.by_ids(&mut ids)?;
            check.by_scan(*rows)?;
            continue;
        }
        ids.extend((0..rows.count).map(|i| RowId(rows.first.0 + i)));
        if ids.len() >= BATCH_ROWS {
            check.by_ids(&mut ids)?;
        }
    }
    check.by_ids(&mut ids)
}

impl Check<'_, '_> {
    fn by_ids(&mut self, ids: &mut Vec<RowId>) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let target = self.target;
        let (kept, columns) = self.runner.txn.fetch(self.view, target.tree, ids, &self.projection, &target.missing)?;
        ids.clear();
        match self.first_violation(&columns, kept.len())? {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// A scan reads memory before segments, and newer segments before older ones: so it is read to the end, because a row before
    /// one without a referenced row may come later.
    fn by_scan(&mut self, rows: RowRange) -> Result<()> {
        let target = self.target;
        let morsel = Morsel::range(rows.first, RowId(rows.first.0.saturating_add(rows.count)));
        let mut scan = self.runner.txn.scan(self.view, target.tree, &self.projection, &target.missing, &[], Some(morsel))?;
        let mut first: Option<(RowId, DbError)> = None;
        while let Some(batch) = scan.next()? {
            self.runner.ctx.check_interrupt()?;
            let wanted = first.as_ref().map_or(batch.row_ids.len(), |(id, _)| batch.row_ids.partition_point(|i| i < id));
            if let Some((at, error)) = self.first_violation(&batch.columns, wanted)? {
                first = Some((batch.row_ids[at], error));
            }
        }
        first.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// The first of some rows that refers to nothing.
    fn first_violation(&mut self, columns: &[Column], rows: usize) -> Result<Option<(usize, DbError)>> {
        let columns = self.plain(columns)?;
        for row in 0..rows {
            for reference in &mut self.references {
                match reference.check(self.runner, self.target, &columns, row) {
                    Ok(()) => {}
                    Err(error) if error.sqlstate() == SqlState::FOREIGN_KEY_VIOLATION => return Ok(Some((row, error))),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(None)
    }

    /// Columns with their values expanded.
    fn plain<'c>(&self, columns: &'c [Column]) -> Result<Cow<'c, [Column]>> {
        if !columns.iter().any(Column::is_stored) {
            return Ok(Cow::Borrowed(columns));
        }
        let mut plain = Vec::with_capacity(columns.len());
        for (column, at) in columns.iter().zip(&self.projection) {
            let kind = self.target.relation.columns[*at].kind;
            let mut values = Column::with_capacity(kind, column.len());
            for i in 0..column.len() {
                values.push(self.runner.ctx.expand(column.get(i), kind)?);
            }
            plain.push(values);
        }
        Ok(Cow::Owned(plain))
    }
}

impl Reference<'_> {
    fn check(&mut self, runner: &mut Runner<'_>, target: &TableTarget, columns: &[Column], row: usize) -> Result<()> {
        let nulls = self.parts.iter().filter(|(at, _)| columns[*at].is_null(row)).count();
        if !refers_with(self.constraint, nulls) {
            return Ok(());
        }
        self.key.clear();
        self.parts.iter().for_each(|(at, part)| part.encode_at(&columns[*at], row, &mut self.key));
        if self.key == self.last || runner.present.has(self.constraint.oid, &self.key) {
            return Ok(());
        }
        let values: Vec<Datum> = self.parts.iter().map(|(at, _)| columns[*at].get(row)).collect();
        check_reference(runner, target, self.constraint, &values)?;
        runner.present.add(runner.ctx, self.constraint.oid, &self.key);
        std::mem::swap(&mut self.key, &mut self.last);
        Ok(())
    }
}

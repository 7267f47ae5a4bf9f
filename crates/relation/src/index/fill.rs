//! Fills a new index from its table's rows.

use melba_catalog::{Persistence, classes};
use melba_definition::context::Ddl;
use melba_definition::progress::{LongCommand, ProgressReport, create_index as figures};
use melba_engine::{IndexBuilder, ReadView};
use melba_expression::Evaluation;
use melba_expression::key::KeyPart;
use melba_table::{IndexTarget, TableTarget, gin_entries, plain_parts};
use melba_transaction::Tx;
use melba_types::{Datum, DbError, Oid, Result, RowId};

use crate::index::catch_up::Building;
use crate::table::rows::{check_excluded_rows, scan_rows, table_target};

/// Entries from which on a new index gets separate segments.
const BUILT_ENTRIES_MIN: usize = 20_000;

/// The entries of a new index on their way: into the transaction one by one, or, when they are many, sorted into segments.
struct Entries<'a> {
    tx: &'a Tx,
    index: &'a IndexTarget,
    /// The table's persistence admits segments.
    on_disk: bool,
    few: Vec<Few>,
    many: Option<IndexBuilder>,
    progress: Box<dyn ProgressReport>,
}

/// Entries that are written by the transaction, unless they become many.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Few {
    key: Vec<u8>,
    id: RowId,
    may_repeat: bool,
}

impl Entries<'_> {
    /// `has_null`: the key has a null in it, so that others may have it too, unless nulls are declared to be equal.
    fn add(&mut self, key: &[u8], id: RowId, has_null: bool) -> Result<()> {
        let may_repeat = has_null && !self.index.nulls_not_distinct;
        if let Some(builder) = &mut self.many {
            return Ok(builder.add(key, id, may_repeat)?);
        }
        self.few.push(Few { key: key.to_vec(), id, may_repeat });
        if self.on_disk && self.few.len() >= BUILT_ENTRIES_MIN {
            let mut builder = IndexBuilder::begin(&self.tx.engine, self.index.tree, self.index.unique)?;
            for few in std::mem::take(&mut self.few) {
                builder.add(&few.key, few.id, few.may_repeat)?;
            }
            self.many = Some(builder);
        }
        Ok(())
    }
}

/// Puts an entry for every row into a new index. `concurrently`: others change rows meanwhile, and are kept out at the end only.
///
/// # Errors
/// 23505 when the index is unique and the rows are not; 23P01 when its constraint excludes one of them.
pub fn fill_index(ddl: &Ddl<'_>, oid: Oid, concurrently: bool) -> Result<()> {
    let index = ddl.relation(oid)?;
    if !index.has_entries() {
        return Ok(());
    }
    let table = index.index.as_ref().map_or(Oid::INVALID, |i| i.table);
    let target = table_target(ddl, table)?;
    // Functions in the index run as the table's owner, whichever role creates it.
    let ctx = Evaluation::plain(ddl.session_of_owner(target.relation.owner), &ddl.tx().engine);
    let (view, pin) = ddl.tx().engine.latest_view();
    ctx.set_view(view);
    let Some(index) = target.indexes.iter().find(|i| i.oid == oid) else {
        return Err(DbError::internal("the new index is not among the table's"));
    };
    let on_disk = matches!(target.relation.persistence, Persistence::Permanent | Persistence::Unlogged);
    let progress = begin_progress(ddl, &target, index, concurrently);
    let mut entries = Entries { tx: ddl.tx(), index, on_disk, few: Vec::new(), many: None, progress };
    match plain_parts(index) {
        Some(parts) => plain_entries(ddl, &ctx, &target, &parts, view, &mut entries)?,
        None => computed_entries(ddl, &ctx, &target, index, view, &mut entries)?,
    }
    let sorting = if index.gin.is_empty() { figures::SORTING } else { figures::SORTING_KEYS };
    entries.progress.set(figures::SUBPHASE, sorting);
    let duplicate = match entries.many {
        Some(builder) => builder.finish()?.map(|duplicate| duplicate.rows.1),
        None => insert_entries(ddl, index, entries.few)?,
    };
    let building = Building { ddl, ctx: &ctx, target: &target, index, progress: &*entries.progress };
    if let Some(row) = duplicate {
        return Err(building.not_unique(view, row)?);
    }
    if concurrently {
        building.catch_up(view, pin)?;
    }
    check_excluded_rows(ddl, oid)
}

fn begin_progress(ddl: &Ddl<'_>, target: &TableTarget, index: &IndexTarget, concurrently: bool) -> Box<dyn ProgressReport> {
    let progress = ddl.begin_progress(LongCommand::CreateIndex, target.relation.oid);
    let method = if index.gin.is_empty() { classes::BTREE } else { classes::GIN };
    let rows = ddl.tx().cluster().engine.tree_rows_estimate(target.tree);
    progress.set(figures::COMMAND, if concurrently { figures::CREATE_CONCURRENTLY } else { figures::CREATE });
    progress.set(figures::INDEX, i64::from(index.oid.0));
    progress.set(figures::ACCESS_METHOD, i64::from(method.0));
    progress.set(figures::PHASE, figures::BUILDING);
    progress.set(figures::SUBPHASE, figures::SCANNING);
    progress.set(figures::ROWS_TOTAL, rows as i64);
    progress
}

/// Keys that consist of columns: only those are read, and no row is put together.
fn plain_entries(
    ddl: &Ddl<'_>,
    ctx: &Evaluation,
    target: &TableTarget,
    parts: &[(usize, &KeyPart)],
    view: ReadView,
    entries: &mut Entries<'_>,
) -> Result<()> {
    let mut projection: Vec<usize> = parts.iter().map(|(column, _)| *column).collect();
    projection.sort_unstable();
    projection.dedup();
    let places: Vec<usize> = parts.iter().map(|(column, _)| projection.binary_search(column).unwrap_or_default()).collect();
    let mut scan = ddl.tx().engine.scan(view, target.tree, &projection, &target.missing, &[], None)?;
    let mut key = Vec::new();
    let mut done = 0;
    while let Some(batch) = scan.next()? {
        ctx.check_interrupt()?;
        done += batch.row_ids.len() as i64;
        entries.progress.set(figures::ROWS_DONE, done);
        let mut columns = batch.columns;
        for (column, at) in columns.iter_mut().zip(&projection) {
            if column.is_stored() {
                *column = ctx.expand_column(column, target.relation.columns[*at].kind)?;
            }
        }
        for (i, id) in batch.row_ids.iter().enumerate() {
            key.clear();
            let mut has_null = false;
            for ((_, part), place) in parts.iter().zip(&places) {
                part.encode_at(&columns[*place], i, &mut key);
                has_null |= columns[*place].is_null(i);
            }
            entries.add(&key, *id, has_null)?;
        }
    }
    Ok(())
}

/// Keys with expressions, or of only some rows, and those of GIN indexes.
fn computed_entries(
    ddl: &Ddl<'_>,
    ctx: &Evaluation,
    target: &TableTarget,
    index: &IndexTarget,
    view: ReadView,
    entries: &mut Entries<'_>,
) -> Result<()> {
    let mut rows = scan_rows(ddl, target.tree, target.relation.columns.len(), &target.missing, view)?;
    let mut key = Vec::new();
    let mut done = 0;
    while let Some(batch) = rows.next_batch()? {
        ctx.check_interrupt()?;
        done += batch.len() as i64;
        entries.progress.set(figures::ROWS_DONE, done);
        for (id, row) in batch {
            key.clear();
            let row = target.with_plain_keys(ctx, &row)?;
            if !index.gin.is_empty() {
                gin_entries(ctx, index, &row)?.iter().try_for_each(|entry| entries.add(entry, id, true))?;
                continue;
            }
            if index.key(ctx, &row, &mut key)? {
                let has_null = index.unique && index.values(ctx, &row)?.iter().any(Datum::is_null);
                entries.add(&key, id, has_null)?;
            }
        }
    }
    Ok(())
}

/// Sorts and inserts entries; the second row of a duplicate, if there is one.
fn insert_entries(ddl: &Ddl<'_>, index: &IndexTarget, mut entries: Vec<Few>) -> Result<Option<RowId>> {
    entries.sort_unstable();
    let is_duplicate = |pair: &&[Few]| !pair[0].may_repeat && pair[0].key == pair[1].key;
    if index.unique
        && let Some(pair) = entries.windows(2).find(is_duplicate)
    {
        return Ok(Some(pair[1].id));
    }
    for few in &entries {
        ddl.tx().engine.index(index.tree).insert(&few.key, few.id)?;
    }
    Ok(None)
}

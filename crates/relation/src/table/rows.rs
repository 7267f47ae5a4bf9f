//! Reads a table's rows for statements that define: present rows against a new constraint.

use std::sync::Arc;

use melba_catalog::{Constraint, ConstraintKind, Relation, Storage};
use melba_engine::{ReadView, TableScan};
use melba_expression::{Evaluation, NoSubPlans};
use melba_table::{TableTarget, TargetBuilder, check_exclusion, check_existing, error, forget_value};
use melba_types::{ColumnData, Datum, DbError, Oid, Result, RowId, TreeId, err};

use melba_definition::context::Ddl;

/// Checks the rows that a table had before its exclusion constraint.
///
/// # Errors
/// 23P01.
pub fn check_excluded_rows(ddl: &Ddl<'_>, index: Oid) -> Result<()> {
    let relation = ddl.relation(index)?;
    let table = relation.index.as_ref().map_or(Oid::INVALID, |i| i.table);
    if ddl.relation(table)?.is_partitioned() {
        return Ok(());
    }
    let target = table_target(ddl, table)?;
    let Some(index) = target.indexes.iter().find(|i| i.oid == index && i.exclusion.is_some()) else { return Ok(()) };
    let ctx = Evaluation::plain(ddl.session_of_owner(target.relation.owner), &ddl.tx().engine);
    let (view, _pin) = ddl.tx().engine.latest_view();
    let mut rows = scan_rows(ddl, target.tree, target.relation.columns.len(), &target.missing, view)?;
    while let Some(batch) = rows.next_batch()? {
        ctx.check_interrupt()?;
        for (id, row) in batch {
            let row = target.with_plain_keys(&ctx, &row)?;
            if let Some(excluded) = check_exclusion(&ctx, &ddl.tx().engine, (&target, index), &row, id)? {
                let existing = excluded.existing.as_deref();
                return Err(error::not_exclusive(&*ctx.session, &target, index, &excluded.values, existing));
            }
        }
    }
    Ok(())
}

/// Rows with their ids.
pub type RowBatch = Vec<(RowId, Vec<Datum>)>;

/// Rows of a table as datums, a batch at a time.
pub struct TableRows {
    scan: TableScan,
}

impl TableRows {
    pub fn next_batch(&mut self) -> Result<Option<RowBatch>> {
        let Some(batch) = self.scan.next()? else { return Ok(None) };
        let row = |i: usize| batch.columns.iter().map(|c| c.get(i)).collect();
        Ok(Some(batch.row_ids.iter().enumerate().map(|(i, id)| (*id, row(i))).collect()))
    }
}

/// An evaluation context over the present catalog.
pub fn exec_context(ddl: &Ddl<'_>) -> Evaluation<NoSubPlans> {
    Evaluation::plain(ddl.current_session(), &ddl.tx().engine)
}

pub fn table_target(ddl: &Ddl<'_>, table: Oid) -> Result<TableTarget> {
    let catalog = ddl.catalog();
    TargetBuilder { catalog: &catalog, session: ddl.session() }.table(table)
}

/// All present rows, our own changes included.
pub fn scan_rows(ddl: &Ddl<'_>, tree: TreeId, columns: usize, missing: &[Datum], view: ReadView) -> Result<TableRows> {
    let projection: Vec<usize> = (0..columns).collect();
    Ok(TableRows { scan: ddl.tx().engine.scan(view, tree, &projection, missing, &[], None)? })
}

/// Raises 23502 when a column holds a null.
pub fn check_no_nulls(ddl: &Ddl<'_>, table: Oid, column: usize) -> Result<()> {
    if ddl.catalog().is_never_null(&*ddl.relation(table)?, column) { Ok(()) } else { look_for_nulls(ddl, table, column) }
}

/// The same, for any mark of the column.
pub fn look_for_nulls(ddl: &Ddl<'_>, table: Oid, column: usize) -> Result<()> {
    let relation = ddl.relation(table)?;
    let Storage::Tree(tree) = relation.storage else { return Ok(()) };
    let null = || {
        let name = &relation.columns[column].name;
        err!(NOT_NULL_VIOLATION, "column \"{name}\" of relation \"{}\" contains null values", relation.name)
            .table(&*relation.name)
            .column(&**name)
    };
    let (view, _pin) = ddl.tx().engine.latest_view();
    if relation.columns[column].generated == b'v' {
        let (target, ctx) = (table_target(ddl, table)?, exec_context(ddl));
        let mut rows = scan_rows(ddl, tree, relation.columns.len(), &target.missing, view)?;
        while let Some(batch) = rows.next_batch()? {
            for (_, mut row) in batch {
                target.compute_virtuals(&ctx, &mut row)?;
                if row[column].is_null() {
                    return Err(null());
                }
            }
        }
        return Ok(());
    }
    let missing: Vec<Datum> = relation.columns.iter().map(|c| c.missing.clone()).collect();
    let mut scan = ddl.tx().engine.scan(view, tree, &[column], &missing, &[], None)?;
    while let Some(batch) = scan.next()? {
        if (0..batch.row_ids.len()).any(|i| batch.columns[0].is_null(i)) {
            return Err(null());
        }
    }
    Ok(())
}

/// Raises 23514 when a row fails a check.
pub fn check_existing_rows(ddl: &Ddl<'_>, constraint: &Constraint) -> Result<()> {
    // A foreign table's rows are held to nothing.
    if ddl.relation(constraint.relation)?.foreign.is_some() {
        return Ok(());
    }
    let target = table_target(ddl, constraint.relation)?;
    if target.relation.is_partitioned() {
        return Ok(());
    }
    let Some(check) = target.checks.iter().find(|c| c.name == constraint.name) else { return Ok(()) };
    let ctx = exec_context(ddl);
    let (view, _pin) = ddl.tx().engine.latest_view();
    let mut rows = scan_rows(ddl, target.tree, target.relation.columns.len(), &target.missing, view)?;
    while let Some(batch) = rows.next_batch()? {
        ctx.check_interrupt()?;
        for (_, mut row) in batch {
            target.compute_virtuals(&ctx, &mut row)?;
            if matches!(check.condition.eval_row(&ctx, &row)?, Datum::Bool(false)) {
                return Err(err!(
                    CHECK_VIOLATION,
                    "check constraint \"{}\" of relation \"{}\" is violated by some row",
                    constraint.name,
                    target.relation.name
                )
                .table(&*target.relation.name)
                .constraint(&*constraint.name));
            }
        }
    }
    Ok(())
}

/// Raises 23503 when a row refers to nothing.
pub fn validate_foreign_key(ddl: &Ddl<'_>, constraint: Oid) -> Result<()> {
    let catalog = ddl.catalog();
    let row = catalog.constraint(constraint).ok_or_else(|| DbError::internal("missing constraint"))?;
    if row.kind != ConstraintKind::ForeignKey {
        return Ok(());
    }
    // Of a partitioned table the partitions' rows are checked, by their own keys.
    if ddl.relation(row.relation)?.is_partitioned() {
        return Ok(());
    }
    let target = Arc::new(table_target(ddl, row.relation)?);
    check_existing(&exec_context(ddl), &ddl.tx().engine, &target, row)
}

/// Removes the long values of a dropped column: merges free their space. Values within rows are removed when the rows are
/// rewritten.
pub fn release_column(ddl: &Ddl<'_>, relation: &Relation, column: usize) -> Result<()> {
    let Storage::Tree(tree) = relation.storage else { return Ok(()) };
    if !relation.columns[column].kind.is_toastable() {
        return Ok(());
    }
    let ctx = exec_context(ddl);
    let (view, _pin) = ddl.tx().engine.latest_view();
    // Most tables have no long values, and their rows need not be read.
    if ddl.tx().engine.scan(view, tree.toast(), &[], &[], &[], None)?.next()?.is_none() {
        return Ok(());
    }
    let mut scan = ddl.tx().engine.scan(view, tree, &[column], &[Datum::Null], &[], None)?;
    while let Some(batch) = scan.next()? {
        ctx.check_interrupt()?;
        let ColumnData::Stored(values) = &batch.columns[0].data else { continue };
        values.iter().try_for_each(|value| forget_value(&ddl.tx().engine, tree.toast(), value))?;
    }
    Ok(())
}

//! Foreign keys: is the referenced row there, and what becomes of the rows that refer to one that goes.

use std::ops::Bound;
use std::sync::Arc;

use melba_catalog::{Constraint, ForeignKeyInfo};
use melba_engine::{Isolation, RowLockMode, Wait};
use melba_functions::io;
use melba_types::{Datum, DbError, Oid, Result, RowId, bail};

use super::error;
use super::events::{Event, Events, Runner};
use super::target::{PartSource, TableTarget};
use super::writer::TableWriter;
use crate::execute::key::KeyPart;

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Only a check: may be deferred.
    Check,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

impl Action {
    pub fn of(event: &Event) -> Action {
        match event {
            Event::Unique { .. } | Event::Reference { .. } => Action::Check,
            Event::Referenced { constraint, new, .. } => {
                constraint.foreign_key.as_ref().map_or(Action::Check, |key| Action::of_key(key, new.is_none()))
            }
        }
    }

    fn of_key(key: &ForeignKeyInfo, deleted: bool) -> Action {
        match if deleted { key.on_delete } else { key.on_update } {
            b'r' => Action::Restrict,
            b'c' => Action::Cascade,
            b'n' => Action::SetNull,
            b'd' => Action::SetDefault,
            _ => Action::Check,
        }
    }
}

fn key_of(constraint: &Constraint) -> Result<&Arc<ForeignKeyInfo>> {
    constraint.foreign_key.as_ref().ok_or_else(|| DbError::internal("foreign key without a definition"))
}

/// A value of the other side's type, so that both have the same key bytes.
fn convert(runner: &Runner<'_>, value: &Datum, from: Oid, to: Oid) -> Result<Datum> {
    let catalog = &runner.ctx.catalog;
    if catalog.kind_of(from) == catalog.kind_of(to) || value.is_null() {
        return Ok(value.clone());
    }
    let session = &*runner.ctx.session;
    let mut text = Vec::new();
    io::text_out(session, from, value, &mut text)?;
    io::text_in(session, to, -1, &String::from_utf8_lossy(&text))
}

/// Raises 23503 unless the referenced row exists; keeps it from going (FOR KEY SHARE).
pub(super) fn check_reference(
    runner: &mut Runner<'_>,
    target: &TableTarget,
    constraint: &Constraint,
    values: &[Datum],
) -> Result<()> {
    if values.iter().any(Datum::is_null) {
        return Err(error::mixed_nulls(&*runner.ctx.session, constraint, &target.relation));
    }
    let key = key_of(constraint)?;
    let referenced = runner.target(key.referenced_table)?;
    let bytes = referenced_key(runner, target, &referenced, constraint, values)?;
    let Some((tree, bytes)) = bytes else {
        return Err(DbError::internal(format!("foreign key \"{}\" has lost its index", constraint.name)));
    };
    loop {
        let Some(row) = runner.txn.index_probe_snapshot(tree, &bytes)? else {
            return Err(error::not_present(&*runner.ctx.session, constraint, &target.relation, values));
        };
        runner.txn.lock_row(referenced.tree, row, RowLockMode::ForKeyShare, Wait::Block)?;
        // While we waited, the row may have gone or changed its key.
        if runner.txn.index_probe_latest(tree, &bytes, None)? == Some(row) {
            return Ok(());
        }
        refuse_newer(runner)?;
    }
}

/// What is newer than the snapshot ends a transaction that keeps one.
fn refuse_newer(runner: &Runner<'_>) -> Result<()> {
    if runner.txn.isolation() != Isolation::ReadCommitted {
        bail!(T_R_SERIALIZATION_FAILURE, "could not serialize access due to concurrent update");
    }
    Ok(())
}

/// The key of the referenced row in the index that supports the constraint.
fn referenced_key(
    runner: &Runner<'_>,
    target: &TableTarget,
    referenced: &TableTarget,
    constraint: &Constraint,
    values: &[Datum],
) -> Result<Option<(melba_types::TreeId, Vec<u8>)>> {
    let key = key_of(constraint)?;
    let Some(index) = referenced.indexes.iter().find(|i| i.oid == constraint.index) else { return Ok(None) };
    let mut bytes = Vec::new();
    for part in &index.parts {
        let PartSource::Column(column) = part.source else { return Ok(None) };
        let Some(at) = key.referenced_columns.iter().position(|c| *c as usize - 1 == column) else { return Ok(None) };
        let from = target.relation.columns[constraint.columns[at] as usize - 1].ty;
        let to = referenced.relation.columns[column].ty;
        part.key.encode(&convert(runner, &values[at], from, to)?, &mut bytes);
    }
    Ok(Some((index.tree, bytes)))
}

/// Does what the constraint says for a referenced row that was deleted or whose key changed. Returns the events of the
/// changes made.
pub(super) fn follow(
    runner: &mut Runner<'_>,
    referenced: &Arc<TableTarget>,
    constraint: &Constraint,
    old: &[Datum],
    new: Option<&[Datum]>,
) -> Result<Events> {
    let key = key_of(constraint)?.clone();
    let action = Action::of_key(&key, new.is_none());
    let child = runner.target(constraint.relation)?;
    if action == Action::Check && still_there(runner, referenced, constraint, &key, old)? {
        return Ok(Events::default());
    }
    let rows = referencing_rows(runner, &child, referenced, constraint, old)?;
    if rows.is_empty() {
        return Ok(Events::default());
    }
    if matches!(action, Action::Check | Action::Restrict) {
        return Err(error::still_referenced(
            &*runner.ctx.session,
            constraint,
            &referenced.relation,
            &key.referenced_columns,
            old,
            action == Action::Restrict,
        ));
    }
    let mut writer = TableWriter::new(child.clone(), runner.txn.clone());
    for row in rows {
        change_referencing(runner, &mut writer, constraint, &key, action, new, row)?;
    }
    Ok(std::mem::take(&mut writer.events))
}

/// Whether another row has the old key by now.
fn still_there(
    runner: &Runner<'_>,
    referenced: &TableTarget,
    constraint: &Constraint,
    key: &ForeignKeyInfo,
    old: &[Datum],
) -> Result<bool> {
    let Some(index) = referenced.indexes.iter().find(|i| i.oid == constraint.index) else { return Ok(false) };
    let mut bytes = Vec::new();
    for part in &index.parts {
        let PartSource::Column(column) = part.source else { return Ok(false) };
        let Some(at) = key.referenced_columns.iter().position(|c| *c as usize - 1 == column) else { return Ok(false) };
        part.key.encode(&old[at], &mut bytes);
    }
    Ok(runner.txn.index_probe_latest(index.tree, &bytes, None)?.is_some())
}

/// Rows of `child` that refer to the key.
fn referencing_rows(
    runner: &Runner<'_>,
    child: &TableTarget,
    referenced: &TableTarget,
    constraint: &Constraint,
    old: &[Datum],
) -> Result<Vec<RowId>> {
    let key = key_of(constraint)?;
    let mut values = Vec::with_capacity(old.len());
    for (at, column) in constraint.columns.iter().enumerate() {
        let from = referenced.relation.columns[key.referenced_columns[at] as usize - 1].ty;
        values.push(convert(runner, &old[at], from, child.relation.columns[*column as usize - 1].ty)?);
    }
    let (view, _pin) = runner.txn.latest_view();
    let mut rows = Vec::new();
    if let Some((tree, prefix)) = covering_prefix(child, constraint, &values) {
        let mut scan = runner.txn.index_scan(view, tree, Bound::Included(&prefix), Bound::Included(&prefix), false)?;
        while let Some((_, row)) = scan.next()? {
            rows.push(row);
        }
        return Ok(rows);
    }
    let projection: Vec<usize> = constraint.columns.iter().map(|c| *c as usize - 1).collect();
    let parts: Vec<KeyPart> =
        projection.iter().map(|c| KeyPart::equality(&runner.ctx.catalog, child.relation.columns[*c].ty)).collect();
    let encode = |values: &mut dyn Iterator<Item = Datum>, out: &mut Vec<u8>| {
        out.clear();
        parts.iter().zip(values).for_each(|(part, value)| part.encode(&value, out));
    };
    let (mut wanted, mut found) = (Vec::new(), Vec::new());
    encode(&mut values.into_iter(), &mut wanted);
    let mut scan = runner.txn.scan(view, child.tree, &projection, &child.missing, &[], None)?;
    while let Some(batch) = scan.next()? {
        runner.ctx.check_interrupt()?;
        for (i, row) in batch.row_ids.iter().enumerate() {
            encode(&mut batch.columns.iter().map(|c| c.get(i)), &mut found);
            if found == wanted {
                rows.push(*row);
            }
        }
    }
    Ok(rows)
}

/// An index of `child` that begins with the constraint's columns, and the prefix for `values`.
fn covering_prefix(child: &TableTarget, constraint: &Constraint, values: &[Datum]) -> Option<(melba_types::TreeId, Vec<u8>)> {
    child.indexes.iter().filter(|i| i.predicate.is_none() && i.parts.len() >= values.len()).find_map(|index| {
        let mut prefix = Vec::new();
        for part in &index.parts[..values.len()] {
            let PartSource::Column(column) = part.source else { return None };
            let at = constraint.columns.iter().position(|c| *c as usize - 1 == column)?;
            part.key.encode(&values[at], &mut prefix);
        }
        Some((index.tree, prefix))
    })
}

/// CASCADE, SET NULL or SET DEFAULT on one referencing row.
fn change_referencing(
    runner: &Runner<'_>,
    writer: &mut TableWriter,
    constraint: &Constraint,
    key: &ForeignKeyInfo,
    action: Action,
    new: Option<&[Datum]>,
    row: RowId,
) -> Result<()> {
    let child = writer.target.clone();
    let mode = if new.is_none() && action == Action::Cascade { RowLockMode::ForUpdate } else { RowLockMode::ForNoKeyUpdate };
    runner.txn.lock_row_to_change(child.tree, row, mode)?;
    let latest = runner.txn.get_latest(child.tree, row)?;
    if latest.own_command.is_none() && latest.csn > runner.ctx.view().csn {
        refuse_newer(runner)?;
    }
    let Some(bytes) = latest.row else { return Ok(()) };
    let old = child.decode(&bytes);
    if new.is_none() && action == Action::Cascade {
        return writer.delete(runner.ctx, row, &old);
    }
    let mut changed = old.clone();
    for (at, column) in constraint.columns.iter().enumerate() {
        let position = *column as usize - 1;
        let listed = key.delete_set_columns.is_empty() || new.is_some() || key.delete_set_columns.contains(column);
        changed[position] = match action {
            Action::SetNull if listed => Datum::Null,
            Action::SetDefault if listed => default_value(runner, &child, position)?,
            Action::Cascade => new.map_or(Datum::Null, |new| new[at].clone()),
            _ => continue,
        };
    }
    writer.update(runner.ctx, row, &old, &mut changed)
}

fn default_value(runner: &Runner<'_>, child: &TableTarget, column: usize) -> Result<Datum> {
    let builder = super::TargetBuilder { catalog: &runner.ctx.catalog, session: &*runner.ctx.session };
    match builder.default(&child.relation, column)? {
        Some(expression) => expression.eval_row(runner.ctx, &[]),
        None => Ok(Datum::Null),
    }
}

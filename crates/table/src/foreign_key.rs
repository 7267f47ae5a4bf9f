//! Foreign keys: checks that the referenced row exists, and acts on rows that refer to a deleted one.

use std::ops::Bound;
use std::sync::Arc;

use melba_catalog::trigger_events::{DELETE, UPDATE};
use melba_catalog::{Catalog, Constraint, ForeignKeyInfo, Relation};
use melba_engine::{Held, Isolation, RowLockMode, Wait};
use melba_fmgr::{io, order};
use melba_types::{Column, Datum, DbError, Kind, Oid, Result, RowId, bail, err};

use super::error;
use super::events::{Events, Runner};
use super::part_source::PartSource;
use super::period::{Periods, without_period};
use super::referenced_key::{ReferencedKey, index_of, key_of, place_of, refuse_newer};
use super::routing::ColumnMap;
use super::target::TableTarget;
use super::writer::{Above, TableWriter};
use melba_expression::key::KeyPart;
use melba_types::BATCH_ROWS;

/// The kinds of event.
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
    pub fn of(constraint: &Constraint, deleted: bool) -> Action {
        constraint.foreign_key.as_ref().map_or(Action::Check, |key| Action::of_key(key, deleted))
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

/// A value of the other side's type, so that both have the same key bytes; `None`: there is none.
fn convert(runner: &Runner<'_>, value: &Datum, from: Oid, to: Oid) -> Result<Option<Datum>> {
    let catalog = runner.ctx.catalog();
    if catalog.kind_of(from) == catalog.kind_of(to) || value.is_null() {
        return Ok(Some(value.clone()));
    }
    let integer = match value {
        Datum::Int2(n) => Some(i64::from(*n)),
        Datum::Int4(n) => Some(i64::from(*n)),
        Datum::Int8(n) => Some(*n),
        _ => None,
    };
    match (integer, catalog.kind_of(to)) {
        (Some(n), Some(Kind::Int2)) => return Ok(i16::try_from(n).ok().map(Datum::Int2)),
        (Some(n), Some(Kind::Int4)) => return Ok(i32::try_from(n).ok().map(Datum::Int4)),
        (Some(n), Some(Kind::Int8)) => return Ok(Some(Datum::Int8(n))),
        _ => {}
    }
    let session = &*runner.ctx.session;
    let mut text = Vec::new();
    io::text_out(session, from, value, &mut text)?;
    io::text_in(session, to, -1, &String::from_utf8_lossy(&text)).map(Some)
}

/// Raises 23503 unless the referenced row exists; keeps it from being deleted (FOR KEY SHARE).
pub(super) fn check_reference(
    runner: &mut Runner<'_>,
    target: &TableTarget,
    constraint: &Constraint,
    values: &[Datum],
) -> Result<()> {
    if values.iter().any(Datum::is_null) {
        return Err(error::mixed_nulls(&*runner.ctx.session, constraint, &target.relation));
    }
    let not_present = |runner: &Runner<'_>| error::not_present(&*runner.ctx.session, constraint, &target.relation, values);
    let values_there = as_referenced(runner, target, constraint, values)?;
    if key_of(constraint)?.has_period() {
        let is_covered = match values_there {
            Some(values) => periods(runner, constraint, &values)?.contain()?,
            None => false,
        };
        return if is_covered { Ok(()) } else { Err(not_present(runner)) };
    }
    let referenced = match values_there {
        Some(values) => place_of(runner.ctx, |table| runner.target(table), constraint, &values)?,
        None => None,
    };
    let Some(ReferencedKey { table: referenced, index: tree, bytes }) = referenced else { return Err(not_present(runner)) };
    loop {
        let Some(row) = runner.txn.index(tree).find_snapshot(&bytes)? else { return Err(not_present(runner)) };
        runner.txn.lock_row(referenced.tree, row, RowLockMode::ForKeyShare, Wait::Block)?;
        // During the wait, the row may have been deleted or changed its key.
        if runner.txn.index(tree).find_latest(&bytes)? == Some(row) {
            return Ok(());
        }
        refuse_newer(runner.txn, referenced.tree, row)?;
    }
}

/// The values of a referencing row as the referenced columns have them; `None`: they have no such values.
pub(super) fn as_referenced(
    runner: &Runner<'_>,
    target: &TableTarget,
    constraint: &Constraint,
    values: &[Datum],
) -> Result<Option<Vec<Datum>>> {
    let key = key_of(constraint)?;
    let lost = || DbError::internal(format!("foreign key \"{}\" has lost its table", constraint.name));
    let referenced = runner.ctx.catalog().relation(key.referenced_table).ok_or_else(lost)?;
    let ty = |relation: &Relation, column: i16| relation.columns[column as usize - 1].ty;
    let columns = constraint.columns.iter().zip(&key.referenced_columns).zip(values);
    columns.map(|((from, to), value)| convert(runner, value, ty(&target.relation, *from), ty(referenced, *to))).collect()
}

/// Performs the constraint's action for a referenced row that was deleted or whose key changed. Returns the events of the changes
/// made.
pub(super) fn follow(
    runner: &mut Runner<'_>,
    referenced: &Arc<TableTarget>,
    constraint: &Constraint,
    old: &[Datum],
    new: Option<&[Datum]>,
) -> Result<Events> {
    let key = key_of(constraint)?.clone();
    if key.has_period() {
        check_periods(runner, referenced, constraint, old)?;
        return Ok(Events::default());
    }
    let deleted = new.is_none();
    let action = Action::of_key(&key, deleted);
    let child = runner.target(constraint.relation)?;
    if action == Action::Check && still_there(runner, constraint, old)? {
        return Ok(Events::default());
    }
    let event = if deleted && action == Action::Cascade { DELETE } else { UPDATE };
    let whole = whole_of(runner, constraint)?;
    let changed = if whole.triggers.is_empty() { None } else { Some(runner.target(whole.oid)?) };
    if let Some(changed) = changed.as_ref().filter(|_| !matches!(action, Action::Check | Action::Restrict)) {
        let columns = ColumnMap::new(&whole, &child.relation);
        let above = |number: &i16| columns.above(*number as usize - 1).map(|at| at as i16 + 1);
        runner.begin(changed, event, &constraint.columns.iter().filter_map(above).collect::<Vec<_>>())?;
    }
    let Some(reference) = ReferencingKey::new(runner, &child, referenced, constraint, old)? else { return Ok(Events::default()) };
    let (rows, _held) = referencing_rows(runner, &child, constraint, &reference)?;
    if rows.is_empty() {
        return Ok(Events::default());
    }
    let is_restricted = action == Action::Restrict;
    if is_restricted || action == Action::Check {
        if !any_still_refers(runner, &child, &reference, &rows)? {
            return Ok(Events::default());
        }
        let (session, columns) = (&*runner.ctx.session, &key.referenced_columns);
        return Err(error::still_referenced(session, constraint, &referenced.relation, columns, old, is_restricted));
    }
    let new = match new.filter(|_| action == Action::Cascade) {
        Some(new) => {
            let new = as_referencing(runner, &child, referenced, constraint, new)?;
            Some(new.ok_or_else(|| out_of_range(&child, constraint))?)
        }
        None => None,
    };
    let mut writer = TableWriter::new(child.clone(), runner.txn.clone());
    writer.updated = constraint.columns.clone();
    writer.transitions = changed.as_ref().and_then(|changed| runner.transitions(changed, event));
    if whole.oid != child.relation.oid {
        let columns = ColumnMap::new(&whole, &child.relation);
        writer.above = Some(Above { relation: whole, columns, written: Vec::new() });
    }
    for row in rows {
        change_referencing(runner, &mut writer, constraint, (&key, action, deleted), new.as_deref(), (&reference, row))?;
    }
    // Where the default is the deleted key, no change needs a check.
    if action == Action::SetDefault
        && !referencing_rows(runner, &child, constraint, &reference)?.0.is_empty()
        && !still_there(runner, constraint, old)?
    {
        let (session, columns) = (&*runner.ctx.session, &key.referenced_columns);
        return Err(error::still_referenced(session, constraint, &referenced.relation, columns, old, false));
    }
    Ok(std::mem::take(&mut writer.events))
}

/// Raises 23503 when rows refer to a key with PERIOD that is not there any more.
fn check_periods(runner: &mut Runner<'_>, referenced: &Arc<TableTarget>, constraint: &Constraint, old: &[Datum]) -> Result<()> {
    let child = runner.target(constraint.relation)?;
    let key = &old[..old.len().saturating_sub(1)];
    let plain = without_period(constraint)?;
    let Some(reference) = ReferencingKey::new(runner, &child, referenced, &plain, key)? else { return Ok(()) };
    let (rows, _held) = referencing_rows(runner, &child, &plain, &reference)?;
    periods(runner, constraint, old)?.check_referencing(&child, rows, referenced)
}

/// The rows that a key with PERIOD refers to.
pub(super) fn periods<'r: 'p, 'p>(
    runner: &mut Runner<'r>,
    constraint: &'p Constraint,
    values: &'p [Datum],
) -> Result<Periods<'p>> {
    let place = index_of(runner.ctx, |table| runner.target(table), constraint, values)?;
    Ok(Periods { ctx: runner.ctx, txn: runner.txn, constraint, values, place })
}

/// The table that has a foreign key, of which a leaf is changed: the statement is one on all of it.
fn whole_of(runner: &Runner<'_>, constraint: &Constraint) -> Result<Arc<Relation>> {
    let catalog = runner.ctx.catalog();
    let whole = catalog.constraint(constraint.oid).map_or(constraint.relation, |key| key.relation);
    let lost = || DbError::internal(format!("foreign key \"{}\" has lost its table", constraint.name));
    catalog.relation(whole).cloned().ok_or_else(lost)
}

/// 22003 of a key that the columns of `child` cannot have.
fn out_of_range(child: &TableTarget, constraint: &Constraint) -> DbError {
    let is_small = |column: &i16| child.relation.columns[*column as usize - 1].kind == Kind::Int2;
    let ty = if constraint.columns.iter().any(is_small) { "smallint" } else { "integer" };
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "{ty} out of range")
}

/// Whether another row has the old key by now.
fn still_there(runner: &mut Runner<'_>, constraint: &Constraint, old: &[Datum]) -> Result<bool> {
    let Some(place) = place_of(runner.ctx, |table| runner.target(table), constraint, old)? else { return Ok(false) };
    Ok(runner.txn.index(place.index).find_latest(&place.bytes)?.is_some())
}

/// A referenced key as the child's columns have it; `None`: they have no such values.
fn as_referencing(
    runner: &Runner<'_>,
    child: &TableTarget,
    referenced: &TableTarget,
    constraint: &Constraint,
    values: &[Datum],
) -> Result<Option<Vec<Datum>>> {
    let ty = |target: &TableTarget, column: i16| target.relation.columns[column as usize - 1].ty;
    let columns = key_of(constraint)?.referenced_columns.iter().zip(&constraint.columns);
    let convert = |((from, to), value): ((&i16, &i16), &Datum)| convert(runner, value, ty(referenced, *from), ty(child, *to));
    columns.zip(values).map(convert).collect()
}

/// What the constraint's columns of a row that refers to a certain key are equal to.
struct ReferencingKey {
    /// The columns' places in the row.
    columns: Vec<usize>,
    values: Vec<Datum>,
    parts: Vec<KeyPart>,
    encoded: Vec<u8>,
}

impl ReferencingKey {
    /// The reference to `key`, or `None`: the columns of `child` have no such values.
    fn new(
        runner: &Runner<'_>,
        child: &TableTarget,
        referenced: &TableTarget,
        constraint: &Constraint,
        key: &[Datum],
    ) -> Result<Option<ReferencingKey>> {
        let Some(values) = as_referencing(runner, child, referenced, constraint, key)? else { return Ok(None) };
        let columns: Vec<usize> = constraint.columns.iter().map(|c| *c as usize - 1).collect();
        let parts = columns.iter().map(|c| &child.relation.columns[*c]);
        let parts = parts.map(|c| KeyPart::equality(runner.ctx.catalog(), (c.ty, c.collation)));
        let parts: Vec<KeyPart> = parts.collect();
        let mut encoded = Vec::new();
        parts.iter().zip(&values).for_each(|(part, value)| part.encode(value, &mut encoded));
        Ok(Some(ReferencingKey { columns, values, parts, encoded }))
    }

    /// Whether a row of the child has it.
    fn is_of(&self, row: &[Datum]) -> bool {
        let mut found = Vec::with_capacity(self.encoded.len());
        self.parts.iter().zip(&self.columns).for_each(|(part, column)| part.encode(&row[*column], &mut found));
        found == self.encoded
    }
}

/// Rows of `child` that have the reference, and the account of them.
fn referencing_rows(
    runner: &Runner<'_>,
    child: &TableTarget,
    constraint: &Constraint,
    reference: &ReferencingKey,
) -> Result<(Vec<RowId>, Held)> {
    let (mut rows, mut held) = (Vec::new(), runner.ctx.resources().held());
    let (view, _pin) = runner.txn.latest_view();
    if let Some((tree, prefix)) = covering_prefix(runner.ctx.catalog(), child, constraint, &reference.values) {
        let mut scan = runner.txn.index(tree).scan(view, Bound::Included(&prefix), Bound::Included(&prefix), false)?;
        while let Some((_, row)) = scan.next()? {
            rows.push(row);
            if rows.len() % BATCH_ROWS == 0 {
                runner.ctx.check_interrupt()?;
                held.set(rows.capacity() * size_of::<RowId>())?;
            }
        }
        return Ok((rows, held));
    }
    let mut found = Vec::new();
    let mut scan = runner.txn.scan(view, child.tree, &reference.columns, &child.missing, &[], None)?;
    while let Some(batch) = scan.next()? {
        runner.ctx.check_interrupt()?;
        let columns = batch.columns.iter().zip(&reference.columns);
        let expand = |(column, at): (&Column, &usize)| runner.ctx.expand_column(column, child.relation.columns[*at].kind);
        let columns = columns.map(expand).collect::<Result<Vec<Column>>>()?;
        for (i, row) in batch.row_ids.iter().enumerate() {
            found.clear();
            reference.parts.iter().zip(&columns).for_each(|(part, column)| part.encode_at(column, i, &mut found));
            if found == reference.encoded {
                rows.push(*row);
            }
        }
        held.set(rows.capacity() * size_of::<RowId>())?;
    }
    Ok((rows, held))
}

/// Whether one of the rows still refers to the key, once those that change it or delete it have ended.
fn any_still_refers(runner: &Runner<'_>, child: &TableTarget, reference: &ReferencingKey, rows: &[RowId]) -> Result<bool> {
    for row in rows {
        runner.ctx.check_interrupt()?;
        runner.txn.lock_row(child.tree, *row, RowLockMode::ForKeyShare, Wait::Block)?;
        let latest = runner.txn.get_latest(child.tree, *row)?;
        if let Some(bytes) = latest.row
            && reference.is_of(&child.with_plain_keys(runner.ctx, &child.decode(&bytes))?)
        {
            return Ok(true);
        }
        refuse_newer(runner.txn, child.tree, *row)?;
    }
    Ok(false)
}

/// An index of `child` that begins with the constraint's columns and has the same values of them equal, and the prefix for `values`.
fn covering_prefix(
    catalog: &Catalog,
    child: &TableTarget,
    constraint: &Constraint,
    values: &[Datum],
) -> Option<(melba_types::TreeId, Vec<u8>)> {
    child.indexes.iter().filter(|i| i.predicate.is_none() && i.gin.is_empty() && i.parts.len() >= values.len()).find_map(
        |index| {
            let keys = &catalog.relation(index.oid)?.index.as_ref()?.keys;
            let mut prefix = Vec::new();
            for part in &index.parts[..values.len()] {
                let PartSource::Column(column) = part.source else { return None };
                let at = constraint.columns.iter().position(|c| *c as usize - 1 == column)?;
                if !order::is_same_equality(catalog, keys[part.place].collation, child.relation.columns[column].collation) {
                    return None;
                }
                part.key.encode(&values[at], &mut prefix);
            }
            Some((index.tree, prefix))
        },
    )
}

/// CASCADE, SET NULL or SET DEFAULT on one row that had the reference when it was found.
fn change_referencing(
    runner: &mut Runner<'_>,
    writer: &mut TableWriter,
    constraint: &Constraint,
    (key, action, deleted): (&ForeignKeyInfo, Action, bool),
    new: Option<&[Datum]>,
    (reference, row): (&ReferencingKey, RowId),
) -> Result<()> {
    let child = writer.target.clone();
    let mode = if deleted && action == Action::Cascade { RowLockMode::ForUpdate } else { RowLockMode::ForNoKeyUpdate };
    runner.txn.lock_row_to_change(child.tree, row, mode)?;
    let latest = runner.txn.get_latest(child.tree, row)?;
    if latest.own_command.is_none() && latest.csn > runner.ctx.view().csn {
        if latest.row.is_none() && runner.txn.isolation() != Isolation::ReadCommitted {
            bail!(T_R_SERIALIZATION_FAILURE, "could not serialize access due to concurrent delete");
        }
        refuse_newer(runner.txn, child.tree, row)?;
    }
    let Some(bytes) = latest.row else { return Ok(runner.txn.give_up_change(child.tree, row, false)?) };
    let old = child.decode(&bytes);
    // While this transaction waited, or by a trigger, the row may have got another key.
    if !reference.is_of(&child.with_plain_keys(runner.ctx, &old)?) {
        return Ok(runner.txn.give_up_change(child.tree, row, true)?);
    }
    if deleted && action == Action::Cascade {
        return match writer.before_delete(runner.ctx, row, &old)? {
            true => writer.delete(runner.ctx, row, &old),
            false => Ok(runner.txn.give_up_change(child.tree, row, true)?),
        };
    }
    let mut changed = old.clone();
    for (at, column) in constraint.columns.iter().enumerate() {
        let position = *column as usize - 1;
        let listed = key.delete_set_columns.is_empty() || !deleted || key.delete_set_columns.contains(column);
        changed[position] = match action {
            Action::SetNull if listed => Datum::Null,
            Action::SetDefault if listed => default_value(runner, writer, position)?,
            Action::Cascade => new.map_or(Datum::Null, |new| new[at].clone()),
            _ => continue,
        };
    }
    if !writer.before_update(runner.ctx, row, &old, &mut changed)? {
        return Ok(runner.txn.give_up_change(child.tree, row, true)?);
    }
    if let Some(above) = writer.above.clone()
        && !writer.accepts(runner.ctx, &mut changed)?
    {
        return move_referencing(runner, writer, &above, row, &old, changed);
    }
    writer.update(runner.ctx, row, &old, &mut changed)
}

/// Moves a referencing row whose new key belongs to another partition.
fn move_referencing(
    runner: &mut Runner<'_>,
    writer: &mut TableWriter,
    above: &Above,
    row: RowId,
    old: &[Datum],
    changed: Vec<Datum>,
) -> Result<()> {
    let ctx = runner.ctx;
    let mut root = TableWriter::new(runner.target(above.relation.oid)?, runner.txn.clone());
    if !writer.before_delete(ctx, row, old)? {
        return Ok(());
    }
    writer.delete_to_move(ctx, row, old, &above.relation)?;
    let inserted = root.insert_routed(ctx, above.columns.up(changed))?;
    let routed = root.router.as_mut().map(|router| router.take_events());
    for events in routed.into_iter().flatten() {
        writer.events.append(ctx, events)?;
    }
    root.moved(ctx, &above.columns.up(old.to_vec()), inserted.as_ref().map(|routed| &routed.row[..]))?;
    writer.gather_events(ctx, &mut root)
}

/// The default of a column: that of the table which the statement is on.
fn default_value(runner: &Runner<'_>, writer: &TableWriter, column: usize) -> Result<Datum> {
    let own = || (writer.target.relation.clone(), column);
    let above = writer.above.as_ref().and_then(|above| Some((above.relation.clone(), above.columns.above(column)?)));
    let (relation, column) = above.unwrap_or_else(own);
    let builder = super::TargetBuilder { catalog: runner.ctx.catalog(), session: &*runner.ctx.session };
    match builder.default(&relation, column)? {
        Some(expression) => expression.eval_row(runner.ctx, &[]),
        None => Ok(Datum::Null),
    }
}

//! The operator that changes rows: INSERT, UPDATE, DELETE, ON CONFLICT, MERGE, RETURNING.

mod merge;

use std::sync::Arc;

use melba_catalog::trigger_events::{DELETE, INSERT, UPDATE};
use melba_catalog::{Relation, Storage};
use melba_engine::RowLockMode;
use melba_types::{Batch, Column, Datum, DbError, Oid, Record, Result, RowId};

use super::conflict::{check_conflict_visible, is_part, lock_conflicting};
use super::operator::{Pending, Purpose, Relock, give, lock_and_recheck, replace, still_holds};
use super::{ExecContext, Operator};
use melba_expression::Expression;
use melba_expression::repeat;
use melba_plan::modify_node::{
    Action, Assignments, ConflictNode, Existing, FamilyMember, MergeActionNode, MergeNode, ModifyNode, RETURNED_SYSTEM_COLUMNS,
    Returning,
};
use melba_plan::node::TableSource;
use melba_table::{Above, Routed, TableWriter};
use melba_tree::RowCheckKind;
use melba_types::BATCH_ROWS;

pub(crate) fn build(node: Arc<ModifyNode>, ctx: &ExecContext) -> Result<Box<dyn Operator>> {
    let input = node.input.as_ref().map(|i| ctx.build(i)).transpose()?;
    let merges = matches!(node.action, Action::Merge { .. });
    let new_writer = |target| {
        let mut writer = TableWriter::new(target, ctx.transaction().clone()).with_checks(node.row_checks.clone());
        writer.merges = merges;
        writer
    };
    let writer = new_writer(node.target.clone());
    // A single row has none before it.
    let sees_rows = node.input.is_some() && !node.routines.are_pure(ctx)?;
    let one_by_one = sees_rows || node.has_effects();
    let batch_rows_min = if sees_rows { None } else { batch_rows_min(&node) };
    let members = node.family.iter().flat_map(|f| &f.members);
    let members = members.map(|m| {
        let mut writer = new_writer(m.target.clone());
        let (relation, written) = (node.target.relation.clone(), node.target.written.clone());
        let below = |above: &i16| m.columns.below(*above as usize - 1).map(|at| at as i16 + 1);
        writer.updated = node.target.updated.iter().filter_map(below).collect();
        writer.above = Some(Above { relation, columns: m.columns.clone(), written });
        writer
    });
    let members = members.collect();
    Ok(Box::new(ModifyOp {
        node,
        input,
        writer,
        members,
        batch_rows_min,
        one_by_one,
        begun: false,
        done: false,
        source_is_left: false,
        pending: Pending::default(),
    }))
}

struct ModifyOp {
    node: Arc<ModifyNode>,
    input: Option<Box<dyn Operator>>,
    writer: TableWriter,
    /// Writers of the family's members, in their order.
    members: Vec<TableWriter>,
    /// Rows are only inserted; from this many on they are computed column by column.
    batch_rows_min: Option<usize>,
    /// A row is changed before the conditions of the next one are evaluated.
    one_by_one: bool,
    begun: bool,
    done: bool,
    /// MERGE: the source row that was handled last is to be handled again, as one without a target row.
    source_is_left: bool,
    pending: Pending,
}

/// A changed row for RETURNING, with the target's columns.
struct Changed {
    old: Option<Version>,
    new: Option<Version>,
}

/// A row before or after its change, and where it is.
#[derive(Clone)]
struct Version {
    values: Vec<Datum>,
    id: RowId,
    table: Oid,
    /// The transaction is its xmax: it has replaced, deleted or locked this version.
    xmax: bool,
}

/// xmin of a version of a changed row. `is_new`: this transaction has made it.
fn returned_xmin(ctx: &ExecContext, version: &Version, is_new: bool) -> Result<Datum> {
    let relation = ctx.catalog().relation(version.table).filter(|_| !is_new);
    let Some(Storage::Tree(tree)) = relation.map(|relation| &relation.storage) else { return Ok(ctx.xmin(None)) };
    // Before its change here the row was the view's, or a newer one that others have committed meanwhile.
    Ok(match ctx.transaction().commit_of(ctx.view(), *tree, version.id)? {
        None => ctx.xmin(None),
        Some(_) => ctx.xmin(ctx.transaction().last_commit_of(*tree, version.id)?),
    })
}

/// The table that a row to change is in.
struct Place<'n> {
    /// In the family.
    member: Option<usize>,
    source: &'n TableSource,
}

impl Operator for ModifyOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(batch) = self.pending.take(limit) {
            return Ok(Some(batch));
        }
        self.run(ctx, limit).map_err(|e| self.writer.earlier(ctx, e).1)
    }

    /// Data is changed once; a statement that changes data is never run again within one execution.
    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        Ok(())
    }
}

impl ModifyOp {
    /// Changes rows, all or as many as fill a batch of RETURNING.
    fn run(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        let node = self.node.clone();
        if !std::mem::replace(&mut self.begun, true) {
            if node.target.triggers.is_some() {
                self.writer.changes = Some(ctx.changes().clone());
            }
            self.writer.begin(ctx, events(&node.action))?;
            self.members.iter_mut().for_each(|member| member.transitions = self.writer.transitions.clone());
        }
        while !self.done {
            let mut out: Vec<Column> = match &node.returning {
                Some(r) => r.expressions.iter().map(|e| Column::with_capacity(e.kind, 1)).collect(),
                None => vec![],
            };
            let mut rows = 0;
            let want = match &node.returning {
                // Triggers after rows fire in the order of all changes that the statement makes.
                _ if node.target.triggers.is_some() && ctx.has_modifying_ctes() => 1,
                _ if self.one_by_one => 1,
                Some(_) => limit.min(BATCH_ROWS),
                None => BATCH_ROWS,
            };
            let one = self.input.as_mut().and_then(|input| input.next_row(ctx)).transpose()?;
            let batch = match &mut self.input {
                _ if one.is_some() => None,
                Some(input) => input.next(ctx, want)?,
                None => {
                    self.done = true;
                    Some(Batch { columns: vec![], rows: 1 })
                }
            };
            match batch {
                None => match one.flatten() {
                    Some(row) => {
                        rows += self.change(ctx, &node, row, &mut out)?;
                        ctx.check_interrupt()?;
                    }
                    None => self.done = true,
                },
                Some(batch) if self.takes(ctx, &batch)? => self.insert_rows(ctx, &batch)?,
                Some(batch) => {
                    for i in 0..batch.rows {
                        rows += self.change(ctx, &node, batch.row(i), &mut out)?;
                    }
                    ctx.check_interrupt()?;
                }
            }
            if self.done {
                self.writer.finish(ctx).map_err(|(_, e)| e)?;
                self.writer.end(ctx, events(&node.action))?;
            }
            if self.done || node.target.triggers.is_some() {
                for writer in self.members.iter_mut().chain([&mut self.writer]) {
                    ctx.add_events(std::mem::take(&mut writer.events))?;
                }
            }
            if rows > 0 {
                return Ok(give(&mut self.pending, Batch { columns: out, rows }, limit));
            }
        }
        Ok(None)
    }
}

/// A statement's possible changes of rows, as triggers know them.
fn events(action: &Action) -> i16 {
    match action {
        Action::Insert { on_conflict: Some(ConflictNode { update: Some(_), .. }), .. } => INSERT | UPDATE,
        Action::Insert { .. } => INSERT,
        Action::Update(_) => UPDATE,
        Action::Delete => DELETE,
        Action::Merge { actions, .. } => {
            let event = |action: &MergeNode| match action.command {
                MergeActionNode::Insert(_) => INSERT,
                MergeActionNode::Update(_) => UPDATE,
                MergeActionNode::Delete => DELETE,
                MergeActionNode::Nothing => 0,
            };
            actions.iter().fold(0, |events, action| events | event(action))
        }
    }
}

/// INSERT without ON CONFLICT and RETURNING takes batches. Of several volatile values, a row's must be computed before the next
/// row's; a single one (a sequence's next value) shows the difference only when the statement fails, which matters for few rows.
fn batch_rows_min(node: &ModifyNode) -> Option<usize> {
    match &node.action {
        Action::Insert { values, on_conflict: None } if node.returning.is_none() && !is_catalog(node) => {
            match values.iter().flatten().filter(|e| e.is_volatile()).count() {
                0 => Some(2),
                1 => Some(BATCH_ROWS / 2),
                _ => None,
            }
        }
        _ => None,
    }
}

fn is_catalog(node: &ModifyNode) -> bool {
    matches!(node.target.relation.storage, Storage::System(_))
}

fn row_id(row: &[Datum], existing: &Existing) -> Option<RowId> {
    match &row[existing.row_id] {
        Datum::Int8(id) => Some(RowId(*id as u64)),
        _ => None,
    }
}

/// The table that the row to change is in.
fn place_of<'n>(node: &'n ModifyNode, existing: &'n Existing, row: &[Datum]) -> Result<Place<'n>> {
    let found = match (&node.family, &existing.source) {
        (None, Some(source)) => Some(Place { member: None, source }),
        (None, None) => None,
        (Some(family), _) => {
            let is_its = |m: &FamilyMember| matches!(&row[family.table], Datum::Oid(oid) if *oid == m.source.relation.0);
            let member = family.members.iter().position(is_its);
            member.map(|at| Place { member: Some(at), source: &family.members[at].source })
        }
    };
    found.ok_or_else(|| DbError::internal("a row to change of no table"))
}

fn new_row(values: &[Option<Expression>], ctx: &ExecContext, row: &[Datum]) -> Result<Vec<Datum>> {
    let value = |e: &Option<Expression>| e.as_ref().map_or(Ok(Datum::Null), |e| e.eval_stored(ctx, row));
    values.iter().map(value).collect()
}

fn assign(assignments: &Assignments, ctx: &ExecContext, old: &[Datum], row: &[Datum]) -> Result<Vec<Datum>> {
    let mut new = old.to_vec();
    for (column, value) in &assignments.columns {
        new[*column] = value.eval_stored(ctx, row)?;
    }
    Ok(new)
}

/// The lock of an UPDATE by its columns: the stronger one when a foreign key may refer to an assigned one.
fn lock_mode(assignments: &Assignments) -> RowLockMode {
    if assignments.key { RowLockMode::ForUpdate } else { RowLockMode::ForNoKeyUpdate }
}

/// The verb that errors use for the intended change of a row.
fn doing(action: &Action) -> &'static str {
    match action {
        Action::Update(_) => "updated",
        Action::Delete => "deleted",
        _ => "updated or deleted",
    }
}

impl ModifyOp {
    /// Whether rows are inserted as a batch: many, and those that come after others.
    fn takes(&mut self, ctx: &ExecContext, batch: &Batch) -> Result<bool> {
        let Some(min) = self.batch_rows_min else { return Ok(false) };
        Ok(self.writer.has_rows() || batch.rows >= min && !self.writer.takes_rows_one_by_one(ctx)?)
    }

    /// Inserts many rows.
    fn insert_rows(&mut self, ctx: &ExecContext, batch: &Batch) -> Result<()> {
        let node = self.node.clone();
        let Action::Insert { values, .. } = &node.action else { return Ok(()) };
        let mut columns = Vec::with_capacity(values.len());
        for (value, column) in values.iter().zip(node.target.relation.columns.iter()) {
            columns.push(match value {
                Some(value) => value.eval_stored_vector(ctx, batch)?.into_column(column.kind, batch.rows)?,
                None => repeat(&Datum::Null, column.kind, batch.rows),
            });
        }
        let skipped = self.writer.skipped;
        self.writer.insert_batch(ctx, Batch { columns, rows: batch.rows }).map_err(|(_, e)| e)?;
        if node.counts {
            ctx.add_rows_affected(batch.rows as u64 - (self.writer.skipped - skipped));
        }
        ctx.check_interrupt()
    }

    /// Works off one input row; how many rows this adds to `out`.
    fn change(&mut self, ctx: &ExecContext, node: &ModifyNode, mut row: Vec<Datum>, out: &mut [Column]) -> Result<usize> {
        let mut rows = 0;
        loop {
            let changed = self.row(ctx, node, &mut row)?;
            let again = std::mem::take(&mut self.source_is_left);
            if node.counts && changed.is_some() {
                ctx.add_rows_affected(1);
            }
            if let (Some(changed), Some(returning)) = (changed, &node.returning) {
                let row = if again { row.clone() } else { std::mem::take(&mut row) };
                self.returned(ctx, returning, row, changed, out)?;
                rows += 1;
            }
            match &node.existing {
                Some(existing) if again => row[existing.row_id] = Datum::Null,
                _ => return Ok(rows),
            }
        }
    }

    /// Handles one input row; `None` when nothing was changed. The row is updated to its newest version when it was found changed.
    fn row(&mut self, ctx: &ExecContext, node: &ModifyNode, row: &mut [Datum]) -> Result<Option<Changed>> {
        match (&node.action, &node.existing) {
            (Action::Insert { values, on_conflict }, _) => {
                let new = new_row(values, ctx, row)?;
                match on_conflict {
                    None => self.insert(ctx, new),
                    Some(conflict) => self.insert_or(ctx, conflict, new),
                }
            }
            (Action::Update(assignments), Some(existing)) if self.is_computed() => {
                self.update_computed(ctx, existing, assignments, row)
            }
            (Action::Delete, Some(existing)) if self.is_computed() => self.delete_computed(ctx, existing, row),
            (Action::Update(assignments), Some(existing)) => {
                if row_id(row, existing).is_none() {
                    return Ok(None);
                }
                let place = place_of(node, existing, row)?;
                self.update_row(ctx, existing, &place, assignments, row)
            }
            (Action::Delete, Some(existing)) => {
                if row_id(row, existing).is_none() {
                    return Ok(None);
                }
                let place = place_of(node, existing, row)?;
                let Some((id, _)) = self.lock(ctx, existing, &place, RowLockMode::ForUpdate, row)? else { return Ok(None) };
                let old = self.old_row(ctx, existing, &place, id, row)?;
                self.delete(ctx, &place, id, old)
            }
            (Action::Merge { actions, condition, source_marker }, Some(existing)) => {
                self.merge(ctx, existing, actions, condition, *source_marker, row)
            }
            _ => Err(melba_types::DbError::internal("a change without the row to change")),
        }
    }

    /// The target's rows are those of a view, or of a system catalog.
    fn is_computed(&self) -> bool {
        self.writer.is_view() || is_catalog(&self.node)
    }

    fn update_computed(
        &mut self,
        ctx: &ExecContext,
        existing: &Existing,
        assignments: &Assignments,
        row: &[Datum],
    ) -> Result<Option<Changed>> {
        let old = self.view_row(existing, row);
        let mut new = assign(assignments, ctx, &old, row)?;
        let changed = self.instead(ctx, UPDATE, Some(&old), Some(&mut new))?;
        Ok(changed.then(|| Changed { old: self.of_view(old), new: self.of_view(new) }))
    }

    fn delete_computed(&mut self, ctx: &ExecContext, existing: &Existing, row: &[Datum]) -> Result<Option<Changed>> {
        let old = self.view_row(existing, row);
        let changed = self.instead(ctx, DELETE, Some(&old), None)?;
        Ok(changed.then(|| Changed { old: self.of_view(old), new: None }))
    }

    /// Changes a row that is computed. False: a trigger has prevented that.
    fn instead(&mut self, ctx: &ExecContext, event: i16, old: Option<&[Datum]>, new: Option<&mut [Datum]>) -> Result<bool> {
        if is_catalog(&self.node) {
            return ctx.change_catalog(&self.node.target.relation, old, new.as_deref()).map(|()| true);
        }
        self.writer.instead(ctx, event, old, new)
    }

    fn insert(&mut self, ctx: &ExecContext, mut new: Vec<Datum>) -> Result<Option<Changed>> {
        if is_catalog(&self.node) {
            self.instead(ctx, INSERT, None, Some(&mut new))?;
            return Ok(Some(Changed { old: None, new: self.of_view(new) }));
        }
        if self.node.target.routing.is_some() {
            let Some(Routed { row: values, id, table }) = self.writer.insert_routed(ctx, new)? else { return Ok(None) };
            return Ok(Some(Changed { old: None, new: Some(Version { values, id, table, xmax: false }) }));
        }
        let Some(id) = self.writer.insert(ctx, &mut new)? else { return Ok(None) };
        Ok(Some(Changed { old: None, new: Some(Version { values: new, id, table: self.node.target.relation.oid, xmax: false }) }))
    }

    /// Moves a member's events for triggers to the statement's: events of all members are in the order of the rows.
    fn gather_events(&mut self, ctx: &ExecContext, place: &Place<'_>) -> Result<()> {
        match place.member.map(|at| &mut self.members[at]) {
            Some(member) if member.target.triggers.is_some() => self.writer.gather_events(ctx, member),
            _ => Ok(()),
        }
    }

    /// Deletions and insertions are parts of a row's move, for triggers that read all rows of the statement.
    fn set_moving(&self, moving: bool) {
        self.writer.transitions.iter().for_each(|transitions| transitions.set_moving(moving));
    }

    /// A row of the view that triggers change.
    fn view_row(&self, existing: &Existing, row: &[Datum]) -> Vec<Datum> {
        existing.columns.iter().map(|c| c.map_or(Datum::Null, |c| row[c].clone())).collect()
    }

    fn of_view(&self, values: Vec<Datum>) -> Option<Version> {
        Some(Version { values, id: RowId(0), table: self.node.target.relation.oid, xmax: false })
    }

    fn writer(&mut self, place: &Place<'_>) -> &mut TableWriter {
        match place.member {
            None => &mut self.writer,
            Some(at) => &mut self.members[at],
        }
    }

    /// `old` and `new` are as their table has them.
    fn update(
        &mut self,
        ctx: &ExecContext,
        place: &Place<'_>,
        id: RowId,
        old: Vec<Datum>,
        mut new: Vec<Datum>,
    ) -> Result<Option<Changed>> {
        let version = |values, xmax| Some(Version { values, id, table: place.source.relation, xmax });
        let writer = self.writer(place);
        if !writer.before_update(ctx, id, &old, &mut new)? {
            ctx.transaction().give_up_change(place.source.tree, id, true)?;
            return Ok(None);
        }
        if self.node.target.routing.is_some() && !self.writer(place).accepts(ctx, &mut new)? {
            let node = self.node.clone();
            // It moves to another partition, perhaps because of a trigger.
            ctx.transaction().lock_row_to_change(place.source.tree, id, RowLockMode::ForUpdate)?;
            let shown = self.shown(place, old.clone());
            self.set_moving(true);
            if !self.remove(ctx, place, id, &old, Some(&node.target.relation))? {
                self.set_moving(false);
                return Ok(None);
            }
            let up = |row| match (place.member, &node.family) {
                (Some(at), Some(family)) => family.members[at].columns.up(row),
                _ => row,
            };
            let (old, new) = (up(old), up(new));
            self.writer.new_rows = RowCheckKind::Update;
            let inserted = self.insert(ctx, new);
            self.writer.new_rows = RowCheckKind::Insert;
            let inserted = inserted?;
            self.set_moving(false);
            let moved = inserted.as_ref().and_then(|changed| changed.new.as_ref());
            self.writer.moved(ctx, &old, moved.map(|version| &version.values[..]))?;
            return Ok(inserted.map(|changed| Changed { old: version(shown, true), ..changed }));
        }
        self.writer(place).update(ctx, id, &old, &mut new)?;
        self.gather_events(ctx, place)?;
        let (old, new) = (self.shown(place, old), self.shown(place, new));
        Ok(Some(Changed { old: version(old, true), new: version(new, false) }))
    }

    fn delete(&mut self, ctx: &ExecContext, place: &Place<'_>, id: RowId, old: Vec<Datum>) -> Result<Option<Changed>> {
        if !self.remove(ctx, place, id, &old, None)? {
            return Ok(None);
        }
        let values = self.shown(place, old);
        Ok(Some(Changed { old: Some(Version { values, id, table: place.source.relation, xmax: true }), new: None }))
    }

    /// Whether the row was deleted. `root`: it moves to another partition of that table.
    fn remove(
        &mut self,
        ctx: &ExecContext,
        place: &Place<'_>,
        id: RowId,
        old: &[Datum],
        root: Option<&Relation>,
    ) -> Result<bool> {
        let writer = self.writer(place);
        if !writer.before_delete(ctx, id, old)? {
            ctx.transaction().give_up_change(place.source.tree, id, true)?;
            return Ok(false);
        }
        match root {
            Some(root) => writer.delete_to_move(ctx, id, old, root)?,
            None => writer.delete(ctx, id, old)?,
        }
        self.gather_events(ctx, place).map(|()| true)
    }

    /// A row of a member with the target's columns.
    fn shown(&self, place: &Place<'_>, row: Vec<Datum>) -> Vec<Datum> {
        let (Some(at), Some(family)) = (place.member, &self.node.family) else { return row };
        match self.node.returning.is_none() {
            true => Vec::new(),
            false => family.members[at].columns.up(row),
        }
    }

    /// The row to change as its table has it.
    fn old_row(&self, ctx: &ExecContext, existing: &Existing, place: &Place<'_>, id: RowId, row: &[Datum]) -> Result<Vec<Datum>> {
        let (Some(at), Some(family)) = (place.member, &self.node.family) else {
            return Ok(existing.columns.iter().map(|c| c.map_or(Datum::Null, |c| row[c].clone())).collect());
        };
        let latest = ctx.transaction().get_latest(place.source.tree, id)?.row;
        Ok(latest.map(|bytes| family.members[at].target.decode(&bytes)).unwrap_or_default())
    }

    /// The row with its new values, as its table has it.
    fn assign(
        &self,
        ctx: &ExecContext,
        place: &Place<'_>,
        assignments: &Assignments,
        old: &[Datum],
        row: &[Datum],
    ) -> Result<Vec<Datum>> {
        let (Some(at), Some(family)) = (place.member, &self.node.family) else { return assign(assignments, ctx, old, row) };
        let columns = &family.members[at].columns;
        let mut new = old.to_vec();
        for (column, value) in &assignments.columns {
            if let Some(place) = columns.below(*column).and_then(|c| new.get_mut(c)) {
                *place = value.eval_stored(ctx, row)?;
            }
        }
        Ok(new)
    }

    /// Locks the row to change: its id, and whether its newest version replaced the row. A row that another transaction changed
    /// meanwhile must still satisfy the conditions.
    fn lock(
        &self,
        ctx: &ExecContext,
        existing: &Existing,
        place: &Place<'_>,
        mode: RowLockMode,
        row: &mut [Datum],
    ) -> Result<Option<(RowId, bool)>> {
        let Some(id) = row_id(row, existing) else { return Ok(None) };
        match lock_and_recheck(ctx, place.source, id, mode, Purpose::Change(doing(&self.node.action)))? {
            Relock::Unchanged => Ok(Some((id, false))),
            Relock::Skip => Ok(None),
            Relock::Changed(outputs) => {
                replace(row, &existing.replace, &outputs);
                if still_holds(ctx, &existing.recheck, row)? {
                    return Ok(Some((id, true)));
                }
                // As in PostgreSQL it stays locked.
                ctx.transaction().give_up_change(place.source.tree, id, true)?;
                Ok(None)
            }
        }
    }

    /// UPDATE of one row. Its lock depends on the new values, which depend on the version that the lock finds.
    fn update_row(
        &mut self,
        ctx: &ExecContext,
        existing: &Existing,
        place: &Place<'_>,
        assignments: &Assignments,
        row: &mut [Datum],
    ) -> Result<Option<Changed>> {
        let (mut mode, mut computed) = self.update_mode(ctx, existing, place, assignments, row)?;
        loop {
            let Some((id, changed)) = self.lock(ctx, existing, place, mode, row)? else { return Ok(None) };
            let old = self.old_row(ctx, existing, place, id, row)?;
            // Computed again only for a row that has changed: nextval must not be called twice.
            let new = match computed.take() {
                Some(new) if !changed => new,
                _ => self.assign(ctx, place, assignments, &old, row)?,
            };
            if mode == RowLockMode::ForNoKeyUpdate && assignments.key && self.changes_key_or_partition(ctx, place, &old, &new)? {
                mode = RowLockMode::ForUpdate;
                continue;
            }
            return self.update(ctx, place, id, old, new);
        }
    }

    /// The lock for an UPDATE of a row in its present state: the stronger one when a key changes that a foreign key may refer to.
    /// With the new row, where it was needed to decide.
    fn update_mode(
        &mut self,
        ctx: &ExecContext,
        existing: &Existing,
        place: &Place<'_>,
        assignments: &Assignments,
        row: &[Datum],
    ) -> Result<(RowLockMode, Option<Vec<Datum>>)> {
        let (Some(id), true) = (row_id(row, existing), assignments.key) else {
            return Ok((lock_mode(assignments), None));
        };
        let old = self.old_row(ctx, existing, place, id, row)?;
        if old.is_empty() {
            return Ok((RowLockMode::ForUpdate, None));
        }
        let new = self.assign(ctx, place, assignments, &old, row)?;
        let changes = self.changes_key_or_partition(ctx, place, &old, &new)?;
        Ok((if changes { RowLockMode::ForUpdate } else { RowLockMode::ForNoKeyUpdate }, Some(new)))
    }

    /// Whether a row gets another key that a foreign key may refer to, or moves to another partition.
    fn changes_key_or_partition(&mut self, ctx: &ExecContext, place: &Place<'_>, old: &[Datum], new: &[Datum]) -> Result<bool> {
        let is_routed = self.node.target.routing.is_some();
        let writer = self.writer(place);
        Ok(writer.changes_key(ctx, old, new)? || is_routed && !writer.accepts(ctx, &mut new.to_vec())?)
    }

    /// ON CONFLICT.
    fn insert_or(&mut self, ctx: &ExecContext, conflict: &ConflictNode, new: Vec<Datum>) -> Result<Option<Changed>> {
        let arbiters = &conflict.arbiters;
        let node = self.node.clone();
        let is_routed = node.target.routing.is_some();
        let (writer, columns) = self.writer.site(ctx, &new)?;
        let target = writer.target.clone();
        let table = target.relation.oid;
        let mut new = columns.down(new);
        if !writer.before_insert(ctx, &mut new)? {
            return Ok(None);
        }
        // As in PostgreSQL (ExecInsert): a row that violates a check is an error, even where it conflicts with another row.
        writer.check_new(ctx, &mut new)?;
        loop {
            let is_arbiter = |i: Oid| arbiters.is_empty() || arbiters.iter().any(|a| is_part(ctx, i, *a));
            let Some(found) = writer.find_conflict(ctx, &new, |i| is_arbiter(i.oid))? else {
                let id = writer.insert_checked(ctx, &new)?;
                let values = columns.up(new);
                self.writer.gather_routed(ctx, table)?;
                return Ok(Some(Changed { old: None, new: Some(Version { values, id, table, xmax: false }) }));
            };
            let Some((assignments, filter)) = &conflict.update else {
                check_conflict_visible(ctx, target.tree, found.row)?;
                return Ok(None);
            };
            let Some(old) = lock_conflicting(ctx, &target, found.row, lock_mode(assignments))? else { continue };
            let give_up = |keep: bool| ctx.transaction().give_up_change(target.tree, found.row, keep);
            if !writer.still_conflicts(ctx, found, &old, &new)? {
                give_up(false)?;
                continue;
            }
            let mut both = columns.up(old.clone());
            node.target.compute_virtuals(ctx, &mut both)?;
            let mut proposed = columns.up(new.clone());
            node.target.compute_virtuals(ctx, &mut proposed)?;
            both.extend(proposed);
            if let Some(filter) = filter
                && !filter.holds(ctx, &both)?
            {
                give_up(true)?;
                check_conflict_visible(ctx, target.tree, found.row)?;
                return Ok(None);
            }
            writer.check_row(ctx, RowCheckKind::Conflict, &old)?;
            let mut updated = columns.down(assign(assignments, ctx, &columns.up(old.clone()), &both)?);
            if !writer.before_update(ctx, found.row, &old, &mut updated)? {
                give_up(true)?;
                return Ok(None);
            }
            if is_routed && !writer.accepts(ctx, &mut updated)? {
                return Err(melba_types::err!(FEATURE_NOT_SUPPORTED, "invalid ON UPDATE specification")
                    .detail("The result tuple would appear in a different partition than the original tuple."));
            }
            writer.update(ctx, found.row, &old, &mut updated)?;
            // PostgreSQL's new version says, too, that the row was locked: `xmax = 0` tells inserted rows from updated ones.
            let version = |row| Some(Version { values: columns.up(row), id: found.row, table, xmax: true });
            let changed = Changed { old: version(old), new: version(updated) };
            self.writer.gather_routed(ctx, table)?;
            return Ok(Some(changed));
        }
    }

    /// Computes RETURNING.
    fn returned(
        &self,
        ctx: &ExecContext,
        returning: &Returning,
        mut row: Vec<Datum>,
        changed: Changed,
        out: &mut [Column],
    ) -> Result<()> {
        let relation = &self.node.target.relation;
        let width = relation.columns.len();
        let Changed { old, new } = changed;
        let has_new = new.is_some();
        let mut versions = vec![old, new];
        // MERGE's DELETE shows the old row where neither version is named.
        if returning.latest {
            versions.push(versions[1].clone().or_else(|| versions[0].clone()));
        }
        // Virtual columns are those of the table that the statement names, also in rows of its members.
        for version in versions.iter_mut().flatten() {
            self.node.target.compute_virtuals(ctx, &mut version.values)?;
        }
        for version in &versions {
            match version {
                Some(version) => row.extend(version.values.iter().cloned()),
                None => row.extend(std::iter::repeat_n(Datum::Null, width)),
            }
        }
        for (at, version) in versions.iter().enumerate() {
            match version {
                None => row.extend(std::iter::repeat_n(Datum::Null, RETURNED_SYSTEM_COLUMNS.len() + 1)),
                Some(version) => {
                    let field = |&c: &usize| ctx.expand(version.values[c].clone(), relation.columns[c].kind);
                    let fields = returning.live.iter().map(field).collect::<Result<_>>()?;
                    row.extend([
                        Datum::Int8(version.id.0 as i64),
                        if returning.reads_xmin { returned_xmin(ctx, version, at > 0 && has_new)? } else { Datum::Null },
                        Datum::Oid(0),
                        Datum::Oid(if version.xmax { ctx.xid() } else { 0 }),
                        Datum::Oid(0),
                        Datum::Oid(version.table.0),
                        Datum::Record(Arc::new(Record {
                            type_oid: returning.row_type,
                            field_types: returning.field_types.clone(),
                            field_names: Some(returning.field_names.clone()),
                            fields,
                        })),
                    ]);
                }
            }
        }
        for (column, e) in out.iter_mut().zip(&returning.expressions) {
            column.push(e.eval_row(ctx, &row)?);
        }
        Ok(())
    }
}

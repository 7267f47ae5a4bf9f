//! Conditions on rows that a statement writes, besides the constraints of their table: WITH CHECK of policies and of views.

use std::sync::Arc;

use melba_tree::RowCheckKind;
use melba_types::{Batch, Datum, DbError, Kind, Result, err};

use super::writer::TableWriter;
use melba_expression::{Evaluation, Expression, repeat};

/// A statement's checks, over the columns of the table that it names and the OID of the table that the row is in.
#[derive(Debug, Default)]
pub struct RowChecks {
    insert: Vec<RowCheckTarget>,
    update: Vec<RowCheckTarget>,
    conflict: Vec<RowCheckTarget>,
    merge_update: Vec<RowCheckTarget>,
    merge_delete: Vec<RowCheckTarget>,
    view: Vec<RowCheckTarget>,
}

#[derive(Debug)]
pub struct RowCheckTarget {
    pub condition: Expression,
    /// The table or view that demands it.
    pub name: Arc<str>,
    pub policy: Option<Arc<str>>,
}

impl RowChecks {
    pub fn add(&mut self, kind: RowCheckKind, check: RowCheckTarget) {
        match kind {
            RowCheckKind::Insert => &mut self.insert,
            RowCheckKind::Update => &mut self.update,
            RowCheckKind::Conflict => &mut self.conflict,
            RowCheckKind::MergeUpdate => &mut self.merge_update,
            RowCheckKind::MergeDelete => &mut self.merge_delete,
            RowCheckKind::View => &mut self.view,
        }
        .push(check);
    }

    pub(super) fn of(&self, kind: RowCheckKind) -> &[RowCheckTarget] {
        match kind {
            RowCheckKind::Insert => &self.insert,
            RowCheckKind::Update => &self.update,
            RowCheckKind::Conflict => &self.conflict,
            RowCheckKind::MergeUpdate => &self.merge_update,
            RowCheckKind::MergeDelete => &self.merge_delete,
            RowCheckKind::View => &self.view,
        }
    }
}

impl TableWriter {
    /// Checks a row of this table.
    ///
    /// # Errors
    /// 42501 of a policy, 44000 of a view.
    pub fn check_row(&self, ctx: &Evaluation, kind: RowCheckKind, row: &[Datum]) -> Result<()> {
        let checks = self.row_checks.of(kind);
        if checks.is_empty() {
            return Ok(());
        }
        let mut shown = self.target.with_virtuals(ctx, row)?.into_owned();
        if let Some(above) = &self.above {
            shown = above.columns.up(shown);
        }
        shown.push(Datum::Oid(self.target.relation.oid.0));
        for check in checks {
            if !check.condition.holds(ctx, &shown)? {
                let error = violated(kind, check);
                return Err(match kind {
                    RowCheckKind::View => super::error::with_detail(error, self.row_detail(ctx, &self.target, row)?),
                    _ => error,
                });
            }
        }
        Ok(())
    }

    /// Whether all rows of a batch, generated columns filled in, pass the policies for new rows.
    pub(super) fn passes_policies(&self, ctx: &Evaluation, batch: &Batch) -> Result<bool> {
        let checks = self.row_checks.of(RowCheckKind::Insert);
        if checks.is_empty() {
            return Ok(true);
        }
        let mut columns = batch.columns.clone();
        for v in &self.target.virtuals {
            columns[v.column] = v.expression.eval_batch(ctx, batch)?;
        }
        columns.push(repeat(&Datum::Oid(self.target.relation.oid.0), Kind::Oid, batch.rows));
        let batch = Batch { columns, rows: batch.rows };
        for check in checks {
            let holds = check.condition.eval_batch(ctx, &batch)?;
            if (0..batch.rows).any(|i| !matches!(holds.get(i), Datum::Bool(true))) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a policy for new rows gives another value at each evaluation.
    pub(super) fn has_volatile_policies(&self) -> bool {
        self.row_checks.of(RowCheckKind::Insert).iter().any(|check| check.condition.is_volatile())
    }
}

fn violated(kind: RowCheckKind, check: &RowCheckTarget) -> DbError {
    let name = &check.name;
    let row = if matches!(kind, RowCheckKind::MergeUpdate | RowCheckKind::MergeDelete) { "target row" } else { "new row" };
    let policy = check.policy.as_ref().map_or_else(String::new, |policy| format!(" \"{policy}\""));
    match kind {
        RowCheckKind::View => err!(WITH_CHECK_OPTION_VIOLATION, "new row violates check option for view \"{name}\""),
        RowCheckKind::Insert | RowCheckKind::Update => {
            err!(INSUFFICIENT_PRIVILEGE, "{row} violates row-level security policy{policy} for table \"{name}\"")
        }
        RowCheckKind::Conflict | RowCheckKind::MergeUpdate | RowCheckKind::MergeDelete => {
            let which = format!("policy{policy} (USING expression)");
            err!(INSUFFICIENT_PRIVILEGE, "{row} violates row-level security {which} for table \"{name}\"")
        }
    }
}

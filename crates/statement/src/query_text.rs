//! Queries that functions get as texts: ts_stat, ts_rewrite.

use std::sync::Arc;

use melba_engine::ReadView;
use melba_fmgr::QueryRows;
use melba_parse::command::{is_query, tag};
use melba_types::{BATCH_ROWS, Csn, DbError, Oid, Result, bail, limits};

use super::context::StatementContext;
use super::execution::{execution, plan_locked};
use super::planning::{Purpose, plan_query};

/// All rows of a query, in the view of the statement that calls the function. It may not change anything.
///
/// # Errors
/// 42P11 for what is no query, and those of the query.
pub(super) fn query_rows(context: &StatementContext, text: &str, (csn, command): (Csn, u32)) -> Result<QueryRows> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    let parsed = melba_parse::parse(text).map_err(|e| e.in_query(text))?;
    let [statement] = &parsed.statements[..] else {
        bail!(INVALID_CURSOR_DEFINITION, "cannot open multi-query plan as cursor");
    };
    if !is_query(&statement.node) {
        bail!(INVALID_CURSOR_DEFINITION, "cannot open {} query as cursor", tag(&statement.node));
    }
    let run = || {
        let caller = Arc::new(StatementContext::clone(context));
        let (context, planned) = plan_locked(&caller, tx, |context| plan_query(context, &statement.node, &[], Purpose::Run))?;
        let mut running =
            execution(&context, tx, &planned, &Arc::from([]), (Some(ReadView { csn, command }), &statement.source))?;
        let types: Vec<Oid> = running.plan().columns.iter().map(|column| column.ty).collect();
        let mut rows = Vec::new();
        while let Some(batch) = running.next_batch(BATCH_ROWS)? {
            context.session.interrupt.check()?;
            limits::check_memory(0)?;
            rows.extend((0..batch.rows).map(|row| batch.row(row)));
        }
        Ok((types, rows))
    };
    run().map_err(|e: DbError| e.in_query(text))
}

//! The rows of pg_cursors and pg_prepared_statements for a session, and of pg_prepared_xacts.

use std::sync::Arc;

use melba_types::{Array, ArrayDim, Datum, Oid, oids};

use super::context::StatementContext;
use super::portal::Listed;
use super::prepared::Prepared;

/// name, statement, is_holdable, is_binary, is_scrollable, creation_time
pub(super) fn cursor_rows(context: &StatementContext) -> Vec<Vec<Datum>> {
    let cursors = context.session.portals.listed();
    let row = |c: &Listed| {
        vec![
            Datum::text(c.name.as_str()),
            Datum::text(c.statement.as_str()),
            Datum::Bool(c.hold),
            Datum::Bool(c.binary),
            Datum::Bool(c.scroll),
            Datum::Int8(c.created),
        ]
    };
    cursors.iter().map(row).collect()
}

/// name, statement, prepare_time, parameter_types, result_types, from_sql, generic_plans, custom_plans
pub(super) fn prepared_rows(context: &StatementContext) -> Vec<Vec<Datum>> {
    let statements = context.session.prepared.lock();
    let mut named: Vec<_> = statements.iter().collect();
    named.sort_by(|a, b| a.0.cmp(b.0));
    let row = |(name, p): (&String, &Arc<Prepared>)| {
        let results = p.columns.as_ref().map_or(Datum::Null, |c| types(c.iter().map(|c| c.ty)));
        vec![
            Datum::text(name.as_str()),
            Datum::text(p.source()),
            Datum::Int8(p.prepared_at),
            types(p.parameter_types.iter().copied()),
            results,
            Datum::Bool(p.from_sql),
            // Plans are made once and hold no values of parameters.
            Datum::Int8(p.executions.load(std::sync::atomic::Ordering::Relaxed)),
            Datum::Int8(0),
        ]
    };
    named.into_iter().map(row).collect()
}

fn types(of: impl Iterator<Item = Oid>) -> Datum {
    let elements: Vec<Datum> = of.map(|oid| Datum::Oid(oid.0)).collect();
    let dims = match elements.len() {
        0 => Vec::new(),
        n => vec![ArrayDim { length: n as i32, lower_bound: 1 }],
    };
    Datum::Array(Arc::new(Array { element_type: oids::REGTYPE, dims, elements }))
}

/// transaction, gid, prepared, ownerid, dbid
pub(super) fn prepared_transaction_rows(context: &StatementContext) -> Vec<Vec<Datum>> {
    let all = context.session.instance.cluster.prepared.list();
    let row = |p: melba_transaction::prepared::PreparedTransaction| {
        vec![
            Datum::Oid(p.xid as u32),
            Datum::text(p.identifier),
            Datum::Int8(p.at),
            Datum::Oid(p.owner.0),
            Datum::Oid(p.database.0),
        ]
    };
    all.into_iter().map(row).collect()
}

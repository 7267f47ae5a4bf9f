//! Statements that define objects or move rows in bulk, and others that `melba_ddl` does not have: each in a separate module.

use std::sync::Arc;

use melba_catalog::{RelationKind, acl};
use melba_engine::RelationLockMode;
use melba_types::{DbError, Result, err};
use pg_query::protobuf::{CopyStmt, LockStmt, node::Node as N};

use super::context::StatementContext;
use super::copy::{self, CopyContext};
use super::ddl_context::with_ddl;
use super::deferred;
use super::execution::{Parameters, plain_evaluation, run_query};
use super::outcome::Outcome;
use super::temporary::{makes_temporary, with_temporary_schema};
use super::{filling, maintenance, notify, vacuum};
use melba_ddl::Ddl;
use melba_parse::Statement;
use melba_transaction::Tx;

pub(super) fn execute_utility(
    context: &StatementContext,
    tx: &Arc<Tx>,
    statement: &Statement,
    parameters: Parameters<'_>,
) -> Result<Outcome> {
    let Some(result) = run(context, statement, parameters) else {
        return Err(unsupported(statement.text()));
    };
    let outcome = result?;
    tx.claim_names()?;
    Ok(outcome)
}

/// Runs a defining statement; `None` when the statement is none.
fn run(context: &StatementContext, statement: &Statement, parameters: Parameters<'_>) -> Option<Result<Outcome>> {
    let Some(tx) = &context.tx else {
        return Some(Err(DbError::internal("a defining statement outside a transaction")));
    };
    if let Some(outcome) = notify::run(context, tx, &statement.node) {
        return Some(outcome);
    }
    let source = statement.text();
    let start = source.as_ptr().addr() - statement.source.as_ptr().addr();
    let with_temporary;
    let context = match makes_temporary(&statement.node, &context.path) {
        true => {
            with_temporary = match with_temporary_schema(context, tx) {
                Ok(context) => context,
                Err(error) => return Some(Err(error)),
            };
            &with_temporary
        }
        false => context,
    };
    with_ddl(context, tx, (source, start), |ddl| match &statement.node {
        N::CopyStmt(s) => Some(copy(context, ddl, tx, s)),
        N::CreateTableAsStmt(s) => Some(filling::create_table_as(ddl, context, tx, s, parameters)),
        N::SelectStmt(s) if s.into_clause.is_some() => Some(filling::select_into(ddl, context, tx, s)),
        N::RefreshMatViewStmt(s) => Some(filling::refresh(ddl, context, tx, s)),
        N::ConstraintsSetStmt(s) => Some(deferred::set_constraints(ddl, context, s)),
        N::ReindexStmt(s) => Some(maintenance::reindex(ddl, s)),
        N::ClusterStmt(s) => Some(maintenance::cluster(ddl, s)),
        N::VacuumStmt(s) => Some(vacuum::run(ddl, s)),
        N::CheckPointStmt(_) => Some(maintenance::checkpoint(ddl)),
        N::LockStmt(s) => Some(lock_tables(ddl, s)),
        node => Some(melba_ddl::execute(ddl, node)?.map(|tag| Outcome::Done { tag })),
    })
}

fn copy(context: &StatementContext, ddl: &Ddl<'_>, tx: &Arc<Tx>, s: &CopyStmt) -> Result<Outcome> {
    let exec = || plain_evaluation(context, tx);
    let query = |node: &N| run_query(context, tx, node, (&[], &Arc::from([])));
    // The statement's own portal may be among them, without a name.
    let has_portals = context.session.portals.has_named();
    let activity = &context.session.activity;
    copy::run(&CopyContext { ddl, tx, exec: &exec, query: &query, has_portals, activity }, s)
}

/// LOCK TABLE.
fn lock_tables(ddl: &Ddl<'_>, s: &LockStmt) -> Result<Outcome> {
    use RelationLockMode::*;
    const MODES: [RelationLockMode; 8] =
        [AccessShare, RowShare, RowExclusive, ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive];
    let mode = MODES.get((s.mode - 1) as usize).copied().unwrap_or(AccessExclusive);
    for node in &s.relations {
        let N::RangeVar(name) = melba_parse::nodes::inner(node)? else { continue };
        let relation = ddl.find_relation(name)?.ok_or_else(|| melba_ddl::undefined_relation(name))?;
        if !matches!(relation.kind, RelationKind::Table | RelationKind::View | RelationKind::PartitionedTable) {
            return Err(err!(WRONG_OBJECT_TYPE, "cannot lock relation \"{}\"", relation.name)
                .detail(format!("This operation is not supported for {}.", melba_ddl::plural(relation.kind))));
        }
        // Reading locks come with any privilege, writing ones with that to write.
        let writing = [acl::UPDATE, acl::DELETE, acl::TRUNCATE, acl::MAINTAIN];
        let more: &[u64] = match mode {
            AccessShare => &[acl::SELECT, acl::INSERT],
            RowShare | RowExclusive => &[acl::INSERT],
            _ => &[],
        };
        let catalog = ddl.catalog();
        if !writing.iter().chain(more).any(|mask| catalog.has_relation_privileges(ddl.user, &relation, *mask)) {
            return Err(melba_tree::permissions::denied(&relation));
        }
        let members = if name.inh { catalog.descendants(relation.oid) } else { vec![relation.oid] };
        for member in members {
            if catalog.relation(member).is_some_and(|m| m.is_temporary_elsewhere(ddl.temporary)) {
                continue;
            }
            if s.nowait {
                ddl.try_lock_relation(&*ddl.relation(member)?, mode)?;
            } else {
                ddl.lock_relation(member, mode)?;
            }
        }
    }
    Ok(Outcome::Done { tag: "LOCK TABLE".into() })
}

/// The error for a statement that nothing runs.
fn unsupported(source: &str) -> DbError {
    let words: Vec<&str> = source.split_whitespace().take(2).collect();
    err!(FEATURE_NOT_SUPPORTED, "{} is not supported yet", words.join(" ").to_uppercase())
}

//! ON COMMIT of temporary tables: the action when the transaction ends.

use melba_catalog::{ConstraintKind, Object, Persistence, Relation, Storage};
use melba_definition::context::{Ddl, OnCommit};
use melba_types::{Oid, Result, bail, err};
use pg_query::protobuf::OnCommitAction;

use crate::dependents::drop_quietly;
use crate::table::truncate::empty_table;

/// ON COMMIT is for temporary tables.
pub fn check_on_commit(action: OnCommitAction, persistence: Persistence) -> Result<()> {
    let written = !matches!(action, OnCommitAction::OncommitNoop | OnCommitAction::Undefined);
    if written && persistence != Persistence::Temporary {
        bail!(INVALID_TABLE_DEFINITION, "ON COMMIT can only be used on temporary tables");
    }
    Ok(())
}

/// Keeps the action for a new table in the session.
pub fn note_on_commit(ddl: &Ddl<'_>, table: Oid, action: OnCommitAction) {
    match action {
        OnCommitAction::OncommitDeleteRows => ddl.on_commit(table, OnCommit::DeleteRows),
        OnCommitAction::OncommitDrop => ddl.on_commit(table, OnCommit::Drop),
        _ => {}
    }
}

/// Performs the ON COMMIT actions of tables at a commit.
///
/// # Errors
/// 0A000 when a table that stays refers to deleted rows.
pub fn run_on_commit(ddl: &Ddl<'_>, actions: &[(Oid, OnCommit)]) -> Result<()> {
    let of = |wanted: OnCommit| actions.iter().filter(move |(_, action)| *action == wanted).map(|(table, _)| *table);
    let emptied: Vec<Oid> = of(OnCommit::DeleteRows).collect();
    for &table in &emptied {
        let Some(relation) = ddl.catalog().relation(table).cloned() else { continue };
        refuse_other_references(ddl, &relation, &emptied)?;
        if has_rows(ddl, &relation)? {
            empty_table(ddl, table)?;
        }
    }
    let catalog = ddl.catalog();
    let dropped: Vec<_> =
        of(OnCommit::Drop).filter_map(|table| Some(Object::Relation(catalog.relation(table)?.clone()).address())).collect();
    drop_quietly(ddl, &dropped)
}

fn has_rows(ddl: &Ddl<'_>, relation: &Relation) -> Result<bool> {
    let Storage::Tree(tree) = relation.storage else { return Ok(false) };
    let engine = &ddl.tx().engine;
    Ok(engine.scan(engine.latest_view().0, tree, &[], &[], &[], None)?.next()?.is_some())
}

fn refuse_other_references(ddl: &Ddl<'_>, relation: &Relation, emptied: &[Oid]) -> Result<()> {
    for constraint in ddl.catalog().referencing_constraints(relation.oid) {
        if constraint.kind == ConstraintKind::ForeignKey && !emptied.contains(&constraint.relation) {
            let referencing = ddl.relation(constraint.relation)?;
            let (from, to) = (&referencing.name, &relation.name);
            return Err(err!(FEATURE_NOT_SUPPORTED, "unsupported ON COMMIT and foreign key combination")
                .detail(format!("Table \"{from}\" references \"{to}\", but they do not have the same ON COMMIT setting.")));
        }
    }
    Ok(())
}

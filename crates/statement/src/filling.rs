//! Tables and materialized views that are created from a query's rows: CREATE TABLE AS, SELECT INTO, REFRESH.

use std::sync::Arc;

use melba_catalog::{Column, IndexInfo, Relation, RelationKind, acl};
use melba_definition::context::Ddl;
use melba_relation::table::cold_store::new_parameters;
use melba_relation::table::create::put_table;
use melba_relation::table::on_commit::{check_on_commit, note_on_commit};
use melba_relation::table::persistence::table_persistence;
use melba_relation::table::relation::{bare_relation, new_column, put_relation, relation_exists};
use melba_relation::table::storage_parameters::ParametersOf;
use melba_relation::table::truncate::empty_table;
use melba_relation::view::{deparse_with_names, query_columns, stored_query};
use melba_table::{TableWriter, TargetBuilder};
use melba_transaction::Tx;
use melba_types::{BATCH_ROWS, DbError, Oid, Result, bail, err};
use pg_query::protobuf::{
    CreateTableAsStmt, ExecuteStmt, IntoClause, ObjectType, RefreshMatViewStmt, SelectStmt, node::Node as N,
};

use super::context::StatementContext;
use super::ddl_context::Utility;
use super::execution::{Parameters, plain_evaluation, run_query};
use super::outcome::Outcome;
use super::prepared_query::run_prepared;

pub(super) fn create_table_as(utility: &Utility<'_>, s: &CreateTableAsStmt) -> Result<Outcome> {
    let Utility { context, tx, parameters, .. } = *utility;
    let ddl = &utility.ddl();
    let into = s.into.as_deref().ok_or_else(|| DbError::internal("CREATE TABLE AS without a name"))?;
    let node = s.query.as_deref().and_then(|n| n.node.as_ref());
    let node = node.ok_or_else(|| DbError::internal("CREATE TABLE AS without a query"))?;
    let kind = match s.objtype() {
        ObjectType::ObjectMatview => RelationKind::MaterializedView,
        _ => RelationKind::Table,
    };
    if let N::ExecuteStmt(execute) = node {
        return fill_by_execute(ddl, context, tx, into, execute, s.if_not_exists);
    }
    let new = NewTable { kind, into, if_not_exists: s.if_not_exists };
    fill_new_table(ddl, context, tx, &new, node, parameters)
}

/// SELECT ... INTO.
pub(super) fn select_into(utility: &Utility<'_>, s: &SelectStmt) -> Result<Outcome> {
    let Utility { context, tx, .. } = *utility;
    let ddl = &utility.ddl();
    let mut bare = s.clone();
    let into = bare.into_clause.take().ok_or_else(|| DbError::internal("SELECT INTO without a name"))?;
    let node = N::SelectStmt(Box::new(bare));
    let new = NewTable { kind: RelationKind::Table, into: &into, if_not_exists: false };
    fill_new_table(ddl, context, tx, &new, &node, (&[], &Arc::from([])))
}

/// The table that is created from a query's rows.
struct NewTable<'a> {
    kind: RelationKind,
    into: &'a IntoClause,
    if_not_exists: bool,
}

/// CREATE TABLE AS EXECUTE.
fn fill_by_execute(
    ddl: &Ddl<'_>,
    context: &StatementContext,
    tx: &Arc<Tx>,
    into: &IntoClause,
    execute: &ExecuteStmt,
    if_not_exists: bool,
) -> Result<Outcome> {
    let name = into.rel.as_ref().ok_or_else(|| DbError::internal("CREATE TABLE AS without a name"))?;
    let (namespace, temporary) = ddl.relation_namespace(name)?;
    if relation_exists(ddl, namespace, &name.relname, if_not_exists)? {
        return Ok(Outcome::Done { tag: "CREATE TABLE AS".into() });
    }
    let persistence = table_persistence(ddl, &name.relpersistence, temporary, &into.access_method)?;
    check_on_commit(into.on_commit(), persistence)?;
    let result = run_prepared(context, tx, execute)?;
    let Outcome::Rows { columns: found, .. } = &result else {
        bail!(WRONG_OBJECT_TYPE, "prepared statement is not a SELECT");
    };
    let names = melba_parse::nodes::strings(&into.col_names);
    if names.len() > found.len() {
        bail!(SYNTAX_ERROR, "too many column names were specified");
    }
    let mut columns: Vec<Column> = Vec::new();
    for (at, column) in found.iter().enumerate() {
        let name = names.get(at).copied().unwrap_or(&column.name);
        if columns.iter().any(|c| *c.name == *name) {
            bail!(DUPLICATE_COLUMN, "column \"{name}\" specified more than once");
        }
        columns.push(new_column(ddl, name, column.ty, column.typmod)?);
    }
    let options = new_parameters(ddl, ParametersOf::Table, &into.options, persistence)?;
    let relation = bare_relation(ddl, namespace, &name.relname, RelationKind::Table, persistence, columns);
    let oid = put_table(ddl, Relation { options, ..relation })?;
    note_on_commit(ddl, oid, into.on_commit());
    if into.skip_data {
        return Ok(Outcome::Done { tag: "CREATE TABLE AS".into() });
    }
    let rows = insert_rows(context, tx, oid, result)?;
    Ok(Outcome::Done { tag: format!("SELECT {rows}") })
}

/// # Errors
/// 42P22 for a column whose collation its expression does not say.
fn check_collation(ddl: &Ddl<'_>, column: &Column) -> Result<()> {
    let catalog = ddl.catalog();
    if column.collation.is_valid() || !catalog.type_(column.ty).is_some_and(|ty| ty.collation.is_valid()) {
        return Ok(());
    }
    let ty = catalog.format_type(column.ty, Some(column.typmod), ddl.path());
    let message = format!("no collation was derived for column \"{}\" with collatable type {ty}", column.name);
    Err(err!(INDETERMINATE_COLLATION, "{message}").hint("Use the COLLATE clause to set the collation explicitly."))
}

/// Creates a table with the columns of a query and fills it with its rows.
fn fill_new_table(
    ddl: &Ddl<'_>,
    context: &StatementContext,
    tx: &Arc<Tx>,
    new: &NewTable<'_>,
    node: &N,
    parameters: Parameters<'_>,
) -> Result<Outcome> {
    let NewTable { kind, into, if_not_exists } = *new;
    let name = into.rel.as_ref().ok_or_else(|| DbError::internal("CREATE TABLE AS without a name"))?;
    let word = if kind == RelationKind::Table { "SELECT" } else { "CREATE MATERIALIZED VIEW" };
    let (namespace, temporary) = ddl.relation_namespace(name)?;
    if relation_exists(ddl, namespace, &name.relname, if_not_exists)? {
        let tag = if kind == RelationKind::Table { "CREATE TABLE AS" } else { word };
        return Ok(Outcome::Done { tag: tag.into() });
    }
    let persistence = match kind {
        RelationKind::Table => table_persistence(ddl, &name.relpersistence, temporary, &into.access_method)?,
        _ if name.relpersistence == "u" => bail!(FEATURE_NOT_SUPPORTED, "materialized views cannot be unlogged"),
        _ => table_persistence(ddl, &name.relpersistence, temporary, &into.access_method)?,
    };
    check_on_commit(into.on_commit(), persistence)?;
    let wrapped = pg_query::protobuf::Node { node: Some(node.clone()) };
    let (analyzed, text, depends_on) = stored_query(ddl, &wrapped, parameters.0)?;
    let columns = query_columns(ddl, &analyzed, &melba_parse::nodes::strings(&into.col_names))?;
    columns.iter().try_for_each(|column| check_collation(ddl, column))?;
    let options = new_parameters(ddl, ParametersOf::Table, &into.options, persistence)?;
    // The query of a table does not see the table; a materialized view already exists when it is filled.
    let source = match kind {
        RelationKind::Table if !into.skip_data => Some(run_query(context, tx, node, parameters)?),
        _ => None,
    };
    let relation = bare_relation(ddl, namespace, &name.relname, RelationKind::Table, persistence, columns);
    let oid = put_table(ddl, Relation { options, ..relation })?;
    note_on_commit(ddl, oid, into.on_commit());
    if kind == RelationKind::MaterializedView {
        let relation = ddl.relation(oid)?;
        let text = deparse_with_names(&text, &relation.columns, &analyzed, ddl)?;
        let rule = tx.new_oid();
        put_relation(
            ddl,
            Relation { kind, view_query: Some(text.into()), rule, depends_on, populated: !into.skip_data, ..(*relation).clone() },
        );
    }
    let rows = match source {
        Some(source) => insert_rows(context, tx, oid, source)?,
        None if into.skip_data => 0,
        None => fill_view(context, tx, &*ddl.relation(oid)?)?,
    };
    let tag = match kind {
        _ if !into.skip_data => format!("SELECT {rows}"),
        RelationKind::Table => "CREATE TABLE AS".to_owned(),
        _ => word.to_owned(),
    };
    Ok(Outcome::Done { tag })
}

/// Inserts all rows of a materialized view's query, as its owner and with a safe search path; their number.
fn fill_view(context: &StatementContext, tx: &Arc<Tx>, view: &Relation) -> Result<u64> {
    let text = view.view_query.as_deref().ok_or_else(|| DbError::internal("materialized view without a query"))?;
    let parsed = melba_parse::parse(text)?;
    let statement = parsed.statements.first().ok_or_else(|| DbError::internal("materialized view with an empty query"))?;
    let owners = context.maintaining(view.owner);
    insert_rows(&owners, tx, view.oid, run_query(&owners, tx, &statement.node, (&[], &Arc::from([])))?)
}

fn insert_rows(context: &StatementContext, tx: &Arc<Tx>, table: Oid, rows: Outcome) -> Result<u64> {
    let Outcome::Rows { mut source, .. } = rows else {
        bail!(SYNTAX_ERROR, "query does not return rows");
    };
    source.keep_stored();
    let ctx = plain_evaluation(context, tx);
    let catalog = ctx.catalog().clone();
    let builder = TargetBuilder { catalog: &catalog, session: &*ctx.session };
    let mut writer = TableWriter::new(Arc::new(builder.table(table)?), tx.engine.clone());
    let mut rows = 0;
    while let Some(batch) = source.next(BATCH_ROWS)? {
        ctx.check_interrupt()?;
        rows += batch.rows as u64;
        writer.insert_batch(&ctx, batch).map_err(|(_, e)| e)?;
    }
    writer.finish(&ctx).map_err(|(_, e)| e)?;
    let changes = writer.changes();
    writer.events.finish(&ctx, &tx.engine, &tx.deferred, &changes)?;
    Ok(rows)
}

/// # Errors
/// 0A000, 42601 and 55000 for views that cannot be refreshed CONCURRENTLY.
fn check_concurrent_refresh(ddl: &Ddl<'_>, view: &Relation, skip_data: bool) -> Result<()> {
    if !view.populated {
        bail!(FEATURE_NOT_SUPPORTED, "CONCURRENTLY cannot be used when the materialized view is not populated");
    }
    if skip_data {
        bail!(SYNTAX_ERROR, "CONCURRENTLY and WITH NO DATA options cannot be used together");
    }
    let catalog = ddl.catalog();
    let is_usable = |index: &IndexInfo| {
        index.unique && index.valid && index.predicate.is_none() && index.keys.iter().all(|key| key.expression.is_none())
    };
    let mut indexes = view.indexes.iter().filter_map(|oid| catalog.relation(*oid)?.index.clone());
    if indexes.any(|index| is_usable(&index)) {
        return Ok(());
    }
    let name = ddl.qualified_name(view);
    Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cannot refresh materialized view \"{name}\" concurrently")
        .hint("Create a unique index with no WHERE clause on one or more columns of the materialized view."))
}

/// REFRESH MATERIALIZED VIEW. The view's functions run as its owner, whichever role refreshes it.
pub(super) fn refresh(utility: &Utility<'_>, s: &RefreshMatViewStmt) -> Result<()> {
    let Utility { context, tx, .. } = *utility;
    let ddl = &utility.ddl();
    let name = s.relation.as_ref().ok_or_else(|| DbError::internal("REFRESH without a name"))?;
    let relation = ddl.open_target(name)?;
    if relation.kind != RelationKind::MaterializedView {
        bail!(FEATURE_NOT_SUPPORTED, "\"{}\" is not a materialized view", relation.name);
    }
    if !ddl.catalog().has_relation_privileges(ddl.user(), &relation, acl::MAINTAIN) {
        return Err(melba_tree::permissions::denied(&relation));
    }
    if s.concurrent {
        check_concurrent_refresh(ddl, &relation, s.skip_data)?;
    }
    empty_table(ddl, relation.oid)?;
    if !s.skip_data {
        fill_view(context, tx, &relation)?;
    }
    let now = ddl.relation(relation.oid)?;
    put_relation(ddl, Relation { populated: !s.skip_data, ..(*now).clone() });
    Ok(())
}

//! Statements that define things or move rows in bulk: DDL, COPY, CREATE TABLE AS, REFRESH.

use std::sync::Arc;

use melba_catalog::{Catalog, Column, Object, ObjectAddress, Persistence, Relation, RelationKind, Storage, Type, acl, classes};
use melba_engine::RelationLockMode;
use melba_fmgr::Session as FunctionSession;
use melba_protocol::password::{self, Encryption};
use melba_types::{DbError, Oid, Result, Severity, bail, err};
use pg_query::protobuf::{
    ConstraintsSetStmt, CopyStmt, CreateTableAsStmt, ExecuteStmt, IntoClause, LockStmt, ObjectType, RangeVar, RefreshMatViewStmt,
    node::Node as N,
};

use super::context::StatementContext;
use super::copy::{self, CopyContext};
use super::names::SearchPath;
use super::portal::Outcome;
use super::{maintenance, notify, pipeline, plpgsql, vacuum};
use melba_ddl::Ddl;
use melba_expression::{Evaluation, NoSubPlans};
use melba_parse::Statement;
use melba_table::{TableWriter, TargetBuilder};
use melba_transaction::Tx;
use melba_types::BATCH_ROWS;

/// Runs queries for statements that contain one.
pub type RunQuery<'a> = &'a dyn Fn(&StatementContext, &N) -> Result<Outcome>;

/// The same in the statement's own surroundings.
pub type Query<'a> = &'a dyn Fn(&N) -> Result<Outcome>;

/// Runs a defining statement; `None` when the statement is none.
pub fn run(context: &StatementContext, statement: &Statement, query: RunQuery<'_>) -> Option<Result<Outcome>> {
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
    with_ddl(context, tx, (source, start), |ddl| {
        let exec = || exec_context(context, tx);
        let run_query = query;
        let query = |node: &N| run_query(context, node);
        match &statement.node {
            N::CopyStmt(s) => Some(copy(context, ddl, tx, s, &exec, &query)),
            N::CreateTableAsStmt(s) => {
                let prepared = |s: &ExecuteStmt| pipeline::run_prepared(context, tx, s);
                Some(create_table_as(ddl, tx, s, &exec, &query, &prepared))
            }
            N::SelectStmt(s) if s.into_clause.is_some() => {
                let mut bare = s.clone();
                let into = bare.into_clause.take()?;
                let node = N::SelectStmt(bare);
                Some(fill_new_table(ddl, tx, &into, &node, RelationKind::Table, false, &exec, &query))
            }
            N::RefreshMatViewStmt(s) => Some(refresh(ddl, context, tx, s, run_query)),
            N::ConstraintsSetStmt(s) => Some(set_constraints(ddl, context, s)),
            N::ReindexStmt(s) => Some(maintenance::reindex(ddl, s)),
            N::ClusterStmt(s) => Some(maintenance::cluster(ddl, s)),
            N::VacuumStmt(s) => Some(vacuum::run(ddl, s)),
            N::CheckPointStmt(_) => Some(maintenance::checkpoint(ddl)),
            N::LockStmt(s) => Some(lock_tables(ddl, s)),
            node => Some(melba_ddl::execute(ddl, node)?.map(|tag| Outcome::Done { tag })),
        }
    })
}

/// Whether a statement makes an object in the temporary schema, by what it says itself.
fn makes_temporary(statement: &N, path: &SearchPath) -> bool {
    let named = |name: Option<&RangeVar>| {
        let by_path = |name: &RangeVar| path.creates_temporary && name.schemaname.is_empty();
        name.is_some_and(|name| name.relpersistence == "t" || name.schemaname == "pg_temp" || by_path(name))
    };
    let listed = |names: &[pg_query::protobuf::Node]| match &melba_parse::nodes::strings(names)[..] {
        [_] => path.creates_temporary,
        names => names.first() == Some(&"pg_temp"),
    };
    match statement {
        N::CreateStmt(s) => named(s.relation.as_ref()),
        N::CreateTableAsStmt(s) => named(s.into.as_ref().and_then(|i| i.rel.as_ref())),
        N::SelectStmt(s) => named(s.into_clause.as_ref().and_then(|i| i.rel.as_ref())),
        N::CreateSeqStmt(s) => named(s.sequence.as_ref()),
        N::ViewStmt(s) => named(s.view.as_ref()),
        N::CompositeTypeStmt(s) => named(s.typevar.as_ref()),
        N::CreateDomainStmt(s) => listed(&s.domainname),
        N::CreateEnumStmt(s) => listed(&s.type_name),
        N::CreateFunctionStmt(s) => listed(&s.funcname),
        _ => false,
    }
}

/// The statement's surroundings with a temporary schema that is there.
fn with_temporary_schema(context: &StatementContext, tx: &Arc<Tx>) -> Result<StatementContext> {
    let temporary = temporary_namespace(context, tx)?;
    let catalog = tx.catalog();
    let setting = context.session.settings.lock().get("search_path").as_text().to_owned();
    let path = SearchPath::new(&setting, &catalog, &context.user, temporary);
    Ok(StatementContext { catalog, path: Arc::new(path), ..context.clone() })
}

fn with_ddl<T>(context: &StatementContext, tx: &Arc<Tx>, (source, start): (&str, usize), f: impl FnOnce(&Ddl<'_>) -> T) -> T {
    let session_for =
        |catalog: Arc<Catalog>| -> Arc<dyn FunctionSession> { Arc::new(StatementContext { catalog, ..context.clone() }) };
    let maintainer = |catalog: Arc<Catalog>, owner: Oid| -> Arc<dyn FunctionSession> {
        Arc::new(StatementContext { catalog, ..context.clone() }.maintaining(owner))
    };
    let temporary_namespace = || temporary_namespace(context, tx);
    let check_program = |function: &Arc<melba_catalog::Function>| {
        let now = StatementContext { catalog: tx.catalog(), ..context.clone() };
        plpgsql::validate(&now, function)
    };
    let stored_password = |role: &str, password: &str| stored_password(context, role, password);
    let on_commit = |table: Oid, action| context.session.on_commit.lock().push((table, action));
    f(&Ddl {
        tx,
        session: context,
        session_for: &session_for,
        maintainer: &maintainer,
        path: &context.path.path,
        creation_namespace: context.path.creation,
        temporary: context.path.temporary,
        temporary_namespace: &temporary_namespace,
        user: context.user.oid,
        session_user: context.user.session_oid,
        stored_password: &stored_password,
        check_program: &check_program,
        on_commit: &on_commit,
        source,
        start,
    })
}

/// The session's temporary schema, made when it is first needed.
fn temporary_namespace(context: &StatementContext, tx: &Tx) -> Result<Oid> {
    if context.user.restricted {
        bail!(INSUFFICIENT_PRIVILEGE, "cannot create temporary table within security-restricted operation");
    }
    let mut held = context.session.temporary_namespace.lock();
    // A rollback may have taken it away again.
    if held.is_valid() && tx.catalog().namespace(*held).is_some() {
        return Ok(*held);
    }
    let name = format!("pg_temp_{}", context.session.pid);
    let catalog = tx.catalog();
    let oid = match catalog.namespace_by_name(&name) {
        Some(namespace) => namespace.oid,
        None => Ddl::create_temporary_schema(tx, &name, melba_catalog::classes::POSTGRES_ROLE),
    };
    *held = oid;
    Ok(oid)
}

/// What a role stores for a password, as the session's settings want it.
fn stored_password(context: &StatementContext, role: &str, password: &str) -> Result<Option<String>> {
    let settings = context.session.settings.lock();
    let encryption = match settings.get("password_encryption").as_text() {
        "md5" => Encryption::Md5,
        _ => {
            let iterations = settings.get("scram_iterations").as_integer().max(1) as u32;
            Encryption::ScramSha256 { salt: rand::random(), iterations }
        }
    };
    let warns = settings.get("md5_password_warnings").as_bool();
    drop(settings);
    let stored = password::stored(role, password, &encryption);
    if warns && stored.as_deref().is_some_and(password::is_md5) {
        let warning = err!(WARNING_DEPRECATED_FEATURE, "setting an MD5-encrypted password").severity(Severity::Warning);
        let detail = "MD5 password support is deprecated and will be removed in a future release of PostgreSQL.";
        let hint = "Refer to the PostgreSQL documentation for details about migrating to another password type.";
        FunctionSession::notice(context, warning.detail(detail).hint(hint));
    }
    Ok(stored)
}

/// A context over the catalog as the transaction sees it now.
fn exec_context(context: &StatementContext, tx: &Arc<Tx>) -> Evaluation<NoSubPlans> {
    Evaluation::plain(Arc::new(StatementContext { catalog: tx.catalog(), ..context.clone() }), &tx.engine)
}

fn copy(
    context: &StatementContext,
    ddl: &Ddl<'_>,
    tx: &Arc<Tx>,
    s: &CopyStmt,
    exec: &dyn Fn() -> Evaluation<NoSubPlans>,
    query: Query<'_>,
) -> Result<Outcome> {
    // The statement's own portal may be among them, without a name.
    let has_portals = context.session.portals.has_named();
    let activity = &context.session.activity;
    copy::run(&CopyContext { ddl, tx, exec, query, has_portals, activity }, s)
}

fn create_table_as(
    ddl: &Ddl<'_>,
    tx: &Arc<Tx>,
    s: &CreateTableAsStmt,
    exec: &dyn Fn() -> Evaluation<NoSubPlans>,
    query: Query<'_>,
    prepared: &dyn Fn(&ExecuteStmt) -> Result<Outcome>,
) -> Result<Outcome> {
    let into = s.into.as_deref().ok_or_else(|| DbError::internal("CREATE TABLE AS without a name"))?;
    let node = s.query.as_deref().and_then(|n| n.node.as_ref());
    let node = node.ok_or_else(|| DbError::internal("CREATE TABLE AS without a query"))?;
    let kind = match s.objtype() {
        ObjectType::ObjectMatview => RelationKind::MaterializedView,
        _ => RelationKind::Table,
    };
    if let N::ExecuteStmt(execute) = node {
        return fill_by_execute(ddl, tx, into, execute, s.if_not_exists, exec, prepared);
    }
    fill_new_table(ddl, tx, into, node, kind, s.if_not_exists, exec, query)
}

/// CREATE TABLE AS EXECUTE.
fn fill_by_execute(
    ddl: &Ddl<'_>,
    tx: &Arc<Tx>,
    into: &IntoClause,
    execute: &ExecuteStmt,
    if_not_exists: bool,
    exec: &dyn Fn() -> Evaluation<NoSubPlans>,
    prepared: &dyn Fn(&ExecuteStmt) -> Result<Outcome>,
) -> Result<Outcome> {
    let name = into.rel.as_ref().ok_or_else(|| DbError::internal("CREATE TABLE AS without a name"))?;
    let (namespace, temporary) = ddl.relation_namespace(name)?;
    if ddl.relation_exists(namespace, &name.relname, if_not_exists)? {
        return Ok(Outcome::Done { tag: "CREATE TABLE AS".into() });
    }
    let persistence = ddl.table_persistence(&name.relpersistence, temporary, &into.access_method)?;
    ddl.check_on_commit(into.on_commit(), persistence)?;
    let result = prepared(execute)?;
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
        columns.push(ddl.new_column(name, column.ty, column.typmod)?);
    }
    let options = melba_ddl::ParametersOf::Table.new_list(&into.options)?;
    let oid = ddl.put_table(namespace, &name.relname, persistence, columns, options)?;
    ddl.note_on_commit(oid, into.on_commit());
    if into.skip_data {
        return Ok(Outcome::Done { tag: "CREATE TABLE AS".into() });
    }
    let rows = insert_rows(tx, oid, result, exec)?;
    Ok(Outcome::Done { tag: format!("SELECT {rows}") })
}

/// Creates a table with the columns of a query and fills it with its rows.
#[expect(clippy::too_many_arguments, reason = "the parts of one statement, named by its two callers")]
fn fill_new_table(
    ddl: &Ddl<'_>,
    tx: &Arc<Tx>,
    into: &IntoClause,
    node: &N,
    kind: RelationKind,
    if_not_exists: bool,
    exec: &dyn Fn() -> Evaluation<NoSubPlans>,
    query: Query<'_>,
) -> Result<Outcome> {
    let name = into.rel.as_ref().ok_or_else(|| DbError::internal("CREATE TABLE AS without a name"))?;
    let word = if kind == RelationKind::Table { "SELECT" } else { "CREATE MATERIALIZED VIEW" };
    let (namespace, temporary) = ddl.relation_namespace(name)?;
    if ddl.relation_exists(namespace, &name.relname, if_not_exists)? {
        let tag = if kind == RelationKind::Table { "CREATE TABLE AS" } else { word };
        return Ok(Outcome::Done { tag: tag.into() });
    }
    let persistence = match kind {
        RelationKind::Table => ddl.table_persistence(&name.relpersistence, temporary, &into.access_method)?,
        _ if name.relpersistence == "u" => bail!(FEATURE_NOT_SUPPORTED, "materialized views cannot be unlogged"),
        _ => ddl.table_persistence(&name.relpersistence, temporary, &into.access_method)?,
    };
    ddl.check_on_commit(into.on_commit(), persistence)?;
    let wrapped = pg_query::protobuf::Node { node: Some(node.clone()) };
    let (analyzed, text, depends_on) = ddl.stored_query(&wrapped)?;
    let columns = ddl.query_columns(&analyzed, &melba_parse::nodes::strings(&into.col_names))?;
    let options = melba_ddl::ParametersOf::Table.new_list(&into.options)?;
    // The query of a table does not see the table; a materialized view is there when it is filled.
    let source = match kind {
        RelationKind::Table if !into.skip_data => Some(query(node)?),
        _ => None,
    };
    let oid = ddl.put_table(namespace, &name.relname, persistence, columns, options)?;
    ddl.note_on_commit(oid, into.on_commit());
    if kind == RelationKind::MaterializedView {
        let relation = ddl.relation(oid)?;
        let text = melba_ddl::deparse_with_names(&text, &relation.columns, &analyzed, ddl)?;
        let rule = tx.new_oid();
        ddl.put_relation(Relation {
            kind,
            view_query: Some(text.into()),
            rule,
            depends_on,
            populated: !into.skip_data,
            ..(*relation).clone()
        });
    }
    let rows = match source {
        Some(source) => insert_rows(tx, oid, source, exec)?,
        None if into.skip_data => 0,
        None => insert_all(tx, oid, node, exec, query)?,
    };
    let tag = match kind {
        _ if !into.skip_data => format!("SELECT {rows}"),
        RelationKind::Table => "CREATE TABLE AS".to_owned(),
        _ => word.to_owned(),
    };
    Ok(Outcome::Done { tag })
}

/// Inserts all rows of a query; their number.
fn insert_all(tx: &Arc<Tx>, table: Oid, node: &N, exec: &dyn Fn() -> Evaluation<NoSubPlans>, query: Query<'_>) -> Result<u64> {
    insert_rows(tx, table, query(node)?, exec)
}

fn insert_rows(tx: &Arc<Tx>, table: Oid, rows: Outcome, exec: &dyn Fn() -> Evaluation<NoSubPlans>) -> Result<u64> {
    let Outcome::Rows { mut source, .. } = rows else {
        bail!(SYNTAX_ERROR, "query does not return rows");
    };
    source.keep_stored();
    let ctx = exec();
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

/// REFRESH MATERIALIZED VIEW. The view's functions run as its owner, whoever refreshes it.
fn refresh(
    ddl: &Ddl<'_>,
    context: &StatementContext,
    tx: &Arc<Tx>,
    s: &RefreshMatViewStmt,
    query: RunQuery<'_>,
) -> Result<Outcome> {
    let name = s.relation.as_ref().ok_or_else(|| DbError::internal("REFRESH without a name"))?;
    let relation = ddl.open_relation(name, RelationLockMode::AccessExclusive)?;
    if relation.kind != RelationKind::MaterializedView {
        bail!(FEATURE_NOT_SUPPORTED, "\"{}\" is not a materialized view", relation.name);
    }
    if !ddl.catalog().has_relation_privileges(ddl.user, &relation, acl::MAINTAIN) {
        return Err(melba_tree::permissions::denied(&relation));
    }
    let text = relation.view_query.as_deref().ok_or_else(|| DbError::internal("materialized view without a query"))?;
    let parsed = melba_parse::parse(text)?;
    let statement = parsed.statements.first().ok_or_else(|| DbError::internal("materialized view with an empty query"))?;
    ddl.empty_table(relation.oid)?;
    if !s.skip_data {
        let owners = context.maintaining(relation.owner);
        insert_all(tx, relation.oid, &statement.node, &|| exec_context(&owners, tx), &|node| query(&owners, node))?;
    }
    let now = ddl.relation(relation.oid)?;
    ddl.put_relation(Relation { populated: !s.skip_data, ..(*now).clone() });
    Ok(Outcome::Done { tag: "REFRESH MATERIALIZED VIEW".into() })
}

/// Drops the session's temporary objects: at its end, and for DISCARD TEMP.
pub fn drop_temporary(context: &StatementContext) -> Result<()> {
    let Some(tx) = &context.tx else { return Ok(()) };
    let namespace = *context.session.temporary_namespace.lock();
    if !namespace.is_valid() {
        return Ok(());
    }
    let catalog = tx.catalog();
    let own: Vec<Arc<Relation>> = catalog.relations_in(namespace).cloned().collect();
    let mut roots: Vec<_> = own
        .iter()
        .filter(|r| matches!(r.persistence, Persistence::Temporary) && !matches!(r.storage, Storage::System(_)))
        // An index goes with its table.
        .filter(|r| r.index.is_none())
        .map(|r| Object::Relation((*r).clone()).address())
        .collect();
    if catalog.has_user_functions() {
        roots.extend(catalog.functions_in(namespace).map(|f| Object::Function(f.clone()).address()));
    }
    // Enums, domains: those that are parts of nothing else.
    let is_composite = |r: &Arc<Relation>| r.kind == RelationKind::Composite;
    let is_part =
        |t: &Type| t.category == b'A' || t.relation.is_valid() && !catalog.relation(t.relation).is_some_and(is_composite);
    roots.extend(catalog.types_in(namespace).filter(|t| !is_part(t)).map(|t| Object::Type(t.clone()).address()));
    with_ddl(context, tx, ("", 0), |ddl| ddl.drop_quietly(&roots))
}

/// Empties and drops the temporary tables that were created for that.
pub fn run_on_commit(context: &StatementContext) -> Result<()> {
    let Some(tx) = &context.tx else { return Ok(()) };
    let catalog = tx.catalog();
    let actions = {
        let mut held = context.session.on_commit.lock();
        held.retain(|(table, _)| catalog.relation(*table).is_some());
        held.clone()
    };
    with_ddl(context, tx, ("", 0), |ddl| ddl.run_on_commit(&actions))
}

/// The end of a session: drops its temporary schema with everything in it.
pub fn end_temporary(context: &StatementContext) -> Result<()> {
    drop_temporary(context)?;
    let namespace = std::mem::take(&mut *context.session.temporary_namespace.lock());
    if let Some(tx) = &context.tx
        && tx.catalog().namespace(namespace).is_some()
    {
        tx.remove(ObjectAddress { class: classes::PG_NAMESPACE, object: namespace, sub: 0 });
    }
    Ok(())
}

/// Runs the constraint checks that waited for the commit, or (`all` false) those that SET CONSTRAINTS made immediate.
pub fn run_deferred(context: &StatementContext, all: bool) -> Result<()> {
    let Some(tx) = &context.tx else { return Ok(()) };
    tx.deferred.run(&exec_context(context, tx), &tx.engine, all)
}

fn set_constraints(ddl: &Ddl<'_>, context: &StatementContext, s: &ConstraintsSetStmt) -> Result<Outcome> {
    let catalog = ddl.catalog();
    let mut constraints = Vec::new();
    for node in &s.constraints {
        let N::RangeVar(name) = melba_parse::nodes::inner(node)? else { continue };
        let schemas: Vec<Oid> = match name.schemaname.as_str() {
            "" => ddl.path.to_vec(),
            schema => vec![ddl.namespace(schema)?.oid],
        };
        let all = schemas.iter().map(|ns| catalog.constraints_named(*ns, &name.relname)).find(|all| !all.is_empty());
        let all = all.ok_or_else(|| err!(UNDEFINED_OBJECT, "constraint \"{}\" does not exist", name.relname))?;
        if s.deferred && all.iter().any(|c| !c.deferrable) {
            bail!(WRONG_OBJECT_TYPE, "constraint \"{}\" is not deferrable", name.relname);
        }
        for constraint in all.iter().filter(|c| c.deferrable) {
            constraints.push(constraint.oid);
            add_parts(&catalog, constraint, &mut constraints);
        }
    }
    ddl.tx.deferred.set(&constraints, s.deferred);
    if !s.deferred {
        run_deferred(context, false)?;
    }
    Ok(Outcome::Done { tag: "SET CONSTRAINTS".into() })
}

/// The constraints of partitions that are parts of one.
fn add_parts(catalog: &Catalog, constraint: &melba_catalog::Constraint, out: &mut Vec<Oid>) {
    // Partitions come after their parents.
    for table in catalog.descendants(constraint.relation).iter().filter_map(|t| catalog.relation(*t)) {
        let own = table.constraints.iter().filter_map(|c| catalog.constraint(*c));
        let parts: Vec<Oid> = own.filter(|c| out.contains(&c.parent)).map(|c| c.oid).collect();
        out.extend(parts);
    }
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
pub fn unsupported(source: &str) -> DbError {
    let words: Vec<&str> = source.split_whitespace().take(2).collect();
    err!(FEATURE_NOT_SUPPORTED, "{} is not supported yet", words.join(" ").to_uppercase())
}

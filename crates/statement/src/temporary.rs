//! The session's temporary schema: created when it is first needed, emptied at commits, dropped at the session's end.

use std::sync::Arc;

use melba_catalog::{ObjectAddress, classes};
use melba_definition::context::StatementText;
use melba_definition::lookup::LookupSession;
use melba_transaction::Tx;
use melba_types::Result;
use pg_query::protobuf::{RangeVar, node::Node as N};

use super::context::StatementContext;
use super::ddl_context::ddl;
use super::names::SearchPath;

/// Whether a statement, by its text alone, creates an object in the temporary schema.
pub(super) fn makes_temporary(statement: &N, path: &SearchPath) -> bool {
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

/// The statement's context with an existing temporary schema.
pub(super) fn with_temporary_schema(context: &StatementContext, tx: &Arc<Tx>) -> Result<StatementContext> {
    let temporary = context.create_temporary_namespace(tx)?;
    let catalog = tx.catalog();
    let setting = context.session.settings.lock().get("search_path").as_text().to_owned();
    let path = SearchPath::new(&setting, &catalog, &context.user, temporary);
    Ok(StatementContext { catalog, path: Arc::new(path), ..context.clone() })
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
    melba_relation::table::on_commit::run_on_commit(&ddl(context, tx, StatementText::default()), &actions)
}

/// Drops the session's temporary objects: at its end, and for DISCARD TEMP.
pub fn drop_temporary(context: &StatementContext) -> Result<()> {
    let Some(tx) = &context.tx else { return Ok(()) };
    let namespace = *context.session.temporary_namespace.lock();
    if !namespace.is_valid() {
        return Ok(());
    }
    melba_relation::dependents::drop_contents(&ddl(context, tx, StatementText::default()), namespace)
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

//! ALTER, DROP and COMMENT of statistics objects.

use std::sync::Arc;

use melba_catalog::extended_statistics::statistics_of;
use melba_catalog::{ExtendedStatistics, ObjectAddress, Relation, classes};
use melba_definition::context::Ddl;
use melba_definition::expression::{Use, again};
use melba_definition::special_schema::refuse_special_schema;
use melba_parse::nodes::{inner, strings};
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{AlterStatsStmt, Node};

use crate::statistics::create::put_statistics;
use crate::table::alter_column::statistics_target;

pub fn alter_statistics(ddl: &Ddl<'_>, s: &AlterStatsStmt) -> Result<()> {
    let target = statistics_target(ddl, s.stxstattarget.as_deref().and_then(|n| n.node.as_ref()))?;
    let names = strings(&s.defnames);
    let statistics = match owned_statistics(ddl, &names) {
        Ok(statistics) => statistics,
        Err(error) if s.missing_ok && is_missing(&error) => {
            ddl.notice(format!("statistics object \"{}\" does not exist, skipping", names.join(".")));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    put_statistics(ddl, ExtendedStatistics { target, ..(*statistics).clone() });
    Ok(())
}

fn is_missing(error: &DbError) -> bool {
    matches!(error.sqlstate(), SqlState::UNDEFINED_OBJECT | SqlState::INVALID_SCHEMA_NAME)
}

/// The statistics object of a name, which the user owns.
fn owned_statistics(ddl: &Ddl<'_>, names: &[&str]) -> Result<Arc<ExtendedStatistics>> {
    let (schema, name) = ddl.qualified(names)?;
    let catalog = ddl.catalog();
    // As functions, those of the temporary schema are not found by bare names.
    let is_searched = |n: &Oid| schema.is_some() || *n != ddl.temporary();
    let mut schemas = ddl.searched_schemas(schema)?.into_iter().filter(is_searched);
    let found = schemas.find_map(|n| catalog.statistics_object_by_name(n, name));
    let shown = names.join(".");
    let found = found.ok_or_else(|| err!(UNDEFINED_OBJECT, "statistics object \"{shown}\" does not exist"))?;
    ddl.require_owner(found.owner, "statistics object", &shown)?;
    Ok(found.clone())
}

fn statistics_name(object: &Node) -> Result<Vec<&str>> {
    match inner(object)? {
        N::List(list) => Ok(strings(&list.items)),
        _ => Err(DbError::internal("a statistics object without a name")),
    }
}

pub fn named_statistics(ddl: &Ddl<'_>, object: Option<&Node>) -> Result<Arc<ExtendedStatistics>> {
    let object = object.ok_or_else(|| DbError::internal("a statistics object without a name"))?;
    owned_statistics(ddl, &statistics_name(object)?)
}

/// The statistics object that DROP or COMMENT names.
pub fn find_statistics(ddl: &Ddl<'_>, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    match named_statistics(ddl, Some(object)) {
        Ok(s) => Ok(Some(ObjectAddress { class: classes::PG_STATISTIC_EXT, object: s.oid, sub: 0 })),
        Err(error) if missing_ok && is_missing(&error) => {
            let message = match error.sqlstate() {
                SqlState::INVALID_SCHEMA_NAME => error.message().to_owned(),
                _ => format!("statistics object \"{}\" does not exist", statistics_name(object)?.join(".")),
            };
            ddl.notice(format!("{message}, skipping"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub fn rename_statistics(ddl: &Ddl<'_>, object: Option<&Node>, name: &str) -> Result<()> {
    let old = named_statistics(ddl, object)?;
    refuse_same(ddl, old.namespace, name)?;
    put_statistics(ddl, ExtendedStatistics { name: name.into(), ..(*old).clone() });
    Ok(())
}

pub fn move_statistics(ddl: &Ddl<'_>, object: Option<&Node>, schema: &str) -> Result<()> {
    let old = named_statistics(ddl, object)?;
    let namespace = ddl.namespace_for_creation(Some(schema))?;
    if namespace == old.namespace {
        return Ok(());
    }
    refuse_special_schema(ddl, old.namespace, namespace)?;
    refuse_same(ddl, namespace, &old.name)?;
    put_statistics(ddl, ExtendedStatistics { namespace, ..(*old).clone() });
    Ok(())
}

pub fn give_statistics(ddl: &Ddl<'_>, old: &ExtendedStatistics, owner: Oid) -> Result<()> {
    ddl.check_new_owner(old.owner, owner, Some(old.namespace))?;
    put_statistics(ddl, ExtendedStatistics { owner, ..old.clone() });
    Ok(())
}

fn refuse_same(ddl: &Ddl<'_>, namespace: Oid, name: &str) -> Result<()> {
    let catalog = ddl.catalog();
    if catalog.statistics_object_by_name(namespace, name).is_none() {
        return Ok(());
    }
    let schema = catalog.namespace(namespace).map_or("?", |n| &n.name);
    bail!(DUPLICATE_OBJECT, "statistics object \"{name}\" already exists in schema \"{schema}\"")
}

/// Statistics on columns whose types changed: what was collected is of the old type, and expressions are analyzed again.
pub fn retype_statistics(ddl: &Ddl<'_>, relation: &Relation, changed: &[usize]) -> Result<()> {
    for statistics in statistics_of(&ddl.catalog(), relation.oid) {
        let address = |at: &usize| ObjectAddress { class: classes::PG_CLASS, object: relation.oid, sub: *at as i32 + 1 };
        let uses = |at: &usize| statistics.columns.contains(&(*at as i16 + 1)) || statistics.depends_on.contains(&address(at));
        if !changed.iter().any(uses) {
            continue;
        }
        let mut next = ExtendedStatistics { data: Vec::new(), ..(**statistics).clone() };
        for text in &mut next.expressions {
            *text = again(ddl, text, relation, Use::Statistics)?.text;
        }
        put_statistics(ddl, next);
    }
    Ok(())
}

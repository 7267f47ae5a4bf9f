//! DROP: finds the named objects, and drops each; `dependents` finds the others.

use melba_catalog::{ObjectAddress, Persistence, Relation, RelationKind, classes};
use melba_definition::context::Ddl;
use melba_definition::naming::range_var;
use melba_definition::words::relation_word;
use melba_engine::RelationLockMode;
use melba_parse::command::object_word;
use melba_parse::nodes::{inner, string, strings};
use melba_relation::dependents::{drop_addresses, lock_dropped};
use melba_relation::operator_class::{dropped_placed, is_placed};
use melba_relation::partition::index::refuse_index_part;
use melba_relation::policy::find_policy;
use melba_relation::rule::dropped_rule;
use melba_relation::statistics::alter::find_statistics;
use melba_relation::trigger::dropped_trigger;
use melba_routine::find::RoutineName;
use melba_routine::operator::find_operator;
use melba_types::{DbError, Oid, Result, SqlState, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{DropBehavior, DropStmt, Node, ObjectType};

use crate::alter_routine::dropped_routine;
use crate::collation::find_collation;
use crate::event_trigger::find_event_trigger;
use crate::extension::dropped_extension;
use crate::foreign::{find_foreign, is_foreign};
use crate::plain::{PlainKind, dropped_plain};
use crate::publication::find_publication;
use crate::text_search::{find_text_search, is_text_search};
use crate::types::cast::find_cast;
use crate::types::named::named_type;

pub fn drop_objects(ddl: &Ddl<'_>, s: &DropStmt) -> Result<()> {
    let kind = s.remove_type();
    let mut addresses = Vec::new();
    for object in &s.objects {
        if kind == ObjectType::ObjectIndex {
            lock_table_of_index(ddl, s, object)?;
        }
        if let Some(address) = resolve_locked(ddl, kind, object, s.missing_ok)? {
            refuse_concurrently(ddl, s, address.object)?;
            addresses.push(address);
        }
    }
    drop_addresses(ddl, &addresses, s.behavior() == DropBehavior::DropCascade)
}

/// The table is locked before its index, as by everything that uses both. The partitions are, too.
fn lock_table_of_index(ddl: &Ddl<'_>, s: &DropStmt, object: &Node) -> Result<()> {
    let N::List(list) = inner(object)? else { return Ok(()) };
    let found = ddl.find_relation(&range_var(&strings(&list.items))?)?;
    let Some((index, info)) = found.as_ref().and_then(|r| Some((r, r.index.as_ref()?))) else { return Ok(()) };
    ddl.require_own_relation(index)?;
    let mode = RelationLockMode::AccessExclusive;
    match s.concurrent {
        true => ddl.lock_relation_patiently(info.table, mode)?,
        false => ddl.lock_relation(info.table, mode)?,
    }
    if index.kind == RelationKind::PartitionedIndex {
        ddl.catalog().descendants(info.table).into_iter().try_for_each(|part| ddl.lock_relation(part, mode))?;
    }
    Ok(())
}

fn refuse_concurrently(ddl: &Ddl<'_>, s: &DropStmt, index: Oid) -> Result<()> {
    match ddl.catalog().relation(index) {
        // Nobody else uses a temporary one.
        Some(r) if s.concurrent && r.kind == RelationKind::PartitionedIndex && r.persistence != Persistence::Temporary => {
            Err(err!(FEATURE_NOT_SUPPORTED, "cannot drop partitioned index \"{}\" concurrently", r.name))
        }
        _ => Ok(()),
    }
}

/// The object that a statement drops, which nobody else can use any more. During the wait it may have gone.
fn resolve_locked(ddl: &Ddl<'_>, kind: ObjectType, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    let mut locked = None;
    loop {
        let found = resolve_dropped(ddl, kind, object, missing_ok)?;
        match found {
            // Relations have been locked as they were found.
            Some(address) if found != locked && address.class != classes::PG_CLASS => {
                lock_dropped(ddl, &ddl.catalog(), address)?;
                locked = found;
            }
            _ => return Ok(found),
        }
    }
}

fn resolve_dropped(ddl: &Ddl<'_>, kind: ObjectType, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    match kind {
        _ if RoutineName::is_routine(kind) => dropped_routine(ddl, kind, object, missing_ok),
        ObjectType::ObjectCast => find_cast(ddl, Some(object), missing_ok),
        ObjectType::ObjectOperator => find_operator(ddl, object, missing_ok),
        ObjectType::ObjectCollation => find_collation(ddl, object, missing_ok),
        _ if is_text_search(kind) => find_text_search(ddl, kind, object, missing_ok),
        _ if is_placed(kind) => dropped_placed(ddl, kind, object, missing_ok),
        ObjectType::ObjectPublication => find_publication(ddl, object, missing_ok),
        _ if is_foreign(kind) => find_foreign(ddl, kind, object, missing_ok),
        _ if PlainKind::of(kind).is_some() => dropped_plain(ddl, kind, object, missing_ok),
        ObjectType::ObjectEventTrigger => find_event_trigger(ddl, object, missing_ok),
        ObjectType::ObjectStatisticExt => find_statistics(ddl, object, missing_ok),
        _ => resolve_named(ddl, kind, object, missing_ok),
    }
}

fn resolve_named(ddl: &Ddl<'_>, kind: ObjectType, object: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    let names = match inner(object)? {
        N::List(list) => strings(&list.items),
        N::String(_) => string(object).into_iter().collect(),
        N::TypeName(name) => strings(&name.names),
        _ => vec![],
    };
    if schema_is_missing(ddl, kind, &names, missing_ok)? {
        return Ok(None);
    }
    let skip_as = |error: DbError, what: &str, shown: &str| {
        if !missing_ok {
            return Err(error);
        }
        ddl.notice(format!("{what} \"{shown}\" does not exist, skipping"));
        Ok(None)
    };
    let skip = |error: DbError, what: &str| skip_as(error, what, &names.join("."));
    match kind {
        ObjectType::ObjectTable
        | ObjectType::ObjectView
        | ObjectType::ObjectMatview
        | ObjectType::ObjectSequence
        | ObjectType::ObjectForeignTable
        | ObjectType::ObjectIndex => {
            let word = relation_kind_word(kind);
            let range = range_var(&names)?;
            if let Some(found) = ddl.find_relation(&range)? {
                lock_above(ddl, &found)?;
            }
            if ddl.find_relation(&range)?.is_none() {
                // PostgreSQL leaves the schema out.
                let message = format!("{word} \"{}\" does not exist", range.relname);
                let state = match kind {
                    ObjectType::ObjectIndex | ObjectType::ObjectForeignTable => SqlState::UNDEFINED_OBJECT,
                    _ => SqlState::UNDEFINED_TABLE,
                };
                return skip_as(DbError::new(state, message), word, &range.relname);
            }
            let relation = ddl.open_target(&range)?;
            check_dropped_kind(ddl, kind, &relation)?;
            Ok(Some(ObjectAddress { class: classes::PG_CLASS, object: relation.oid, sub: 0 }))
        }
        ObjectType::ObjectSchema => {
            let (name, catalog) = (names.first().copied().unwrap_or_default(), ddl.catalog());
            let Some(namespace) = catalog.namespace_by_name(name) else {
                return skip(err!(INVALID_SCHEMA_NAME, "schema \"{name}\" does not exist"), "schema");
            };
            ddl.require_owner(namespace.owner, "schema", name)?;
            Ok(Some(ObjectAddress { class: classes::PG_NAMESPACE, object: namespace.oid, sub: 0 }))
        }
        ObjectType::ObjectTrigger => dropped_trigger(ddl, &names, missing_ok),
        ObjectType::ObjectRule => dropped_rule(ddl, &names, missing_ok),
        ObjectType::ObjectPolicy => find_policy(ddl, &names, missing_ok),
        ObjectType::ObjectExtension => dropped_extension(ddl, names.first().unwrap_or(&""), missing_ok),
        ObjectType::ObjectType | ObjectType::ObjectDomain => match named_type(ddl, Some(object)) {
            Ok(ty) => {
                if kind == ObjectType::ObjectDomain && ty.domain.is_none() {
                    return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not a domain", ty.name));
                }
                ddl.require_type_owner(&ty)?;
                Ok(Some(ObjectAddress { class: classes::PG_TYPE, object: ty.oid, sub: 0 }))
            }
            Err(error) => skip(error, "type"),
        },
        _ => Err(DbError::unsupported(format!("DROP {}", object_word(kind)))),
    }
}

/// Locks what is locked before a relation that is dropped: of a partition the table that it belongs to, whose queries may be about to read
/// the partition.
fn lock_above(ddl: &Ddl<'_>, dropped: &Relation) -> Result<()> {
    // Who may not drop it may not lock either, and is told so later.
    let is_allowed = ddl.require_own_relation(dropped).is_ok();
    match dropped.parents.first().filter(|_| dropped.is_partition() && is_allowed) {
        Some(parent) => ddl.lock_relation(*parent, RelationLockMode::AccessExclusive),
        None => Ok(()),
    }
}

/// Whether the schema of a name is missing where IF EXISTS skips it.
fn schema_is_missing(ddl: &Ddl<'_>, kind: ObjectType, names: &[&str], missing_ok: bool) -> Result<bool> {
    let in_schema = !matches!(kind, ObjectType::ObjectTrigger | ObjectType::ObjectPolicy | ObjectType::ObjectRule);
    let (true, [schema, _]) = (in_schema, names) else { return Ok(false) };
    ddl.is_missing_schema(schema, missing_ok)
}

fn check_dropped_kind(ddl: &Ddl<'_>, kind: ObjectType, relation: &Relation) -> Result<()> {
    let right = match kind {
        ObjectType::ObjectTable => matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable),
        ObjectType::ObjectView => relation.kind == RelationKind::View,
        ObjectType::ObjectMatview => relation.kind == RelationKind::MaterializedView,
        ObjectType::ObjectSequence => relation.kind == RelationKind::Sequence,
        ObjectType::ObjectForeignTable => relation.kind == RelationKind::ForeignTable,
        _ => matches!(relation.kind, RelationKind::Index | RelationKind::PartitionedIndex),
    };
    if !right {
        let word = relation_kind_word(kind);
        let article = if kind == ObjectType::ObjectIndex { "an" } else { "a" };
        let own = relation_word(relation.kind);
        return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not {article} {word}", relation.name).hint(format!(
            "Use DROP {} to remove a{} {own}.",
            own.to_uppercase(),
            if own == "index" { "n" } else { "" }
        )));
    }
    ddl.require_own_relation(relation)?;
    let Some(info) = &relation.index else { return Ok(()) };
    refuse_index_part(ddl, relation)?;
    if info.constraint.is_valid() {
        let catalog = ddl.catalog();
        let name = catalog.constraint(info.constraint).map_or("", |c| &c.name);
        let table = catalog.relation(info.table).map_or("", |r| &r.name);
        return Err(err!(
            DEPENDENT_OBJECTS_STILL_EXIST,
            "cannot drop index {} because constraint {name} on table {table} requires it",
            relation.name
        )
        .hint(format!("You can drop constraint {name} on table {table} instead.")));
    }
    Ok(())
}

fn relation_kind_word(kind: ObjectType) -> &'static str {
    match kind {
        ObjectType::ObjectView => "view",
        ObjectType::ObjectMatview => "materialized view",
        ObjectType::ObjectSequence => "sequence",
        ObjectType::ObjectIndex => "index",
        ObjectType::ObjectForeignTable => "foreign table",
        _ => "table",
    }
}

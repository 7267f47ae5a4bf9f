//! The objects that a command has defined, for pg_event_trigger_ddl_commands(): read off the changes that it has made to the catalog.
//!
//! PostgreSQL notes them where each object is defined. A table comes with its sequences before it, and its indexes, foreign keys and the
//! owners of its sequences after it. Commands that change several objects, such that the one they name cannot be told from the others,
//! are `Unknown`.

use std::sync::Arc;

use hashbrown::HashSet;
use melba_catalog::identity::identify;
use melba_catalog::{
    Catalog, Constraint, ConstraintKind, FunctionKind, NameScope, Object, ObjectAddress, ObjectChange, Relation, RelationKind,
    Type, TypeKind, classes, is_range_constructor,
};
use melba_definition::lookup::Lookup;
use melba_parse::command::{object_word, tag};
use melba_types::{Oid, Result};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{
    AlterDefaultPrivilegesStmt, GrantStmt, ObjectType, RangeVar, ReindexObjectType, ReindexStmt, RenameStmt,
};

use super::collected::{CollectedCommand, CollectedCommands};

/// What a statement has defined: `changes` of the catalog `before` it.
pub(super) fn commands_of(
    lookup: &Lookup<'_>,
    statement: &N,
    before: &Catalog,
    changes: &[ObjectChange],
) -> Result<CollectedCommands> {
    let statement_tag = tag(statement);
    let catalog = lookup.catalog();
    let objects: Vec<&Object> =
        changes.iter().filter_map(put).filter(|object| catalog.object(object.address()).is_some()).collect();
    Ok(match statement {
        N::DropStmt(_) | N::DropOwnedStmt(_) => CollectedCommands::default(),
        N::GrantStmt(s) if s.objtype() == ObjectType::ObjectForeignServer => privileges(statement_tag, "FOREIGN SERVER"),
        N::GrantStmt(s) => privileges(statement_tag, object_word(s.objtype())),
        N::AlterDefaultPrivilegesStmt(s) => default_privileges(statement_tag, s),
        N::CommentStmt(_) => {
            let comments = changes.iter().filter_map(|change| match change {
                ObjectChange::Put(Object::Description(d)) => Some(d.address),
                ObjectChange::RemoveDescription(address) => Some(*address),
                _ => None,
            });
            CollectedCommands::Known(comments.map(|address| CollectedCommand::On { tag: statement_tag, address }).collect())
        }
        N::AlterTableStmt(s) => altered(lookup, statement_tag, s.relation.as_ref(), &created(&catalog, before, &objects, ""))?,
        N::AlterSeqStmt(s) => altered(lookup, statement_tag, s.sequence.as_ref(), &[])?,
        N::RefreshMatViewStmt(s) => altered(lookup, statement_tag, s.relation.as_ref(), &[])?,
        N::ReindexStmt(s) => reindexed(lookup, statement_tag, s)?,
        N::RenameStmt(s) => match renamed_part(lookup, &objects, s)? {
            Some(address) => CollectedCommands::Known(vec![CollectedCommand::On { tag: statement_tag, address }]),
            None => only(&catalog, statement_tag, &renamed(lookup, before, &objects)),
        },
        N::AlterObjectSchemaStmt(s) => match &s.relation {
            Some(name) => {
                let name = RangeVar { schemaname: s.newschema.clone(), ..name.clone() };
                altered(lookup, statement_tag, Some(&name), &[])?
            }
            None => only(&catalog, statement_tag, &renamed(lookup, before, &objects)),
        },
        _ if statement_tag.starts_with("CREATE") || statement_tag == "SELECT INTO" => {
            match created(&catalog, before, &objects, statement_tag) {
                new if new.is_empty() => only(&catalog, statement_tag, &objects),
                new => CollectedCommands::Known(new),
            }
        }
        _ => only(&catalog, statement_tag, &objects),
    })
}

/// The indexes that REINDEX has built again, but for those of a whole database.
fn reindexed(lookup: &Lookup<'_>, tag: &'static str, s: &ReindexStmt) -> Result<CollectedCommands> {
    let catalog = lookup.catalog();
    let members: Vec<&Arc<Relation>> = match &s.relation {
        Some(name) => {
            let named = lookup.find_relation(name)?;
            named.iter().flat_map(|r| catalog.descendants(r.oid)).filter_map(|oid| catalog.relation(oid)).collect()
        }
        None if s.kind() == ReindexObjectType::ReindexObjectSchema => {
            let schema = lookup.namespace(&s.name)?.oid;
            catalog.relations_in(schema).filter(|r| r.index.is_none()).collect()
        }
        None => return Ok(CollectedCommands::Unknown),
    };
    let own = |r: &&Arc<Relation>| (r.kind == RelationKind::Index).then_some(r.oid);
    let mut seen = HashSet::new();
    let indexes = members.iter().flat_map(|r| own(r).into_iter().chain(r.indexes.iter().copied()));
    let built = indexes.filter(|oid| catalog.relation(*oid).is_some_and(|r| r.kind == RelationKind::Index) && seen.insert(*oid));
    Ok(CollectedCommands::Known(built.map(|oid| CollectedCommand::On { tag, address: address_of(oid) }).collect()))
}

fn privileges(tag: &'static str, kind: &'static str) -> CollectedCommands {
    CollectedCommands::Known(vec![CollectedCommand::Privileges { tag, kind }])
}

/// Kinds of objects have their plural there.
fn default_privileges(tag: &'static str, s: &AlterDefaultPrivilegesStmt) -> CollectedCommands {
    let kind = s.action.as_ref().map_or(ObjectType::Undefined, GrantStmt::objtype);
    privileges(
        tag,
        match kind {
            ObjectType::ObjectSequence => "SEQUENCES",
            ObjectType::ObjectFunction => "FUNCTIONS",
            ObjectType::ObjectType => "TYPES",
            ObjectType::ObjectSchema => "SCHEMAS",
            ObjectType::ObjectLargeobject => "LARGE OBJECTS",
            _ => "TABLES",
        },
    )
}

fn put(change: &ObjectChange) -> Option<&Object> {
    match change {
        ObjectChange::Put(object) => Some(object),
        _ => None,
    }
}

/// The relation that a statement names, and the objects that it has created beside it.
fn altered(
    lookup: &Lookup<'_>,
    tag: &'static str,
    name: Option<&RangeVar>,
    new: &[CollectedCommand],
) -> Result<CollectedCommands> {
    let Some(relation) = name.map(|name| lookup.find_relation(name)).transpose()?.flatten() else {
        return Ok(CollectedCommands::default());
    };
    let own = CollectedCommand::On { tag, address: address_of(relation.oid) };
    // Indexes are parts of the command itself.
    let beside = |tag: &'static str| new.iter().filter(move |command| command.tag() == tag).cloned();
    let mut all: Vec<CollectedCommand> = beside("CREATE SEQUENCE").collect();
    all.push(own);
    all.extend(beside("ALTER SEQUENCE"));
    Ok(CollectedCommands::Known(all))
}

fn address_of(relation: Oid) -> ObjectAddress {
    ObjectAddress { class: classes::PG_CLASS, object: relation, sub: 0 }
}

/// A column, an attribute or a constraint that has a new name.
fn renamed_part(lookup: &Lookup<'_>, objects: &[&Object], s: &RenameStmt) -> Result<Option<ObjectAddress>> {
    let of_relation = |relation: &Relation| {
        let at = relation.columns.iter().position(|column| !column.dropped && *column.name == *s.newname)?;
        Some(ObjectAddress { sub: at as i32 + 1, ..address_of(relation.oid) })
    };
    let of_composite = |object: &&Object| match object {
        Object::Relation(r) if r.kind == RelationKind::Composite => of_relation(r),
        _ => None,
    };
    let constraint = |object: &&Object| match object {
        Object::Constraint(c) if *c.name == *s.newname && !c.parent.is_valid() => Some(object.address()),
        _ => None,
    };
    Ok(match s.rename_type() {
        ObjectType::ObjectColumn => {
            let relation = s.relation.as_ref().map(|name| lookup.find_relation(name)).transpose()?.flatten();
            relation.and_then(|relation| of_relation(&relation))
        }
        ObjectType::ObjectAttribute => objects.iter().find_map(of_composite),
        ObjectType::ObjectTabconstraint | ObjectType::ObjectDomconstraint => objects.iter().find_map(constraint),
        _ => None,
    })
}

/// The objects with another name or schema than before. Those that only mention one of them have another text.
fn renamed<'o>(lookup: &Lookup<'_>, before: &Catalog, objects: &[&'o Object]) -> Vec<&'o Object> {
    let (catalog, scope) =
        (lookup.catalog(), NameScope { path: lookup.path(), user: lookup.user(), temporary: lookup.temporary() });
    let place = |catalog: &Catalog, object: &Object| {
        let name = identify(catalog, &scope, object.address()).and_then(|identity| identity.names.last().cloned());
        (object.namespace(), name)
    };
    let is_renamed = |object: &&&Object| {
        let old = before.object(object.address());
        old.is_none_or(|old| place(before, &old) != place(&catalog, object))
    };
    objects.iter().filter(is_renamed).copied().collect()
}

/// The one object that was changed.
fn only(catalog: &Catalog, tag: &'static str, objects: &[&Object]) -> CollectedCommands {
    let is_named = |object: &&&Object| match object {
        Object::Type(ty) => !is_part(catalog, ty),
        Object::Relation(r) => r.kind != RelationKind::Composite,
        Object::Constraint(_) | Object::Description(_) => false,
        _ => true,
    };
    // Its members come with it.
    if let Some(extension) = objects.iter().find(|object| matches!(object, Object::Extension(_))) {
        return CollectedCommands::Known(vec![CollectedCommand::On { tag, address: extension.address() }]);
    }
    let mut addresses: Vec<ObjectAddress> = objects.iter().filter(is_named).map(|object| object.address()).collect();
    addresses.dedup();
    match addresses[..] {
        [] => CollectedCommands::default(),
        [address] => CollectedCommands::Known(vec![CollectedCommand::On { tag, address }]),
        _ => CollectedCommands::Unknown,
    }
}

/// Whether a type comes with another object: a table, an element type, a range.
fn is_part(catalog: &Catalog, ty: &Type) -> bool {
    let of_table = catalog.relation(ty.relation).is_some_and(|r| r.kind != RelationKind::Composite);
    ty.type_kind == TypeKind::Multirange || of_table || ty.category == b'A' && ty.element.is_valid()
}

/// The objects that were not there before, in PostgreSQL's order.
fn created(catalog: &Catalog, before: &Catalog, objects: &[&Object], statement: &'static str) -> Vec<CollectedCommand> {
    let mut seen = HashSet::new();
    let is_new = |object: &&&Object| before.object(object.address()).is_none() && seen.insert(object.address());
    let new: Vec<&Object> = objects.iter().filter(is_new).copied().collect();
    let in_extension = new.iter().find(|object| matches!(object, Object::Extension(_)));
    if let Some(extension) = in_extension {
        return vec![CollectedCommand::On { tag: "CREATE EXTENSION", address: extension.address() }];
    }
    let mut all = Vec::new();
    for object in &new {
        match object {
            Object::Relation(r) => add_relation(catalog, &new, r, statement, &mut all),
            _ => all.extend(tag_of(catalog, object).map(|tag| CollectedCommand::On { tag, address: object.address() })),
        }
    }
    all
}

/// A new relation with those that come with it. Those are no commands of their own.
fn add_relation(
    catalog: &Catalog,
    new: &[&Object],
    relation: &Relation,
    statement: &'static str,
    all: &mut Vec<CollectedCommand>,
) {
    // As it is by now.
    let Some(relation) = catalog.relation(relation.oid) else { return };
    let on = |tag: &'static str, relation: &Relation| CollectedCommand::On { tag, address: address_of(relation.oid) };
    let others: Vec<_> = new
        .iter()
        .filter_map(|object| match object {
            Object::Relation(other) => catalog.relation(other.oid),
            _ => None,
        })
        .collect();
    let is_new = |oid: melba_types::Oid| others.iter().any(|other| other.oid == oid);
    let owner = |r: &Relation| r.sequence.as_ref().and_then(|s| s.owned_by).map(|(table, _)| table);
    match relation.kind {
        RelationKind::Table | RelationKind::PartitionedTable => {
            let is_query = matches!(statement, "CREATE TABLE AS" | "SELECT INTO");
            let sequences: Vec<_> = others.iter().filter(|r| owner(r) == Some(relation.oid)).collect();
            all.extend(sequences.iter().map(|r| on("CREATE SEQUENCE", r)));
            all.push(on(if is_query { statement } else { "CREATE TABLE" }, relation));
            let of_constraint = |r: &&&Arc<Relation>| {
                r.index.as_ref().is_some_and(|i| i.table == relation.oid && i.constraint.is_valid()) && r.parents.is_empty()
            };
            all.extend(others.iter().filter(of_constraint).map(|r| on("CREATE INDEX", r)));
            let keys = relation.constraints.iter().filter_map(|c| catalog.constraint(*c));
            let is_own = |c: &&Arc<Constraint>| c.kind == ConstraintKind::ForeignKey && c.local;
            all.extend(keys.filter(is_own).take(1).map(|_| on("ALTER TABLE", relation)));
            all.extend(sequences.iter().map(|r| on("ALTER SEQUENCE", r)));
        }
        RelationKind::View => all.push(on("CREATE VIEW", relation)),
        RelationKind::ForeignTable => all.push(on("CREATE FOREIGN TABLE", relation)),
        RelationKind::MaterializedView => all.push(on("CREATE MATERIALIZED VIEW", relation)),
        RelationKind::Sequence => match owner(relation) {
            // With its table.
            Some(table) if is_new(table) => {}
            Some(_) => all.extend([on("CREATE SEQUENCE", relation), on("ALTER SEQUENCE", relation)]),
            None => all.push(on("CREATE SEQUENCE", relation)),
        },
        RelationKind::Index | RelationKind::PartitionedIndex => {
            let is_own = relation.parents.is_empty() && relation.index.as_ref().is_some_and(|i| !i.constraint.is_valid());
            all.extend(is_own.then(|| on("CREATE INDEX", relation)));
        }
        RelationKind::Composite | RelationKind::Toast => {}
    }
}

/// The tag of the command that creates an object; `None` for parts of other objects.
fn tag_of(catalog: &Catalog, object: &Object) -> Option<&'static str> {
    Some(match object {
        Object::Namespace(_) => "CREATE SCHEMA",
        Object::Type(ty) if is_part(catalog, ty) => return None,
        Object::Type(ty) => {
            if ty.domain.is_some() {
                "CREATE DOMAIN"
            } else {
                "CREATE TYPE"
            }
        }
        Object::Function(f) if is_range_constructor(f) => return None,
        Object::Function(f) => match f.kind {
            FunctionKind::Procedure => "CREATE PROCEDURE",
            FunctionKind::Aggregate => "CREATE AGGREGATE",
            _ => "CREATE FUNCTION",
        },
        Object::Operator(_) => "CREATE OPERATOR",
        Object::Cast(cast) => return (!cast.part_of_type).then_some("CREATE CAST"),
        Object::Trigger(trigger) => return (!trigger.parent.is_valid()).then_some("CREATE TRIGGER"),
        Object::Policy(_) => "CREATE POLICY",
        Object::Publication(_) => "CREATE PUBLICATION",
        Object::ForeignDataWrapper(_) => "CREATE FOREIGN DATA WRAPPER",
        Object::ForeignServer(_) => "CREATE SERVER",
        Object::UserMapping(_) => "CREATE USER MAPPING",
        Object::Rule(_) => "CREATE RULE",
        Object::ExtendedStatistics(_) => "CREATE STATISTICS",
        Object::Collation(_) => "CREATE COLLATION",
        Object::OperatorFamily(_) => "CREATE OPERATOR FAMILY",
        Object::OperatorClass(_) => "CREATE OPERATOR CLASS",
        Object::TextSearchDictionary(_) => "CREATE TEXT SEARCH DICTIONARY",
        Object::TextSearchConfig(_) => "CREATE TEXT SEARCH CONFIGURATION",
        _ => return None,
    })
}

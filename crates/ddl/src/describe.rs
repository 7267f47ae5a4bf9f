//! Objects as messages about dependencies name them (PostgreSQL's getObjectDescription).

use melba_catalog::extended_statistics::statistics_are_visible;
use melba_catalog::{DefaultAcl, Object, ObjectAddress, Relation, RelationKind, classes};

use crate::context::Ddl;
use crate::words::relation_word;

/// Default privileges as messages about dependencies name them.
pub fn describe_default_acl(ddl: &Ddl<'_>, acl: &DefaultAcl) -> String {
    let catalog = ddl.catalog();
    let what = match acl.letter {
        b'r' => "relations",
        b'S' => "sequences",
        b'f' => "functions",
        b'T' => "types",
        b'n' => "schemas",
        _ => "large objects",
    };
    let role = catalog.role(acl.role).map_or("?", |r| &r.name);
    let place = catalog.namespace(acl.namespace).map_or_else(String::new, |n| format!(" in schema {}", n.name));
    format!("default privileges on new {what} belonging to role {role}{place}")
}

/// An object as messages about dependencies name it.
pub fn describe(ddl: &Ddl<'_>, address: ObjectAddress) -> String {
    let catalog = ddl.catalog();
    match address.class {
        classes::PG_CLASS => match catalog.relation(address.object) {
            Some(r) if address.sub > 0 => {
                let column = r.columns.get(address.sub as usize - 1).map_or("?", |c| &c.name);
                let of = if r.kind == RelationKind::Composite { "composite type" } else { relation_word(r.kind) };
                format!("column {column} of {of} {}", visible_name(ddl, r))
            }
            Some(r) if r.kind == RelationKind::Composite => format!("composite type {}", visible_name(ddl, r)),
            Some(r) => format!("{} {}", relation_word(r.kind), visible_name(ddl, r)),
            None => format!("relation {}", address.object),
        },
        classes::PG_CONSTRAINT => match catalog.constraint(address.object) {
            Some(c) => match catalog.relation(c.relation) {
                Some(r) => format!("constraint {} on {} {}", c.name, relation_word(r.kind), visible_name(ddl, r)),
                None => format!("constraint {}", c.name),
            },
            None => format!("constraint {}", address.object),
        },
        classes::PG_TRIGGER | classes::PG_POLICY => describe_on_table(ddl, address),
        classes::PG_TYPE => format!("type {}", catalog.type_name(address.object, ddl.path())),
        classes::PG_NAMESPACE => format!("schema {}", catalog.namespace(address.object).map_or("?", |n| &n.name)),
        classes::PG_PROC => match catalog.function(address.object) {
            Some(f) => format!("function {}", catalog.function_signature(f, ddl.path())),
            None => format!("function {}", address.object),
        },
        classes::PG_ATTRDEF => match catalog.column_with_default(address.object) {
            Some((r, at)) => {
                let column = &r.columns[at].name;
                format!("default value for column {column} of {} {}", relation_word(r.kind), visible_name(ddl, r))
            }
            None => format!("default {}", address.object),
        },
        classes::PG_EXTENSION => format!("extension {}", catalog.extension(address.object).map_or("?", |e| &e.name)),
        classes::PG_OPERATOR => match catalog.operator(address.object) {
            Some(o) => {
                let operand = |ty| catalog.type_name(ty, ddl.path());
                let left = if o.left.is_valid() { operand(o.left) } else { "NONE".to_owned() };
                format!("operator {}({left},{})", o.name, operand(o.right))
            }
            None => format!("operator {}", address.object),
        },
        classes::PG_CAST => match catalog.cast_by_oid(address.object) {
            Some(c) => {
                let name = |ty| catalog.type_name(ty, ddl.path());
                format!("cast from {} to {}", name(c.source), name(c.target))
            }
            None => format!("cast {}", address.object),
        },
        classes::PG_COLLATION => match catalog.collation(address.object) {
            Some(c) => {
                format!("collation {}", catalog.qualified(catalog.collation_is_visible(c, ddl.path()), c.namespace, &c.name))
            }
            None => format!("collation {}", address.object),
        },
        classes::PG_EVENT_TRIGGER => format!("event trigger {}", catalog.event_trigger(address.object).map_or("?", |e| &e.name)),
        classes::PG_STATISTIC_EXT => describe_statistics(ddl, address),
        classes::PG_LARGEOBJECT => format!("large object {}", address.object),
        classes::PG_DATABASE => format!("database {}", catalog.database(address.object).map_or("?", |d| &d.name)),
        classes::PG_DEFAULT_ACL => match catalog.default_acl_by_oid(address.object) {
            Some(acl) => describe_default_acl(ddl, acl),
            None => format!("default ACL {}", address.object),
        },
        classes::PG_OPCLASS => describe_operator_class(ddl, address),
        _ => format!("object {}", address.object),
    }
}

fn describe_statistics(ddl: &Ddl<'_>, address: ObjectAddress) -> String {
    let catalog = ddl.catalog();
    let Some(s) = catalog.statistics_object(address.object) else { return format!("statistics object {}", address.object) };
    let visible = statistics_are_visible(&catalog, s, ddl.path());
    format!("statistics object {}", catalog.qualified(visible, s.namespace, &s.name))
}

/// An operator class of an extension.
fn describe_operator_class(ddl: &Ddl<'_>, address: ObjectAddress) -> String {
    let catalog = ddl.catalog();
    let Some(class) = catalog.access_methods().class(address.object) else {
        return format!("operator class {}", address.object);
    };
    let namespace = catalog.extension_of(address).map_or(classes::PG_CATALOG, |e| e.namespace);
    let name = catalog.qualified(ddl.path().contains(&namespace), namespace, class.name);
    let method = catalog.access_methods().method_name(class.method).unwrap_or("?");
    format!("operator class {name} for access method {method}")
}

/// The name of an object within its table.
fn describe_on_table(ddl: &Ddl<'_>, address: ObjectAddress) -> String {
    let (word, found) = match ddl.catalog().object(address) {
        Some(Object::Trigger(t)) => ("trigger", Some((t.name.clone(), t.table))),
        Some(Object::Policy(p)) => ("policy", Some((p.name.clone(), p.table))),
        _ => (if address.class == classes::PG_TRIGGER { "trigger" } else { "policy" }, None),
    };
    match found {
        Some((name, table)) => {
            format!("{word} {name} on {}", describe(ddl, ObjectAddress { class: classes::PG_CLASS, object: table, sub: 0 }))
        }
        None => format!("{word} {}", address.object),
    }
}

/// The relation's name, qualified when the search path does not find it.
fn visible_name(ddl: &Ddl<'_>, relation: &Relation) -> String {
    let catalog = ddl.catalog();
    let found = ddl.path().iter().find_map(|ns| catalog.relation_by_name(*ns, &relation.name));
    if found.is_some_and(|f| f.oid == relation.oid) {
        melba_catalog::quote_ident(&relation.name).into_owned()
    } else {
        ddl.qualified_name(relation)
    }
}

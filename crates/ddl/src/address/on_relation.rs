//! Addresses of relations and of what belongs to one.

use melba_catalog::{ObjectAddress, Relation, RelationKind, VIEW_RULE, classes};
use melba_definition::words::plural;
use melba_types::{Result, bail, err};

use super::{NamedObject, at};

pub(super) fn relation(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let found = n.open(n.names)?;
    let fits = match n.word {
        "index" => matches!(found.kind, RelationKind::Index | RelationKind::PartitionedIndex),
        "sequence" => found.kind == RelationKind::Sequence,
        "table" => matches!(found.kind, RelationKind::Table | RelationKind::PartitionedTable),
        "view" => found.kind == RelationKind::View,
        "materialized view" => found.kind == RelationKind::MaterializedView,
        "foreign table" => found.kind == RelationKind::ForeignTable,
        _ => false,
    };
    if !fits {
        let article = if n.word == "index" { "an" } else { "a" };
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not {article} {}", found.name, n.word);
    }
    Ok(at(classes::PG_CLASS, found.oid))
}

/// The names of a relation, and the last one.
fn split<'a>(n: &NamedObject<'a>, problem: &str) -> Result<(&'a [&'a str], &'a str)> {
    match n.names {
        [relation @ .., last] if !relation.is_empty() => Ok((relation, last)),
        _ => bail!(SYNTAX_ERROR, "{problem}"),
    }
}

fn column_place(relation: &Relation, name: &str) -> Option<usize> {
    relation.columns.iter().position(|c| !c.dropped && *c.name == *name)
}

pub(super) fn column(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let (names, column) = split(n, "column name must be qualified")?;
    let relation = n.open(names)?;
    let Some(place) = column_place(&relation, column) else {
        bail!(UNDEFINED_COLUMN, "column \"{column}\" of relation \"{}\" does not exist", names.join("."));
    };
    Ok(ObjectAddress { sub: place as i32 + 1, ..at(classes::PG_CLASS, relation.oid) })
}

pub(super) fn column_default(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let (names, column) = split(n, "column name must be qualified")?;
    let relation = n.open(names)?;
    let default = column_place(&relation, column).map(|at| relation.columns[at].default_oid).filter(|oid| oid.is_valid());
    let Some(default) = default else {
        let relation = names.join(".");
        bail!(UNDEFINED_COLUMN, "default value for column \"{column}\" of relation \"{relation}\" does not exist");
    };
    Ok(at(classes::PG_ATTRDEF, default))
}

/// Rules, triggers, constraints and policies.
pub(super) fn part(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let (names, name) = split(n, "must specify relation and object name")?;
    let table = n.open(names)?;
    if matches!(table.kind, RelationKind::Index | RelationKind::PartitionedIndex | RelationKind::Composite) {
        let kinds = plural(table.kind);
        return Err(err!(WRONG_OBJECT_TYPE, "cannot open relation \"{}\"", table.name)
            .detail(format!("This operation is not supported for {kinds}.")));
    }
    let catalog = n.ddl.catalog();
    let of_view = || Some(table.rule).filter(|rule| rule.is_valid() && name == VIEW_RULE);
    let (class, found) = match n.word {
        "rule" => (classes::PG_REWRITE, catalog.rule_by_name(table.oid, name).map(|r| r.oid).or_else(of_view)),
        "trigger" => (classes::PG_TRIGGER, catalog.trigger_by_name(table.oid, name).map(|t| t.oid)),
        "policy" => (classes::PG_POLICY, catalog.policy_by_name(table.oid, name).map(|p| p.oid)),
        _ => {
            let mut all = table.constraints.iter().filter_map(|oid| catalog.constraint(*oid));
            (classes::PG_CONSTRAINT, all.find(|c| *c.name == *name).map(|c| c.oid))
        }
    };
    let (word, of) = match n.word {
        "table constraint" => ("constraint", "table"),
        "rule" => ("rule", "relation"),
        word => (word, "table"),
    };
    let missing = || err!(UNDEFINED_OBJECT, "{word} \"{name}\" for {of} \"{}\" does not exist", table.name);
    Ok(at(class, found.ok_or_else(missing)?))
}

/// A table in a publication.
pub(super) fn published(n: &NamedObject<'_>) -> Result<ObjectAddress> {
    let table = n.open(n.names)?;
    let member = n.member_of_publication(classes::PG_CLASS, table.oid)?;
    let (name, of) = (&table.name, n.arguments[0]);
    member.ok_or_else(|| err!(UNDEFINED_OBJECT, "publication relation \"{name}\" in publication \"{of}\" does not exist"))
}

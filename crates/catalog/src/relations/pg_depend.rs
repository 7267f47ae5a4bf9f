//! pg_depend, derived from the objects.

use melba_types::{Datum, Oid};

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::classes;
use crate::depend::{Dependency, DependencyKind, dependencies};
use crate::foreign_keys::is_referenced_part;
use crate::objects::*;
use crate::snapshot::Catalog;

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    match (s.oid(1), s.oid(4)) {
        (Some(dependent), _) => {
            objects_of(s.catalog, dependent).iter().for_each(|o| push_object(s.catalog, o, out));
            for extension in s.catalog.extensions() {
                let referenced = ObjectAddress { class: classes::PG_EXTENSION, object: extension.oid, sub: 0 };
                let members = extension.members.iter().filter(|m| m.object == dependent);
                members.for_each(|member| push_row(*member, referenced, DependencyKind::Extension, out));
            }
        }
        (None, Some(referenced)) => {
            s.catalog.dependents_of_oid(referenced).for_each(|d| push(s.catalog, d, out));
            if let Some(view) = s.catalog.relation(referenced).filter(|r| r.rule.is_valid()) {
                push_rule(view, out);
            }
        }
        (None, None) => s.catalog.user_objects().iter().for_each(|o| push_object(s.catalog, o, out)),
    }
}

/// The classes of objects that depend on others.
const CLASSES: [Oid; 27] = [
    classes::PG_CLASS,
    classes::PG_TYPE,
    classes::PG_PROC,
    classes::PG_OPERATOR,
    classes::PG_OPFAMILY,
    classes::PG_OPCLASS,
    classes::PG_CONSTRAINT,
    classes::PG_TRIGGER,
    classes::PG_POLICY,
    classes::PG_REWRITE,
    classes::PG_DEFAULT_ACL,
    classes::PG_STATISTIC_EXT,
    classes::PG_EVENT_TRIGGER,
    classes::PG_PUBLICATION_REL,
    classes::PG_PUBLICATION_NAMESPACE,
    classes::PG_COLLATION,
    classes::PG_TS_DICT,
    classes::PG_TS_CONFIG,
    classes::PG_CAST,
    classes::PG_FOREIGN_DATA_WRAPPER,
    classes::PG_FOREIGN_SERVER,
    classes::PG_USER_MAPPING,
    classes::PG_EXTENSION,
    classes::PG_AM,
    classes::PG_CONVERSION,
    classes::PG_LANGUAGE,
    classes::PG_TRANSFORM,
];

/// The objects that may have an OID, a part's whole included: defaults and rules are no separate objects.
fn objects_of(catalog: &Catalog, oid: Oid) -> Vec<Object> {
    let of_class = |class: &Oid| catalog.object(ObjectAddress { class: *class, object: oid, sub: 0 });
    let mut found: Vec<Object> = CLASSES.iter().filter_map(of_class).collect();
    if found.is_empty() {
        found.extend(catalog.relation_of_part(oid).cloned().map(Object::Relation));
        found.extend(catalog.family_of_member(oid).cloned().map(Object::OperatorFamily));
    }
    found.retain(|o| o.address().object.0 >= classes::FIRST_USER_OID);
    found
}

fn push_object(catalog: &Catalog, object: &Object, out: &mut RelationRows<'_>) {
    dependencies(object).iter().for_each(|d| push(catalog, d, out));
    if let Object::Relation(view) = object
        && view.rule.is_valid()
    {
        push_rule(view, out);
    }
}

/// A view's rule is a part of the view, and the rule depends on the objects of the view's query.
fn push_rule(view: &Relation, out: &mut RelationRows<'_>) {
    let rule = ObjectAddress { class: classes::PG_REWRITE, object: view.rule, sub: 0 };
    let view = ObjectAddress { class: classes::PG_CLASS, object: view.oid, sub: 0 };
    push_row(rule, view, DependencyKind::Internal, out);
    push_row(rule, view, DependencyKind::Normal, out);
}

fn push(catalog: &Catalog, d: &Dependency, out: &mut RelationRows<'_>) {
    let mut dependent = d.dependent;
    if dependent.class == classes::PG_CLASS
        && !matches!(d.referenced.class, classes::PG_NAMESPACE | classes::PG_EXTENSION)
        && let Some(view) = catalog.relation(dependent.object).filter(|r| r.rule.is_valid())
        && view.depends_on.contains(&d.referenced)
    {
        dependent = ObjectAddress { class: classes::PG_REWRITE, object: view.rule, sub: 0 };
    }
    let is_part = |oid| catalog.constraint(oid).is_some_and(|key| is_referenced_part(catalog, key));
    let in_key = d.referenced.class == classes::PG_CONSTRAINT && dependent.class == classes::PG_CONSTRAINT;
    let kind = if in_key && is_part(dependent.object) { DependencyKind::Internal } else { d.kind };
    push_row(dependent, d.referenced, kind, out);
}

fn push_row(dependent: ObjectAddress, referenced: ObjectAddress, kind: DependencyKind, out: &mut RelationRows<'_>) {
    push!(
        out,
        [
            oid(dependent.class),
            oid(dependent.object),
            Datum::Int4(dependent.sub),
            oid(referenced.class),
            oid(referenced.object),
            Datum::Int4(referenced.sub),
            char(kind.letter()),
        ]
    );
}

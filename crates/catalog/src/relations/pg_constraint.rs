//! pg_constraint.

use std::sync::Arc;

use melba_types::{Datum, Oid};

use super::{GeneratorInput, RelationRows, push, values::*};
use crate::classes;
use crate::objects::*;

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    let find = |oid: &Oid| s.catalog.constraint(*oid);
    let constraints: Vec<_> = match (s.oid(0), s.oid(8), s.oid(9), s.oid(12), s.oid(10), s.oid(2)) {
        (Some(oid), ..) => s.catalog.constraint(oid).into_iter().collect(),
        (_, Some(relation), ..) if relation.is_valid() => {
            s.catalog.relation(relation).into_iter().flat_map(|r| r.constraints.iter().filter_map(find)).collect()
        }
        (_, _, Some(domain), ..) if domain.is_valid() => {
            let info = s.catalog.type_(domain).and_then(|t| t.domain.as_ref());
            info.into_iter().flat_map(|d| d.constraints.iter().filter_map(find)).collect()
        }
        (_, _, _, Some(referenced), ..) if referenced.is_valid() => s.catalog.referencing_constraints(referenced),
        (.., Some(index), _) if index.is_valid() => of_index(s, index),
        (.., Some(namespace)) => match s.text(1) {
            Some(name) => s.catalog.constraints_by_name(namespace, name).collect(),
            None => s.catalog.constraints_in(namespace).collect(),
        },
        _ => s.catalog.constraints().collect(),
    };
    for constraint in constraints {
        push(constraint, out);
    }
}

/// The constraint that an index is a part of, and the foreign keys that refer to the index's table by it.
fn of_index<'a>(s: &GeneratorInput<'a>, index: Oid) -> Vec<&'a Arc<Constraint>> {
    if index.0 < classes::FIRST_USER_OID {
        // Indexes of system relations do not know their constraints, which are the first.
        return s.catalog.constraints().take_while(|c| c.oid.0 < classes::FIRST_USER_OID).collect();
    }
    let Some(info) = s.catalog.relation(index).and_then(|r| r.index.as_ref()) else { return Vec::new() };
    let mut found = s.catalog.referencing_constraints(info.table);
    found.extend(s.catalog.constraint(info.constraint));
    found.sort_by_key(|c| c.oid);
    found
}

fn letter(kind: ConstraintKind) -> u8 {
    match kind {
        ConstraintKind::Check => b'c',
        ConstraintKind::ForeignKey => b'f',
        ConstraintKind::NotNull => b'n',
        ConstraintKind::PrimaryKey => b'p',
        ConstraintKind::Unique => b'u',
        ConstraintKind::Exclusion => b'x',
        ConstraintKind::Trigger => b't',
    }
}

/// Keys are never inherited, whether NO INHERIT was written or not.
fn is_key(kind: ConstraintKind) -> bool {
    use ConstraintKind::*;
    matches!(kind, PrimaryKey | Unique | Exclusion | ForeignKey)
}

fn push(c: &Constraint, out: &mut RelationRows<'_>) {
    let key = c.foreign_key.as_deref();
    let operators = |k: &ForeignKeyInfo| oids_or_null(&k.operators);
    let key_operators = || key.map_or(Datum::Null, operators);
    push!(
        out,
        [
            oid(c.oid),
            text(&c.name),
            oid(c.namespace),
            char(letter(c.kind)),
            bool(c.deferrable),
            bool(c.initially_deferred),
            bool(c.enforced),
            bool(c.validated),
            oid(c.relation),
            oid(c.domain),
            oid(c.index),
            oid(c.parent),
            oid(key.map_or(Oid::INVALID, |k| k.referenced_table)),
            char(key.map_or(b' ', |k| k.on_update)),
            char(key.map_or(b' ', |k| k.on_delete)),
            char(key.map_or(b' ', |k| k.match_type)),
            bool(c.local),
            Datum::Int2(c.inherited),
            bool(c.no_inherit || (is_key(c.kind) && c.kind != ConstraintKind::ForeignKey && !c.parent.is_valid())),
            bool(c.is_without_overlaps() || key.is_some_and(ForeignKeyInfo::has_period)),
            int2s_or_null(&c.columns),
            key.map_or(Datum::Null, |k| int2s_or_null(&k.referenced_columns)),
            key_operators(),
            key_operators(),
            key_operators(),
            key.map_or(Datum::Null, |k| int2s_or_null(&k.delete_set_columns)),
            oids_or_null(&c.operators),
            text_or_null(&c.expression),
        ]
    );
}

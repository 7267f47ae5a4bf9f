//! Takes single objects out of the catalog; those that depend on them are gone already.

use std::sync::Arc;

use melba_catalog::{
    Catalog, Column, Constraint, Constraint as Row, ConstraintKind, DomainInfo, ForeignTable, Object, ObjectAddress, Operator,
    Relation, RelationKind, Storage, Type, classes,
};
use melba_definition::context::Ddl;
use melba_engine::RelationLockMode;
use melba_types::{Oid, Result};

use crate::family_lock::lock_family;
use crate::table::relation::put_relation;
use crate::table::rows::release_column;
use crate::table::truncate::refuse_pending_events;
use crate::trigger::remove_trigger;

/// Keeps the column's place and removes all else of it.
pub fn mark_column_dropped(ddl: &Ddl<'_>, table: Oid, number: i32) -> Result<()> {
    let relation = ddl.relation(table)?;
    let mut columns = relation.columns.to_vec();
    let at = number as usize - 1;
    release_column(ddl, &relation, at)?;
    let name = format!("........pg.dropped.{number}........");
    columns[at] = Column {
        name: name.into(),
        dropped: true,
        not_null: false,
        default: None,
        default_oid: Oid::INVALID,
        default_depends_on: vec![],
        generated: 0,
        identity: 0,
        ty: Oid::INVALID,
        acl: None,
        ..columns[at].clone()
    };
    let foreign = relation.foreign.as_ref().map(|table| {
        let columns = table.columns.iter().filter(|c| i32::from(c.column) != number).cloned().collect();
        Arc::new(ForeignTable { columns, ..(**table).clone() })
    });
    put_relation(ddl, Relation { columns: columns.into(), foreign, ..(*relation).clone() });
    Ok(())
}

/// Drops a constraint and its implementation.
pub fn drop_constraint_row(ddl: &Ddl<'_>, constraint: &Row) -> Result<()> {
    if constraint.relation.is_valid() {
        let relation = ddl.relation(constraint.relation)?;
        let mut next = (*relation).clone();
        next.constraints.retain(|c| *c != constraint.oid);
        if constraint.kind == ConstraintKind::NotNull
            && let Some(column) = constraint.columns.first()
        {
            let mut columns = next.columns.to_vec();
            columns[*column as usize - 1].not_null = false;
            next.columns = columns.into();
        }
        put_relation(ddl, next);
        if matches!(constraint.kind, ConstraintKind::PrimaryKey | ConstraintKind::Unique | ConstraintKind::Exclusion) {
            drop_index_storage(ddl, constraint.index)?;
        }
    }
    ddl.tx().remove(ObjectAddress { class: classes::PG_CONSTRAINT, object: constraint.oid, sub: 0 });
    Ok(())
}

/// Forgets one object and its storage.
pub fn remove_object(ddl: &Ddl<'_>, address: ObjectAddress) -> Result<()> {
    let catalog = ddl.catalog();
    match address.class {
        classes::PG_CLASS if address.sub != 0 => {
            if catalog.relation(address.object).is_some() {
                mark_column_dropped(ddl, address.object, address.sub)?;
            }
            return Ok(());
        }
        classes::PG_CLASS => {
            let Some(relation) = catalog.relation(address.object) else { return Ok(()) };
            ddl.lock_relation(address.object, RelationLockMode::AccessExclusive)?;
            if matches!(relation.kind, RelationKind::Index | RelationKind::PartitionedIndex) {
                return drop_index_storage(ddl, address.object);
            }
            refuse_pending_events(ddl, relation, "DROP TABLE")?;
            match relation.storage {
                Storage::Tree(tree) => ddl.tx().engine.drop_tree(tree)?,
                Storage::Sequence(sequence) => ddl.tx().engine.drop_sequence(melba_engine::SequenceId(sequence.0))?,
                Storage::None | Storage::System(_) | Storage::Toast(_) => {}
            }
            if relation.row_type.is_valid() {
                remove_type(ddl, &catalog, relation.row_type);
            }
        }
        classes::PG_CONSTRAINT => {
            if let Some(constraint) = catalog.constraint(address.object) {
                // A table that is dropped too has already dropped its lists.
                if constraint.relation.is_valid() && catalog.relation(constraint.relation).is_some() {
                    return drop_constraint_row(ddl, constraint);
                }
                remove_from_domain(ddl, &catalog, constraint);
            }
        }
        classes::PG_TRIGGER => return remove_trigger(ddl, address.object),
        classes::PG_OPERATOR => unlink_operator(ddl, address.object),
        classes::PG_ATTRDEF => return remove_default(ddl, &catalog, address.object),
        classes::PG_TYPE => {
            remove_type(ddl, &catalog, address.object);
            return Ok(());
        }
        classes::PG_AMOP | classes::PG_AMPROC => {
            return remove_member(ddl, address);
        }
        // Those of an extension belong to the process: their visible parts are dropped with the extension.
        classes::PG_OPCLASS | classes::PG_OPFAMILY if address.object.0 >= classes::FIRST_EXTENSION_OID => return Ok(()),
        _ => {}
    }
    ddl.tx().remove(address);
    Ok(())
}

fn remove_type(ddl: &Ddl<'_>, catalog: &Catalog, oid: Oid) {
    if let Some(ty) = catalog.type_(oid)
        && ty.array.is_valid()
    {
        ddl.tx().remove(ObjectAddress { class: classes::PG_TYPE, object: ty.array, sub: 0 });
    }
    ddl.tx().remove(ObjectAddress { class: classes::PG_TYPE, object: oid, sub: 0 });
}

/// A domain that stays forgets the constraint.
fn remove_from_domain(ddl: &Ddl<'_>, catalog: &Catalog, constraint: &Constraint) {
    if let Some(ty) = catalog.type_(constraint.domain)
        && let Some(info) = &ty.domain
    {
        let constraints = info.constraints.iter().copied().filter(|c| *c != constraint.oid).collect();
        let domain = Some(Arc::new(DomainInfo { constraints, ..(**info).clone() }));
        ddl.tx().put(Object::Type(Arc::new(Type { domain, ..(**ty).clone() })));
    }
}

fn remove_default(ddl: &Ddl<'_>, catalog: &Catalog, default: Oid) -> Result<()> {
    if let Some(relation) = catalog.relation_of_part(default) {
        let columns = relation.columns.iter().map(|c| match c.default_oid == default {
            true => Column { default: None, default_oid: Oid::INVALID, default_depends_on: vec![], ..c.clone() },
            false => c.clone(),
        });
        put_relation(ddl, Relation { columns: columns.collect(), ..(**relation).clone() });
    }
    Ok(())
}

/// Removes an index from its table and drops its storage.
pub fn drop_index_storage(ddl: &Ddl<'_>, oid: Oid) -> Result<()> {
    // It may have been dropped with its table already.
    let Some(index) = ddl.catalog().relation(oid).cloned() else { return Ok(()) };
    if let Storage::Tree(tree) = index.storage {
        ddl.tx().engine.drop_tree(tree)?;
    }
    ddl.tx().remove(ObjectAddress { class: classes::PG_CLASS, object: oid, sub: 0 });
    Ok(())
}

/// Removes the links of other operators to a dropped one.
pub fn unlink_operator(ddl: &Ddl<'_>, oid: Oid) {
    let catalog = ddl.catalog();
    let Some(gone) = catalog.operator(oid) else { return };
    for other in [gone.commutator, gone.negator].into_iter().filter(|other| *other != oid) {
        if let Some(row) = catalog.operator(other) {
            let without = |link: Oid| if link == oid { Oid::INVALID } else { link };
            let (commutator, negator) = (without(row.commutator), without(row.negator));
            ddl.tx().put(Object::Operator(Arc::new(Operator { commutator, negator, ..(**row).clone() })));
        }
    }
}

/// Takes an operator or function out of its family.
fn remove_member(ddl: &Ddl<'_>, member: ObjectAddress) -> Result<()> {
    let catalog = ddl.catalog();
    let Some(family) = catalog.family_of_member(member.object) else { return Ok(()) };
    let mut family = (*lock_family(ddl, family)?).clone();
    family.operators.retain(|m| m.oid != member.object);
    family.functions.retain(|m| m.oid != member.object);
    ddl.tx().put(Object::OperatorFamily(Arc::new(family)));
    Ok(())
}

//! ALTER ... SET SCHEMA.

use std::sync::Arc;

use melba_analyze::operator_signature;
use melba_catalog::{Constraint, Object, ObjectAddress, Operator, Relation, RelationKind, Type, classes};
use melba_definition::context::Ddl;
use melba_definition::special_schema::refuse_special_schema;
use melba_definition::words::check_kind;
use melba_relation::operator_class::{is_placed, move_placed};
use melba_relation::sequence::owned_sequence;
use melba_relation::statistics::alter::move_statistics;
use melba_relation::stored_text::{rewriting_dependents, rewriting_users_of};
use melba_relation::table::relation::put_relation;
use melba_routine::array::array_type_name;
use melba_routine::find::RoutineName;
use melba_routine::operator::{named_operator, operator_in};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::{AlterObjectSchemaStmt, ObjectType};

use crate::alter_routine::move_routine;
use crate::collation::move_collation;
use crate::extension::move_extension;
use crate::plain::move_plain;
use crate::rename::refuse_type_of_other;
use crate::text_search::{is_text_search, move_text_search};
use crate::types::named::{open_type, require_defined};

pub fn alter_schema(ddl: &Ddl<'_>, s: &AlterObjectSchemaStmt) -> Result<()> {
    match s.object_type() {
        kind @ (ObjectType::ObjectTable
        | ObjectType::ObjectView
        | ObjectType::ObjectSequence
        | ObjectType::ObjectMatview
        | ObjectType::ObjectForeignTable) => {
            let name = s.relation.as_ref().ok_or_else(|| DbError::internal("ALTER without a name"))?;
            if s.missing_ok && ddl.find_relation(name)?.is_none() {
                ddl.notice(format!("relation \"{}\" does not exist, skipping", name.relname));
                return Ok(());
            }
            let relation = ddl.open_target(name)?;
            check_movable(ddl, kind, &relation)?;
            let target = ddl.namespace_for_creation(Some(&s.newschema))?;
            refuse_special_schema(ddl, relation.namespace, target)?;
            move_relation(ddl, &relation, target)
        }
        kind @ (ObjectType::ObjectType | ObjectType::ObjectDomain) => {
            let ty = open_type(ddl, s.object.as_deref())?;
            require_defined(ddl, &ty)?;
            let target = ddl.namespace_for_creation(Some(&s.newschema))?;
            ddl.require_type_owner(&ty)?;
            if kind == ObjectType::ObjectDomain && ty.domain.is_none() {
                bail!(WRONG_OBJECT_TYPE, "{} is not a domain", ddl.catalog().type_name(ty.oid, ddl.path()));
            }
            refuse_type_of_other(ddl, &ty, "type")?;
            refuse_special_schema(ddl, ty.namespace, target)?;
            move_named_type(ddl, &ty, target)
        }
        ObjectType::ObjectExtension => {
            let name = s.object.as_deref().and_then(melba_parse::nodes::string).unwrap_or_default();
            move_extension(ddl, name, &s.newschema)
        }
        ObjectType::ObjectStatisticExt => move_statistics(ddl, s.object.as_deref(), &s.newschema),
        ObjectType::ObjectCollation => move_collation(ddl, s.object.as_deref(), &s.newschema),
        kind if is_text_search(kind) => move_text_search(ddl, kind, s.object.as_deref(), &s.newschema),
        kind if is_placed(kind) => move_placed(ddl, kind, s.object.as_deref(), &s.newschema),
        ObjectType::ObjectOperator => {
            let operator = named_operator(ddl, s.object.as_deref())?;
            move_operator(ddl, &operator, &s.newschema)
        }
        kind if RoutineName::is_routine(kind) => move_routine(ddl, kind, s.object.as_deref(), &s.newschema),
        kind => move_plain(ddl, kind, s.object.as_deref(), &s.newschema),
    }
}

fn check_movable(ddl: &Ddl<'_>, kind: ObjectType, relation: &Relation) -> Result<()> {
    ddl.require_own_relation(relation)?;
    let cannot = |what: &str, hint: &str| {
        Err(err!(WRONG_OBJECT_TYPE, "cannot change schema of {what} \"{}\"", relation.name).hint(hint.to_owned()))
    };
    check_kind(kind, relation)?;
    match relation.kind {
        RelationKind::Index | RelationKind::PartitionedIndex => cannot("index", "Change the schema of the table instead."),
        RelationKind::Composite => cannot("composite type", "Use ALTER TYPE instead."),
        _ => refuse_owned_sequence(ddl, relation),
    }
}

/// A sequence is in the schema of its column's table.
fn refuse_owned_sequence(ddl: &Ddl<'_>, relation: &Relation) -> Result<()> {
    let catalog = ddl.catalog();
    let owner = relation.sequence.as_ref().and_then(|s| s.owned_by).and_then(|(table, _)| catalog.relation(table));
    match owner {
        Some(table) => Err(err!(FEATURE_NOT_SUPPORTED, "cannot move an owned sequence into another schema")
            .detail(format!("Sequence \"{}\" is linked to table \"{}\".", relation.name, table.name))),
        None => Ok(()),
    }
}

fn move_relation(ddl: &Ddl<'_>, relation: &Relation, target: Oid) -> Result<()> {
    if relation.namespace == target {
        return Ok(());
    }
    let catalog = ddl.catalog();
    let schema = catalog.namespace(target).map_or("", |n| &n.name);
    if catalog.relation_by_name(target, &relation.name).is_some() {
        bail!(DUPLICATE_TABLE, "relation \"{}\" already exists in schema \"{schema}\"", relation.name);
    }
    if relation.row_type.is_valid() && catalog.type_by_name(target, &relation.name).is_some() {
        bail!(DUPLICATE_OBJECT, "type \"{}\" already exists in schema \"{schema}\"", relation.name);
    }
    rewriting_dependents(ddl, relation.oid, || {
        let catalog = ddl.catalog();
        put_relation(ddl, Relation { namespace: target, ..relation.clone() });
        for index in relation.indexes.iter().filter_map(|i| catalog.relation(*i)) {
            put_relation(ddl, Relation { namespace: target, ..(**index).clone() });
        }
        relation.constraints.iter().for_each(|c| move_constraint(ddl, *c, target));
        if let Some(ty) = catalog.type_(relation.row_type) {
            put_moved_type(ddl, ty, target);
        }
        for column in relation.columns.iter().filter(|c| !c.dropped) {
            if let Some(sequence) = owned_sequence(ddl, relation, &column.name) {
                put_relation(ddl, Relation { namespace: target, ..(*sequence).clone() });
            }
        }
        Ok(())
    })
}

fn move_named_type(ddl: &Ddl<'_>, ty: &Type, target: Oid) -> Result<()> {
    if ty.namespace == target {
        return Ok(());
    }
    let catalog = ddl.catalog();
    if let Some(relation) = catalog.relation(ty.relation) {
        return move_relation(ddl, relation, target);
    }
    if catalog.type_by_name(target, &ty.name).is_some() {
        let schema = catalog.namespace(target).map_or("", |n| &n.name);
        bail!(DUPLICATE_OBJECT, "type \"{}\" already exists in schema \"{schema}\"", ty.name);
    }
    let address = ObjectAddress { class: classes::PG_TYPE, object: ty.oid, sub: 0 };
    rewriting_users_of(ddl, address, || {
        put_moved_type(ddl, ty, target);
        ty.domain.iter().flat_map(|d| &d.constraints).for_each(|c| move_constraint(ddl, *c, target));
        Ok(())
    })
}

/// A type and its array type.
fn put_moved_type(ddl: &Ddl<'_>, ty: &Type, target: Oid) {
    ddl.tx().put(Object::Type(Arc::new(Type { namespace: target, ..ty.clone() })));
    let catalog = ddl.catalog();
    if let Some(array) = catalog.type_(ty.array) {
        let name = array_type_name(ddl, &ty.name, target).into();
        ddl.tx().put(Object::Type(Arc::new(Type { namespace: target, name, ..(**array).clone() })));
    }
}

fn move_constraint(ddl: &Ddl<'_>, constraint: Oid, target: Oid) {
    if let Some(constraint) = ddl.catalog().constraint(constraint) {
        ddl.tx().put(Object::Constraint(Arc::new(Constraint { namespace: target, ..(**constraint).clone() })));
    }
}

fn move_operator(ddl: &Ddl<'_>, operator: &Operator, schema: &str) -> Result<()> {
    let target = ddl.namespace_for_creation(Some(schema))?;
    ddl.require_owner(operator.owner, "operator", &operator.name)?;
    if target == operator.namespace {
        return Ok(());
    }
    refuse_special_schema(ddl, operator.namespace, target)?;
    if operator_in(ddl, target, &operator.name, operator.left, operator.right).is_some() {
        let shown = ddl.with_context(|c| Ok(operator_signature(c, operator)))?;
        bail!(DUPLICATE_FUNCTION, "operator {shown} already exists in schema \"{schema}\"");
    }
    let address = ObjectAddress { class: classes::PG_OPERATOR, object: operator.oid, sub: 0 };
    rewriting_users_of(ddl, address, || {
        ddl.tx().put(Object::Operator(Arc::new(Operator { namespace: target, ..operator.clone() })));
        Ok(())
    })
}

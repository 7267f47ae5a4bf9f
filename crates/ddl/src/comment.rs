//! COMMENT ON.

use std::sync::Arc;

use melba_catalog::{Description, Object, ObjectAddress, ObjectChange, RelationKind, classes};
use melba_definition::context::Ddl;
use melba_definition::naming::range_var;
use melba_definition::words::{check_kind, plural, relation_word};
use melba_parse::nodes::{string, strings};
use melba_relation::constraint::row::column_numbers;
use melba_relation::operator_class::{find_placed, is_placed};
use melba_relation::policy::commented_policy;
use melba_relation::rule::commented_rule;
use melba_relation::statistics::alter::find_statistics;
use melba_relation::trigger::commented_trigger;
use melba_routine::find::RoutineName;
use melba_routine::operator::find_operator;
use melba_types::{DbError, Result, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{CommentStmt, Node, ObjectType};

use crate::alter_routine::commented_routine;
use crate::collation::find_collation;
use crate::database::database_by_name;
use crate::event_trigger::find_event_trigger;
use crate::extension::owned_extension;
use crate::foreign::{find_foreign, is_foreign};
use crate::large_object::commented_large_object;
use crate::plain::commented_plain;
use crate::publication::find_publication;
use crate::text_search::{find_text_search, is_text_search};
use crate::types::cast::find_cast;
use crate::types::domain::{domain_by_name, domain_constraint_by_name};
use crate::types::named::named_type;

fn is_named_as_dropped(kind: ObjectType) -> bool {
    let kinds = [
        ObjectType::ObjectCast,
        ObjectType::ObjectOperator,
        ObjectType::ObjectOpclass,
        ObjectType::ObjectOpfamily,
        ObjectType::ObjectCollation,
        ObjectType::ObjectTsconfiguration,
        ObjectType::ObjectTsdictionary,
        ObjectType::ObjectStatisticExt,
        ObjectType::ObjectEventTrigger,
        ObjectType::ObjectPublication,
        ObjectType::ObjectFdw,
        ObjectType::ObjectForeignServer,
    ];
    kinds.contains(&kind)
}

pub fn comment(ddl: &Ddl<'_>, s: &CommentStmt) -> Result<()> {
    let address = addressed(ddl, s.objtype(), s.object.as_deref())?;
    if s.comment.is_empty() {
        ddl.tx().change(ObjectChange::RemoveDescription(address));
    } else {
        ddl.tx().put(Object::Description(Arc::new(Description { address, text: s.comment.as_str().into() })));
    }
    Ok(())
}

/// The object that DROP finds by the same name.
fn commented_as_dropped(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>) -> Result<ObjectAddress> {
    let object = object.ok_or_else(|| DbError::internal("COMMENT ON nothing"))?;
    let found = match kind {
        ObjectType::ObjectCast => find_cast(ddl, Some(object), false)?,
        ObjectType::ObjectCollation => find_collation(ddl, object, false)?,
        _ if is_text_search(kind) => find_text_search(ddl, kind, object, false)?,
        _ if is_placed(kind) => find_placed(ddl, kind, object, false)?,
        ObjectType::ObjectEventTrigger => find_event_trigger(ddl, object, false)?,
        ObjectType::ObjectPublication => find_publication(ddl, object, false)?,
        _ if is_foreign(kind) => find_foreign(ddl, kind, object, false)?,
        ObjectType::ObjectStatisticExt => find_statistics(ddl, object, false)?,
        _ => find_operator(ddl, object, false)?,
    };
    found.ok_or_else(|| DbError::internal("COMMENT ON what is not there"))
}

fn commented_constraint(ddl: &Ddl<'_>, names: &[&str]) -> Result<ObjectAddress> {
    let [table @ .., name] = names else {
        bail!(SYNTAX_ERROR, "constraint name must be qualified");
    };
    let catalog = ddl.catalog();
    let relation = ddl.open_target(&range_var(table)?)?;
    ddl.require_owner(relation.owner, "relation", &relation.name)?;
    let found = relation.constraints.iter().filter_map(|c| catalog.constraint(*c)).find(|c| *c.name == **name);
    let found =
        found.ok_or_else(|| err!(UNDEFINED_OBJECT, "constraint \"{name}\" for table \"{}\" does not exist", relation.name))?;
    Ok(ObjectAddress { class: classes::PG_CONSTRAINT, object: found.oid, sub: 0 })
}

fn commented_domain_constraint(ddl: &Ddl<'_>, object: Option<&Node>) -> Result<ObjectAddress> {
    let parts = match object.and_then(|n| n.node.as_ref()) {
        Some(N::List(list)) => &list.items[..],
        _ => &[],
    };
    let [domain, name] = parts else { return Err(DbError::internal("a constraint without its domain")) };
    let names = match &domain.node {
        Some(N::TypeName(name)) => strings(&name.names),
        _ => vec![],
    };
    let domain = domain_by_name(ddl, &names)?;
    ddl.require_type_owner(&domain)?;
    let found = domain_constraint_by_name(ddl, &domain, string(name).unwrap_or_default())?;
    Ok(ObjectAddress { class: classes::PG_CONSTRAINT, object: found.oid, sub: 0 })
}

/// The object that a statement names, which belongs to the user.
pub fn addressed(ddl: &Ddl<'_>, kind: ObjectType, object: Option<&Node>) -> Result<ObjectAddress> {
    let names = match object.and_then(|n| n.node.as_ref()) {
        Some(N::List(list)) => strings(&list.items),
        Some(N::TypeName(name)) => strings(&name.names),
        _ => object.and_then(string).into_iter().collect(),
    };
    let (catalog, at) = (ddl.catalog(), |class, object| ObjectAddress { class, object, sub: 0 });
    match kind {
        kind @ (ObjectType::ObjectTable
        | ObjectType::ObjectView
        | ObjectType::ObjectMatview
        | ObjectType::ObjectSequence
        | ObjectType::ObjectForeignTable
        | ObjectType::ObjectIndex) => {
            let relation = ddl.open_target(&range_var(&names)?)?;
            ddl.require_owner(relation.owner, relation_word(relation.kind), &relation.name)?;
            let is_table = matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable);
            if kind == ObjectType::ObjectTable && !is_table {
                bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", relation.name);
            }
            check_kind(kind, &relation)?;
            Ok(at(classes::PG_CLASS, relation.oid))
        }
        ObjectType::ObjectColumn => commented_column(ddl, &names),
        ObjectType::ObjectPolicy => commented_policy(ddl, &names),
        ObjectType::ObjectRule => commented_rule(ddl, &names),
        kind if is_named_as_dropped(kind) => commented_as_dropped(ddl, kind, object),
        ObjectType::ObjectLargeobject => commented_large_object(ddl, object),
        ObjectType::ObjectSchema => {
            let namespace = ddl.namespace(names.first().unwrap_or(&""))?;
            ddl.require_owner(namespace.owner, "schema", &namespace.name)?;
            Ok(at(classes::PG_NAMESPACE, namespace.oid))
        }
        ObjectType::ObjectExtension => owned_extension(ddl, names.first().unwrap_or(&"")),
        ObjectType::ObjectDatabase => {
            let database = database_by_name(ddl, names.first().unwrap_or(&""))?;
            ddl.require_owner(database.owner, "database", &database.name)?;
            Ok(at(classes::PG_DATABASE, database.oid))
        }
        ObjectType::ObjectRole => {
            let name = names.first().copied().unwrap_or_default();
            let role = catalog.role_by_name(name);
            let role = role.ok_or_else(|| err!(UNDEFINED_OBJECT, "role \"{name}\" does not exist"))?;
            ddl.require_role_manager(role)?;
            Ok(at(classes::PG_AUTHID, role.oid))
        }
        kind @ (ObjectType::ObjectType | ObjectType::ObjectDomain) => {
            let ty = named_type(ddl, object)?;
            if kind == ObjectType::ObjectDomain && ty.domain.is_none() {
                bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a domain", catalog.type_name(ty.oid, ddl.path()));
            }
            ddl.require_type_owner(&ty)?;
            Ok(at(classes::PG_TYPE, ty.oid))
        }
        ObjectType::ObjectTabconstraint => commented_constraint(ddl, &names),
        ObjectType::ObjectDomconstraint => commented_domain_constraint(ddl, object),
        ObjectType::ObjectTrigger => commented_trigger(ddl, &names),
        kind if RoutineName::is_routine(kind) => commented_routine(ddl, kind, object),
        kind => commented_plain(ddl, kind, object),
    }
}

fn commented_column(ddl: &Ddl<'_>, names: &[&str]) -> Result<ObjectAddress> {
    let [table @ .., column] = names else {
        bail!(SYNTAX_ERROR, "column name must be qualified");
    };
    let relation = ddl.open_target(&range_var(table)?)?;
    ddl.require_owner(relation.owner, "relation", &relation.name)?;
    if matches!(relation.kind, RelationKind::Index | RelationKind::PartitionedIndex | RelationKind::Sequence) {
        return Err(err!(WRONG_OBJECT_TYPE, "cannot set comment on relation \"{}\"", relation.name)
            .detail(format!("This operation is not supported for {}.", plural(relation.kind))));
    }
    let number = column_numbers(&relation, &[column], false)?[0];
    Ok(ObjectAddress { class: classes::PG_CLASS, object: relation.oid, sub: number.into() })
}

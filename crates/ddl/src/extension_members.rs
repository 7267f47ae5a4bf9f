//! ALTER EXTENSION ... ADD and DROP, and ALTER ... DEPENDS ON EXTENSION.

use std::sync::Arc;

use melba_catalog::identity::{describe, object_kind};
use melba_catalog::{Extension, Function, Object, ObjectAddress, Relation, Trigger, classes};
use melba_definition::context::Ddl;
use melba_types::{DbError, Result, bail};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{self, AlterExtensionContentsStmt, AlterObjectDependsStmt, Node, ObjectType};

use crate::comment::addressed;
use crate::extension::find_extension;

/// Kinds of objects that are no members of extensions.
const NO_MEMBERS: [ObjectType; 9] = [
    ObjectType::ObjectDatabase,
    ObjectType::ObjectExtension,
    ObjectType::ObjectIndex,
    ObjectType::ObjectPublication,
    ObjectType::ObjectRole,
    ObjectType::ObjectStatisticExt,
    ObjectType::ObjectSubscription,
    ObjectType::ObjectTablespace,
    ObjectType::ObjectParameterAcl,
];

pub fn change_members(ddl: &Ddl<'_>, s: &AlterExtensionContentsStmt) -> Result<()> {
    let extension = find_extension(ddl, &s.extname)?;
    ddl.require_owner(extension.owner, "extension", &s.extname)?;
    if NO_MEMBERS.contains(&s.objtype()) {
        bail!(INVALID_OBJECT_DEFINITION, "cannot add an object of this type to an extension");
    }
    let member = addressed(ddl, s.objtype(), s.object.as_deref())?;
    let catalog = ddl.catalog();
    let described = describe(&catalog, ddl.path(), member).unwrap_or_default();
    let mut members = extension.members.clone();
    if s.action > 0 {
        if let Some(of) = catalog.extension_of(member) {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{described} is already a member of extension \"{}\"", of.name);
        }
        if member.class == classes::PG_NAMESPACE && member.object == extension.namespace {
            let (schema, name) = (described.trim_start_matches("schema "), &extension.name);
            bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "cannot add schema \"{schema}\" to extension \"{name}\" because the schema contains the extension"
            );
        }
        if member.object.0 < classes::FIRST_USER_OID {
            let kind = object_kind(&catalog, member).unwrap_or_default();
            return Err(DbError::unsupported(format!("a built-in {kind} as a member of an extension")));
        }
        members.push(member);
    } else {
        if !members.contains(&member) {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{described} is not a member of extension \"{}\"", extension.name);
        }
        members.retain(|other| *other != member);
    }
    ddl.tx().put(Object::Extension(Arc::new(Extension { members, ..(*extension).clone() })));
    Ok(())
}

pub fn depend_on_extension(ddl: &Ddl<'_>, s: &AlterObjectDependsStmt) -> Result<()> {
    let dependent = addressed(ddl, s.object_type(), dependent_node(s).as_ref())?;
    let name = s.extname.as_ref().map_or("", |name| &name.sval);
    let extension = ObjectAddress { class: classes::PG_EXTENSION, object: find_extension(ddl, name)?.oid, sub: 0 };
    let changed = |old: &[ObjectAddress]| {
        let mut all: Vec<ObjectAddress> = old.iter().filter(|of| **of != extension).copied().collect();
        all.extend((!s.remove).then_some(extension));
        all
    };
    let object = match ddl.catalog().object(dependent) {
        Some(Object::Function(o)) => Object::Function(Arc::new(Function { depends_on: changed(&o.depends_on), ..(*o).clone() })),
        Some(Object::Relation(o)) => Object::Relation(Arc::new(Relation { depends_on: changed(&o.depends_on), ..(*o).clone() })),
        Some(Object::Trigger(o)) => Object::Trigger(Arc::new(Trigger { depends_on: changed(&o.depends_on), ..(*o).clone() })),
        _ => return Err(DbError::internal("an object of a kind that depends on no extension")),
    };
    ddl.tx().put(object);
    Ok(())
}

/// The names of the object as COMMENT has them: those of a table before that of its trigger.
fn dependent_node(s: &AlterObjectDependsStmt) -> Option<Node> {
    let Some(relation) = &s.relation else { return s.object.as_deref().cloned() };
    let names = [&relation.schemaname, &relation.relname].into_iter().filter(|name| !name.is_empty());
    let mut items: Vec<Node> =
        names.map(|name| Node { node: Some(N::String(protobuf::String { sval: name.clone() })) }).collect();
    if let Some(N::List(own)) = s.object.as_ref().and_then(|object| object.node.as_ref()) {
        items.extend(own.items.iter().cloned());
    }
    Some(Node { node: Some(N::List(protobuf::List { items })) })
}

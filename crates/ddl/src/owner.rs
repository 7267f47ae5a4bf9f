//! ALTER ... OWNER TO of any kind of object.

use std::sync::Arc;

use melba_catalog::{Database, Namespace, Object, Relation, RelationKind, Type, TypeKind, acl};
use melba_definition::context::Ddl;
use melba_parse::nodes::string;
use melba_relation::operator_class::{is_placed, own_placed};
use melba_relation::statistics::alter::{give_statistics, named_statistics};
use melba_relation::table::relation::put_relation;
use melba_routine::find::RoutineName;
use melba_routine::operator::{give_operator, named_operator};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::{AlterOwnerStmt, ObjectType};

use crate::alter_routine::alter_routine_owner;
use crate::collation::{give_collation, named_collation};
use crate::database::{database_by_name, may_create_databases};
use crate::event_trigger::{give_event_trigger, named_event_trigger};
use crate::foreign::{is_foreign, own_foreign};
use crate::large_object::alter_large_object_owner;
use crate::plain::own_plain;
use crate::privileges::acl::given;
use crate::publication::{give_publication, named_publication};
use crate::rename::refuse_type_of_other;
use crate::text_search::{is_text_search, own_text_search};
use crate::types::named::open_type;

pub fn alter_owner(ddl: &Ddl<'_>, s: &AlterOwnerStmt) -> Result<()> {
    let spec = s.newowner.as_ref().ok_or_else(|| DbError::internal("OWNER TO without a role"))?;
    let owner = ddl.role_spec(spec)?;
    let object = s.object.as_deref();
    match s.object_type() {
        ObjectType::ObjectSchema => {
            let name = object.and_then(string).unwrap_or_default();
            let namespace = ddl.namespace(name)?;
            ddl.require_owner(namespace.owner, "schema", name)?;
            give_schema(ddl, &namespace, owner)
        }
        ObjectType::ObjectLargeobject => alter_large_object_owner(ddl, object, owner),
        ObjectType::ObjectDatabase => {
            let name = object.and_then(string).unwrap_or_default();
            let database = database_by_name(ddl, name)?;
            ddl.require_owner(database.owner, "database", name)?;
            ddl.check_new_owner(database.owner, owner, None)?;
            if database.owner != owner && !may_create_databases(ddl) {
                bail!(INSUFFICIENT_PRIVILEGE, "permission denied to change owner of database");
            }
            give_database(ddl, &database, owner);
            Ok(())
        }
        ObjectType::ObjectType | ObjectType::ObjectDomain => {
            let ty = open_type(ddl, object)?;
            ddl.require_type_owner(&ty)?;
            refuse_type_of_other(ddl, &ty, "type")?;
            refuse_multirange(ddl, &ty)?;
            ddl.check_new_owner(ty.owner, owner, Some(ty.namespace))?;
            give_type(ddl, &ty, owner);
            Ok(())
        }
        kind if is_foreign(kind) => own_foreign(ddl, kind, object, owner),
        ObjectType::ObjectPublication => give_publication(ddl, &*named_publication(ddl, object)?, owner),
        ObjectType::ObjectEventTrigger => give_event_trigger(ddl, &*named_event_trigger(ddl, object)?, owner),
        ObjectType::ObjectStatisticExt => give_statistics(ddl, &*named_statistics(ddl, object)?, owner),
        ObjectType::ObjectCollation => give_collation(ddl, &*named_collation(ddl, object)?, owner),
        kind if is_text_search(kind) => own_text_search(ddl, kind, object, owner),
        kind if is_placed(kind) => own_placed(ddl, kind, object, owner),
        ObjectType::ObjectOperator => {
            let operator = named_operator(ddl, object)?;
            ddl.require_owner(operator.owner, "operator", &operator.name)?;
            give_operator(ddl, &operator, owner)
        }
        kind if RoutineName::is_routine(kind) => alter_routine_owner(ddl, kind, object, owner),
        kind => own_plain(ddl, kind, object, owner),
    }
}

/// # Errors
/// 42501 when the user may not give it to that role.
pub fn give_schema(ddl: &Ddl<'_>, namespace: &Namespace, owner: Oid) -> Result<()> {
    ddl.check_new_owner(namespace.owner, owner, None)?;
    if namespace.owner != owner {
        ddl.require_database(acl::CREATE)?;
    }
    let acl = given(&namespace.acl, namespace.owner, owner);
    ddl.tx().put(Object::Namespace(Arc::new(Namespace { owner, acl, ..namespace.clone() })));
    Ok(())
}

/// It belongs to whom its range type belongs.
fn refuse_multirange(ddl: &Ddl<'_>, ty: &Type) -> Result<()> {
    let catalog = ddl.catalog();
    match ty.range.as_ref().filter(|_| ty.type_kind == TypeKind::Multirange) {
        Some(info) => {
            let [own, range] = [ty.oid, info.range].map(|oid| catalog.type_name(oid, ddl.path()));
            Err(err!(WRONG_OBJECT_TYPE, "cannot alter multirange type {own}")
                .hint(format!("You can alter type {range}, which will alter the multirange type as well.")))
        }
        None => Ok(()),
    }
}

pub fn give_database(ddl: &Ddl<'_>, database: &Database, owner: Oid) {
    let acl = given(&database.acl, database.owner, owner);
    ddl.tx().put(Object::Database(Arc::new(Database { owner, acl, ..database.clone() })));
}

/// A type and its array type get another owner; of a range type, its multirange type, of a composite type, the relation with its
/// columns, too.
pub fn give_type(ddl: &Ddl<'_>, ty: &Type, owner: Oid) {
    let catalog = ddl.catalog();
    let acl = given(&ty.acl, ty.owner, owner);
    ddl.tx().put(Object::Type(Arc::new(Type { owner, acl, ..ty.clone() })));
    if let Some(array) = catalog.type_(ty.array) {
        ddl.tx().put(Object::Type(Arc::new(Type { owner, ..(**array).clone() })));
    }
    let multirange = ty.range.as_ref().filter(|_| ty.type_kind == TypeKind::Range).map(|r| r.multirange);
    if let Some(multirange) = multirange.and_then(|oid| catalog.type_(oid)) {
        give_type(ddl, multirange, owner);
    }
    if let Some(columns) = catalog.relation(ty.relation).filter(|r| r.kind == RelationKind::Composite) {
        put_relation(ddl, Relation { owner, ..(**columns).clone() });
    }
}

//! ALTER ... RENAME.

use std::sync::Arc;

use melba_catalog::{
    Constraint, ConstraintKind, Database, Namespace, Object, ObjectAddress, Relation, RelationKind, Type, acl, classes,
};
use melba_definition::context::Ddl;
use melba_definition::naming::refuse_reserved_schema;
use melba_definition::words::check_kind;
use melba_engine::RelationLockMode;
use melba_relation::constraint::row::is_system_column;
use melba_relation::operator_class::{is_placed, rename_placed};
use melba_relation::policy::rename_policy;
use melba_relation::rule::rename_rule;
use melba_relation::statistics::alter::rename_statistics;
use melba_relation::stored_text::{print_texts, read_texts, rewriting_dependents, rewriting_users_of};
use melba_relation::table::children::has_children;
use melba_relation::table::relation::put_relation;
use melba_relation::table::typed::typed_tables;
use melba_relation::trigger::rename_trigger;
use melba_routine::array::{array_type_name, free_type_name};
use melba_routine::find::RoutineName;
use melba_types::{DbError, Result, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{self, DropBehavior, Node, ObjectType, RenameStmt};

use crate::alter_routine::rename_routine;
use crate::collation::rename_collation;
use crate::database::{database_by_name, may_create_databases};
use crate::event_trigger::rename_event_trigger;
use crate::foreign::{is_foreign, rename_foreign};
use crate::plain::rename_plain;
use crate::publication::rename_publication;
use crate::role::rename_role;
use crate::text_search::{is_text_search, rename_text_search};
use crate::types::domain::rename_domain_constraint;
use crate::types::named::{open_type, require_defined};

pub fn rename(ddl: &Ddl<'_>, s: &RenameStmt) -> Result<()> {
    let kind = s.rename_type();
    match kind {
        ObjectType::ObjectTable
        | ObjectType::ObjectView
        | ObjectType::ObjectMatview
        | ObjectType::ObjectSequence
        | ObjectType::ObjectForeignTable
        | ObjectType::ObjectIndex => {
            let Some(relation) = renamed_relation(ddl, s)? else { return Ok(()) };
            check_kind_renamed(kind, &relation)?;
            rename_relation(ddl, &relation, &s.newname)
        }
        ObjectType::ObjectColumn | ObjectType::ObjectAttribute => {
            renamed_relation(ddl, s)?.map_or(Ok(()), |relation| rename_column_and_typed(ddl, &relation, s))
        }
        ObjectType::ObjectTabconstraint => {
            renamed_relation(ddl, s)?.map_or(Ok(()), |relation| rename_constraint_everywhere(ddl, &relation, s))
        }
        ObjectType::ObjectTrigger => rename_trigger(ddl, s),
        ObjectType::ObjectCollation => rename_collation(ddl, s.object.as_deref(), &s.newname),
        kind if is_text_search(kind) => rename_text_search(ddl, kind, s.object.as_deref(), &s.newname),
        kind if is_placed(kind) => rename_placed(ddl, kind, s.object.as_deref(), &s.newname),
        kind if is_foreign(kind) => rename_foreign(ddl, kind, s.object.as_deref(), &s.newname),
        ObjectType::ObjectPublication => rename_publication(ddl, s.object.as_deref(), &s.newname),
        ObjectType::ObjectEventTrigger => rename_event_trigger(ddl, s.object.as_deref(), &s.newname),
        ObjectType::ObjectStatisticExt => rename_statistics(ddl, s.object.as_deref(), &s.newname),
        ObjectType::ObjectPolicy => rename_policy(ddl, s),
        ObjectType::ObjectRule => rename_rule(ddl, s),
        ObjectType::ObjectSchema => rename_schema(ddl, &s.subname, &s.newname),
        ObjectType::ObjectRole => rename_role(ddl, &s.subname, &s.newname),
        ObjectType::ObjectDatabase => {
            let database = database_by_name(ddl, &s.subname)?;
            ddl.require_owner(database.owner, "database", &s.subname)?;
            if !may_create_databases(ddl) {
                bail!(INSUFFICIENT_PRIVILEGE, "permission denied to rename database");
            }
            if database.oid == ddl.tx().database {
                bail!(FEATURE_NOT_SUPPORTED, "current database cannot be renamed");
            }
            if ddl.catalog().database_by_name(&s.newname).is_some() {
                bail!(DUPLICATE_DATABASE, "database \"{}\" already exists", s.newname);
            }
            ddl.tx().put(Object::Database(Arc::new(Database { name: s.newname.as_str().into(), ..(*database).clone() })));
            Ok(())
        }
        ObjectType::ObjectType | ObjectType::ObjectDomain => {
            rename_named_type(ddl, kind, &*open_type(ddl, s.object.as_deref())?, &s.newname)
        }
        ObjectType::ObjectDomconstraint => rename_domain_constraint(ddl, s),
        kind if RoutineName::is_routine(kind) => rename_routine(ddl, kind, s.object.as_deref(), &s.newname),
        kind => {
            let name = Node { node: Some(N::String(protobuf::String { sval: s.subname.clone() })) };
            let object = s.object.as_deref().unwrap_or(&name);
            rename_plain(ddl, kind, Some(object), &s.newname)
        }
    }
}

fn rename_schema(ddl: &Ddl<'_>, from: &str, to: &str) -> Result<()> {
    let namespace = ddl.namespace(from)?;
    let catalog = ddl.catalog();
    if catalog.namespace_by_name(to).is_some() {
        bail!(DUPLICATE_SCHEMA, "schema \"{to}\" already exists");
    }
    ddl.require_owner(namespace.owner, "schema", from)?;
    ddl.require_database(acl::CREATE)?;
    refuse_reserved_schema(to)?;
    if namespace.oid.0 < classes::FIRST_USER_OID && namespace.oid != classes::PUBLIC {
        // PostgreSQL lets a superuser do it, and does not work any more then.
        return Err(DbError::unsupported("renaming a built-in schema"));
    }
    // Texts of new objects have the name.
    ddl.lock_object_exclusively(ddl.tx().database, classes::PG_NAMESPACE, namespace.oid)?;
    let catalog = ddl.catalog();
    let namespace = ddl.namespace(from).ok().filter(|now| now.oid == namespace.oid);
    let namespace = namespace.ok_or_else(|| err!(INVALID_SCHEMA_NAME, "schema \"{from}\" does not exist"))?;
    let members = catalog.relations_in(namespace.oid).filter(|r| r.index.is_none()).map(|r| r.oid);
    let functions = catalog.functions_in(namespace.oid).map(|f| f.oid);
    let types = catalog.types_in(namespace.oid).map(|t| t.oid);
    let kept = read_texts(ddl, members, functions, types)?;
    ddl.tx().put(Object::Namespace(Arc::new(Namespace { name: to.into(), ..(*namespace).clone() })));
    print_texts(ddl, kept)
}

fn renamed_relation(ddl: &Ddl<'_>, s: &RenameStmt) -> Result<Option<Arc<Relation>>> {
    let name = s.relation.as_ref().ok_or_else(|| DbError::internal("RENAME without a relation"))?;
    if s.missing_ok && ddl.find_relation(name)?.is_none() {
        ddl.notice(format!("relation \"{}\" does not exist, skipping", name.relname));
        return Ok(None);
    }
    let relation = ddl.open_target(name)?;
    ddl.require_own_relation(&relation)?;
    Ok(Some(relation))
}

/// ALTER TABLE renames any kind of relation, ALTER INDEX an index, and all but sequences and views, which it takes for tables.
fn check_kind_renamed(kind: ObjectType, relation: &Relation) -> Result<()> {
    match kind {
        ObjectType::ObjectTable | ObjectType::ObjectIndex => Ok(()),
        _ => check_kind(kind, relation),
    }
}

/// Renames a relation, its row type, and the constraint an index belongs to.
pub fn rename_relation(ddl: &Ddl<'_>, relation: &Relation, name: &str) -> Result<()> {
    let catalog = ddl.catalog();
    if catalog.relation_by_name(relation.namespace, name).is_some() {
        bail!(DUPLICATE_TABLE, "relation \"{name}\" already exists");
    }
    rewriting_dependents(ddl, relation.oid, || {
        put_relation(ddl, Relation { name: name.into(), ..relation.clone() });
        if let Some(ty) = catalog.type_(relation.row_type) {
            rename_type(ddl, ty, name)?;
        }
        if let Some(constraint) = relation.index.as_ref().and_then(|i| catalog.constraint(i.constraint)) {
            ddl.tx().put(Object::Constraint(Arc::new(Constraint { name: name.into(), ..(**constraint).clone() })));
        }
        Ok(())
    })
}

/// ALTER TYPE or DOMAIN ... RENAME TO.
fn rename_named_type(ddl: &Ddl<'_>, kind: ObjectType, ty: &Type, name: &str) -> Result<()> {
    require_defined(ddl, ty)?;
    ddl.require_type_owner(ty)?;
    ddl.require_schema(ddl.user(), ty.namespace, acl::CREATE)?;
    let catalog = ddl.catalog();
    if kind == ObjectType::ObjectDomain && ty.domain.is_none() {
        bail!(WRONG_OBJECT_TYPE, "{} is not a domain", catalog.type_name(ty.oid, ddl.path()));
    }
    refuse_type_of_other(ddl, ty, "type")?;
    if let Some(relation) = catalog.relation(ty.relation) {
        return rename_relation(ddl, &relation.clone(), name);
    }
    let address = ObjectAddress { class: classes::PG_TYPE, object: ty.oid, sub: 0 };
    rewriting_users_of(ddl, address, || rename_type(ddl, ty, name))
}

/// Row types of tables and array types follow their table or element type.
pub fn refuse_type_of_other(ddl: &Ddl<'_>, ty: &Type, what: &str) -> Result<()> {
    let catalog = ddl.catalog();
    let shown = catalog.type_name(ty.oid, ddl.path());
    if catalog.relation(ty.relation).is_some_and(|r| r.kind != RelationKind::Composite) {
        return Err(err!(WRONG_OBJECT_TYPE, "{shown} is a table's row type").hint("Use ALTER TABLE instead."));
    }
    match catalog.type_(ty.element).filter(|e| e.array == ty.oid) {
        Some(element) => {
            let element = catalog.type_name(element.oid, ddl.path());
            Err(err!(WRONG_OBJECT_TYPE, "cannot alter array type {shown}")
                .hint(format!("You can alter {what} {element}, which will alter the array type as well.")))
        }
        None => Ok(()),
    }
}

fn rename_type(ddl: &Ddl<'_>, ty: &Type, name: &str) -> Result<()> {
    let catalog = ddl.catalog();
    let taken = catalog.type_by_name(ty.namespace, name).map(|t| t.oid);
    if !free_type_name(ddl, ty.namespace, name)? {
        bail!(DUPLICATE_OBJECT, "type \"{name}\" already exists");
    }
    ddl.tx().put(Object::Type(Arc::new(Type { name: name.into(), ..ty.clone() })));
    // Its own array type may have had the name, and has another one then.
    if let Some(array) = catalog.type_(ty.array).filter(|a| taken != Some(a.oid)) {
        let array_name = array_type_name(ddl, name, ty.namespace);
        ddl.tx().put(Object::Type(Arc::new(Type { name: array_name.into(), ..(**array).clone() })));
    }
    Ok(())
}

pub fn rename_column(ddl: &Ddl<'_>, relation: &Relation, from: &str, to: &str) -> Result<()> {
    if matches!(relation.kind, RelationKind::Index | RelationKind::PartitionedIndex) {
        bail!(WRONG_OBJECT_TYPE, "cannot rename columns of relation \"{}\"", relation.name);
    }
    let at = relation
        .columns
        .iter()
        .position(|c| *c.name == *from && !c.dropped)
        .ok_or_else(|| err!(UNDEFINED_COLUMN, "column \"{from}\" does not exist"))?;
    if relation.columns.iter().any(|c| *c.name == *to && !c.dropped) {
        bail!(DUPLICATE_COLUMN, "column \"{to}\" of relation \"{}\" already exists", relation.name);
    }
    if is_system_column(to) {
        bail!(DUPLICATE_COLUMN, "column name \"{to}\" conflicts with a system column name");
    }
    rewriting_dependents(ddl, relation.oid, || {
        let mut columns = relation.columns.to_vec();
        columns[at].name = to.into();
        put_relation(ddl, Relation { columns: columns.into(), ..relation.clone() });
        // An index's column has the name of the table's.
        let catalog = ddl.catalog();
        for index in relation.indexes.iter().filter_map(|i| catalog.relation(*i)) {
            let Some(info) = &index.index else { continue };
            let mut columns = index.columns.to_vec();
            for (key, column) in info.keys.iter().zip(&mut columns) {
                if key.column as usize == at + 1 && *column.name == *from {
                    column.name = to.into();
                }
            }
            put_relation(ddl, Relation { columns: columns.into(), ..(**index).clone() });
        }
        Ok(())
    })
}

pub fn rename_constraint(ddl: &Ddl<'_>, relation: &Relation, from: &str, to: &str) -> Result<()> {
    let catalog = ddl.catalog();
    let mut all = relation.constraints.iter().filter_map(|c| catalog.constraint(*c));
    let Some(constraint) = all.clone().find(|c| *c.name == *from) else {
        bail!(UNDEFINED_OBJECT, "constraint \"{from}\" for table \"{}\" does not exist", relation.name);
    };
    if all.any(|c| *c.name == *to) {
        bail!(DUPLICATE_OBJECT, "constraint \"{to}\" for relation \"{}\" already exists", relation.name);
    }
    ddl.tx().put(Object::Constraint(Arc::new(Constraint { name: to.into(), ..(**constraint).clone() })));
    if let Some(index) = catalog.relation(constraint.index)
        && index.index.as_ref().is_some_and(|i| i.constraint == constraint.oid)
    {
        put_relation(ddl, Relation { name: to.into(), ..(**index).clone() });
    }
    Ok(())
}

/// RENAME COLUMN.
pub fn rename_column_everywhere(ddl: &Ddl<'_>, relation: &Relation, s: &RenameStmt) -> Result<()> {
    let (from, to, recurse) =
        (&*s.subname, &*s.newname, relation.of_type.is_valid() || s.relation.as_ref().is_none_or(|r| r.inh));
    let column = relation.columns.iter().find(|c| !c.dropped && *c.name == *from);
    if column.is_some_and(|c| c.inherited > 0) {
        bail!(INVALID_TABLE_DEFINITION, "cannot rename inherited column \"{from}\"");
    }
    if !recurse && has_children(ddl, relation) && column.is_some() {
        bail!(INVALID_TABLE_DEFINITION, "inherited column \"{from}\" must be renamed in child tables too");
    }
    let members = ddl.catalog().descendants(relation.oid);
    for oid in &members {
        let member = ddl.relation(*oid)?;
        let count = member.parents.iter().filter(|p| members.contains(p)).count();
        let column = member.columns.iter().find(|c| !c.dropped && *c.name == *from);
        if column.is_some_and(|c| c.inherited as usize > count) {
            bail!(INVALID_TABLE_DEFINITION, "cannot rename inherited column \"{from}\"");
        }
    }
    // Partition keys mention columns in expressions of all.
    for oid in members {
        ddl.lock_relation(oid, RelationLockMode::AccessExclusive)?;
        rename_column(ddl, &*ddl.relation(oid)?, from, to)?;
    }
    Ok(())
}

/// RENAME CONSTRAINT.
pub fn rename_constraint_everywhere(ddl: &Ddl<'_>, relation: &Relation, s: &RenameStmt) -> Result<()> {
    let (from, to, recurse) = (&*s.subname, &*s.newname, s.relation.as_ref().is_none_or(|r| r.inh));
    let catalog = ddl.catalog();
    let row = relation.constraints.iter().filter_map(|c| catalog.constraint(*c)).find(|c| *c.name == *from);
    let passed_on = row.is_some_and(|r| matches!(r.kind, ConstraintKind::Check | ConstraintKind::NotNull) && !r.no_inherit);
    if row.is_some_and(|r| r.inherited > 0 && !r.parent.is_valid()) {
        bail!(INVALID_TABLE_DEFINITION, "cannot rename inherited constraint \"{from}\"");
    }
    if passed_on && !recurse && has_children(ddl, relation) {
        bail!(INVALID_TABLE_DEFINITION, "inherited constraint \"{from}\" must be renamed in child tables too");
    }
    rename_constraint(ddl, relation, from, to)?;
    if passed_on {
        for oid in catalog.descendants(relation.oid).into_iter().skip(1) {
            let member = ddl.relation(oid)?;
            let has = member.constraints.iter().filter_map(|c| catalog.constraint(*c)).any(|c| *c.name == *from);
            if has {
                rename_constraint(ddl, &member, from, to)?;
            }
        }
    }
    Ok(())
}

/// RENAME COLUMN and RENAME ATTRIBUTE, also of the tables of a type.
pub fn rename_column_and_typed(ddl: &Ddl<'_>, relation: &Relation, s: &RenameStmt) -> Result<()> {
    if relation.of_type.is_valid() {
        bail!(WRONG_OBJECT_TYPE, "cannot rename column of typed table");
    }
    for table in typed_tables(ddl, relation, s.behavior() == DropBehavior::DropCascade)? {
        rename_column_everywhere(ddl, &*ddl.relation(table)?, s)?;
    }
    rename_column_everywhere(ddl, relation, s)
}

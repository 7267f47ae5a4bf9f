//! ALTER FUNCTION and PROCEDURE; GRANT, COMMENT and DROP find their functions here as well.

use std::sync::Arc;

use melba_catalog::privileges::AclKind;
use melba_catalog::{Function, FunctionKind, Object, ObjectAddress, classes};
use melba_definition::context::Ddl;
use melba_definition::describe::describe;
use melba_definition::special_schema::refuse_special_schema;
use melba_parse::nodes::string;
use melba_relation::stored_text::rewriting_users_of;
use melba_routine::attributes::Attributes;
use melba_routine::create::lock_routine_name;
use melba_routine::find::{RoutineName, find_routine, require_routine_owner};
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{AlterFunctionStmt, GrantStmt, GrantTargetType, Node, ObjectType};

use crate::privileges::acl::{Grant, acl_after, given};

fn put_function(ddl: &Ddl<'_>, f: Function) {
    ddl.tx().put(Object::Function(Arc::new(f)));
}

fn named_routine(ddl: &Ddl<'_>, kind: ObjectType, node: Option<&Node>) -> Result<Arc<Function>> {
    open_routine(ddl, &routine_name(kind, node)?)
}

/// Finds a function and keeps others from changing it; the row is the one current once the lock is held.
fn open_routine(ddl: &Ddl<'_>, name: &RoutineName<'_>) -> Result<Arc<Function>> {
    loop {
        let found = find_routine(ddl, name)?;
        lock_routine_name(ddl, found.namespace, &found.name)?;
        ddl.lock_database_object(ddl.tx().database, classes::PG_PROC, found.oid)?;
        let now = find_routine(ddl, name)?;
        if now.oid == found.oid && (now.namespace, &now.name) == (found.namespace, &found.name) {
            return Ok(now);
        }
    }
}

pub fn alter_function(ddl: &Ddl<'_>, s: &AlterFunctionStmt) -> Result<()> {
    let object = s.func.as_ref().ok_or_else(|| DbError::internal("ALTER FUNCTION without a name"))?;
    let node = Node { node: Some(N::ObjectWithArgs(object.clone())) };
    let name = routine_name(s.objtype(), Some(&node))?;
    let old = open_routine(ddl, &name)?;
    require_routine_owner(ddl, &old, &name.dotted())?;
    if old.kind == FunctionKind::Aggregate {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is an aggregate function", old.name);
    }
    let attributes = Attributes::read(&s.actions, old.kind == FunctionKind::Procedure)?;
    let mut f = (*old).clone();
    attributes.apply(ddl, &mut f)?;
    put_function(ddl, f);
    Ok(())
}

pub fn rename_routine(ddl: &Ddl<'_>, kind: ObjectType, node: Option<&Node>, name: &str) -> Result<()> {
    let f = named_routine(ddl, kind, node)?;
    // PostgreSQL calls all kinds of routines so here.
    ddl.require_owner(f.owner, "function", &f.name)?;
    check_free(ddl, &f, f.namespace, name)?;
    rewriting_users_of(ddl, address(&f), || {
        put_function(ddl, Function { name: name.into(), ..(*f).clone() });
        Ok(())
    })
}

fn check_free(ddl: &Ddl<'_>, f: &Function, namespace: Oid, name: &str) -> Result<()> {
    lock_routine_name(ddl, namespace, name)?;
    let catalog = ddl.catalog();
    if catalog.functions_by_name(namespace, name).all(|other| other.arg_types != f.arg_types) {
        return Ok(());
    }
    let types: Vec<String> = f.arg_types.iter().map(|t| catalog.type_name(*t, ddl.path())).collect();
    let schema = catalog.namespace(namespace).map_or("", |n| &n.name);
    Err(err!(DUPLICATE_FUNCTION, "function {name}({}) already exists in schema \"{schema}\"", types.join(", ")))
}

pub fn move_routine(ddl: &Ddl<'_>, kind: ObjectType, node: Option<&Node>, schema: &str) -> Result<()> {
    let f = named_routine(ddl, kind, node)?;
    let target = ddl.namespace_for_creation(Some(schema))?;
    // PostgreSQL calls all kinds of routines so here.
    ddl.require_owner(f.owner, "function", &f.name)?;
    if f.namespace == target {
        return Ok(());
    }
    refuse_special_schema(ddl, f.namespace, target)?;
    check_free(ddl, &f, target, &f.name)?;
    rewriting_users_of(ddl, address(&f), || {
        put_function(ddl, Function { namespace: target, ..(*f).clone() });
        Ok(())
    })
}

pub fn alter_routine_owner(ddl: &Ddl<'_>, kind: ObjectType, node: Option<&Node>, owner: Oid) -> Result<()> {
    let f = named_routine(ddl, kind, node)?;
    // PostgreSQL calls all kinds of routines so here.
    ddl.require_owner(f.owner, "function", &f.name)?;
    give_routine(ddl, &f, owner)
}

/// # Errors
/// 42501 when the user may not give it to that role.
pub fn give_routine(ddl: &Ddl<'_>, f: &Function, owner: Oid) -> Result<()> {
    ddl.check_new_owner(f.owner, owner, Some(f.namespace))?;
    let acl = given(&f.acl, f.owner, owner);
    put_function(ddl, Function { owner, acl, ..f.clone() });
    Ok(())
}

pub fn commented_routine(ddl: &Ddl<'_>, kind: ObjectType, node: Option<&Node>) -> Result<ObjectAddress> {
    let name = routine_name(kind, node)?;
    let f = open_routine(ddl, &name)?;
    require_routine_owner(ddl, &f, &name.dotted())?;
    Ok(address(&f))
}

/// The function that DROP removes; `None`: there is no such function, and a notice says so.
pub fn dropped_routine(ddl: &Ddl<'_>, kind: ObjectType, node: &Node, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    let name = routine_name(kind, Some(node))?;
    let f = match open_routine(ddl, &name) {
        Ok(f) => f,
        Err(e) if missing_ok && is_missing(&e) => {
            let what = match e.sqlstate() {
                melba_types::SqlState::UNDEFINED_FUNCTION => format!("{} does not exist", name.as_written()),
                _ => e.message().to_owned(),
            };
            ddl.notice(format!("{what}, skipping"));
            return Ok(None);
        }
        Err(e) => return Err(e),
    };
    if f.kind == FunctionKind::Aggregate && kind == ObjectType::ObjectFunction {
        return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is an aggregate function", f.name)
            .hint("Use DROP AGGREGATE to drop aggregate functions."));
    }
    require_routine_owner(ddl, &f, &name.dotted())?;
    if f.oid.0 < classes::FIRST_USER_OID {
        let shown = describe(ddl, address(&f));
        bail!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop {shown} because it is required by the database system");
    }
    Ok(Some(address(&f)))
}

/// GRANT and REVOKE ON FUNCTION, PROCEDURE, ROUTINE, by name or all of some schemas.
/// The privileges that a statement names must be those of functions.
///
/// # Errors
/// 0LP01, with the statement's word for the object.
pub fn check_routine_privileges(kind: ObjectType, grant: &Grant<'_>) -> Result<()> {
    let what = match kind {
        ObjectType::ObjectProcedure => "procedure",
        ObjectType::ObjectRoutine => "routine",
        _ => "function",
    };
    grant.whole(AclKind::Function.all(), AclKind::Function).map(drop).map_err(|mut e| {
        let message = e.message().replace(" for function", &format!(" for {what}"));
        e.fields_mut().message = message;
        e
    })
}

/// The functions that a statement names, or all of some schemas.
pub fn granted_routines(ddl: &Ddl<'_>, s: &GrantStmt) -> Result<Vec<Arc<Function>>> {
    let mut all = Vec::new();
    for node in &s.objects {
        if s.targtype() != GrantTargetType::AclTargetAllInSchema {
            all.push(named_routine(ddl, s.objtype(), Some(node))?);
            continue;
        }
        let schema = string(node).unwrap_or_default();
        let namespace = ddl.namespace(schema)?.oid;
        let catalog = ddl.catalog();
        let wanted = |f: &&Arc<Function>| match s.objtype() {
            ObjectType::ObjectProcedure => f.kind == FunctionKind::Procedure,
            ObjectType::ObjectFunction => f.kind != FunctionKind::Procedure,
            _ => true,
        };
        all.extend(catalog.functions().filter(|f| f.namespace == namespace).filter(wanted).cloned());
    }
    Ok(all)
}

pub fn grant_on_routine(ddl: &Ddl<'_>, grant: &Grant<'_>, f: &Function) -> Result<()> {
    lock_routine_name(ddl, f.namespace, &f.name)?;
    ddl.lock_database_object(ddl.tx().database, classes::PG_PROC, f.oid)?;
    let catalog = ddl.catalog();
    let Some(f) = catalog.function(f.oid) else { return Ok(()) };
    let what = if f.kind == FunctionKind::Procedure { "procedure" } else { "function" };
    let acl = acl_after(ddl, grant, AclKind::Function, f.owner, f.acl.as_deref(), what, &f.name)?;
    put_function(ddl, Function { acl: Some(acl), ..(**f).clone() });
    Ok(())
}

fn routine_name(kind: ObjectType, node: Option<&Node>) -> Result<RoutineName<'_>> {
    RoutineName::of(kind, node).ok_or_else(|| DbError::internal("statement without a function's name"))
}

/// Nothing has the name, the schema or a type of an argument.
fn is_missing(e: &DbError) -> bool {
    use melba_types::SqlState as S;
    matches!(e.sqlstate(), S::UNDEFINED_FUNCTION | S::INVALID_SCHEMA_NAME | S::UNDEFINED_OBJECT)
}

fn address(f: &Function) -> ObjectAddress {
    ObjectAddress { class: classes::PG_PROC, object: f.oid, sub: 0 }
}

//! CREATE CAST, and how DROP and COMMENT find casts.

use std::sync::Arc;

use melba_catalog::{Cast, Function, FunctionKind, Object, ObjectAddress, Type, TypeKind, classes};
use melba_parse::nodes::{inner, strings};
use melba_types::{DbError, Oid, Result, SqlState, bail, err, oids};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{CoercionContext, CreateCastStmt, Node, ObjectType, TypeName};

use melba_definition::context::Ddl;
use melba_routine::find::{RoutineName, find_routine};

pub fn create_cast(ddl: &Ddl<'_>, s: &CreateCastStmt) -> Result<()> {
    let (source, target) = (cast_type(ddl, s.sourcetype.as_ref())?, cast_type(ddl, s.targettype.as_ref())?);
    let shown = |ty: &Type| ddl.catalog().type_name(ty.oid, ddl.path());
    for (ty, what) in [(&source, "source"), (&target, "target")] {
        if ty.type_kind == TypeKind::Pseudo {
            bail!(WRONG_OBJECT_TYPE, "{what} data type {} is a pseudo-type", shown(ty));
        }
    }
    require_one_type(ddl, &source, &target)?;
    [&source, &target].into_iter().try_for_each(|ty| ddl.require_type(ty.oid))?;
    if let Some((_, what)) = [(&source, "source"), (&target, "target")].into_iter().find(|(ty, _)| ty.domain.is_some()) {
        let message = format!("cast will be ignored because the {what} data type is a domain");
        ddl.warning(SqlState::WRONG_OBJECT_TYPE, message);
    }
    let (function, method) = match &s.func {
        Some(name) => (cast_function(ddl, name, &source, &target)?, b'f'),
        None if s.inout => (Oid::INVALID, b'i'),
        None => {
            check_binary_cast(ddl, &source, &target)?;
            (Oid::INVALID, b'b')
        }
    };
    let takes = ddl.catalog().function(function).map_or(0, |f| f.arg_types.len());
    if source.oid == target.oid && takes < 2 {
        bail!(INVALID_OBJECT_DEFINITION, "source data type and target data type are the same");
    }
    if ddl.catalog().cast(source.oid, target.oid).is_some() {
        bail!(DUPLICATE_OBJECT, "cast from type {} to type {} already exists", shown(&source), shown(&target));
    }
    let context = match s.context() {
        CoercionContext::CoercionImplicit => b'i',
        CoercionContext::CoercionAssignment => b'a',
        _ => b'e',
    };
    let (oid, source, target) = (ddl.tx().new_oid(), source.oid, target.oid);
    let cast = Cast { oid, source, target, function, context, method, part_of_type: false };
    ddl.tx().put(Object::Cast(Arc::new(cast)));
    Ok(())
}

fn cast_type(ddl: &Ddl<'_>, name: Option<&TypeName>) -> Result<Arc<Type>> {
    let name = name.ok_or_else(|| DbError::internal("a cast without a type"))?;
    let (ty, _) = ddl.type_from_name(name).map_err(DbError::without_position)?;
    let found = ddl.catalog().type_(ty).cloned();
    found.ok_or_else(|| DbError::internal(format!("cache lookup failed for type {ty}")))
}

fn require_one_type(ddl: &Ddl<'_>, source: &Type, target: &Type) -> Result<()> {
    if ddl.is_owner(source.owner) || ddl.is_owner(target.owner) {
        return Ok(());
    }
    let catalog = ddl.catalog();
    let name = |ty: &Type| catalog.type_name(ty.oid, ddl.path());
    bail!(INSUFFICIENT_PRIVILEGE, "must be owner of type {} or type {}", name(source), name(target))
}

fn cast_function(ddl: &Ddl<'_>, name: &pg_query::protobuf::ObjectWithArgs, source: &Type, target: &Type) -> Result<Oid> {
    let node = Node { node: Some(N::ObjectWithArgs(name.clone())) };
    let name = RoutineName::of(ObjectType::ObjectFunction, Some(&node));
    let function = find_routine(ddl, &name.ok_or_else(|| DbError::internal("a cast without its function"))?)?;
    let catalog = ddl.catalog();
    let Function { arg_types, .. } = &*function;
    let wrong = |message: &str| Err(err!(INVALID_OBJECT_DEFINITION, "{message}"));
    if !(1..=3).contains(&arg_types.len()) {
        return wrong("cast function must take one to three arguments");
    }
    if !catalog.is_binary_coercible(source.oid, arg_types[0]) {
        return wrong("argument of cast function must match or be binary-coercible from source data type");
    }
    if arg_types.get(1).is_some_and(|ty| *ty != oids::INT4) {
        return wrong("second argument of cast function must be type integer");
    }
    if arg_types.get(2).is_some_and(|ty| *ty != oids::BOOL) {
        return wrong("third argument of cast function must be type boolean");
    }
    if !catalog.is_binary_coercible(function.return_type, target.oid) {
        return wrong("return data type of cast function must match or be binary-coercible to target data type");
    }
    if function.kind != FunctionKind::Function {
        return wrong("cast function must be a normal function");
    }
    if function.returns_set {
        return wrong("cast function must not return a set");
    }
    Ok(function.oid)
}

/// Whether values of one type can be taken for those of another as they are.
fn check_binary_cast(ddl: &Ddl<'_>, source: &Type, target: &Type) -> Result<()> {
    if !ddl.is_superuser() {
        bail!(INSUFFICIENT_PRIVILEGE, "must be superuser to create a cast WITHOUT FUNCTION");
    }
    let wrong = |message: &str| Err(err!(INVALID_OBJECT_DEFINITION, "{message}"));
    if (source.length, source.by_value, source.align) != (target.length, target.by_value, target.align) {
        return wrong("source and target data types are not physically compatible");
    }
    let catalog = ddl.catalog();
    let is = |kind| source.type_kind == kind || target.type_kind == kind;
    let is_array = |ty: &Type| catalog.array_element(ty.oid).is_some();
    let refused = [
        (is(TypeKind::Composite), "composite data types are not binary-compatible"),
        (is_array(source) || is_array(target), "array data types are not binary-compatible"),
        (is(TypeKind::Range) || is(TypeKind::Multirange), "range data types are not binary-compatible"),
        (is(TypeKind::Enum), "enum data types are not binary-compatible"),
        (is(TypeKind::Domain), "domain data types must not be marked binary-compatible"),
    ];
    if let Some((_, message)) = refused.into_iter().find(|(is_refused, _)| *is_refused) {
        return wrong(message);
    }
    match source.kind == target.kind {
        true => Ok(()),
        false => Err(DbError::unsupported("a cast WITHOUT FUNCTION between types that are held in different ways")),
    }
}

/// The cast that a statement names by its types.
pub fn find_cast(ddl: &Ddl<'_>, node: Option<&Node>, missing_ok: bool) -> Result<Option<ObjectAddress>> {
    let Some(N::List(list)) = node.map(inner).transpose()? else { return Err(DbError::internal("a cast without types")) };
    let mut types = Vec::with_capacity(2);
    for node in &list.items {
        let N::TypeName(name) = inner(node)? else { continue };
        match cast_type(ddl, Some(name)) {
            Ok(ty) => types.push(ty),
            Err(e) if missing_ok && matches!(e.sqlstate(), SqlState::UNDEFINED_OBJECT | SqlState::INVALID_SCHEMA_NAME) => {
                ddl.notice(format!("{}, skipping", e.message()));
                return Ok(None);
            }
            Err(e) => return Err(e),
        }
    }
    let [source, target] = &types[..] else { return Err(DbError::internal("a cast is between two types")) };
    let catalog = ddl.catalog();
    if let Some(cast) = catalog.cast(source.oid, target.oid) {
        require_one_type(ddl, source, target)?;
        return Ok(Some(ObjectAddress { class: classes::PG_CAST, object: cast.oid, sub: 0 }));
    }
    let name = |ty: &Type| catalog.type_name(ty.oid, ddl.path());
    let missing = format!("cast from type {} to type {} does not exist", name(source), name(target));
    if !missing_ok {
        bail!(UNDEFINED_OBJECT, "{missing}");
    }
    let written = |node: &Node| match &node.node {
        Some(N::TypeName(name)) => strings(&name.names).join(".") + if name.array_bounds.is_empty() { "" } else { "[]" },
        _ => String::new(),
    };
    let (source, target) = (list.items.first().map(written), list.items.get(1).map(written));
    let (source, target) = (source.unwrap_or_default(), target.unwrap_or_default());
    ddl.notice(format!("cast from type {source} to type {target} does not exist, skipping"));
    Ok(None)
}

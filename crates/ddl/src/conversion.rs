//! CREATE CONVERSION and CREATE TRANSFORM: objects over functions that are built in, since no other can take what is `internal`.

use std::sync::Arc;

use melba_catalog::plain::transform_name;
use melba_catalog::privileges::AclKind;
use melba_catalog::{Function, FunctionKind, Object, ObjectAddress, PlainObject, TypeKind, acl, classes};
use melba_definition::context::Ddl;
use melba_encoding::Encoding;
use melba_parse::nodes::strings;
use melba_routine::find::{RoutineName, find_routine};
use melba_types::{Datum, DbError, Oid, Result, bail, err, oids};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{CreateConversionStmt, CreateTransformStmt, Node, ObjectType, ObjectWithArgs};

use crate::plain::find_transform;

/// The arguments of a function that converts.
const ARGUMENTS: [Oid; 6] = [oids::INT4, oids::INT4, oids::CSTRING, oids::INTERNAL, oids::INT4, oids::BOOL];

pub fn create_conversion(ddl: &Ddl<'_>, s: &CreateConversionStmt) -> Result<()> {
    let (schema, name) = ddl.qualified(&strings(&s.conversion_name))?;
    let namespace = ddl.namespace_for_creation(schema)?;
    let encoding = |name: &str, word: &str| {
        Encoding::by_name(name).ok_or_else(|| err!(UNDEFINED_OBJECT, "{word} encoding \"{name}\" does not exist"))
    };
    let from = encoding(&s.for_encoding_name, "source")?;
    let to = encoding(&s.to_encoding_name, "destination")?;
    if [from, to].iter().any(|encoding| encoding.name() == "SQL_ASCII") {
        bail!(INVALID_OBJECT_DEFINITION, "encoding conversion to or from \"SQL_ASCII\" is not supported");
    }
    let function = converting_function(ddl, &s.func_name)?;
    check_converts(ddl, &function, from, to)?;
    let catalog = ddl.catalog();
    if catalog.plain_object_by_name(classes::PG_CONVERSION, namespace, name).is_some() {
        bail!(DUPLICATE_OBJECT, "conversion \"{name}\" already exists");
    }
    let is_same = |other: &&Arc<PlainObject>| {
        other.namespace == namespace && encodings_of(other) == Some([from.number(), to.number()]) && is_default(other)
    };
    if s.def && catalog.plain_objects_of(classes::PG_CONVERSION).any(|other| is_same(&other)) {
        bail!(DUPLICATE_OBJECT, "default conversion for {} to {} already exists", from.name(), to.name());
    }
    ddl.tx().put(Object::Plain(Arc::new(PlainObject {
        namespace,
        fields: vec![Datum::Int4(from.number()), Datum::Int4(to.number()), Datum::Oid(function.oid.0), Datum::Bool(s.def)],
        depends_on: vec![ObjectAddress { class: classes::PG_PROC, object: function.oid, sub: 0 }],
        ..PlainObject::new(ddl.tx().new_oid(), classes::PG_CONVERSION, name, ddl.user())
    })));
    Ok(())
}

/// The numbers of a conversion's encodings.
fn encodings_of(conversion: &PlainObject) -> Option<[i32; 2]> {
    match conversion.fields[..] {
        [Datum::Int4(from), Datum::Int4(to), ..] => Some([from, to]),
        _ => None,
    }
}

fn is_default(conversion: &PlainObject) -> bool {
    matches!(conversion.fields[..], [.., Datum::Bool(true)])
}

fn converting_function(ddl: &Ddl<'_>, names: &[Node]) -> Result<Arc<Function>> {
    let names = strings(names);
    let (schema, name) = ddl.qualified(&names)?;
    let schemas = ddl.searched_schemas(schema)?;
    let catalog = ddl.catalog();
    let shown = names.join(".");
    let Some(function) = catalog.find_functions(&schemas, name).find(|f| f.arg_types == ARGUMENTS) else {
        let types: Vec<String> = ARGUMENTS.iter().map(|ty| catalog.type_name(*ty, ddl.path())).collect();
        bail!(UNDEFINED_FUNCTION, "function {shown}({}) does not exist", types.join(", "));
    };
    if function.return_type != oids::INT4 {
        bail!(INVALID_OBJECT_DEFINITION, "encoding conversion function {shown} must return type integer");
    }
    require_execute(ddl, function)?;
    Ok(function.clone())
}

fn require_execute(ddl: &Ddl<'_>, function: &Function) -> Result<()> {
    if !ddl.catalog().has_privileges(ddl.user(), AclKind::Function, function.owner, &function.acl, acl::EXECUTE) {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for function {}", function.name);
    }
    Ok(())
}

/// A function converts between the encodings for which a built-in conversion has it; PostgreSQL calls it to see.
fn check_converts(ddl: &Ddl<'_>, function: &Function, from: Encoding, to: Encoding) -> Result<()> {
    let catalog = ddl.catalog();
    let is_built_in = |c: &&Arc<PlainObject>| c.oid.0 < classes::FIRST_USER_OID;
    let has_function = |c: &&Arc<PlainObject>| catalog.function(c.oid_field(2)).is_some_and(|f| f.source == function.source);
    let known: Vec<[i32; 2]> = (catalog.plain_objects_of(classes::PG_CONVERSION).filter(is_built_in).filter(has_function))
        .filter_map(|c| encodings_of(c))
        .collect();
    if known.contains(&[from.number(), to.number()]) {
        return Ok(());
    }
    let name = |number: i32| Encoding::by_number(number).map_or("", Encoding::name);
    match known.first() {
        None => Err(DbError::unsupported("a conversion by a function that is none of the built-in ones")),
        Some([source, _]) if known.iter().all(|pair| pair[0] != from.number()) => {
            Err(DbError::internal(format!("expected source encoding \"{}\", but got \"{}\"", name(*source), from.name())))
        }
        Some([_, target]) => {
            Err(DbError::internal(format!("expected destination encoding \"{}\", but got \"{}\"", name(*target), to.name())))
        }
    }
}

pub fn create_transform(ddl: &Ddl<'_>, s: &CreateTransformStmt) -> Result<()> {
    let name = s.type_name.as_ref().ok_or_else(|| DbError::internal("a transform without its type"))?;
    let (ty, _) = ddl.type_from_name(name).map_err(DbError::without_position)?;
    let catalog = ddl.catalog();
    let row = catalog.type_(ty).ok_or_else(|| DbError::internal(format!("cache lookup failed for type {ty}")))?;
    let shown = catalog.type_name(ty, ddl.path());
    match row.type_kind {
        TypeKind::Pseudo => bail!(WRONG_OBJECT_TYPE, "data type {shown} is a pseudo-type"),
        TypeKind::Domain => bail!(WRONG_OBJECT_TYPE, "data type {shown} is a domain"),
        _ => {}
    }
    ddl.require_type_owner(row)?;
    ddl.require_type(ty)?;
    let (described, old) = find_transform(ddl, ty, &s.lang)?;
    let language = catalog.language_by_name(&s.lang).unwrap_or_default();
    if !catalog.may_use(ddl.user(), classes::PG_LANGUAGE, &s.lang, acl::USAGE) {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for language {}", s.lang);
    }
    let from_sql =
        transform_function(ddl, s.fromsql.as_ref(), oids::INTERNAL, "return data type of FROM SQL function must be internal")?;
    let to_sql =
        transform_function(ddl, s.tosql.as_ref(), ty, "return data type of TO SQL function must be the transform data type")?;
    if old.is_some() && !s.replace {
        bail!(DUPLICATE_OBJECT, "transform {described} already exists");
    }
    let at = |class, object| ObjectAddress { class, object, sub: 0 };
    let functions = [from_sql, to_sql].into_iter().filter(|f| f.is_valid()).map(|f| at(classes::PG_PROC, f));
    ddl.tx().put(Object::Plain(Arc::new(PlainObject {
        fields: [ty, language, from_sql, to_sql].iter().map(|oid| Datum::Oid(oid.0)).collect(),
        depends_on: [at(classes::PG_TYPE, ty), at(classes::PG_LANGUAGE, language)].into_iter().chain(functions).collect(),
        ..PlainObject::new(
            old.map_or_else(|| ddl.tx().new_oid(), |old| old.oid),
            classes::PG_TRANSFORM,
            transform_name(ty, language),
            classes::POSTGRES_ROLE,
        )
    })));
    Ok(())
}

/// A function of a transform; 0: there is none.
fn transform_function(ddl: &Ddl<'_>, name: Option<&ObjectWithArgs>, result: Oid, wrong_result: &str) -> Result<Oid> {
    let Some(name) = name else { return Ok(Oid::INVALID) };
    let node = Node { node: Some(N::ObjectWithArgs(name.clone())) };
    let name = RoutineName::of(ObjectType::ObjectFunction, Some(&node));
    let function = find_routine(ddl, &name.ok_or_else(|| DbError::internal("a transform without its function"))?)?;
    ddl.require_owner(function.owner, "function", &function.name)?;
    require_execute(ddl, &function)?;
    let wrong = |message: &str| Err(err!(INVALID_OBJECT_DEFINITION, "{message}"));
    if function.return_type != result {
        return wrong(wrong_result);
    }
    if function.volatility == b'v' {
        return wrong("transform function must not be volatile");
    }
    if function.kind != FunctionKind::Function {
        return wrong("transform function must be a normal function");
    }
    if function.returns_set {
        return wrong("transform function must not return a set");
    }
    if function.arg_types.len() != 1 {
        return wrong("transform function must take one argument");
    }
    if function.arg_types[0] != oids::INTERNAL {
        return wrong("first argument of transform function must be type internal");
    }
    Ok(function.oid)
}

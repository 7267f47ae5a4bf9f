//! CREATE TYPE ... AS RANGE: the range type, its multirange type, the functions that make values of both, and the cast between them.

use std::sync::Arc;

use melba_catalog::default_privileges::initial_acl;
use melba_catalog::privileges::AclKind;
use melba_catalog::{Cast, Catalog, Function, Object, ObjectAddress, OperatorClass, RangeInfo, Type, TypeKind, acl, classes};
use melba_fmgr::order;
use melba_parse::nodes::{options, strings};
use melba_types::{DbError, Kind, Oid, Result, bail, err, oids};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{CreateRangeStmt, DefElem, TypeName};

use melba_definition::context::Ddl;
use melba_definition::naming::{NAME_BYTES_MAX, clip};
use melba_relation::index::request::AccessMethod;
use melba_relation::operator_class::named_class;
use melba_routine::array::{bare_type, free_type_name, new_type_name, put_array_type};
use melba_routine::plain::plain_function;

/// The attributes in the statement's parentheses.
#[derive(Default)]
struct RangeAttributes<'s> {
    subtype: Option<&'s TypeName>,
    opclass: Option<Vec<&'s str>>,
    collation: Option<Vec<&'s str>>,
    canonical: Option<Vec<&'s str>>,
    subtype_diff: Option<Vec<&'s str>>,
    multirange: Option<Vec<&'s str>>,
}

impl<'s> RangeAttributes<'s> {
    fn read(s: &'s CreateRangeStmt) -> Result<RangeAttributes<'s>> {
        let mut out = RangeAttributes::default();
        for def in options(&s.params) {
            let twice = || err!(SYNTAX_ERROR, "conflicting or redundant options").at(def.location);
            let names = match def.defname.as_str() {
                "subtype" => {
                    if out.subtype.replace(type_name(def)?).is_some() {
                        return Err(twice());
                    }
                    continue;
                }
                "subtype_opclass" => &mut out.opclass,
                "collation" => &mut out.collation,
                "canonical" => &mut out.canonical,
                "subtype_diff" => &mut out.subtype_diff,
                "multirange_type_name" => &mut out.multirange,
                other => bail!(SYNTAX_ERROR, "type attribute \"{other}\" not recognized"),
            };
            if names.replace(name_parts(def)?).is_some() {
                return Err(twice());
            }
        }
        Ok(out)
    }
}

fn type_name(def: &DefElem) -> Result<&TypeName> {
    match def.arg.as_deref().and_then(|a| a.node.as_ref()) {
        Some(N::TypeName(name)) => Ok(name),
        _ => bail!(SYNTAX_ERROR, "argument of {} must be a type name", def.defname),
    }
}

fn name_parts(def: &DefElem) -> Result<Vec<&str>> {
    match def.arg.as_deref().and_then(|a| a.node.as_ref()) {
        Some(N::TypeName(name)) => Ok(strings(&name.names)),
        Some(N::List(list)) => Ok(strings(&list.items)),
        Some(N::String(name)) => Ok(vec![&name.sval]),
        None => bail!(SYNTAX_ERROR, "{} requires a parameter", def.defname),
        Some(_) => bail!(SYNTAX_ERROR, "argument of {} must be a name", def.defname),
    }
}

/// The name of a multirange type that the statement does not name.
fn multirange_name(range: &str) -> String {
    let name = match range.find("range") {
        Some(at) => format!("{}multi{}", &range[..at], &range[at..]),
        None => format!("{}_multirange", clip(range, NAME_BYTES_MAX - "_multirange".len())),
    };
    clip(&name, NAME_BYTES_MAX).to_owned()
}

pub fn create_range(ddl: &Ddl<'_>, s: &CreateRangeStmt) -> Result<()> {
    let (namespace, name, shell) = new_type_name(ddl, &strings(&s.type_name))?;
    let attributes = RangeAttributes::read(s)?;
    let named = match &attributes.multirange {
        Some(names) => {
            let (schema, name) = ddl.qualified(names)?;
            Some((ddl.namespace_for_creation(schema)?, name))
        }
        None => None,
    };
    let subtype = range_subtype(ddl, &attributes)?;
    let opclass = range_class(ddl, attributes.opclass.as_deref(), &subtype)?;
    let collation = range_collation(ddl, attributes.collation.as_deref(), &subtype)?;
    refuse_other_order(&ddl.catalog(), opclass, collation)?;
    if attributes.canonical.is_some() && shell.is_some() {
        return Err(DbError::unsupported("a range type with a canonical function"));
    }
    if attributes.canonical.is_some() {
        return Err(err!(INVALID_OBJECT_DEFINITION, "cannot specify a canonical function without a pre-created shell type")
            .hint("Create the type as a shell type, then create its canonicalization function, then do a full CREATE TYPE."));
    }
    let difference = attributes.subtype_diff.map(|names| subtype_diff(ddl, &names, subtype.oid)).transpose()?;
    let info = RangeInfo {
        range: shell.unwrap_or_else(|| ddl.tx().new_oid()),
        subtype: subtype.oid,
        multirange: ddl.tx().new_oid(),
        collation,
        opclass,
        canonical: "-".into(),
        subtype_diff: "-".into(),
    };
    let depends_on = difference.into_iter().collect();
    let align = if subtype.align == b'd' { b'd' } else { b'i' };
    let range = Type { align, depends_on, range: Some(Arc::new(info)), ..bare_type(ddl, namespace) };
    let acl = initial_acl(&ddl.catalog(), AclKind::Type, ddl.user(), namespace);
    let array = put_range_type(ddl, Type { acl, ..range.clone() }, name, TypeKind::Range)?;
    let (multirange_namespace, multirange_name) = new_multirange_name(ddl, named, namespace, name)?;
    let multirange = Type { namespace: multirange_namespace, depends_on: Vec::new(), ..range };
    put_range_type(ddl, multirange.clone(), &multirange_name, TypeKind::Multirange)?;
    put_range_functions(ddl, &multirange, (namespace, name), &multirange_name, array)
}

fn range_subtype(ddl: &Ddl<'_>, attributes: &RangeAttributes<'_>) -> Result<Arc<Type>> {
    let Some(name) = attributes.subtype else { bail!(SYNTAX_ERROR, "type attribute \"subtype\" is required") };
    // PostgreSQL reports no position here.
    let (oid, _) = ddl.type_from_name(&TypeName { location: -1, ..name.clone() })?;
    let catalog = ddl.catalog();
    let ty = catalog.type_(oid).ok_or_else(|| DbError::internal("missing type"))?;
    if ty.type_kind == TypeKind::Pseudo {
        bail!(DATATYPE_MISMATCH, "range subtype cannot be {}", catalog.type_name(oid, ddl.path()));
    }
    ddl.require_type(oid)?;
    Ok(ty.clone())
}

/// The operator class by which bounds are ordered.
fn range_class(ddl: &Ddl<'_>, names: Option<&[&str]>, subtype: &Type) -> Result<Oid> {
    let catalog = ddl.catalog();
    let shown = catalog.type_name(subtype.oid, ddl.path());
    let default = catalog.default_operator_class(classes::BTREE, subtype.oid);
    let Some(names) = names else {
        return default.map(|c| c.oid).ok_or_else(|| {
            err!(UNDEFINED_OBJECT, "data type {shown} has no default operator class for access method \"btree\"")
                .hint("You must specify an operator class for the range type or define a default operator class for the subtype.")
        });
    };
    let class = named_class(ddl, names, AccessMethod::BTREE)?;
    let name = &class.name;
    if !catalog.is_binary_coercible(subtype.oid, class.input_type) {
        bail!(DATATYPE_MISMATCH, "operator class \"{}\" does not accept data type {shown}", names.join("."));
    }
    // By most collations text is ordered by its bytes, as the class for patterns orders it.
    let orders_alike = |of: &OperatorClass| order::is_pattern_family(class.family) && *of.name == *"text_ops";
    match default {
        Some(default) if default.oid == class.oid || orders_alike(default) => Ok(class.oid),
        _ => Err(DbError::unsupported(format!("a range type ordered by operator class \"{name}\""))),
    }
}

/// # Errors
/// 0A000 for a class that orders bytes beside a collation that does not.
fn refuse_other_order(catalog: &Catalog, opclass: Oid, collation: Oid) -> Result<()> {
    let class = catalog.access_methods().class(opclass);
    match class.filter(|class| order::is_pattern_family(class.family)) {
        Some(class) if catalog.collator(collation).is_some() => {
            Err(DbError::unsupported(format!("a range type ordered by operator class \"{}\"", class.name)))
        }
        _ => Ok(()),
    }
}

fn range_collation(ddl: &Ddl<'_>, names: Option<&[&str]>, subtype: &Type) -> Result<Oid> {
    match names {
        Some(_) if !subtype.collation.is_valid() => {
            bail!(WRONG_OBJECT_TYPE, "range collation specified but subtype does not support collation")
        }
        Some(names) => ddl.collation(names, subtype.oid, -1),
        None => Ok(subtype.collation),
    }
}

/// The function that returns the distance of two values. Nothing here needs it; dumps do.
fn subtype_diff(ddl: &Ddl<'_>, names: &[&str], subtype: Oid) -> Result<ObjectAddress> {
    let (schema, name) = ddl.qualified(names)?;
    let catalog = ddl.catalog();
    let shown = catalog.type_name(subtype, ddl.path());
    let signature = format!("{}({shown}, {shown})", names.join("."));
    let schemas = ddl.searched_schemas(schema)?;
    let found = catalog.find_functions(&schemas, name).find(|f| f.arg_types == [subtype, subtype]);
    let Some(f) = found else { bail!(UNDEFINED_FUNCTION, "function {signature} does not exist") };
    let wrong = |must: &str| Err(err!(INVALID_OBJECT_DEFINITION, "range subtype diff function {signature} must {must}"));
    if f.return_type != oids::FLOAT8 {
        return wrong("return type double precision");
    }
    if f.volatility != b'i' {
        return wrong("be immutable");
    }
    if !catalog.has_privileges(ddl.user(), AclKind::Function, f.owner, &f.acl, acl::EXECUTE) {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for function {}", f.name);
    }
    Ok(ObjectAddress { class: classes::PG_PROC, object: f.oid, sub: 0 })
}

/// The schema and name of the multirange type.
fn new_multirange_name(ddl: &Ddl<'_>, named: Option<(Oid, &str)>, namespace: Oid, range: &str) -> Result<(Oid, String)> {
    if let Some((namespace, name)) = named {
        if !free_type_name(ddl, namespace, name)? {
            bail!(DUPLICATE_OBJECT, "type \"{name}\" already exists");
        }
        return Ok((namespace, name.to_owned()));
    }
    let name = multirange_name(range);
    if ddl.catalog().type_by_name(namespace, &name).is_some() {
        return Err(err!(DUPLICATE_OBJECT, "type \"{name}\" already exists")
            .detail(format!("Failed while creating a multirange type for type \"{range}\"."))
            .hint("You can manually specify a multirange type name using the \"multirange_type_name\" attribute."));
    }
    Ok((namespace, name))
}

/// Adds a range or multirange type and its array type, whose OID it returns.
fn put_range_type(ddl: &Ddl<'_>, ty: Type, name: &str, type_kind: TypeKind) -> Result<Oid> {
    let range = ty.range.as_deref();
    let (oid, kind, prefix) = match type_kind {
        TypeKind::Multirange => (range.map_or(Oid::INVALID, |r| r.multirange), Kind::Multirange, "multirange"),
        _ => (range.map_or(Oid::INVALID, |r| r.range), Kind::Range, "range"),
    };
    let array = put_array_type(ddl, name, ty.namespace, oid, ty.align)?;
    let function = |suffix: &str| format!("{prefix}_{suffix}").into();
    ddl.tx().put(Object::Type(Arc::new(Type {
        oid,
        name: name.into(),
        type_kind,
        category: b'R',
        array,
        input: function("in"),
        output: function("out"),
        receive: function("recv"),
        send: function("send"),
        kind,
        ..ty
    })));
    Ok(array)
}

/// The functions that have the types' names, and the cast from a range to a multirange. `array`: of the range type.
fn put_range_functions(
    ddl: &Ddl<'_>,
    multirange: &Type,
    (namespace, name): (Oid, &str),
    multirange_name: &str,
    array: Oid,
) -> Result<()> {
    let info = multirange.range.as_ref().ok_or_else(|| DbError::internal("a range type without its row"))?;
    let (range, bound) = (info.range, info.subtype);
    let of_range = |args: &[Oid], source| constructor(name, namespace, range, args, source);
    put_constructor(ddl, of_range(&[bound, bound], "range_constructor2"))?;
    put_constructor(ddl, of_range(&[bound, bound, oids::TEXT], "range_constructor3"))?;
    let of_multirange = |args: &[Oid], source| {
        let f = constructor(multirange_name, multirange.namespace, info.multirange, args, source);
        Function { strict: true, ..f }
    };
    put_constructor(ddl, of_multirange(&[], "multirange_constructor0"))?;
    let function = put_constructor(ddl, of_multirange(&[range], "multirange_constructor1"))?;
    let (all_arg_types, arg_modes) = (vec![array], vec![b'v']);
    let any = of_multirange(&[array], "multirange_constructor2");
    put_constructor(ddl, Function { all_arg_types, arg_modes, variadic: range, ..any })?;
    let (oid, target) = (ddl.tx().new_oid(), info.multirange);
    let cast = Cast { oid, source: range, target, function, context: b'e', method: b'f', part_of_type: true };
    ddl.tx().put(Object::Cast(Arc::new(cast)));
    Ok(())
}

fn put_constructor(ddl: &Ddl<'_>, f: Function) -> Result<Oid> {
    let catalog = ddl.catalog();
    if catalog.functions_by_name(f.namespace, &f.name).any(|other| other.arg_types == f.arg_types) {
        bail!(DUPLICATE_FUNCTION, "function \"{}\" already exists with same argument types", f.name);
    }
    let oid = ddl.tx().new_oid();
    ddl.tx().put(Object::Function(Arc::new(Function { oid, ..f })));
    Ok(oid)
}

/// The first superuser owns it, whichever role creates the type.
fn constructor(name: &str, namespace: Oid, return_type: Oid, args: &[Oid], source: &str) -> Function {
    let (volatility, parallel) = (b'i', b's');
    let plain = plain_function(name, namespace, classes::POSTGRES_ROLE);
    Function { volatility, parallel, arg_types: args.to_vec(), return_type, source: source.into(), ..plain }
}

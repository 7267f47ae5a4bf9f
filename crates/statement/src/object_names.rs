//! Functions over the addresses of objects: names from addresses, addresses from names, privilege lists.

use std::sync::Arc;

use melba_catalog::identity::{describe, identify, object_kind};
use melba_catalog::relations::acl_datum;
use melba_catalog::{NameScope, Object, ObjectAddress, classes};
use melba_ddl::object_address;
use melba_definition::context::StatementText;
use melba_types::{Array, ArrayDim, Datum, DbError, Oid, Record, Result, bail, oids};

use super::context::StatementContext;
use super::ddl_context::ddl;
use super::large_objects::{large_object_acl, large_object_exists};

/// By pg_proc.prosrc.
pub(super) fn call_object_names(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Datum> {
    if source == "pg_get_object_address" {
        return get_object_address(context, args);
    }
    let address = ObjectAddress { class: Oid(args[0].as_oid()), object: Oid(args[1].as_oid()), sub: args[2].as_i32() };
    match source {
        "pg_describe_object" => describe_object(context, address),
        "pg_get_acl" => get_acl(context, address),
        "pg_identify_object" => {
            let kind = kind_of(context, address)?;
            let mut fields = vec![Datum::text(kind)];
            match identify_existing(context, address)? {
                Some(i) => fields.extend([i.schema, i.name, Some(i.identity)].map(|text| text.map_or(Datum::Null, Datum::text))),
                None => fields.extend([Datum::Null, Datum::Null, Datum::Null]),
            }
            Ok(record(&[oids::TEXT; 4], fields))
        }
        _ => {
            let kind = kind_of(context, address)?;
            let (names, arguments) = match identify_existing(context, address)? {
                Some(i) => (texts(i.names), texts(i.arguments)),
                None => (Datum::Null, Datum::Null),
            };
            Ok(record(&[oids::TEXT, oids::TEXT_ARRAY, oids::TEXT_ARRAY], vec![Datum::text(kind), names, arguments]))
        }
    }
}

fn record(types: &[Oid], fields: Vec<Datum>) -> Datum {
    Datum::Record(Arc::new(Record { type_oid: oids::RECORD, field_types: types.into(), field_names: None, fields }))
}

fn texts(items: Vec<String>) -> Datum {
    let elements: Vec<Datum> = items.into_iter().map(Datum::text).collect();
    let dims = match elements.len() {
        0 => Vec::new(),
        n => vec![ArrayDim { length: n as i32, lower_bound: 1 }],
    };
    Datum::Array(Arc::new(Array { element_type: oids::TEXT, dims, elements }))
}

/// # Errors
/// XX000 for a class that has no objects.
fn kind_of(context: &StatementContext, address: ObjectAddress) -> Result<String> {
    let kind = object_kind(&context.catalog, address);
    kind.ok_or_else(|| DbError::internal(format!("unsupported object class: {}", address.class)))
}

/// False for a large object that does not exist; the catalog has all other objects.
fn may_exist(context: &StatementContext, address: ObjectAddress) -> Result<bool> {
    Ok(address.class != classes::PG_LARGEOBJECT || large_object_exists(context, address.object)?)
}

fn identify_existing(
    context: &StatementContext,
    address: ObjectAddress,
) -> Result<Option<melba_catalog::identity::ObjectIdentity>> {
    if !may_exist(context, address)? {
        return Ok(None);
    }
    let scope = NameScope { path: &context.path.path, user: context.user.oid, temporary: context.path.temporary };
    Ok(identify(&context.catalog, &scope, address))
}

fn describe_object(context: &StatementContext, address: ObjectAddress) -> Result<Datum> {
    // What stood for objects that cannot be dropped in pg_depend.
    if !address.class.is_valid() && !address.object.is_valid() {
        return Ok(Datum::Null);
    }
    kind_of(context, address)?;
    if !may_exist(context, address)? {
        return Ok(Datum::Null);
    }
    Ok(describe(&context.catalog, &context.path.path, address).map_or(Datum::Null, Datum::text))
}

/// The privilege list of an object or column; NULL for owners' defaults, and for objects that have or that are none.
fn get_acl(context: &StatementContext, address: ObjectAddress) -> Result<Datum> {
    let acl = match context.catalog.object(address) {
        Some(Object::Relation(r)) if address.sub != 0 => {
            let place = usize::try_from(address.sub - 1).ok();
            place.and_then(|place| r.columns.get(place)).and_then(|c| c.acl.clone())
        }
        Some(Object::Relation(r)) => r.acl.clone(),
        Some(Object::Type(t)) => t.acl.clone(),
        Some(Object::Function(f)) => f.acl.clone(),
        Some(Object::Namespace(n)) => n.acl.clone(),
        Some(Object::Database(d)) => d.acl.clone(),
        None if address.class == classes::PG_LARGEOBJECT => large_object_acl(context, address.object)?,
        _ => None,
    };
    Ok(acl.as_ref().map_or(Datum::Null, |_| acl_datum(&acl, &context.catalog)))
}

fn get_object_address(context: &StatementContext, args: &[Datum]) -> Result<Datum> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    let list = |at: usize| -> Vec<Option<&str>> {
        let text = |item| if matches!(item, &Datum::Null) { None } else { Some(item.as_str()) };
        args[at].as_array().elements.iter().map(text).collect()
    };
    let address = object_address(&ddl(context, tx, StatementText::default()), args[0].as_str(), &list(1), &list(2))?;
    if !may_exist(context, address)? {
        bail!(UNDEFINED_OBJECT, "large object {} does not exist", address.object);
    }
    let fields = vec![Datum::Oid(address.class.0), Datum::Oid(address.object.0), Datum::Int4(address.sub)];
    Ok(record(&[oids::OID, oids::OID, oids::INT4], fields))
}

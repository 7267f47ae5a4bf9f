//! What the functions of event triggers may ask for: the objects that the running command has dropped or defined, and the table that
//! it writes again.

use std::sync::Arc;

use melba_catalog::identity::{ObjectIdentity, identify, object_kind};
use melba_catalog::{Catalog, NameScope, ObjectAddress, classes};
use melba_definition::context::Dropped;
use melba_types::{Array, ArrayDim, Datum, DbError, Oid, Result, bail, oids};

use super::collected::{CollectedCommand, CollectedCommands};
use super::context::StatementContext;

/// Keeps the names of objects that a command is about to drop.
pub(super) fn note_dropped(context: &StatementContext, objects: &[Dropped]) {
    let Some(tx) = &context.tx else { return };
    if context.session.event_states.lock().is_empty() {
        return;
    }
    let catalog = tx.catalog();
    // Event triggers do not fire for objects that all databases share, nor for themselves.
    let fires = |o: &&Dropped| !matches!(o.address.class, classes::PG_EVENT_TRIGGER | classes::PG_AUTHID | classes::PG_DATABASE);
    let rows: Vec<_> = objects.iter().filter(fires).filter_map(|object| dropped_row(context, &catalog, object)).collect();
    if let Some(state) = context.session.event_states.lock().last_mut() {
        state.dropped.extend(rows);
    }
}

/// classid, objid, objsubid, original, normal, is_temporary, object_type, schema_name, object_name, object_identity, address_names,
/// address_args
fn dropped_row(context: &StatementContext, catalog: &Catalog, object: &Dropped) -> Option<Vec<Datum>> {
    let address = object.address;
    let ObjectIdentity { name, identity, names, arguments, .. } = identity_of(context, catalog, address)?;
    let namespace = namespace_of(catalog, address);
    let is_temporary = is_temporary(context, catalog, namespace, address);
    let schema = if is_temporary { Some("pg_temp".to_owned()) } else { schema_name(catalog, namespace) };
    let optional = |text: Option<String>| text.map_or(Datum::Null, Datum::text);
    let unquoted = name.filter(|_| address.sub == 0).map(|_| names.last().cloned().unwrap_or_default());
    let unquoted = unquoted.map(|name| if address.class == classes::PG_TYPE { type_name(catalog, address.object) } else { name });
    Some(vec![
        Datum::Oid(address.class.0),
        Datum::Oid(address.object.0),
        Datum::Int4(address.sub),
        Datum::Bool(object.original),
        Datum::Bool(object.normal),
        Datum::Bool(is_temporary),
        Datum::text(object_kind(catalog, address)?),
        optional(schema),
        optional(unquoted),
        Datum::text(identity),
        names_array(names),
        names_array(arguments),
    ])
}

fn type_name(catalog: &Catalog, oid: Oid) -> String {
    catalog.type_(oid).map_or_else(String::new, |ty| ty.name.to_string())
}

fn identity_of(context: &StatementContext, catalog: &Catalog, address: ObjectAddress) -> Option<ObjectIdentity> {
    let scope = NameScope { path: &context.path.path, user: context.user.oid, temporary: context.path.temporary };
    identify(catalog, &scope, address)
}

/// The schema of an object; of a part of a table the table's.
fn namespace_of(catalog: &Catalog, address: ObjectAddress) -> Option<Oid> {
    use melba_catalog::Object;
    let of_table = |table: Oid| catalog.relation(table).map(|r| r.namespace);
    match catalog.object(address) {
        Some(Object::Relation(o)) => Some(o.namespace),
        Some(Object::Type(o)) => Some(o.namespace),
        Some(Object::Collation(o)) => Some(o.namespace),
        Some(Object::TextSearchDictionary(o)) => Some(o.namespace),
        Some(Object::TextSearchConfig(o)) => Some(o.namespace),
        Some(Object::ExtendedStatistics(o)) => Some(o.namespace),
        Some(Object::Plain(o)) => o.schema(),
        Some(Object::Function(o)) => Some(o.namespace),
        Some(Object::Operator(o)) => Some(o.namespace),
        Some(Object::Constraint(o)) => Some(o.namespace),
        Some(Object::Trigger(o)) => of_table(o.table),
        Some(Object::Policy(o)) => of_table(o.table),
        Some(Object::OperatorFamily(o)) => catalog.family_namespace(&o),
        Some(Object::OperatorClass(o)) => catalog.class_namespace(&o),
        _ if address.class == classes::PG_ATTRDEF => catalog.relation_of_part(address.object).map(|r| r.namespace),
        _ => None,
    }
}

fn schema_name(catalog: &Catalog, namespace: Option<Oid>) -> Option<String> {
    namespace.and_then(|n| catalog.namespace(n)).map(|n| n.name.to_string())
}

/// Whether an object is in the session's temporary schema, or that schema itself.
fn is_temporary(context: &StatementContext, catalog: &Catalog, namespace: Option<Oid>, address: ObjectAddress) -> bool {
    let held = *context.session.temporary_namespace.lock();
    let is_schema = address.class == classes::PG_NAMESPACE && address.object == held;
    held.is_valid() && catalog.namespace(held).is_some() && (namespace == Some(held) || is_schema)
}

fn names_array(items: Vec<String>) -> Datum {
    let dims = match items.len() {
        0 => Vec::new(),
        n => vec![ArrayDim { length: n as i32, lower_bound: 1 }],
    };
    let elements = items.into_iter().map(Datum::text).collect();
    Datum::Array(Arc::new(Array { element_type: oids::TEXT, dims, elements }))
}

/// pg_event_trigger_dropped_objects(): the objects found last come first.
///
/// # Errors
/// 39P03 outside of a sql_drop event trigger.
pub(super) fn dropped_object_rows(context: &StatementContext) -> Result<Vec<Vec<Datum>>> {
    match context.session.event_states.lock().last() {
        Some(state) if state.is_dropping => Ok(state.dropped.iter().rev().cloned().collect()),
        _ => bail!(
            E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED,
            "pg_event_trigger_dropped_objects() can only be called in a sql_drop event trigger function"
        ),
    }
}

/// pg_event_trigger_ddl_commands(): classid, objid, objsubid, command_tag, object_type, schema_name, object_identity, in_extension, command
///
/// # Errors
/// 39P03 outside of an event trigger; 0A000 after a command whose objects are not known.
pub(super) fn command_rows(context: &StatementContext) -> Result<Vec<Vec<Datum>>> {
    let (tag, commands) = match context.session.event_states.lock().last() {
        Some(state) => (state.tag, state.commands.clone()),
        None => bail!(
            E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED,
            "pg_event_trigger_ddl_commands() can only be called in an event trigger function"
        ),
    };
    match commands {
        CollectedCommands::Known(commands) => Ok(commands.iter().filter_map(|command| command_row(context, command)).collect()),
        CollectedCommands::Unknown => Err(DbError::unsupported(format!("pg_event_trigger_ddl_commands() after {tag}"))),
    }
}

fn command_row(context: &StatementContext, command: &CollectedCommand) -> Option<Vec<Datum>> {
    let optional = |text: Option<String>| text.map_or(Datum::Null, Datum::text);
    let (address, kind, schema, identity) = match command {
        CollectedCommand::On { address, .. } => {
            let catalog = &context.catalog;
            let identity = identity_of(context, catalog, *address)?;
            let namespace = namespace_of(catalog, *address);
            let schema = match is_temporary(context, catalog, namespace, *address) {
                true => identity.schema.map(|_| "pg_temp".to_owned()),
                false => identity.schema,
            };
            (Some(*address), object_kind(catalog, *address)?, schema, Some(identity.identity))
        }
        CollectedCommand::Privileges { kind, .. } => (None, (*kind).to_owned(), None, None),
    };
    let number = |part: fn(ObjectAddress) -> Datum| address.map_or(Datum::Null, part);
    Some(vec![
        number(|a| Datum::Oid(a.class.0)),
        number(|a| Datum::Oid(a.object.0)),
        number(|a| Datum::Int4(a.sub)),
        Datum::text(command.tag()),
        Datum::text(kind),
        optional(schema),
        optional(identity),
        Datum::Bool(false),
        Datum::Null,
    ])
}

/// pg_event_trigger_table_rewrite_oid() and _reason().
///
/// # Errors
/// 39P03 outside of a table_rewrite event trigger.
pub(super) fn rewritten(context: &StatementContext, source: &str) -> Result<Datum> {
    let state = context.session.event_states.lock().last().and_then(|state| state.rewritten);
    let Some((table, reason)) = state else {
        bail!(E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED, "{source}() can only be called in a table_rewrite event trigger function");
    };
    Ok(match source {
        "pg_event_trigger_table_rewrite_oid" => Datum::Oid(table.0),
        _ => Datum::Int4(reason as i32),
    })
}

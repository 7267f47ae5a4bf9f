//! pg_restore_relation_stats and its like, which pg_dump --statistics calls. Melba computes statistics from a table's rows whenever they
//! are asked for: there is nothing to be restored or cleared, which a warning says.

use std::sync::Arc;

use melba_catalog::{Relation, RelationKind, acl};
use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::{Datum, Oid, Result, Severity, bail, err, oids};

/// The arguments of pg_restore_relation_stats, and their types.
const OF_RELATION: &[(&str, Oid)] = &[
    ("schemaname", oids::TEXT),
    ("relname", oids::TEXT),
    ("relpages", oids::INT4),
    ("reltuples", oids::FLOAT4),
    ("relallvisible", oids::INT4),
    ("relallfrozen", oids::INT4),
];
/// Those of pg_restore_attribute_stats.
const OF_ATTRIBUTE: &[(&str, Oid)] = &[
    ("schemaname", oids::TEXT),
    ("relname", oids::TEXT),
    ("attname", oids::TEXT),
    ("attnum", oids::INT2),
    ("inherited", oids::BOOL),
    ("null_frac", oids::FLOAT4),
    ("avg_width", oids::INT4),
    ("n_distinct", oids::FLOAT4),
    ("most_common_vals", oids::TEXT),
    ("most_common_freqs", oids::FLOAT4_ARRAY),
    ("histogram_bounds", oids::TEXT),
    ("correlation", oids::FLOAT4),
    ("most_common_elems", oids::TEXT),
    ("most_common_elem_freqs", oids::FLOAT4_ARRAY),
    ("elem_count_histogram", oids::FLOAT4_ARRAY),
    ("range_length_histogram", oids::TEXT),
    ("range_empty_frac", oids::FLOAT4),
    ("range_bounds_histogram", oids::TEXT),
];

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("pg_restore_relation_stats", |call, args| {
        let given = named(call, args, OF_RELATION)?;
        let relation = relation(call, value(&given, "schemaname"), value(&given, "relname"))?;
        warn(call, &format!("statistics of relation \"{}\" are not restored", relation.name));
        Ok(Datum::Bool(false))
    }),
    ("pg_restore_attribute_stats", |call, args| {
        let given = named(call, args, OF_ATTRIBUTE)?;
        let relation = relation(call, value(&given, "schemaname"), value(&given, "relname"))?;
        let name = match (value(&given, "attname"), value(&given, "attnum")) {
            (Some(_), Some(_)) => bail!(INVALID_PARAMETER_VALUE, "cannot specify both \"attname\" and \"attnum\""),
            (Some(name), None) => column(&relation, name.as_str())?,
            (None, Some(number)) => numbered_column(&relation, i64::from(number.as_i16()))?,
            (None, None) => bail!(INVALID_PARAMETER_VALUE, "must specify either \"attname\" or \"attnum\""),
        };
        required(value(&given, "inherited"), "inherited")?;
        warn(call, &format!("statistics of column \"{name}\" of relation \"{}\" are not restored", relation.name));
        Ok(Datum::Bool(false))
    }),
    ("pg_clear_relation_stats", |call, args| {
        let relation = relation(call, present(&args[0]), present(&args[1]))?;
        warn(call, &format!("statistics of relation \"{}\" are not cleared", relation.name));
        Ok(Datum::text(""))
    }),
    ("pg_clear_attribute_stats", |call, args| {
        let relation = relation(call, present(&args[0]), present(&args[1]))?;
        let name = column(&relation, required(present(&args[2]), "attname")?.as_str())?;
        required(present(&args[3]), "inherited")?;
        warn(call, &format!("statistics of column \"{name}\" of relation \"{}\" are not cleared", relation.name));
        Ok(Datum::text(""))
    }),
];

/// Arguments by name; those that are NULL are left out. Warns of names and types that PostgreSQL does not know.
fn named<'a>(call: &CallInfo<'_>, args: &'a [Datum], known: &[(&'static str, Oid)]) -> Result<Vec<(&'static str, &'a Datum)>> {
    if !args.len().is_multiple_of(2) {
        return Err(err!(INTERNAL_ERROR, "variadic arguments must be name/value pairs")
            .hint("Provide an even number of variadic arguments that can be divided into pairs."));
    }
    let mut given = Vec::new();
    for (at, pair) in args.chunks(2).enumerate() {
        if pair[0].is_null() {
            bail!(INTERNAL_ERROR, "name at variadic position {} is null", at * 2 + 1);
        }
        // pg_dump gives its version first; it means nothing yet.
        let name = pair[0].as_str();
        if name.eq_ignore_ascii_case("version") || pair[1].is_null() {
            continue;
        }
        let Some((name, ty)) = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) else {
            call.session.notice(err!(WARNING, "unrecognized argument name: \"{name}\"").severity(Severity::Warning));
            continue;
        };
        let actual = call.arg_types.get(at * 2 + 1).copied().unwrap_or(*ty);
        if actual != *ty && !(*ty == oids::TEXT && actual == oids::UNKNOWN) {
            let catalog = call.session.catalog();
            let type_name = |ty| catalog.type_name(ty, &[melba_catalog::classes::PG_CATALOG]);
            let message = format!("argument \"{name}\" has type {}, expected type {}", type_name(actual), type_name(*ty));
            call.session.notice(err!(WARNING, "{message}").severity(Severity::Warning));
            continue;
        }
        given.push((*name, &pair[1]));
    }
    Ok(given)
}

fn value<'a>(given: &[(&str, &'a Datum)], name: &str) -> Option<&'a Datum> {
    given.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

fn present(value: &Datum) -> Option<&Datum> {
    Some(value).filter(|value| !value.is_null())
}

fn required<'a>(value: Option<&'a Datum>, name: &str) -> Result<&'a Datum> {
    value.ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "argument \"{name}\" must not be null"))
}

/// The relation, if the user may maintain it.
fn relation(call: &CallInfo<'_>, schema: Option<&Datum>, name: Option<&Datum>) -> Result<Arc<Relation>> {
    let (schema, name) = (required(schema, "schemaname")?.as_str(), required(name, "relname")?.as_str());
    let catalog = call.session.catalog();
    let namespace =
        catalog.namespace_by_name(schema).ok_or_else(|| err!(INVALID_SCHEMA_NAME, "schema \"{schema}\" does not exist"))?;
    let relation = catalog.relation_by_name(namespace.oid, name);
    let relation = relation.ok_or_else(|| err!(UNDEFINED_TABLE, "relation \"{schema}.{name}\" does not exist"))?;
    let unsupported = match relation.kind {
        RelationKind::View => Some("views"),
        RelationKind::Sequence => Some("sequences"),
        RelationKind::Composite => Some("composite types"),
        RelationKind::Toast => Some("TOAST tables"),
        _ => None,
    };
    if let Some(kind) = unsupported {
        return Err(err!(WRONG_OBJECT_TYPE, "cannot modify statistics for relation \"{name}\"")
            .detail(format!("This operation is not supported for {kind}.")));
    }
    let of = relation.index.as_ref().and_then(|index| catalog.relation(index.table)).unwrap_or(relation);
    if !catalog.has_relation_privileges(call.session.user(), of, acl::MAINTAIN) {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for table {}", of.name);
    }
    Ok(Arc::clone(relation))
}

/// A column's name, if the relation has it.
fn column(relation: &Relation, name: &str) -> Result<Arc<str>> {
    let found = relation.columns.iter().find(|column| !column.dropped && *column.name == *name);
    found
        .map(|column| column.name.clone())
        .ok_or_else(|| err!(UNDEFINED_COLUMN, "column \"{name}\" of relation \"{}\" does not exist", relation.name))
}

fn numbered_column(relation: &Relation, number: i64) -> Result<Arc<str>> {
    // Expressions of an index have numbers as well.
    if relation.index.is_some() {
        return Ok(number.to_string().into());
    }
    let found = usize::try_from(number - 1).ok().and_then(|at| relation.columns.get(at)).filter(|column| !column.dropped);
    found
        .map(|column| column.name.clone())
        .ok_or_else(|| err!(UNDEFINED_COLUMN, "column {number} of relation \"{}\" does not exist", relation.name))
}

fn warn(call: &CallInfo<'_>, message: &str) {
    let warning = err!(FEATURE_NOT_SUPPORTED, "{message}").detail("They are computed from the table's rows.");
    call.session.notice(warning.severity(Severity::Warning));
}

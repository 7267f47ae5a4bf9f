//! Parameters in WITH (...) of tables, indexes and views, and in SET (...) of columns: PostgreSQL's storage parameters, their
//! ranges and messages (its access/common/reloptions.c). Most only matter to a storage that has pages and needs VACUUM; they are
//! checked, and kept for the tools that read them back.

use std::sync::Arc;

use melba_catalog::publications::parse_span;
use melba_catalog::{Relation, RelationKind, classes};
use melba_parse::nodes::{option_bool, option_text, options};
use melba_types::{Result, bail, boolean, err};
use pg_query::protobuf::Node;

/// The targets of a parameter: bits of `Parameter::of`.
const TABLE: u8 = 1;

const TOAST: u8 = 2;
const INDEX: u8 = 4;
const VIEW: u8 = 8;
const COLUMN: u8 = 16;
const GIN: u8 = 32;
const BRIN: u8 = 64;
const TABLESPACE: u8 = 128;

enum Values {
    Bool,
    Integer(i64, i64),
    Real(f64, f64),
    /// The names, and the detail of the error for another one.
    OneOf(&'static [&'static str], &'static str),
    /// The URL of a folder of a store.
    Store,
    /// A span of time, such as 7d.
    Span,
}

struct Parameter {
    name: &'static str,
    of: u8,
    values: Values,
}

const fn parameter(name: &'static str, of: u8, values: Values) -> Parameter {
    Parameter { name, of, values }
}

const INT_MAX: i64 = i32::MAX as i64;
const INDEX_CLEANUP: &[&str] = &["auto", "on", "off", "true", "false", "yes", "no", "1", "0"];

static PARAMETERS: &[Parameter] = {
    use Values::*;
    &[
        parameter("fillfactor", TABLE | INDEX, Integer(10, 100)),
        parameter("deduplicate_items", INDEX, Bool),
        parameter("fastupdate", GIN, Bool),
        parameter("gin_pending_list_limit", GIN, Integer(64, INT_MAX)),
        parameter("pages_per_range", BRIN, Integer(1, 131_072)),
        parameter("autosummarize", BRIN, Bool),
        parameter("vacuum_cleanup_index_scale_factor", INDEX, Real(0.0, 1e10)),
        parameter("toast_tuple_target", TABLE, Integer(128, 8160)),
        parameter("parallel_workers", TABLE, Integer(0, 1024)),
        parameter("user_catalog_table", TABLE, Bool),
        parameter("vacuum_truncate", TABLE | TOAST, Bool),
        parameter("vacuum_index_cleanup", TABLE | TOAST, OneOf(INDEX_CLEANUP, r#"Valid values are "on", "off", and "auto"."#)),
        parameter("vacuum_max_eager_freeze_failure_rate", TABLE | TOAST, Real(0.0, 1.0)),
        parameter("autovacuum_enabled", TABLE | TOAST, Bool),
        parameter("autovacuum_vacuum_threshold", TABLE | TOAST, Integer(0, INT_MAX)),
        parameter("autovacuum_vacuum_max_threshold", TABLE | TOAST, Integer(-1, INT_MAX)),
        parameter("autovacuum_vacuum_insert_threshold", TABLE | TOAST, Integer(-1, INT_MAX)),
        parameter("autovacuum_analyze_threshold", TABLE, Integer(0, INT_MAX)),
        parameter("autovacuum_vacuum_cost_limit", TABLE | TOAST, Integer(1, 10_000)),
        parameter("autovacuum_vacuum_cost_delay", TABLE | TOAST, Real(0.0, 100.0)),
        parameter("autovacuum_vacuum_scale_factor", TABLE | TOAST, Real(0.0, 100.0)),
        parameter("autovacuum_vacuum_insert_scale_factor", TABLE | TOAST, Real(0.0, 100.0)),
        parameter("autovacuum_analyze_scale_factor", TABLE, Real(0.0, 100.0)),
        parameter("autovacuum_freeze_min_age", TABLE | TOAST, Integer(0, 1_000_000_000)),
        parameter("autovacuum_multixact_freeze_min_age", TABLE | TOAST, Integer(0, 1_000_000_000)),
        parameter("autovacuum_freeze_max_age", TABLE | TOAST, Integer(100_000, 2_000_000_000)),
        parameter("autovacuum_multixact_freeze_max_age", TABLE | TOAST, Integer(10_000, 2_000_000_000)),
        parameter("autovacuum_freeze_table_age", TABLE | TOAST, Integer(0, 2_000_000_000)),
        parameter("autovacuum_multixact_freeze_table_age", TABLE | TOAST, Integer(0, 2_000_000_000)),
        parameter("log_autovacuum_min_duration", TABLE | TOAST, Integer(-1, INT_MAX)),
        parameter("cold_store", TABLE, Store),
        parameter("cold_after", TABLE, Span),
        parameter("n_distinct", COLUMN, Real(-1.0, f64::MAX)),
        parameter("n_distinct_inherited", COLUMN, Real(-1.0, f64::MAX)),
        parameter("compression_level", COLUMN, Integer(1, 22)),
        parameter("random_page_cost", TABLESPACE, Real(0.0, f64::MAX)),
        parameter("seq_page_cost", TABLESPACE, Real(0.0, f64::MAX)),
        parameter("effective_io_concurrency", TABLESPACE, Integer(0, 1000)),
        parameter("maintenance_io_concurrency", TABLESPACE, Integer(0, 1000)),
        parameter("security_barrier", VIEW, Bool),
        parameter("security_invoker", VIEW, Bool),
        parameter("check_option", VIEW, OneOf(&["local", "cascaded"], r#"Valid values are "local" and "cascaded"."#)),
    ]
};

/// The target of a list of parameters.
#[derive(Clone, Copy, PartialEq)]
pub enum ParametersOf {
    /// A materialized view too.
    Table,
    PartitionedTable,
    Index,
    /// A GIN index.
    Gin,
    /// A BRIN index.
    Brin,
    View,
    Column,
    Tablespace,
}

impl ParametersOf {
    pub fn relation(relation: &Relation) -> ParametersOf {
        match relation.kind {
            RelationKind::PartitionedTable => ParametersOf::PartitionedTable,
            RelationKind::View => ParametersOf::View,
            RelationKind::Index | RelationKind::PartitionedIndex => match relation.access_method {
                classes::GIN => ParametersOf::Gin,
                classes::BRIN => ParametersOf::Brin,
                _ => ParametersOf::Index,
            },
            _ => ParametersOf::Table,
        }
    }

    fn bit(self) -> u8 {
        match self {
            ParametersOf::Table | ParametersOf::PartitionedTable => TABLE,
            ParametersOf::Index => INDEX,
            ParametersOf::Gin => GIN,
            ParametersOf::Brin => BRIN,
            ParametersOf::View => VIEW,
            ParametersOf::Column => COLUMN,
            ParametersOf::Tablespace => TABLESPACE,
        }
    }

    /// The parameters of a new relation, as `name=value`; those of its toast table have `toast.` before the name.
    ///
    /// # Errors
    /// 22023 for an unknown one or a value out of its range, 42809 for any of a partitioned table.
    pub fn new_list(self, list: &[Node]) -> Result<Vec<Arc<str>>> {
        self.changed_list(&[], list)
    }

    /// The parameters after ALTER ... SET (...).
    ///
    /// # Errors
    /// As `new_list`.
    pub fn changed_list(self, old: &[Arc<str>], list: &[Node]) -> Result<Vec<Arc<str>>> {
        let mut out = without(old, list);
        let before = out.len();
        for def in options(list) {
            match def.defnamespace.as_str() {
                "" => {}
                "toast" if self == ParametersOf::Table => {}
                other => bail!(INVALID_PARAMETER_VALUE, "unrecognized parameter namespace \"{other}\""),
            }
            if def.defname == "oids" && def.defnamespace.is_empty() && self == ParametersOf::Table {
                if option_bool(def)? {
                    bail!(FEATURE_NOT_SUPPORTED, "tables declared WITH OIDS are not supported");
                }
                continue;
            }
            let of = if def.defnamespace.is_empty() { self.bit() } else { TOAST };
            let value = if def.arg.is_none() { "true".to_owned() } else { option_text(def).unwrap_or_default() };
            check(&def.defname, of, &value)?;
            let name = full_name(&def.defnamespace, &def.defname);
            if out[before..].iter().any(|o| is_named(o, &name)) {
                bail!(INVALID_PARAMETER_VALUE, "parameter \"{}\" specified more than once", def.defname);
            }
            out.push(format!("{name}={value}").into());
        }
        if self == ParametersOf::PartitionedTable && !out.is_empty() {
            return Err(err!(WRONG_OBJECT_TYPE, "cannot specify storage parameters for a partitioned table")
                .hint("Specify storage parameters for its leaf partitions instead."));
        }
        Ok(out)
    }
}

/// The parameters after ALTER ... RESET (...).
///
/// # Errors
/// 42601 when the list has values.
pub fn reset_list(old: &[Arc<str>], list: &[Node]) -> Result<Vec<Arc<str>>> {
    if options(list).any(|def| def.arg.is_some()) {
        bail!(SYNTAX_ERROR, "RESET must not include values for parameters");
    }
    Ok(without(old, list))
}

fn without(old: &[Arc<str>], list: &[Node]) -> Vec<Arc<str>> {
    let names: Vec<String> = options(list).map(|def| full_name(&def.defnamespace, &def.defname)).collect();
    old.iter().filter(|o| !names.iter().any(|name| is_named(o, name))).cloned().collect()
}

fn full_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}

fn is_named(option: &str, name: &str) -> bool {
    option.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
}

fn check(name: &str, of: u8, value: &str) -> Result<()> {
    let Some(parameter) = PARAMETERS.iter().find(|p| p.name == name && p.of & of != 0) else {
        bail!(INVALID_PARAMETER_VALUE, "unrecognized parameter \"{name}\"");
    };
    let out_of_bounds =
        |detail: String| Err(err!(INVALID_PARAMETER_VALUE, "value {value} out of bounds for option \"{name}\"").detail(detail));
    match &parameter.values {
        Values::Bool if boolean::parse(value).is_none() => {
            bail!(INVALID_PARAMETER_VALUE, "invalid value for boolean option \"{name}\": {value}")
        }
        Values::Integer(min, max) => match value.trim().parse::<f64>() {
            Ok(n) if n.is_finite() && (*min..=*max).contains(&(n.round_ties_even() as i64)) => Ok(()),
            Ok(n) if n.is_finite() => out_of_bounds(format!("Valid values are between \"{min}\" and \"{max}\".")),
            _ => bail!(INVALID_PARAMETER_VALUE, "invalid value for integer option \"{name}\": {value}"),
        },
        Values::Real(min, max) => match value.trim().parse::<f64>() {
            Ok(n) if n >= *min && n <= *max => Ok(()),
            Ok(n) if !n.is_nan() => out_of_bounds(format!("Valid values are between \"{min:.6}\" and \"{max:.6}\".")),
            _ => bail!(INVALID_PARAMETER_VALUE, "invalid value for floating point option \"{name}\": {value}"),
        },
        Values::OneOf(names, detail) if !names.iter().any(|n| n.eq_ignore_ascii_case(value)) => {
            Err(err!(INVALID_PARAMETER_VALUE, "invalid value for enum option \"{name}\": {value}").detail(*detail))
        }
        Values::Store => melba_objects::check_folder(value).map_err(|why| {
            // A password is nobody's business.
            let shown = if value.contains('@') { "" } else { value };
            err!(INVALID_PARAMETER_VALUE, "invalid value for option \"{name}\": \"{shown}\" is no folder of a store")
                .detail(format!("{why}."))
                .hint("Folders have URLs such as s3://bucket/folder and file:///folder.")
        }),
        Values::Span if parse_span(value).is_none() => {
            Err(err!(INVALID_PARAMETER_VALUE, "invalid value for option \"{name}\": {value}")
                .hint("Valid units for this option are \"ms\", \"s\", \"min\", \"h\", and \"d\"."))
        }
        Values::Bool | Values::OneOf(..) | Values::Span => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cold_stores_are_folders_of_stores() {
        for url in ["s3://b/f", "gs://b", "az://c/f", "file:///f"] {
            assert!(check("cold_store", TABLE, url).is_ok(), "{url}");
        }
        for url in
            ["/f", "s3://b/f?x", "s3://b/f#x", "s3://u:secret@b/f", "https://h/f", "http://h/f", "memory:///f", "bla://b/f"]
        {
            let error = check("cold_store", TABLE, url).expect_err(url);
            assert_eq!(error.sqlstate(), melba_types::SqlState::INVALID_PARAMETER_VALUE, "{url}");
            assert!(!format!("{error:?}").contains("secret"));
        }
    }
}

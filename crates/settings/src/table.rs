//! The table of settings (PostgreSQL's GUC), read once from `settings.tsv`.
//!
//! Columns of the file: name, type, context, unit, default, minimum, maximum, options, category, description, class, the values that a
//! refused setting may have beside its default, and a note for pg_settings.extra_desc.

use std::sync::OnceLock;

use hashbrown::HashMap;
use melba_types::{Result, err};

use crate::value::{self, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Bool,
    Integer,
    Real,
    Text,
    Enum,
}

/// The users who may change a setting, and when (pg_settings.context).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Context {
    /// Never.
    Internal,
    /// At server start.
    Postmaster,
    /// By the configuration file.
    Sighup,
    SuperuserBackend,
    /// At connection start.
    Backend,
    Superuser,
    User,
}

impl Context {
    pub fn name(self) -> &'static str {
        match self {
            Context::Internal => "internal",
            Context::Postmaster => "postmaster",
            Context::Sighup => "sighup",
            Context::SuperuserBackend => "superuser-backend",
            Context::Backend => "backend",
            Context::Superuser => "superuser",
            Context::User => "user",
        }
    }
}

/// The effect of a setting here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The same effect as in PostgreSQL.
    Acts,
    /// It reports a fact; it cannot be set.
    Fixed,
    /// Any value is accepted and shown, and changes nothing. The note says why.
    Inert,
    /// Values that would request a missing feature are refused. The note says why.
    Refused,
}

#[derive(Debug)]
pub struct Definition {
    pub name: &'static str,
    pub ty: Type,
    pub context: Context,
    /// Empty: none.
    pub unit: &'static str,
    pub default: &'static str,
    pub min: &'static str,
    pub max: &'static str,
    options: &'static str,
    pub category: &'static str,
    pub description: &'static str,
    pub class: Class,
    /// Of a refused setting, beside its default.
    pub(crate) accepted: &'static str,
    /// Why it is inert or refused; empty otherwise.
    pub(crate) note: &'static str,
}

impl Definition {
    /// The values of an enum, of which one may be empty.
    pub fn options(&self) -> impl Iterator<Item = &'static str> + use<> {
        let options = Some(self.options).filter(|options| !options.is_empty());
        options.into_iter().flat_map(|options| options.split(','))
    }

    /// pg_settings.extra_desc: a note about the setting in this server.
    pub fn extra_description(&self) -> Option<String> {
        match self.class {
            Class::Acts | Class::Fixed => None,
            Class::Inert => Some(format!("Accepted without effect. {}", self.note)),
            Class::Refused => Some(format!("Other values than the default are not supported. {}", self.note)),
        }
    }

    /// Refuses values for missing features.
    pub(crate) fn check_supported(&self, value: &Value, default: &Value) -> Result<()> {
        let is_accepted = |value: &str| self.accepted.split(',').any(|accepted| accepted.eq_ignore_ascii_case(value));
        let is_listed = || match self.name.ends_with("_preload_libraries") {
            // Each of a list.
            true => value::plain(value).split(',').all(|library| is_accepted(library_name(library.trim().trim_matches('"')))),
            false => is_accepted(&value::plain(value)),
        };
        if self.class != Class::Refused || value == default || !self.accepted.is_empty() && is_listed() {
            return Ok(());
        }
        let shown = value::show(self, value);
        Err(err!(FEATURE_NOT_SUPPORTED, "parameter \"{}\" cannot be set to \"{shown}\"", self.name).detail(self.note))
    }

    /// Changes are reported to the client as ParameterStatus.
    pub fn reported(&self) -> bool {
        REPORTED.contains(&self.name)
    }

    /// pg_settings.vartype.
    pub fn type_name(&self) -> &'static str {
        match self.ty {
            Type::Bool => "bool",
            Type::Integer => "integer",
            Type::Real => "real",
            Type::Text => "string",
            Type::Enum => "enum",
        }
    }
}

/// The settings that PostgreSQL 18 reports, in its order.
pub const REPORTED: &[&str] = &[
    "in_hot_standby",
    "integer_datetimes",
    "TimeZone",
    "IntervalStyle",
    "search_path",
    "is_superuser",
    "application_name",
    "default_transaction_read_only",
    "scram_iterations",
    "DateStyle",
    "standard_conforming_strings",
    "session_authorization",
    "client_encoding",
    "server_version",
    "server_encoding",
];

/// The settings, sorted by name as pg_settings lists them, and their places by lower-case name.
pub struct Table {
    pub definitions: Vec<Definition>,
    pub defaults: Vec<Value>,
    by_name: HashMap<String, usize>,
}

/// Whether a setting is left out of SHOW ALL and pg_settings.
pub fn is_hidden(name: &str) -> bool {
    matches!(name, "default_with_oids" | "is_superuser" | "role" | "seed" | "session_authorization" | "ssl_renegotiation_limit")
}

pub fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let definitions: Vec<Definition> = include_str!("settings.tsv").lines().map(definition).collect();
        let defaults = definitions
            .iter()
            .map(|d| match d.ty {
                // Defaults may lie outside the range that users may choose from.
                Type::Integer => Value::Integer(d.default.parse().unwrap_or(0)),
                Type::Real => Value::Real(d.default.parse().unwrap_or(0.0)),
                Type::Bool => Value::Bool(d.default == "on"),
                Type::Text | Type::Enum => Value::Text(d.default.into()),
            })
            .collect();
        let by_name = definitions.iter().enumerate().map(|(i, d)| (d.name.to_ascii_lowercase(), i)).collect();
        Table { definitions, defaults, by_name }
    })
}

impl Table {
    pub fn find(&self, name: &str) -> Option<usize> {
        if let Some(found) = self.by_name.get(name) {
            return Some(*found);
        }
        // Old names that PostgreSQL still understands.
        match name.to_ascii_lowercase().as_str() {
            "sort_mem" => self.by_name.get("work_mem"),
            "vacuum_mem" => self.by_name.get("maintenance_work_mem"),
            "ssl_ecdh_curve" => self.by_name.get("ssl_groups"),
            lower => self.by_name.get(lower),
        }
        .copied()
    }

    /// The value of a definition given as text in a file of ours or a command line.
    pub fn parse(&self, index: usize, text: &str) -> melba_types::Result<Value> {
        value::parse(&self.definitions[index], text)
    }
}

fn definition(line: &'static str) -> Definition {
    let mut fields = line.split('\t');
    let mut next = || fields.next().unwrap_or_default();
    let name = next();
    let ty = match next() {
        "bool" => Type::Bool,
        "integer" => Type::Integer,
        "real" => Type::Real,
        "enum" => Type::Enum,
        _ => Type::Text,
    };
    let context = match next() {
        "user" => Context::User,
        "superuser" => Context::Superuser,
        "backend" => Context::Backend,
        "superuser-backend" => Context::SuperuserBackend,
        "sighup" => Context::Sighup,
        "postmaster" => Context::Postmaster,
        _ => Context::Internal,
    };
    Definition {
        name,
        ty,
        context,
        unit: next(),
        default: next(),
        min: next(),
        max: next(),
        options: next(),
        category: next(),
        description: next(),
        class: match next() {
            "acts" => Class::Acts,
            "fixed" => Class::Fixed,
            "inert" => Class::Inert,
            _ => Class::Refused,
        },
        accepted: next(),
        note: next(),
    }
}

/// Without the folder of libraries and the ending.
fn library_name(file: &str) -> &str {
    let name = file.strip_prefix("$libdir/").unwrap_or(file);
    name.strip_suffix(".so").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        let table = table();
        for (d, default) in table.definitions.iter().zip(&table.defaults) {
            assert!(!d.description.is_empty() && !d.category.is_empty(), "{}", d.name);
            if d.ty == Type::Enum {
                assert!(d.options().any(|o| o == default.as_text()), "{}", d.name);
            }
            if let Type::Integer | Type::Real = d.ty {
                assert!(d.default.parse::<f64>().is_ok() && d.min.parse::<f64>().is_ok(), "{}", d.name);
            }
        }
        for name in REPORTED {
            assert!(table.find(name).is_some(), "{name}");
        }
        for line in include_str!("settings.tsv").lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            assert_eq!(fields.len(), 13, "{line}");
            assert!(matches!(fields[10], "acts" | "fixed" | "inert" | "refused"), "{line}");
            let needs_note = matches!(fields[10], "inert" | "refused");
            assert_eq!(needs_note, !fields[12].is_empty(), "{line}: inert and refused settings say why, others need not");
        }
        assert_eq!(table.find("SORT_MEM"), table.find("work_mem"));
    }

    /// PostgreSQL 18.6 lists this many of its own settings, beside those that are hidden; eleven are ours, and those of
    /// auto_explain, pg_stat_statements, pg_trgm and PL/pgSQL come with them.
    #[test]
    fn all_settings_of_postgresql_18_are_classified() {
        const OURS: [&str; 11] = [
            "auth_delay.milliseconds",
            "cold_cache_size",
            "dense_gain_min",
            "dense_read_budget",
            "memory",
            "metrics_listen",
            "metrics_token_file",
            "traces_endpoint",
            "traces_headers_file",
            "traces_sample_rate",
            "traces_text_max_length",
        ];
        let is_other = |name: &&str| {
            let is_of_extension =
                ["auto_explain.", "pg_stat_statements.", "pg_trgm.", "plpgsql."].iter().any(|prefix| name.starts_with(prefix));
            OURS.contains(name) || is_hidden(name) || is_of_extension
        };
        let names = table().definitions.iter().map(|d| d.name).filter(|name| !is_other(name));
        assert_eq!(names.count(), 399);
    }
}

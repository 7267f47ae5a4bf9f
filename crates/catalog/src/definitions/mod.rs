//! The DDL text of objects, for pg_get_indexdef, pg_get_constraintdef, pg_get_functiondef and similar functions.
//!
//! Expressions are printed as the catalog has them; a `Style` may have a function that prints them otherwise (with fewer
//! parentheses, for the pretty forms).

mod functions;
mod relations;
mod statistics;

pub use functions::{function_argument_default, function_arguments, function_definition, function_result};
pub use relations::{
    constraint_definition, index_column_definition, index_definition, owned_sequence, partition_key_definition,
    trigger_definition,
};
pub use statistics::{statistics_definition, statistics_definition_columns};

use melba_types::Oid;

use crate::naming::quote_ident;
use crate::snapshot::Catalog;

/// How definitions are written.
pub struct Style<'a> {
    pub path: &'a [Oid],
    /// The pretty form: names that the search path finds are not qualified.
    pub pretty: bool,
    /// From an expression's stored text, and the relation whose columns it mentions (0: none), to its printed one.
    pub expression: &'a dyn Fn(&str, Oid) -> String,
}

impl<'a> Style<'a> {
    /// Expressions as they are stored.
    pub fn plain(path: &'a [Oid]) -> Style<'a> {
        Style { path, pretty: false, expression: &|text, _| text.to_owned() }
    }
}

/// A role's name as pg_get_userbyid returns it.
pub fn role_name(catalog: &Catalog, oid: Oid) -> String {
    catalog.role(oid).map_or_else(|| format!("unknown (OID={oid})"), |r| r.name.to_string())
}

/// `name = value` options in a WITH list: values are quoted unless they are identifiers.
fn options(options: &[std::sync::Arc<str>]) -> String {
    let one = |option: &std::sync::Arc<str>| {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let plain = matches!(quote_ident(value), std::borrow::Cow::Borrowed(_));
        let value = if plain { value.to_owned() } else { literal(value) };
        format!("{}={value}", quote_ident(name))
    };
    options.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A literal for a server with standard_conforming_strings.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

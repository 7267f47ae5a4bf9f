//! What a foreign table says of its files: options named as those of COPY are.

use std::sync::Arc;

use melba_catalog::foreign::option;
use melba_types::{DbError, Result, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{self, DefElem, Node};

use super::options::{CopyFormat, CopyOptions};

/// Options of a foreign table.
pub const TABLE_OPTIONS: [&str; 13] = [
    "filename",
    "program",
    "format",
    "header",
    "delimiter",
    "quote",
    "escape",
    "null",
    "default",
    "encoding",
    "on_error",
    "log_verbosity",
    "reject_limit",
];

/// Options of a foreign table's column, which lists of COPY name.
pub const COLUMN_OPTIONS: [&str; 2] = ["force_not_null", "force_null"];

/// Where the rows of a foreign table come from.
#[derive(Debug)]
pub struct ForeignFile {
    pub source: ForeignSource,
    pub format: ForeignFormat,
}

#[derive(Debug)]
pub enum ForeignSource {
    /// A file, a pattern or a URL.
    File(String),
    /// A command, whose output is read.
    Program(String),
}

#[derive(Debug)]
pub enum ForeignFormat {
    /// Text or CSV.
    Lines(Box<CopyOptions>),
    /// An object in each line.
    Json,
    Parquet,
}

/// The options of a column, with its name.
pub type ColumnOptions<'a> = (&'a str, &'a [Arc<str>]);

impl ForeignFile {
    /// # Errors
    /// Those of COPY's options, HV002 without a file, 0A000 for what no foreign table has here.
    pub fn new(options: &[Arc<str>], columns: &[ColumnOptions<'_>]) -> Result<ForeignFile> {
        let format = match option(options, "format") {
            Some("json") => {
                refuse_others(options)?;
                ForeignFormat::Json
            }
            _ => {
                let copied = CopyOptions::parse(&as_nodes(options, columns)?, true)?;
                match copied.format {
                    CopyFormat::Parquet => ForeignFormat::Parquet,
                    CopyFormat::Binary => return Err(DbError::unsupported("a foreign table in COPY's binary format")),
                    CopyFormat::Text | CopyFormat::Csv => ForeignFormat::Lines(Box::new(copied)),
                }
            }
        };
        if option(options, "default").is_some() {
            return Err(DbError::unsupported("option \"default\" of a foreign table"));
        }
        let source = match (option(options, "filename"), option(options, "program"), &format) {
            (Some(name), ..) => ForeignSource::File(name.to_owned()),
            (None, Some(command), ForeignFormat::Lines(_)) => ForeignSource::Program(command.to_owned()),
            (None, Some(_), _) => {
                return Err(DbError::unsupported("option \"program\" of a foreign table that is neither text nor CSV"));
            }
            (None, None, _) => {
                bail!(FDW_DYNAMIC_PARAMETER_VALUE_NEEDED, "either filename or program is required for file_fdw foreign tables")
            }
        };
        Ok(ForeignFile { source, format })
    }
}

/// Objects of JSON have no dialects.
fn refuse_others(options: &[Arc<str>]) -> Result<()> {
    let mut names = options.iter().filter_map(|o| o.split_once('=')).map(|(name, _)| name);
    match names.find(|name| !["filename", "program", "format"].contains(name)) {
        Some(name) => Err(err!(SYNTAX_ERROR, "cannot specify {} in JSON mode", name.to_uppercase())),
        None => Ok(()),
    }
}

/// The list that COPY would have.
fn as_nodes(options: &[Arc<str>], columns: &[ColumnOptions<'_>]) -> Result<Vec<Node>> {
    let text = |text: &str| Node { node: Some(N::String(protobuf::String { sval: text.to_owned() })) };
    let element = |name: &str, arg: Node| {
        let (defname, arg) = (name.to_owned(), Some(Box::new(arg)));
        Node { node: Some(N::DefElem(Box::new(DefElem { defname, arg, location: -1, ..DefElem::default() }))) }
    };
    let given = options.iter().filter_map(|o| o.split_once('=')).filter(|(name, _)| !["filename", "program"].contains(name));
    let mut nodes: Vec<Node> = given.map(|(name, value)| element(name, text(value))).collect();
    for name in COLUMN_OPTIONS {
        let mut items = Vec::new();
        for (column, options) in columns {
            if let Some(value) = option(options, name)
                && flag(name, value)?
            {
                items.push(text(column));
            }
        }
        if !items.is_empty() {
            nodes.push(element(name, Node { node: Some(N::List(protobuf::List { items })) }));
        }
    }
    Ok(nodes)
}

/// The value of an option of a column.
///
/// # Errors
/// 42601 for what is no truth value.
pub fn flag(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(err!(SYNTAX_ERROR, "{name} requires a Boolean value")),
    }
}

//! The format of results, and their properties.

use melba_client::ResultColumn;

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Columns below each other, as psql has them
    Table,
    /// Values with a separator between them, as psql -A has them
    Unaligned,
    /// RFC 4180, with a head; null is an empty field, an empty text is ""
    Csv,
    /// An array of objects for each result
    Json,
    /// An object in a line for each row
    #[value(name = "jsonlines", aliases = ["jsonl", "json-lines"])]
    JsonLines,
    /// A table of GitHub's Markdown
    Markdown,
}

impl Format {
    pub const NAMES: &str = "table, unaligned, csv, json, jsonlines, markdown";

    pub fn parse(name: &str) -> Option<Format> {
        Some(match name {
            "table" | "aligned" => Format::Table,
            "unaligned" => Format::Unaligned,
            "csv" => Format::Csv,
            "json" => Format::Json,
            "jsonlines" | "json-lines" | "jsonl" => Format::JsonLines,
            "markdown" => Format::Markdown,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Unaligned => "unaligned",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::JsonLines => "jsonlines",
            Format::Markdown => "markdown",
        }
    }

    /// Whether a program reads it, which expects only results.
    pub fn is_for_programs(self) -> bool {
        matches!(self, Format::Csv | Format::Json | Format::JsonLines | Format::Markdown)
    }
}

/// Whether there is a line for each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expanded {
    Off,
    On,
    /// Where a row does not fit into a line.
    Auto,
}

#[derive(Clone, Debug)]
pub struct Style {
    pub format: Format,
    pub expanded: Expanded,
    /// Neither head nor foot.
    pub tuples_only: bool,
    /// The text for null in tables.
    pub null: String,
    pub separator: String,
    /// Control characters are written out.
    pub is_terminal: bool,
    /// Columns of the terminal.
    pub width: Option<usize>,
}

impl Style {
    pub fn new(format: Format) -> Style {
        Style {
            format,
            expanded: Expanded::Off,
            tuples_only: false,
            null: String::new(),
            separator: "|".to_owned(),
            is_terminal: false,
            width: None,
        }
    }
}

/// The properties of a column's values by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    Number,
    Boolean,
    Json,
    Text,
}

impl ValueKind {
    pub fn of(type_oid: u32) -> ValueKind {
        match type_oid {
            // int8, int2, int4, oid, float4, float8, numeric, xid, cid, money is text to JSON.
            20 | 21 | 23 | 26 | 28 | 29 | 700 | 701 | 1700 => ValueKind::Number,
            16 => ValueKind::Boolean,
            114 | 3802 => ValueKind::Json,
            _ => ValueKind::Text,
        }
    }

    /// Numbers end below each other.
    pub fn is_right(type_oid: u32) -> bool {
        ValueKind::of(type_oid) == ValueKind::Number || type_oid == 790
    }
}

/// A row's values.
pub type Values<'a> = [Option<&'a [u8]>];

/// A result's description, by which its rows are written.
pub struct Sheet {
    pub style: Style,
    pub columns: Vec<ResultColumn>,
    pub title: Option<String>,
    /// The text below a table instead of the number of its rows.
    pub footers: Option<Vec<String>>,
    /// Written so far.
    pub rows: u64,
}

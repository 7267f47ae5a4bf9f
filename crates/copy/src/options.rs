//! COPY's WITH options.

use std::sync::Arc;

use melba_catalog::Relation;
use melba_encoding::{Encoding, UTF8};
use melba_fmgr::Session;
use melba_parquet::Compression;
use melba_types::{DbError, Result, bail, err};
use pg_query::protobuf::{DefElem, Node, node::Node as N};

use melba_parse::nodes::{option_bool, option_text, options, strings};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFormat {
    Text,
    Csv,
    Binary,
    /// Not PostgreSQL's.
    Parquet,
}

/// The treatment of the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    Absent,
    Skip,
    /// Names must be the columns'.
    Match,
}

/// Columns an option names.
#[derive(Clone, Debug, PartialEq)]
pub enum Columns {
    None,
    All,
    Named(Vec<String>),
}

impl Columns {
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Columns::None => false,
            Columns::All => true,
            Columns::Named(names) => names.iter().any(|n| n == name),
        }
    }
}

/// The options of one COPY.
#[derive(Clone, Debug)]
pub struct CopyOptions {
    pub format: CopyFormat,
    pub delimiter: u8,
    pub null: String,
    pub default: Option<String>,
    pub header: Header,
    pub quote: u8,
    pub escape: u8,
    pub force_quote: Columns,
    pub force_not_null: Columns,
    pub force_null: Columns,
    /// ON_ERROR ignore: rows with bad values are left out.
    pub ignore_errors: bool,
    /// REJECT_LIMIT.
    pub reject_limit: Option<u64>,
    pub verbose: bool,
    pub silent: bool,
    /// ENCODING; without it, the client's.
    pub encoding: Option<Encoding>,
    pub freeze: bool,
    /// COMPRESSION of a Parquet file.
    pub compression: Option<Compression>,
    /// ROW_GROUP_SIZE of a Parquet file: rows.
    pub row_group_rows: Option<usize>,
}

impl CopyOptions {
    /// Reads the option list.
    ///
    /// # Errors
    /// 42601, 0A000 and 22023 with PostgreSQL's messages.
    pub fn parse(nodes: &[Node], from: bool) -> Result<CopyOptions> {
        let mut out = CopyOptions {
            format: CopyFormat::Text,
            delimiter: 0,
            null: String::new(),
            default: None,
            header: Header::Absent,
            quote: 0,
            escape: 0,
            force_quote: Columns::None,
            force_not_null: Columns::None,
            force_null: Columns::None,
            ignore_errors: false,
            reject_limit: None,
            verbose: false,
            silent: false,
            encoding: None,
            freeze: false,
            compression: None,
            row_group_rows: None,
        };
        let (mut delimiter, mut null, mut quote, mut escape) = (None, None, None, None);
        let mut seen: Vec<&str> = Vec::new();
        let names_parquet = |def: &DefElem| def.defname == "format" && option_text(def).as_deref() == Some("parquet");
        let is_parquet = options(nodes).any(names_parquet);
        for def in options(nodes) {
            let name = def.defname.as_str();
            if seen.contains(&name) {
                return Err(err!(SYNTAX_ERROR, "conflicting or redundant options").at(def.location));
            }
            seen.push(name);
            let text = || option_text(def).unwrap_or_default();
            match name {
                "format" => out.format = format(def)?,
                "delimiter" => delimiter = Some(text()),
                "null" => null = Some(text()),
                "default" => out.default = Some(text()),
                "quote" => quote = Some(text()),
                "escape" => escape = Some(text()),
                "header" => out.header = header(def, from)?,
                "freeze" => out.freeze = option_bool(def)?,
                "compression" if is_parquet => out.compression = Some(compression(def, from)?),
                "row_group_size" if is_parquet => out.row_group_rows = Some(row_group_rows(def, from)?),
                "encoding" => out.encoding = Some(encoding(def)?),
                "force_quote" => out.force_quote = columns(def)?,
                "force_not_null" => out.force_not_null = columns(def)?,
                "force_null" => out.force_null = columns(def)?,
                "on_error" => out.ignore_errors = ignores_errors(def, from)?,
                "reject_limit" => out.reject_limit = Some(reject_limit(&text())?),
                "log_verbosity" => match text().as_str() {
                    "verbose" => out.verbose = true,
                    "silent" => out.silent = true,
                    "default" => {}
                    other => {
                        let e = err!(INVALID_PARAMETER_VALUE, "COPY LOG_VERBOSITY \"{other}\" not recognized");
                        return Err(e.at(def.location));
                    }
                },
                other => {
                    return Err(err!(SYNTAX_ERROR, "option \"{other}\" not recognized").at(def.location));
                }
            }
        }
        out.finish(delimiter, null, quote, escape, from)?;
        if out.freeze && !from {
            bail!(INVALID_PARAMETER_VALUE, "COPY FREEZE cannot be used with COPY TO");
        }
        Ok(out)
    }

    /// The encoding of rows as text; binary values are encoded by their types.
    pub fn text_encoding(&self, session: &dyn Session) -> Encoding {
        match self.format {
            CopyFormat::Binary | CopyFormat::Parquet => UTF8,
            _ => self.encoding.unwrap_or(session.format().client_encoding),
        }
    }

    fn finish(
        &mut self,
        delimiter: Option<String>,
        null: Option<String>,
        quote: Option<String>,
        escape: Option<String>,
        from: bool,
    ) -> Result<()> {
        let csv = self.format == CopyFormat::Csv;
        match self.format {
            CopyFormat::Binary => self.check_binary("BINARY", delimiter.is_some(), null.is_some())?,
            CopyFormat::Parquet => self.check_binary("PARQUET", delimiter.is_some(), null.is_some())?,
            CopyFormat::Text | CopyFormat::Csv => {}
        }
        let one = |value: Option<String>, default: u8, what: &str| match value.as_deref().map(str::as_bytes) {
            None => Ok(default),
            Some([byte]) => Ok(*byte),
            Some(_) => Err(err!(FEATURE_NOT_SUPPORTED, "COPY {what} must be a single one-byte character")),
        };
        self.delimiter = one(delimiter, if csv { b',' } else { b'\t' }, "delimiter")?;
        self.null = null.unwrap_or_else(|| if csv { String::new() } else { "\\N".into() });
        if matches!(self.delimiter, b'\n' | b'\r') {
            bail!(INVALID_PARAMETER_VALUE, "COPY delimiter cannot be newline or carriage return");
        }
        if self.null.contains(['\n', '\r']) {
            bail!(INVALID_PARAMETER_VALUE, "COPY null representation cannot use newline or carriage return");
        }
        if !csv && b"\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(&self.delimiter) {
            bail!(INVALID_PARAMETER_VALUE, "COPY delimiter cannot be \"{}\"", self.delimiter as char);
        }
        for (given, name) in [(quote.is_some(), "QUOTE"), (escape.is_some(), "ESCAPE")] {
            if given && !csv {
                bail!(FEATURE_NOT_SUPPORTED, "COPY {name} requires CSV mode");
            }
        }
        self.quote = one(quote, b'"', "quote")?;
        self.escape = one(escape, self.quote, "escape")?;
        if csv && self.delimiter == self.quote {
            bail!(INVALID_PARAMETER_VALUE, "COPY delimiter and quote must be different");
        }
        for (columns, name) in
            [(&self.force_quote, "FORCE_QUOTE"), (&self.force_not_null, "FORCE_NOT_NULL"), (&self.force_null, "FORCE_NULL")]
        {
            if *columns == Columns::None {
                continue;
            }
            if !csv {
                bail!(FEATURE_NOT_SUPPORTED, "COPY {name} requires CSV mode");
            }
            if from == (name == "FORCE_QUOTE") {
                if from {
                    bail!(FEATURE_NOT_SUPPORTED, "COPY {name} cannot be used with COPY FROM");
                }
                bail!(INVALID_PARAMETER_VALUE, "COPY {name} cannot be used with COPY TO");
            }
        }
        if self.null.as_bytes().contains(&self.delimiter) {
            bail!(INVALID_PARAMETER_VALUE, "COPY delimiter character must not appear in the NULL specification");
        }
        if csv && self.null.as_bytes().contains(&self.quote) {
            bail!(INVALID_PARAMETER_VALUE, "CSV quote character must not appear in the NULL specification");
        }
        if let Some(default) = &self.default {
            self.check_default(default, from)?;
        }
        if self.reject_limit.is_some() && !self.ignore_errors {
            bail!(INVALID_PARAMETER_VALUE, "COPY REJECT_LIMIT requires ON_ERROR to be set to IGNORE");
        }
        Ok(())
    }
}

fn format(def: &DefElem) -> Result<CopyFormat> {
    match option_text(def).unwrap_or_default().as_str() {
        "text" => Ok(CopyFormat::Text),
        "csv" => Ok(CopyFormat::Csv),
        "binary" => Ok(CopyFormat::Binary),
        "parquet" => Ok(CopyFormat::Parquet),
        other => Err(err!(INVALID_PARAMETER_VALUE, "COPY format \"{other}\" not recognized").at(def.location)),
    }
}

fn reject_limit(text: &str) -> Result<u64> {
    let wrong = |_| err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bigint: \"{text}\"");
    match text.trim().parse::<i64>().map_err(wrong)? {
        limit @ 1.. => Ok(limit as u64),
        limit => Err(err!(INVALID_PARAMETER_VALUE, "REJECT_LIMIT ({limit}) must be greater than zero")),
    }
}

fn compression(def: &DefElem, from: bool) -> Result<Compression> {
    if from {
        return Err(err!(INVALID_PARAMETER_VALUE, "COPY COMPRESSION cannot be used with COPY FROM").at(def.location));
    }
    match option_text(def).unwrap_or_default().to_ascii_lowercase().as_str() {
        "snappy" => Ok(Compression::Snappy),
        "zstd" => Ok(Compression::Zstd),
        "lz4" => Ok(Compression::Lz4),
        "none" => Ok(Compression::None),
        other => Err(err!(INVALID_PARAMETER_VALUE, "COPY COMPRESSION \"{other}\" not recognized").at(def.location)),
    }
}

fn row_group_rows(def: &DefElem, from: bool) -> Result<usize> {
    const ROWS_MAX: usize = 1 << 24;
    if from {
        return Err(err!(INVALID_PARAMETER_VALUE, "COPY ROW_GROUP_SIZE cannot be used with COPY FROM").at(def.location));
    }
    let text = option_text(def).unwrap_or_default();
    match text.trim().parse() {
        Ok(rows @ 1..=ROWS_MAX) => Ok(rows),
        _ => {
            let e = err!(INVALID_PARAMETER_VALUE, "ROW_GROUP_SIZE ({text}) must be between 1 and {ROWS_MAX}");
            Err(e.at(def.location))
        }
    }
}

fn encoding(def: &DefElem) -> Result<Encoding> {
    match Encoding::by_name(&option_text(def).unwrap_or_default()) {
        Some(encoding) if encoding.is_convertible() => Ok(encoding),
        Some(encoding) => Err(DbError::unsupported(format!("conversion between {} and UTF8", encoding.name()))),
        None => {
            let e = err!(INVALID_PARAMETER_VALUE, "argument to option \"encoding\" must be a valid encoding name");
            Err(e.at(def.location))
        }
    }
}

fn ignores_errors(def: &DefElem, from: bool) -> Result<bool> {
    if !from {
        return Err(err!(INVALID_PARAMETER_VALUE, "COPY ON_ERROR cannot be used with COPY TO").at(def.location));
    }
    match option_text(def).unwrap_or_default().as_str() {
        "stop" => Ok(false),
        "ignore" => Ok(true),
        other => Err(err!(INVALID_PARAMETER_VALUE, "COPY ON_ERROR \"{other}\" not recognized").at(def.location)),
    }
}

impl CopyOptions {
    /// Options of text that a format without text refuses.
    fn check_binary(&self, mode: &str, delimiter: bool, null: bool) -> Result<()> {
        for (given, name) in [(delimiter, "DELIMITER"), (null, "NULL"), (self.default.is_some(), "DEFAULT")] {
            if given {
                bail!(SYNTAX_ERROR, "cannot specify {name} in {mode} mode");
            }
        }
        if self.header != Header::Absent {
            bail!(FEATURE_NOT_SUPPORTED, "cannot specify HEADER in {mode} mode");
        }
        if self.ignore_errors {
            bail!(SYNTAX_ERROR, "only ON_ERROR STOP is allowed in {mode} mode");
        }
        if self.format == CopyFormat::Parquet && self.encoding.is_some() {
            bail!(SYNTAX_ERROR, "cannot specify ENCODING in {mode} mode");
        }
        Ok(())
    }

    fn check_default(&self, default: &str, from: bool) -> Result<()> {
        let csv = self.format == CopyFormat::Csv;
        if !from {
            bail!(FEATURE_NOT_SUPPORTED, "COPY DEFAULT cannot be used with COPY TO");
        }
        if default.contains(['\n', '\r']) {
            bail!(INVALID_PARAMETER_VALUE, "COPY default representation cannot use newline or carriage return");
        }
        if default.as_bytes().contains(&self.delimiter) {
            bail!(FEATURE_NOT_SUPPORTED, "COPY delimiter character must not appear in the DEFAULT specification");
        }
        if csv && default.as_bytes().contains(&self.quote) {
            bail!(FEATURE_NOT_SUPPORTED, "CSV quote character must not appear in the DEFAULT specification");
        }
        if default == self.null {
            bail!(FEATURE_NOT_SUPPORTED, "NULL specification and DEFAULT specification cannot be the same");
        }
        Ok(())
    }

    /// The columns that options name must be there, and among those copied.
    pub fn check_columns(&self, relation: Option<&Relation>, copied: &[Arc<str>]) -> Result<()> {
        let lists =
            [(&self.force_quote, "FORCE_QUOTE"), (&self.force_not_null, "FORCE_NOT_NULL"), (&self.force_null, "FORCE_NULL")];
        for (columns, option) in lists {
            let Columns::Named(names) = columns else { continue };
            for name in names {
                if let Some(relation) = relation
                    && !relation.columns.iter().any(|c| !c.dropped && *c.name == **name)
                {
                    bail!(UNDEFINED_COLUMN, "column \"{name}\" of relation \"{}\" does not exist", relation.name);
                }
                if !copied.iter().any(|c| **c == **name) {
                    bail!(INVALID_COLUMN_REFERENCE, "{option} column \"{name}\" not referenced by COPY");
                }
            }
        }
        Ok(())
    }
}

fn header(def: &pg_query::protobuf::DefElem, from: bool) -> Result<Header> {
    match option_text(def).unwrap_or_else(|| "true".into()).to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(Header::Skip),
        "false" | "off" | "0" => Ok(Header::Absent),
        "match" if from => Ok(Header::Match),
        "match" => Err(err!(FEATURE_NOT_SUPPORTED, "cannot use \"match\" with HEADER in COPY TO")),
        _ => Err(err!(SYNTAX_ERROR, "header requires a Boolean value or \"match\"")),
    }
}

fn columns(def: &DefElem) -> Result<Columns> {
    match def.arg.as_deref().and_then(|n| n.node.as_ref()) {
        Some(N::AStar(_)) => Ok(Columns::All),
        Some(N::List(list)) => Ok(Columns::Named(strings(&list.items).into_iter().map(str::to_owned).collect())),
        _ => {
            let e = err!(INVALID_PARAMETER_VALUE, "argument to option \"{}\" must be a list of column names", def.defname);
            Err(e.at(def.location))
        }
    }
}

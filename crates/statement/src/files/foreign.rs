//! Foreign tables of files, those of the extension file_fdw: its validator, and the rows.
//!
//! Files of text and CSV are read as by COPY FROM, and their columns found by position. Those of JSON lines and Parquet, which PostgreSQL's
//! file_fdw does not know, are read as by read_json and read_parquet, and their columns found by name.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;

use melba_analyze::levenshtein;
use melba_catalog::classes::{PG_ATTRIBUTE, PG_FOREIGN_SERVER, PG_FOREIGN_TABLE, PG_USER_MAPPING};
use melba_catalog::foreign::option;
use melba_catalog::privileges::RoleUse;
use melba_copy::{
    COLUMN_OPTIONS, CopyOptions, CopyScan, ForeignFile, ForeignFormat, ForeignSource, InputColumn, TABLE_OPTIONS, flag,
};
use melba_files::Dialects;
use melba_fmgr::{FileRequest, FileRows, FileTable, RowColumn};
use melba_parquet::{ColumnMatch, SourceReader};
use melba_types::{Batch, Datum, DbError, Oid, Result, SqlState, bail, err};

use super::super::context::StatementContext;
use super::super::program::PipedProgram;
use super::{READ_SERVER_FILES, expand_some, open_bytes, open_parquet, text};

const EXECUTE_SERVER_PROGRAM: Oid = Oid(4571);

/// file_fdw_validator: the options of something, and the system relation that it is a row of.
///
/// # Errors
/// HV00D for an option that is not one of it, 42501 for a role that may not name files, those of COPY's options, HV002 without a file.
pub fn file_validator(context: &StatementContext, args: &[Datum]) -> Result<Datum> {
    let (options, class) = (texts(&args[0]), Oid(args[1].as_oid()));
    let valid: &[&str] = match class {
        PG_FOREIGN_TABLE => &TABLE_OPTIONS,
        PG_ATTRIBUTE => &COLUMN_OPTIONS,
        _ => &[],
    };
    for (name, value) in options.iter().filter_map(|o| o.split_once('=')) {
        match name {
            _ if !valid.contains(&name) => return Err(invalid_option(SqlState::FDW_INVALID_OPTION_NAME, name, valid)),
            "filename" => require_role(context, name, READ_SERVER_FILES, "pg_read_server_files")?,
            "program" => require_role(context, name, EXECUTE_SERVER_PROGRAM, "pg_execute_server_program")?,
            "force_not_null" | "force_null" => {
                flag(name, value)?;
            }
            _ => {}
        }
    }
    if class == PG_FOREIGN_TABLE {
        if option(&options, "filename").is_some() && option(&options, "program").is_some() {
            bail!(SYNTAX_ERROR, "conflicting or redundant options");
        }
        ForeignFile::new(&options, &[])?;
    }
    Ok(Datum::text(""))
}

fn require_role(context: &StatementContext, option: &str, role: Oid, role_name: &str) -> Result<()> {
    if context.catalog.has_role(context.user.oid, role, RoleUse::Inherit) {
        return Ok(());
    }
    let message = format!("permission denied to set the \"{option}\" option of a file_fdw foreign table");
    Err(err!(INSUFFICIENT_PRIVILEGE, "{message}")
        .detail(format!("Only roles with privileges of the \"{role_name}\" role may set this option.")))
}

/// postgresql_fdw_validator: options of a connection.
///
/// # Errors
/// 42601 for an option that is not one of it.
pub fn libpq_validator(args: &[Datum]) -> Result<Datum> {
    const OF_SERVER: [&str; 13] = [
        "authtype",
        "service",
        "connect_timeout",
        "dbname",
        "host",
        "hostaddr",
        "port",
        "tty",
        "options",
        "requiressl",
        "sslmode",
        "gsslib",
        "gssdelegation",
    ];
    let valid: &[&str] = match Oid(args[1].as_oid()) {
        PG_FOREIGN_SERVER => &OF_SERVER,
        PG_USER_MAPPING => &["user", "password"],
        _ => &[],
    };
    let options = texts(&args[0]);
    let mut names = options.iter().filter_map(|o| o.split_once('=')).map(|(name, _)| name);
    match names.find(|name| !valid.contains(name)) {
        Some(name) => Err(invalid_option(SqlState::SYNTAX_ERROR, name, valid)),
        None => Ok(Datum::Bool(true)),
    }
}

fn texts(list: &Datum) -> Vec<Arc<str>> {
    list.as_array().elements.iter().filter(|e| !e.is_null()).map(|e| e.as_str().into()).collect()
}

fn invalid_option(state: SqlState, name: &str, valid: &[&str]) -> DbError {
    /// Changes that make another name of one that was meant, at most.
    const CHANGES_MAX: usize = 4;
    let error = DbError::new(state, format!("invalid option \"{name}\""));
    if valid.is_empty() {
        return error.hint("There are no valid options in this context.");
    }
    let near = valid.iter().map(|known| (levenshtein(name, known), known));
    match near.filter(|(changes, _)| *changes <= CHANGES_MAX && *changes <= name.len() / 2).min_by_key(|(changes, _)| *changes) {
        Some((_, known)) => error.hint(format!("Perhaps you meant the option \"{known}\".")),
        None => error,
    }
}

/// The rows of a foreign table.
///
/// # Errors
/// Those of its options, 58P01 when there is no file, and those of a file or a program.
pub fn open(context: Arc<StatementContext>, table: &FileTable, request: FileRequest) -> Result<Box<dyn FileRows>> {
    let named: Vec<_> = request.columns.iter().zip(&table.column_options).map(|(c, options)| (&*c.name, &options[..])).collect();
    let ForeignFile { source, format } = ForeignFile::new(&table.options, &named)?;
    let (names, is_program) = match source {
        ForeignSource::File(pattern) => (expand_some(&*context, &pattern)?, false),
        ForeignSource::Program(command) => (VecDeque::from([command]), true),
    };
    Ok(match format {
        ForeignFormat::Parquet => open_parquet(context, names, request, ColumnMatch::Name)?,
        ForeignFormat::Json => {
            let dialects = Dialects { is_json: Some(true), ..Dialects::default() };
            text::open(context, dialects, names, request)?
        }
        ForeignFormat::Lines(options) => {
            let table = table.name.clone();
            Box::new(CopiedRows { context, table, options, names, is_program, request, open: None, skipped: 0 })
        }
    })
}

/// What rows of text and CSV are read from.
enum LineSource {
    File(SourceReader),
    Program(PipedProgram),
}

impl LineSource {
    fn read(&mut self, context: &StatementContext, out: &mut [u8]) -> Result<usize> {
        match self {
            LineSource::File(file) => read(file, out),
            LineSource::Program(program) => program.read(out, &|| context.check_wait()),
        }
    }

    /// After the last byte: a program that fails is an error then.
    fn finish(&mut self, context: &StatementContext) -> Result<()> {
        match self {
            LineSource::File(_) => Ok(()),
            LineSource::Program(program) => program.finish(&|| context.check_wait()),
        }
    }
}

/// Rows of text and CSV files, one after the other, or of a program.
struct CopiedRows {
    context: Arc<StatementContext>,
    table: Arc<str>,
    options: Box<CopyOptions>,
    /// Files, or a command, to come.
    names: VecDeque<String>,
    is_program: bool,
    request: FileRequest,
    open: Option<(LineSource, CopyScan)>,
    /// Rows of the files before the open one.
    skipped: u64,
}

fn read(file: &mut SourceReader, out: &mut [u8]) -> Result<usize> {
    file.read(out).map_err(|e| match e.get_ref().and_then(|inner| inner.downcast_ref::<DbError>()) {
        Some(error) => error.clone(),
        None => err!(IO_ERROR, "could not read from COPY file: {e}"),
    })
}

impl CopiedRows {
    fn begin(&self, name: &str) -> Result<(LineSource, CopyScan)> {
        let lines = match self.is_program {
            true => LineSource::Program(PipedProgram::start(name, true)?),
            false => LineSource::File(SourceReader::new(open_bytes(&*self.context, name)?, 0)),
        };
        let source = |(at, c): (usize, &RowColumn)| InputColumn { at, name: c.name.clone(), ty: c.ty, typmod: c.typmod };
        let sources = self.request.columns.iter().enumerate().map(source).collect();
        let (context, options) = (Arc::clone(&self.context), (*self.options).clone());
        let scan = CopyScan::new(context, self.table.clone(), options, sources, &self.request.needed);
        Ok((lines, scan.after(self.skipped)))
    }
}

impl FileRows for CopiedRows {
    fn next(&mut self, limit: usize) -> Result<Option<Batch>> {
        loop {
            if let Some((lines, scan)) = &mut self.open {
                if let Some(batch) = scan.next(&mut |out: &mut [u8]| lines.read(&self.context, out), limit)? {
                    return Ok(Some(batch));
                }
                lines.finish(&self.context)?;
                self.skipped = scan.skipped();
                if self.names.is_empty() {
                    scan.report_skipped();
                }
                self.open = None;
            }
            let Some(name) = self.names.pop_front() else { return Ok(None) };
            self.open = Some(self.begin(&name)?);
        }
    }

    fn memory_bytes(&self) -> usize {
        self.open.as_ref().map_or(0, |(_, scan)| scan.memory_bytes())
    }
}

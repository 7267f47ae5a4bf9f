//! `melba import`: turns files into tables.
//!
//! 1. A file is read twice: for its columns and their types (crate `files`), and to send its rows by COPY.
//! 2. All files are loaded in one transaction: after an error nothing was loaded.
//! 3. Errors name the file and the line.

mod load;
mod source;
mod table;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::interrupts::{Ends, Interrupts};
use crate::{Result, Serve};
use melba_client::target::Target;
use melba_files::{Dialects, names};
use source::Source;
use table::ImportTable;

#[derive(Debug, Args)]
pub struct ImportOptions {
    /// CSV, JSON with an object in each line or an array of objects, or Parquet
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The database of a running server: postgres://USER@HOST:PORT/DATABASE [default: PGHOST etc., 127.0.0.1:5432]
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    to: Option<String>,
    /// A data directory that no server uses; made if it is missing
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The database of a data directory
    #[arg(short, long, value_name = "NAME", default_value = "postgres", requires = "data")]
    database: String,
    /// One table for all files, SCHEMA.NAME or NAME [default: a table of each file's name]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Into an existing table
    #[arg(long, conflicts_with = "types")]
    append: bool,
    /// A column's type instead of the one that its values suggest; may be given several times
    #[arg(long, value_name = "COLUMN=TYPE", value_parser = column_type)]
    types: Vec<(String, String)>,
    /// Print the CREATE TABLE, and load nothing
    #[arg(long)]
    dry_run: bool,
    /// The format of the files; Parquet is always recognised [default: recognised by their beginning]
    #[arg(long, value_enum)]
    format: Option<ImportFormat>,
    /// The separator of CSV fields; \t is a tab [default: recognised by the file's beginning]
    #[arg(long, value_name = "CHARACTER", value_parser = character)]
    delimiter: Option<u8>,
    /// The quote of CSV fields [default: "]
    #[arg(long, value_name = "CHARACTER", value_parser = character)]
    quote: Option<u8>,
    /// The escape before a quote within quotes [default: the quote]
    #[arg(long, value_name = "CHARACTER", value_parser = character)]
    escape: Option<u8>,
    /// The first record of CSV names the columns
    #[arg(long, conflicts_with = "no_header")]
    header: bool,
    /// It is a row
    #[arg(long)]
    no_header: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ImportFormat {
    Csv,
    Json,
}

fn column_type(text: &str) -> Result<(String, String)> {
    let (name, type_name) = text.split_once('=').ok_or("COLUMN=TYPE is expected")?;
    Ok((name.to_owned(), type_name.to_owned()))
}

fn character(text: &str) -> Result<u8> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(*byte),
        _ => Err("one character of ASCII is expected".to_owned()),
    }
}

/// Reads, makes tables, loads.
///
/// # Errors
/// An error in a file, with its line; an error of the server. Nothing is loaded then.
pub fn import(options: &ImportOptions, serve: &Serve) -> Result<()> {
    let dialects = Dialects {
        is_json: options.format.map(|format| format == ImportFormat::Json),
        delimiter: options.delimiter,
        quote: options.quote,
        escape: options.escape,
        has_header: (options.header || options.no_header).then_some(options.header),
        null: None,
    };
    let sources = options.files.iter().map(|path| Source::open(path, &dialects)).collect::<Result<Vec<_>>>()?;
    let bytes = sources.iter().map(|source| source.bytes).sum();
    let bar = progress_bar("Reading", bytes);
    let mut tables = Vec::new();
    for (name, sources) in grouped(sources, options.table.as_deref()) {
        tables.push(ImportTable::of(name, sources, &options.types, &mut |read| bar.inc(read))?);
    }
    bar.finish_and_clear();
    if options.dry_run {
        tables.iter().for_each(|table| println!("{};", table.create_statement()));
        return Ok(());
    }
    let bar = progress_bar("Loading", bytes);
    let mut load = |target: &Target, ends: Ends| {
        let _interrupts = Interrupts::watch(ends, false)?;
        let loaded = load::load(target, &mut tables, options.append, &|read| bar.inc(read));
        bar.finish_and_clear();
        loaded
    };
    match &options.data {
        None => load(&Target::parse(options.to.as_deref().unwrap_or(""))?, Ends::ThisShell),
        Some(data) => serve(data, &mut |server| {
            let mut target = Target::parse(server)?;
            options.database.clone_into(&mut target.database);
            load(&target, Ends::ItsServer)
        }),
    }
}

/// Tables' names with their files.
fn grouped(sources: Vec<Source>, table: Option<&str>) -> Vec<(String, Vec<Source>)> {
    let mut groups: Vec<(String, Vec<Source>)> = Vec::new();
    for source in sources {
        let of_file = |path: &Path| table::table_name(&names::table(path));
        let name = table.map_or_else(|| of_file(&source.path), table::table_name);
        match groups.iter_mut().find(|(other, _)| *other == name) {
            Some((_, sources)) => sources.push(source),
            None => groups.push((name, vec![source])),
        }
    }
    groups
}

/// On standard error, when it is a terminal.
fn progress_bar(what: &'static str, bytes: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, left {eta}") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar
}

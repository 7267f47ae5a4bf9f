//! The published experiment on storing near-copies: the same rows of documents as files, in row stores, column stores and
//! archives, and the space, time and effort of each form.

mod claims;
mod crawl;
mod files;
mod form;
mod measure;
mod object_store;
mod peer;
mod solid;
mod source;
mod table;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::progress::Progress;
use crate::report::{Collector, Described, Key, Report};
use crate::server::Server;
use crate::{Result, Target, python};
use crawl::Shape;
use files::{Codec, Files};
use form::Form;
use measure::{Measured, measure};
use object_store::ObjectStore;
use peer::DocumentPeer;
use solid::Solid;
use source::Source;
use table::{Column, DocumentTable};

#[derive(Debug, Args)]
pub struct DocumentOptions {
    /// Rows of each source
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(6..))]
    rows: u64,
    /// Documents of a row, of those that come from files; generated rows have 5
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    documents: u16,
    /// A folder whose files of text are the documents; may be given several times
    #[arg(long = "from", value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// A documentation package of Debian that is installed: its pages in HTML are the documents; may be given several times
    #[arg(long = "package", value_name = "NAME")]
    packages: Vec<String>,
    /// Generated documents [default: crawl, when there are no others]
    #[arg(long, value_enum, value_delimiter = ',')]
    generate: Vec<Shape>,
    /// Of the generators
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only forms whose name contains one of these, "Melba" say
    #[arg(long, value_delimiter = ',')]
    forms: Vec<String>,
    /// Single reads of each form
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    reads: u32,
    /// xz's level for everything in one stream
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(0..=9))]
    solid_level: u32,
    /// A Melba server [default: this binary is started]
    #[arg(long, value_name = "URL", value_parser = |url: &str| Target::parse(&format!("Melba={url}")))]
    melba: Option<Target>,
    /// A PostgreSQL server [default: the newest version installed is started]
    #[arg(long, value_name = "URL", value_parser = |url: &str| Target::parse(&format!("PostgreSQL={url}")))]
    postgres: Option<Target>,
    /// A virtual environment of Python that has the packages duckdb and chdb [default: python3 of PATH]
    #[arg(long, value_name = "DIR")]
    venv: Option<PathBuf>,
    /// A bucket that takes PUT, GET and DELETE without authentication: http://HOST:PORT/BUCKET
    #[arg(long, value_name = "URL", requires = "object_store_data")]
    object_store: Option<String>,
    /// Where the object store keeps its files
    #[arg(long, value_name = "DIR")]
    object_store_data: Option<PathBuf>,
    /// Where everything is written, and removed again
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    scratch: PathBuf,
    /// Where results.json, results.md and results.html are written
    #[arg(long, value_name = "DIR", default_value = "./melba-lab")]
    pub out: PathBuf,
}

/// Rows of the published extrapolation, and the room that rows are counted for.
const MANY_ROWS: f64 = 1e7;
const ROOM_BYTES: f64 = 25e9;

/// A form by its name, not created yet.
enum FormKind {
    Files(Codec),
    DuckDb,
    Postgres(Column, &'static str),
    ClickHouse(&'static str),
    Solid,
    Melba(&'static str),
    ObjectStore,
}

fn kinds() -> Vec<(String, FormKind)> {
    let files = [Codec::Text, Codec::ZlibBase64, Codec::Zlib, Codec::ZlibLzma, Codec::Lzma(3), Codec::Lzma(6)];
    let mut kinds: Vec<(String, FormKind)> = files.into_iter().map(|codec| (codec.name(), FormKind::Files(codec))).collect();
    let others = [
        ("DuckDB, text", FormKind::DuckDb),
        ("PostgreSQL, lz4 of zlib", FormKind::Postgres(Column::Zlib, "lz4")),
        ("PostgreSQL, lz4", FormKind::Postgres(Column::Text, "lz4")),
        ("PostgreSQL, pglz", FormKind::Postgres(Column::Text, "pglz")),
        ("ClickHouse, ZSTD(1)", FormKind::ClickHouse("ZSTD(1)")),
        ("ClickHouse, ZSTD(16)", FormKind::ClickHouse("ZSTD(16)")),
        ("one xz stream", FormKind::Solid),
        ("Melba, lz4", FormKind::Melba("lz4")),
        ("Melba, zstd", FormKind::Melba("zstd")),
        ("Melba, dense", FormKind::Melba("dense")),
        ("object store", FormKind::ObjectStore),
    ];
    kinds.extend(others.map(|(name, kind)| (name.to_owned(), kind)));
    kinds
}

pub fn run(options: &DocumentOptions) -> Result<Report> {
    let sources = sources(options)?;
    let describe = |source: &Source| Described {
        name: source.name.clone(),
        url: source.origin.clone(),
        version: format!("{} rows of {} documents", source.rows, source.documents),
    };
    let parameters = vec![("reads", options.reads.to_string()), ("level of the xz stream", options.solid_level.to_string())];
    let mut report = Report::of_forms("Forms of storing near-copies", sources.iter().map(describe).collect(), parameters);
    let scratch = options.scratch.join(format!("melba-lab-documents-{}", std::process::id()));
    let result = measure_all(options, &sources, &scratch, &mut report);
    // Data that the forms have not removed: servers' data, or the remains of a failure.
    let _ = std::fs::remove_dir_all(&scratch);
    result.map(|()| report)
}

fn sources(options: &DocumentOptions) -> Result<Vec<Source>> {
    let documents = usize::from(options.documents);
    let mut sources = Vec::new();
    for folder in &options.folders {
        sources.push(Source::folder(folder, documents, options.rows, |_| true)?);
    }
    for package in &options.packages {
        sources.push(Source::package(package, documents, options.rows)?);
    }
    let shapes = if sources.is_empty() && options.generate.is_empty() { vec![Shape::Crawl] } else { options.generate.clone() };
    sources.extend(shapes.into_iter().map(|shape| Source::generated(shape, options.seed, options.rows)));
    Ok(sources)
}

fn measure_all(options: &DocumentOptions, sources: &[Source], scratch: &Path, report: &mut Report) -> Result<()> {
    std::fs::create_dir_all(scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
    let mut peers = Peers { options, scratch, melba: None, postgres: None };
    let wanted = |name: &str| options.forms.is_empty() || options.forms.iter().any(|part| name.contains(part.as_str()));
    let kinds: Vec<_> = kinds().into_iter().filter(|(name, _)| wanted(name)).collect();
    let progress = Progress::new(kinds.len() * sources.len());
    let mut collector = Collector::new(sources.len());
    let mut claims = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let mut measured = Vec::new();
        for (name, kind) in &kinds {
            progress.step(format_args!("{}: {name}", source.name));
            let (mut form, version) = match peers.form(kind, source.documents) {
                Ok(form) => form,
                Err(why) => {
                    note(report, format!("{name} is absent: {why}"));
                    continue;
                }
            };
            if let Some(version) = version {
                note(report, format!("{name}: {version}"));
            }
            let found =
                measure(&mut *form, source, options.reads as usize).map_err(|e| format!("{}, {name}: {e}", source.name))?;
            form.remove()?;
            collect(&mut collector, index, name, source, &found);
            measured.push((name.clone(), found));
        }
        claims.extend(claims::judge(&source.name, &measured));
    }
    report.finish(&collector, claims);
    report.notes.extend(NOTES.map(str::to_owned));
    Ok(())
}

const NOTES: [&str; 4] = [
    "Files count with the blocks that the file system gave them, tables with indexes and TOAST, ClickHouse with its active parts.",
    "Rows go in by transactions of 100 rows or 16 MB, one client; a read is one row with all of its documents, compared with what was written.",
    "Settling is VACUUM, CHECKPOINT or OPTIMIZE, the same before each size; the one stream is written anew, and a read decodes what is before the row.",
    "A replaced document is itself with a few new words at three places. Sizes at 10,000,000 rows and rows that fit are in proportion: near-copies \
     share more when there are more of them.",
];

fn note(report: &mut Report, note: String) {
    if !report.notes.contains(&note) {
        report.notes.push(note);
    }
}

/// A form's numbers become lines.
fn collect(collector: &mut Collector, index: usize, name: &str, source: &Source, found: &Measured) {
    let (rows, bytes) = (source.rows as f64, found.bytes as f64);
    let mut lower = |section: &str, unit: &'static str, value: f64| collector.add(Key::lower(section, name, unit), index, value);
    lower("Size", "MB", bytes / 1e6);
    lower("Size at 10,000,000 rows", "GB", bytes / rows * MANY_ROWS / 1e9);
    lower("Read of a row, p50", "ms", found.read_p50 * 1e3);
    lower("Read of a row, p99", "ms", found.read_p99 * 1e3);
    lower("Load, with maintenance", "s", (found.insert + found.maintenance).as_secs_f64());
    lower("Update of a tenth, with maintenance", "s", found.update.as_secs_f64());
    lower("Size after the update of a tenth", "MB", found.updated_bytes as f64 / 1e6);
    lower("Deletion of a tenth, with maintenance", "s", found.delete.as_secs_f64());
    lower("Size after the deletion of a tenth", "MB", found.deleted_bytes as f64 / 1e6);
    let mut higher =
        |section: &str, unit: &'static str, value: f64| collector.add(Key::higher(section, name, unit), index, value);
    higher("Ratio", "raw / stored", found.raw_bytes as f64 / bytes);
    higher("Rows that fit into 25 GB", "rows", ROOM_BYTES / (bytes / rows));
    higher("Insert", "rows/s", rows / found.insert.as_secs_f64().max(1e-9));
}

/// Services for forms: servers are started at their first use.
struct Peers<'a> {
    options: &'a DocumentOptions,
    scratch: &'a Path,
    melba: Option<Server>,
    postgres: Option<Server>,
}

impl Peers<'_> {
    /// A form without rows, and its server's version; an error says why there is none.
    fn form(&mut self, kind: &FormKind, documents: usize) -> Result<(Box<dyn Form>, Option<String>)> {
        let table = |target: Target, column: Column, method: &str| -> Result<(Box<dyn Form>, Option<String>)> {
            Ok((Box::new(DocumentTable::create(&target, column, method, documents)?), Some(target.version()?)))
        };
        match kind {
            FormKind::Files(codec) => Ok((Box::new(Files::new(self.scratch, *codec)), None)),
            FormKind::Solid => Ok((Box::new(Solid::new(self.scratch, self.options.solid_level)?), None)),
            FormKind::DuckDb => self.python("duckdb", documents),
            FormKind::ClickHouse(codec) => self.python(codec, documents),
            FormKind::Postgres(column, method) => table(self.postgres()?, *column, method),
            FormKind::Melba(method) => table(self.melba()?, Column::Text, method),
            FormKind::ObjectStore => {
                let given = self.options.object_store.as_deref().zip(self.options.object_store_data.as_deref());
                let (url, data) = given.ok_or("none was given (--object-store URL --object-store-data DIR)")?;
                Ok((Box::new(ObjectStore::new(url, data)?), Some(url.to_owned())))
            }
        }
    }

    fn python(&self, kind: &str, documents: usize) -> Result<(Box<dyn Form>, Option<String>)> {
        let peer = DocumentPeer::start(&python::interpreter(self.options.venv.as_deref()), kind, documents, self.scratch)?;
        let version = peer.version.clone();
        Ok((Box::new(peer), Some(version)))
    }

    fn melba(&mut self) -> Result<Target> {
        match (&self.options.melba, &self.melba) {
            (Some(target), _) => Ok(target.clone()),
            (None, Some(server)) => Ok(server.target.clone()),
            (None, None) => Ok(self.melba.insert(Server::melba(self.scratch)?).target.clone()),
        }
    }

    fn postgres(&mut self) -> Result<Target> {
        match (&self.options.postgres, &self.postgres) {
            (Some(target), _) => Ok(target.clone()),
            (None, Some(server)) => Ok(server.target.clone()),
            (None, None) => Ok(self.postgres.insert(Server::postgresql(self.scratch)?).target.clone()),
        }
    }
}

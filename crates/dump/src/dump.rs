//! `melba dump`.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use clap::Args;
use postgres::Client;

use crate::Result;
use crate::archive::{ArchiveWriter, Contents, LARGE_OBJECT_COMMENT, StreamInfo, StreamKind};
use crate::connection::{Source, describe, describe_read, execute};
use crate::large_objects::OidRange;
use crate::plain::{self, Blocks, Streams};
use crate::progress::Progress;
use crate::schema;
use crate::workers::parallel;

#[derive(Debug, Args)]
pub struct DumpOptions {
    /// The dump: a new file, or - for standard output
    #[arg(long = "to", value_name = "PATH")]
    to: PathBuf,
    /// A new folder with a file a worker instead of one file
    #[arg(long)]
    directory: bool,
    /// SQL for psql, Melba's or PostgreSQL's, instead of a dump for melba restore
    #[arg(long, conflicts_with_all = ["directory", "jobs"])]
    plain: bool,
    /// Workers that read tables at the same time, each over a separate connection
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// zstd's level; 1 packs about as densely as pg_dump does
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=19))]
    level: i32,
    /// Definitions without rows and large objects
    #[arg(long, conflicts_with = "data_only")]
    schema_only: bool,
    /// Rows and large objects without definitions
    #[arg(long)]
    data_only: bool,
    /// No large objects
    #[arg(long)]
    no_large_objects: bool,
    /// No rows of unlogged tables
    #[arg(long)]
    no_unlogged_table_data: bool,
    /// Leaves out owners
    #[arg(long)]
    no_owner: bool,
    /// Leaves out privileges
    #[arg(long)]
    no_privileges: bool,
}

/// A stream to be read.
struct Job {
    number: u32,
    statement: String,
}

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
/// A range of small large objects is sorted in memory.
const WORK_MEM: &str = "SET LOCAL work_mem = '16MB'";

/// Nobody can have put a view or foreign table, which runs others' functions, in the place of a table. Older servers lack the setting.
const RESTRICT: &str = "SELECT pg_catalog.set_config(name, 'view, foreign-table', false) FROM pg_catalog.pg_settings
    WHERE name = 'restrict_nonsystem_relation_kind'";

/// Dumps the database that a connection string names.
pub fn dump(options: &DumpOptions, from: &str) -> Result<()> {
    let source = Source::parse(from)?;
    let mut client = source.connect()?;
    execute(&mut client, BEGIN)?;
    execute(&mut client, RESTRICT)?;
    let (contents, bytes) = contents(options, &mut client)?;
    execute(&mut client, WORK_MEM)?;
    let reads_pages = reads_pages(&mut schema::Reader { client: &mut client })?;
    let statements: Vec<String> = contents.streams.iter().map(|s| copy_statement(&s.kind, reads_pages)).collect();
    if options.plain {
        return plain::write(&options.to, &contents, &mut Live { client: &mut client, statements });
    }
    let snapshot = schema::Reader { client: &mut client }.rows("SELECT pg_catalog.pg_export_snapshot()")?;
    let snapshot = snapshot.into_iter().flatten().flatten().next().ok_or("the server did not export its snapshot")?;
    let archive = create(options)?;
    archive.contents(&contents)?;
    let jobs = contents.numbered().zip(statements).map(|((number, _), statement)| Job { number, statement }).collect();
    let progress = Progress::new("dumping", bytes);
    let start = |worker| {
        let mut client = source.connect()?;
        execute(&mut client, BEGIN)?;
        execute(&mut client, &format!("SET TRANSACTION SNAPSHOT '{snapshot}'"))?;
        execute(&mut client, RESTRICT)?;
        execute(&mut client, WORK_MEM)?;
        Ok((client, worker))
    };
    parallel(options.jobs.into(), jobs, start, |(client, worker), job| copy(client, &archive, *worker, &job, &progress))?;
    archive.finish()?;
    execute(&mut client, "COMMIT")
}

fn create(options: &DumpOptions) -> Result<ArchiveWriter> {
    match (options.to == Path::new("-"), options.directory) {
        (true, true) => Err("a folder cannot go to standard output".to_owned()),
        (true, false) => ArchiveWriter::pipe(Box::new(std::io::stdout()), options.level),
        (false, true) => ArchiveWriter::directory(&options.to, options.jobs.into(), options.level),
        (false, false) => ArchiveWriter::file(&options.to, options.level),
    }
}

/// The contents of the dump, and the bytes of its tables on the server's disk.
fn contents(options: &DumpOptions, client: &mut Client) -> Result<(Contents, u64)> {
    let mut reader = schema::Reader { client };
    let about = reader.rows("SELECT version(), current_database(), now()")?;
    let mut about = about.into_iter().flatten().flatten();
    let [server, database, taken_at] = [(); 3].map(|()| about.next().unwrap_or_default());
    let mut entries = if options.data_only { Vec::new() } else { schema::entries(&mut reader)? };
    entries.retain(|e| match e.kind.as_str() {
        "OWNER" => !options.no_owner,
        "ACL" | "DEFAULT ACL" => !options.no_privileges,
        LARGE_OBJECT_COMMENT => !options.no_large_objects && !options.schema_only,
        _ => true,
    });
    let mut streams = Vec::new();
    let mut bytes = 0;
    if !options.schema_only {
        for table in schema::tables(&mut reader)? {
            if !(table.is_unlogged && options.no_unlogged_table_data) {
                bytes += table.bytes;
                streams.push(StreamInfo {
                    kind: StreamKind::Table { schema: table.schema, name: table.name, target: table.target },
                });
            }
        }
        let ranges = if options.no_large_objects { Vec::new() } else { OidRange::of_all(&mut reader)? };
        if !ranges.is_empty() {
            let size = reader.rows("SELECT pg_catalog.pg_table_size('pg_catalog.pg_largeobject')")?;
            bytes += size.into_iter().flatten().flatten().next().and_then(|s| s.parse::<u64>().ok()).unwrap_or(0);
        }
        let kinds = ranges.into_iter().flat_map(|r| [StreamKind::LargeObjects(r), StreamKind::LargeObjectPages(r)]);
        streams.extend(kinds.map(|kind| StreamInfo { kind }));
    }
    Ok((Contents { server, database, taken_at, entries, streams }, bytes))
}

/// Whether the role of the dump may read pg_largeobject.
fn reads_pages(reader: &mut schema::Reader) -> Result<bool> {
    let rows = reader.rows("SELECT 1 WHERE pg_catalog.has_table_privilege('pg_catalog.pg_largeobject', 'select')")?;
    Ok(!rows.is_empty())
}

/// The COPY statement of a stream.
fn copy_statement(kind: &StreamKind, reads_pages: bool) -> String {
    match kind {
        StreamKind::Table { target, .. } => format!("COPY {target} TO STDOUT"),
        StreamKind::LargeObjects(range) => range.objects_statement(),
        StreamKind::LargeObjectPages(range) => range.pages_statement(reads_pages),
    }
}

/// A COPY's data, in pieces of about this many bytes: its messages are rows, often small ones.
const PIECE_BYTES: usize = 64 << 10;

/// A COPY's data, piece by piece.
pub fn copy_out<'a>(client: &'a mut Client, statement: &'a str) -> Result<impl Iterator<Item = Result<Vec<u8>>> + 'a> {
    let mut reader = client.copy_out(statement).map_err(|e| format!("{}, in {statement}", describe(&e)))?;
    let mut ended = false;
    Ok(std::iter::from_fn(move || {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        while !ended && piece.len() < PIECE_BYTES {
            let length = match reader.fill_buf() {
                Ok(bytes) => {
                    piece.extend_from_slice(bytes);
                    bytes.len()
                }
                Err(e) => return Some(Err(format!("{}, in {statement}", describe_read(&e)))),
            };
            reader.consume(length);
            // Behind its end the reader would take the next message for data.
            ended = length == 0;
        }
        (!piece.is_empty()).then_some(Ok(piece))
    }))
}

/// The streams of a dump that is not written: read from the server on demand.
struct Live<'a> {
    client: &'a mut Client,
    statements: Vec<String>,
}

impl Streams for Live<'_> {
    fn blocks(&mut self, stream: u32) -> Result<Blocks<'_>> {
        Ok(Box::new(copy_out(self.client, &self.statements[stream as usize - 1])?))
    }
}

/// Reads a stream from the server into the archive.
fn copy(client: &mut Client, archive: &ArchiveWriter, worker: usize, job: &Job, progress: &Progress) -> Result<()> {
    let mut stream = archive.stream(job.number, worker)?;
    for bytes in copy_out(client, &job.statement)? {
        let bytes = bytes?;
        progress.add(bytes.len());
        stream.write(&bytes)?;
    }
    stream.finish()
}

//! `melba restore`.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use postgres::Client;
use postgres::types::Oid;

use crate::Result;
use crate::archive::{ArchiveReader, Entry, Section, StreamInfo, StreamKind};
use crate::connection::{Source, describe, execute};
use crate::large_objects::{Lines, Object, Run, Runs, object};
use crate::plain;
use crate::privileges::quoted;
use crate::progress::Progress;

#[derive(Debug, Args)]
pub struct RestoreOptions {
    /// A dump made by melba dump: its file or its folder
    #[arg(long = "from", value_name = "PATH")]
    from: PathBuf,
    /// The database to restore into: postgres://USER@HOST:PORT/DATABASE
    #[arg(long = "to", value_name = "URL", required_unless_present_any = ["plain", "list"])]
    to: Option<String>,
    /// Writes SQL for psql to a new file, or for - to standard output, instead of restoring
    #[arg(long, value_name = "PATH", conflicts_with_all = ["to", "table", "schema", "data", "large_objects"])]
    plain: Option<PathBuf>,
    /// Prints what the dump holds and whether it is whole
    #[arg(long, conflicts_with = "to")]
    list: bool,
    /// Only this table, named as NAME or SCHEMA.NAME; may be given several times
    #[arg(long, value_name = "NAME")]
    table: Vec<String>,
    /// Definitions; without this, --data and --large-objects all of a dump is restored
    #[arg(long)]
    schema: bool,
    /// Rows of tables
    #[arg(long)]
    data: bool,
    /// Large objects
    #[arg(long)]
    large_objects: bool,
    /// Workers that restore tables and indexes at the same time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
}

/// Large objects are created this many, or this many bytes, at a time.
const BATCH_OBJECTS: usize = 4096;
const BATCH_BYTES: usize = 1 << 20;

/// Restores a dump, or the chosen parts of it. Parts that are there already fail as their statements do: nothing is replaced.
pub fn restore(options: &RestoreOptions) -> Result<()> {
    let archive = ArchiveReader::open(&options.from)?;
    if options.list {
        return list(&archive);
    }
    let selected = options.select(&archive);
    if let Some(missing) = archive.missing().into_iter().find(|info| selected.iter().any(|(_, s)| s == info)) {
        return Err(format!("the dump is incomplete, it was interrupted or cut off: it lacks {}", missing.title()));
    }
    if let Some(to) = &options.plain {
        return plain::write(to, &archive.contents, &mut &archive);
    }
    let Some(to) = &options.to else { return Ok(()) };
    let restore = Restore { options, archive: &archive, target: Source::parse(to)? };
    let entries = |section| archive.contents.entries.iter().filter(move |e| e.section == section && options.wants_entry(e));
    restore.sequentially(entries(Section::Before))?;
    restore.streams(&selected)?;
    // Keys and indexes of different tables are built side by side. Foreign keys and refreshed views need them.
    let of = |wanted: fn(&str) -> bool| entries(Section::After).filter(move |e| wanted(&e.kind));
    restore.sequentially(of(|kind| kind == "SEQUENCE SET"))?;
    restore.build(of(|kind| matches!(kind, "INDEX" | "CONSTRAINT")).collect())?;
    restore.sequentially(of(|kind| !matches!(kind, "SEQUENCE SET" | "INDEX" | "CONSTRAINT")))
}

/// A line an entry and a stream.
fn list(archive: &ArchiveReader) -> Result<()> {
    let contents = &archive.contents;
    let missing = archive.missing();
    println!("Database {} of {}, as of {}", contents.database, contents.server, contents.taken_at);
    for entry in &contents.entries {
        println!("{}; {}.{}", entry.kind, entry.schema.as_deref().unwrap_or("-"), entry.name);
    }
    for (number, info) in contents.numbered() {
        let state = if missing.contains(&info) { "missing" } else { "whole" };
        println!("DATA; {}: {} bytes, {state}", info.title(), archive.raw_bytes(number));
    }
    match archive.is_whole() {
        true => Ok(()),
        false => Err("the dump is incomplete, it was interrupted or cut off".to_owned()),
    }
}

impl RestoreOptions {
    fn wants_all(&self) -> bool {
        !(self.schema || self.data || self.large_objects)
    }

    fn wants_table(&self, schema: &str, name: &str) -> bool {
        self.table.is_empty() || self.table.iter().any(|t| t == name || t.split_once('.') == Some((schema, name)))
    }

    fn wants_entry(&self, entry: &Entry) -> bool {
        let is_wanted = self.wants_table(entry.schema.as_deref().unwrap_or_default(), &entry.name);
        // With --data alone a sequence still has to go on where it was.
        is_wanted && (self.wants_all() || self.schema || self.data && entry.kind == "SEQUENCE SET")
    }

    fn select<'a>(&self, archive: &'a ArchiveReader) -> Vec<(u32, &'a StreamInfo)> {
        let wanted = |info: &StreamInfo| match &info.kind {
            StreamKind::Table { schema, name, .. } => (self.wants_all() || self.data) && self.wants_table(schema, name),
            _ => (self.wants_all() || self.large_objects) && self.table.is_empty(),
        };
        archive.contents.numbered().filter(|(_, info)| wanted(info)).collect()
    }
}

struct Restore<'a> {
    options: &'a RestoreOptions,
    archive: &'a ArchiveReader,
    target: Source,
}

impl Restore<'_> {
    fn sequentially<'e>(&self, entries: impl IntoIterator<Item = &'e Entry>) -> Result<()> {
        let mut client = self.target.connect()?;
        entries.into_iter().try_for_each(|e| execute(&mut client, &e.sql))
    }

    /// Does all jobs, several at a time, in their order.
    fn parallel<J: Send>(&self, jobs: Vec<J>, one: impl Fn(&mut Client, J) -> Result<()> + Sync) -> Result<()> {
        let jobs = Mutex::new(jobs.into_iter().rev().collect::<Vec<_>>());
        let failed = AtomicBool::new(false);
        let work = || -> Result<()> {
            let mut client = self.target.connect()?;
            loop {
                let job = jobs.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
                let Some(job) = job.filter(|_| !failed.load(Ordering::Relaxed)) else { return Ok(()) };
                one(&mut client, job).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.options.jobs).map(|_| scope.spawn(work)).collect();
            let results: Vec<Result<()>> =
                threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err("a worker panicked".to_owned()))).collect();
            results.into_iter().collect()
        })
    }

    fn build(&self, entries: Vec<&Entry>) -> Result<()> {
        self.parallel(entries, |client, entry| execute(client, &entry.sql))
    }

    fn streams(&self, selected: &[(u32, &StreamInfo)]) -> Result<()> {
        let number = |wanted: &StreamKind| selected.iter().find(|(_, info)| info.kind == *wanted).map(|(number, _)| *number);
        let progress = Progress::new("restoring", selected.iter().map(|(number, _)| self.archive.raw_bytes(*number)).sum());
        let mut jobs = Vec::new();
        if let Some((objects, pages)) = number(&StreamKind::LargeObjects).zip(number(&StreamKind::LargeObjectPages)) {
            jobs.push(Job::LargeObjects { objects, pages });
        }
        for (number, info) in selected {
            if let StreamKind::Table { target, .. } = &info.kind {
                jobs.push(Job::Table { number: *number, target });
            }
        }
        self.parallel(jobs, |client, job| match job {
            Job::Table { number, target } => self.rows(client, number, target, &progress),
            Job::LargeObjects { objects, pages } => self.large_objects(client, objects, pages, &progress),
        })
    }

    fn rows(&self, client: &mut Client, number: u32, target: &str, progress: &Progress) -> Result<()> {
        let statement = format!("COPY {target} FROM STDIN");
        let failed = |e: &postgres::Error| format!("{}, in {statement}", describe(e));
        let mut writer = client.copy_in(&statement).map_err(|e| failed(&e))?;
        for block in self.archive.blocks(number)? {
            let block = block?;
            progress.add(block.len());
            writer.write_all(&block).map_err(|e| format!("{e}, in {statement}"))?;
        }
        writer.finish().map(drop).map_err(|e| failed(&e))
    }

    /// Both streams are in the order of OIDs: an object's line is followed by its pages.
    fn large_objects(&self, client: &mut Client, objects: u32, pages: u32, progress: &Progress) -> Result<()> {
        // The last batch's commit makes them all durable.
        execute(client, "SET synchronous_commit = off")?;
        let user = client.query_one("SELECT current_user::text", &[]).map_err(|e| describe(&e))?.get::<_, String>(0);
        let counted = |blocks| Iterator::inspect(blocks, |b: &Result<Vec<u8>>| progress.add(b.as_ref().map_or(0, Vec::len)));
        let mut lines = Lines::new(counted(self.archive.blocks(objects)?));
        let mut runs = Runs::new(counted(self.archive.blocks(pages)?));
        let mut batch = Batch { client, user, oids: Vec::new(), contents: Vec::new(), bytes: 0, properties: String::new() };
        let mut run = runs.next()?;
        while let Some(line) = lines.next()? {
            let object = object(line)?;
            let belongs = |run: &Option<Run>| run.as_ref().is_some_and(|r| r.oid == object.oid);
            let first = if belongs(&run) && run.as_ref().is_some_and(|r| r.offset == 0) { run.take() } else { None };
            batch.create(&object, first.map_or_else(Vec::new, |r| r.bytes))?;
            if run.is_none() {
                run = runs.next()?;
            }
            while belongs(&run) {
                if let Some(run) = run.take() {
                    batch.put(run)?;
                }
                run = runs.next()?;
            }
        }
        execute(batch.client, "SET synchronous_commit = on")?;
        batch.flush()?;
        match run {
            None => Ok(()),
            Some(run) => Err(format!("the dump has contents of large object {}, which it does not list", run.oid)),
        }
    }
}

/// What one worker restores at a time.
enum Job<'a> {
    Table { number: u32, target: &'a str },
    LargeObjects { objects: u32, pages: u32 },
}

/// Large objects to be created by one statement.
struct Batch<'a> {
    client: &'a mut Client,
    /// Owns what it creates.
    user: String,
    oids: Vec<Oid>,
    contents: Vec<Vec<u8>>,
    bytes: usize,
    /// Owners and privileges that differ from a new object's.
    properties: String,
}

const CREATE: &str = "SELECT count(pg_catalog.lo_from_bytea(o, b)) FROM unnest($1::oid[], $2::bytea[]) AS u(o, b)";

impl Batch<'_> {
    fn create(&mut self, object: &Object, contents: Vec<u8>) -> Result<()> {
        self.bytes += contents.len();
        self.oids.push(object.oid);
        self.contents.push(contents);
        if object.owner != self.user {
            self.properties += &format!("ALTER LARGE OBJECT {} OWNER TO {};", object.oid, quoted(&object.owner));
        }
        if let Some(acl) = &object.acl {
            self.properties += &object.privileges(acl)?;
        }
        if self.oids.len() >= BATCH_OBJECTS || self.bytes >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    /// Bytes behind an object's first run.
    fn put(&mut self, run: Run) -> Result<()> {
        self.flush()?;
        let put = "SELECT pg_catalog.lo_put($1, $2, $3)";
        self.client.execute(put, &[&run.oid, &(run.offset as i64), &run.bytes]).map(drop).map_err(|e| describe(&e))
    }

    fn flush(&mut self) -> Result<()> {
        if !self.oids.is_empty() {
            self.client.execute(CREATE, &[&self.oids, &self.contents]).map_err(|e| format!("{}, in {CREATE}", describe(&e)))?;
        }
        if !self.properties.is_empty() {
            execute(self.client, &self.properties)?;
        }
        self.oids.clear();
        self.contents.clear();
        self.properties.clear();
        self.bytes = 0;
        Ok(())
    }
}

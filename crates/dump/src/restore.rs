//! `melba restore`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use postgres::Client;

use crate::Result;
use crate::archive::{ArchiveReader, Entry, LARGE_OBJECT_COMMENT, Section, StreamInfo, StreamKind};
use crate::connection::{Source, describe, execute};
use crate::plain;
use crate::progress::Progress;
use crate::restore_objects;
use crate::workers::parallel;

#[derive(Debug, Args)]
pub struct RestoreOptions {
    /// A dump made by melba dump: its file or its folder; or where backups of melba backup are kept
    #[arg(long = "from", value_name = "PATH")]
    from: PathBuf,
    /// The database to restore into: postgres://USER@HOST:PORT/DATABASE; of a backup a new data directory
    #[arg(long = "to", value_name = "URL", required_unless_present_any = ["plain", "list"])]
    to: Option<String>,
    /// Writes SQL for psql to a new file, or for - to standard output, instead of restoring
    #[arg(long, value_name = "PATH", conflicts_with_all = ["to", "table", "schema", "data", "large_objects"])]
    plain: Option<PathBuf>,
    /// Lists the contents of the dump and whether it is whole
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

impl RestoreOptions {
    /// From where to where, if those can be a backup and a data directory.
    pub fn backup(&self) -> Option<(String, PathBuf)> {
        let to = self.to.as_ref().filter(|to| !to.contains("://") && !to.contains('='))?;
        Some((self.from.to_str()?.to_owned(), PathBuf::from(to)))
    }
}

/// Restores a dump, or the chosen parts of it. Parts that already exist fail as their statements do: nothing is replaced.
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
    let target = Source::parse(to)?;
    let user = current_user(&target)?;
    let restore = Restore { options, archive: &archive, target, user };
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
        if entry.kind == LARGE_OBJECT_COMMENT {
            return self.table.is_empty() && (self.wants_all() || self.large_objects);
        }
        let is_wanted = self.wants_table(entry.schema.as_deref().unwrap_or_default(), &entry.name);
        // With --data alone a sequence must still continue from its value.
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
    /// The connection's user, who owns created objects.
    user: String,
}

fn current_user(target: &Source) -> Result<String> {
    let row = target.connect()?.query_one("SELECT current_user::text", &[]).map_err(|e| describe(&e))?;
    Ok(row.get(0))
}

impl Restore<'_> {
    fn sequentially<'e>(&self, entries: impl IntoIterator<Item = &'e Entry>) -> Result<()> {
        let mut client = self.target.connect()?;
        entries.into_iter().try_for_each(|e| execute(&mut client, &e.sql))
    }

    fn build(&self, entries: Vec<&Entry>) -> Result<()> {
        let connect = |_| self.target.connect();
        parallel(self.options.jobs.into(), entries, connect, |client, entry| execute(client, &entry.sql))
    }

    fn streams(&self, selected: &[(u32, &StreamInfo)]) -> Result<()> {
        let progress = Progress::new("restoring", selected.iter().map(|(number, _)| self.archive.raw_bytes(*number)).sum());
        // The pages of objects are the stream behind them.
        let jobs = selected.iter().filter(|(_, info)| !matches!(info.kind, StreamKind::LargeObjectPages(_)));
        let connect = |_| self.target.connect();
        parallel(self.options.jobs.into(), jobs.collect(), connect, |client, (number, info)| match &info.kind {
            StreamKind::Table { target, .. } => self.rows(client, *number, target, &progress),
            _ => {
                let objects = self.counted(*number, &progress)?;
                restore_objects::restore(client, &self.user, objects, self.counted(number + 1, &progress)?)
            }
        })
    }

    /// The blocks of a stream.
    fn counted<'p>(&self, stream: u32, progress: &'p Progress) -> Result<impl Iterator<Item = Result<Vec<u8>>> + use<'p, '_>> {
        Ok(self.archive.blocks(stream)?.inspect(|block| progress.add(block.as_ref().map_or(0, Vec::len))))
    }

    fn rows(&self, client: &mut Client, number: u32, target: &str, progress: &Progress) -> Result<()> {
        let statement = format!("COPY {target} FROM STDIN");
        let failed = |e: &postgres::Error| format!("{}, in {statement}", describe(e));
        let mut writer = client.copy_in(&statement).map_err(|e| failed(&e))?;
        for block in self.counted(number, progress)? {
            writer.write_all(&block?).map_err(|e| format!("{e}, in {statement}"))?;
        }
        writer.finish().map(drop).map_err(|e| failed(&e))
    }
}

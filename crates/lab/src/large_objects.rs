//! The published experiment on dumping a million large objects: time, memory, size and number of files of pg_dump in every
//! installed version, and of `melba dump` beside it; and the restores. Beside it the cost of the objects in the server: to
//! create, count, keep and remove them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use clap::Args;
use postgres::Client;

use crate::progress::Progress;
use crate::report::{Claim, Collector, Finding, Key, Report};
use crate::tool::Run;
use crate::{Common, Result, Target, tool};

#[derive(Debug, Args)]
pub struct LargeObjectOptions {
    #[command(flatten)]
    pub common: Common,
    #[arg(long, default_value_t = 1_000_000)]
    objects: u64,
    /// Bytes of each object; 0 as published: created and left empty. Several numbers are several experiments
    #[arg(long, value_delimiter = ',', default_value = "0")]
    bytes: Vec<u64>,
    /// A folder with pg_dump and pg_restore; may be given several times. By default every version installed
    #[arg(long = "pg-bin", value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// pg_dump's formats
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["custom", "directory"])]
    formats: Vec<Format>,
    /// Dumps only
    #[arg(long)]
    no_restore: bool,
    /// Where dumps are written, and removed again; needs room for the largest
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    scratch: PathBuf,
}

const SOURCE: &str = "melba_lab_objects";
const RESTORED: &str = "melba_lab_restored";
/// Objects removed by a statement: PostgreSQL holds a lock for each until its end.
const REMOVED: u64 = 5000;
/// One object in this many is compared after a restore.
const COMPARED: u64 = 101;

/// A way to dump and restore.
enum Dumper {
    PgDump {
        name: String,
        folder: PathBuf,
        format: Format,
    },
    /// This binary's own, for targets that are Melba.
    Melba {
        binary: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Custom,
    Directory,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::Custom => "custom",
            Format::Directory => "directory",
        }
    }
}

pub fn run(options: &LargeObjectOptions) -> Result<Report> {
    let common = &options.common;
    let sizes: Vec<String> = options.bytes.iter().map(u64::to_string).collect();
    let parameters = vec![("objects", options.objects.to_string()), ("bytes", sizes.join(", "))];
    let mut report = Report::new("Dump and restore of large objects", common, parameters)?;
    let dumpers = dumpers(options)?;
    let mut collector = Collector::new(common.targets.len());
    let steps = common.targets.len() * (2 + dumpers.len() * common.rounds as usize) * options.bytes.len();
    let progress = Progress::new(steps);
    for bytes in &options.bytes {
        let mut size = Size { options, bytes: *bytes, dumpers: &dumpers, progress: &progress, collector: &mut collector };
        size.run(&mut report)?;
    }
    for target in &common.targets {
        drop_databases(target, &[SOURCE, RESTORED])?;
    }
    report.finish(&collector, claims(common, &collector, &dumpers));
    Ok(report)
}

/// The experiment with objects of one size.
struct Size<'a> {
    options: &'a LargeObjectOptions,
    bytes: u64,
    dumpers: &'a [Dumper],
    progress: &'a Progress,
    collector: &'a mut Collector,
}

impl Size<'_> {
    fn run(&mut self, report: &mut Report) -> Result<()> {
        let common = &self.options.common;
        for (index, target) in common.targets.iter().enumerate() {
            self.progress.step(format_args!("{}: creating {}", target.name, self.label("objects")));
            self.create(index, target)?;
        }
        for round in 1..=common.rounds {
            for dumper in self.dumpers {
                for (index, target) in common.targets.iter().enumerate() {
                    let name = self.label(dumper.name());
                    self.progress.step(format_args!("round {round}: {name}, {}", target.name));
                    match dumper.refuses(&report.targets[index].version) {
                        Some(why) => report.notes.push(format!("{name}, {}: {why}", target.name)),
                        None => LargeObjectPass { options: self.options, name, dumper, target, index, collector: self.collector }
                            .run()?,
                    }
                }
            }
        }
        for (index, target) in common.targets.iter().enumerate() {
            self.progress.step(format_args!("{}: removing {}", target.name, self.label("objects")));
            self.remove(index, target)?;
        }
        Ok(())
    }

    /// A line's name; of empty objects, as published, without their size.
    fn label(&self, name: &str) -> String {
        if self.bytes == 0 { name.to_owned() } else { format!("{name}, {} bytes each", self.bytes) }
    }

    /// Runs a statement and notes how long it took.
    fn timed(&mut self, line: &str, index: usize, target: &Target, client: &mut Client, sql: &str) -> Result<()> {
        let started = Instant::now();
        target.execute(client, sql)?;
        self.collector.add(Key::lower(OBJECTS, self.label(line), "s"), index, started.elapsed().as_secs_f64());
        Ok(())
    }

    fn create(&mut self, index: usize, target: &Target) -> Result<()> {
        drop_databases(target, &[SOURCE, RESTORED])?;
        target.execute(&mut target.connect()?, &format!("CREATE DATABASE {SOURCE}"))?;
        let source = target.in_database(SOURCE);
        let mut client = source.connect()?;
        let (objects, bytes) = (self.options.objects, self.bytes);
        let each = match bytes {
            0 => "lo_create(id::oid)".to_owned(),
            _ => format!(
                "lo_from_bytea(id::oid, convert_to(left((SELECT string_agg(md5(id || '.' || n), '') FROM generate_series(1, {}) n), {bytes}), 'UTF8'))",
                bytes.div_ceil(32)
            ),
        };
        let create = format!("SELECT count({each}) FROM generate_series(1, {objects}) AS id");
        self.timed("create", index, &source, &mut client, &create)?;
        self.timed("count", index, &source, &mut client, "SELECT count(*) FROM pg_largeobject_metadata")?;
        source.execute(&mut client, "CHECKPOINT")?;
        let sql = "SELECT pg_total_relation_size('pg_largeobject') + pg_total_relation_size('pg_largeobject_metadata')";
        let stored = source.number(&mut client, sql)?;
        self.collector.add(Key::lower(DISK, self.label("objects"), "MB"), index, stored / 1e6);
        Ok(())
    }

    /// In batches of some thousand per transaction, as a client does because of PostgreSQL's lock table.
    fn remove(&mut self, index: usize, target: &Target) -> Result<()> {
        let source = target.in_database(SOURCE);
        let mut client = source.connect()?;
        let started = Instant::now();
        for first in (1..=self.options.objects).step_by(REMOVED as usize) {
            let last = first + REMOVED - 1;
            let sql = format!("SELECT count(lo_unlink(oid)) FROM pg_largeobject_metadata WHERE oid BETWEEN {first} AND {last}");
            source.execute(&mut client, &sql)?;
        }
        let line = self.label("remove");
        self.collector.add(Key::lower(OBJECTS, line, "s"), index, started.elapsed().as_secs_f64());
        match source.number(&mut client, "SELECT count(*) FROM pg_largeobject_metadata")? {
            0.0 => Ok(()),
            left => Err(format!("{}: {left} objects are left", target.name)),
        }
    }
}

fn dumpers(options: &LargeObjectOptions) -> Result<Vec<Dumper>> {
    let folders = if options.folders.is_empty() { tool::postgresql_folders("pg_dump") } else { options.folders.clone() };
    let mut dumpers = Vec::new();
    for folder in folders {
        let version = tool::output(Command::new(folder.join("pg_dump")).arg("--version"))?;
        let name = version.split_whitespace().nth(2).unwrap_or("?").to_owned();
        for format in options.formats.iter().copied() {
            dumpers.push(Dumper::PgDump { name: format!("pg_dump {name} {}", format.name()), folder: folder.clone(), format });
        }
    }
    let binary = std::env::current_exe().map_err(|e| e.to_string())?;
    dumpers.push(Dumper::Melba { binary });
    Ok(dumpers)
}

impl Dumper {
    fn name(&self) -> &str {
        match self {
            Dumper::PgDump { name, .. } => name,
            Dumper::Melba { .. } => "melba dump",
        }
    }

    /// Why it cannot dump a server that says it is of this version.
    fn refuses(&self, version: &str) -> Option<String> {
        match self {
            Dumper::PgDump { name, .. } => {
                let major = |text: &str| text.split_whitespace().nth(1).and_then(|v| v.split('.').next()?.parse::<u32>().ok());
                let (own, server) = (major(name)?, major(version)?);
                (own < server).then(|| format!("version {own} refuses to dump a server of version {server}"))
            }
            Dumper::Melba { .. } => (!version.contains("Melba")).then(|| "dumps Melba only".to_owned()),
        }
    }

    fn dump(&self, from: &Target, to: &Path) -> Result<Run> {
        let mut command = match self {
            Dumper::PgDump { folder, format, .. } => {
                let mut command = from.client_program(folder.join("pg_dump"));
                command.args(["--format", format.name(), "--file"]).arg(to);
                command
            }
            Dumper::Melba { binary } => {
                let mut command = from.client_program(binary);
                command.arg("dump").args(["--from", &from.url(), "--to"]).arg(to);
                command
            }
        };
        tool::measure(&mut command).map_err(|e| format!("{}: {e}", from.name))
    }

    fn restore(&self, from: &Path, to: &Target) -> Result<Run> {
        let mut command = match self {
            Dumper::PgDump { folder, .. } => {
                let mut command = to.client_program(folder.join("pg_restore"));
                command.args(["--exit-on-error", "--dbname", &to.database]).arg(from);
                command
            }
            Dumper::Melba { binary } => {
                let mut command = to.client_program(binary);
                command.arg("restore").arg("--from").arg(from).args(["--to", &to.url()]);
                command
            }
        };
        tool::measure(&mut command).map_err(|e| format!("{}: {e}", to.name))
    }
}

/// One way on one target.
struct LargeObjectPass<'a> {
    options: &'a LargeObjectOptions,
    /// Of its lines.
    name: String,
    dumper: &'a Dumper,
    target: &'a Target,
    index: usize,
    collector: &'a mut Collector,
}

impl LargeObjectPass<'_> {
    fn run(&mut self) -> Result<()> {
        let path = self.options.scratch.join(format!("melba-lab-dump-{}", std::process::id()));
        remove(&path);
        let source = self.target.in_database(SOURCE);
        let result = self
            .dumper
            .dump(&source, &path)
            .and_then(|run| self.collect_dump(&path, run))
            .and_then(|()| if self.options.no_restore { Ok(()) } else { self.restore(&path) });
        remove(&path);
        result
    }

    fn add(&mut self, section: &str, unit: &'static str, value: f64) {
        self.collector.add(Key::lower(section, &self.name, unit), self.index, value);
    }

    fn collect_dump(&mut self, path: &Path, run: Run) -> Result<()> {
        let (bytes, files) = tool::size(path);
        self.add(DUMP_TIME, "s", run.elapsed.as_secs_f64());
        self.add(MEMORY, "MB", run.memory_bytes as f64 / 1e6);
        self.add("Size of the dump", "MB", bytes as f64 / 1e6);
        self.add(FILES, "files", files as f64);
        if let Ok(contents) = std::fs::metadata(path.join("toc.dat")) {
            self.add(CONTENTS, "MB", contents.len() as f64 / 1e6);
        }
        Ok(())
    }

    /// Restores into a fresh database and compares.
    fn restore(&mut self, path: &Path) -> Result<()> {
        drop_databases(self.target, &[RESTORED])?;
        self.target.execute(&mut self.target.connect()?, &format!("CREATE DATABASE {RESTORED}"))?;
        let restored = self.target.in_database(RESTORED);
        let run = self.dumper.restore(path, &restored)?;
        self.add("Restore: time", "s", run.elapsed.as_secs_f64());
        self.add("Restore: peak memory", "MB", run.memory_bytes as f64 / 1e6);
        let (before, after) = (fingerprint(&self.target.in_database(SOURCE))?, fingerprint(&restored)?);
        match before == after {
            true => Ok(()),
            false => Err(format!("{}, {}: the restored objects differ: {before} {after}", self.target.name, self.name)),
        }
    }
}

const OBJECTS: &str = "The objects in the server: time";
const DISK: &str = "The objects in the server: size";
const DUMP_TIME: &str = "Dump: time";
const MEMORY: &str = "Dump: peak memory";
const CONTENTS: &str = "Table of contents";
const FILES: &str = "Files";

/// How many objects there are, and a sum over the contents of some.
fn fingerprint(target: &Target) -> Result<String> {
    let mut client = target.connect()?;
    let sum = format!(
        "SELECT (SELECT count(*) FROM pg_largeobject_metadata) || '/' || coalesce(sum(('x' || left(md5(lo_get(oid)), 8))::bit(32)::bigint), 0)
         FROM pg_largeobject_metadata WHERE oid::bigint % {COMPARED} = 0"
    );
    Ok(target.value(&mut client, &sum)?.unwrap_or_default())
}

fn drop_databases(target: &Target, names: &[&str]) -> Result<()> {
    let mut client: Client = target.connect()?;
    names.iter().try_for_each(|name| target.execute(&mut client, &format!("DROP DATABASE IF EXISTS {name}")))
}

fn remove(path: &Path) {
    // One of the two is right, and neither when there is nothing.
    let _ = std::fs::remove_dir_all(path);
    let _ = std::fs::remove_file(path);
}

/// The published lines are of a million empty objects, by pg_dump 16 and 17.
fn claims(common: &Common, collector: &Collector, dumpers: &[Dumper]) -> Vec<Claim> {
    let each = |published: &str, section: &str, unit: &str, matches: &dyn Fn(&Dumper) -> bool, holds: &dyn Fn(f64) -> bool| {
        let findings = common.targets.iter().enumerate().flat_map(|(index, target)| {
            dumpers.iter().filter(|d| matches(d)).filter_map(move |dumper| {
                let value = collector.value(section, dumper.name(), index)?;
                let measured = format!("{}: {value:.0} {unit}", dumper.name());
                Some(Finding { target: target.name.clone(), measured, holds: holds(value) })
            })
        });
        Claim { published: published.to_owned(), findings: findings.collect() }
    };
    let major = |dumper: &Dumper| -> Option<u32> {
        match dumper {
            Dumper::PgDump { name, .. } => name.split_whitespace().nth(1)?.split('.').next()?.parse().ok(),
            Dumper::Melba { .. } => None,
        }
    };
    let old = move |d: &Dumper| major(d).is_some_and(|m| m < 17);
    let new = move |d: &Dumper| major(d).is_some_and(|m| m >= 17);
    let about = |published: f64| move |value: f64| (value / published).max(published / value) < 1.25;
    vec![
        each("pg_dump 16 takes 755 MB of memory", MEMORY, "MB", &old, &about(755.0)),
        each("pg_dump 17 takes 218 MB of memory", MEMORY, "MB", &new, &about(218.0)),
        each("pg_dump 16's table of contents takes 211 MB", CONTENTS, "MB", &old, &about(211.0)),
        each("pg_dump 17's table of contents takes 29 MB", CONTENTS, "MB", &new, &about(29.0)),
        each("the directory format has about a million files", FILES, "files", &|d| d.name().contains("directory"), &about(1e6)),
    ]
}

//! Rows for an engine elsewhere: how many a server publishes as Iceberg in a second, and how many connections read, each its range of
//! ctids, on one exported snapshot, as Spark's workers do by JDBC.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use postgres::Client;

use crate::progress::Progress;
use crate::report::{Collector, Key, Report};
use crate::{Common, Result, Target, tool};

#[derive(Debug, Args)]
pub struct LakeOptions {
    #[command(flatten)]
    pub common: Common,
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,
    /// Rows that are changed between two snapshots
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    changed: u64,
    /// Connections that read together
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4], value_parser = clap::value_parser!(u64).range(1..=64))]
    readers: Vec<u64>,
    /// A folder of the servers' machine, where they publish; what they write is removed again
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    scratch: PathBuf,
}

const TABLE: &str = "melba_lab_lake";
const COLUMNS: [&str; 5] = ["id", "customer", "day", "amount", "note"];
const PUBLISHED: &str = "Published as Iceberg";
const READ: &str = "Read on one snapshot, by ranges of ctid";
/// Rows of a ctid's block: Melba's row ids fill all 16 bits of the offset; elsewhere blocks are not divided.
const BLOCK_ROWS: u64 = 1 << 16;

pub fn run(options: &LakeOptions) -> Result<Report> {
    let common = &options.common;
    let parameters = vec![("rows", options.rows.to_string()), ("changed", options.changed.to_string())];
    let mut report = Report::new("Rows for an engine elsewhere", common, parameters)?;
    let mut collector = Collector::new(common.targets.len());
    let progress = Progress::new(common.targets.len() * (1 + common.rounds as usize));
    for (index, target) in common.targets.iter().enumerate() {
        let is_melba = report.targets[index].version.contains("Melba");
        let location = options.scratch.join(format!("melba-lab-lake-{}-{index}", std::process::id()));
        let mut measured = LakePass { options, target, index, is_melba, location, collector: &mut collector, round: 0 };
        let result = measured.run(&progress);
        // What a failed experiment has left is in the way of the next one.
        let dropped = measured.clean();
        result.and(dropped)?;
    }
    report.finish(&collector, vec![]);
    report.notes.push(
        "Readers get rows as COPY's text. Changes are committed after the snapshot is exported: none of them may be read."
            .to_owned(),
    );
    Ok(report)
}

/// The experiment on one target.
struct LakePass<'a> {
    options: &'a LakeOptions,
    target: &'a Target,
    index: usize,
    is_melba: bool,
    location: PathBuf,
    collector: &'a mut Collector,
    round: u64,
}

impl LakePass<'_> {
    fn run(&mut self, progress: &Progress) -> Result<()> {
        progress.step(format_args!("{}: {} rows", self.target.name, self.options.rows));
        self.clean()?;
        let mut client = self.target.connect()?;
        self.load(&mut client)?;
        if self.is_melba {
            self.publish_all(&mut client)?;
        }
        for round in 1..=self.options.common.rounds {
            progress.step(format_args!("{}: round {round}", self.target.name));
            if self.is_melba {
                self.change(&mut client)?;
                self.publish_changes(&mut client)?;
            }
            for readers in self.options.readers.clone() {
                self.read(&mut client, readers)?;
            }
        }
        Ok(())
    }

    fn clean(&self) -> Result<()> {
        let mut client = self.target.connect()?;
        self.target.execute(&mut client, "SET client_min_messages = warning")?;
        self.target.execute(&mut client, &format!("DROP PUBLICATION IF EXISTS {TABLE}"))?;
        self.target.execute(&mut client, &format!("DROP TABLE IF EXISTS {TABLE}"))?;
        // It is not there where nothing was published.
        let _ = std::fs::remove_dir_all(&self.location);
        Ok(())
    }

    fn load(&self, client: &mut Client) -> Result<()> {
        let columns = "id bigint PRIMARY KEY, customer int, day date, amount numeric(15, 2), note text";
        let rows = "i, i % 50000, date '2024-01-01' + (i % 730)::int, (i % 100000) / 8.0, 'note ' || md5((i % 1000)::text)";
        self.target.execute(client, &format!("CREATE TABLE {TABLE} ({columns})"))?;
        self.target
            .execute(client, &format!("INSERT INTO {TABLE} SELECT {rows} FROM generate_series(1, {}) i", self.options.rows))?;
        self.target.execute(client, &format!("VACUUM ANALYZE {TABLE}"))
    }

    fn publish_all(&mut self, client: &mut Client) -> Result<()> {
        let location = location_of(&self.location)?;
        let options = format!("format = 'iceberg', location = '{location}', snapshot_interval = '0'");
        self.target.execute(client, &format!("CREATE PUBLICATION {TABLE} FOR TABLE {TABLE} WITH ({options})"))?;
        let taken = self.publish(client)?;
        let (bytes, _) = tool::size(&self.location);
        self.collector.add(Key::higher(PUBLISHED, "all rows", "rows/s"), self.index, self.options.rows as f64 / taken);
        self.collector.add(Key::lower(PUBLISHED, "its files", "MB"), self.index, bytes as f64 / 1e6);
        Ok(())
    }

    fn publish_changes(&mut self, client: &mut Client) -> Result<()> {
        let taken = self.publish(client)?;
        let line = format!("{} changed rows", self.options.changed.min(self.options.rows));
        self.collector.add(Key::lower(PUBLISHED, line, "s"), self.index, taken);
        Ok(())
    }

    /// Writes a snapshot; the seconds that it took.
    fn publish(&self, client: &mut Client) -> Result<f64> {
        let began = Instant::now();
        self.target.number(client, &format!("SELECT melba_publish('{TABLE}')"))?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Changes rows all over the table.
    fn change(&mut self, client: &mut Client) -> Result<()> {
        self.round += 1;
        let step = (self.options.rows / self.options.changed).max(1);
        let sql = format!("UPDATE {TABLE} SET amount = amount + 1, note = 'changed' WHERE id % {step} = {}", self.round % step);
        self.target.execute(client, &sql)
    }

    fn read(&mut self, client: &mut Client, readers: u64) -> Result<()> {
        let mut exporter = self.target.connect()?;
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        self.target.execute(&mut exporter, begin)?;
        let snapshot = self.target.value(&mut exporter, "SELECT pg_export_snapshot()")?.unwrap_or_default();
        // COPY's text: each value with a separator behind it.
        let bytes: Vec<String> = COLUMNS.map(|column| format!("length({column}::text) + 1")).to_vec();
        let sql = format!("SELECT count(*) || ' ' || sum({}) FROM {TABLE}", bytes.join(" + "));
        let expected = self.target.value(&mut exporter, &sql)?;
        let last = self.target.value(&mut exporter, &format!("SELECT max(ctid) FROM {TABLE}"))?.unwrap_or_default();
        self.change(client)?;
        let ranges = ranges(&last, if self.is_melba { BLOCK_ROWS } else { 1 }, readers)?;
        let import = format!("{begin}; SET TRANSACTION SNAPSHOT '{snapshot}'");
        // Connecting is none of the reading.
        let mut connections = Vec::with_capacity(ranges.len());
        for range in ranges {
            let mut connection = self.target.connect()?;
            self.target.execute(&mut connection, &import)?;
            connections.push((connection, range));
        }
        let target = self.target;
        let began = Instant::now();
        let read = std::thread::scope(|scope| {
            let started: Vec<_> =
                connections.iter_mut().map(|(c, range)| scope.spawn(move || read_range(target, c, range))).collect();
            started
                .into_iter()
                .map(|reader| reader.join().map_err(|_| "a reader has panicked".to_owned())?)
                .collect::<Result<Vec<_>>>()
        })?;
        let taken = began.elapsed().as_secs_f64();
        let (rows, bytes) = read.iter().fold((0, 0), |(rows, bytes), (r, b)| (rows + r, bytes + b));
        let found = format!("{rows} {bytes}");
        if expected.as_deref() != Some(&found) {
            return Err(format!("{}: {readers} readers got {found} rows and bytes instead of {expected:?}", target.name));
        }
        let line = if readers == 1 { "1 connection".to_owned() } else { format!("{readers} connections") };
        self.collector.add(Key::higher(READ, line, "rows/s"), self.index, rows as f64 / taken);
        Ok(())
    }
}

/// Rows of a range, and their bytes with a line's end each.
fn read_range(target: &Target, client: &mut Client, range: &str) -> Result<(u64, u64)> {
    let sql = format!("COPY (SELECT * FROM {TABLE} WHERE {range}) TO STDOUT");
    let mut reader = client.copy_out(&sql).map_err(|e| format!("{}, in {sql}", target.error(e)))?;
    let (mut rows, mut bytes) = (0, 0);
    loop {
        let piece = reader.fill_buf().map_err(|e| format!("{}: {e}", target.name))?;
        if piece.is_empty() {
            return Ok((rows, bytes));
        }
        rows += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
        bytes += piece.len() as u64;
        let read = piece.len();
        reader.consume(read);
    }
}

/// Conditions that each row up to `last`, and any behind it, meets one of.
fn ranges(last: &str, block_rows: u64, parts: u64) -> Result<Vec<String>> {
    let numbers = last
        .trim_matches(['(', ')'])
        .split_once(',')
        .and_then(|(block, offset)| Some((block.parse::<u64>().ok()?, offset.parse::<u64>().ok()?)));
    let (block, offset) = numbers.ok_or_else(|| format!("\"{last}\" is no ctid"))?;
    let end = if block_rows == 1 { block + 1 } else { block * block_rows + offset + 1 };
    let ctid = |part: u64| {
        let at = end * part / parts;
        format!("'({},{})'", at / block_rows, at % block_rows)
    };
    let between = (0..parts).map(|part| match (part, part + 1 == parts) {
        (0, true) => "ctid >= '(0,0)'".to_owned(),
        (0, false) => format!("ctid < {}", ctid(1)),
        (_, true) => format!("ctid >= {}", ctid(part)),
        (_, false) => format!("ctid >= {} AND ctid < {}", ctid(part), ctid(part + 1)),
    });
    Ok(between.collect())
}

/// A folder as a URL within a string of SQL.
fn location_of(folder: &Path) -> Result<String> {
    let folder = std::path::absolute(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let text = folder.to_str().filter(|text| !text.contains(['\'', '%', ' ', '?', '#']));
    text.map(|text| format!("file://{text}"))
        .ok_or_else(|| format!("{}: the name of this folder cannot be part of a URL", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_meet_each_row_once() {
        let all = ranges("(1,4)", BLOCK_ROWS, 3).expect("ranges");
        assert_eq!(all, ["ctid < '(0,21847)'", "ctid >= '(0,21847)' AND ctid < '(0,43694)'", "ctid >= '(0,43694)'"]);
        assert_eq!(
            ranges("(8,100)", 1, 3).expect("ranges"),
            ["ctid < '(3,0)'", "ctid >= '(3,0)' AND ctid < '(6,0)'", "ctid >= '(6,0)'"]
        );
        assert_eq!(ranges("(0,7)", BLOCK_ROWS, 1).expect("ranges"), ["ctid >= '(0,0)'"]);
        assert!(ranges("", BLOCK_ROWS, 1).is_err());
    }
}

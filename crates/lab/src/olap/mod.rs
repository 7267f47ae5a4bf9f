//! The published experiment on one large table and on accounts and records: loads, ranges, prefixes, groups and orders without an
//! index and with one, then short statements by many clients and long ones over a year, on row stores and column stores.

mod answer;
mod claims;
mod data;
mod database;
mod embedded;
mod peers;
mod queries;
mod server;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::Result;
use crate::progress::Progress;
use crate::report::{Collector, Key, Report};
use answer::{Answer, Compare, Reducer};
use data::{ACCOUNT, Data, OlapTable, RECORD, TMP};
use database::{Crowd, Dialect};
use peers::Peer;
use queries::{Query, Statement};

#[derive(Debug, Args)]
pub struct OlapOptions {
    /// Rows of the large table; the experiment has 10000000, 100000000 and 500000000
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1000..))]
    rows: u64,
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100..))]
    accounts: u64,
    #[arg(long, default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(100..))]
    records: u64,
    /// Numbers of clients of the short statements
    #[arg(long, value_delimiter = ',', default_value = "1,16", value_parser = clap::value_parser!(u16).range(1..))]
    clients: Vec<u16>,
    /// Duration of each run of short statements
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// How often each query is asked; the median is reported
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Of the rows
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    setup: peers::Setup,
    /// Where everything is written, and removed again
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    scratch: PathBuf,
    /// Where results.json, results.md and results.html are written
    #[arg(long, value_name = "DIR", default_value = "./melba-lab")]
    pub out: PathBuf,
}

pub fn run(options: &OlapOptions) -> Result<Report> {
    let scratch = options.scratch.join(format!("melba-lab-olap-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
    // A relative path is another one to a database that reads the files itself.
    let scratch = scratch.canonicalize().map_err(|e| format!("{}: {e}", scratch.display()))?;
    let report = measure_all(options, &scratch);
    // Servers' data, or the remains of a failure.
    let _ = std::fs::remove_dir_all(&scratch);
    report
}

fn measure_all(options: &OlapOptions, scratch: &Path) -> Result<Report> {
    let (peers, absent) = peers::start(&options.setup, scratch);
    if peers.is_empty() {
        return Err(format!("no database to measure: {}", absent.join("; ")));
    }
    let parameters = vec![
        ("rows", options.rows.to_string()),
        ("accounts", options.accounts.to_string()),
        ("records", options.records.to_string()),
        ("threads", options.setup.threads.to_string()),
        ("settings", options.setup.session().join(", ")),
        ("seconds", options.seconds.to_string()),
        ("rounds", options.rounds.to_string()),
        ("seed", options.seed.to_string()),
    ];
    let mut report = Report::of_targets("One large table, accounts and records", peers::described(&peers), parameters);
    let data = Data { seed: options.seed, rows: options.rows, accounts: options.accounts, records: options.records };
    let collector = Collector::new(peers.len());
    let progress = Progress::new(steps(options, &data));
    let mut run = OlapRun { options, data, scratch, peers, collector, progress, answers: HashMap::new() };
    run.large_table()?;
    run.accounts_and_records()?;
    report.finish(&run.collector, claims::judge(&run.collector, &run.peers));
    report.notes.extend(absent);
    report.notes.extend(NOTES.map(str::to_owned));
    Ok(report)
}

const NOTES: [&str; 7] = [
    "Every answer is compared with the first database's: all rows by a checksum that looks at no order, the ordered column where there is an \
     order, and the number of rows, with their values in the range, where any 1000 may be the answer.",
    "A query's time ends when its last row is with the client. DuckDB and ClickHouse run inside of it and hand their rows over in memory; those \
     of Melba, PostgreSQL and MySQL come over a socket.",
    "Short statements are prepared once on Melba and PostgreSQL; DuckDB, ClickHouse and MySQL get them as text, from threads of one Python process.",
    "Rows go in from a text file: COPY, LOAD DATA, or INSERT from file(). Afterwards come CHECKPOINT and VACUUM ANALYZE, ANALYZE TABLE, or OPTIMIZE FINAL: \
     what these do is not the same.",
    "ClickHouse runs without its cache of query conditions, from which later rounds would be answered.",
    "With an index, ClickHouse has the table written anew in the order of phone; a nickname's records have an index on all others.",
    "Phones are \"13\" and nine random digits: a prefix of five characters covers 10^6 of them, one of three 10^8.",
];

/// Two files and loads more for the records, the two indexes, each query, each short statement of each number of clients.
fn steps(options: &OlapOptions, data: &Data) -> usize {
    6 + 2 + 2 * queries::large(data).len() + queries::long().len() + options.clients.len() * queries::short(data).len()
}

const LOAD: &str = "Load";

struct OlapRun<'a> {
    options: &'a OlapOptions,
    data: Data,
    scratch: &'a Path,
    peers: Vec<Peer>,
    collector: Collector,
    progress: Progress,
    /// The first answer to each query: by its SQL.
    answers: HashMap<String, (String, Answer)>,
}

impl OlapRun<'_> {
    fn large_table(&mut self) -> Result<()> {
        self.load(&TMP)?;
        self.sizes("without an index", &[TMP])?;
        self.queries("Large table without an index", &queries::large(&self.data))?;
        self.index("index on phone", Dialect::index_phone)?;
        self.sizes("with an index on phone", &[TMP])?;
        self.queries("Large table with an index on phone", &queries::large(&self.data))?;
        // Files of databases that do not shrink start again.
        self.peers.iter_mut().try_for_each(|peer| peer.renew(&self.options.setup, self.scratch))
    }

    fn accounts_and_records(&mut self) -> Result<()> {
        self.load(&ACCOUNT)?;
        self.load(&RECORD)?;
        self.index("index of records by nickname", Dialect::index_records)?;
        self.sizes("accounts and records with indexes", &[ACCOUNT, RECORD])?;
        let statements = queries::short(&self.data);
        let rows: Vec<Vec<u64>> = statements.iter().map(|statement| self.answers_of(statement)).collect::<Result<_>>()?;
        for clients in &self.options.clients {
            let crowd = Crowd { clients: usize::from(*clients), seconds: self.options.seconds };
            for (statement, rows) in statements.iter().zip(&rows) {
                self.progress.step(format_args!("{clients} clients: {}", statement.name));
                let section = format!("Short statements, {clients} {}", if *clients == 1 { "client" } else { "clients" });
                for (index, peer) in self.peers.iter_mut().enumerate() {
                    let rate = peer.database()?.rate(statement, rows, crowd).map_err(|e| format!("{}: {e}", peer.name))?;
                    self.collector.add(Key::higher(&section, statement.name, "1/s"), index, rate);
                }
            }
        }
        self.queries("Records of a year", &queries::long())
    }

    /// One file, loaded everywhere.
    fn load(&mut self, table: &OlapTable) -> Result<()> {
        let (rows, path) = (self.data.rows_of(table) as f64, self.scratch.join(table.name));
        self.progress.step(format_args!("{}: the file", table.name));
        let bytes = self.data.write(table, &path)?;
        self.progress.step(format_args!("{}: load", table.name));
        for (index, peer) in self.peers.iter_mut().enumerate() {
            let loaded = peer.database()?.load(table, &path).map_err(|e| format!("{}: {e}", peer.name))?;
            let name = table.name.trim_start_matches("melba_lab_");
            self.collector.add(Key::higher(LOAD, format!("{name}, COPY"), "rows/s"), index, rows / loaded.copy);
            self.collector.add(Key::lower(LOAD, format!("{name}, afterwards"), "s"), index, loaded.maintenance);
            self.collector.add(Key::lower(DISK, format!("{name}, the file of text"), "MB"), index, bytes as f64 / 1e6);
        }
        std::fs::remove_file(&path).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn sizes(&mut self, line: &str, tables: &[OlapTable]) -> Result<()> {
        for (index, peer) in self.peers.iter_mut().enumerate() {
            let bytes = peer.database()?.bytes(tables).map_err(|e| format!("{}: {e}", peer.name))?;
            self.collector.add(Key::lower(DISK, line, "MB"), index, bytes / 1e6);
        }
        Ok(())
    }

    fn index(&mut self, line: &str, statements: impl Fn(Dialect) -> Vec<String>) -> Result<()> {
        self.progress.step(line);
        for (index, peer) in self.peers.iter_mut().enumerate() {
            let statements = statements(peer.dialect);
            if !statements.is_empty() {
                let seconds = peer.database()?.execute(&statements).map_err(|e| format!("{}: {e}", peer.name))?;
                self.collector.add(Key::lower(LOAD, line, "s"), index, seconds);
            }
        }
        Ok(())
    }

    /// Each query, round by round, on each database.
    fn queries(&mut self, section: &str, queries: &[Query]) -> Result<()> {
        for query in queries {
            self.progress.step(format_args!("{section}: {}", query.name));
            for _ in 0..self.options.rounds {
                for index in 0..self.peers.len() {
                    let (seconds, _) = self.ask(index, &query.sql, &query.compare)?;
                    self.collector.add(Key::lower(section, &query.name, "ms"), index, seconds * 1e3);
                }
            }
        }
        Ok(())
    }

    /// How many rows a short statement has for each parameter, everywhere the same ones.
    fn answers_of(&mut self, statement: &Statement) -> Result<Vec<u64>> {
        let mut rows = Vec::new();
        for parameter in &statement.parameters {
            let sql = statement.with(parameter);
            let each = (0..self.peers.len()).map(|index| Ok(self.ask(index, &sql, &Compare::Rows)?.1.rows));
            rows.push(each.collect::<Result<Vec<u64>>>()?[0]);
        }
        Ok(rows)
    }

    /// Asks a database and compares its answer with the first that there was.
    fn ask(&mut self, index: usize, sql: &str, compare: &Compare) -> Result<(f64, Answer)> {
        let peer = &mut self.peers[index];
        let failed = |e: String| format!("{}: {e}, in {sql}", peer.name);
        let mut reducer = Reducer::new(compare);
        let database = peer.database.as_mut().ok_or_else(|| failed("it has ended".to_owned()))?;
        let seconds = database.query(sql, &mut |row| reducer.row(row)).map_err(failed)?;
        let answer = reducer.finish().map_err(failed)?;
        let (first, expected) = self.answers.entry(sql.to_owned()).or_insert_with(|| (peer.name.clone(), answer));
        if answer != *expected {
            return Err(failed(format!("{answer:?} instead of {expected:?}, which {first} answered first")));
        }
        Ok((seconds, answer))
    }
}

const DISK: &str = "Disk";

//! Sessions that read and change rows by ranges of their keys at SERIALIZABLE, and a checker that judges their reads.
//!
//! `cargo xtask history predicates` starts it beside a server.

#![allow(clippy::disallowed_methods, reason = "it tests a server from outside, by real time")]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use melba_testkit::predicates::{Key, PredicateOperation, PredicateTransaction, Row, Version, Write, check};
use melba_vfs::SeededRandom;
use postgres::{Client, NoTls, SimpleQueryMessage};

const USAGE: &str = "usage: predicates HOST:PORT[/DATABASE] SECONDS SEED";

const SESSIONS: u64 = 12;
/// Keys are 0 to this.
const KEY_MAX: Key = 29;
/// With more rows than this, more are deleted than inserted.
const ROWS: usize = 60;

/// Rows are found by an index on k, or by a scan of the table.
const SCHEMA: &str =
    "create table cells (id bigint primary key, k int not null, v bigint not null, pad text default repeat('x', 100));
    create index on cells (k)";

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, seconds, seed] = arguments.as_slice() else { return Err(USAGE.into()) };
    let number = |text: &String| text.parse::<u64>().map_err(|_| format!("{text} is no number"));
    let run = PredicatesRun::new(address, Duration::from_secs(number(seconds)?))?;
    let seed = number(seed)?;
    run.connect()?.batch_execute(SCHEMA).map_err(|e| format!("creating the table: {e}"))?;
    let results: Result<Vec<()>, String> = std::thread::scope(|scope| {
        let session = |n| {
            let run = &run;
            scope.spawn(move || run.session(SeededRandom::new(seed.wrapping_mul(SESSIONS) + n)))
        };
        let sessions: Vec<_> = (0..SESSIONS).map(session).collect();
        sessions.into_iter().map(|s| s.join().unwrap_or_else(|_| Err("a session panicked".into()))).collect()
    });
    results?;
    run.look_at_all()?;
    let transactions = run.transactions.into_inner().map_err(|e| e.to_string())?;
    report(&transactions)
}

fn report(transactions: &[PredicateTransaction]) -> Result<(), String> {
    let committed = transactions.iter().filter(|t| t.committed).count();
    let operations: usize = transactions.iter().map(|t| t.operations.len()).sum();
    let counts = format!("{operations} operations, {committed} transactions committed, {} not", transactions.len() - committed);
    let found = check(transactions);
    if found.is_empty() {
        println!("ok      history of predicates: {counts}");
        return Ok(());
    }
    let mut text = format!("predicates: {counts}\n");
    for anomaly in found.iter().take(20) {
        text.push_str(&format!("{:?}: {}\n", anomaly.kind, anomaly.text));
        for n in anomaly.text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<usize>().ok()) {
            if let Some(t) = transactions.get(n).filter(|_| anomaly.text.contains(&format!("transaction {n} "))) {
                text.push_str(&format!("    {n}: {t:?}\n"));
            }
        }
    }
    Err(text)
}

/// State that the sessions share.
struct PredicatesRun {
    config: postgres::Config,
    until: Instant,
    /// One clock for the whole history.
    clock: AtomicU64,
    /// Names rows and versions.
    next: AtomicU64,
    transactions: Mutex<Vec<PredicateTransaction>>,
}

/// Why a transaction has ended before its COMMIT.
enum TransactionFailure {
    Server(postgres::Error),
    /// An answer that is wrong, whatever others do.
    Wrong(String),
}

impl From<postgres::Error> for TransactionFailure {
    fn from(e: postgres::Error) -> TransactionFailure {
        TransactionFailure::Server(e)
    }
}

/// A transaction that runs.
struct Running<'a> {
    run: &'a PredicatesRun,
    client: &'a mut Client,
    random: &'a SeededRandom,
    record: PredicateTransaction,
    /// The rows that it has found or made, as it sees them now.
    known: BTreeMap<Row, Version>,
}

impl PredicatesRun {
    fn new(address: &str, time: Duration) -> Result<PredicatesRun, String> {
        let (host, rest) = address.rsplit_once(':').ok_or(USAGE)?;
        let (port, database) = rest.split_once('/').unwrap_or((rest, "postgres"));
        let mut config = Client::configure();
        config.host(host).port(port.parse().map_err(|_| USAGE)?).user("postgres").dbname(database);
        let (clock, next) = (AtomicU64::new(0), AtomicU64::new(1));
        Ok(PredicatesRun { config, until: Instant::now() + time, clock, next, transactions: Mutex::default() })
    }

    fn connect(&self) -> Result<Client, String> {
        let client = self.config.connect(NoTls);
        // Deadlocks are common here, and the wait for their detection is not under test.
        client
            .and_then(|mut c| c.batch_execute("set deadlock_timeout = '20ms'").map(|()| c))
            .map_err(|e| format!("no connection: {e}"))
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn fresh(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    fn keep(&self, transaction: PredicateTransaction) {
        if let Ok(mut all) = self.transactions.lock() {
            all.push(transaction);
        }
    }

    fn session(&self, random: SeededRandom) -> Result<(), String> {
        let mut client = self.connect()?;
        if random.chance(50) {
            client.batch_execute("set synchronous_commit = off").map_err(|e| e.to_string())?;
        }
        while Instant::now() < self.until {
            let record = PredicateTransaction { began: self.now(), ..PredicateTransaction::default() };
            let mut running = Running { run: self, client: &mut client, random: &random, record, known: BTreeMap::new() };
            let result = running.transact();
            let mut record = running.record;
            record.ended = self.now();
            record.committed = result.is_ok();
            self.keep(record);
            match result {
                Ok(()) => {}
                Err(TransactionFailure::Wrong(text)) => return Err(text),
                Err(TransactionFailure::Server(e)) => {
                    match e.as_db_error().map(|db| db.code().code()) {
                        Some("40001" | "40P01") => {}
                        _ => return Err(format!("{e}: {:?}", e.as_db_error())),
                    }
                    client.batch_execute("rollback").map_err(|e| e.to_string())?;
                }
            }
        }
        Ok(())
    }

    /// A last transaction finds every row.
    fn look_at_all(&self) -> Result<(), String> {
        let (mut client, random) = (self.connect()?, SeededRandom::new(0));
        let record = PredicateTransaction { began: self.now(), committed: true, ..PredicateTransaction::default() };
        let mut running = Running { run: self, client: &mut client, random: &random, record, known: BTreeMap::new() };
        let read = running.read(0, KEY_MAX);
        let mut record = running.record;
        (record.committing, record.ended) = (self.now(), self.now());
        self.keep(record);
        match read {
            Ok(()) => Ok(()),
            Err(TransactionFailure::Wrong(text)) => Err(text),
            Err(TransactionFailure::Server(e)) => Err(e.to_string()),
        }
    }
}

impl Running<'_> {
    fn transact(&mut self) -> Result<(), TransactionFailure> {
        let reports = self.random.chance(30);
        let access = match (reports, self.random.below(10)) {
            (true, 0..5) => " read only",
            (true, 5) => " read only deferrable",
            _ => "",
        };
        self.client.batch_execute(&format!("begin isolation level serializable{access}"))?;
        for _ in 0..1 + self.random.below(3) {
            let from = self.random.below(KEY_MAX as usize + 1) as Key;
            self.read(from, from + self.random.below(4) as Key)?;
        }
        if !reports {
            for _ in 0..1 + self.random.below(2) {
                self.write()?;
            }
            if self.random.chance(20) {
                let from = self.random.below(KEY_MAX as usize + 1) as Key;
                self.read(from, from + 2)?;
            }
        }
        self.record.committing = self.run.now();
        Ok(self.client.batch_execute("commit")?)
    }

    /// The condition in a form that the index serves, or in one that needs a scan.
    fn condition(&self, from: Key, to: Key) -> String {
        match self.random.below(4) {
            0 => format!("k + 0 between {from} and {to}"),
            1 => format!("k >= {from} and k < {}", to + 1),
            2 => format!("k in ({})", (from..=to).map(|k| k.to_string()).collect::<Vec<_>>().join(", ")),
            _ => format!("k between {from} and {to}"),
        }
    }

    fn query(&mut self, sql: &str) -> Result<Vec<(u64, u64)>, TransactionFailure> {
        let messages = self.client.simple_query(sql)?;
        if self.record.looked == 0 {
            self.record.looked = self.run.now();
        }
        let number = |row: &postgres::SimpleQueryRow, column| row.get(column).and_then(|text| text.parse().ok()).unwrap_or(0);
        let rows = messages.iter().filter_map(|m| match m {
            SimpleQueryMessage::Row(row) => Some((number(row, 0), number(row, 1))),
            _ => None,
        });
        Ok(rows.collect())
    }

    fn read(&mut self, from: Key, to: Key) -> Result<(), TransactionFailure> {
        let mut rows = self.query(&format!("select id, v from cells where {}", self.condition(from, to)))?;
        rows.sort_unstable();
        if self.random.chance(30) {
            let totals = self.query(&format!("select count(*), sum(v) from cells where {}", self.condition(from, to)))?;
            let expected = (rows.len() as u64, rows.iter().map(|row| row.1).sum());
            if totals != [expected] {
                return Err(TransactionFailure::Wrong(format!(
                    "keys {from} to {to} of one snapshot: {rows:?}, and then {totals:?} in all"
                )));
            }
        }
        self.known.extend(rows.iter().copied());
        self.record.operations.push(PredicateOperation::Read(from, to, rows));
        Ok(())
    }

    fn write(&mut self) -> Result<(), TransactionFailure> {
        let key = self.random.below(KEY_MAX as usize + 1) as Key;
        let known: Vec<(Row, Version)> = self.known.iter().map(|(row, version)| (*row, *version)).collect();
        let one = (!known.is_empty()).then(|| known[self.random.below(known.len())]);
        let many = self.known.len() * 10 > ROWS;
        match (one, self.random.below(10)) {
            (Some(one), 0..4) => self.change(one, Some(key)),
            (Some(one), 4..6) => self.change(one, None),
            (Some(one), 6 | 7) if many => self.change(one, None),
            (_, 8) => self.remove_range(key, key + self.random.below(2) as Key),
            _ => self.insert(key),
        }
    }

    fn insert(&mut self, key: Key) -> Result<(), TransactionFailure> {
        let (row, after) = (self.run.fresh(), self.run.fresh());
        self.record.operations.push(PredicateOperation::Write(Write { row, before: None, after, key: Some(key) }));
        self.client.batch_execute(&format!("insert into cells (id, k, v) values ({row}, {key}, {after})"))?;
        self.known.insert(row, after);
        Ok(())
    }

    fn change(&mut self, (row, before): (Row, Version), key: Option<Key>) -> Result<(), TransactionFailure> {
        let after = self.run.fresh();
        self.record.operations.push(PredicateOperation::Write(Write { row, before: Some(before), after, key }));
        let sql = match key {
            Some(key) => format!("update cells set k = {key}, v = {after} where id = {row} and v = {before}"),
            None => format!("delete from cells where id = {row} and v = {before}"),
        };
        let done = self.client.execute(&sql, &[])?;
        if done != 1 {
            return Err(TransactionFailure::Wrong(format!("{sql}: {done} rows, of a version that the transaction has read")));
        }
        self.known.remove(&row);
        self.known.extend(key.map(|_| (row, after)));
        Ok(())
    }

    /// Removes the rows of a range, which is a read of the range too.
    fn remove_range(&mut self, from: Key, to: Key) -> Result<(), TransactionFailure> {
        let mut rows = self.query(&format!("delete from cells where {} returning id, v", self.condition(from, to)))?;
        rows.sort_unstable();
        self.record.operations.push(PredicateOperation::Read(from, to, rows.clone()));
        for (row, before) in rows {
            let after = self.run.fresh();
            self.record.operations.push(PredicateOperation::Write(Write { row, before: Some(before), after, key: None }));
            self.known.remove(&row);
        }
        Ok(())
    }
}

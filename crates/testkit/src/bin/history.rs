//! Sixteen sessions append to lists and read them, whatever happens to the server, and a checker judges their reads.
//!
//! `cargo xtask history` starts it beside a server that it kills now and then.

#![allow(clippy::disallowed_methods, reason = "it tests a server from outside, by real time")]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use melba_testkit::history::{Ending, History, Key, Level, ListOperation, ListTransaction, Value, check};
use melba_vfs::SeededRandom;
use postgres::{Client, NoTls};

const USAGE: &str = "usage: history HOST:PORT[/DATABASE] read-committed|repeatable-read|serializable SECONDS SEED";

const SESSIONS: u64 = 16;
/// Keys in use at a time, and how many appends a key gets before another replaces it.
const KEYS: usize = 8;
const APPENDS: u64 = 40;
/// How long a session waits for a server that is being started again.
const SERVER_WITHIN: Duration = Duration::from_secs(60);

/// Keys are found by the primary key in one table, by another index in the other, and by a scan of the third.
const SCHEMA: &str = "create table lists_0 (k int primary key, v text not null);
    create table lists_1 (id serial primary key, k int not null unique, v text not null);
    create table lists_2 (k int primary key, v text not null, pad text default repeat('x', 300))";

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, level, seconds, seed] = arguments.as_slice() else { return Err(USAGE.into()) };
    let level = Level::parse(level).ok_or(USAGE)?;
    let number = |text: &String| text.parse::<u64>().map_err(|_| format!("{text} is no number"));
    let run = HistoryRun::new(address, level, Duration::from_secs(number(seconds)?))?;
    let seed = number(seed)?;
    let mut client = run.connect()?;
    client.batch_execute(SCHEMA).map_err(|e| format!("creating the tables: {e}"))?;
    let results: Result<Vec<()>, String> = std::thread::scope(|scope| {
        let session = |n| {
            let run = &run;
            scope.spawn(move || run.session(SeededRandom::new(seed.wrapping_mul(SESSIONS) + n)))
        };
        let sessions: Vec<_> = (0..SESSIONS).map(session).collect();
        sessions.into_iter().map(|s| s.join().unwrap_or_else(|_| Err("a session panicked".into()))).collect()
    });
    results?;
    let transactions = run.transactions.into_inner().map_err(|e| e.to_string())?;
    let history = History { finally: read_all(&run.config)?, transactions };
    report(&history, level)
}

fn report(history: &History, level: Level) -> Result<(), String> {
    let count = |ending| history.transactions.iter().filter(|t| t.ending == ending).count();
    let [committed, aborted, unknown, interrupted] =
        [Ending::Committed, Ending::Aborted, Ending::Unknown, Ending::Interrupted].map(count);
    let operations: usize = history.transactions.iter().map(|t| t.operations.len()).sum();
    let found = check(history, level);
    let counts = format!(
        "{operations} operations, {committed} transactions committed, {aborted} aborted, {unknown} unknown, {interrupted} interrupted"
    );
    if found.is_empty() {
        println!("ok      history {}: {counts}", level.sql());
        return Ok(());
    }
    let mut text = format!("{}: {counts}\n", level.sql());
    for anomaly in found.iter().take(20) {
        text.push_str(&format!("{:?}: {}\n", anomaly.kind, anomaly.text));
        for n in anomaly.text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<usize>().ok()) {
            if let Some(t) = history.transactions.get(n).filter(|_| anomaly.text.contains(&format!("transaction {n}"))) {
                text.push_str(&format!("    {n}: {t:?}\n"));
            }
        }
    }
    Err(text)
}

/// State that the sessions share.
struct HistoryRun {
    config: postgres::Config,
    level: Level,
    until: Instant,
    /// One clock for beginnings and ends.
    clock: AtomicU64,
    next_value: AtomicU64,
    transactions: Mutex<Vec<ListTransaction>>,
}

impl HistoryRun {
    fn new(address: &str, level: Level, time: Duration) -> Result<HistoryRun, String> {
        let (host, rest) = address.rsplit_once(':').ok_or(USAGE)?;
        let (port, database) = rest.split_once('/').unwrap_or((rest, "postgres"));
        let mut config = Client::configure();
        config.host(host).port(port.parse().map_err(|_| USAGE)?).user("postgres").dbname(database);
        config.connect_timeout(Duration::from_secs(5));
        Ok(HistoryRun {
            config,
            level,
            until: Instant::now() + time,
            clock: AtomicU64::new(0),
            next_value: AtomicU64::new(1),
            transactions: Mutex::default(),
        })
    }

    fn connect(&self) -> Result<Client, String> {
        connect(&self.config)
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn session(&self, random: SeededRandom) -> Result<(), String> {
        let mut client = self.connect()?;
        while Instant::now() < self.until {
            let mut transaction =
                ListTransaction { operations: Vec::new(), ending: Ending::Interrupted, began: self.now(), ended: u64::MAX };
            let mut is_lost = false;
            if let Err(e) = self.transact(&mut client, &random, &mut transaction) {
                expect(&e)?;
                is_lost = client.batch_execute("rollback").is_err() || client.is_closed();
                if !is_lost && transaction.ending == Ending::Interrupted {
                    transaction.ending = Ending::Aborted;
                }
            }
            transaction.ended = self.now();
            if let Ok(mut all) = self.transactions.lock() {
                all.push(transaction);
            }
            if is_lost {
                client = self.connect()?;
            }
        }
        Ok(())
    }

    fn transact(
        &self,
        client: &mut Client,
        random: &SeededRandom,
        transaction: &mut ListTransaction,
    ) -> Result<(), postgres::Error> {
        client.batch_execute(&format!("begin isolation level {}", self.level.sql()))?;
        for _ in 0..1 + random.below(5) {
            let key = self.key(random);
            let table = key % 3;
            if random.chance(50) {
                let value: Value = self.next_value.fetch_add(1, Ordering::SeqCst);
                // Noted first: after an error it must be seen nowhere.
                transaction.operations.push(ListOperation::Append(key, value));
                client.batch_execute(&format!(
                    "insert into lists_{table} (k, v) values ({key}, '{value}') on conflict (k) \
                     do update set v = lists_{table}.v || ',' || excluded.v"
                ))?;
            } else {
                let filter = if table == 2 { format!("k + 0 = {key}") } else { format!("k = {key}") };
                let rows = client.simple_query(&format!("select v from lists_{table} where {filter}"))?;
                transaction.operations.push(ListOperation::Read(key, list(&rows)));
            }
        }
        if random.chance(5) {
            client.batch_execute("rollback")?;
            transaction.ending = Ending::Aborted;
            return Ok(());
        }
        let result = client.batch_execute("commit");
        transaction.ending = match &result {
            Ok(()) => Ending::Committed,
            Err(e) if e.as_db_error().is_some() => Ending::Aborted,
            Err(_) => Ending::Unknown,
        };
        result
    }

    /// A key in use: all move on as values are appended.
    fn key(&self, random: &SeededRandom) -> Key {
        let first = self.next_value.load(Ordering::SeqCst) / APPENDS;
        (first as usize + random.below(KEYS)) as Key
    }
}

/// Serialization failures and deadlocks are an answer; a lost connection is the killed server's.
fn expect(e: &postgres::Error) -> Result<(), String> {
    match e.as_db_error() {
        Some(db) if !["40001", "40P01", "57P01"].contains(&db.code().code()) => {
            Err(format!("{}: {}", db.code().code(), db.message()))
        }
        _ => Ok(()),
    }
}

fn connect(config: &postgres::Config) -> Result<Client, String> {
    let start = Instant::now();
    loop {
        // Deadlocks are common here, and the wait for their detection is not under test.
        let client = config.connect(NoTls).and_then(|mut c| c.batch_execute("set deadlock_timeout = '20ms'").map(|()| c));
        match client {
            Ok(client) => return Ok(client),
            Err(e) if start.elapsed() > SERVER_WITHIN => return Err(format!("no connection: {e}")),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// The list that a query found; no row is an empty one.
fn list(messages: &[postgres::SimpleQueryMessage]) -> Vec<Value> {
    let texts = messages.iter().filter_map(|m| match m {
        postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    // Text that is no number is no session's value, and the checker reports it.
    texts.flat_map(|t| t.split(',').map(|v| v.parse().unwrap_or(0))).collect()
}

fn read_all(config: &postgres::Config) -> Result<BTreeMap<Key, Vec<Value>>, String> {
    let mut client = connect(config)?;
    let mut all = BTreeMap::new();
    for table in 0..3 {
        let query = format!("select k, v from lists_{table} order by k");
        let messages = client.simple_query(&query).map_err(|e| format!("{query}: {e}"))?;
        for message in &messages {
            if let postgres::SimpleQueryMessage::Row(row) = message {
                let values = row.get(1).unwrap_or_default().split(',').map(|v| v.parse().unwrap_or(0)).collect();
                all.insert(row.get(0).and_then(|k| k.parse().ok()).unwrap_or_default(), values);
            }
        }
    }
    Ok(all)
}

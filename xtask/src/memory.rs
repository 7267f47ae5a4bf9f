//! `cargo xtask memory`: a server with little memory loads, indexes, sorts, joins, groups and changes many times as much, answers
//! correctly, and stays within 1.3 times its setting all the while.

use std::io::{BufWriter, Write};
use std::process::Stdio;
use std::time::Instant;

use crate::melba::{Address, Melba, ask, postgres_program};

pub struct Options {
    /// The server's setting, in megabytes.
    pub memory: u64,
    /// Data to load, in megabytes.
    pub megabytes: u64,
    /// How much of it operators and changes are tried on, in megabytes.
    pub operate: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { memory: 192, megabytes: 400, operate: 400 }
    }
}

/// Bytes of a row's padding, random: the data shall not shrink on its way through temporary files.
const PADDING_BYTES: usize = 900;
/// A release build may have 1.3 times its setting resident: 25 MB of its program and this percentage of the setting. The program
/// is not counted, because a development build has twice as much of it, and the system may drop those pages.
const TOLERANCE_PERCENT: u64 = 117;
/// Values of the column that is grouped by, beside those that are unique.
const GROUPS: u64 = 1000;
/// Rows with a foreign key.
const REFERENCES: u64 = 2_000_000;

/// Queries and their expected answers: `{rows}` stands for the number of rows, `{n}` for those in the view `o`.
const QUERIES: &[(&str, &str, &str)] = &[
    ("primary key", "alter table t add primary key (id)", ""),
    ("index", "create index on t (phone)", ""),
    ("index scan", "select count(*) from (select id from t where id between 1000 and 1999) q", "1000"),
    ("points", "select count(*) from generate_series(1, {rows}, 1 + {rows} / 100000) g join t on id = g", "{points}"),
    ("scan", "select count(*), count(distinct grp) from t", "{rows}|1000"),
    ("view", "create view o as select * from t where id <= {n}", ""),
    ("sort", "select count(*) from (select * from o order by padding, id offset 0) q", "{n}"),
    ("group by", "select count(*), sum(n) from (select phone, id, count(*) n from o group by phone, id) q", "{n}|{n}"),
    ("count distinct", "select count(distinct padding) from o", "{n}"),
    // What the query before it has freed does not add to it.
    ("count distinct 2", "select count(distinct padding) from o", "{n}"),
    ("distinct", "select count(*) from (select distinct padding from o) q", "{n}"),
    ("join", "select count(*), count(distinct a.grp) from o a join o b on a.padding = b.padding", "{n}|1000"),
    ("outer join", "select count(*), count(b.id) from o a left join o b on a.padding = b.padding and a.id = b.id + 1", "{n}|0"),
    ("window", "select max(r) from (select row_number() over (order by padding) r from o) q", "{n}"),
    ("except", "select count(*) from (select padding from o except select padding from o where id % 2 = 0) q", "{half}"),
    // Of many rows: events of each of them would not fit.
    ("foreign key", "create table r (id bigint, t bigint references t deferrable initially deferred)", ""),
    ("references", "insert into r select g, 1 + g % 1000 from generate_series(1, {references}) g", ""),
    ("referenced", "select count(*), count(distinct t) from r", "{references}|1000"),
    ("cte", "with x as materialized (select * from o) select count(*) from x a join x b using (id)", "{n}"),
];

/// Statements that change rows, and the expected state afterwards.
const CHANGES: &[(&str, &str, &str)] = &[
    ("create table as", "create table c as select * from o", ""),
    ("update", "update c set grp = grp + 1", ""),
    ("updated", "select count(*), min(grp), max(grp) from c", "{n}|1|1000"),
    ("delete", "delete from c where id % 2 = 1", ""),
    // While dead versions are removed.
    ("merges", "select pg_sleep(10)", ""),
    ("deleted", "select count(*) from c", "{even}"),
];

/// A query that cannot proceed.
const TOO_MUCH: &str = "select array_agg(padding) from o";

pub fn memory(options: &Options) -> Result<(), String> {
    let Some(psql) = postgres_program("psql") else {
        println!("skipped memory: psql is not installed");
        return Ok(());
    };
    let melba = Melba::fresh_with("memory", &["--memory", &format!("{}MB", options.memory)])?;
    let limit = options.memory * 1024 * TOLERANCE_PERCENT / 100;
    let rows = (options.megabytes << 20) / (PADDING_BYTES as u64 + 30);
    let mut peak = Peak { pid: melba.pid(), limit, most: 0 };
    ask(&melba.address, "create table t (id bigint not null, grp int, phone text, padding text)")?;
    peak.step("load", || load(&melba.address, &psql, rows))?;
    let shown = Rows { all: rows, of_view: rows.min((options.operate << 20) / (PADDING_BYTES as u64 + 30)) };
    run(&melba.address, &mut peak, &shown, QUERIES)?;
    match peak.step("too much", || Ok(ask(&melba.address, TOO_MUCH)))? {
        Err(e) if e.contains("out of memory") => {}
        other => return Err(format!("{TOO_MUCH}: expected \"out of memory\", not {other:?}")),
    }
    run(&melba.address, &mut peak, &shown, CHANGES)?;
    println!("ok      memory: {rows} rows, at most {} MB resident with memory = {} MB", peak.most >> 10, options.memory);
    melba.stop()
}

/// How many there are.
struct Rows {
    all: u64,
    of_view: u64,
}

fn run(address: &Address, peak: &mut Peak, rows: &Rows, steps: &[(&str, &str, &str)]) -> Result<(), String> {
    let Rows { all, of_view } = *rows;
    for (name, query, expected) in steps {
        let fill = |text: &str| {
            let text = text.replace("{n}", &of_view.to_string()).replace("{half}", &of_view.div_ceil(2).to_string());
            let text = text.replace("{even}", &(of_view / 2).to_string()).replace("{rows}", &all.to_string());
            let text = text.replace("{references}", &REFERENCES.to_string());
            text.replace("{points}", &all.div_ceil(1 + all / 100_000).to_string())
        };
        let query = fill(query);
        let answer = peak.step(name, || ask(address, &query))?;
        if answer != fill(expected) {
            return Err(format!("{name}: {query}\nanswered {answer}, not {}", fill(expected)));
        }
    }
    Ok(())
}

/// COPY of random rows, numbered from 1.
fn load(address: &Address, psql: &std::path::Path, rows: u64) -> Result<String, String> {
    let mut client = address.client(psql);
    client.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", "copy t from stdin"]).stdin(Stdio::piped());
    let mut child = client.spawn().map_err(|e| format!("psql: {e}"))?;
    let mut input = BufWriter::with_capacity(1 << 20, child.stdin.take().ok_or("psql has no input")?);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut line = String::new();
    for id in 1..=rows {
        use std::fmt::Write as _;
        line.clear();
        let _ = write!(line, "{id}\t{}\t+49{:011}\t", id % GROUPS, next() % 100_000_000_000);
        while line.len() < PADDING_BYTES + 30 {
            let _ = write!(line, "{:016x}", next());
        }
        line.push('\n');
        input.write_all(line.as_bytes()).map_err(|e| format!("psql: {e}"))?;
    }
    drop(input);
    let status = child.wait().map_err(|e| format!("psql: {e}"))?;
    if status.success() { Ok(String::new()) } else { Err(format!("loading failed: {status}")) }
}

/// The most memory that a process had resident beside its program, in kilobytes.
struct Peak {
    pid: u32,
    limit: u64,
    most: u64,
}

impl Peak {
    /// Runs a step and checks its memory.
    fn step<T>(&mut self, name: &str, f: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        // 5: forget the peak so far. Without the right to do so the step shows the most of all so far.
        let _ = std::fs::write(format!("/proc/{}/clear_refs", self.pid), "5");
        let started = Instant::now();
        let result = f().map_err(|e| format!("{name}: {e}"))?;
        let resident = self.resident()?;
        self.most = self.most.max(resident);
        println!("        {name:16} {:8.1} s {:8} MB", started.elapsed().as_secs_f64(), resident >> 10);
        if resident > self.limit {
            return Err(format!("{name}: {resident} kB resident, more than {} kB", self.limit));
        }
        Ok(result)
    }

    fn resident(&self) -> Result<u64, String> {
        let path = format!("/proc/{}/status", self.pid);
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        let value = |name: &str| {
            let line = text.lines().find_map(|l| l.strip_prefix(name)).ok_or_else(|| format!("{path}: no {name}"))?;
            line.trim().trim_end_matches(" kB").parse::<u64>().map_err(|_| format!("{path}: {name} {line}"))
        };
        Ok(value("VmHWM:")?.saturating_sub(value("RssFile:")?))
    }
}

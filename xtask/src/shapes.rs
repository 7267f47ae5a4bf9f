//! `cargo xtask shapes`: measures how much longer four times as many of one thing take; and runs the catalog queries of Django,
//! pgjdbc, SQLAlchemy and psql over many tables, beside PostgreSQL.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use crate::compare::reference_for;
use crate::melba::{Address, Melba, ask, run};
use crate::root;

pub struct Options {
    /// The larger number of tables and partitions.
    pub tables: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { tables: 2000 }
    }
}

const DATABASE: &str = "shapes";
/// Four times as many may take this many times as long: n log n, and the noise of a busy machine.
const FACTOR_MAX: f64 = 8.0;
/// The system counts processor time in these.
const TICK_SECONDS: f64 = 0.01;
/// Less than this is noise.
const WORTH_SECONDS: f64 = 0.2;

/// A statement by its size, and the larger size.
struct Shape {
    name: &'static str,
    size: usize,
    sql: fn(usize) -> String,
}

fn list(n: usize, item: impl Fn(usize) -> String) -> String {
    let mut out = String::new();
    for i in 0..n {
        let _ = write!(out, "{}{}", if i > 0 { "," } else { "" }, item(i));
    }
    out
}

fn each(n: usize, statement: impl Fn(usize) -> String) -> String {
    (0..n).fold(String::new(), |out, i| out + &statement(i) + ";\n")
}

const SHAPES: &[Shape] = &[
    Shape {
        name: "IN list, by an index",
        size: 100_000,
        sql: |n| format!("select count(*) from big where id in ({})", list(n, |i| i.to_string())),
    },
    Shape {
        name: "IN list of an expression",
        size: 100_000,
        sql: |n| format!("select count(*) from big where id::text in ({})", list(n, |i| format!("'{i}'"))),
    },
    Shape {
        name: "NOT IN list",
        size: 100_000,
        sql: |n| format!("select count(*) from big where id not in ({})", list(n, |i| i.to_string())),
    },
    Shape {
        name: "INSERT of VALUES",
        size: 40_000,
        sql: |n| {
            format!("create table rows{n} (a int, b text); insert into rows{n} values {}", list(n, |i| format!("({i}, 'x')")))
        },
    },
    Shape {
        name: "table of many columns",
        size: 1600,
        sql: |n| format!("create table wide{n} ({})", list(n, |i| format!("c{i} int"))),
    },
    Shape {
        name: "rows of many columns",
        size: 1600,
        sql: |n| {
            let row = list(n, |i| i.to_string());
            format!("insert into wide{n} values ({row}); insert into wide{n} select w.* from wide{n} w, generate_series(1, 200)")
        },
    },
    Shape {
        name: "aggregates of many columns",
        size: 1600,
        sql: |n| format!("select {} from wide{n}", list(n, |i| format!("sum(c{i})"))),
    },
    Shape {
        name: "windows over many columns",
        size: 1600,
        sql: |n| format!("select {} from wide{n} limit 1", list(n, |i| format!("sum(c{i}) over ()"))),
    },
    Shape {
        name: "groups by many columns",
        size: 1600,
        sql: |n| {
            let columns = list(n, |i| format!("c{i}"));
            format!("select count(*) from (select {columns} from wide{n} group by {columns}) q")
        },
    },
    Shape {
        name: "update of many columns",
        size: 1600,
        sql: |n| format!("update wide{n} set {}", list(n, |i| format!("c{i} = c{i} + 1"))),
    },
];

/// Those of many tables, whose sizes are an option.
const OF_TABLES: &[Shape] = &[
    Shape {
        name: "CREATE TABLE with keys",
        size: 0,
        sql: |n| {
            let table = |i| format!("create table t{n}_{i} (id int primary key, a text default 'x', b int references big)");
            format!("begin;{}commit", each(n, table))
        },
    },
    Shape {
        name: "CREATE TABLE PARTITION OF",
        size: 0,
        sql: |n| {
            let partition =
                |i| format!("create table p{n}_{i} partition of p{n} for values from ({}) to ({})", i * 10, i * 10 + 10);
            format!("create table p{n} (id int, v text) partition by range (id);begin;{}commit", each(n, partition))
        },
    },
    Shape {
        name: "rows into all partitions",
        size: 0,
        sql: |n| format!("insert into p{n} select i, 'x' from generate_series(0, {}) i", n * 10 - 1),
    },
    Shape {
        name: "100 selects that are pruned",
        size: 0,
        sql: |n| each(100, |i| format!("select * from p{n} where id = {}", i * 7 % n)),
    },
    Shape { name: "select of all partitions", size: 0, sql: |n| format!("select count(*) from p{n}") },
    Shape { name: "index on all partitions", size: 0, sql: |n| format!("create index on p{n} (id)") },
    Shape { name: "DROP of all partitions", size: 0, sql: |n| format!("drop table p{n}") },
];

pub fn shapes(options: &Options, server: Option<Address>, reference: Option<Address>) -> Result<(), String> {
    let mut postgres = None;
    let reference = reference_for("shapes", reference, &mut postgres)?;
    let melba = if server.is_none() { Some(Melba::fresh("shapes")?) } else { None };
    let tested = server.or_else(|| melba.as_ref().map(|m| m.address.clone())).ok_or("no server")?;
    let mut servers = vec![Server { address: prepare(&tested)?, pid: melba.as_ref().map(Melba::pid) }];
    if let Some(reference) = reference {
        servers.push(Server { address: prepare(&reference)?, pid: None });
    }
    let judged = run_all(options, &servers);
    for server in &servers {
        let postgres = Address { database: "postgres".to_owned(), ..server.address.clone() };
        ask(&postgres, &format!("drop database {DATABASE} with (force)"))?;
    }
    judged?;
    melba.map_or(Ok(()), Melba::stop)
}

struct Server {
    address: Address,
    /// Of a server whose processor time counts; others are timed by the clock.
    pid: Option<u32>,
}

/// Times everything on all servers; the first one's growth is judged.
fn run_all(options: &Options, servers: &[Server]) -> Result<(), String> {
    let folder = root().join("target/shapes");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let questions = questions(&root().join("tests/shapes/catalog.sql"))?;
    let mut steep = Vec::new();
    let mut of_fewer_tables = Vec::new();
    println!("{:41} {:>8}  seconds of the processors: a quarter, all, times; PostgreSQL's by the clock", "", "size");
    for (i, shape) in SHAPES.iter().chain(OF_TABLES).enumerate() {
        let size = if shape.size == 0 { options.tables } else { shape.size };
        let quarter = each_server(servers, &folder, &(shape.sql)(size / 4))?;
        // The first of the shapes of tables makes them.
        if i == SHAPES.len() {
            of_fewer_tables = ask_all(servers, &folder, &questions)?;
        }
        let all = each_server(servers, &folder, &(shape.sql)(size))?;
        steep.extend(report(shape.name, size, &quarter, &all));
    }
    let of_all_tables = ask_all(servers, &folder, &questions)?;
    for (((name, _), quarter), all) in questions.iter().zip(&of_fewer_tables).zip(&of_all_tables) {
        steep.extend(report(name, options.tables, quarter, all));
    }
    if steep.is_empty() {
        return Ok(());
    }
    Err(format!("more than {FACTOR_MAX} times as long for four times as much: {}", steep.join(", ")))
}

fn each_server(servers: &[Server], folder: &Path, sql: &str) -> Result<Vec<f64>, String> {
    servers.iter().map(|server| timed(server, folder, sql)).collect()
}

fn ask_all(servers: &[Server], folder: &Path, questions: &[(String, String)]) -> Result<Vec<Vec<f64>>, String> {
    questions.iter().map(|(_, sql)| each_server(servers, folder, sql)).collect()
}

/// Prints a line; the name when the first server's time grew too steeply.
fn report(name: &str, size: usize, quarter: &[f64], all: &[f64]) -> Option<String> {
    let times: Vec<String> = quarter.iter().zip(all).map(|(q, a)| format!("  {q:8.3} {a:8.3} {:5.1}", a / q)).collect();
    println!("{name:41} {size:8}{}", times.concat());
    (all[0] > WORTH_SECONDS && all[0] > FACTOR_MAX * (quarter[0] + TICK_SECONDS)).then(|| name.to_owned())
}

fn prepare(address: &Address) -> Result<Address, String> {
    ask(address, &format!("drop database if exists {DATABASE} with (force)"))?;
    ask(address, &format!("create database {DATABASE}"))?;
    let address = Address { database: DATABASE.to_owned(), ..address.clone() };
    ask(&address, "create table big (id int primary key, a int); insert into big select i, i from generate_series(1, 20000) i")?;
    ask(&address, "analyze big")?;
    Ok(address)
}

/// A server's time, in seconds. Statements too long for a command line are passed in a file.
fn timed(server: &Server, folder: &Path, sql: &str) -> Result<f64, String> {
    let file = folder.join("statement.sql");
    std::fs::write(&file, format!("{sql};\n")).map_err(|e| format!("{}: {e}", file.display()))?;
    let (begun, cpu) = (Instant::now(), server.pid.map(processor_seconds));
    run(server.address.psql().args(["-q", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", "-f"]).arg(&file), "psql")?;
    Ok(match server.pid {
        Some(pid) => processor_seconds(pid) - cpu.unwrap_or_default(),
        None => begun.elapsed().as_secs_f64(),
    })
}

/// A process's processor time, to the hundredth of a second that Linux counts by.
pub fn processor_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The program's name, which may have spaces, ends with the last parenthesis; then the 12th and 13th are utime and stime.
    let rest = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = rest.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

/// The questions of a file: each has its name in a comment before it.
fn questions(file: &Path) -> Result<Vec<(String, String)>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let parts = text.split("-- ").skip(1).filter_map(|part| part.split_once('\n'));
    Ok(parts.map(|(name, sql)| (name.to_owned(), sql.trim().trim_end_matches(';').to_owned())).collect())
}

//! `cargo xtask shapes`: much of one thing, four times as much, and how much longer it takes; and the questions that Django,
//! pgjdbc, SQLAlchemy and psql ask of the catalogs, over many tables, beside PostgreSQL.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

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
/// Four times as much may take this many times as long: n log n, and what a busy machine adds.
const FACTOR_MAX: f64 = 8.0;
/// Less than this measures psql.
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
    let server = server.or_else(|| melba.as_ref().map(|m| m.address.clone())).ok_or("no server")?;
    let folder = root().join("target/shapes");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let servers: Vec<Address> = [Some(server), reference].into_iter().flatten().map(|a| prepare(&a)).collect::<Result<_, _>>()?;
    let mut quadratic = Vec::new();
    println!("{:32} {:>8}  Melba, s: a quarter, all, times  PostgreSQL, s", "", "size");
    for shape in SHAPES.iter().chain(OF_TABLES) {
        let size = if shape.size == 0 { options.tables } else { shape.size };
        let mut line = format!("{:32} {size:8}", shape.name);
        for (i, server) in servers.iter().enumerate() {
            let timed = |n| timed(server, &folder, &(shape.sql)(n)).map(|t| t.as_secs_f64());
            let (quarter, all) = (timed(size / 4)?, timed(size)?);
            let times = all / quarter;
            let _ = write!(line, "  {quarter:8.3} {all:8.3} {times:5.1}");
            if i == 0 && times > FACTOR_MAX && all > WORTH_SECONDS {
                quadratic.push(shape.name);
            }
        }
        println!("{line}");
    }
    for (name, sql) in questions(&root().join("tests/shapes/catalog.sql"))? {
        let mut line = format!("{name:41}");
        for server in &servers {
            let _ = write!(line, "  {:8.3}", timed(server, &folder, &sql)?.as_secs_f64());
        }
        println!("{line}");
    }
    for server in &servers {
        ask(&Address { database: "postgres".to_owned(), ..server.clone() }, &format!("drop database {DATABASE} with (force)"))?;
    }
    if !quadratic.is_empty() {
        return Err(format!("more than {FACTOR_MAX} times as long for four times as much: {}", quadratic.join(", ")));
    }
    melba.map_or(Ok(()), Melba::stop)
}

fn prepare(address: &Address) -> Result<Address, String> {
    ask(address, &format!("drop database if exists {DATABASE} with (force)"))?;
    ask(address, &format!("create database {DATABASE}"))?;
    let address = Address { database: DATABASE.to_owned(), ..address.clone() };
    ask(&address, "create table big (id int primary key, a int); insert into big select i, i from generate_series(1, 20000) i")?;
    ask(&address, "analyze big")?;
    Ok(address)
}

/// Statements that are too long for a command line go by a file.
fn timed(address: &Address, folder: &Path, sql: &str) -> Result<Duration, String> {
    let file = folder.join("statement.sql");
    std::fs::write(&file, format!("{sql};\n")).map_err(|e| format!("{}: {e}", file.display()))?;
    let begun = Instant::now();
    run(address.psql().args(["-q", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", "-f"]).arg(&file), "psql")?;
    Ok(begun.elapsed())
}

/// The questions of a file: each has its name in a comment before it.
fn questions(file: &Path) -> Result<Vec<(String, String)>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let parts = text.split("-- ").skip(1).filter_map(|part| part.split_once('\n'));
    Ok(parts.map(|(name, sql)| (name.to_owned(), sql.trim().trim_end_matches(';').to_owned())).collect())
}

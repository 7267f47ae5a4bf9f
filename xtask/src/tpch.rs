//! `cargo xtask tpch`: the 22 queries of TPC-H on PostgreSQL and on Melba, with the same answers; and the time of each on both.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::compare::reference_for;
use crate::melba::{Address, Melba, ask, run};
use crate::{cargo, root};

pub struct Options {
    /// TPC-H's scale factor: 6 million rows of lineitem at 1.
    pub scale: String,
    /// PostgreSQL takes minutes for queries 17 and 20 from scale 0.1 on: a query that it has not answered by then is not compared.
    pub timeout_seconds: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { scale: "0.01".to_owned(), timeout_seconds: 60 }
    }
}

const DATABASE: &str = "tpch";
const TABLES: [&str; 8] = ["region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem"];
pub const QUERIES: u32 = 22;
/// Of an answer that is another than PostgreSQL's.
const SHOWN_CHARS: usize = 500;
const CANCELED: &str = "canceling statement due to statement timeout";

pub fn tpch(options: &Options, server: Option<Address>, reference: Option<Address>) -> Result<(), String> {
    let mut postgres = None;
    let Some(reference) = reference_for("tpch", reference, &mut postgres)? else { return Ok(()) };
    let melba = if server.is_none() { Some(Melba::fresh("tpch")?) } else { None };
    let server = server.or_else(|| melba.as_ref().map(|m| m.address.clone())).ok_or("no server")?;
    let folder = generate(&options.scale)?;
    let (server, reference) = (load(&server, &folder)?, load(&reference, &folder)?);
    let mut different = Vec::new();
    println!("query  PostgreSQL, s  Melba, s");
    for number in 1..=QUERIES {
        let query = root().join("tests/tpch").join(format!("{number}.sql"));
        let query = std::fs::read_to_string(&query).map_err(|e| format!("{}: {e}", query.display()))?;
        let (expected, theirs) = timed(&reference, &query, options);
        let (actual, ours) = timed(&server, &query, options);
        let verdict = match (&expected, &actual) {
            (Err(e), _) if e.contains(CANCELED) => "not compared",
            (Ok(expected), Ok(actual)) if expected == actual => "",
            _ => {
                let shown = |answer: &Result<String, String>| match answer {
                    Ok(rows) => rows.chars().take(SHOWN_CHARS).collect::<String>(),
                    Err(error) => error.lines().filter(|line| line.contains("ERROR")).collect(),
                };
                different.push(format!("query {number}: {}\nand not {}", shown(&actual), shown(&expected)));
                "DIFFERENT"
            }
        };
        println!("{number:5}  {:13.3}  {:8.3}  {verdict}", theirs.as_secs_f64(), ours.as_secs_f64());
    }
    if !different.is_empty() {
        return Err(different.join("\n"));
    }
    ask(&reference, &format!("drop database if exists {DATABASE} with (force)")).ok();
    melba.map_or(Ok(()), Melba::stop)
}

/// The tables as CSV, in the folder that is returned.
pub fn generate(scale: &str) -> Result<PathBuf, String> {
    cargo(&["build", "--quiet", "--package", "melba-testkit", "--bin", "tpch"])?;
    let folder = root().join("target/tpch");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    run(Command::new(root().join("target/debug/tpch")).arg(&folder).arg(scale), "tpch")?;
    Ok(folder)
}

/// A new database with the tables.
pub fn load(address: &Address, folder: &Path) -> Result<Address, String> {
    ask(address, &format!("drop database if exists {DATABASE} with (force)"))?;
    ask(address, &format!("create database {DATABASE}"))?;
    let address = Address { database: DATABASE.to_owned(), ..address.clone() };
    let mut psql = address.psql();
    psql.args(["-q", "-v", "ON_ERROR_STOP=1", "-f", "tests/tpch/schema.sql"]);
    for table in TABLES {
        psql.args([
            "-c",
            &format!("\\copy {table} from '{}' (format csv, header)", folder.join(table).with_extension("csv").display()),
        ]);
    }
    run(psql.args(["-c", "analyze"]), "psql")?;
    Ok(address)
}

fn timed(address: &Address, query: &str, options: &Options) -> (Result<String, String>, Duration) {
    let begun = Instant::now();
    let answer = ask(address, &format!("set statement_timeout = '{}s'; {query}", options.timeout_seconds));
    (answer, begun.elapsed())
}

//! `cargo xtask estimates`: the rows that plans expect beside those that come, of TPC-H's queries and of queries over skewed and
//! correlated data (tests/estimates).
//!
//! The q-error of a scan or join is the larger of estimate / actual and actual / estimate, both at least 1. Join filters leave rows out
//! that a scan's own conditions let through: a scan below one is counted by a query of its own, a join below one is left out.

use std::process::Command;

use crate::melba::{Address, Melba, ask, run};
use crate::{root, tpch};

/// Of all scans and joins.
const MEDIAN_MAX: f64 = 1.5;
/// Of those over at most `TABLES_MAX` tables.
const PERCENTILE_95_MAX: f64 = 10.0;
const TABLES_MAX: usize = 4;
const SHOWN: usize = 25;
const DATABASE: &str = "estimates";

/// The nodes of a plan, by lines: whether it is a scan, whether a join filter may have left out rows, whether that leaves out a part
/// of the table, how many tables it is over, estimate, actual, name, a query that counts the rows of the scan.
const NODES: &str = "with recursive nodes as (
  select p, false filtered from (select $plan$ EXPLAINED $plan$::jsonb -> 0 -> 'Plan' p) plan
  union all
  select c, filtered or p ->> 'Node Type' = 'Hash Join' and c ->> 'Parent Relationship' = 'Outer'
    and p ->> 'Join Type' in ('Inner', 'Semi', 'Right', 'Right Semi', 'Right Anti')
  from nodes, jsonb_array_elements(p -> 'Plans') c)
select concat_ws(chr(31), p ->> 'Node Type' ~ 'Scan', filtered,
    (select count(*) from jsonb_path_query(p, 'strict $.** ? (exists (@.\"Relation Name\"))')),
    p ->> 'Plan Rows', p ->> 'Actual Rows',
    translate(concat_ws(' ', p ->> 'Node Type', p ->> 'Relation Name', p ->> 'Join Type', p ->> 'Hash Cond', p ->> 'Filter'), e'\\n', ' '),
    translate(format('select count(*) from %s %s where %s', p ->> 'Relation Name', p ->> 'Alias', coalesce(p ->> 'Filter', 'true')), e'\\n', ' '))
from nodes
where p ->> 'Node Type' ~ '(Scan|Join|Nested Loop)$' and (p ->> 'Actual Loops')::float8 > 0 and p ->> 'Node Type' not in ('CTE Scan', 'Subquery Scan')";

/// A scan or join.
struct Node {
    error: f64,
    tables: usize,
    text: String,
}

pub fn estimates(scale: &str, server: Option<Address>) -> Result<(), String> {
    let melba = if server.is_none() { Some(Melba::fresh("estimates")?) } else { None };
    let server = server.or_else(|| melba.as_ref().map(|m| m.address.clone())).ok_or("no server")?;
    let folder = tpch::generate(scale)?;
    let tpch = tpch::load(&server, &folder)?;
    ask(&server, &format!("drop database if exists {DATABASE} with (force)"))?;
    ask(&server, &format!("create database {DATABASE}"))?;
    let skewed = Address { database: DATABASE.to_owned(), ..server };
    let read = |name: &str| std::fs::read_to_string(root().join("tests").join(name)).map_err(|e| format!("{name}: {e}"));
    let mut of_tpch = Vec::new();
    for number in 1..=tpch::QUERIES {
        of_tpch.extend(nodes(&tpch, &number.to_string(), &read(&format!("tpch/{number}.sql"))?)?);
    }
    let queries = read("estimates/queries.sql")?;
    let of_skewed = || {
        let mut all = Vec::new();
        for (query, number) in queries.split(";\n").filter(|query| !query.trim().is_empty()).zip(1..) {
            all.extend(nodes(&skewed, &number.to_string(), query)?);
        }
        Ok::<_, String>(all)
    };
    play(&skewed, &in_pieces(&read("estimates/schema.sql")?))?;
    let in_row_store = of_skewed()?;
    ask(&skewed, "checkpoint")?;
    let in_segments = of_skewed()?;
    let all = [("TPC-H", of_tpch), ("skewed data in the row store", in_row_store), ("skewed data in segments", in_segments)];
    let missed: Vec<String> = all.into_iter().filter_map(|(name, nodes)| report(name, nodes)).collect();
    if !missed.is_empty() {
        return Err(missed.join("\n"));
    }
    melba.map_or(Ok(()), Melba::stop)
}

/// The statements of a script with each series of numbers from 0 in pieces: a statement of many rows would write them to segments directly.
fn in_pieces(script: &str) -> String {
    const PIECE: usize = 5000;
    const SERIES: &str = "generate_series(0, ";
    let mut out = String::new();
    for statement in script.split_inclusive(";\n") {
        let series = statement.split_once(SERIES).and_then(|(before, rest)| {
            let (last, after) = rest.split_once(')')?;
            Some((before, last.parse::<usize>().ok()?, after))
        });
        let Some((before, last, after)) = series else {
            out += statement;
            continue;
        };
        for from in (0..=last).step_by(PIECE) {
            out += &format!("{before}generate_series({from}, {}){after}", last.min(from + PIECE - 1));
        }
    }
    out
}

fn play(address: &Address, script: &str) -> Result<(), String> {
    let file = root().join("target/estimates.sql");
    std::fs::write(&file, script).map_err(|e| format!("{}: {e}", file.display()))?;
    run(address.psql().args(["-q", "-v", "ON_ERROR_STOP=1", "-f"]).arg(&file), "psql")
}

/// The scans and joins of a query that can be judged.
fn nodes(address: &Address, name: &str, query: &str) -> Result<Vec<Node>, String> {
    let explained = explained(address, query)?;
    let mut out = Vec::new();
    for line in ask(address, &NODES.replace("EXPLAINED", &explained))?.lines() {
        let fields: Vec<&str> = line.split('\u{1f}').collect();
        let [scan, filtered, tables, estimate, actual, text, count] = fields[..] else { return Err(format!("a node: {line}")) };
        let number = |text: &str| text.parse::<f64>().map_err(|e| format!("{text}: {e}"));
        let actual = match (filtered, scan) {
            ("t", "t") if text.starts_with("Seq Scan") => match ask(address, count) {
                Ok(rows) => number(&rows)?,
                // Its conditions have parameters or sub-plans.
                Err(_) => continue,
            },
            ("t", _) => continue,
            _ => number(actual)?,
        };
        let (estimate, actual) = (number(estimate)?.max(1.0), actual.max(1.0));
        let error = (estimate / actual).max(actual / estimate);
        let text = format!("{name}: {text}: {estimate} estimated, {actual} actual");
        out.push(Node { error, tables: number(tables)? as usize, text });
    }
    Ok(out)
}

/// The plan and what it did, without threads: each counts its own rows.
fn explained(address: &Address, query: &str) -> Result<String, String> {
    let mut psql: Command = address.psql();
    let query = format!("explain (analyze, timing off, format json) {query}");
    psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", "set max_parallel_workers_per_gather = 0", "-c", &query]);
    let output = psql.output().map_err(|e| format!("psql: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{query}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// Prints the errors; says what is above the bars.
fn report(name: &str, mut nodes: Vec<Node>) -> Option<String> {
    nodes.sort_by(|a, b| b.error.total_cmp(&a.error));
    let percentile =
        |errors: &[f64], share: f64| errors.get((errors.len() as f64 * (1.0 - share)) as usize).copied().unwrap_or(1.0);
    let all: Vec<f64> = nodes.iter().map(|n| n.error).collect();
    let few: Vec<f64> = nodes.iter().filter(|n| n.tables <= TABLES_MAX).map(|n| n.error).collect();
    let (median, high, worst) = (percentile(&all, 0.5), percentile(&few, 0.95), percentile(&all, 1.0));
    println!(
        "{name}: {} scans and joins, median {median:.2}, 95th percentile up to {TABLES_MAX} tables {high:.2}, worst {worst:.1}",
        all.len()
    );
    for node in nodes.iter().take(SHOWN).filter(|node| node.error > 2.0) {
        println!("{:10.1}  {}", node.error, node.text.chars().take(180).collect::<String>());
    }
    (median > MEDIAN_MAX || high > PERCENTILE_95_MAX).then(|| {
        format!("{name}: median {median:.2} (at most {MEDIAN_MAX}), 95th percentile {high:.2} (at most {PERCENTILE_95_MAX})")
    })
}

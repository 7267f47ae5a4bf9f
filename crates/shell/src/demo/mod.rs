//! `melba demo`: a small shop's data in a separate database, five questions with their answers, and the same beside PostgreSQL.
//!
//! Every number that is shown was measured in the run that shows it.

mod data;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::Result;
use crate::format::{Format, Printer, Style};
use crate::interrupts::{Ends, Interrupts};
use crate::terminal;
use data::{Shop, TABLES};
use melba_client::escape;
use melba_client::target::Target;
use melba_client::{Connection, Event, ResultColumn};

const MELBA: &str = "Melba";
/// The fastest of this many answers counts for a question.
const RUNS: usize = 3;
/// Rows of an answer that are shown.
const ROWS_SHOWN: usize = 12;

const QUESTIONS: [(&str, &str); 5] = [
    (
        "What did each month bring, and how much more than the one before?",
        "WITH months AS (
    SELECT date_trunc('month', placed)::date AS month, count(*) AS orders, sum(amount) AS revenue
    FROM demo.orders WHERE status <> 'returned' GROUP BY 1
)
SELECT month, orders, revenue, round(100 * revenue / lag(revenue) OVER (ORDER BY month) - 100, 1) AS growth_percent
FROM months ORDER BY month",
    ),
    (
        "Which pages change most from one copy to the next?",
        "WITH copies AS (
    SELECT url, body <> lag(body) OVER (PARTITION BY url ORDER BY fetched) AS changed FROM demo.documents
)
SELECT url, count(*) FILTER (WHERE changed) AS changes, count(*) AS copies
FROM copies GROUP BY url ORDER BY changes DESC, url LIMIT 5",
    ),
    (
        "Which requests are slow?",
        "SELECT payload ->> 'path' AS path, count(*) AS requests,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY (payload ->> 'ms')::integer) AS p95_ms
FROM demo.events GROUP BY 1 ORDER BY p95_ms DESC, path LIMIT 5",
    ),
    (
        "What do the hundred best customers do here?",
        "SELECT e.kind, count(*) AS events, count(DISTINCT e.customer) AS customers
FROM demo.events e
JOIN (SELECT customer FROM demo.orders GROUP BY customer ORDER BY sum(amount) DESC, customer LIMIT 100) best USING (customer)
GROUP BY e.kind ORDER BY events DESC, e.kind",
    ),
    (
        "Of which pages does the newest copy have a word, and since when?",
        "SELECT d.url, min(d.fetched) AS since, count(*) AS copies
FROM demo.documents d
JOIN (SELECT DISTINCT ON (url) url, body FROM demo.documents ORDER BY url, fetched DESC) newest USING (url)
WHERE newest.body LIKE '% wagoba%' AND d.body LIKE '% wagoba%'
GROUP BY d.url ORDER BY since, d.url LIMIT 5",
    ),
];

#[derive(Debug, Args)]
pub struct DemoOptions {
    /// Keep the data in this directory, which is made [default: in a temporary one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A PostgreSQL to load the same into, in a schema \"demo\" that is removed again [default: one that is installed here, started for this]
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// Melba alone
    #[arg(long, conflicts_with = "postgres")]
    alone: bool,
    /// How much data: 1 is some tens of megabytes
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = scale)]
    scale: f64,
}

fn scale(text: &str) -> Result<f64> {
    text.parse()
        .ok()
        .filter(|scale| *scale > 0.0 && *scale <= 1000.0)
        .ok_or_else(|| "a number above 0, and 1000 at most, is expected".to_owned())
}

/// Serves a directory, or a temporary one, while a function runs, which gets the connection parameters.
pub type ServeAny<'a> = dyn Fn(Option<&std::path::Path>, &mut dyn FnMut(&str) -> Result<()>) -> Result<()> + 'a;
/// Runs a PostgreSQL that is installed here while a function runs, which gets its URL.
pub type Beside<'a> = dyn Fn(&mut dyn FnMut(&str) -> Result<()>) -> Result<()> + 'a;

/// A server with the shop in it.
struct Loaded {
    name: String,
    connection: Connection,
    /// By table.
    seconds: Vec<f64>,
    bytes: Vec<u64>,
    /// The fastest answer to each question, in milliseconds.
    answers: Vec<f64>,
}

/// Loads, asks, compares.
///
/// # Errors
/// Errors of a server.
pub fn demo(options: &DemoOptions, serve: &ServeAny, beside: &Beside) -> Result<()> {
    let shop = Shop::new(options.scale);
    serve(options.data.as_deref(), &mut |server| {
        let _interrupts = Interrupts::watch(Ends::ItsServer, false)?;
        let mut target = Target::parse(server)?;
        "postgres".clone_into(&mut target.database);
        let mut melba = load(&shop, &target, MELBA)?;
        let mut compare = |url: &str| {
            let mut other = load(&shop, &Target::parse(url)?, "PostgreSQL")?;
            let compared = ask(&mut melba, Some(&mut other));
            // It is not ours: nothing stays there.
            let dropped = other.connection.execute("DROP SCHEMA demo CASCADE");
            compared.and(dropped)
        };
        let compared = match &options.postgres {
            Some(url) => compare(url),
            None if options.alone => Err(String::new()),
            None => beside(&mut compare),
        };
        match compared {
            Ok(()) => {}
            Err(reason) if melba.answers.is_empty() && options.postgres.is_none() => {
                if !reason.is_empty() {
                    println!("No PostgreSQL beside it ({}); --postgres URL names one.\n", escape::text(&reason));
                }
                ask(&mut melba, None)?;
            }
            Err(reason) => return Err(reason),
        }
        if let Some(data) = &options.data {
            println!("The data stay: melba sql --data {}", data.display());
        }
        Ok(())
    })
}

fn load(shop: &Shop, target: &Target, name: &str) -> Result<Loaded> {
    let mut connection = melba_client::open(target, &mut terminal::password).map_err(|e| e.to_string())?;
    let version = connection.parameter("server_version").unwrap_or("unknown").to_owned();
    connection.execute("CREATE SCHEMA demo").map_err(|e| format!("{e}: the demonstration makes it, and wants none there"))?;
    let rows = TABLES.iter().map(|table| table.rows(shop)).sum();
    let bar = ProgressBar::with_draw_target(Some(rows), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} rows, left {eta}") {
        bar.set_style(style);
    }
    bar.set_message(name.to_owned());
    let mut loaded =
        Loaded { name: format!("{name} {version}"), connection, seconds: Vec::new(), bytes: Vec::new(), answers: Vec::new() };
    for table in &TABLES {
        // A feature that the other server does not have.
        let columns = table.columns.replace("$dense ", if name == MELBA { "COMPRESSION dense " } else { "" });
        loaded.connection.execute(&format!("CREATE TABLE demo.{} ({columns})", table.name))?;
        let begun = Instant::now();
        copy(&mut loaded.connection, shop, table, &bar)?;
        loaded.seconds.push(begun.elapsed().as_secs_f64());
    }
    bar.finish_and_clear();
    for table in &TABLES {
        // Statistics, and dense storage where there is some.
        loaded.connection.execute(&format!("VACUUM ANALYZE demo.{}", table.name))?;
        let rows = loaded.connection.rows(&format!("SELECT pg_catalog.pg_total_relation_size('demo.{}')", table.name))?;
        let bytes = rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok());
        loaded.bytes.push(bytes.ok_or("the server does not say how large a table is")?);
    }
    Ok(loaded)
}

fn copy(connection: &mut Connection, shop: &Shop, table: &data::DemoTable, bar: &ProgressBar) -> Result<()> {
    connection.send_query(&format!("COPY demo.{} FROM STDIN", table.name))?;
    let mut failure = None;
    loop {
        match connection.next()? {
            Event::CopyIn => {
                let mut line = String::new();
                for at in 0..table.rows(shop) {
                    line.clear();
                    table.row(shop, at, &mut line);
                    connection.copy_data(line.as_bytes())?;
                    bar.inc(1);
                }
                connection.copy_done()?;
            }
            Event::Error(report) => failure = Some(report.brief()),
            Event::Ready => return failure.map_or(Ok(()), Err),
            _ => {}
        }
    }
}

/// Asks both, one after the other, and shows the measurements.
fn ask(melba: &mut Loaded, mut other: Option<&mut Loaded>) -> Result<()> {
    for (number, (question, sql)) in QUESTIONS.iter().enumerate() {
        println!("{}. {question}\n\n{}\n", number + 1, indented(sql));
        let answer = answer(melba, sql)?;
        if let Some(other) = other.as_deref_mut() {
            let theirs = self::answer(other, sql)?;
            if theirs.1 != answer.1 {
                return Err(format!("{} answers otherwise: {:?}", other.name, theirs.1));
            }
        }
        show(answer.0, &answer.1)?;
    }
    let servers: Vec<&Loaded> = std::iter::once(&*melba).chain(other.as_deref()).collect();
    let mut columns = vec!["".to_owned()];
    columns.extend(servers.iter().map(|server| server.name.clone()));
    let mut rows = Vec::new();
    for (at, table) in TABLES.iter().enumerate() {
        rows.push(line(format!("{}, with indexes", table.name), servers.iter().map(|s| HumanBytes(s.bytes[at]).to_string())));
        rows.push(line(format!("{}, loading", table.name), servers.iter().map(|s| format!("{:.2} s", s.seconds[at]))));
    }
    for at in 0..QUESTIONS.len() {
        rows.push(line(format!("question {}", at + 1), servers.iter().map(|s| format!("{:.1} ms", s.answers[at]))));
    }
    let columns = columns.into_iter().map(|name| ResultColumn { name, type_oid: 25 }).collect();
    show(columns, &rows)?;
    if servers.len() > 1 {
        println!(
            "Measured in this run. Melba's column documents.body has COMPRESSION dense; PostgreSQL has the settings it comes with. Questions: the fastest of {RUNS}.\n"
        );
    }
    Ok(())
}

fn line(what: String, values: impl Iterator<Item = String>) -> Vec<Option<String>> {
    std::iter::once(what).chain(values).map(Some).collect()
}

type Answer = (Vec<ResultColumn>, Vec<Vec<Option<String>>>);

fn answer(server: &mut Loaded, sql: &str) -> Result<Answer> {
    let mut fastest: Option<(f64, Answer)> = None;
    for _ in 0..RUNS {
        let begun = Instant::now();
        let answer = server.connection.table(sql).map_err(|e| format!("{}: {e}", server.name))?;
        let milliseconds = begun.elapsed().as_secs_f64() * 1000.0;
        if fastest.as_ref().is_none_or(|(best, _)| milliseconds < *best) {
            fastest = Some((milliseconds, answer));
        }
    }
    let (milliseconds, answer) = fastest.ok_or("there was no answer")?;
    server.answers.push(milliseconds);
    Ok(answer)
}

fn show(columns: Vec<ResultColumn>, rows: &[Vec<Option<String>>]) -> Result<()> {
    let mut style = Style::new(Format::Table);
    style.is_terminal = true;
    let mut printer = Printer::new(&style, columns);
    let mut out = std::io::stdout().lock();
    let mut write = || {
        printer.begin(&mut out)?;
        for row in rows.iter().take(ROWS_SHOWN) {
            let values: Vec<Option<&[u8]>> = row.iter().map(|value| value.as_deref().map(str::as_bytes)).collect();
            printer.row(&values, &mut out)?;
        }
        printer.end(&mut out)
    };
    write().map_err(|e| e.to_string())
}

fn indented(sql: &str) -> String {
    sql.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

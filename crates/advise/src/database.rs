//! The tables of a database, through PostgreSQL's protocol: neighbouring rows as COPY sends them.

use std::io::Read as _;
use std::str::FromStr as _;
use std::time::Duration;

use postgres::{Client, NoTls, SimpleQueryMessage, SimpleQueryRow};

use crate::Result;
use crate::sample::{Column, Row, STRETCHES, Sample, Storage, Window, read_line};

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Rows of tables with more than this are taken from the statistics, when there are any: counting them takes minutes.
const COUNTED_MAX: f64 = 5e6;
/// Rows by which the width of a row is judged.
const PROBE_ROWS: u64 = 100;

/// Samples of tables, the largest first; of all tables of the user when none is named.
pub fn samples(url: &str, tables: &[String], bytes_max: u64) -> Result<Vec<Sample>> {
    let mut client = connect(url)?;
    let wanted = |name: &str| tables.is_empty() || tables.iter().any(|t| t == name || name.strip_prefix("public.") == Some(t));
    let found = rows(&mut client, TABLES)?;
    let mut samples = Vec::new();
    for table in &found {
        let (oid, name, estimate) = (text(table, 0), text(table, 1), text(table, 2));
        if wanted(name) {
            samples.extend(sample(&mut client, url, oid, name, estimate.parse().unwrap_or(-1.0), bytes_max)?);
        }
    }
    match tables
        .iter()
        .find(|table| !found.iter().any(|f| text(f, 1) == *table || text(f, 1).strip_prefix("public.") == Some(table)))
    {
        Some(missing) => Err(format!("there is no table {missing}")),
        None => Ok(samples),
    }
}

fn connect(url: &str) -> Result<Client> {
    let mut config = postgres::Config::from_str(url).map_err(|e| format!("{url}: {e}"))?;
    config.connect_timeout(CONNECT_WITHIN).application_name("melba advise");
    config.connect(NoTls).map_err(|e| format!("could not connect: {}", shown(&e)))
}

const TABLES: &str = "SELECT c.oid, quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.reltuples FROM pg_class c \
     JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'm') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' \
     ORDER BY pg_total_relation_size(c.oid) DESC, 2";

/// Stretches of neighbouring rows of a table; `None` when it has none.
fn sample(client: &mut Client, url: &str, oid: &str, name: &str, estimate: f64, bytes_max: u64) -> Result<Option<Sample>> {
    let mut notes = Vec::new();
    let columns: Vec<Column> = rows(client, &columns_query(oid))?.iter().map(|row| column(row, &mut notes)).collect();
    let rows_total = match estimate {
        estimate if estimate > COUNTED_MAX => estimate,
        _ => number(client, &format!("SELECT count(*) FROM {name}"))?,
    };
    if rows_total < 1.0 || columns.is_empty() {
        return Ok(None);
    }
    let names = columns.iter().map(|c| quoted(&c.name)).collect::<Vec<_>>().join(", ");
    let from = format!("COPY (SELECT {names} FROM {name}");
    let from = move |offset: u64, limit: u64| format!("{from} OFFSET {offset} LIMIT {limit}) TO STDOUT");
    let mut read = |sql: &str, bytes_max: u64| -> Result<Vec<Row>> {
        let (mut rows, mut taken) = (Vec::new(), 0);
        copy(client, sql, &mut |row| {
            if taken < bytes_max {
                taken += row.iter().flatten().map(|value| value.len() as u64).sum::<u64>();
                rows.push(row.clone());
            }
            Ok(())
        })?;
        Ok(rows)
    };
    let probe = read(&from((rows_total / 2.0) as u64, PROBE_ROWS), u64::MAX)?;
    let bytes: usize = probe.iter().flatten().flatten().map(|value| value.len()).sum();
    let limit = (bytes_max as f64 / (bytes as f64 / probe.len().max(1) as f64).max(1.0)).ceil().max(1.0);
    let mut rows = Vec::new();
    let stretches = if limit < rows_total { STRETCHES } else { 1 };
    for stretch in 0..stretches {
        let offset = (rows_total * stretch as f64 / stretches as f64) as u64;
        rows.extend(read(&from(offset, (limit / stretches as f64).ceil() as u64), bytes_max / stretches)?);
    }
    let scale = (rows_total / rows.len().max(1) as f64).max(1.0);
    let url = url.to_owned();
    let scan = move |window: &Window, each: &mut dyn FnMut(&Row) -> Result<()>| {
        let [start, end] = [window.start, window.end].map(|share| (rows_total * share) as u64);
        let limit = if window.end >= 1.0 { i64::MAX as u64 } else { end - start };
        copy(&mut connect(&url)?, &from(start, limit), each)
    };
    Ok((!rows.is_empty()).then_some(Sample {
        name: name.to_owned(),
        columns,
        rows,
        rows_total,
        scale,
        notes,
        exists: true,
        scan: Box::new(scan),
    }))
}

fn columns_query(oid: &str) -> String {
    format!(
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod), t.typname, t.typlen, t.typalign, t.typnamespace = 11, \
         EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey)) \
         FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    )
}

fn column(row: &SimpleQueryRow, notes: &mut Vec<String>) -> Column {
    let length: i64 = text(row, 3).parse().unwrap_or(-1);
    let align = match text(row, 4) {
        "d" => 8,
        "i" => 4,
        "s" => 2,
        _ => 1,
    };
    let (name, builtin) = (text(row, 0).to_owned(), text(row, 5) == "t");
    let storage = match (length, text(row, 2)) {
        (length, _) if length > 0 => Storage::Fixed { bytes: length as usize, align },
        (_, "text" | "varchar" | "bpchar" | "json" | "xml") => Storage::Text,
        (_, "bytea") => Storage::Bytes,
        (_, "jsonb") => Storage::Jsonb,
        (_, "numeric") => Storage::Numeric,
        _ => Storage::Other,
    };
    let type_name = if builtin { text(row, 1).to_owned() } else { "text".to_owned() };
    if !builtin {
        notes.push(format!("column {name} of type {} is tried as text", text(row, 1)));
    } else if storage == Storage::Other {
        notes.push(format!("PostgreSQL's size of column {name} ({type_name}) is taken from its text form"));
    }
    Column { name, type_name, storage, in_primary_key: text(row, 6) == "t" }
}

/// Calls a function with the rows that COPY sends.
fn copy(client: &mut Client, sql: &str, each: &mut dyn FnMut(&Row) -> Result<()>) -> Result<()> {
    let failed = |e: String| format!("{e}, in {sql}");
    let mut reader = client.copy_out(sql).map_err(|e| failed(shown(&e)))?;
    let mut data = Vec::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        let read = reader.read(&mut piece).map_err(|e| failed(e.to_string()))?;
        // The data before has no end of a line.
        let mut looked_at = data.len();
        data.extend_from_slice(&piece[..read]);
        let mut start = 0;
        while let Some(end) = data[looked_at..].iter().position(|b| *b == b'\n').map(|at| looked_at + at) {
            each(&read_line(&data[start..end]))?;
            (start, looked_at) = (end + 1, end + 1);
        }
        data.drain(..start);
        if read == 0 {
            return Ok(());
        }
    }
}

fn rows(client: &mut Client, sql: &str) -> Result<Vec<SimpleQueryRow>> {
    let messages = client.simple_query(sql).map_err(|e| format!("{}, in {sql}", shown(&e)))?;
    Ok(messages.into_iter().filter_map(|m| if let SimpleQueryMessage::Row(row) = m { Some(row) } else { None }).collect())
}

fn text(row: &SimpleQueryRow, at: usize) -> &str {
    row.get(at).unwrap_or_default()
}

/// One number.
pub fn number(client: &mut Client, sql: &str) -> Result<f64> {
    let rows = rows(client, sql)?;
    let value = rows.first().and_then(|row| row.get(0));
    value.and_then(|v| v.parse().ok()).ok_or_else(|| format!("{sql} answered {value:?}, not a number"))
}

/// A name as SQL has it.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A client's error in words.
pub fn shown(error: &postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |e| e.message().to_owned())
}

//! Rows sent by COPY, all in one transaction.

use std::time::Instant;

use super::source::Source;
use super::table::ImportTable;
use crate::{Result, terminal};
use melba_client::target::Target;
use melba_client::{Connection, Event, Report};
use melba_files::Form;

/// After this many rows, checks whether the server still wants them.
const LOOK_EVERY: u64 = 1000;
/// The error of `send` when it does not.
const STOPPED: &str = "stopped";

/// Makes the tables, unless they are to be there, and fills them.
///
/// # Errors
/// Nothing is loaded.
pub fn load(target: &Target, tables: &mut [ImportTable], append: bool, read: &dyn Fn(u64)) -> Result<()> {
    let mut connection = melba_client::open(target, &mut terminal::password).map_err(|e| e.to_string())?;
    connection.execute("BEGIN")?;
    let mut done = Vec::new();
    for table in &mut *tables {
        let begun = Instant::now();
        match append {
            true => table.adapt_to_existing(&mut connection)?,
            false => create(&mut connection, table)?,
        }
        let mut rows = 0;
        for source in &table.sources {
            rows += send(&mut connection, table, source, read)?;
        }
        done.push((rows, begun.elapsed().as_secs_f64()));
    }
    connection.execute("COMMIT")?;
    for (table, (rows, seconds)) in tables.iter().zip(done) {
        let bytes: u64 = table.sources.iter().map(|source| source.bytes).sum();
        let megabytes = bytes as f64 / 1e6;
        let files: Vec<String> =
            table.sources.iter().map(|source| format!("{} ({})", source.path.display(), source.description())).collect();
        println!("{}: {rows} rows from {}; {megabytes:.1} MB in {seconds:.1} s", table.name, files.join(", "));
    }
    Ok(())
}

fn create(connection: &mut Connection, table: &ImportTable) -> Result<()> {
    connection.execute(&table.create_statement()).map_err(|e| {
        let hint = if e.contains("already exists") { " (--append adds to it, --table names another one)" } else { "" };
        format!("{}: {e}{hint}", table.name)
    })
}

/// The rows of a file; how many there were.
fn send(connection: &mut Connection, table: &ImportTable, source: &Source, read: &dyn Fn(u64)) -> Result<u64> {
    let (columns, statement) = table.copy_statement(source);
    connection.send_query(&statement)?;
    let mut refused = None;
    loop {
        match connection.next()? {
            Event::CopyIn => break,
            Event::Error(report) => refused = Some(report.brief()),
            Event::Ready => return Err(refused.unwrap_or_else(|| "the server does not copy".to_owned())),
            _ => {}
        }
    }
    let mut rows = 0_u64;
    let sent = source.rows(&columns, &mut |bytes| read(bytes), &mut |_, line| {
        rows += 1;
        if rows.is_multiple_of(LOOK_EVERY) && connection.is_refused()? {
            return Err(STOPPED.to_owned());
        }
        connection.copy_data(line)
    });
    match &sent {
        Ok(()) => connection.copy_done()?,
        Err(reason) => connection.copy_fail(reason)?,
    }
    let mut failure = None;
    loop {
        match connection.next()? {
            Event::Error(report) => failure = Some(report),
            Event::Complete(tag) if source.is_parquet() => {
                rows = tag.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)
            }
            Event::Ready => break,
            _ => {}
        }
    }
    match (failure, sent) {
        // A server's error about our own failure is reported as that.
        (_, Err(reason)) if !reason.contains(STOPPED) => Err(format!("{}: {reason}", source.path.display())),
        (Some(report), _) => Err(format!("{}: {}", source.path.display(), with_line(&report, source, &columns))),
        (None, _) => Ok(rows),
    }
}

/// The server counts records: the line of the file is found by reading it again.
fn with_line(report: &Report, source: &Source, columns: &[(String, Form)]) -> String {
    if source.is_parquet() {
        // `COPY t, row 5, column a`: the file has no lines.
        let place = report.context.as_deref().and_then(|context| context.split_once(", "));
        return place.map_or_else(|| report.brief(), |(_, place)| format!("{place}: {}", report.brief()));
    }
    let Some((record, rest)) = report.context.as_deref().and_then(record_of) else { return report.brief() };
    let (mut number, mut found) = (0_u64, None);
    // Stops once the record is found.
    let _ = source.rows(columns, &mut |_| {}, &mut |line, _| {
        number += 1;
        if number < record {
            return Ok(());
        }
        found = Some(line);
        Err(STOPPED.to_owned())
    });
    let column = rest.map_or_else(String::new, |column| format!(", {column}"));
    format!("line {}{column}: {}", found.unwrap_or(record), report.brief())
}

/// In `COPY t, line 5, column a: "x"`: 5 and `column a`.
fn record_of(context: &str) -> Option<(u64, Option<String>)> {
    let rest = &context[context.find(", line ")? + ", line ".len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let column = rest[end..].strip_prefix(", ").map(|rest| rest.split(':').next().unwrap_or(rest).to_owned());
    Some((rest[..end].parse().ok()?, column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_record_is_found_in_its_context() {
        assert_eq!(record_of("COPY t, line 5, column a: \"x, y\""), Some((5, Some("column a".to_owned()))));
        assert_eq!(record_of("COPY t, line 17: \"1\t2\""), Some((17, None)));
        assert_eq!(record_of("SQL function \"f\""), None);
    }
}

//! A CSV file as a table: the first record names the columns; a column whose values are all whole numbers is bigint, others are text.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::Result;
use crate::sample::{Column, Row, Sample, Storage, Window, is_in_stretch};

/// Of larger files the first records are the sample: reading all of them takes minutes.
const READ_BYTES_MAX: u64 = 8 << 30;

/// Stretches of neighbouring records, of about this many bytes in all.
pub fn sample(path: &Path, bytes_max: u64) -> Result<Sample> {
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    let file = File::open(path).map_err(failed)?;
    let total = file.metadata().map_err(failed)?.len();
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let (head, head_bytes) =
        record(&mut reader).map_err(failed)?.ok_or_else(|| format!("{}: the file is empty", path.display()))?;
    let mut rows: Vec<Row> = Vec::new();
    let (mut at, mut taken) = (0, 0);
    while let Some((mut row, bytes)) = record(&mut reader).map_err(failed)? {
        let is_wanted = match total {
            READ_BYTES_MAX.. => at < bytes_max,
            _ => is_in_stretch(at, total, bytes_max).is_some(),
        };
        if is_wanted {
            taken += bytes;
            row.resize(head.len(), None);
            rows.push(row);
        } else if total >= READ_BYTES_MAX {
            break;
        }
        at += bytes;
    }
    let column = |(at, name): (usize, &Option<Box<[u8]>>)| {
        let is_number = |text: &[u8]| std::str::from_utf8(text).is_ok_and(|text| text.parse::<i64>().is_ok());
        let all = !rows.is_empty() && rows.iter().filter_map(|row| row[at].as_deref()).all(is_number);
        let (type_name, storage) = if all { ("bigint", Storage::Fixed { bytes: 8, align: 8 }) } else { ("text", Storage::Text) };
        let name = name.as_deref().map_or_else(|| format!("column{}", at + 1), |name| String::from_utf8_lossy(name).into_owned());
        Column { name, type_name: type_name.to_owned(), storage, in_primary_key: false }
    };
    let columns = head.iter().enumerate().map(column).collect();
    let scale = ((total - head_bytes) as f64 / taken.max(1) as f64).max(1.0);
    let rows_total = (rows.len() as f64 * scale).round();
    let name = path.file_stem().map_or_else(|| "csv".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let (path, fields) = (path.to_owned(), head.len());
    let scan = move |window: &Window, each: &mut dyn FnMut(&Row) -> Result<()>| scan(&path, fields, window, each);
    Ok(Sample { name, columns, rows, rows_total, scale, notes: Vec::new(), exists: false, scan: Box::new(scan) })
}

/// The records of a window; of files that are too large for it those at their beginning.
fn scan(path: &Path, fields: usize, window: &Window, each: &mut dyn FnMut(&Row) -> Result<()>) -> Result<()> {
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    let file = File::open(path).map_err(failed)?;
    let total = file.metadata().map_err(failed)?.len() as f64;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut at = record(&mut reader).map_err(failed)?.map_or(0, |(_, bytes)| bytes);
    while let Some((mut row, bytes)) = record(&mut reader).map_err(failed)? {
        let share = at as f64 / total.max(1.0);
        if share >= window.end {
            return Ok(());
        }
        if window.contains(&share) {
            row.resize(fields, None);
            each(&row)?;
        }
        at += bytes;
    }
    Ok(())
}

/// The next record and its bytes in the file; an empty field without quotes is null. `None` at the end.
fn record(reader: &mut impl BufRead) -> std::io::Result<Option<(Row, u64)>> {
    let (mut row, mut field, mut line): (Row, Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new(), Vec::new());
    let (mut bytes, mut is_quoted, mut in_quotes) = (0, false, false);
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)? as u64;
        bytes += read;
        if read == 0 && bytes == 0 {
            return Ok(None);
        }
        let mut at = 0;
        while at < line.len() {
            match line[at] {
                b'"' if in_quotes && line.get(at + 1) == Some(&b'"') => {
                    field.push(b'"');
                    at += 1;
                }
                b'"' => (in_quotes, is_quoted) = (!in_quotes, true),
                b',' if !in_quotes => end(&mut row, &mut field, &mut is_quoted),
                b'\r' if !in_quotes && line[at + 1..] == *b"\n" => {}
                b'\n' if !in_quotes => {}
                byte => field.push(byte),
            }
            at += 1;
        }
        if !in_quotes || read == 0 {
            end(&mut row, &mut field, &mut is_quoted);
            return Ok(Some((row, bytes)));
        }
    }
}

fn end(row: &mut Row, field: &mut Vec<u8>, is_quoted: &mut bool) {
    let value = std::mem::take(field).into_boxed_slice();
    row.push(Some(value).filter(|value| *is_quoted || !value.is_empty()));
    *is_quoted = false;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_with_quotes_and_types() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("things.csv");
        std::fs::write(&path, "id,name,note\r\n1,\"a \"\"b\"\"\nc\",x\r\n2,,\"\"\n").unwrap();
        let sample = sample(&path, 1000).unwrap();
        let names: Vec<&str> = sample.columns.iter().map(|c| c.name.as_str()).collect();
        let types: Vec<&str> = sample.columns.iter().map(|c| c.type_name.as_str()).collect();
        assert_eq!((names, types), (vec!["id", "name", "note"], vec!["bigint", "text", "text"]));
        assert_eq!((sample.rows.len(), sample.rows_total), (2, 2.0));
        assert_eq!(sample.rows[0][1].as_deref(), Some(b"a \"b\"\nc".as_slice()));
        assert_eq!((sample.rows[1][1].as_deref(), sample.rows[1][2].as_deref()), (None, Some(b"".as_slice())));
    }
}

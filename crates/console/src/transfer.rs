//! Results and files that pass through in pieces: downloads as CSV or JSON, uploads by COPY.

use std::io::{Read, Write};

use melba_client::{Event, Report, ResultColumn};

use crate::query::{Answer, Message, Open};
use crate::sessions::{Download, Export};

/// Rows asked of the server at a time.
const STEP_ROWS: i32 = 1000;
/// Bytes of an upload that are sent together.
const PIECE_BYTES: usize = 64 << 10;

/// OIDs of types whose texts are JSON numbers, except for NaN and the infinities.
const NUMBERS: [u32; 7] = [20, 21, 23, 26, 700, 701, 1700];
const BOOL: u32 = 16;
/// json and jsonb.
const DOCUMENTS: [u32; 2] = [114, 3802];

/// The first message of a statement that fails before its rows.
pub enum Begun {
    Rows(Vec<ResultColumn>),
    Failed(String),
}

impl Open {
    /// Starts a download, up to the description of its rows.
    pub fn begin_export(&mut self, export: &Export) -> Result<Begun, String> {
        self.end_held();
        self.connection.send_portal(&export.sql, &export.parameters, STEP_ROWS)?;
        let mut failure = None;
        loop {
            match self.connection.next()? {
                Event::Columns(columns) => return Ok(Begun::Rows(columns)),
                Event::Error(report) => {
                    failure = Some(report.brief());
                    self.connection.is_lost |= report.is_fatal();
                    self.connection.end_portal()?;
                }
                Event::CopyIn => self.connection.copy_fail("a download has no data")?,
                Event::Complete(_) | Event::Empty => self.connection.end_portal()?,
                Event::Ready => {
                    return Ok(Begun::Failed(failure.unwrap_or_else(|| "the statement has no rows".to_owned())));
                }
                _ => {}
            }
        }
    }

    /// The rows, up to the end of the statement.
    ///
    /// # Errors
    /// The statement failed, or the browser is gone; then what was written is not whole.
    pub fn export_rows(&mut self, columns: &[ResultColumn], format: Download, out: &mut dyn Write) -> Result<(), String> {
        let result = self.write_rows(columns, format, out);
        if result.is_err() && !self.connection.is_lost {
            let ended = self.connection.end_portal().and_then(|()| self.until_ready());
            self.connection.is_lost = ended.is_err();
        }
        result
    }

    fn write_rows(&mut self, columns: &[ResultColumn], format: Download, out: &mut dyn Write) -> Result<(), String> {
        let gone = |e: std::io::Error| e.to_string();
        let mut line = Vec::new();
        let mut is_first = true;
        if format == Download::Csv {
            columns.iter().enumerate().for_each(|(at, column)| csv_value(&mut line, at, Some(column.name.as_bytes())));
            line.push(b'\n');
        } else {
            line.push(b'[');
        }
        loop {
            match self.connection.next()? {
                Event::Row(row) => {
                    let values = row.values()?;
                    match format {
                        Download::Csv => {
                            values.iter().enumerate().for_each(|(at, value)| csv_value(&mut line, at, *value));
                            line.push(b'\n');
                        }
                        Download::Json => {
                            line.extend_from_slice(if is_first { b"\n" } else { b",\n" });
                            json_row(&mut line, columns, &values)?;
                        }
                    }
                    is_first = false;
                    out.write_all(&line).map_err(gone)?;
                    line.clear();
                }
                Event::Suspended => self.connection.send_more(STEP_ROWS)?,
                Event::Error(report) => {
                    self.connection.is_lost |= report.is_fatal();
                    return Err(report.brief());
                }
                Event::Complete(_) => {
                    line.extend_from_slice(if format == Download::Json { b"\n]\n" } else { b"" });
                    out.write_all(&line).map_err(gone)?;
                    self.connection.end_portal()?;
                    return self.until_ready();
                }
                _ => {}
            }
        }
    }

    /// Sends the data of a `COPY ... FROM STDIN`.
    pub fn import(&mut self, sql: &str, data: &mut dyn Read) -> Answer {
        self.end_held();
        let result = self.copy_in(sql, data);
        match result {
            Ok(Ok(tag)) => Answer::done(tag),
            Ok(Err(report)) => Answer::refused(Message::from(*report)),
            Err(e) => {
                self.connection.is_lost = true;
                Answer::failed(e)
            }
        }
    }

    fn copy_in(&mut self, sql: &str, data: &mut dyn Read) -> Result<Result<String, Box<Report>>, String> {
        self.connection.send_query(sql)?;
        let mut result = Ok(String::new());
        loop {
            match self.connection.next()? {
                Event::CopyIn => self.send_data(data)?,
                Event::Complete(tag) => result = result.map(|_| tag),
                Event::Error(report) => {
                    self.connection.is_lost |= report.is_fatal();
                    result = Err(Box::new(report));
                    if self.connection.is_lost {
                        return Ok(result);
                    }
                }
                Event::Ready => return Ok(result),
                _ => {}
            }
        }
    }

    fn send_data(&mut self, data: &mut dyn Read) -> Result<(), String> {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match data.read(&mut piece) {
                Ok(0) => return self.connection.copy_done(),
                Ok(read) => {
                    self.connection.copy_data(&piece[..read])?;
                    if self.connection.is_refused()? {
                        return Ok(());
                    }
                }
                Err(e) => return self.connection.copy_fail(&format!("the upload broke off: {e}")),
            }
        }
    }
}

/// A value after its separator; NULL is empty, the empty text `""`, as COPY writes them.
fn csv_value(out: &mut Vec<u8>, at: usize, value: Option<&[u8]>) {
    if at > 0 {
        out.push(b',');
    }
    let Some(value) = value else { return };
    let is_plain = !value.is_empty() && value != b"\\." && !value.iter().any(|b| matches!(b, b'"' | b',' | b'\n' | b'\r'));
    if is_plain {
        out.extend_from_slice(value);
        return;
    }
    out.push(b'"');
    for byte in value {
        out.extend(std::iter::repeat_n(*byte, if *byte == b'"' { 2 } else { 1 }));
    }
    out.push(b'"');
}

fn json_row(out: &mut Vec<u8>, columns: &[ResultColumn], values: &[Option<&[u8]>]) -> Result<(), String> {
    out.push(b'{');
    for (at, (column, value)) in columns.iter().zip(values).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        serde_json::to_writer(&mut *out, &column.name).map_err(|e| e.to_string())?;
        out.push(b':');
        match value {
            None => out.extend_from_slice(b"null"),
            Some(b"t") if column.type_oid == BOOL => out.extend_from_slice(b"true"),
            Some(b"f") if column.type_oid == BOOL => out.extend_from_slice(b"false"),
            Some(value) if is_json(column.type_oid, value) => out.extend_from_slice(value),
            Some(value) => serde_json::to_writer(&mut *out, &String::from_utf8_lossy(value)).map_err(|e| e.to_string())?,
        }
    }
    out.push(b'}');
    Ok(())
}

fn is_json(type_oid: u32, value: &[u8]) -> bool {
    let is_number = || value.last().is_some_and(u8::is_ascii_digit) && value.first().is_some_and(|b| b"-0123456789".contains(b));
    DOCUMENTS.contains(&type_oid) || (NUMBERS.contains(&type_oid) && is_number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_tells_null_from_the_empty_text() {
        let mut out = Vec::new();
        let values: [Option<&[u8]>; 6] = [Some(b"a"), None, Some(b""), Some(b"say \"x\",\ny"), Some(b"\\."), Some(b"<b>")];
        values.into_iter().enumerate().for_each(|(at, value)| csv_value(&mut out, at, value));
        assert_eq!(String::from_utf8_lossy(&out), "a,,\"\",\"say \"\"x\"\",\ny\",\"\\.\",<b>");
    }

    #[test]
    fn json_has_numbers_where_the_type_has_them() {
        let column = |name: &str, type_oid| ResultColumn { name: name.to_owned(), type_oid };
        let columns =
            [column("n", 1700), column("x", 701), column("b", 16), column("d", 3802), column("t\"", 25), column("z", 23)];
        let values: [Option<&[u8]>; 6] =
            [Some(b"1.50"), Some(b"NaN"), Some(b"t"), Some(b"{\"a\": 1}"), Some(b"7</script>"), None];
        let mut out = Vec::new();
        json_row(&mut out, &columns, &values).expect("it is written");
        let text = String::from_utf8_lossy(&out);
        assert_eq!(text, r#"{"n":1.50,"x":"NaN","b":true,"d":{"a": 1},"t\"":"7</script>","z":null}"#);
        assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok());
    }
}

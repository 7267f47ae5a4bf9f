//! EXPLAIN (SERIALIZE): rows are encoded as for a client, and dropped.

use std::time::Duration;

use melba_fmgr::{Session, io};
use melba_plan::explain_document::PropertyValue;
use melba_protocol::Format;
use melba_types::{Batch, Oid, Result};

/// A DataRow's tag, length and number of columns.
const ROW_BYTES: u64 = 7;
/// A value's length.
const VALUE_BYTES: u64 = 4;

/// See the module.
pub struct Serialization {
    format: Format,
    types: Vec<Oid>,
    bytes: u64,
    time: Duration,
    row: Vec<u8>,
}

impl Serialization {
    /// Of rows with columns of these types.
    pub fn new(format: Format, types: Vec<Oid>) -> Serialization {
        Serialization { format, types, bytes: 0, time: Duration::ZERO, row: Vec::new() }
    }

    pub fn take(&mut self, session: &dyn Session, batch: &Batch) -> Result<()> {
        let started = session.monotonic();
        for row in 0..batch.rows {
            self.row.clear();
            for (ty, column) in self.types.iter().zip(&batch.columns) {
                let value = column.get(row);
                match self.format {
                    _ if value.is_null() => {}
                    Format::Binary => io::binary_out(session, *ty, &value, &mut self.row)?,
                    _ => io::text_out(session, *ty, &value, &mut self.row)?,
                }
            }
            self.bytes += ROW_BYTES + VALUE_BYTES * self.types.len() as u64 + self.row.len() as u64;
        }
        self.time += session.monotonic().saturating_sub(started);
        Ok(())
    }

    fn kilobytes(&self) -> u64 {
        self.bytes.div_ceil(1024)
    }

    fn format_name(&self) -> &'static str {
        if self.format == Format::Binary { "binary" } else { "text" }
    }

    fn milliseconds(&self) -> String {
        format!("{:.3}", self.time.as_secs_f64() * 1000.0)
    }

    /// As a line of the text format.
    pub fn line(&self, timing: bool) -> String {
        let time = if timing { format!("time={} ms  ", self.milliseconds()) } else { String::new() };
        format!("Serialization: {time}output={}kB  format={}", self.kilobytes(), self.format_name())
    }

    /// As a group of the other formats.
    pub fn group(&self, timing: bool) -> PropertyValue {
        let mut group = Vec::new();
        if timing {
            group.push(("Time".to_owned(), PropertyValue::Plain(self.milliseconds())));
        }
        group.push(("Output Volume".to_owned(), PropertyValue::Plain(self.kilobytes().to_string())));
        group.push(("Format".to_owned(), PropertyValue::text(self.format_name())));
        PropertyValue::Group(group)
    }
}

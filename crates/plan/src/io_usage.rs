//! Blocks, temporary files and log records as EXPLAIN shows them.

use melba_engine::IoCounts;

use crate::explain_document::{Group, PropertyValue};

/// Temporary files are counted in blocks of PostgreSQL's size. Blocks of segments have no fixed size: each counts as one.
const TEMPORARY_BLOCK_BYTES: u64 = 8192;

fn temporary_blocks(bytes: u64) -> u64 {
    bytes.div_ceil(TEMPORARY_BLOCK_BYTES)
}

fn milliseconds(nanos: u64) -> String {
    format!("{:.3}", nanos as f64 / 1e6)
}

/// The parts that are not zero: `shared hit=1 read=2, temp written=3`; `None`: all are.
fn parts<T>(groups: &[(&str, &[(&str, T)])], show: impl Fn(&T) -> Option<String>) -> Option<String> {
    let group = |(name, figures): &(&str, &[(&str, T)])| {
        let shown: Vec<String> = figures.iter().filter_map(|(what, n)| Some(format!(" {what}={}", show(n)?))).collect();
        (!shown.is_empty()).then(|| format!("{name}{}", shown.concat()))
    };
    let shown: Vec<String> = groups.iter().filter_map(group).collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// BUFFERS in text format.
pub fn buffer_lines(io: &IoCounts) -> Vec<String> {
    let (read, written) = (temporary_blocks(io.temp_read_bytes), temporary_blocks(io.temp_write_bytes));
    let shared = [("hit", io.block_hits), ("read", io.block_reads), ("written", io.block_writes)];
    let blocks =
        parts(&[("shared", &shared), ("temp", &[("read", read), ("written", written)])], |n| (*n > 0).then(|| n.to_string()));
    let shared = [("read", io.block_read_nanos), ("write", io.block_write_nanos)];
    let times = parts(&[("shared", &shared), ("temp", &[("read", io.temp_read_nanos), ("write", io.temp_write_nanos)])], |n| {
        (*n > 0).then(|| milliseconds(*n))
    });
    let lines = [blocks.map(|blocks| format!("Buffers: {blocks}")), times.map(|times| format!("I/O Timings: {times}"))];
    lines.into_iter().flatten().collect()
}

/// The same in other formats; `times`: track_io_timing is on.
pub fn buffer_fields(io: &IoCounts, times: bool) -> Group {
    let blocks = [
        ("Shared Hit Blocks", io.block_hits),
        ("Shared Read Blocks", io.block_reads),
        ("Shared Dirtied Blocks", 0),
        ("Shared Written Blocks", io.block_writes),
        ("Local Hit Blocks", 0),
        ("Local Read Blocks", 0),
        ("Local Dirtied Blocks", 0),
        ("Local Written Blocks", 0),
        ("Temp Read Blocks", temporary_blocks(io.temp_read_bytes)),
        ("Temp Written Blocks", temporary_blocks(io.temp_write_bytes)),
    ];
    let times = [
        ("Shared I/O Read Time", io.block_read_nanos),
        ("Shared I/O Write Time", io.block_write_nanos),
        ("Local I/O Read Time", 0),
        ("Local I/O Write Time", 0),
        ("Temp I/O Read Time", io.temp_read_nanos),
        ("Temp I/O Write Time", io.temp_write_nanos),
    ]
    .into_iter()
    .filter(|_| times);
    let blocks = blocks.iter().map(|(key, n)| ((*key).to_owned(), PropertyValue::plain(n)));
    blocks.chain(times.map(|(key, nanos)| ((*key).to_owned(), PropertyValue::Plain(milliseconds(nanos))))).collect()
}

/// WAL in text format.
pub fn log_line(io: &IoCounts) -> Option<String> {
    (io.log_records > 0).then(|| format!("WAL: records={} bytes={}", io.log_records, io.log_bytes))
}

/// The same in other formats. There are no full-page images, and the log's buffer grows instead of being full.
pub fn log_fields(io: &IoCounts) -> Group {
    let fields = [("WAL Records", io.log_records), ("WAL FPI", 0), ("WAL Bytes", io.log_bytes), ("WAL Buffers Full", 0)];
    fields.iter().map(|(key, n)| ((*key).to_owned(), PropertyValue::plain(n))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_show_what_is_not_zero() {
        assert!(buffer_lines(&IoCounts::default()).is_empty() && log_line(&IoCounts::default()).is_none());
        let io = IoCounts {
            block_hits: 3,
            block_writes: 2,
            block_read_nanos: 1_500_000,
            temp_write_bytes: 8193,
            log_records: 1,
            log_bytes: 99,
            ..IoCounts::default()
        };
        let lines = ["Buffers: shared hit=3 written=2, temp written=2", "I/O Timings: shared read=1.500"];
        assert_eq!(buffer_lines(&io), lines);
        assert_eq!(log_line(&io).as_deref(), Some("WAL: records=1 bytes=99"));
        assert_eq!((buffer_fields(&io, false).len(), buffer_fields(&io, true).len(), log_fields(&io).len()), (10, 16, 4));
    }
}

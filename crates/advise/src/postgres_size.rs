//! The size of rows in PostgreSQL: by its TOAST rule, its codecs, its pages.

use melba_toast::{Method, compress};

use crate::jsonb;
use crate::pages::{Heap, aligned, btree_bytes};
use crate::sample::{Column, Row, Sample, Storage, from_hexadecimal};

/// A tuple's header without the bitmap of nulls.
const HEADER_BYTES: u64 = 23;
/// Tuples that are longer have values compressed and moved out, until they are not.
const TOAST_THRESHOLD: u64 = 2032;
/// A value that was moved out leaves a pointer; a value that is not longer than that, aligned, is left alone.
const POINTER_BYTES: u64 = 18;
const WORTH_BYTES: u64 = 24;
/// Bytes of a value in a chunk, and the bytes of a chunk's tuple beside them: header, id, number, length.
const CHUNK_BYTES: u64 = 1996;
const CHUNK_HEADER_BYTES: u64 = 24 + 4 + 4 + 4;
/// A chunk's key in its index.
const CHUNK_KEY_BYTES: f64 = 8.0;
/// Free space and visibility maps of a relation that has some pages.
const MAP_BYTES: f64 = 4.0 * 8192.0;
const MAPPED_BYTES_MIN: u64 = 4 * 8192;

/// A table's size, in bytes of the whole table.
#[derive(Clone, Debug, Default)]
pub struct PostgresSize {
    pub total: f64,
    /// By column: its part of the heap and out-of-line bytes, in proportion.
    pub columns: Vec<f64>,
}

/// A value on its way into a tuple.
struct Field {
    column: usize,
    /// Bytes as they are; empty for values of fixed width.
    value: Vec<u8>,
    /// Without the length.
    bytes: u64,
    align: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Fixed,
    Plain,
    Compressed,
    Incompressible,
    External,
}

impl Field {
    /// Bytes in a tuple at a place, padding included.
    fn end(&self, at: u64) -> u64 {
        match self.state {
            State::Fixed => at.next_multiple_of(self.align) + self.bytes,
            State::External => at + POINTER_BYTES,
            _ if self.bytes < 127 => at + 1 + self.bytes,
            _ => at.next_multiple_of(4) + 4 + self.bytes,
        }
    }

    fn may_move(&self) -> bool {
        self.state != State::Fixed && self.state != State::External && self.bytes + 4 > WORTH_BYTES
    }
}

/// Sizes of a sample's table with values compressed by pglz or lz4.
pub fn postgres_size(sample: &Sample, method: Method) -> PostgresSize {
    let mut heap = Heap::default();
    let mut toast = Heap::default();
    let (mut columns, mut chunks) = (vec![0; sample.columns.len()], 0u64);
    for row in &sample.rows {
        let mut fields = fields(&sample.columns, row);
        let bitmap = if fields.len() < row.len() { row.len().div_ceil(8) as u64 } else { 0 };
        let header = aligned(HEADER_BYTES + bitmap);
        shorten(&mut fields, TOAST_THRESHOLD - header, method);
        let mut at = 0;
        for field in &fields {
            let end = field.end(at);
            columns[field.column] += end - at;
            at = end;
            if field.state == State::External {
                let mut left = field.bytes;
                while left > 0 {
                    let part = left.min(CHUNK_BYTES);
                    toast.push(CHUNK_HEADER_BYTES + part);
                    columns[field.column] += CHUNK_HEADER_BYTES + part;
                    left -= part;
                    chunks += 1;
                }
            }
        }
        heap.push(header + at);
    }
    let scale = sample.scale;
    let relation = |heap: &Heap| heap.bytes() as f64 * scale + if heap.bytes() > MAPPED_BYTES_MIN { MAP_BYTES } else { 0.0 };
    // The toast table's index exists, however empty.
    let toast_bytes = relation(&toast) + btree_bytes(chunks as f64 * scale, CHUNK_KEY_BYTES);
    let key = key_bytes(sample);
    let key_index = if key > 0.0 { btree_bytes(sample.rows_total, key) } else { 0.0 };
    let columns: Vec<f64> = columns.into_iter().map(|bytes: u64| bytes as f64 * scale).collect();
    PostgresSize { total: relation(&heap) + toast_bytes + key_index, columns }
}

/// Bytes of a primary key's values, on average; 0 without one.
fn key_bytes(sample: &Sample) -> f64 {
    let of = |(at, column): (usize, &Column)| {
        let bytes = sample.raw_bytes(at) as f64 / sample.rows.len().max(1) as f64;
        if matches!(column.storage, Storage::Fixed { .. }) { bytes } else { bytes + 1.0 }
    };
    sample.columns.iter().enumerate().filter(|(_, column)| column.in_primary_key).map(of).sum()
}

fn fields(columns: &[Column], row: &Row) -> Vec<Field> {
    let field = |(column, value): (usize, &Option<Box<[u8]>>)| {
        let text = value.as_deref()?;
        let (value, bytes, align, state) = match columns[column].storage {
            Storage::Fixed { bytes, align } => (Vec::new(), bytes as u64, align as u64, State::Fixed),
            Storage::Bytes => (from_hexadecimal(text), 0, 4, State::Plain),
            Storage::Jsonb => (jsonb::encode(text).unwrap_or_else(|| text.to_vec()), 0, 4, State::Plain),
            // Digits are no candidates for compression here: they are short.
            Storage::Numeric => (Vec::new(), Storage::Numeric.raw_bytes(text), 4, State::Incompressible),
            Storage::Text | Storage::Other => (text.to_vec(), 0, 4, State::Plain),
        };
        let bytes = if value.is_empty() { bytes } else { value.len() as u64 };
        Some(Field { column, value, bytes, align, state })
    };
    row.iter().enumerate().filter_map(field).collect()
}

/// Compresses values, the longest first, then moves them out, until the tuple's data are short enough.
fn shorten(fields: &mut [Field], most: u64, method: Method) {
    let mut scratch = Vec::new();
    while data_bytes(fields) > most {
        let Some(longest) = fields.iter_mut().filter(|f| f.state == State::Plain && f.may_move()).max_by_key(|f| f.bytes) else {
            break;
        };
        scratch.clear();
        // The compressed form begins with the raw length; a gain of two bytes or less is none.
        if compress(method, 0, &longest.value, &mut scratch) && scratch.len() as u64 + 4 + 2 < longest.bytes {
            (longest.bytes, longest.state) = (scratch.len() as u64 + 4, State::Compressed);
        } else {
            longest.state = State::Incompressible;
        }
        if longest.bytes + 4 > most {
            longest.state = State::External;
        }
    }
    while data_bytes(fields) > most {
        let Some(longest) = fields.iter_mut().filter(|f| f.may_move()).max_by_key(|f| f.bytes) else { break };
        longest.state = State::External;
    }
}

fn data_bytes(fields: &[Field]) -> u64 {
    fields.iter().fold(0, |at, field| field.end(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(bodies: Vec<Vec<u8>>) -> Sample {
        let column = |name: &str, type_name: &str, storage, in_primary_key| Column {
            name: name.into(),
            type_name: type_name.into(),
            storage,
            in_primary_key,
        };
        let id = column("id", "bigint", Storage::Fixed { bytes: 8, align: 8 }, true);
        let rows_total = bodies.len() as f64;
        let row = |(n, body): (usize, Vec<u8>)| vec![Some(n.to_string().into_bytes().into()), Some(body.into())];
        let rows = bodies.into_iter().enumerate().map(row).collect();
        Sample {
            name: "t".into(),
            columns: vec![id, column("body", "text", Storage::Text, false)],
            rows,
            rows_total,
            scale: 1.0,
            notes: Vec::new(),
            exists: true,
            scan: Box::new(|_, _| Ok(())),
        }
    }

    #[test]
    fn short_rows_stay_and_long_ones_move_out() {
        // A row of 8 + 1 + 100 bytes and a header of 24 is 136 and a pointer long: 58 a page.
        let short = postgres_size(&sample(vec![vec![b'x'; 100]; 5800]), Method::Lz4);
        let heap = 100.0 * 8192.0 + MAP_BYTES;
        assert_eq!(short.total, heap + btree_bytes(0.0, 8.0) + btree_bytes(5800.0, 8.0));
        // Incompressible values of 10,000 bytes: PostgreSQL 18's size of 400 rows with such values out of line.
        let mut state = 1u64;
        let mut noise = || -> Vec<u8> {
            let mut next = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 56) as u8
            };
            (0..10_000).map(|_| next()).collect()
        };
        let long = postgres_size(&sample((0..400).map(|_| noise()).collect()), Method::Pglz);
        assert_eq!(long.total, 5_079_040.0);
        let toast = 400.0 * 10_000.0;
        assert!(long.columns[1] > toast && long.columns[0] == 3200.0, "{:?}", long.columns);
        // A value that compresses well enough stays in the row.
        let inline = postgres_size(&sample(vec![b"abcdefghij".repeat(1000); 400]), Method::Pglz);
        assert!(inline.total < 400.0 * 300.0 + MAP_BYTES + 5.0 * 8192.0, "{}", inline.total);
    }
}

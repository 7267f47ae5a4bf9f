//! Values in stored form while a statement runs.
//!
//! Rows hold long values compressed, or as pointers (docs/design/toast.md). Plans pass them on so, in columns whose data is
//! `ColumnData::Stored`, and expand them where an expression reads them:
//!
//! 1. Evaluating an expression gives values, never stored forms; only `eval_stored` returns a column's value as it is, chosen or not.
//! 2. Functions that can answer from the stored form (`expression::stored`) receive it.
//! 3. Rows that leave a plan are expanded (`Execution::next_batch`), except rows that are written to a table.

use melba_toast::{External, Inline, Stored, frame, stored::Characters};
use melba_types::{Batch, ByteStrings, Column, ColumnData, Datum, DbError, Kind, Result, RowId, codec, err, shared};

use super::Evaluation;

/// Batches of scans are cut so that their values take at most this many bytes when expanded, if there are several: few enough that
/// they are still in the processor's caches when they are sent.
const BATCH_BYTES_MAX: usize = 1 << 20;

fn damaged(what: impl std::fmt::Display) -> DbError {
    err!(DATA_CORRUPTED, "{what}")
}

/// # Errors
/// XX001 when the bytes are no stored form.
pub fn parse(stored: &[u8]) -> Result<Stored<'_>> {
    Stored::parse(stored).map_err(damaged)
}

fn undecodable(kind: Kind) -> DbError {
    damaged(format!("a stored value of kind {kind:?} is malformed"))
}

impl<S: ?Sized> Evaluation<S> {
    /// The value itself.
    #[inline]
    pub fn expand(&self, value: Datum, kind: Kind) -> Result<Datum> {
        match value {
            Datum::Stored(stored) if matches!(kind, Kind::Text | Kind::Bytes) => {
                let stored = parse(&stored)?;
                let bytes = shared::bytes(stored.raw_bytes(), |target| self.expand_to(&stored, target))?;
                match kind {
                    Kind::Text => Ok(Datum::Text(shared::text(bytes).ok_or_else(|| undecodable(kind))?)),
                    _ => Ok(Datum::Bytes(bytes)),
                }
            }
            Datum::Stored(stored) => {
                let mut bytes = Vec::new();
                self.expand_into(&stored, &mut bytes)?;
                codec::decode(kind, &bytes).ok_or_else(|| undecodable(kind))
            }
            value => Ok(value),
        }
    }

    /// Writes the value's bytes, as many as there is room for.
    fn expand_to(&self, stored: &Stored<'_>, target: &mut [u8]) -> Result<()> {
        let external = match stored {
            Stored::Inline(inline) => {
                return melba_toast::decompress(inline.method, inline.stream, target).map_err(|_| corrupt(inline));
            }
            Stored::External(external) => external,
        };
        let mut rest = target;
        self.expect_frames(external, 0..external.frames())?;
        for number in 0..external.frames() {
            self.check_interrupt()?;
            let id = RowId(external.first.0 + number);
            let decode = |bytes: &[u8]| frame::decode_into(bytes, rest);
            let bytes = self.transaction().frames(external.tree).with(self.view(), id, decode)?.map_err(damaged)?;
            rest = &mut rest[bytes..];
        }
        if rest.is_empty() { Ok(()) } else { Err(self.wrong_length(external)) }
    }

    /// Appends the value in storage format.
    pub fn expand_into(&self, stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match parse(stored)? {
            Stored::Inline(inline) => inflate(&inline, out),
            Stored::External(external) => {
                out.reserve_exact(external.raw_bytes as usize);
                let start = out.len();
                self.expand_frames(&external, 0..external.frames(), out)?;
                if out.len() - start == external.raw_bytes as usize { Ok(()) } else { Err(self.wrong_length(&external)) }
            }
        }
    }

    /// Whether a value of a dense column is in a dense block already, by its first frame.
    pub fn is_dense(&self, external: &External) -> Result<bool> {
        let is_dense = |row: &[u8]| frame::density(row) == frame::Density::Dense;
        Ok(self.transaction().frames(external.tree).with(self.view(), external.first, is_dense)?)
    }

    fn wrong_length(&self, external: &External) -> DbError {
        damaged(format!("the frames of value {} in toast tree {} have another length", external.first, external.tree))
    }

    fn expect_frames(&self, external: &External, frames: std::ops::Range<u64>) -> Result<()> {
        let row = |number| RowId(external.first.0 + number);
        Ok(self.transaction().frames(external.tree).expect(self.view(), row(frames.start)..row(frames.end))?)
    }

    /// Appends the bytes of some frames of an external value.
    pub fn expand_frames(&self, external: &External, frames: std::ops::Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        self.expect_frames(external, frames.clone())?;
        for number in frames {
            self.check_interrupt()?;
            let id = RowId(external.first.0 + number);
            let decode = |bytes: &[u8]| frame::decode(bytes, out);
            self.transaction().frames(external.tree).with(self.view(), id, decode)?.map_err(damaged)?;
        }
        Ok(())
    }

    /// Bytes `range` of an external value; those beyond its end are left out. Reads only the frames that have them.
    pub fn expand_range(&self, external: &External, range: std::ops::Range<usize>) -> Result<Vec<u8>> {
        let end = range.end.min(external.raw_bytes as usize);
        let start = range.start.min(end);
        if start == end {
            return Ok(Vec::new());
        }
        let first = start / frame::FRAME_BYTES;
        let frames = first as u64..end.div_ceil(frame::FRAME_BYTES) as u64;
        let mut out = Vec::new();
        self.expand_frames(external, frames, &mut out)?;
        let skipped = first * frame::FRAME_BYTES;
        out.truncate(end - skipped);
        out.drain(..start - skipped);
        Ok(out)
    }

    /// The frame in which a character of an external text begins, and how many begin before it (`Characters::find`).
    pub fn find_character(&self, external: &External, n: usize) -> Result<(usize, usize)> {
        let id = RowId(external.first.0 + external.frames());
        Ok(self.transaction().frames(external.tree).with(self.view(), id, |row| Characters(row).find(n))?)
    }

    /// A column of values.
    pub fn expand_column(&self, column: &Column, kind: Kind) -> Result<Column> {
        let ColumnData::Stored(values) = &column.data else { return Ok(column.clone()) };
        let data = match kind {
            Kind::Text => ColumnData::Text(self.expand_strings(column, values)?),
            Kind::Bytes => ColumnData::Bytes(self.expand_strings(column, values)?),
            _ => ColumnData::Datum(values.iter().map(|v| self.expand(v.clone(), kind)).collect::<Result<_>>()?),
        };
        let mut validity = column.validity.clone();
        if validity.is_none() && values.iter().any(Datum::is_null) {
            let mut bitmap = melba_types::Bitmap::filled(values.len(), true);
            values.iter().enumerate().filter(|(_, v)| v.is_null()).for_each(|(i, _)| bitmap.set(i, false));
            validity = Some(bitmap);
        }
        Ok(Column { data, validity })
    }

    fn expand_strings(&self, column: &Column, values: &[Datum]) -> Result<ByteStrings> {
        let bytes = values.iter().map(raw_bytes).sum();
        let mut out = ByteStrings { ends: Vec::with_capacity(values.len()), bytes: Vec::with_capacity(bytes) };
        for (i, value) in values.iter().enumerate() {
            match value {
                _ if column.is_null(i) => {}
                Datum::Stored(stored) => self.expand_into(stored, &mut out.bytes)?,
                plain => codec::encode(plain, &mut out.bytes),
            }
            out.ends.push(u32::try_from(out.bytes.len()).map_err(|_| damaged("a batch of more than 4 GB"))?);
        }
        Ok(out)
    }

    /// A batch of values.
    pub fn expand_batch(&self, mut batch: Batch, kinds: &[Kind]) -> Result<Batch> {
        for (column, kind) in batch.columns.iter_mut().zip(kinds) {
            if column.is_stored() {
                *column = self.expand_column(column, *kind)?;
            }
        }
        Ok(batch)
    }

    /// A row of values.
    pub fn expand_row(&self, row: &[Datum], kinds: impl Iterator<Item = Kind>) -> Result<Vec<Datum>> {
        row.iter().zip(kinds).map(|(value, kind)| self.expand(value.clone(), kind)).collect()
    }
}

/// Appends the value of an inline form.
fn inflate(inline: &Inline<'_>, out: &mut Vec<u8>) -> Result<()> {
    melba_toast::decompress_onto(inline.method, inline.stream, inline.raw_bytes as usize, out).map_err(|_| corrupt(inline))
}

fn corrupt(inline: &Inline<'_>) -> DbError {
    damaged(format!("compressed {} data is corrupt", inline.method.name()))
}

/// The bytes of a value in stored form when it is expanded; 0 of other values.
fn raw_bytes(value: &Datum) -> usize {
    match value {
        Datum::Stored(stored) => Stored::parse(stored).map_or(0, |s| s.raw_bytes()),
        _ => 0,
    }
}

/// What a column's values in stored form take when they are expanded.
pub fn expanded_bytes(column: &Column) -> usize {
    match &column.data {
        ColumnData::Stored(values) => values.iter().map(raw_bytes).sum(),
        _ => 0,
    }
}

/// How many rows from `from` on may be expanded together: one at least.
pub fn rows_within(batch: &Batch, from: usize) -> usize {
    let mut bytes = 0;
    for i in from..batch.rows {
        for column in &batch.columns {
            if let ColumnData::Stored(values) = &column.data {
                bytes += raw_bytes(&values[i]);
            }
        }
        if bytes > BATCH_BYTES_MAX {
            return (i - from).max(1);
        }
    }
    batch.rows - from
}

//! The form of a batch in a temporary file. It lives no longer than its query, so it has no version.
//!
//! ```text
//! batch    u32 rows, u16 columns, columns
//! column   u8 tag, u8 has validity, [u64 x rows/64 validity words], values
//! values   fixed widths little-endian; mantissas: u16 scale, words; strings: u32 ends, bytes; datums: value x rows
//! value    u8 kind (255: null, 254: in stored form), [u32 length unless the kind has a width], content
//! content  as `types::codec`, but for arrays and records, which hold values: records keep the names of their fields
//! ```

use std::sync::Arc;

use melba_types::bytes::ByteReader;
use melba_types::{
    Array, ArrayDim, Batch, Bitmap, ByteStrings, Column, ColumnData, Datum, DbError, Kind, Mantissas, Oid, Record, Result,
};
use melba_types::{codec, err};

const NULL: u8 = 255;
const STORED: u8 = 254;

/// Appends a batch.
pub fn encode(batch: &Batch, out: &mut Vec<u8>) {
    out.extend_from_slice(&(batch.rows as u32).to_le_bytes());
    out.extend_from_slice(&(batch.columns.len() as u16).to_le_bytes());
    for column in &batch.columns {
        encode_column(column, out);
    }
}

fn encode_column(column: &Column, out: &mut Vec<u8>) {
    macro_rules! fixed {
        ($tag:expr, $values:expr) => {{
            header($tag, column, out);
            $values.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
        }};
    }
    match &column.data {
        ColumnData::Bool(v) => {
            header(0, column, out);
            out.extend(v.iter().map(|b| u8::from(*b)));
        }
        ColumnData::Int2(v) => fixed!(1, v),
        ColumnData::Int4(v) => fixed!(2, v),
        ColumnData::Int8(v) => fixed!(3, v),
        ColumnData::Float4(v) => fixed!(4, v),
        ColumnData::Float8(v) => fixed!(5, v),
        ColumnData::Oid(v) => fixed!(6, v),
        ColumnData::Text(v) => {
            header(7, column, out);
            strings(v, out);
        }
        ColumnData::Bytes(v) => {
            header(8, column, out);
            strings(v, out);
        }
        ColumnData::Coded(v) => encode_column(&Column { data: v.decode(), validity: column.validity.clone() }, out),
        ColumnData::Numeric(v) => {
            header(11, column, out);
            out.extend_from_slice(&v.scale.to_le_bytes());
            v.values.iter().for_each(|v| out.extend_from_slice(&v.to_le_bytes()));
        }
        ColumnData::Datum(v) => {
            header(9, column, out);
            v.iter().for_each(|d| encode_value(d, out));
        }
        ColumnData::Stored(v) => {
            header(10, column, out);
            v.iter().for_each(|d| encode_value(d, out));
        }
    }
}

fn header(tag: u8, column: &Column, out: &mut Vec<u8>) {
    out.push(tag);
    out.push(u8::from(column.validity.is_some()));
    if let Some(validity) = &column.validity {
        let words = &validity.words()[..column.len().div_ceil(64)];
        words.iter().for_each(|w| out.extend_from_slice(&w.to_le_bytes()));
    }
}

fn strings(v: &ByteStrings, out: &mut Vec<u8>) {
    v.ends.iter().for_each(|e| out.extend_from_slice(&e.to_le_bytes()));
    out.extend_from_slice(&v.bytes);
}

fn encode_value(datum: &Datum, out: &mut Vec<u8>) {
    if let Datum::Stored(v) = datum {
        out.push(STORED);
        out.extend_from_slice(&(v.len() as u32).to_le_bytes());
        return out.extend_from_slice(v);
    }
    let Some(kind) = datum.kind() else {
        out.push(NULL);
        return;
    };
    out.push(kind as u8);
    if kind.width().is_some() {
        return codec::encode(datum, out);
    }
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    match datum {
        Datum::Array(v) => {
            out.extend_from_slice(&v.element_type.0.to_le_bytes());
            out.push(v.dims.len() as u8);
            for dim in &v.dims {
                out.extend_from_slice(&dim.length.to_le_bytes());
                out.extend_from_slice(&dim.lower_bound.to_le_bytes());
            }
            out.extend_from_slice(&(v.elements.len() as u32).to_le_bytes());
            v.elements.iter().for_each(|e| encode_value(e, out));
        }
        Datum::Record(v) => {
            out.extend_from_slice(&v.type_oid.0.to_le_bytes());
            out.extend_from_slice(&(v.fields.len() as u32).to_le_bytes());
            v.field_types.iter().for_each(|ty| out.extend_from_slice(&ty.0.to_le_bytes()));
            let names = v.field_names.as_deref().unwrap_or_default();
            out.extend_from_slice(&(names.len() as u32).to_le_bytes());
            for name in names {
                out.extend_from_slice(&(name.len() as u32).to_le_bytes());
                out.extend_from_slice(name.as_bytes());
            }
            v.fields.iter().for_each(|f| encode_value(f, out));
        }
        other => codec::encode(other, out),
    }
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Reads a batch.
///
/// # Errors
/// XX001 when the bytes are no batch.
pub fn decode(bytes: &[u8]) -> Result<Batch> {
    Reader(ByteReader::new(bytes)).batch().ok_or_else(|| damaged("the rows of a temporary file cannot be read"))
}

fn damaged(what: &str) -> DbError {
    err!(DATA_CORRUPTED, "{what}")
}

struct Reader<'a>(ByteReader<'a>);

impl Reader<'_> {
    fn batch(&mut self) -> Option<Batch> {
        let rows = self.0.u32()? as usize;
        let columns = u16::from_le_bytes(self.0.array()?);
        let columns = (0..columns).map(|_| self.column(rows)).collect::<Option<_>>()?;
        Some(Batch { columns, rows })
    }

    fn fixed<T, const N: usize>(&mut self, rows: usize, read: fn([u8; N]) -> T) -> Option<Vec<T>> {
        let bytes = self.0.take(rows.checked_mul(N)?)?;
        Some(bytes.chunks_exact(N).map(|c| read(c.try_into().unwrap_or([0; N]))).collect())
    }

    fn column(&mut self, rows: usize) -> Option<Column> {
        let [tag, has_validity] = self.0.array()?;
        let mut validity = None;
        if has_validity != 0 {
            let words = self.fixed(rows.div_ceil(64), u64::from_le_bytes)?;
            let mut bits = Bitmap::default();
            bits.extend_words(words.into_iter(), 0, rows);
            validity = Some(bits);
        }
        let data = match tag {
            0 => ColumnData::Bool(self.0.take(rows)?.iter().map(|b| *b != 0).collect()),
            1 => ColumnData::Int2(self.fixed(rows, i16::from_le_bytes)?),
            2 => ColumnData::Int4(self.fixed(rows, i32::from_le_bytes)?),
            3 => ColumnData::Int8(self.fixed(rows, i64::from_le_bytes)?),
            4 => ColumnData::Float4(self.fixed(rows, f32::from_le_bytes)?),
            5 => ColumnData::Float8(self.fixed(rows, f64::from_le_bytes)?),
            6 => ColumnData::Oid(self.fixed(rows, u32::from_le_bytes)?),
            7 => ColumnData::Text(self.strings(rows)?),
            8 => ColumnData::Bytes(self.strings(rows)?),
            9 => ColumnData::Datum((0..rows).map(|_| self.value()).collect::<Option<_>>()?),
            11 => {
                let scale = u16::from_le_bytes(self.0.array()?);
                ColumnData::Numeric(Mantissas::new(self.fixed(rows, i64::from_le_bytes)?, scale)?)
            }
            10 => ColumnData::Stored((0..rows).map(|_| self.value()).collect::<Option<_>>()?),
            _ => return None,
        };
        Some(Column { data, validity })
    }

    fn strings(&mut self, rows: usize) -> Option<ByteStrings> {
        let ends = self.fixed(rows, u32::from_le_bytes)?;
        let bytes = self.0.take(ends.last().map_or(0, |e| *e as usize))?.to_vec();
        Some(ByteStrings { ends, bytes })
    }

    fn value(&mut self) -> Option<Datum> {
        let [tag] = self.0.array()?;
        if tag == NULL {
            return Some(Datum::Null);
        }
        if tag == STORED {
            let length = self.0.u32()? as usize;
            return Some(Datum::Stored(self.0.take(length)?.into()));
        }
        let kind = Kind::from_u8(tag)?;
        let length = match kind.width() {
            Some(width) => width,
            None => self.0.u32()? as usize,
        };
        let content = self.0.take(length)?;
        match kind {
            Kind::Array => Reader(ByteReader::new(content)).array_value(),
            Kind::Record => Reader(ByteReader::new(content)).record(),
            _ => codec::decode(kind, content),
        }
    }

    fn array_value(&mut self) -> Option<Datum> {
        let element_type = Oid(self.0.u32()?);
        let [dims] = self.0.array()?;
        let dim = |r: &mut Self| Some(ArrayDim { length: r.0.u32()? as i32, lower_bound: r.0.u32()? as i32 });
        let dims = (0..dims).map(|_| dim(self)).collect::<Option<_>>()?;
        let count = self.0.u32()?;
        let elements = (0..count).map(|_| self.value()).collect::<Option<_>>()?;
        Some(Datum::Array(Arc::new(Array { element_type, dims, elements })))
    }

    fn record(&mut self) -> Option<Datum> {
        let type_oid = Oid(self.0.u32()?);
        let count = self.0.u32()?;
        let field_types = (0..count).map(|_| self.0.u32().map(Oid)).collect::<Option<Arc<[Oid]>>>()?;
        let names = self.0.u32()?;
        let name = |r: &mut Self| {
            let length = r.0.u32()? as usize;
            Some(Arc::from(std::str::from_utf8(r.0.take(length)?).ok()?))
        };
        let names = (0..names).map(|_| name(self)).collect::<Option<Arc<[Arc<str>]>>>()?;
        let fields = (0..count).map(|_| self.value()).collect::<Option<_>>()?;
        let field_names = (!names.is_empty()).then_some(names);
        Some(Datum::Record(Arc::new(Record { type_oid, field_types, field_names, fields })))
    }
}

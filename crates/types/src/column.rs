//! Vectors of values: operators pass them on, and scans fill them.
//!
//! Why not Arrow arrays: operators serve one-row statements too, where building and dropping an `ArrayRef` a column
//! costs more than the work; and PostgreSQL's numeric, interval, array and composite values have no Arrow layout.

use std::borrow::Borrow;
use std::ops::Range;
use std::sync::Arc;

use crate::bitmap::Bitmap;
use crate::byte_strings::ByteStrings;
use crate::coded_strings::CodedStrings;
use crate::datum::Datum;
use crate::mantissas::Mantissas;
use crate::oids::Kind;

/// The values of a column. Null rows hold a default value.
#[derive(Clone, Debug)]
pub enum ColumnData {
    Bool(Vec<bool>),
    Int2(Vec<i16>),
    Int4(Vec<i32>),
    Int8(Vec<i64>),
    Float4(Vec<f32>),
    Float8(Vec<f64>),
    Oid(Vec<u32>),
    /// Valid UTF-8.
    Text(ByteStrings),
    Bytes(ByteStrings),
    /// Strings by a dictionary. Scans return it only when requested, for nodes above that compare codes instead of strings.
    Coded(CodedStrings),
    /// Numerics of one scale whose mantissas fit a word. Those of other numerics are in `Datum`.
    Numeric(Mantissas),
    /// Every other kind.
    Datum(Vec<Datum>),
    /// Values of any varying-width kind, some of them in stored form.
    Stored(Vec<Datum>),
}

/// A vector of values of one type.
#[derive(Clone, Debug)]
pub struct Column {
    pub data: ColumnData,
    /// `None`: no nulls but those that are `Datum::Null` in the data. They count as nulls with a bitmap, too.
    pub validity: Option<Bitmap>,
}

/// Text as a datum holds it. Most is valid, and checking that first is a fraction of the work of replacing invalid bytes.
fn text(bytes: &[u8]) -> Arc<str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => String::from_utf8_lossy(bytes).into(),
    }
}

impl Column {
    pub fn new(data: ColumnData) -> Column {
        Column { data, validity: None }
    }

    /// An empty column to push to.
    pub fn with_capacity(kind: Kind, rows: usize) -> Column {
        Column::new(match kind {
            Kind::Bool => ColumnData::Bool(Vec::with_capacity(rows)),
            Kind::Int2 => ColumnData::Int2(Vec::with_capacity(rows)),
            Kind::Int4 => ColumnData::Int4(Vec::with_capacity(rows)),
            Kind::Int8 => ColumnData::Int8(Vec::with_capacity(rows)),
            Kind::Float4 => ColumnData::Float4(Vec::with_capacity(rows)),
            Kind::Float8 => ColumnData::Float8(Vec::with_capacity(rows)),
            Kind::Oid => ColumnData::Oid(Vec::with_capacity(rows)),
            Kind::Text => ColumnData::Text(ByteStrings { ends: Vec::with_capacity(rows), bytes: Vec::new() }),
            Kind::Bytes | Kind::Frame => ColumnData::Bytes(ByteStrings { ends: Vec::with_capacity(rows), bytes: Vec::new() }),
            _ => ColumnData::Datum(Vec::with_capacity(rows)),
        })
    }

    pub fn len(&self) -> usize {
        match &self.data {
            ColumnData::Bool(v) => v.len(),
            ColumnData::Int2(v) => v.len(),
            ColumnData::Int4(v) => v.len(),
            ColumnData::Int8(v) => v.len(),
            ColumnData::Float4(v) => v.len(),
            ColumnData::Float8(v) => v.len(),
            ColumnData::Oid(v) => v.len(),
            ColumnData::Text(v) | ColumnData::Bytes(v) => v.len(),
            ColumnData::Coded(v) => v.codes().len(),
            ColumnData::Numeric(v) => v.values.len(),
            ColumnData::Datum(v) | ColumnData::Stored(v) => v.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub fn is_null(&self, i: usize) -> bool {
        let datum = matches!(&self.data, ColumnData::Datum(d) | ColumnData::Stored(d) if d[i].is_null());
        datum || self.validity.as_ref().is_some_and(|v| !v.get(i))
    }

    /// The value at row `i`. Text and bytes are copied out.
    pub fn get(&self, i: usize) -> Datum {
        if self.is_null(i) {
            return Datum::Null;
        }
        match &self.data {
            ColumnData::Bool(v) => Datum::Bool(v[i]),
            ColumnData::Int2(v) => Datum::Int2(v[i]),
            ColumnData::Int4(v) => Datum::Int4(v[i]),
            ColumnData::Int8(v) => Datum::Int8(v[i]),
            ColumnData::Float4(v) => Datum::Float4(v[i]),
            ColumnData::Float8(v) => Datum::Float8(v[i]),
            ColumnData::Oid(v) => Datum::Oid(v[i]),
            ColumnData::Text(v) => Datum::Text(text(v.get(i))),
            ColumnData::Bytes(v) => Datum::Bytes(v.get(i).into()),
            ColumnData::Coded(v) if v.is_text() => Datum::Text(text(v.get(i))),
            ColumnData::Coded(v) => Datum::Bytes(v.get(i).into()),
            ColumnData::Numeric(v) => Datum::Numeric(v.get(i)),
            ColumnData::Datum(v) | ColumnData::Stored(v) => v[i].clone(),
        }
    }

    /// Bytes that the value at row `i` has beyond a fixed width.
    pub fn heap_bytes(&self, i: usize) -> usize {
        match &self.data {
            ColumnData::Text(v) | ColumnData::Bytes(v) => v.get(i).len(),
            ColumnData::Coded(v) => v.get(i).len(),
            ColumnData::Datum(v) | ColumnData::Stored(v) => v[i].heap_bytes(),
            _ => 0,
        }
    }

    /// Whether some values may be in stored form.
    pub fn is_stored(&self) -> bool {
        matches!(self.data, ColumnData::Stored(_))
    }

    /// Holds strings themselves, not codes of a dictionary.
    fn decode(&mut self) {
        if let ColumnData::Coded(v) = &self.data {
            self.data = v.decode();
        }
    }

    /// Makes room for values in stored form.
    fn hold_stored(&mut self) {
        if !self.is_stored() {
            let values = (0..self.len()).map(|i| self.get(i)).collect();
            self.data = ColumnData::Stored(values);
        }
    }

    /// Makes room for numerics of any scale and size.
    fn hold_any_numeric(&mut self) {
        let values = (0..self.len()).map(|i| self.get(i)).collect();
        self.data = ColumnData::Datum(values);
    }

    fn push_validity(&mut self, valid: bool) {
        match &mut self.validity {
            Some(v) => v.push(valid),
            None if valid => {}
            None => {
                // `len` already counts the pushed row.
                let mut v = Bitmap::filled(self.len() - 1, true);
                v.push(false);
                self.validity = Some(v);
            }
        }
    }

    pub fn push_null(&mut self) {
        self.decode();
        match &mut self.data {
            ColumnData::Bool(v) => v.push(false),
            ColumnData::Int2(v) => v.push(0),
            ColumnData::Int4(v) => v.push(0),
            ColumnData::Int8(v) => v.push(0),
            ColumnData::Float4(v) => v.push(0.0),
            ColumnData::Float8(v) => v.push(0.0),
            ColumnData::Oid(v) => v.push(0),
            ColumnData::Text(v) | ColumnData::Bytes(v) => v.push(&[]),
            ColumnData::Coded(_) => {}
            ColumnData::Numeric(v) => v.values.push(0),
            ColumnData::Datum(v) | ColumnData::Stored(v) => {
                v.push(Datum::Null);
                if self.validity.is_none() {
                    return;
                }
            }
        }
        self.push_validity(false);
    }

    /// Appends a value of the column's kind (or NULL).
    ///
    /// # Panics
    /// When the datum is of another kind: a bug of ours.
    #[track_caller]
    pub fn push(&mut self, datum: Datum) {
        self.decode();
        match (&mut self.data, datum) {
            (_, Datum::Null) => return self.push_null(),
            (ColumnData::Bool(v), Datum::Bool(x)) => v.push(x),
            (ColumnData::Int2(v), Datum::Int2(x)) => v.push(x),
            (ColumnData::Int4(v), Datum::Int4(x)) => v.push(x),
            (ColumnData::Int8(v), Datum::Int8(x)) => v.push(x),
            (ColumnData::Float4(v), Datum::Float4(x)) => v.push(x),
            (ColumnData::Float8(v), Datum::Float8(x)) => v.push(x),
            (ColumnData::Oid(v), Datum::Oid(x)) => v.push(x),
            (ColumnData::Text(v), Datum::Text(x)) => v.push(x.as_bytes()),
            (ColumnData::Bytes(v), Datum::Bytes(x)) => v.push(&x),
            (ColumnData::Numeric(v), Datum::Numeric(x)) => {
                if !v.push(&x) {
                    self.hold_any_numeric();
                    return self.push(Datum::Numeric(x));
                }
            }
            (ColumnData::Stored(v), x) => v.push(x),
            (_, x @ Datum::Stored(_)) => {
                self.hold_stored();
                return self.push(x);
            }
            (ColumnData::Datum(v), x) => v.push(x),
            (_, x) => panic!("datum {x:?} pushed to a column of another kind"),
        }
        if self.validity.is_some() {
            self.push_validity(true);
        }
    }

    /// Forgets the rows from `rows` on.
    pub fn truncate(&mut self, rows: usize) {
        match &mut self.data {
            ColumnData::Bool(v) => v.truncate(rows),
            ColumnData::Int2(v) => v.truncate(rows),
            ColumnData::Int4(v) => v.truncate(rows),
            ColumnData::Int8(v) => v.truncate(rows),
            ColumnData::Float4(v) => v.truncate(rows),
            ColumnData::Float8(v) => v.truncate(rows),
            ColumnData::Oid(v) => v.truncate(rows),
            ColumnData::Text(v) | ColumnData::Bytes(v) => v.truncate(rows),
            ColumnData::Coded(v) => v.truncate(rows),
            ColumnData::Numeric(v) => v.values.truncate(rows),
            ColumnData::Datum(v) | ColumnData::Stored(v) => v.truncate(rows),
        }
        if let Some(validity) = &mut self.validity {
            validity.truncate(rows);
        }
    }

    /// Appends a value in storage format (see `codec`).
    ///
    /// Returns false, leaving the column as it was, when the bytes are no value of `kind`.
    #[must_use]
    pub fn push_encoded(&mut self, kind: Kind, bytes: &[u8]) -> bool {
        match (&mut self.data, kind) {
            (ColumnData::Text(v), Kind::Text) | (ColumnData::Bytes(v), Kind::Bytes | Kind::Frame) => {
                v.push(bytes);
                if self.validity.is_some() {
                    self.push_validity(true);
                }
                true
            }
            _ => match crate::codec::decode(kind, bytes) {
                Some(datum) => {
                    self.push(datum);
                    true
                }
                None => false,
            },
        }
    }

    /// Reserves capacity for `rows` more strings of about the length of the last one.
    pub fn reserve_like_last(&mut self, rows: usize) {
        if let ColumnData::Text(v) | ColumnData::Bytes(v) = &mut self.data
            && let Some(last) = v.len().checked_sub(1)
        {
            let bytes = v.get(last).len() * rows;
            v.bytes.reserve(bytes);
        }
    }

    /// Memory in use, about: the allocations for the values and their contents.
    pub fn memory_bytes(&self) -> usize {
        let values = match &self.data {
            ColumnData::Bool(v) => v.capacity(),
            ColumnData::Int2(v) => v.capacity() * 2,
            ColumnData::Int4(v) => v.capacity() * 4,
            ColumnData::Int8(v) => v.capacity() * 8,
            ColumnData::Float4(v) => v.capacity() * 4,
            ColumnData::Float8(v) => v.capacity() * 8,
            ColumnData::Oid(v) => v.capacity() * 4,
            ColumnData::Text(v) | ColumnData::Bytes(v) => v.ends.capacity() * 4 + v.bytes.capacity(),
            ColumnData::Coded(v) => v.memory_bytes(),
            ColumnData::Numeric(v) => v.values.capacity() * 8,
            ColumnData::Datum(v) | ColumnData::Stored(v) => {
                v.capacity() * size_of::<Datum>() + v.iter().map(Datum::heap_bytes).sum::<usize>()
            }
        };
        size_of::<Column>() + values + self.validity.as_ref().map_or(0, |v| v.memory_bytes())
    }

    /// Rows of several columns of one kind: `picks` are (which column, which row of it).
    ///
    /// The columns may be thousands, of whose values few are in a processor's cache: nothing is done for each column, and values are read
    /// so that the processor waits for many at a time.
    pub fn gather<C: Borrow<Column>>(columns: &[C], picks: &[(u32, u32)]) -> Column {
        macro_rules! pick {
            ($variant:ident) => {{
                let value = |&(c, r): &(u32, u32)| match &columns[c as usize].borrow().data {
                    ColumnData::$variant(v) => Some(v[r as usize].clone()),
                    _ => None,
                };
                let mut values = Vec::with_capacity(picks.len());
                values.extend(picks.iter().map_while(value));
                if values.len() < picks.len() {
                    return gather_values(columns, picks);
                }
                ColumnData::$variant(values)
            }};
            (strings $variant:ident) => {{
                let strings = |c: u32| match &columns[c as usize].borrow().data {
                    ColumnData::$variant(v) => Some(v),
                    _ => None,
                };
                match ByteStrings::gather(strings, picks) {
                    Some(values) => ColumnData::$variant(values),
                    None => return gather_values(columns, picks),
                }
            }};
        }
        let Some(first) = columns.first() else { return Column::new(ColumnData::Bool(Vec::new())) };
        let data = match &first.borrow().data {
            ColumnData::Bool(_) => pick!(Bool),
            ColumnData::Int2(_) => pick!(Int2),
            ColumnData::Int4(_) => pick!(Int4),
            ColumnData::Int8(_) => pick!(Int8),
            ColumnData::Float4(_) => pick!(Float4),
            ColumnData::Float8(_) => pick!(Float8),
            ColumnData::Oid(_) => pick!(Oid),
            ColumnData::Text(_) => pick!(strings Text),
            ColumnData::Bytes(_) => pick!(strings Bytes),
            ColumnData::Numeric(_) => match Mantissas::gather(columns, picks) {
                Some(v) => ColumnData::Numeric(v),
                None => return gather_values(columns, picks),
            },
            ColumnData::Datum(_) => pick!(Datum),
            ColumnData::Coded(_) | ColumnData::Stored(_) => return gather_values(columns, picks),
        };
        let mut validity = None;
        if picks.iter().any(|(c, _)| columns[*c as usize].borrow().validity.is_some()) {
            let mut bits = Bitmap::filled(picks.len(), true);
            for (to, &(c, r)) in picks.iter().enumerate() {
                if columns[c as usize].borrow().is_null(r as usize) {
                    bits.set(to, false);
                }
            }
            validity = Some(bits);
        }
        Column { data, validity }
    }

    /// The rows of a range.
    pub fn slice(&self, rows: Range<usize>) -> Column {
        fn part(v: &ByteStrings, rows: Range<usize>) -> ByteStrings {
            let mut out = ByteStrings::default();
            out.extend(v, rows.start, rows.end);
            out
        }
        let n = rows.len();
        let validity = self.validity.as_ref().map(|v| {
            let mut bits = Bitmap::default();
            bits.extend_words(v.words()[rows.start >> 6..].iter().copied(), rows.start & 63, n);
            bits
        });
        let data = match &self.data {
            ColumnData::Bool(v) => ColumnData::Bool(v[rows].to_vec()),
            ColumnData::Int2(v) => ColumnData::Int2(v[rows].to_vec()),
            ColumnData::Int4(v) => ColumnData::Int4(v[rows].to_vec()),
            ColumnData::Int8(v) => ColumnData::Int8(v[rows].to_vec()),
            ColumnData::Float4(v) => ColumnData::Float4(v[rows].to_vec()),
            ColumnData::Float8(v) => ColumnData::Float8(v[rows].to_vec()),
            ColumnData::Oid(v) => ColumnData::Oid(v[rows].to_vec()),
            ColumnData::Text(v) => ColumnData::Text(part(v, rows)),
            ColumnData::Bytes(v) => ColumnData::Bytes(part(v, rows)),
            ColumnData::Coded(v) => ColumnData::Coded(v.slice(rows)),
            ColumnData::Numeric(v) => ColumnData::Numeric(Mantissas { values: v.values[rows].to_vec(), scale: v.scale }),
            ColumnData::Datum(v) => ColumnData::Datum(v[rows].to_vec()),
            ColumnData::Stored(v) => ColumnData::Stored(v[rows].to_vec()),
        };
        Column { data, validity }
    }

    /// Appends the rows of another column of the same kind.
    pub fn append(&mut self, from: &Column) {
        let rows = self.len();
        let mut appended = self.append_data(&from.data);
        if !appended && matches!(self.data, ColumnData::Coded(_)) {
            self.decode();
            appended = self.append_data(&from.data);
        }
        if !appended {
            (0..from.len()).for_each(|i| self.push(from.get(i)));
            return;
        }
        match (&mut self.validity, &from.validity) {
            (None, None) => {}
            (Some(own), None) => own.extend_filled(from.len(), true),
            (own, Some(other)) => {
                let own = own.get_or_insert_with(|| Bitmap::filled(rows, true));
                own.extend_words(other.words().iter().copied(), 0, from.len());
            }
        }
    }

    /// Makes room for as many more rows as the others have, which are to be appended.
    pub fn reserve<'a>(&mut self, others: impl Iterator<Item = &'a Column> + Clone) {
        let rows = others.clone().map(Column::len).sum();
        match &mut self.data {
            ColumnData::Bool(v) => v.reserve(rows),
            ColumnData::Int2(v) => v.reserve(rows),
            ColumnData::Int4(v) => v.reserve(rows),
            ColumnData::Int8(v) => v.reserve(rows),
            ColumnData::Float4(v) => v.reserve(rows),
            ColumnData::Float8(v) => v.reserve(rows),
            ColumnData::Oid(v) => v.reserve(rows),
            ColumnData::Numeric(v) => v.values.reserve(rows),
            ColumnData::Text(own) | ColumnData::Bytes(own) => {
                own.ends.reserve(rows);
                let bytes = |column: &Column| match &column.data {
                    ColumnData::Text(v) | ColumnData::Bytes(v) => v.bytes.len(),
                    _ => 0,
                };
                own.bytes.reserve(others.map(bytes).sum());
            }
            ColumnData::Datum(v) | ColumnData::Stored(v) => v.reserve(rows),
            ColumnData::Coded(v) => v.reserve(rows),
        }
    }

    /// Appends the physical values, null or not; false, with nothing changed, where the other column has another form.
    fn append_data(&mut self, from: &ColumnData) -> bool {
        use ColumnData::*;
        match (&mut self.data, from) {
            (Bool(a), Bool(b)) => a.extend_from_slice(b),
            (Int2(a), Int2(b)) => a.extend_from_slice(b),
            (Int4(a), Int4(b)) => a.extend_from_slice(b),
            (Int8(a), Int8(b)) => a.extend_from_slice(b),
            (Float4(a), Float4(b)) => a.extend_from_slice(b),
            (Float8(a), Float8(b)) => a.extend_from_slice(b),
            (Oid(a), Oid(b)) => a.extend_from_slice(b),
            (Datum(a), Datum(b)) => a.extend_from_slice(b),
            (Text(a), Text(b)) | (Bytes(a), Bytes(b)) => a.append(b),
            (Text(a), Coded(b)) if b.is_text() => b.decode_into(a),
            (Bytes(a), Coded(b)) if !b.is_text() => b.decode_into(a),
            (Coded(a), Coded(b)) => return a.append(b),
            (Numeric(a), Numeric(b)) if a.scale == b.scale => a.values.extend_from_slice(&b.values),
            _ => return false,
        }
        true
    }

    /// The rows at `indices`, in that order.
    pub fn take(&self, indices: &[u32]) -> Column {
        fn pick<T: Copy>(v: &[T], indices: &[u32]) -> Vec<T> {
            indices.iter().map(|&i| v[i as usize]).collect()
        }
        fn pick_bytes(v: &ByteStrings, indices: &[u32]) -> ByteStrings {
            let mut out = ByteStrings { ends: Vec::with_capacity(indices.len()), bytes: Vec::new() };
            out.push_parts(&v.bytes, indices.iter().map(|&i| v.range(i as usize)));
            out
        }
        let data = match &self.data {
            ColumnData::Bool(v) => ColumnData::Bool(pick(v, indices)),
            ColumnData::Int2(v) => ColumnData::Int2(pick(v, indices)),
            ColumnData::Int4(v) => ColumnData::Int4(pick(v, indices)),
            ColumnData::Int8(v) => ColumnData::Int8(pick(v, indices)),
            ColumnData::Float4(v) => ColumnData::Float4(pick(v, indices)),
            ColumnData::Float8(v) => ColumnData::Float8(pick(v, indices)),
            ColumnData::Oid(v) => ColumnData::Oid(pick(v, indices)),
            ColumnData::Text(v) => ColumnData::Text(pick_bytes(v, indices)),
            ColumnData::Bytes(v) => ColumnData::Bytes(pick_bytes(v, indices)),
            ColumnData::Coded(v) => ColumnData::Coded(v.take(indices)),
            ColumnData::Numeric(v) => ColumnData::Numeric(Mantissas { values: pick(&v.values, indices), scale: v.scale }),
            ColumnData::Datum(v) => ColumnData::Datum(indices.iter().map(|&i| v[i as usize].clone()).collect()),
            ColumnData::Stored(v) => ColumnData::Stored(indices.iter().map(|&i| v[i as usize].clone()).collect()),
        };
        Column { data, validity: self.validity.as_ref().map(|v| v.take(indices)) }
    }

    /// The rows at `indices`, in that order, and NULL where there is none.
    pub fn take_or_null(&self, indices: &[Option<u32>]) -> Column {
        if self.is_empty() {
            let mut out = self.take(&[]);
            indices.iter().for_each(|_| out.push_null());
            return out;
        }
        let rows: Vec<u32> = indices.iter().map(|i| i.unwrap_or(0)).collect();
        let mut out = self.take(&rows);
        for (row, _) in indices.iter().enumerate().filter(|(_, i)| i.is_none()) {
            match &mut out.data {
                ColumnData::Datum(values) | ColumnData::Stored(values) => values[row] = Datum::Null,
                _ => {}
            }
            out.validity.get_or_insert_with(|| Bitmap::filled(indices.len(), true)).set(row, false);
        }
        out
    }
}

/// `Column::gather` for columns that are held differently.
fn gather_values<C: Borrow<Column>>(columns: &[C], picks: &[(u32, u32)]) -> Column {
    let Some(first) = columns.first() else { return Column::new(ColumnData::Bool(Vec::new())) };
    let mut out = first.borrow().take(&[]);
    picks.iter().for_each(|&(c, r)| out.push(columns[c as usize].borrow().get(r as usize)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathering_takes_rows_of_any_source() {
        let mut nulls = Column::with_capacity(Kind::Int4, 2);
        nulls.push(Datum::Int4(7));
        nulls.push_null();
        let plain = Column::new(ColumnData::Int4(vec![1, 2, 3]));
        let out = Column::gather(&[&plain, &nulls], &[(1, 1), (0, 2), (1, 0), (0, 0)]);
        let shown: Vec<String> = (0..4).map(|i| format!("{:?}", out.get(i))).collect();
        assert_eq!(shown, ["Null", "Int4(3)", "Int4(7)", "Int4(1)"]);
        assert!(plain.memory_bytes() >= 12 && out.len() == 4);
        let mut text = Column::with_capacity(Kind::Text, 1);
        text.push(Datum::text("melba"));
        assert_eq!(Column::gather(&[&text], &[(0, 0), (0, 0)]).get(1).as_str(), "melba");
    }

    #[test]
    fn appended_rows_keep_their_values_and_nulls() {
        let value = |kind, i: usize| match kind {
            _ if i % 3 == 2 => Datum::Null,
            Kind::Text => Datum::text(format!("text {i}")),
            Kind::Int4 => Datum::Int4(i as i32),
            // Of two scales, so that they are held in two ways.
            Kind::Numeric => Datum::Numeric(crate::Numeric::parse(if i < 70 { "1.5" } else { "0.25" }).expect("a number")),
            _ => Datum::Interval(crate::Interval { months: i as i32, days: 2, micros: 3 }),
        };
        for kind in [Kind::Interval, Kind::Text, Kind::Int4, Kind::Numeric] {
            for lengths in [[0, 5, 65], [3, 1, 1], [64, 64, 3], [1, 1, 70]] {
                let (mut all, mut expected) = (Column::with_capacity(kind, 0), Vec::new());
                for length in lengths {
                    let mut part = Column::with_capacity(kind, length);
                    let from = expected.len();
                    (from..from + length).for_each(|i| part.push(value(kind, i)));
                    all.append(&part);
                    expected.extend((from..from + length).map(|i| format!("{:?}", value(kind, i))));
                }
                all.push(Datum::Null);
                expected.push("Null".to_string());
                let found: Vec<String> = (0..all.len()).map(|i| format!("{:?}", all.get(i))).collect();
                assert_eq!(found, expected, "{kind:?} {lengths:?}");
            }
        }
    }

    #[test]
    fn nulls_stay_nulls_beside_those_of_rows_without_a_source() {
        let values = |kind| match kind {
            Kind::Text => Datum::text("a"),
            Kind::Int4 => Datum::Int4(7),
            _ => Datum::Interval(crate::Interval { months: 1, days: 2, micros: 3 }),
        };
        for kind in [Kind::Interval, Kind::Text, Kind::Int4] {
            for empty in [true, false] {
                let mut column = Column::with_capacity(kind, 2);
                if !empty {
                    column.push(values(kind));
                    column.push_null();
                }
                let picks: &[Option<u32>] = if empty { &[None, None] } else { &[Some(1), None, Some(0)] };
                let out = column.take_or_null(picks);
                for (i, pick) in picks.iter().enumerate() {
                    let null = *pick != Some(0);
                    assert_eq!((out.is_null(i), matches!(out.get(i), Datum::Null)), (null, null), "{kind:?} {i}");
                }
                // Moved on, they are nulls as well.
                assert!(Column::gather(&[&out], &[(0, 0)]).is_null(0) && out.take(&[0, 1]).is_null(1));
            }
        }
    }

    #[test]
    fn truncated_values_do_not_return() {
        let mut text = Column::with_capacity(Kind::Text, 0);
        (0..130).for_each(|i| if i % 3 == 0 { text.push_null() } else { text.push(Datum::text(i.to_string())) });
        for rows in [130, 129, 128, 64, 1, 0] {
            text.truncate(rows);
            text.push(Datum::text("x"));
            assert_eq!((text.len(), text.get(rows).as_str()), (rows + 1, "x"));
            assert!((0..rows).all(|i| text.is_null(i) == (i % 3 == 0)));
        }
        let ColumnData::Text(strings) = text.data else { panic!("a column of text") };
        let mut more = ByteStrings::default();
        more.push(b"ab");
        more.extend(&strings, 0, 1);
        more.push(b"");
        let all = more.clone();
        more.extend(&all, 1, 3);
        let shown: Vec<_> = (0..5).map(|i| String::from_utf8_lossy(more.get(i))).collect();
        assert_eq!(shown, ["ab", "x", "", "x", ""]);
    }
}

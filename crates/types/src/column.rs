//! Vectors of values: what flows between operators, and what scans fill.
//!
//! Why not Arrow arrays: operators serve one-row statements too, where building and dropping an `ArrayRef` a column
//! costs more than the work; and PostgreSQL's numeric, interval, array and composite values have no Arrow layout.

use std::ops::Range;
use std::sync::Arc;

use crate::datum::Datum;
use crate::oids::Kind;

/// Room made at once for strings not seen yet: the first one may be longer than all others.
const RESERVED_BYTES_MAX: usize = 256 << 10;

/// One bit a row; for validity, 1 means "not null".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    pub fn filled(len: usize, value: bool) -> Bitmap {
        let word = if value { u64::MAX } else { 0 };
        Bitmap { words: vec![word; len.div_ceil(64)], len }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn get(&self, i: usize) -> bool {
        debug_assert!(i < self.len);
        self.words[i >> 6] >> (i & 63) & 1 != 0
    }

    #[inline]
    pub fn set(&mut self, i: usize, value: bool) {
        debug_assert!(i < self.len);
        let bit = 1u64 << (i & 63);
        if value {
            self.words[i >> 6] |= bit;
        } else {
            self.words[i >> 6] &= !bit;
        }
    }

    pub fn push(&mut self, value: bool) {
        if self.len & 63 == 0 {
            self.words.push(0);
        }
        self.len += 1;
        // The word may hold stale ones from `filled`, so both values are written.
        self.set(self.len - 1, value);
    }

    /// Appends `n` equal bits.
    pub fn extend_filled(&mut self, n: usize, value: bool) {
        let word = if value { u64::MAX } else { 0 };
        self.extend_words(std::iter::repeat_n(word, n.div_ceil(64)), 0, n);
    }

    /// Appends `n` bits: those of `words`, lowest first, from bit `skip` (under 64) of the first one.
    pub fn extend_words(&mut self, words: impl Iterator<Item = u64>, skip: usize, n: usize) {
        let mut left = n;
        let mut skip = skip;
        for word in words {
            let bits = (64 - skip).min(left);
            if bits == 0 {
                break;
            }
            let word = (word >> skip) & if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            let shift = self.len & 63;
            if shift == 0 {
                self.words.push(word);
            } else {
                let last = self.len >> 6;
                self.words[last] = self.words[last] & ((1 << shift) - 1) | word << shift;
                if shift + bits > 64 {
                    self.words.push(word >> (64 - shift));
                }
            }
            self.len += bits;
            left -= bits;
            skip = 0;
        }
        assert_eq!(left, 0, "too few words for {n} bits");
    }

    /// The bits, 64 a word, lowest first; those beyond `len` are arbitrary.
    /// Forgets the bits from `len` on.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        self.words.truncate(len.div_ceil(64));
        if let Some(last) = self.words.last_mut()
            && !len.is_multiple_of(64)
        {
            *last &= u64::MAX >> (64 - len % 64);
        }
        self.len = len;
    }

    pub fn words(&self) -> &[u64] {
        &self.words
    }

    pub fn count_ones(&self) -> usize {
        let full = self.len / 64;
        let mut n: usize = self.words[..full].iter().map(|w| w.count_ones() as usize).sum();
        if !self.len.is_multiple_of(64) {
            n += (self.words[full] & ((1u64 << (self.len % 64)) - 1)).count_ones() as usize;
        }
        n
    }
}

/// Varying-width values end to end; value `i` is `bytes[ends[i-1]..ends[i]]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByteStrings {
    pub ends: Vec<u32>,
    pub bytes: Vec<u8>,
}

impl ByteStrings {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    #[inline]
    pub fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.bytes[start..self.ends[i] as usize]
    }

    /// Appends all of another.
    pub fn append(&mut self, other: &ByteStrings) {
        let base = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| end + base));
    }

    #[inline]
    pub fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len() as u32);
    }

    /// How many bytes each string of a range has.
    pub fn lengths(&self, range: Range<usize>) -> impl Iterator<Item = usize> {
        let start = if range.start == 0 { 0 } else { self.ends[range.start - 1] };
        self.ends[range].iter().scan(start, |start, &end| Some((end - std::mem::replace(start, end)) as usize))
    }

    /// Appends parts of `source` as values; how many. Short ones are copied without a call, sixteen bytes whatever their length.
    pub fn push_parts(&mut self, source: &[u8], parts: impl Iterator<Item = Range<usize>>) -> usize {
        const WIDE: usize = 16;
        const GROWTH_BYTES: usize = 4096;
        let (mut at, before) = (self.bytes.len(), self.ends.len());
        for Range { start, end } in parts {
            let length = end - start;
            if self.bytes.len() < at + length + WIDE {
                self.bytes.resize(at + length + WIDE + GROWTH_BYTES, 0);
            }
            match source.get(start..start + WIDE) {
                Some(wide) if length <= WIDE => self.bytes[at..at + WIDE].copy_from_slice(wide),
                _ => self.bytes[at..at + length].copy_from_slice(&source[start..end]),
            }
            at += length;
            self.ends.push(at as u32);
        }
        self.bytes.truncate(at);
        self.ends.len() - before
    }

    /// Makes room for so many more strings of about the length of the first one.
    pub fn reserve_like_first(&mut self, rows: usize) {
        let first = self.ends.first().map_or(0, |end| *end as usize);
        self.bytes.reserve((first + first / 8).saturating_mul(rows).min(RESERVED_BYTES_MAX));
    }

    /// Appends rows `from..to` of others.
    pub fn extend(&mut self, others: &ByteStrings, from: usize, to: usize) {
        let start = if from == 0 { 0 } else { others.ends[from - 1] };
        let end = if to == 0 { 0 } else { others.ends[to - 1] };
        let base = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&others.bytes[start as usize..end as usize]);
        self.ends.extend(others.ends[from..to].iter().map(|e| e - start + base));
    }

    pub fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.bytes.truncate(self.ends.last().map_or(0, |end| *end as usize));
    }
}

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

/// Text as a datum holds it. Most is valid, and checking that first is a fraction of the work of replacing what is not.
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
            ColumnData::Datum(v) | ColumnData::Stored(v) => v[i].clone(),
        }
    }

    /// Whether some values may be in stored form.
    pub fn is_stored(&self) -> bool {
        matches!(self.data, ColumnData::Stored(_))
    }

    /// Makes room for values in stored form.
    fn hold_stored(&mut self) {
        if !self.is_stored() {
            let values = (0..self.len()).map(|i| self.get(i)).collect();
            self.data = ColumnData::Stored(values);
        }
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
        match &mut self.data {
            ColumnData::Bool(v) => v.push(false),
            ColumnData::Int2(v) => v.push(0),
            ColumnData::Int4(v) => v.push(0),
            ColumnData::Int8(v) => v.push(0),
            ColumnData::Float4(v) => v.push(0.0),
            ColumnData::Float8(v) => v.push(0.0),
            ColumnData::Oid(v) => v.push(0),
            ColumnData::Text(v) | ColumnData::Bytes(v) => v.push(&[]),
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

    /// Makes room for so many strings about as long as the last one.
    pub fn reserve_like_last(&mut self, rows: usize) {
        if let ColumnData::Text(v) | ColumnData::Bytes(v) = &mut self.data
            && let Some(last) = v.len().checked_sub(1)
        {
            let bytes = v.get(last).len() * rows;
            v.bytes.reserve(bytes);
        }
    }

    /// Memory in use, about: what is allocated for the values and what they point to.
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
            ColumnData::Datum(v) | ColumnData::Stored(v) => {
                v.capacity() * size_of::<Datum>() + v.iter().map(Datum::heap_bytes).sum::<usize>()
            }
        };
        size_of::<Column>() + values + self.validity.as_ref().map_or(0, |v| v.words.capacity() * 8)
    }

    /// Rows of several columns of one kind: `picks` are (which column, which row of it).
    pub fn gather(columns: &[&Column], picks: &[(u32, u32)]) -> Column {
        macro_rules! pick {
            ($variant:ident) => {{
                let sources: Option<Vec<_>> = columns
                    .iter()
                    .map(|c| match &c.data {
                        ColumnData::$variant(v) => Some(v),
                        _ => None,
                    })
                    .collect();
                match sources {
                    Some(v) => ColumnData::$variant(picks.iter().map(|&(c, r)| v[c as usize][r as usize].clone()).collect()),
                    None => return gather_values(columns, picks),
                }
            }};
            (strings $variant:ident) => {{
                let mut out = ByteStrings { ends: Vec::with_capacity(picks.len()), bytes: Vec::new() };
                for (i, &(c, r)) in picks.iter().enumerate() {
                    if i == 1 {
                        out.reserve_like_first(picks.len() - 1);
                    }
                    let ColumnData::$variant(v) = &columns[c as usize].data else { return gather_values(columns, picks) };
                    out.push(v.get(r as usize));
                }
                ColumnData::$variant(out)
            }};
        }
        let Some(first) = columns.first() else { return Column::new(ColumnData::Bool(Vec::new())) };
        let data = match &first.data {
            ColumnData::Bool(_) => pick!(Bool),
            ColumnData::Int2(_) => pick!(Int2),
            ColumnData::Int4(_) => pick!(Int4),
            ColumnData::Int8(_) => pick!(Int8),
            ColumnData::Float4(_) => pick!(Float4),
            ColumnData::Float8(_) => pick!(Float8),
            ColumnData::Oid(_) => pick!(Oid),
            ColumnData::Text(_) => pick!(strings Text),
            ColumnData::Bytes(_) => pick!(strings Bytes),
            ColumnData::Datum(_) => pick!(Datum),
            ColumnData::Stored(_) => return gather_values(columns, picks),
        };
        let mut validity = None;
        if columns.iter().any(|c| c.validity.is_some()) {
            let mut bits = Bitmap::filled(picks.len(), true);
            for (to, &(c, r)) in picks.iter().enumerate() {
                if columns[c as usize].is_null(r as usize) {
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
            bits.extend_words(v.words[rows.start >> 6..].iter().copied(), rows.start & 63, n);
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
            ColumnData::Datum(v) => ColumnData::Datum(v[rows].to_vec()),
            ColumnData::Stored(v) => ColumnData::Stored(v[rows].to_vec()),
        };
        Column { data, validity }
    }

    /// Appends the rows of another column of the same kind.
    pub fn append(&mut self, from: &Column) {
        use ColumnData::*;
        if self.validity.is_none() && from.validity.is_none() {
            match (&mut self.data, &from.data) {
                (Bool(a), Bool(b)) => return a.extend_from_slice(b),
                (Int2(a), Int2(b)) => return a.extend_from_slice(b),
                (Int4(a), Int4(b)) => return a.extend_from_slice(b),
                (Int8(a), Int8(b)) => return a.extend_from_slice(b),
                (Float4(a), Float4(b)) => return a.extend_from_slice(b),
                (Float8(a), Float8(b)) => return a.extend_from_slice(b),
                (Oid(a), Oid(b)) => return a.extend_from_slice(b),
                (Datum(a), Datum(b)) => return a.extend_from_slice(b),
                (Text(a), Text(b)) | (Bytes(a), Bytes(b)) => return a.append(b),
                _ => {}
            }
        }
        for i in 0..from.len() {
            self.push(from.get(i));
        }
    }

    /// The rows at `indices`, in that order.
    pub fn take(&self, indices: &[u32]) -> Column {
        fn pick<T: Copy>(v: &[T], indices: &[u32]) -> Vec<T> {
            indices.iter().map(|&i| v[i as usize]).collect()
        }
        fn pick_bytes(v: &ByteStrings, indices: &[u32]) -> ByteStrings {
            let mut out = ByteStrings { ends: Vec::with_capacity(indices.len()), bytes: Vec::new() };
            for &i in indices {
                out.push(v.get(i as usize));
            }
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
            ColumnData::Datum(v) => ColumnData::Datum(indices.iter().map(|&i| v[i as usize].clone()).collect()),
            ColumnData::Stored(v) => ColumnData::Stored(indices.iter().map(|&i| v[i as usize].clone()).collect()),
        };
        let validity = self.validity.as_ref().map(|v| {
            let mut out = Bitmap::filled(indices.len(), true);
            for (to, &from) in indices.iter().enumerate() {
                if !v.get(from as usize) {
                    out.set(to, false);
                }
            }
            out
        });
        Column { data, validity }
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
fn gather_values(columns: &[&Column], picks: &[(u32, u32)]) -> Column {
    let mut out = columns[0].take(&[]);
    picks.iter().for_each(|&(c, r)| out.push(columns[c as usize].get(r as usize)));
    out
}

/// Rows of a batch when nothing limits them.
pub const BATCH_ROWS: usize = 2048;

/// Columns of equal length. `rows` is explicit because a batch may have no columns.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub columns: Vec<Column>,
    pub rows: usize,
}

impl Batch {
    pub fn new(columns: Vec<Column>, rows: usize) -> Batch {
        debug_assert!(columns.iter().all(|c| c.len() == rows));
        Batch { columns, rows }
    }

    /// Appends the rows of another batch with columns of the same kinds.
    pub fn append(&mut self, from: Batch) {
        if self.rows == 0 {
            *self = from;
            return;
        }
        for (a, b) in self.columns.iter_mut().zip(&from.columns) {
            a.append(b);
        }
        self.rows += from.rows;
    }

    pub fn take(&self, indices: &[u32]) -> Batch {
        Batch { columns: self.columns.iter().map(|c| c.take(indices)).collect(), rows: indices.len() }
    }

    /// The rows of a range. Columns that are not `needed`, when that is given, stay empty; nothing may look at them.
    pub fn slice(&self, rows: Range<usize>, needed: Option<&[usize]>) -> Batch {
        let count = rows.len();
        let column = |(i, column): (usize, &Column)| match needed {
            Some(needed) if !needed.contains(&i) => Column::new(ColumnData::Bool(Vec::new())),
            _ => column.slice(rows.clone()),
        };
        Batch { columns: self.columns.iter().enumerate().map(column).collect(), rows: count }
    }

    /// Whether some column may hold values in stored form.
    pub fn is_stored(&self) -> bool {
        self.columns.iter().any(Column::is_stored)
    }

    /// Rows of several batches of equal columns: `picks` are (which batch, which row of it).
    pub fn gather(batches: &[&Batch], picks: &[(u32, u32)]) -> Batch {
        let width = batches.first().map_or(0, |b| b.columns.len());
        let column = |i: usize| {
            let columns: Vec<&Column> = batches.iter().map(|b| &b.columns[i]).collect();
            Column::gather(&columns, picks)
        };
        Batch { columns: (0..width).map(column).collect(), rows: picks.len() }
    }

    /// Memory in use, about.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Batch>() + self.columns.iter().map(Column::memory_bytes).sum::<usize>()
    }

    /// Bytes of all strings.
    pub fn string_bytes(&self) -> usize {
        let bytes = |column: &Column| match &column.data {
            ColumnData::Text(v) | ColumnData::Bytes(v) => v.bytes.len(),
            _ => 0,
        };
        self.columns.iter().map(bytes).sum()
    }

    /// Row `i` as datums.
    pub fn row(&self, i: usize) -> Vec<Datum> {
        self.columns.iter().map(|c| c.get(i)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_pushed_whatever_their_length() {
        let source: Vec<u8> = (0..100).collect();
        let parts = [0..0, 0..16, 1..18, 5..6, 90..100, 99..100, 100..100, 0..100];
        let (mut strings, mut expected) = (ByteStrings::default(), ByteStrings::default());
        for _ in 0..100 {
            assert_eq!(strings.push_parts(&source, parts.iter().cloned()), parts.len());
            parts.iter().for_each(|part| expected.push(&source[part.clone()]));
        }
        assert!(strings == expected);
    }

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
    fn what_was_cut_off_is_forgotten() {
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

    #[test]
    fn bitmaps_grow_by_words_at_any_offset() {
        let words = [0xDEAD_BEEF_0123_4567, 0x0F0F_F0F0_AAAA_5555, 0x8000_0000_0000_0001];
        let bit = |i: usize| words[i >> 6] >> (i & 63) & 1 != 0;
        for before in [0, 1, 63, 64, 65] {
            for (skip, n) in [(0, 192), (5, 100), (63, 1), (63, 129), (0, 64), (17, 0)] {
                let mut bitmap = Bitmap::filled(before, true);
                bitmap.extend_words(words.iter().copied(), skip, n);
                bitmap.extend_filled(70, true);
                let expected = (0..before).map(|_| true).chain((skip..skip + n).map(bit)).chain((0..70).map(|_| true));
                assert!((0..bitmap.len()).map(|i| bitmap.get(i)).eq(expected), "before {before} skip {skip} n {n}");
            }
        }
    }
}

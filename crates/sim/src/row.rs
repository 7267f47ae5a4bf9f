//! Rows as the simulation represents them, and as the engine holds them.
//!
//! Every table has a number (unique), a text, and further columns that ALTER TABLE added; a row may be older than some of those.
//! A text may name frames in the table's toast tree, as a large value does: their content follows from their numbers.

use std::ops::Range;

use melba_toast::Method;
use melba_types::row::RowLayout;
use melba_types::{Batch, Column, Datum, Kind, RowId, TreeId};

/// A column's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Null,
    Number(i64),
    Text(String),
}

/// The values that a row was written with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row(pub Vec<Value>);

/// The key of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKey {
    /// Unique.
    Number,
    Text,
}

pub const NUMBER: usize = 0;
pub const TEXT: usize = 1;
/// Columns that every table is created with.
pub const FIRST_COLUMNS: usize = 2;

pub fn kind(column: usize) -> Kind {
    match column {
        NUMBER => Kind::Int8,
        TEXT => Kind::Text,
        _ => Kind::Int4,
    }
}

pub fn kinds(columns: usize) -> Vec<Kind> {
    (0..columns).map(kind).collect()
}

/// The value of a later added column in older rows.
fn missing_value(column: usize) -> Value {
    if column < FIRST_COLUMNS { Value::Null } else { Value::Number(1000 + column as i64) }
}

/// The same for the engine, by column.
pub fn missing(columns: usize) -> Vec<Datum> {
    (0..columns).map(|c| datum(c, &missing_value(c))).collect()
}

fn datum(column: usize, value: &Value) -> Datum {
    match value {
        Value::Null => Datum::Null,
        Value::Text(text) => Datum::text(text.as_str()),
        Value::Number(n) if column == NUMBER => Datum::Int8(*n),
        Value::Number(n) => Datum::Int4(*n as i32),
    }
}

/// The engine's value.
pub fn value(datum: &Datum) -> Value {
    match datum {
        Datum::Int8(n) => Value::Number(*n),
        Datum::Int4(n) => Value::Number(i64::from(*n)),
        Datum::Text(text) => Value::Text(text.to_string()),
        _ => Value::Null,
    }
}

/// The content of a frame. Some are of a dense column and share a template.
pub fn frame(tree: TreeId, id: RowId) -> Vec<u8> {
    if id.0.wrapping_add(tree.0) % 3 == 1 {
        let own = id.0.wrapping_mul(id.0 * 41 + tree.0) % 60;
        let page: Vec<u8> = (0..300 + own).map(|i| if i < 280 { ((i * i) >> 4) as u8 } else { (i * id.0) as u8 }).collect();
        let mut waiting = Vec::new();
        melba_toast::frame::encode(Some(Method::Dense), 0, &page, &mut waiting);
        return waiting;
    }
    let bytes = id.0.wrapping_mul(id.0 * 37 + tree.0) % 900;
    (0..bytes).map(|i| (i.wrapping_mul(id.0 + 1) >> 3) as u8).collect()
}

impl Row {
    /// Lets the text be in frames, once these are written.
    pub fn want_frames(&mut self) {
        self.0[TEXT] = Value::Text("@".into());
    }

    pub fn wants_frames(&self) -> bool {
        self.0[TEXT] == Value::Text("@".into())
    }

    pub fn set_frames(&mut self, frames: &Range<RowId>) {
        self.0[TEXT] = Value::Text(format!("@{}-{}", frames.start, frames.end));
    }

    /// The frames that the text is in.
    pub fn frames(&self) -> Option<Range<RowId>> {
        let Value::Text(text) = &self.0[TEXT] else { return None };
        let (start, end) = text.strip_prefix('@')?.split_once('-')?;
        Some(RowId(start.parse().ok()?)..RowId(end.parse().ok()?))
    }

    pub fn number(&self) -> i64 {
        match self.0[NUMBER] {
            Value::Number(n) => n,
            _ => 0,
        }
    }

    /// A column's value, which may be newer than the row.
    pub fn get(&self, column: usize) -> Value {
        self.0.get(column).cloned().unwrap_or_else(|| missing_value(column))
    }

    /// The row in the engine's format, with all columns of the layout.
    pub fn encode(&self, layout: &RowLayout) -> Vec<u8> {
        let values: Vec<Datum> = (0..layout.kinds().len()).map(|c| datum(c, &self.get(c))).collect();
        layout.encode_row(&values)
    }

    /// A row of the engine's, with the columns that it was written with.
    pub fn decode(layout: &RowLayout, bytes: &[u8]) -> Option<Row> {
        let view = layout.view(bytes)?;
        Some(Row((0..view.columns()).map(|c| value(&view.datum(c, &Datum::Null))).collect()))
    }

    /// The row's key in an index.
    pub fn key(&self, index: IndexKey) -> Vec<u8> {
        match (index, &self.0[TEXT]) {
            (IndexKey::Number, _) => number_key(self.number()),
            (IndexKey::Text, Value::Text(text)) => text_key(text),
            (IndexKey::Text, _) => vec![2],
        }
    }
}

pub fn number_key(number: i64) -> Vec<u8> {
    (number as u64 ^ 1 << 63).to_be_bytes().to_vec()
}

pub fn text_key(text: &str) -> Vec<u8> {
    [&[1], text.as_bytes(), &[0]].concat()
}

/// Rows as a batch of columns.
pub fn batch(rows: &[Row], columns: usize) -> Batch {
    let column = |c: usize| {
        let mut column = Column::with_capacity(kind(c), rows.len());
        rows.iter().for_each(|row| column.push(datum(c, &row.get(c))));
        column
    };
    Batch::new((0..columns).map(column).collect(), rows.len())
}

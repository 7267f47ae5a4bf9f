//! A filter from a sort that keeps only its first rows, for the scan below: the first key of the last row that it would still return.
//! Rows behind it are useless, so the scan skips them before it reads their other columns, and row groups by their bounds.

use std::cmp::Ordering;

use melba_engine::{ZoneOp, ZonePredicate};
use melba_expression::key::KeyPart;
use melba_types::{ByteStrings, Column, ColumnData, Datum};
use parking_lot::Mutex;

/// Shared by the members of a team: a key that one of them has found counts for all.
pub(crate) struct TopFilter {
    part: KeyPart,
    /// A value and the key that it makes; no row that is wanted has one behind it.
    last: Mutex<Option<(Vec<u8>, Datum)>>,
}

impl TopFilter {
    /// For a sort whose first key has this part and whose keys give back its values.
    pub fn new(part: KeyPart) -> TopFilter {
        TopFilter { part, last: Mutex::default() }
    }

    /// Notes the key of a row behind which none is wanted.
    pub fn note(&self, key: &[u8]) {
        let mut last = self.last.lock();
        if last.as_ref().is_some_and(|(known, _)| key.starts_with(known) || known[..] <= *key) {
            return;
        }
        if let Some((value, rest)) = self.part.decode(key) {
            *last = Some((key[..key.len() - rest.len()].to_vec(), value));
        }
    }

    /// The value behind which no row is needed; NULL while none is known.
    fn value(&self) -> Option<Datum> {
        self.last.lock().as_ref().map(|(_, value)| value.clone()).filter(|value| !value.is_null())
    }

    /// Its limits for the bounds of a column.
    pub fn zone(&self, column: usize) -> Option<ZonePredicate> {
        let op = if self.part.descending() { ZoneOp::GreaterOrEqual } else { ZoneOp::LessOrEqual };
        Some(ZonePredicate { column, op, values: vec![self.value()?], or_null: true })
    }

    /// The rows of a column that may be wanted, NULLs among them; `None`: all.
    pub fn passing(&self, column: &Column) -> Option<Vec<u32>> {
        let value = self.value()?;
        let behind = if self.part.descending() { Ordering::Less } else { Ordering::Greater };
        let mut rows = match (&column.data, &value) {
            (ColumnData::Int2(values), Datum::Int2(last)) => rows(values.len(), |i| values[i].cmp(last) != behind),
            (ColumnData::Int4(values), Datum::Int4(last)) => rows(values.len(), |i| values[i].cmp(last) != behind),
            (ColumnData::Int8(values), Datum::Int8(last)) => rows(values.len(), |i| values[i].cmp(last) != behind),
            (ColumnData::Text(values), Datum::Text(last)) => strings(values, last.as_bytes(), behind),
            (ColumnData::Bytes(values), Datum::Bytes(last)) => strings(values, last, behind),
            _ => return None,
        };
        if column.validity.is_some() {
            rows.extend((0..column.len() as u32).filter(|i| column.is_null(*i as usize)));
            rows.sort_unstable();
            rows.dedup();
        }
        Some(rows)
    }
}

fn strings(values: &ByteStrings, last: &[u8], behind: Ordering) -> Vec<u32> {
    rows(values.len(), |i| values.get(i).cmp(last) != behind)
}

fn rows(count: usize, passes: impl Fn(usize) -> bool) -> Vec<u32> {
    (0..count as u32).filter(|i| passes(*i as usize)).collect()
}

#[cfg(test)]
mod tests {
    use melba_catalog::Catalog;
    use melba_types::{Bitmap, oids};

    use super::*;

    fn filter(ty: melba_types::Oid, descending: bool) -> (TopFilter, impl Fn(&Datum) -> Vec<u8>) {
        let part = KeyPart::new(&Catalog::default(), (ty, melba_types::Oid::INVALID), descending, descending);
        let key = part.clone();
        (TopFilter::new(part), move |value: &Datum| {
            let mut out = Vec::new();
            key.encode(value, &mut out);
            out
        })
    }

    #[test]
    fn rows_behind_the_last_wanted_value_are_left_out() {
        let mut column = Column::new(ColumnData::Int4(vec![5, 9, 7, 8]));
        let (ascending, key) = filter(oids::INT4, false);
        assert_eq!(ascending.passing(&column), None, "nothing is known yet");
        ascending.note(&key(&Datum::Int4(8)));
        ascending.note(&key(&Datum::Int4(9)));
        assert_eq!(ascending.passing(&column), Some(vec![0, 2, 3]));
        ascending.note(&[key(&Datum::Int4(7)), b"second key".to_vec()].concat());
        assert_eq!(ascending.passing(&column), Some(vec![0, 2]));
        let mut nulls = Bitmap::filled(4, true);
        nulls.set(1, false);
        column.validity = Some(nulls);
        assert_eq!(ascending.passing(&column), Some(vec![0, 1, 2]));
        let (descending, key) = filter(oids::TEXT, true);
        let mut column = Column::with_capacity(melba_types::Kind::Text, 4);
        ["a", "b", "ba", ""].iter().for_each(|value| column.push(Datum::text(*value)));
        descending.note(&key(&Datum::Null));
        assert_eq!(descending.passing(&column), None, "NULL is first, so all others are behind it");
        let (descending, key) = filter(oids::TEXT, true);
        descending.note(&key(&Datum::text("b")));
        assert_eq!(descending.passing(&column), Some(vec![1, 2]));
        assert_eq!(descending.zone(3).map(|zone| (zone.column, zone.op)), Some((3, ZoneOp::GreaterOrEqual)));
    }
}

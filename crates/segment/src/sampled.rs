//! What a sample of rows says of all of them, in the form of chunks' statistics: for rows of the row store, which has none.

use std::ops::Range;

use melba_types::{Column, Datum, Kind, codec};

use crate::hash::hash_bytes;
use crate::statistics::{Bounds, Statistics, datum_bytes, datum_key};

/// Fewer values of a sample say too little of a chunk.
const VALUES_MIN: usize = 16;

/// A value by its place in the order of bounds, or by its bytes where there is no such order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OrderKey {
    Word(i64),
    Bytes(Vec<u8>),
    Hash(u64),
}

/// The statistics of `all` rows, of which `rows` of `values` are known: as those of at most `parts` chunks with about as many rows each,
/// whose values lie beside each other. Each comes with its rows.
pub fn chunks_of_sample(kind: Kind, values: &Column, rows: Range<usize>, all: u64, parts: usize) -> Vec<(u64, Statistics)> {
    if rows.is_empty() {
        return Vec::new();
    }
    let sampled = rows.len();
    let mut keys: Vec<OrderKey> =
        rows.filter(|row| !values.is_null(*row)).map(|row| OrderKey::of(kind, &values.get(row))).collect();
    if keys.is_empty() {
        return vec![(all, Statistics { nulls: all, ..Statistics::default() })];
    }
    keys.sort_unstable();
    let is_first = |at: usize| at == 0 || keys[at] != keys[at - 1];
    let is_last = |at: usize| at + 1 == keys.len() || keys[at] != keys[at + 1];
    let distinct = (0..keys.len()).filter(|at| is_first(*at)).count();
    let once = (0..keys.len()).filter(|at| is_first(*at) && is_last(*at)).count();
    let scale = all as f64 / sampled as f64;
    let nulls = ((sampled - keys.len()) as f64 * scale).round() as u64;
    let in_all = distinct_in_all(keys.len(), distinct, once, all - nulls.min(all));
    let has_order = !matches!(keys[0], OrderKey::Hash(_));
    let parts = if has_order { parts.min(keys.len() / VALUES_MIN).max(1) } else { 1 };
    let chunk = |part: usize| {
        let (from, to) = (part * keys.len() / parts, (part + 1) * keys.len() / parts);
        let first_met = (from..to).filter(|at| is_first(*at)).count();
        // The first one has all rows without a value.
        let nulls = if part == 0 { nulls } else { 0 };
        let statistics = Statistics {
            nulls,
            distinct: (first_met as f64 * in_all / distinct as f64).round() as u64,
            // A chunk ends where the next one begins: a value between them is in one of both.
            bounds: bounds_of(&keys[from], &keys[to.min(keys.len() - 1)]),
        };
        (((to - from) as f64 * scale).round() as u64 + nulls, statistics)
    };
    (0..parts).map(chunk).collect()
}

/// How many distinct values `all` rows have, if `rows` of them, drawn at random, have `distinct`, and `once` of those values occur only once
/// among them: Haas and Stokes' estimator Duj1 ("Estimating the Number of Classes in a Finite Population", 1998), which PostgreSQL's
/// ANALYZE uses.
pub fn distinct_in_all(rows: usize, distinct: usize, once: usize, all: u64) -> f64 {
    if rows == 0 {
        return 0.0;
    }
    let (rows, distinct, once, all) = (rows as f64, distinct as f64, once as f64, all as f64);
    let found = rows * distinct / (rows - once + once * rows / all.max(rows));
    found.clamp(distinct, all.max(distinct))
}

impl OrderKey {
    fn of(kind: Kind, value: &Datum) -> OrderKey {
        if let Some(word) = datum_key(kind, value) {
            return OrderKey::Word(word);
        }
        if let Some(bytes) = datum_bytes(kind, value) {
            return OrderKey::Bytes(bytes.into_owned());
        }
        let mut bytes = Vec::new();
        codec::encode(value, &mut bytes);
        OrderKey::Hash(hash_bytes(&bytes))
    }
}

fn bounds_of(min: &OrderKey, max: &OrderKey) -> Bounds {
    match (min, max) {
        (OrderKey::Word(min), OrderKey::Word(max)) => Bounds::Words { min: *min, max: *max },
        (OrderKey::Bytes(min), OrderKey::Bytes(max)) => Bounds::of_bytes(min, max),
        _ => Bounds::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{ColumnEstimate, Point};

    #[track_caller]
    fn about(found: f64, wanted: f64) {
        assert!((found / wanted - 1.0).abs() < 0.1, "{found}, not about {wanted}");
    }

    /// An estimate from every tenth of some rows of the row store.
    fn sampled(kind: Kind, values: impl Iterator<Item = Datum>) -> ColumnEstimate {
        let values: Vec<Datum> = values.collect();
        let mut column = Column::with_capacity(kind, values.len() / 10);
        values.iter().step_by(10).for_each(|value| column.push(value.clone()));
        let chunks = chunks_of_sample(kind, &column, 0..column.len(), values.len() as u64, 32);
        ColumnEstimate::new(kind, std::iter::empty(), chunks.iter().map(|(rows, statistics)| (*rows, statistics)))
    }

    #[test]
    fn a_sample_of_the_row_store_stands_for_all_its_rows() {
        // A key in no order.
        let key = sampled(Kind::Int4, (0..10_000).map(|i| Datum::Int4(i * 7919 % 10_000)));
        about(key.rows, 10_000.0);
        about(key.distinct, 10_000.0);
        about(key.share_below(Point::Number(2_500.0)).unwrap(), 0.25);
        assert!(!key.excludes(Point::Number(5_003.0)) && !key.is_ordered());
        // Skewed: half of the values are below 100.
        let skewed = sampled(
            Kind::Int4,
            (0..10_000u64).map(|i| {
                let drawn = (crate::hash::hash_word(i) % 10_000) as i32;
                Datum::Int4(if i % 20 < 10 { drawn % 100 } else { drawn })
            }),
        );
        about(skewed.share_below(Point::Number(100.0)).unwrap(), 0.505);
        // Few values, a fifth of the rows without one.
        let few = sampled(
            Kind::Text,
            (0..10_000u64).map(|i| match i / 10 % 5 {
                0 => Datum::Null,
                value => Datum::text(format!("value {value}")),
            }),
        );
        about(few.null_share, 0.2);
        assert_eq!(few.distinct.round(), 4.0);
        let none = sampled(Kind::Text, (0..100).map(|_| Datum::Null));
        assert_eq!((none.null_share, none.distinct), (1.0, 0.0));
    }

    #[test]
    fn a_complete_sample_is_counted_exactly() {
        assert_eq!(distinct_in_all(8, 4, 2, 8), 4.0);
        assert_eq!(distinct_in_all(10, 10, 10, 100), 100.0);
        assert_eq!(distinct_in_all(0, 0, 0, 100), 0.0);
    }
}

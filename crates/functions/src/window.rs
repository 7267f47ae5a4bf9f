//! Window functions: a function sees a whole partition and answers for each of its rows.

use std::ops::Range;

use melba_types::{Datum, Result, err};

use crate::CallContext;

/// A partition, its rows in window order, as a window function sees it.
pub trait Partition {
    fn rows(&self) -> usize;
    /// Argument number `argument` evaluated at a row.
    fn argument(&self, row: usize, argument: usize) -> Result<Datum>;
    /// Number of arguments of the call.
    fn arguments(&self) -> usize;
    /// The rows that are equal to `row` in window order (`row` included).
    fn peers(&self, row: usize) -> Range<usize>;
    /// The rows of the frame of `row`, in order: up to three ranges, for EXCLUDE leaves holes.
    fn frame(&self, row: usize) -> Result<[Range<usize>; 3]>;
}

/// The results for rows 0 to `rows()` of the partition.
pub type WindowFn = fn(&CallContext<'_>, &dyn Partition) -> Result<Vec<Datum>>;

pub const FUNCTIONS: &[(&str, WindowFn)] = &[
    ("window_row_number", |_, p| Ok((1..=p.rows() as i64).map(Datum::Int8).collect())),
    ("window_rank", |_, p| Ok(by_group(p, |start, _, _| Datum::Int8(start as i64 + 1)))),
    ("window_dense_rank", |_, p| Ok(by_group(p, |_, _, group| Datum::Int8(group as i64 + 1)))),
    ("window_percent_rank", |_, p| {
        let others = p.rows().saturating_sub(1).max(1) as f64;
        Ok(by_group(p, |start, _, _| Datum::Float8(start as f64 / others)))
    }),
    ("window_cume_dist", |_, p| {
        let rows = p.rows() as f64;
        Ok(by_group(p, |_, end, _| Datum::Float8(end as f64 / rows)))
    }),
    ("window_ntile", ntile),
    ("window_lag", |_, p| shifted(p, -1, false, false)),
    ("window_lag_with_offset", |_, p| shifted(p, -1, true, false)),
    ("window_lag_with_offset_and_default", |_, p| shifted(p, -1, true, true)),
    ("window_lead", |_, p| shifted(p, 1, false, false)),
    ("window_lead_with_offset", |_, p| shifted(p, 1, true, false)),
    ("window_lead_with_offset_and_default", |_, p| shifted(p, 1, true, true)),
    ("window_first_value", |_, p| framed(p, |p, row| Ok(frame_row(&p.frame(row)?, 0)))),
    ("window_last_value", |_, p| {
        framed(p, |p, row| Ok(p.frame(row)?.into_iter().rev().find(|r| !r.is_empty()).map(|r| r.end - 1)))
    }),
    ("window_nth_value", |_, p| framed(p, nth)),
];

/// A result for each group of peers, from its first row, its end, and its number.
fn by_group(p: &dyn Partition, result: impl Fn(usize, usize, usize) -> Datum) -> Vec<Datum> {
    let mut out = Vec::with_capacity(p.rows());
    let mut group = 0;
    while out.len() < p.rows() {
        let peers = p.peers(out.len());
        let value = result(peers.start, peers.end, group);
        out.resize(peers.end.max(out.len() + 1), value);
        group += 1;
    }
    out
}

fn ntile(_: &CallContext<'_>, p: &dyn Partition) -> Result<Vec<Datum>> {
    let rows = p.rows();
    let buckets = match if rows == 0 { Datum::Null } else { p.argument(0, 0)? } {
        Datum::Null => return Ok(vec![Datum::Null; rows]),
        v => v.as_i32(),
    };
    if buckets <= 0 {
        return Err(err!(INVALID_ARGUMENT_FOR_NTILE, "argument of ntile must be greater than zero"));
    }
    let buckets = buckets as usize;
    let (size, larger) = (rows / buckets, rows % buckets);
    let number = |row: usize| {
        let in_larger = larger * (size + 1);
        if row < in_larger { row / (size + 1) } else { larger + (row - in_larger) / size.max(1) }
    };
    Ok((0..rows).map(|row| Datum::Int4(number(row) as i32 + 1)).collect())
}

/// lag and lead: the first argument some rows away, or the third argument outside the partition.
fn shifted(p: &dyn Partition, direction: i64, with_offset: bool, with_default: bool) -> Result<Vec<Datum>> {
    let value = |row: usize| -> Result<Datum> {
        let offset = match if with_offset { p.argument(row, 1)? } else { Datum::Int4(1) } {
            Datum::Null => return Ok(Datum::Null),
            v => i64::from(v.as_i32()),
        };
        match usize::try_from(row as i64 + direction * offset) {
            Ok(target) if target < p.rows() => p.argument(target, 0),
            _ if with_default => p.argument(row, 2),
            _ => Ok(Datum::Null),
        }
    };
    (0..p.rows()).map(value).collect()
}

/// The first argument at a row that is chosen from the frame.
fn framed(p: &dyn Partition, choose: impl Fn(&dyn Partition, usize) -> Result<Option<usize>>) -> Result<Vec<Datum>> {
    let value = |row| match choose(p, row)? {
        Some(chosen) => p.argument(chosen, 0),
        None => Ok(Datum::Null),
    };
    (0..p.rows()).map(value).collect()
}

/// Row number `n` (from 0) of a frame.
fn frame_row(frame: &[Range<usize>; 3], mut n: usize) -> Option<usize> {
    for range in frame {
        if n < range.len() {
            return Some(range.start + n);
        }
        n -= range.len();
    }
    None
}

fn nth(p: &dyn Partition, row: usize) -> Result<Option<usize>> {
    let n = match p.argument(row, 1)? {
        Datum::Null => return Ok(None),
        v => v.as_i32(),
    };
    if n <= 0 {
        return Err(err!(INVALID_ARGUMENT_FOR_NTH_VALUE, "argument of nth_value must be greater than zero"));
    }
    Ok(frame_row(&p.frame(row)?, n as usize - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FixedSession;

    /// One argument, ordered by it; the frame is everything up to the row's last peer.
    struct Values(Vec<i32>);

    impl Partition for Values {
        fn rows(&self) -> usize {
            self.0.len()
        }
        fn argument(&self, row: usize, argument: usize) -> Result<Datum> {
            Ok(if argument == 0 { Datum::Int4(self.0[row]) } else { Datum::Int4(2) })
        }
        fn arguments(&self) -> usize {
            2
        }
        fn peers(&self, row: usize) -> Range<usize> {
            let v = self.0[row];
            self.0.iter().position(|&x| x == v).unwrap_or(0)..self.0.iter().rposition(|&x| x == v).map_or(0, |i| i + 1)
        }
        fn frame(&self, row: usize) -> Result<[Range<usize>; 3]> {
            Ok([0..self.peers(row).end, 0..0, 0..0])
        }
    }

    fn shown(name: &str, p: &Values) -> String {
        let session = FixedSession::default();
        let f = crate::registry::window(name).expect("registered");
        format!("{:?}", f(&session.call(&[], melba_types::oids::INT8), p).expect("result"))
    }

    #[test]
    fn ranks_count_peers() {
        let p = Values(vec![1, 2, 2, 5]);
        assert_eq!(shown("window_rank", &p), "[Int8(1), Int8(2), Int8(2), Int8(4)]");
        assert_eq!(shown("window_dense_rank", &p), "[Int8(1), Int8(2), Int8(2), Int8(3)]");
        assert_eq!(shown("window_cume_dist", &p), "[Float8(0.25), Float8(0.75), Float8(0.75), Float8(1.0)]");
        assert_eq!(shown("window_lag", &p), "[Null, Int4(1), Int4(2), Int4(2)]");
        assert_eq!(shown("window_lead_with_offset", &p), "[Int4(2), Int4(5), Null, Null]");
        assert_eq!(shown("window_last_value", &p), "[Int4(1), Int4(2), Int4(2), Int4(5)]");
        assert_eq!(shown("window_nth_value", &p), "[Null, Int4(2), Int4(2), Int4(2)]");
        assert_eq!(shown("window_ntile", &Values(vec![2, 3, 4, 5])), "[Int4(1), Int4(1), Int4(2), Int4(2)]");
    }
}

//! Window functions: a function sees a whole partition and returns a value for each of its rows.

use std::ops::Range;

use melba_fmgr::{CallInfo, Partition, Sink, WindowFn};
use melba_types::{Datum, Result, err};

pub const FUNCTIONS: &[(&str, WindowFn)] = &[
    ("window_row_number", |_, p, sink| (1..=p.rows() as i64).try_for_each(|n| sink(Datum::Int8(n)))),
    ("window_rank", |_, p, sink| by_group(p, sink, |start, _, _| Datum::Int8(start as i64 + 1))),
    ("window_dense_rank", |_, p, sink| by_group(p, sink, |_, _, group| Datum::Int8(group as i64 + 1))),
    ("window_percent_rank", |_, p, sink| {
        let others = p.rows().saturating_sub(1).max(1) as f64;
        by_group(p, sink, |start, _, _| Datum::Float8(start as f64 / others))
    }),
    ("window_cume_dist", |_, p, sink| {
        let rows = p.rows() as f64;
        by_group(p, sink, |_, end, _| Datum::Float8(end as f64 / rows))
    }),
    ("window_ntile", ntile),
    ("window_lag", |_, p, sink| shifted(p, sink, -1, false, false)),
    ("window_lag_with_offset", |_, p, sink| shifted(p, sink, -1, true, false)),
    ("window_lag_with_offset_and_default", |_, p, sink| shifted(p, sink, -1, true, true)),
    ("window_lead", |_, p, sink| shifted(p, sink, 1, false, false)),
    ("window_lead_with_offset", |_, p, sink| shifted(p, sink, 1, true, false)),
    ("window_lead_with_offset_and_default", |_, p, sink| shifted(p, sink, 1, true, true)),
    ("window_first_value", |_, p, sink| framed(p, sink, |p, row| Ok(frame_row(&p.frame(row)?, 0)))),
    ("window_last_value", |_, p, sink| {
        framed(p, sink, |p, row| Ok(p.frame(row)?.into_iter().rev().find(|r| !r.is_empty()).map(|r| r.end - 1)))
    }),
    ("window_nth_value", |_, p, sink| framed(p, sink, nth)),
];

/// A result for each group of peers, from its first row, its end, and its number.
fn by_group(p: &dyn Partition, sink: Sink<'_>, result: impl Fn(usize, usize, usize) -> Datum) -> Result<()> {
    let (mut row, mut group) = (0, 0);
    while row < p.rows() {
        let peers = p.peers(row)?;
        let value = result(peers.start, peers.end, group);
        for _ in row..peers.end.max(row + 1) {
            sink(value.clone())?;
        }
        row = peers.end.max(row + 1);
        group += 1;
    }
    Ok(())
}

/// The first argument that is not NULL decides, and its row begins the first bucket.
fn ntile(_: &CallInfo<'_>, p: &dyn Partition, sink: Sink<'_>) -> Result<()> {
    let rows = p.rows();
    let mut first = 0;
    let buckets = loop {
        if first == rows {
            return Ok(());
        }
        match p.argument(first, 0)? {
            Datum::Null => sink(Datum::Null)?,
            v => break v.as_i32(),
        }
        first += 1;
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
    (first..rows).try_for_each(|row| sink(Datum::Int4(number(row - first) as i32 + 1)))
}

/// lag and lead: the first argument some rows away, or the third argument outside the partition.
fn shifted(p: &dyn Partition, sink: Sink<'_>, direction: i64, with_offset: bool, with_default: bool) -> Result<()> {
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
    (0..p.rows()).try_for_each(|row| sink(value(row)?))
}

/// The first argument at a row that is chosen from the frame.
fn framed(p: &dyn Partition, sink: Sink<'_>, choose: impl Fn(&dyn Partition, usize) -> Result<Option<usize>>) -> Result<()> {
    let value = |row| match choose(p, row)? {
        Some(chosen) => p.argument(chosen, 0),
        None => Ok(Datum::Null),
    };
    (0..p.rows()).try_for_each(|row| sink(value(row)?))
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
        fn peers(&self, row: usize) -> Result<Range<usize>> {
            let v = self.0[row];
            Ok(self.0.iter().position(|&x| x == v).unwrap_or(0)..self.0.iter().rposition(|&x| x == v).map_or(0, |i| i + 1))
        }
        fn frame(&self, row: usize) -> Result<[Range<usize>; 3]> {
            Ok([0..self.peers(row)?.end, 0..0, 0..0])
        }
    }

    fn shown(name: &str, p: &Values) -> String {
        let session = crate::testing::session();
        let f = melba_fmgr::registry::window(name).expect("registered");
        let mut out = Vec::new();
        let mut sink = |value| {
            out.push(value);
            Ok(())
        };
        f(&session.call(&[], melba_types::oids::INT8), p, &mut sink).expect("result");
        format!("{out:?}")
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

//! Rows drawn from tables' segments, for the estimates of plans.
//!
//! They are drawn when a plan asks for them and never stored: segments do not change, so rows of one are true as long as it lives.
//! Drawn columns are kept for later plans, up to a limit.
//!
//! Invariants:
//! 1. The same segments give the same rows, in every column.
//! 2. The bytes of the kept columns stay at or below the limit, except for those drawn last.

use std::collections::HashMap;
use std::sync::Arc;

use melba_segment::{Position, TableSegmentReader};
use melba_threads::Mutex;
use melba_types::{Column, TreeId, codec};

/// Rows of a sample; of a table with fewer rows all are taken.
const ROWS: usize = 1024;
/// Rows that lie close to each other: blocks are decoded as a whole.
const CLUSTER_ROWS: usize = 8;
/// Rows between two of a cluster, at most: neighbours often are alike.
const STRIDE: usize = 16;
/// Values that are longer on average are not sampled.
const VALUE_BYTES_MAX: usize = 256;
/// After these rows it is known whether values are too long.
const FIRST_ROWS: usize = 16;

/// Some rows of a table's segments, as columns. Versions that no snapshot sees any more are among them, tombstones are not.
#[derive(Clone, Debug)]
pub struct TableSample {
    pub rows: usize,
    /// These are all rows of the segments.
    pub is_complete: bool,
    /// Rows that follow each other in the sample, this many at a time, lie close to each other in the table.
    pub cluster_rows: usize,
    /// Those that were asked for; `None`: not sampled.
    pub columns: Vec<Option<Arc<SampledColumn>>>,
}

/// A column of a sample.
#[derive(Debug)]
pub struct SampledColumn {
    pub values: Column,
    pub nulls: usize,
    /// Values that occur more than once, the most frequent first: the first row with each, and how many have it.
    pub repeated: Vec<(u32, u32)>,
}

/// The samples of an engine.
pub(crate) struct Samples {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    columns: HashMap<(TreeId, usize), Kept>,
    bytes: usize,
    /// Counts requests.
    now: u64,
}

/// A drawn column.
struct Kept {
    /// The segments that it was drawn from.
    files: Arc<[u64]>,
    column: Option<Arc<SampledColumn>>,
    bytes: usize,
    used: u64,
}

/// The places of a sample's rows.
pub(crate) struct Drawing {
    readers: Vec<Arc<TableSegmentReader>>,
    files: Arc<[u64]>,
    rows: usize,
}

impl Samples {
    pub fn new(limit: usize) -> Samples {
        Samples { limit, state: Mutex::default() }
    }

    pub fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Columns of a sample of the rows in some segments, in the order of `columns`.
    /// Those that `is_cold` says to lie in a store are left out: each block would be a request.
    pub fn columns(
        &self,
        tree: TreeId,
        drawing: &Drawing,
        columns: &[usize],
        is_cold: impl Fn(u64) -> bool,
    ) -> Vec<Option<Arc<SampledColumn>>> {
        let mut places = None;
        let mut column = |column: usize| match self.kept(tree, column, &drawing.files) {
            Some(kept) => kept,
            None => {
                let places = places.get_or_insert_with(|| drawing.places(&is_cold));
                let drawn = drawing.draw(column, places).map(Arc::new);
                self.keep(tree, column, &drawing.files, drawn.clone());
                drawn
            }
        };
        columns.iter().map(|c| column(*c)).collect()
    }

    fn kept(&self, tree: TreeId, column: usize, files: &Arc<[u64]>) -> Option<Option<Arc<SampledColumn>>> {
        let mut state = self.state.lock();
        state.now += 1;
        let now = state.now;
        let kept = state.columns.get_mut(&(tree, column)).filter(|kept| kept.files == *files)?;
        kept.used = now;
        Some(kept.column.clone())
    }

    fn keep(&self, tree: TreeId, column: usize, files: &Arc<[u64]>, drawn: Option<Arc<SampledColumn>>) {
        /// Of an entry without its column.
        const ENTRY_BYTES: usize = 128;
        let bytes = ENTRY_BYTES + files.len() * 8 + drawn.as_ref().map_or(0, |c| c.values.memory_bytes() + c.repeated.len() * 8);
        let state = &mut *self.state.lock();
        state.bytes += bytes;
        let kept = Kept { files: Arc::clone(files), column: drawn, bytes, used: state.now };
        let replaced = state.columns.insert((tree, column), kept);
        state.bytes -= replaced.map_or(0, |kept| kept.bytes);
        while state.bytes > self.limit && state.columns.len() > 1 {
            let Some(oldest) = state.columns.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| *key) else { break };
            state.bytes -= state.columns.remove(&oldest).map_or(0, |kept| kept.bytes);
        }
    }
}

impl Drawing {
    /// Of segments with the numbers of their files.
    pub fn new(segments: impl Iterator<Item = (u64, Arc<TableSegmentReader>)>) -> Drawing {
        let (files, readers): (Vec<u64>, Vec<_>) = segments.unzip();
        let rows = readers.iter().flat_map(|r: &Arc<TableSegmentReader>| r.row_groups()).map(|group| group.rows).sum();
        Drawing { readers, files: files.into(), rows }
    }

    /// How many rows are drawn, apart from tombstones.
    pub fn sample_rows(&self) -> usize {
        self.rows.min(ROWS)
    }

    pub fn is_complete(&self) -> bool {
        self.rows <= ROWS
    }

    pub fn cluster_rows(&self) -> usize {
        if self.is_complete() { 1 } else { CLUSTER_ROWS }
    }

    /// Of each segment, ascending.
    fn places(&self, is_cold: impl Fn(u64) -> bool) -> Vec<Vec<Position>> {
        let mut numbers = numbers(self.rows).into_iter().peekable();
        let mut before = 0;
        let mut of_segment = |(reader, file): (&Arc<TableSegmentReader>, &u64)| {
            let mut positions = Vec::new();
            for (number, group) in (0..).zip(reader.row_groups()) {
                while let Some(row) = numbers.next_if(|row| *row < before + group.rows) {
                    positions.push(Position { group: number, row: (row - before) as u32 });
                }
                before += group.rows;
            }
            if is_cold(*file) { Vec::new() } else { positions }
        };
        self.readers.iter().zip(&*self.files).map(&mut of_segment).collect()
    }

    /// The values of a column; `None` where it is not sampled, or cannot be read: the query that reads it says why.
    fn draw(&self, column: usize, places: &[Vec<Position>]) -> Option<SampledColumn> {
        let kind = *self.readers.first()?.kinds().get(column)?;
        let mut values = [Column::with_capacity(kind, self.sample_rows())];
        for (reader, positions) in self.readers.iter().zip(places) {
            if reader.kinds().get(column) != Some(&kind) || reader.is_dense(column) {
                return None;
            }
            let live: Vec<Position> = positions.iter().copied().filter(|p| !reader.is_tombstone(*p).unwrap_or(true)).collect();
            let (first, rest) = live.split_at(live.len().min(FIRST_ROWS));
            for positions in [first, rest] {
                reader.read_rows(positions, &[column], &mut values).ok()?;
                let rows = values[0].len();
                if values[0].is_stored() || (0..rows).map(|i| values[0].heap_bytes(i)).sum::<usize>() > rows * VALUE_BYTES_MAX {
                    return None;
                }
            }
        }
        let [values] = values;
        Some(SampledColumn {
            nulls: (0..values.len()).filter(|i| values.is_null(*i)).count(),
            repeated: repeated(&values),
            values,
        })
    }
}

/// The numbers of the rows to be drawn from a table, ascending.
fn numbers(rows: usize) -> Vec<usize> {
    if rows <= ROWS {
        return (0..rows).collect();
    }
    const CLUSTERS: usize = ROWS / CLUSTER_ROWS;
    // Without an order, so that nothing that repeats in the table is met in step.
    let scatter = |n: usize, below: usize| (((n as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as usize) % below;
    let cluster = |number: usize| {
        let (start, end) = (number * rows / CLUSTERS, (number + 1) * rows / CLUSTERS);
        let stride = ((end - start) / CLUSTER_ROWS).clamp(1, STRIDE);
        let first = start + scatter(number, end - start + 1 - stride * CLUSTER_ROWS);
        (0..CLUSTER_ROWS).map(move |i| first + i * stride + scatter(number * CLUSTER_ROWS + i, stride))
    };
    (0..CLUSTERS).flat_map(cluster).collect()
}

/// See `SampledColumn::repeated`.
fn repeated(values: &Column) -> Vec<(u32, u32)> {
    let mut counts: HashMap<Vec<u8>, (u32, u32)> = HashMap::with_capacity(values.len());
    for row in (0..values.len()).filter(|row| !values.is_null(*row)) {
        let mut bytes = Vec::new();
        codec::encode(&values.get(row), &mut bytes);
        counts.entry(bytes).or_insert((row as u32, 0)).1 += 1;
    }
    let mut repeated: Vec<(u32, u32)> = counts.into_values().filter(|(_, count)| *count > 1).collect();
    repeated.sort_unstable_by_key(|(row, count)| (u32::MAX - count, *row));
    repeated
}

#[cfg(test)]
mod tests {
    use super::*;
    use melba_types::{Datum, Kind};

    #[test]
    fn rows_are_drawn_from_everywhere_once() {
        for rows in [0, 1, 1023, 1024] {
            assert_eq!(numbers(rows), (0..rows).collect::<Vec<_>>());
        }
        for rows in [1025, 1100, 2048, 5000, 150_000, 6_001_215] {
            let drawn = numbers(rows);
            assert_eq!(drawn.len(), ROWS);
            assert!(drawn.is_sorted_by(|a, b| a < b) && drawn[ROWS - 1] < rows, "{rows}");
            let half = drawn.iter().filter(|number| **number < rows / 2).count();
            assert!(half.abs_diff(ROWS / 2) <= CLUSTER_ROWS, "{rows}: {half} in the first half");
        }
    }

    #[test]
    fn repeated_values_are_counted() {
        let mut values = Column::with_capacity(Kind::Text, 8);
        for value in ["b", "a", "c", "a", "d", "b", "a"] {
            values.push(Datum::text(value));
        }
        values.push(Datum::Null);
        values.push(Datum::Null);
        assert_eq!(repeated(&values), [(1, 3), (0, 2)]);
    }

    #[test]
    fn the_columns_used_least_of_late_are_dropped() {
        let samples = Samples::new(3000);
        let files: Arc<[u64]> = Arc::from([1]);
        let drawn = || {
            let mut values = Column::with_capacity(Kind::Int8, 0);
            (0..100).for_each(|i| values.push(Datum::Int8(i)));
            Some(Arc::new(SampledColumn { values, nulls: 0, repeated: Vec::new() }))
        };
        for column in 0..3 {
            samples.keep(TreeId(1), column, &files, drawn());
            assert!(samples.kept(TreeId(1), 0, &files).is_some(), "used before every other");
        }
        assert!(samples.kept(TreeId(1), 1, &files).is_none() && samples.kept(TreeId(1), 2, &files).is_some());
        assert!(samples.bytes() <= 3000);
        assert!(samples.kept(TreeId(1), 0, &Arc::from([2])).is_none(), "of other segments");
    }
}
